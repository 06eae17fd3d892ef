"""Callbacks that make tensors, read them, and move them between backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor

__all__ = ["Create"]


class Create:
    """Tensors out of nothing, and out of memory."""

    def from_binary(self, out: Tensor, data: bytes) -> Any:
        """The elements that ``data`` holds: row-major, native byte order, 2- and 4-bit ones packed.

        Every backend needs this one.
        """
        raise lacks(self, "from_binary")

    def to_binary(self, x: Tensor, limit: int) -> bytes:
        """The first ``limit`` elements as bytes, laid out as for ``from_binary``.

        Every backend needs this one.
        """
        raise lacks(self, "to_binary")

    def constant(self, out: Tensor, number: complex) -> Any:
        """``number`` everywhere. By default by way of ``from_binary``."""
        from defn.ops.create import tensor
        from defn.ops.shape import broadcast

        return broadcast(tensor(number, dtype=out.dtype, backend="cpu"), out.shape)

    def iota(self, out: Tensor, axis: int | None) -> Any:
        """Counts along an axis, or over the flat index. By default by way of ``from_binary``."""
        from defn.ops.create import iota

        return iota(out.shape, axis=axis, dtype=out.dtype, backend="cpu")

    def eye(self, out: Tensor) -> Any:
        """1 where the last two indices agree, else 0. By default by way of ``from_binary``."""
        from defn.ops.create import eye

        return eye(out.shape, dtype=out.dtype, backend="cpu")
