"""Gradients through all control flow, gradients of gradients, and their cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn

TRIPS = 4


def step(x: Any, w: Any) -> Any:
    return dn.tanh(x * w) + x / 2


def unrolled(x: Any, w: Any) -> Any:
    for _ in range(TRIPS):
        x = step(x, w)
    return x


def by_while(x: Any, w: Any) -> Any:
    return dn.while_((0, x), lambda s: s[0] < TRIPS, lambda s: (s[0] + 1, step(s[1], w)))[1]


def by_for(x: Any, w: Any) -> Any:
    return dn.for_(x, range(TRIPS), lambda x, i: step(x, w))


def by_for_axis(x: Any, w: Any) -> Any:
    return dn.for_(x, dn.broadcast(w, (TRIPS,)), step)


def by_for_unrolled(x: Any, w: Any) -> Any:
    return dn.for_(x, range(TRIPS), lambda x, i: step(x, w), unroll=3)


def by_for_bounds(x: Any, w: Any) -> Any:
    stop = TRIPS + dn.as_type(dn.stop_grad(x) * 0, "s32")
    return dn.for_(x, dn.range(0, stop), lambda x, i: step(x, w))


def by_scan(x: Any, w: Any) -> Any:
    def body(x: Any, i: Any) -> Any:
        x = step(x, w)
        return x, x

    last, all_of_them = dn.scan(x, range(TRIPS), body)
    # Half of the gradient flows through the state, half through the outputs.
    return last / 2 + all_of_them[TRIPS - 1] / 2


def by_cond(x: Any, w: Any) -> Any:
    def chosen(x: Any) -> Any:
        return dn.cond([(x > 9, lambda: x * w * 7), (x > -9, lambda: step(x, w))], lambda: -x)

    for _ in range(TRIPS):
        x = chosen(x)
    return x


def by_if_in_while(x: Any, w: Any) -> Any:
    def body(s: Any) -> Any:
        i, x = s
        return i + 1, dn.if_(i % 2 == 0, lambda: step(x, w), lambda: x)

    return dn.while_((0, x), lambda s: s[0] < 2 * TRIPS, body)[1]


@dn.defn
def by_syntax(x: Any, w: Any) -> Any:
    i = 0
    while i < 2 * TRIPS:
        if i % 2 == 0:
            x = step(x, w)
        i += 1
    return x


@dn.defn
def by_syntax_for(x: Any, w: Any) -> Any:
    for _ in dn.range(TRIPS):
        x = step(x, w)
    return x


def by_block(x: Any, w: Any) -> Any:
    return dn.block("unrolled", [x, w], x, lambda tag, x, w: by_while(x, w))


FORMS = [
    by_while,
    by_for,
    by_for_axis,
    by_for_unrolled,
    by_for_bounds,
    by_scan,
    by_cond,
    by_if_in_while,
    by_syntax,
    by_syntax_for,
    by_block,
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("argnums", [0, 1])
def test_gradients_through_every_form(form: Callable[..., Any], argnums: int) -> None:
    x, w = dn.tensor(0.3, dtype="f64"), dn.tensor(0.9, dtype="f64")
    value, want = form, unrolled
    for _ in range(3 if form is by_cond else 2):
        value, want = dn.grad(value, argnums=argnums), dn.grad(want, argnums=argnums)
        np.testing.assert_allclose(value(x, w), want(x, w), rtol=1e-10)


def test_the_third_derivative_of_tanh() -> None:
    third = dn.grad(dn.grad(dn.grad(dn.tanh)))
    for x in (-1.5, -0.2, 0.0, 0.7, 2.0):
        t = np.tanh(x)
        want = (1 - t * t) * (6 * t * t - 2)
        np.testing.assert_allclose(third(dn.tensor(x, dtype="f64")), want, rtol=1e-12)
        np.testing.assert_allclose(dn.jit(third, on_conflict="reuse")(x), want, rtol=2e-5)


def counted_tanh(x: Any, evaluations: list[int]) -> Any:
    """A tanh that counts its evaluations; its gradient uses its value."""

    def evaluate(value: Any) -> Any:
        evaluations[0] += 1
        return np.tanh(np.asarray(value))

    y = dn.runtime_call(x, x, evaluate)
    return dn.custom_grad(y, [x], lambda g: [g * (1 - y * y)])


@pytest.mark.parametrize("known", [True, False], ids=["known trips", "unknown trips"])
@pytest.mark.parametrize("trips", [1_000, 3_000, 10_000])
def test_the_gradient_of_a_loop_costs_a_few_evaluations_a_trip(trips: int, known: bool) -> None:
    """At most four evaluations of the body for each trip, for any number of trips: linear time."""
    evaluations = [0]

    def body(x: Any, w: Any) -> Any:
        return counted_tanh(x * w, evaluations) + x / 2

    def loop(x: Any, w: Any, n: Any) -> Any:
        if known:
            return dn.for_(x, range(trips), lambda x, i: body(x, w))
        return dn.while_((0, x), lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[1], w)))[1]

    x, w = (dn.tensor(v, dtype="f64") for v in (0.3, 0.9))
    slope = dn.grad(loop, argnums=1)(x, w, trips)
    assert trips <= evaluations[0] <= 4 * trips
    at, want = np.float64(0.3), np.float64(0.0)
    for _ in range(trips):
        t = np.tanh(at * 0.9)
        want = (1 - t * t) * (at + 0.9 * want) + want / 2
        at = t + at / 2
    np.testing.assert_allclose(slope, want, rtol=1e-9)
