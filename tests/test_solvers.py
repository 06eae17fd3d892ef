"""``dn.linalg.cg``, ``bicgstab`` and ``gmres`` beside SciPy, NumPy and finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse.linalg as sparse

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

SOLVERS = {"cg": dn.linalg.cg, "bicgstab": dn.linalg.bicgstab, "gmres": dn.linalg.gmres}
DTYPES = ["float32", "float64", "complex64", "complex128"]


def tight(dtype: Any) -> float:
    """A tolerance that each dtype reaches on the matrices of these tests."""
    return 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-11


def matrix(name: str, n: int, dtype: str, seed: int = 0) -> np.ndarray:
    """A well-conditioned matrix, Hermitian positive definite for ``cg``."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=(n, n))
    a = a @ a.conj().T / n + np.eye(n) if name == "cg" else a / np.sqrt(n) + 3 * np.eye(n)
    return a.astype(dtype)


def vector(n: int, dtype: str, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    b = rng.normal(size=n)
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.normal(size=n)
    return b.astype(dtype)


def residual(a: np.ndarray, x: dn.Tensor, b: np.ndarray) -> float:
    wide = np.complex128
    rest = np.linalg.norm(b.astype(wide) - a.astype(wide) @ x.to_numpy().astype(wide))
    return float(rest / np.linalg.norm(b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_solutions_of_matrices_and_functions(name: str, dtype: str, n: int) -> None:
    a, b = matrix(name, n, dtype), vector(n, dtype)
    solve, rtol = SOLVERS[name], tight(dtype)
    want = np.linalg.solve(a, b)
    given = dn.tensor(a)
    calls: list[Callable[[], Any]] = [
        lambda: solve(given, b, rtol=rtol),
        lambda: solve(lambda x: given @ x, b, rtol=rtol),
        lambda: dn.jit(lambda a, b: solve(a, b, rtol=rtol))(a, b),
        lambda: dn.jit(lambda b: solve(lambda x: given @ x, b, rtol=rtol))(b),
    ]
    for call in calls:
        x, info = call()
        assert (int(info), str(info.dtype), info.shape) == (0, "s32", ())
        assert x.to_numpy().dtype == np.dtype(dtype)
        assert residual(a, x, b) <= 1.01 * rtol
        np.testing.assert_allclose(x.to_numpy(), want, rtol=0, atol=30 * rtol * abs(want).max())


@pytest.mark.parametrize("name", SOLVERS)
def test_iterations_are_those_of_scipy(name: str) -> None:
    a, b = matrix(name, 60, "float64"), vector(60, "float64")
    counts: list[int] = []
    for limit in range(1, 40):
        _, info = SOLVERS[name](a, b, rtol=1e-8, maxiter=limit, **restart(name, 5))
        counts.append(int(info))
    done = counts.index(0)
    assert counts[:done] == list(range(1, done + 1))
    assert set(counts[done:]) == {0}
    steps = 0

    def step(_: Any) -> None:
        nonlocal steps
        steps += 1

    other = getattr(sparse, name)
    if name == "gmres":
        other(a, b, rtol=1e-8, restart=5, callback=step, callback_type="x")
    else:
        other(a, b, rtol=1e-8, callback=step)
    assert abs(done + 1 - steps) <= 1


def restart(name: str, cycle: int) -> dict[str, int]:
    return {"restart": cycle} if name == "gmres" else {}


@pytest.mark.parametrize("name", SOLVERS)
def test_the_start_and_the_preconditioner(name: str) -> None:
    n = 50
    a = matrix(name, n, "float64")
    scales = np.logspace(0, 4, n)
    a, b = scales[:, None] * a * scales, vector(n, "float64")
    inverse = dn.tensor(1 / scales**2)
    solve = SOLVERS[name]
    _, plain = solve(a, b, rtol=1e-8, maxiter=40)
    x, info = solve(a, b, rtol=1e-8, maxiter=40, m=lambda r: inverse * r)
    assert int(plain) > 0
    assert int(info) == 0
    assert residual(a, x, b) <= 1.01e-8
    x, info = solve(a, b, rtol=1e-8, maxiter=40, m=np.diag(1 / scales**2))
    assert int(info) == 0
    want = np.linalg.solve(a, b)
    _, info = solve(a, b, x0=want, rtol=1e-8, maxiter=1)
    assert int(info) == 0


@pytest.mark.parametrize("name", SOLVERS)
def test_containers_of_any_shapes_and_dtypes(name: str) -> None:
    weights = dn.tensor(matrix(name, 3, "float64"))

    def a(x: Any) -> Any:
        return {"one": weights @ x["one"], "two": [4.0 * x["two"][0]]}

    b = {"one": vector(6, "float64").reshape(3, 2), "two": [vector(4, "float32").reshape(2, 1, 2)]}
    x, info = SOLVERS[name](a, b, rtol=1e-6)
    assert int(info) == 0
    assert [str(x["one"].dtype), str(x["two"][0].dtype)] == ["f64", "f32"]
    want = np.linalg.solve(weights.to_numpy(), b["one"])
    np.testing.assert_allclose(x["one"].to_numpy(), want, atol=1e-5)
    np.testing.assert_allclose(x["two"][0].to_numpy(), b["two"][0] / 4, atol=1e-5)


@pytest.mark.parametrize("name", SOLVERS)
def test_what_is_not_solved_is_never_0(name: str) -> None:
    solve = SOLVERS[name]
    singular = np.diag([1.0, 2.0, 0.0])
    cases = [
        (singular, np.array([1.0, 1.0, 1.0])),
        (np.zeros((3, 3)), np.ones(3)),
        (np.eye(3), np.array([1.0, np.nan, 0.0])),
        (np.eye(3), np.array([np.inf, 1.0, 0.0])),
        (np.full((3, 3), np.nan), np.ones(3)),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]), np.ones(2)),  # Skew: only GMRES solves it.
        (np.full((2, 2), 1e-320), np.ones(2)),
    ]
    for a, b in cases:
        x, info = solve(a, b)
        is_solved = np.linalg.norm(b - a @ x.to_numpy()) <= 1e-5 * np.linalg.norm(b)
        assert (int(info) == 0) == is_solved, (a, b, x, info)
    x, info = solve(singular, np.array([1.0, 1.0, 0.0]))
    assert int(info) == 0
    np.testing.assert_allclose(x.to_numpy()[:2], [1.0, 0.5], atol=1e-4)
    x, info = solve(np.eye(3), np.zeros(3), x0=np.ones(3))
    assert (x.to_list(), int(info)) == ([0.0, 0.0, 0.0], 0)
    x, info = solve(np.eye(3), np.full(3, 1e-3), atol=1.0)
    assert (x.to_list(), int(info)) == ([0.0, 0.0, 0.0], 0)
    x, info = solve(np.eye(0), np.zeros(0))
    assert (x.shape, int(info)) == ((0,), 0)


def test_info_speaks_of_the_residual_itself() -> None:
    """Updated residuals of an ill-conditioned system become small where the real one is not."""
    n = 30
    rows = np.arange(n)
    a = (1.0 / (1 + rows[:, None] + rows)).astype("float32")
    b = vector(n, "float32")
    for name, solve in SOLVERS.items():
        x, info = solve(a, b, rtol=1e-6)
        assert (int(info) == 0) == (residual(a, x, b) <= 1e-6), name


@pytest.mark.parametrize("name", SOLVERS)
def test_positions_of_a_vectorized_axis_are_systems_of_their_own(name: str) -> None:
    a = np.stack([matrix(name, 8, "float64", seed) for seed in range(3)] + [np.zeros((8, 8))])
    b = np.stack([vector(8, "float64", seed) for seed in range(4)])
    solve = SOLVERS[name]
    x, info = dn.vmap(lambda a, b: solve(a, b, rtol=1e-10))(a, b)
    assert (info.to_numpy() > 0).tolist() == [False, False, False, True]
    for lane in range(3):
        np.testing.assert_allclose(x[lane].to_numpy(), np.linalg.solve(a[lane], b[lane]), atol=1e-8)
    shared, info = dn.vmap(lambda b: solve(a[0], b, rtol=1e-10))(b)
    assert info.to_list() == [0] * 4
    np.testing.assert_allclose(shared.to_numpy(), np.linalg.solve(a[0], b.T).T, atol=1e-8)


def numeric(f: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a real function, by the real and by the imaginary part."""
    out = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(x.shape):
        for unit in [1, 1j] if x.dtype.kind == "c" else [1]:
            shift = np.zeros_like(x)
            shift[at] = step * unit
            # The G with df = real(G dx).
            out[at] += np.conj(unit) * (f(x + shift) - f(x - shift)) / (2 * step)
    return out


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SOLVERS)
def test_gradients_to_both_sides(name: str, dtype: str) -> None:
    a, b, c = matrix(name, 5, dtype), vector(5, dtype), vector(5, dtype, 7)
    solve = SOLVERS[name]

    def loss(a: Any, b: Any) -> Any:
        x, _ = solve(lambda x: a @ x, b, rtol=1e-12)
        return dn.real(dn.sum(x * c)) + dn.sum(dn.abs(x) ** 4)

    def oracle(a: np.ndarray, b: np.ndarray) -> float:
        x = np.linalg.solve(a, b)
        return float(np.real(np.sum(x * c)) + np.sum(np.abs(x) ** 4))

    got_a, got_b = dn.grad(loss, argnums=(0, 1))(a, b)
    scale = abs(numeric(lambda a: oracle(a, b), a)).max()
    np.testing.assert_allclose(
        got_a.to_numpy(), numeric(lambda a: oracle(a, b), a), atol=1e-6 * scale
    )
    np.testing.assert_allclose(
        got_b.to_numpy(), numeric(lambda b: oracle(a, b), b), atol=1e-6 * scale
    )
    # Forward mode: the tangent of the solution.
    da, db = vector(25, dtype, 3).reshape(5, 5), vector(5, dtype, 4)
    _, tangent = dn.jvp(lambda a, b: solve(lambda x: a @ x, b, rtol=1e-12)[0], (a, b), (da, db))
    x = np.linalg.solve(a, b)
    np.testing.assert_allclose(tangent.to_numpy(), np.linalg.solve(a, db - da @ x), atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_higher_derivatives(name: str) -> None:
    a, b = matrix(name, 4, "float64"), vector(4, "float64")
    shift = vector(16, "float64", 5).reshape(4, 4)
    shift = shift + shift.T

    def f(t: Any) -> Any:
        return dn.sum(SOLVERS[name](lambda x: a @ x + t * (shift @ x), b, rtol=1e-13)[0])

    # The derivatives of (A + t S)^-1 b are (-1)^k k! (A^-1 S)^k A^-1 b.
    x, want = np.linalg.solve(a, b), []
    factor = 1.0
    for order in range(1, 4):
        x, factor = np.linalg.solve(a, shift @ x), -factor * order
        want.append(factor * x.sum())
    at = dn.tensor(0.0, dtype="f64")
    first, second, third = dn.grad(f), dn.grad(dn.grad(f)), dn.grad(dn.grad(dn.grad(f)))
    np.testing.assert_allclose([float(g(at)) for g in (first, second, third)], want, rtol=1e-7)
    forward = lambda f: lambda t: dn.jvp(f, (t,), (dn.tensor(1.0, dtype="f64"),))[1]  # noqa: E731
    for second in (forward(dn.grad(f)), dn.grad(forward(f)), forward(forward(f)), dn.hessian(f)):
        np.testing.assert_allclose(float(second(at)), want[1], rtol=1e-7)
    np.testing.assert_allclose(float(forward(forward(forward(f)))(at)), want[2], rtol=1e-7)


def test_a_preconditioner_also_serves_derivatives() -> None:
    n = 40
    a, scales = matrix("gmres", n, "float64"), np.logspace(0, 4, n)
    a, b, inverse = scales[:, None] * a, vector(n, "float64"), dn.tensor(1 / scales)
    options = {"rtol": 1e-11, "maxiter": 12}

    def loss(b: Any, m: Any) -> Any:
        return dn.sum(dn.linalg.gmres(a, b, m=m, **options)[0] ** 2)

    x = np.linalg.solve(a, b)
    want = np.linalg.solve(a.T, 2 * x)
    got = dn.grad(lambda b: loss(b, lambda r: inverse * r))(b).to_numpy()
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9 * abs(want).max())
    assert np.isnan(dn.grad(lambda b: loss(b, None))(b).to_numpy()).all()
    # The solution does not depend on the preconditioner.
    slope = dn.grad(lambda inverse: loss(b, lambda r: inverse * r))(inverse)
    assert not slope.to_numpy().any()


def test_a_stencil_of_many_unknowns() -> None:
    side = 100

    def a(x: Any, k: Any) -> Any:
        x = dn.pad(x, 0.0, [(1, 1, 0), (1, 1, 0)])
        inner = x[1:-1, 1:-1]
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return 4.0 * inner - around + k * inner

    # Sines are eigenvectors, so that the solution and its derivatives have closed forms.
    wave = np.sin(np.pi * 3 * np.arange(1, side + 1) / (side + 1))
    mode = np.outer(wave, wave)
    value = 4 - 4 * np.cos(np.pi * 3 / (side + 1))
    k = 0.01
    x, info = dn.linalg.cg(lambda x: a(x, k), mode, rtol=1e-12)
    assert int(info) == 0
    np.testing.assert_allclose(x.to_numpy(), mode / (value + k), atol=1e-9)

    b = vector(side * side, "float64").reshape(side, side)

    def loss(k: Any) -> Any:
        return dn.sum(dn.linalg.cg(lambda x: a(x, k), mode + 0.1 * b, rtol=1e-12)[0] * mode)

    at, step = dn.tensor(k, dtype="f64"), 1e-5
    slope = dn.jit(dn.grad(loss))(at)
    f = dn.jit(loss)
    difference = (float(f(at + step)) - float(f(at - step))) / (2 * step)
    np.testing.assert_allclose(float(slope), difference, rtol=1e-6)
    # The matrix is symmetric: by the mode, the solution is (mode, b) / (value + k).
    product = float((mode * (mode + 0.1 * b)).sum())
    np.testing.assert_allclose(float(slope), -product / (value + k) ** 2, rtol=1e-9)
    assert len(dn.debug_expr(dn.grad(loss))(at).__repr__()) < 20_000


def test_small_floats_and_integers() -> None:
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    for dtype in ["bf16", "f16"]:
        x, info = dn.linalg.cg(
            dn.tensor(a, dtype=dtype), dn.tensor([6.0, 7.0], dtype=dtype), rtol=0.05
        )
        assert (str(x.dtype), int(info)) == (dtype, 0)
        np.testing.assert_allclose(x.to_list(), [1.0, 2.0], atol=0.1)
    x, info = dn.linalg.cg(np.array([[4, 1], [1, 3]]), np.array([6, 7]))
    assert str(x.dtype) == "f32"
    np.testing.assert_allclose(x.to_list(), [1.0, 2.0], atol=1e-4)


def test_refusals() -> None:
    a, b = dn.tensor(np.eye(3)), dn.tensor(np.ones(3))
    for call, error, text in [
        (
            lambda: dn.linalg.cg(a[:2], b),
            dn.ShapeError,
            "cg: a is f64.2..3. for b of f64.3., a square",
        ),
        (lambda: dn.linalg.gmres(a, b[:2]), dn.ShapeError, "gmres: a is f64.3..3. for b of f64.2."),
        (lambda: dn.linalg.cg(lambda x: x[:2], b), dn.ShapeError, "cg: a gives f64.2. for f64.3."),
        (lambda: dn.linalg.cg(lambda x: dn.as_type(x, "f32"), b), dn.DTypeError, "cg: a gives f32"),
        (lambda: dn.linalg.cg(lambda x: (x, x), b), dn.ContainerError, "cg: the value of a and"),
        (lambda: dn.linalg.cg(a, b, m=lambda x: x[:2]), dn.ShapeError, "cg: m gives"),
        (lambda: dn.linalg.cg(a, b, x0=b[:2]), dn.ShapeError, "cg: "),
        (lambda: dn.linalg.cg(a, b, rtol=-1.0), dn.OptionError, "cg: rtol is -1"),
        (lambda: dn.linalg.cg(a, b, maxiter=0), dn.OptionError, "cg: maxiter is 0"),
        (lambda: dn.linalg.gmres(a, b, restart=0), dn.OptionError, "gmres: restart is 0"),
    ]:
        with pytest.raises(error, match=f"^{text}"):
            call()
