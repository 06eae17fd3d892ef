"""Arrays of a dtype: the type they are computed in, and the conversion of results to elements.

Values are stored as NumPy arrays of the dtype's own type (from ``ml_dtypes`` if NumPy lacks it).
The computation uses a type that holds them exactly and is at least as wide: int64 or uint64 for
integers, uint64 for bools, which are 0 and 1, float64 for floats, complex128 for complex numbers.
Double rounding of +, -, *, / and sqrt is harmless, because float64 has more than twice the digits
of float32 plus two.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn._core import DType, Tensor

    Array = np.ndarray[Any, Any]

__all__ = ["cast", "extremes", "quiet", "store", "wide", "wide_type", "widen", "width"]

_WIDE = {
    "bool": np.dtype(np.uint64),
    "unsigned": np.dtype(np.uint64),
    "signed": np.dtype(np.int64),
    "float": np.dtype(np.float64),
    "complex": np.dtype(np.complex128),
}


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without NumPy's warnings: overflow wraps, and NaN is a valid result."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return call


def wide_type(dtype: DType) -> np.dtype[Any]:
    """The type in which elements of a dtype are computed."""
    return _WIDE[dtype.kind]


def width(dtype: DType) -> int:
    """The number of bits of an integer."""
    return dtype.bits


def widen(x: Tensor) -> Array:
    """The elements of a tensor, in the type in which its dtype is computed."""
    return np.asarray(x.data).astype(wide_type(x.dtype))


def wide(x: Tensor, dtype: DType) -> Array:
    """The elements of a tensor converted to a dtype, in the type in which that is computed."""
    if x.dtype == dtype:
        return widen(x)
    return np.asarray(cast(widen(x), dtype).astype(wide_type(dtype)))


def extremes(dtype: DType) -> tuple[Any, Any]:
    """The least and the greatest value; infinite if the dtype has infinities."""
    if dtype == "f8_e4m3fn":
        return -448.0, 448.0
    if dtype.kind == "float":
        return -np.inf, np.inf
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "unsigned":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def store(result: Any, out: Tensor) -> Array:
    """A result as the data of ``out``: rounded, wrapped or saturated to its dtype."""
    return cast(np.asarray(result), out.dtype).reshape(out.shape)


@quiet
def cast(x: Array, dtype: DType) -> Array:
    """A wide array, or a bool array, in a dtype, by the rules of ``as_type``."""
    if dtype.kind == "bool":
        return np.asarray(x != 0)
    if x.dtype == np.bool_:
        x = x.astype(np.uint64)
    kind = dtype.to_numpy()
    if dtype.kind == "complex":
        return x.astype(kind)
    if x.dtype.kind == "c":
        x = x.real
    if dtype.kind == "float":
        return _to_float(x, dtype)
    if x.dtype.kind == "f":
        x = _truncated(x, dtype)
    return _wrapped(x, dtype).astype(kind)


def _wrapped(x: Array, dtype: DType) -> Array:
    """Integers modulo 2**bits."""
    if dtype.bits >= 8:
        return x
    low = x.astype(np.uint64) & np.uint64(2**dtype.bits - 1)
    if dtype.kind == "unsigned":
        return low
    low = low.astype(np.int64)
    return np.where(low >= 2 ** (dtype.bits - 1), low - 2**dtype.bits, low)


def _truncated(x: Array, dtype: DType) -> Array:
    """Floats as integers: truncated, NaN as 0, and values out of range as the nearest limit."""
    low, high = extremes(dtype)
    kind = wide_type(dtype)
    # The limits may round up as floats: values not below the upper limit are out of range.
    inside = (x > float(low) - 1) & (x < float(high))
    result = np.where(inside, x, 0.0).astype(kind)
    result = np.where(x >= float(high), kind.type(high), result)
    return np.where(x <= float(low), kind.type(low), result)


def _to_float(x: Array, dtype: DType) -> Array:
    if dtype == "f64" or (dtype == "f32" and x.dtype != np.float64):
        return x.astype(dtype.to_numpy())
    if x.dtype.kind in "iu":
        x = _sticky(x).astype(np.float64)
    if dtype == "f32":
        return x.astype(np.float32)
    x = _odd(x)
    if dtype == "f8_e4m3fn":
        x = np.clip(x, -448.0, 448.0)
    return x.astype(dtype.to_numpy())


def _sticky(x: Array) -> Array:
    """Integers whose bits beyond float64 are ORed into one sticky bit, for later rounding."""
    if x.dtype == np.uint64:
        is_large, low, bit = x >= np.uint64(2**53), np.uint64(0xFFF), np.uint64(0x800)
    else:
        is_large, low, bit = np.abs(x) >= 2**53, np.int64(0xFFF), np.int64(0x800)
    return np.where(is_large, (x & ~low) | np.where((x & low) != 0, bit, x.dtype.type(0)), x)


def _odd(x: Array) -> Array:
    """float64 as float32, rounded to odd. Rounding the result to fewer bits rounds ``x`` once.

    Sylvie Boldo, Guillaume Melquiond: Emulation of a FMA and Correctly Rounded Sums: Proved
    Algorithms Using Rounding to Odd (2008).
    """
    near = np.asarray(x.astype(np.float32))
    finite = np.isfinite(x) & (np.abs(x) <= np.finfo(np.float32).max)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    below = np.where(beyond, np.nextafter(near, np.float32(0)), near).astype(np.float32)
    is_exact = below.astype(np.float64) == x
    odd = (below.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where(finite & ~is_exact, odd, near).astype(np.float32)
