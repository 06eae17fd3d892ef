"""Folds by functions of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn._core import Tensor
    from defn.typing import Axes, DTypeLike, TensorLike

__all__ = ["reduce"]


def reduce(
    tensor: TensorLike,
    acc: TensorLike,
    fun: Callable[[Tensor, Tensor], TensorLike],
    *,
    axes: Axes | None = None,
    keep_axes: bool = False,
    dtype: DTypeLike | None = None,
    **unknown: Never,
) -> Tensor:
    """Fold the elements by a function ``fun(element, acc)`` of scalars, from ``acc`` on.

    The elements come in row-major order. A function that is one addition or multiplication may take
    them in another one, as ``sum`` and ``product`` do, which shows in the rounding of floats only.
    The function is called once, while it is traced; it may use tensors from outside.

    Shapes: the given axes, or all, go; ``keep_axes`` keeps them with size 1. No axes at all reduce
        nothing. Other axes keep their names. ``acc`` is a scalar.
    Dtypes: any; that of the tensor and ``acc`` together unless ``dtype`` is given; a plain number
        is weak. ``fun`` gets scalars of it, and gives one, or a narrower one.
    Grad: none; it raises.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``ShapeError`` if ``acc`` is no
        scalar or ``fun`` gives no scalar of the dtype.

    >>> dn.reduce(dn.tensor([1, 2, 3]), 0, lambda x, acc: x + 10 * acc).item()
    123
    """
    if unknown:
        refuse_options("reduce", unknown)
    return _core.reduce(tensor, acc, fun, axes, keep_axes, dtype)
