"""Element-wise functions of several tensors.

Operands broadcast: sizes are equal or 1, aligned at the last axis, and axis names merge. A Python
number is weakly typed: it takes the dtype of the tensor beside it where possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._names import REQUIRED
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "add",
    "all_close",
    "atan2",
    "clip",
    "complex",
    "copysign",
    "divide",
    "divmod",
    "heaviside",
    "hypot",
    "logaddexp",
    "max",
    "min",
    "multiply",
    "nextafter",
    "pow",
    "quotient",
    "remainder",
    "select",
    "subtract",
]


@quick
@forwards(_core.add)
def add(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a + b``; integers wrap.

    Shapes: broadcast together; axis names merge.
    Dtypes: promoted; Python numbers are weakly typed.
    Grad: ``g`` to both.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.add(dn.tensor([1, 2]), 10).to_list()
    [11, 12]
    """
    ...


@quick
@forwards(_core.subtract)
def subtract(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a - b``; integers wrap, also unsigned ones.

    Shapes: broadcast together; axis names merge.
    Dtypes: promoted, but not to bool; Python numbers are weakly typed.
    Grad: ``g`` and ``-g``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` if both operands are bools.

    >>> dn.subtract(dn.tensor([1, 2]), 10).to_list()
    [-9, -8]
    """
    ...


@quick
@forwards(_core.multiply)
def multiply(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a * b``; integers wrap.

    Shapes: broadcast together; axis names merge.
    Dtypes: promoted; Python numbers are weakly typed.
    Grad: ``g * b`` and ``g * a``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.multiply(dn.tensor([1, 2]), 10).to_list()
    [10, 20]
    """
    ...


@quick
@forwards(_core.divide)
def divide(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a / b``, always a float. Division by zero returns an infinity or NaN.

    Shapes: broadcast together; axis names merge.
    Dtypes: promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g / b`` and ``-g * y / b``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ.

    >>> dn.divide(dn.tensor([1, 2]), 4).to_list()
    [0.25, 0.5]
    """
    ...


@quick
@forwards(_core.pow)
def pow(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``a`` to the power of ``b``. Integers are exact modulo 2**bits; 0**0 is 1.

    Shapes: broadcast together; axis names merge.
    Dtypes: promoted, but not to bool; Python numbers are weakly typed.
    Grad: ``g * b * a**(b - 1)`` and ``g * log(a) * y``; ``log(a)`` counts as 0 where ``a`` is 0.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` if both operands are bools, ``OptionError`` for a negative exponent of an
        integer when run eagerly.

    >>> dn.pow(dn.tensor([2, 3]), 3).to_list()
    [8, 27]
    """
    ...


@quick
@forwards(_core.atan2)
def atan2(y: TensorLike, x: TensorLike, /) -> Tensor:
    """The angle of the point with the coordinates ``x`` and ``y``.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g * x / (x**2 + y**2)`` and ``-g * y / (x**2 + y**2)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> float(dn.atan2(0.0, 1.0))
    0.0
    """
    ...


@quick
@forwards(_core.quotient)
def quotient(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The integer quotient, truncated towards zero; ``//`` floors instead.

    Shapes: broadcast together; axis names merge.
    Dtypes: integers; promoted; Python numbers are weakly typed.
    Grad: not defined; it raises. Use ``divide``, or cut the gradient with ``stop_grad`` or
        ``custom_grad``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` unless both are integers, ``DivisionError`` for a divisor of 0 when run
        eagerly.

    >>> dn.quotient(dn.tensor([7, -7]), 2).to_list()
    [3, -3]
    """
    ...


@quick
@forwards(_core.remainder)
def remainder(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The remainder of truncated division. Its sign is that of ``a``; with ``%`` it is that of
    ``b``. ``fmod`` is the same function.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, but not to bool; Python numbers are weakly typed.
    Grad: ``g`` and ``-g * floor(a / b)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands and if both operands are bools, ``DivisionError`` for an
        integer divisor of 0 when run eagerly.

    >>> dn.remainder(dn.tensor([7, -7]), 4).to_list()
    [3, -3]
    """
    ...


@quick
@forwards(_core.max)
def max(a: TensorLike, b: TensorLike = REQUIRED, /) -> Tensor:
    """The element-wise maximum of two tensors; NaN if either element is NaN. ``dn.max(x, 0)``
    compares with 0; the maximum along axis 0 is ``x.max(0)`` or ``dn.reduce_max(x, 0)``.
    ``maximum`` is the same function.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted; Python numbers are weakly typed.
    Grad: ``g`` to the greater operand; half of ``g`` to each where they are equal.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.max(dn.tensor([1, 5]), 3).to_list()
    [3, 5]
    """
    ...


@quick
@forwards(_core.min)
def min(a: TensorLike, b: TensorLike = REQUIRED, /) -> Tensor:
    """The element-wise minimum of two tensors; NaN if either element is NaN. ``dn.min(x, 0)``
    compares with 0; the minimum along axis 0 is ``x.min(0)`` or ``dn.reduce_min(x, 0)``.
    ``minimum`` is the same function.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted; Python numbers are weakly typed.
    Grad: ``g`` to the lesser operand; half of ``g`` to each where they are equal.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.min(dn.tensor([1, 5]), 3).to_list()
    [1, 3]
    """
    ...


@quick
@forwards(_core.complex)
def complex(re: TensorLike, im: TensorLike, /) -> Tensor:
    """The complex number ``re + im * 1j``.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; the result is c64, or c128 if an operand is f64.
    Grad: ``real(g)`` and ``real(1j * g)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.complex(1.0, 2.0).item()
    (1+2j)
    """
    ...


@forwards(_core.select)
def select(pred: TensorLike, on_true: TensorLike, on_false: TensorLike, /) -> Tensor:
    """``on_true`` where the predicate is nonzero, else ``on_false``.

    Shapes: the predicate and both branches broadcast together, and their names merge.
    Dtypes: any for the predicate; both branches are promoted; Python numbers are weakly typed.
    Grad: ``g`` masked by the predicate to ``on_true``, by its complement to ``on_false``; zero to
        the predicate. A NaN in the derivative of the branch not taken still propagates.
    Raises: ``ShapeError`` if the three do not broadcast together, ``AxisError`` if axis names
        differ.

    >>> dn.select(dn.tensor([1, 0]), dn.tensor([1, 2]), dn.tensor([10, 20])).to_list()
    [1, 20]
    """
    ...


@forwards(_core.clip)
def clip(tensor: TensorLike, lo: TensorLike, hi: TensorLike) -> Tensor:
    """Limit elements to the range from ``lo`` to ``hi``. NaN stays NaN; if ``lo > hi`` the result
    is ``hi``.

    Shapes: unchanged; names are kept. The bounds are scalars.
    Dtypes: real; all three are promoted; Python numbers are weakly typed. A Python bound outside
        the range of an integer dtype becomes the limit of that dtype.
    Grad: ``g`` within the bounds, inclusive; to a bound, the sum of ``g`` over the elements beyond
        it.
    Raises: ``ShapeError`` if a bound is not a scalar, ``DTypeError`` for complex operands.

    >>> dn.clip(dn.tensor([1, 5, 9]), 2, 6).to_list()
    [2, 5, 6]
    """
    ...


@quick
@forwards(_core.copysign)
def copysign(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The magnitude of ``a`` with the sign bit of ``b``, also that of -0.0 and of NaN.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g``, or ``-g`` where the sign of ``a`` changes; zero to ``b``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.copysign(dn.tensor([1.5, -2.0]), -0.0).to_list()
    [-1.5, -2.0]
    """
    ...


@quick
@forwards(_core.hypot)
def hypot(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``sqrt(a**2 + b**2)`` without overflow in between; infinite if an operand is, even beside
    NaN.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g * a / y`` and ``g * b / y``; zero where both are 0, and where one is infinite.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.hypot(dn.tensor([3.0, 3e200], dtype="f64"), 4.0).to_list()
    [5.0, 3e+200]
    """
    ...


@quick
@forwards(_core.logaddexp)
def logaddexp(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``log(exp(a) + exp(b))`` without overflow in between.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g`` times the softmax of both.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.logaddexp(dn.tensor([1000.0, float("-inf")]), float("-inf")).to_list()
    [1000.0, -inf]
    """
    ...


@quick
@forwards(_core.heaviside)
def heaviside(a: TensorLike, b: TensorLike, /) -> Tensor:
    """0 where ``a`` is negative, 1 where it is positive, ``b`` where it is 0, NaN where it is NaN.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: zero to ``a``; ``g`` to ``b`` where ``a`` is 0.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> dn.heaviside(dn.tensor([-2.0, 0.0, 3.0]), 0.5).to_list()
    [0.0, 0.5, 1.0]
    """
    ...


@forwards(_core.divmod)
def divmod(a: TensorLike, b: TensorLike, /) -> tuple[Tensor, Tensor]:
    """``a // b`` and ``a % b``: division that rounds down, and its remainder.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, but not to bool; Python numbers are weakly typed.
    Grad: those of ``//``, which is zero, and of ``%``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands and if both operands are bools, ``DivisionError`` for an
        integer divisor of 0 when run eagerly.

    >>> quotient, remainder = dn.divmod(dn.tensor([7, -7]), 4)
    >>> quotient.to_list(), remainder.to_list()
    ([1, -2], [3, 1])
    """
    ...


@quick
@forwards(_core.nextafter)
def nextafter(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The next float from ``a`` towards ``b``; ``b`` where both are equal, NaN where one is NaN.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> float(dn.nextafter(dn.tensor(1.0), 2.0))
    1.0000001192092896
    """
    ...


@forwards(_core.all_close)
def all_close(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    equal_nan: bool = False,
    rtol: float = 1e-5,
    atol: float = 1e-8,
) -> Tensor:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)`` for all elements. Equal infinities are close.

    Shapes: broadcast together; the result is a scalar.
    Dtypes: any; the result is bool.
    Grad: zero.
    Raises: ``ShapeError`` if the shapes do not broadcast.

    >>> int(dn.all_close(dn.tensor([1.0, 2.0]), dn.tensor([1.0, 2.000001])))
    1
    """
    ...
