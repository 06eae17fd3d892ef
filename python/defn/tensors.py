"""The methods of ``Tensor`` that are public functions, and errors for names that it lacks."""

from __future__ import annotations

from inspect import unwrap
from typing import TYPE_CHECKING, Never

from defn import _core, _foreign, _numpy, about, reading
from defn._names import option_error, unknown_attribute
from defn._public import public
from defn.ops import (
    arrange,
    create,
    elementwise_binary,
    elementwise_complex,
    elementwise_derived,
    elementwise_predicate,
    elementwise_unary,
    fold,
    fourier,
    index,
    linalg,
    missing,
    order,
    reduce,
    search,
    sequence,
    sets,
    shape,
    special,
    vectorize,
    window,
)
from defn.updates import At, Indexed

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType, ModuleType
    from typing import Any

    from defn._core import Tensor
    from defn.typing import Axes, Names

__all__ = ["METHOD_MODULES", "NOT_METHODS", "attach", "method_names"]

METHOD_MODULES: tuple[ModuleType, ...] = (
    create,
    elementwise_complex,
    elementwise_unary,
    elementwise_derived,
    elementwise_binary,
    elementwise_predicate,
    shape,
    arrange,
    index,
    order,
    sets,
    search,
    reduce,
    missing,
    sequence,
    linalg,
    vectorize,
    window,
    fourier,
    fold,
    special,
)
"""The modules whose functions become methods."""

NOT_METHODS = frozenset(
    [
        "broadcast_arrays",
        "broadcast_vectors",
        "column_stack",
        "concatenate",
        "dstack",
        "einsum",
        "eye",
        "fftfreq",
        "from_binary",
        "iota",
        "lexsort",
        "linspace",
        "meshgrid",
        "reshape_vectors",
        "rfftfreq",
        "stack",
        "template",
        "tensor",
        "tri",
        "tril_indices",
        "triu_indices",
    ]
)
"""Functions whose first parameter is not a single tensor."""


ALIASES = {"flip": "reverse", "fmod": "remainder", "maximum": "max", "minimum": "min"}
"""NumPy names of some functions."""

READING = ("inspect", "to_batched", "to_binary", "to_heatmap")
"""Methods that read a tensor; the extension defines the others."""

ABOUT = ("axis_index", "axis_size", "bit_size")
"""Methods that describe a tensor."""


def method_names() -> list[str]:
    """The public functions that are also methods, in the order of the modules."""
    names = [name for module in METHOD_MODULES for name in module.__all__]
    return [name for name in names if name not in NOT_METHODS] + [*READING, *ABOUT]


@public
def _reshape(tensor: Tensor, *sizes: Any, names: Names | None = None) -> Tensor:
    """The same elements with another shape: ``x.reshape(2, -1)`` or ``x.reshape((2, -1))``.

    See ``dn.reshape``.
    """
    return _core.reshape(tensor, sizes[0] if len(sizes) == 1 else sizes, names)


def _transpose(tensor: Tensor, *axes: Any, **options: Any) -> Tensor:
    """Permute the axes, by default in reverse order: ``x.transpose(1, 0)`` or
    ``x.transpose((1, 0))``.

    See ``dn.transpose``.
    """
    return shape.transpose(tensor, *axes if len(axes) <= 1 else (axes,), **options)


@public
def _max(tensor: Tensor, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The maximum of all elements or along axes: ``dn.reduce_max``.

    The element-wise maximum of two tensors is ``dn.max(a, b)``.
    """
    return _core.reduce_max(tensor, _axes("max", axes), keep_axes)


@public
def _min(tensor: Tensor, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor:
    """The minimum of all elements or along axes: ``dn.reduce_min``.

    The element-wise minimum of two tensors is ``dn.min(a, b)``.
    """
    return _core.reduce_min(tensor, _axes("min", axes), keep_axes)


def _axes(function: str, axes: Axes | None) -> Axes | None:
    """Check the axes of a reducing method: a second operand in their place raises."""
    if isinstance(axes, (_core.Tensor, float)):
        raise option_error(
            f"{function}: an operand is given where axes are required, the method reduces; "
            f"use dn.{function}(a, b) for two tensors, element by element"
        )
    return axes


class _Foreign:
    """A method of another library: an attribute that raises and suggests the name to use."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Tensor | None, owner: type) -> Never:
        raise unknown_attribute(self.name)


class _Part:
    """``x.real`` and ``x.imag``: methods here, attributes in other libraries.

    Using them as tensors raises an error that says so.
    """

    def __init__(self, name: str, function: Callable[[Tensor], Tensor]) -> None:
        self.name, self.function = name, function

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        return self.function if tensor is None else _PartOf(self.name, self.function, tensor)


class _PartOf:
    """A method bound to a tensor. Using it as a tensor raises and suggests the call."""

    __slots__ = ("__self__", "_function", "_name")

    def __init__(self, name: str, function: Callable[[Tensor], Tensor], tensor: Tensor) -> None:
        self._name, self._function, self.__self__ = name, function, tensor

    def __call__(self, **unknown: Never) -> Tensor:
        return self._function(self.__self__, **unknown)

    def __repr__(self) -> str:
        return f"<method {self._name} of a tensor: call it, x.{self._name}()>"

    def __getattr__(self, name: str) -> Never:
        # Generic lookups of special methods get the usual AttributeError.
        if name.startswith("__") and name != "__array__":
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *args: object) -> Never:
        raise option_error(
            f"{self._name}: the method is used as a tensor; call it, x.{self._name}()"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __len__ = __iter__ = __float__ = _refuse
    __bool__ = __array__ = _refuse


def _set_item(tensor: Tensor, index: object, value: object) -> Never:
    raise option_error(
        "index: tensors never change; write x = x.at[index].set(value), "
        "or x = x.at[index].add(value) for x[index] += value"
    )


def _divmod(tensor: Tensor, other: Any) -> Any:
    """``divmod(x, y)``: the results of ``x // y`` and ``x % y``."""
    quotient = tensor.__floordiv__(other)
    return quotient if quotient is NotImplemented else (quotient, tensor.__mod__(other))


def _reflected_divmod(tensor: Tensor, other: Any) -> Any:
    """``divmod(y, x)``, where ``y`` is no tensor."""
    quotient = tensor.__rfloordiv__(other)
    return quotient if quotient is NotImplemented else (quotient, tensor.__rmod__(other))


def _dir(tensor: Tensor) -> list[str]:
    """The attributes, without the names of other libraries."""
    return [
        name
        for name in object.__dir__(tensor)
        if not isinstance(vars(type(tensor)).get(name), _Foreign)
    ]


OWN_METHODS: dict[str, FunctionType] = {
    "max": _max,
    "min": _min,
    "reshape": _reshape,
    "transpose": _transpose,
}
"""Methods whose calls differ from the functions of the same names."""


def attach() -> None:
    """Give ``Tensor`` its methods. Attributes that raise cost nothing unless they are used."""
    tensor: Any = _core.Tensor
    functions: dict[str, FunctionType] = {
        name: getattr(module, name) for module in METHOD_MODULES for name in module.__all__
    }
    functions |= {name: getattr(reading, name) for name in READING}
    functions |= {name: getattr(about, name) for name in ABOUT}
    for name in method_names():
        # Python finds and calls plain Python functions fastest as methods.
        setattr(tensor, name, unwrap(functions[name]))
    for name, ours in ALIASES.items():
        setattr(tensor, name, unwrap(functions[ours]))
    for name, method in OWN_METHODS.items():
        method.__name__ = name
        method.__qualname__ = f"Tensor.{name}"
        setattr(tensor, name, method)
    for name in {**_foreign.FUNCTIONS, **_foreign.METHODS}:
        if not hasattr(tensor, name):
            setattr(tensor, name, _Foreign(name))
    tensor.real = _Part("real", functions["real"])
    tensor.imag = _Part("imag", functions["imag"])
    tensor.at = property(Indexed, doc=At.__doc__)
    tensor.__setitem__ = _set_item
    tensor.__divmod__ = _divmod
    tensor.__rdivmod__ = _reflected_divmod
    tensor.__array_function__ = _numpy.array_function
    tensor.__dir__ = _dir
