"""Functions that reduce axes, and running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import defn as dn
from defn.array_api._array import Array, convert, require, wrap
from defn.array_api._manipulation import axes_of, one_axis
from defn.array_api._promotion import (
    ALL,
    BOOL,
    FLOATING,
    REAL,
    REAL_FLOATING,
    SIGNED,
    UNSIGNED,
    as_dtype,
    promote,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn import DType, Tensor

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axis = int | tuple[int, ...] | None


def _wide(dtype: DType) -> DType:
    """The data type of a sum: integers are added in 64 bits, and truth values are 0 and 1."""
    return dn.s64 if dtype in SIGNED | BOOL else dn.u64 if dtype in UNSIGNED else dtype


def _reduced(
    function: str, fun: Callable[..., Tensor], tensor: Tensor, axis: Axis, keepdims: bool
) -> Tensor:
    return fun(tensor, axes_of(function, axis, tensor.ndim), keep_axes=keepdims)


def _summed(
    function: str, fun: Callable[..., Tensor], x: Array, axis: Axis, dtype: Any, keepdims: bool
) -> Array:
    tensor = require(function, x, ALL)
    wanted = _wide(tensor.dtype) if dtype is None else as_dtype(dtype)
    total = _reduced(function, fun, convert(tensor, wanted), axis, keepdims)
    return wrap(convert(total, wanted))


def sum(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The sum of the elements; integers are added in 64 bits.

    >>> import defn.array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]], dtype=xp.int8), axis=0)
    Array([4, 6], dtype=int64)
    """
    return _summed("sum", dn.sum, x, axis, dtype, keepdims)


def prod(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The product of the elements; integers are multiplied in 64 bits."""
    return _summed("prod", dn.product, x, axis, dtype, keepdims)


def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The greatest element; NaN if one is."""
    return wrap(_reduced("max", dn.reduce_max, require("max", x, REAL), axis, keepdims))


def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The least element; NaN if one is."""
    return wrap(_reduced("min", dn.reduce_min, require("min", x, REAL), axis, keepdims))


def mean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The arithmetic mean."""
    tensor = require("mean", x, FLOATING)
    axes = axes_of("mean", axis, tensor.ndim)
    return wrap(_mean(tensor, axes, keepdims))


def _mean(tensor: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    """The mean, which is NaN without elements, as in NumPy; ``dn.mean`` refuses that."""
    if 0 in (tensor.shape[axis] for axis in axes):
        return dn.sum(tensor, axes, keep_axes=keepdims) / dn.tensor(0, dtype=tensor.dtype)
    return dn.mean(tensor, axes, keep_axes=keepdims)


def var(
    x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The squared deviations from the mean, over the number of elements less a correction."""
    return wrap(_variance("var", x, axis, correction, keepdims))


def std(
    x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The square root of ``var``."""
    return wrap(dn.sqrt(_variance("std", x, axis, correction, keepdims)))


def _variance(function: str, x: Array, axis: Axis, correction: float, keepdims: bool) -> Tensor:
    tensor = require(function, x, REAL_FLOATING)
    axes = axes_of(function, axis, tensor.ndim)
    count = 1
    for one in axes:
        count *= tensor.shape[one]
    deviations = tensor - _mean(tensor, axes, keepdims=True)
    total = dn.sum(dn.multiply(deviations, deviations), axes, keep_axes=keepdims)
    rest = count - correction
    # As NumPy does, NaN or infinite where nothing is left to divide by.
    return total / dn.tensor(float(rest if rest > 0 else 0), dtype=tensor.dtype)


def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether all elements are true, or not 0."""
    return wrap(_truth("all", dn.all, x, axis, keepdims))


def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether an element is true, or not 0."""
    return wrap(_truth("any", dn.any, x, axis, keepdims))


def _truth(
    function: str, fun: Callable[..., Tensor], x: Array, axis: Axis, keepdims: bool
) -> Tensor:
    return _reduced(function, fun, require(function, x, ALL), axis, keepdims)


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements that are not 0."""
    tensor = require("count_nonzero", x, ALL)
    return wrap(
        convert(_reduced("count_nonzero", dn.count_nonzero, tensor, axis, keepdims), dn.s64)
    )


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The position of the greatest element along an axis, or in the flattened array."""
    return _position("argmax", dn.argmax, x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The position of the least element along an axis, or in the flattened array."""
    return _position("argmin", dn.argmin, x, axis, keepdims)


def _position(
    function: str, fun: Callable[..., Tensor], x: Array, axis: int | None, keepdims: bool
) -> Array:
    tensor = require(function, x, REAL)
    if axis is None:
        at = fun(dn.reshape(tensor, (-1,)), axis=0, dtype=dn.s64)
        return wrap(dn.reshape(at, (1,) * tensor.ndim) if keepdims else at)
    one = one_axis(function, axis, tensor.ndim)
    return wrap(fun(tensor, axis=one, keep_axis=keepdims, dtype=dn.s64))


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The sums of the elements up to each; ``include_initial`` begins with 0.

    >>> import defn.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64)
    """
    return _running("cumulative_sum", dn.cumulative_sum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The products of the elements up to each; ``include_initial`` begins with 1."""
    return _running("cumulative_prod", dn.cumulative_product, 1, x, axis, dtype, include_initial)


def _running(
    function: str,
    fun: Callable[..., Tensor],
    initial: int,
    x: Array,
    axis: int | None,
    dtype: Any,
    include_initial: bool,
) -> Array:
    tensor = require(function, x, ALL)
    if axis is None and tensor.ndim != 1:
        raise ValueError(f"{function}: the array has {tensor.ndim} axes; say which by axis")
    at = one_axis(function, axis or 0, tensor.ndim)
    wanted = _wide(tensor.dtype) if dtype is None else as_dtype(dtype)
    out = fun(convert(tensor, wanted), axis=at)
    if include_initial:
        shape = [*tensor.shape[:at], 1, *tensor.shape[at + 1 :]]
        first = dn.broadcast(dn.tensor(initial, dtype=wanted), shape)
        out = dn.concatenate([first, out], axis=at)
    return wrap(out)


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """The differences of neighbours along an axis, ``n`` times."""
    tensor = require("diff", x, ALL - BOOL)
    at = one_axis("diff", axis, tensor.ndim)
    parts = [tensor]
    if prepend is not None:
        parts.insert(0, require("diff", prepend, ALL - BOOL))
    if append is not None:
        parts.append(require("diff", append, ALL - BOOL))
    if len(parts) > 1:
        dtype = tensor.dtype
        for part in parts:
            dtype = promote(dtype, part.dtype, "diff")
        tensor = dn.concatenate([convert(part, dtype) for part in parts], axis=at)
    if n < 0:
        raise ValueError(f"diff: n is {n}, it must not be negative")
    size = tensor.shape[at]
    return wrap(dn.diff(tensor, order=n if n < size else size, axis=at))
