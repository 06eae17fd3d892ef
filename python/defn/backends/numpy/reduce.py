"""Callbacks that reduce elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import quiet, store, wide, widen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn._core import Tensor

__all__ = ["Reduce", "folded"]


def folded(
    backend: Any, out: Tensor, elements: Any, acc: Tensor, fun: Callable[[Tensor, Tensor], Tensor]
) -> Any:
    """The fold over the last axis with a user's function on scalars, first to last."""
    from defn.ops.create import tensor

    result = np.empty(elements.shape[:-1], acc.dtype.to_numpy())
    for place in np.ndindex(result.shape):
        folding = acc
        for element in elements[place]:
            folding = fun(tensor(np.asarray(element), backend=backend), folding)
        result[place] = folding.data
    return result.reshape(out.shape)


class Reduce:
    """Reductions over axes."""

    @quiet
    def sum(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The sum."""
        return store(wide(x, out.dtype).sum(tuple(axes)), out)

    @quiet
    def product(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The product."""
        return store(wide(x, out.dtype).prod(tuple(axes)), out)

    def reduce_max(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The greatest element; NaN if any element is NaN."""
        return store(widen(x).max(tuple(axes)), out) if out.size else store([], out)

    def reduce_min(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The least element; NaN if any element is NaN."""
        return store(widen(x).min(tuple(axes)), out) if out.size else store([], out)

    def all(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """1 if no element is zero."""
        return store(np.all(widen(x) != 0, tuple(axes)), out)

    def any(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """1 if an element is not zero."""
        return store(np.any(widen(x) != 0, tuple(axes)), out)

    def argmax(
        self, out: Tensor, x: Tensor, *, axis: int | None, keep_axis: bool, tie_break: str
    ) -> Any:
        """The index of the greatest element."""
        return self._extreme(np.argmax, out, x, axis, tie_break)

    def argmin(
        self, out: Tensor, x: Tensor, *, axis: int | None, keep_axis: bool, tie_break: str
    ) -> Any:
        """The index of the least element."""
        return self._extreme(np.argmin, out, x, axis, tie_break)

    def _extreme(
        self, function: Any, out: Tensor, x: Tensor, axis: int | None, tie_break: str
    ) -> Any:
        elements = widen(x)
        if axis is None:
            elements, axis = elements.reshape(-1), 0
        if out.size == 0:
            return store([], out)
        if tie_break == "low":
            return store(function(elements, axis), out)
        last = elements.shape[axis] - 1
        return store(last - function(np.flip(elements, axis), axis), out)

    def reduce(
        self,
        out: Tensor,
        x: Tensor,
        acc: Tensor,
        fun: Callable[[Tensor, Tensor], Tensor],
        *,
        axes: Sequence[int],
        keep_axes: bool,
    ) -> Any:
        """The fold of ``fun(element, acc)``, in row-major order."""
        kept = [axis for axis in range(x.rank) if axis not in axes]
        moved = x.data.transpose([*kept, *axes])
        count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
        elements = moved.reshape(*[x.shape[axis] for axis in kept], count)
        return folded(self, out, elements, acc, fun)
