"""Arrays that share elements: what changes one shows in the others, as with NumPy's views.

Tensors never change. An array that is a part of another knows how its elements are taken from
those of the whole, and how new ones are put there. A change goes up to the array that is no part of
any, and from there down to all parts that are still in use. Traced arrays never change and share
nothing.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn import Tensor
    from defn.array_api._array import Array

__all__ = ["Sharing", "change", "is_in_order", "share"]


RESHAPED = "reshaped"
"""The key of parts with all elements in their order."""


class Sharing:
    """What an array shares: the whole that it is a part of, if there is one, and its own parts."""

    __slots__ = ("key", "parts", "put", "take", "whole")

    def __init__(
        self,
        whole: Array | None = None,
        take: Callable[[Tensor], Tensor] | None = None,
        put: Callable[[Tensor, Tensor], Tensor] | None = None,
        key: Any = None,
    ) -> None:
        self.whole, self.take, self.put, self.key = whole, take, put, key
        self.parts: weakref.WeakValueDictionary[int, Array] | None = None


def share(
    whole: Array,
    part: Array,
    take: Callable[[Tensor], Tensor],
    put: Callable[[Tensor, Tensor], Tensor],
    key: Any = None,
) -> Array:
    """Make an array a part of another.

    ``take`` makes the part's tensor of that of the whole, and ``put`` the tensor of the whole of
    the old one and that of the part. ``key`` tells parts apart that were indexed.
    """
    if whole._tensor.is_traced or part._tensor.is_traced:
        return part
    sharing = whole._sharing
    if sharing is None:
        sharing = whole._sharing = Sharing()
    if sharing.parts is None:
        sharing.parts = weakref.WeakValueDictionary()
    sharing.parts[id(part)] = part
    part._sharing = Sharing(whole, take, put, key)
    return part


def is_in_order(array: Array) -> bool:
    """Whether an array is no part of another, or all of it in its order.

    NumPy's arrays with this property are contiguous, and their ``reshape`` is a view.
    """
    while (sharing := array._sharing) is not None and sharing.whole is not None:
        if sharing.key is not RESHAPED:
            return False
        array = sharing.whole
    return True


def change(array: Array, tensor: Tensor) -> None:
    """Put a tensor in place of an array's, here and in the arrays that share its elements."""
    while (sharing := array._sharing) is not None and sharing.whole is not None:
        assert sharing.put is not None
        array, tensor = sharing.whole, sharing.put(sharing.whole._tensor, tensor)
    _replace(array, tensor)


def _replace(array: Array, tensor: Tensor) -> None:
    array._tensor = tensor
    if array._sharing is None or array._sharing.parts is None:
        return
    for part in list(array._sharing.parts.values()):
        sharing = part._sharing
        if sharing is not None and sharing.take is not None:
            _replace(part, sharing.take(tensor))
