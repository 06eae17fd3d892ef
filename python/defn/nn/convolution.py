"""Convolutions and pools of tensors whose last axis has the channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import PerAxis, TensorLike

__all__ = [
    "avg_pool",
    "conv",
    "conv_transpose",
    "max_pool",
]


@forwards(_core.channels_last_conv)
def conv(
    tensor: TensorLike,
    kernel: TensorLike,
    bias: TensorLike | None = None,
    *,
    strides: PerAxis = 1,
    padding: Literal["valid", "same", "causal"] | Sequence[tuple[int, int]] = "valid",
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of a tensor with a kernel that is not flipped, plus an offset per channel.

    The layout is that of Flax and Keras; :func:`defn.conv` has the channels first, all roles of
    axes, and no offset. ``"same"`` has as many zeros as one position for each stride needs, as in
    JAX, where those of :func:`defn.conv` do not depend on the strides. With ``"causal"`` no
    position sees a later element. ``groups`` that are the number of channels make a depthwise
    convolution.

    Shapes: the tensor is (batch, spatial..., channels), the kernel (spatial..., channels / groups,
        output channels), ``bias`` (output channels) or a scalar, the result (batch, positions...,
        output channels). Strides, padding and dilation have one entry per spatial axis, or one for
        all.
    Dtypes: any; promoted, integers to f32. Floats of 8 and 16 bits accumulate in f32.
    Grad: to all operands.
    Raises: ``AxisError`` for a tensor without a spatial axis, ``OptionError`` for an option without
        an entry per spatial axis, for an entry below 1 and for a kernel of another rank,
        ``ShapeError`` for channels or groups that do not match, for a bias of another size, and for
        a kernel that does not fit once.

    >>> x, kernel = dn.tensor([[[1.0], [2.0], [3.0]]]), dn.tensor([[[1.0]], [[10.0]]])
    >>> dn.nn.conv(x, kernel, padding="causal").flatten().to_list()
    [10.0, 21.0, 32.0]
    """
    ...


@forwards(_core.conv_transpose)
def conv_transpose(
    tensor: TensorLike,
    kernel: TensorLike,
    bias: TensorLike | None = None,
    *,
    strides: PerAxis = 1,
    padding: Literal["valid", "same"] | Sequence[tuple[int, int]] = "valid",
    dilation: PerAxis = 1,
) -> Tensor:
    """The convolution of a tensor with zeros between its elements, plus an offset per channel.

    Elements are ``strides`` apart, so that the result is larger. The kernel is not flipped, as in
    JAX and Flax; Keras and PyTorch flip it. With ``"same"`` sizes are multiplied by the strides,
    with ``"valid"`` every element meets the whole kernel.

    Shapes: as of :func:`conv`.
    Dtypes: any; promoted, integers to f32. Floats of 8 and 16 bits accumulate in f32.
    Grad: to all operands.
    Raises: as :func:`conv`, and ``OptionError`` for causal padding.

    >>> x, kernel = dn.tensor([[[1.0], [2.0]]]), dn.tensor([[[10.0]], [[1.0]]])
    >>> dn.nn.conv_transpose(x, kernel, strides=2).flatten().to_list()
    [1.0, 10.0, 2.0, 20.0]
    """
    ...


@forwards(_core.max_pool)
def max_pool(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis | None = None,
    padding: Literal["valid", "same", "causal"] | Sequence[tuple[int, int]] = "valid",
) -> Tensor:
    """The maximum at each position of a window over the spatial axes.

    The window slides by its own size unless ``strides`` are given, as in Keras and PyTorch; in Flax
    it slides by 1. Over whole axes, ``dn.reduce_max`` is the pool.

    Shapes: (batch, spatial..., channels) to (batch, positions..., channels). Window, strides and
        padding have one entry per spatial axis, or one for all. Padding is never the maximum.
    Dtypes: real; unchanged.
    Grad: ``g`` to the maximum of each window, to the last of equal elements.
    Raises: ``DTypeError`` for complex elements, ``AxisError`` for a tensor without a spatial axis,
        ``OptionError`` for an option without an entry per spatial axis and for an entry below 1,
        ``ShapeError`` for a window that does not fit once.

    >>> dn.nn.max_pool(dn.tensor([[[1], [4], [3], [2]]]), 2).flatten().to_list()
    [4, 3]
    """
    ...


@forwards(_core.avg_pool)
def avg_pool(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis | None = None,
    padding: Literal["valid", "same", "causal"] | Sequence[tuple[int, int]] = "valid",
    count_include_pad: bool = True,
) -> Tensor:
    """The mean at each position of a window over the spatial axes.

    The window slides by its own size unless ``strides`` are given. Padding counts as zeros, or not
    at all if ``count_include_pad`` is false. Over whole axes, ``dn.mean`` is the pool.

    Shapes: (batch, spatial..., channels) to (batch, positions..., channels), as of
        :func:`max_pool`.
    Dtypes: real; integers become f32. Floats of 8 and 16 bits accumulate in f32.
    Grad: the sum of ``g / n`` over the windows that contain the element.
    Raises: as :func:`max_pool`.

    >>> x = dn.tensor([[[2.0], [4.0], [6.0]]])
    >>> dn.nn.avg_pool(x, 2, padding="same").flatten().to_list()
    [3.0, 3.0]
    >>> dn.nn.avg_pool(x, 2, padding="same", count_include_pad=False).flatten().to_list()
    [3.0, 6.0]
    """
    ...
