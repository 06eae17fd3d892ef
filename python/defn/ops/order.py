"""Functions that sort elements. NaN sorts above every number; -0.0 equals 0.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axis, DTypeLike, TensorLike

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "top_k"]


@forwards(_core.sort)
def sort(
    tensor: TensorLike,
    axis: Axis = 0,
    *,
    direction: Literal["asc", "desc"] = "asc",
    stable: bool = False,
) -> Tensor:
    """Sort the elements along an axis. The default is the first axis; in NumPy it is the last.

    Equal elements keep their order in both directions, with and without ``stable``. NaN is last in
    ascending order and first in descending order.

    Shapes: unchanged; names are kept.
    Dtypes: integers, floats and bools; unchanged.
    Grad: ``g`` in the original order of the elements.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range.

    >>> dn.sort(dn.tensor([3, 1, 2]), direction="desc").to_list()
    [3, 2, 1]
    """
    ...


@forwards(_core.argsort)
def argsort(
    tensor: TensorLike,
    axis: Axis = 0,
    *,
    direction: Literal["asc", "desc"] = "asc",
    stable: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The indices that sort the elements along an axis. The default is the first axis; in NumPy it
    is the last.

    Shapes: unchanged; names are kept.
    Dtypes: integers, floats and bools; the result has ``dtype``, by default s32, or s64 if the axis
        needs it.
    Grad: zero.
    Raises: ``DTypeError`` for complex numbers, ``OptionError`` if ``dtype`` is not an integer dtype
        or cannot hold the last index, ``AxisError`` if the axis is out of range.

    >>> dn.argsort(dn.tensor([3, 1, 2])).to_list()
    [1, 2, 0]
    """
    ...


@forwards(_core.top_k)
def top_k(tensor: TensorLike, k: int = 1) -> tuple[Tensor, Tensor]:
    """The ``k`` greatest elements along the last axis in descending order, and their indices.

    Equal elements keep their order. NaN sorts above every number.

    Shapes: the last axis has size ``k``; names are kept.
    Dtypes: integers, floats and bools; unchanged. The indices are s32, or s64 if the axis needs it.
    Grad: ``g`` of the values to the selected elements; zero from the indices.
    Raises: ``DTypeError`` for complex numbers, ``ShapeError`` for a scalar, ``OptionError`` for a
        ``k`` below 1 or above the size of the axis.

    >>> values, positions = dn.top_k(dn.tensor([10, 30, 20]), k=2)
    >>> values.to_list(), positions.to_list()
    ([30, 20], [1, 2])
    """
    ...


@forwards(_core.lexsort)
def lexsort(keys: Sequence[TensorLike], axis: Axis = -1) -> Tensor:
    """The positions that sort elements by several keys: by the last key first, among equal ones by
    the key before.

    Shapes: the keys have one shape, which the result has, with the names of the first key.
    Dtypes: integers, floats and bools; the result is s32, or s64 where the axis needs it.
    Grad: zero.
    Raises: ``ShapeError`` if there is no key or a shape differs, ``DTypeError`` for complex
        numbers, ``AxisError`` if the axis is out of range.

    >>> dn.lexsort([dn.tensor([3, 1, 2]), dn.tensor([1, 1, 0])]).to_list()
    [2, 1, 0]
    """
    ...


@forwards(_core.partition)
def partition(tensor: TensorLike, kth: int | Sequence[int], axis: Axis = -1) -> Tensor:
    """Put the elements at the positions ``kth`` where a sort would put them, lower ones before them
    and higher ones behind.

    Elements between these positions keep their order; equal ones are as in a stable sort.

    Shapes: unchanged; names are kept.
    Dtypes: integers, floats and bools; unchanged.
    Grad: ``g`` in the original order of the elements.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range,
        ``OptionError`` if the axis does not have a position.

    >>> dn.partition(dn.tensor([5, 2, 4, 1, 3]), 2).to_list()
    [2, 1, 3, 5, 4]
    """
    ...


@forwards(_core.argpartition)
def argpartition(tensor: TensorLike, kth: int | Sequence[int], axis: Axis = -1) -> Tensor:
    """The positions from which the elements of ``partition`` come.

    Shapes: unchanged; names are kept.
    Dtypes: integers, floats and bools; the result is s32, or s64 where the axis needs it.
    Grad: zero.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range,
        ``OptionError`` if the axis does not have a position.

    >>> dn.argpartition(dn.tensor([5, 2, 4, 1, 3]), 2).to_list()
    [1, 3, 4, 0, 2]
    """
    ...
