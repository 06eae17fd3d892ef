"""Composites that NumPy has, or that are simpler in NumPy than their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.index import nearest
from defn.backends.numpy.linalg import substituted
from defn.backends.numpy.order import in_order
from defn.backends.numpy.values import quiet, store, wide, widen

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn._core import Tensor

__all__ = ["Blocks"]


def _logical_not(tag: Any, out: Tensor, x: Tensor) -> Any:
    return store(widen(x) == 0, out)


def _phase(tag: Any, out: Tensor, x: Tensor) -> Any:
    z = widen(x)
    if z.dtype.kind != "c":
        z = wide(x, out.dtype)
    return store(np.arctan2(np.imag(z), np.real(z)), out)


def _log2(tag: Any, out: Tensor, x: Tensor) -> Any:
    return store(np.log2(wide(x, out.dtype)), out)


def _log10(tag: Any, out: Tensor, x: Tensor) -> Any:
    return store(np.log10(wide(x, out.dtype)), out)


def _logsumexp(tag: Any, out: Tensor, x: Tensor) -> Any:
    values = wide(x, out.dtype)
    greatest = values.real.max(tag.axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(greatest), greatest, 0)
    total = np.exp(values - shift).sum(tag.axes, keepdims=True)
    return store(np.log(total) + shift, out)


def _all_close(tag: Any, out: Tensor, a: Tensor, b: Tensor) -> Any:
    left, right = (
        x.astype(np.float64) if x.dtype.kind in "iu" else x for x in (widen(a), widen(b))
    )
    return store(np.allclose(left, right, tag.rtol, tag.atol, tag.equal_nan), out)


def _cumulative(function: np.ufunc) -> Callable[..., Any]:
    def scan(tag: Any, out: Tensor, x: Tensor) -> Any:
        values = wide(x, out.dtype)
        if tag.reverse:
            return store(
                np.flip(function.accumulate(np.flip(values, tag.axis), tag.axis), tag.axis), out
            )
        return store(function.accumulate(values, tag.axis), out)

    return scan


def _clamped(indices: Tensor, size: int) -> Any:
    return nearest(np.minimum(widen(indices), 2**62).astype(np.int64), size)


def _take(tag: Any, out: Tensor, x: Tensor, indices: Tensor) -> Any:
    return np.take(x.data, _clamped(indices, x.shape[tag.axis]), tag.axis)


def _take_along_axis(tag: Any, out: Tensor, x: Tensor, indices: Tensor) -> Any:
    return np.take_along_axis(x.data, _clamped(indices, x.shape[tag.axis]), tag.axis)


def _top_k(tag: Any, out: tuple[Tensor, Tensor], x: Tensor) -> Any:
    order = in_order(widen(x), x.rank - 1, "desc")[..., : tag.k]
    values = np.take_along_axis(x.data, order, x.rank - 1)
    return values, store(order, out[1])


def _transform(function: Any) -> Callable[..., Any]:
    """A transform along two axes."""

    def transform(tag: Any, out: Tensor, x: Tensor) -> Any:
        # NumPy does not transform empty axes.
        values = wide(x, out.dtype)
        return store(
            function(values, tag.lengths, tag.axes) if out.size else np.zeros(out.shape), out
        )

    return transform


def _rfft(tag: Any, out: Tensor, x: Tensor) -> Any:
    return store(
        np.fft.rfft(widen(x), tag.length, tag.axis) if out.size else np.zeros(out.shape), out
    )


def _irfft(tag: Any, out: Tensor, x: Tensor) -> Any:
    return store(
        np.fft.irfft(widen(x), tag.length, tag.axis) if out.size else np.zeros(out.shape), out
    )


def _cholesky(tag: Any, out: Tensor, x: Tensor) -> Any:
    matrices = wide(x, out.dtype)
    result = np.full_like(matrices, np.nan)
    # The rounding unit of the elements' dtype, although the array has a wider one.
    eps = 2.0**-52 if str(out.dtype) in ("f64", "c128") else 2.0**-23
    for place in np.ndindex(matrices.shape[:-2]):
        try:
            factor = np.linalg.cholesky(matrices[place])
        except np.linalg.LinAlgError:
            factor = _singular_factor(matrices[place], eps)
        if not np.isnan(np.diagonal(factor)).any():
            result[place] = factor
    return store(result, out)


def _singular_factor(a: Any, eps: float) -> Any:
    """The Cholesky factor of a positive semidefinite matrix. Its columns start at rows that are
    linearly independent of the rows above. A root by diagonal pivoting is made triangular.
    """
    size, failed = len(a), np.full_like(a, np.nan)
    rest, root = np.tril(a) + np.tril(a, -1).conj().T, np.zeros_like(a)
    sizes, left = np.real(np.diagonal(a)), np.ones(size, bool)
    share = 4 * size * eps
    if not (sizes >= 0).all():
        return failed
    for j in range(size):
        remainder = np.real(np.diagonal(rest))
        shares = np.divide(remainder, sizes, out=np.zeros(size), where=left & (sizes > 0))
        pivot = int(shares.argmax())
        if not shares[pivot] > share:
            break
        root[left, j] = rest[left, pivot] / np.sqrt(np.real(rest[pivot, pivot]))
        rest -= np.outer(root[:, j], root[:, j].conj())
        left[pivot] = False
    scale = np.sqrt(sizes)
    if not (abs(rest) <= share * np.outer(scale, scale))[np.ix_(left, left)].all():
        return failed
    lower = np.zeros_like(a)
    for i in range(size):
        norm = np.linalg.norm(root[i])
        if norm > share * scale[i]:
            direction = root[i] / norm
            lower[i:, i] = root[i:] @ direction.conj()
            lower[i, i] = norm
            root[i:] -= np.outer(lower[i:, i], direction)
    return lower


def _decomposed(matrices: Any) -> tuple[Any, Any, Any]:
    """P, L, U of ``a = P L U`` by Gaussian elimination; the pivot is the first of the largest."""
    u = matrices.copy()
    size = u.shape[-1]
    p, lower = np.zeros(u.shape), np.zeros_like(u)
    for place in np.ndindex(u.shape[:-2]):
        a, rows, left = u[place], np.arange(size), lower[place]
        for column in range(size):
            pivot = column + int(np.argmax(np.abs(a[column:, column])))
            for array in (a, left, rows):
                array[[column, pivot]] = array[[pivot, column]]
            left[column, column] = 1
            if a[column, column] != 0:
                left[column + 1 :, column] = a[column + 1 :, column] / a[column, column]
            a[column + 1 :] -= np.outer(left[column + 1 :, column], a[column])
            a[column + 1 :, column] = 0
        p[(*place, rows, np.arange(size))] = 1
    return p, lower, u


def _lu(tag: Any, out: tuple[Tensor, ...], x: Tensor) -> Any:
    factors = _decomposed(wide(x, out[1].dtype))
    return tuple(store(factor, one) for factor, one in zip(factors, out, strict=True))


def _solve(tag: Any, out: Tensor, a: Tensor, b: Tensor) -> Any:
    p, lower, upper = _decomposed(wide(a, out.dtype))
    right = wide(b, out.dtype)
    right = right[..., None] if b.rank < a.rank else right
    middle = substituted(lower, np.swapaxes(p, -1, -2) @ right, lower=True)
    return store(substituted(upper, middle, lower=False), out)


def _determinant(tag: Any, out: Tensor, x: Tensor) -> Any:
    return store(np.linalg.det(wide(x, out.dtype)), out)


def _qr(tag: Any, out: tuple[Tensor, Tensor], x: Tensor) -> Any:
    q, r = np.linalg.qr(wide(x, out[0].dtype), tag.mode)
    return store(q, out[0]), store(r, out[1])


def _finite(matrices: Any) -> tuple[Any, Any]:
    """The matrices, zero where they have NaN or infinities, and a mask of these matrices."""
    bad = ~np.isfinite(matrices).all((-2, -1))
    return np.where(bad[..., None, None], 0, matrices), bad


def _svd(tag: Any, out: tuple[Tensor, ...], x: Tensor) -> Any:
    matrices, bad = _finite(wide(x, out[0].dtype))
    factors = np.linalg.svd(matrices, full_matrices=tag.full_matrices)
    for factor in factors:
        factor[bad] = np.nan
    return tuple(store(factor, one) for factor, one in zip(factors, out, strict=True))


def _eigh(tag: Any, out: tuple[Tensor, Tensor], x: Tensor) -> Any:
    matrices, bad = _finite(wide(x, out[1].dtype))
    matrices = (matrices + np.conj(np.swapaxes(matrices, -1, -2))) / 2
    values, vectors = np.linalg.eigh(matrices)
    for factor in (values, vectors):
        factor[np.abs(factor) <= tag.eps] = 0
        factor[bad] = np.nan
    return store(values, out[0]), store(vectors, out[1])


def _matrices(x: Tensor, out: Tensor) -> Any:
    """The matrices of real results, with zeros for those that are not finite, which come second."""
    return _finite(wide(x, x.dtype if x.dtype.kind == "complex" else out.dtype))


def _svdvals(tag: Any, out: Tensor, x: Tensor) -> Any:
    matrices, bad = _matrices(x, out)
    values = np.linalg.svd(matrices, compute_uv=False)
    values[bad] = np.nan
    return store(values, out)


def _eigvalsh(tag: Any, out: Tensor, x: Tensor) -> Any:
    matrices, bad = _matrices(x, out)
    values = np.linalg.eigvalsh((matrices + np.conj(np.swapaxes(matrices, -1, -2))) / 2)
    values[bad] = np.nan
    return store(values, out)


def _eig(tag: Any, out: Any, x: Tensor) -> Any:
    results: list[Tensor] = [*out] if tag.vectors else [out]
    matrices, bad = _finite(wide(x, results[0].dtype))
    if not tag.vectors:
        values = np.linalg.eigvals(matrices).astype(matrices.dtype)
        values[bad] = np.nan
        return store(values, results[0])
    values, vectors = np.linalg.eig(matrices)
    if matrices.size:
        greatest = np.abs(vectors).argmax(-2)[..., None, :]
        phases = np.take_along_axis(vectors, greatest, -2)
        vectors = vectors * (np.conj(phases) / np.abs(phases))
    values[bad] = vectors[bad] = np.nan
    return store(values, results[0]), store(vectors, results[1])


NATIVE: dict[str, Callable[..., Any]] = {
    "LogicalNot": _logical_not,
    "Phase": _phase,
    "Log2": _log2,
    "Log10": _log10,
    "Logsumexp": _logsumexp,
    "AllClose": _all_close,
    "CumulativeSum": _cumulative(np.add),
    "CumulativeProduct": _cumulative(np.multiply),
    "CumulativeMax": _cumulative(np.maximum),
    "CumulativeMin": _cumulative(np.minimum),
    "Take": _take,
    "TakeAlongAxis": _take_along_axis,
    "TopK": _top_k,
    "FFT2": _transform(np.fft.fft2),
    "IFFT2": _transform(np.fft.ifft2),
    "RFFT": _rfft,
    "IRFFT": _irfft,
    "Cholesky": _cholesky,
    "Solve": _solve,
    "QR": _qr,
    "LU": _lu,
    "SVD": _svd,
    "Eigh": _eigh,
    "Svdvals": _svdvals,
    "Eigvalsh": _eigvalsh,
    "Eig": _eig,
    "Determinant": _determinant,
}
"""The function that computes a block, by the class name of its tag."""


class Blocks:
    """Composites; blocks that are not in ``NATIVE`` run by their defaults."""

    @quiet
    def block(self, tag: Any, out: Any, args: list[Tensor], fun: Callable[..., Any]) -> Any:
        """A composite, computed with NumPy if it is in ``NATIVE``."""
        native = NATIVE.get(type(tag).__name__)
        return fun(tag, *args) if native is None else native(tag, out, *args)
