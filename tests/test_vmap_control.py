"""`vmap` of loops, branches, random numbers, factorizations and derivatives, against loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn

RNG = np.random.default_rng(23)
POINTS = np.array([[0.3, -0.7, 1.1], [2.0, 0.4, -0.2], [-1.5, 0.9, 0.6], [0.1, 0.2, 0.05]])
MATRICES = RNG.normal(size=(4, 3, 3)) + 4.0 * np.eye(3)


def stacked(fun: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """The results of a function of each part, by Python's loop."""
    each = [fun(*(dn.tensor(part) for part in parts)) for parts in zip(*arrays, strict=True)]
    return dn.tree.map(lambda *parts: dn.stack(parts), *each)


def close(got: Any, want: Any) -> None:
    assert dn.tree.structure(got) == dn.tree.structure(want)
    for ours, other in zip(dn.tree.leaves(got), dn.tree.leaves(want), strict=True):
        assert ours.shape == other.shape
        np.testing.assert_allclose(ours.to_numpy(), other.to_numpy(), rtol=1e-9, atol=1e-12)


def doubled(x: Any) -> Any:
    """As many trips as the element needs; one trip more would divide by zero."""
    start = dn.abs(x[0]) + 0.1
    state = dn.while_(
        (start, dn.tensor(1.0, dtype="f64")),
        lambda s: s[0] < 3.0,
        lambda s: (s[0] * 2.0, s[1] * dn.sqrt(3.0 - s[0]) + x[1]),
    )
    return state[0] + state[1] * x[2]


def newton(x: Any) -> Any:
    """A loop in a loop, each with its own number of trips for each element."""
    target = dn.abs(x) + 0.5

    def root(a: Any) -> Any:
        return dn.while_(
            dn.maximum(a, 1.0),
            lambda s: dn.abs(s * s - a) > 1e-10,
            lambda s: (s + a / s) / 2,
        )

    def step(state: Any) -> Any:
        total, at = state
        return total + root(target[at]) * x[at], at + 1

    count = dn.if_(x[0] > 0, lambda: dn.s32(3), lambda: dn.s32(2))
    return dn.while_((0.0 * x[0], dn.s32(0)), lambda s: s[1] < count, step)[0]


def branches(x: Any) -> Any:
    return dn.cond(
        [
            (x[0] > 1.0, lambda: dn.sqrt(x[0] - 1.0) * x[1]),
            (x[0] > 0.0, lambda: dn.log(x[0]) + x[2] ** 2),
        ],
        lambda: dn.log(-x[0]) * dn.sum(x),
    )


def scanned(x: Any) -> Any:
    last, outs = dn.scan(x[0], x, lambda s, a: (s * a + dn.sin(s), s * s), reverse=True)
    return last + dn.sum(outs * dn.tensor(np.array([1.0, 2.0, 3.0])))


def nested_branches(x: Any) -> Any:
    return dn.if_(
        x[0] > 0,
        lambda: dn.if_(x[1] > 0, lambda: dn.sqrt(x[1]) * x[0], lambda: dn.sqrt(-x[1]) + x[2]),
        lambda: dn.for_(x[2], range(3), lambda s, i: dn.if_(s > i, lambda: s - x[0], lambda: s)),
    )


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "while": doubled,
    "nested whiles": newton,
    "cond": branches,
    "nested conds": nested_branches,
    "for": lambda x: dn.for_(x, range(3), lambda s, i: s * x + i)[0],
    "scan": scanned,
    "associative_scan": lambda x: dn.sum(
        dn.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, x * x))[1]
    ),
    "sort": lambda x: dn.dot(dn.sort(x), dn.tensor(np.array([1.0, -2.0, 3.0]))),
    "argsort": lambda x: dn.dot(dn.take(x, dn.argsort(-x)), dn.tensor(np.array([1.0, 2.0, 4.0]))),
    "top": lambda x: dn.sum(dn.top_k(x, 2)[0] * dn.tensor(np.array([1.0, 3.0]))),
    "solve": lambda x: dn.sum(dn.linalg.solve(dn.outer(x, x) + dn.eye(3, dtype="f64"), x)),
    "cholesky": lambda x: dn.sum(dn.linalg.cholesky(dn.outer(x, x) + dn.eye(3, dtype="f64"))),
    "det": lambda x: dn.linalg.determinant(
        dn.outer(x, x) + dn.put_diagonal(dn.eye(3, dtype="f64"), x)
    ),
    "eigh": lambda x: dn.sum(dn.linalg.eigh(dn.outer(x, x))[0] ** 2),
    "fft": lambda x: dn.sum(dn.abs(dn.fft(x)) ** 2),
    "slice": lambda x: dn.sum(dn.slice(x, [dn.argmax(x) % 2], [2]) ** 3),
    "rule": lambda x: dn.sum(dn.custom_grad(x * x, [x], lambda g: [g * 3.0 * x])),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name: str, compiled: bool) -> None:
    fun = FUNCTIONS[name]
    wrap = dn.jit if compiled else lambda f: f
    x = dn.tensor(POINTS)
    close(wrap(dn.vmap(fun))(x), stacked(fun, POINTS))
    # vmap of grad, and grad of vmap.
    slopes = stacked(dn.grad(fun), POINTS)
    assert np.isfinite(slopes.to_numpy()).all()
    close(wrap(dn.vmap(dn.grad(fun)))(x), slopes)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    total = wrap(dn.grad(lambda x: dn.sum(dn.vmap(fun)(x) * weights)))(x)
    close(total, dn.tensor(slopes.to_numpy() * weights[:, None]))
    if name == "rule":
        return
    # jvp of vmap, and vmap of jvp.
    along = np.random.default_rng(3).normal(size=POINTS.shape)
    want = stacked(lambda x, t: dn.jvp(fun, (x,), (t,)), POINTS, along)
    close(wrap(lambda x, t: dn.jvp(dn.vmap(fun), (x,), (t,)))(x, along), want)
    close(wrap(dn.vmap(lambda x, t: dn.jvp(fun, (x,), (t,))))(x, along), want)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nested(name: str) -> None:
    fun = FUNCTIONS[name]
    grid = np.stack([POINTS[:2], POINTS[2:] * 1.3])
    inner = lambda rows: stacked(fun, rows.to_numpy())  # noqa: E731
    close(dn.vmap(dn.vmap(fun))(dn.tensor(grid)), stacked(inner, grid))
    close(
        dn.vmap(dn.vmap(fun, in_axes=1, out_axes=-1), in_axes=2)(
            dn.tensor(np.moveaxis(grid, (0, 1), (2, 1)))
        ),
        stacked(inner, grid),
    )
    # Each of two arguments has an axis of its own.
    pair = lambda x, y: fun(x * y)  # noqa: E731
    got = dn.vmap(dn.vmap(pair, in_axes=(None, 0)), in_axes=(0, None))(POINTS[:2], POINTS[1:])
    want = dn.stack([stacked(lambda y, x=x: pair(x, y), POINTS[1:]) for x in POINTS[:2]])
    close(got, want)


def test_a_lane_that_is_done_leaves_no_trace() -> None:
    """Its next trip would divide by zero, and read out of range."""

    def countdown(n: Any, w: Any) -> Any:
        table = dn.tensor(np.array([1.0, 2.0, 3.0, 4.0]))
        body = lambda s: (s[0] - 1, s[1] + w * table[s[0] - 1] / dn.as_type(s[0], "f64"))  # noqa: E731
        return dn.while_((n, 0.0 * w), lambda s: s[0] > 0, body)[1]

    counts = np.array([0, 3, 1, 4])
    mapped = dn.vmap(countdown, in_axes=(0, None))
    terms = [sum(k / k for k in range(1, n + 1)) for n in counts]
    np.testing.assert_allclose(mapped(counts, np.float64(2.0)).to_numpy(), np.array(terms) * 2.0)
    slope = dn.grad(lambda w: dn.sum(mapped(counts, w)))(np.float64(2.0))
    assert float(slope) == sum(terms)


def test_what_a_branch_makes_of_others_is_dropped() -> None:
    x = np.array([0.0, 4.0, -1.0, 2.0])
    root = lambda x: dn.if_(x > 0, lambda: dn.sqrt(x), lambda: 0.5 * x)  # noqa: E731
    want = np.where(x > 0, 0.5 / np.sqrt(np.where(x > 0, x, 1.0)), 0.5)
    np.testing.assert_allclose(dn.vmap(dn.grad(root))(x).to_numpy(), want)
    # A tensor that is the same for all gets the sum of the branch's gradients alone.
    total = lambda w: dn.sum(  # noqa: E731
        dn.vmap(lambda x: dn.if_(x > 0, lambda: w * dn.log(x), lambda: w * x))(x)
    )
    assert float(dn.grad(total)(np.float64(1.0))) == np.log(4.0) - 1.0 + np.log(2.0)
    _, tangent = dn.jvp(total, (np.float64(1.0),), (np.float64(1.0),))
    assert float(tangent) == np.log(4.0) - 1.0 + np.log(2.0)
    # A loop in a branch would never end for the others.
    down = lambda x: dn.if_(  # noqa: E731
        x > 0, lambda: dn.while_(x, lambda s: s != 0.0, lambda s: s - 1.0), lambda: x
    )
    np.testing.assert_array_equal(dn.vmap(down)(x + 0.0).to_numpy(), [0.0, 0.0, -1.0, 0.0])
    no_lanes = dn.vmap(root)(np.zeros(0))
    assert no_lanes.shape == (0,)


def test_branches_that_no_lane_takes() -> None:
    ran: list[str] = []

    def seen(name: str, x: Any) -> Any:
        return dn.hook(x, lambda _: ran.append(name))

    def fun(x: Any) -> Any:
        return dn.cond(
            [(x > 5, lambda: seen("large", x * 2)), (x > 0, lambda: seen("positive", x + 1))],
            lambda: seen("rest", -x),
        )

    np.testing.assert_array_equal(dn.vmap(fun)(np.array([1.0, 2.0])).to_numpy(), [2.0, 3.0])
    assert ran == ["positive"]


def test_hooks_see_all_positions() -> None:
    seen: list[np.ndarray] = []
    look = lambda x: dn.hook(x * 2, lambda v: seen.append(v.to_numpy()))  # noqa: E731
    got = dn.vmap(lambda x: dn.for_(x, range(2), lambda s, i: look(s)))(np.array([1.0, 3.0]))
    np.testing.assert_array_equal(got.to_numpy(), [4.0, 12.0])
    np.testing.assert_array_equal(seen, [[2.0, 6.0], [4.0, 12.0]])


DRAWS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda key: dn.random.uniform(key, shape=(5,)),
    "normal": lambda key: dn.random.normal(key, shape=(2, 3)),
    "randint": lambda key: dn.random.randint(key, 0, 100, shape=(7,)),
    "bernoulli": lambda key: dn.random.bernoulli(key, 0.3, shape=(9,)),
    "gamma": lambda key: dn.random.gamma(key, 0.7, shape=(4,)),
    "poisson": lambda key: dn.random.poisson(key, 4.0, shape=(4,)),
    "shuffle": lambda key: dn.random.shuffle(key, dn.iota((6,))),
    "choice": lambda key: dn.random.choice(key, dn.iota((6,)), samples=3, replace=False),
    "split": lambda key: (dn.random.split(key, 3), dn.random.fold_in(key, 7)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_those_of_each_key(name: str) -> None:
    keys = np.array([[1, 2], [3, 4], [5, 6]], np.uint32)
    want = stacked(DRAWS[name], keys)
    for got in (dn.vmap(DRAWS[name])(keys), dn.jit(dn.vmap(DRAWS[name]))(keys)):
        for ours, other in zip(dn.tree.leaves(got), dn.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(ours.to_numpy(), other.to_numpy())


FACTORS: dict[str, Callable[[Any], Any]] = {
    "qr": lambda a: dn.linalg.qr(a),
    "lu": lambda a: dn.linalg.lu(a),
    "svd": lambda a: dn.linalg.svd(a)[1],
    "invert": lambda a: dn.linalg.invert(a),
    "eigvals": lambda a: dn.sort(dn.abs(dn.linalg.eig(a)[0])),
    "pinv": lambda a: dn.linalg.pinv(a),
    "slogdet": lambda a: dn.linalg.slogdet(a),
    "matrix_power": lambda a: dn.linalg.matrix_power(a, 3),
    "expm": lambda a: dn.linalg.expm(a),
    "norm": lambda a: dn.linalg.norm(a),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factorizations(name: str) -> None:
    got, want = dn.vmap(FACTORS[name])(MATRICES), stacked(FACTORS[name], MATRICES)
    close(list(dn.tree.leaves(got)), list(dn.tree.leaves(want)))


def test_is_what_jax_gives() -> None:
    import jax

    jnp, lax = jax.numpy, jax.lax
    jax.config.update("jax_enable_x64", True)

    def theirs(x: Any) -> Any:
        start = jnp.abs(x[0]) + 0.1
        looped = lax.while_loop(lambda s: s < 3.0, lambda s: s * 2.0, start)
        return lax.cond(x[1] > 0, lambda: looped * x[2], lambda: jnp.sin(looped) + x[0])

    def ours(x: Any) -> Any:
        start = dn.abs(x[0]) + 0.1
        looped = dn.while_(start, lambda s: s < 3.0, lambda s: s * 2.0)
        return dn.if_(x[1] > 0, lambda: looped * x[2], lambda: dn.sin(looped) + x[0])

    np.testing.assert_allclose(
        dn.vmap(ours)(POINTS).to_numpy(), np.asarray(jax.vmap(theirs)(POINTS)), rtol=1e-12
    )
    # JAX has no reverse mode through its while loop.
    along = np.random.default_rng(5).normal(size=POINTS.shape)
    _, got = dn.jvp(dn.vmap(ours), (POINTS,), (along,))
    _, want = jax.jvp(jax.vmap(theirs), (POINTS,), (along,))
    np.testing.assert_allclose(got.to_numpy(), np.asarray(want), rtol=1e-12)
