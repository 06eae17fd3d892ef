"""Gradients of loops with a given number of snapshots: the same for any number."""

from __future__ import annotations

import collections
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

TRIPS = [0, 1, 2, 3, 5, 6, 7, 22, 137]
COUNTS = [1, 2, 4, 20]


def body(x: Any, i: Any) -> Any:
    return dn.sin(x) * 1.1 + 0.125 * i


def counted(trips: int, snapshots: int | None) -> Callable[[Any], Any]:
    def fun(x: Any) -> Any:
        return dn.sum(dn.for_(x, range(trips), body, snapshots=snapshots) ** 2)

    return fun


def uncounted(trips: int, snapshots: int | None) -> Callable[[Any], Any]:
    def fun(x: Any) -> Any:
        goes_on = lambda state: state[1] < trips + dn.as_type(0 * x[0], "s32")  # noqa: E731
        step = lambda state: (body(*state), state[1] + 1)  # noqa: E731
        return dn.sum(dn.while_((x, 0), goes_on, step, snapshots=snapshots)[0] ** 2)

    return fun


def scanned(trips: int, snapshots: int | None) -> Callable[[Any], Any]:
    def fun(x: Any) -> Any:
        step = lambda state, i: (body(state, i), state[0] * state[1])  # noqa: E731
        last, all_ = dn.scan(x, range(trips), step, snapshots=snapshots)
        return dn.sum(last**2) + dn.sum(all_)

    return fun


def expected(trips: int, x: np.ndarray, with_outputs: bool) -> np.ndarray:
    """The gradient by hand: the states forward, then their cotangents backward."""
    states = [x]
    for i in range(trips):
        states.append(np.sin(states[-1]) * 1.1 + 0.125 * i)
    g = 2 * states.pop()
    for state in reversed(states):
        g = g * 1.1 * np.cos(state)
        if with_outputs:
            g[0] += state[1]
            g[1] += state[0]
    return g


@pytest.mark.parametrize("loop", [counted, uncounted, scanned])
@pytest.mark.parametrize("trips", TRIPS)
def test_any_number_of_snapshots_gives_the_gradient(loop: Any, trips: int) -> None:
    x = np.linspace(0.1, 1.0, 5)
    right = expected(trips, x, loop is scanned)
    for snapshots in [None, *COUNTS]:
        got = dn.jit(dn.grad(loop(trips, snapshots)))(dn.tensor(x)).to_numpy()
        np.testing.assert_allclose(got, right, rtol=1e-11, err_msg=f"{snapshots} snapshots")


def test_snapshots_under_other_transformations() -> None:
    x = dn.tensor(np.linspace(0.1, 1.0, 5))
    for loop, other in itertools.product([counted, uncounted], [3, 20]):
        few, all_ = loop(30, other), loop(30, None)
        for transformed in (dn.hessian, dn.jacfwd, lambda f: lambda x: dn.hvp(f, (x,), (x,))[0]):
            got, right = transformed(few)(x), transformed(all_)(x)
            np.testing.assert_allclose(got.to_numpy(), right.to_numpy(), rtol=1e-10)
        rows = dn.stack([x, 2.0 * x])
        np.testing.assert_allclose(
            dn.vmap(dn.grad(few))(rows).to_numpy(),
            dn.vmap(dn.grad(all_))(rows).to_numpy(),
            rtol=1e-10,
        )


def test_weights_of_a_loop_with_snapshots() -> None:
    """Products of weights are collected over the trips between two snapshots."""
    rng = np.random.default_rng(3)
    w = dn.tensor(rng.standard_normal((40, 40)) / 8)
    x = dn.tensor(rng.standard_normal((1, 40)))

    def loss(w: Any, snapshots: int | None) -> Any:
        step = lambda s, _: dn.tanh(s @ w)  # noqa: E731
        return dn.sum(dn.for_(x, range(50), step, snapshots=snapshots) ** 2)

    right = dn.grad(lambda w: loss(w, None))(w).to_numpy()
    for snapshots in (1, 4, 16):
        got = dn.grad(lambda w: loss(w, snapshots))(w).to_numpy()  # noqa: B023
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("trips", "snapshots"), [(20, 3), (56, 5), (10, 1), (100, 9)])
def test_each_trip_runs_as_seldom_as_possible(trips: int, snapshots: int) -> None:
    """As Griewank and Walther (2000) count, beside the loop and the gradients of its trips."""
    ran: list[int] = []

    def count(pair: tuple[Any, Any]) -> Any:
        ran.append(int(pair[1]))
        return pair[0]

    def step(state: Any, i: Any) -> Any:
        value = dn.sin(dn.runtime_call(state, (state, i), count))
        return dn.custom_grad(value, [state], lambda g: [g * dn.cos(state)])

    def fun(x: Any) -> Any:
        return dn.for_(x, range(trips), step, snapshots=snapshots)

    dn.grad(fun)(dn.tensor(0.5))
    times = next(r for r in range(trips + 1) if math.comb(snapshots + r, snapshots) >= trips)
    least = times * trips - math.comb(snapshots + times, snapshots + 1)
    # Each runs in its gradient, too. What the loop runs after its last snapshot, it runs once more.
    assert max(collections.Counter(ran).values()) <= times + 2
    assert least + trips < len(ran) <= least + 2 * trips


def test_the_number_of_snapshots_is_kept_in_saved_graphs() -> None:
    x = dn.tensor([1.0, 2.0])
    kept = lambda x: dn.for_(x, range(9), body, snapshots=3)  # noqa: E731
    text = dn.graph.to_text(dn.debug_expr(kept)(x))
    assert "snapshots: 3" in text
    assert dn.graph.to_text(dn.graph.from_text(text)) == text
    free = lambda x: dn.for_(x, range(9), body)  # noqa: E731
    assert "snapshots" not in dn.graph.to_text(dn.debug_expr(free)(x))


@pytest.mark.parametrize("snapshots", [0, -1, 2.5, "many"])
def test_a_number_that_is_no_count_is_an_error(snapshots: Any) -> None:
    for loop in (counted, uncounted, scanned):
        with pytest.raises(dn.OptionError, match="snapshots is"):
            loop(3, snapshots)(dn.tensor([1.0, 2.0]))
