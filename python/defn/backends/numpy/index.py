"""Callbacks that read and write at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import quiet, store, wide, widen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor

__all__ = ["Index", "looked_up", "nearest"]


def nearest(indices: Any, size: int) -> Any:
    """Signed indices along an axis, counted from the front and clamped into range."""
    return np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)


def looked_up(x: Any, indices: Any, axes: Sequence[int]) -> Any:
    """Windows at the indices in the last axis of ``indices``; see ``nearest``."""
    front = np.moveaxis(x, axes, range(len(axes)))
    if not axes:
        return np.broadcast_to(front, indices.shape[:-1] + front.shape)
    places = [nearest(indices[..., at], x.shape[axis]) for at, axis in enumerate(axes)]
    return front[tuple(places)]


class Index:
    """Elements by their indices."""

    def gather(self, out: Tensor, x: Tensor, indices: Tensor, *, axes: Sequence[int]) -> Any:
        """Windows of ``x`` at indices."""
        return looked_up(x.data, _places(indices), axes).reshape(out.shape)

    def indexed_add(
        self, out: Tensor, x: Tensor, indices: Tensor, updates: Tensor, *, axes: Sequence[int]
    ) -> Any:
        """``x`` with updates added at indices."""
        return self._scatter(np.add, out, x, indices, updates, axes)

    def indexed_put(
        self, out: Tensor, x: Tensor, indices: Tensor, updates: Tensor, *, axes: Sequence[int]
    ) -> Any:
        """``x`` with updates written at indices, one after the other."""
        return self._scatter(lambda _, update: update, out, x, indices, updates, axes)

    @quiet
    def _scatter(
        self,
        function: Any,
        out: Tensor,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        axes: Sequence[int],
    ) -> Any:
        result = wide(x, out.dtype)
        front = np.moveaxis(result, axes, range(len(axes)))
        for place, update in zip(_places(indices), wide(updates, out.dtype), strict=True):
            if all(-size <= at < size for at, size in zip(place, front.shape, strict=False)):
                window = (*place, *(slice(0, size) for size in update.shape))
                front[window] = function(front[window], update)
        return store(result, out)


def _places(indices: Tensor) -> Any:
    """Indices as signed integers; values that do not fit are out of any range."""
    return np.minimum(widen(indices), 2**62).astype(np.int64)
