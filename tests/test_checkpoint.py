"""Functions whose derivatives compute again what is inside: the derivatives of the functions."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(25)
POLICIES: list[Any] = [
    None,
    [],
    ["hidden"],
    ("hidden", "turned"),
    {"turned"},
    "dots",
    {"hidden": "device"},
    {"hidden": "host"},
    {"hidden": "host", "turned": "device"},
]
EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


def tensor(*shape: int) -> dn.Tensor:
    return dn.tensor(RNG.standard_normal(shape) / 2)


X, W = tensor(4, 6), tensor(3, 6, 6)


def block(x: Any, w: Any) -> Any:
    hidden = dn.mark(dn.tanh(x @ w), "hidden")
    turned = dn.mark(dn.sin(hidden @ w), "turned")
    return turned * hidden + x


def loss(of_block: Callable[..., Any]) -> Callable[[Any], Any]:
    def of_weights(w: Any) -> Any:
        x = X
        for layer in range(3):
            x = of_block(x, w[layer])
        return dn.sum(x**2)

    return of_weights


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_derivatives_are_those_of_the_function(policy: Any) -> None:
    plain, checkpointed = loss(block), loss(dn.checkpoint(block, policy=policy))
    np.testing.assert_allclose(float(checkpointed(W)), float(plain(W)), **EXACT)
    direction = tensor(3, 6, 6)
    derivatives: list[Callable[[Any], Any]] = [
        lambda f: dn.grad(f)(W),
        lambda f: dn.jit(dn.grad(f))(W),
        lambda f: dn.jvp(f, (W,), (direction,))[1],
        lambda f: dn.hvp(f, (W,), (direction,))[0],
        lambda f: dn.linearize(f, W)[1](direction),
        lambda f: dn.grad(lambda w: dn.sum(dn.grad(f)(w) * direction))(W),
        lambda f: dn.jit(lambda w: dn.jvp(dn.grad(f), (w,), (direction,))[1])(W),
    ]
    for derivative in derivatives:
        got, want = derivative(checkpointed).to_numpy(), derivative(plain).to_numpy()
        np.testing.assert_allclose(got, want, **EXACT)


def operations(fun: Callable[[Any], Any], at: dn.Tensor) -> collections.Counter[str]:
    """How often a function's graph has each operation, without the regions of rules."""
    lines = dn.graph.to_text(dn.debug_expr(fun)(at)).splitlines()
    return collections.Counter(line.split()[2] for line in lines if line.startswith("  %"))


def test_what_is_computed_again() -> None:
    def more(policy: Any) -> dict[str, int]:
        """What the gradient of three layers has beside that of the function."""
        gradient = dn.grad(loss(dn.checkpoint(block, policy=policy)))
        found = operations(gradient, W) - operations(dn.grad(loss(block)), W)
        return {name: found[name] for name in ("dot", "tanh", "sin", "barrier", "transfer")}

    # Both products of each layer, and what comes between. The last sine is not needed.
    everything = {"dot": 6, "tanh": 3, "sin": 3, "barrier": 3, "transfer": 0}
    assert more(None) == more([]) == everything
    assert more(["hidden"]) == {**everything, "dot": 3, "tanh": 0}
    # The sine's derivative needs its argument, and what is marked is its value.
    assert more(["turned"]) == {**everything, "sin": 0}
    assert more("dots") == {**everything, "dot": 0}
    # To the host in the forward pass, and back for the gradient.
    assert more({"hidden": "host"}) == {**more(["hidden"]), "transfer": 6}
    assert more({"hidden": "host", "turned": "device"}) == {
        **more(["hidden", "turned"]),
        "transfer": 6,
    }


def test_convolutions_are_products() -> None:
    x, kernel = tensor(2, 3, 8), tensor(4, 3, 3)

    def convolutions(policy: Any) -> int:
        f = dn.checkpoint(lambda k: dn.tanh(dn.conv(x, k)), policy=policy)
        return operations(dn.grad(lambda k: dn.sum(f(k) ** 2)), kernel)["conv"]

    assert convolutions(None) == convolutions("dots") + 1


def test_only_what_is_used_waits() -> None:
    """A gradient that needs neither inputs nor results keeps none of them."""
    gradient = dn.grad(lambda x: dn.sum(f(x)))
    f = dn.checkpoint(lambda x: dn.mark(dn.exp(x), "exp"), policy=["exp"])
    assert operations(gradient, X)["exp"] == 1
    lines = dn.graph.to_text(dn.debug_expr(gradient)(X)).splitlines()
    (barrier,) = [line for line in lines if "= barrier " in line]
    # The cotangent and the kept value.
    assert barrier.split("barrier ")[1].split(" : ")[0].count("%") == 2


@pytest.mark.parametrize("policy", [None, ["hidden"], "dots"], ids=str)
def test_in_loops_and_branches(policy: Any) -> None:
    checkpointed = dn.checkpoint(block, policy=policy)

    def programs(f: Callable[..., Any]) -> list[Callable[[Any], Any]]:
        return [
            lambda w: dn.scan(X, w, lambda x, layer: (f(x, layer), dn.sum(x)))[0],
            lambda w: dn.for_(X, range(4), lambda x, i: f(x, w[i % 3])),
            lambda w: dn.while_((X, 0), lambda s: s[1] < 4, lambda s: (f(s[0], w[0]), s[1] + 1))[0],
            lambda w: dn.cond([(dn.sum(w) > 0, lambda: f(X, w[0]))], lambda: f(X, w[1] * 2.0)),
            lambda w: dn.cond([(dn.sum(w) < 0, lambda: f(X, w[0]))], lambda: f(X, w[1] * 2.0)),
        ]

    def gradient(program: Callable[[Any], Any]) -> Any:
        return dn.grad(lambda w: dn.sum(program(w) ** 2))(W).to_numpy()

    for got, want in zip(programs(checkpointed), programs(block), strict=True):
        np.testing.assert_allclose(gradient(got), gradient(want), **EXACT)


def test_loops_and_branches_inside() -> None:
    def inside(x: Any, w: Any) -> Any:
        x = dn.for_(x, range(3), lambda x, i: dn.sin(x @ w) + 0.1 * i)
        x = dn.cond([(dn.sum(x) > 0, lambda: x * 2.0)], lambda: -x)
        return dn.while_((x, 0), lambda s: s[1] < 2, lambda s: (dn.tanh(s[0]), s[1] + 1))[0]

    for policy in (None, "dots"):
        got = dn.grad(loss(dn.checkpoint(inside, policy=policy)))(W)
        np.testing.assert_allclose(got.to_numpy(), dn.grad(loss(inside))(W).to_numpy(), **EXACT)


def test_one_inside_of_another() -> None:
    inner = dn.checkpoint(block, policy=["hidden"])

    def pair(x: Any, w: Any) -> Any:
        return dn.mark(inner(inner(x, w), w.mT), "pair")

    for policy in (None, ["pair"], ["hidden", "pair"], "dots"):
        outer = dn.checkpoint(pair, policy=policy)
        plain = dn.grad(loss(lambda x, w: block(block(x, w), w.mT)))(W)
        np.testing.assert_allclose(dn.grad(loss(outer))(W).to_numpy(), plain.to_numpy(), **EXACT)
        twice = dn.hvp(loss(outer), (W,), (W,))[0]
        want = dn.hvp(loss(pair), (W,), (W,))[0]
        np.testing.assert_allclose(twice.to_numpy(), want.to_numpy(), **EXACT)


@pytest.mark.parametrize("policy", [None, {"hidden": "host"}, "dots"], ids=str)
def test_vectorized(policy: Any) -> None:
    xs = dn.stack([X, 2.0 * X, -X])

    def of(f: Callable[..., Any]) -> list[dn.Tensor]:
        def gradient(x: Any) -> Any:
            return dn.grad(lambda w: dn.sum(f(x, w) ** 2))(W[0])

        def over_positions(w: Any) -> Any:
            return dn.sum(dn.vmap(lambda x: f(x, w))(xs) ** 2)

        def second(x: Any) -> Any:
            return dn.hvp(lambda w: dn.sum(f(x, w) ** 2), (W[0],), (W[1],))[0]

        return [dn.vmap(gradient)(xs), dn.grad(over_positions)(W[0]), dn.vmap(second)(xs)]

    for got, want in zip(of(dn.checkpoint(block, policy=policy)), of(block), strict=True):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), **EXACT)


def test_containers_and_options_of_calls() -> None:
    def f(batch: dict[str, Any], *, scale: Any = 1.0, name: str = "") -> dict[str, Any]:
        assert name in ("", "given")
        return {"sum": batch["x"] + batch["y"][0] * scale, "pair": (batch["y"][0], 1)}

    checkpointed = dn.checkpoint(f)
    batch = {"x": X, "y": [2.0 * X, None]}
    found = checkpointed(batch, scale=3.0, name="given")
    assert isinstance(found["pair"], tuple)
    np.testing.assert_allclose(found["sum"].to_numpy(), 7.0 * X.to_numpy(), **EXACT)
    got = dn.grad(lambda b: dn.sum(checkpointed(b, scale=3.0)["sum"]))({"x": X, "y": [X]})
    np.testing.assert_allclose(got["x"].to_numpy(), np.ones((4, 6)))
    np.testing.assert_allclose(got["y"][0].to_numpy(), np.full((4, 6), 3.0))
    assert checkpointed.__name__ == "f"


def test_captured_values_have_gradients() -> None:
    def of(wrap: Callable[..., Any]) -> dn.Tensor:
        return dn.grad(lambda w: dn.sum(wrap(lambda: dn.sin(w) * dn.mark(w * w, "w"))()))(X)

    for policy in (None, ["w"]):
        got = of(lambda f: dn.checkpoint(f, policy=policy))  # noqa: B023
        np.testing.assert_allclose(got.to_numpy(), of(lambda f: f).to_numpy(), **EXACT)


def test_random_numbers_are_the_same_ones() -> None:
    key = dn.random.key(3)

    def dropout(x: Any, w: Any) -> Any:
        kept = dn.random.uniform_split(key, shape=(4, 6)) < 0.5
        return dn.select(kept, dn.tanh(x @ w), 0.0)

    got = dn.grad(loss(dn.checkpoint(dropout)))(W)
    np.testing.assert_allclose(got.to_numpy(), dn.grad(loss(dropout))(W).to_numpy(), **EXACT)


def test_hooks_run_once() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        y = dn.hook(dn.sin(x), lambda value: seen.append(float(value)))
        return y * y

    got = dn.grad(dn.checkpoint(f))(dn.tensor(0.5, dtype="f64"))
    np.testing.assert_allclose(float(got), np.sin(1.0), **EXACT)
    assert seen == pytest.approx([np.sin(0.5)])


def test_rules_inside_hold() -> None:
    def f(x: Any) -> Any:
        return dn.custom_grad(dn.sin(x), [x], lambda g: [g * 5.0]) + dn.stop_grad(x)

    got = dn.grad(dn.checkpoint(f))(dn.tensor(0.5, dtype="f64"))
    assert float(got) == 5.0


def test_sparsity_is_that_of_the_function() -> None:
    def f(x: Any) -> Any:
        return dn.sin(x[1:]) * x[:-1]

    x = tensor(7)
    got, want = dn.sparsity(dn.checkpoint(f), x), dn.sparsity(f, x)
    assert (got != want).nnz == 0
    sparse = dn.jacobian(dn.checkpoint(f), sparse=True)(x)
    np.testing.assert_allclose(sparse.toarray(), dn.jacobian(f)(x).to_numpy(), **EXACT)


def test_dtypes_and_constants() -> None:
    """Integers, complex numbers, and functions without anything to differentiate."""
    f = dn.checkpoint(lambda x, n: (dn.sin(x) * n, n + 1))
    got = dn.grad(lambda x: dn.sum(f(x, 3)[0]))(X)
    np.testing.assert_allclose(got.to_numpy(), 3 * np.cos(X.to_numpy()), **EXACT)
    assert f(X, 3)[1].dtype == (dn.tensor(3) + 1).dtype
    assert float(dn.checkpoint(lambda: dn.sum(dn.iota((4,))))()) == 6
    z = dn.tensor(RNG.standard_normal(3) + 1j)
    of = lambda f: dn.grad(lambda z: dn.sum(dn.abs(f(z)) ** 2))(z).to_numpy()  # noqa: E731
    np.testing.assert_allclose(of(dn.checkpoint(dn.exp)), of(dn.exp), **EXACT)


def test_graphs_come_back_from_text() -> None:
    for policy in POLICIES:
        fun = lambda x, w: dn.sum(dn.checkpoint(block, policy=policy)(x, w))  # noqa: B023, E731
        for traced in (fun, dn.grad(fun)):
            text = dn.graph.to_text(dn.debug_expr(traced)(X, W[0]))
            assert dn.graph.to_text(dn.graph.from_text(text)) == text
