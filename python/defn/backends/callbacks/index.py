"""Callbacks that read and write at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Index"]


class Index:
    """Indices are integers; those below 0 count from the end of their axis.

    ``axes`` are the axes that the last axis of ``indices`` indexes.
    """

    def gather(self, out: Tensor, x: Tensor, indices: Tensor, *, axes: Sequence[int]) -> Any:
        """Windows of ``x`` at the indices in the last axis of ``indices``."""
        raise lacks(self, "gather")

    def indexed_add(
        self, out: Tensor, x: Tensor, indices: Tensor, updates: Tensor, *, axes: Sequence[int]
    ) -> Any:
        """``x`` with updates added at indices; updates at equal indices add up."""
        raise lacks(self, "indexed_add")

    def indexed_put(
        self, out: Tensor, x: Tensor, indices: Tensor, updates: Tensor, *, axes: Sequence[int]
    ) -> Any:
        """``x`` with updates written at indices; the last of equal indices wins."""
        raise lacks(self, "indexed_put")
