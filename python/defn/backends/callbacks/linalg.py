"""Callbacks of linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Linalg"]


class Linalg:
    """Products and solvers."""

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
        """Sums of products over contracted axes; batch axes first, then a's, then b's."""
        raise lacks(self, "dot")

    def triangular_solve(
        self, out: Tensor, a: Tensor, b: Tensor, *, left_side: bool, lower: bool, transform_a: str
    ) -> Any:
        """The solution ``x`` of ``a x = b`` or ``x a = b``; one triangle of ``a`` is read."""
        raise lacks(self, "triangular_solve")
