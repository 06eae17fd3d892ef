"""Functions of one element, applied to many elements at once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from defn import _core
from defn._public import forwards, public

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from defn._core import Tensor
    from defn.typing import DTypeLike

__all__ = ["map", "vmap"]

P = ParamSpec("P")
R = TypeVar("R")


@public
def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
) -> Callable[P, R]:
    """Map a function over one axis of its arguments; ``fun`` receives tensors without that axis.

    ``in_axes`` is the mapped axis of each positional argument: one axis for all arguments or a list
    with one entry for each. An axis is an int, negative from the end, or a name. ``None`` passes an
    argument whole. For a container, an entry is one axis for all its tensors or a container of such
    entries: a prefix of its structure, in which a tuple may stand for a list and a dict for any
    mapping. Keyword arguments are passed whole. ``out_axes`` is the position of the axis in the
    results, in the same form; ``None`` is for a result that is the same for all. Inside, the axis
    is a vectorized axis. Calls may be nested.

    ``axis_name`` makes the axis known to ``fun``: ``all_reduce``, ``all_gather``,
    ``reduce_scatter``, ``collective_permute``, ``mesh_index`` and ``mesh_size`` take it like an
    axis of a mesh. ``axis_size`` is the size of the axis, for a function none of whose arguments is
    mapped.

    Shapes: those of the arguments without the axis; those of the results with one more axis.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``OptionError`` if the sizes of the axes differ, there is no axis, or the axes do not
        fit the arguments; ``AxisError`` for an axis out of range, and for an ``axis_name`` that is
        the name of an axis of an argument, of an enclosing ``vmap`` or of the mesh.

    >>> a, b = dn.tensor([[1.0, 2.0], [3.0, 4.0]]), dn.tensor([1.0, 10.0])
    >>> dn.vmap(dn.dot, in_axes=(0, None))(a, b).to_list()
    [21.0, 43.0]
    >>> share = lambda x: x / dn.all_reduce(x, "i")
    >>> dn.vmap(share, axis_name="i")(dn.tensor([1.0, 3.0])).to_list()
    [0.25, 0.75]
    """
    call: Callable[..., Any] = fun

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return _core.vmap(call, (in_axes, out_axes), axis_name, axis_size, args, kwargs)

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
