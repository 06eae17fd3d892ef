"""Callbacks that reduce elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Reduce"]


class Reduce:
    """Reductions over ``axes``, which are always given; axes that are kept have size 1."""

    def sum(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The sum, in ``out.dtype``."""
        raise lacks(self, "sum")

    def product(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The product, in ``out.dtype``."""
        raise lacks(self, "product")

    def reduce_max(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The greatest element; NaN if any element is NaN."""
        raise lacks(self, "reduce_max")

    def reduce_min(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """The least element; NaN if any element is NaN."""
        raise lacks(self, "reduce_min")

    def all(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """Whether no element is zero. By default the product of ``x != 0``."""
        return x.not_equal(0).product(axes=axes, keep_axes=keep_axes).as_type(out.dtype)

    def any(self, out: Tensor, x: Tensor, *, axes: Sequence[int], keep_axes: bool) -> Any:
        """Whether an element is not zero. By default the inverse of ``all`` of ``x == 0``."""
        return x.equal(0).all(axes=axes, keep_axes=keep_axes).equal(0)

    def argmax(
        self, out: Tensor, x: Tensor, *, axis: int | None, keep_axis: bool, tie_break: str
    ) -> Any:
        """The index of the greatest element, flat without an axis; NaN counts as the greatest."""
        raise lacks(self, "argmax")

    def argmin(
        self, out: Tensor, x: Tensor, *, axis: int | None, keep_axis: bool, tie_break: str
    ) -> Any:
        """The index of the least element, flat without an axis; NaN counts as the least."""
        raise lacks(self, "argmin")

    def reduce(
        self,
        out: Tensor,
        x: Tensor,
        acc: Tensor,
        fun: Callable[[Tensor, Tensor], Tensor],
        *,
        axes: Sequence[int],
        keep_axes: bool,
    ) -> Any:
        """The fold of ``fun(element, acc)`` from ``acc``. By default ``fun`` applied to slices."""
        raise lacks(self, "reduce")
