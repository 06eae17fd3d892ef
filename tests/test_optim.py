"""Optimizers beside those of optax: trajectories, states, schedules, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import defn as dn
from cases.dtypes import NUMPY

STEPS = 60
A = np.sin(np.arange(24.0)).reshape(6, 4) + np.eye(6, 4)
B = np.cos(np.arange(6.0))


def start(dtype: str) -> dict[str, Any]:
    arrays = {"w": [np.linspace(-1, 1, 4), np.array(0.3)], "b": np.cos(np.arange(6.0)) / 3}
    return jax.tree.map(lambda x: x.astype(NUMPY[dtype]), arrays)


def loss(xp: Any, params: Any) -> Any:
    """Not quadratic, with slopes of different sizes."""
    w, s, b = *params["w"], params["b"]
    return ((A @ w * (1 + s * s) + 3 * xp.tanh(b) - B) ** 2).sum()


def given(step: int, dtype: str) -> Any:
    """Gradients that no parameter has an influence on, of several sizes."""
    size = 10.0 ** (step % 4 - 2)
    return jax.tree.map(lambda x: (np.cos(x * 7 + step) * size).astype(x.dtype), start(dtype))


def run(
    library: Any, gradient: Any, jit: Any, optimizer: Any, dtype: str, given_: bool
) -> list[Any]:
    """The parameters after each step."""
    tree_map, tensor = (jax.tree.map, jnp.asarray) if library is optax else (dn.tree.map, dn.tensor)
    params = tree_map(tensor, start(dtype))
    state = optimizer.init(params)

    def step(params: Any, state: Any, gradients: Any) -> Any:
        slopes = gradients if given_ else gradient(params)
        updates, state = optimizer.update(slopes, state, params)
        return library.apply_updates(params, updates), state

    step = jit(step)
    path = []
    for number in range(STEPS):
        params, state = step(params, state, tree_map(tensor, given(number, dtype)))
        path.append(jax.tree.map(np.asarray, params, is_leaf=lambda x: isinstance(x, dn.Tensor)))
    return path


def ours(optimizer: Any, dtype: str, given_: bool, jit: Any = dn.jit) -> list[Any]:
    return run(dn.optim, dn.grad(lambda p: loss(dn, p)), jit, optimizer, dtype, given_)


def theirs(optimizer: Any, dtype: str, given_: bool) -> list[Any]:
    gradient = jax.grad(lambda p: loss(jnp, p))
    with jax.enable_x64(dtype == "f64"):
        return run(optax, gradient, jax.jit, optimizer, dtype, given_)


def matrices(params: Any) -> Any:
    return {"w": [True, False], "b": False} if isinstance(params, dict) else None


RATES = {
    "number": (0.01, 0.01),
    "warmup": (
        dn.optim.warmup_cosine_decay_schedule(0.0, 0.005, 10, 50),
        optax.warmup_cosine_decay_schedule(0.0, 0.005, 10, 50),
    ),
}
OPTIMIZERS: dict[str, tuple[Any, Any]] = {
    "sgd": (lambda rate: dn.optim.sgd(rate), lambda rate: optax.sgd(rate)),
    "sgd with momentum": (
        lambda rate: dn.optim.sgd(rate, momentum=0.8),
        lambda rate: optax.sgd(rate, momentum=0.8),
    ),
    "sgd with Nesterov's momentum": (
        lambda rate: dn.optim.sgd(rate, momentum=0.8, nesterov=True),
        lambda rate: optax.sgd(rate, momentum=0.8, nesterov=True),
    ),
    "adam": (lambda rate: dn.optim.adam(rate), lambda rate: optax.adam(rate)),
    "adam with options": (
        lambda rate: dn.optim.adam(rate, b1=0.5, b2=0.9, eps=1e-3, eps_root=1e-2),
        lambda rate: optax.adam(rate, b1=0.5, b2=0.9, eps=1e-3, eps_root=1e-2),
    ),
    "nadam": (
        lambda rate: dn.optim.adam(rate, nesterov=True),
        lambda rate: optax.adam(rate, nesterov=True),
    ),
    "adam without averages": (
        lambda rate: dn.optim.adam(rate, b1=0.0, b2=0.0),
        lambda rate: optax.adam(rate, b1=0.0, b2=0.0),
    ),
    "adamw": (
        lambda rate: dn.optim.adamw(rate, weight_decay=0.1),
        lambda rate: optax.adamw(rate, weight_decay=0.1),
    ),
    "adamw with a mask": (
        lambda rate: dn.optim.adamw(rate, weight_decay=0.5, mask=matrices),
        lambda rate: optax.adamw(rate, weight_decay=0.5, mask=matrices),
    ),
    "lion": (
        lambda rate: dn.optim.lion(rate, weight_decay=0.1),
        lambda rate: optax.lion(rate, weight_decay=0.1),
    ),
    "rmsprop": (lambda rate: dn.optim.rmsprop(rate), lambda rate: optax.rmsprop(rate)),
    "rmsprop with options": (
        lambda rate: dn.optim.rmsprop(
            rate, decay=0.8, initial_scale=0.1, eps_in_sqrt=False, momentum=0.5, nesterov=True
        ),
        lambda rate: optax.rmsprop(
            rate, decay=0.8, initial_scale=0.1, eps_in_sqrt=False, momentum=0.5, nesterov=True
        ),
    ),
    "clipped": (
        lambda rate: dn.optim.chain(dn.optim.clip_by_global_norm(1.5), dn.optim.adam(rate)),
        lambda rate: optax.chain(optax.clip_by_global_norm(1.5), optax.adam(rate)),
    ),
    "clipped elements": (
        lambda rate: dn.optim.chain(
            dn.optim.clip(0.7), dn.optim.scale(2.0), dn.optim.identity(), dn.optim.sgd(rate)
        ),
        lambda rate: optax.chain(
            optax.clip(0.7), optax.scale(2.0), optax.identity(), optax.sgd(rate)
        ),
    ),
    "masked": (
        lambda rate: dn.optim.chain(
            dn.optim.masked(dn.optim.trace(0.5), {"w": [True, False], "b": False}),
            dn.optim.adam(rate),
        ),
        lambda rate: optax.chain(
            optax.masked(optax.trace(0.5), {"w": [True, False], "b": False}), optax.adam(rate)
        ),
    ),
    "accumulated": (
        lambda rate: dn.optim.accumulate(dn.optim.adamw(rate), 3),
        lambda rate: optax.MultiSteps(optax.adamw(rate), 3).gradient_transformation(),
    ),
    "only finite": (
        lambda rate: dn.optim.apply_if_finite(dn.optim.adam(rate), 3),
        lambda rate: optax.apply_if_finite(optax.adam(rate), 3),
    ),
}


def close(got: Any, want: Any, rtol: float) -> None:
    for own, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert own.dtype == other.dtype
        assert own.shape == other.shape
        own, other = own.astype(np.float64), other.astype(np.float64)
        np.testing.assert_allclose(own, other, rtol=0, atol=rtol * max(1.0, abs(other).max()))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_trajectories_are_those_of_optax(name: str, rate: str) -> None:
    (make, other), (own_rate, other_rate) = OPTIMIZERS[name], RATES[rate]
    got = ours(make(own_rate), "f64", False)
    for own, want in zip(got, theirs(other(other_rate), "f64", False), strict=True):
        # Values of schedules are f32.
        close(own, want, 1e-8 if rate == "number" else 1e-6)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_for_given_gradients_are_those_of_optax(name: str, dtype: str) -> None:
    """In f32 gradients of parameters that differ in their last digits would drift apart."""
    make, other = OPTIMIZERS[name]
    want = theirs(other(0.01), dtype, True)
    for jit in (dn.jit, lambda step: step):
        for own, params in zip(ours(make(0.01), dtype, True, jit), want, strict=True):
            close(own, params, 1e-6 if dtype == "f32" else 3e-2)


SCHEDULES: dict[str, tuple[Any, Any]] = {
    "constant": (dn.optim.constant_schedule(0.3), optax.constant_schedule(0.3)),
    "line": (dn.optim.linear_schedule(1.0, 0.1, 10), optax.linear_schedule(1.0, 0.1, 10)),
    "late line": (
        dn.optim.linear_schedule(0.0, 2.0, 10, transition_begin=5),
        optax.linear_schedule(0.0, 2.0, 10, 5),
    ),
    "cosine": (
        dn.optim.cosine_decay_schedule(2.0, 10, alpha=0.1),
        optax.cosine_decay_schedule(2.0, 10, 0.1),
    ),
    "power of a cosine": (
        dn.optim.cosine_decay_schedule(2.0, 10, exponent=1.5),
        optax.cosine_decay_schedule(2.0, 10, exponent=1.5),
    ),
    "warmup": (
        dn.optim.warmup_cosine_decay_schedule(0.1, 1.0, 4, 12, end_value=0.2, exponent=2.0),
        optax.warmup_cosine_decay_schedule(0.1, 1.0, 4, 12, 0.2, 2.0),
    ),
    "exponential": (dn.optim.exponential_decay(1.0, 4, 0.5), optax.exponential_decay(1.0, 4, 0.5)),
    "stairs": (
        dn.optim.exponential_decay(1.0, 4, 0.5, transition_begin=3, staircase=True, end_value=0.2),
        optax.exponential_decay(1.0, 4, 0.5, 3, True, 0.2),
    ),
    "growth": (
        dn.optim.exponential_decay(1.0, 4, 2.0, end_value=5.0),
        optax.exponential_decay(1.0, 4, 2.0, end_value=5.0),
    ),
    "pieces": (
        dn.optim.piecewise_constant_schedule(2.0, {8: 0.5, 3: 0.1}),
        optax.piecewise_constant_schedule(2.0, {8: 0.5, 3: 0.1}),
    ),
    "joined": (
        dn.optim.join_schedules(
            [
                dn.optim.linear_schedule(0.0, 1.0, 3),
                dn.optim.constant_schedule(1.0),
                dn.optim.exponential_decay(1.0, 2, 0.5),
            ],
            [3, 7],
        ),
        optax.join_schedules(
            [
                optax.linear_schedule(0.0, 1.0, 3),
                optax.constant_schedule(1.0),
                optax.exponential_decay(1.0, 2, 0.5),
            ],
            [3, 7],
        ),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_optax(name: str) -> None:
    """Before, at and beyond their ends, for plain numbers and for counts of compiled steps."""
    own, other = SCHEDULES[name]
    compiled = dn.jit(own)
    for count in [*range(20), 10**6, 2**31 - 1]:
        want = float(other(count))
        assert float(own(count)) == pytest.approx(want, rel=2e-6, abs=1e-7)
        assert compiled(dn.s32(count)).dtype == "f32"
        assert float(compiled(dn.s32(count))) == pytest.approx(want, rel=2e-6, abs=1e-7)


def test_the_count_of_steps_stays_at_its_greatest_value() -> None:
    optimizer = dn.optim.scale_by_adam()
    state = optimizer.init(dn.tensor([1.0]))._replace(count=dn.s32(2**31 - 2))
    for _ in range(3):
        updates, state = optimizer.update(dn.tensor([1.0]), state, None)
        assert int(state.count) == 2**31 - 1
        assert np.isfinite(np.asarray(updates)).all()


def test_accumulated_steps_are_those_of_the_whole_batch() -> None:
    x = np.sin(np.arange(32.0)).reshape(8, 4).astype(np.float32)
    params = {"w": dn.tensor(np.ones(4, np.float32))}
    inner = dn.optim.adamw(0.1)

    def slopes(params: Any, x: Any) -> Any:
        return dn.grad(lambda p: dn.mean((x @ p["w"] - 1.0) ** 2))(params)

    whole, _ = inner.update(slopes(params, x), inner.init(params), params)
    optimizer = dn.optim.accumulate(inner, 4)
    state = optimizer.init(params)
    step = dn.jit(lambda x, state: optimizer.update(slopes(params, x), state, params))
    for part in np.split(x, 4):
        updates, state = step(part, state)
    np.testing.assert_allclose(np.asarray(updates["w"]), np.asarray(whole["w"]), rtol=1e-5)
    assert int(state.gradient_step) == 1
    assert int(state.mini_step) == 0
    assert not np.asarray(state.mean["w"]).any()


def test_updates_that_are_not_finite() -> None:
    bad, good = {"w": dn.tensor([1.0, np.nan])}, {"w": dn.tensor([1.0, 2.0])}
    optimizer, other = (
        library.apply_if_finite(library.adam(0.1), 2) for library in (dn.optim, optax)
    )
    state, theirs = optimizer.init(good), other.init({"w": jnp.ones(2)})
    for gradients in (good, bad, good, bad, bad, bad, good):
        updates, state = dn.jit(optimizer.update)(gradients, state, good)
        want, theirs = other.update({"w": jnp.asarray(np.asarray(gradients["w"]))}, theirs)
        # The sums of optax's weights in f32 are off in the fifth digit.
        np.testing.assert_allclose(np.asarray(updates["w"]), np.asarray(want["w"]), rtol=2e-5)
        assert int(state.not_finite) == int(theirs.notfinite_count)
        assert int(state.total_not_finite) == int(theirs.total_notfinite)
    assert np.isnan(np.asarray(state.inner[0].mu["w"])).any()


def test_states_are_containers_that_a_step_may_donate() -> None:
    params = {"w": dn.broadcast(1.0, (64, 64)), "b": dn.broadcast(0.0, (64,))}
    optimizer = dn.optim.chain(dn.optim.clip_by_global_norm(1.0), dn.optim.adamw(0.1))
    state = optimizer.init(params)
    assert [leaf.shape for leaf in dn.tree.leaves(state)] == [(), (64, 64), (64,), (64, 64), (64,)]

    @dn.jit(donate=("params", "state"))
    def step(params: Any, state: Any) -> Any:
        gradients = dn.grad(lambda p: dn.sum((p["w"] @ p["w"] + p["b"]) ** 2))(params)
        updates, state = optimizer.update(gradients, state, params)
        return dn.optim.apply_updates(params, updates), state

    params, state = step(params, state)
    params, state = step(params, state)
    assert isinstance(state[1][0], dn.optim.AdamState)
    assert int(state[1][0].count) == 2


def test_states_of_loops_keep_their_dtypes() -> None:
    """Gradients in f32 for parameters in bf16, as after a cast in the loss."""
    params = dn.tensor([1.0, -2.0], dtype="bf16")
    for make in (dn.optim.adamw, dn.optim.lion, dn.optim.rmsprop, dn.optim.sgd):
        options = {"momentum": 0.9} if make in {dn.optim.rmsprop, dn.optim.sgd} else {}
        optimizer = dn.optim.chain(dn.optim.clip_by_global_norm(1.0), make(0.1, **options))
        state = optimizer.init(params)

        def step(carry: Any, x: Any, optimizer: Any = optimizer) -> Any:
            params, state = carry
            gradients = dn.as_type(params, "f32") * x
            updates, state = optimizer.update(gradients, state, params)
            return (dn.optim.apply_updates(params, updates), state), 0

        (after, _), _ = dn.scan((params, state), dn.tensor([1.0, 2.0, 3.0]), step)
        assert after.dtype == "bf16"


def test_complex_parameters() -> None:
    params = dn.tensor([1 + 2j, -0.5j])
    for make in (dn.optim.adam, dn.optim.rmsprop):
        optimizer = make(0.1)
        state = optimizer.init(params)
        assert dn.tree.leaves(state)[-1].dtype == "f32"
        updates, state = optimizer.update(params, state, params)
        directions = -np.asarray(updates) / np.abs(np.asarray(updates))
        want = np.asarray(params) / np.abs(np.asarray(params))
        np.testing.assert_allclose(directions, want, rtol=1e-5)


def test_optimizers_of_mapped_models() -> None:
    """A model for each learning rate."""
    rates = np.array([0.0, 0.1, 0.2], np.float32)

    def trained(rate: Any) -> Any:
        params = dn.tensor([1.0, -2.0])
        optimizer = dn.optim.adam(rate)
        state = optimizer.init(params)
        for _ in range(3):
            updates, state = optimizer.update(2 * params, state, params)
            params = dn.optim.apply_updates(params, updates)
        return params

    got = np.asarray(dn.vmap(trained)(rates))
    for rate, own in zip(rates, got, strict=True):
        np.testing.assert_allclose(own, np.asarray(trained(float(rate))), rtol=1e-6)


def test_gradients_pass_through_steps() -> None:
    """The learning rate as what is learnt."""

    def after(rate: Any) -> Any:
        params = dn.tensor([1.0, -2.0], dtype="f64")
        optimizer = dn.optim.chain(dn.optim.trace(0.9), dn.optim.scale_by_learning_rate(rate))
        state = optimizer.init(params)
        for _ in range(5):
            updates, state = optimizer.update(params**3, state, params)
            params = dn.optim.apply_updates(params, updates)
        return dn.sum(params**2)

    rate, step = dn.f64(0.05), 1e-6
    slope = (float(after(rate + step)) - float(after(rate - step))) / (2 * step)
    assert float(dn.grad(after)(rate)) == pytest.approx(slope, rel=1e-6)


MODEL = {"layer": {"w": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32)}}
OTHER = {"layer": {"w": np.ones((2, 4), np.float32), "b": np.ones(3, np.float32)}}
LESS = {"layer": {"w": np.ones((2, 3), np.float32)}}


@pytest.mark.parametrize(
    "make",
    [
        lambda: dn.optim.adam(0.1),
        lambda: dn.optim.sgd(0.1, momentum=0.5),
        lambda: dn.optim.rmsprop(0.1),
        lambda: dn.optim.lion(0.1),
        lambda: dn.optim.accumulate(dn.optim.sgd(0.1), 2),
    ],
)
def test_the_state_of_another_model(make: Any) -> None:
    optimizer = make()
    with pytest.raises(dn.ShapeError, match=r'at \["layer"\]\["w"\], '):
        optimizer.update(MODEL, optimizer.init(OTHER), MODEL)
    with pytest.raises(dn.ContainerError, match=r'at \["layer"\] one is'):
        optimizer.update(MODEL, optimizer.init(LESS), MODEL)
    with pytest.raises(dn.ContainerError, match="chain: the state is"):
        dn.optim.chain(optimizer, optimizer).update(MODEL, optimizer.init(MODEL), MODEL)


def test_a_mask_without_a_bool_for_a_leaf() -> None:
    for mask, place in (
        ({"layer": {"w": True}}, r'None at \["layer"\]\["b"\]'),
        ({"layer": {"w": 1, "b": True}}, r'int at \["layer"\]\["w"\]'),
        ({"layers": True}, r'None at \["layer"\]'),
    ):
        optimizer = dn.optim.masked(dn.optim.adam(0.1), mask)
        with pytest.raises(dn.ContainerError, match=place):
            optimizer.init(MODEL)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: dn.optim.adam(0.1, b1=1.0), "b1 is 1.0, it must be at least 0 and less than 1"),
        (lambda: dn.optim.adam(0.1, eps=-1.0), "eps is -1.0, it must be 0 or more"),
        (lambda: dn.optim.sgd(0.1, momentum="fast"), "decay is 'fast', it must be a number"),
        (lambda: dn.optim.clip(0.0), "limit is 0.0, it must be a positive number"),
        (lambda: dn.optim.clip_by_global_norm(-1), "max_norm is -1, it must be a positive number"),
        (lambda: dn.optim.adamw(0.1, weight_decay=-0.1), "weight_decay is -0.1"),
        (lambda: dn.optim.accumulate(dn.optim.sgd(0.1), 0), "every is 0, it must be an integer"),
        (lambda: dn.optim.chain(dn.optim.sgd(0.1), 3), "an argument is of the type int"),
        (lambda: dn.optim.linear_schedule(1.0, 0.0, 0), "transition_steps is 0"),
        (lambda: dn.optim.join_schedules([], [1]), "one boundary is required"),
        (lambda: dn.optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5), "must be more than"),
        (lambda: dn.optim.adam(0.1, beta1=0.9), "beta1"),
    ],
)
def test_options_that_are_refused(call: Any, text: str) -> None:
    with pytest.raises(dn.OptionError, match=text):
        call()


def test_decay_needs_the_parameters() -> None:
    optimizer = dn.optim.adamw(0.1)
    with pytest.raises(dn.OptionError, match="pass params"):
        optimizer.update(MODEL, optimizer.init(MODEL), None)
