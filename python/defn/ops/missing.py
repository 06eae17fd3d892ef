"""Reductions that leave out NaN, quantiles and averages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, TensorLike

__all__ = [
    "average",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "percentile",
    "quantile",
]


@forwards(_core.nansum)
def nansum(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The sum of the elements that are not NaN; 0 where there is none.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; bools become s32, integers of up to 32 bits s32 or u32, 64-bit integers stay;
        integers wrap.
    Grad: ``g`` to the elements that are not NaN.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.nansum(dn.tensor([1.0, float("nan"), 3.0])).item()
    4.0
    """
    ...


@forwards(_core.nanprod)
def nanprod(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The product of the elements that are not NaN; 1 where there is none.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; bools become s32, integers of up to 32 bits s32 or u32, 64-bit integers stay;
        integers wrap.
    Grad: ``g`` times the product of the other elements, to those that are not NaN.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.nanprod(dn.tensor([2.0, float("nan"), 3.0])).item()
    6.0
    """
    ...


@forwards(_core.nanmax)
def nanmax(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The greatest element that is not NaN; NaN where there is none.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: real; unchanged.
    Grad: ``g``, in equal shares to the elements that are the greatest.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is
        no element to reduce, ``DTypeError`` for complex elements.

    >>> dn.nanmax(dn.tensor([1.0, float("nan"), 3.0])).item()
    3.0
    """
    ...


@forwards(_core.nanmin)
def nanmin(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The least element that is not NaN; NaN where there is none.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: real; unchanged.
    Grad: ``g``, in equal shares to the elements that are the least.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is
        no element to reduce, ``DTypeError`` for complex elements.

    >>> dn.nanmin(dn.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    ...


@forwards(_core.nanmean)
def nanmean(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The mean of the elements that are not NaN; NaN where there is none.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; integers become f32. Sums accumulate in wider dtypes.
    Grad: ``g / n`` to the elements that are not NaN.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is
        no element to reduce.

    >>> dn.nanmean(dn.tensor([1.0, float("nan"), 3.0])).item()
    2.0
    """
    ...


@forwards(_core.nanvar)
def nanvar(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, ddof: int = 0
) -> Tensor:
    """The mean squared deviation from the mean, of the elements that are not NaN.

    The sum of the squares is divided by the number of those elements minus ``ddof``; where that
    is not positive, the result is NaN.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; integers become f32.
    Grad: through the definition.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is
        no element to reduce.

    >>> dn.nanvar(dn.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    ...


@forwards(_core.nanstd)
def nanstd(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, ddof: int = 0
) -> Tensor:
    """The square root of ``nanvar``.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; integers become f32.
    Grad: through the definition.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is
        no element to reduce.

    >>> dn.nanstd(dn.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    ...


@forwards(_core.nanargmax)
def nanargmax(tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False) -> Tensor:
    """The index of the greatest element that is not NaN, along an axis or of all elements.

    It is the first of equal elements, and -1 where all elements are NaN, for which NumPy raises
    an error.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, or with ``keep_axis`` all axes have size 1. Other axes keep their names.
    Dtypes: real; the result is s32, or s64 where the axis needs it.
    Grad: zero.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.nanargmax(dn.tensor([1.0, float("nan"), 3.0])).item()
    2
    """
    ...


@forwards(_core.nanargmin)
def nanargmin(tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False) -> Tensor:
    """The index of the least element that is not NaN, along an axis or of all elements.

    It is the first of equal elements, and -1 where all elements are NaN, for which NumPy raises
    an error.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, or with ``keep_axis`` all axes have size 1. Other axes keep their names.
    Dtypes: real; the result is s32, or s64 where the axis needs it.
    Grad: zero.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.nanargmin(dn.tensor([1.0, float("nan"), 3.0])).item()
    0
    """
    ...


@forwards(_core.nanmedian)
def nanmedian(tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False) -> Tensor:
    """The median of the elements that are not NaN; NaN where there is none.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, or with ``keep_axis`` all axes have size 1. Other axes keep their names.
    Dtypes: real; unchanged for floats; integers are as in ``median``.
    Grad: ``g`` to the middle elements.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.nanmedian(dn.tensor([5.0, float("nan"), 1.0, 2.0])).item()
    2.0
    """
    ...


@forwards(_core.quantile)
def quantile(
    tensor: TensorLike,
    q: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    method: Literal["linear", "lower", "higher", "nearest", "midpoint"] = "linear",
) -> Tensor:
    """The element below which a share ``q`` of the elements is, along an axis or of all elements.

    Where its position is not whole, ``method`` decides: "linear" is between both elements by
    the fraction of the position, "lower" and "higher" are one of them, "nearest" is the nearer
    one, or of both the one with the even position, and "midpoint" is their mean. NaN among the
    elements makes the result NaN. ``q`` is from 0 to 1; values of a tensor outside are clipped.

    Shapes: the axes of ``q``, then those of the tensor; ``axis`` is removed, or with ``keep_axis``
        has size 1. Without an axis all axes are. Names are kept.
    Dtypes: real; unchanged, but with "linear" and "midpoint" integers become f32. ``q`` is
        real.
    Grad: to the elements beside the position of the quantile; to ``q`` with "linear".
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` if a number ``q`` is out of range
        or ``method`` is unknown.

    >>> dn.quantile(dn.tensor([4.0, 1.0, 3.0, 2.0]), dn.tensor([0.0, 0.5])).to_list()
    [1.0, 2.5]
    """
    ...


@forwards(_core.percentile)
def percentile(
    tensor: TensorLike,
    q: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    method: Literal["linear", "lower", "higher", "nearest", "midpoint"] = "linear",
) -> Tensor:
    """The quantiles for ``q`` in hundredths, from 0 to 100. See ``quantile``.

    Shapes: the axes of ``q``, then those of the tensor; ``axis`` is removed, or with ``keep_axis``
        has size 1. Without an axis all axes are. Names are kept.
    Dtypes: real; unchanged, but with "linear" and "midpoint" integers become f32. ``q`` is
        real.
    Grad: to the elements beside the position of the quantile; to ``q`` with "linear".
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` if a number ``q`` is out of range
        or ``method`` is unknown.

    >>> dn.percentile(dn.tensor([4.0, 1.0, 3.0, 2.0, 5.0]), 25).item()
    2.0
    """
    ...


@forwards(_core.nanquantile)
def nanquantile(
    tensor: TensorLike,
    q: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    method: Literal["linear", "lower", "higher", "nearest", "midpoint"] = "linear",
) -> Tensor:
    """The quantiles of the elements that are not NaN; NaN where there is none. See ``quantile``.

    Shapes: the axes of ``q``, then those of the tensor; ``axis`` is removed, or with ``keep_axis``
        has size 1. Without an axis all axes are. Names are kept.
    Dtypes: real; unchanged, but with "linear" and "midpoint" integers become f32. ``q`` is
        real.
    Grad: to the elements beside the position of the quantile; to ``q`` with "linear".
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` if a number ``q`` is out of range
        or ``method`` is unknown.

    >>> dn.nanquantile(dn.tensor([4.0, float("nan"), 1.0, 2.0]), 0.5).item()
    2.0
    """
    ...


@forwards(_core.nanpercentile)
def nanpercentile(
    tensor: TensorLike,
    q: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    method: Literal["linear", "lower", "higher", "nearest", "midpoint"] = "linear",
) -> Tensor:
    """The percentiles of the elements that are not NaN; NaN where there is none.

    See ``quantile``.

    Shapes: the axes of ``q``, then those of the tensor; ``axis`` is removed, or with ``keep_axis``
        has size 1. Without an axis all axes are. Names are kept.
    Dtypes: real; unchanged, but with "linear" and "midpoint" integers become f32. ``q`` is
        real.
    Grad: to the elements beside the position of the quantile; to ``q`` with "linear".
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` if a number ``q`` is out of range
        or ``method`` is unknown.

    >>> dn.nanpercentile(dn.tensor([4.0, float("nan"), 1.0, 2.0]), 50).item()
    2.0
    """
    ...


@forwards(_core.average)
def average(
    tensor: TensorLike,
    axes: Axes | None = None,
    weights: TensorLike | None = None,
    *,
    keep_axes: bool = False,
) -> Tensor:
    """The mean, or with weights ``weighted_mean``.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names. The weights have the shape of the tensor, or one axis for each of
        ``axes``.
    Dtypes: any; promoted, integers to f32.
    Grad: through the definition, to both.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is
        no element to reduce or the weights do not fit.

    >>> dn.average(dn.tensor([1.0, 2.0]), weights=dn.tensor([3, 1])).item()
    1.25
    """
    ...
