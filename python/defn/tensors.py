"""The methods of ``Tensor`` that are the public functions, and the names that it lacks."""

from __future__ import annotations

from inspect import unwrap
from typing import TYPE_CHECKING, Never

from defn import _core, about, reading
from defn._names import FOREIGN_NAMES, refuse_options, unknown_name
from defn.ops import (
    create,
    elementwise_binary,
    elementwise_complex,
    elementwise_predicate,
    elementwise_unary,
    fold,
    fourier,
    index,
    linalg,
    order,
    reduce,
    shape,
    vectorize,
    window,
)

if TYPE_CHECKING:
    from types import FunctionType, ModuleType
    from typing import Any

    from defn._core import Tensor
    from defn.typing import Names

__all__ = ["METHOD_MODULES", "NOT_METHODS", "attach", "method_names"]

METHOD_MODULES: tuple[ModuleType, ...] = (
    create,
    elementwise_complex,
    elementwise_unary,
    elementwise_binary,
    elementwise_predicate,
    shape,
    index,
    order,
    reduce,
    linalg,
    vectorize,
    window,
    fourier,
    fold,
)
"""Where the functions are that become methods."""

NOT_METHODS = frozenset(
    [
        "broadcast_vectors",
        "concatenate",
        "eye",
        "from_binary",
        "iota",
        "linspace",
        "reshape_vectors",
        "stack",
        "template",
        "tensor",
        "tri",
    ]
)
"""Functions whose first parameter is not one tensor."""


READING = ("inspect", "to_batched", "to_binary", "to_heatmap")
"""Methods that read a tensor; the extension has the others."""

ABOUT = ("axis_index", "axis_size", "bit_size")
"""Methods that say what a tensor is."""


def method_names() -> list[str]:
    """The public functions that are methods too, in the order of the modules."""
    names = [name for module in METHOD_MODULES for name in module.__all__]
    return [name for name in names if name not in NOT_METHODS] + [*READING, *ABOUT]


def _reshape(tensor: Tensor, *sizes: Any, names: Names | None = None, **unknown: Never) -> Tensor:
    """The same elements under another shape: ``x.reshape(2, -1)`` or ``x.reshape((2, -1))``.

    See ``dn.reshape``.
    """
    if unknown:
        refuse_options("reshape", unknown)
    return _core.reshape(tensor, sizes[0] if len(sizes) == 1 else sizes, names)


class _Foreign:
    """A method of another library: an attribute that raises, and says the name to use."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Tensor | None, owner: type) -> Never:
        raise unknown_name("tensors have no method", self.name)


def _dir(tensor: Tensor) -> list[str]:
    """The attributes there are; other libraries' names are not among them."""
    return [name for name in object.__dir__(tensor) if name not in FOREIGN_NAMES]


def attach() -> None:
    """Give ``Tensor`` its methods. Attributes that raise cost nothing where they are not used."""
    tensor: Any = _core.Tensor
    functions: dict[str, FunctionType] = {
        name: getattr(module, name) for module in METHOD_MODULES for name in module.__all__
    }
    functions |= {name: getattr(reading, name) for name in READING}
    functions |= {name: getattr(about, name) for name in ABOUT}
    for name in method_names():
        # Python finds and calls methods fastest that are functions of its own.
        setattr(tensor, name, unwrap(functions[name]))
    _reshape.__name__ = "reshape"
    _reshape.__qualname__ = "Tensor.reshape"
    tensor.reshape = _reshape
    for name in FOREIGN_NAMES:
        if not hasattr(tensor, name):
            setattr(tensor, name, _Foreign(name))
    tensor.__dir__ = _dir
