"""Windows that slide over a tensor, and convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

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


def window_sum(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
    **unknown: Never,
) -> Tensor:
    """Add up the elements in each place of a window.

    Shapes: the window has a size for each axis and moves by ``strides`` over the tensor with
        ``padding`` around it: ``"valid"`` none, ``"same"`` as much as keeps the sizes where strides
        are 1, or ``(low, high)`` for each axis, where negative numbers crop. The window's elements
        are ``window_dilations`` apart. Names stay. Padding counts as 0.
    Dtypes: any; kept. Integers wrap.
    Grad: every element gets the sum of ``g`` over the windows that it lies in.
    Raises: ``ShapeError`` if an option has not one entry for each axis or the window does not fit
        once, ``OptionError`` if an entry is below 1.

    >>> dn.window_sum(dn.tensor([1, 2, 3, 4]), 2).to_list()
    [3, 5, 7]
    """
    if unknown:
        refuse_options("window_sum", unknown)
    return _core.window_sum(tensor, window, strides, padding, window_dilations)


def window_product(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
    **unknown: Never,
) -> Tensor:
    """Multiply the elements in each place of a window.

    Shapes: the window has a size for each axis and moves by ``strides`` over the tensor with
        ``padding`` around it: ``"valid"`` none, ``"same"`` as much as keeps the sizes where strides
        are 1, or ``(low, high)`` for each axis, where negative numbers crop. The window's elements
        are ``window_dilations`` apart. Names stay. Padding counts as 1.
    Dtypes: any; kept. Integers wrap.
    Grad: none; it raises.
    Raises: ``ShapeError`` if an option has not one entry for each axis or the window does not fit
        once, ``OptionError`` if an entry is below 1.

    >>> dn.window_product(dn.tensor([1, 2, 3, 4]), 2, padding="same").to_list()
    [2, 6, 12, 4]
    """
    if unknown:
        refuse_options("window_product", unknown)
    return _core.window_product(tensor, window, strides, padding, window_dilations)


def window_max(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
    **unknown: Never,
) -> Tensor:
    """The greatest element in each place of a window; NaN if any is.

    Shapes: the window has a size for each axis and moves by ``strides`` over the tensor with
        ``padding`` around it: ``"valid"`` none, ``"same"`` as much as keeps the sizes where strides
        are 1, or ``(low, high)`` for each axis, where negative numbers crop. The window's elements
        are ``window_dilations`` apart. Names stay. Padding is never
        above an element.
    Dtypes: real; kept.
    Grad: the whole ``g`` to the greatest element of each window, the last of equal ones.
    Raises: ``ShapeError`` if an option has not one entry for each axis or the window does not fit
        once, ``OptionError`` if an entry is below 1,
        ``DTypeError`` for complex elements.

    >>> dn.window_max(dn.tensor([1, 4, 3, 2]), 2, strides=2).to_list()
    [4, 3]
    """
    if unknown:
        refuse_options("window_max", unknown)
    return _core.window_max(tensor, window, strides, padding, window_dilations)


def window_min(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
    **unknown: Never,
) -> Tensor:
    """The least element in each place of a window; NaN if any is.

    Shapes: the window has a size for each axis and moves by ``strides`` over the tensor with
        ``padding`` around it: ``"valid"`` none, ``"same"`` as much as keeps the sizes where strides
        are 1, or ``(low, high)`` for each axis, where negative numbers crop. The window's elements
        are ``window_dilations`` apart. Names stay. Padding is never
        below an element.
    Dtypes: real; kept.
    Grad: the whole ``g`` to the least element of each window, the last of equal ones.
    Raises: ``ShapeError`` if an option has not one entry for each axis or the window does not fit
        once, ``OptionError`` if an entry is below 1,
        ``DTypeError`` for complex elements.

    >>> dn.window_min(dn.tensor([1, 4, 3, 2]), 2, window_dilations=2).to_list()
    [1, 2]
    """
    if unknown:
        refuse_options("window_min", unknown)
    return _core.window_min(tensor, window, strides, padding, window_dilations)


def window_mean(
    tensor: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
    **unknown: Never,
) -> Tensor:
    """The mean of each place of a window.

    Shapes: the window has a size for each axis and moves by ``strides`` over the tensor with
        ``padding`` around it: ``"valid"`` none, ``"same"`` as much as keeps the sizes where strides
        are 1, or ``(low, high)`` for each axis, where negative numbers crop. The window's elements
        are ``window_dilations`` apart. Names stay. Padding counts as zeros
        that are there.
    Dtypes: any; integers give f32. They add up as for ``mean``.
    Grad: every element gets the sum of ``g / n`` over the windows that it lies in.
    Raises: ``ShapeError`` if an option has not one entry for each axis or the window does not fit
        once, ``OptionError`` if an entry is below 1.

    >>> dn.window_mean(dn.tensor([1, 2, 3, 4]), 2, strides=2).to_list()
    [1.5, 3.5]
    """
    if unknown:
        refuse_options("window_mean", unknown)
    return _core.window_mean(tensor, window, strides, padding, window_dilations)


def window_reduce(
    tensor: TensorLike,
    acc: TensorLike,
    window: PerAxis,
    fun: Callable[[Tensor, Tensor], TensorLike],
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    window_dilations: PerAxis = 1,
    **unknown: Never,
) -> Tensor:
    """Fold the elements in each place of a window by a function ``fun(element, acc)`` of scalars.

    The elements come in row-major order. A function that is one addition or multiplication may take
    them in another one, as ``window_sum`` and ``window_product`` do. The function is called once,
    while it is traced.

    Shapes: the window has a size for each axis and moves by ``strides`` over the tensor with
        ``padding`` around it: ``"valid"`` none, ``"same"`` as much as keeps the sizes where strides
        are 1, or ``(low, high)`` for each axis, where negative numbers crop. The window's elements
        are ``window_dilations`` apart. Names stay. Padding
        counts as ``acc``, a scalar.
    Dtypes: any; kept, also by ``acc`` and by what ``fun`` gets and gives.
    Grad: none; it raises.
    Raises: ``ShapeError`` if an option has not one entry for each axis or the window does not fit
        once, ``OptionError`` if an entry is below 1,
        ``ShapeError`` if ``acc`` or what ``fun`` gives is no scalar.

    >>> dn.window_reduce(dn.tensor([1, 2, 3, 4]), 0, 2, lambda x, acc: x + 2 * acc).to_list()
    [4, 7, 10]
    """
    if unknown:
        refuse_options("window_reduce", unknown)
    return _core.window_reduce(tensor, acc, window, fun, strides, padding, window_dilations)


def window_scatter_max(
    tensor: TensorLike,
    source: TensorLike,
    init: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    **unknown: Never,
) -> Tensor:
    """``init`` everywhere, plus each element of ``source`` where its window's greatest element is.

    Of equal elements the last one receives, and NaN counts as the greatest. Padding counts as
    ``init``, and receives nothing.

    Shapes: that of the tensor, with its names. The source has one element for each place of the
        window; ``init`` is a scalar.
    Dtypes: real; that of ``source`` and ``init`` together, where a plain number is weak. Integers
        wrap.
    Grad: to the source ``g`` at the chosen places, to ``init`` the sum of ``g``; none to the
        tensor.
    Raises: ``ShapeError`` if the source has another shape, an option has not one entry for each
        axis, or the window does not fit once, ``OptionError`` if an entry is below 1,
        ``DTypeError`` for complex elements.

    >>> x, source = dn.tensor([1, 4, 4, 2]), dn.tensor([10, 20])
    >>> dn.window_scatter_max(x, source, 0, 2, strides=2).to_list()
    [0, 10, 20, 0]
    """
    if unknown:
        refuse_options("window_scatter_max", unknown)
    return _core.window_scatter_max(tensor, source, init, window, strides, padding)


def window_scatter_min(
    tensor: TensorLike,
    source: TensorLike,
    init: TensorLike,
    window: PerAxis,
    *,
    strides: PerAxis = 1,
    padding: Padding = "valid",
    **unknown: Never,
) -> Tensor:
    """``init`` everywhere, plus each element of ``source`` where its window's least element is.

    Of equal elements the last one receives, and NaN counts as the least. Padding counts as
    ``init``, and receives nothing.

    Shapes: that of the tensor, with its names. The source has one element for each place of the
        window; ``init`` is a scalar.
    Dtypes: real; that of ``source`` and ``init`` together, where a plain number is weak. Integers
        wrap.
    Grad: to the source ``g`` at the chosen places, to ``init`` the sum of ``g``; none to the
        tensor.
    Raises: ``ShapeError`` if the source has another shape, an option has not one entry for each
        axis, or the window does not fit once, ``OptionError`` if an entry is below 1,
        ``DTypeError`` for complex elements.

    >>> x, source = dn.tensor([1, 4, 4, 2]), dn.tensor([10, 20])
    >>> dn.window_scatter_min(x, source, 0, 2, strides=2).to_list()
    [10, 0, 0, 20]
    """
    if unknown:
        refuse_options("window_scatter_min", unknown)
    return _core.window_scatter_min(tensor, source, init, window, strides, padding)


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
    **unknown: Never,
) -> Tensor:
    """Sums of products of a kernel and what it lies over, at each of its places. No flip.

    With ``feature_group_size`` the channels, with ``batch_group_size`` the batch falls into so many
    groups, each with its own part of the output channels; only one of both may be above 1.

    Shapes: the tensor is (batch, channels, spatial...), the kernel (output channels, channels of a
        group, spatial...), the result (batch / batch groups, output channels, places...). Entry i
        of a permutation is the axis that plays role i in that order. Strides, padding and
        dilations have an entry for each spatial axis, or one for all; padding is put around the
        dilated tensor. The result has the tensor's names, by role.
    Dtypes: any; float or complex, integers give f32. Small floats add up in f32.
    Grad: to the tensor, ``g`` convolved with the kernel; to the kernel, the tensor with ``g``.
    Raises: ``ShapeError`` if ranks differ or are below 3, an option has not one entry for each
        spatial axis, groups do not divide the batch or the channels, the channels differ, or the
        kernel does not fit once, ``OptionError`` if an entry is below 1 or a permutation does not
        name every axis.

    >>> x = dn.iota((1, 1, 5), dtype="f32")
    >>> dn.conv(x, dn.tensor([[[1.0, 10.0]]]), strides=2).to_list()
    [[[10.0, 32.0]]]
    """
    if unknown:
        refuse_options("conv", unknown)
    return _core.conv(
        tensor,
        kernel,
        strides,
        padding,
        input_dilation,
        kernel_dilation,
        feature_group_size,
        batch_group_size,
        input_permutation,
        kernel_permutation,
        output_permutation,
    )
