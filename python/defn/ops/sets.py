"""Positions of elements, and tensors as sets: functions whose sizes depend on values.

A definition fixes all sizes before the run. There, and under ``vmap``, these functions need
``size``: what is beyond it is left out, and what is missing is filled with ``fill_value``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "argwhere",
    "flatnonzero",
    "intersect1d",
    "isin",
    "nonzero",
    "setdiff1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


@forwards(_core.nonzero)
def nonzero(
    tensor: TensorLike, *, size: int | None = None, fill_value: int = 0
) -> tuple[Tensor, ...]:
    """The positions of the elements that are not 0, in row-major order: a vector for each axis.

    Shapes: at least one axis. Vectors of ``size`` elements, by default as many as are not 0.
    Dtypes: any; the result is s32, or s64 if an axis needs it.
    Grad: none, integers.
    Raises: ``ShapeError`` for a scalar, ``OptionError`` for a negative size, ``TraceError`` while
        a definition is traced if there is no size.

    >>> rows, columns = dn.nonzero(dn.tensor([[0, 1], [2, 0]]))
    >>> rows.to_list(), columns.to_list()
    ([0, 1], [1, 0])
    >>> dn.jit(lambda x: dn.nonzero(x, size=3, fill_value=-1))(dn.tensor([0, 5, 7]))[0].to_list()
    [1, 2, -1]
    """
    ...


@forwards(_core.flatnonzero)
def flatnonzero(tensor: TensorLike, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """The positions in row-major order of the elements that are not 0.

    Shapes: any. A vector of ``size`` elements, by default as many as are not 0.
    Dtypes: any; the result is s32, or s64 if the number of elements needs it.
    Grad: none, integers.
    Raises: ``OptionError`` for a negative size, ``TraceError`` while a definition is traced if
        there is no size.

    >>> dn.flatnonzero(dn.tensor([[0, 1], [2, 0]])).to_list()
    [1, 2]
    """
    ...


@forwards(_core.argwhere)
def argwhere(tensor: TensorLike, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """The positions of the elements that are not 0, in row-major order: a row for each.

    Shapes: any. A matrix of ``size`` rows, by default as many as are not 0, with a column for each
        axis.
    Dtypes: any; the result is s32, or s64 if an axis needs it.
    Grad: none, integers.
    Raises: as ``flatnonzero``.

    >>> dn.argwhere(dn.tensor([[0, 1], [2, 0]])).to_list()
    [[0, 1], [1, 0]]
    """
    ...


@forwards(_core.unique)
def unique(
    tensor: TensorLike,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: TensorLike | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in ascending order, complex numbers by their real parts first.

    In a tuple with them: the first position of each in row-major order, the position among them of
    each element of ``tensor``, and how often each occurs. NaNs are last; they are one element if
    ``equal_nan`` is true. ``fill_value`` is by default the first of the distinct elements, to which
    their indices then belong; counts are filled with 0.

    Shapes: vectors of ``size`` elements, by default as many as are distinct; the inverse has the
        shape of ``tensor``, with its names. Positions in it may be beyond the size.
    Dtypes: any; unchanged. Positions and counts are s32, or s64 if the number of elements needs it.
    Grad: ``g`` to the elements that are the first of their kind.
    Raises: ``OptionError`` for a negative size, ``ShapeError`` if the fill is no scalar,
        ``TraceError`` while a definition is traced if there is no size.

    >>> values, counts = dn.unique(dn.tensor([3, 1, 3]), return_counts=True)
    >>> values.to_list(), counts.to_list()
    ([1, 3], [1, 2])
    >>> dn.jit(lambda x: dn.unique(x, size=3, fill_value=0))(dn.tensor([3, 1, 3])).to_list()
    [1, 3, 0]
    """
    ...


@forwards(_core.unique_all)
def unique_all(
    tensor: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The distinct elements, their first positions, the inverse and the counts of ``unique``. Each
    NaN is distinct, as in the array API standard.

    Shapes: as ``unique``.
    Dtypes: as ``unique``.
    Grad: as ``unique``.
    Raises: as ``unique``.

    >>> [part.to_list() for part in dn.unique_all(dn.tensor([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    ...


@forwards(_core.unique_counts)
def unique_counts(
    tensor: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> tuple[Tensor, Tensor]:
    """The distinct elements and the counts of ``unique``. Each NaN is distinct.

    Shapes: as ``unique``.
    Dtypes: as ``unique``.
    Grad: as ``unique``.
    Raises: as ``unique``.

    >>> [part.to_list() for part in dn.unique_counts(dn.tensor([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    ...


@forwards(_core.unique_inverse)
def unique_inverse(
    tensor: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> tuple[Tensor, Tensor]:
    """The distinct elements and the inverse of ``unique``. Each NaN is distinct.

    Shapes: as ``unique``.
    Dtypes: as ``unique``.
    Grad: as ``unique``.
    Raises: as ``unique``.

    >>> [part.to_list() for part in dn.unique_inverse(dn.tensor([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    ...


@forwards(_core.unique_values)
def unique_values(
    tensor: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> Tensor:
    """The distinct elements of ``unique``. Each NaN is distinct.

    Shapes: as ``unique``.
    Dtypes: as ``unique``.
    Grad: as ``unique``.
    Raises: as ``unique``.

    >>> dn.unique_values(dn.tensor([3, 1, 3])).to_list()
    [1, 3]
    """
    ...


@forwards(_core.isin)
def isin(element: TensorLike, test_elements: TensorLike, *, invert: bool = False) -> Tensor:
    """Whether each element is among others, or with ``invert`` is not. NaN is not.

    Many elements are sorted, and all are then searched for by bisection at the same time.

    Shapes: that of ``element``, with its names; ``test_elements`` have any shape.
    Dtypes: any; promoted; the result is bool.
    Grad: none, bools.
    Raises: ``RangeError`` for a number that does not fit the dtype.

    >>> dn.isin(dn.tensor([1, 2, 3]), dn.tensor([3, 1])).to_list()
    [True, False, True]
    """
    ...


@forwards(_core.setdiff1d)
def setdiff1d(
    a: TensorLike, b: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> Tensor:
    """The distinct elements of ``a`` that are not in ``b``, in ascending order.

    Shapes: operands of any shape. A vector of ``size`` elements, by default as many as there are;
        ``fill_value`` is by default the first of them, or 0.
    Dtypes: any; promoted.
    Grad: ``g`` to the elements of ``a`` that are the first of their kind.
    Raises: as ``unique``.

    >>> dn.setdiff1d(dn.tensor([3, 1, 2]), dn.tensor([2, 5])).to_list()
    [1, 3]
    """
    ...


@forwards(_core.intersect1d)
def intersect1d(
    a: TensorLike, b: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> Tensor:
    """The distinct elements of ``a`` that are in ``b``, too, in ascending order.

    Shapes: as ``setdiff1d``.
    Dtypes: any; promoted.
    Grad: ``g`` to the elements of ``a`` that are the first of their kind.
    Raises: as ``unique``.

    >>> dn.intersect1d(dn.tensor([3, 1, 2]), dn.tensor([2, 5, 3])).to_list()
    [2, 3]
    """
    ...


@forwards(_core.union1d)
def union1d(
    a: TensorLike, b: TensorLike, *, size: int | None = None, fill_value: TensorLike | None = None
) -> Tensor:
    """The distinct elements of ``a`` and ``b``, in ascending order.

    Shapes: as ``setdiff1d``.
    Dtypes: any; promoted.
    Grad: ``g`` to the elements that are the first of their kind.
    Raises: as ``unique``.

    >>> dn.union1d(dn.tensor([3, 1]), dn.tensor([2, 3])).to_list()
    [1, 2, 3]
    """
    ...
