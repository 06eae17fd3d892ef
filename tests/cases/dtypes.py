"""The rules of dtypes, written a second time from their description."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

BOOL = ("bool",)
UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")
SIGNED = ("s2", "s4", "s8", "s16", "s32", "s64")
INTEGERS = UNSIGNED + SIGNED
FLOATS = ("f8_e5m2", "f8_e4m3fn", "f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
# The dtypes whose elements are ordered, are numbers, or have bits to combine.
REAL = BOOL + INTEGERS + FLOATS
REAL_NUMBERS = INTEGERS + FLOATS
NUMBERS = REAL_NUMBERS + COMPLEX
BITWISE = BOOL + INTEGERS
ALL = REAL + COMPLEX

NUMPY: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "bool": np.bool_,
        "u2": ml_dtypes.uint2,
        "u4": ml_dtypes.uint4,
        "u8": np.uint8,
        "u16": np.uint16,
        "u32": np.uint32,
        "u64": np.uint64,
        "s2": ml_dtypes.int2,
        "s4": ml_dtypes.int4,
        "s8": np.int8,
        "s16": np.int16,
        "s32": np.int32,
        "s64": np.int64,
        "f8_e5m2": ml_dtypes.float8_e5m2,
        "f8_e4m3fn": ml_dtypes.float8_e4m3fn,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f32": np.float32,
        "f64": np.float64,
        "c64": np.complex64,
        "c128": np.complex128,
    }.items()
}

BITS = {name: int(name[1:]) for name in INTEGERS} | {
    "bool": 1,
    "f8_e5m2": 8,
    "f8_e4m3fn": 8,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
}

# The distance from 1 to the next float, and the least positive float.
EPSILON = {
    "f8_e5m2": 2.0**-2,
    "f8_e4m3fn": 2.0**-3,
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f32": 2.0**-23,
    "f64": 2.0**-52,
    "c64": 2.0**-23,
    "c128": 2.0**-52,
}
LEAST = {
    "f8_e5m2": 2.0**-16,
    "f8_e4m3fn": 2.0**-9,
    "f16": 2.0**-24,
    "bf16": 2.0**-133,
    "f32": 2.0**-149,
    "f64": 2.0**-1074,
    "c64": 2.0**-149,
    "c128": 2.0**-1074,
}


def is_bool(dtype: str) -> bool:
    return dtype in BOOL


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS


def is_whole(dtype: str) -> bool:
    """Whether all values are whole numbers in a range: integers, and bools as 0 and 1."""
    return is_integer(dtype) or is_bool(dtype)


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_complex(dtype: str) -> bool:
    return dtype in COMPLEX


def limits(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer dtype, or of bool: 0 and 1."""
    bits = BITS[dtype]
    return (0, 2**bits - 1) if dtype not in SIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wide(dtype: str) -> type[np.generic]:
    """The NumPy type that holds the dtype's values exactly, and in which they are computed."""
    if dtype in UNSIGNED or is_bool(dtype):
        return np.uint64
    if dtype in SIGNED:
        return np.int64
    return np.complex128 if is_complex(dtype) else np.float64


def widen(array: np.ndarray, dtype: str) -> np.ndarray:
    return array.astype(wide(dtype))


def narrow(result: Any, dtype: str) -> np.ndarray:
    """Converts a wide result: integers wrap, floats round to nearest even, bool is ``!= 0``."""
    result = np.asarray(result)
    if is_bool(dtype):
        return np.asarray(result != 0)
    with np.errstate(all="ignore"):
        if is_integer(dtype):
            return wrap(result, dtype)
        if is_float(dtype):
            if np.iscomplexobj(result):
                result = result.real
            result = result.astype(np.float64)
            if dtype == "f8_e4m3fn":
                result = np.clip(result, -448.0, 448.0)  # The dtype has no infinity: it saturates.
            return result.astype(NUMPY[dtype])
        return result.astype(NUMPY[dtype])


def wrap(result: np.ndarray, dtype: str) -> np.ndarray:
    """Wraps modulo 2**bits; floats are truncated first, and saturate."""
    if result.dtype.kind in "fc":
        result = truncate(result.real, dtype)
    bits = BITS[dtype]
    unsigned = result.astype(np.int64 if result.dtype.kind in "ib" else np.uint64).astype(np.uint64)
    if bits < 64:
        unsigned &= np.uint64(2**bits - 1)
    if dtype in SIGNED:
        signed = unsigned.astype(np.int64)
        if bits < 64:
            signed = np.where(signed >= 2 ** (bits - 1), signed - 2**bits, signed)
        return signed.astype(NUMPY[dtype])
    return unsigned.astype(NUMPY[dtype])


def truncate(result: np.ndarray, dtype: str) -> np.ndarray:
    """Rounds floats towards zero; NaN becomes 0, and values out of range the nearest limit."""
    low, high = limits(dtype)
    kind = wide(dtype)
    whole = np.trunc(np.nan_to_num(result, nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = (whole >= float(low)) & (whole < float(high))
    safe = np.where(inside, whole, 0.0).astype(kind)
    safe = np.where(whole >= float(high), kind(high), safe)
    return np.where(whole < float(low), kind(low), safe)


# The dtype of a result, from the dtype of the operands.


def to_float(dtype: str) -> str:
    return "f32" if is_integer(dtype) or is_bool(dtype) else dtype


def to_real(dtype: str) -> str:
    return {"c64": "f32", "c128": "f64"}.get(dtype, to_float(dtype))


def to_complex(dtype: str) -> str:
    return "c128" if dtype in ("f64", "c128") else "c64"


def to_number(dtype: str) -> str:
    """Bools are counted as integers."""
    return "s32" if is_bool(dtype) else dtype


def to_sum(dtype: str) -> str:
    dtype = to_number(dtype)
    if dtype in UNSIGNED:
        return "s64" if dtype == "u64" else "u32"
    if dtype in SIGNED:
        return "s64" if dtype == "s64" else "s32"
    return dtype


def merge(a: str, b: str) -> str:
    """The dtype of the result of two operands."""
    if a == b:
        return a
    if is_bool(a) or is_bool(b):
        return b if is_bool(a) else a
    kinds = (kind(a), kind(b))
    if kinds in (("u", "u"), ("s", "s")):
        return a if BITS[a] > BITS[b] else b
    if set(kinds) == {"u", "s"}:
        unsigned, signed = (a, b) if kinds[0] == "u" else (b, a)
        return f"s{max(min(2 * BITS[unsigned], 64), BITS[signed])}"
    if kinds[0] in "us":
        return b
    if kinds[1] in "us":
        return a
    if kinds == ("c", "c"):
        return "c128"
    if "c" in kinds:
        other, number = (a, b) if kinds[1] == "c" else (b, a)
        if other in ("bf16", "f8_e4m3fn"):
            return number
        return f"c{max(2 * BITS[other], BITS[number])}"
    # Two floats: bf16 gives way to any other float, and f8_e4m3fn to any other, including bf16.
    if a in ("bf16", "f8_e4m3fn") or b in ("bf16", "f8_e4m3fn"):
        weakness = {"f8_e4m3fn": 2, "bf16": 1}
        return a if weakness.get(a, 0) < weakness.get(b, 0) else b
    return a if BITS[a] > BITS[b] else b


def kind(dtype: str) -> str:
    """The kind of a number's dtype, by the first letter of its name."""
    return "u" if dtype in UNSIGNED else "s" if dtype in SIGNED else "f" if is_float(dtype) else "c"


RULES = {
    "same": lambda dtype: dtype,
    "float": to_float,
    "real": to_real,
    "complex": to_complex,
    "sum": to_sum,
    "sum float": lambda dtype: to_float(to_sum(dtype)),
    "number": to_number,
    "predicate": lambda dtype: "bool",
    "magnitude": lambda dtype: to_real(dtype) if is_complex(dtype) else dtype,
    "with s32": lambda dtype: merge(dtype, "s32"),
    "bits": lambda dtype: f"u{BITS[dtype]}",
}


def result_dtype(rule: str, dtype: str) -> str:
    return RULES[rule](dtype) if rule in RULES else rule


def close(got: np.ndarray, want: np.ndarray, dtype: str, ulps: float, scale: float) -> np.ndarray:
    """For each element, whether the result is within the tolerance."""
    if is_integer(dtype) or is_bool(dtype):
        return got.astype(wide(dtype)) == want.astype(wide(dtype))
    got, want = got.astype(wide(dtype)), want.astype(wide(dtype))
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        if ulps == 0:
            return same
        size = np.maximum(np.abs(want), scale)
        error = np.abs(got - want)
        return same | (error <= ulps * np.maximum(EPSILON[dtype] * size, LEAST[dtype]))
