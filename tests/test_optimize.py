"""``dn.optimize`` beside SciPy and finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.optimize

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ["float32", "float64"]


def stacked(*parts: Any) -> Any:
    return dn.stack(list(parts))


def rosenbrock_residuals(x: Any) -> Any:
    return stacked(1.0 - x[0], 10.0 * (x[1] - x[0] ** 2))


def powell_singular(x: Any) -> Any:
    return stacked(
        x[0] + 10.0 * x[1],
        5.0**0.5 * (x[2] - x[3]),
        (x[1] - 2.0 * x[2]) ** 2,
        10.0**0.5 * (x[0] - x[3]) ** 2,
    )


def powell_badly_scaled(x: Any) -> Any:
    return stacked(1e4 * x[0] * x[1] - 1.0, dn.exp(-x[0]) + dn.exp(-x[1]) - 1.0001)


def freudenstein_roth(x: Any) -> Any:
    return stacked(
        -13.0 + x[0] + ((5.0 - x[1]) * x[1] - 2.0) * x[1],
        -29.0 + x[0] + ((x[1] + 1.0) * x[1] - 14.0) * x[1],
    )


def helical_valley(x: Any) -> Any:
    angle = dn.atan2(x[1], x[0]) / (2.0 * np.pi)
    return stacked(10.0 * (x[2] - 10.0 * angle), 10.0 * (dn.hypot(x[0], x[1]) - 1.0), x[2])


def broyden_tridiagonal(x: Any) -> Any:
    left, right = dn.pad(x[:-1], 0.0, [(1, 0, 0)]), dn.pad(x[1:], 0.0, [(0, 1, 0)])
    return (3.0 - 2.0 * x) * x - left - 2.0 * right + 1.0


def discrete_boundary_value(x: Any) -> Any:
    n = x.shape[0]
    step = 1.0 / (n + 1)
    t = (dn.iota((n,)) + 1) * step
    left, right = dn.pad(x[:-1], 0.0, [(1, 0, 0)]), dn.pad(x[1:], 0.0, [(0, 1, 0)])
    return 2.0 * x - left - right + step**2 * (x + t + 1.0) ** 3 / 2.0


# The systems of Moré, Garbow and Hillstrom (1981) that have zeros, with their standard starts.
ROOTS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "rosenbrock": (rosenbrock_residuals, [-1.2, 1.0]),
    "freudenstein_roth": (freudenstein_roth, [6.0, 5.0]),
    "helical_valley": (helical_valley, [-1.0, 0.1, 0.1]),
    "broyden_tridiagonal": (broyden_tridiagonal, [-1.0] * 30),
    "discrete_boundary_value": (
        discrete_boundary_value,
        [t * (t - 1) for t in np.arange(1, 11) / 11],
    ),
}


def on_host(fun: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    compiled = dn.jit(fun)
    return lambda x: compiled(np.asarray(x, np.float64)).to_numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["newton", "krylov"])
@pytest.mark.parametrize("name", ROOTS)
def test_roots_are_those_of_scipy(name: str, method: Any, dtype: str) -> None:
    fun, start = ROOTS[name]
    want = scipy.optimize.root(on_host(fun), np.array(start), tol=1e-14)
    assert abs(want.fun).max() < 1e-10
    result = dn.optimize.root(fun, np.array(start, dtype), method=method).check()
    assert result.x.to_numpy().dtype == dtype
    tolerance = 2e-4 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(result.x.to_numpy(), want.x, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(result.fun.to_numpy(), fun(result.x).to_numpy())
    jacobian = dn.jacobian(fun)(result.x).to_numpy()
    gradient = abs(jacobian.T @ result.fun.to_numpy()).max()
    np.testing.assert_allclose(float(result.gradient_norm), gradient, rtol=0.5, atol=1e-6)
    assert 0 < int(result.iterations) < int(result.evaluations)


@pytest.mark.parametrize("method", ["newton", "krylov"])
def test_a_singular_root_is_found_slowly(method: Any) -> None:
    result = dn.optimize.root(powell_singular, np.array([3.0, -1.0, 0.0, 1.0]), method=method)
    # GMRES does not solve systems whose condition number is beyond the dtype's digits.
    assert int(result.status) in ((0,) if method == "newton" else (0, 2))
    assert abs(result.x.to_numpy()).max() < 1e-9
    assert 30 < int(result.iterations) <= 100


def test_unknowns_of_very_different_sizes() -> None:
    result = dn.optimize.root(powell_badly_scaled, np.array([0.0, 1.0])).check()
    want = scipy.optimize.root(on_host(powell_badly_scaled), [0.0, 1.0], tol=1e-14).x
    np.testing.assert_allclose(result.x.to_numpy(), want, rtol=1e-6)

    def brown(x: Any) -> Any:
        return stacked(x[0] - 1e6, x[0] * x[1] - 2.0)

    for dtype, rtol in [("float32", 2e-5), ("float64", 1e-10)]:
        result = dn.optimize.root(brown, np.ones(2, dtype)).check()
        np.testing.assert_allclose(result.x.to_numpy(), [1e6, 2e-6], rtol=rtol)


@pytest.mark.parametrize("method", ["newton", "krylov"])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_scales_do_not_matter(method: Any, scale: float) -> None:
    def fun(x: Any) -> Any:
        return scale * freudenstein_roth(x / scale)

    result = dn.optimize.root(fun, scale * np.array([6.0, 5.0]), method=method).check()
    np.testing.assert_allclose(result.x.to_numpy(), scale * np.array([5.0, 4.0]), rtol=1e-10)


def test_steps_are_shortened_where_newtons_method_diverges() -> None:
    for start in [3.0, -20.0]:
        assert abs(float(dn.optimize.root(dn.atan, dn.f64(start)).check().x)) < 1e-12
    # Whole steps would leave the domain.
    assert abs(float(dn.optimize.root(dn.log, dn.f64(5.0)).check().x) - 1.0) < 1e-12


NO_ROOTS: dict[str, tuple[Callable[[Any], Any], Any, int]] = {
    "none nearby": (freudenstein_roth, np.array([0.5, -2.0]), 2),
    "none": (lambda x: x * x + 1.0, 1.0, 2),
    "none, at a minimum": (lambda x: x * x + 1.0, 0.0, 2),
    "no derivative": (lambda x: 0.0 * x + 1.0, 1.0, 2),
    "NaN at the start": (dn.log, -1.0, 3),
    "infinite at the start": (lambda x: 1.0 / x, 0.0, 3),
    "NaN derivative at the start": (lambda x: dn.sqrt(x) - 0.0 * x - 1.0, 0.0, 3),
    "at infinity": (lambda x: dn.exp(-x), dn.f64(0.0), 1),
}


@pytest.mark.parametrize("method", ["newton", "krylov"])
@pytest.mark.parametrize("name", NO_ROOTS)
def test_what_is_no_root_is_never_0(name: str, method: Any) -> None:
    fun, start, status = NO_ROOTS[name]
    result = dn.optimize.root(fun, start, method=method, maxiter=60)
    assert int(result.status) == status
    with pytest.raises(dn.ConvergenceError, match="root: "):
        result.check()
    captured = dn.grad(
        lambda a: dn.sum(dn.optimize.root(lambda x: a * fun(x), start, maxiter=60).x)
    )
    assert np.isnan(float(captured(1.0)))


def test_options_end_the_iterations() -> None:
    def fun(x: Any) -> Any:
        return x * x - 2.0

    assert int(dn.optimize.root(fun, 1.0, maxiter=2).status) == 1
    assert int(dn.optimize.root(fun, 1.0, maxiter=2).iterations) == 2
    loose = dn.optimize.root(fun, dn.f64(1.0), atol=0.1)
    assert (int(loose.status), int(loose.iterations)) == (0, 2)
    assert abs(float(loose.fun)) <= 0.1
    counts = [
        int(dn.optimize.root(fun, dn.f64(1.0), rtol=t).iterations) for t in (0.1, 1e-3, 1e-12)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_containers_of_any_shapes_and_dtypes() -> None:
    def fun(x: Any, shift: Any) -> Any:
        return {
            "a": x["a"] ** 2 - shift["by"],
            "b": [dn.as_type(x["a"][0, 0], "f64") * 2.0 + x["b"][0], x["b"][1] - 1.0],
        }

    start = {"b": [dn.f64(0.5), dn.f64(0.0)], "a": dn.tensor([[1.0], [2.0]])}

    def solve(x: Any, shift: Any) -> Any:
        return dn.optimize.root(fun, x, shift)

    for call in (solve, dn.jit(solve)):
        result = call(start, {"by": dn.tensor([[4.0], [9.0]])})
        x = result.check().x
        assert [str(x["a"].dtype), str(x["b"][0].dtype)] == ["f32", "f64"]
        np.testing.assert_allclose(x["a"].to_numpy(), [[2.0], [3.0]], rtol=1e-5)
        np.testing.assert_allclose([float(b) for b in x["b"]], [-4.0, 1.0], rtol=1e-5)


def test_complex_unknowns() -> None:
    result = dn.optimize.root(lambda z: z**3 - 1.0, dn.tensor(-0.5 + 0.5j, dtype="c128")).check()
    assert abs(complex(result.x) - np.exp(2j * np.pi / 3)) < 1e-12

    # It is not holomorphic.
    def fun(z: Any) -> Any:
        return dn.conjugate(z) * z - 2.0 + 1j * (dn.real(z) - 1.0)

    result = dn.optimize.root(fun, dn.tensor(0.5 + 0.5j, dtype="c128")).check()
    assert abs(complex(result.x) - (1 + 1j)) < 1e-12


def test_small_floats_integers_and_no_elements() -> None:
    for dtype in ("bf16", "f16"):
        result = dn.optimize.root(lambda x: x * x - 2.0, dn.tensor(1.0, dtype=dtype)).check()
        assert str(result.x.dtype) == dtype
        assert abs(float(result.x) - 2**0.5) < 0.01
    assert str(dn.optimize.root(lambda x: x * x - 2.0, dn.tensor([1, 2])).check().x.dtype) == "f32"
    empty = dn.optimize.root(lambda x: x, np.zeros((0, 2))).check()
    assert (empty.x.shape, int(empty.iterations)) == ((0, 2), 0)


def difference(fun: Callable[[Any], Any], at: float, step: float = 1e-5) -> float:
    return float(fun(dn.f64(at + step)) - fun(dn.f64(at - step))) / (2 * step)


@pytest.mark.parametrize("method", ["newton", "krylov"])
def test_derivatives_of_roots(method: Any) -> None:
    def fun(x: Any, a: Any) -> Any:
        return stacked(x[0] ** 3 + a * x[1] - 3.0, x[1] - dn.cos(a * x[0]))

    def solution(a: Any) -> Any:
        return dn.sum(dn.optimize.root(fun, np.array([1.0, 0.5]), a, method=method).x ** 2)

    first = dn.grad(solution)
    at = dn.f64(0.7)
    want = difference(solution, 0.7)
    np.testing.assert_allclose(float(first(at)), want, rtol=1e-7)
    np.testing.assert_allclose(
        float(dn.jvp(solution, (at,), (dn.f64(2.0),))[1]), 2 * want, rtol=1e-7
    )
    np.testing.assert_allclose(float(dn.grad(first)(at)), difference(first, 0.7), rtol=1e-7)
    np.testing.assert_allclose(float(dn.hessian(solution)(at)), difference(first, 0.7), rtol=1e-7)
    np.testing.assert_allclose(float(dn.jit(first)(at)), want, rtol=1e-7)
    of_start = dn.grad(lambda s: dn.sum(dn.optimize.root(fun, s, 0.7, method=method).x))
    np.testing.assert_array_equal(of_start(np.array([1.0, 0.5])).to_numpy(), 0.0)
    residual = dn.grad(lambda a: dn.sum(dn.optimize.root(fun, np.ones(2), a, method=method).fun))
    np.testing.assert_allclose(float(residual(at)), 0.0, atol=1e-10)


def test_derivatives_of_captures_in_containers() -> None:
    theta = {"a": dn.f64(2.0), "b": [dn.f64(3.0)]}

    def root(t: Any) -> Any:
        start = {"x": dn.f64(1.0)}
        return dn.optimize.root(lambda x: {"x": t["a"] * x["x"] ** 2 - t["b"][0]}, start)

    gradient = dn.grad(lambda t: root(t).x["x"])(theta)
    x = 1.5**0.5
    np.testing.assert_allclose(float(gradient["a"]), -x / 4, rtol=1e-10)
    np.testing.assert_allclose(float(gradient["b"][0]), 1 / (4 * x), rtol=1e-10)


@pytest.mark.parametrize("method", ["newton", "krylov"])
def test_each_position_iterates_by_itself(method: Any) -> None:
    values = np.array([1.0, 4.0, 9.0, 1e6, -1.0, np.nan])

    def solve(a: Any) -> Any:
        return dn.optimize.root(lambda x: x * x - a, dn.f64(1.0), method=method)

    together = dn.vmap(solve)(values)
    alone = [solve(dn.f64(value)) for value in values]
    for field in ("x", "status", "iterations", "evaluations"):
        got = getattr(together, field).to_numpy()
        np.testing.assert_array_equal(got, [float(getattr(one, field)) for one in alone])
    assert together.status.to_list()[:4] == [0, 0, 0, 0]
    assert together.status.to_list()[4] in (1, 2)
    assert together.status.to_list()[5] == 3
    slopes = dn.vmap(dn.grad(lambda a: solve(a).x))(values).to_numpy()
    np.testing.assert_allclose(slopes[:4], 0.5 / np.sqrt(values[:4]), rtol=1e-10)
    assert np.isnan(slopes[4:]).all()
    with pytest.raises(dn.ConvergenceError, match="at position 4 of 6"):
        together.check()
    starts = dn.vmap(lambda x0: dn.optimize.root(lambda x: x * x - 4.0, x0, method=method).x)
    np.testing.assert_allclose(starts(np.array([1.0, -3.0])).to_numpy(), [2.0, -2.0])


def test_definitions_give_what_eager_calls_give() -> None:
    def fun(x: Any, a: Any) -> Any:
        return stacked(x[0] * x[1] - a, x[0] - x[1] ** 2)

    methods: list[Any] = ["newton", "krylov"]
    for method in methods:

        def solve(x: Any, a: Any, method: Any = method) -> Any:
            return dn.optimize.root(fun, x, a, method=method)

        eager = solve(np.array([2.0, 1.0]), dn.f64(8.0))
        compiled = dn.jit(solve)(np.array([2.0, 1.0]), dn.f64(8.0))
        assert compiled.function == "root"
        assert int(eager.status) == int(compiled.status) == 0
        np.testing.assert_allclose(eager.x.to_numpy(), compiled.x.to_numpy(), rtol=1e-12)
        np.testing.assert_allclose(eager.x.to_numpy(), [4.0, 2.0], rtol=1e-12)


def test_many_unknowns() -> None:
    n = 3000
    result = dn.optimize.root(broyden_tridiagonal, np.full(n, -1.0), method="krylov").check()
    assert abs(broyden_tridiagonal(result.x).to_numpy()).max() < 1e-10
    assert int(result.iterations) < 12


def test_a_result_is_a_container() -> None:
    result = dn.optimize.root(lambda x: x - 1.0, 0.0)
    doubled = dn.jit(lambda r: dn.tree.map(lambda x: x * 2, r))(result)
    assert isinstance(doubled, dn.optimize.Result)
    assert (float(doubled.x), doubled.function) == (2.0, "root")
