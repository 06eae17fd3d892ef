"""General eigenvalues, complex singular values and functions of matrices, at their ends too."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn

EPS = {"f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}
NUMPY = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
DTYPES = list(NUMPY)
REAL = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}
KINDS = ["normal", "symmetric", "low rank", "graded", "jordan", "zero", "identity", "orthogonal"]


def matrix(kind: str, shape: tuple[int, int], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    m, n = shape
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    if kind == "symmetric" and m == n:
        x = x + x.conj().T
    elif kind == "low rank":
        x = np.outer(x[:, 0], x[0])
    elif kind == "graded":
        x = x * 10.0 ** -np.arange(m)[:, None] * 10.0 ** -np.arange(n)
    elif kind == "jordan":
        x = np.eye(m, n) * 2 + np.eye(m, n, 1)
    elif kind == "zero":
        x = x * 0
    elif kind == "identity":
        x = np.eye(m, n) + 0 * x
    elif kind == "orthogonal" and m == n:
        x = np.linalg.qr(x)[0]
    return x.astype(NUMPY[dtype])


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def wide(t: Any) -> np.ndarray:
    x = t.to_numpy()
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def bound(x: np.ndarray, dtype: str, factor: float = 20.0) -> float:
    """A rounding error for a matrix of this size."""
    return factor * max(1, *x.shape[-2:]) * EPS[dtype] * max(np.linalg.norm(x), 1e-30)


def check_svd(x: np.ndarray, dtype: str, full: bool) -> None:
    u, s, vh = dn.linalg.svd(dn.tensor(x), full_matrices=full)
    assert (u.dtype.name, s.dtype.name) == (dtype, REAL[dtype])
    u, s, vh = wide(u), wide(s), wide(vh)
    k = s.shape[-1]
    limit = bound(x, dtype)
    assert np.linalg.norm((u[:, :k] * s) @ vh[:k] - x) <= limit
    for vectors in (u, adjoint(vh)):
        eye = np.eye(vectors.shape[1])
        assert np.linalg.norm(adjoint(vectors) @ vectors - eye) <= bound(eye, dtype)
    assert (np.diff(s) <= 0).all()
    assert (s >= 0).all()
    want = np.linalg.svd(x.astype(np.complex128), compute_uv=False)
    assert np.abs(s - want).max(initial=0) <= limit


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    m=st.integers(1, 12),
    n=st.integers(1, 12),
    dtype=st.sampled_from(DTYPES),
    full=st.booleans(),
)
def test_singular_values_of_every_kind(kind: str, m: int, n: int, dtype: str, full: bool) -> None:
    check_svd(matrix(kind, (m, n), dtype), dtype, full)


@pytest.mark.parametrize("shape", [(40, 40), (70, 33), (33, 70)])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_singular_values_of_larger_complex_matrices(shape: tuple[int, int], dtype: str) -> None:
    check_svd(matrix("normal", shape, dtype), dtype, full=True)
    check_svd(matrix("normal", shape, dtype), dtype, full=False)


def check_eig(x: np.ndarray, dtype: str) -> None:
    w, v = dn.linalg.eig(dn.tensor(x))
    assert w.dtype.name == v.dtype.name == {"f32": "c64", "f64": "c128"}.get(dtype, dtype)
    w, v = wide(w), wide(v)
    assert np.linalg.norm(x @ v - v * w) <= bound(x, dtype)
    norms = np.linalg.norm(v, axis=0)
    assert np.abs(norms - 1).max() <= 50 * EPS[dtype]
    greatest = v[np.abs(v).argmax(0), np.arange(len(w))]
    assert (greatest.real > 0).all()
    assert np.abs(greatest.imag).max() <= 10 * EPS[dtype]
    t, z = map(wide, dn.linalg.schur(dn.tensor(x)))
    assert np.linalg.norm(z @ t @ adjoint(z) - x) <= bound(x, dtype)
    assert np.linalg.norm(adjoint(z) @ z - np.eye(len(x))) <= bound(np.eye(len(x)), dtype)
    assert (np.tril(t, -1) == 0).all()
    h, q = map(wide, dn.linalg.hessenberg(dn.tensor(x)))
    assert np.linalg.norm(q @ h @ adjoint(q) - x) <= bound(x, dtype)
    assert (np.tril(h, -2) == 0).all()


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(KINDS), n=st.integers(1, 12), dtype=st.sampled_from(DTYPES))
def test_eigenvalues_of_every_kind(kind: str, n: int, dtype: str) -> None:
    check_eig(matrix(kind, (n, n), dtype), dtype)


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(KINDS), n=st.integers(1, 40), dtype=st.sampled_from(DTYPES))
def test_eigenvalues_alone_belong_to_a_near_matrix(kind: str, n: int, dtype: str) -> None:
    """A number is an eigenvalue of a matrix as far away as `x - value` is from singular."""
    x = matrix(kind, (n, n), dtype)
    w = wide(dn.linalg.eigvals(dn.tensor(x)))
    limit = bound(x, dtype)
    for value in w:
        least = np.linalg.svd(x - value * np.eye(n), compute_uv=False)[-1]
        assert least <= limit
    assert abs(w.sum() - np.trace(x.astype(np.complex128))) <= limit
    if dtype in ("f32", "f64"):
        conjugates = np.sort_complex(w.conj())
        np.testing.assert_array_equal(conjugates, np.sort_complex(w))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_larger_matrices(dtype: str) -> None:
    x = matrix("normal", (60, 60), dtype)
    check_eig(x, dtype)
    got = np.sort_complex(wide(dn.linalg.eigvals(dn.tensor(x))))
    want = np.linalg.eigvals(x.astype(np.complex128))
    # Each has one close to it.
    distances = np.abs(got[:, None] - want).min(0)
    assert distances.max() <= 2000 * bound(x, dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("dtype", ["f64", "c64"])
def test_definitions_have_the_properties_too(n: int, dtype: str) -> None:
    # The evaluator of graphs runs the definitions of blocks that a gradient of a gradient has.
    x = np.stack([matrix(kind, (n, n), dtype) for kind in ("normal", "low rank", "jordan")])
    w, v = dn.vmap(dn.linalg.eig)(dn.tensor(x))
    assert np.linalg.norm(x @ wide(v) - wide(v) * wide(w)[:, None, :]) <= bound(x[0], dtype, 100)


def test_factors_of_matrices_without_rows_and_with_nan() -> None:
    empty = dn.tensor(np.zeros((2, 0, 0)))
    assert [part.shape for part in dn.linalg.eig(empty)] == [(2, 0), (2, 0, 0)]
    assert [part.shape for part in dn.linalg.schur(empty)] == [(2, 0, 0)] * 2
    assert [part.shape for part in dn.linalg.hessenberg(empty)] == [(2, 0, 0)] * 2
    for function in (dn.linalg.expm, dn.linalg.sqrtm, dn.linalg.logm):
        assert function(empty).shape == (2, 0, 0)
    bad = np.stack([np.eye(3), np.eye(3)])
    bad[0, 1, 2] = np.inf
    for function in (dn.linalg.eig, dn.linalg.schur, dn.linalg.hessenberg):
        for part in function(dn.tensor(bad)):
            assert np.isnan(part.to_numpy()[0]).all()
            assert np.isfinite(part.to_numpy()[1]).all()
    for function in (dn.linalg.expm, dn.linalg.sqrtm, dn.linalg.logm, dn.linalg.eigvals):
        out = function(dn.tensor(bad)).to_numpy()
        assert np.isnan(out[0]).all()
        assert np.isfinite(out[1]).all()


def test_results_have_numpys_names() -> None:
    x = dn.tensor([[2.0, 1.0], [1.0, 3.0]])
    assert dn.linalg.eigh(x).eigenvalues.shape == dn.linalg.eig(x).eigenvalues.shape == (2,)
    assert dn.linalg.svd(x).S.shape == (2,)
    assert dn.linalg.qr(x).R.shape == (2, 2)
    assert dn.linalg.slogdet(x).sign.item() == 1.0
    traced = dn.jit(dn.linalg.svd)(x)
    assert type(traced) is dn.linalg.SVDResult
    assert traced.Vh.shape == (2, 2)


# Gradients by finite differences, of functions that do not depend on signs and phases.


def differences(fun: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient in the convention of ``dn.grad``."""
    out = np.zeros(x.shape, complex if np.iscomplexobj(x) else float)
    for index in np.ndindex(x.shape):
        for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
            moved = np.zeros_like(x)
            moved[index] = unit * step
            slope = (fun(x + moved) - fun(x - moved)) / (2 * step)
            out[index] += slope * np.conj(unit)
    return out


def check_gradient(fun: Any, x: np.ndarray, rtol: float = 1e-5) -> None:
    got = dn.grad(fun)(dn.tensor(x)).to_numpy()
    want = differences(lambda x: fun(dn.tensor(x)).item(), x)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-6 * max(1, np.abs(want).max()))


WEIGHTS = dn.tensor(np.array([[1.0, 2.0, -1.0], [0.5, 3.0, 1.5], [2.0, -2.0, 1.0]]))


def share_of_vectors(x: Any) -> Any:
    w, v = dn.linalg.eig(x)
    return dn.real(dn.sum(w * dn.sum(WEIGHTS[0][:, None] * dn.abs(v) ** 2, axes=[0])))


def projected(x: Any) -> Any:
    """A function of both sets of singular vectors, without their common phases."""
    u, s, vh = dn.linalg.svd(x, full_matrices=False)
    k = s.shape[0]
    inner = dn.matmul(u * dn.tensor(np.arange(1.0, k + 1)), vh)
    return dn.real(dn.sum(inner * dn.tensor(np.arange(inner.size).reshape(inner.shape) + 1j)))


GRADIENTS = {
    "eigenvalues": lambda x: dn.real(dn.sum(dn.linalg.eigvals(x) ** 3)),
    "imaginary parts": lambda x: dn.sum(dn.imag(dn.linalg.eig(x)[0]) ** 2),
    "eigenvectors": share_of_vectors,
    "exponential": lambda x: dn.real(dn.sum(dn.linalg.expm(x) * WEIGHTS)),
    "square root": lambda x: dn.real(dn.sum(dn.linalg.sqrtm(x) * WEIGHTS)),
    "logarithm": lambda x: dn.imag(dn.sum(dn.linalg.logm(x) * WEIGHTS)),
    "singular vectors": projected,
    "nuclear norm": lambda x: dn.linalg.norm(x, ord="nuclear"),
    "pseudo-inverse": lambda x: dn.real(dn.sum(dn.linalg.pinv(x) * WEIGHTS)),
    "hessenberg": lambda x: dn.real(dn.sum(dn.abs(dn.linalg.hessenberg(x)[0]) * WEIGHTS)),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_gradients_are_differences(name: str, dtype: str) -> None:
    x = matrix("normal", (3, 3), dtype, seed=3) + np.diag([1.0, 2.0, 4.0])
    check_gradient(GRADIENTS[name], x)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_gradients_of_complex_vectors_of_long_matrices(shape: tuple[int, int]) -> None:
    check_gradient(projected, matrix("normal", shape, "c128"))


def test_the_exponential_has_a_second_derivative() -> None:
    def total(x: Any) -> Any:
        return dn.sum(dn.linalg.expm(x) * WEIGHTS)

    x = matrix("normal", (3, 3), "f64")
    check_gradient(lambda x: dn.sum(dn.grad(total)(x) ** 2), x)


# Functions of matrices at their ends, by mpmath with 60 digits.


@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0])
def test_the_exponential_is_mpmaths(scale: float) -> None:
    x = matrix("normal", (5, 5), "f64", seed=1) * scale
    with mpmath.workdps(60):
        want = np.array(mpmath.expm(mpmath.matrix(x.tolist())).tolist(), dtype=float)
    got = dn.linalg.expm(dn.tensor(x)).to_numpy()
    assert np.linalg.norm(got - want) <= 1e-13 * max(1, scale) * np.linalg.norm(want)
    got = dn.linalg.expm(dn.tensor(x.astype(np.float32))).to_numpy()
    assert np.linalg.norm(got - want) <= 1e-4 * max(1, scale) * np.linalg.norm(want)


def test_the_exponential_of_a_batch_scales_each_matrix() -> None:
    x = np.stack([np.diag([-700.0, 1.0]), np.diag([1e-20, 0.0]), np.diag([700.0, -1e5])])
    got = dn.linalg.expm(dn.tensor(x)).to_numpy()
    np.testing.assert_allclose(got, [np.diag(np.exp(np.diag(one))) for one in x], rtol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_roots_and_logarithms_are_inverses(dtype: str) -> None:
    x = matrix("normal", (6, 6), dtype, seed=2)
    root = wide(dn.linalg.sqrtm(dn.tensor(x)))
    assert np.linalg.norm(root @ root - x) <= 100 * bound(x, dtype)
    assert (np.linalg.eigvals(root).real >= -1e-6).all()
    logarithm = wide(dn.linalg.logm(dn.tensor(x)))
    assert np.linalg.norm(scipy.linalg.expm(logarithm) - x) <= 1000 * bound(x, dtype)
    assert (np.abs(np.linalg.eigvals(logarithm).imag) <= np.pi + 1e-5).all()


def test_roots_of_zero_and_of_defective_matrices() -> None:
    assert (dn.linalg.sqrtm(dn.tensor(np.zeros((2, 2)))).to_numpy() == 0).all()
    x = np.array([[4.0, 1.0], [0.0, 4.0]])
    np.testing.assert_allclose(dn.linalg.sqrtm(dn.tensor(x)).to_numpy(), [[2, 0.25], [0, 2]])
    # There is no matrix with this square.
    assert not np.isfinite(dn.linalg.sqrtm(dn.tensor([[0.0, 1.0], [0.0, 0.0]])).to_numpy()).all()
    assert not np.isfinite(dn.linalg.logm(dn.tensor([[1.0, 1.0], [1.0, 1.0]])).to_numpy()).all()


# Diagonals outside the matrix, as in NumPy.


@pytest.mark.parametrize("offset", [-7, -2, -1, 0, 1, 3, 7])
def test_diagonals_are_numpys(offset: int) -> None:
    x = np.arange(12).reshape(2, 2, 3)
    got = dn.take_diagonal(dn.tensor(x), offset)
    np.testing.assert_array_equal(got.to_numpy(), np.diagonal(x, offset, -2, -1))
    got = dn.trace(dn.tensor(x), offset=offset)
    np.testing.assert_array_equal(got.to_numpy(), np.trace(x, offset, -2, -1))
    got = dn.eye((2, 3), offset=offset)
    np.testing.assert_array_equal(got.to_numpy(), np.eye(2, 3, offset))


@pytest.mark.parametrize("dtype", ["f64", "c128"])
@pytest.mark.parametrize("order", [-3.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, np.inf, -np.inf])
def test_norms_of_any_order_are_numpys(order: float, dtype: str) -> None:
    x = matrix("normal", (3, 4), dtype)
    got = dn.linalg.norm(dn.tensor(x), order, axes=[1])
    np.testing.assert_allclose(got.to_numpy(), np.linalg.norm(x, order, axis=1), rtol=1e-12)


def test_lu_solve_is_solve() -> None:
    a, b = matrix("normal", (5, 5), "c128"), matrix("normal", (5, 2), "f64")
    got = dn.linalg.lu_solve(dn.linalg.lu(dn.tensor(a)), dn.tensor(b))
    np.testing.assert_allclose(got.to_numpy(), np.linalg.solve(a, b), rtol=1e-10)
    singular = dn.linalg.lu(dn.tensor([[1.0, 2.0], [2.0, 4.0]]))
    assert np.isnan(dn.linalg.lu_solve(singular, dn.tensor([1.0, 2.0])).to_numpy()).any()


def test_diagonals_of_toeplitz_matrices_may_be_empty() -> None:
    empty = dn.tensor(np.zeros(0))
    assert dn.linalg.toeplitz(empty).shape == (0, 0)
    assert dn.linalg.toeplitz(empty, dn.tensor([1.0, 2.0])).shape == (0, 2)
    assert dn.linalg.toeplitz(dn.tensor([1.0, 2.0]), empty).shape == (2, 0)
