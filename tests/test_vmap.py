"""`vmap`, `map`, `jacobian`, `hessian` and `vjp`, against loops, finite differences and JAX."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn


class Pair(NamedTuple):
    a: Any
    b: Any


RNG = np.random.default_rng(7)


def draw(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def tensor(array: np.ndarray) -> dn.Tensor:
    return dn.tensor(array)


# vmap


def test_axes_in_and_out() -> None:
    a, b = draw(4, 3), draw(3, 4)
    got = dn.vmap(lambda x, y: x * y, in_axes=(0, 1), out_axes=1)(tensor(a), tensor(b))
    np.testing.assert_array_equal(got.to_numpy(), (a * b.T).T)
    got = dn.vmap(lambda x: x.sum(), in_axes=-1)(tensor(a))
    np.testing.assert_allclose(got.to_numpy(), a.sum(0))
    got = dn.vmap(dn.outer, in_axes=(0, None), out_axes=-1)(tensor(a), tensor(b[0]))
    np.testing.assert_array_equal(got.to_numpy(), np.einsum("vi,j->ijv", a, b[0]))


def test_axes_by_name_and_names_of_what_is_left() -> None:
    x = dn.tensor(draw(2, 3), names=["batch", "column"])
    assert dn.vmap(lambda row: row * 2, in_axes="batch")(x).names == (None, "column")
    assert dn.vmap(lambda row: row.sum(axes="column"), in_axes="batch")(x).shape == (2,)


def test_containers_in_and_out() -> None:
    a, b, c = draw(4, 2), draw(3, 4), draw(5)
    fun = lambda p, q: {"sum": p.a.sum() + p.b.sum(), "all": (q["c"] * 2, 1)}  # noqa: E731
    got = dn.vmap(fun, in_axes=(Pair(0, 1), {"c": None}), out_axes={"sum": 0, "all": (1, None)})(
        Pair(tensor(a), tensor(b)), {"c": tensor(c)}
    )
    np.testing.assert_allclose(got["sum"].to_numpy(), a.sum(1) + b.sum(0))
    np.testing.assert_array_equal(got["all"][0].to_numpy(), np.repeat(c[:, None] * 2, 4, axis=1))
    assert got["all"][1] == 1
    # One axis for all tensors of a container.
    got = dn.vmap(lambda p: p.a * p.b)(Pair(tensor(a), tensor(a)))
    np.testing.assert_array_equal(got.to_numpy(), a * a)


def test_nesting() -> None:
    a, b = draw(3, 2), draw(4, 2)
    pairs = dn.vmap(lambda x: dn.vmap(lambda y: dn.dot(x, y))(tensor(b)))(tensor(a))
    np.testing.assert_allclose(pairs.to_numpy(), a @ b.T)
    cube = draw(2, 3, 4)
    got = dn.vmap(dn.vmap(lambda x: x / x.sum()))(tensor(cube))
    np.testing.assert_allclose(got.to_numpy(), cube / cube.sum(-1, keepdims=True))
    # Tensors that are already vectorized, with a name such as vmap gives.
    x = dn.vectorize(tensor(cube), "vmap 1")
    got = dn.vmap(lambda row: row.sum())(x)
    assert got.vectorized_axes == (("vmap 1", 2),)
    np.testing.assert_allclose(got.to_numpy(), cube.sum(-1))


def test_inside_and_outside_of_definitions() -> None:
    a = draw(3, 2)
    inside = dn.jit(lambda x: dn.vmap(lambda row: row.sum())(x))(tensor(a))
    traced = []

    @dn.jit
    def row_sum(row):
        traced.append(1)
        return row.sum()

    mapped = dn.vmap(row_sum)
    outside = mapped(tensor(a))
    mapped(tensor(a))
    np.testing.assert_allclose(inside.to_numpy(), a.sum(1))
    np.testing.assert_allclose(outside.to_numpy(), a.sum(1))
    # The axis has the same name at each call, so that one version serves all calls.
    assert len(traced) == 1


def test_control_flow_and_gradients() -> None:
    a = np.array([0.5, 2.0, 3.0])
    f = lambda x: dn.if_(x > 1, lambda: x * x, lambda: dn.sin(x))  # noqa: E731
    np.testing.assert_allclose(
        dn.vmap(f)(tensor(a)).to_numpy(), np.where(a > 1, a * a, np.sin(a)), rtol=1e-12
    )
    np.testing.assert_allclose(
        dn.vmap(dn.grad(f))(tensor(a)).to_numpy(), np.where(a > 1, 2 * a, np.cos(a)), rtol=1e-12
    )
    double = lambda x: dn.while_(x, lambda s: s < 10, lambda s: s * 2)  # noqa: E731
    np.testing.assert_array_equal(dn.vmap(double)(tensor(a)).to_numpy(), [16.0, 16.0, 12.0])
    np.testing.assert_array_equal(dn.vmap(dn.grad(double))(tensor(a)).to_numpy(), [32.0, 8.0, 4.0])


def test_per_example_gradients() -> None:
    w, x, y = draw(3), draw(5, 3), draw(5)
    loss = lambda w, x, y: (dn.dot(x, w) - y) ** 2  # noqa: E731
    got = dn.vmap(dn.grad(loss), in_axes=(None, 0, 0))(tensor(w), tensor(x), tensor(y))
    np.testing.assert_allclose(got.to_numpy(), 2 * (x @ w - y)[:, None] * x, rtol=1e-12)


VMAP_ERRORS = [
    (lambda: dn.vmap(dn.add)(dn.iota((2,)), dn.iota((3,))), "sizes"),
    (lambda: dn.vmap(dn.add, in_axes=(0,))(dn.iota((2,)), dn.iota((2,))), "entries"),
    (lambda: dn.vmap(dn.add, in_axes=None)(1, 2), "no axis"),
    (lambda: dn.vmap(lambda x: x, in_axes=({"a": 0},))([dn.iota((2,))]), "in_axes"),
    (lambda: dn.vmap(lambda x: x, out_axes=None)(dn.iota((2,))), "out_axes"),
    (lambda: dn.vmap(lambda x: (x, x), out_axes=(0,))(dn.iota((2,))), "out_axes"),
]


@pytest.mark.parametrize(("call", "text"), VMAP_ERRORS)
def test_vmap_refuses(call, text: str) -> None:
    with pytest.raises(dn.OptionError, match=text):
        call()


def test_vmap_refuses_axes_that_are_not_there() -> None:
    with pytest.raises(dn.AxisError):
        dn.vmap(lambda x: x, in_axes=1)(dn.iota((2,)))
    with pytest.raises(dn.AxisError):
        dn.vmap(lambda x: x, out_axes=2)(dn.iota((2,)))
    # After an error the nesting level is restored.
    assert dn.vmap(lambda x: x)(dn.iota((2,))).to_list() == [0, 1]


# map


def test_map() -> None:
    x = dn.tensor([[1, 2], [3, 4]], names=["r", None])
    got = dn.map(x, lambda e: dn.if_(e > 2, lambda: e * 10, lambda: e))
    assert (got.to_list(), got.names) == ([[1, 2], [30, 40]], ("r", None))
    assert dn.map(x, lambda e: e, dtype="f16").dtype == "f16"
    assert dn.map(x, lambda e: 7).to_list() == [[7, 7], [7, 7]]
    assert float(dn.map(3, lambda e: e + 1)) == 4
    inner = dn.map(dn.vectorize(x, "v"), lambda e: e + 1)
    assert (inner.vectorized_axes, inner.to_list()) == ((("v", 2),), [[2, 3], [4, 5]])
    with pytest.raises(dn.ShapeError, match="scalar"):
        dn.map(x, lambda e: dn.iota((2,)))
    # Nested maps use different axes.
    rows, columns = dn.tensor([1, 2]), dn.tensor([10, 20])
    sums = dn.map(rows, lambda a: dn.map(columns, lambda b: a * b).sum())
    assert sums.to_list() == [30, 60]
    assert dn.grad(lambda t: dn.map(t, lambda e: e * e).sum())(dn.tensor([1.0, 3.0])).to_list() == [
        2.0,
        6.0,
    ]


# jacobian, hessian, vjp


def difference(fun, x: np.ndarray) -> np.ndarray:
    """Central differences of an array-valued function: the value's axes, then the variable's."""
    step = 1e-6
    columns = []
    for at in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[at] += step
        low[at] -= step
        columns.append((fun(tensor(high)).to_numpy() - fun(tensor(low)).to_numpy()) / (2 * step))
    return np.stack(columns, axis=-1).reshape(columns[0].shape + x.shape)


FUNCTIONS = {
    "elementwise": lambda x: dn.sin(x) * x,
    "matrix": lambda x: dn.dot(x, x.transpose()),
    "reduction": lambda x: dn.logsumexp(x, axes=[1]),
    "scalar": lambda x: (x**3).sum() / 6,
    "loop": lambda x: dn.for_(x, range(3), lambda s, i: s * x + 1.0),
    "while": lambda x: dn.while_(x, lambda s: dn.sum(s * s) < 50, lambda s: s * 1.5),
    "cond": lambda x: dn.if_(x.sum() > 0, lambda: x * x, lambda: dn.exp(x)),
    "rule": lambda x: dn.custom_grad(x * x, [x], lambda g: [g * 2 * x]),
    "slices": lambda x: dn.concatenate([x[:, :1] * x[:, 1:2], x[:, ::-1]], axis=1),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_jacobian(name: str) -> None:
    fun = FUNCTIONS[name]
    x = np.array([[0.3, -0.7, 1.1], [0.9, 0.4, -0.2]])
    want = difference(fun, x)
    got = dn.jacobian(fun)(tensor(x))
    assert got.shape == want.shape
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-5, atol=1e-7)
    inside = dn.jit(lambda t: dn.jacobian(fun)(t))(tensor(x))
    np.testing.assert_allclose(inside.to_numpy(), got.to_numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["elementwise", "reduction", "scalar", "loop", "cond"])
def test_hessian(name: str) -> None:
    fun = FUNCTIONS[name]
    x = np.array([[0.3, -0.7, 1.1], [0.9, 0.4, -0.2]])
    want = difference(lambda t: dn.jacobian(fun)(t), x)
    got = dn.hessian(fun)(tensor(x))
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-4, atol=1e-6)


def test_jacobian_over_containers_and_several_arguments() -> None:
    x, y = tensor(draw(2)), tensor(draw(3))
    fun = lambda x, y: {"outer": dn.outer(x, y), "sum": x.sum()}  # noqa: E731
    got = dn.jacobian(fun, argnums=(0, 1))(x, y)
    assert got["outer"][0].shape == (2, 3, 2)
    assert got["outer"][1].shape == (2, 3, 3)
    assert got["sum"][1].to_list() == [0.0, 0.0, 0.0]
    pair = dn.jacobian(lambda p: p.a * p.b)(Pair(x, tensor(draw(1))))
    assert (pair.a.shape, pair.b.shape) == ((2, 2), (2, 1))


def test_jacobian_keeps_names_and_takes_plain_numbers() -> None:
    x = dn.tensor([1.0, 2.0], names=["in"])
    got = dn.jacobian(lambda t: dn.outer(t, dn.iota((3,))).rename(["p", "q"]))(x)
    assert got.names == ("p", "q", "in")
    assert float(dn.jacobian(lambda t: t**3)(2.0)) == 12.0
    assert dn.jacobian(lambda t: dn.broadcast(t, (0,)))(2.0).shape == (0,)


def test_jacobian_of_each_position() -> None:
    x = np.array([[0.3, -0.7], [0.9, 0.4]])
    got = dn.vmap(dn.jacobian(dn.sin))(tensor(x))
    np.testing.assert_allclose(got.to_numpy(), np.stack([np.diag(np.cos(row)) for row in x]))
    got = dn.vmap(dn.hessian(lambda t: (t**3).sum()))(tensor(x))
    np.testing.assert_allclose(got.to_numpy(), np.stack([np.diag(6 * row) for row in x]))
    vectorized = dn.jacobian(lambda t: t * t)(dn.vectorize(tensor(x), "v"))
    assert vectorized.vectorized_axes == (("v", 2),)
    np.testing.assert_allclose(vectorized.to_numpy(), np.stack([np.diag(2 * row) for row in x]))


def test_vjp() -> None:
    x, y = draw(2, 3), draw(3)
    value, back = dn.vjp(lambda x, y: (dn.dot(x, y), y * 2), argnums=(0, 1))(tensor(x), tensor(y))
    np.testing.assert_allclose(value[0].to_numpy(), x @ y)
    g, h = draw(2), draw(3)
    grad_x, grad_y = back((tensor(g), tensor(h)))
    np.testing.assert_allclose(grad_x.to_numpy(), np.outer(g, y))
    np.testing.assert_allclose(grad_y.to_numpy(), g @ x + 2 * h)
    # Many cotangents at once.
    many = dn.vmap(lambda g: back((g, tensor(h)))[1])(tensor(np.stack([g, 2 * g])))
    np.testing.assert_allclose(many.to_numpy(), np.stack([g @ x + 2 * h, 2 * g @ x + 2 * h]))
    assert float(dn.jit(lambda x: dn.vjp(lambda t: t * t)(x)[1](1.0))(3.0)) == 6.0
    with pytest.raises(dn.ContainerError, match="cotangent"):
        back(tensor(g))
    # An axis that the variable has and the value lacks cannot be an axis of several cotangents.
    _, summed = dn.vjp(lambda t: dn.devectorize(t).sum())(dn.vectorize(tensor(h), "v"))
    assert summed(1.0).to_list() == [1.0, 1.0, 1.0]
    with pytest.raises(dn.AxisError, match='"v"'):
        summed(dn.vectorize(dn.tensor([1.0, 2.0]), "v"))
    with pytest.raises(dn.ShapeError, match="equal"):
        back((tensor(h), tensor(h)))


def test_is_what_jax_gives() -> None:
    import jax

    jnp = jax.numpy
    jax.config.update("jax_enable_x64", True)
    w, x = draw(3, 2), draw(5, 3)

    def ours(w, x):
        return dn.tanh(dn.dot(x, w)) / (1.0 + (x * x).sum())

    def theirs(w, x):
        return jnp.tanh(jnp.dot(x, w)) / (1.0 + (x * x).sum())

    pairs = [
        (dn.vmap(ours, (None, 0), 1), jax.vmap(theirs, (None, 0), 1)),
        (dn.vmap(dn.jacobian(ours), (None, 0)), jax.vmap(jax.jacrev(theirs), (None, 0))),
        (
            dn.vmap(dn.hessian(ours, argnums=1), (None, 0)),
            jax.vmap(jax.hessian(theirs, argnums=1), (None, 0)),
        ),
    ]
    for mine, other in pairs:
        got, want = mine(tensor(w), tensor(x)).to_numpy(), np.asarray(other(w, x))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
