"""Reductions, cumulative functions and statistics over axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, DTypeLike, TensorLike

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
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
    "ptp",
    "reduce_max",
    "reduce_min",
    "standard_deviation",
    "sum",
    "trace",
    "variance",
    "weighted_mean",
]


@forwards(_core.sum)
def sum(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The sum of the elements.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. An empty
        ``axes`` reduces nothing. Other axes keep their names.
    Dtypes: any; bools become s32, integers of up to 32 bits s32 or u32, 64-bit integers s64;
        integers wrap.
    Grad: ``g`` to every element.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.sum(dn.tensor([[1, 2], [3, 4]]), axes=[1]).to_list()
    [3, 7]
    """
    ...


@forwards(_core.product)
def product(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The product of the elements.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. An empty
        ``axes`` reduces nothing. Other axes keep their names.
    Dtypes: any; bools become s32, integers of up to 32 bits s32 or u32, 64-bit integers s64;
        integers wrap.
    Grad: ``g`` times the product of the other elements; exact also where elements are 0.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.product(dn.tensor([[1, 2], [3, 4]]), axes=[1]).to_list()
    [2, 12]
    """
    ...


@forwards(_core.mean)
def mean(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The sum of the elements divided by their number.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. An empty
        ``axes`` reduces nothing. Other axes keep their names.
    Dtypes: any; integers become f32. Sums accumulate in f64 or c128, for 8-bit floats and f16 in
        f32, so integers do not wrap and sums do not overflow.
    Grad: ``g / n`` to every element.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is no
        element to reduce.

    >>> float(dn.mean(dn.tensor([1, 2, 3, 4])))
    2.5
    """
    ...


@forwards(_core.all)
def all(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """Whether all elements are nonzero. NaN is nonzero.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. With an
        empty ``axes`` the result is the truth value of each element. Other axes keep their names.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.all(dn.tensor([[1, 2], [3, 0]]), axes=[1]).to_list()
    [True, False]
    """
    ...


@forwards(_core.any)
def any(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """Whether at least one element is nonzero. NaN is nonzero.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. With an
        empty ``axes`` the result is the truth value of each element. Other axes keep their names.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.any(dn.tensor([[0, 2], [0, 0]]), axes=[1]).to_list()
    [True, False]
    """
    ...


@forwards(_core.reduce_max)
def reduce_max(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The maximum; NaN if any element is NaN.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. An empty
        ``axes`` reduces nothing. Other axes keep their names.
    Dtypes: real; unchanged.
    Grad: ``g``, divided equally among the elements that are the maximum.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is no
        element to reduce, ``DTypeError`` for complex elements.

    >>> dn.reduce_max(dn.tensor([[1, 5], [7, 3]]), axes=[1]).to_list()
    [5, 7]
    """
    ...


@forwards(_core.reduce_min)
def reduce_min(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The minimum; NaN if any element is NaN.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. An empty
        ``axes`` reduces nothing. Other axes keep their names.
    Dtypes: real; unchanged.
    Grad: ``g``, divided equally among the elements that are the minimum.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is no
        element to reduce, ``DTypeError`` for complex elements.

    >>> dn.reduce_min(dn.tensor([[1, 5], [7, 3]]), axes=[1]).to_list()
    [1, 3]
    """
    ...


@forwards(_core.cumulative_sum)
def cumulative_sum(tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False) -> Tensor:
    """The cumulative sum along an axis. The default is the first axis; NumPy flattens.

    With ``reverse`` it runs from the last element to the first.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged, but bools become s32; integers wrap.
    Grad: the cumulative sum of ``g`` in the opposite direction.
    Raises: ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_sum(dn.tensor([1, 2, 3])).to_list()
    [1, 3, 6]
    """
    ...


@forwards(_core.cumulative_product)
def cumulative_product(tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False) -> Tensor:
    """The cumulative product along an axis. The default is the first axis; NumPy flattens.

    With ``reverse`` it runs from the last element to the first.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged, but bools become s32; integers wrap.
    Grad: ``g`` times the other factors; exact also where elements are 0.
    Raises: ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_product(dn.tensor([1, 2, 3])).to_list()
    [1, 2, 6]
    """
    ...


@forwards(_core.cumulative_max)
def cumulative_max(tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False) -> Tensor:
    """The cumulative maximum along an axis. The default is the first axis; NumPy flattens.

    With ``reverse`` it runs from the last element to the first. A NaN counts as the maximum.

    Shapes: unchanged; names are kept.
    Dtypes: integers, floats and bools; unchanged.
    Grad: ``g`` at each position to the element that is the result there; each tie halves it.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_max(dn.tensor([1, 3, 2])).to_list()
    [1, 3, 3]
    """
    ...


@forwards(_core.cumulative_min)
def cumulative_min(tensor: TensorLike, axis: Axis = 0, *, reverse: bool = False) -> Tensor:
    """The cumulative minimum along an axis. The default is the first axis; NumPy flattens.

    With ``reverse`` it runs from the last element to the first. A NaN counts as the minimum.

    Shapes: unchanged; names are kept.
    Dtypes: integers, floats and bools; unchanged.
    Grad: ``g`` at each position to the element that is the result there; each tie halves it.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range.

    >>> dn.cumulative_min(dn.tensor([3, 1, 2])).to_list()
    [3, 1, 1]
    """
    ...


@forwards(_core.argmax)
def argmax(
    tensor: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The index of the maximum along an axis; without an axis, its index in row-major order.

    ``tie_break`` selects the first (``"low"``) or the last (``"high"``) of equal elements. A NaN
    counts as the maximum.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, but with ``keep_axis`` a vectorized tensor keeps its inner axes with size 1. Other
        axes keep their names.
    Dtypes: real; the result has ``dtype``, by default s32, or s64 if the axis needs it.
    Grad: zero.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` for another ``tie_break`` and for a
        ``dtype`` that cannot hold the last index.

    >>> dn.argmax(dn.tensor([[1, 5, 5], [7, 3, 3]]), axis=1).to_list()
    [1, 0]
    """
    ...


@forwards(_core.argmin)
def argmin(
    tensor: TensorLike,
    axis: Axis | None = None,
    *,
    keep_axis: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The index of the minimum along an axis; without an axis, its index in row-major order.

    ``tie_break`` selects the first (``"low"``) or the last (``"high"``) of equal elements. A NaN
    counts as the minimum.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, but with ``keep_axis`` a vectorized tensor keeps its inner axes with size 1. Other
        axes keep their names.
    Dtypes: real; the result has ``dtype``, by default s32, or s64 if the axis needs it.
    Grad: zero.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements, ``OptionError`` for another ``tie_break`` and for a
        ``dtype`` that cannot hold the last index.

    >>> dn.argmin(dn.tensor([[1, 5, 5], [7, 3, 3]]), axis=1).to_list()
    [0, 1]
    """
    ...


@forwards(_core.variance)
def variance(
    tensor: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    ddof: int = 0,
) -> Tensor:
    """The mean of the squared deviations from the mean.

    The sum of the squares is divided by the number of elements minus ``ddof``.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; integers become f32.
    Grad: through the definition.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is no
        element to reduce.

    >>> float(dn.variance(dn.tensor([1, 3, 1, 3])))
    1.0
    """
    ...


@forwards(_core.standard_deviation)
def standard_deviation(
    tensor: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    ddof: int = 0,
) -> Tensor:
    """The square root of the variance.

    The sum of the squares is divided by the number of elements minus ``ddof``.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; integers become f32.
    Grad: through the definition.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if there is no
        element to reduce.

    >>> float(dn.standard_deviation(dn.tensor([1, 3, 1, 3])))
    1.0
    """
    ...


@forwards(_core.covariance)
def covariance(tensor: TensorLike, mean: TensorLike | None = None, *, ddof: int = 0) -> Tensor:
    """The covariance of columns, with rows as observations: ``conj(x).T @ x / (n - ddof)`` for
    ``x`` minus its mean. In NumPy the rows are the variables, and ``ddof`` is 1.

    Shapes: ``(..., n, d)`` becomes ``(..., d, d)``, without names. A given mean lacks the axis of
        the rows; it broadcasts.
    Dtypes: any; integers become f32.
    Grad: through the definition.
    Raises: ``ShapeError`` for a rank below 2, and for a mean that is a scalar or does not
        broadcast, ``OptionError`` for a negative ``ddof``.

    >>> dn.covariance(dn.tensor([[1.0, 2.0], [3.0, 6.0]])).to_list()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    ...


@forwards(_core.weighted_mean)
def weighted_mean(
    tensor: TensorLike,
    weights: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
) -> Tensor:
    """The sum of the elements times their weights, divided by the sum of the weights.

    Shapes: the weights have the shape of the tensor, or one axis for each of ``axes``. The given
        axes, or all axes, are removed; ``keep_axes`` keeps them with size 1.
    Dtypes: any; promoted, integers to f32; Python numbers are weakly typed.
    Grad: through the definition, to both.
    Raises: ``ShapeError`` if the weights do not fit, ``AxisError`` if an axis is out of range or
        given twice.

    >>> float(dn.weighted_mean(dn.tensor([1.0, 2.0]), dn.tensor([3, 1])))
    1.25
    """
    ...


@forwards(_core.logsumexp)
def logsumexp(
    tensor: TensorLike,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    exp_scaling_factor: TensorLike | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` without overflow; with a factor, ``log(sum(factor * exp(x)))``.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: real; promoted with the factor, integers to f32; a Python number as the factor is weakly
        typed.
    Grad: ``g`` times the softmax; through the definition to the factor.
    Raises: ``AxisError`` if an axis is out of range or given twice or axis names differ,
        ``ShapeError`` if the factor does not broadcast to the shape of the tensor, ``DTypeError``
        for complex numbers.

    >>> float(dn.logsumexp(dn.tensor([1000.0])))
    1000.0
    """
    ...


@forwards(_core.diff)
def diff(tensor: TensorLike, order: int = 1, axis: Axis = -1) -> Tensor:
    """The differences of neighbours: each element minus the one before it, applied ``order`` times.

    Shapes: the axis loses ``order`` elements; all axes keep their names.
    Dtypes: any but bool; unchanged; unsigned differences wrap.
    Grad: through the definition.
    Raises: ``DTypeError`` for bools, ``ShapeError`` for a scalar, ``AxisError`` if the axis is out
        of range, ``OptionError`` for an ``order`` that is negative or above the size of the axis.

    >>> dn.diff(dn.tensor([1, 4, 9, 16])).to_list()
    [3, 5, 7]
    """
    ...


@forwards(_core.median)
def median(tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False) -> Tensor:
    """The median along an axis; without an axis, of all elements.

    For an even number of elements it is the mean of the two middle elements. NaN sorts above every
    number.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, or with ``keep_axis`` all axes have size 1. Other axes keep their names.
    Dtypes: real; unchanged for an odd number of elements; integers become f32 for an even number.
    Grad: ``g`` to the middle elements.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.median(dn.tensor([[1, 5, 3], [9, 7, 8]]), axis=1).to_list()
    [3, 8]
    """
    ...


@forwards(_core.mode)
def mode(tensor: TensorLike, axis: Axis | None = None, *, keep_axis: bool = False) -> Tensor:
    """The most frequent element along an axis; without an axis, of all elements.

    Of equally frequent elements it is the least. NaN equals nothing, so each NaN counts once.

    Shapes: the axis is removed, or with ``keep_axis`` has size 1. Without an axis the result is a
        scalar, or with ``keep_axis`` all axes have size 1; a scalar operand then gets one axis.
        Other axes keep their names.
    Dtypes: real; unchanged.
    Grad: ``g`` to one of the elements equal to the result.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if there is no element,
        ``DTypeError`` for complex elements.

    >>> dn.mode(dn.tensor([[1, 5, 5], [9, 7, 8]]), axis=1).to_list()
    [5, 7]
    """
    ...


@forwards(_core.count_nonzero)
def count_nonzero(
    tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False
) -> Tensor:
    """The number of elements that are not 0. NaN is not 0.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: any; the result is s32.
    Grad: zero.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.count_nonzero(dn.tensor([[1, 0], [3, 4]]), axes=[1]).to_list()
    [1, 2]
    """
    ...


@forwards(_core.ptp)
def ptp(tensor: TensorLike, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The greatest element minus the least; NaN if any element is NaN.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. Other
        axes keep their names.
    Dtypes: integers and floats; unchanged. Integers wrap.
    Grad: ``g``, in equal shares to the elements that are the greatest, and ``-g`` to the least.
    Raises: ``DTypeError`` for a bool or complex operand, ``ShapeError`` if there is no element,
        ``AxisError`` if an axis is out of range or given twice.

    >>> dn.ptp(dn.tensor([3, 8, 5])).item()
    5
    """
    ...


@forwards(_core.trace)
def trace(tensor: TensorLike, *, offset: int = 0) -> Tensor:
    """The sum of a diagonal of the last two axes; 0 outside the matrix.

    Shapes: the last two axes are removed; other axes keep their names.
    Dtypes: any; bools become s32, integers of up to 32 bits s32 or u32, 64-bit integers stay;
        integers wrap.
    Grad: ``g`` to the elements of the diagonal, zero to the others.
    Raises: ``ShapeError`` if there are fewer than two axes.

    >>> dn.trace(dn.tensor([[1, 2], [3, 4]])).item()
    5
    """
    ...
