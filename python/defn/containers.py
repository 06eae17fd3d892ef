"""Containers: values that may hold tensors in arguments, states and results.

Tuples, lists, dicts and other mappings, named tuples, dataclasses and attrs classes are containers
without registration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards, public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["lazy", "register_container"]


@public
def register_container(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Register a class as a container.

    ``flatten(value)`` returns the children, which may be containers, and a hashable rest.
    ``unflatten(rest, children)`` creates an instance again. A child that is a Python function
    without parameters stands for the tensor that it returns. It is called at most once, when the
    tensor is needed, and not if only the structure is needed. ``dn.lazy`` also declares the type.

    Raises: ``ContainerError`` for ``tuple``, ``list`` and ``dict``, and for a class that is already
        registered.

    >>> class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> dn.register_container(Pair, lambda p: ([p.left, p.right], None), lambda _, c: Pair(*c))
    >>> float(dn.jit(lambda p: p.left * p.right)(Pair(2.0, 3.0)))
    6.0
    """
    _core.register_container(cls, flatten, unflatten)


@forwards(_core.lazy)
def lazy(template: Any, fun: Callable[[], Any], /) -> _core.Lazy:
    """Create a container leaf whose tensor is computed only when a program needs it.

    ``template`` declares the type: a template, or a tensor of that type. ``fun()`` returns the
    tensor, an array or a number. A definition that does not use the leaf never calls ``fun``,
    because the type suffices to compile. Each call that uses the leaf calls ``fun`` again.

    Raises: ``ContainerError`` if the type of the tensor is not that of the template.

    >>> read = []
    >>> def load():
    ...     read.append("table")
    ...     return dn.iota((4,), dtype="f32")
    >>> batch = {"table": dn.lazy(dn.template((4,), "f32"), load), "scale": 2.0}
    >>> f = dn.jit(lambda batch: batch["scale"] * 3)
    >>> g = dn.jit(lambda batch: batch["scale"] * dn.sum(batch["table"]))
    >>> float(f(batch)), list(read), float(g(batch)), read
    (6.0, [], 12.0, ['table'])
    """
    ...
