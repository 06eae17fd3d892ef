"""Cells of recurrent networks, whose formulas in JAX are those of Flax and PyTorch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import defn as dn

NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f64": np.float64}
# In bf16 both products are rounded before the gates.
TOLERANCE = {"f32": 2e-6, "bf16": 0.03, "f64": 1e-13}
KEY = dn.random.key(4)
BATCH, INPUTS, UNITS = 5, 3, 4


def lstm(x: Any, state: Any, kernel: Any, recurrent_kernel: Any, bias: Any = 0.0) -> Any:
    """As `flax.linen.LSTMCell` and `torch.nn.LSTMCell`: the gates i, f, g and o."""
    hidden, cell = state
    z = x @ kernel + hidden @ recurrent_kernel + bias
    i, f, g, o = jnp.split(z, 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell


def gru(x: Any, h: Any, kernel: Any, recurrent: Any, bias: Any = 0.0, more: Any = 0.0) -> Any:
    """As `flax.linen.GRUCell` and `torch.nn.GRUCell`: the gates r, z and n."""
    u, v = x @ kernel + bias, h @ recurrent + more
    (ur, uz, un), (vr, vz, vn) = jnp.split(u, 3, axis=-1), jnp.split(v, 3, axis=-1)
    r, z = jax.nn.sigmoid(ur + vr), jax.nn.sigmoid(uz + vz)
    n = jnp.tanh(un + r * vn)
    return (1 - z) * n + z * h


def arrays(dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=shape).astype(NUMPY[dtype]) for shape in shapes]


def compare(ours: Any, theirs: Any, operands: Any, dtype: str) -> None:
    """Values and gradients to all operands."""
    wide = np.float32 if dtype == "bf16" else NUMPY[dtype]
    with jax.enable_x64(True):
        exact = jax.tree.map(lambda a: jnp.asarray(a.astype(wide)), operands)
        want, pull = jax.vjp(theirs, *exact)
        cotangents = jax.tree.map(
            lambda a: jnp.cos(jnp.arange(a.size, dtype=wide)).reshape(a.shape), want
        )
        slopes = jax.tree.leaves(pull(cotangents))
        want = jax.tree.leaves(want)
    got, back = dn.vjp(ours, *operands)
    given = jax.tree.map(lambda a: np.asarray(a).astype(NUMPY[dtype]), cotangents)
    leaves = [*dn.tree.leaves(got), *dn.tree.leaves(back(given))]
    for mine, their in zip(leaves, [*want, *slopes], strict=True):
        assert mine.dtype == dtype
        scale = max(1.0, np.abs(np.asarray(their)).max())
        error = np.abs(np.asarray(mine).astype(np.float64) - np.asarray(their)).max()
        assert error < TOLERANCE[dtype] * scale


def same(ours: Any, theirs: Any, dtype: str) -> None:
    for one, other in zip(dn.tree.leaves(ours), dn.tree.leaves(theirs), strict=True):
        error = np.abs(one.to_numpy().astype(np.float64) - other.to_numpy().astype(np.float64))
        assert error.max() < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_step_of_an_lstm(bias: bool, dtype: str) -> None:
    x, hidden, cell, kernel, recurrent, offsets = arrays(
        dtype, (BATCH, INPUTS), *[(BATCH, UNITS)] * 2, (INPUTS, 16), (UNITS, 16), (16,)
    )
    operands = [x, (hidden, cell), kernel, recurrent, *([offsets] if bias else [])]
    compare(dn.nn.lstm_cell, lstm, operands, dtype)
    compiled = dn.jit(dn.nn.lstm_cell)(*operands)
    same(compiled, dn.nn.lstm_cell(*operands), dtype)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("biases", [0, 1, 2])
def test_a_step_of_a_gru(biases: int, dtype: str) -> None:
    x, hidden, kernel, recurrent, *offsets = arrays(
        dtype, (BATCH, INPUTS), (BATCH, UNITS), (INPUTS, 12), (UNITS, 12), (12,), (12,)
    )
    operands = [x, hidden, kernel, recurrent, *offsets[:biases]]
    compare(dn.nn.gru_cell, gru, operands, dtype)
    compiled = dn.jit(dn.nn.gru_cell)(*operands)
    same(compiled, dn.nn.gru_cell(*operands), dtype)


def test_offsets_of_the_products_alone() -> None:
    x, hidden, kernel, recurrent, offsets = arrays("f64", (3,), (4,), (3, 12), (4, 12), (12,))
    got = dn.nn.gru_cell(x, hidden, kernel, recurrent, recurrent_bias=offsets)
    with jax.enable_x64(True):
        want = gru(x, hidden, kernel, recurrent, 0.0, offsets)
        np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-13)


def test_cells_in_a_scan() -> None:
    """Values and gradients through time, and along an axis of batches."""
    params = dn.nn.lstm_parameters_split(KEY, INPUTS, UNITS, dtype="f64")
    (steps,) = arrays("f64", (7, BATCH, INPUTS))

    def ours(params: Any, steps: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            state = dn.nn.lstm_cell(x, state, **params)
            return state, state[0]

        zeros = dn.broadcast(dn.f64(0), (BATCH, UNITS))
        return dn.sum(dn.scan((zeros, zeros), steps, body)[1] ** 2)

    def theirs(params: Any, steps: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            state = lstm(x, state, **params)
            return state, state[0]

        zeros = jnp.zeros((BATCH, UNITS))
        return jnp.sum(jax.lax.scan(body, (zeros, zeros), steps)[1] ** 2)

    value, slopes = dn.jit(dn.value_and_grad(ours))(params, steps)
    with jax.enable_x64(True):
        plain = {name: jnp.asarray(value.to_numpy()) for name, value in params.items()}
        want, grads = jax.value_and_grad(theirs)(plain, jnp.asarray(steps))
        np.testing.assert_allclose(value.item(), want, rtol=1e-12)
        for name, slope in slopes.items():
            np.testing.assert_allclose(slope.to_numpy(), grads[name], rtol=1e-9, atol=1e-12)


def test_cells_of_examples_are_those_of_each() -> None:
    params = dn.nn.gru_parameters_split(KEY, INPUTS, UNITS, dtype="f64")
    x, hidden = arrays("f64", (BATCH, INPUTS), (BATCH, UNITS))
    whole = dn.nn.gru_cell(x, hidden, **params)
    each = dn.vmap(lambda x, h: dn.nn.gru_cell(x, h, **params))(x, hidden)
    np.testing.assert_allclose(each.to_numpy(), whole.to_numpy(), rtol=1e-12)
    assert dn.nn.gru_cell(x, hidden[0], **params).shape == (BATCH, UNITS)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(("name", "gates"), [("lstm", 4), ("gru", 3)])
def test_parameters(name: str, gates: int, dtype: Any) -> None:
    params, after = getattr(dn.nn, f"{name}_parameters")(KEY, 30, 20, dtype=dtype)
    assert {value.dtype for value in params.values()} == {dn.dtype(dtype)}
    kernel, recurrent, bias = (dn.as_type(value, "f64").to_numpy() for value in params.values())
    bound = np.sqrt(6 / 50)
    assert 0.98 * bound < np.abs(kernel).max() <= bound * (1 + 2**-8)
    assert abs(kernel.std() / (bound / np.sqrt(3)) - 1) < 5 / np.sqrt(kernel.size)
    for matrix in np.split(recurrent, gates, axis=1):
        atol = 0.03 if dtype == "bf16" else 1e-5
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(20), atol=atol)
    assert not np.allclose(recurrent[:, :20], recurrent[:, 20:40])
    want = np.zeros((gates, 20))
    if name == "lstm":
        want[1] = 1
    assert np.array_equal(bias.reshape(gates, 20), want)
    again = getattr(dn.nn, f"{name}_parameters_split")(after, 30, 20, dtype=dtype)
    assert not np.allclose(dn.as_type(again["kernel"], "f64").to_numpy(), kernel)


def test_states_keep_their_names() -> None:
    x = dn.tensor(np.ones((2, 3), np.float32), names=["batch", "input"])
    hidden = dn.tensor(np.ones((2, 4), np.float32), names=["batch", "unit"])
    params = dn.nn.gru_parameters_split(KEY, 3, 4)
    assert dn.nn.gru_cell(x, hidden, **params).names == ("batch", "unit")
