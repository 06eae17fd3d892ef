"""Linear algebra: systems of equations, factorizations, norms.

All functions work on the matrices in the last two axes, for every position of the leading axes.
Results are floats or complex numbers; integers become f32. Floats of 8 and 16 bits are computed in
f32 and rounded at the end. The factors of a matrix with a NaN or an infinity are NaN. All
iterations terminate.

:func:`cg`, :func:`bicgstab` and :func:`gmres` solve systems whose matrix is a function that
multiplies by it, on containers of any shapes.

>>> a = dn.tensor([[4.0, 1.0], [1.0, 3.0]])
>>> dn.round(dn.linalg.solve(a, dn.tensor([9.0, 5.0]))).to_list()
[2.0, 1.0]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from defn import _core
from defn._linalg_general import (
    block_diag,
    cho_solve,
    eig,
    eigvals,
    expm,
    hessenberg,
    logm,
    lu_solve,
    schur,
    sqrtm,
    toeplitz,
)
from defn._linalg_results import (
    EighResult as EighResult,
)
from defn._linalg_results import (
    EigResult as EigResult,
)
from defn._linalg_results import (
    QRResult as QRResult,
)
from defn._linalg_results import (
    SlogdetResult as SlogdetResult,
)
from defn._linalg_results import (
    SVDResult as SVDResult,
)
from defn._linalg_solvers import bicgstab, cg, gmres
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, TensorLike

__all__ = [
    "adjoint",
    "bicgstab",
    "block_diag",
    "cg",
    "cho_solve",
    "cholesky",
    "cond",
    "determinant",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "gmres",
    "hessenberg",
    "invert",
    "least_squares",
    "logm",
    "lu",
    "lu_solve",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "schur",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "svdvals",
    "toeplitz",
    "triangular_solve",
]


@forwards(_core.linalg_adjoint)
def adjoint(tensor: TensorLike, /) -> Tensor:
    """The conjugate transpose: the last two axes are exchanged and complex elements conjugated.

    Shapes: the last two sizes and names are exchanged; vectors and scalars keep their shape.
    Dtypes: any; unchanged.
    Grad: ``g`` transposed, and conjugated if the tensor is complex.
    Raises: no specific errors.

    >>> dn.linalg.adjoint(dn.tensor([[1, 2j], [3, 4]])).to_list()
    [[(1-0j), (3-0j)], [-2j, (4-0j)]]
    """
    ...


@forwards(_core.linalg_cholesky)
def cholesky(tensor: TensorLike, /) -> Tensor:
    """The lower triangular ``l`` of ``tensor = l @ adjoint(l)``.

    Matrices are symmetric or Hermitian; only the lower triangle is read. The factor of a matrix
    with a negative eigenvalue is NaN. The factor of a singular matrix has a column of zeros for
    each row that depends on the rows above it. If rounding hides this dependence, the factor is
    computed with diagonal pivoting (Higham, 1990).

    Shapes: unchanged; names are kept. The last two sizes must be equal.
    Dtypes: any; floats and complex are unchanged, integers become f32.
    Grad: two triangular solves with ``l``; not symmetrized. Not defined for a singular matrix.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> dn.linalg.cholesky(dn.tensor([[4.0, 2.0], [2.0, 5.0]])).to_list()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    ...


@forwards(_core.linalg_cond)
def cond(
    tensor: TensorLike,
    /,
    ord: float | Literal["inf", "neg_inf", "frobenius", "nuclear"] | None = None,
) -> Tensor:
    """The condition number: the quotient of the greatest and the least singular value.

    For another ``ord`` than 2 and -2 it is the norm of the matrix times that of its inverse, with
    the orders of :func:`norm`. It is infinite for singular matrices.

    Shapes: the leading axes, without names; with the order of a norm matrices must be square.
    Dtypes: any; real, f32 for integers.
    Grad: through the definition.
    Raises: ``ShapeError`` for a rank below 2, a matrix without elements, and with the order of a
        norm if matrices are not square, ``OptionError`` for an ``ord`` that is not defined for
        matrices.

    >>> dn.linalg.cond(dn.tensor([[4.0, 0.0], [0.0, 2.0]]), 1).item()
    2.0
    """
    ...


@forwards(_core.linalg_determinant)
def determinant(tensor: TensorLike, /) -> Tensor:
    """The determinant: in closed form for up to three rows, else through :func:`lu`.

    Shapes: the leading axes, without names. The last two sizes must be equal.
    Dtypes: any; floats and complex are unchanged, integers become f32.
    Grad: that of the closed form, or through :func:`lu`, which needs a nonsingular matrix.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> dn.linalg.determinant(dn.tensor([[1, 2], [3, 4]])).item()
    -2.0
    """
    ...


@forwards(_core.linalg_eigh)
def eigh(tensor: TensorLike, /, *, max_iter: int = 1000, eps: float = 0.0) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices: ``(values, vectors)``.

    The eigenvalues ascend. Column i of the vectors is the unit eigenvector of value i, up to a sign
    or a phase. Both triangles are read, as those of one Hermitian matrix. Values and elements of
    vectors with a magnitude of at most ``eps`` become 0; Nx uses 1e-4, here the default is 0.
    ``max_iter`` limits the sweeps of backends that use Jacobi rotations.

    Shapes: ``{..., n}`` and ``{..., n, n}``, without names.
    Dtypes: any; floats and complex are unchanged, also the values of complex matrices; integers
        become f32.
    Grad: symmetrized. Eigenvalues must be distinct if the vectors are used, because the gradient
        divides by their differences.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2, ``OptionError`` for
        ``max_iter`` below 1 and for a negative ``eps``.

    >>> values, vectors = dn.linalg.eigh(dn.tensor([[1.0, 0.0], [0.0, -2.0]]))
    >>> values.to_list(), dn.abs(vectors).to_list()
    ([-2.0, 1.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    ...


@forwards(_core.linalg_eigvalsh)
def eigvalsh(tensor: TensorLike, /) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, ascending, as those of :func:`eigh`.

    Shapes: ``{..., n}``, without names. The last two sizes must be equal.
    Dtypes: any; floats are unchanged, integers become f32; the values of complex matrices are real.
    Grad: symmetrized.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> dn.linalg.eigvalsh(dn.tensor([[1.0, 0.0], [0.0, -2.0]])).to_list()
    [-2.0, 1.0]
    """
    ...


@forwards(_core.linalg_invert)
def invert(tensor: TensorLike, /) -> Tensor:
    """The inverse of matrices.

    The inverse of a singular matrix is NaN. A matrix counts as singular if the magnitude of its
    determinant is below 1000 times the smallest positive normal number of its dtype.

    Shapes: unchanged, without names. The last two sizes must be equal.
    Dtypes: any; floats and complex are unchanged, integers become f32.
    Grad: ``-y^T g y^T``, where ``y`` is the inverse.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> dn.linalg.invert(dn.tensor([[2.0, 0.0], [0.0, 4.0]])).to_list()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    ...


@forwards(_core.linalg_least_squares)
def least_squares(a: TensorLike, b: TensorLike, /, *, eps: float = 1e-15) -> Tensor:
    """The ``x`` that minimizes the norm of ``a @ x - b``; of several, that of the least norm.

    Shapes: for a matrix ``{m, n}`` and a vector ``{m}`` the result is ``{n}``, without a name.
    Dtypes: any; promoted, integers to f32.
    Grad: through :func:`pinv`.
    Raises: ``ShapeError`` for other ranks or sizes, ``OptionError`` for a negative ``eps``.

    >>> a = dn.tensor([[0, 1], [1, 1], [2, 1], [3, 1]])
    >>> x = dn.linalg.least_squares(a, dn.tensor([-1, 0.2, 0.9, 2.1]))
    >>> [f"{value:.2f}" for value in x.to_list()]
    ['1.00', '-0.95']
    """
    ...


@forwards(_core.linalg_lu)
def lu(tensor: TensorLike, /) -> tuple[Tensor, Tensor, Tensor]:
    """The factors of ``tensor = p @ l @ u``: ``(p, l, u)``.

    ``p`` is a permutation, ``l`` is lower triangular with ones on its diagonal, ``u`` is upper
    triangular. Partial pivoting selects the pivot of the greatest magnitude.

    Shapes: three times that of the tensor, without names. The last two sizes must be equal.
    Dtypes: any; ``p`` has the dtype of the tensor, the factors are floats or complex.
    Grad: two triangular solves; zero from ``p``.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> p, l, u = dn.linalg.lu(dn.tensor([[1, 2], [4, 4]]))
    >>> p.to_list(), l.to_list(), u.to_list()
    ([[0, 1], [1, 0]], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    """
    ...


@forwards(_core.linalg_matrix_power)
def matrix_power(tensor: TensorLike, power: int, /) -> Tensor:
    """The matrix raised to an integer power.

    A negative power inverts the matrix first. Power 0 is the identity in s32.

    Shapes: unchanged, without names. The last two sizes must be equal.
    Dtypes: any; unchanged for positive powers, but the product of bools is s32; as :func:`invert`
        for negative powers; s32 for power 0. Integers wrap.
    Grad: that of the products.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> dn.linalg.matrix_power(dn.tensor([[1, 1], [1, 0]]), 10).to_list()
    [[89, 55], [55, 34]]
    """
    ...


@forwards(_core.linalg_matrix_rank)
def matrix_rank(tensor: TensorLike, /, *, eps: float = 1e-7) -> Tensor:
    """The number of singular values above ``eps`` times the longer side times the largest one.

    Shapes: the leading axes, without names.
    Dtypes: any; the result is s32.
    Grad: zero.
    Raises: ``ShapeError`` for a rank below 2, ``OptionError`` for a negative ``eps``.

    >>> dn.linalg.matrix_rank(dn.tensor([[1, 1, 1], [2, 2, 2], [1, 2, 3]])).item()
    2
    """
    ...


@forwards(_core.linalg_multi_dot)
def multi_dot(tensors: Sequence[TensorLike], /) -> Tensor:
    """The product of matrices, in the order of multiplication with the fewest products of elements.

    The order is found by dynamic programming over the parts of the chain (Godbole, 1973). The first
    tensor may be a vector, as a row, and the last one, as a column.

    Shapes: the rows of the first and the columns of the last, with their names; the axes of vectors
        are dropped. The sizes of neighbours must match.
    Dtypes: any; promoted; bools count in s32. Floats of 8 and 16 bits are rounded once; integers
        wrap.
    Grad: that of the products.
    Raises: ``ShapeError`` without tensors, for other ranks, and if sizes do not match,
        ``AxisError`` if both axes of the result would have the same name.

    >>> a, b = dn.tensor([[1, 2], [3, 4]]), dn.tensor([1, 10])
    >>> dn.linalg.multi_dot([a, a, b]).to_list()
    [107, 235]
    """
    ...


@forwards(_core.linalg_norm)
def norm(
    tensor: TensorLike,
    /,
    ord: float | Literal["inf", "neg_inf", "frobenius", "nuclear"] | None = None,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
) -> Tensor:
    """The norms of the vectors along one axis, or of the matrices in two axes, rows first.

    Without ``ord`` it is the root of the sum of squares, along any number of axes, by default all.
    For vectors, ``ord`` is a number p for the p-norm, 0 for the number of nonzero elements, "inf"
    or "neg_inf" for the greatest or least magnitude. For matrices, 1 and -1 are the greatest and
    least sum of magnitudes of a column, "inf" and "neg_inf" those of a row, 2 and -2 the greatest
    and least singular value, "nuclear" the sum of the singular values, and "frobenius" the root of
    the sum of squares.

    Shapes: the other axes. ``keep_axes`` keeps reduced axes with size 1.
    Dtypes: any. The result is real, f32 for integers.
    Grad: through the definition; singular where the root of zero is taken.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` for an ``ord`` with more than two axes,
        ``OptionError`` for an ``ord`` that is not defined for vectors or for matrices.

    >>> dn.linalg.norm(dn.tensor([3, 4])).item()
    5.0
    >>> dn.linalg.norm(dn.tensor([[1, -2], [3, 4]]), ord="inf").item()
    7.0
    """
    ...


@forwards(_core.linalg_pinv)
def pinv(tensor: TensorLike, /, *, eps: float = 1e-10) -> Tensor:
    """The pseudo-inverse: for a number its inverse, for a vector its adjoint over its squared norm.

    For matrices it is computed from the singular values. A singular value counts as zero if it is
    at most ``eps`` times the largest, or at most the machine epsilon times the longer side times
    the largest.

    Shapes: the last two sizes are exchanged, without names; vectors and scalars keep their shape.
    Dtypes: any; integers become f32.
    Grad: through the definition, which needs distinct singular values.
    Raises: ``OptionError`` for a negative ``eps``.

    >>> dn.linalg.pinv(dn.tensor([3.0, 4.0])).to_list()
    [0.11999999731779099, 0.1599999964237213]
    """
    ...


@forwards(_core.linalg_qr)
def qr(
    tensor: TensorLike,
    /,
    *,
    mode: Literal["reduced", "complete"] = "reduced",
    eps: float = 1e-10,
) -> QRResult:
    """The factors of ``tensor = q @ r``: ``(q, r)``.

    ``q`` has orthonormal columns, ``r`` is upper triangular. The signs of its diagonal are not
    specified. A backend may treat columns smaller than ``eps`` as zero; the built-in backends do
    not.

    Shapes: ``{..., m, k}`` and ``{..., k, n}`` where k is the smaller side, or ``{..., m, m}`` and
        ``{..., m, n}`` in mode "complete"; without names.
    Dtypes: any; floats and complex are unchanged, integers become f32.
    Grad: a triangular solve with the first columns of ``r``, which must be independent. For the
        columns of a complete ``q`` beyond k, only the space that they span is differentiated.
    Raises: ``ShapeError`` for a rank below 2, ``OptionError`` for another mode.

    >>> q, r = dn.linalg.qr(dn.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> q.shape, dn.all_close(q @ r, dn.tensor([[3.0, 1.0], [4.0, 2.0]])).item()
    ((2, 2), True)
    """
    ...


@forwards(_core.linalg_slogdet)
def slogdet(tensor: TensorLike, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its magnitude, through :func:`lu`.

    The sign of a complex determinant is its phase, a number of magnitude 1. For singular matrices
    the sign is 0 and the logarithm negative infinity.

    Shapes: twice the leading axes, without names. The last two sizes must be equal.
    Dtypes: any; floats and complex are unchanged, integers become f32; the logarithm is real.
    Grad: through :func:`lu`, which needs a nonsingular matrix.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> sign, log = dn.linalg.slogdet(dn.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign.item(), log.item()
    (-1.0, 0.0)
    """
    ...


@forwards(_core.linalg_solve)
def solve(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The solution ``x`` of ``a @ x = b``, through :func:`lu`.

    If a pivot of ``a`` is 0, some elements of the result are infinite or NaN. The CPU divides by
    the pivot. A backend without a kernel for this operation replaces the pivot by NaN.

    Shapes: ``a`` is ``{..., n, n}``; ``b`` is ``{..., n, k}``, or ``{..., n}`` with one vector for
        each matrix; the leading axes must be equal. The result has the shape of ``b``, without
        names.
    Dtypes: any; promoted, integers to f32.
    Grad: the solution of the transposed system to ``b``, minus its product with ``x`` to ``a``.
    Raises: ``ShapeError`` if ``a`` is not square or ``b`` does not fit.

    >>> dn.linalg.solve(dn.tensor([[2.0, 0.0], [0.0, 4.0]]), dn.tensor([2.0, 2.0])).to_list()
    [1.0, 0.5]
    """
    ...


@forwards(_core.linalg_svd)
def svd(tensor: TensorLike, /, *, max_iter: int = 100, full_matrices: bool = True) -> SVDResult:
    """The singular values and vectors of ``tensor = u @ diag(s) @ vh``: ``(u, s, vh)``.

    ``s`` descends. The columns of ``u`` and the rows of ``vh`` are orthonormal; their signs are not
    specified. ``max_iter`` limits the sweeps of backends that use Jacobi rotations.

    Shapes: ``{..., m, m}``, ``{..., k}`` and ``{..., n, n}`` where k is the smaller side;
        ``{..., m, k}``, ``{..., k}`` and ``{..., k, n}`` without ``full_matrices``; without names.
    Dtypes: any; floats and complex are unchanged, integers become f32; ``s`` is real.
    Grad: singular values must be distinct if the vectors are used, but not if only ``s`` is used.
        For the vectors beyond k, only the space that they span is differentiated. The function must
        not depend on the phases of complex vectors (Wan & Zhang, 2019).
    Raises: ``ShapeError`` for a rank below 2, ``OptionError`` for ``max_iter`` below 1.

    >>> u, s, vh = dn.linalg.svd(dn.tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> [f"{value:.2f}" for value in s.to_list()]
    ['3.00', '2.00']
    """
    ...


@forwards(_core.linalg_svdvals)
def svdvals(tensor: TensorLike, /) -> Tensor:
    """The singular values, descending, as those of :func:`svd`.

    Shapes: ``{..., k}``, where k is the smaller side, without names.
    Dtypes: any; the result is real, f32 for integers.
    Grad: that of the values alone, which need not be distinct.
    Raises: ``ShapeError`` for a rank below 2.

    >>> s = dn.linalg.svdvals(dn.tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> [f"{value:.2f}" for value in s.to_list()]
    ['3.00', '2.00']
    """
    ...


@forwards(_core.linalg_triangular_solve)
def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    lower: bool = True,
    left_side: bool = True,
    transform_a: Literal["none", "transpose", "conjugate", "adjoint"] = "none",
) -> Tensor:
    """The solution ``x`` of ``a @ x = b``, or of ``x @ a = b``, for triangular ``a``.

    Only one triangle of ``a`` is read: the lower one if ``lower``, else the upper one.
    ``transform_a`` solves with the transpose, the conjugate or the adjoint (conjugate transpose) of
    ``a`` instead. In a compiled program a zero on the diagonal produces infinities and NaN.

    Shapes: ``a`` is ``{..., n, n}``; ``b`` is ``{..., n, k}``, ``{..., k, n}`` if ``a`` is on the
        right, or ``{..., n}`` with one vector for each matrix; the leading axes must be equal. The
        result has the shape and names of ``b``.
    Dtypes: any; promoted, integers to f32.
    Grad: the solution of the transposed system to ``b``, minus its product with ``x`` to the
        triangle of ``a``.
    Raises: ``ShapeError`` if ``a`` is not square or ``b`` does not fit, ``OptionError`` for a zero
        on the diagonal and for another ``transform_a``.

    >>> a = dn.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> dn.linalg.triangular_solve(a, dn.tensor([2.0, 9.0])).to_list()
    [1.0, 2.0]
    """
    ...


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.linalg has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
