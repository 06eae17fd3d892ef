"""Logarithms of determinants, condition numbers and chains of products at their ends."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn


@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_slogdet_is_numpys(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, 5))
    if dtype == "c128":
        x = x + 1j * rng.normal(size=(3, 5, 5))
    for function in (dn.linalg.slogdet, dn.jit(dn.linalg.slogdet)):
        sign, log = function(dn.tensor(x))
        want = np.linalg.slogdet(x)
        assert (str(sign.dtype), str(log.dtype)) == (dtype, "f64")
        np.testing.assert_allclose(sign.to_numpy(), want[0], rtol=1e-12)
        np.testing.assert_allclose(log.to_numpy(), want[1], rtol=1e-12)


def test_slogdet_does_not_overflow() -> None:
    sign, log = dn.linalg.slogdet(-1e30 * dn.eye(21, dtype="f32"))
    assert sign.item() == -1.0
    np.testing.assert_allclose(log.item(), 21 * np.log(1e30), rtol=1e-6)
    sign, log = dn.linalg.slogdet(1e-30 * dn.eye(20, dtype="f32"))
    assert sign.item() == 1.0
    np.testing.assert_allclose(log.item(), 20 * np.log(1e-30), rtol=1e-6)


def test_slogdet_of_singular_empty_and_nan_matrices() -> None:
    sign, log = dn.linalg.slogdet(dn.tensor([[1.0, 2.0], [2.0, 4.0]]))
    assert (sign.item(), log.item()) == (0.0, -np.inf)
    sign, log = dn.linalg.slogdet(dn.tensor(np.zeros((2, 0, 0))))
    assert (sign.to_list(), log.to_list()) == ([1.0, 1.0], [0.0, 0.0])
    sign, log = dn.linalg.slogdet(dn.tensor([[np.nan, 1.0], [1.0, 2.0]]))
    assert np.isnan(log.item())


def test_the_gradient_of_the_logarithm_is_the_inverse() -> None:
    x = np.random.default_rng(1).normal(size=(4, 4))
    got = dn.grad(lambda t: dn.linalg.slogdet(t)[1])(dn.tensor(x))
    np.testing.assert_allclose(got.to_numpy(), np.linalg.inv(x).T, rtol=1e-9)


def test_values_are_vmapped() -> None:
    x = np.random.default_rng(2).normal(size=(3, 4, 4))
    t = dn.tensor(x)
    sign, log = dn.vmap(dn.linalg.slogdet)(t)
    np.testing.assert_allclose(sign.to_numpy(), np.linalg.slogdet(x)[0])
    np.testing.assert_allclose(log.to_numpy(), np.linalg.slogdet(x)[1])
    got = dn.vmap(lambda m: dn.linalg.cond(m, 1))(t)
    np.testing.assert_allclose(got.to_numpy(), np.linalg.cond(x, 1), rtol=1e-9)
    got = dn.vmap(lambda m: dn.linalg.multi_dot([m, m[0]]))(t)
    np.testing.assert_allclose(got.to_numpy(), np.einsum("vij,vj->vi", x, x[:, 0]), rtol=1e-9)


@pytest.mark.parametrize("order", [None, 2, 1, "inf", "frobenius"])
def test_the_condition_of_a_singular_matrix_is_infinite(order: int | str | None) -> None:
    assert dn.linalg.cond(dn.tensor(np.zeros((2, 2))), order).item() == np.inf
    assert np.isnan(dn.linalg.cond(dn.tensor([[np.nan, 1.0], [1.0, 2.0]]), order).item())


def test_eigenvalues_of_complex_matrices_are_real() -> None:
    x = np.array([[2.0, 1j], [-1j, 3.0]])
    got = dn.linalg.eigvalsh(dn.tensor(x))
    assert got.dtype == dn.f64
    np.testing.assert_allclose(got.to_numpy(), np.linalg.eigvalsh(x), rtol=1e-12)


def test_chains_take_the_cheapest_order() -> None:
    """A vector at the end meets each matrix, and no two matrices are multiplied."""
    types = [dn.template(shape, "f32") for shape in ((30, 30), (30, 30), (30, 30), (30,))]
    expr = dn.debug_expr(lambda *tensors: dn.linalg.multi_dot(tensors))(*types)
    nodes = [node for node in dn.compilers.program(expr).walk() if node.op == "dot"]
    assert [node.shape for node in nodes] == [(30,)] * 3


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8_e4m3fn"])
def test_chains_of_narrow_floats_are_rounded_once(dtype: str) -> None:
    rng = np.random.default_rng(4)
    tensors = [
        dn.tensor(rng.uniform(0.5, 1.5, size=shape), dtype=dtype)
        for shape in ((3, 4), (4, 5), (5, 2))
    ]
    exact = np.linalg.multi_dot([dn.as_type(tensor, "f64").to_numpy() for tensor in tensors])
    want = dn.as_type(dn.tensor(exact, dtype="f32"), dtype)
    assert dn.linalg.multi_dot(tensors).to_list() == want.to_list()
