"""Functions that move elements without computing on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, Names, Shape, TensorLike

__all__ = [
    "broadcast",
    "concatenate",
    "flatten",
    "new_axis",
    "pad",
    "pad_outer",
    "put_slice",
    "rename",
    "reshape",
    "reverse",
    "slice",
    "slice_along_axis",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
]


@forwards(_core.reshape)
def reshape(
    tensor: TensorLike,
    shape: Shape | Tensor | int | Literal["auto"],
    *,
    names: Names | None = None,
) -> Tensor:
    """The same elements in row-major order with another shape.

    Shapes: any shape with the same number of elements. One size may be -1 or ``"auto"``; it is
        inferred. Names are those given, or those of ``shape`` if it is a tensor; names of the
        operand are dropped.
    Dtypes: any; unchanged.
    Grad: ``g`` in the operand's shape.
    Raises: ``ShapeError`` if the numbers of elements differ or the open size cannot be inferred,
        ``AxisError`` if ``names`` does not fit the shape.

    >>> dn.reshape(dn.iota((6,)), (2, -1)).to_list()
    [[0, 1, 2], [3, 4, 5]]
    """
    ...


@forwards(_core.flatten)
def flatten(tensor: TensorLike, axes: Axes | None = None) -> Tensor:
    """Merge all axes, or some adjacent axes, into one.

    Shapes: the merged axis has the product of the sizes and no name; other axes keep theirs.
    Dtypes: any; unchanged.
    Grad: ``g`` in the operand's shape.
    Raises: ``OptionError`` if the axes are not adjacent and in order, ``AxisError`` if one does not
        exist.

    >>> dn.flatten(dn.iota((2, 3, 4)), axes=[1, 2]).shape
    (2, 12)
    """
    ...


@forwards(_core.squeeze)
def squeeze(tensor: TensorLike, axes: Axes | None = None) -> Tensor:
    """Remove axes of size 1: all of them, or the given ones.

    Shapes: without those axes; other axes keep their names.
    Dtypes: any; unchanged.
    Grad: ``g`` with the axes inserted again.
    Raises: ``ShapeError`` if a given axis has another size, ``AxisError`` if it does not exist.

    >>> dn.squeeze(dn.iota((1, 3, 1))).shape
    (3,)
    """
    ...


@forwards(_core.new_axis)
def new_axis(tensor: TensorLike, axis: int, name: str | None = None) -> Tensor:
    """Insert an axis of size 1 at a position of the result; -1 appends it.

    Shapes: one more axis, named ``name``; other axes keep their names.
    Dtypes: any; unchanged.
    Grad: ``g`` without the axis.
    Raises: ``AxisError`` if the position is out of range.

    >>> dn.new_axis(dn.iota((2, 3)), -1).shape
    (2, 3, 1)
    """
    ...


@forwards(_core.rename)
def rename(tensor: TensorLike, names: Names | None) -> Tensor:
    """Rename the axes; ``None`` removes all names.

    Shapes: unchanged; ``names`` has one entry per axis.
    Dtypes: any; unchanged.
    Grad: ``g``.
    Raises: ``AxisError`` unless there is one name per axis.

    >>> dn.rename(dn.iota((2, 3)), ["row", None]).names
    ('row', None)
    """
    ...


@forwards(_core.transpose)
def transpose(tensor: TensorLike, axes: Axes | None = None) -> Tensor:
    """Permute the axes; without ``axes``, reverse their order.

    Shapes: axis ``axes[i]`` of the operand becomes axis ``i``, with its name.
    Dtypes: any; unchanged.
    Grad: ``g`` with the axes in their original order.
    Raises: ``AxisError`` unless ``axes`` names every axis once.

    >>> dn.transpose(dn.iota((2, 3, 4)), axes=[1, 0, 2]).shape
    (3, 2, 4)
    """
    ...


@forwards(_core.broadcast)
def broadcast(
    tensor: TensorLike,
    shape: Shape | Tensor | int,
    *,
    axes: Axes | None = None,
    names: Names | None = None,
) -> Tensor:
    """Broadcast to a shape: repeat elements along new axes and along axes of size 1.

    Shapes: the given shape. Axis ``i`` of the operand becomes axis ``axes[i]``; without ``axes``,
        the axes of the operand become the last ones. Names are those given, or those of ``shape``
        if it is a tensor; names of the operand are dropped.
    Dtypes: any; unchanged.
    Grad: the sum of ``g`` over the axes that were added or stretched.
    Raises: ``ShapeError`` if a size is neither 1 nor that of the target axis, ``AxisError`` if
        ``names`` does not fit the shape.

    >>> dn.broadcast(dn.tensor([1, 2]), (2, 3), axes=[0]).to_list()
    [[1, 1, 1], [2, 2, 2]]
    """
    ...


@forwards(_core.tile)
def tile(tensor: TensorLike, repetitions: Sequence[int]) -> Tensor:
    """Repeat a tensor along its axes.

    Shapes: axis i is repeated ``repetitions[i]`` times; entries or axes missing on the left count
        as 1. Names are dropped.
    Dtypes: any; unchanged.
    Grad: the sum of ``g`` over the copies.
    Raises: ``OptionError`` unless the repetitions are integers of at least 1.

    >>> dn.tile(dn.tensor([1, 2]), [2, 2]).to_list()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    ...


@forwards(_core.concatenate)
def concatenate(tensors: Sequence[TensorLike], axis: Axis = 0) -> Tensor:
    """Join tensors along an axis that they already have.

    The tensors are the leaves of any container: nested lists, values of dicts, fields of
    dataclasses.

    Shapes: the same rank, and equal except on ``axis``, whose sizes add up. Names merge.
    Dtypes: any; promoted.
    Grad: each tensor receives its slice of ``g``.
    Raises: ``ShapeError`` if there is no tensor or another axis differs, ``AxisError`` if ``axis``
        is out of range or names differ.

    >>> dn.concatenate([dn.tensor([1, 2]), dn.tensor([3])]).to_list()
    [1, 2, 3]
    """
    ...


@forwards(_core.stack)
def stack(tensors: Sequence[TensorLike], axis: int = 0, *, name: str | None = None) -> Tensor:
    """Join tensors along a new axis.

    The tensors are the leaves of any container: nested lists, values of dicts, fields of
    dataclasses.

    Shapes: all equal; the result has a new axis at position ``axis``, named ``name``. Names merge.
    Dtypes: any; promoted; Python numbers are weakly typed.
    Grad: each tensor receives its slice of ``g``.
    Raises: ``ShapeError`` if there is no tensor or shapes differ, ``AxisError`` if ``axis`` is out
        of range or names differ.

    >>> dn.stack([dn.tensor([1, 2]), dn.tensor([3, 4])], axis=1).to_list()
    [[1, 3], [2, 4]]
    """
    ...


@forwards(_core.split)
def split(tensor: TensorLike, split: float, axis: Axis = 0) -> tuple[Tensor, Tensor]:
    """Split into two parts along an axis.

    Shapes: an integer ``split`` is the size of the first part; below 0 it counts from the end. A
        float is the fraction of the axis in the first part, rounded up to whole elements. Names are
        kept.
    Dtypes: any; unchanged.
    Grad: the concatenated cotangents of the parts.
    Raises: ``OptionError`` unless both parts have elements, ``AxisError`` if ``axis`` is out of
        range.

    >>> first, second = dn.split(dn.iota((5,)), 2)
    >>> first.to_list(), second.to_list()
    ([0, 1], [2, 3, 4])
    """
    ...


@forwards(_core.slice)
def slice(
    tensor: TensorLike,
    starts: Sequence[int | Tensor],
    lengths: Sequence[int],
    *,
    strides: int | Sequence[int] = 1,
) -> Tensor:
    """A window of the tensor. Its start may be known only at run time.

    Starts are integers or scalar integer tensors. They are clamped so that the window fits: a
    negative start becomes 0. In ``x[i]``, ``slice_along_axis`` and ``put_slice`` it counts from the
    end instead.

    Shapes: each axis has ``lengths[i] / strides[i]`` elements, rounded up; names are kept.
    Dtypes: any; unchanged.
    Grad: zeros with ``g`` in the window; zero to the starts.
    Raises: ``AxisError`` unless there is one entry per axis, ``ShapeError`` for a length that
        exceeds the axis or a stride below 1, ``BoundsError`` under ``checks("index")`` for a start
        out of range.

    >>> dn.slice(dn.iota((4, 4)), [1, 0], [2, 3], strides=[1, 2]).to_list()
    [[4, 6], [8, 10]]
    """
    ...


@forwards(_core.slice_along_axis)
def slice_along_axis(
    tensor: TensorLike,
    start: int | Tensor,
    length: int,
    axis: Axis = 0,
    *,
    strides: int = 1,
) -> Tensor:
    """A window along one axis of the tensor; the other axes are taken whole.

    The start is an integer or a scalar integer tensor. A negative start counts from the end.

    Shapes: the axis has ``length / strides`` elements, rounded up; names are kept.
    Dtypes: any; unchanged.
    Grad: zeros with ``g`` in the window; zero to the start.
    Raises: ``ShapeError`` for a length that exceeds the axis or a stride below 1, ``AxisError`` if
        ``axis`` is out of range, ``BoundsError`` for a window that is out of range, see ``checks``.

    >>> dn.slice_along_axis(dn.iota((2, 4)), 1, 2, axis=1).to_list()
    [[1, 2], [5, 6]]
    """
    ...


@forwards(_core.put_slice)
def put_slice(tensor: TensorLike, starts: Sequence[int | Tensor], slice: TensorLike) -> Tensor:
    """A copy of a tensor with a window replaced.

    Starts are integers or scalar integer tensors. Negative starts count from the end. See also
    ``x.at[index].set(value)``.

    Shapes: that of ``tensor``; the slice has the same rank and no larger size, or is a scalar,
        which replaces the element at the starts. Names merge.
    Dtypes: any; promoted; Python numbers are weakly typed.
    Grad: ``g`` with zeros in the window to the tensor, the window of ``g`` to the slice.
    Raises: ``ShapeError`` if the slice does not fit, ``AxisError`` unless there is one start per
        axis, ``BoundsError`` for a window that is out of range, see ``checks``.

    >>> dn.put_slice(dn.iota((5,)), [1], dn.tensor([10, 20])).to_list()
    [0, 10, 20, 3, 4]
    >>> dn.put_slice(dn.iota((2, 2)), [1, 0], 7).to_list()
    [[0, 1], [7, 3]]
    """
    ...


@forwards(_core.pad)
def pad(tensor: TensorLike, value: TensorLike, config: Sequence[tuple[int, int, int]]) -> Tensor:
    """Insert a value around the elements and between them, or crop.

    Shapes: each axis has an entry ``(low, high, interior)``: the number of values before, after,
        and between neighbours. A negative ``low`` or ``high`` crops. Names are kept.
    Dtypes: any; promoted; a Python number as the value is weakly typed.
    Grad: ``g`` at its elements to the tensor, the sum of the other elements of ``g`` to the value.
    Raises: ``ShapeError`` unless there is one entry per axis, the value is a scalar, the interior
        is not negative and the sizes of the result are at least 0.

    >>> dn.pad(dn.tensor([1, 2]), 0, [(1, 2, 1)]).to_list()
    [0, 1, 0, 2, 0, 0]
    """
    ...


@forwards(_core.pad_outer)
def pad_outer(
    tensor: TensorLike,
    mode: Literal["cyclic", "mirror", "replicate", "reflect"] | TensorLike,
    config: Sequence[tuple[int, int]],
) -> Tensor:
    """Pad a tensor with its own elements or with a scalar.

    ``"cyclic"`` repeats the tensor. ``"mirror"`` repeats its mirror image including the edge,
    ``"reflect"`` without the edge. ``"replicate"`` repeats the edge.

    Shapes: each axis has an entry ``(left, right)``: the number of values before and after. With a
        scalar a negative number crops. Names are kept.
    Dtypes: any; unchanged, but promoted with a scalar; Python numbers are weakly typed.
    Grad: the sum of ``g`` over all copies of an element.
    Raises: ``OptionError`` if the mode is unknown, and with the name of a mode if a number is
        negative or an axis has no element to repeat; ``ShapeError`` if there is not one entry per
        axis, the mode is a tensor that is not a scalar, or a size of the result is negative.

    >>> dn.pad_outer(dn.tensor([1, 2, 3]), "reflect", [(2, 1)]).to_list()
    [3, 2, 1, 2, 3, 2]
    """
    ...


@forwards(_core.reverse)
def reverse(tensor: TensorLike, axes: Axes | None = None) -> Tensor:
    """Reverse the elements along all axes or along the given ones. ``flip`` is the same function.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g``, reversed.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.reverse(dn.tensor([1, 2, 3])).to_list()
    [3, 2, 1]
    """
    ...
