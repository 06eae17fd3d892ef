"""Callbacks that read and write at positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Index"]


class Index:
    """Indices are integers, of which those below 0 count from the end of their axis.

    ``axes`` are those that the last axis of ``indices`` indexes.
    """

    def gather(self, out: Tensor, x: Tensor, indices: Tensor, *, axes: Sequence[int]) -> Any:
        """Windows of ``x`` at the places that the last axis of ``indices`` holds."""
        raise lacks(self, "gather")

    def indexed_add(
        self, out: Tensor, x: Tensor, indices: Tensor, updates: Tensor, *, axes: Sequence[int]
    ) -> Any:
        """``x`` with updates added at places; those of equal places add up."""
        raise lacks(self, "indexed_add")

    def indexed_put(
        self, out: Tensor, x: Tensor, indices: Tensor, updates: Tensor, *, axes: Sequence[int]
    ) -> Any:
        """``x`` with updates put at places; the last of equal places wins."""
        raise lacks(self, "indexed_put")
