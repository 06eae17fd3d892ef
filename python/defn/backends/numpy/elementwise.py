"""Callbacks that compute element by element."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import cast, quiet, store, wide, wide_type, widen

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn._core import Tensor

__all__ = ["Elementwise"]


def _unary(function: Callable[[Any], Any]) -> Any:
    """A callback that computes in the dtype of its result."""

    @quiet
    def callback(self: Any, out: Tensor, x: Tensor) -> Any:
        return store(function(wide(x, out.dtype)), out)

    return callback


def _binary(function: Callable[[Any, Any], Any]) -> Any:
    """A callback that computes in the dtype of its result."""

    @quiet
    def callback(self: Any, out: Tensor, a: Tensor, b: Tensor) -> Any:
        return store(function(wide(a, out.dtype), wide(b, out.dtype)), out)

    return callback


def _question(function: Callable[[Any], Any]) -> Any:
    """A callback that computes on the elements in their own dtype."""

    @quiet
    def callback(self: Any, out: Tensor, x: Tensor) -> Any:
        return store(function(widen(x)), out)

    return callback


def _comparison(function: Callable[[Any, Any], Any]) -> Any:
    """A callback that compares numbers: integers exactly, an integer and a float as floats."""

    @quiet
    def callback(self: Any, out: Tensor, a: Tensor, b: Tensor) -> Any:
        x, y = widen(a), widen(b)
        if x.dtype.kind in "iu" and y.dtype.kind in "fc":
            x = cast(x, b.dtype).astype(wide_type(b.dtype))
        if y.dtype.kind in "iu" and x.dtype.kind in "fc":
            y = cast(y, a.dtype).astype(wide_type(a.dtype))
        return store(function(x, y), out)

    return callback


def _sign(x: Any) -> Any:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    one = x.dtype.type(1)
    negative = -one if x.dtype.kind != "u" else one
    return np.where(x > 0, one, np.where(x < 0, negative, x))


def _away(x: Any) -> Any:
    """The nearest integer, halves away from zero."""
    if x.dtype.kind in "iu":
        return x
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _whole(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function on floats, the identity on integers."""
    return lambda x: x if x.dtype.kind in "iu" else function(x)


def _cube_root(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.where(x == 0, 0, np.exp(np.log(np.where(x == 0, 1, x)) / 3))
    return np.cbrt(x)


def _erf_inv(y: float) -> float:
    """The inverse of ``erf`` by Newton's method, on ``1 - y`` if that is small."""
    if not -1.0 < y < 1.0:
        return math.copysign(math.inf, y) if abs(y) == 1.0 else math.nan
    size = abs(y)
    rest = 1.0 - size
    if rest < 2.0**-52:
        x = 5.8
    else:
        x = -statistics.NormalDist().inv_cdf(rest / 2) / math.sqrt(2) if size > 0.5 else size
    for _ in range(8):
        error = math.erfc(x) - rest if size > 0.5 else size - math.erf(x)
        x += error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return math.copysign(x, y)


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return np.vectorize(function, otypes=[np.float64])


def _quotient(x: Any, y: Any) -> Any:
    floor = x // np.where(y == 0, y.dtype.type(1), y)
    truncated = np.where((floor * y != x) & ((x < 0) != (y < 0)), floor + x.dtype.type(1), floor)
    return np.where(y == 0, ~x.dtype.type(0), truncated)


def _remainder(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return x - _quotient(x, y) * y


def _shift(function: Callable[[Any, Any, int], Any]) -> Any:
    """A callback whose second operand counts bits; a negative count stands for all bits."""

    @quiet
    def callback(self: Any, out: Tensor, a: Tensor, b: Tensor) -> Any:
        count = widen(b)
        count = np.where(count < 0, count.dtype.type(out.dtype.bits), count)
        return store(function(wide(a, out.dtype), count, out.dtype.bits), out)

    return callback


def _left(x: Any, count: Any, bits: int) -> Any:
    kept = x << np.minimum(count, bits - 1).astype(x.dtype)
    return np.where(count >= bits, x.dtype.type(0), kept)


def _right(x: Any, count: Any, bits: int) -> Any:
    kept = x >> np.minimum(count, bits - 1).astype(x.dtype)
    return kept if x.dtype.kind == "i" else np.where(count >= bits, x.dtype.type(0), kept)


def _bits(x: Tensor) -> Any:
    """The bits of integers, as unsigned numbers."""
    return widen(x).astype(np.uint64) & np.uint64(2**x.dtype.bits - 1)


class Elementwise:
    """Operations on one, two or three elements."""

    negate = _unary(np.negative)
    sign = _unary(_sign)
    floor = _unary(_whole(np.floor))
    ceil = _unary(_whole(np.ceil))
    round = _unary(_away)
    exp = _unary(np.exp)
    expm1 = _unary(np.expm1)
    log = _unary(np.log)
    log1p = _unary(np.log1p)
    sigmoid = _unary(lambda x: 1 / (1 + np.exp(-x)))
    sin = _unary(np.sin)
    cos = _unary(np.cos)
    tan = _unary(np.tan)
    sinh = _unary(np.sinh)
    cosh = _unary(np.cosh)
    tanh = _unary(np.tanh)
    asin = _unary(np.arcsin)
    acos = _unary(np.arccos)
    atan = _unary(np.arctan)
    asinh = _unary(np.arcsinh)
    acosh = _unary(np.arccosh)
    atanh = _unary(np.arctanh)
    sqrt = _unary(np.sqrt)
    rsqrt = _unary(lambda x: 1 / np.sqrt(x))
    cbrt = _unary(_cube_root)
    erf = _unary(_each(math.erf))
    erfc = _unary(_each(math.erfc))
    erf_inv = _unary(_each(_erf_inv))
    conjugate = _unary(np.conjugate)
    bitwise_not = _unary(np.invert)
    as_type = _unary(lambda x: x)
    abs = _question(np.abs)
    real = _question(np.real)
    imag = _question(np.imag)
    is_nan = _question(np.isnan)
    is_infinity = _question(np.isinf)

    add = _binary(np.add)
    subtract = _binary(np.subtract)
    multiply = _binary(np.multiply)
    divide = _binary(np.divide)
    atan2 = _binary(np.arctan2)
    quotient = _binary(_quotient)
    remainder = _binary(_remainder)
    max = _binary(np.maximum)
    min = _binary(np.minimum)
    bitwise_and = _binary(np.bitwise_and)
    bitwise_or = _binary(np.bitwise_or)
    bitwise_xor = _binary(np.bitwise_xor)
    left_shift = _shift(_left)
    right_shift = _shift(_right)
    equal = _comparison(np.equal)
    not_equal = _comparison(np.not_equal)
    less = _comparison(np.less)
    less_equal = _comparison(np.less_equal)
    greater = _comparison(np.greater)
    greater_equal = _comparison(np.greater_equal)
    logical_and = _comparison(np.logical_and)
    logical_or = _comparison(np.logical_or)
    logical_xor = _comparison(np.logical_xor)

    @quiet
    def pow(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """``a**b``; for integers modulo 2**64, with the exponent's bits read as unsigned."""
        base = wide(a, out.dtype)
        if base.dtype.kind not in "iu":
            return store(np.power(base, wide(b, out.dtype)), out)
        exponent = widen(b).astype(np.uint64) & np.uint64(2**out.dtype.bits - 1)
        power = np.power(base.astype(np.uint64), exponent)
        return store(power.astype(base.dtype), out)

    def population_count(self, out: Tensor, x: Tensor) -> Any:
        """The number of bits that are 1."""
        bits = _bits(x)
        ones = [(bits >> np.uint64(place)) & np.uint64(1) for place in range(x.dtype.bits)]
        return store(sum(ones), out)

    def count_leading_zeros(self, out: Tensor, x: Tensor) -> Any:
        """The number of 0 bits before the first 1."""
        bits = _bits(x)
        length = sum((bits >> np.uint64(place)) != 0 for place in range(x.dtype.bits))
        return store(x.dtype.bits - np.asarray(length, np.int64), out)

    def bitcast(self, out: Tensor, x: Tensor) -> Any:
        """The bits of ``x`` read as another dtype."""
        if out.dtype.bits < 8:
            return store(widen(x), out)
        return np.ascontiguousarray(x.data).view(out.dtype.to_numpy()).reshape(out.shape)

    def complex(self, out: Tensor, a: Tensor, b: Tensor) -> Any:
        """The complex number ``a + bi``."""
        result = np.empty(out.shape, out.dtype.to_numpy())
        with np.errstate(all="ignore"):
            result.real = widen(a)
            result.imag = widen(b)
        return result

    def select(self, out: Tensor, pred: Tensor, on_true: Tensor, on_false: Tensor) -> Any:
        """``on_true`` where ``pred`` is not zero, else ``on_false``."""
        chosen = np.where(widen(pred) != 0, wide(on_true, out.dtype), wide(on_false, out.dtype))
        return store(chosen, out)

    def clip(self, out: Tensor, x: Tensor, lo: Tensor, hi: Tensor) -> Any:
        """``x`` limited to the bounds."""
        lifted = np.maximum(wide(x, out.dtype), wide(lo, out.dtype))
        return store(np.minimum(lifted, wide(hi, out.dtype)), out)
