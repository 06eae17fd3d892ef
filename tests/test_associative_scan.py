"""``dn.associative_scan`` beside loops, JAX and finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defn as dn
from support import on_xla


class Pair(NamedTuple):
    a: Any
    b: Any


RNG = np.random.default_rng(17)
# The lengths at which levels begin, and others.
LENGTHS = [0, 1, 2, 3, 4, 7, 8, 9, 10, 15, 16, 17, 18, 19, 31, 33, 64, 65, 100, 127]
RUNS = [lambda fun: fun, dn.jit]
eager_and_compiled = pytest.mark.parametrize("run", RUNS, ids=["eager", "compiled"])


def draw(*shape: int, dtype: str = "float64") -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape).astype(dtype)


def composed(first: Any, second: Any) -> Any:
    """The affine map ``x -> a x + b`` of the second after that of the first."""
    return {"a": second["a"] * first["a"], "b": second["a"] * first["b"] + second["b"]}


def joined(first: Any, second: Any) -> Any:
    """Counts since the last reset: associative, not commutative, of integers and bools."""
    count = dn.select(second[1], second[0], first[0] + second[0])
    return count, dn.logical_or(first[1], second[1])


def loop(
    combine: Callable[[Any, Any], Any], parts: list[np.ndarray], axis: int, reverse: bool
) -> list[np.ndarray]:
    """The scan one element after the other. ``combine`` takes and returns lists of arrays."""
    order = list(range(parts[0].shape[axis]))
    order = order[::-1] if reverse else order
    results = [np.empty_like(part) for part in parts]
    state: list[np.ndarray] = []
    for at in order:
        element = [part.take(at, axis) for part in parts]
        state = combine(state, element) if state else element
        for result, value in zip(results, state, strict=True):
            np.moveaxis(result, axis, 0)[at] = value
    return results


def check(got: Any, want: list[np.ndarray], rtol: float = 1e-12) -> None:
    for leaf, array in zip(dn.tree.leaves(got), want, strict=True):
        assert leaf.to_numpy().dtype == array.dtype
        assert leaf.shape == array.shape
        np.testing.assert_allclose(leaf.to_numpy(), array, rtol=rtol)


@eager_and_compiled
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_affine_maps_are_composed(run: Any, length: int, reverse: bool) -> None:
    a, b = draw(length, 3), draw(length, 3)
    want = loop(lambda s, x: [x[0] * s[0], x[0] * s[1] + x[1]], [a, b], 0, reverse)
    scan = run(lambda maps: dn.associative_scan(composed, maps, reverse=reverse))
    got = scan({"a": dn.tensor(a), "b": dn.tensor(b)})
    assert list(got) == ["a", "b"]
    check(got, want)


@eager_and_compiled
@pytest.mark.parametrize("length", [1, 5, 8, 13, 40])
def test_products_of_matrices_keep_their_order(run: Any, length: int) -> None:
    x = draw(length, 3, 3)
    want = loop(lambda s, x: [s[0] @ x[0]], [x], 0, False)
    check(run(lambda x: dn.associative_scan(dn.matmul, x))(x), want)
    want = loop(lambda s, x: [x[0] @ s[0]], [x], 0, True)
    check(run(lambda x: dn.associative_scan(lambda s, x: x @ s, x, reverse=True))(x), want)


@given(st.sampled_from(LENGTHS), st.integers(0, 2), st.integers(0, 2), st.booleans(), st.data())
def test_containers_axes_and_integers(
    length: int, before: int, behind: int, reverse: bool, data: st.DataObject
) -> None:
    shape = (*[2] * before, length, *[3] * behind)
    axis = data.draw(st.sampled_from([before, before - len(shape)]))
    counts = RNG.integers(-5, 9, shape).astype("int32")
    resets = RNG.random(shape) < 0.2
    want = loop(
        lambda s, x: [np.where(x[1], x[0], s[0] + x[0]), s[1] | x[1]],
        [counts, resets],
        before,
        reverse,
    )
    kind = data.draw(st.sampled_from([tuple, list, Pair, dict]))
    if kind is dict:
        elements: Any = {"count": counts, "reset": resets}
        fun = lambda a, b: dict(  # noqa: E731
            zip(["count", "reset"], joined((*a.values(),), (*b.values(),)), strict=True)
        )
    else:
        make = Pair._make if kind is Pair else kind
        elements = make([counts, resets])
        fun = lambda a, b: make(joined(a, b))  # noqa: E731
    run = data.draw(st.sampled_from(RUNS))
    got = run(lambda e: dn.associative_scan(fun, e, axis, reverse=reverse))(elements)
    assert type(got) is kind
    for leaf, array in zip(got.values() if kind is dict else got, want, strict=True):
        assert leaf.to_numpy().dtype == array.dtype
        np.testing.assert_array_equal(leaf.to_numpy(), array)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "c64", "s8", "u16", "s64", "bool"])
@pytest.mark.parametrize("length", [6, 21, 50])
def test_dtypes_are_kept(dtype: str, length: int) -> None:
    x = dn.as_type(dn.tensor(RNG.integers(0, 2, (length, 2))), dtype)
    add = dn.logical_xor if dtype == "bool" else dn.add
    got = dn.associative_scan(add, x)
    assert got.dtype == dn.dtype(dtype)
    want = dn.cumulative_sum(dn.as_type(x, "s32"))
    want = want % 2 if dtype == "bool" else want
    np.testing.assert_array_equal(dn.as_type(got, "s32").to_numpy(), want.to_numpy())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 9, 64, 101])
def test_results_are_those_of_jax(length: int, reverse: bool) -> None:
    import jax

    x, y = draw(4, length, dtype="float32"), draw(4, length, 2, 2, dtype="float32")

    def product(matmul: Any) -> Any:
        return lambda p, q: (p[0] * q[0], matmul(p[1], q[1]))

    want = jax.lax.associative_scan(product(jax.numpy.matmul), (x, y), axis=1, reverse=reverse)
    got = dn.associative_scan(product(dn.matmul), (x, y), axis=1, reverse=reverse)
    for leaf, array in zip(got, want, strict=True):
        np.testing.assert_allclose(leaf.to_numpy(), np.asarray(array), rtol=2e-5)


@pytest.mark.parametrize("length", [2, 7, 8, 9, 30])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_are_those_of_differences(length: int, reverse: bool) -> None:
    weights = draw(length, 2)

    def loss(maps: Any) -> Any:
        scanned = dn.associative_scan(composed, maps, reverse=reverse)
        return dn.sum(dn.sin(scanned["b"]) * weights) + dn.sum(scanned["a"] * weights)

    maps = {"a": draw(length, 2), "b": draw(length, 2)}
    got = dn.jit(dn.grad(loss))(dn.tree.map(dn.tensor, maps))
    value = dn.jit(loss)
    for name in maps:
        for at in [(0, 0), (length // 2, 1), (length - 1, 0)]:
            around = []
            for step in (1e-6, -1e-6):
                moved = {key: array.copy() for key, array in maps.items()}
                moved[name][at] += step
                around.append(float(value(dn.tree.map(dn.tensor, moved))))
            want = (around[0] - around[1]) / 2e-6
            np.testing.assert_allclose(float(got[name][at]), want, rtol=1e-6)


def test_vmap_maps_the_scan() -> None:
    a, b = draw(5, 21), draw(21)
    want = [loop(lambda s, x: [x[0] * s[0], x[0] * s[1] + x[1]], [row, b], 0, False) for row in a]
    scan = lambda a, b: dn.associative_scan(composed, {"a": a, "b": b})  # noqa: E731
    for run in RUNS:
        # The sums depend on the mapped rows, the elements that begin them do not.
        got = run(dn.vmap(scan, in_axes=(0, None)))(dn.tensor(a), dn.tensor(b))
        check(got, [np.stack(part) for part in zip(*want, strict=True)])


def test_an_axis_by_name_is_found_in_each_tensor() -> None:
    a = dn.tensor(draw(21, 4), names=["time", "feature"])
    b = dn.tensor(draw(4, 21), names=["feature", "time"])

    def fun(p: Any, q: Any) -> Any:
        assert p[0].names == ("time", "feature")
        assert p[1].names == ("feature", "time")
        return p[0] + q[0], p[1] + q[1]

    for run in RUNS:
        first, second = run(lambda e: dn.associative_scan(fun, e, "time"))((a, b))
        assert first.names == a.names
        assert second.names == b.names
        np.testing.assert_allclose(first.to_numpy(), a.to_numpy().cumsum(0))
        np.testing.assert_allclose(second.to_numpy(), b.to_numpy().cumsum(1))


def test_arrays_become_tensors() -> None:
    got = dn.associative_scan(dn.add, np.arange(3))
    assert got.to_list() == [0, 1, 3]


@pytest.mark.parametrize("length", [10, 1000, 1 << 20])
def test_calls_are_few(length: int) -> None:
    calls = []

    def fun(a: Any, b: Any) -> Any:
        calls.append(a.shape[0])
        return a + b

    dn.debug_expr(lambda x: dn.associative_scan(fun, x))(dn.template((length,), "f32"))
    assert len(calls) <= 2 * math.ceil(math.log2(length)) + 1
    assert sum(calls) < 2 * length


@pytest.mark.usefixtures("no_options")
def test_threads_and_compilers_give_the_same_bits() -> None:
    maps = {"a": draw(100_003, dtype="float32"), "b": draw(100_003, dtype="float32")}
    scan = lambda maps: dn.associative_scan(composed, maps)["b"]  # noqa: E731
    bits = set()
    for threads in (1, 2, 7):
        with dn.options(threads=threads):
            for run in (scan, dn.jit(scan), dn.jit(scan, compiler="evaluator")):
                bits.add(run(maps).to_numpy().tobytes())
    assert len(bits) == 1


def test_what_has_no_neighbours_is_returned() -> None:
    def never(a: Any, b: Any) -> Any:
        raise AssertionError("nothing to combine")

    for shape in [(0, 3), (1, 3)]:
        x = dn.tensor(draw(*shape))
        for reverse in (False, True):
            got = dn.associative_scan(never, {"x": x}, reverse=reverse)
            np.testing.assert_array_equal(got["x"].to_numpy(), x.to_numpy())


@pytest.mark.parametrize(
    ("fun", "error", "text"),
    [
        (
            lambda a, b: (a[0], b[1] * 0.5),
            dn.DTypeError,
            r"the function gives f32\[1\] for s32\[1\] of elements\[1\], dtype and shape must stay",
        ),
        (
            lambda a, b: (dn.sum(a[0]), b[1]),
            dn.ShapeError,
            r"the function gives f64 for f64\[1\] of elements\[0\], dtype and shape must stay",
        ),
        (
            lambda a, b: [a[0], a[1]],
            dn.ContainerError,
            "the function's result and the elements differ in structure",
        ),
        (lambda a, b: (a[0], "b"), dn.ContainerError, "the function's result and the .* at"),
    ],
    ids=["dtype", "shape", "structure", "leaf"],
)
def test_a_function_that_changes_types_is_refused(
    fun: Any, error: type[Exception], text: str
) -> None:
    elements = dn.tensor(draw(7)), dn.iota((7,))
    for run in RUNS:
        with pytest.raises(error, match=f"^associative_scan: {text}"):
            run(lambda e: dn.associative_scan(fun, e))(elements)


def test_a_function_may_return_dicts_in_another_order() -> None:
    got = dn.associative_scan(
        lambda p, q: {"b": p["b"] + q["b"], "a": p["a"] * q["a"]},
        {"a": np.arange(1, 5), "b": np.arange(4.0)},
    )
    assert (got["a"].to_list(), got["b"].to_list()) == ([1, 2, 6, 24], [0.0, 1.0, 3.0, 6.0])


@pytest.mark.skipif(on_xla(), reason="XLA's own order")
def test_neighbours_are_combined_first() -> None:
    x = draw(16, dtype="float32")

    def scan(x: np.ndarray) -> np.ndarray:
        if len(x) <= 8:
            return np.add.accumulate(x)
        odd = scan(x[::2] + x[1::2])
        return np.stack([np.append(x[:1], odd[:-1] + x[2::2]), odd], 1).reshape(-1)

    assert dn.associative_scan(dn.add, x).to_numpy().tobytes() == scan(x).tobytes()
