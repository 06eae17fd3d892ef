"""Callbacks of linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import quiet, store, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor

__all__ = ["Linalg", "substituted"]


def substituted(a: Any, b: Any, *, lower: bool) -> Any:
    """The ``x`` of ``a x = b`` for triangular ``a``, by substitution; a zero diagonal divides."""
    x = np.zeros(np.broadcast_shapes(b.shape, (*a.shape[:-2], 1, 1)), b.dtype)
    rows = range(a.shape[-1]) if lower else reversed(range(a.shape[-1]))
    for row in rows:
        known = slice(None, row) if lower else slice(row + 1, None)
        rest = b[..., row, :] - (a[..., row, None, known] @ x[..., known, :])[..., 0, :]
        x[..., row, :] = rest / a[..., row, row, None]
    return x


class Linalg:
    """Products and solvers."""

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
    def triangular_solve(
        self, out: Tensor, a: Tensor, b: Tensor, *, lower: bool, left_side: bool, transform_a: str
    ) -> Any:
        """The solution ``x`` of ``a x = b`` or ``x a = b``, for one triangle of ``a``."""
        matrix, right = wide(a, out.dtype), wide(b, out.dtype)
        matrix = np.tril(matrix) if lower else np.triu(matrix)
        if transform_a in ("transpose", "adjoint"):
            matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        if transform_a in ("conjugate", "adjoint"):
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
