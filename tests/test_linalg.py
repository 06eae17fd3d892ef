"""Linear algebra beyond the table of cases: single factors, and difficult matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import defn as dn
from defn.backends import NumPyBackend
from support import HERE, on_xla

NUMPY = NumPyBackend()


class Defaults(NumPyBackend):
    """NumPy's backend, with every block computed by its definition."""

    def block(self, tag: Any, out: Any, args: list[dn.Tensor], fun: Any) -> Any:
        return fun(tag, *args)


DEFAULTS = Defaults()
BACKENDS = [HERE, NUMPY, DEFAULTS]
EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}


def identify(value: object) -> str:
    return value if isinstance(value, str) else type(value).__name__


def arrays(factors: Any) -> list[np.ndarray]:
    return [np.asarray(factor.to_numpy(), dtype=np.float64) for factor in factors]


def bound(x: np.ndarray, dtype: str) -> float:
    """The rounding error that is allowed for a matrix."""
    return 50 * max(x.shape) * EPSILON[dtype] * max(float(np.abs(x).max(initial=0)), 1e-30)


sides = st.integers(1, 6)
elements = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e3, 1e3, allow_subnormal=False, width=32),
    st.sampled_from([0.0, 1e-12, 1e12]),
)


@st.composite
def matrices(draw: Any, square: bool = False) -> np.ndarray:
    rows = draw(sides)
    columns = rows if square else draw(sides)
    flat = draw(st.lists(elements, min_size=rows * columns, max_size=rows * columns))
    matrix = np.array(flat).reshape(rows, columns)
    if draw(st.booleans()):
        # The matrix does not have full rank.
        matrix[-1] = matrix[0]
    return matrix


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@settings(max_examples=60, deadline=None)
@given(matrix=matrices())
def test_singular_values(dtype: str, matrix: np.ndarray) -> None:
    x = matrix.astype(np.float32 if dtype == "f32" else np.float64)
    wide = x.astype(np.float64)
    k = min(x.shape)
    for full in (True, False):
        u, s, vh = arrays(dn.linalg.svd(dn.tensor(x), full_matrices=full))
        assert (np.diff(s) <= 0).all()
        assert (s >= 0).all()
        slack = 50 * max(x.shape) * EPSILON[dtype]
        assert np.allclose(u.T @ u, np.eye(u.shape[1]), atol=slack, rtol=0)
        assert np.allclose(vh @ vh.T, np.eye(vh.shape[0]), atol=slack, rtol=0)
        back = u[:, :k] * s @ vh[:k]
        assert np.allclose(back, wide, atol=bound(x, dtype), rtol=0)
        want = np.linalg.svd(wide, compute_uv=False)
        assert np.allclose(s, want, atol=bound(x, dtype), rtol=0)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@settings(max_examples=60, deadline=None)
@given(matrix=matrices(square=True))
@example(matrix=np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1e12, 1e-12, 0.0]]))
def test_eigenvalues(dtype: str, matrix: np.ndarray) -> None:
    x = (matrix + matrix.T).astype(np.float32 if dtype == "f32" else np.float64)
    wide = x.astype(np.float64)
    w, v = arrays(dn.linalg.eigh(dn.tensor(x)))
    assert (np.diff(w) >= 0).all()
    assert np.allclose(v.T @ v, np.eye(len(w)), atol=50 * len(w) * EPSILON[dtype], rtol=0)
    assert np.allclose(v * w @ v.T, wide, atol=bound(x, dtype), rtol=0)
    want = np.sort(np.linalg.eigvalsh(wide))
    assert np.allclose(np.sort(w), want, atol=bound(x, dtype), rtol=0)


@settings(max_examples=60, deadline=None)
@given(matrix=matrices(square=True))
def test_triangular_factors(matrix: np.ndarray) -> None:
    p, lower, u = arrays(dn.linalg.lu(dn.tensor(matrix)))
    assert np.allclose(p @ lower @ u, matrix, atol=bound(matrix, "f64"), rtol=0)
    assert (np.abs(lower) <= 1 + 1e-9).all()
    assert np.array_equal(np.tril(lower), lower)
    assert np.array_equal(np.triu(u), u)
    assert np.array_equal(np.sort(p.sum(0)), np.ones(len(p)))


@settings(max_examples=60, deadline=None)
@given(matrix=matrices(), mode=st.sampled_from(["reduced", "complete"]))
def test_orthogonal_factors(matrix: np.ndarray, mode: Any) -> None:
    q, r = arrays(dn.linalg.qr(dn.tensor(matrix), mode=mode))
    m, n = matrix.shape
    k = min(m, n) if mode == "reduced" else m
    assert (q.shape, r.shape) == ((m, k), (k, n))
    assert np.allclose(q.T @ q, np.eye(k), atol=1e-13, rtol=0)
    assert np.allclose(q @ r, matrix, atol=bound(matrix, "f64"), rtol=0)
    assert np.array_equal(np.triu(r), r)


@pytest.mark.parametrize("backend", BACKENDS, ids=identify)
def test_definitions_agree(backend: Any) -> None:
    """The results of each backend for one matrix, where the signs are determined."""
    x = np.array([[4.0, 1.0, -2.0], [1.0, 3.0, 0.5], [-2.0, 0.5, 5.0]])
    t = dn.tensor(x, backend=backend)
    ours = {
        "cholesky": dn.linalg.cholesky(t),
        "values": dn.linalg.eigh(t)[0],
        "singular": dn.linalg.svd(t)[1],
        "solve": dn.linalg.solve(t, dn.tensor(np.arange(3.0), backend=backend)),
        "determinant": dn.linalg.determinant(t),
        "invert": dn.linalg.invert(t),
        "lower": dn.linalg.lu(t)[1],
    }
    values = np.linalg.eigvalsh(x)[::-1]
    want = {
        "cholesky": np.linalg.cholesky(x),
        "values": values[::-1],
        "singular": values,
        "solve": np.linalg.solve(x, np.arange(3.0)),
        "determinant": np.linalg.det(x),
        "invert": np.linalg.inv(x),
        # No rows are exchanged. By hand: 1 / 4, -2 / 4, (0.5 + 0.5) / (3 - 0.25).
        "lower": [[1, 0, 0], [0.25, 1, 0], [-0.5, 1 / 2.75, 1]],
    }
    for name, value in ours.items():
        assert value.backend == backend, name
        got = dn.backend_copy(value).to_numpy()
        assert np.allclose(got, want[name], atol=1e-12), name


@pytest.mark.parametrize("backend", BACKENDS, ids=identify)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(backend: Any, bad: float) -> None:
    x = np.stack([np.eye(3), np.eye(3)])
    x[0, 1, 1] = bad
    t = dn.tensor(x, backend=backend)
    for factors in (dn.linalg.svd(t), dn.linalg.eigh(t)):
        for factor in factors:
            array = dn.backend_copy(factor).to_numpy()
            assert np.isnan(array[0]).all()
            assert not np.isnan(array[1]).any()
    if bad != np.inf:
        array = dn.backend_copy(dn.linalg.cholesky(t)).to_numpy()
        assert np.isnan(array[0]).all()
        assert np.array_equal(array[1], np.eye(3))


@pytest.mark.parametrize("backend", BACKENDS, ids=identify)
def test_what_is_not_definite_has_no_factor(backend: Any) -> None:
    x = dn.tensor(np.array([[[1.0, 2.0], [2.0, 1.0]], [[4.0, 2.0], [2.0, 5.0]]]), backend=backend)
    array = dn.backend_copy(dn.linalg.cholesky(x)).to_numpy()
    assert np.isnan(array[0]).all()
    assert np.allclose(array[1], [[2, 0], [1, 2]])


@pytest.mark.parametrize("backend", BACKENDS, ids=identify)
def test_singular_matrices(backend: Any) -> None:
    ones = dn.tensor(np.ones((2, 2)), backend=backend)
    inverse = dn.backend_copy(dn.linalg.invert(ones)).to_numpy()
    assert np.isnan(inverse).all()
    assert float(dn.backend_copy(dn.linalg.determinant(ones))) == 0.0
    solution = dn.linalg.solve(ones, dn.tensor(np.ones(2), backend=backend))
    assert not np.isfinite(dn.backend_copy(solution).to_numpy()).all()
    assert int(dn.backend_copy(dn.linalg.matrix_rank(ones))) == 1


@pytest.mark.parametrize("backend", BACKENDS, ids=identify)
def test_a_zero_diagonal_is_infinite_when_compiled(backend: Any) -> None:
    a = dn.tensor([[1.0, 0.0], [1.0, 0.0]], backend=backend)
    b = dn.tensor([1.0, 2.0], backend=backend)
    with pytest.raises(dn.OptionError, match="diagonal"):
        dn.linalg.triangular_solve(a, b)
    x = dn.jit(dn.linalg.triangular_solve)(a, b).to_list()
    assert x[0] == 1.0
    assert x[1] == float("inf") or (on_xla() and np.isnan(x[1]))


def test_only_one_triangle_is_read() -> None:
    a = dn.tensor([[2.0, float("nan")], [1.0, 4.0]])
    assert dn.linalg.triangular_solve(a, dn.tensor([2.0, 9.0])).to_list() == [1.0, 2.0]
    assert not np.isnan(dn.linalg.cholesky(a).to_numpy()).any()
    gradient = dn.grad(lambda a: dn.sum(dn.linalg.triangular_solve(a, dn.tensor([2.0, 9.0]))))(a)
    assert gradient.to_list()[0][1] == 0.0


def test_eigenvalues_ascend() -> None:
    x = dn.tensor(np.diag([1.0, -3.0, 2.0]))
    values, vectors = dn.linalg.eigh(x)
    assert values.to_list() == [-3.0, 1.0, 2.0]
    assert np.array_equal(np.abs(vectors.to_numpy()), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert dn.linalg.eigh(x, eps=1.5)[0].to_list() == [-3.0, 0.0, 2.0]


def test_eigenvalues_of_hermitian_matrices_are_complex_by_type() -> None:
    values, vectors = dn.linalg.eigh(dn.tensor([[2.0, 1j], [-1j, 2.0]]))
    assert (values.dtype, vectors.dtype) == ("c64", "c64")
    assert np.allclose(values.to_numpy(), [1, 3], atol=1e-6)
    assert (values.to_numpy().imag == 0).all()


@pytest.mark.parametrize("dtype", ["u8", "s64", "bf16", "f64", "c64"])
def test_the_permutation_keeps_the_dtype(dtype: str) -> None:
    p, lower, upper = dn.linalg.lu(dn.tensor([[1, 2], [3, 4]], dtype=dtype))
    assert p.dtype == dtype
    assert lower.dtype == upper.dtype != "u8"
    assert p.to_numpy().astype(np.complex128).real.tolist() == [[0, 1], [1, 0]]


def test_powers() -> None:
    x = dn.tensor([[1, 1], [1, 0]])
    zero = dn.linalg.matrix_power(dn.tensor(np.ones((2, 3, 3))), 0)
    assert zero.dtype == "s32"
    assert zero.to_list() == [np.eye(3).tolist()] * 2
    assert dn.linalg.matrix_power(x, 1).to_list() == x.to_list()
    assert dn.linalg.matrix_power(x, 30).to_list() == [[1346269, 832040], [832040, 514229]]
    assert dn.linalg.matrix_power(x, -1).dtype == "f32"


def test_pseudo_inverses_of_nothing() -> None:
    assert dn.linalg.pinv(dn.tensor(0.0)).item() == 0.0
    assert dn.linalg.pinv(dn.tensor([0.0, 0.0])).to_list() == [0.0, 0.0]
    assert dn.linalg.pinv(dn.tensor(np.zeros((2, 3)))).to_list() == np.zeros((3, 2)).tolist()
    assert dn.linalg.pinv(dn.tensor(2.0)).item() == 0.5


@pytest.mark.parametrize("backend", BACKENDS, ids=identify)
def test_matrices_without_elements(backend: Any) -> None:
    def shapes(factors: Any) -> list[tuple[int, ...]]:
        return [factor.shape for factor in factors]

    for lead in ((), (2,), (0,)):
        none = dn.tensor(np.zeros((*lead, 0, 0)), backend=backend)
        assert dn.linalg.cholesky(none).shape == (*lead, 0, 0)
        assert (
            dn.backend_copy(dn.linalg.determinant(none)).to_numpy().tolist()
            == np.ones(lead).tolist()
        )
        tall = dn.tensor(np.zeros((*lead, 3, 0)), backend=backend)
        assert shapes(dn.linalg.qr(tall)) == [(*lead, 3, 0), (*lead, 0, 0)]
        assert shapes(dn.linalg.svd(tall)) == [(*lead, 3, 3), (*lead, 0), (*lead, 0, 0)]
        q, _ = dn.linalg.qr(tall, mode="complete")
        assert (dn.backend_copy(q).to_numpy() == np.eye(3)).all()
        assert dn.linalg.solve(none, dn.tensor(np.zeros((*lead, 0, 2)), backend=backend)).shape == (
            *lead,
            0,
            2,
        )
    rank = dn.linalg.matrix_rank(dn.tensor(np.zeros((0, 3))))
    assert (rank.item(), rank.dtype) == (0, "s32")
    assert dn.linalg.norm(dn.tensor(np.zeros((0, 3)))).item() == 0.0


def test_values_alone_need_no_gaps() -> None:
    """The sum of equal singular values or eigenvalues has a gradient: that of the trace."""
    eye = dn.tensor(np.eye(3) * 2.0)
    by_svd = dn.grad(lambda x: dn.sum(dn.linalg.svd(x)[1]))(eye)
    by_eigh = dn.grad(lambda x: dn.sum(dn.linalg.eigh(x)[0]))(eye)
    assert np.allclose(by_svd.to_numpy(), np.eye(3))
    assert np.allclose(by_eigh.to_numpy(), np.eye(3))


def test_second_derivatives() -> None:
    """Of the logarithm of a determinant. With one row it is that of ``log x`` at 2: -1/4."""

    def loss(x: dn.Tensor) -> dn.Tensor:
        factor = dn.linalg.cholesky(dn.reshape(x, (1, 1)))
        return dn.sum(2.0 * dn.log(dn.take_diagonal(factor)))

    x = dn.tensor(2.0, dtype="f64")
    assert float(dn.grad(loss)(x)) == pytest.approx(0.5)
    assert float(dn.grad(lambda x: dn.grad(loss)(x))(x)) == pytest.approx(-0.25)


def test_a_large_batch_is_the_same_in_parallel() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 8, 8))
    t = dn.tensor(x)
    alone = [dn.linalg.svd(dn.tensor(one))[1].to_numpy() for one in x[::50]]
    together = dn.linalg.svd(t)[1].to_numpy()[::50]
    # XLA compiles different programs for one matrix and for many.
    assert np.allclose(together, np.stack(alone), rtol=1e-12 if on_xla() else 0, atol=0)
    assert np.allclose(dn.matmul(t, dn.linalg.invert(t)).to_numpy(), np.eye(8), atol=1e-9)
