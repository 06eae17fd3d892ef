"""Callbacks that reduce windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.reduce import folded
from defn.backends.numpy.shape import padded
from defn.backends.numpy.values import extremes, quiet, store, wide, widen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn._core import Tensor

    Pairs = Sequence[tuple[int, int]]

__all__ = ["Window", "windows"]


def windows(
    x: Any,
    value: Any,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Pairs,
    dilations: Sequence[int],
) -> Any:
    """The elements of every window: the axes of the positions, then those of the window."""
    whole = padded(x, value, [(low, high, 0) for low, high in padding])
    spans = [(size - 1) * step + 1 for size, step in zip(window, dilations, strict=True)]
    if any(size < span for size, span in zip(whole.shape, spans, strict=True)):
        return np.empty((*(0 for _ in window), *window), x.dtype)
    every = np.lib.stride_tricks.sliding_window_view(whole, spans)
    steps = [slice(None, None, step) for step in (*strides, *dilations)]
    return every[tuple(steps)]


class Window:
    """Reductions of windows."""

    @quiet
    def _fold(self, function: Any, value: Any, out: Tensor, x: Tensor, *options: Any) -> Any:
        """A reduction of every window, in the dtype of ``out``."""
        elements = windows(wide(x, out.dtype), value, *options)
        last = tuple(range(-out.rank, 0))
        return store(function(elements, last) if last else elements, out)

    def window_sum(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """The sum of each window."""
        return self._fold(np.sum, 0, out, x, window, strides, padding, window_dilations)

    def window_product(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """The product of each window."""
        return self._fold(np.prod, 1, out, x, window, strides, padding, window_dilations)

    def window_max(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """The greatest element of each window."""
        least, _ = extremes(out.dtype)
        return self._fold(np.max, least, out, x, window, strides, padding, window_dilations)

    def window_min(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """The least element of each window."""
        _, greatest = extremes(out.dtype)
        return self._fold(np.min, greatest, out, x, window, strides, padding, window_dilations)

    def window_reduce(
        self,
        out: Tensor,
        x: Tensor,
        acc: Tensor,
        window: Sequence[int],
        fun: Callable[[Tensor, Tensor], Tensor],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """The fold of ``fun(element, acc)`` over each window, padded with ``acc``."""
        pad = wide(acc, x.dtype)
        elements = windows(widen(x), pad, window, strides, padding, window_dilations)
        flat = elements.reshape(*elements.shape[: out.rank], math.prod(window))
        flat = flat.astype(x.dtype.to_numpy())
        return folded(self, out, flat, acc, fun)

    def window_scatter_max(
        self,
        out: Tensor,
        x: Tensor,
        source: Tensor,
        init: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """``init`` plus each source value at its window's greatest element."""
        options = (window, strides, padding, window_dilations)
        return self._send(np.argmax, out, x, source, init, *options)

    def window_scatter_min(
        self,
        out: Tensor,
        x: Tensor,
        source: Tensor,
        init: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Pairs,
        window_dilations: Sequence[int],
    ) -> Any:
        """``init`` plus each source value at its window's least element."""
        options = (window, strides, padding, window_dilations)
        return self._send(np.argmin, out, x, source, init, *options)

    @quiet
    def _send(
        self, choose: Any, out: Tensor, x: Tensor, source: Tensor, init: Tensor, *options: Any
    ) -> Any:
        """Add each source value at the extreme of its window, the last one of ties."""
        elements = windows(widen(x), wide(init, x.dtype), *options)
        # The flat index of each element of a window in `x`; -1 for padding.
        origins = np.arange(x.size, dtype=np.int64).reshape(x.shape)
        places = windows(origins, -1, *options)
        result = np.full(x.size, wide(init, out.dtype))
        values = wide(source, out.dtype)
        for at in np.ndindex(source.shape):
            flat = elements[at].reshape(-1)
            chosen = places[at].reshape(-1)[flat.size - 1 - choose(flat[::-1])]
            if chosen >= 0:
                result[chosen] += values[at]
        return store(result, out)

    @quiet
    def conv(
        self,
        out: Tensor,
        x: Tensor,
        kernel: Tensor,
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        input_dilation: Sequence[int],
        kernel_dilation: Sequence[int],
        feature_group_size: int,
        batch_group_size: int,
        input_permutation: Sequence[int],
        kernel_permutation: Sequence[int],
        output_permutation: Sequence[int],
    ) -> Any:
        """The convolution, group by group, each as a product of windows and kernel."""
        images = wide(x, out.dtype).transpose(input_permutation)
        kernels = wide(kernel, out.dtype).transpose(kernel_permutation)
        gaps = [
            (low, high, step - 1) for (low, high), step in zip(padding, input_dilation, strict=True)
        ]
        spread = padded(images, 0, [(0, 0, 0), (0, 0, 0), *gaps])
        groups = max(feature_group_size, batch_group_size)
        over = 1 if feature_group_size > 1 else 0
        parts = []
        for part, own in zip(
            np.split(spread, groups, over), np.split(kernels, groups, 0), strict=True
        ):
            none = [(0, 0)] * len(padding)
            every = np.stack(
                [
                    [
                        windows(plane, 0, own.shape[2:], strides, none, kernel_dilation)
                        for plane in image
                    ]
                    for image in part
                ]
            )
            # (batch, channels, positions..., window...) with (out channels, channels, window...).
            spatial = len(padding)
            summed = [1, *range(2 + spatial, 2 + 2 * spatial)]
            product = np.tensordot(every, own, (summed, [1, *range(2, 2 + spatial)]))
            parts.append(np.moveaxis(product, -1, 1))
        result = np.concatenate(parts, 1)
        placed = np.empty(
            [result.shape[role] for role in np.argsort(output_permutation)], result.dtype
        )
        placed.transpose(output_permutation)[...] = result
        return store(placed, out)
