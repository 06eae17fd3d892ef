"""Functions of several tensors that compute element by element.

Operands broadcast: sizes are equal or 1, aligned at the last axis, and axis names merge. A plain
number is weak: it takes the element type of the tensor beside it where it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._core import quick
from defn._names import REQUIRED, refuse_one_operand, refuse_options

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "add",
    "all_close",
    "atan2",
    "clip",
    "complex",
    "divide",
    "max",
    "min",
    "multiply",
    "pow",
    "quotient",
    "remainder",
    "select",
    "subtract",
]


@quick
def add(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """``a + b``; integers wrap.

    Shapes: broadcast together; axis names merge.
    Dtypes: merged; a plain number is weak.
    Grad: ``g`` to both.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.add(dn.tensor([1, 2]), 10).to_list()
    [11, 12]
    """
    if unknown:
        refuse_options("add", unknown)
    return _core.add(a, b)


@quick
def subtract(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """``a - b``; integers wrap, unsigned ones too.

    Shapes: broadcast together; axis names merge.
    Dtypes: merged; a plain number is weak.
    Grad: ``g`` and ``-g``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.subtract(dn.tensor([1, 2]), 10).to_list()
    [-9, -8]
    """
    if unknown:
        refuse_options("subtract", unknown)
    return _core.subtract(a, b)


@quick
def multiply(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """``a * b``; integers wrap.

    Shapes: broadcast together; axis names merge.
    Dtypes: merged; a plain number is weak.
    Grad: ``g * b`` and ``g * a``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.multiply(dn.tensor([1, 2]), 10).to_list()
    [10, 20]
    """
    if unknown:
        refuse_options("multiply", unknown)
    return _core.multiply(a, b)


@quick
def divide(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """``a / b``, always a float: a division by zero gives an infinity or NaN.

    Shapes: broadcast together; axis names merge.
    Dtypes: merged, and f32 for integers; a plain number is weak.
    Grad: ``g / b`` and ``-g * y / b``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.divide(dn.tensor([1, 2]), 4).to_list()
    [0.25, 0.5]
    """
    if unknown:
        refuse_options("divide", unknown)
    return _core.divide(a, b)


@quick
def pow(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """``a`` to the power of ``b``; exact modulo 2**bits for integers, and 1 for 0**0.

    Shapes: broadcast together; axis names merge.
    Dtypes: merged; a plain number is weak.
    Grad: ``g * b * a**(b - 1)`` and ``g * log(a) * y``, with 0 for the logarithm where ``a`` is 0.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``OptionError`` for a negative exponent of an integer when run eagerly.

    >>> dn.pow(dn.tensor([2, 3]), 3).to_list()
    [8, 27]
    """
    if unknown:
        refuse_options("pow", unknown)
    return _core.pow(a, b)


@quick
def atan2(y: TensorLike, x: TensorLike, /, **unknown: Never) -> Tensor:
    """The angle of the point whose coordinates are ``y`` and ``x``.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; merged, and f32 for integers; a plain number is weak.
    Grad: ``g * x / (x**2 + y**2)`` and ``-g * y / (x**2 + y**2)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> float(dn.atan2(0.0, 1.0))
    0.0
    """
    if unknown:
        refuse_options("atan2", unknown)
    return _core.atan2(y, x)


@quick
def quotient(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """The integer quotient, truncated towards zero; ``//`` floors instead.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers; merged; a plain number is weak.
    Grad: refused: use ``floor(divide(a, b))`` or ``stop_grad``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` unless both are integers, ``DivisionError`` for a divisor of 0 when run
        eagerly.

    >>> dn.quotient(dn.tensor([7, -7]), 2).to_list()
    [3, -3]
    """
    if unknown:
        refuse_options("quotient", unknown)
    return _core.quotient(a, b)


@quick
def remainder(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """What truncated division leaves; it has the sign of ``a``, where ``%`` takes that of ``b``.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; merged; a plain number is weak.
    Grad: ``g`` and ``-g * floor(a / b)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands, ``DivisionError`` for an integer divisor of 0 when run
        eagerly.

    >>> dn.remainder(dn.tensor([7, -7]), 4).to_list()
    [3, -3]
    """
    if unknown:
        refuse_options("remainder", unknown)
    return _core.remainder(a, b)


@quick
def max(a: TensorLike, b: TensorLike = REQUIRED, /, **unknown: Never) -> Tensor:
    """The greater of two tensors, element by element; NaN if either is. ``dn.max(x, 0)`` is this,
    too: the greatest along an axis is ``x.max(0)``, or ``dn.reduce_max(x, 0)``. ``maximum`` is the
    same function.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; merged; a plain number is weak.
    Grad: ``g`` to the greater; halves where they are equal.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.max(dn.tensor([1, 5]), 3).to_list()
    [3, 5]
    """
    if b is REQUIRED:
        refuse_one_operand("max")
    if unknown:
        refuse_options("max", unknown)
    return _core.max(a, b)


@quick
def min(a: TensorLike, b: TensorLike = REQUIRED, /, **unknown: Never) -> Tensor:
    """The lesser of two tensors, element by element; NaN if either is. ``dn.min(x, 0)`` is this,
    too: the least along an axis is ``x.min(0)``, or ``dn.reduce_min(x, 0)``. ``minimum`` is the
    same function.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; merged; a plain number is weak.
    Grad: ``g`` to the lesser; halves where they are equal.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.min(dn.tensor([1, 5]), 3).to_list()
    [1, 3]
    """
    if b is REQUIRED:
        refuse_one_operand("min")
    if unknown:
        refuse_options("min", unknown)
    return _core.min(a, b)


@quick
def complex(re: TensorLike, im: TensorLike, /, **unknown: Never) -> Tensor:
    """The complex number ``re + im * 1j``.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; c64, or c128 where an operand is f64.
    Grad: ``real(g)`` and ``real(-1j * g)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.complex(1.0, 2.0).item()
    (1+2j)
    """
    if unknown:
        refuse_options("complex", unknown)
    return _core.complex(re, im)


def select(
    pred: TensorLike, on_true: TensorLike, on_false: TensorLike, /, **unknown: Never
) -> Tensor:
    """``on_true`` where the predicate is not zero, else ``on_false``.

    Shapes: the predicate and both branches broadcast together, and their names merge.
    Dtypes: any predicate; both branches merged; a plain number is weak.
    Grad: ``g`` masked by the predicate to one branch, by its complement to the other; none to the
        predicate. The branch that is not taken still takes part: a NaN in its derivative stays.
    Raises: ``ShapeError`` if the three do not broadcast together or their names differ.

    >>> dn.select(dn.tensor([1, 0]), dn.tensor([1, 2]), dn.tensor([10, 20])).to_list()
    [1, 20]
    """
    if unknown:
        refuse_options("select", unknown)
    return _core.select(pred, on_true, on_false)


def clip(tensor: TensorLike, lo: TensorLike, hi: TensorLike, **unknown: Never) -> Tensor:
    """Move elements into the bounds ``lo`` and ``hi``; NaN stays NaN, and ``lo > hi`` gives ``hi``.

    Shapes: kept, with axis names; the bounds are scalars.
    Dtypes: real; all three merged; a plain number is weak, and as a bound of integers beyond their
        dtype it is the dtype's own.
    Grad: ``g`` inside the bounds and on them; to a bound, the sum of ``g`` where it holds.
    Raises: ``ShapeError`` if a bound is no scalar, ``DTypeError`` for complex operands.

    >>> dn.clip(dn.tensor([1, 5, 9]), 2, 6).to_list()
    [2, 5, 6]
    """
    if unknown:
        refuse_options("clip", unknown)
    return _core.clip(tensor, lo, hi)


def all_close(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    equal_nan: bool = False,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    **unknown: Never,
) -> Tensor:
    """Whether every ``abs(a - b) <= atol + rtol * abs(b)``. Equal infinities are close.

    Shapes: broadcast together; the result is a scalar.
    Dtypes: any; bool.
    Grad: none flows.
    Raises: ``ShapeError`` if the shapes do not broadcast.

    >>> int(dn.all_close(dn.tensor([1.0, 2.0]), dn.tensor([1.0, 2.000001])))
    1
    """
    if unknown:
        refuse_options("all_close", unknown)
    return _core.all_close(a, b, equal_nan, rtol, atol)
