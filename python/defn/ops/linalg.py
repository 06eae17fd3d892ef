"""Products of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = ["dot", "matmul", "outer"]


@forwards(_core.dot)
def dot(*args: Any) -> Tensor:
    """The sum of products over contracted axes.

    ``dot(a, b)`` contracts the last axis of ``a`` with the second-to-last axis of ``b``, or with
    its only axis; a scalar multiplies. ``dot(a, axes_a, b, axes_b)`` contracts the given axes.
    ``dot(a, axes_a, batch_a, b, axes_b, batch_b)`` also takes batch axes, which must be the leading
    axes in order.

    Shapes: the batch axes, then the remaining axes of ``a``, then those of ``b``, with their names.
        Contracted axes must have equal sizes, and so must batch axes.
    Dtypes: any; promoted; the product of two bool tensors is s32. Floats of 8 and 16 bits
        accumulate in f32; integers wrap.
    Grad: ``g`` contracted with the other operand, which is not conjugated.
    Raises: ``ShapeError`` if sizes or batch axes do not match, ``AxisError`` if two axes of the
        result would have the same name.

    >>> dn.dot(dn.tensor([[1, 2], [3, 4]]), dn.tensor([10, 100])).to_list()
    [210, 430]
    >>> dn.dot(dn.iota((2, 3, 4)), [2], [0], dn.iota((2, 4, 5)), [1], [0]).shape
    (2, 3, 5)
    """
    ...


@forwards(_core.matmul)
def matmul(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The matrix product ``a @ b``, for every position of the leading axes.

    Shapes: the last two axes are the matrices; the axes before them broadcast. A vector on the left
        is a row, on the right a column; its axis is dropped from the result.
    Dtypes: any; promoted; the product of two bool tensors is s32. Floats of 8 and 16 bits
        accumulate in f32; integers wrap.
    Grad: ``g`` times the other operand transposed.
    Raises: ``ShapeError`` for a scalar or if the sizes do not match.

    >>> dn.matmul(dn.tensor([[1, 2], [3, 4]]), dn.tensor([[1, 0], [0, 10]])).to_list()
    [[1, 20], [3, 40]]
    """
    ...


@forwards(_core.outer)
def outer(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Every element of ``a`` times every element of ``b``; ``b`` is conjugated if the result is
    complex.

    Shapes: both are flattened; the result has one axis for each, named as the first axis of ``a``
        and the last of ``b``.
    Dtypes: any; promoted; the product of two bool tensors is s32; Python numbers are weakly typed.
    Grad: that of the product.
    Raises: ``AxisError`` if both axes would have the same name.

    >>> dn.outer(dn.tensor([1, 2]), dn.tensor([1, 10, 100])).to_list()
    [[1, 10, 100], [2, 20, 200]]
    """
    ...
