"""Paths to the leaves of containers, and functions applied to corresponding leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from defn import _core
from defn._public import public
from defn.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Path", "each", "located", "path_text", "paths"]

Path: TypeAlias = tuple[Any, ...]
"""Keys, positions and names of fields, from the outermost container to a leaf."""


class Field(str):
    """The name of a field in a path: a string that ``path_text`` shows as ``.name``."""

    __slots__ = ()


def paths(structure: Any) -> list[Path]:
    """The paths to the leaves of a structure, in order."""
    return _core.leaf_paths(structure, Field)


@public
def path_text(path: Path, /) -> str:
    """A path as error messages show it.

    A part of a path is a path too, and so is a tuple that you make yourself. A string in such a
    tuple is a key; names of fields come from the functions that return paths.

    >>> dn.tree.path_text(("layers", 0, "w"))
    '["layers"][0]["w"]'
    """
    return _core.path_text(path, Field)


def located(op: str, path: Path, error: Error) -> Error:
    """The error of an operation on a leaf as one of ``op``, with the path of the leaf."""
    text = str(error).partition(": ")[2]
    return type(error)(f"{op}: at {path_text(path)}, {text}" if path else f"{op}: {text}")


def each(op: str, names: Sequence[str], fun: Callable[..., Any], *trees: Any) -> Any:
    """The container of a function's results for corresponding leaves; errors name their path."""
    rows, structure = _core.corresponding_leaves(op, names, *trees)
    results: list[Any] = []
    for row in rows:
        try:
            results.append(fun(*row))
        except Error as error:
            raise located(op, paths(structure)[len(results)], error) from None
    return _core.unflatten_container(structure, results)
