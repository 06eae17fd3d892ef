"""Reductions by a user function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn._core import Tensor
    from defn.typing import Axes, DTypeLike, TensorLike

__all__ = ["reduce"]


@forwards(_core.reduce)
def reduce(
    tensor: TensorLike,
    acc: TensorLike,
    fun: Callable[[Tensor, Tensor], TensorLike],
    *,
    axes: Axes | None = None,
    keep_axes: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Fold the elements with a function ``fun(element, acc)`` of scalars, starting from ``acc``.

    The elements are folded in row-major order. If ``fun`` is a single addition or multiplication,
    the order may differ, as in ``sum`` and ``product``; only the rounding of floats depends on it.
    ``fun`` is called once, while it is traced. It may capture tensors.

    Shapes: the given axes, or all axes, are removed; ``keep_axes`` keeps them with size 1. An empty
        ``axes`` reduces nothing. Other axes keep their names. ``acc`` is a scalar.
    Dtypes: any; ``dtype`` if given, else the tensor and ``acc`` are promoted; Python numbers are
        weakly typed. ``fun`` receives scalars of that dtype and returns one of it or a narrower
        one.
    Grad: not defined; it raises.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if ``acc`` is
        not a scalar or ``fun`` does not return a scalar of the dtype.

    >>> dn.reduce(dn.tensor([1, 2, 3]), 0, lambda x, acc: x + 10 * acc).item()
    123
    """
    ...
