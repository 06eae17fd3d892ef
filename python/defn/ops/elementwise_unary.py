"""Functions of one tensor that compute element by element and keep the shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._core import quick
from defn._names import refuse_options

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
def negate(tensor: TensorLike, **unknown: Never) -> Tensor:
    """Change the sign; unsigned integers wrap.

    Shapes: kept, with axis names.
    Dtypes: any; kept.
    Grad: ``-g``.
    Raises: nothing of its own.

    >>> dn.negate(dn.tensor([1, -2])).to_list()
    [-1, 2]
    """
    if unknown:
        refuse_options("negate", unknown)
    return _core.negate(tensor)


@quick
def abs(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The distance from zero; the most negative integer wraps to itself.

    Shapes: kept, with axis names.
    Dtypes: any; kept, but complex numbers give floats of half the width.
    Grad: ``g`` where the operand is at least 0, else ``-g``; complex ``real(g) * conj(z) /
        abs(z)``.
    Raises: nothing of its own.

    >>> dn.abs(dn.tensor([-1.5, 2.0])).to_list()
    [1.5, 2.0]
    """
    if unknown:
        refuse_options("abs", unknown)
    return _core.abs(tensor)


@quick
def sign(tensor: TensorLike, **unknown: Never) -> Tensor:
    """-1, 0 or 1; NaN stays NaN, and a complex ``z`` gives ``z / abs(z)``.

    Shapes: kept, with axis names.
    Dtypes: any; kept.
    Grad: none flows.
    Raises: nothing of its own.

    >>> dn.sign(dn.tensor([-2.5, 0.0, 7.0])).to_list()
    [-1.0, 0.0, 1.0]
    """
    if unknown:
        refuse_options("sign", unknown)
    return _core.sign(tensor)


@quick
def floor(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The greatest integer not above the operand.

    Shapes: kept, with axis names.
    Dtypes: real; kept. Integers are returned as they are.
    Grad: none flows.
    Raises: ``DTypeError`` for a complex operand.

    >>> dn.floor(dn.tensor([-1.5, 1.5])).to_list()
    [-2.0, 1.0]
    """
    if unknown:
        refuse_options("floor", unknown)
    return _core.floor(tensor)


@quick
def ceil(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The least integer not below the operand.

    Shapes: kept, with axis names.
    Dtypes: real; kept. Integers are returned as they are.
    Grad: none flows.
    Raises: ``DTypeError`` for a complex operand.

    >>> dn.ceil(dn.tensor([-1.5, 1.5])).to_list()
    [-1.0, 2.0]
    """
    if unknown:
        refuse_options("ceil", unknown)
    return _core.ceil(tensor)


@quick
def round(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The nearest integer; halves go away from zero, where NumPy takes the even one.

    Shapes: kept, with axis names.
    Dtypes: real; kept. Integers are returned as they are.
    Grad: none flows.
    Raises: ``DTypeError`` for a complex operand.

    >>> dn.round(dn.tensor([-0.5, 0.5, 2.5])).to_list()
    [-1.0, 1.0, 3.0]
    """
    if unknown:
        refuse_options("round", unknown)
    return _core.round(tensor)


@quick
def exp(tensor: TensorLike, **unknown: Never) -> Tensor:
    """``e`` to the power of the operand.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * y``, where ``y`` is the result.
    Raises: nothing of its own.

    >>> float(dn.exp(0.0))
    1.0
    """
    if unknown:
        refuse_options("exp", unknown)
    return _core.exp(tensor)


@quick
def expm1(tensor: TensorLike, **unknown: Never) -> Tensor:
    """``exp(x) - 1``, accurate near zero, where the subtraction would cancel.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * (y + 1)``.
    Raises: nothing of its own.

    >>> float(dn.expm1(1e-10))
    1.000000013351432e-10
    """
    if unknown:
        refuse_options("expm1", unknown)
    return _core.expm1(tensor)


@quick
def log(tensor: TensorLike, base: TensorLike | None = None, **unknown: Never) -> Tensor:
    """The natural logarithm, or the one to a base; NaN for negative reals.

    Shapes: kept, with axis names.
    Dtypes: any; merged, and f32 for integers; a plain number is weak.
    Grad: ``g / x``, divided by the base's logarithm.
    Raises: ``OptionError`` for a base that is a number and not above 0, or is 1.

    >>> float(dn.log(1.0))
    0.0
    """
    if unknown:
        refuse_options("log", unknown)
    return _core.log(tensor, base)


@quick
def log1p(tensor: TensorLike, **unknown: Never) -> Tensor:
    """``log(1 + x)``, accurate near zero, where the addition would lose digits.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (1 + x)``.
    Raises: nothing of its own.

    >>> float(dn.log1p(1e-10))
    1.000000013351432e-10
    """
    if unknown:
        refuse_options("log1p", unknown)
    return _core.log1p(tensor)


@quick
def sigmoid(tensor: TensorLike, **unknown: Never) -> Tensor:
    """``1 / (1 + exp(-x))``.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * y * (1 - y)``.
    Raises: nothing of its own.

    >>> float(dn.sigmoid(0.0))
    0.5
    """
    if unknown:
        refuse_options("sigmoid", unknown)
    return _core.sigmoid(tensor)


@quick
def sin(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The sine of an angle in radians.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * cos(x)``.
    Raises: nothing of its own.

    >>> float(dn.sin(0.0))
    0.0
    """
    if unknown:
        refuse_options("sin", unknown)
    return _core.sin(tensor)


@quick
def cos(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The cosine of an angle in radians.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``-g * sin(x)``.
    Raises: nothing of its own.

    >>> float(dn.cos(0.0))
    1.0
    """
    if unknown:
        refuse_options("cos", unknown)
    return _core.cos(tensor)


@quick
def tan(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The tangent of an angle in radians.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / cos(x)**2``.
    Raises: nothing of its own.

    >>> float(dn.tan(0.0))
    0.0
    """
    if unknown:
        refuse_options("tan", unknown)
    return _core.tan(tensor)


@quick
def sinh(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The hyperbolic sine.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * cosh(x)``.
    Raises: nothing of its own.

    >>> float(dn.sinh(0.0))
    0.0
    """
    if unknown:
        refuse_options("sinh", unknown)
    return _core.sinh(tensor)


@quick
def cosh(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The hyperbolic cosine.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * sinh(x)``.
    Raises: nothing of its own.

    >>> float(dn.cosh(0.0))
    1.0
    """
    if unknown:
        refuse_options("cosh", unknown)
    return _core.cosh(tensor)


@quick
def tanh(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The hyperbolic tangent.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g * (1 - y**2)``.
    Raises: nothing of its own.

    >>> float(dn.tanh(0.0))
    0.0
    """
    if unknown:
        refuse_options("tanh", unknown)
    return _core.tanh(tensor)


@quick
def asin(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The angle whose sine is the operand; NaN for reals outside -1 to 1.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / sqrt(1 - x**2)``.
    Raises: nothing of its own.

    >>> float(dn.asin(0.0))
    0.0
    """
    if unknown:
        refuse_options("asin", unknown)
    return _core.asin(tensor)


@quick
def acos(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The angle whose cosine is the operand; NaN for reals outside -1 to 1.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``-g / sqrt(1 - x**2)``.
    Raises: nothing of its own.

    >>> float(dn.acos(1.0))
    0.0
    """
    if unknown:
        refuse_options("acos", unknown)
    return _core.acos(tensor)


@quick
def atan(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The angle whose tangent is the operand.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (1 + x**2)``.
    Raises: nothing of its own.

    >>> float(dn.atan(0.0))
    0.0
    """
    if unknown:
        refuse_options("atan", unknown)
    return _core.atan(tensor)


@quick
def asinh(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The inverse of ``sinh``.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / sqrt(x**2 + 1)``.
    Raises: nothing of its own.

    >>> float(dn.asinh(0.0))
    0.0
    """
    if unknown:
        refuse_options("asinh", unknown)
    return _core.asinh(tensor)


@quick
def acosh(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The inverse of ``cosh``; NaN for reals below 1.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / sqrt(x**2 - 1)``.
    Raises: nothing of its own.

    >>> float(dn.acosh(1.0))
    0.0
    """
    if unknown:
        refuse_options("acosh", unknown)
    return _core.acosh(tensor)


@quick
def atanh(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The inverse of ``tanh``; NaN for reals outside -1 to 1.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (1 - x**2)``.
    Raises: nothing of its own.

    >>> float(dn.atanh(0.0))
    0.0
    """
    if unknown:
        refuse_options("atanh", unknown)
    return _core.atanh(tensor)


@quick
def sqrt(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The square root; NaN for negative reals.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (2 * y)``; infinite at 0.
    Raises: nothing of its own.

    >>> float(dn.sqrt(4.0))
    2.0
    """
    if unknown:
        refuse_options("sqrt", unknown)
    return _core.sqrt(tensor)


@quick
def rsqrt(tensor: TensorLike, **unknown: Never) -> Tensor:
    """``1 / sqrt(x)``.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``-g * x**-1.5 / 2``; infinite at 0.
    Raises: nothing of its own.

    >>> float(dn.rsqrt(4.0))
    0.5
    """
    if unknown:
        refuse_options("rsqrt", unknown)
    return _core.rsqrt(tensor)


@quick
def cbrt(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The cube root; negative for negative reals.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (3 * y**2)``; infinite at 0.
    Raises: nothing of its own.

    >>> float(dn.cbrt(-8.0))
    -2.0
    """
    if unknown:
        refuse_options("cbrt", unknown)
    return _core.cbrt(tensor)


@quick
def erf(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The error function.

    Shapes: kept, with axis names.
    Dtypes: real; integers give f32.
    Grad: ``g * 2 / sqrt(pi) * exp(-x**2)``.
    Raises: ``DTypeError`` for a complex operand.

    >>> float(dn.erf(0.0))
    0.0
    """
    if unknown:
        refuse_options("erf", unknown)
    return _core.erf(tensor)


@quick
def erfc(tensor: TensorLike, **unknown: Never) -> Tensor:
    """``1 - erf(x)``, accurate where ``erf`` is close to 1.

    Shapes: kept, with axis names.
    Dtypes: real; integers give f32.
    Grad: ``-g * 2 / sqrt(pi) * exp(-x**2)``.
    Raises: ``DTypeError`` for a complex operand.

    >>> float(dn.erfc(0.0))
    1.0
    """
    if unknown:
        refuse_options("erfc", unknown)
    return _core.erfc(tensor)


@quick
def erf_inv(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The inverse of ``erf``; infinite at -1 and 1.

    Shapes: kept, with axis names.
    Dtypes: real; integers give f32.
    Grad: ``g * sqrt(pi) / 2 * exp(y**2)``.
    Raises: ``DTypeError`` for a complex operand.

    >>> float(dn.erf_inv(0.0))
    0.0
    """
    if unknown:
        refuse_options("erf_inv", unknown)
    return _core.erf_inv(tensor)


def log2(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The logarithm to the base 2; NaN for negative reals.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (x * log(2))``.
    Raises: nothing of its own.

    >>> float(dn.log2(8.0))
    3.0
    """
    if unknown:
        refuse_options("log2", unknown)
    return _core.log2(tensor)


def log10(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The logarithm to the base 10; NaN for negative reals.

    Shapes: kept, with axis names.
    Dtypes: any; integers give f32.
    Grad: ``g / (x * log(10))``.
    Raises: nothing of its own.

    >>> float(dn.log10(1.0))
    0.0
    """
    if unknown:
        refuse_options("log10", unknown)
    return _core.log10(tensor)
