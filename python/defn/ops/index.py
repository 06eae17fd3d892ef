"""Functions that read and write at positions held in a tensor.

A position below 0 counts from the end. A position that is still out of range raises an error if the
function runs eagerly on the host. In a compiled program and on a device, a read is clamped to the
nearest element and a write is dropped, unless ``dn.checks("index")`` asks for an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axes, Axis, Shape, TensorLike

__all__ = [
    "gather",
    "indexed_add",
    "indexed_put",
    "put_along_axis",
    "segment_max",
    "segment_min",
    "segment_product",
    "segment_sum",
    "take",
    "take_along_axis",
    "tril_indices",
    "triu_indices",
    "unravel_index",
]


@forwards(_core.gather)
def gather(tensor: TensorLike, indices: TensorLike, *, axes: Axes | None = None) -> Tensor:
    """The elements at positions; each row of ``indices`` is a position.

    The last axis of the indices holds a position: one entry for each of ``axes``, by default the
    leading axes. An entry below 0 counts from the end of its axis. Axes without an entry are taken
    whole.

    Shapes: the other axes of the indices, then the whole axes. Names are dropped.
    Dtypes: any; unchanged. The indices are integers.
    Grad: ``g`` added at the positions read; zero to the indices.
    Raises: ``DTypeError`` if the indices are not integers, ``ShapeError`` if they are a scalar or a
        position has more entries than there are axes, ``OptionError`` unless the axes ascend and
        there is one for each entry, ``BoundsError`` for a position out of range, see ``checks``.

    >>> dn.gather(dn.iota((3, 3)), dn.tensor([[0, 1], [2, 2]])).to_list()
    [1, 8]
    """
    ...


@forwards(_core.take)
def take(tensor: TensorLike, indices: TensorLike, axis: Axis = 0) -> Tensor:
    """The elements at positions along an axis. ``x[indices]`` takes along the first axis.

    Positions below 0 count from the end.

    Shapes: the axis is replaced by the axes of the indices, with their names; if the indices have
        one axis, the two names merge.
    Dtypes: any; unchanged. The indices are integers.
    Grad: ``g`` added at the positions read; zero to the indices.
    Raises: ``DTypeError`` if the indices are not integers, ``AxisError`` if the axis is out of
        range or names differ, ``BoundsError`` for an index out of range, see ``checks``.

    >>> dn.take(dn.tensor([10, 20, 30]), dn.tensor([[2, 0], [1, 1]])).to_list()
    [[30, 10], [20, 20]]
    """
    ...


@forwards(_core.take_along_axis)
def take_along_axis(tensor: TensorLike, indices: TensorLike, axis: Axis = 0) -> Tensor:
    """The elements at positions along an axis, with separate positions along the other axes.

    For example, it applies the indices that ``argsort`` returns. Positions below 0 count from the
    end.

    Shapes: the indices have the shape of the tensor except on the axis; the result has the shape of
        the indices and the names of the tensor.
    Dtypes: any; unchanged. The indices are integers.
    Grad: ``g`` added at the positions read; zero to the indices.
    Raises: ``DTypeError`` if the indices are not integers, ``ShapeError`` if another axis differs,
        ``AxisError`` if the axis is out of range, ``BoundsError`` for an index out of range, see
        ``checks``.

    >>> dn.take_along_axis(dn.tensor([[1, 2], [3, 4]]), dn.tensor([[1], [0]]), axis=1).to_list()
    [[2], [3]]
    """
    ...


@forwards(_core.put_along_axis)
def put_along_axis(
    tensor: TensorLike, indices: TensorLike, values: TensorLike, axis: Axis = 0
) -> Tensor:
    """Put values at positions along an axis, with separate positions along the other axes, where
    ``take_along_axis`` reads them.

    The tensor itself does not change. Of several values of one element the last one stays.
    Positions below 0 count from the end.

    Shapes: that of the tensor, with its names. The indices have its shape except on the axis; the
        values broadcast to their shape.
    Dtypes: any; promoted; Python numbers are weakly typed. The indices are integers.
    Grad: ``g`` where nothing was put, and at the positions to the values; zero to the indices.
    Raises: ``DTypeError`` if the indices are not integers, ``ShapeError`` if another axis differs
        or the values do not broadcast, ``AxisError`` if the axis is out of range, ``BoundsError``
        for an index out of range, see ``checks``.

    >>> x, at = dn.tensor([[1, 2], [3, 4]]), dn.tensor([[1], [0]])
    >>> dn.put_along_axis(x, at, 9, axis=1).to_list()
    [[1, 9], [9, 4]]
    """
    ...


@forwards(_core.indexed_add)
def indexed_add(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    *,
    axes: Axes | None = None,
) -> Tensor:
    """Add updates to the elements at positions; each row of ``indices`` is a position.

    Several updates of one element add up. Entries below 0 count from the end. A vector with one
    entry per axis, together with a scalar update, is a single position.

    Shapes: that of the tensor. Indices are ``[n][k]``. Updates have ``n`` on their first axis, then
        the axes without an entry. They may be smaller on those and then update the first elements.
    Dtypes: any; promoted, but not to bool; Python numbers are weakly typed. The indices are
        integers.
    Grad: ``g`` to the tensor, ``g`` at their positions to the updates; zero to the indices.
    Raises: ``DTypeError`` if the indices are not integers or both the tensor and the updates are
        bools, ``ShapeError`` if the indices have more than two axes or the updates do not fit,
        ``OptionError`` unless the axes ascend and there is one for each entry, ``BoundsError`` for
        a position out of range, see ``checks``.

    >>> at, updates = dn.tensor([[1], [2], [1]]), dn.tensor([1, 2, 3])
    >>> dn.indexed_add(dn.tensor([0, 0, 0]), at, updates).to_list()
    [0, 4, 2]
    """
    ...


@forwards(_core.indexed_put)
def indexed_put(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    *,
    axes: Axes | None = None,
) -> Tensor:
    """Replace the elements at positions by updates; each row of ``indices`` is a position.

    Of several updates of one element the last wins. Entries below 0 count from the end. A vector
    with one entry per axis, together with a scalar update, is a single position.

    Shapes: that of the tensor. Indices are ``[n][k]``. Updates have ``n`` on their first axis, then
        the axes without an entry. They may be smaller on those and then update the first elements.
    Dtypes: any; promoted; Python numbers are weakly typed. The indices are integers.
    Grad: ``g`` with zeros at the positions to the tensor, ``g`` there to the updates; zero to the
        indices.
    Raises: ``DTypeError`` if the indices are not integers, ``ShapeError`` if they have more than
        two axes or the updates do not fit, ``OptionError`` unless the axes ascend and there is one
        for each entry, ``BoundsError`` for a position out of range, see ``checks``.

    >>> dn.indexed_put(dn.tensor([0, 0, 0]), dn.tensor([2]), 7).to_list()
    [0, 0, 7]
    """
    ...


@forwards(_core.segment_max)
def segment_max(tensor: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """The greatest of the elements along the first axis that have the same id.

    The ids run from 0 to ``num_segments - 1``, in any order. An element with an id out of this
    range is left out, also one below 0.
    Where there is no element, the result is the least value of the dtype, such as -inf.

    Shapes: ``num_segments`` in the place of the first axis, which loses its name. There is one id
        for each element of that axis.
    Dtypes: any but complex; unchanged. The ids are integers.
    Grad: ``g`` to the element that is the greatest, as in ``max``; zero to the ids.
    Raises: ``DTypeError`` if the ids are not integers or the elements are complex, ``ShapeError``
        if there is not one id for each element, ``OptionError`` for a number of segments below 0.

    >>> ids = dn.tensor([0, 2, 0, 7])
    >>> dn.segment_max(dn.tensor([1.0, 2.0, 3.0, 4.0]), ids, num_segments=3).to_list()
    [3.0, -inf, 2.0]
    """
    ...


@forwards(_core.segment_min)
def segment_min(tensor: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """The least of the elements along the first axis that have the same id.

    The ids run from 0 to ``num_segments - 1``, in any order. An element with an id out of this
    range is left out, also one below 0.
    Where there is no element, the result is the greatest value of the dtype, such as inf.

    Shapes: ``num_segments`` in the place of the first axis, which loses its name. There is one id
        for each element of that axis.
    Dtypes: any but complex; unchanged. The ids are integers.
    Grad: ``g`` to the element that is the least, as in ``min``; zero to the ids.
    Raises: ``DTypeError`` if the ids are not integers or the elements are complex, ``ShapeError``
        if there is not one id for each element, ``OptionError`` for a number of segments below 0.

    >>> ids = dn.tensor([0, 2, 0, 7])
    >>> dn.segment_min(dn.tensor([1.0, 2.0, 3.0, 4.0]), ids, num_segments=3).to_list()
    [1.0, inf, 2.0]
    """
    ...


@forwards(_core.segment_product)
def segment_product(tensor: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """The products of the elements along the first axis that have the same id.

    The ids run from 0 to ``num_segments - 1``, in any order. An element with an id out of this
    range is left out, also one below 0.
    Where there is no element, the result is 1.

    Shapes: ``num_segments`` in the place of the first axis, which loses its name. There is one id
        for each element of that axis.
    Dtypes: any; bools become s32, others stay. Floats of 8 and 16 bits are multiplied in f32. The
        ids are integers.
    Grad: ``g`` times the product of the other elements, exact where elements are 0; zero to the
        ids.
    Raises: ``DTypeError`` if the ids are not integers, ``ShapeError`` if there is not one for each
        element, ``OptionError`` for a number of segments below 0.

    >>> ids = dn.tensor([0, 2, 0, 7])
    >>> dn.segment_product(dn.tensor([2.0, 5.0, 3.0, 4.0]), ids, num_segments=3).to_list()
    [6.0, 1.0, 5.0]
    """
    ...


@forwards(_core.segment_sum)
def segment_sum(tensor: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """The sums of the elements along the first axis that have the same id.

    The ids run from 0 to ``num_segments - 1``, in any order. An element with an id out of this
    range is left out, also one below 0.
    Where there is no element, the result is 0.

    Shapes: ``num_segments`` in the place of the first axis, which loses its name. There is one id
        for each element of that axis.
    Dtypes: any; bools are counted as s32, others stay. The ids are integers.
    Grad: the ``g`` of its segment to each element; zero to the ids.
    Raises: ``DTypeError`` if the ids are not integers, ``ShapeError`` if there is not one for each
        element, ``OptionError`` for a number of segments below 0.

    >>> ids = dn.tensor([0, 2, 0, 7])
    >>> dn.segment_sum(dn.tensor([1.0, 2.0, 3.0, 4.0]), ids, num_segments=3).to_list()
    [4.0, 0.0, 2.0]
    """
    ...


@forwards(_core.tril_indices)
def tril_indices(n: int, m: int | None = None, *, offset: int = 0) -> tuple[Tensor, Tensor]:
    """The positions on and below a diagonal of a matrix: their rows and their columns.

    ``x[dn.tril_indices(n)]`` are the elements of the triangle, in row-major order. ``tri`` is the
    mask of the same elements, which broadcasts.

    Shapes: two vectors with one element for each position in ``n`` rows and ``m`` columns, by
        default as many as rows.
    Dtypes: s32; s64 where a size needs it.
    Grad: none.
    Raises: ``OptionError`` if a size is negative or ``offset`` is no integer.

    >>> rows, columns = dn.tril_indices(2)
    >>> rows.to_list(), columns.to_list()
    ([0, 1, 1], [0, 0, 1])
    """
    ...


@forwards(_core.triu_indices)
def triu_indices(n: int, m: int | None = None, *, offset: int = 0) -> tuple[Tensor, Tensor]:
    """The positions on and above a diagonal of a matrix: their rows and their columns.

    ``x[dn.triu_indices(n)]`` are the elements of the triangle, in row-major order.

    Shapes: two vectors with one element for each position in ``n`` rows and ``m`` columns, by
        default as many as rows.
    Dtypes: s32; s64 where a size needs it.
    Grad: none.
    Raises: ``OptionError`` if a size is negative or ``offset`` is no integer.

    >>> rows, columns = dn.triu_indices(2)
    >>> rows.to_list(), columns.to_list()
    ([0, 0, 1], [0, 1, 1])
    """
    ...


@forwards(_core.unravel_index)
def unravel_index(indices: TensorLike, shape: Shape | int) -> tuple[Tensor, ...]:
    """The positions in a shape of elements that are counted in row-major order.

    It turns what ``argmax`` of all elements returns into one index for each axis. Indices below 0
    count from the end.

    Shapes: one tensor for each axis of ``shape``, as the indices, with their names.
    Dtypes: the indices are integers; the result is s32, or s64 where the number of elements needs
        it.
    Grad: zero.
    Raises: ``DTypeError`` if the indices are not integers, ``BoundsError`` if there are indices
        into a shape without elements, and for one out of range, see ``checks``.

    >>> rows, columns = dn.unravel_index(dn.tensor([0, 5, -2]), (2, 3))
    >>> rows.to_list(), columns.to_list()
    ([0, 1, 1], [0, 2, 1])
    """
    ...
