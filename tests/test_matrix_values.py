"""Logarithms of determinants, condition numbers and chains of products at their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

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


SHAPES = [(1, 1), (2, 2), (3, 5), (5, 3), (17, 17), (40, 40), (33, 70), (70, 33), (0, 3)]


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
def test_values_alone_are_those_of_numpy_and_of_the_whole(dtype: str) -> None:
    rng = np.random.default_rng(5)
    for shape in SHAPES:
        x = rng.normal(size=(2, *shape)) + (
            1j * rng.normal(size=(2, *shape)) if dtype[0] == "c" else 0
        )
        t = dn.tensor(x, dtype=dtype)
        limit = {"rtol": 0, "atol": 1e-12 if dtype in ("f64", "c128") else 1e-4}
        got = dn.linalg.svdvals(t)
        assert str(got.dtype) == {"c64": "f32", "c128": "f64"}.get(dtype, dtype)
        np.testing.assert_allclose(got.to_numpy(), np.linalg.svd(x, compute_uv=False), **limit)
        np.testing.assert_array_equal(got.to_numpy(), dn.linalg.svd(t).S.to_numpy())
        if shape[0] == shape[1]:
            x = x + np.conj(np.swapaxes(x, -1, -2))
            t = dn.tensor(x, dtype=dtype)
            got = dn.linalg.eigvalsh(t)
            np.testing.assert_allclose(got.to_numpy(), np.linalg.eigvalsh(x), **limit)
            whole = dn.real(dn.linalg.eigh(t, eps=0.0).eigenvalues)
            np.testing.assert_array_equal(got.to_numpy(), whole.to_numpy())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_alone_of_what_is_not_finite_are_nan(bad: float) -> None:
    x = np.stack([np.eye(3), np.eye(3)])
    x[1, 0, 2] = bad
    for function in (dn.linalg.svdvals, dn.linalg.eigvalsh, dn.linalg.eigvals):
        for own in (x, x + 0j):
            got = function(dn.tensor(own)).to_numpy()
            np.testing.assert_allclose(got[0], 1)
            assert np.isnan(got[1]).all()


def blocks(function: Any, *types: Any) -> list[str]:
    program = dn.compilers.program(dn.debug_expr(function)(*types))
    return [type(node.args[0]).__name__ for node in program.walk() if node.op == "block"]


@pytest.mark.parametrize(("name", "whole"), [("svdvals", "SVD"), ("eigvalsh", "Eigh")])
def test_only_gradients_need_the_vectors(name: str, whole: str) -> None:
    square = dn.template((4, 4), "f64")
    function = getattr(dn.linalg, name)
    assert blocks(function, square) == [dn.blocks.class_name(name)]
    assert whole in blocks(dn.grad(lambda x: dn.sum(function(x))), square)


def test_gradients_of_eigenvalues_alone_belong_to_them() -> None:
    """They are those of `v f'(w) v^-1`, in whichever order the values come."""
    x = np.random.default_rng(8).normal(size=(6, 6))
    weights = np.array([1.0, -2.0, 0.5])
    for own in (x, x + 1j * np.random.default_rng(9).normal(size=(6, 6))):

        def total(t: Any) -> Any:
            w = dn.linalg.eigvals(t)
            return dn.real(dn.sum(weights[0] * w + weights[1] * w**2 + weights[2] * w**3))

        got = dn.grad(total)(dn.tensor(own)).to_numpy()
        power = np.linalg.matrix_power
        want = weights[0] * np.eye(6) + 2 * weights[1] * own + 3 * weights[2] * power(own, 2)
        np.testing.assert_allclose(got, want.T, rtol=1e-9, atol=1e-9)


def test_gradients_of_values_alone() -> None:
    x = np.random.default_rng(6).normal(size=(4, 4))
    u, s, vh = np.linalg.svd(x)
    got = dn.grad(lambda t: dn.sum(dn.linalg.svdvals(t) ** 2))(dn.tensor(x))
    np.testing.assert_allclose(got.to_numpy(), (u * 2 * s) @ vh, atol=1e-12)
    got = dn.grad(lambda t: dn.linalg.norm(t, ord="nuclear"))(dn.tensor(x))
    np.testing.assert_allclose(got.to_numpy(), u @ vh, atol=1e-12)
    v = np.linalg.eigh(x + x.T)[1]
    got = dn.grad(lambda t: dn.linalg.eigvalsh(t)[0])(dn.tensor(x + x.T))
    np.testing.assert_allclose(got.to_numpy(), np.outer(v[:, 0], v[:, 0]), atol=1e-12)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "slogdet": (lambda x: dn.linalg.slogdet(x)[1], lambda x: np.linalg.slogdet(x)[1]),
    "cond": (dn.linalg.cond, np.linalg.cond),
    "cond 1": (lambda x: dn.linalg.cond(x, 1), lambda x: np.linalg.cond(x, 1)),
    "matrix_rank": (dn.linalg.matrix_rank, np.linalg.matrix_rank),
    "norm": (dn.linalg.norm, np.linalg.norm),
    "norm 2": (lambda x: dn.linalg.norm(x, ord=2), lambda x: np.linalg.norm(x, 2)),
    "norm of rows": (
        lambda x: dn.linalg.norm(x, axes=1),
        lambda x: np.linalg.norm(x, axis=1),
    ),
    "norm of columns": (
        lambda x: dn.linalg.norm(x, axes=0, keep_axes=True),
        lambda x: np.linalg.norm(x, axis=0, keepdims=True),
    ),
    "expm": (dn.linalg.expm, scipy.linalg.expm),
    "sqrtm": (dn.linalg.sqrtm, scipy.linalg.sqrtm),
    "logm": (dn.linalg.logm, scipy.linalg.logm),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_that_recur_give_the_same(name: str) -> None:
    """They are compiled after some calls with the same types."""
    ours, theirs = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    for _ in range(20):
        x = rng.normal(size=(4, 4)) + 4 * np.eye(4)
        np.testing.assert_allclose(ours(dn.tensor(x)).to_numpy(), theirs(x), rtol=1e-9, atol=1e-9)


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
