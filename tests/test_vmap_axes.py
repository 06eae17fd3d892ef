"""`vmap`: axes for containers of all kinds, axes with names, and exchanges along them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn

RNG = np.random.default_rng(31)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: dn.Static[str] = "layer"


class Box:
    def __init__(self, content: Any, label: str) -> None:
        self.content, self.label = content, label


dn.register_container(Box, lambda box: ([box.content], box.label), lambda r, c: Box(c[0], r))

A, B = RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4))


def same(got: dn.Tensor, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.to_numpy(), want)


# containers

CONTAINERS: dict[str, tuple[Any, Any]] = {
    "one axis for all": (Pair(A, B.T), 0),
    "a tuple for a named tuple": (Pair(A, B), (0, -1)),
    "a list for a tuple": ((A, B), [-2, 1]),
    "a named tuple": (Pair(A, B), Pair(0, 1)),
    "a dict in another order": ({"a": A, "b": B}, {"b": 1, "a": 0}),
    "a dict for another mapping": (OrderedDict(a=A, b=B), {"b": -1, "a": 0}),
    "a dataclass": (Layer(A, B), Layer(0, 1)),
    "one axis for a dataclass": (Layer(A, B.T), -2),
    "a registered class": (Box((A, B), "x"), Box((0, 1), "x")),
    "a prefix": ({"a": A, "b": B}, {"a": 0, "b": 1}),
    "strings and None inside": ({"a": A, "b": (B, None, "fast")}, {"a": 0, "b": (1, None, None)}),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_axes_of_containers(name: str) -> None:
    value, axes = CONTAINERS[name]
    got = dn.vmap(lambda v: dn.dot(*dn.tree.leaves(v)), in_axes=(axes,))(value)
    np.testing.assert_allclose(got.to_numpy(), (A * B.T).sum(1))
    # The same container comes out, with each axis where it was.
    back = dn.vmap(lambda v: dn.tree.map(lambda t: t * 2, v), in_axes=[axes], out_axes=axes)(value)
    assert type(back) is type(value)
    assert dn.tree.structure(back) == dn.tree.structure(value)
    for ours, own in zip(dn.tree.leaves(back), dn.tree.leaves(value), strict=True):
        same(ours, own * 2)


def test_leaves_that_are_not_mapped() -> None:
    seen: list[Any] = []

    def fun(params: dict[str, Any], x: Any) -> Any:
        seen.append(params)
        return {"y": x * params["w"], "w": params["w"], "n": params["n"] + 1}

    params = {"w": dn.tensor(2.0), "n": 3}
    got = dn.vmap(fun, in_axes=(None, 0), out_axes={"y": 0, "w": None, "n": None})(params, A)
    assert seen[0] is params
    same(got["y"], (A * np.float32(2.0)))
    assert got["w"] is params["w"]
    assert got["n"] == 4
    # A part of a container.
    mixed = dn.vmap(fun, in_axes=({"w": 0, "n": None}, None), out_axes={"y": 1, "w": 0, "n": None})
    got = mixed({"w": A[:, 0], "n": 3}, A[0])
    same(got["y"], np.outer(A[0], A[:, 0]))
    assert (seen[1]["n"], got["n"]) == (3, 4)
    # A number in a result is the same for all.
    same(dn.vmap(lambda x: (x, 1.0))(A)[1], np.ones(4, np.float32))


def test_names_as_axes() -> None:
    x = dn.tensor(A, names=["batch", "column"])
    y = dn.tensor(B, names=["row", "batch"])
    got = dn.vmap(lambda p: p[0] * p[1].rename([None]), in_axes="batch")((x, y))
    same(got, A * B.T)
    assert got.names == (None, "column")


def test_keyword_arguments_are_whole() -> None:
    got = dn.vmap(lambda x, *, w: dn.dot(w, x))(A, w=dn.tensor(B.T))
    np.testing.assert_allclose(got.to_numpy(), A @ B)


def test_axis_size_without_mapped_arguments() -> None:
    same(dn.vmap(lambda: dn.mesh_index("i") * 2, axis_name="i", axis_size=3)(), [0, 2, 4])
    same(dn.vmap(lambda w: w + 1, in_axes=None, axis_size=2)(A[0]), np.stack([A[0] + 1] * 2))
    same(dn.vmap(lambda x: x, axis_size=4)(A), A)
    assert dn.vmap(lambda: dn.mesh_index("i"), axis_name="i", axis_size=0)().shape == (0,)


# exchanges

# Sums of quarters are exact in any order.
X = RNG.integers(-8, 9, size=(4, 6)) / 4


def over(fun: Any, *args: Any, **options: Any) -> Any:
    return dn.vmap(fun, axis_name="i", **options)(*args)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_exchanges(compiled: bool) -> None:
    wrap = dn.jit if compiled else lambda f: f
    run = lambda fun, **options: wrap(dn.vmap(fun, axis_name="i", **options))(X)  # noqa: E731
    # The sum, the greatest and the least are the same at all positions.
    same(run(lambda x: dn.all_reduce(x, "i"), out_axes=None), X.sum(0))
    same(run(lambda x: dn.all_reduce(x, "i", op="max"), out_axes=None), X.max(0))
    same(run(lambda x: dn.all_reduce(x, "i", op="min")), np.stack([X.min(0)] * 4))
    mean = lambda x: dn.all_reduce(x, "i") / dn.mesh_size("i")  # noqa: E731
    np.testing.assert_allclose(run(lambda x: x - mean(x)).to_numpy(), X - X.mean(0), atol=1e-15)
    same(run(lambda x: dn.all_gather(x, "i"), out_axes=None), X.reshape(-1))
    same(run(lambda x: dn.all_gather(x[None], "i"), out_axes=None), X)
    square = run(lambda x: dn.all_gather(x.reshape(2, 3), "i", axis=1), out_axes=None)
    same(square, np.concatenate(list(X.reshape(4, 2, 3)), axis=1))
    same(run(lambda x: x * dn.mesh_index("i")), X * np.arange(4)[:, None])
    ring = [(at, (at + 1) % 4) for at in range(4)]
    same(run(lambda x: dn.collective_permute(x, "i", pairs=ring)), np.roll(X, 1, axis=0))
    some = run(lambda x: dn.collective_permute(x, "i", pairs=[(0, 3), (3, 1)]))
    same(some, np.stack([0 * X[0], X[3], 0 * X[0], X[0]]))
    got = wrap(dn.vmap(lambda x: dn.reduce_scatter(x, "i"), axis_name="i"))(X[:, :4])
    same(got, X[:, :4].sum(0)[:, None])


def test_a_tensor_that_is_the_same_at_all_positions() -> None:
    w = dn.tensor([1.0, 2.0])
    same(over(lambda x: dn.all_reduce(w, "i"), X, out_axes=None), [4.0, 8.0])
    same(over(lambda x: dn.all_gather(w, "i"), X, out_axes=None), [1.0, 2.0] * 4)
    same(over(lambda x: dn.reduce_scatter(dn.tile(w, [2]), "i"), X), [[4.0], [8.0]] * 2)


def test_dtypes_are_kept() -> None:
    small = dn.tensor([200, 100], dtype="u8")
    got = over(lambda x: dn.all_reduce(x, "i"), small, out_axes=None)
    assert (got.dtype, int(got)) == ("u8", 44)
    assert over(lambda x: dn.all_reduce(x, "i"), dn.tensor(X, dtype="f16")).dtype == "f16"
    nans = over(lambda x: dn.all_reduce(x, "i", op="max"), np.array([1.0, np.nan]), out_axes=None)
    assert np.isnan(float(nans))


def test_several_axes() -> None:
    grid = RNG.normal(size=(2, 3, 2))
    inner = lambda fun, **options: dn.vmap(  # noqa: E731
        dn.vmap(fun, axis_name="j", **options), axis_name="i", **options
    )(grid)
    np.testing.assert_allclose(
        inner(lambda x: dn.all_reduce(x, ["i", "j"]), out_axes=None).to_numpy(), grid.sum((0, 1))
    )
    same(inner(lambda x: dn.all_gather(x, ["i", "j"]), out_axes=None), grid.reshape(-1))
    turned = np.swapaxes(grid, 0, 1).reshape(-1)
    same(inner(lambda x: dn.all_gather(x, ["j", "i"]), out_axes=None), turned)
    same(inner(lambda x: dn.mesh_index(["i", "j"])), np.arange(6).reshape(2, 3))
    assert int(inner(lambda x: dn.mesh_size(["i", "j"]) + 0 * x[0])[0, 0]) == 6
    six = RNG.normal(size=(2, 3, 6))
    got = dn.vmap(
        dn.vmap(lambda x: dn.reduce_scatter(x, ["i", "j"]), axis_name="j"), axis_name="i"
    )(six)
    np.testing.assert_allclose(got.to_numpy(), six.sum((0, 1)).reshape(2, 3, 1))
    # The inner axis alone.
    np.testing.assert_allclose(
        dn.vmap(dn.vmap(lambda x: dn.all_reduce(x, "i"), axis_name="j"), axis_name="i")(
            grid
        ).to_numpy(),
        np.stack([grid.sum(0)] * 2),
    )


def test_a_compiled_function_knows_the_axes_around_its_call() -> None:
    number = dn.jit(lambda w: w * dn.mesh_index("i"))
    for size in (3, 4):
        got = dn.vmap(lambda: number(2), axis_name="i", axis_size=size)()
        assert got.to_list() == list(range(0, 2 * size, 2))
    with pytest.raises(dn.TraceError, match="for an axis_name"):
        number(2)
    with pytest.raises(dn.AxisError, match='no enclosing vmap or mesh has an axis "i"'):
        dn.vmap(lambda: number(2), axis_name="k", axis_size=2)()


def normalized(x: Any) -> Any:
    mean = dn.all_reduce(x, "i") / dn.mesh_size("i")
    spread = dn.all_reduce((x - mean) ** 2, "i")
    return (x - mean) / dn.sqrt(spread + 0.1) * dn.all_reduce(dn.sum(x), "i", op="max")


def plain(x: Any) -> Any:
    mean = dn.mean(x, axes=[0])
    spread = dn.sum((x - mean) ** 2, axes=[0])
    return (x - mean) / dn.sqrt(spread + 0.1) * dn.reduce_max(dn.sum(x, axes=[1]))


def test_derivatives_of_a_mapped_function_with_exchanges() -> None:
    weights = RNG.normal(size=X.shape)
    mapped = dn.vmap(normalized, axis_name="i")
    np.testing.assert_allclose(mapped(X).to_numpy(), plain(dn.tensor(X)).to_numpy(), rtol=1e-12)
    ours = dn.grad(lambda x: dn.sum(mapped(x) * weights))(X)
    want = dn.grad(lambda x: dn.sum(plain(x) * weights))(X)
    np.testing.assert_allclose(ours.to_numpy(), want.to_numpy(), rtol=1e-10, atol=1e-12)
    along = RNG.normal(size=X.shape)
    (_, ours), (_, want) = dn.jvp(mapped, (X,), (along,)), dn.jvp(plain, (X,), (along,))
    np.testing.assert_allclose(ours.to_numpy(), want.to_numpy(), rtol=1e-10, atol=1e-12)

    def move(x: Any) -> Any:
        sent = dn.collective_permute(x, "i", pairs=[(0, 1), (2, 3)])
        return sent * dn.all_gather(x, "i")[:6]

    moved = dn.vmap(move, axis_name="i")
    step, at = 1e-6, (2, 1)
    high, low = X.copy(), X.copy()
    high[at] += step
    low[at] -= step
    slope = dn.grad(lambda x: dn.sum(moved(x) * weights))(X).to_numpy()[at]
    values = [float(dn.sum(moved(dn.tensor(x)) * weights)) for x in (high, low)]
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6, abs=1e-7)


def exchanged_loss(module: Any, psum: Any, gather: Any, index: Any) -> Any:
    """Losses that the exchange makes the same at all positions, and losses that it does not."""
    return {
        "the same": lambda x, w: module.sum(psum(x * x * w)),
        "another": lambda x, w: module.sum(psum(x * w) * x),
        "of the whole": lambda x, w: psum(module.sum(w * w)),
        "gathered": lambda x, w: module.sum(gather(x * w) ** 3),
        "index": lambda x, w: module.sum(x * w) * index(),
        "without": lambda x, w: module.sum(x * w * w),
    }


LOSSES = ["the same", "another", "of the whole", "gathered", "index", "without"]


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_inside_are_what_jax_gives(name: str) -> None:
    import jax

    jnp, lax = jax.numpy, jax.lax
    jax.config.update("jax_enable_x64", True)
    theirs = exchanged_loss(
        jnp,
        lambda v: lax.psum(v, "i"),
        lambda v: lax.all_gather(v, "i", tiled=True),
        lambda: lax.axis_index("i"),
    )[name]
    ours = exchanged_loss(
        dn,
        lambda v: dn.all_reduce(v, "i"),
        lambda v: dn.all_gather(v, "i"),
        lambda: dn.mesh_index("i"),
    )[name]
    w = RNG.normal(size=6)
    for argnums in (0, 1, (0, 1)):
        got = over(dn.grad(ours, argnums=argnums), X, w, in_axes=(0, None))
        want = jax.vmap(jax.grad(theirs, argnums=argnums), in_axes=(0, None), axis_name="i")(X, w)
        for one, other in zip(dn.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(one.to_numpy(), np.asarray(other), rtol=1e-9, atol=1e-12)
    got = over(lambda x, w: dn.vjp(lambda x: ours(x, w), x)[1](2.0)[0], X, w, in_axes=(0, None))
    want = 2.0 * jax.vmap(jax.grad(theirs), in_axes=(0, None), axis_name="i")(X, w)
    np.testing.assert_allclose(got.to_numpy(), np.asarray(want), rtol=1e-9, atol=1e-12)
    _, got = over(lambda x, w: dn.jvp(lambda x: ours(x, w), (x,), (w,)), X, w, in_axes=(0, None))
    _, want = jax.vmap(
        lambda x, w: jax.jvp(lambda x: theirs(x, w), (x,), (w,)), in_axes=(0, None), axis_name="i"
    )(X, w)
    np.testing.assert_allclose(got.to_numpy(), np.asarray(want), rtol=1e-9, atol=1e-12)


def test_loops_and_branches_that_all_positions_run_alike() -> None:
    # The condition is the same at all positions.
    shrink = lambda x: dn.while_(  # noqa: E731
        x, lambda s: dn.all_reduce(dn.abs(s), "i", op="max") > 1.0, lambda s: s / 2
    )
    got = over(shrink, np.array([0.5, 9.0, -3.0]))
    same(got, np.array([0.5, 9.0, -3.0]) / 16)
    flip = lambda x: dn.if_(dn.all_reduce(x, "i") > 0, lambda: dn.all_reduce(x, "i") + x, lambda: x)  # noqa: E731
    same(over(flip, np.array([1.0, 2.0])), [4.0, 5.0])
    _, sums = dn.scan(0, None, lambda s, _: (s, s), length=2)
    assert sums.shape == (2,)
    scanned = over(
        lambda x: dn.scan(x, None, lambda s, _: (dn.all_reduce(s, "i") - s, s), length=3)[0],
        np.array([1.0, 2.0, 4.0]),
    )
    state = np.array([1.0, 2.0, 4.0])
    for _ in range(3):
        state = state.sum() - state
    same(scanned, state)


V, M = dn.iota((3,)), dn.iota((2, 3))
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "an unknown name": (
        lambda: over(lambda x: dn.all_reduce(x, "j"), V),
        dn.AxisError,
        'all_reduce: no enclosing vmap or mesh has an axis "j", it must be one of "i"',
    ),
    "no name": (lambda: over(lambda x: dn.all_reduce(x), V), dn.TraceError, "there is no mesh"),
    "after the call": (
        lambda: (over(lambda x: x, V), dn.mesh_size("i")),
        dn.TraceError,
        "there is no mesh",
    ),
    "a name twice": (
        lambda: over(lambda x: dn.mesh_index(["i", "i"]), V),
        dn.AxisError,
        "given twice",
    ),
    "the name of an argument's axis": (
        lambda: over(lambda x: x, dn.tensor([[1], [2]], names=[None, "i"])),
        dn.AxisError,
        'axis_name is "i", the name of an axis of argument 0, which is s32',
    ),
    "the name of an enclosing axis": (
        lambda: over(lambda x: over(lambda: x, axis_size=2), V),
        dn.AxisError,
        "the name of an axis of an enclosing vmap",
    ),
    "a loop": (
        lambda: over(lambda x: dn.while_(x, lambda s: s < 5, lambda s: dn.all_reduce(s, "i")), V),
        dn.TraceError,
        "inside a loop that ends at another time at each position",
    ),
    "a branch": (
        lambda: over(lambda x: dn.if_(x > 1, lambda: dn.all_reduce(x, "i"), lambda: x), V),
        dn.TraceError,
        "inside a branch that not every position takes",
    ),
    "pairs": (
        lambda: over(lambda x: dn.collective_permute(x, "i", pairs=[(0, 5)]), V),
        dn.OptionError,
        r"the pair \(0, 5\), positions in 0..3",
    ),
    "scatter": (
        lambda: over(lambda x: dn.reduce_scatter(x, "i"), dn.iota((2, 3))),
        dn.ShapeError,
        "reduce_scatter: axis 0",
    ),
    "complex": (
        lambda: over(lambda x: dn.all_reduce(x, "i", op="max"), np.array([1j, 2.0])),
        dn.DTypeError,
        "all_reduce",
    ),
    "a name that is no str": (
        lambda: dn.vmap(lambda x: x, axis_name=3)(V),  # type: ignore[arg-type]
        dn.OptionError,
        "axis_name is 3, it must be a str, or None",
    ),
    "another size": (
        lambda: dn.vmap(lambda x: x, axis_size=4)(V),
        dn.OptionError,
        "the sizes of the mapped axes are 4 of axis_size and 3 of argument 0, they must be equal",
    ),
    "a negative size": (
        lambda: dn.vmap(lambda: 1, axis_size=-1)(),
        dn.OptionError,
        "axis_size is -1, it must be an int of at least 0, or None",
    ),
    "sizes in containers": (
        lambda: dn.vmap(lambda *_: 1)({"a": V}, [M]),
        dn.OptionError,
        r'are 3 of argument 0\["a"\] and 2 of argument 1\[0\], they must be equal',
    ),
    "an axis in a container": (
        lambda: dn.vmap(lambda *_: 1, in_axes=(0, [{"w": 2}]))(V, [{"w": M}]),
        dn.AxisError,
        r'vmap: the axis of argument 1\[0\]\["w"\] is 2, it must be an axis of s32\[2\]\[3\]',
    ),
    "a name in a container": (
        lambda: dn.vmap(lambda *_: 1, in_axes=({"w": "k"},))({"w": M}),
        dn.AxisError,
        r'the axis of argument 0\["w"\] is "?\'?k',
    ),
    "another structure": (
        lambda: dn.vmap(lambda *_: 1, in_axes=(0, {"w": (0, 1)}))(V, {"w": [M]}),
        dn.OptionError,
        r'in_axes\[1\]\["w"\] is \(0, 1\), it must be an axis, or a container with the',
    ),
    "no axis": (
        lambda: dn.vmap(lambda *_: 1, in_axes=({"w": 0.5},))({"w": M}),
        dn.OptionError,
        r'in_axes\[0\]\["w"\] is 0.5, it must be an int, the name of an axis, or None',
    ),
    "a bool": (lambda: dn.vmap(lambda *_: 1, in_axes=True)(V), dn.OptionError, "is True"),
    "an axis of a result": (
        lambda: dn.vmap(lambda x: {"y": x}, out_axes={"y": -3})(M),
        dn.AxisError,
        r'out_axes\["y"\] is -3 for .*, it must be in -2..2',
    ),
    "a result that differs": (
        lambda: dn.vmap(lambda x: (x, {"y": x}), out_axes=(0, {"y": None}))(M),
        dn.OptionError,
        r'out_axes\[1\]\["y"\] is None, it must be an int, because the result differs',
    ),
    "a name of a result": (
        lambda: dn.vmap(lambda x: x, out_axes="i")(M),
        dn.OptionError,
        "out_axes is .?i.?, it must be an int, None, or a container",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()
    # After an error no name is known any more.
    with pytest.raises(dn.TraceError):
        dn.mesh_size("i")
