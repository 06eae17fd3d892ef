"""Callbacks of products, solvers and transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.shape import padded
from defn.backends.numpy.values import quiet, store, wide
from defn.backends.numpy.window import windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor

__all__ = ["Linalg", "substituted"]


def substituted(a: Any, b: Any, *, lower: bool) -> Any:
    """The ``x`` of ``a x = b`` for triangular ``a``, row by row; zeros on the diagonal divide."""
    x = np.zeros(np.broadcast_shapes(b.shape, (*a.shape[:-2], 1, 1)), b.dtype)
    rows = range(a.shape[-1]) if lower else reversed(range(a.shape[-1]))
    for row in rows:
        known = slice(None, row) if lower else slice(row + 1, None)
        rest = b[..., row, :] - (a[..., row, None, known] @ x[..., known, :])[..., 0, :]
        x[..., row, :] = rest / a[..., row, row, None]
    return x


class Linalg:
    """Products, solvers and transforms."""

    @quiet
    def dot(
        self,
        out: Tensor,
        a: Tensor,
        contract_a: Sequence[int],
        batch_a: Sequence[int],
        b: Tensor,
        contract_b: Sequence[int],
        batch_b: Sequence[int],
    ) -> Any:
        """Sums of products: batch axes, then those of ``a``, then those of ``b``."""
        free_a = [axis for axis in range(a.rank) if axis not in (*batch_a, *contract_a)]
        free_b = [axis for axis in range(b.rank) if axis not in (*batch_b, *contract_b)]
        left = wide(a, out.dtype).transpose([*batch_a, *free_a, *contract_a])
        right = wide(b, out.dtype).transpose([*batch_b, *contract_b, *free_b])
        batch = left.shape[: len(batch_a)]
        count = int(np.prod([a.shape[axis] for axis in contract_a], dtype=np.int64))
        rows = int(np.prod([a.shape[axis] for axis in free_a], dtype=np.int64))
        columns = int(np.prod([b.shape[axis] for axis in free_b], dtype=np.int64))
        product = left.reshape(*batch, rows, count) @ right.reshape(*batch, count, columns)
        return store(product, out)

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
        """The convolution, group by group, each as a product of windows and the kernel."""
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
            # (batch, channels, places..., window...) with (out channels, channels, window...).
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

    @quiet
    def fft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The discrete Fourier transform along an axis."""
        return store(np.fft.fft(wide(x, out.dtype), length, axis), out)

    @quiet
    def ifft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The inverse of ``fft``."""
        return store(np.fft.ifft(wide(x, out.dtype), length, axis), out)

    @quiet
    def triangular_solve(
        self, out: Tensor, a: Tensor, b: Tensor, *, lower: bool, left_side: bool, transform_a: str
    ) -> Any:
        """The ``x`` of ``a x = b``, or of ``x a = b``, for one triangle of ``a``."""
        matrix, right = wide(a, out.dtype), wide(b, out.dtype)
        matrix = np.tril(matrix) if lower else np.triu(matrix)
        if transform_a != "none":
            matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        if transform_a == "conjugate":
            matrix = matrix.conj()
        if b.rank < a.rank:
            right = right[..., None] if left_side else right[..., None, :]
        if left_side:
            return store(substituted(matrix, right, lower=lower), out)
        # x a = b is a^T x^T = b^T.
        turned = substituted(
            np.swapaxes(matrix, -1, -2), np.swapaxes(right, -1, -2), lower=not lower
        )
        return store(np.swapaxes(turned, -1, -2), out)
