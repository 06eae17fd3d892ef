"""Functions of ``defn.linalg``: eigenvalues of general matrices, functions of matrices, solutions
from factors, and matrices that are built of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor
    from defn._linalg_results import EigResult
    from defn.typing import TensorLike

__all__ = [
    "block_diag",
    "cho_solve",
    "eig",
    "eigvals",
    "expm",
    "hessenberg",
    "logm",
    "lu_solve",
    "schur",
    "sqrtm",
    "toeplitz",
]


@forwards(_core.linalg_block_diag)
def block_diag(tensors: Sequence[TensorLike], /) -> Tensor:
    """The matrix with the given matrices along its diagonal and zeros elsewhere.

    A vector counts as one row, a scalar as one element.

    Shapes: the sum of the rows and the sum of the columns, without names.
    Dtypes: any; promoted.
    Grad: the blocks of ``g``.
    Raises: ``ShapeError`` for a rank above 2 and for no tensor.

    >>> dn.linalg.block_diag([dn.tensor([[1], [2]]), dn.tensor([3, 4])]).to_list()
    [[1, 0, 0], [2, 0, 0], [0, 3, 4]]
    """
    ...


@forwards(_core.linalg_cho_solve)
def cho_solve(factor: TensorLike, b: TensorLike, /, *, lower: bool = True) -> Tensor:
    """The solution ``x`` of ``a @ x = b`` from the factor of ``a`` that :func:`cholesky` returns.

    Without ``lower`` the factor is the upper ``u`` of ``a = adjoint(u) @ u``. Only its triangle is
    read. In a compiled program a zero on the diagonal produces infinities and NaN.

    Shapes: as those of :func:`solve`.
    Dtypes: any; promoted, integers to f32.
    Grad: through two triangular systems.
    Raises: ``ShapeError`` if the factor is not square or ``b`` does not fit, ``OptionError`` for a
        zero on the diagonal.

    >>> l = dn.linalg.cholesky(dn.tensor([[4.0, 0.0], [0.0, 9.0]]))
    >>> dn.linalg.cho_solve(l, dn.tensor([4.0, 18.0])).to_list()
    [1.0, 2.0]
    """
    ...


@forwards(_core.linalg_eig)
def eig(tensor: TensorLike, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices: ``(eigenvalues, eigenvectors)``.

    Both are complex, also those of real matrices. The order of the values is not specified. Column
    i of the vectors is the eigenvector of value i, with norm 1; its element of the greatest
    magnitude is positive. Computed by reflections to Hessenberg form and shifted QR steps (Francis,
    1961; Golub & Van Loan, 2013, 7.5). Backends without a kernel for it run these steps as a loop,
    which is slow for large matrices.

    Shapes: ``{..., n}`` and ``{..., n, n}``, without names.
    Dtypes: any; c64 for f32 and integers, c128 for f64.
    Grad: after Giles (2008). Eigenvalues must be distinct if the vectors are used, and the function
        must not depend on the phases of the vectors.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> values, vectors = dn.linalg.eig(dn.tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> sorted(f"{value:.2f}" for value in dn.imag(values).to_list())
    ['-1.00', '1.00']
    """
    ...


@forwards(_core.linalg_eigvals)
def eigvals(tensor: TensorLike, /) -> Tensor:
    """The eigenvalues of square matrices, as those of :func:`eig`.

    Shapes: ``{..., n}``, without names. The last two sizes must be equal.
    Dtypes: any; c64 for f32 and integers, c128 for f64.
    Grad: through the vectors of :func:`eig`, which must be independent.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> values = dn.linalg.eigvals(dn.tensor([[1.0, 2.0], [0.0, 3.0]]))
    >>> sorted(dn.real(values).to_list())
    [1.0, 3.0]
    """
    ...


@forwards(_core.linalg_expm)
def expm(tensor: TensorLike, /) -> Tensor:
    """The exponential of square matrices: the sum of their powers over the factorials.

    Computed by scaling and squaring with a Padé approximant (Higham, 2005). The result for a matrix
    with a NaN or an infinity is NaN.

    Shapes: unchanged, without names. The last two sizes must be equal.
    Dtypes: any; floats and complex are unchanged, integers become f32.
    Grad: a block of the exponential of a matrix of twice the size (Mathias, 1996).
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> dn.linalg.expm(dn.tensor([[0.0, 0.0], [0.0, 0.0]])).to_list()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    ...


@forwards(_core.linalg_hessenberg)
def hessenberg(tensor: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The factors of ``tensor = q @ h @ adjoint(q)``: ``(h, q)``.

    ``h`` is zero below its first subdiagonal, ``q`` is unitary. The signs of the subdiagonal are
    not specified. By Householder reflections (Golub & Van Loan, 2013, 7.4.3).

    Shapes: twice that of the tensor, without names. The last two sizes must be equal.
    Dtypes: any; floats and complex are unchanged, integers become f32.
    Grad: through the reflections.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> h, q = dn.linalg.hessenberg(dn.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> h.to_list()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ...


@forwards(_core.linalg_logm)
def logm(tensor: TensorLike, /) -> Tensor:
    """The principal logarithm of square matrices, whose exponential is the matrix.

    It is complex; its eigenvalues have imaginary parts from -pi to pi. Computed by square roots of
    the triangular factor of :func:`schur` and a Padé approximant in partial fractions (Higham,
    2008). The logarithm of a singular matrix is NaN or infinite.

    Shapes: unchanged, without names. The last two sizes must be equal.
    Dtypes: any; c64 for f32 and integers, c128 for f64.
    Grad: a block of the logarithm of a matrix of twice the size (Mathias, 1996).
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> y = dn.linalg.logm(dn.tensor([[1.0, 1.0], [0.0, 1.0]]))
    >>> [[f"{value:.2f}" for value in row] for row in dn.real(y).to_list()]
    [['0.00', '1.00'], ['0.00', '0.00']]
    """
    ...


@forwards(_core.linalg_lu_solve)
def lu_solve(factors: Sequence[TensorLike], b: TensorLike, /) -> Tensor:
    """The solution ``x`` of ``a @ x = b`` from the factors ``(p, l, u)`` that :func:`lu` returns.

    The solution for a singular matrix is NaN.

    Shapes: as those of :func:`solve`.
    Dtypes: any; promoted, integers to f32.
    Grad: through two triangular systems.
    Raises: ``ShapeError`` if the factors are not square, differ in shape, or ``b`` does not fit,
        ``OptionError`` for another number of factors.

    >>> factors = dn.linalg.lu(dn.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> dn.linalg.lu_solve(factors, dn.tensor([2.0, 4.0])).to_list()
    [1.0, 1.0]
    """
    ...


@forwards(_core.linalg_schur)
def schur(tensor: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The complex Schur factors of ``tensor = z @ t @ adjoint(z)``: ``(t, z)``.

    ``t`` is upper triangular, with the eigenvalues on its diagonal in no specified order, and ``z``
    is unitary. The steps are those of :func:`eig`.

    Shapes: twice that of the tensor, without names. The last two sizes must be equal.
    Dtypes: any; c64 for f32 and integers, c128 for f64.
    Grad: none; an error.
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> t, z = dn.linalg.schur(dn.tensor([[1.0, 2.0], [0.0, 3.0]]))
    >>> dn.real(t).to_list()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    ...


@forwards(_core.linalg_sqrtm)
def sqrtm(tensor: TensorLike, /) -> Tensor:
    """The principal square root of square matrices: ``y @ y = tensor``.

    It is complex; its eigenvalues have no negative real part. Computed from the triangular factor
    of :func:`schur` (Björck & Hammarling, 1983). A singular matrix may have no square root; the
    result then has infinities, NaN or large elements.

    Shapes: unchanged, without names. The last two sizes must be equal.
    Dtypes: any; c64 for f32 and integers, c128 for f64.
    Grad: a block of the square root of a matrix of twice the size (Mathias, 1996).
    Raises: ``ShapeError`` if matrices are not square or the rank is below 2.

    >>> y = dn.linalg.sqrtm(dn.tensor([[4.0, 1.0], [0.0, 9.0]]))
    >>> [[f"{value:.2f}" for value in row] for row in dn.real(y).to_list()]
    [['2.00', '0.20'], ['0.00', '3.00']]
    """
    ...


@forwards(_core.linalg_toeplitz)
def toeplitz(column: TensorLike, row: TensorLike | None = None, /) -> Tensor:
    """The matrix with equal elements along each diagonal, from its first column and first row.

    The first element of the row is not used. Without a row it is the conjugate of the column.

    Shapes: vectors of sizes m and n make ``{m, n}``, without names.
    Dtypes: any; promoted.
    Grad: the sums of ``g`` along the diagonals.
    Raises: ``ShapeError`` for another rank than 1.

    >>> dn.linalg.toeplitz(dn.tensor([1, 2, 3]), dn.tensor([1, 4])).to_list()
    [[1, 4], [2, 1], [3, 2]]
    """
    ...
