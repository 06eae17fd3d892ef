"""Generated shapes and values: operations that move, reduce and multiply agree with NumPy."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
from cases.dtypes import INTEGERS, close, is_integer
from cases.generated import Call, drawn, is_exact, tolerance
from defn.tensors import METHOD_MODULES
from support import XLA_ULPS, Held, assert_alike, on_xla, with_one_nan

ORACLE = dn.backends.NumPyBackend()

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
SOLID = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


def counted(shape: tuple[int, ...], start: int = 0) -> np.ndarray:
    """Distinct elements, so that a wrong position is seen."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.arange(start, start + size, dtype=np.int32).reshape(shape)


def agree(function, want: np.ndarray, *arrays: np.ndarray) -> None:
    """The results of the function, eager and compiled, are as expected."""
    held = Held(function)
    tensors = [dn.tensor(array) for array in arrays]
    for got in (function(*tensors), dn.jit(lambda *args: held.value(*args))(*tensors)):
        assert got.shape == want.shape
        assert (got.to_numpy() == want).all()


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
def test_broadcasting(shapes: hnp.BroadcastableShapes) -> None:
    left, right = (counted(shape, 3) for shape in shapes.input_shapes)
    for operation in (operator.add, operator.sub, operator.mul, operator.lt):
        agree(operation, operation(left, right), left, right)


@given(SHAPES, SHAPES)
def test_shapes_that_do_not_broadcast_are_refused(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    try:
        want = np.broadcast_shapes(left, right)
    except ValueError:
        want = None
    x, y = dn.tensor(counted(left)), dn.tensor(counted(right))
    if want is None:
        with pytest.raises(dn.ShapeError, match="do not broadcast"):
            x + y
    else:
        assert (x + y).shape == want


@given(SHAPES, st.data())
def test_reductions(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.sets(st.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))
    keep = data.draw(st.booleans())
    axes = tuple(axis for axis in axes if axis < len(shape))
    array = counted(shape, -5)
    given_axes = [axis - len(shape) if axis % 2 else axis for axis in axes]
    for name, oracle in (("sum", np.sum), ("product", np.prod), ("all", np.all), ("any", np.any)):
        if not axes and name in ("all", "any"):
            continue
        with np.errstate(over="ignore"):
            want = np.asarray(oracle(array, axis=axes, keepdims=keep)).astype(np.int32)

        def reduce(x: dn.Tensor, name: str = name) -> dn.Tensor:
            return getattr(dn, name)(x, axes=given_axes, keep_axes=keep)

        agree(reduce, want, array)


@given(SOLID, st.data())
def test_extremes(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = np.asarray(data.draw(hnp.arrays(np.int8, shape, elements=st.integers(-3, 3))))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    agree(lambda x: dn.argmax(x, axis=axis), np.argmax(array, axis), array)
    agree(lambda x: dn.argmin(x, axis=axis), np.argmin(array, axis), array)
    agree(lambda x: dn.reduce_max(x, axes=axis), np.max(array, axis), array)
    agree(lambda x: dn.reduce_min(x, axes=axis), np.min(array, axis), array)


@given(SHAPES, st.randoms(use_true_random=False))
def test_moves(shape: tuple[int, ...], random) -> None:
    array = counted(shape)
    order = list(range(len(shape)))
    random.shuffle(order)
    agree(lambda x: dn.transpose(x, axes=order), array.transpose(order), array)
    some = [axis for axis in order if random.random() < 0.5]
    agree(lambda x: dn.reverse(x, axes=some), np.flip(array, some), array)
    sizes = list(shape)
    random.shuffle(sizes)
    agree(lambda x: dn.reshape(x, sizes), array.reshape(sizes), array)
    repetitions = [random.randint(1, 2) for _ in shape]
    if repetitions:
        agree(lambda x: dn.tile(x, repetitions), np.tile(array, repetitions), array)


@given(SOLID, st.data())
def test_windows(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = counted(shape)
    starts = [data.draw(st.integers(-2, size + 2)) for size in shape]
    lengths = [data.draw(st.integers(0, size)) for size in shape]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    moved = [min(max(s, 0), n - k) for s, n, k in zip(starts, shape, lengths, strict=True)]
    where = tuple(slice(s, s + k) for s, k in zip(moved, lengths, strict=True))
    steps = tuple(slice(None, None, stride) for stride in strides)
    agree(lambda x: dn.slice(x, starts, lengths, strides=strides), array[where][steps], array)
    traced = [dn.tensor(start) for start in starts]
    agree(lambda x: dn.slice(x, traced, lengths, strides=strides), array[where][steps], array)
    update = counted(tuple(lengths), 1000)
    want = array.copy()
    # Windows to write start within the array, or count from its end.
    starts = [data.draw(st.integers(-n, n - k)) for n, k in zip(shape, lengths, strict=True)]
    starts = [
        min(start, size - length) if start >= 0 else min(start, -max(length, 1))
        for start, size, length in zip(starts, shape, lengths, strict=True)
    ]
    traced = [dn.tensor(start) for start in starts]
    first = [start % size if size else 0 for start, size in zip(starts, shape, strict=True)]
    want[tuple(slice(s, s + k) for s, k in zip(first, lengths, strict=True))] = update
    agree(lambda x, y: dn.put_slice(x, starts, y), want, array, update)
    agree(lambda x, y: dn.put_slice(x, traced, y), want, array, update)


@given(SHAPES, st.data())
def test_padding(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = counted(shape, 1)
    config = [data.draw(st.tuples(*[st.integers(0, 2)] * 3)) for _ in shape]
    grown = [n + max(n - 1, 0) * i for n, (_, _, i) in zip(shape, config, strict=True)]
    want = np.full([n + low + high for n, (low, high, _) in zip(grown, config, strict=True)], -7)
    inside = tuple(slice(low, low + n, i + 1) for n, (low, _, i) in zip(grown, config, strict=True))
    want[inside] = array
    agree(lambda x: dn.pad(x, -7, config), want.astype(np.int32), array)


@given(SOLID, st.data())
def test_joining(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    arrays = [
        counted((*shape[:axis], size, *shape[axis + 1 :]), 100 * i) for i, size in enumerate(sizes)
    ]
    agree(lambda *xs: dn.concatenate(xs, axis=axis), np.concatenate(arrays, axis), *arrays)
    alike = [counted(shape, 100 * i) for i in range(len(sizes))]
    agree(lambda *xs: dn.stack(xs, axis=axis), np.stack(alike, axis), *alike)


@given(st.data())
def test_dot_over_any_axes(data: st.DataObject) -> None:
    size = st.integers(0, 3)
    batch = data.draw(st.lists(size, max_size=2))
    contracted = data.draw(st.lists(size, max_size=2))
    free_a, free_b = data.draw(st.lists(size, max_size=2)), data.draw(st.lists(size, max_size=2))
    letters = iter("abcdefghijkl")
    names = [[next(letters) for _ in sizes] for sizes in (batch, contracted, free_a, free_b)]
    order_a = data.draw(st.permutations(names[1] + names[2]))
    order_b = data.draw(st.permutations(names[1] + names[3]))
    known = dict(
        zip(itertools.chain.from_iterable(names), batch + contracted + free_a + free_b, strict=True)
    )
    left, right = names[0] + order_a, names[0] + order_b
    a = counted(tuple(known[n] for n in left), 1)
    b = counted(tuple(known[n] for n in right), 2)
    result = (
        names[0] + [n for n in order_a if n in names[2]] + [n for n in order_b if n in names[3]]
    )
    want = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(result)}", a, b)
    axes_a, axes_b = ([order.index(n) for n in names[1]] for order in (left, right))
    kept = list(range(len(batch)))
    agree(lambda x, y: dn.dot(x, axes_a, kept, y, axes_b, kept), want, a, b)


@given(st.data())
def test_chains_are_the_same_compiled(data: st.DataObject) -> None:
    """A random program gives equal results eager, compiled, and compiled in a loop of one trip."""
    steps = data.draw(
        st.lists(
            st.sampled_from(
                [
                    "exp",
                    "tanh",
                    "sin",
                    "abs",
                    "negate",
                    "sqrt",
                    "sigmoid",
                    "double",
                    "shift",
                    "sum",
                    "dot",
                ]
            ),
            min_size=1,
            max_size=8,
        )
    )

    def program(x: dn.Tensor) -> dn.Tensor:
        for step in steps:
            if step == "double":
                x = x * 2.0
            elif step == "shift":
                x = x - 0.5
            elif step == "sum":
                x = x / (1.0 + dn.sum(dn.abs(x), axes=[0], keep_axes=True))
            elif step == "dot":
                x = dn.dot(x, dn.transpose(x))
                x = x[:, :3]
            else:
                x = getattr(dn, step)(x)
        return x

    held = Held(program)
    x = dn.tensor(np.linspace(-1.0, 1.0, 9, dtype=np.float32).reshape(3, 3))
    eager = program(x)
    assert_alike(dn.jit(lambda v: held.value(v))(x), eager, scale=1.0)
    looped = dn.jit(
        lambda v: dn.while_((0, v), lambda s: s[0] < 1, lambda s: (s[0] + 1, held.value(s[1])))[1]
    )
    assert_alike(looped(x), eager, scale=1.0)


# Functions that are not operations on tensors of numbers, or that have tests of their own kind.
NOT_DRAWN = {
    "from_binary": "it takes bytes",
    "template": "it has no elements",
    "tensor": "it takes anything",
    "bincount": "eager calls take the size of the result from the values",
    "broadcast_vectors": "vectorized axes have tests of their own",
    "devectorize": "vectorized axes have tests of their own",
    "reshape_vectors": "vectorized axes have tests of their own",
    "revectorize": "vectorized axes have tests of their own",
    "vectorize": "vectorized axes have tests of their own",
    "bicgstab": "where a product is rounded otherwise, its iterations end at another time",
    "cg": "where a product is rounded otherwise, its iterations end at another time",
    "gmres": "where a product is rounded otherwise, its iterations end at another time",
}
DRAWN = [name for module in METHOD_MODULES for name in module.__all__ if name not in NOT_DRAWN]
DRAWN += [name for name in dn.linalg.__all__ if name not in NOT_DRAWN]
# A rounding error decides: whether a bound is met, or which sign a vector has.
UNSTABLE = {"all_close", "isclose", *dn.linalg.__all__}
# XLA compiles each example twice: as eager ops and as a whole.
EXAMPLES = settings(max_examples=10) if on_xla() else settings()
# Errors that depend on values: an eager call raises, a compiled program continues as specified.
OF_VALUES = r"divisor|shift by|exponent|index|start|zero on|diagonal"


def outcome(call: Call, run: Callable[[], Any]) -> tuple[list[dn.Tensor], str]:
    """The results, or the class and the first line of the error."""
    try:
        value = run()
    except dn.Error as error:
        text = str(error).splitlines()[0]
        assert "internal error" not in text, f"{call}\n{text}"
        return [], f"{type(error).__name__}: {text}"
    return (list(value) if isinstance(value, tuple) else [value]), ""


def bits(call: Call, x: dn.Tensor) -> bytes:
    """The elements' bytes. As in Nx, a graph drops the addition of 0, so that -0 stays -0 there."""
    array = with_one_nan(x.to_numpy())
    if call.name == "add" and x.to_numpy().dtype.kind != "c" and not is_integer(str(x.dtype)):
        array = np.where(array == 0, np.zeros_like(array), array)
    return array.tobytes()


@pytest.mark.parametrize("name", DRAWN)
def test_any_call_is_the_same_everywhere(name: str) -> None:
    """Any call has equal bits eager and compiled, and close values by NumPy; or it raises.

    With XLA the compiled values are only close, because XLA compiles the program as a whole.

    Shapes, names, axes, options and values are generated from the function's signature.
    """
    worked = []

    @settings(EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        call = drawn(data.draw, name)
        held = Held(call)
        eager, refused = outcome(call, lambda: call.run(*call.tensors()))
        traced = dn.jit(lambda *tensors: held.value.run(*tensors))
        compiled, why = outcome(call, lambda: traced(*call.tensors()))
        if refused:
            assert why == refused or re.search(OF_VALUES, refused), f"{call}\n{refused}\n{why}"
            return
        assert not why, f"{call}\n{why}"
        worked.append(call)
        for left, right in zip(eager, compiled, strict=True):
            assert (left.dtype, left.shape, left.names) == (right.dtype, right.shape, right.names)
            if on_xla():
                compare(call, right, left)
            else:
                assert bits(call, left) == bits(call, right), str(call)
        others, why = outcome(call, lambda: call.run(*call.tensors(backend=ORACLE)))
        if re.search(OF_VALUES, why):
            return
        assert not why, f"{call}\n{why}"
        for left, right in zip(eager, others, strict=True):
            assert (left.dtype, left.shape, left.names) == (right.dtype, right.shape, right.names)
            compare(call, left, right)

    check()
    assert worked, "no call of it has worked"


def compare(call: Call, got: dn.Tensor, want: dn.Tensor) -> None:
    """Values of ordinary size agree within the tolerance of the function's rows."""
    exact = is_exact(call.name)
    if call.name in UNSTABLE or (call.wild and not exact):
        return
    dtype = str(got.dtype)
    left, right = got.to_numpy(), want.to_numpy()
    if exact or dtype in INTEGERS:
        ok = close(left, right, dtype, 0, 0.0)
    else:
        ulps = max(4.0, tolerance(call.name, call.dtype, dtype)) * (XLA_ULPS if on_xla() else 1)
        sizes = [np.abs(array.astype(complex)).max(initial=1.0) for array in call.arrays]
        ok = close(left, right, dtype, ulps, 16.0 * max(sizes) ** 2)
    if on_xla() and dtype == "f8_e4m3fn":
        # Fused with what makes a NaN, XLA's conversion on the CPU gives -448 for some of them.
        ok = ok | (np.isnan(right.astype(np.float32)) & (left.astype(np.float32) == -448))
    assert ok.all(), f"{call}\ngot\n{left}\nwant\n{right}"
