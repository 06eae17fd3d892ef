"""Functions on containers and their leaves, the tensors, numbers and arrays inside.

Containers are tuples, lists, dicts and other mappings, named tuples, dataclasses, attrs classes and
classes registered with ``dn.register_container``. Strings, ``None``, bools and ``Static`` fields
are not leaves; they are kept as they are.

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
    """Apply a function to each leaf, together with the corresponding leaves of other containers.

    Raises: ``ContainerError`` if the structures differ; it names the first difference.

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
    """The structure of a container without its leaves. It can be compared and hashed. Leaves that
    are functions without parameters are not called.

    >>> dn.tree.structure({"a": 1, "b": 2.5}) == dn.tree.structure({"a": 3, "b": 4})
    True
    """
    return _core.container_structure(tree)


def flatten(tree: Any, /) -> tuple[list[Any], Any]:
    """The leaves and the structure of a container; ``unflatten`` combines them again.

    >>> leaves, structure = dn.tree.flatten([1, (2, 3)])
    >>> dn.tree.unflatten(structure, [leaf * 10 for leaf in leaves])
    [10, (20, 30)]
    """
    return _core.flatten_container(tree)


def unflatten(structure: Any, leaves: Sequence[Any], /) -> Any:
    """Build the container with a structure and leaves.

    Raises: ``ContainerError`` if the number of leaves does not match.

    >>> dn.tree.unflatten(dn.tree.structure((1, 2)), [3, 4])
    (3, 4)
    """
    return _core.unflatten_container(structure, leaves)


_NONE: Any = object()


def reduce(fun: Callable[[Any, Any], Any], tree: Any, initial: Any = _NONE, /) -> Any:
    """Fold the leaves in order with a function ``fun(accumulated, leaf)``.

    Raises: ``TypeError`` if there are no leaves and no initial value, as ``functools.reduce`` does.

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
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.tree has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
