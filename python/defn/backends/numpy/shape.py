"""Callbacks that move elements without computing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import store, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor

__all__ = ["Shape", "padded", "window_at"]


def padded(x: Any, value: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    """An array with a value around and between its elements; negative amounts crop."""
    spread_sizes = [
        max(n + (n - 1) * gap, 0) for n, (_, _, gap) in zip(x.shape, config, strict=True)
    ]
    spread = np.full(spread_sizes, value, x.dtype)
    spread[tuple(slice(None, None, gap + 1) for _, _, gap in config)] = x
    sides = [(max(low, 0), max(high, 0)) for low, high, _ in config]
    whole = np.pad(spread, sides, constant_values=value) if sides else spread
    ends = [size - max(-high, 0) for size, (_, high, _) in zip(whole.shape, config, strict=True)]
    return whole[
        tuple(slice(max(-low, 0), end) for (low, _, _), end in zip(config, ends, strict=True))
    ]


def window_at(
    sizes: Sequence[int],
    starts: Sequence[int | Tensor],
    lengths: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    from_end: bool = False,
) -> tuple[slice, ...]:
    """A window clamped into range; with ``from_end``, starts below 0 count from the end."""
    places = [start if isinstance(start, int) else int(start.data) for start in starts]
    if from_end:
        places = [at + size if at < 0 else at for at, size in zip(places, sizes, strict=True)]
    first = [
        min(max(place, 0), size - length)
        for place, size, length in zip(places, sizes, lengths, strict=True)
    ]
    steps = strides or [1] * len(first)
    return tuple(
        slice(at, at + length, step) for at, length, step in zip(first, lengths, steps, strict=True)
    )


class Shape:
    """The elements of ``x`` at other positions."""

    def reshape(self, out: Tensor, x: Tensor) -> Any:
        """The same elements in the shape of ``out``."""
        return x.data.reshape(out.shape)

    def squeeze(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:
        """``x`` without axes of size 1."""
        return x.data.reshape(out.shape)

    def broadcast(self, out: Tensor, x: Tensor, shape: Sequence[int], axes: Sequence[int]) -> Any:
        """``x`` repeated to ``shape``."""
        sizes = [1] * len(shape)
        for axis, size in zip(axes, x.shape, strict=True):
            sizes[axis] = size
        return np.broadcast_to(x.data.reshape(sizes), shape)

    def transpose(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:
        """``x`` with its axes permuted."""
        return x.data.transpose(axes)

    def reverse(self, out: Tensor, x: Tensor, axes: Sequence[int]) -> Any:
        """``x`` reversed along axes."""
        return np.flip(x.data, tuple(axes))

    def pad(
        self, out: Tensor, x: Tensor, value: Tensor, config: Sequence[tuple[int, int, int]]
    ) -> Any:
        """``value`` around and between elements."""
        return store(padded(wide(x, out.dtype), wide(value, out.dtype), config), out)

    def concatenate(self, out: Tensor, tensors: list[Tensor], axis: int) -> Any:
        """The tensors joined along an axis."""
        return store(np.concatenate([wide(x, out.dtype) for x in tensors], axis), out)

    def stack(self, out: Tensor, tensors: list[Tensor], axis: int) -> Any:
        """The tensors joined along a new axis."""
        return store(np.stack([wide(x, out.dtype) for x in tensors], axis), out)

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
        """A window of ``x``."""
        window = window_at(x.shape, starts, lengths, strides, from_end=from_end)
        return np.asarray(x.data)[(*window, ...)]

    def put_slice(
        self,
        out: Tensor,
        x: Tensor,
        update: Tensor,
        starts: Sequence[int] | list[Tensor],
        *,
        from_end: bool = False,
    ) -> Any:
        """``x`` with a window overwritten."""
        result = wide(x, out.dtype)
        window = window_at(x.shape, starts, update.shape, from_end=from_end)
        result[window] = wide(update, out.dtype)
        return store(result, out)
