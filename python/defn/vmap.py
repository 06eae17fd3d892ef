"""Functions of one element, applied to many elements at once."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from defn import _core
from defn._names import option_error
from defn._public import forwards, public

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from defn._core import Tensor
    from defn.typing import DTypeLike

__all__ = ["map", "vmap"]

P = ParamSpec("P")
R = TypeVar("R")


class _Nesting(threading.local):
    depth = 0


_nesting = _Nesting()


def _parts(axes: Any, value: Any, what: str) -> list[tuple[Any, Any]]:
    """Pair the parts of a container with their axes."""
    if isinstance(axes, dict) and isinstance(value, dict) and axes.keys() == value.keys():
        return [(axes[key], value[key]) for key in value]
    both = isinstance(axes, (list, tuple)) and isinstance(value, (list, tuple))
    if both and len(axes) == len(value):
        return list(zip(axes, value, strict=True))
    raise option_error(
        f"vmap: {what} is {axes!r} for a {type(value).__name__}, it must be an int, a name, None,"
        " or a container of them with the value's structure"
    )


def _is_leaf(axes: Any) -> bool:
    return axes is None or isinstance(axes, (int, str))


def _each(axes: Any, value: Any, what: str, change: Callable[[Any, Any], Any]) -> Any:
    """Apply ``change`` to each part of a container; ``axes`` is a prefix of its structure."""
    if _is_leaf(axes):
        return value if axes is None and what == "in_axes" else change(value, axes)
    parts = [_each(axis, part, what, change) for axis, part in _parts(axes, value, what)]
    if isinstance(value, dict):
        return dict(zip(value, parts, strict=True))
    if hasattr(value, "_fields"):
        return type(value)(*parts)
    return type(value)(parts)


@public
def vmap(fun: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]:
    """Map a function over one axis of its arguments; ``fun`` receives tensors without that axis.

    ``in_axes`` is the mapped axis of each positional argument: one axis for all arguments or a list
    with one entry for each. ``None`` passes an argument whole. For a container, an entry is one
    axis for all its tensors or a container of axes. Keyword arguments are passed whole.
    ``out_axes`` is the position of the axis in the results. Inside, the axis is a vectorized axis
    with an unused name. Calls may be nested.

    Shapes: those of the arguments without the axis; those of the results with one more axis.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``OptionError`` if the sizes of the axes differ, there is no axis, or the axes do not
        fit the arguments; ``AxisError`` for an axis out of range.

    >>> a, b = dn.tensor([[1.0, 2.0], [3.0, 4.0]]), dn.tensor([1.0, 10.0])
    >>> dn.vmap(dn.dot, in_axes=(0, None))(a, b).to_list()
    [21.0, 43.0]
    """
    call: Callable[..., Any] = fun

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise option_error(
                f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments, one for each is"
                " required"
            )
        sizes: list[int] = []

        def measure(value: Any, axis: Any) -> Any:
            sizes.extend(_core.leaf_sizes(value, axis))
            return value

        for axis, value in zip(axes, args, strict=True):
            _each(axis, value, "in_axes", measure)
        if not sizes:
            raise option_error("vmap: in_axes takes no axis, at least one is required")
        if len(set(sizes)) > 1:
            raise option_error(f"vmap: the mapped axes have sizes {sizes}, they must be equal")
        _nesting.depth += 1
        try:
            taken = set(_core.leaf_axes(args))
            name = f"vmap {_nesting.depth}"
            while name in taken:
                name += "_"
            inner = [
                _each(axis, value, "in_axes", lambda part, at: _core.vmap_enter(part, at, name))
                for axis, value in zip(axes, args, strict=True)
            ]
            result = call(*inner, **kwargs)
        finally:
            _nesting.depth -= 1

        def leave(part: Any, axis: Any) -> Any:
            if axis is not None:
                return _core.vmap_leave(part, axis, name, sizes[0])
            if name in _core.leaf_axes(part):
                raise option_error(
                    "vmap: out_axes is None for a result that differs along the mapped axis, an int"
                    " is required"
                )
            return part

        return _each(out_axes, result, "out_axes", leave)

    return mapped


@forwards(_core.map_elements)
def map(tensor: Any, fun: Callable[[Tensor], Any], *, dtype: DTypeLike | None = None) -> Tensor:
    """Apply a function of a scalar to each element.

    Shapes: unchanged; names are kept. ``fun`` returns a scalar.
    Dtypes: that of the result of ``fun``, or ``dtype``.
    Grad: through the operations of ``fun``.
    Raises: ``ShapeError`` if ``fun`` does not return a scalar.

    >>> dn.map(dn.tensor([[1, 2], [3, 4]]), lambda x: x * x + 1).to_list()
    [[2, 5], [10, 17]]
    """
    ...
