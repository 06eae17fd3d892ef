"""Callbacks that create and read tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import cast, quiet, store

if TYPE_CHECKING:
    from defn._core import DType, Tensor

__all__ = ["Create"]


def _unpacked(data: bytes, dtype: DType, count: int) -> Any:
    """The values of 2- or 4-bit elements; the first is in the highest bits of a byte."""
    octets = np.frombuffer(data, np.uint8).astype(np.uint64)
    shifts = np.arange(8 - dtype.bits, -1, -dtype.bits, dtype=np.uint64)
    return cast((octets[:, None] >> shifts).reshape(-1)[:count], dtype)


def _packed(elements: Any, dtype: DType) -> bytes:
    """2- or 4-bit elements as bytes; unused bits of the last one are 0."""
    shifts = np.arange(8 - dtype.bits, -1, -dtype.bits, dtype=np.uint64)
    low = elements.astype(np.int64).astype(np.uint64) & np.uint64(2**dtype.bits - 1)
    padded = np.concatenate([low, np.zeros(-len(low) % len(shifts), np.uint64)])
    return (padded.reshape(-1, len(shifts)) << shifts).sum(1).astype(np.uint8).tobytes()


class Create:
    """Tensors from constants and from memory."""

    def from_binary(self, out: Tensor, data: bytes) -> Any:
        """The elements in ``data``."""
        if out.dtype.bits < 8:
            return _unpacked(data, out.dtype, out.size).reshape(out.shape)
        if out.dtype.kind == "bool":
            # Bytes from outside may have values other than 0 and 1.
            return (np.frombuffer(data, np.uint8) != 0).reshape(out.shape)
        return np.frombuffer(data, out.dtype.to_numpy()).reshape(out.shape)

    def to_binary(self, x: Tensor, limit: int) -> bytes:
        """The first ``limit`` elements."""
        elements = x.data.reshape(-1)[:limit]
        return _packed(elements, x.dtype) if x.dtype.bits < 8 else elements.tobytes()

    def constant(self, out: Tensor, number: complex) -> Any:
        """``number`` everywhere."""
        kind = None
        if isinstance(number, int):
            kind = np.int64 if number < 2**63 else np.uint64
        return np.broadcast_to(cast(np.asarray(number, kind), out.dtype), out.shape)

    @quiet
    def iota(self, out: Tensor, axis: int | None) -> Any:
        """Counts along an axis, or over the flat index."""
        if axis is None:
            return store(np.arange(out.size, dtype=np.int64), out)
        counts = np.arange(out.shape[axis], dtype=np.int64)
        sizes = [-1 if position == axis else 1 for position in range(out.rank)]
        return store(np.broadcast_to(counts.reshape(sizes), out.shape), out)

    def eye(self, out: Tensor) -> Any:
        """1 where the last two indices are equal, else 0."""
        return store(np.broadcast_to(np.eye(out.shape[-2], out.shape[-1]), out.shape), out)
