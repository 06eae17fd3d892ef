"""Element-wise functions of one tensor; they keep its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "log2",
    "log10",
    "negate",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


@quick
@forwards(_core.negate)
def negate(tensor: TensorLike) -> Tensor:
    """Negate the elements; unsigned integers wrap.

    Shapes: unchanged; names are kept.
    Dtypes: any but bool; unchanged.
    Grad: ``-g``.
    Raises: ``DTypeError`` for bools.

    >>> dn.negate(dn.tensor([1, -2])).to_list()
    [-1, 2]
    """
    ...


@quick
@forwards(_core.abs)
def abs(tensor: TensorLike) -> Tensor:
    """The absolute value; the most negative integer wraps to itself.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged, but complex numbers become floats of half the width.
    Grad: ``g`` where the operand is at least 0, else ``-g``; for a complex ``z``,
        ``real(g) * conj(z) / abs(z)``.
    Raises: no specific errors.

    >>> dn.abs(dn.tensor([-1.5, 2.0])).to_list()
    [1.5, 2.0]
    """
    ...


@quick
@forwards(_core.sign)
def sign(tensor: TensorLike) -> Tensor:
    """-1, 0 or 1. NaN stays NaN; for a complex ``z`` the result is ``z / abs(z)``.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: zero.
    Raises: no specific errors.

    >>> dn.sign(dn.tensor([-2.5, 0.0, 7.0])).to_list()
    [-1.0, 0.0, 1.0]
    """
    ...


@quick
@forwards(_core.floor)
def floor(tensor: TensorLike) -> Tensor:
    """The greatest integer not above the operand.

    Shapes: unchanged; names are kept.
    Dtypes: real; unchanged. Integers are returned as they are.
    Grad: zero.
    Raises: ``DTypeError`` for a complex operand.

    >>> dn.floor(dn.tensor([-1.5, 1.5])).to_list()
    [-2.0, 1.0]
    """
    ...


@quick
@forwards(_core.ceil)
def ceil(tensor: TensorLike) -> Tensor:
    """The least integer not below the operand.

    Shapes: unchanged; names are kept.
    Dtypes: real; unchanged. Integers are returned as they are.
    Grad: zero.
    Raises: ``DTypeError`` for a complex operand.

    >>> dn.ceil(dn.tensor([-1.5, 1.5])).to_list()
    [-1.0, 2.0]
    """
    ...


@quick
@forwards(_core.round)
def round(tensor: TensorLike) -> Tensor:
    """The nearest integer. Halves round away from zero; NumPy rounds them to even.

    Shapes: unchanged; names are kept.
    Dtypes: real; unchanged. Integers are returned as they are.
    Grad: zero.
    Raises: ``DTypeError`` for a complex operand.

    >>> dn.round(dn.tensor([-0.5, 0.5, 2.5])).to_list()
    [-1.0, 1.0, 3.0]
    """
    ...


@quick
@forwards(_core.exp)
def exp(tensor: TensorLike) -> Tensor:
    """``e`` to the power of the operand.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * y``, where ``y`` is the result.
    Raises: no specific errors.

    >>> float(dn.exp(0.0))
    1.0
    """
    ...


@quick
@forwards(_core.expm1)
def expm1(tensor: TensorLike) -> Tensor:
    """``exp(x) - 1``, accurate near zero, where the subtraction would cancel.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * (y + 1)``.
    Raises: no specific errors.

    >>> float(dn.expm1(1e-10))
    1.000000013351432e-10
    """
    ...


@quick
@forwards(_core.log)
def log(tensor: TensorLike, base: TensorLike | None = None) -> Tensor:
    """The natural logarithm, or the logarithm to ``base``; NaN for negative reals.

    Shapes: unchanged; names are kept.
    Dtypes: any; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g / x``, divided by the logarithm of the base.
    Raises: ``OptionError`` if the base is a Python number that is 1 or not above 0.

    >>> float(dn.log(1.0))
    0.0
    """
    ...


@quick
@forwards(_core.log1p)
def log1p(tensor: TensorLike) -> Tensor:
    """``log(1 + x)``, accurate near zero, where the addition would lose digits.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (1 + x)``.
    Raises: no specific errors.

    >>> float(dn.log1p(1e-10))
    1.000000013351432e-10
    """
    ...


@quick
@forwards(_core.sigmoid)
def sigmoid(tensor: TensorLike) -> Tensor:
    """``1 / (1 + exp(-x))``.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * y * (1 - y)``.
    Raises: no specific errors.

    >>> float(dn.sigmoid(0.0))
    0.5
    """
    ...


@quick
@forwards(_core.sin)
def sin(tensor: TensorLike) -> Tensor:
    """The sine of an angle in radians.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * cos(x)``.
    Raises: no specific errors.

    >>> float(dn.sin(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.cos)
def cos(tensor: TensorLike) -> Tensor:
    """The cosine of an angle in radians.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``-g * sin(x)``.
    Raises: no specific errors.

    >>> float(dn.cos(0.0))
    1.0
    """
    ...


@quick
@forwards(_core.tan)
def tan(tensor: TensorLike) -> Tensor:
    """The tangent of an angle in radians.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / cos(x)**2``.
    Raises: no specific errors.

    >>> float(dn.tan(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.sinh)
def sinh(tensor: TensorLike) -> Tensor:
    """The hyperbolic sine.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * cosh(x)``.
    Raises: no specific errors.

    >>> float(dn.sinh(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.cosh)
def cosh(tensor: TensorLike) -> Tensor:
    """The hyperbolic cosine.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * sinh(x)``.
    Raises: no specific errors.

    >>> float(dn.cosh(0.0))
    1.0
    """
    ...


@quick
@forwards(_core.tanh)
def tanh(tensor: TensorLike) -> Tensor:
    """The hyperbolic tangent.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * (1 - y**2)``.
    Raises: no specific errors.

    >>> float(dn.tanh(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.asin)
def asin(tensor: TensorLike) -> Tensor:
    """The arcsine; NaN for reals outside -1 to 1.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / sqrt(1 - x**2)``.
    Raises: no specific errors.

    >>> float(dn.asin(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.acos)
def acos(tensor: TensorLike) -> Tensor:
    """The arccosine; NaN for reals outside -1 to 1.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``-g / sqrt(1 - x**2)``.
    Raises: no specific errors.

    >>> float(dn.acos(1.0))
    0.0
    """
    ...


@quick
@forwards(_core.atan)
def atan(tensor: TensorLike) -> Tensor:
    """The arctangent.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (1 + x**2)``.
    Raises: no specific errors.

    >>> float(dn.atan(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.asinh)
def asinh(tensor: TensorLike) -> Tensor:
    """The inverse of ``sinh``.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / sqrt(x**2 + 1)``.
    Raises: no specific errors.

    >>> float(dn.asinh(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.acosh)
def acosh(tensor: TensorLike) -> Tensor:
    """The inverse of ``cosh``; NaN for reals below 1.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / sqrt(x**2 - 1)``.
    Raises: no specific errors.

    >>> float(dn.acosh(1.0))
    0.0
    """
    ...


@quick
@forwards(_core.atanh)
def atanh(tensor: TensorLike) -> Tensor:
    """The inverse of ``tanh``; NaN for reals outside -1 to 1.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (1 - x**2)``.
    Raises: no specific errors.

    >>> float(dn.atanh(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.sqrt)
def sqrt(tensor: TensorLike) -> Tensor:
    """The square root; NaN for negative reals.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (2 * y)``; infinite at 0.
    Raises: no specific errors.

    >>> float(dn.sqrt(4.0))
    2.0
    """
    ...


@quick
@forwards(_core.rsqrt)
def rsqrt(tensor: TensorLike) -> Tensor:
    """``1 / sqrt(x)``.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``-g * x**-1.5 / 2``; infinite at 0.
    Raises: no specific errors.

    >>> float(dn.rsqrt(4.0))
    0.5
    """
    ...


@quick
@forwards(_core.cbrt)
def cbrt(tensor: TensorLike) -> Tensor:
    """The cube root; negative for negative reals.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (3 * y**2)``; infinite at 0.
    Raises: no specific errors.

    >>> float(dn.cbrt(-8.0))
    -2.0
    """
    ...


@quick
@forwards(_core.erf)
def erf(tensor: TensorLike) -> Tensor:
    """The error function.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * 2 / sqrt(pi) * exp(-x**2)``.
    Raises: ``DTypeError`` for a complex operand.

    >>> float(dn.erf(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.erfc)
def erfc(tensor: TensorLike) -> Tensor:
    """``1 - erf(x)``, accurate where ``erf`` is close to 1.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``-g * 2 / sqrt(pi) * exp(-x**2)``.
    Raises: ``DTypeError`` for a complex operand.

    >>> float(dn.erfc(0.0))
    1.0
    """
    ...


@quick
@forwards(_core.erf_inv)
def erf_inv(tensor: TensorLike) -> Tensor:
    """The inverse of ``erf``; infinite at -1 and 1.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * sqrt(pi) / 2 * exp(y**2)``.
    Raises: ``DTypeError`` for a complex operand.

    >>> float(dn.erf_inv(0.0))
    0.0
    """
    ...


@quick
@forwards(_core.log2)
def log2(tensor: TensorLike) -> Tensor:
    """The base-2 logarithm; NaN for negative reals.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (x * log(2))``.
    Raises: no specific errors.

    >>> float(dn.log2(8.0))
    3.0
    """
    ...


@quick
@forwards(_core.log10)
def log10(tensor: TensorLike) -> Tensor:
    """The base-10 logarithm; NaN for negative reals.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g / (x * log(10))``.
    Raises: no specific errors.

    >>> float(dn.log10(1.0))
    0.0
    """
    ...
