"""Containers: what may hold tensors in arguments, states and results.

Tuples, lists, dicts and other mappings, named tuples, dataclasses and attrs classes are containers
without any declaration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["register_container"]


def register_container(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
    **unknown: Never,
) -> None:
    """Tell how a class holds tensors, so that its instances are containers.

    ``flatten(value)`` returns the children, which may be containers, and a hashable rest;
    ``unflatten(rest, children)`` makes an instance again.

    Registering a class again replaces what was told of it.

    Raises: ``ContainerError`` for ``tuple``, ``list`` and ``dict``.

    >>> class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> dn.register_container(Pair, lambda p: ([p.left, p.right], None), lambda _, c: Pair(*c))
    >>> float(dn.jit(lambda p: p.left * p.right)(Pair(2.0, 3.0)))
    6.0
    """
    if unknown:
        refuse_options("register_container", unknown)
    _core.register_container(cls, flatten, unflatten)
