"""Functions of data types, and what the namespace tells of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import defn as dn
from defn.array_api._array import Array, Number, convert, require, to_device, wrap
from defn.array_api._promotion import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGER,
    KINDS,
    SIGNED,
    as_dtype,
    default_dtype,
    integer_range,
    promote,
    promote_all,
    standard_name,
    with_number,
)

if TYPE_CHECKING:
    from defn import DType

__all__ = [
    "__array_namespace_info__",
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]


class FloatInfo(NamedTuple):
    """The limits of a floating-point data type, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """The limits of an integer data type, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: DType


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The elements in another data type. ``copy=False`` gives the array itself if it has it."""
    tensor = require("astype", x, ALL)
    wanted = as_dtype(dtype)
    if tensor.dtype in COMPLEX and wanted not in COMPLEX:
        raise TypeError(f"astype: the array is complex, {standard_name(wanted)} is not; use real")
    if not copy and wanted == tensor.dtype and device is None:
        return x
    return wrap(to_device(convert(tensor, wanted), device))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a data type is converted to another by promotion."""
    source, target = _dtype(from_), as_dtype(to)
    try:
        return promote(source, target) == target
    except TypeError:
        return False


def _dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, Array) else as_dtype(value)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point data type; of a complex one, those of its parts.

    >>> import defn.array_api as xp
    >>> xp.finfo(xp.float32).eps
    1.1920928955078125e-07
    """
    dtype = _dtype(type)
    if dtype not in FLOATING:
        raise TypeError(f"finfo: {standard_name(dtype)} is not a floating-point data type")
    part = {dn.c64: dn.f32, dn.c128: dn.f64}.get(dtype, dtype)
    limits = dn.constants
    return FloatInfo(
        bits=part.bits,
        eps=float(limits.epsilon(part)),
        max=float(limits.max_finite(part)),
        min=float(limits.min_finite(part)),
        smallest_normal=float(limits.smallest_positive_normal(part)),
        dtype=part,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer data type.

    >>> import defn.array_api as xp
    >>> xp.iinfo(xp.uint8).max
    255
    """
    dtype = _dtype(type)
    if dtype not in INTEGER:
        raise TypeError(f"iinfo: {standard_name(dtype)} is not an integer data type")
    low, high = integer_range(dtype)
    return IntegerInfo(dtype.bits, high, low, dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a data type is of a kind, is another data type, or is or is of one of several.

    >>> import defn.array_api as xp
    >>> xp.isdtype(xp.int8, ("bool", "signed integer"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: {kind!r} is no kind, it must be one of {', '.join(KINDS)}")
        return as_dtype(dtype) in KINDS[kind]
    return as_dtype(dtype) == as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The data type that operands are converted to: arrays, data types and Python numbers."""
    numbers = [value for value in arrays_and_dtypes if isinstance(value, Number)]
    dtypes = [_dtype(value) for value in arrays_and_dtypes if not isinstance(value, Number)]
    if not dtypes:
        raise ValueError("result_type: at least one operand must be an array or a data type")
    result = promote_all(dtypes, "result_type")
    for number in numbers:
        result = with_number(result, number, "result_type")
    return result


class Info:
    """What the namespace can do, and its default data types and devices."""

    def capabilities(self) -> dict[str, Any]:
        """Masks and sizes that depend on values are there outside of traces; axes have no limit."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        """The device of new arrays."""
        return dn.default_backend()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The data types of arrays made of Python numbers, and of positions."""
        return {
            "real floating": default_dtype(float),
            "complex floating": default_dtype(complex),
            "integral": default_dtype(int),
            "indexing": default_dtype(int),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's data types by name, or those of a kind or of several."""
        listed = [dn.bool, *_by_width(SIGNED), *_by_width(INTEGER - SIGNED)]
        listed += [dn.f32, dn.f64, dn.c64, dn.c128]
        return {
            standard_name(dtype): dtype for dtype in listed if kind is None or isdtype(dtype, kind)
        }

    def devices(self) -> list[Any]:
        """The devices that ``to_device`` takes."""
        return list(dict.fromkeys(["cpu", dn.default_backend()]))


def _by_width(dtypes: frozenset[DType]) -> list[DType]:
    return sorted(dtypes, key=lambda dtype: dtype.bits)


def __array_namespace_info__() -> Info:  # noqa: N807
    """What the namespace can do: capabilities, data types and devices."""
    return Info()
