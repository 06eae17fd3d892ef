"""Callbacks that reduce windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Window"]


class Window:
    """``padding`` is (low, high) for each axis; sizes have one entry for each axis."""

    def window_sum(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """The sum of each window."""
        raise lacks(self, "window_sum")

    def window_product(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """The product of each window."""
        raise lacks(self, "window_product")

    def window_max(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """The greatest element of each window, NaN if any is; padding is the least value."""
        raise lacks(self, "window_max")

    def window_min(
        self,
        out: Tensor,
        x: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """The least element of each window, NaN if any is; padding is the greatest value."""
        raise lacks(self, "window_min")

    def window_reduce(
        self,
        out: Tensor,
        x: Tensor,
        acc: Tensor,
        window: Sequence[int],
        fun: Callable[[Tensor, Tensor], Tensor],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """The fold of ``fun(element, acc)`` over each window, padded with ``acc``.

        By default ``fun`` applied to slices.
        """
        raise lacks(self, "window_reduce")

    def window_scatter_max(
        self,
        out: Tensor,
        x: Tensor,
        source: Tensor,
        init: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """``init`` plus each source value at its window's greatest element, the last of ties."""
        raise lacks(self, "window_scatter_max")

    def window_scatter_min(
        self,
        out: Tensor,
        x: Tensor,
        source: Tensor,
        init: Tensor,
        window: Sequence[int],
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        window_dilations: Sequence[int],
    ) -> Any:
        """``init`` plus each source value at its window's least element, the last of ties."""
        raise lacks(self, "window_scatter_min")

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
        """The convolution, without flipping the kernel."""
        raise lacks(self, "conv")
