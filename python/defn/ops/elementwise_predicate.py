"""Bitwise functions, comparisons and other element-wise predicates.

Two operands broadcast: sizes are equal or 1, aligned at the last axis, and axis names merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "count_leading_zeros",
    "equal",
    "greater",
    "greater_equal",
    "is_infinity",
    "is_nan",
    "isclose",
    "isfinite",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "population_count",
    "right_shift",
    "signbit",
]


@quick
@forwards(_core.bitwise_not)
def bitwise_not(tensor: TensorLike) -> Tensor:
    """Invert every bit.

    Shapes: unchanged; names are kept.
    Dtypes: integers and bools; unchanged.
    Grad: zero.
    Raises: ``DTypeError`` for a float or a complex operand.

    >>> dn.bitwise_not(dn.tensor([0, 5])).to_list()
    [-1, -6]
    """
    ...


@quick
@forwards(_core.population_count)
def population_count(tensor: TensorLike) -> Tensor:
    """The number of bits that are 1.

    Shapes: unchanged; names are kept.
    Dtypes: integers; unchanged.
    Grad: zero.
    Raises: ``DTypeError`` unless the operand has an integer dtype.

    >>> dn.population_count(dn.tensor([0, 5, -1])).to_list()
    [0, 2, 32]
    """
    ...


@quick
@forwards(_core.count_leading_zeros)
def count_leading_zeros(tensor: TensorLike) -> Tensor:
    """The number of 0 bits before the first 1, in the width of the dtype.

    Shapes: unchanged; names are kept.
    Dtypes: integers; unchanged.
    Grad: zero.
    Raises: ``DTypeError`` unless the operand has an integer dtype.

    >>> dn.count_leading_zeros(dn.tensor([0, 1], dtype="u8")).to_list()
    [8, 7]
    """
    ...


@quick
@forwards(_core.is_nan)
def is_nan(tensor: TensorLike) -> Tensor:
    """Whether the operand is NaN; for a complex number, whether either part is.

    Shapes: unchanged; names are kept.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: no specific errors.

    >>> dn.is_nan(dn.tensor([1.0, float("nan")])).to_list()
    [False, True]
    """
    ...


@quick
@forwards(_core.is_infinity)
def is_infinity(tensor: TensorLike) -> Tensor:
    """Whether the operand is infinite; for a complex number, whether either part is.

    Shapes: unchanged; names are kept.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: no specific errors.

    >>> dn.is_infinity(dn.tensor([1.0, float("inf")])).to_list()
    [False, True]
    """
    ...


@quick
@forwards(_core.isfinite)
def isfinite(tensor: TensorLike) -> Tensor:
    """Whether the operand is neither infinite nor NaN; a complex number, whether both parts are.

    Shapes: unchanged; names are kept.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: no specific errors.

    >>> dn.isfinite(dn.tensor([1.0, float("inf"), float("nan")])).to_list()
    [True, False, False]
    """
    ...


@quick
@forwards(_core.signbit)
def signbit(tensor: TensorLike) -> Tensor:
    """Whether the sign bit is set, also that of -0.0 and of NaN; unsigned integers have none.

    Shapes: unchanged; names are kept.
    Dtypes: real; the result is bool.
    Grad: zero.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.signbit(dn.tensor([-0.0, 0.0, -1.0])).to_list()
    [True, False, True]
    """
    ...


@quick
@forwards(_core.logical_not)
def logical_not(tensor: TensorLike) -> Tensor:
    """Whether the operand is zero.

    Shapes: unchanged; names are kept.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: no specific errors.

    >>> dn.logical_not(dn.tensor([0, 3])).to_list()
    [True, False]
    """
    ...


@quick
@forwards(_core.bitwise_and)
def bitwise_and(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The bits that are 1 in both operands.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers and bools; promoted; Python numbers are weakly typed.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for float or complex operands.

    >>> dn.bitwise_and(dn.tensor([6, 5]), 3).to_list()
    [2, 1]
    """
    ...


@quick
@forwards(_core.bitwise_or)
def bitwise_or(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The bits that are 1 in at least one operand.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers and bools; promoted; Python numbers are weakly typed.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for float or complex operands.

    >>> dn.bitwise_or(dn.tensor([6, 5]), 3).to_list()
    [7, 7]
    """
    ...


@quick
@forwards(_core.bitwise_xor)
def bitwise_xor(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The bits that differ.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers and bools; promoted; Python numbers are weakly typed.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for float or complex operands.

    >>> dn.bitwise_xor(dn.tensor([6, 5]), 3).to_list()
    [5, 6]
    """
    ...


@quick
@forwards(_core.left_shift)
def left_shift(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a * 2**b``; 0 if ``b`` is at least the width of the dtype.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers; promoted; Python numbers are weakly typed.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` unless both have integer dtypes, ``OptionError`` for a negative shift when
        run eagerly.

    >>> dn.left_shift(dn.tensor([1, 2]), 3).to_list()
    [8, 16]
    """
    ...


@quick
@forwards(_core.right_shift)
def right_shift(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a / 2**b`` rounded down: an arithmetic shift for signed results, logical for unsigned ones.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers; promoted; Python numbers are weakly typed.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` unless both have integer dtypes, ``OptionError`` for a negative shift when
        run eagerly.

    >>> dn.right_shift(dn.tensor([16, -16]), 3).to_list()
    [2, -2]
    """
    ...


@quick
@forwards(_core.equal)
def equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether the values are equal. Different dtypes are compared by value.

    Shapes: broadcast together; axis names merge.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.equal(dn.tensor([1, 2, 3]), 2).to_list()
    [False, True, False]
    """
    ...


@quick
@forwards(_core.not_equal)
def not_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether the values differ. Different dtypes are compared by value.

    Shapes: broadcast together; axis names merge.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.not_equal(dn.tensor([1, 2, 3]), 2).to_list()
    [True, False, True]
    """
    ...


@quick
@forwards(_core.greater)
def greater(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether ``a > b``. Different dtypes are compared by value.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.greater(dn.tensor([1, 2, 3]), 2).to_list()
    [False, False, True]
    """
    ...


@quick
@forwards(_core.greater_equal)
def greater_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether ``a >= b``. Different dtypes are compared by value.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.greater_equal(dn.tensor([1, 2, 3]), 2).to_list()
    [False, True, True]
    """
    ...


@quick
@forwards(_core.less)
def less(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether ``a < b``. Different dtypes are compared by value.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.less(dn.tensor([1, 2, 3]), 2).to_list()
    [True, False, False]
    """
    ...


@quick
@forwards(_core.less_equal)
def less_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether ``a <= b``. Different dtypes are compared by value.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.less_equal(dn.tensor([1, 2, 3]), 2).to_list()
    [True, True, False]
    """
    ...


@quick
@forwards(_core.logical_and)
def logical_and(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether both operands are nonzero.

    Shapes: broadcast together; axis names merge.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.logical_and(dn.tensor([0, 2, 0]), dn.tensor([0, 3, 1])).to_list()
    [False, True, False]
    """
    ...


@quick
@forwards(_core.logical_or)
def logical_or(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether at least one operand is nonzero.

    Shapes: broadcast together; axis names merge.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.logical_or(dn.tensor([0, 2, 0]), dn.tensor([0, 3, 1])).to_list()
    [False, True, True]
    """
    ...


@quick
@forwards(_core.logical_xor)
def logical_xor(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Whether exactly one operand is nonzero.

    Shapes: broadcast together; axis names merge.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.logical_xor(dn.tensor([0, 2, 0]), dn.tensor([0, 3, 1])).to_list()
    [False, False, True]
    """
    ...


@forwards(_core.isclose)
def isclose(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    equal_nan: bool = False,
    rtol: float = 1e-5,
    atol: float = 1e-8,
) -> Tensor:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``. Equal infinities are close.

    Shapes: broadcast together; axis names merge.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.isclose(dn.tensor([1.0, 2.0]), dn.tensor([1.000001, 2.1])).to_list()
    [True, False]
    """
    ...
