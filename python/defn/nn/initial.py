"""Initial values of what is learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, DTypeLike, Names, Shape, TensorLike

__all__ = [
    "glorot",
    "glorot_split",
    "he",
    "he_split",
    "lecun",
    "lecun_split",
    "orthogonal",
    "orthogonal_split",
    "variance_scaling",
    "variance_scaling_split",
]


@forwards(_core.glorot)
def glorot(
    key: TensorLike,
    distribution: Literal["uniform", "normal", "truncated_normal"] = "uniform",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random weights with the variance ``2 / (fan_in + fan_out)``, and the next key.

    Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010). The options are those of :func:`variance_scaling`.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not a float,
        ``AxisError`` for axes that the shape does not have and for an axis with several roles.

    >>> w, key = dn.nn.glorot(dn.random.key(1), shape=(4, 2))
    >>> bool(dn.all(dn.abs(w) <= 1))
    True
    """
    ...


@forwards(_core.glorot_split)
def glorot_split(
    key: TensorLike,
    distribution: Literal["uniform", "normal", "truncated_normal"] = "uniform",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`glorot`, but draws from ``key`` itself and returns only the weights.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: as :func:`glorot`.

    >>> dn.nn.glorot_split(dn.random.key(1), "normal", shape=(3, 3, 4, 8), dtype="bf16").dtype
    bf16
    """
    ...


@forwards(_core.he)
def he(
    key: TensorLike,
    distribution: Literal["uniform", "normal", "truncated_normal"] = "truncated_normal",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random weights with the variance ``2 / fan_in``, and the next key.

    For layers with :func:`relu`: He, Zhang, Ren & Sun, "Delving deep into rectifiers" (2015). The
    options are those of :func:`variance_scaling`.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: as :func:`glorot`.

    >>> kernel, key = dn.nn.he(dn.random.key(1), shape=(3, 3, 4, 8))
    >>> kernel.shape
    (3, 3, 4, 8)
    """
    ...


@forwards(_core.he_split)
def he_split(
    key: TensorLike,
    distribution: Literal["uniform", "normal", "truncated_normal"] = "truncated_normal",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`he`, but draws from ``key`` itself and returns only the weights.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: as :func:`he`.

    >>> w = dn.nn.he_split(dn.random.key(1), "uniform", shape=(6, 2))
    >>> bool(dn.all(dn.abs(w) <= 1))
    True
    """
    ...


@forwards(_core.lecun)
def lecun(
    key: TensorLike,
    distribution: Literal["uniform", "normal", "truncated_normal"] = "truncated_normal",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random weights with the variance ``1 / fan_in``, and the next key.

    LeCun, Bottou, Orr & Müller, "Efficient backprop" (1998). The options are those of
    :func:`variance_scaling`.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: as :func:`glorot`.

    >>> w, key = dn.nn.lecun(dn.random.key(1), shape=(4, 2))
    >>> w.shape
    (4, 2)
    """
    ...


@forwards(_core.lecun_split)
def lecun_split(
    key: TensorLike,
    distribution: Literal["uniform", "normal", "truncated_normal"] = "truncated_normal",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`lecun`, but draws from ``key`` itself and returns only the weights.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: as :func:`lecun`.

    >>> w = dn.nn.lecun_split(dn.random.key(1), "uniform", shape=(3, 2))
    >>> bool(dn.all(dn.abs(w) <= 1))
    True
    """
    ...


@forwards(_core.orthogonal)
def orthogonal(
    key: TensorLike,
    scale: float = 1.0,
    *,
    axis: Axis = -1,
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """A random orthogonal matrix times ``scale``, and the next key.

    It has one row for each position on ``axis``, and the other axes are columns. With more columns
    than rows its rows are orthonormal, else its columns. It is uniformly distributed, as
    :func:`defn.random.orthogonal`. Saxe, McClelland & Ganguli, "Exact solutions to the nonlinear
    dynamics of learning in deep linear neural networks" (2013).

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats and complex; by default f32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a scale that is not finite and
        for a dtype that is neither float nor complex, ``AxisError`` for an axis that the shape does
        not have.

    >>> w, key = dn.nn.orthogonal(dn.random.key(1), shape=(5, 3))
    >>> dn.all_close(w.T @ w, dn.eye(3), atol=1e-5).item()
    True
    """
    ...


@forwards(_core.orthogonal_split)
def orthogonal_split(
    key: TensorLike,
    scale: float = 1.0,
    *,
    axis: Axis = -1,
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`orthogonal`, but draws from ``key`` itself and returns only the weights.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats and complex; by default f32.
    Grad: none.
    Raises: as :func:`orthogonal`.

    >>> w = dn.nn.orthogonal_split(dn.random.key(1), 2.0, axis=0, shape=(3, 4))
    >>> dn.all_close(w @ w.T, 4 * dn.eye(3), atol=1e-5).item()
    True
    """
    ...


@forwards(_core.variance_scaling)
def variance_scaling(
    key: TensorLike,
    scale: float = 1.0,
    mode: Literal["fan_in", "fan_out", "fan_avg"] = "fan_in",
    distribution: Literal["uniform", "normal", "truncated_normal"] = "truncated_normal",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random weights with the mean 0 and the variance ``scale / n``, and the next key.

    ``n`` is the number of connections into a unit (``"fan_in"``), out of it (``"fan_out"``), or the
    mean of both (``"fan_avg"``): the sizes of ``in_axis`` or ``out_axis`` times those of all other
    axes, which are the axes of a kernel that slides. ``batch_axes`` are not counted. The truncated
    normal distribution has nothing beyond two of its standard deviations, and is scaled so that its
    variance is as given.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a scale that is negative or not
        finite and for a dtype that is not a float, ``AxisError`` for axes that the shape does not
        have and for an axis with several roles.

    >>> w, key = dn.nn.variance_scaling(dn.random.key(1), 3.0, distribution="uniform", shape=(4, 2))
    >>> bool(dn.all(dn.abs(w) <= 1.5))
    True
    """
    ...


@forwards(_core.variance_scaling_split)
def variance_scaling_split(
    key: TensorLike,
    scale: float = 1.0,
    mode: Literal["fan_in", "fan_out", "fan_avg"] = "fan_in",
    distribution: Literal["uniform", "normal", "truncated_normal"] = "truncated_normal",
    *,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axes: Axes = (),
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`variance_scaling`, but draws from ``key`` itself and returns only the weights.

    Shapes: the given shape, which ``names`` name.
    Dtypes: floats; by default f32.
    Grad: none.
    Raises: as :func:`variance_scaling`.

    >>> heads = dn.nn.variance_scaling_split(dn.random.key(1), shape=(8, 64, 16), batch_axes=0)
    >>> heads.shape
    (8, 64, 16)
    """
    ...
