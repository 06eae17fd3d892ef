"""Multivariate normal vectors: documented ones, their covariance, and singular covariances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import defn as dn

random = dn.random


def key(seed: int) -> dn.Tensor:
    return random.key(seed)


def one(value: dn.Tensor | tuple[dn.Tensor, dn.Tensor]) -> dn.Tensor:
    return value[0] if isinstance(value, tuple) else value


IDENTITY = dn.eye(2)
DOCUMENTED_VECTORS: list[tuple[Any, Any]] = [
    (lambda: random.multivariate_normal(key(12), dn.tensor([0]), dn.tensor([[1]])), [0.73592794]),
    (
        lambda: random.multivariate_normal(key(12), dn.tensor([0, 0]), IDENTITY),
        [-1.3425945, -0.4081206],
    ),
    (
        lambda: random.multivariate_normal(key(12), dn.tensor([0, 0]), IDENTITY, shape=(3, 2)),
        [
            [[0.989145, 1.0795186], [-0.9467806, 1.4781388]],
            [[2.2095864, -1.5294564], [-0.79339206, 1.1211957]],
            [[0.10976296, -0.9959557], [0.4754556, 1.1413804]],
        ],
    ),
]


@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
@pytest.mark.parametrize(("draw", "want"), DOCUMENTED_VECTORS)
def test_documented_vectors(draw: Any, want: Any, method: str) -> None:
    """For one axis or the identity, all square roots agree up to the order and signs of axes."""
    got = one(draw()).to_numpy()
    want = np.asarray(want, np.float32)
    assert got.shape == want.shape
    if method == "cholesky":
        assert (np.abs(got - want) <= 4 * np.spacing(np.abs(want))).all()


@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_vectors_vary_together(dtype: str, method: str) -> None:
    covariance = np.array([[2.0, -0.6, 0.3], [-0.6, 1.0, 0.0], [0.3, 0.0, 0.5]])
    mean = np.array([1.0, -2.0, 0.5])
    draw = dn.jit(
        lambda k, m, c: random.multivariate_normal(
            k, m, c, shape=20_000, dtype=dtype, method=method, names=["n", "d"]
        )
    )
    values, after = draw(key(3), mean, covariance)
    assert (values.dtype, values.shape, values.names) == (dtype, (20_000, 3), ("n", "d"))
    array = values.to_numpy()
    assert np.abs(array.mean(0) - mean).max() < 0.05
    assert np.abs(np.cov(array.T) - covariance).max() < 0.06
    following, used = random.split(key(3))
    assert after.to_list() == following.to_list()
    alone = random.multivariate_normal_split(
        used, dn.tensor(mean), dn.tensor(covariance), shape=20_000, dtype=dtype, method=method
    )
    np.testing.assert_allclose(array, alone.to_numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", ["svd", "eigh"])
def test_vectors_of_a_singular_covariance(method: str) -> None:
    covariance = dn.tensor([[1e-6, 1e-6], [1e-6, 1e-6]])
    mean = dn.tensor([0.0, 0.0])
    values = random.multivariate_normal_split(key(1), mean, covariance, shape=100, method=method)
    array = values.to_numpy()
    np.testing.assert_allclose(array[:, 0], array[:, 1], rtol=1e-2, atol=1e-6)
    assert 0.5e-3 < array[:, 0].std() < 2e-3


def test_no_vectors() -> None:
    none = random.multivariate_normal_split(
        key(1), dn.broadcast(0.0, (0,)), dn.broadcast(0.0, (0, 0)), shape=3
    )
    assert none.shape == (3, 0)
    none = random.multivariate_normal_split(
        key(1), dn.tensor([0.0]), dn.tensor([[1.0]]), shape=(2, 0)
    )
    assert none.shape == (2, 0, 1)
