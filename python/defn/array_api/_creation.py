"""Functions that create arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import defn as dn
from defn.array_api._array import Array, Number, new_array, require, to_device, wrap
from defn.array_api._promotion import (
    ALL,
    INTEGER,
    as_dtype,
    default_dtype,
    promote_all,
    standard_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Array:
    """An array of numbers, nested lists, an array of another library, or a tensor.

    A tensor is used as it is. Python integers become int64, floats float64, complex numbers
    complex128. ``copy=False`` raises ``ValueError`` where a copy is needed.

    >>> import defn.array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float32)
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return new_array(obj, dtype, device, copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of an object with ``__dlpack__``, which shares its memory unless ``copy``."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} has no method __dlpack__; use asarray")
    if isinstance(x, Array):
        return new_array(x, None, device, copy)
    try:
        tensor = dn.tensor(_Exporter(x), copy=False if copy is None else copy)
    except dn.OptionError as error:
        raise ValueError(f"from_dlpack: {error}") from error
    return wrap(to_device(tensor, device))


class _Exporter:
    """An object of which only the DLPack methods are seen."""

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter

    def __dlpack__(self, **options: Any) -> Any:
        return self._exporter.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._exporter.__dlpack_device__()


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (int(shape),) if hasattr(shape, "__index__") else tuple(int(n) for n in shape)  # pyright: ignore


def full(
    shape: int | tuple[int, ...], fill_value: Number, *, dtype: Any = None, device: Any = None
) -> Array:
    """An array with one value at every position."""
    value = new_array(fill_value, dtype, device, None)._tensor
    return wrap(dn.broadcast(value, _sizes(shape)))


def zeros(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    """An array of zeros, float64 unless another data type is given."""
    return full(shape, _number(0, dtype), dtype=dtype or default_dtype(float), device=device)


def ones(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    """An array of ones, float64 unless another data type is given."""
    return full(shape, _number(1, dtype), dtype=dtype or default_dtype(float), device=device)


def empty(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    """An array whose elements are not specified. They are zeros."""
    return zeros(shape, dtype=dtype, device=device)


def _number(value: int, dtype: Any) -> Number:
    return bool(value) if dtype is not None and as_dtype(dtype) == dn.bool else value


def full_like(x: Array, /, fill_value: Number, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of the shape of another, with one value at every position."""
    require("full_like", x, ALL)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros of the shape and data type of another array."""
    require("zeros_like", x, ALL)
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones of the shape and data type of another array."""
    require("ones_like", x, ALL)
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of the shape and data type of another. The elements are zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """Numbers from ``start`` up to but without ``stop``; with one number, from 0 up to it.

    Element ``i`` is ``start + i * step``.

    >>> import defn.array_api as xp
    >>> xp.arange(1, 10, 3)
    Array([1, 4, 7], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step is 0, it must be another number")
    whole = all(isinstance(number, int) for number in (start, stop, step))
    wanted = as_dtype(dtype) if dtype is not None else default_dtype(int if whole else float)
    count = max(0, -((start - stop) // step) if whole else math.ceil((stop - start) / step))
    if wanted in INTEGER:
        position = dn.iota((int(count),), dtype=dn.s64)
        if not whole:
            raise TypeError(f"arange: a float does not step through {standard_name(wanted)}")
        values = dn.as_type(position * dn.s64(int(step)) + dn.s64(int(start)), wanted)
    else:
        position = dn.iota((int(count),), dtype=dn.f64)
        values = dn.as_type(position * dn.f64(step) + dn.f64(start), wanted)
    return wrap(to_device(values, device))


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which ``endpoint`` includes.

    >>> import defn.array_api as xp
    >>> xp.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    kind = complex if isinstance(start, complex) or isinstance(stop, complex) else float
    wanted = as_dtype(dtype) if dtype is not None else default_dtype(kind)
    parts = num - 1 if endpoint else num
    working = default_dtype(kind)
    position = dn.as_type(dn.iota((num,), dtype=dn.f64), working)
    first, last = (dn.tensor(number, dtype=working) for number in (start, stop))
    values = position * ((last - first) / max(parts, 1)) + first
    if endpoint and num > 1:
        # The last number is `stop` itself, whatever the rounding of the distance.
        values = values.at[-1].set(last)
    return wrap(to_device(dn.as_type(values, wanted), device))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Array:
    """Ones on diagonal ``k``, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    wanted = as_dtype(dtype) if dtype is not None else default_dtype(float)
    shape = (n_rows, columns)
    row, column = (dn.iota(shape, axis=axis, dtype=dn.s64) for axis in (0, 1))
    ones = dn.equal(row + dn.s64(_offset(n_rows, columns, k)), column)
    return wrap(to_device(dn.as_type(ones, wanted), device))


def _offset(rows: int, columns: int, k: int) -> int:
    """The diagonal ``k``, or for one outside of the matrix the nearest of those."""
    return min(max(k, -rows), columns)


def _triangle(name: str, x: Array, k: int, lower: bool) -> Tensor:
    tensor = require(name, x, ALL)
    if tensor.ndim < 2:
        raise ValueError(f"{name}: the array has {tensor.ndim} axes, it must have at least 2")
    rows, columns = tensor.shape[-2:]
    return (dn.tril if lower else dn.triu)(tensor, _offset(rows, columns, k))


def tril(x: Array, /, *, k: int = 0) -> Array:
    """The lower triangles of matrices up to diagonal ``k``, with zeros above."""
    return wrap(_triangle("tril", x, k, True))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """The upper triangles of matrices from diagonal ``k``, with zeros below."""
    return wrap(_triangle("triu", x, k, False))


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """The coordinates of the points of a grid, one array for each vector."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing is {indexing!r}, it must be "xy" or "ij"')
    tensors = [require("meshgrid", array, ALL) for array in arrays]
    if any(tensor.ndim > 1 for tensor in tensors):
        raise ValueError("meshgrid: every array must have one axis")
    if tensors:
        promote_all([tensor.dtype for tensor in tensors], "meshgrid")
    vectors = [dn.reshape(tensor, (-1,)) for tensor in tensors]
    grids = dn.meshgrid(*vectors, indexing=indexing) if vectors else ()
    return tuple(wrap(grid) for grid in grids)
