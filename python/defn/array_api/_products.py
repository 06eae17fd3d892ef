"""Products of matrices and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import defn as dn
from defn.array_api._array import Array, convert, operands, require, wrap
from defn.array_api._manipulation import broadcast_shapes, one_axis
from defn.array_api._promotion import ALL, NUMERIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn import Tensor

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Array, x2: Array, /) -> Array:
    """The products of matrices in the last two axes; a vector is a row or a column.

    >>> import defn.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    Array([3, 7], dtype=int64)
    """
    left, right = _both("matmul", x1, x2)
    if not left.ndim or not right.ndim:
        raise ValueError("matmul: an array has no axes; use multiply to scale by a number")
    return wrap(convert(left @ right, left.dtype))


def _both(function: str, x1: Array, x2: Array) -> tuple[Tensor, Tensor]:
    for x in (x1, x2):
        require(function, x, NUMERIC)
    return operands(function, x1, x2, NUMERIC)


def matrix_transpose(x: Array, /) -> Array:
    """The array with its last two axes exchanged."""
    tensor = require("matrix_transpose", x, ALL)
    if tensor.ndim < 2:
        raise ValueError(
            f"matrix_transpose: the array has {tensor.ndim} axes, it must have at least 2"
        )
    return wrap(tensor.mT)


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """The sums of products over axes: the last of ``x1`` and the first of ``x2``, or lists."""
    left, right = _both("tensordot", x1, x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(left.ndim, right.ndim):
            raise ValueError(f"tensordot: axes is {axes}, arrays have {left.ndim} and {right.ndim}")
        first, second = list(range(left.ndim - axes, left.ndim)), list(range(axes))
    else:
        first = [one_axis("tensordot", axis, left.ndim) for axis in axes[0]]
        second = [one_axis("tensordot", axis, right.ndim) for axis in axes[1]]
    return wrap(convert(dn.tensordot(left, right, (first, second)), left.dtype))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sums of products along an axis, of the conjugates of ``x1``."""
    left, right = _both("vecdot", x1, x2)
    if not -min(left.ndim, right.ndim) <= axis < 0:
        raise ValueError(
            f"vecdot: axis is {axis}, it must count from the end and be one of both arrays"
        )
    if left.shape[axis] != right.shape[axis]:
        raise ValueError(f"vecdot: the axis has sizes {left.shape[axis]} and {right.shape[axis]}")
    broadcast_shapes(left.shape, right.shape)
    return wrap(convert(dn.vecdot(left, right, axis=axis), left.dtype))
