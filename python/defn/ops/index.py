"""Functions that read and write at positions held in a tensor.

A position below 0 counts from the end. One that is still out of range raises where a function runs
at once on the host. In a compiled program, and on a device, a read is moved to the nearest element
and a write is dropped, unless ``dn.checks("index")`` asks for an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axes, Axis, TensorLike

__all__ = ["gather", "indexed_add", "indexed_put", "take", "take_along_axis"]


def gather(
    tensor: TensorLike, indices: TensorLike, *, axes: Axes | None = None, **unknown: Never
) -> Tensor:
    """The elements at positions, each of which is a row of ``indices``.

    The last axis of the indices holds a position: one entry for each of ``axes``, the first ones
    where none are given. An entry below 0 counts from the end of its axis. Axes that no entry is
    along come whole.

    Shapes: the other axes of the indices, then the whole axes. Names are dropped.
    Dtypes: any; kept. The indices are integers.
    Grad: ``g`` added up where its elements came from; none to the indices.
    Raises: ``DTypeError`` if the indices are no integers, ``ShapeError`` if they are a scalar or a
        position has more entries than there are axes, ``OptionError`` if the axes do not ascend or
        are not one for each entry, ``BoundsError`` for a position out of range, see ``checks``.

    >>> dn.gather(dn.iota((3, 3)), dn.tensor([[0, 1], [2, 2]])).to_list()
    [1, 8]
    """
    if unknown:
        refuse_options("gather", unknown)
    return _core.gather(tensor, indices, axes)


def take(tensor: TensorLike, indices: TensorLike, axis: Axis = 0, **unknown: Never) -> Tensor:
    """The elements at positions along an axis. ``x[indices]`` takes along the first.

    Positions below 0 count from the end.

    Shapes: the axis gives way to those of the indices, with their names; for indices of one axis
        the two names merge.
    Dtypes: any; kept. The indices are integers.
    Grad: ``g`` added up where its elements came from; none to the indices.
    Raises: ``DTypeError`` if the indices are no integers, ``AxisError`` if the axis is out of range
        or names differ, ``BoundsError`` for an index out of range, see ``checks``.

    >>> dn.take(dn.tensor([10, 20, 30]), dn.tensor([[2, 0], [1, 1]])).to_list()
    [[30, 10], [20, 20]]
    """
    if unknown:
        refuse_options("take", unknown)
    return _core.take(tensor, indices, axis)


def take_along_axis(
    tensor: TensorLike, indices: TensorLike, axis: Axis = 0, **unknown: Never
) -> Tensor:
    """The elements at positions along an axis, one for each place along the others.

    It puts the positions that ``argsort`` gives to use, for example. Positions below 0 count from
    the end.

    Shapes: the indices have the tensor's shape but on the axis; the result has theirs, and the
        tensor's names.
    Dtypes: any; kept. The indices are integers.
    Grad: ``g`` added up where its elements came from; none to the indices.
    Raises: ``DTypeError`` if the indices are no integers, ``ShapeError`` if another axis differs,
        ``AxisError`` if the axis is out of range, ``BoundsError`` for an index out of range, see
        ``checks``.

    >>> dn.take_along_axis(dn.tensor([[1, 2], [3, 4]]), dn.tensor([[1], [0]]), axis=1).to_list()
    [[2], [3]]
    """
    if unknown:
        refuse_options("take_along_axis", unknown)
    return _core.take_along_axis(tensor, indices, axis)


def indexed_add(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    *,
    axes: Axes | None = None,
    **unknown: Never,
) -> Tensor:
    """Add updates to the elements at positions, each of which is a row of ``indices``.

    Several updates of one element add up. Entries below 0 count from the end. A vector of one entry
    for each axis, with a scalar, is a single position.

    Shapes: the tensor's. Positions are ``[n][k]``; updates have ``n`` on their first axis and then
        the axes that no entry is along, where they may be smaller: the first elements are meant.
    Dtypes: any; merged, a plain number is weak. The indices are integers.
    Grad: to the tensor ``g``, to the updates ``g`` at their positions; none to the indices.
    Raises: ``DTypeError`` if the indices are no integers, ``ShapeError`` if they have more than two
        axes or the updates do not fit, ``OptionError`` if the axes do not ascend or are not one for
        each entry, ``BoundsError`` for a position out of range, see ``checks``.

    >>> at, updates = dn.tensor([[1], [2], [1]]), dn.tensor([1, 2, 3])
    >>> dn.indexed_add(dn.tensor([0, 0, 0]), at, updates).to_list()
    [0, 4, 2]
    """
    if unknown:
        refuse_options("indexed_add", unknown)
    return _core.indexed_add(tensor, indices, updates, axes)


def indexed_put(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    *,
    axes: Axes | None = None,
    **unknown: Never,
) -> Tensor:
    """Put updates in the place of the elements at positions, each a row of ``indices``.

    Of several updates of one element the last stays. Entries below 0 count from the end. A vector
    of one entry for each axis, with a scalar, is a single position.

    Shapes: the tensor's. Positions are ``[n][k]``; updates have ``n`` on their first axis and then
        the axes that no entry is along, where they may be smaller: the first elements are meant.
    Dtypes: any; merged, a plain number is weak. The indices are integers.
    Grad: to the tensor ``g`` with zeros at the positions, to the updates ``g`` there; none to the
        indices.
    Raises: ``DTypeError`` if the indices are no integers, ``ShapeError`` if they have more than two
        axes or the updates do not fit, ``OptionError`` if the axes do not ascend or are not one for
        each entry, ``BoundsError`` for a position out of range, see ``checks``.

    >>> dn.indexed_put(dn.tensor([0, 0, 0]), dn.tensor([2]), 7).to_list()
    [0, 0, 7]
    """
    if unknown:
        refuse_options("indexed_put", unknown)
    return _core.indexed_put(tensor, indices, updates, axes)
