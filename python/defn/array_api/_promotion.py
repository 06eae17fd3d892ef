"""The data types of the standard, and which of them operations may combine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import defn as dn
from defn import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

    from defn import DType

__all__ = [
    "ALL",
    "BOOL",
    "COMPLEX",
    "FLOATING",
    "INTEGER",
    "INTEGER_OR_BOOL",
    "KINDS",
    "NUMERIC",
    "REAL",
    "REAL_FLOATING",
    "SIGNED",
    "UNSIGNED",
    "as_dtype",
    "default_dtype",
    "integer_range",
    "promote",
    "promote_all",
    "standard_name",
    "with_number",
]

BOOL = frozenset([dn.bool])
SIGNED = frozenset([dn.s8, dn.s16, dn.s32, dn.s64])
UNSIGNED = frozenset([dn.u8, dn.u16, dn.u32, dn.u64])
INTEGER = SIGNED | UNSIGNED
# The standard knows f32 and f64; arrays of the other floats come from tensors.
REAL_FLOATING = frozenset([dn.f8_e5m2, dn.f8_e4m3fn, dn.f16, dn.bf16, dn.f32, dn.f64])
COMPLEX = frozenset([dn.c64, dn.c128])
FLOATING = REAL_FLOATING | COMPLEX
REAL = INTEGER | REAL_FLOATING
NUMERIC = REAL | COMPLEX
INTEGER_OR_BOOL = INTEGER | BOOL
ALL = NUMERIC | BOOL

KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGER,
    "real floating": REAL_FLOATING,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}

_SIGNED_OF = {8: dn.s8, 16: dn.s16, 32: dn.s32, 64: dn.s64}
_NAMES = {
    dn.s8: "int8",
    dn.s16: "int16",
    dn.s32: "int32",
    dn.s64: "int64",
    dn.u8: "uint8",
    dn.u16: "uint16",
    dn.u32: "uint32",
    dn.u64: "uint64",
    dn.f32: "float32",
    dn.f64: "float64",
    dn.c64: "complex64",
    dn.c128: "complex128",
}


def standard_name(dtype: DType) -> str:
    """The standard's name of a data type."""
    return _NAMES.get(dtype, str(dtype))


def as_dtype(value: Any) -> DType:
    """A data type by its name, NumPy's or ours."""
    return value if isinstance(value, dn.DType) else dn.dtype(value)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer data type."""
    if dtype in UNSIGNED:
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def default_dtype(kind: type) -> DType:
    """The data type of arrays that are made of Python numbers of a kind.

    The option ``default_float`` says that of floats, and complex numbers have two of them.
    """
    if kind is float or kind is complex:
        real = _core.default_float()
        return real if kind is float else {dn.f32: dn.c64, dn.f64: dn.c128}[real]
    return dn.bool if kind is bool else dn.s64


def promote(left: DType, right: DType, function: str = "result_type") -> DType:
    """The data type that both are converted to.

    Raises ``TypeError`` where the standard defines none: between kinds, and of uint64 and a signed
    integer.
    """
    if left == right:
        return left
    if left in INTEGER and right in INTEGER:
        if (left in SIGNED) == (right in SIGNED):
            return left if left.bits > right.bits else right
        signed, unsigned = (left, right) if left in SIGNED else (right, left)
        wide = signed.bits if signed.bits > unsigned.bits else 2 * unsigned.bits
        if wide in _SIGNED_OF:
            return _SIGNED_OF[wide]
    elif left in REAL_FLOATING and right in REAL_FLOATING:
        if left.bits != right.bits:
            return left if left.bits > right.bits else right
        # Two formats of equal width: neither holds the values of the other.
        return dn.f32
    elif left in FLOATING and right in FLOATING:
        return dn.c128 if dn.f64 in (left, right) or dn.c128 in (left, right) else dn.c64
    raise TypeError(
        f"{function}: the standard has no common data type of {standard_name(left)} and "
        f"{standard_name(right)}; convert one with astype"
    )


def promote_all(dtypes: Iterable[DType], function: str) -> DType:
    """The data type that all are converted to."""
    first, *others = dtypes
    for other in others:
        first = promote(first, other, function)
    return first


def with_number(dtype: DType, number: complex, function: str) -> DType:
    """The data type of an operation of an array and a Python number.

    Raises ``TypeError`` for a number of a kind that the array cannot take.
    """
    if isinstance(number, bool):
        fits = dtype in BOOL
    elif isinstance(number, int):
        fits = dtype in NUMERIC
    elif isinstance(number, float):
        fits = dtype in FLOATING
    else:
        fits = dtype in FLOATING
        if dtype in REAL_FLOATING:
            return dn.c128 if dtype == dn.f64 else dn.c64
    if not fits:
        raise TypeError(
            f"{function}: a Python {type(number).__name__} does not combine with an array of "
            f"{standard_name(dtype)}; convert the array with astype"
        )
    return dtype
