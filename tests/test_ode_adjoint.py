"""Gradients of solutions by the adjoint equation, beside those of steps and of differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import defn as dn

TS = np.array([0.0, 0.7, 0.7, 1.6])
PARAMS = {
    "y0": {"place": np.array([1.0, -0.5]), "rest": np.float64(0.8)},
    "weights": np.array([[0.3, -1.1], [0.9, -0.2]]),
    "rate": np.float64(1.3),
    "ts": TS,
}


def loss(params: Any, gradient: Any = "adjoint", **options: Any) -> Any:
    """A number of all initial values, times, captured tensors and arguments of a problem."""

    def f(t: Any, y: Any, rate: Any) -> Any:
        place = dn.tanh(dn.matmul(params["weights"], y["place"])) * dn.cos(t)
        return {"place": place + 0.1 * y["rest"], "rest": -rate * y["rest"] * dn.sum(y["place"])}

    solution = dn.odeint(
        f, params["y0"], params["ts"], params["rate"], rtol=1e-10, gradient=gradient, **options
    )
    return dn.sum(solution.ys["place"] ** 2) + dn.sum(dn.sin(solution.ys["rest"])[1:])


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for name in tree for leaf in leaves(tree[name])]
    return [tree]


@pytest.mark.parametrize(
    "options", [{}, {"method": "dopri5"}, {"snapshots": 4}], ids=["tsit5", "dopri5", "snapshots"]
)
def test_gradients_are_those_of_steps(options: Any) -> None:
    want = dn.grad(lambda params: loss(params, "direct", **options))(PARAMS)
    got = dn.grad(lambda params: loss(params, **options))(PARAMS)
    for one, other in zip(leaves(got), leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-8)
    compiled = dn.jit(dn.grad(lambda params: loss(params, **options)))(PARAMS)
    for one, other in zip(leaves(compiled), leaves(got), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9)
    assert float(loss(PARAMS)) == float(loss(PARAMS, "direct"))


def test_gradients_are_those_of_differences() -> None:
    slopes = dn.grad(loss)(PARAMS)
    for name in ("weights", "ts"):
        value = PARAMS[name]
        for at in np.ndindex(value.shape):
            ends = []
            for sign in (1, -1):
                moved = np.array(value)
                moved[at] += sign * 1e-5
                # Both times that are equal move, so that times stay in order.
                if name == "ts" and at[0] in (1, 2):
                    moved[1:3] = value[1:3] + sign * 1e-5
                ends.append(float(loss({**PARAMS, name: moved})))
            slope = np.asarray(slopes[name])
            got = slope[1:3].sum() if name == "ts" and at[0] in (1, 2) else slope[at]
            assert got == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-8)


def decayed(y0: Any, rate: Any, ts: Any = (0.0, 1.0)) -> Any:
    return dn.odeint(lambda t, y: -rate * y, y0, np.array(ts), gradient="adjoint", rtol=1e-9).ys


def test_one_time_and_times_that_descend() -> None:
    slope = dn.grad(lambda y: dn.sum(decayed(y, 2.0, [3.0])))(np.array([1.0, 2.0]))
    assert np.asarray(slope).tolist() == [1.0, 1.0]
    slope = dn.grad(lambda rate: decayed(np.float64(1.0), rate, [1.0, 0.0])[-1])(np.float64(0.5))
    assert float(slope) == pytest.approx(np.exp(0.5), rel=1e-7)


def test_small_cotangents_are_as_exact_as_large_ones() -> None:
    """Absolute tolerances are relative to the greatest cotangent."""
    slopes = [
        float(dn.grad(lambda rate: scale * decayed(np.float64(1.0), rate)[-1])(np.float64(0.5)))  # noqa: B023
        for scale in (1.0, 1e-20)
    ]
    assert slopes[1] == pytest.approx(1e-20 * slopes[0], rel=1e-12)


def test_second_derivatives() -> None:
    def last(rate: Any) -> Any:
        return decayed(np.float64(1.0), rate)[-1]

    for twice in (dn.grad(dn.grad(last)), dn.jacfwd(dn.grad(last))):
        assert float(twice(np.float64(0.5))) == pytest.approx(np.exp(-0.5), rel=1e-5)


def test_each_position_has_its_own_steps() -> None:
    """Initial values are vectorized; the gradient of the rate, which is shared, is a sum."""
    starts = np.array([[1.0, 2.0], [30.0, -4.0], [0.0, 1e-3]])

    def total(rate: Any) -> Any:
        return dn.sum(dn.vmap(lambda y: decayed(y, rate)[-1])(starts))

    slope = dn.grad(total)(np.float64(0.5))
    assert float(slope) == pytest.approx(-np.exp(-0.5) * starts.sum(), rel=1e-6)
    each = dn.vmap(dn.grad(lambda y: dn.sum(decayed(y, 0.5)[-1] ** 2)))(starts)
    np.testing.assert_allclose(np.asarray(each), 2 * np.exp(-1) * starts, rtol=1e-6)


def test_a_solution_that_stops_has_no_gradient() -> None:
    def end(y: Any) -> Any:
        ts = np.array([0.0, 2.0])
        return dn.odeint(lambda t, y: y * y, y, ts, gradient="adjoint").ys[-1]

    assert np.isnan(float(dn.grad(end)(np.float64(1.0))))


def test_what_is_refused() -> None:
    with pytest.raises(dn.OptionError, match=r'gradient is .*"direct" or "adjoint"'):
        dn.odeint(lambda t, y: -y, 1.0, TS, gradient="backsolve")  # pyright: ignore[reportArgumentType]
    with pytest.raises(dn.TraceError, match="real unknowns; use the gradient"):
        dn.odeint(lambda t, y: 1j * y, np.complex128(1), TS, gradient="adjoint")
    with pytest.raises(dn.TraceError, match="no forward mode"):
        dn.jvp(lambda rate: decayed(np.float64(1.0), rate), (np.float64(1.0),), (1.0,))
    with pytest.raises(dn.TraceError, match="vectorized values"):
        dn.vmap(lambda rate: decayed(np.float64(1.0), rate))(np.array([1.0, 2.0]))
