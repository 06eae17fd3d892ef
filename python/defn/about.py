"""Queries about the types of tensors. They need no elements, so they also work on templates and
traced tensors.

``dtype``, ``shape``, ``names``, ``rank``, ``size``, ``flat_size``, ``nbytes`` and
``vectorized_axes`` are attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards, public

if TYPE_CHECKING:
    from typing import Any

    from defn.typing import Axis, TensorLike

__all__ = ["axes", "axis_index", "axis_size", "bit_size", "compatible"]


@public
def axes(tensor: TensorLike) -> tuple[int, ...]:
    """The positions of all axes.

    Raises: ``TypeError`` for a value that is not a tensor.

    >>> dn.axes(dn.iota((2, 3)))
    (0, 1)
    """
    return tuple(range(_core.to_tensor(tensor).rank))


@forwards(_core.axis_index)
def axis_index(tensor: TensorLike, axis: Axis) -> int:
    """The position of an axis from the front; the axis may be negative or a name.

    Raises: ``AxisError`` if the tensor has no such axis.

    >>> x = dn.iota((2, 3), names=["row", "column"])
    >>> dn.axis_index(x, "column"), dn.axis_index(x, -2)
    (1, 0)
    """
    ...


@forwards(_core.axis_size)
def axis_size(tensor: TensorLike, axis: Axis) -> int:
    """The size of an axis.

    Raises: ``AxisError`` if the tensor has no such axis.

    >>> dn.axis_size(dn.iota((2, 3), names=["row", "column"]), "column")
    3
    """
    ...


@forwards(_core.bit_size)
def bit_size(tensor: TensorLike) -> int:
    """The number of bits of all elements; elements of 2 and 4 bits count as such.

    Raises: ``TypeError`` for a value that is not a tensor.

    >>> dn.bit_size(dn.tensor([1, 2, 3], dtype="u4"))
    12
    """
    ...


@forwards(_core.compatible)
def compatible(a: Any, b: Any) -> bool:
    """Whether two tensors have the same dtype, shape, vectorized axes and names.

    A missing name matches any name. Containers must have the same structure and compatible
    tensors.

    Raises: ``ContainerError`` for a value that is neither a tensor nor a container.

    >>> x = dn.iota((2, 3), names=["row", None])
    >>> dn.compatible(x, dn.template((2, 3), "s32")), dn.compatible(x, x.as_type("f32"))
    (True, False)
    """
    ...
