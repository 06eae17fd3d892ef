"""Initial values, compared with `jax.nn.initializers` and SciPy's distributions at fixed keys."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

import defn as dn

KEY = dn.random.key(5)
SCHEMES: dict[str, tuple[float, Any]] = {
    "glorot": (1.0, "fan_avg"),
    "he": (2.0, "fan_in"),
    "lecun": (1.0, "fan_in"),
}
DISTRIBUTIONS = ["uniform", "normal", "truncated_normal"]
# Shapes with the axes that have roles: matrices, kernels that slide, heads, and other orders.
ROLES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((300, 40), {}),
    ((40, 300), {}),
    ((3, 5, 20, 30), {}),
    ((6, 50, 20), {"batch_axes": 0}),
    ((30, 20, 5, 3), {"in_axis": 1, "out_axis": 0}),
    ((4, 10, 6, 50), {"in_axis": (0, 1), "out_axis": (2, 3)}),
]


def law(distribution: str, deviation: float) -> Any:
    if distribution == "uniform":
        bound = np.sqrt(3) * deviation
        return stats.uniform(-bound, 2 * bound)
    if distribution == "normal":
        return stats.norm(0, deviation)
    return stats.truncnorm(-2, 2, scale=deviation / stats.truncnorm(-2, 2).std())


def jax_deviation(scale: float, mode: Any, shape: tuple[int, ...], roles: dict[str, Any]) -> float:
    """The standard deviation of JAX's normal weights."""
    names = {"batch_axes": "batch_axis"}
    roles = {names.get(name, name): value for name, value in roles.items()}
    init = jax.nn.initializers.variance_scaling(scale, mode, "normal", **roles)
    drawn = np.asarray(init(jax.random.key(0), shape), np.float64)
    # With the same key these are the numbers that the weights are made of.
    unit = np.asarray(jax.random.normal(jax.random.key(0), shape), np.float64)
    return float(np.median(drawn / unit))


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg"])
@pytest.mark.parametrize(("shape", "roles"), ROLES, ids=str)
def test_the_variance_is_that_of_jax(
    shape: tuple[int, ...], roles: dict[str, Any], mode: Any
) -> None:
    want = jax_deviation(3.0, mode, shape, roles)
    unit = dn.random.normal_split(KEY, shape=shape, dtype="f64").to_numpy()
    got = dn.nn.variance_scaling_split(KEY, 3.0, mode, "normal", shape=shape, dtype="f64", **roles)
    np.testing.assert_allclose(got.to_numpy() / unit, want, rtol=1e-5)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("name", SCHEMES)
def test_weights_have_their_distribution(name: str, distribution: Any) -> None:
    scale, mode = SCHEMES[name]
    draw = getattr(dn.nn, f"{name}_split")
    general = dn.nn.variance_scaling_split
    for (shape, roles), dtype in zip(ROLES, ["f32", "f64"] * 3, strict=True):
        x = draw(KEY, distribution, shape=shape, dtype=dtype, **roles)
        expected = law(distribution, jax_deviation(scale, mode, shape, roles))
        flat = x.to_numpy().astype(np.float64).ravel()
        assert stats.kstest(flat, expected.cdf).pvalue > 1e-3
        assert abs(flat.mean()) < 5 * expected.std() / np.sqrt(flat.size)
        assert abs(flat.std() / expected.std() - 1) < 5 / np.sqrt(flat.size)
        assert np.abs(flat).max() <= expected.support()[1] * (1 + 1e-6)
        same = general(KEY, scale, mode, distribution, shape=shape, dtype=dtype, **roles)
        assert np.array_equal(x.to_numpy(), same.to_numpy())


@pytest.mark.parametrize("name", SCHEMES)
def test_defaults_are_those_of_jax(name: str) -> None:
    default = "uniform" if name == "glorot" else "truncated_normal"
    draw = getattr(dn.nn, f"{name}_split")
    named = draw(KEY, default, shape=(4, 3)).to_numpy()
    assert np.array_equal(draw(KEY, shape=(4, 3)).to_numpy(), named)
    assert draw(KEY, shape=(4, 3)).dtype == "f32"


def gram(x: np.ndarray, axis: int) -> np.ndarray:
    """The products of all rows, or of all columns where they are fewer."""
    first = np.moveaxis(x, axis, 0)
    rows = first.reshape(len(first), math.prod(first.shape[1:]))
    return rows @ rows.conj().T if rows.shape[0] <= rows.shape[1] else rows.conj().T @ rows


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "c64", "c128"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 7), (3, 0), (1, 1)])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = dn.nn.orthogonal_split(KEY, 2.0, axis=axis, shape=shape, dtype=dtype)
    assert (x.shape, x.dtype) == (shape, dtype)
    got = gram(np.asarray(dn.as_type(x, "c128")), axis)
    tolerance = {"f64": 1e-13, "c128": 1e-13, "bf16": 0.05}.get(dtype, 1e-5)
    assert np.abs(got - 4 * np.eye(len(got))).max(initial=0) < tolerance
    if x.size > 0:
        init = jax.nn.initializers.orthogonal(2.0, axis)
        theirs = gram(np.asarray(init(jax.random.key(0), shape), np.float64), axis)
        np.testing.assert_allclose(theirs, 4 * np.eye(len(got)), atol=1e-5)


def test_orthogonal_matrices_are_uniformly_distributed() -> None:
    """The square of an element is beta-distributed, and the elements have no sign."""
    keys = dn.random.split(KEY, 4000)
    draw = dn.vmap(lambda key: dn.nn.orthogonal_split(key, shape=(3, 2), dtype="f64"))
    q = draw(keys).to_numpy()
    for element in (q[:, 0, 0], q[:, 2, 1], q[:, 1, 0]):
        assert stats.kstest(element**2, stats.beta(0.5, 1).cdf).pvalue > 1e-3
        assert abs(np.sign(element).mean()) < 5 / np.sqrt(4000)
    alone = dn.nn.orthogonal_split(dn.random.split(KEY, 4000)[7], shape=(3, 2), dtype="f64")
    np.testing.assert_allclose(q[7], alone.to_numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", [*SCHEMES, "variance_scaling", "orthogonal"])
def test_both_forms(name: str) -> None:
    draw, split = getattr(dn.nn, name), getattr(dn.nn, f"{name}_split")
    value, after = draw(KEY, shape=(4, 3), names=["in", "out"])
    assert value.names == ("in", "out")
    again, next = dn.jit(lambda key: draw(key, shape=(4, 3)))(KEY)
    np.testing.assert_allclose(value.to_numpy(), again.to_numpy(), rtol=1e-6)
    assert np.array_equal(after.to_numpy(), next.to_numpy())
    assert not np.array_equal(after.to_numpy(), KEY.to_numpy())
    assert not np.array_equal(value.to_numpy(), split(KEY, shape=(4, 3)).to_numpy())
    assert not np.array_equal(value.to_numpy(), draw(after, shape=(4, 3))[0].to_numpy())
    keys = dn.random.split(KEY, 3)
    each = dn.vmap(lambda key: split(key, shape=(2, 3)))(keys)
    for own, key in zip(each, keys, strict=True):
        np.testing.assert_allclose(own.to_numpy(), split(key, shape=(2, 3)).to_numpy(), rtol=1e-6)


def test_weights_have_roles_by_name() -> None:
    named = dn.nn.he_split(KEY, in_axis="in", out_axis="out", shape=(2, 9), names=["out", "in"])
    plain = dn.nn.he_split(KEY, in_axis=1, out_axis=0, shape=(2, 9))
    assert np.array_equal(named.to_numpy(), plain.to_numpy())


def test_no_weights() -> None:
    assert dn.nn.he_split(KEY, shape=(0, 3)).shape == (0, 3)
    assert dn.nn.glorot_split(KEY, shape=(3, 0, 0)).shape == (3, 0, 0)
    zero = dn.nn.variance_scaling_split(KEY, 0.0, shape=(2, 2))
    assert zero.to_list() == [[0.0, 0.0], [0.0, 0.0]]
