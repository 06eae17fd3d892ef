"""Linear algebra of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import defn as dn
from defn.array_api._array import Array, convert, require, wrap
from defn.array_api._manipulation import axes_of, broadcast_shapes
from defn.array_api._products import _both, matmul, matrix_transpose, tensordot, vecdot
from defn.array_api._promotion import ALL, COMPLEX, FLOATING, NUMERIC, as_dtype
from defn.array_api._reductions import _wide

if TYPE_CHECKING:
    from typing import Literal

    from defn import DType, Tensor

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of a QR decomposition."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition."""

    U: Array
    S: Array
    Vh: Array


def _matrices(function: str, x: Array, square: bool = False) -> Tensor:
    tensor = require(function, x, FLOATING)
    if tensor.ndim < 2:
        raise ValueError(f"{function}: the array has {tensor.ndim} axes, it must have at least 2")
    if square and tensor.shape[-1] != tensor.shape[-2]:
        raise ValueError(
            f"{function}: matrices have shape {tensor.shape[-2:]}, they must be square"
        )
    return tensor


def _real(dtype: DType) -> DType:
    return {dn.c64: dn.f32, dn.c128: dn.f64}.get(dtype, dtype)


def _real_part(tensor: Tensor) -> Tensor:
    """A tensor of real numbers, some of which may be written as complex ones."""
    return dn.real(tensor) if tensor.dtype in COMPLEX else tensor


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The lower triangular factor ``l`` of ``l @ conj(l.mT)``, or the upper one ``conj(l.mT)``."""
    factor = dn.linalg.cholesky(_matrices("cholesky", x, square=True))
    return wrap(dn.linalg.adjoint(factor) if upper else factor)


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements along an axis."""
    left, right = _both("cross", x1, x2)
    for tensor in (left, right):
        if not -tensor.ndim <= axis < tensor.ndim or tensor.shape[axis] != 3:
            raise ValueError(f"cross: axis {axis} of shape {tensor.shape} must have size 3")
    return wrap(dn.cross(left, right, axis=axis))


def det(x: Array, /) -> Array:
    """The determinants of matrices."""
    return wrap(dn.linalg.determinant(_matrices("det", x, square=True)))


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """A diagonal of each matrix in the last two axes."""
    tensor = require("diagonal", x, ALL)
    if tensor.ndim < 2:
        raise ValueError(f"diagonal: the array has {tensor.ndim} axes, it must have at least 2")
    return wrap(dn.take_diagonal(tensor, offset))


def eig(x: Array, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, both complex, in no specified order."""
    values, vectors = dn.linalg.eig(_matrices("eig", x, square=True))
    return EigResult(wrap(values), wrap(vectors))


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices."""
    values, vectors = dn.linalg.eigh(_matrices("eigh", x, square=True))
    return EighResult(wrap(_real_part(values)), wrap(vectors))


def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices, complex, in no specified order."""
    return wrap(dn.linalg.eigvals(_matrices("eigvals", x, square=True)))


def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues, ascending, of symmetric or Hermitian matrices."""
    return wrap(dn.linalg.eigvalsh(_matrices("eigvalsh", x, square=True)))


def inv(x: Array, /) -> Array:
    """The inverses of matrices; NaN for a singular one."""
    return wrap(dn.linalg.invert(_matrices("inv", x, square=True)))


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Array:
    """The norms of matrices in the last two axes: by elements, rows, columns or singular values."""
    tensor = _matrices("matrix_norm", x)
    sizes = dn.abs(tensor)
    if ord is None or ord == "fro":
        out = dn.sqrt(dn.sum(sizes * sizes, axes=[-2, -1]))
    elif ord in (1, -1, float("inf"), float("-inf")):
        lines = dn.sum(sizes, axes=[-2 if ord in (1, -1) else -1])
        out = dn.reduce_max(lines, [-1]) if ord > 0 else dn.reduce_min(lines, [-1])
    elif ord in (2, -2, "nuc"):
        values = dn.linalg.svdvals(tensor)
        if ord == "nuc":
            out = dn.sum(values, axes=[-1])
        else:
            out = dn.reduce_max(values, [-1]) if ord == 2 else dn.reduce_min(values, [-1])
    else:
        raise ValueError(
            f'matrix_norm: ord is {ord!r}, it must be 1, -1, 2, -2, inf, -inf, "fro" or "nuc"'
        )
    return wrap(dn.reshape(out, [*out.shape, 1, 1]) if keepdims else out)


def matrix_power(x: Array, n: int, /) -> Array:
    """The ``n``-th powers of matrices; a negative one inverts them first."""
    tensor = _matrices("matrix_power", x, square=True)
    return wrap(convert(dn.linalg.matrix_power(tensor, n), tensor.dtype))


def _tolerance(values: Tensor, rtol: Array | float | None, shape: tuple[int, ...]) -> Tensor:
    """The size below which singular values count as 0: a part of the largest of each matrix."""
    if rtol is None:
        epsilon = float(dn.constants.epsilon(values.dtype))
        part = dn.tensor(max(shape[-2:]) * epsilon, dtype=values.dtype)
    elif isinstance(rtol, Array):
        part = convert(require("rtol", rtol, FLOATING), values.dtype)
        part = dn.reshape(part, [*part.shape, 1])
    else:
        part = dn.tensor(rtol, dtype=values.dtype)
    return part * dn.reduce_max(values, [-1], keep_axes=True)


def matrix_rank(x: Array, /, *, rtol: Array | float | None = None) -> Array:
    """The numbers of singular values above ``rtol`` times the largest."""
    tensor = _matrices("matrix_rank", x)
    values = dn.linalg.svdvals(tensor)
    counted = dn.greater(values, _tolerance(values, rtol, tensor.shape))
    return wrap(dn.sum(dn.as_type(counted, dn.s64), axes=[-1]))


def outer(x1: Array, x2: Array, /) -> Array:
    """The products of each element of a vector with each of another."""
    left, right = _both("outer", x1, x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ValueError(f"outer: the arrays have {left.ndim} and {right.ndim} axes, each needs 1")
    return wrap(dn.multiply(dn.reshape(left, (-1, 1)), dn.reshape(right, (1, -1))))


def pinv(x: Array, /, *, rtol: Array | float | None = None) -> Array:
    """The pseudo-inverses; singular values up to ``rtol`` times the largest count as 0."""
    tensor = _matrices("pinv", x)
    u, values, vh = dn.linalg.svd(tensor, full_matrices=False)
    kept = dn.greater(values, _tolerance(values, rtol, tensor.shape))
    # The reciprocal of a value that is left out is never computed, so that gradients stay finite.
    safe = dn.select(kept, values, dn.fill(values, 1))
    inverse = dn.select(kept, 1 / safe, dn.fill(values, 0))
    v = dn.linalg.adjoint(vh)
    scaled = dn.multiply(v, convert(dn.new_axis(inverse, -2), v.dtype))
    return wrap(scaled @ dn.linalg.adjoint(u))


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """An orthonormal and an upper triangular factor of each matrix."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: mode is {mode!r}, it must be "reduced" or "complete"')
    q, r = dn.linalg.qr(_matrices("qr", x), mode=mode)
    return QRResult(wrap(q), wrap(r))


def slogdet(x: Array, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their magnitudes, which do not overflow."""
    sign, logarithm = dn.linalg.slogdet(_matrices("slogdet", x, square=True))
    return SlogdetResult(wrap(sign), wrap(logarithm))


def solve(x1: Array, x2: Array, /) -> Array:
    """The ``x`` of ``x1 @ x = x2``, whose right side is a vector only if it has one axis."""
    for x in (x1, x2):
        require("solve", x, FLOATING)
    a, b = _both("solve", x1, x2)
    _matrices("solve", x1, square=True)
    is_vector = b.ndim == 1
    if is_vector:
        b = dn.reshape(b, (-1, 1))
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"solve: matrices of shape {a.shape[-2:]} have {b.shape[-2]} equations")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = dn.broadcast(a, [*lead, *a.shape[-2:]])
    out = dn.linalg.solve(a, dn.broadcast(b, [*lead, *b.shape[-2:]]))
    return wrap(dn.reshape(out, out.shape[:-1]) if is_vector else out)


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular values, descending, and vectors of matrices: ``U @ diag(S) @ Vh``."""
    u, s, vh = dn.linalg.svd(_matrices("svd", x), full_matrices=full_matrices)
    return SVDResult(wrap(u), wrap(s), wrap(vh))


def svdvals(x: Array, /) -> Array:
    """The singular values of matrices, descending."""
    return wrap(dn.linalg.svdvals(_matrices("svdvals", x)))


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of a diagonal of each matrix; integers are added in 64 bits."""
    tensor = require("trace", x, NUMERIC)
    if tensor.ndim < 2:
        raise ValueError(f"trace: the array has {tensor.ndim} axes, it must have at least 2")
    wanted = _wide(tensor.dtype) if dtype is None else as_dtype(dtype)
    total = dn.sum(dn.take_diagonal(convert(tensor, wanted), offset), axes=[-1])
    return wrap(convert(total, wanted))


def vector_norm(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Array:
    """The norms of vectors along axes: ``sum(abs(x) ** ord) ** (1 / ord)``, and its limits.

    >>> import defn.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    Array(5., dtype=float64)
    """
    tensor = require("vector_norm", x, FLOATING)
    axes = axes_of("vector_norm", axis, tensor.ndim)
    sizes = dn.abs(tensor)
    if ord == float("inf"):
        out = dn.reduce_max(sizes, axes, keep_axes=keepdims)
    elif ord == float("-inf"):
        out = dn.reduce_min(sizes, axes, keep_axes=keepdims)
    elif ord == 0:
        counted = dn.as_type(dn.not_equal(sizes, 0), sizes.dtype)
        out = dn.sum(counted, axes, keep_axes=keepdims)
    elif ord == 1:
        out = dn.sum(sizes, axes, keep_axes=keepdims)
    elif ord == 2:
        out = dn.sqrt(dn.sum(sizes * sizes, axes, keep_axes=keepdims))
    else:
        out = dn.pow(dn.sum(dn.pow(sizes, ord), axes, keep_axes=keepdims), 1 / ord)
    return wrap(out)
