"""Callbacks that move elements without computing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Shape"]


class Shape:
    """The elements of ``x`` at other positions. Axes are positions that are not negative."""

    def reshape(self, out: Tensor, x: Tensor) -> Any:
        """The same elements in row-major order, in the shape of ``out``."""
        raise lacks(self, "reshape")

    def squeeze(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:
        """``x`` without axes of size 1. By default a ``reshape``."""
        return x.reshape(out.shape)

    def broadcast(self, out: Tensor, x: Tensor, shape: Sequence[int], axes: Sequence[int]) -> Any:
        """``x`` repeated to ``shape``; axis ``i`` of ``x`` becomes axis ``axes[i]``."""
        raise lacks(self, "broadcast")

    def transpose(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:
        """``x`` with its axes permuted: ``axes[i]`` becomes axis ``i``."""
        raise lacks(self, "transpose")

    def pad(
        self, out: Tensor, x: Tensor, value: Tensor, config: Sequence[tuple[int, int, int]]
    ) -> Any:
        """``value`` around and between elements: (low, high, interior) for each axis."""
        raise lacks(self, "pad")

    def reverse(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:
        """``x`` reversed along axes."""
        raise lacks(self, "reverse")

    def concatenate(self, out: Tensor, tensors: list[Tensor], axis: int) -> Any:
        """The tensors joined along an axis."""
        raise lacks(self, "concatenate")

    def stack(self, out: Tensor, tensors: list[Tensor], axis: int) -> Any:
        """The tensors joined along a new axis. By default ``reshape`` and ``concatenate``."""
        from defn.ops.shape import concatenate

        shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
        return concatenate([x.reshape(shape) for x in tensors], axis=axis)

    def slice(
        self,
        out: Tensor,
        x: Tensor,
        starts: Sequence[int] | list[Tensor],
        lengths: Sequence[int],
        strides: Sequence[int],
        *,
        from_end: bool = False,
    ) -> Any:
        """A window of ``x``; starts that are tensors are clamped into range.

        With ``from_end``, starts below 0 first have the size of their axis added.
        """
        raise lacks(self, "slice")

    def put_slice(
        self,
        out: Tensor,
        x: Tensor,
        update: Tensor,
        starts: Sequence[int] | list[Tensor],
        *,
        from_end: bool = False,
    ) -> Any:
        """``x`` with a window overwritten; starts are as in ``slice``."""
        raise lacks(self, "put_slice")
