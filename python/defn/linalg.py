"""Linear algebra: systems of equations, factorizations, norms.

All functions work on the matrices in the last two axes, for every position of the leading ones.
Results are floats or complex numbers: integers become f32. Floats of 8 and 16 bits are computed in
f32 and rounded at the end. A matrix with a NaN or an infinity has factors of NaN; no iteration runs
for ever.

>>> a = dn.tensor([[4.0, 1.0], [1.0, 3.0]])
>>> dn.round(dn.linalg.solve(a, dn.tensor([9.0, 5.0]))).to_list()
[2.0, 1.0]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, TensorLike

__all__ = [
    "adjoint",
    "cholesky",
    "determinant",
    "eigh",
    "invert",
    "least_squares",
    "lu",
    "matrix_power",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "solve",
    "svd",
    "triangular_solve",
]


def adjoint(tensor: TensorLike, /, **unknown: Never) -> Tensor:
    """The last two axes exchanged, and complex elements conjugated.

    Shapes: the last two sizes and names exchanged; a vector and a scalar stay as they are.
    Dtypes: any; the same.
    Grad: ``g`` moved back, conjugated where the tensor is complex.
    Raises: nothing of its own.

    >>> dn.linalg.adjoint(dn.tensor([[1, 2j], [3, 4]])).to_list()
    [[(1-0j), (3-0j)], [-2j, (4-0j)]]
    """
    if unknown:
        refuse_options("linalg.adjoint", unknown)
    return _core.linalg_adjoint(tensor)


def cholesky(tensor: TensorLike, /, **unknown: Never) -> Tensor:
    """The lower triangular ``l`` of ``tensor = l @ adjoint(l)``.

    Matrices are symmetric or Hermitian: the lower triangle is read. Where one has a negative
    eigenvalue, its factor is NaN. A singular one has a column of zeros for each row that depends on
    those above it; where rounding hides that, pivots are taken in another order (Higham, 1990).

    Shapes: the same, with names; the last two sizes are equal.
    Dtypes: any; floats and complex keep theirs, integers become f32.
    Grad: two triangular solves with ``l``; not symmetrised. A singular matrix has none.
    Raises: ``ShapeError`` if matrices are not square or there are fewer than two axes.

    >>> dn.linalg.cholesky(dn.tensor([[4.0, 2.0], [2.0, 5.0]])).to_list()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if unknown:
        refuse_options("linalg.cholesky", unknown)
    return _core.linalg_cholesky(tensor)


def determinant(tensor: TensorLike, /, **unknown: Never) -> Tensor:
    """The determinant: in closed form up to three rows, through :func:`lu` beyond.

    Shapes: the leading axes, without names; the last two sizes are equal.
    Dtypes: any; floats and complex keep theirs, integers become f32.
    Grad: of the closed form, or through :func:`lu`, where it needs a regular matrix.
    Raises: ``ShapeError`` if matrices are not square or there are fewer than two axes.

    >>> dn.linalg.determinant(dn.tensor([[1, 2], [3, 4]])).item()
    -2.0
    """
    if unknown:
        refuse_options("linalg.determinant", unknown)
    return _core.linalg_determinant(tensor)


def eigh(
    tensor: TensorLike, /, *, max_iter: int = 1000, eps: float = 0.0, **unknown: Never
) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices: ``(values, vectors)``.

    The values ascend; column i of the vectors is a unit vector that belongs to value i, up to a
    sign, or a phase. Both triangles are read, as those of one Hermitian matrix.
    Values, and elements of vectors, of at most ``eps`` become 0; where the reference cuts at 1e-4,
    nothing is cut here unless asked for. ``max_iter`` bounds the sweeps of backends that rotate.

    Shapes: ``{..., n}`` and ``{..., n, n}``, without names.
    Dtypes: any; floats and complex keep theirs, values of complex matrices being complex too, and
        integers become f32.
    Grad: through differences of values, which must be distinct where vectors are used; symmetrised.
    Raises: ``ShapeError`` if matrices are not square or there are fewer than two axes,
        ``OptionError`` for ``max_iter`` below 1 and a negative ``eps``.

    >>> values, vectors = dn.linalg.eigh(dn.tensor([[1.0, 0.0], [0.0, -2.0]]))
    >>> values.to_list(), dn.abs(vectors).to_list()
    ([-2.0, 1.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    if unknown:
        refuse_options("linalg.eigh", unknown)
    return _core.linalg_eigh(tensor, max_iter, eps)


def invert(tensor: TensorLike, /, **unknown: Never) -> Tensor:
    """The inverse of matrices.

    NaN where a matrix is singular: where the magnitude of its determinant is below 1000 times the
    least normal number of its dtype.

    Shapes: the same, without names; the last two sizes are equal.
    Dtypes: any; floats and complex keep theirs, integers become f32.
    Grad: ``-y^T g y^T`` with the inverse ``y``.
    Raises: ``ShapeError`` if matrices are not square or there are fewer than two axes.

    >>> dn.linalg.invert(dn.tensor([[2.0, 0.0], [0.0, 4.0]])).to_list()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    if unknown:
        refuse_options("linalg.invert", unknown)
    return _core.linalg_invert(tensor)


def least_squares(
    a: TensorLike, b: TensorLike, /, *, eps: float = 1e-15, **unknown: Never
) -> Tensor:
    """The ``x`` for which ``a @ x`` is closest to ``b``; of several the shortest.

    Shapes: a matrix ``{m, n}`` and a vector ``{m}`` give ``{n}``, without a name.
    Dtypes: integers and floats; the merged float.
    Grad: through :func:`pinv`.
    Raises: ``ShapeError`` for other ranks or sizes, ``DTypeError`` for complex numbers,
        ``OptionError`` for a negative ``eps``.

    >>> a = dn.tensor([[0, 1], [1, 1], [2, 1], [3, 1]])
    >>> x = dn.linalg.least_squares(a, dn.tensor([-1, 0.2, 0.9, 2.1]))
    >>> [f"{value:.2f}" for value in x.to_list()]
    ['1.00', '-0.95']
    """
    if unknown:
        refuse_options("linalg.least_squares", unknown)
    return _core.linalg_least_squares(a, b, eps)


def lu(tensor: TensorLike, /, **unknown: Never) -> tuple[Tensor, Tensor, Tensor]:
    """The factors of ``tensor = p @ l @ u``: ``(p, l, u)``.

    ``p`` is a permutation, ``l`` lower triangular with ones on its diagonal, ``u`` upper
    triangular. Rows are exchanged for the pivot of the greatest magnitude.

    Shapes: three times the same, without names; the last two sizes are equal.
    Dtypes: any; ``p`` has that of the tensor, the factors are floats or complex.
    Grad: two triangular solves; none reaches the tensor from ``p``.
    Raises: ``ShapeError`` if matrices are not square or there are fewer than two axes.

    >>> p, l, u = dn.linalg.lu(dn.tensor([[1, 2], [4, 4]]))
    >>> p.to_list(), l.to_list(), u.to_list()
    ([[0, 1], [1, 0]], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    """
    if unknown:
        refuse_options("linalg.lu", unknown)
    return _core.linalg_lu(tensor)


def matrix_power(tensor: TensorLike, power: int, /, **unknown: Never) -> Tensor:
    """The product of ``power`` times the same matrix.

    A negative power is one of the inverse; power 0 is the identity, in s32.

    Shapes: the same, without names; the last two sizes are equal.
    Dtypes: any; the same, but as :func:`invert` for negative powers and s32 for power 0. Integers
        wrap.
    Grad: of the products.
    Raises: ``ShapeError`` if matrices are not square or there are fewer than two axes.

    >>> dn.linalg.matrix_power(dn.tensor([[1, 1], [1, 0]]), 10).to_list()
    [[89, 55], [55, 34]]
    """
    if unknown:
        refuse_options("linalg.matrix_power", unknown)
    return _core.linalg_matrix_power(tensor, power)


def matrix_rank(tensor: TensorLike, /, *, eps: float = 1e-7, **unknown: Never) -> Tensor:
    """How many singular values are above ``eps`` times the longer side times the greatest of them.

    Shapes: a matrix gives a scalar.
    Dtypes: integers and floats; u32.
    Grad: none flows.
    Raises: ``ShapeError`` for another rank than 2, ``DTypeError`` for complex numbers,
        ``OptionError`` for a negative ``eps``.

    >>> dn.linalg.matrix_rank(dn.tensor([[1, 1, 1], [2, 2, 2], [1, 2, 3]])).item()
    2
    """
    if unknown:
        refuse_options("linalg.matrix_rank", unknown)
    return _core.linalg_matrix_rank(tensor, eps)


def norm(
    tensor: TensorLike,
    /,
    ord: float | Literal["inf", "neg_inf", "frobenius", "nuclear"] | None = None,
    axes: Axes | None = None,
    *,
    keep_axes: bool = False,
    **unknown: Never,
) -> Tensor:
    """A norm of a vector or a matrix, or of the vectors along one of the axes of a matrix.

    Without ``ord`` it is the root of the sum of squares. Of vectors it may be any int p for the
    p-norm, 0 for the number of elements that are not zero, "inf" and "neg_inf" for the greatest and
    the least magnitude. Of matrices 1 and -1 are the greatest and least sum of magnitudes of a
    column, "inf" and "neg_inf" those of a row, 2 and -2 the greatest and least singular value,
    "nuclear" the sum of the singular values, and "frobenius" the root of the sum of squares.

    Shapes: a scalar, or, with one of two axes, the other; the axes stay with ``keep_axes``.
    Dtypes: any, real ones where singular values are used; real: f32 for integers.
    Grad: of what it is defined by, singular where a root is taken of zero.
    Raises: ``ShapeError`` for another rank than 1 and 2, ``OptionError`` for an ``ord`` that
        vectors, or matrices, do not have.

    >>> dn.linalg.norm(dn.tensor([3, 4])).item()
    5.0
    >>> dn.linalg.norm(dn.tensor([[1, -2], [3, 4]]), ord="inf").item()
    7.0
    """
    if unknown:
        refuse_options("linalg.norm", unknown)
    return _core.linalg_norm(tensor, ord, axes, keep_axes)


def pinv(tensor: TensorLike, /, *, eps: float = 1e-10, **unknown: Never) -> Tensor:
    """The pseudo-inverse: of a number its inverse, of a vector its adjoint over its squared norm.

    Of matrices it is made of the singular values. Those of at most ``eps`` times the largest count
    as zero, and those that rounding leaves of zero: at most the larger side times the distance from
    1 to the next number, times the largest.

    Shapes: the last two sizes exchanged, without names; a vector and a scalar stay as they are.
    Dtypes: integers and floats, complex for vectors and scalars; integers become f32.
    Grad: through the definition, which needs distinct singular values.
    Raises: ``DTypeError`` for complex matrices, ``OptionError`` for a negative ``eps``.

    >>> dn.linalg.pinv(dn.tensor([3.0, 4.0])).to_list()
    [0.11999999731779099, 0.1599999964237213]
    """
    if unknown:
        refuse_options("linalg.pinv", unknown)
    return _core.linalg_pinv(tensor, eps)


def qr(
    tensor: TensorLike,
    /,
    *,
    mode: Literal["reduced", "complete"] = "reduced",
    eps: float = 1e-10,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """The factors of ``tensor = q @ r``: ``(q, r)``.

    ``q`` has orthonormal columns, ``r`` is upper triangular; signs of its diagonal are free.
    ``eps`` allows a backend to take smaller columns for zero; the built-in ones have no need to.

    Shapes: ``{..., m, k}`` and ``{..., k, n}`` with the smaller side k, or ``{..., m, m}`` and
        ``{..., m, n}`` in mode "complete"; without names.
    Dtypes: any; floats and complex keep theirs, integers become f32.
    Grad: a triangular solve with the first columns of ``r``, which must be independent. Of the
        columns of a complete ``q`` beyond k only the space that they span counts.
    Raises: ``ShapeError`` for fewer than two axes, ``OptionError`` for another mode.

    >>> q, r = dn.linalg.qr(dn.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> q.shape, dn.all_close(q @ r, dn.tensor([[3.0, 1.0], [4.0, 2.0]])).item()
    ((2, 2), True)
    """
    if unknown:
        refuse_options("linalg.qr", unknown)
    return _core.linalg_qr(tensor, mode, eps)


def solve(a: TensorLike, b: TensorLike, /, **unknown: Never) -> Tensor:
    """The ``x`` of ``a @ x = b``, through :func:`lu`.

    Infinities and NaN where ``a`` is singular.

    Shapes: ``a`` is ``{..., n, n}``; ``b`` is ``{..., n, k}``, or ``{..., n}`` with one vector for
        each matrix; the leading axes are equal. The result has the shape of ``b``, without names.
    Dtypes: any; the merged float or complex.
    Grad: to ``b`` the solution of the transposed system, to ``a`` minus its product with ``x``.
    Raises: ``ShapeError`` if ``a`` is not square or ``b`` does not fit.

    >>> dn.linalg.solve(dn.tensor([[2.0, 0.0], [0.0, 4.0]]), dn.tensor([2.0, 2.0])).to_list()
    [1.0, 0.5]
    """
    if unknown:
        refuse_options("linalg.solve", unknown)
    return _core.linalg_solve(a, b)


def svd(
    tensor: TensorLike, /, *, max_iter: int = 100, full_matrices: bool = True, **unknown: Never
) -> tuple[Tensor, Tensor, Tensor]:
    """The singular values and vectors of ``tensor = u @ diag(s) @ vh``: ``(u, s, vh)``.

    ``s`` descends; the columns of ``u`` and the rows of ``vh`` are orthonormal, up to signs.
    ``max_iter`` bounds the sweeps of backends that rotate.

    Shapes: ``{..., m, m}``, ``{..., k}`` and ``{..., n, n}`` with the smaller side k;
        ``{..., m, k}``, ``{..., k}`` and ``{..., k, n}`` without ``full_matrices``; without names.
    Dtypes: integers and floats; integers become f32.
    Grad: distinct values are needed where vectors are used, and none is where only ``s`` is. Of the
        vectors beyond k only the space that they span counts.
    Raises: ``ShapeError`` for fewer than two axes, ``DTypeError`` for complex numbers,
        ``OptionError`` for ``max_iter`` below 1.

    >>> u, s, vh = dn.linalg.svd(dn.tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> [f"{value:.2f}" for value in s.to_list()]
    ['3.00', '2.00']
    """
    if unknown:
        refuse_options("linalg.svd", unknown)
    return _core.linalg_svd(tensor, max_iter, full_matrices)


def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    lower: bool = True,
    left_side: bool = True,
    transform_a: Literal["none", "transpose", "conjugate", "adjoint"] = "none",
    **unknown: Never,
) -> Tensor:
    """The ``x`` of ``a @ x = b``, or of ``x @ a = b``, for triangular ``a``.

    Only the lower, or the upper, triangle of ``a`` is read. ``transform_a`` solves with its
    transpose, its conjugate or its adjoint, the conjugate transpose, instead. In compiled programs
    a zero on the diagonal gives infinities and NaN.

    Shapes: ``a`` is ``{..., n, n}``; ``b`` is ``{..., n, k}``, ``{..., k, n}`` where ``a`` is on
        the right, or ``{..., n}`` with one vector for each matrix; the leading axes are equal. The
        result has the shape and names of ``b``.
    Dtypes: any; the merged float or complex.
    Grad: to ``b`` the solution of the transposed system, to the triangle of ``a`` minus its product
        with ``x``.
    Raises: ``ShapeError`` if ``a`` is not square or ``b`` does not fit, ``OptionError`` for a zero
        on the diagonal, and for another ``transform_a``.

    >>> a = dn.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> dn.linalg.triangular_solve(a, dn.tensor([2.0, 9.0])).to_list()
    [1.0, 2.0]
    """
    if unknown:
        refuse_options("linalg.triangular_solve", unknown)
    return _core.linalg_triangular_solve(a, b, lower, left_side, transform_a)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to write here for a name of NumPy's."""
        from defn._names import unknown_name

        raise unknown_name("defn.linalg has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
