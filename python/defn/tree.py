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
from defn._names import caller, option_error
from defn._public import public
from defn._tree_arithmetic import (
    add,
    add_scaled,
    bytes,
    cast,
    dot,
    multiply,
    norm,
    ones_like,
    scale,
    size,
    subtract,
    where,
    zeros_like,
)
from defn._tree_paths import Path, each, located, path_text, paths
from defn.errors import Error, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn.typing import Axis, TensorLike

__all__ = [
    "add",
    "add_scaled",
    "all",
    "bytes",
    "cast",
    "dot",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "multiply",
    "norm",
    "ones_like",
    "path_text",
    "random_split",
    "reduce",
    "scale",
    "size",
    "stack",
    "structure",
    "subtract",
    "transpose",
    "unflatten",
    "unstack",
    "where",
    "zeros_like",
]


def map(fun: Callable[..., Any], tree: Any, /, *others: Any) -> Any:
    """Apply a function to each leaf, together with the corresponding leaves of other containers.

    Keys of mappings may come in any order: the result has that of the first container.

    Raises: ``ContainerError`` if the structures differ; it names the first difference.

    >>> dn.tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    rows, structure = _core.corresponding_leaves("map", _names(others), tree, *others)
    return _core.unflatten_container(structure, [fun(*row) for row in rows])


def map_with_path(fun: Callable[..., Any], tree: Any, /, *others: Any) -> Any:
    """As :func:`map`, where the function receives the path of the leaf first.

    A path is a tuple of the keys, positions and names of fields that lead to the leaf; children of
    classes that are registered with ``dn.register_container`` have positions. Compare it with a
    tuple, match it, or print it with :func:`path_text`.

    Raises: ``ContainerError`` if the structures differ; it names the first difference.

    >>> params = {"layers": [{"w": 1.0, "b": 2.0}], "scale": 3.0}
    >>> decay = lambda path, x: 0.5 * x if path[-1] == "w" else x
    >>> dn.tree.map_with_path(decay, params)
    {'layers': [{'w': 0.5, 'b': 2.0}], 'scale': 3.0}
    """
    names = _names(others)
    rows, structure = _core.corresponding_leaves("map_with_path", names, tree, *others)
    found = zip(paths(structure), rows, strict=True)
    return _core.unflatten_container(structure, [fun(path, *row) for path, row in found])


def _names(others: Sequence[Any]) -> list[str]:
    """The names of the containers of :func:`map`, for messages."""
    return ["tree", *(f"others[{at}]" for at in range(len(others)))]


def leaves(tree: Any, /) -> list[Any]:
    """The leaves of a container, in order.

    >>> dn.tree.leaves({"a": 1, "b": (2, 3)})
    [1, 2, 3]
    """
    return _core.flatten_container(tree)[0]


def leaves_with_path(tree: Any, /) -> list[tuple[Path, Any]]:
    """The leaves of a container, in order, each after its path; see :func:`map_with_path`.

    >>> for path, leaf in dn.tree.leaves_with_path({"a": 1, "b": (2, 3)}):
    ...     print(dn.tree.path_text(path), leaf)
    ["a"] 1
    ["b"][0] 2
    ["b"][1] 3
    """
    return flatten_with_path(tree)[0]


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


def flatten_with_path(tree: Any, /) -> tuple[list[tuple[Path, Any]], Any]:
    """The leaves of a container, each after its path, and the structure; see :func:`map_with_path`.

    >>> dn.tree.flatten_with_path([1, (2, 3)])[0]
    [((0,), 1), ((1, 0), 2), ((1, 1), 3)]
    """
    leaves, structure = _core.flatten_container(tree)
    return list(zip(paths(structure), leaves, strict=True)), structure


def unflatten(structure: Any, leaves: Sequence[Any], /) -> Any:
    """Build the container with a structure and leaves.

    Raises: ``ContainerError`` if the number of leaves does not match.

    >>> dn.tree.unflatten(dn.tree.structure((1, 2)), [3, 4])
    (3, 4)
    """
    return _core.unflatten_container(structure, leaves)


def reduce(fun: Callable[[Any, Any], Any], tree: Any, initial: Any = ..., /) -> Any:
    """Fold the leaves in order with a function ``fun(accumulated, leaf)``.

    Raises: ``TypeError`` if there are no leaves and no initial value, as ``functools.reduce`` does.

    >>> dn.tree.reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 10)
    16
    """
    if initial is ...:
        return functools.reduce(fun, leaves(tree))
    return functools.reduce(fun, leaves(tree), initial)


def all(tree: Any, /) -> bool:
    """Whether every leaf is true.

    >>> dn.tree.all({"a": True, "b": (1, 0)})
    False
    """
    return builtins.all(leaves(tree))


@public
def transpose(tree: Any, outer: Any = None) -> Any:
    """Turn a container of containers inside out: a list of dicts into a dict of lists, and back.

    ``outer`` is the structure of the outer container, or a container with this structure; its
    leaves are where the inner containers begin. By default it is the outermost tuple, list, dict or
    object of ``tree`` alone. Keys of inner mappings may come in any order.

    Raises: ``ContainerError`` if the inner containers differ in structure, if ``tree`` does not
        begin with ``outer``, or if ``outer`` has no leaf.

    >>> layers = [{"w": 1, "b": 2}, {"w": 3, "b": 4}]
    >>> columns = dn.tree.transpose(layers)
    >>> columns
    {'w': [1, 3], 'b': [2, 4]}
    >>> dn.tree.transpose(columns) == layers
    True

    Where the outer container is nested, ``outer`` says where it ends:

    >>> dn.tree.transpose({"a": {"x": [1, 2], "y": [3, 4]}}, outer={"a": {"x": 0, "y": 0}})
    [{'a': {'x': 1, 'y': 3}}, {'a': {'x': 2, 'y': 4}}]
    """
    if outer is not None and not isinstance(outer, _core.Structure):
        outer = _core.container_structure(outer)
    return _core.transpose_container(tree, outer)


@public
def stack(trees: Sequence[Any], axis: int = 0) -> Any:
    """Stack the corresponding leaves of containers, such as the parameters of layers for ``scan``.

    Shapes: those of corresponding leaves are equal; each result has a new axis at ``axis``. Names
        merge.
    Dtypes: any; those of corresponding leaves are promoted.
    Grad: each container receives its slices of ``g``.
    Raises: ``OptionError`` without containers, ``ContainerError`` if their structures differ,
        ``ShapeError`` if shapes differ, ``AxisError`` for a position out of range; errors name the
        first leaf that does not fit.

    >>> layers = [{"w": dn.tensor([1.0, 2.0]), "b": 0.0}, {"w": dn.tensor([3.0, 4.0]), "b": 1.0}]
    >>> dn.tree.stack(layers)["w"].to_list()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    names = [f"trees[{at}]" for at in range(len(trees))]
    if not names:
        raise option_error("stack: trees is empty, it must have at least one container")
    return each("stack", names, lambda *row: _core.stack(row, axis), *trees)


@public
def unstack(tree: Any, axis: Axis = 0) -> list[Any]:
    """The containers of slices of all leaves at each position of an axis; ``stack`` joins them.

    Shapes: all leaves have the axis, with equal sizes; results are without it.
    Dtypes: any; unchanged.
    Grad: the stacked cotangents of the results.
    Raises: ``OptionError`` without leaves, ``AxisError`` if a leaf does not have the axis,
        ``ShapeError`` if sizes differ; errors name the first leaf that does not fit.

    >>> layers = dn.tree.unstack({"w": dn.tensor([[1.0, 2.0], [3.0, 4.0]]), "b": dn.tensor([5, 6])})
    >>> layers[1]["w"].to_list(), layers[1]["b"].item()
    ([3.0, 4.0], 6)
    """
    found, structure = flatten_with_path(tree)
    if not found:
        raise option_error(f"unstack: tree is {tree!r}, it must have at least one leaf")
    columns: list[tuple[Any, ...]] = []
    for path, leaf in found:
        try:
            parts = _core.unstack(leaf, axis)
        except Error as error:
            raise located("unstack", path, error) from None
        columns.append(parts)
        if len(parts) != len(columns[0]):
            first, first_leaf = found[0]
            raise ShapeError(
                f"unstack: tree{path_text(path)} is {_type_text(leaf)}, its axis {axis!r} "
                f"must have {len(columns[0])} elements as that of tree{path_text(first)}, "
                f"which is {_type_text(first_leaf)}{caller()}"
            )
    return [_core.unflatten_container(structure, row) for row in zip(*columns, strict=True)]


def _type_text(leaf: TensorLike) -> str:
    return _core.type_text(_core.to_tensor(leaf))


@public
def random_split(key: TensorLike, tree: Any, /) -> Any:
    """Split a key into a key for each leaf.

    Shapes: the key is one vector of two u32, and so is each result.
    Dtypes: u32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key.

    >>> sizes = {"w": dn.template((2, 3), "f32"), "b": dn.template((3,), "f32")}
    >>> keys = dn.tree.random_split(dn.random.key(0), sizes)
    >>> params = dn.tree.map(
    ...     lambda key, like: dn.random.normal_split(key, shape=like.shape), keys, sizes
    ... )
    >>> params["w"].shape, params["b"].shape
    ((2, 3), (3,))
    """
    structure = _core.container_structure(tree)
    keys = _core.unstack(_core.random_split(key, structure.leaf_count), 0)
    return _core.unflatten_container(structure, keys)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.tree has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
