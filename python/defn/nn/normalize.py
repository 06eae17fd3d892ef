"""Elements scaled to a mean and a variance, and then by what is learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axes, Axis, TensorLike

__all__ = [
    "batch_norm",
    "group_norm",
    "layer_norm",
    "rms_norm",
    "standardize",
]


@forwards(_core.standardize)
def standardize(tensor: TensorLike, /, axes: Axes | None = -1, *, eps: float = 1e-5) -> Tensor:
    """``(x - mean) / sqrt(variance + eps)``, with both over axes.

    The mean and the variance are computed in f32, for f64 in f64, in two passes.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: through the mean and the variance.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not.

    >>> dn.nn.standardize(dn.tensor([1.0, 3.0]), eps=0.0).to_list()
    [-1.0, 1.0]
    """
    ...


@forwards(_core.layer_norm)
def layer_norm(
    tensor: TensorLike,
    /,
    axes: Axes | None = -1,
    *,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """:func:`standardize` over axes, times ``scale``, plus ``bias``.

    The parameters have one axis for each of ``axes``, in their order, or are scalars. Ba, Kiros &
    Hinton, "Layer normalization" (2016).

    Shapes: unchanged; names are kept.
    Dtypes: real; promoted, integers to f32. The statistics are computed in f32, for f64 in f64.
    Grad: through the mean and the variance, and to the parameters.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not,
        ``ShapeError`` for parameters of another shape.

    >>> x = dn.tensor([[1.0, 3.0], [5.0, 9.0]])
    >>> dn.nn.layer_norm(x, scale=dn.tensor([1.0, 10.0]), bias=0.5, eps=0.0).to_list()
    [[-0.5, 10.5], [-0.5, 10.5]]
    """
    ...


@forwards(_core.rms_norm)
def rms_norm(
    tensor: TensorLike,
    /,
    axes: Axes | None = -1,
    *,
    scale: TensorLike | None = None,
    eps: float = 1e-6,
) -> Tensor:
    """``x / sqrt(mean(x^2) + eps)``, with the mean over axes, times ``scale``.

    The scale has one axis for each of ``axes``, in their order, or is a scalar. Zhang & Sennrich,
    "Root mean square layer normalization" (2019).

    Shapes: unchanged; names are kept.
    Dtypes: real; promoted, integers to f32. The statistics are computed in f32, for f64 in f64.
    Grad: through the mean, and to the scale.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not,
        ``ShapeError`` for a scale of another shape.

    >>> dn.nn.rms_norm(dn.tensor([2.0, -2.0]), eps=0.0).to_list()
    [1.0, -1.0]
    """
    ...


@forwards(_core.group_norm)
def group_norm(
    tensor: TensorLike,
    /,
    groups: int,
    *,
    axis: Axis = 1,
    batch_axes: Axes = 0,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """:func:`standardize` over groups of channels, times ``scale``, plus ``bias``.

    A group has neighbours on ``axis``, and all elements of the other axes but ``batch_axes``, which
    are ``[]`` for one example. The parameters have one element for each channel, or are scalars. Wu
    & He, "Group normalization" (2018).

    Shapes: unchanged; names are kept.
    Dtypes: real; promoted, integers to f32. The statistics are computed in f32, for f64 in f64.
    Grad: through the mean and the variance, and to the parameters.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not,
        ``ShapeError`` for parameters of another shape, ``OptionError`` for a number of groups that
        does not divide the channels.

    >>> dn.nn.group_norm(dn.tensor([[1.0, 3.0, 4.0, 8.0]]), 2, eps=0.0).to_list()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    ...


@forwards(_core.batch_norm)
def batch_norm(
    tensor: TensorLike,
    /,
    axis: Axis = 1,
    *,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """``(x - mean) / sqrt(variance + eps)`` for each channel: the result, mean and variance.

    Without ``mean`` and ``variance`` they are those of the tensor over all axes but that of the
    channels. A training step mixes them into running ones, which it passes on like parameters;
    later calls pass the running ones. Given ones are returned as they are. All have one element for
    each channel, or are scalars, and so have the factor ``scale`` and the offset ``bias``. Ioffe &
    Szegedy, "Batch normalization" (2015).

    Shapes: that of the tensor, and twice the size of the axis; names are kept.
    Dtypes: real; the tensor and the parameters are promoted, integers to f32. The mean and the
        variance of the tensor are f32, of f64 they are f64.
    Grad: through the mean and the variance, and to the parameters.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not,
        ``ShapeError`` for parameters of another shape, ``OptionError`` if one of ``mean`` and
        ``variance`` is missing.

    >>> x = dn.tensor([[1.0, 0.0], [3.0, 8.0]])
    >>> y, mean, variance = dn.nn.batch_norm(x, eps=0.0)
    >>> y.to_list(), mean.to_list(), variance.to_list()
    ([[-1.0, -1.0], [1.0, 1.0]], [2.0, 4.0], [1.0, 16.0])
    >>> running = 0.9 * dn.tensor([0.0, 0.0]) + 0.1 * mean
    >>> y = dn.nn.batch_norm(x, mean=running, variance=variance)[0]
    """
    ...
