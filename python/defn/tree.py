"""Functions of containers: of all tensors, numbers and arrays that are in one, its leaves.

Containers are tuples, lists, dicts and other mappings, named tuples, dataclasses, attrs classes and
what ``dn.register_container`` was told of. Strings, ``None``, bools and fields that are ``Static``
are no leaves: they stay as they are.

>>> params = {"w": dn.tensor([1.0, 2.0]), "b": dn.tensor(0.5)}
>>> step = dn.tree.map(lambda p, g: p - 0.5 * g, params, {"w": dn.tensor([2.0, 2.0]), "b": 1.0})
>>> step["w"].to_list(), float(step["b"])
([0.0, 1.0], 0.0)
"""

from __future__ import annotations

import builtins
import functools
import sys
from typing import TYPE_CHECKING, Any

from defn import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["all", "flatten", "leaves", "map", "reduce", "structure", "unflatten"]


def map(fun: Callable[..., Any], tree: Any, /, *others: Any) -> Any:
    """The container of what a function gives for each leaf, and for the leaves of other containers
    in the same places.

    Raises: ``ContainerError`` if the structures differ; it names the first place.

    >>> dn.tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    return _core.map_container(fun, tree, *others)


def leaves(tree: Any, /) -> list[Any]:
    """The leaves of a container, in order.

    >>> dn.tree.leaves({"a": 1, "b": (2, 3)})
    [1, 2, 3]
    """
    return _core.flatten_container(tree)[0]


def structure(tree: Any, /) -> Any:
    """The structure of a container, without its leaves: it can be compared and hashed. Leaves that
    are functions of no argument are not called.

    >>> dn.tree.structure({"a": 1, "b": 2.5}) == dn.tree.structure({"a": 3, "b": 4})
    True
    """
    return _core.container_structure(tree)


def flatten(tree: Any, /) -> tuple[list[Any], Any]:
    """The leaves of a container and its structure, which ``unflatten`` puts together.

    >>> leaves, structure = dn.tree.flatten([1, (2, 3)])
    >>> dn.tree.unflatten(structure, [leaf * 10 for leaf in leaves])
    [10, (20, 30)]
    """
    return _core.flatten_container(tree)


def unflatten(structure: Any, leaves: Sequence[Any], /) -> Any:
    """The container of a structure with these leaves.

    Raises: ``ContainerError`` for another number of leaves.

    >>> dn.tree.unflatten(dn.tree.structure((1, 2)), [3, 4])
    (3, 4)
    """
    return _core.unflatten_container(structure, leaves)


_NONE: Any = object()


def reduce(fun: Callable[[Any, Any], Any], tree: Any, initial: Any = _NONE, /) -> Any:
    """What a function of two gives for the leaves, one after the other.

    Raises: ``TypeError`` without leaves and an initial value, as ``functools.reduce`` does.

    >>> dn.tree.reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 10)
    16
    """
    if initial is _NONE:
        return functools.reduce(fun, leaves(tree))
    return functools.reduce(fun, leaves(tree), initial)


def all(tree: Any, /) -> bool:
    """Whether every leaf is true.

    >>> dn.tree.all({"a": True, "b": (1, 0)})
    False
    """
    return builtins.all(leaves(tree))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to write here for a name of JAX's."""
        from defn._names import unknown_name

        raise unknown_name("defn.tree has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
