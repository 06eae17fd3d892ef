"""Element-wise functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import defn as dn
from defn.array_api._array import (
    Array,
    Number,
    convert,
    floor_quotient,
    operands,
    require,
    wrap,
)
from defn.array_api._promotion import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    INTEGER_OR_BOOL,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    UNSIGNED,
    integer_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn import DType, Tensor

Operand = Array | Number


def _unary(
    name: str, fun: Callable[[Tensor], Tensor], kinds: frozenset[DType], doc: str
) -> Callable[[Array], Array]:
    def function(x: Array, /) -> Array:
        return wrap(fun(require(name, x, kinds)))

    return _named(function, name, doc)


def _binary(
    name: str, fun: Callable[[Tensor, Tensor], Tensor], kinds: frozenset[DType], doc: str
) -> Callable[[Operand, Operand], Array]:
    def function(x1: Operand, x2: Operand, /) -> Array:
        return wrap(fun(*operands(name, x1, x2, kinds)))

    return _named(function, name, doc)


def _expm1(x: Tensor) -> Tensor:
    """``exp(x) - 1``; at infinities and NaN of complex numbers as the standard says, not NumPy."""
    found = dn.expm1(x)
    if x.dtype not in COMPLEX:
        return found
    real, imag = dn.real(x), dn.imag(x)
    is_unbounded = dn.logical_not(dn.isfinite(imag))
    vanishes = dn.logical_and(real == -math.inf, is_unbounded)
    grows = dn.logical_and(real == math.inf, is_unbounded)
    length = dn.select(grows, math.inf, dn.select(vanishes, -1.0, dn.real(found)))
    angle = dn.select(grows, math.nan, dn.select(vanishes, 0.0, dn.imag(found)))
    return dn.complex(length, dn.select(imag == 0.0, imag, angle))


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _whole(fun: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A rounding, which leaves integers as they are."""
    return lambda x: x if x.dtype in INTEGER else fun(x)


def _round(x: Tensor) -> Tensor:
    """The nearest integer, and of two the even one; ``dn.round`` takes that away from 0."""
    if x.dtype in COMPLEX:
        return dn.complex(_round(dn.real(x)), _round(dn.imag(x)))
    is_middle = dn.equal(dn.abs(x - dn.floor(x)), 0.5)
    return dn.select(is_middle, 2 * dn.round(x / 2), dn.round(x))


def _sign(x: Tensor) -> Tensor:
    if x.dtype not in COMPLEX:
        return dn.sign(x)
    is_zero = dn.equal(x, 0)
    size = convert(dn.abs(x), x.dtype)
    return dn.select(is_zero, 0, x / dn.select(is_zero, 1, size))


def _conj(x: Tensor) -> Tensor:
    return dn.conjugate(x) if x.dtype in COMPLEX else x


abs = _unary("abs", dn.abs, NUMERIC, "The magnitude of each element.")
acos = _unary("acos", dn.acos, FLOATING, "The principal inverse cosine, in radians.")
acosh = _unary("acosh", dn.acosh, FLOATING, "The principal inverse hyperbolic cosine.")
asin = _unary("asin", dn.asin, FLOATING, "The principal inverse sine, in radians.")
asinh = _unary("asinh", dn.asinh, FLOATING, "The inverse hyperbolic sine.")
atan = _unary("atan", dn.atan, FLOATING, "The principal inverse tangent, in radians.")
atanh = _unary("atanh", dn.atanh, FLOATING, "The inverse hyperbolic tangent.")
bitwise_invert = _unary(
    "bitwise_invert", lambda x: ~x, INTEGER_OR_BOOL, "The complement of the bits."
)
ceil = _unary("ceil", _whole(dn.ceil), REAL, "The least integer that is not less.")
conj = _unary("conj", _conj, NUMERIC, "The complex conjugate.")
cos = _unary("cos", dn.cos, FLOATING, "The cosine of radians.")
cosh = _unary("cosh", dn.cosh, FLOATING, "The hyperbolic cosine.")
exp = _unary("exp", dn.exp, FLOATING, "The exponential function.")
expm1 = _unary("expm1", _expm1, FLOATING, "``exp(x) - 1``, exact near 0.")
floor = _unary("floor", _whole(dn.floor), REAL, "The greatest integer that is not greater.")
imag = _unary("imag", dn.imag, COMPLEX, "The imaginary part.")
isfinite = _unary("isfinite", dn.isfinite, NUMERIC, "Whether it is neither infinite nor NaN.")
isinf = _unary("isinf", dn.is_infinity, NUMERIC, "Whether it is infinite.")
isnan = _unary("isnan", dn.is_nan, NUMERIC, "Whether it is NaN.")
log = _unary("log", dn.log, FLOATING, "The natural logarithm.")
log1p = _unary("log1p", dn.log1p, FLOATING, "``log(1 + x)``, exact near 0.")
log2 = _unary("log2", dn.log2, FLOATING, "The logarithm to base 2.")
log10 = _unary("log10", dn.log10, FLOATING, "The logarithm to base 10.")
logical_not = _unary("logical_not", dn.logical_not, BOOL, "The logical negation.")
negative = _unary("negative", dn.negate, NUMERIC, "The element with the other sign.")
positive = _unary("positive", lambda x: x, NUMERIC, "The element itself.")
real = _unary("real", lambda x: dn.real(x) if x.dtype in COMPLEX else x, NUMERIC, "The real part.")
reciprocal = _unary("reciprocal", dn.reciprocal, FLOATING, "``1 / x``.")
round = _unary(
    "round", _whole(_round), NUMERIC, "The nearest integer; of two equally near, the even one."
)
sign = _unary("sign", _sign, NUMERIC, "-1, 0 or 1; of a complex number ``x / abs(x)``.")
signbit = _unary("signbit", dn.signbit, REAL_FLOATING, "Whether the sign bit is set.")
sin = _unary("sin", dn.sin, FLOATING, "The sine of radians.")
sinh = _unary("sinh", dn.sinh, FLOATING, "The hyperbolic sine.")
square = _unary("square", dn.square, NUMERIC, "``x * x``.")
sqrt = _unary("sqrt", dn.sqrt, FLOATING, "The principal square root.")
tan = _unary("tan", dn.tan, FLOATING, "The tangent of radians.")
tanh = _unary("tanh", dn.tanh, FLOATING, "The hyperbolic tangent.")
trunc = _unary("trunc", _whole(dn.trunc), REAL, "The nearest integer towards 0.")

add = _binary("add", dn.add, NUMERIC, "The sum.")
atan2 = _binary("atan2", dn.atan2, REAL_FLOATING, "The angle of the point ``(x2, x1)``.")
bitwise_and = _binary("bitwise_and", dn.bitwise_and, INTEGER_OR_BOOL, "The bits set in both.")
bitwise_left_shift = _binary(
    "bitwise_left_shift", dn.left_shift, INTEGER, "The bits moved up by ``x2``, with zeros below."
)
bitwise_or = _binary("bitwise_or", dn.bitwise_or, INTEGER_OR_BOOL, "The bits set in either.")
bitwise_right_shift = _binary(
    "bitwise_right_shift", dn.right_shift, INTEGER, "The bits moved down by ``x2``; keeps the sign."
)
bitwise_xor = _binary("bitwise_xor", dn.bitwise_xor, INTEGER_OR_BOOL, "The bits that differ.")
copysign = _binary("copysign", dn.copysign, REAL_FLOATING, "``x1`` with the sign of ``x2``.")
divide = _binary("divide", dn.divide, FLOATING, "The quotient.")
equal = _binary("equal", dn.equal, ALL, "Whether both are equal.")
floor_divide = _binary(
    "floor_divide", floor_quotient, REAL, "The quotient, rounded to the integer below."
)
greater = _binary("greater", dn.greater, REAL, "Whether ``x1`` is greater.")
greater_equal = _binary("greater_equal", dn.greater_equal, REAL, "Whether ``x1`` is not less.")
hypot = _binary("hypot", dn.hypot, REAL_FLOATING, "``sqrt(x1 ** 2 + x2 ** 2)`` in range.")
less = _binary("less", dn.less, REAL, "Whether ``x1`` is less.")
less_equal = _binary("less_equal", dn.less_equal, REAL, "Whether ``x1`` is not greater.")
logaddexp = _binary(
    "logaddexp", dn.logaddexp, REAL_FLOATING, "``log(exp(x1) + exp(x2))`` without overflow."
)
logical_and = _binary("logical_and", dn.logical_and, BOOL, "Whether both are true.")
logical_or = _binary("logical_or", dn.logical_or, BOOL, "Whether one is true.")
logical_xor = _binary("logical_xor", dn.logical_xor, BOOL, "Whether exactly one is true.")
maximum = _binary("maximum", dn.max, REAL, "The greater element; NaN if one is.")
minimum = _binary("minimum", dn.min, REAL, "The lesser element; NaN if one is.")
multiply = _binary("multiply", dn.multiply, NUMERIC, "The product.")
nextafter = _binary(
    "nextafter", dn.nextafter, REAL_FLOATING, "The next number after ``x1`` towards ``x2``."
)
not_equal = _binary("not_equal", dn.not_equal, ALL, "Whether the elements differ.")
pow = _binary("pow", dn.pow, NUMERIC, "``x1`` to the power of ``x2``.")
remainder = _binary(
    "remainder", lambda a, b: a % b, REAL, "The remainder, with the sign of the divisor."
)
subtract = _binary("subtract", dn.subtract, NUMERIC, "The difference.")


def clip(
    x: Array,
    /,
    min: Array | float | None = None,
    max: Array | float | None = None,
) -> Array:
    """The elements, limited to bounds, which may be arrays. The data type is that of ``x``.

    >>> import defn.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 6)
    Array([2, 5, 6], dtype=int64)
    """
    tensor = require("clip", x, REAL)
    if min is not None:
        tensor = dn.max(tensor, _bound("min", tensor.dtype, min))
    if max is not None:
        tensor = dn.min(tensor, _bound("max", tensor.dtype, max))
    return wrap(tensor)


def _bound(name: str, dtype: DType, bound: Array | float) -> Tensor | float:
    if isinstance(bound, Array):
        tensor = require("clip", bound, REAL)
        if (tensor.dtype in INTEGER) != (dtype in INTEGER):
            raise TypeError(f"clip: {name} has another kind of data type than the array")
        return _within(tensor, dtype)
    if isinstance(bound, float) and dtype in INTEGER:
        raise TypeError(f"clip: {name} is a float, and the array has integers; use astype")
    if dtype in INTEGER:
        low, high = integer_range(dtype)
        return dn.tensor(low if bound < low else high if bound > high else bound, dtype=dtype)
    return dn.tensor(bound, dtype=dtype)


def _within(tensor: Tensor, dtype: DType) -> Tensor:
    """Bounds in a data type; those out of its range become its limits."""
    if tensor.dtype == dtype or dtype not in INTEGER:
        return convert(tensor, dtype)
    low, high = integer_range(dtype)
    if tensor.dtype in UNSIGNED:
        # No element is negative, and `high` may exceed the range of the bounds' own data type.
        _, own = integer_range(tensor.dtype)
        return convert(dn.min(tensor, high) if high < own else tensor, dtype)
    own_low, own_high = integer_range(tensor.dtype)
    if low > own_low:
        tensor = dn.max(tensor, low)
    if high < own_high:
        tensor = dn.min(tensor, high)
    return convert(tensor, dtype)


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]
