"""Functions that fold elements over axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, DTypeLike, TensorLike

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "covariance",
    "cumulative_max",
    "cumulative_min",
    "cumulative_product",
    "cumulative_sum",
    "diff",
    "logsumexp",
    "mean",
    "median",
    "mode",
    "product",
    "reduce_max",
    "reduce_min",
    "standard_deviation",
    "sum",
    "variance",
    "weighted_mean",
]


def sum(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """Add up the elements.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing. Other axes keep their names.
    Dtypes: any; integers up to 32 bits give s32 or u32, 64-bit ones s64, and wrap.
    Grad: ``g`` to every element.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.sum(dn.tensor([[1, 2], [3, 4]]), axes=[1]).to_list()
    [3, 7]
    """
    if unknown:
        refuse_options("sum", unknown)
    return _core.sum(tensor, axes, keep_axes)


def product(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """Multiply the elements.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing. Other axes keep their names.
    Dtypes: any; integers up to 32 bits give s32 or u32, 64-bit ones s64, and wrap.
    Grad: ``g`` times the product of the other elements, exact also where elements are 0.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.product(dn.tensor([[1, 2], [3, 4]]), axes=[1]).to_list()
    [2, 12]
    """
    if unknown:
        refuse_options("product", unknown)
    return _core.product(tensor, axes, keep_axes)


def mean(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """The sum divided by the number of elements.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing. Other axes keep their names.
    Dtypes: any; integers give f32. Elements add up in f64 or c128, floats of 8 and 16 bits but bf16
        in f32: neither do integers wrap nor sums overflow.
    Grad: ``g / n`` to every element.
    Raises: ``AxisError`` if an axis is out of range or given twice,
        ``ShapeError`` if there is no element to reduce.

    >>> float(dn.mean(dn.tensor([1, 2, 3, 4])))
    2.5
    """
    if unknown:
        refuse_options("mean", unknown)
    return _core.mean(tensor, axes, keep_axes)


def all(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """Whether no element is zero. NaN is not zero.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing, and give each element's truth value. Other axes keep their names.
    Dtypes: any; bool.
    Grad: none flows.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.all(dn.tensor([[1, 2], [3, 0]]), axes=[1]).to_list()
    [True, False]
    """
    if unknown:
        refuse_options("all", unknown)
    return _core.all(tensor, axes, keep_axes)


def any(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """Whether an element is not zero. NaN is not zero.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing, and give each element's truth value. Other axes keep their names.
    Dtypes: any; bool.
    Grad: none flows.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.any(dn.tensor([[0, 2], [0, 0]]), axes=[1]).to_list()
    [True, False]
    """
    if unknown:
        refuse_options("any", unknown)
    return _core.any(tensor, axes, keep_axes)


def reduce_max(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """The greatest element; NaN if any is.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing. Other axes keep their names.
    Dtypes: real; kept.
    Grad: ``g`` shared equally by all elements that are the greatest.
    Raises: ``AxisError`` if an axis is out of range or given twice,
        ``ShapeError`` if there is no element to reduce,
        ``DTypeError`` for complex elements.

    >>> dn.reduce_max(dn.tensor([[1, 5], [7, 3]]), axes=[1]).to_list()
    [5, 7]
    """
    if unknown:
        refuse_options("reduce_max", unknown)
    return _core.reduce_max(tensor, axes, keep_axes)


def reduce_min(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False, **unknown: Never
) -> Tensor:
    """The least element; NaN if any is.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing. Other axes keep their names.
    Dtypes: real; kept.
    Grad: ``g`` shared equally by all elements that are the least.
    Raises: ``AxisError`` if an axis is out of range or given twice,
        ``ShapeError`` if there is no element to reduce,
        ``DTypeError`` for complex elements.

    >>> dn.reduce_min(dn.tensor([[1, 5], [7, 3]]), axes=[1]).to_list()
    [1, 3]
    """
    if unknown:
        refuse_options("reduce_min", unknown)
    return _core.reduce_min(tensor, axes, keep_axes)


def cumulative_sum(
    tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False, **unknown: Never
) -> Tensor:
    """The sum of the elements up to each place of an axis: the first one if none is
    given, where NumPy flattens.

    With ``reverse``, of those from each place on.

    Shapes: kept, with axis names.
    Dtypes: any; kept, integers wrap.
    Grad: at each place the sum of ``g`` at those that it is added to.
    Raises: ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_sum(dn.tensor([1, 2, 3])).to_list()
    [1, 3, 6]
    """
    if unknown:
        refuse_options("cumulative_sum", unknown)
    return _core.cumulative_sum(tensor, axis, reverse)


def cumulative_product(
    tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False, **unknown: Never
) -> Tensor:
    """The product of the elements up to each place of an axis: the first one if none is
    given, where NumPy flattens.

    With ``reverse``, of those from each place on.

    Shapes: kept, with axis names.
    Dtypes: any; kept, integers wrap.
    Grad: ``g`` times the other factors, exact also where elements are 0.
    Raises: ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_product(dn.tensor([1, 2, 3])).to_list()
    [1, 2, 6]
    """
    if unknown:
        refuse_options("cumulative_product", unknown)
    return _core.cumulative_product(tensor, axis, reverse)


def cumulative_max(
    tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False, **unknown: Never
) -> Tensor:
    """The greatest of the elements up to each place of an axis: the first one if none is
    given, where NumPy flattens.

    With ``reverse``, of those from each place on. A NaN stays the greatest.

    Shapes: kept, with axis names.
    Dtypes: integers and floats; kept.
    Grad: ``g`` to the element that each place shows; ties share it by halves.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_max(dn.tensor([1, 3, 2])).to_list()
    [1, 3, 3]
    """
    if unknown:
        refuse_options("cumulative_max", unknown)
    return _core.cumulative_max(tensor, axis, reverse)


def cumulative_min(
    tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False, **unknown: Never
) -> Tensor:
    """The least of the elements up to each place of an axis: the first one if none is
    given, where NumPy flattens.

    With ``reverse``, of those from each place on. A NaN stays the least.

    Shapes: kept, with axis names.
    Dtypes: integers and floats; kept.
    Grad: ``g`` to the element that each place shows; ties share it by halves.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_min(dn.tensor([3, 1, 2])).to_list()
    [3, 1, 1]
    """
    if unknown:
        refuse_options("cumulative_min", unknown)
    return _core.cumulative_min(tensor, axis, reverse)


def argmax(
    tensor: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike | None = None,
    **unknown: Never,
) -> Tensor:
    """The index of the greatest element along an axis; without one, in row-major order over all
    axes.

    Of several equal elements, ``tie_break`` names the first (``"low"``) or the last (``"high"``). A
    NaN counts as the greatest.

    Shapes: the axis goes, or keeps with size 1; without an axis the result is a scalar, but a
        vectorized tensor keeps its inner axes with size 1. Other axes keep their names.
    Dtypes: real; the result is of ``dtype``, without one s32, or s64 where the axis needs it.
    Grad: none flows.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` for another ``tie_break`` and for a
        ``dtype`` that does not hold the last index.

    >>> dn.argmax(dn.tensor([[1, 5, 5], [7, 3, 3]]), axis=1).to_list()
    [1, 0]
    """
    if unknown:
        refuse_options("argmax", unknown)
    return _core.argmax(tensor, axis, keep_axis, tie_break, dtype)


def argmin(
    tensor: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike | None = None,
    **unknown: Never,
) -> Tensor:
    """The index of the least element along an axis; without one, in row-major order over all axes.

    Of several equal elements, ``tie_break`` names the first (``"low"``) or the last (``"high"``). A
    NaN counts as the least.

    Shapes: the axis goes, or keeps with size 1; without an axis the result is a scalar, but a
        vectorized tensor keeps its inner axes with size 1. Other axes keep their names.
    Dtypes: real; the result is of ``dtype``, without one s32, or s64 where the axis needs it.
    Grad: none flows.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` for another ``tie_break`` and for a
        ``dtype`` that does not hold the last index.

    >>> dn.argmin(dn.tensor([[1, 5, 5], [7, 3, 3]]), axis=1).to_list()
    [0, 1]
    """
    if unknown:
        refuse_options("argmin", unknown)
    return _core.argmin(tensor, axis, keep_axis, tie_break, dtype)


def variance(
    tensor: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    ddof: int = 0,
    **unknown: Never,
) -> Tensor:
    """The mean of the squared distances from the mean.

    The squares are divided by the number of elements less ``ddof``.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. Other axes keep their
        names.
    Dtypes: any; integers give f32.
    Grad: through the definition.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> float(dn.variance(dn.tensor([1, 3, 1, 3])))
    1.0
    """
    if unknown:
        refuse_options("variance", unknown)
    return _core.variance(tensor, axes, keep_axes, ddof)


def standard_deviation(
    tensor: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    ddof: int = 0,
    **unknown: Never,
) -> Tensor:
    """The square root of the variance.

    The squares are divided by the number of elements less ``ddof``.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. Other axes keep their
        names.
    Dtypes: any; integers give f32.
    Grad: through the definition.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> float(dn.standard_deviation(dn.tensor([1, 3, 1, 3])))
    1.0
    """
    if unknown:
        refuse_options("standard_deviation", unknown)
    return _core.standard_deviation(tensor, axes, keep_axes, ddof)


def covariance(
    tensor: TensorLike, mean: TensorLike | None = None, *, ddof: int = 0, **unknown: Never
) -> Tensor:
    """How columns vary together, where rows are observations: ``conj(x).T @ x / (n - ddof)``, ``x``
    less its mean. In NumPy rows are the variables, and ``ddof`` is 1.

    Shapes: ``(..., n, d)`` gives ``(..., d, d)``, without names. A mean may be given, without the
        axis of the rows; it broadcasts.
    Dtypes: any; integers give f32.
    Grad: through the definition.
    Raises: ``ShapeError`` for a rank below 2, and for a mean that is a scalar or does not
        broadcast, ``OptionError`` for a negative ``ddof``.

    >>> dn.covariance(dn.tensor([[1.0, 2.0], [3.0, 6.0]])).to_list()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    if unknown:
        refuse_options("covariance", unknown)
    return _core.covariance(tensor, mean, ddof)


def weighted_mean(
    tensor: TensorLike,
    weights: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    **unknown: Never,
) -> Tensor:
    """The sum of the elements times their weights, divided by the sum of the weights.

    Shapes: the weights have the tensor's shape, or one axis for each of ``axes``. The given axes,
        or all, go; ``keep_axes`` keeps them with size 1.
    Dtypes: any; merged, and f32 for integers; a plain number is weak.
    Grad: through the definition, to both.
    Raises: ``ShapeError`` if the weights do not fit, ``AxisError`` if an axis is out of range or
        given twice.

    >>> float(dn.weighted_mean(dn.tensor([1.0, 2.0]), dn.tensor([3, 1])))
    1.25
    """
    if unknown:
        refuse_options("weighted_mean", unknown)
    return _core.weighted_mean(tensor, weights, axes, keep_axes)


def logsumexp(
    tensor: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    exp_scaling_factor: TensorLike | None = None,
    **unknown: Never,
) -> Tensor:
    """``log(sum(exp(x)))`` without overflow; with a factor, ``log(sum(factor * exp(x)))``.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. Other axes keep their
        names.
    Dtypes: any; integers give f32.
    Grad: ``g`` times the softmax.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> float(dn.logsumexp(dn.tensor([1000.0])))
    1000.0
    """
    if unknown:
        refuse_options("logsumexp", unknown)
    return _core.logsumexp(tensor, axes, keep_axes, exp_scaling_factor)


def diff(tensor: TensorLike, order: int = 1, axis: Axis = -1, **unknown: Never) -> Tensor:
    """The differences of neighbours: each element less the one before it, ``order`` times over.

    Shapes: the axis loses ``order`` elements and keeps its name, like the others.
    Dtypes: any; kept, and unsigned differences wrap.
    Grad: through the definition.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        for an ``order`` that is negative or above the axis's size.

    >>> dn.diff(dn.tensor([1, 4, 9, 16])).to_list()
    [3, 5, 7]
    """
    if unknown:
        refuse_options("diff", unknown)
    return _core.diff(tensor, order, axis)


def median(
    tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False, **unknown: Never
) -> Tensor:
    """The element in the middle along an axis; without one, of all elements.

    Of an even number of elements it is the mean of the two in the middle. NaN is above every
    number.

    Shapes: the axis goes, or stays with size 1; without an axis the result is a scalar, or has all
        axes with size 1. Other axes keep their names.
    Dtypes: real; kept for an odd number of elements, integers give f32 for an even one.
    Grad: to the elements in the middle.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.median(dn.tensor([[1, 5, 3], [9, 7, 8]]), axis=1).to_list()
    [3, 8]
    """
    if unknown:
        refuse_options("median", unknown)
    return _core.median(tensor, axis, keep_axis)


def mode(
    tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False, **unknown: Never
) -> Tensor:
    """The element that is there most often along an axis; without one, of all elements.

    Of several it is the least. NaN equals nothing, so that each NaN is there once.

    Shapes: the axis goes, or stays with size 1; without an axis the result is a scalar, or has all
        axes with size 1, one axis where the operand is a scalar. Other axes keep their names.
    Dtypes: real; kept.
    Grad: to one of the elements that are the result.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.mode(dn.tensor([[1, 5, 5], [9, 7, 8]]), axis=1).to_list()
    [5, 7]
    """
    if unknown:
        refuse_options("mode", unknown)
    return _core.mode(tensor, axis, keep_axis)
