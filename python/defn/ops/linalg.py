"""Products of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor
    from defn.typing import Axes, Axis, TensorLike

__all__ = [
    "cross",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
]


@forwards(_core.cross)
def cross(a: TensorLike, b: TensorLike, /, *, axis: Axis = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis.

    Shapes: both have size 3 along ``axis``; the other axes broadcast, and names merge.
    Dtypes: any but bool; promoted. Floats of 8 and 16 bits are computed in f32; integers wrap.
    Grad: cross products of ``g`` with the other operand.
    Raises: ``ShapeError`` for scalars, another size than 3 and axes that do not broadcast,
        ``DTypeError`` for bools.

    >>> dn.cross(dn.tensor([1, 0, 0]), dn.tensor([[0, 1, 0], [0, 0, 1]])).to_list()
    [[0, 0, 1], [0, -1, 0]]
    """
    ...


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


@forwards(_core.einsum)
def einsum(equation: str, /, *operands: TensorLike) -> Tensor:
    """The sum of products that an equation describes, as ``"bij,bjk->bik"``.

    The equation has a letter for each axis of each operand, with commas between operands, and
    after ``->`` the letters of the result. Letters that the result lacks are summed over. A letter
    that one operand has twice selects its diagonal. ``...`` stands for axes without letters.
    Without ``->`` the result has the axes of ``...`` and the letters that stand once, in
    alphabetical order.

    Operands are contracted in pairs. Up to six are contracted in the order with the fewest
    products, found by dynamic programming (Pfeifer, Haegeman and Verstraete, 2014). For more, each
    step contracts the pair whose result is the smallest beside its operands, as in opt_einsum
    (Smith and Gray, 2018).

    Shapes: an axis for each letter of the result, with the merged name of its axes. Axes of size 1
        and those of ``...`` broadcast.
    Dtypes: any; promoted; bools count in s32. Floats of 8 and 16 bits accumulate in f32; integers
        wrap. Python numbers are weakly typed.
    Grad: ``g`` contracted with the other operands, which are not conjugated.
    Raises: ``OptionError`` for an equation that does not fit the operands, ``ShapeError`` for sizes
        of one letter that differ and without operands, ``AxisError`` for names that differ or that
        the result would have twice.

    >>> a, b = dn.tensor([[1, 2], [3, 4]]), dn.tensor([10, 100])
    >>> dn.einsum("ij,j->i", a, b).to_list(), dn.einsum("ii", a).item()
    ([210, 430], 5)
    >>> dn.einsum("...ij,...jk", dn.iota((5, 2, 3)), dn.iota((3, 4))).shape
    (5, 2, 4)
    """
    ...


@forwards(_core.inner)
def inner(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The sum of products over the last axes of both, without conjugation; a scalar multiplies.

    Shapes: the other axes of ``a``, then those of ``b``, with their names. The last sizes must be
        equal.
    Dtypes: any; promoted; the product of two bool tensors is s32. Floats of 8 and 16 bits
        accumulate in f32; integers wrap. Python numbers are weakly typed.
    Grad: ``g`` contracted with the other operand, which is not conjugated.
    Raises: ``ShapeError`` if the last sizes differ, ``AxisError`` if two axes of the result would
        have the same name.

    >>> dn.inner(dn.tensor([[1, 2], [3, 4]]), dn.tensor([[10, 100], [1, 0]])).to_list()
    [[210, 1], [430, 3]]
    """
    ...


@forwards(_core.kron)
def kron(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The Kronecker product: a block for each element of ``a``, which is that element times ``b``.

    Shapes: the products of the sizes, without names; leading axes of size 1 make the ranks equal.
    Dtypes: any; promoted; the product of two bool tensors is s32; Python numbers are weakly typed.
    Grad: that of the product.
    Raises: no specific errors.

    >>> dn.kron(dn.tensor([1, 10]), dn.tensor([1, 2, 3])).to_list()
    [1, 2, 3, 10, 20, 30]
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


@forwards(_core.tensordot)
def tensordot(a: TensorLike, b: TensorLike, /, axes: int | tuple[Axes, Axes] = 2) -> Tensor:
    """Sums of products over axes of both, without conjugation.

    ``axes`` is a number of last axes of ``a``, which meet as many first axes of ``b`` in their
    order; or a pair of the axes of ``a`` and those of ``b`` that they meet. With 0 axes it is the
    outer product.

    Shapes: the other axes of ``a``, then those of ``b``, with their names. Axes that meet have
        equal sizes.
    Dtypes: any; promoted; the product of two bool tensors is s32. Floats of 8 and 16 bits
        accumulate in f32; integers wrap.
    Grad: ``g`` contracted with the other operand, which is not conjugated.
    Raises: ``ShapeError`` if sizes differ, ``OptionError`` for other numbers of axes, ``AxisError``
        for an axis that an operand does not have, and if two axes of the result would have the
        same name.

    >>> dn.tensordot(dn.iota((2, 3, 4)), dn.iota((3, 4, 5))).shape
    (2, 5)
    >>> dn.tensordot(dn.iota((2, 3)), dn.iota((5, 2)), axes=(0, 1)).shape
    (3, 5)
    """
    ...


@forwards(_core.vdot)
def vdot(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The sum of products of both flattened, the first conjugated.

    Shapes: any of the same number of elements; the result is a scalar.
    Dtypes: any; promoted; the product of two bool tensors is s32. Floats of 8 and 16 bits
        accumulate in f32; integers wrap. Python numbers are weakly typed.
    Grad: ``g`` times the other operand.
    Raises: ``ShapeError`` if the numbers of elements differ.

    >>> dn.vdot(dn.tensor([1j, 2]), dn.tensor([1j, 3])).item()
    (7+0j)
    """
    ...


@forwards(_core.vecdot)
def vecdot(a: TensorLike, b: TensorLike, /, *, axis: Axis = -1) -> Tensor:
    """The dot product of vectors along an axis of both, the first conjugated.

    Shapes: the sizes of ``axis`` are equal, and it is removed; the other axes broadcast, and names
        merge.
    Dtypes: any; promoted; the product of two bool tensors is s32. Floats of 8 and 16 bits
        accumulate in f32; integers wrap.
    Grad: ``g`` times the other operand.
    Raises: ``ShapeError`` for scalars, and if sizes differ or do not broadcast, ``AxisError`` for
        an axis that an operand does not have and for names that differ.

    >>> dn.vecdot(dn.tensor([[1, 2], [3, 4]]), dn.tensor([10, 100])).to_list()
    [210, 430]
    """
    ...
