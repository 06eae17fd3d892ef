"""``dn.optimize.minimize`` beside SciPy and finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.optimize

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ["float32", "float64"]
METHODS: list[Any] = ["bfgs", "lbfgs", "newton"]


def rosenbrock(x: Any) -> Any:
    return dn.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def beale(x: Any) -> Any:
    a, b = x[0], x[1]
    return (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2


def powell_singular(x: Any) -> Any:
    a, b, c, d = (x[i] for i in range(4))
    return (a + 10.0 * b) ** 2 + 5.0 * (c - d) ** 2 + (b - 2.0 * c) ** 4 + 10.0 * (a - d) ** 4


def freudenstein_roth(x: Any) -> Any:
    a = -13.0 + x[0] + ((5.0 - x[1]) * x[1] - 2.0) * x[1]
    b = -29.0 + x[0] + ((x[1] + 1.0) * x[1] - 14.0) * x[1]
    return a**2 + b**2


def brown_badly_scaled(x: Any) -> Any:
    return (x[0] - 1e6) ** 2 + (x[1] - 2e-6) ** 2 + (x[0] * x[1] - 2.0) ** 2


def quartic(x: Any) -> Any:
    return dn.sum(x**4 / 4.0 + x**2 - x * (dn.iota(x.shape, dtype="f32") + 1.0))


# Functions, starts, and the minima where they are known exactly.
MINIMA: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "rosenbrock 2": (rosenbrock, [-1.2, 1.0]),
    "rosenbrock 10": (rosenbrock, [0.0] * 10),
    "himmelblau": (himmelblau, [1.0, 1.0]),
    "beale": (beale, [1.0, 1.0]),
    "freudenstein_roth": (freudenstein_roth, [0.5, -2.0]),
    "quartic": (quartic, [0.0] * 6),
}


def on_host(fun: Callable[[Any], Any]) -> Callable[[np.ndarray], Any]:
    compiled = dn.jit(dn.value_and_grad(fun))

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = compiled(np.asarray(x, np.float64))
        return float(value), gradient.to_numpy()

    return both


def best(fun: Callable[[Any], Any], start: list[float]) -> Any:
    """SciPy's minimum, as near as L-BFGS-B and then BFGS come to it."""
    both = on_host(fun)
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10000}
    found = scipy.optimize.minimize(both, start, jac=True, method="L-BFGS-B", options=options)
    options = {"gtol": 1e-9}
    return scipy.optimize.minimize(both, found.x, jac=True, method="BFGS", options=options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MINIMA)
def test_minima_are_those_of_scipy(name: str, method: Any, dtype: str) -> None:
    fun, start = MINIMA[name]
    want = best(fun, start)
    result = dn.optimize.minimize(fun, np.array(start, dtype), method=method).check()
    assert result.x.to_numpy().dtype == dtype
    tolerance = 5e-3 if dtype == "float32" else 1e-6
    np.testing.assert_allclose(float(result.fun), want.fun, rtol=tolerance, atol=tolerance**2)
    np.testing.assert_allclose(result.x.to_numpy(), want.x, rtol=tolerance, atol=tolerance)
    gradient = abs(dn.grad(fun)(result.x).to_numpy()).max()
    np.testing.assert_allclose(
        float(result.gradient_norm), gradient, rtol=0.5, atol=1e-3 * tolerance
    )
    assert int(result.evaluations) > int(result.iterations) > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_hundred_unknowns(method: Any) -> None:
    start = np.array([-1.2, 1.0] * 50)
    result = dn.optimize.minimize(rosenbrock, start, method=method).check()
    # The function has a second minimum near the start (Kok and Sandrock, 2009).
    assert float(result.fun) < 1e-10 or abs(float(result.fun) - 3.98662) < 1e-3
    other = {"bfgs": "BFGS", "lbfgs": "L-BFGS-B", "newton": "BFGS"}[method]
    theirs = scipy.optimize.minimize(on_host(rosenbrock), start, jac=True, method=other)
    assert int(result.evaluations) < 2 * theirs.nfev + 50


@pytest.mark.parametrize("method", METHODS)
def test_evaluations_are_about_as_many_as_scipys(method: Any) -> None:
    other = {"bfgs": "BFGS", "lbfgs": "L-BFGS-B", "newton": "BFGS"}[method]
    ours = theirs = 0
    for fun, start in MINIMA.values():
        ours += int(
            dn.optimize.minimize(fun, np.array(start), method=method, gtol=1e-5).evaluations
        )
        options = {"gtol": 1e-5} if other == "BFGS" else {"gtol": 1e-5, "ftol": 0.0}
        found = scipy.optimize.minimize(
            on_host(fun), start, jac=True, method=other, options=options
        )
        theirs += found.nfev
    assert ours < 1.5 * theirs


@pytest.mark.parametrize("method", METHODS)
def test_singular_and_badly_scaled_minima(method: Any) -> None:
    result = dn.optimize.minimize(powell_singular, np.array([3.0, -1.0, 0.0, 1.0]), method=method)
    assert float(result.check().fun) < 1e-9
    result = dn.optimize.minimize(brown_badly_scaled, np.array([1.0, 1.0]), method=method)
    np.testing.assert_allclose(result.check().x.to_numpy(), [1e6, 2e-6], rtol=1e-6)


NO_MINIMA: dict[str, tuple[Callable[[Any], Any], Any, tuple[int, ...]]] = {
    "a line": (lambda x: -x, 1.0, (1, 2, 3)),
    "unbounded": (lambda x: -x * x + x, 1.0, (1, 2, 3)),
    "unbounded, fast": (lambda x: -dn.exp(x), 1.0, (2, 3)),
    "NaN at the start": (dn.log, -1.0, (3,)),
    "infinite at the start": (lambda x: 1.0 / x, 0.0, (3,)),
    "infinite derivative at the start": (dn.sqrt, 0.0, (3,)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NO_MINIMA)
def test_what_is_no_minimum_is_never_0(name: str, method: Any) -> None:
    fun, start, statuses = NO_MINIMA[name]
    result = dn.optimize.minimize(fun, dn.f64(start), method=method, maxiter=60)
    assert int(result.status) in statuses
    with pytest.raises(dn.ConvergenceError, match="minimize: "):
        result.check()

    def found(a: Any) -> Any:
        return dn.optimize.minimize(
            lambda x: a * fun(x), dn.f64(start), method=method, maxiter=60
        ).x

    assert np.isnan(float(dn.grad(found)(1.0)))


def test_rounding_does_not_keep_it_from_the_end() -> None:
    # The value has fewer digits than the gradient.
    fun = lambda x: 1e4 + dn.sum((x - 1.5) ** 2)  # noqa: E731
    for method in METHODS:
        result = dn.optimize.minimize(fun, np.zeros(3, np.float32), method=method).check()
        np.testing.assert_allclose(result.x.to_numpy(), 1.5, rtol=1e-3)
    # Neither has enough for the tolerance.
    noisy = lambda x: 1e6 * (dn.cos(x[0] - 0.3) * -1.0 + dn.sum((x[1:] - 0.7) ** 2))  # noqa: E731
    for method in METHODS:
        result = dn.optimize.minimize(noisy, np.zeros(3, np.float32), method=method).check()
        np.testing.assert_allclose(result.x.to_numpy(), [0.3, 0.7, 0.7], atol=2e-3)


@pytest.mark.parametrize("method", METHODS)
def test_errors_of_the_number_do_not_keep_it_from_the_end(method: Any) -> None:
    """As those of a solver, which the gradient does not see."""

    def fun(x: Any) -> Any:
        error = dn.stop_grad(dn.sum(dn.sin(1e7 * x)))
        return 1.0 + dn.sum(dn.cosh(x - 1.5)) + 1e-10 * error

    result = dn.optimize.minimize(fun, np.zeros(3), method=method).check()
    np.testing.assert_allclose(result.x.to_numpy(), 1.5, atol=1e-3)


def test_newtons_method_leaves_saddles() -> None:
    fun = lambda x: x[0] ** 4 - 2.0 * x[0] ** 2 + x[1] ** 2  # noqa: E731
    result = dn.optimize.minimize(fun, np.array([0.01, 1.0]), method="newton").check()
    np.testing.assert_allclose(result.x.to_numpy(), [1.0, 0.0], atol=1e-8)


def test_options_end_the_iterations() -> None:
    start = np.array([-1.2, 1.0])
    for method in METHODS:
        result = dn.optimize.minimize(rosenbrock, start, method=method, maxiter=3)
        assert (int(result.status), int(result.iterations)) == (1, 3)
        loose = dn.optimize.minimize(rosenbrock, start, method=method, gtol=1.0).check()
        tight = dn.optimize.minimize(rosenbrock, start, method=method, gtol=1e-9).check()
        assert float(loose.gradient_norm) <= 1.0
        assert float(tight.gradient_norm) <= 1e-9
        assert int(loose.iterations) < int(tight.iterations)
    counts = [
        int(dn.optimize.minimize(rosenbrock, start, method="lbfgs", history=h).check().iterations)
        for h in (1, 10)
    ]
    assert counts[0] > counts[1]


def test_containers_complex_numbers_and_small_floats() -> None:
    def fun(x: Any, shift: Any) -> Any:
        return dn.sum((x["a"] - shift) ** 2) + dn.sum((x["b"][0] + 1.0) ** 2)

    start = {"a": dn.tensor([[0.0], [0.0]]), "b": [dn.f64(3.0)]}
    for method in METHODS:
        x = dn.optimize.minimize(fun, start, 2.0, method=method).check().x
        np.testing.assert_allclose(x["a"].to_numpy(), 2.0, rtol=1e-3)
        np.testing.assert_allclose(float(x["b"][0]), -1.0, rtol=1e-3)
        z = dn.optimize.minimize(
            lambda z: dn.abs(z - (1.0 + 2.0j)) ** 2 + dn.real(z) ** 2,
            dn.tensor(0.0j, dtype="c128"),
            method=method,
        )
        assert abs(complex(z.check().x) - (0.5 + 2.0j)) < 1e-6
        half = dn.optimize.minimize(
            lambda x: (x - 2.0) ** 2, dn.tensor(0.0, dtype="bf16"), method=method
        )
        assert (str(half.check().x.dtype), float(half.x)) == ("bf16", 2.0)


def difference(fun: Callable[[Any], Any], at: float, step: float = 1e-4) -> float:
    return float(fun(dn.f64(at + step)) - fun(dn.f64(at - step))) / (2 * step)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_of_minima(method: Any) -> None:
    def fun(x: Any, a: Any) -> Any:
        return dn.sum(dn.cosh(x - a)) + a * x[0] * x[1] + x[0] ** 4

    def solution(a: Any) -> Any:
        found = dn.optimize.minimize(fun, np.array([1.0, 0.5]), a, method=method, gtol=1e-11)
        return dn.sum(found.check().x ** 2) if not isinstance(a, dn.Tensor) else dn.sum(found.x**2)

    first = dn.grad(solution)
    at = dn.f64(0.7)
    want = difference(solution, 0.7)
    np.testing.assert_allclose(float(first(at)), want, rtol=1e-6)
    np.testing.assert_allclose(
        float(dn.jvp(solution, (at,), (dn.f64(2.0),))[1]), 2 * want, rtol=1e-6
    )
    np.testing.assert_allclose(float(dn.grad(first)(at)), difference(first, 0.7), rtol=1e-5)
    np.testing.assert_allclose(float(dn.jit(first)(at)), want, rtol=1e-6)
    # At a minimum the derivative of the value is the partial one.
    value = dn.grad(
        lambda a: dn.optimize.minimize(fun, np.ones(2), a, method=method, gtol=1e-11).fun
    )
    x = dn.optimize.minimize(fun, np.ones(2), at, method=method, gtol=1e-11).x
    np.testing.assert_allclose(float(value(at)), float(dn.grad(lambda a: fun(x, a))(at)), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_each_position_iterates_by_itself(method: Any) -> None:
    values = np.array([1.0, 100.0, 0.01, np.nan])

    def solve(a: Any) -> Any:
        fun = lambda x: a * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2  # noqa: E731
        return dn.optimize.minimize(fun, np.array([-1.2, 1.0]), method=method)

    together = dn.vmap(solve)(values)
    alone = [solve(dn.f64(value)) for value in values]
    assert together.status.to_list() == [0, 0, 0, 3]
    for field in ("status", "iterations", "evaluations"):
        got = getattr(together, field).to_list()
        assert got == [int(getattr(one, field)) for one in alone]
    np.testing.assert_allclose(together.x[:3].to_numpy(), 1.0, rtol=1e-4)


def test_definitions_give_what_eager_calls_give() -> None:
    for method in METHODS:

        def solve(x: Any, a: Any, method: Any = method) -> Any:
            return dn.optimize.minimize(lambda x, a: rosenbrock(x) * a, x, a, method=method)

        eager = solve(np.array([-1.2, 1.0]), dn.f64(2.0))
        compiled = dn.jit(solve)(np.array([-1.2, 1.0]), dn.f64(2.0))
        assert int(eager.status) == int(compiled.status) == 0
        np.testing.assert_allclose(eager.x.to_numpy(), compiled.x.to_numpy(), rtol=1e-7)
