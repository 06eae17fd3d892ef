"""Callbacks that sort elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor

__all__ = ["Order"]


class Order:
    """Sorting is stable, with NaN above every number; ``direction`` is ``"asc"`` or ``"desc"``."""

    def sort(self, out: Tensor, x: Tensor, *, axis: int, direction: str) -> Any:
        """``x`` sorted along an axis, ``"asc"`` or ``"desc"``; stable, NaN greatest."""
        raise lacks(self, "sort")

    def argsort(self, out: Tensor, x: Tensor, *, axis: int, direction: str) -> Any:
        """The index of each element of ``sort`` in ``x``."""
        raise lacks(self, "argsort")
