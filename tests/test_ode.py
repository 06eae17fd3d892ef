"""Initial value problems beside SciPy's solutions and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import defn as dn

METHODS = ["tsit5", "dopri5"]
SPAN = np.array([0.0, 1.0])


def decay(t: Any, y: Any) -> Any:
    return -y


def lotka_volterra(t: Any, y: Any) -> Any:
    x, z = y[0], y[1]
    return dn.stack([1.5 * x - x * z, x * z - 3.0 * z])


def lorenz(t: Any, y: Any) -> Any:
    x, u, z = y[0], y[1], y[2]
    return dn.stack([10.0 * (u - x), x * (28.0 - z) - u, x * u - 8.0 / 3.0 * z])


def van_der_pol(t: Any, y: Any) -> Any:
    return dn.stack([y[1], 5.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])


def driven(t: Any, y: Any) -> Any:
    return dn.stack([y[1], dn.cos(3.0 * t) - y[0] - 0.1 * y[1]])


PROBLEMS: dict[str, tuple[Any, list[float], float]] = {
    "decay": (decay, [1.0, -2.0], 4.0),
    "Lotka-Volterra": (lotka_volterra, [10.0, 5.0], 8.0),
    "Lorenz": (lorenz, [1.0, 1.0, 1.0], 3.0),
    "van der Pol": (van_der_pol, [2.0, 0.0], 12.0),
    "driven": (driven, [1.0, 0.0], 10.0),
}


def exact(f: Any, y0: Any, ts: Any) -> np.ndarray:
    """SciPy's solution by a method of order 8, whose right-hand side is computed here."""

    def slopes(t: float, y: np.ndarray) -> np.ndarray:
        return np.asarray(f(dn.f64(t), dn.tensor(y)))

    found = solve_ivp(slopes, (ts[0], ts[-1]), y0, "DOP853", ts, rtol=1e-12, atol=1e-12)
    return found.y.T


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_are_scipys(name: str, method: Any) -> None:
    f, y0, end = PROBLEMS[name]
    ts = np.linspace(0.0, end, 41)
    want = exact(f, y0, ts)
    for rtol in (1e-5, 1e-8):
        solution = dn.odeint(f, np.array(y0), ts, method=method, rtol=rtol, atol=rtol)
        assert int(solution.status) == 0
        assert float(solution.t_reached) == end
        off = abs(np.asarray(solution.ys) - want).max()
        # Errors of steps add up, in Lorenz's system by a factor of e^(0.9 t).
        assert off < 500 * rtol * max(1.0, abs(want).max())
    got = dn.jit(lambda y, t: dn.odeint(f, y, t, method=method, rtol=1e-8))(np.array(y0), ts)
    off = abs(np.asarray(got.ys) - want).max()
    assert off < 1e-5 * max(1.0, abs(want).max())


@pytest.mark.parametrize("method", METHODS)
def test_as_many_steps_as_scipy_takes(method: Any) -> None:
    """The same kind of control: the numbers of steps differ by the start and the safety factor."""
    f, y0, end = PROBLEMS["Lotka-Volterra"]

    def slopes(_: float, y: np.ndarray) -> np.ndarray:
        return np.array([1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3 * y[1]])

    theirs = solve_ivp(slopes, (0.0, end), y0, "RK45", rtol=1e-7, atol=1e-7)
    solution = dn.odeint(f, np.array(y0), np.array([0.0, end]), method=method, rtol=1e-7, atol=1e-7)
    ratio = int(solution.steps) / (len(theirs.t) - 1)
    assert 0.5 < ratio < 1.3
    assert int(solution.rejected) < int(solution.steps)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_steps_and_of_dense_output(method: Any) -> None:
    """At tolerances 1000 times apart errors are about as far apart."""
    ts = np.linspace(0.0, 6.0, 301)
    offs = []
    for rtol in (1e-4, 1e-7, 1e-10):
        ys = np.asarray(
            dn.odeint(decay, np.float64(1.0), ts, method=method, rtol=rtol, atol=0.0).ys
        )
        offs.append(abs(ys / np.exp(-ts) - 1).max())
    assert offs[0] > 30 * offs[1] > 900 * offs[2]
    assert offs[2] < 1e-8


def test_times_do_not_determine_steps() -> None:
    y0 = np.array([10.0, 5.0])
    few = dn.odeint(lotka_volterra, y0, np.array([0.0, 8.0]))
    many = dn.odeint(lotka_volterra, y0, np.linspace(0.0, 8.0, 500))
    assert int(few.steps) == int(many.steps)
    np.testing.assert_array_equal(np.asarray(few.ys)[1], np.asarray(many.ys)[-1])
    assert np.asarray(many.ys).shape == (500, 2)


def test_times_that_descend_and_that_are_equal() -> None:
    ts = np.array([2.0, 2.0, 1.5, 1.5, 0.0])
    ys = np.asarray(dn.odeint(decay, np.exp(-2.0), ts, rtol=1e-9).ys)
    np.testing.assert_allclose(ys, np.exp(-ts), rtol=1e-7)
    one = dn.odeint(decay, np.float64(3.0), np.array([5.0]))
    assert np.asarray(one.ys).tolist() == [3.0]
    assert int(one.status) == 0
    same = dn.odeint(decay, np.float64(3.0), np.array([5.0, 5.0]))
    assert np.asarray(same.ys).tolist() == [3.0, 3.0]


def test_the_function_is_not_called_beyond_the_last_time() -> None:
    """A root of what would be negative there."""
    ts = np.linspace(0.0, 1.0, 5)
    solution = dn.odeint(lambda t, y: dn.sqrt(1.0 - t) * y, 1.0, ts, rtol=1e-8).check()
    np.testing.assert_allclose(
        np.asarray(solution.ys), np.exp((1 - (1 - ts) ** 1.5) * 2 / 3), rtol=1e-5
    )


def test_dtypes() -> None:
    for dtype, near in (("f64", 1e-5), ("f32", 1e-3), ("bf16", 3e-2), ("f16", 1e-2)):
        y0 = dn.tensor([1.0, 2.0], dtype=dtype)
        solution = dn.odeint(decay, y0, SPAN)
        assert solution.ys.dtype == dtype
        got = np.asarray(solution.ys.as_type("f64"))
        np.testing.assert_allclose(got[1], np.exp(-1) * np.array([1, 2]), rtol=near)
    assert dn.odeint(decay, 1, np.array([0, 1])).ys.dtype == "f32"
    # Complex unknowns.
    ys = np.asarray(
        dn.odeint(lambda t, y: 1j * y, np.complex128(1), np.array([0, 1.0]), rtol=1e-9).ys
    )
    np.testing.assert_allclose(ys[1], np.exp(1j), rtol=1e-7)


def test_containers() -> None:
    y0 = {"place": np.array([[1.0, 0.0]]), "rest": (np.float32(2.0), np.array([1 + 1j]))}

    def f(t: Any, y: Any) -> Any:
        turned = dn.stack([y["place"][:, 1], -y["place"][:, 0]], axis=1)
        return {"place": turned, "rest": (-y["rest"][0], 1j * y["rest"][1])}

    ts = np.array([0.0, 0.5, 1.0])
    solution = dn.odeint(f, y0, ts, rtol=1e-9)
    np.testing.assert_allclose(
        np.asarray(solution.ys["place"])[:, 0], np.stack([np.cos(ts), -np.sin(ts)], 1), atol=1e-7
    )
    np.testing.assert_allclose(np.asarray(solution.ys["rest"][0]), 2 * np.exp(-ts), rtol=1e-6)
    turned = np.asarray(solution.ys["rest"][1])[:, 0]
    np.testing.assert_allclose(turned, (1 + 1j) * np.exp(1j * ts), atol=1e-7)
    assert solution.ys["rest"][0].dtype == "f32"
    names = dn.odeint(decay, dn.tensor([1.0], names=["x"]), SPAN).ys.names
    assert names == (None, "x")


def end(params: Any, ts: Any = None, **options: Any) -> Any:
    """A number that depends on initial values, times and parameters of a nonlinear problem."""
    y0, rate, last = params["y0"], params["rate"], params["last"]

    def f(t: Any, y: Any, rate: Any) -> Any:
        return dn.stack([rate * y[1], -dn.sin(y[0]) * dn.exp(-0.1 * t)])

    ts = dn.stack([dn.f64(0.0), 0.5 * last, last])
    ys = dn.odeint(f, y0, ts, rate, rtol=1e-10, atol=1e-10, **options).ys
    return dn.sum(ys[1:] ** 2)


PARAMS = {"y0": np.array([1.0, -0.5]), "rate": np.float64(1.3), "last": np.float64(2.5)}


def differences(fun: Any, step: float = 1e-5) -> dict[str, Any]:
    found = {}
    for name, value in PARAMS.items():
        slope = np.zeros(np.shape(value))
        for at in np.ndindex(np.shape(value)):
            ends = []
            for sign in (1, -1):
                moved = np.array(value)
                moved[at] += sign * step
                ends.append(float(fun({**PARAMS, name: moved})))
            slope[at] = (ends[0] - ends[1]) / (2 * step)
        found[name] = slope
    return found


@pytest.mark.parametrize(
    "options", [{}, {"method": "dopri5"}, {"snapshots": 4}], ids=["tsit5", "dopri5", "snapshots"]
)
def test_gradients_are_those_of_differences(options: Any) -> None:
    want = differences(lambda params: end(params, **options))
    got = dn.grad(lambda params: end(params, **options))(PARAMS)
    for name, slope in want.items():
        np.testing.assert_allclose(np.asarray(got[name]), slope, rtol=2e-6, atol=1e-8)
    compiled = dn.jit(dn.grad(lambda params: end(params, **options)))(PARAMS)
    for name, slope in got.items():
        np.testing.assert_allclose(np.asarray(compiled[name]), np.asarray(slope), rtol=1e-9)


def test_both_modes_and_second_derivatives() -> None:
    step = {"y0": np.array([0.3, -0.2]), "rate": np.float64(0.7), "last": np.float64(0.4)}
    slopes = dn.grad(end)(PARAMS)
    along = dn.jvp(end, (PARAMS,), (step,))[1]
    inner = sum(float(np.sum(np.asarray(slopes[name]) * step[name])) for name in PARAMS)
    assert float(along) == pytest.approx(inner, rel=1e-9)
    twice = dn.jvp(lambda params: dn.grad(end)(params)["rate"], (PARAMS,), (step,))[1]
    moved = [
        float(
            dn.grad(end)({name: PARAMS[name] + sign * 1e-5 * step[name] for name in PARAMS})["rate"]
        )
        for sign in (1, -1)
    ]
    assert float(twice) == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-4)


def emptied(rate: Any, **options: Any) -> Any:
    """A tank that runs out at the time ``2 / rate``: trial steps beyond it have negative roots."""
    ts = np.array([0.0, 1.0])
    root = dn.odeint(
        lambda t, y: -rate * dn.sqrt(y), np.float64(1.0), ts, first_step=3.0, **options
    )
    return root.ys[-1]


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_do_not_see_rejected_steps(method: Any) -> None:
    """``y = (1 - rate t / 2)^2``; stages of the first try are outside the domain of the root."""
    rates = np.array([1.2, 1.7, 1.9])
    want = rates / 2 - 1
    options = {"method": method, "rtol": 1e-9}
    alone = dn.odeint(
        lambda t, y: -1.9 * dn.sqrt(y), np.float64(1.0), SPAN, first_step=3.0, method=method
    )
    assert int(alone.rejected) > 0

    def reached(rate: Any) -> Any:
        return emptied(rate, **options)

    for rate, slope in zip(rates, want, strict=True):
        assert float(dn.grad(reached)(rate)) == pytest.approx(slope, rel=1e-5)
        assert float(dn.jvp(reached, (rate,), (1.0,))[1]) == pytest.approx(slope, rel=1e-5)
    np.testing.assert_allclose(np.asarray(dn.vmap(dn.grad(reached))(rates)), want, rtol=1e-5)
    mapped = dn.grad(lambda rates: dn.sum(dn.vmap(reached)(rates)))(rates)
    np.testing.assert_allclose(np.asarray(mapped), want, rtol=1e-5)
    assert float(dn.grad(dn.grad(reached))(rates[1])) == pytest.approx(0.5, rel=1e-3)


def test_each_position_has_its_own_steps() -> None:
    rates = np.array([0.1, 1.0, 30.0])
    ts = np.array([0.0, 0.7, 1.0])

    def alone(rate: Any) -> Any:
        return dn.odeint(lambda t, y: -rate * y, np.float64(1.0), ts, rtol=1e-8)

    mapped = dn.vmap(alone)(rates)
    np.testing.assert_allclose(np.asarray(mapped.ys), np.exp(-np.outer(rates, ts)), atol=1e-7)
    steps = [int(alone(rate).steps) for rate in rates]
    assert np.asarray(mapped.steps).tolist() == steps
    assert steps[0] < steps[2]


def test_a_solution_that_grows_without_bound() -> None:
    ts = np.linspace(0.0, 2.0, 5)
    solution = dn.odeint(lambda t, y: y * y, np.float64(1.0), ts)
    assert int(solution.status) == 2
    assert float(solution.t_reached) == pytest.approx(1.0, abs=1e-4)
    ys = np.asarray(solution.ys)
    np.testing.assert_allclose(ys[:2], [1.0, 2.0], rtol=1e-4)
    assert np.isnan(ys[3:]).all()
    with pytest.raises(dn.ConvergenceError, match=r"stopped at the time (0\.99|1\.0).*too short"):
        solution.check()


def test_a_stiff_problem_says_where_it_stopped() -> None:
    solution = dn.odeint(
        lambda t, y: -1e6 * (y - dn.cos(t)), np.float64(0.0), 10 * SPAN, max_steps=200
    )
    assert int(solution.status) == 1
    assert int(solution.steps) + int(solution.rejected) == 200
    assert 0 < float(solution.t_reached) < 10
    assert np.isnan(np.asarray(solution.ys)[1])
    with pytest.raises(dn.ConvergenceError, match="max_steps steps were taken"):
        solution.check()


def test_a_relaxation_oscillation_says_where_it_stopped() -> None:
    """Van der Pol's equation with a damping of 1e4."""

    def slopes(t: Any, y: Any) -> Any:
        return dn.stack([y[1], 1e4 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    ts = np.array([0.0, 1e-4, 20000.0])
    solution = dn.odeint(slopes, np.array([2.0, 0.0]), ts, max_steps=500)
    assert int(solution.status) == 1
    reached = float(solution.t_reached)
    assert 1e-4 < reached < 1.0
    assert np.isnan(np.asarray(solution.ys)).any(1).tolist() == [False, False, True]
    with pytest.raises(dn.ConvergenceError, match=f"at the time {reached:.9g}, max_steps steps"):
        solution.check()


def test_values_that_are_not_finite() -> None:
    for f in (lambda t, y: y / 0.0, lambda t, y: dn.log(-y)):
        solution = dn.odeint(f, np.float64(1.0), np.array([0.0, 1.0]))
        assert int(solution.status) == 2
        assert np.isnan(np.asarray(solution.ys)[1])
    nan = dn.odeint(decay, np.float64(np.nan), np.array([0.0, 1.0]))
    assert int(nan.status) == 2


def test_times_that_are_not_in_order() -> None:
    for ts in ([0.0, 1.0, 0.5], [0.0, np.nan, 1.0], [1.0, 0.0, 0.5], [0.0, 1.0, 0.5, 2.0]):
        solution = dn.jit(lambda ts: dn.odeint(decay, np.float64(1.0), ts))(np.array(ts))
        assert int(solution.status) == 3
    solution = dn.odeint(decay, 1.0, [0.0, 1.0, 0.5])
    assert np.isnan(np.asarray(solution.ys)[1:]).all()
    with pytest.raises(dn.ConvergenceError, match="not in order"):
        solution.check()


Y = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: dn.odeint(decay, Y, 1.0), dn.ShapeError, "a vector of at least one real number"),
        (lambda: dn.odeint(decay, Y, SPAN[:0]), dn.ShapeError, "a vector of at least one"),
        (lambda: dn.odeint(decay, Y, np.array([1j])), dn.ShapeError, "real"),
        (lambda: dn.odeint(decay, (), SPAN), dn.Error, "odeint"),
        (lambda: dn.odeint(lambda t, y: y[0], Y, SPAN), dn.ShapeError, r"the function.*f64\[2\]"),
        (lambda: dn.odeint(lambda t, y: 1j * y, Y, SPAN), dn.DTypeError, "the function"),
        (
            lambda: dn.odeint(lambda t, y: (y, y), Y, SPAN),
            dn.ContainerError,
            "the value of f and y0",
        ),
        (lambda: dn.odeint(3, Y, SPAN), dn.OptionError, "f is 3"),
        (lambda: dn.odeint(decay, Y, SPAN, method="euler"), dn.OptionError, '"tsit5" or "dopri5"'),
        (lambda: dn.odeint(decay, Y, SPAN, rtol=-1.0), dn.OptionError, "rtol is -1"),
        (lambda: dn.odeint(decay, Y, SPAN, atol=np.nan), dn.OptionError, "atol is NaN"),
        (lambda: dn.odeint(decay, Y, SPAN, max_steps=0), dn.OptionError, "max_steps is 0"),
        (lambda: dn.odeint(decay, Y, SPAN, first_step=0.0), dn.OptionError, "first_step is 0"),
        (lambda: dn.odeint(decay, Y, SPAN, snapshots=0), dn.OptionError, "snapshots is 0"),
        (lambda: dn.odeint(decay, Y, SPAN, tol=1.0), dn.OptionError, "tol"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
