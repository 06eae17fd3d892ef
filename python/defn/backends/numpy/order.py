"""Callbacks that sort elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import store, widen

if TYPE_CHECKING:
    from defn._core import Tensor

__all__ = ["Order", "in_order"]


def in_order(x: Any, axis: int, direction: str) -> Any:
    """The indices that sort an array: stable, NaN greatest."""
    if direction == "asc":
        return np.argsort(x, axis, kind="stable")
    last = x.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


class Order:
    """Sorting; stable, with NaN above every number."""

    def sort(self, out: Tensor, x: Tensor, *, axis: int, direction: str) -> Any:
        """``x`` sorted along an axis."""
        order = in_order(widen(x), axis, direction)
        return np.take_along_axis(x.data, order, axis)

    def argsort(self, out: Tensor, x: Tensor, *, axis: int, direction: str) -> Any:
        """The index of each element of ``sort`` in ``x``."""
        return store(in_order(widen(x), axis, direction), out)
