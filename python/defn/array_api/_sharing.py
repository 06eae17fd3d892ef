"""Arrays that share elements: what changes one shows in the others, as with NumPy's views.

Tensors never change. An array that is a part of another knows how its elements are taken from
those of the whole, and how new ones are put there. A change goes up to the array that is no part of
any, and from there down to all parts that are still in use. Traced arrays never change and share
nothing.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn import Tensor
    from defn.array_api._array import Array

__all__ = ["Part", "change", "is_in_order", "share"]


RESHAPED = "reshaped"
"""The key of parts with all elements in their order."""


@dataclass(slots=True, eq=False)
class Part:
    """What makes an array a part of another.

    ``take`` makes the part's tensor of that of the whole, and ``put`` the tensor of the whole of
    the old one and that of the part. ``key`` tells parts apart that were indexed.
    """

    whole: Array
    take: Callable[[Tensor], Tensor]
    put: Callable[[Tensor, Tensor], Tensor]
    key: Any = None


def share(array: Array, part: Part) -> Array:
    """Make an array a part of another, and return it."""
    whole = part.whole
    if not whole._tensor.is_traced and not array._tensor.is_traced:
        if whole._parts is None:
            whole._parts = weakref.WeakValueDictionary()
        whole._parts[id(array)] = array
        array._part = part
    return array


def is_in_order(array: Array) -> bool:
    """Whether an array is no part of another, or all of it in its order.

    NumPy's arrays with this property are contiguous, and their ``reshape`` is a view.
    """
    while array._part is not None:
        if array._part.key is not RESHAPED:
            return False
        array = array._part.whole
    return True


def change(array: Array, tensor: Tensor) -> None:
    """Put a tensor in place of an array's, here and in the arrays that share its elements."""
    while (part := array._part) is not None:
        array, tensor = part.whole, part.put(part.whole._tensor, tensor)
    _replace(array, tensor)


def _replace(array: Array, tensor: Tensor) -> None:
    array._tensor = tensor
    for other in list(array._parts.values()) if array._parts else ():
        if other._part is not None:
            _replace(other, other._part.take(tensor))
