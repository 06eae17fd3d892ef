"""Events that end a solution, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import defn as dn

METHODS = ["tsit5", "dopri5"]


def thrown(t: Any, y: Any, drag: Any = 0.1) -> Any:
    """A stone with the state ``(x, z, vx, vz)``."""
    speed = dn.sqrt(y[2] ** 2 + y[3] ** 2)
    return dn.stack([y[2], y[3], -drag * speed * y[2], -9.81 - drag * speed * y[3]])


def height(t: Any, y: Any, *_: Any) -> Any:
    return y[1]


def fall(t: Any, y: Any) -> Any:
    return dn.stack([y[1], -9.81])


START = np.array([0.0, 1.0, 3.0, 4.0])
TS = np.linspace(0.0, 5.0, 26)


def scipys(event: Any, start: Any = START, ts: Any = TS, drag: float = 0.1) -> Any:
    def slopes(t: float, y: np.ndarray) -> np.ndarray:
        return np.asarray(thrown(dn.f64(t), dn.tensor(y), drag))

    event.terminal = True
    options: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-11, "t_eval": ts}
    return solve_ivp(slopes, (ts[0], ts[-1]), start, "DOP853", events=event, **options)


@pytest.mark.parametrize("method", METHODS)
def test_events_are_scipys(method: Any) -> None:
    theirs = scipys(lambda t, y: y[1])

    def solve(start: Any) -> Any:
        return dn.odeint(thrown, start, TS, event=height, method=method, rtol=1e-9)

    for solution in (solve(START), dn.jit(solve)(START)):
        assert int(solution.status) == 4
        assert float(solution.t_event) == pytest.approx(theirs.t_events[0][0], rel=1e-7)
        assert float(solution.t_reached) == float(solution.t_event)
        np.testing.assert_allclose(np.asarray(solution.y_event), theirs.y_events[0][0], atol=1e-6)
        assert abs(np.asarray(solution.y_event)[1]) < 1e-13
        ys, count = np.asarray(solution.ys), len(theirs.t)
        np.testing.assert_allclose(ys[:count], theirs.y.T, atol=1e-6)
        assert np.isnan(ys[count:]).all()
        assert solution.check() is solution


def test_steps_are_those_of_a_problem_without_an_event() -> None:
    """Until the last one: the event is found within a step."""
    plain = dn.odeint(thrown, START, TS)
    watched = dn.odeint(thrown, START, TS, event=lambda t, y: y[1] + 1e9)
    assert int(watched.status) == 0
    assert int(watched.steps) == int(plain.steps)
    np.testing.assert_array_equal(np.asarray(watched.ys), np.asarray(plain.ys))
    assert np.isnan(float(watched.t_event))
    assert np.isnan(np.asarray(watched.y_event)).all()
    assert float(watched.t_reached) == 5.0
    assert (plain.t_event, plain.y_event) == (None, None)


def test_the_first_of_several_numbers() -> None:
    """A container of numbers, and both changes in one step."""

    def events(t: Any, y: Any) -> Any:
        return {"top": y[3], "places": dn.stack([y[0] - 1.0, y[0] - 0.999]), "floor": y[1] + 100}

    solution = dn.odeint(thrown, START, TS, event=events, rtol=1e-4)
    want = min(
        scipys(event).t_events[0][0] for event in (lambda t, y: y[3], lambda t, y: y[0] - 0.999)
    )
    assert float(solution.t_event) == pytest.approx(want, rel=1e-3)


def test_a_number_that_begins_at_zero() -> None:
    """The event is the return, not the start."""
    start = np.array([0.0, 0.0, 3.0, 4.0])
    solution = dn.odeint(thrown, start, TS, 0.0, event=height, rtol=1e-9)
    assert float(solution.t_event) == pytest.approx(8 / 9.81, rel=1e-9)


def test_events_of_descending_times_and_of_the_time() -> None:
    ts = np.array([2.0, 1.0, 0.0, -1.0])
    decay = {"rtol": 1e-9, "event": lambda t, y: y - np.exp(0.5)}
    solution = dn.odeint(lambda t, y: -y, np.exp(-2.0), ts, **decay)
    assert float(solution.t_event) == pytest.approx(-0.5, rel=1e-6)
    assert np.isnan(np.asarray(solution.ys)).tolist() == [False, False, False, True]
    solution = dn.odeint(lambda t, y: -y, 1.0, ts, event=lambda t, y: t - 0.25)
    assert float(solution.t_event) == pytest.approx(0.25, abs=1e-12)


def test_dtypes_and_containers() -> None:
    def f(t: Any, y: Any) -> Any:
        return {"x": y["v"], "v": -9.81}

    start = {"x": np.float32(1.0), "v": np.float32(0.0)}
    solution = dn.odeint(f, start, [0.0, 1.0], event=lambda t, y: y["x"])
    assert solution.y_event["x"].dtype == "f32"
    assert float(solution.t_event) == pytest.approx(np.sqrt(2 / 9.81), rel=1e-5)
    solution = dn.odeint(
        lambda t, y: 1j * y, np.complex128(1), [0.0, 9.0], event=lambda t, y: dn.real(y)
    )
    assert float(solution.t_event) == pytest.approx(np.pi / 2, rel=1e-4)


def landed(params: Any) -> Any:
    """Where and when a stone lands."""
    start = dn.stack([dn.f64(0.0), params["height"], params["speed"], 4.0])
    solution = dn.odeint(thrown, start, TS, params["drag"], event=height, rtol=1e-10)
    return solution.y_event[0] + 0.3 * solution.t_event + 0.1 * solution.ys[2, 0]


PARAMS = {"height": np.float64(1.0), "speed": np.float64(3.0), "drag": np.float64(0.1)}


def test_derivatives() -> None:
    slopes = dn.grad(landed)(PARAMS)
    for name in PARAMS:
        ends = [float(landed({**PARAMS, name: PARAMS[name] + sign * 1e-5})) for sign in (1, -1)]
        want = (ends[0] - ends[1]) / 2e-5
        assert float(slopes[name]) == pytest.approx(want, rel=1e-6)
        step = {other: np.float64(other == name) for other in PARAMS}
        assert float(dn.jvp(landed, (PARAMS,), (step,))[1]) == pytest.approx(want, rel=1e-6)

    def time(height: Any) -> Any:
        return dn.odeint(fall, dn.stack([height, 0.0]), TS, event=lambda t, y: y[0]).t_event

    # The square root of 2 h / g, and its second derivative.
    twice = dn.grad(dn.grad(time))(np.float64(2.0))
    assert float(twice) == pytest.approx(-0.25 * np.sqrt(2 / 9.81) * 2**-1.5, rel=1e-6)


def test_derivatives_where_there_is_no_event() -> None:
    def last(rate: Any) -> Any:
        ts = np.array([0.0, 1.0])
        return dn.odeint(lambda t, y: -rate * y, 1.0, ts, event=lambda t, y: y + 1.0, rtol=1e-9).ys[
            -1
        ]

    assert float(dn.grad(last)(np.float64(0.5))) == pytest.approx(-np.exp(-0.5), rel=1e-6)


def test_each_position_has_its_own_event() -> None:
    heights = np.array([0.5, 2.0, 500.0])

    def time(height: Any) -> Any:
        return dn.odeint(fall, dn.stack([height, 0.0]), TS, event=lambda t, y: y[0])

    found = dn.vmap(time)(heights)
    assert np.asarray(found.status).tolist() == [4, 4, 0]
    np.testing.assert_allclose(np.asarray(found.t_event)[:2], np.sqrt(2 * heights[:2] / 9.81))
    assert np.isnan(np.asarray(found.t_event)[2])
    slopes = dn.vmap(dn.grad(lambda height: time(height).t_event))(heights[:2])
    np.testing.assert_allclose(np.asarray(slopes), 1 / np.sqrt(2 * 9.81 * heights[:2]), rtol=1e-6)


def test_each_position_has_its_own_level() -> None:
    """The function of the event captures vectorized values, and the state has none."""
    levels = np.array([0.9, 0.5, 0.2])

    def time(level: Any) -> Any:
        ts = np.array([0.0, 1.0])
        return dn.odeint(
            lambda t, y: -y, np.float64(1.0), ts, event=lambda t, y: y - level, rtol=1e-9
        )

    found = dn.vmap(time)(levels)
    assert np.asarray(found.status).tolist() == [4, 4, 0]
    np.testing.assert_allclose(np.asarray(found.t_event)[:2], -np.log(levels[:2]), rtol=1e-6)
    slopes = dn.grad(lambda levels: dn.sum(dn.vmap(time)(levels).t_event))(levels[:2])
    np.testing.assert_allclose(np.asarray(slopes), -1 / levels[:2], rtol=1e-6)


@pytest.mark.parametrize(
    ("event", "options", "text"),
    [
        (3, {}, "event is 3"),
        (lambda t, y: 1j * y, {}, "function to real numbers"),
        (lambda t, y: (), {}, "function to real numbers"),
        (height, {"gradient": "adjoint"}, '"direct" with an event'),
    ],
)
def test_what_is_refused(event: Any, options: Any, text: str) -> None:
    with pytest.raises(dn.OptionError, match=text):
        dn.odeint(lambda t, y: -y, START, TS, event=event, **options)
