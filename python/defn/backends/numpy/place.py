"""Callbacks that share memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import DType, Tensor

__all__ = ["Place"]


class Place:
    """Arrays and their memory."""

    def to_pointer(self, x: Tensor, *, mode: str) -> int:
        """The address of the array's first element; the elements must be contiguous."""
        if not x.data.flags.c_contiguous:
            raise BufferError(f"to_pointer: the elements of {x.dtype}{list(x.shape)} have gaps")
        return x.data.ctypes.data

    def from_pointer(self, pointer: int, dtype: DType, shape: Sequence[int], **options: Any) -> Any:
        """An array in memory that another object owns and keeps alive."""
        kind = dtype.to_numpy()
        count = int(np.prod(shape, dtype=np.int64))
        memory = (ctypes.c_char * (count * kind.itemsize)).from_address(pointer)
        return np.frombuffer(memoryview(memory), kind).reshape(shape)
