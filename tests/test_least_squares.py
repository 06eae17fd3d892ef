"""``dn.optimize.least_squares`` beside SciPy, certified values and finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.optimize

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

METHODS: list[Any] = ["lm", "gauss_newton"]

MISRA_X = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1]
MISRA_X += [689.1, 760.0]
MISRA_Y = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40]
MISRA_Y += [75.47, 81.78]
RAT_X = [9.0, 14.0, 21.0, 28.0, 42.0, 57.0, 63.0, 70.0, 79.0]
RAT_Y = [8.93, 10.80, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08]
MGH_X = [4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625]
MGH_Y = [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]


def misra(b: Any, x: Any) -> Any:
    return b[0] * (1.0 - dn.exp(-b[1] * x))


def logistic(b: Any, x: Any) -> Any:
    return b[0] / (1.0 + dn.exp(b[1] - b[2] * x))


def kowalik_osborne(b: Any, x: Any) -> Any:
    return b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3])


# Nonlinear regressions of the Statistical Reference Datasets of NIST: the model, the data, both
# starts, and the certified values.
REGRESSIONS: dict[str, tuple[Any, list[float], list[float], list[list[float]], list[float]]] = {
    "Misra1a": (
        misra,
        MISRA_X,
        MISRA_Y,
        [[500.0, 1e-4], [250.0, 5e-4]],
        [2.3894212918e02, 5.5015643181e-04],
    ),
    "Rat42": (
        logistic,
        RAT_X,
        RAT_Y,
        [[100.0, 1.0, 0.1], [75.0, 2.5, 0.07]],
        [7.2462237576e01, 2.6180768402e00, 6.7359200066e-02],
    ),
    "MGH09": (
        kowalik_osborne,
        MGH_X,
        MGH_Y,
        [[25.0, 39.0, 41.5, 39.0], [0.25, 0.39, 0.415, 0.39]],
        [1.9280693458e-01, 1.9128232873e-01, 1.2305650693e-01, 1.3606233068e-01],
    ),
}


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", REGRESSIONS)
def test_certified_values(name: str, method: Any, start: int) -> None:
    model, x, y, starts, certified = REGRESSIONS[name]
    if method == "gauss_newton" and start == 0:
        start = 1  # The first starts are far away.
    x, y = np.array(x), np.array(y)
    residuals = lambda b: model(b, x) - y  # noqa: E731
    result = dn.optimize.least_squares(residuals, np.array(starts[start]), method=method).check()
    np.testing.assert_allclose(result.x.to_numpy(), certified, rtol=1e-7)
    host = lambda b: dn.jit(residuals)(b).to_numpy()  # noqa: E731
    theirs = scipy.optimize.least_squares(
        host, starts[start], x_scale="jac", xtol=1e-12, ftol=1e-12
    )
    ours = float(dn.sum(result.fun**2)) / 2
    assert ours <= theirs.cost * (1 + 1e-9)


def test_regressions_in_f32() -> None:
    model, x, y, starts, certified = REGRESSIONS["Rat42"]
    x32, y32 = np.array(x, np.float32), np.array(y, np.float32)
    for method in METHODS:
        result = dn.optimize.least_squares(
            lambda b: model(b, x32) - y32, np.array(starts[1], np.float32), method=method
        ).check()
        np.testing.assert_allclose(result.x.to_numpy(), certified, rtol=1e-3)


def rosenbrock(x: Any) -> Any:
    return dn.stack([1.0 - x[0], 10.0 * (x[1] - x[0] ** 2)])


def freudenstein_roth(x: Any) -> Any:
    return dn.stack(
        [
            -13.0 + x[0] + ((5.0 - x[1]) * x[1] - 2.0) * x[1],
            -29.0 + x[0] + ((x[1] + 1.0) * x[1] - 14.0) * x[1],
        ]
    )


def brown_badly_scaled(x: Any) -> Any:
    return dn.stack([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2.0])


def exponentials(x: Any) -> Any:
    t = (dn.iota((10,), dtype="f32") + 1.0) / 10.0
    return dn.exp(-t * x[0]) - dn.exp(-t * x[1]) - (dn.exp(-t) - dn.exp(-10.0 * t))


PROBLEMS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0], [1.0, 1.0]),
    "brown_badly_scaled": (brown_badly_scaled, [1.0, 1.0], [1e6, 2e-6]),
    "exponentials": (exponentials, [0.5, 5.0], [1.0, 10.0]),
    # A minimum whose residuals are not small.
    "freudenstein_roth": (freudenstein_roth, [0.5, -2.0], [11.4127789, -0.8968052]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_minima_are_those_of_scipy(name: str, method: Any) -> None:
    fun, start, known = PROBLEMS[name]
    if name == "freudenstein_roth" and method == "gauss_newton":
        return  # Its linearization is singular at the minimum.
    result = dn.optimize.least_squares(fun, np.array(start), method=method).check()
    host = lambda x: dn.jit(fun)(np.asarray(x, np.float64)).to_numpy()  # noqa: E731
    theirs = scipy.optimize.least_squares(host, start, x_scale="jac", method="lm")
    np.testing.assert_allclose(result.x.to_numpy(), known, rtol=1e-6)
    rounding = 1e-18 * max(1.0, float(np.sum(host(start) ** 2)))
    assert float(dn.sum(result.fun**2)) / 2 <= theirs.cost * (1 + 1e-9) + rounding


@pytest.mark.parametrize("method", METHODS)
def test_errors_of_residuals_do_not_keep_them_from_the_end(method: Any) -> None:
    """As those of a solver, which the Jacobian does not see."""
    t = np.linspace(0.0, 2.0, 9)
    y = 3.0 * np.exp(-0.8 * t) + 0.2 * np.cos(7 * t)

    def residuals(x: Any) -> Any:
        error = dn.stop_grad(dn.sin(1e7 * dn.sum(x) + t))
        return x[0] * dn.exp(-x[1] * t) - y + 1e-9 * error

    result = dn.optimize.least_squares(residuals, np.ones(2), method=method).check()
    best = scipy.optimize.least_squares(lambda x: x[0] * np.exp(-x[1] * t) - y, np.ones(2))
    np.testing.assert_allclose(result.x.to_numpy(), best.x, rtol=1e-4)


def test_fewer_residuals_than_unknowns() -> None:
    fun = lambda x: dn.reshape(dn.sum(x**2) - 4.0, (1,))  # noqa: E731
    result = dn.optimize.least_squares(fun, np.array([1.0, 2.0, 3.0])).check()
    assert abs(float(result.fun[0])) < 1e-8
    with pytest.raises(dn.OptionError, match="1 residuals and 3 unknowns"):
        dn.optimize.least_squares(fun, np.array([1.0, 2.0, 3.0]), method="gauss_newton")


def test_containers_numbers_and_complex_residuals() -> None:
    def fun(x: Any, shift: Any) -> Any:
        return {"a": x["a"] - shift, "b": (x["b"] * (1.0 + 1.0j) - 2.0, 0.0)}

    start = {"a": dn.tensor([1.0, 2.0]), "b": dn.f64(3.0)}
    for method in METHODS:
        result = dn.optimize.least_squares(fun, start, 5.0, method=method).check()
        np.testing.assert_allclose(result.x["a"].to_numpy(), 5.0, rtol=1e-5)
        np.testing.assert_allclose(float(result.x["b"]), 1.0, rtol=1e-5)
        assert set(result.fun) == {"a", "b"}
        np.testing.assert_allclose(complex(result.fun["b"][0]), -1.0 + 1.0j, atol=1e-4)


WITHOUT: dict[str, tuple[Callable[[Any], Any], Any, tuple[int, ...]]] = {
    "at infinity": (lambda x: dn.exp(-x), 0.0, (1, 2)),
    "NaN at the start": (dn.log, -1.0, (3,)),
    "infinite at the start": (lambda x: 1.0 / x, 0.0, (3,)),
    "infinite derivative at the start": (lambda x: dn.sqrt(x) - 1.0, 0.0, (3,)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WITHOUT)
def test_what_is_no_minimum_is_never_0(name: str, method: Any) -> None:
    fun, start, statuses = WITHOUT[name]
    result = dn.optimize.least_squares(fun, dn.f64(start), method=method, maxiter=40)
    assert int(result.status) in statuses
    with pytest.raises(dn.ConvergenceError, match="least_squares: "):
        result.check()

    def found(a: Any) -> Any:
        fitted = dn.optimize.least_squares(
            lambda x: a * fun(x), dn.f64(start), method=method, maxiter=40
        )
        return fitted.x

    assert np.isnan(float(dn.grad(found)(1.0)))


def difference(fun: Callable[[Any], Any], at: float, step: float = 1e-4) -> float:
    return float(fun(dn.f64(at + step)) - fun(dn.f64(at - step))) / (2 * step)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_of_fits(method: Any) -> None:
    t = np.linspace(0.0, 2.0, 9)
    y = 3.0 * np.exp(-0.8 * t) + 0.2 * np.cos(7 * t)

    def residuals(x: Any, a: Any) -> Any:
        return a * x[0] * dn.exp(-x[1] * t) - y

    def rate(a: Any) -> Any:
        return dn.sum(dn.optimize.least_squares(residuals, np.ones(2), a, method=method).x)

    # The residuals are not small: without their second derivatives it would be another number.
    first = dn.grad(rate)
    at = dn.f64(1.3)
    np.testing.assert_allclose(float(first(at)), difference(rate, 1.3), rtol=1e-6)
    forward = float(dn.jvp(rate, (at,), (dn.f64(1.0),))[1])
    np.testing.assert_allclose(forward, float(first(at)), rtol=1e-8)
    # The method stops where rounding hides the decrease, so that differences have fewer digits.
    rtol = 1e-5 if method == "lm" else 1e-4
    np.testing.assert_allclose(float(dn.grad(first)(at)), difference(first, 1.3), rtol=rtol)

    def of_data(data: Any) -> Any:
        fit = dn.optimize.least_squares(
            lambda x: x[0] * dn.exp(-x[1] * t) - data, np.ones(2), method=method
        )
        return fit.x[1]

    gradient = dn.grad(of_data)(y).to_numpy()
    for i in (0, 4):
        unit = np.eye(9)[i] * 1e-4
        want = float(of_data(y + unit) - of_data(y - unit)) / 2e-4
        np.testing.assert_allclose(gradient[i], want, rtol=rtol)


@pytest.mark.parametrize("method", METHODS)
def test_each_position_iterates_by_itself(method: Any) -> None:
    t = np.linspace(0.0, 2.0, 9)
    rates = np.array([0.5, 1.0, 2.0, np.nan])

    def solve(rate: Any) -> Any:
        data = 2.0 * dn.exp(-rate * t)
        fun = lambda x: x[0] * dn.exp(-x[1] * t) - data  # noqa: E731
        return dn.optimize.least_squares(fun, np.array([1.0, 0.7]), method=method)

    together = dn.vmap(solve)(rates)
    alone = [solve(dn.f64(rate)) for rate in rates]
    assert together.status.to_list() == [0, 0, 0, 3]
    np.testing.assert_allclose(together.x[:3, 1].to_numpy(), rates[:3], rtol=1e-8)
    np.testing.assert_allclose(
        together.iterations.to_numpy(), [int(one.iterations) for one in alone], atol=1
    )


def test_definitions_give_what_eager_calls_give() -> None:
    for method in METHODS:

        def solve(x: Any, a: Any, method: Any = method) -> Any:
            return dn.optimize.least_squares(lambda x, a: rosenbrock(x) * a, x, a, method=method)

        eager = solve(np.array([-1.2, 1.0]), dn.f64(2.0))
        compiled = dn.jit(solve)(np.array([-1.2, 1.0]), dn.f64(2.0))
        assert int(eager.status) == int(compiled.status) == 0
        np.testing.assert_allclose(eager.x.to_numpy(), compiled.x.to_numpy(), rtol=1e-9)
