"""Callbacks that create and read tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor

__all__ = ["Create"]


class Create:
    """Tensors from constants and from memory."""

    def from_binary(self, out: Tensor, data: bytes) -> Any:
        """The elements in ``data``: row-major, native byte order, elements of 2 and 4 bits packed.

        Every backend needs this callback.
        """
        raise lacks(self, "from_binary")

    def to_binary(self, x: Tensor, limit: int) -> bytes:
        """The first ``limit`` elements as bytes, in the layout of ``from_binary``.

        Every backend needs this callback.
        """
        raise lacks(self, "to_binary")

    def constant(self, out: Tensor, number: complex) -> Any:
        """``number`` everywhere. By default computed on the host, then ``from_binary``."""
        from defn.ops.create import tensor
        from defn.ops.shape import broadcast

        return broadcast(tensor(number, dtype=out.dtype, backend="cpu"), out.shape)

    def iota(self, out: Tensor, axis: int | None) -> Any:
        """Counts along an axis, or over the flat index. By default the host's ``iota``, copied."""
        from defn.ops.create import iota

        return iota(out.shape, axis=axis, dtype=out.dtype, backend="cpu")

    def eye(self, out: Tensor) -> Any:
        """1 where the last two indices are equal, else 0. By default the host's ``eye``, copied."""
        from defn.ops.create import eye

        return eye(out.shape, dtype=out.dtype, backend="cpu")
