"""Sliding windows and convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn._core import Tensor
    from defn.typing import Axis, Padding, PerAxis, TensorLike

__all__ = [
    "conv",
    "window_max",
    "window_mean",
    "window_min",
    "window_product",
    "window_reduce",
    "window_scatter_max",
    "window_scatter_min",
    "window_sum",
]


@forwards(_core.window_sum)
def window_sum(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
) -> Tensor:
    """The sum of the elements at each window position.

    Shapes: the window has one size per axis and moves by ``strides`` over the padded tensor.
        ``padding`` is ``"valid"`` for none, ``"same"`` to keep the sizes if strides are 1, or
        ``(low, high)`` for each axis; negative numbers crop. The elements of a window are
        ``window_dilations`` apart. Names are kept. Padding counts as 0.
    Dtypes: any; unchanged, but bools become s32. Integers wrap.
    Grad: the sum of ``g`` over the windows that contain the element.
    Raises: ``ShapeError`` unless each option has one entry per axis and the window fits at least
        once, ``OptionError`` if an entry is below 1.

    >>> dn.window_sum(dn.tensor([1, 2, 3, 4]), 2).to_list()
    [3, 5, 7]
    """
    ...


@forwards(_core.window_product)
def window_product(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
) -> Tensor:
    """The product of the elements at each window position.

    Shapes: the window has one size per axis and moves by ``strides`` over the padded tensor.
        ``padding`` is ``"valid"`` for none, ``"same"`` to keep the sizes if strides are 1, or
        ``(low, high)`` for each axis; negative numbers crop. The elements of a window are
        ``window_dilations`` apart. Names are kept. Padding counts as 1.
    Dtypes: any; unchanged, but bools become s32. Integers wrap.
    Grad: not defined; it raises.
    Raises: ``ShapeError`` unless each option has one entry per axis and the window fits at least
        once, ``OptionError`` if an entry is below 1.

    >>> dn.window_product(dn.tensor([1, 2, 3, 4]), 2, padding="same").to_list()
    [2, 6, 12, 4]
    """
    ...


@forwards(_core.window_max)
def window_max(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
) -> Tensor:
    """The maximum at each window position; NaN if any element is NaN.

    Shapes: the window has one size per axis and moves by ``strides`` over the padded tensor.
        ``padding`` is ``"valid"`` for none, ``"same"`` to keep the sizes if strides are 1, or
        ``(low, high)`` for each axis; negative numbers crop. The elements of a window are
        ``window_dilations`` apart. Names are kept. Padding is never greater than an element.
    Dtypes: real; unchanged.
    Grad: ``g`` to the maximum of each window, to the last of equal elements.
    Raises: ``ShapeError`` unless each option has one entry per axis and the window fits at least
        once, ``OptionError`` if an entry is below 1, ``DTypeError`` for complex elements.

    >>> dn.window_max(dn.tensor([1, 4, 3, 2]), 2, strides=2).to_list()
    [4, 3]
    """
    ...


@forwards(_core.window_min)
def window_min(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
) -> Tensor:
    """The minimum at each window position; NaN if any element is NaN.

    Shapes: the window has one size per axis and moves by ``strides`` over the padded tensor.
        ``padding`` is ``"valid"`` for none, ``"same"`` to keep the sizes if strides are 1, or
        ``(low, high)`` for each axis; negative numbers crop. The elements of a window are
        ``window_dilations`` apart. Names are kept. Padding is never less than an element.
    Dtypes: real; unchanged.
    Grad: ``g`` to the minimum of each window, to the last of equal elements.
    Raises: ``ShapeError`` unless each option has one entry per axis and the window fits at least
        once, ``OptionError`` if an entry is below 1, ``DTypeError`` for complex elements.

    >>> dn.window_min(dn.tensor([1, 4, 3, 2]), 2, window_dilations=2).to_list()
    [1, 2]
    """
    ...


@forwards(_core.window_mean)
def window_mean(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
) -> Tensor:
    """The mean at each window position.

    Shapes: the window has one size per axis and moves by ``strides`` over the padded tensor.
        ``padding`` is ``"valid"`` for none, ``"same"`` to keep the sizes if strides are 1, or
        ``(low, high)`` for each axis; negative numbers crop. The elements of a window are
        ``window_dilations`` apart. Names are kept. Padding counts as zeros, which are included in
        the number of elements.
    Dtypes: any; integers become f32. Sums accumulate as in ``mean``.
    Grad: the sum of ``g / n`` over the windows that contain the element.
    Raises: ``ShapeError`` unless each option has one entry per axis and the window fits at least
        once, ``OptionError`` if an entry is below 1.

    >>> dn.window_mean(dn.tensor([1, 2, 3, 4]), 2, strides=2).to_list()
    [1.5, 3.5]
    """
    ...


@forwards(_core.window_reduce)
def window_reduce(
    tensor: TensorLike,
    acc: TensorLike,
    window: PerAxis,
    fun: Callable[[Tensor, Tensor], TensorLike],
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
) -> Tensor:
    """Fold the elements at each window position with a function ``fun(element, acc)`` of scalars.

    The elements are folded in row-major order. If ``fun`` is a single addition or multiplication,
    the order may differ, as in ``window_sum`` and ``window_product``. ``fun`` is called once, while
    it is traced.

    Shapes: the window has one size per axis and moves by ``strides`` over the padded tensor.
        ``padding`` is ``"valid"`` for none, ``"same"`` to keep the sizes if strides are 1, or
        ``(low, high)`` for each axis; negative numbers crop. The elements of a window are
        ``window_dilations`` apart. Names are kept. Padding counts as ``acc``, a scalar.
    Dtypes: any; unchanged. ``acc`` and the arguments and result of ``fun`` have the same dtype.
    Grad: not defined; it raises.
    Raises: ``ShapeError`` unless each option has one entry per axis and the window fits at least
        once, ``OptionError`` if an entry is below 1, ``ShapeError`` if ``acc`` or the result of
        ``fun`` is not a scalar.

    >>> dn.window_reduce(dn.tensor([1, 2, 3, 4]), 0, 2, lambda x, acc: x + 2 * acc).to_list()
    [4, 7, 10]
    """
    ...


@forwards(_core.window_scatter_max)
def window_scatter_max(
    tensor: TensorLike,
    source: TensorLike,
    init: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
) -> Tensor:
    """``init`` everywhere, plus each element of ``source`` at the position of its window's maximum.

    Of equal elements the last receives the value. NaN counts as the maximum. Padding counts as
    ``init`` and receives nothing.

    Shapes: that of the tensor, with its names. The source has one element per window position;
        ``init`` is a scalar.
    Dtypes: real; ``source`` and ``init`` are promoted, but not to bool; Python numbers are weakly
        typed. Integers wrap.
    Grad: ``g`` at the selected positions to the source, the sum of ``g`` to ``init``; zero to the
        tensor.
    Raises: ``ShapeError`` unless the source has one element per position, each option has one entry
        per axis, and the window fits at least once, ``OptionError`` if an entry is below 1,
        ``DTypeError`` for complex elements and if both ``source`` and ``init`` are bools.

    >>> x, source = dn.tensor([1, 4, 4, 2]), dn.tensor([10, 20])
    >>> dn.window_scatter_max(x, source, 0, 2, strides=2).to_list()
    [0, 10, 20, 0]
    """
    ...


@forwards(_core.window_scatter_min)
def window_scatter_min(
    tensor: TensorLike,
    source: TensorLike,
    init: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
) -> Tensor:
    """``init`` everywhere, plus each element of ``source`` at the position of its window's minimum.

    Of equal elements the last receives the value. NaN counts as the minimum. Padding counts as
    ``init`` and receives nothing.

    Shapes: that of the tensor, with its names. The source has one element per window position;
        ``init`` is a scalar.
    Dtypes: real; ``source`` and ``init`` are promoted, but not to bool; Python numbers are weakly
        typed. Integers wrap.
    Grad: ``g`` at the selected positions to the source, the sum of ``g`` to ``init``; zero to the
        tensor.
    Raises: ``ShapeError`` unless the source has one element per position, each option has one entry
        per axis, and the window fits at least once, ``OptionError`` if an entry is below 1,
        ``DTypeError`` for complex elements and if both ``source`` and ``init`` are bools.

    >>> x, source = dn.tensor([1, 4, 4, 2]), dn.tensor([10, 20])
    >>> dn.window_scatter_min(x, source, 0, 2, strides=2).to_list()
    [10, 0, 0, 20]
    """
    ...


@forwards(_core.conv)
def conv(
    tensor: TensorLike,
    kernel: TensorLike,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    input_dilation: PerAxis = 1,
    kernel_dilation: PerAxis = 1,
    feature_group_size: int = 1,
    batch_group_size: int = 1,
    input_permutation: Sequence[Axis] | None = None,
    kernel_permutation: Sequence[Axis] | None = None,
    output_permutation: Sequence[Axis] | None = None,
) -> Tensor:
    """The convolution of a tensor with a kernel that is not flipped (cross-correlation).

    ``feature_group_size`` is the number of groups into which the channels are split,
    ``batch_group_size`` that of the batch. Each group has its own part of the output channels. Only
    one of the two may be above 1.

    Shapes: the tensor is (batch, channels, spatial...), the kernel (output channels, channels of a
        group, spatial...), the result (batch / batch groups, output channels, positions...). Entry
        i of a permutation is the axis with role i in that order. Strides, padding and dilations
        have one entry per spatial axis, or one for all. Padding surrounds the dilated tensor. The
        result has the names of the tensor, by role.
    Dtypes: any; floats and complex are unchanged, integers become f32. Floats of 8 and 16 bits
        accumulate in f32.
    Grad: ``g`` convolved with the kernel to the tensor; the tensor convolved with ``g`` to the
        kernel.
    Raises: ``ShapeError`` if ranks differ or are below 3, an option does not have one entry per
        spatial axis, groups do not divide the batch or the channels, the channels differ, or the
        kernel does not fit once, ``OptionError`` if an entry is below 1 or a permutation does not
        name every axis.

    >>> x = dn.iota((1, 1, 5), dtype="f32")
    >>> dn.conv(x, dn.tensor([[[1.0, 10.0]]]), strides=2).to_list()
    [[[10.0, 32.0]]]
    """
    ...
