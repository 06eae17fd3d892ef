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

__all__ = ["lazy", "register_container"]


def register_container(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
    **unknown: Never,
) -> None:
    """Tell how a class holds tensors, so that its instances are containers.

    ``flatten(value)`` returns the children, which may be containers, and a hashable rest;
    ``unflatten(rest, children)`` makes an instance again. A child that is a Python function without
    parameters stands for the tensor that it returns: it is called when the tensor is needed, once
    at most, and not where only the structure is asked for. ``dn.lazy`` says the type besides.

    Raises: ``ContainerError`` for ``tuple``, ``list`` and ``dict``, and for a class that is
    registered already.

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


def lazy(template: Any, fun: Callable[[], Any], /, **unknown: Never) -> _core.Lazy:
    """A leaf of a container whose tensor is made when a program needs it.

    ``template`` says of which type the tensor is, as a template or as a tensor of that type;
    ``fun()`` gives it, as a tensor, an array or a number. A definition that does not use the leaf
    never calls it: its type is enough to compile for. It is called anew by each call that does.

    Raises: ``ContainerError`` for a tensor of another type than the template's.

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
    if unknown:
        refuse_options("lazy", unknown)
    return _core.lazy(template, fun)
