"""Callbacks that compute element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor

__all__ = ["Elementwise"]


class Elementwise:
    """Operations on one, two or three elements. Operands broadcast to the shape of ``out``."""

    def negate(self, out: Tensor, x: Tensor) -> Any:
        """``-x``, wrapping for integers."""
        raise lacks(self, "negate")

    def abs(self, out: Tensor, x: Tensor) -> Any:
        """``|x|``; the most negative integer wraps to itself."""
        raise lacks(self, "abs")

    def sign(self, out: Tensor, x: Tensor) -> Any:
        """-1, 0 or 1; NaN stays NaN; ``z / |z|`` for complex."""
        raise lacks(self, "sign")

    def floor(self, out: Tensor, x: Tensor) -> Any:
        """The greatest integer not above ``x``; the identity on integers."""
        raise lacks(self, "floor")

    def ceil(self, out: Tensor, x: Tensor) -> Any:
        """The least integer not below ``x``; the identity on integers."""
        raise lacks(self, "ceil")

    def round(self, out: Tensor, x: Tensor) -> Any:
        """The nearest integer, halves away from zero; the identity on integers."""
        raise lacks(self, "round")

    def exp(self, out: Tensor, x: Tensor) -> Any:
        """``e**x``."""
        raise lacks(self, "exp")

    def expm1(self, out: Tensor, x: Tensor) -> Any:
        """``e**x - 1``, accurate near zero."""
        raise lacks(self, "expm1")

    def log(self, out: Tensor, x: Tensor) -> Any:
        """The natural logarithm; NaN for negative reals."""
        raise lacks(self, "log")

    def log1p(self, out: Tensor, x: Tensor) -> Any:
        """``log(1 + x)``, accurate near zero."""
        raise lacks(self, "log1p")

    def sigmoid(self, out: Tensor, x: Tensor) -> Any:
        """``1 / (1 + e**-x)``."""
        raise lacks(self, "sigmoid")

    def sin(self, out: Tensor, x: Tensor) -> Any:
        """Sine."""
        raise lacks(self, "sin")

    def cos(self, out: Tensor, x: Tensor) -> Any:
        """Cosine."""
        raise lacks(self, "cos")

    def tan(self, out: Tensor, x: Tensor) -> Any:
        """Tangent."""
        raise lacks(self, "tan")

    def sinh(self, out: Tensor, x: Tensor) -> Any:
        """Hyperbolic sine."""
        raise lacks(self, "sinh")

    def cosh(self, out: Tensor, x: Tensor) -> Any:
        """Hyperbolic cosine."""
        raise lacks(self, "cosh")

    def tanh(self, out: Tensor, x: Tensor) -> Any:
        """Hyperbolic tangent."""
        raise lacks(self, "tanh")

    def asin(self, out: Tensor, x: Tensor) -> Any:
        """Arc sine."""
        raise lacks(self, "asin")

    def acos(self, out: Tensor, x: Tensor) -> Any:
        """Arc cosine."""
        raise lacks(self, "acos")

    def atan(self, out: Tensor, x: Tensor) -> Any:
        """Arc tangent."""
        raise lacks(self, "atan")

    def asinh(self, out: Tensor, x: Tensor) -> Any:
        """Inverse hyperbolic sine."""
        raise lacks(self, "asinh")

    def acosh(self, out: Tensor, x: Tensor) -> Any:
        """Inverse hyperbolic cosine."""
        raise lacks(self, "acosh")

    def atanh(self, out: Tensor, x: Tensor) -> Any:
        """Inverse hyperbolic tangent."""
        raise lacks(self, "atanh")

    def sqrt(self, out: Tensor, x: Tensor) -> Any:
        """The square root; NaN for negative reals."""
        raise lacks(self, "sqrt")

    def rsqrt(self, out: Tensor, x: Tensor) -> Any:
        """``1 / sqrt(x)``."""
        raise lacks(self, "rsqrt")

    def cbrt(self, out: Tensor, x: Tensor) -> Any:
        """The cube root; negative for negative reals."""
        raise lacks(self, "cbrt")

    def erf(self, out: Tensor, x: Tensor) -> Any:
        """The error function."""
        raise lacks(self, "erf")

    def erfc(self, out: Tensor, x: Tensor) -> Any:
        """``1 - erf(x)``, accurate for large ``x``."""
        raise lacks(self, "erfc")

    def erf_inv(self, out: Tensor, x: Tensor) -> Any:
        """The inverse of ``erf``; infinite at -1 and 1."""
        raise lacks(self, "erf_inv")

    def conjugate(self, out: Tensor, x: Tensor) -> Any:
        """The complex conjugate; ``out`` is complex."""
        raise lacks(self, "conjugate")

    def real(self, out: Tensor, x: Tensor) -> Any:
        """The real part."""
        raise lacks(self, "real")

    def imag(self, out: Tensor, x: Tensor) -> Any:
        """The imaginary part; 0 for real operands."""
        raise lacks(self, "imag")

    def bitwise_not(self, out: Tensor, x: Tensor) -> Any:
        """Every bit inverted."""
        raise lacks(self, "bitwise_not")

    def population_count(self, out: Tensor, x: Tensor) -> Any:
        """The number of bits that are 1."""
        raise lacks(self, "population_count")

    def count_leading_zeros(self, out: Tensor, x: Tensor) -> Any:
        """The number of 0 bits before the first 1, in the dtype's own width."""
        raise lacks(self, "count_leading_zeros")

    def is_nan(self, out: Tensor, x: Tensor) -> Any:
        """Whether ``x`` is NaN; for a complex number, whether either part is."""
        raise lacks(self, "is_nan")

    def is_infinity(self, out: Tensor, x: Tensor) -> Any:
        """Whether ``x`` is infinite; for a complex number, whether either part is."""
        raise lacks(self, "is_infinity")

    def as_type(self, out: Tensor, x: Tensor) -> Any:
        """``x`` as ``out.dtype``: integers wrap, floats truncate and saturate, NaN becomes 0."""
        raise lacks(self, "as_type")

    def bitcast(self, out: Tensor, x: Tensor) -> Any:
        """The bits of ``x`` read as ``out.dtype``, which is of the same width."""
        raise lacks(self, "bitcast")

    def add(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a + b``, wrapping for integers."""
        raise lacks(self, "add")

    def subtract(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a - b``, wrapping for integers."""
        raise lacks(self, "subtract")

    def multiply(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a * b``, wrapping for integers."""
        raise lacks(self, "multiply")

    def divide(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a / b``; ``out`` is a float."""
        raise lacks(self, "divide")

    def pow(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a**b``; exact modulo 2**bits for integers."""
        raise lacks(self, "pow")

    def atan2(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The angle of the point (b, a)."""
        raise lacks(self, "atan2")

    def quotient(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The integer quotient, truncated towards zero."""
        raise lacks(self, "quotient")

    def remainder(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The remainder of truncated division. Its sign is that of ``a``."""
        raise lacks(self, "remainder")

    def max(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The greater; NaN if either is."""
        raise lacks(self, "max")

    def min(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The lesser; NaN if either is."""
        raise lacks(self, "min")

    def bitwise_and(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Bits that are 1 in both."""
        raise lacks(self, "bitwise_and")

    def bitwise_or(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Bits that are 1 in either."""
        raise lacks(self, "bitwise_or")

    def bitwise_xor(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Bits that differ."""
        raise lacks(self, "bitwise_xor")

    def left_shift(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a * 2**b``; 0 if ``b`` is the dtype's width or more."""
        raise lacks(self, "left_shift")

    def right_shift(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a / 2**b`` rounded down: arithmetic for signed results, logical for unsigned ones."""
        raise lacks(self, "right_shift")

    def equal(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether the values are equal, compared as numbers even if the dtypes differ."""
        raise lacks(self, "equal")

    def less(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether ``a < b``."""
        raise lacks(self, "less")

    def complex(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The complex number ``a + bi``; the operands are real."""
        raise lacks(self, "complex")

    def not_equal(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether the values differ. By default the inverse of ``equal``."""
        return a.equal(b).equal(0)

    def greater(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether ``a > b``. By default ``less`` with the operands swapped."""
        return b.less(a)

    def less_equal(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether ``a <= b``. By default ``less`` or ``equal``."""
        return a.less(b).logical_or(a.equal(b))

    def greater_equal(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether ``a >= b``. By default ``less_equal`` with the operands swapped."""
        return b.less_equal(a)

    def logical_and(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether neither is zero. By default ``(a != 0) * (b != 0) == 1``."""
        # As numbers, because the product of two bools is this operation itself.
        return a.not_equal(0).multiply(1).multiply(b.not_equal(0)).equal(1)

    def logical_or(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether either is not zero. By default ``(a == 0) * (b == 0) == 0``."""
        return a.equal(0).multiply(1).multiply(b.equal(0)).equal(0)

    def logical_xor(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """Whether exactly one is not zero. By default ``(a == 0) != (b == 0)``."""
        return a.equal(0).not_equal(b.equal(0))

    def select(self, out: Tensor, pred: Tensor, on_true: Tensor, on_false: Tensor) -> Any:
        """``on_true`` where ``pred`` is not zero, else ``on_false``."""
        raise lacks(self, "select")

    def clip(self, out: Tensor, x: Tensor, lo: Tensor, hi: Tensor) -> Any:
        """``x`` limited to the bounds, which are scalars. By default ``max`` and ``min``."""
        return x.maximum(lo).minimum(hi).as_type(out.dtype)
