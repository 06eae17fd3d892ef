"""Several vectorized operands: the order of their axes, and which operands may be vectorized."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn

VECTOR = np.array([1.0, 2.0, 3.0], np.float32)
MATRIX = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], np.float32)
SCALAR = np.float32(2.0)
KEY = np.array([1, 2], np.uint32)
ZERO, ONE = np.int32(0), np.int32(1)
SIZES = {"p": 2, "q": 3, "r": 4}

OPS: dict[str, tuple[Any, ...]] = {
    "add": (dn.add, VECTOR, VECTOR),
    "select": (dn.select, np.array([1, 0, 1]), VECTOR, VECTOR),
    "clip": (dn.clip, VECTOR, SCALAR, SCALAR + 1),
    "dot": (dn.dot, MATRIX, MATRIX),
    "einsum": (lambda a, b: dn.einsum("ij,j->i", a, b), MATRIX, VECTOR),
    "outer": (dn.outer, VECTOR, VECTOR),
    "cross": (dn.cross, VECTOR, VECTOR),
    "inner": (dn.inner, MATRIX, VECTOR),
    "kron": (dn.kron, VECTOR, MATRIX),
    "multi_dot": (lambda a, b: dn.linalg.multi_dot([a, a, b]), MATRIX, VECTOR),
    "tensordot": (dn.tensordot, MATRIX, MATRIX),
    "vdot": (dn.vdot, VECTOR, VECTOR),
    "vecdot": (dn.vecdot, MATRIX, VECTOR),
    "concatenate": (lambda a, b: dn.concatenate([a, b]), VECTOR, VECTOR),
    "stack": (lambda a, b: dn.stack([a, b]), VECTOR, VECTOR),
    "pad": (lambda x, value: dn.pad(x, value, [(1, 1, 0)]), VECTOR, SCALAR),
    "linspace": (lambda a, b: dn.linspace(a, b, n=4), SCALAR, SCALAR + 6),
    "linspace of one": (lambda a, b: dn.linspace(a, b, n=1), SCALAR, SCALAR + 6),
    "index": (lambda x, at: x[at], VECTOR, ONE),
    "slice": (lambda x, at: dn.slice(x, [at], [2]), VECTOR, ONE),
    "slice_along_axis": (lambda x, at: dn.slice_along_axis(x, at, 2), VECTOR, ONE),
    "put_slice": (
        lambda x, update, row, column: dn.put_slice(x, [row, column], update),
        MATRIX,
        -MATRIX[:2, :1],
        ONE,
        ZERO,
    ),
    "gather": (dn.gather, VECTOR, np.array([[0], [2]])),
    "take": (dn.take, VECTOR, np.array([0, 1])),
    "take_along_axis": (dn.take_along_axis, VECTOR, np.array([0, 1])),
    "indexed_add": (dn.indexed_add, VECTOR, np.array([[0]]), VECTOR[:1]),
    "indexed_put": (dn.indexed_put, VECTOR, np.array([[0]]), VECTOR[:1]),
    "solve": (dn.linalg.solve, MATRIX, VECTOR),
    "all_close": (dn.all_close, VECTOR, VECTOR),
    "covariance": (dn.covariance, MATRIX, VECTOR),
    "weighted_mean": (dn.weighted_mean, VECTOR, VECTOR),
    "put_diagonal": (dn.put_diagonal, MATRIX, VECTOR),
    "fold_in": (dn.random.fold_in, KEY, ONE),
    "uniform": (lambda *args: dn.random.uniform(*args)[0], KEY, SCALAR, SCALAR + 1),
    "normal": (lambda *args: dn.random.normal(*args)[0], KEY, SCALAR, SCALAR),
    "randint": (lambda *args: dn.random.randint(*args)[0], KEY, ZERO, ONE + 5),
    "shuffle": (lambda *args: dn.random.shuffle(*args)[0], KEY, VECTOR),
    "choice": (lambda *args: dn.random.choice(*args, samples=2)[0], KEY, VECTOR, VECTOR / 6),
    "choice of some": (
        lambda *args: dn.random.choice(*args, samples=2, replace=False)[0],
        KEY,
        VECTOR,
    ),
    "multivariate_normal": (
        lambda *args: dn.random.multivariate_normal(*args)[0],
        KEY,
        VECTOR,
        MATRIX,
    ),
}


def alike(array: Any, name: str) -> dn.Tensor:
    """The same array at each position of a vectorized axis."""
    return dn.vectorize(dn.tensor(np.stack([array] * SIZES[name])), name)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", OPS)
def test_axes_come_in_the_order_of_first_appearance(name: str, compiled: bool) -> None:
    function, *arrays = OPS[name]
    call = dn.jit(function) if compiled else function
    plain = call(*map(dn.tensor, arrays)).to_numpy()
    masks = itertools.product([False, True], repeat=len(arrays))
    for mask in masks:
        names = [name for name, is_on in zip([*SIZES, "s"], mask, strict=False) if is_on]
        if len(names) < 2 or "s" in names:
            continue
        rest = iter(names)
        args = [
            alike(array, next(rest)) if is_on else dn.tensor(array)
            for array, is_on in zip(arrays, mask, strict=True)
        ]
        got = call(*args)
        assert got.vectorized_axes == tuple((name, SIZES[name]) for name in names)
        flat = got.devectorize(keep_names=False).to_numpy()
        if name in ("dot", "solve", "multivariate_normal"):
            assert np.allclose(flat, np.broadcast_to(plain, flat.shape), rtol=1e-5)
        else:
            assert (flat == np.broadcast_to(plain, flat.shape)).all()


def rows(array: np.ndarray, name: str = "v") -> dn.Tensor:
    return dn.vectorize(dn.tensor(array), name)


def each(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    return np.stack([function(*row) for row in zip(*arrays, strict=True)])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_operands_that_may_differ_from_position_to_position(compiled: bool) -> None:
    wrap = dn.jit if compiled else lambda f: f
    x = np.array([[1.0, 5.0, 3.0], [4.0, np.nan, 6.0]], np.float32)
    low, high = np.array([2.0, 5.0], np.float32), np.array([3.0, 5.5], np.float32)
    clip = wrap(lambda x, low, high: dn.clip(x, low, high))
    got = clip(rows(x), rows(low), rows(high)).devectorize(keep_names=False).to_numpy()
    assert np.array_equal(got, each(np.clip, x, low, high), equal_nan=True)
    got = clip(dn.tensor(x[0]), rows(low), 9.0).devectorize(keep_names=False).to_numpy()
    assert np.array_equal(got, each(lambda low: np.clip(x[0], low, 9.0), low))

    value = np.array([7.0, 8.0], np.float32)
    pad = wrap(lambda x, value: dn.pad(x, value, [(1, -1, 1)]))
    got = pad(rows(x), rows(value)).devectorize(keep_names=False).to_numpy()
    want = [[7, 1, 7, 5, 7], [8, 4, 8, np.nan, 8]]
    assert np.array_equal(got, np.array(want, np.float32), equal_nan=True)

    at = np.array([-1, 1])
    update = np.array([[-1.0], [-2.0]], np.float32)
    put = wrap(lambda x, at, update: dn.put_slice(x, [at], update))
    got = put(rows(x), rows(at), rows(update)).devectorize(keep_names=False).to_numpy()
    assert np.array_equal(got, [[1, 5, -1], [4, -2, 6]])
    mapped = dn.vmap(put, in_axes=(None, 0, None))
    got = mapped(dn.tensor(x[0]), dn.tensor(at), dn.tensor(update[0])).to_numpy()
    assert np.array_equal(got, [[1, 5, -1], [1, -1, 3]])


def test_starts_out_of_range_at_some_position() -> None:
    """put_slice raises; in a compiled program it clamps the starts, like shared ones."""
    x, at = dn.iota((4,)), rows(np.array([0, 9]))
    put = lambda x, at: dn.put_slice(x, [at], dn.tensor([-1, -2]))  # noqa: E731
    with pytest.raises(dn.BoundsError):
        put(x, at)
    assert dn.jit(put)(x, at).to_list() == [[-1, -2, 2, 3], [0, 1, -1, -2]]
    assert dn.slice(x, [at], [2]).to_list() == [[0, 1], [2, 3]]


def test_gradients_of_bounds_and_values() -> None:
    """They equal those of each position alone."""
    x = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]], np.float32)
    low, high = np.array([2.0, 1.5], np.float32), np.array([3.0, 3.5], np.float32)
    loss = lambda x, low, high: dn.sum(dn.clip(x, low, high) * dn.tensor([1.0, 10.0, 100.0]))  # noqa: E731
    grad = dn.grad(loss, argnums=(0, 1, 2))
    got = grad(rows(x), rows(low), rows(high))
    for at in range(2):
        alone = grad(*(dn.tensor(part[at]) for part in (x, low, high)))
        for one, other in zip(got, alone, strict=True):
            assert np.array_equal(one.devectorize(keep_names=False).to_numpy()[at], other)
    value = rows(np.array([7.0, 8.0], np.float32))
    pad = dn.grad(lambda v: dn.sum(dn.pad(dn.tensor([1.0]), v, [(1, 2, 0)])))
    assert pad(value).to_list() == [3.0, 3.0]


def test_kept_axes_of_a_flat_index() -> None:
    x = rows(np.array([[[1, 5], [7, 3]], [[9, 5], [0, 3]]]))
    for function, want in ((dn.argmax, [2, 0]), (dn.argmin, [0, 2])):
        kept = function(x, keep_axis=True)
        assert kept.shape == (1, 1)
        assert kept.to_list() == [[[at]] for at in want]
        assert dn.jit(lambda x, f=function: f(x, keep_axis=True))(x).to_list() == kept.to_list()
        assert function(x).to_list() == want
    # Without vectorized axes no axis is kept.
    assert dn.argmax(dn.tensor([[1, 5], [7, 3]]), keep_axis=True).shape == ()


def test_axes_of_a_condition_come_first() -> None:
    limit = rows(np.array([5.0, 50.0], np.float32))
    state = rows(np.array([1.0, 2.0, 3.0], np.float32), "s")
    for wrap in (lambda f: f, dn.jit):
        doubled = wrap(lambda x, limit: dn.while_(x, lambda s: s < limit, lambda s: s * 2))
        got = doubled(state, limit)
        assert got.vectorized_axes == (("s", 3), ("v", 2))
        both = wrap(
            lambda x, limit: dn.while_(
                (dn.tensor(1.0), x), lambda s: s[0] < limit, lambda s: (s[0] * 2, s[1] * 2)
            )
        )(state, limit)
        assert both[0].to_list() == [8.0, 64.0]
        assert both[1].vectorized_axes == (("v", 2), ("s", 3))
        assert both[1].to_list() == [[8.0, 16.0, 24.0], [64.0, 128.0, 192.0]]


def test_axes_of_what_a_loop_goes_over_come_first() -> None:
    items = rows(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), "g")
    state = rows(np.array([10.0, 20.0, 30.0], np.float32), "s")
    for wrap in (lambda f: f, dn.jit):
        summed = wrap(lambda s, over: dn.for_(s, over, lambda s, item: s + item))(state, items)
        assert summed.vectorized_axes == (("g", 2), ("s", 3))
        assert summed.to_list() == [[13.0, 23.0, 33.0], [17.0, 27.0, 37.0]]
        last, outs = wrap(lambda s, over: dn.scan(s, over, lambda s, item: (s + item, s)))(
            state, items
        )
        assert last.vectorized_axes == outs.vectorized_axes == (("g", 2), ("s", 3))
        unrolled = wrap(lambda s, over: dn.for_(s, over, lambda s, item: s + item, unroll=True))
        assert unrolled(state, items).vectorized_axes == (("g", 2), ("s", 3))
