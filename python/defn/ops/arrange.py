"""Functions that put elements and tensors in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, TensorLike

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "column_stack",
    "dstack",
    "meshgrid",
    "moveaxis",
    "repeat",
    "roll",
    "rot90",
    "unstack",
]


@forwards(_core.moveaxis)
def moveaxis(tensor: TensorLike, source: Axes, destination: Axes) -> Tensor:
    """Move axes to other positions. The other axes keep their order.

    Shapes: axis ``source[i]`` of the operand becomes axis ``destination[i]``, with its name. A name
        in ``destination`` is the present position of that axis.
    Dtypes: any; unchanged.
    Grad: ``g`` with the axes in their original order.
    Raises: ``AxisError`` if an axis or a position is out of range or given twice, ``OptionError``
        unless there is one position for each axis.

    >>> dn.moveaxis(dn.iota((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    ...


@forwards(_core.roll)
def roll(tensor: TensorLike, shift: int | Sequence[int], axis: Axes | None = None) -> Tensor:
    """Move the elements along axes; those beyond the end return at the start.

    ``shift`` is the number of positions for all axes, or has one for each. Without ``axis`` all
    elements are rolled in row-major order.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g``, rolled back.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``OptionError`` unless there is
        one shift, or one for each axis.

    >>> dn.roll(dn.tensor([1, 2, 3, 4]), 1).to_list()
    [4, 1, 2, 3]
    """
    ...


@forwards(_core.repeat)
def repeat(tensor: TensorLike, repeats: int | Sequence[int], axis: Axis | None = None) -> Tensor:
    """Repeat each element along an axis. ``tile`` repeats the whole tensor.

    ``repeats`` is one number for all elements, or has one for each element along the axis. Without
    ``axis`` the elements are taken in row-major order. The numbers cannot be a tensor, because they
    decide the size of the result.

    Shapes: the axis has the sum of the repeats and keeps its name; other axes keep theirs. Without
        ``axis`` the result is a vector.
    Dtypes: any; unchanged.
    Grad: the sum of ``g`` over the copies of an element.
    Raises: ``OptionError`` unless the repeats are integers of at least 0, one or one for each
        element, ``AxisError`` if ``axis`` is out of range.

    >>> dn.repeat(dn.tensor([1, 2, 3]), 2).to_list()
    [1, 1, 2, 2, 3, 3]
    >>> dn.repeat(dn.tensor([1, 2, 3]), [2, 0, 1]).to_list()
    [1, 1, 3]
    """
    ...


@forwards(_core.rot90)
def rot90(tensor: TensorLike, k: int = 1, axes: Axes = (0, 1)) -> Tensor:
    """Turn a tensor ``k`` times by 90 degrees in the plane of two axes.

    It turns from the first axis towards the second; a negative ``k`` turns the other way.

    Shapes: if ``k`` is odd, both axes change places, with their names.
    Dtypes: any; unchanged.
    Grad: ``g``, turned back.
    Raises: ``AxisError`` unless there are two axes, in range and different.

    >>> dn.rot90(dn.tensor([[1, 2], [3, 4]])).to_list()
    [[2, 4], [1, 3]]
    """
    ...


@forwards(_core.unstack)
def unstack(tensor: TensorLike, axis: Axis = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor at each position of an axis; ``stack`` joins them again.

    Shapes: without the axis; other axes keep their names.
    Dtypes: any; unchanged.
    Grad: the stacked cotangents of the parts.
    Raises: ``AxisError`` if ``axis`` is out of range.

    >>> [part.to_list() for part in dn.unstack(dn.tensor([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    ...


@forwards(_core.broadcast_arrays)
def broadcast_arrays(*tensors: TensorLike) -> tuple[Tensor, ...]:
    """Broadcast tensors to their common shape.

    Shapes: they broadcast together; names merge.
    Dtypes: any; each tensor keeps its own.
    Grad: the sum of ``g`` over the axes that were added or stretched.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if names differ.

    >>> x, y = dn.broadcast_arrays(dn.tensor([1, 2]), dn.tensor([[3], [4]]))
    >>> x.to_list(), y.to_list()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    ...


@forwards(_core.atleast_1d)
def atleast_1d(tensor: TensorLike) -> Tensor:
    """The tensor, or a vector of one element for a scalar.

    Shapes: at least one axis; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g`` in the operand's shape.
    Raises: no specific errors.

    >>> dn.atleast_1d(2).to_list()
    [2]
    """
    ...


@forwards(_core.atleast_2d)
def atleast_2d(tensor: TensorLike) -> Tensor:
    """The tensor, with axes of size 1 in front so that there are at least two.

    Shapes: at least two axes; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g`` in the operand's shape.
    Raises: no specific errors.

    >>> dn.atleast_2d(dn.tensor([1, 2])).shape
    (1, 2)
    """
    ...


@forwards(_core.atleast_3d)
def atleast_3d(tensor: TensorLike) -> Tensor:
    """The tensor, with axes of size 1 so that there are at least three.

    They are on both sides of the axis of a vector, and after those of a matrix.

    Shapes: at least three axes; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g`` in the operand's shape.
    Raises: no specific errors.

    >>> dn.atleast_3d(dn.tensor([1, 2])).shape
    (1, 2, 1)
    """
    ...


@forwards(_core.column_stack)
def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Put vectors, and the columns of matrices, side by side as the columns of a matrix.

    The tensors are the leaves of any container, as in ``concatenate``.

    Shapes: a vector is one column. The sizes of the second axis add up, other axes are equal. Names
        merge.
    Dtypes: any; promoted.
    Grad: each tensor receives its columns of ``g``.
    Raises: ``ShapeError`` if there is no tensor or another axis differs, ``AxisError`` if names
        differ.

    >>> dn.column_stack([dn.tensor([1, 2]), dn.tensor([3, 4])]).to_list()
    [[1, 3], [2, 4]]
    """
    ...


@forwards(_core.dstack)
def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Join tensors along their third axis, after ``atleast_3d``.

    The tensors are the leaves of any container, as in ``concatenate``.

    Shapes: the sizes of the third axis add up, other axes are equal. Names merge.
    Dtypes: any; promoted.
    Grad: each tensor receives its slice of ``g``.
    Raises: ``ShapeError`` if there is no tensor or another axis differs, ``AxisError`` if names
        differ.

    >>> dn.dstack([dn.tensor([1, 2]), dn.tensor([3, 4])]).to_list()
    [[[1, 3], [2, 4]]]
    """
    ...


@forwards(_core.array_split)
def array_split(
    tensor: TensorLike, sections_or_indices: int | Sequence[int], axis: Axis = 0
) -> tuple[Tensor, ...]:
    """Split into parts along an axis.

    An integer is the number of parts. Where the size does not divide evenly, the first parts have
    one element more. A sequence has the positions of the cuts. Those below 0 count from the end,
    and those beyond an end are moved to it.

    Shapes: the sizes of the parts on the axis; names are kept.
    Dtypes: any; unchanged.
    Grad: the concatenated cotangents of the parts; where parts overlap, they add up.
    Raises: ``OptionError`` if the number of parts is below 1 or a position is no integer,
        ``AxisError`` if ``axis`` is out of range.

    >>> [part.to_list() for part in dn.array_split(dn.iota((5,)), 2)]
    [[0, 1, 2], [3, 4]]
    >>> [part.to_list() for part in dn.array_split(dn.iota((5,)), [1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    ...


@forwards(_core.meshgrid)
def meshgrid(*tensors: TensorLike, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """The grid of several vectors: each is repeated along the axes of the others.

    With ``"ij"`` vector ``i`` lies along axis ``i``. With ``"xy"`` the first two axes change
    places. Operands that broadcast need no grid.

    Shapes: one axis for each vector, with its name. A scalar is a vector of one element.
    Dtypes: any; each tensor keeps its own.
    Grad: the sum of ``g`` over the other axes.
    Raises: ``ShapeError`` if a tensor has several axes, ``AxisError`` if two vectors have the same
        name, ``OptionError`` if ``indexing`` is unknown.

    >>> x, y = dn.meshgrid(dn.tensor([1, 2]), dn.tensor([3, 4]))
    >>> x.to_list(), y.to_list()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    ...
