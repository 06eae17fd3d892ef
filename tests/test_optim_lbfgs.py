"""Steps of L-BFGS: where they lead, beside optax and ``dn.optimize.minimize``, and their state."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import optax
import pytest

import defn as dn

DTYPES = ["f32", "f64", "bf16"]
DATA = np.sin(np.arange(60.0)).reshape(12, 5)
LABELS = (DATA[:, 0] + 0.5 * np.cos(7 * np.arange(12.0)) > 0).astype(np.float64)


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def logistic(params: Any) -> Any:
    scores = DATA @ params["w"] + params["b"]
    return dn.mean(dn.nn.softplus(scores) - LABELS * scores) + 0.05 * dn.sum(params["w"] ** 2)


def descend(fun: Any, params: Any, steps: int, **options: Any) -> tuple[Any, list[float]]:
    """The parameters after some compiled steps, and the number before each."""

    @dn.jit
    def step(params: Any, state: Any) -> Any:
        optimizer = dn.optim.lbfgs(fun, **options)
        value, gradients = dn.value_and_grad(fun)(params)
        updates, state = optimizer.update(gradients, state, params)
        return dn.optim.apply_updates(params, updates), state, value

    state, values = dn.optim.lbfgs(fun, **options).init(params), []
    for _ in range(steps):
        params, state, value = step(params, state)
        values.append(float(value))
    return params, values


@pytest.mark.parametrize("start", [[-1.2, 1.0], [-1.0] * 6])
def test_as_few_steps_as_optax_needs(start: list[float]) -> None:
    _, ours = descend(rosenbrock, dn.tensor(start, dtype="f64"), 80)
    with jax.enable_x64(True):
        optimizer = optax.lbfgs(memory_size=10)
        params = jax.numpy.array(start)
        state, theirs = optimizer.init(params), []
        both = jax.jit(optax.value_and_grad_from_state(rosenbrock))

        @jax.jit
        def update(gradient: Any, state: Any, params: Any, value: Any) -> Any:
            options = {"value": value, "grad": gradient, "value_fn": rosenbrock}
            updates, state = optimizer.update(gradient, state, params, **options)
            return optax.apply_updates(params, updates), state

        for _ in range(80):
            value, gradient = both(params, state=state)
            params, state = update(gradient, state, params, value)
            theirs.append(float(value))
    near = [next(i for i, value in enumerate(values) if value < 1e-10) for values in (ours, theirs)]
    assert near[0] <= 1.3 * near[1]
    # Each step descends, until rounding hides it.
    assert all(after <= before for before, after in itertools.pairwise(ours))


def test_they_are_the_steps_of_minimize() -> None:
    start = dn.tensor([-1.2, 1.0, 0.5], dtype="f64")
    for count in (1, 2, 7, 20):
        x, _ = descend(rosenbrock, start, count, history=4)
        result = dn.optimize.minimize(rosenbrock, start, method="lbfgs", history=4, maxiter=count)
        np.testing.assert_allclose(x.to_numpy(), result.x.to_numpy(), rtol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_containers_keep_their_dtypes(dtype: str) -> None:
    start = {"w": dn.as_type(np.zeros(5), dtype), "b": dn.as_type(0.0, dtype)}
    found, values = descend(logistic, start, 30)
    wide = {"w": np.zeros(5), "b": np.array(0.0)}
    best = dn.optimize.minimize(logistic, wide, gtol=1e-9).check()
    assert {str(leaf.dtype) for leaf in dn.tree.leaves(found)} == {dtype}
    tolerance = {"f64": 1e-7, "f32": 1e-3, "bf16": 0.05}[dtype]
    np.testing.assert_allclose(
        found["w"].to_numpy().astype(float), best.x["w"].to_numpy(), atol=tolerance
    )
    assert values[-1] <= float(best.fun) + tolerance


def test_complex_parameters() -> None:
    def fun(z: Any) -> Any:
        return dn.sum(dn.abs(z - (1.0 + 2.0j)) ** 2) + dn.sum(dn.real(z) ** 2)

    z, _ = descend(fun, dn.as_type(np.zeros(2), "c128"), 8)
    np.testing.assert_allclose(z.to_numpy(), [0.5 + 2.0j] * 2, rtol=1e-7)


def test_each_position_has_its_own_state() -> None:
    scales = np.array([1.0, 30.0, 100.0])

    def solve(scale: Any) -> Any:
        fun = lambda x: scale * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2  # noqa: E731
        x = dn.tensor([-1.2, 1.0], dtype="f64")
        optimizer = dn.optim.lbfgs(fun)
        state = optimizer.init(x)
        for _ in range(12):
            updates, state = optimizer.update(dn.grad(fun)(x), state, x)
            x = dn.optim.apply_updates(x, updates)
        return x

    together = dn.vmap(solve)(scales).to_numpy()
    alone = [solve(dn.f64(scale)).to_numpy() for scale in scales]
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_states_go_through_loops() -> None:
    optimizer = dn.optim.lbfgs(rosenbrock)

    @dn.jit
    def solve(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            x, state = carry
            updates, state = optimizer.update(dn.grad(rosenbrock)(x), state, x)
            return (dn.optim.apply_updates(x, updates), state), None

        return dn.scan((x, optimizer.init(x)), None, step, length=60)[0][0]

    np.testing.assert_allclose(solve(dn.tensor([-1.2, 1.0])).to_numpy(), 1.0, atol=1e-3)


def test_at_a_minimum_nothing_changes() -> None:
    x, values = descend(rosenbrock, dn.tensor([1.0, 1.0]), 3)
    assert x.to_list() == [1.0, 1.0]
    assert values == [0.0, 0.0, 0.0]


def test_a_point_that_is_not_finite_stays() -> None:
    x, _ = descend(lambda x: dn.sum(dn.log(x)), dn.tensor([-1.0, 2.0]), 3)
    assert x.to_list() == [-1.0, 2.0]
