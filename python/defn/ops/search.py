"""Positions in an ordered vector, counts of what lies between, and interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = ["bincount", "digitize", "histogram", "interp", "searchsorted"]


@forwards(_core.searchsorted)
def searchsorted(
    tensor: TensorLike, values: TensorLike, side: Literal["left", "right"] = "left"
) -> Tensor:
    """The positions at which values belong in an ordered vector: the number of elements before
    each.

    ``side`` is that of equal elements on which the position is. NaN is above every number. The
    search is binary; that the vector ascends is not checked.

    Shapes: those of ``values``, with their names; ``tensor`` is a vector.
    Dtypes: real, compared exactly; the result is s32, or s64 where the vector needs it.
    Grad: zero.
    Raises: ``ShapeError`` if ``tensor`` is no vector, ``DTypeError`` for complex elements,
        ``OptionError`` if ``side`` is unknown.

    >>> dn.searchsorted(dn.tensor([1, 3, 3, 5]), dn.tensor([3, 0, 9])).to_list()
    [1, 0, 4]
    >>> dn.searchsorted(dn.tensor([1, 3, 3, 5]), 3, side="right").item()
    3
    """
    ...


@forwards(_core.digitize)
def digitize(tensor: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """The bin of each element among ascending or descending edges: the number of edges before it.

    A bin has its lower edge; with ``right`` it has its upper one. NaN is above every number. The
    order of the edges is not checked.

    Shapes: unchanged; names are kept. The edges are a vector.
    Dtypes: real, compared exactly; the result is s32, or s64 where the edges need it.
    Grad: zero.
    Raises: ``ShapeError`` if the edges are no vector, ``DTypeError`` for complex elements.

    >>> dn.digitize(dn.tensor([3, 0, 9]), dn.tensor([1, 3, 5])).to_list()
    [2, 0, 3]
    """
    ...


@forwards(_core.bincount)
def bincount(
    tensor: TensorLike,
    weights: TensorLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
) -> Tensor:
    """The number of each integer from 0 on in a vector, or the sum of its weights.

    Without ``length`` the greatest element decides the size of the result, which is at least
    ``minlength``; elements are not negative. With ``length`` that is the size, and other integers
    are left out. A traced tensor needs it, because its values are not known.

    Shapes: a vector without a name; the weights have the shape of the tensor.
    Dtypes: integers. Numbers are s32, or s64 where the size of the vector needs it. Sums have the
        dtype of the weights, or s32 for bools.
    Grad: zero to the tensor; to each weight the element of ``g`` to which it was added.
    Raises: ``OptionError`` without ``length`` if the tensor is traced or has a negative element,
        ``DTypeError`` for other elements than integers, ``ShapeError`` if the tensor is no vector
        or the weights have another shape.

    >>> dn.bincount(dn.tensor([1, 3, 1])).to_list()
    [0, 2, 0, 1]
    >>> dn.bincount(dn.tensor([1, 3, 1]), length=2).to_list()
    [0, 2]
    """
    ...


@forwards(_core.histogram)
def histogram(
    tensor: TensorLike,
    bins: int | TensorLike = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """The number of elements in each bin, or the sum of their weights, and the edges of the bins.

    ``bins`` is the number of bins of equal widths, or a vector of ascending edges. Without a range
    equal bins reach from the least element to the greatest; if one of these is infinite or NaN, the
    edges are NaN and the bins are empty. A bin has its lower edge, and the last one also its upper
    edge. Elements outside and NaN are left out. With ``density`` the numbers are divided by their
    sum and by the widths of the bins.

    Shapes: one number for each bin and one edge more; the weights have the shape of the tensor.
    Dtypes: real. Numbers are s32, or s64 where the tensor needs it; sums have the dtype of the
        weights. Densities and the edges of equal bins are floats, f32 for integers.
    Grad: of sums to the weights; of the edges to the least and the greatest element.
    Raises: ``DTypeError`` for complex elements, ``OptionError`` for fewer bins than 1, fewer edges
        than 2, and a range that is not finite or descends, ``ShapeError`` if the edges are no
        vector or the weights have another shape.

    >>> counts, edges = dn.histogram(dn.tensor([0.5, 1.0, 4.0]), 2, range=(0, 4))
    >>> counts.to_list(), edges.to_list()
    ([2, 1], [0.0, 2.0, 4.0])
    """
    ...


@forwards(_core.interp)
def interp(
    tensor: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> Tensor:
    """The values of straight lines between points with ascending positions ``xp`` and values
    ``fp``.

    Before the first point the value is ``left``, behind the last one ``right``; by default they are
    the values of those points. With a period the points are taken modulo it, in any order, and
    repeat. That the positions ascend is not checked.

    Shapes: unchanged; names are kept. The points are vectors of one size.
    Dtypes: any; promoted, integers to f32; positions are real; Python numbers are weakly typed.
    Grad: through the definition, to all three.
    Raises: ``ShapeError`` unless the points are vectors of one size with a point, ``DTypeError``
        for complex positions, ``OptionError`` if the period is 0 or not finite.

    >>> dn.interp(dn.tensor([0.5, 2.0]), dn.tensor([0.0, 1.0, 3.0]), dn.tensor([2, 4, 8])).to_list()
    [3.0, 6.0]
    """
    ...
