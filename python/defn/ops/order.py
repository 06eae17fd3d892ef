"""Functions that put elements in order: NaN above every number, -0.0 equal to 0.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axis, DTypeLike, TensorLike

__all__ = ["argsort", "sort", "top_k"]


def sort(
    tensor: TensorLike,
    axis: Axis = 0,
    *,
    direction: Literal["asc", "desc"] = "asc",
    stable: bool = False,
    **unknown: Never,
) -> Tensor:
    """The elements in order along an axis: the first one if none is given, where NumPy takes the
    last.

    Equal elements keep their order, in both directions, whether ``stable`` asks for it or not. NaN
    is last in the ascending order and first in the descending one.

    Shapes: kept, with axis names.
    Dtypes: integers and floats; kept.
    Grad: ``g`` back where the elements came from.
    Raises: ``DTypeError`` for complex numbers, ``AxisError`` if the axis is out of range.

    >>> dn.sort(dn.tensor([3, 1, 2]), direction="desc").to_list()
    [3, 2, 1]
    """
    if unknown:
        refuse_options("sort", unknown)
    return _core.sort(tensor, axis, direction, stable)


def argsort(
    tensor: TensorLike,
    axis: Axis = 0,
    *,
    direction: Literal["asc", "desc"] = "asc",
    stable: bool = False,
    dtype: DTypeLike | None = None,
    **unknown: Never,
) -> Tensor:
    """Where along an axis the elements of ``sort`` come from: along the first one if none is given,
    where NumPy takes the last.

    Shapes: kept, with axis names.
    Dtypes: integers and floats; gives ``dtype``, without one s32, or s64 where the axis needs it.
    Grad: none flows.
    Raises: ``DTypeError`` for complex numbers, ``OptionError`` if ``dtype`` is not of integers or
        does not hold the last index, ``AxisError`` if the axis is out of range.

    >>> dn.argsort(dn.tensor([3, 1, 2])).to_list()
    [1, 2, 0]
    """
    if unknown:
        refuse_options("argsort", unknown)
    return _core.argsort(tensor, axis, direction, stable, dtype)


def top_k(tensor: TensorLike, k: int = 1, **unknown: Never) -> tuple[Tensor, Tensor]:
    """The ``k`` greatest elements along the last axis, descending, and their positions.

    Of equal elements the first come first; NaN is above every number.

    Shapes: the last axis has size ``k``; names are kept.
    Dtypes: integers and floats; kept. The positions are s32, or s64 where the axis
        needs it.
    Grad: ``g`` of the values to the elements that they are; none from the positions.
    Raises: ``DTypeError`` for complex numbers, ``ShapeError`` for a scalar, ``OptionError`` for a
        ``k`` below 1 or above the size of the axis.

    >>> values, positions = dn.top_k(dn.tensor([10, 30, 20]), k=2)
    >>> values.to_list(), positions.to_list()
    ([30, 20], [1, 2])
    """
    if unknown:
        refuse_options("top_k", unknown)
    return _core.top_k(tensor, k)
