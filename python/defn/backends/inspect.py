"""Printing elements, for authors of backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core

if TYPE_CHECKING:
    from defn._core import Tensor

__all__ = ["inspect"]


def inspect(out: Tensor, data: bytes | bytearray | memoryview, limit: int | None = 50) -> str:
    """The text of elements as tensors print them, without the line of the type.

    ``out`` is a template of the tensor's type, ``data`` the bytes that ``to_binary`` returns for
    it: elements of 2 and 4 bits are packed. At most ``limit`` elements are shown, and ``data`` may
    end after them; ``...`` stands once at each open level for the rest. None shows all elements.

    Raises: ``ShapeError`` if ``data`` has fewer elements than must be shown.

    >>> dn.backends.inspect(dn.template((100,), "u8"), bytes([1, 2, 3]), 2)
    '[1, 2, ...]'
    """
    return _core.inspect_binary(out, data, limit)
