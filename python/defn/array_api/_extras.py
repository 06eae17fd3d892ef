"""Functions of NumPy's names and meaning that the standard does not have.

Libraries that follow the standard look for some functions beyond it: xarray asks the namespace for
those that skip NaN, and for ``einsum``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import defn as dn
from defn.array_api._array import Array, convert, require, wrap
from defn.array_api._manipulation import axes_of, together
from defn.array_api._promotion import ALL, REAL, REAL_FLOATING, as_dtype
from defn.array_api._reductions import (
    argmax,
    argmin,
    cumulative_prod,
    cumulative_sum,
    prod,
    sum,
)

if TYPE_CHECKING:
    from defn import Tensor

__all__ = [
    "einsum",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]

Axis = int | tuple[int, ...] | None


def _filled(function: str, x: Array, value: float) -> Array:
    """The array with a value in place of NaN."""
    tensor = require(function, x, REAL)
    if tensor.dtype not in REAL_FLOATING:
        return x
    return wrap(dn.select(dn.is_nan(tensor), dn.tensor(value, dtype=tensor.dtype), tensor))


def _converted(function: str, x: Array, dtype: Any) -> Array:
    return x if dtype is None else wrap(convert(require(function, x, REAL), as_dtype(dtype)))


def _counts(tensor: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    """How many elements are not NaN, in the data type of the elements."""
    counted = dn.as_type(dn.logical_not(dn.is_nan(tensor)), tensor.dtype)
    return dn.sum(counted, axes, keep_axes=keepdims)


def nansum(x: Array, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The sum of the elements that are not NaN.

    >>> import defn.array_api as xp
    >>> xp.nansum(xp.asarray([1.0, xp.nan, 2.0]))
    Array(3., dtype=float64)
    """
    return sum(_filled("nansum", x, 0.0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Array, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The product of the elements that are not NaN."""
    return prod(_filled("nanprod", x, 1.0), axis=axis, dtype=dtype, keepdims=keepdims)


def _extreme(name: str, fun: Any, x: Array, axis: Axis, keepdims: bool) -> Array:
    tensor = require(name, x, REAL)
    return wrap(fun(tensor, axes_of(name, axis, tensor.ndim), keep_axes=keepdims))


def nanmax(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The greatest of the elements that are not NaN; NaN if all are."""
    return _extreme("nanmax", dn.nanmax, x, axis, keepdims)


def nanmin(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The least of the elements that are not NaN; NaN if all are."""
    return _extreme("nanmin", dn.nanmin, x, axis, keepdims)


def nanmean(x: Array, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The mean of the elements that are not NaN; NaN if all are."""
    x = _converted("nanmean", x, dtype)
    tensor = require("nanmean", x, REAL_FLOATING)
    axes = axes_of("nanmean", axis, tensor.ndim)
    return wrap(dn.nanmean(tensor, axes, keep_axes=keepdims))


def nanvar(
    x: Array, /, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False
) -> Array:
    """The squared deviations of the elements that are not NaN, over their number less ``ddof``."""
    x = _converted("nanvar", x, dtype)
    tensor = require("nanvar", x, REAL_FLOATING)
    axes = axes_of("nanvar", axis, tensor.ndim)
    deviations = tensor - nanmean(x, axis=axis, keepdims=True)._tensor
    squares = wrap(dn.multiply(deviations, deviations))
    rest = _counts(tensor, axes, keepdims) - dn.tensor(float(ddof), dtype=tensor.dtype)
    total = nansum(squares, axis=axis, keepdims=keepdims)._tensor
    # As NumPy does, NaN where nothing is left to divide by.
    return wrap(dn.select(dn.greater(rest, 0), total / rest, dn.constants.nan(tensor.dtype)))


def nanstd(
    x: Array, /, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False
) -> Array:
    """The square root of ``nanvar``."""
    return wrap(dn.sqrt(nanvar(x, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)._tensor))


def nanmedian(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The middle of the elements that are not NaN in order, or the mean of the middle two."""
    tensor = require("nanmedian", x, REAL_FLOATING)
    axes = axes_of("nanmedian", axis, tensor.ndim)
    others = [i for i in range(tensor.ndim) if i not in axes]
    lead = [tensor.shape[i] for i in others]
    lines = dn.reshape(dn.transpose(tensor, axes=[*others, *axes]), [*lead, -1])
    out = dn.nanmedian(lines, -1, keep_axis=False)
    kept = [1 if i in axes else tensor.shape[i] for i in range(tensor.ndim)]
    return wrap(dn.reshape(out, kept if keepdims else lead))


def _place(name: str, fun: Any, x: Array, axis: int | None, keepdims: bool, limit: float) -> Array:
    tensor = require(name, x, REAL)
    if tensor.dtype in REAL_FLOATING and not tensor.is_traced:
        counts = _counts(tensor, axes_of(name, axis, tensor.ndim), False)
        if bool(dn.any(dn.equal(counts, 0))):
            raise ValueError(f"{name}: all elements of a line are NaN, so that none has a position")
    return fun(_filled(name, x, limit), axis=axis, keepdims=keepdims)


def nanargmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The position of the greatest of the elements that are not NaN.

    Where all are, it raises ``ValueError``, and gives 0 while it is traced.
    """
    return _place("nanargmax", argmax, x, axis, keepdims, float("-inf"))


def nanargmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The position of the least of the elements that are not NaN. See ``nanargmax``."""
    return _place("nanargmin", argmin, x, axis, keepdims, float("inf"))


def nancumsum(x: Array, /, axis: int | None = None, dtype: Any = None) -> Array:
    """The sums of the elements up to each, with NaN as 0."""
    filled, at = _line("nancumsum", x, axis, 0.0)
    return cumulative_sum(filled, axis=at, dtype=dtype)


def nancumprod(x: Array, /, axis: int | None = None, dtype: Any = None) -> Array:
    """The products of the elements up to each, with NaN as 1."""
    filled, at = _line("nancumprod", x, axis, 1.0)
    return cumulative_prod(filled, axis=at, dtype=dtype)


def _line(function: str, x: Array, axis: int | None, value: float) -> tuple[Array, int]:
    """The array without NaN, and the axis; without one, all elements in a row."""
    filled = _filled(function, x, value)
    if axis is None:
        return wrap(dn.reshape(filled._tensor, (-1,))), 0
    return filled, axis


def einsum(subscripts: str, /, *operands: Array, **_: Any) -> Array:
    """Sums of products in the notation of Einstein; see ``dn.einsum``.

    Truth values count as 0 and 1.

    >>> import defn.array_api as xp
    >>> xp.einsum("ij,j->i", xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    Array([3, 7], dtype=int64)
    """
    numbers = [x for x in operands if require("einsum", x, ALL).dtype != dn.bool]
    common = together("einsum", numbers)[0].dtype if numbers else dn.s64
    tensors = [convert(x._tensor, common) for x in operands]
    return wrap(convert(dn.einsum(subscripts, *tensors), tensors[0].dtype))
