"""Functions that sort, search and compare as sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import defn as dn
from defn.array_api._array import Array, Number, convert, operands, require, wrap
from defn.array_api._manipulation import one_axis
from defn.array_api._promotion import ALL, BOOL, INTEGER, REAL

if TYPE_CHECKING:
    from typing import Literal

    from defn import Tensor

__all__ = [
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


class UniqueAll(NamedTuple):
    """The distinct elements, with what ``unique_all`` tells of them."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The distinct elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The distinct elements, and the position of each element among them."""

    values: Array
    inverse_indices: Array


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis; NaN is last, or first if they descend."""
    tensor = require("sort", x, REAL)
    if not tensor.ndim:
        return x
    direction = "desc" if descending else "asc"
    at = one_axis("sort", axis, tensor.ndim)
    return wrap(dn.sort(tensor, at, direction=direction, stable=stable))


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The positions that sort the elements along an axis. Equal elements keep their order."""
    tensor = require("argsort", x, REAL)
    if not tensor.ndim:
        return wrap(dn.tensor(0, dtype=dn.s64))
    direction = "desc" if descending else "asc"
    at = one_axis("argsort", axis, tensor.ndim)
    return wrap(dn.argsort(tensor, at, direction=direction, stable=stable, dtype=dn.s64))


def _with_values(name: str, x: Array, ours: str) -> Tensor:
    """The tensor of an array whose values decide the size of a result."""
    tensor = require(name, x, ALL)
    if tensor.is_traced:
        raise dn.TraceError(
            f"{name}: the array is being traced and has no values yet, which decide the size of "
            f"the result; use dn.{ours} with size=n"
        )
    return tensor


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The positions of the elements that are not 0, an array for each axis.

    Their number depends on the values, so that the array must not be traced.
    """
    tensor = _with_values("nonzero", x, "nonzero")
    if not tensor.ndim:
        raise ValueError("nonzero: the array has no axes, it must have at least one")
    return tuple(_int64(found) for found in dn.nonzero(tensor))


def _int64(positions: Tensor) -> Array:
    return wrap(convert(positions, dn.s64))


def where(condition: Array, x1: Array | Number, x2: Array | Number, /) -> Array:
    """The elements of ``x1`` where the condition is true, and those of ``x2`` elsewhere.

    >>> import defn.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    Array([1, 0], dtype=int64)
    """
    mask = require("where", condition, BOOL)
    first, second = operands("where", x1, x2, ALL)
    return wrap(dn.select(mask, first, second))


def searchsorted(
    x1: Array,
    x2: Array | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """The positions in an ordered vector at which values belong.

    ``side`` is that of equal elements. ``sorter`` has the positions that order ``x1``.
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side is {side!r}, it must be "left" or "right"')
    ordered, values = operands("searchsorted", x1, x2, REAL)
    if ordered.ndim != 1:
        raise ValueError(f"searchsorted: x1 has {ordered.ndim} axes, it must have 1")
    if sorter is not None:
        ordered = dn.take(ordered, require("searchsorted", sorter, INTEGER), axis=0)
    return wrap(dn.as_type(dn.searchsorted(ordered, values, side), dn.s64))


def unique_all(x: Array, /) -> UniqueAll:
    """The distinct elements in order, the first position and the number of each, and its position
    for each element of the array.

    The number of elements depends on the values, so that the array must not be traced. Each NaN is
    distinct.
    """
    values, *positions = dn.unique_all(_with_values("unique_all", x, "unique"))
    indices, inverse, counts = map(_int64, positions)
    return UniqueAll(wrap(values), indices, inverse, counts)


def unique_counts(x: Array, /) -> UniqueCounts:
    """The distinct elements in order, and the number of each."""
    values, counts = dn.unique_counts(_with_values("unique_counts", x, "unique"))
    return UniqueCounts(wrap(values), _int64(counts))


def unique_inverse(x: Array, /) -> UniqueInverse:
    """The distinct elements in order, and the position among them of each element."""
    values, inverse = dn.unique_inverse(_with_values("unique_inverse", x, "unique"))
    return UniqueInverse(wrap(values), _int64(inverse))


def unique_values(x: Array, /) -> Array:
    """The distinct elements in order.

    >>> import defn.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    return wrap(dn.unique_values(_with_values("unique_values", x, "unique")))


def isin(x1: Array | Number, x2: Array | Number, /, *, invert: bool = False) -> Array:
    """Whether each element of ``x1`` is one of ``x2``; ``invert`` negates. NaN is none."""
    values, among = operands("isin", x1, x2, ALL)
    return wrap(dn.isin(values, among, invert=invert))
