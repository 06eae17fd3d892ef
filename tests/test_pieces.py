"""Nests of windows, pieces, slices and labels: NumPy's values, and one set of bits everywhere."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import defn as dn

# These tests are about the CPU's compiler, whatever the test run uses.
pytestmark = pytest.mark.usefixtures("no_options")

DTYPES = ["bool", "u8", "s16", "s32", "u64", "f8_e5m2", "f16", "bf16", "f32", "f64", "c64", "c128"]
WIDE = ["s32", "u64", "f32", "f64"]

Case = tuple[str, Callable[..., Any], tuple[np.ndarray, ...], Callable[..., Any] | None]


def array(dtype: str, *shape: int) -> np.ndarray:
    """Small numbers, which every dtype has, and whose sums are exact."""
    numbers = np.random.default_rng(sum(shape) + len(dtype)).integers(
        0, 2 if dtype == "bool" else 8, shape
    )
    return dn.tensor(numbers).as_type(dtype).to_numpy()


def windowed(x: np.ndarray, sizes: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The windows of a tensor, flat along the last axis."""
    views = np.lib.stride_tricks.sliding_window_view(x, sizes)
    views = views[tuple(slice(None, None, stride) for stride in strides)]
    return views.reshape(*views.shape[: x.ndim], -1)


def pools() -> Iterator[Case]:
    """Windows with all kinds of steps, with what is done before and after."""
    geometries = [
        ((2, 2), (2, 2)),
        ((3, 3), (1, 1)),
        ((3, 2), (2, 3)),
        ((1, 4), (1, 4)),
        ((2, 3), (3, 1)),
    ]
    ops = [
        ("window_max", np.max),
        ("window_min", np.min),
        ("window_sum", np.sum),
        ("window_product", np.prod),
    ]
    sizes = itertools.cycle([(64, 70), (35, 131), (129, 33), (40, 256)])
    for dtype, (window, strides), (name, oracle) in itertools.product(WIDE, geometries, ops):
        x = array(dtype, *next(sizes))

        def pool(x: dn.Tensor, name=name, window=window, strides=strides) -> dn.Tensor:
            return getattr(dn, name)(x, window, strides=strides)

        def pooled(x: np.ndarray, oracle=oracle, window=window, strides=strides) -> np.ndarray:
            return oracle(windowed(x, window, strides), axis=-1)

        label = f"{name} {dtype} {window} {strides} of {x.shape}"
        yield label, pool, (x,), pooled
        yield (
            f"{label}, fused",
            lambda x, pool=pool: pool(x + x) * 2 + 1,
            (x,),
            lambda x, p=pooled: p(x + x) * 2 + 1,
        )
    x = array("f32", 67, 130)
    yield "dilated", lambda x: dn.window_sum(x, (2, 2), window_dilations=(3, 2)), (x,), None
    yield "padded", lambda x: dn.window_max(x, (3, 3), strides=(2, 2), padding="same"), (x,), None
    yield (
        "images",
        lambda x: dn.window_mean(x, (1, 1, 2, 2), strides=(1, 1, 2, 2)),
        (array("f32", 2, 3, 34, 66),),
        None,
    )
    yield "used twice", lambda x: dn.window_max(dn.exp(x), (2, 2)) + dn.exp(x)[1:, 1:], (x,), None


def pieces() -> Iterator[Case]:
    """Concatenations and paddings, of what is computed and of what is there."""
    for dtype in DTYPES:
        for a, b, c, axis in [
            ((17,), (1031,), (16,), 0),
            ((5, 67), (3, 67), (40, 67), 0),
            ((33, 16), (33, 65), (33, 31), 1),
        ]:
            x, y, z = array(dtype, *a), array(dtype, *b), array(dtype, *c)

            def joined(x, y, z, lib=dn, axis=axis):
                return lib.concatenate([x, y, z], axis=axis)

            yield (
                f"pieces {dtype} {a} {axis}",
                joined,
                (x, y, z),
                lambda x, y, z, j=joined: j(x, y, z, np),
            )
            if dtype == "bool":
                continue
            computed = lambda x, y, z, j=joined: j(x + x, y * y, z) + x[:1].reshape(-1)[0]  # noqa: E731
            yield f"computed pieces {dtype} {a} {axis}", computed, (x, y, z), None
            whole = array(dtype, *np.concatenate([x, y, z], axis).shape)
            yield (
                f"pieces and a whole {dtype} {a} {axis}",
                lambda x, y, z, w, j=joined: (j(x * x, y, z) * w + w, j(x, y + y, z)),
                (x, y, z, whole),
                None,
            )
        x = array(dtype, 40, 70)
        for config in [[(1, 1), (1, 1)], [(0, 3), (16, 0)], [(-2, 5), (3, -4)], [(0, 0), (33, 33)]]:
            pads = [(low, high, 0) for low, high in config]
            value = np.ones((), x.dtype)
            if dtype != "bool":
                yield (
                    f"padded {dtype} {config}",
                    lambda x, v, p=pads: dn.pad(x + x, v, p) * 2,
                    (x, value),
                    None,
                )
    x, y = array("f32", 64, 96), array("f32", 64, 32)
    yield "a piece twice", lambda x, y: dn.concatenate([x * 2, y, x * 2], axis=1) + 1, (x, y), None
    yield (
        "positions",
        lambda x, y: dn.concatenate([x * 2, y], axis=1) + dn.iota((64, 128), axis=1),
        (x, y),
        None,
    )
    yield (
        "two joins",
        lambda x, y: dn.concatenate([x * 2, y], axis=1) * dn.concatenate([y, x], axis=1),
        (x, y),
        None,
    )
    yield (
        "a row for all",
        lambda x, y: dn.concatenate([x * 2, y], axis=1) + dn.concatenate([x[0], y[0]]),
        (x, y),
        None,
    )
    yield (
        "needed beyond",
        lambda x, y: (dn.concatenate([x * 2, y], axis=1), x * 2 + 1, dn.sum(x * 2)),
        (x, y),
        None,
    )
    yield (
        "summed",
        lambda x, y: dn.sum(dn.concatenate([dn.exp(x), y], axis=1) * 2, axes=1),
        (x, y),
        None,
    )


def slices() -> Iterator[Case]:
    """Slices of what is computed."""
    for dtype in [d for d in DTYPES if d != "bool"]:
        x = array(dtype, 66, 130)

        def stencil(x: dn.Tensor) -> dn.Tensor:
            y = x + x
            return y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]

        yield f"stencil {dtype}", stencil, (x,), stencil if dtype in WIDE else None
        yield f"steps {dtype}", lambda x: (x * x)[::3, 1::2] + x[::3, :-1:2], (x,), None
        yield f"columns apart {dtype}", lambda x: x[:, ::2] + x[:, 1::2], (x,), None
    x = array("f32", 66, 130)
    yield "costly", lambda x: dn.exp(x)[1:] - dn.exp(x)[:-1], (x,), None
    yield "all of it too", lambda x: ((x * 2)[1:] - (x * 2)[:-1], x * 2), (x,), None
    yield "a number", lambda x: dn.clip(x * 2, 1, 5)[3:, 5:] * 2, (x,), None


def labelled() -> Iterator[Case]:
    """Gradients of what is taken at labels."""
    scores = np.random.default_rng(3).normal(size=(130, 77)).astype("float32")
    for dtype in ["s8", "u8", "s32", "s64", "u64"]:
        labels = dn.tensor(np.random.default_rng(1).integers(0, 77, 130)).as_type(dtype).to_numpy()
        for kind in ["f32", "f64", "f16", "c64"]:
            x = dn.tensor(scores).as_type(kind).to_numpy()

            def taken(x, labels):
                return dn.sum(dn.real(dn.take_along_axis(x * x, labels[:, None], axis=1)))

            yield f"labels {dtype} of {kind}", dn.grad(taken), (x, labels), None
    labels = np.random.default_rng(2).integers(-90, 90, 130).astype("int32")

    def entropy(scores, labels):
        shifted = scores - dn.reduce_max(scores, axes=1, keep_axes=True)
        normed = shifted - dn.log(dn.sum(dn.exp(shifted), axes=1, keep_axes=True))
        return -dn.mean(dn.take_along_axis(normed, labels[:, None], axis=1))

    yield "cross-entropy", dn.grad(entropy), (scores, np.abs(labels) % 77), None
    yield "labels out of range", dn.grad(entropy), (scores, labels), None
    three = np.random.default_rng(3).normal(size=(9, 33, 21)).astype("float32")
    for axis in range(3):
        shape = [9, 33, 21]
        shape[axis] = 1
        positions = np.random.default_rng(axis).integers(-5, 9, shape).astype("int32")

        def part(x, positions, axis=axis):
            return dn.sum(dn.take_along_axis(x, positions, axis=axis) ** 3)

        yield f"labels along {axis}", dn.grad(part), (three, positions), None


def turned() -> Iterator[Case]:
    """Transposed operands, of sizes around blocks and tiles."""
    shapes = [
        (64, 64),
        (65, 67),
        (80, 129),
        (128, 256),
        (33, 300),
        (300, 33),
        (17, 257),
        (242, 17),
        (16, 400),
    ]
    for dtype, shape in itertools.product(["u8", "s32", "f16", "f32", "f64", "c64"], shapes):
        x, y = array(dtype, *shape), array(dtype, *reversed(shape))
        label = f"turned {dtype} {shape}"
        yield label, lambda x, y: x + y.T, (x, y), lambda x, y: x + y.T
        row = array(dtype, 1, shape[1])
        yield (
            f"{label}, a row",
            lambda x, y, r: x * y.T + r,
            (x, y, row),
            lambda x, y, r: x * y.T + r,
        )
        if dtype != "c64":
            yield f"{label}, predicates", lambda x, y: (x < y.T, x - y.T), (x, y), None
    x = array("f32", 12, 40, 70)
    for axes in itertools.permutations(range(3)):
        if axes != (0, 1, 2):
            y = np.ascontiguousarray(x.transpose(axes))
            back = tuple(int(axis) for axis in np.argsort(axes))
            yield f"axes {axes}", lambda x, y, b=back: x - dn.exp(dn.transpose(y, b)), (x, y), None
    square = array("f32", 144, 144)
    yield "with itself", lambda x: x + x.T, (square,), lambda x: x + x.T
    yield "computed", lambda x: dn.exp(x).T + x, (square,), None
    yield "twice", lambda x, y: x.T * y.T + x, (square, square[::-1].copy()), None
    yield "needed too", lambda x: (x.T, x.T + x), (square,), None
    yield "positions", lambda x: x.T * dn.iota((144, 144), axis=0, dtype="f32") + x, (square,), None
    yield "large", lambda x: x + x.T, (array("f32", 1552, 1552),), lambda x: x + x.T


def drawn() -> Iterator[Case]:
    """Random numbers with what uses them: sizes around vectors, halves of odd and even numbers."""
    random, key = dn.random, np.array([0x1234_5678, 0xFEDC_BA98], "uint32")
    shapes = [(), (1,), (2,), (33,), (4098,), (4101,), (2, 17), (3, 35), (64, 70), (5, 16, 33)]
    for dtype, shape in itertools.product(["f8_e4m3fn", "f16", "bf16", "f32", "f64"], shapes):
        label = f"{dtype} {shape}"

        def uniform(k, d=dtype, s=shape):
            return random.uniform_split(k, shape=s, dtype=d)

        def normal(k, d=dtype, s=shape):
            return random.normal_split(k, 1, 2, shape=s, dtype=d)

        yield f"uniform {label}", uniform, (key,), None
        yield f"normal {label}", lambda k, f=normal: (f(k), f(k) * 2), (key,), None
        if not shape:
            continue
        row = array(dtype, shape[-1])
        yield f"{label} and a row", lambda k, x, f=uniform: f(k) * x, (key, row), None
        x = array(dtype, *shape)

        def dropped(k, x, f=uniform):
            return dn.select(f(k) < 0.75, x * 2, 0)

        yield f"{label} dropped", dropped, (key, x), None
        for axis in range(len(shape)):
            yield (
                f"{label} summed along {axis}",
                lambda k, x, f=normal, axis=axis: dn.sum(f(k) + x, axes=axis),
                (key, x),
                None,
            )
    for dtype, shape in itertools.product(["u8", "s16", "u32", "s64"], shapes):
        for bound in (2, 100, 127):
            yield (
                f"integers {dtype} {shape} {bound}",
                lambda k, b=bound, d=dtype, s=shape: random.randint_split(
                    k, 1, b, shape=s, dtype=d
                ),
                (key,),
                None,
            )

        def between(k, low, high, d=dtype, s=shape):
            return random.randint_split(k, low, high, shape=s, dtype=d) * 2

        bounds = np.array(3, "int64"), np.array(120, "int64")
        yield f"integers {dtype} {shape} between tensors", between, (key, *bounds), None
    for dtype, shape in itertools.product(["u2", "u8", "u32", "u64"], shapes):
        yield (
            f"bits {dtype} {shape}",
            lambda k, d=dtype, s=shape: random.bits_split(k, shape=s, dtype=d) ^ 1,
            (key,),
            None,
        )
    yield (
        "keys",
        lambda k: random.normal_split(random.split(k, parts=5)[3], shape=100),
        (key,),
        None,
    )
    yield "derived keys", lambda k: random.fold_in(k, dn.iota(77)) ^ 5, (key,), None
    yield (
        "in a join",
        lambda k, x: dn.concatenate([random.uniform_split(k, shape=(40, 64)), x]) * 2,
        (key, array("f32", 7, 64)),
        None,
    )
    yield (
        "transposed",
        lambda k, x: random.uniform_split(k, shape=(64, 70)) + x.T,
        (key, array("f32", 70, 64)),
        None,
    )
    yield (
        "axes that do not fit",
        lambda k, x, y: (random.uniform_split(k, shape=(2, 3)) + x.T).reshape(3, 2) * y.T,
        (key, array("f32", 3, 2), array("f32", 2, 3)),
        None,
    )
    yield (
        "after a product",
        lambda k, x: (random.uniform_split(k, shape=(64, 64)) < 0.5) * dn.dot(x, x),
        (key, array("f32", 64, 64)),
        None,
    )


FAMILIES = {
    "drawn": drawn,
    "turned": turned,
    "pools": pools,
    "pieces": pieces,
    "slices": slices,
    "labelled": labelled,
}


def leaves(value: Any) -> list[np.ndarray]:
    return [leaf.to_numpy() for leaf in (value if isinstance(value, tuple) else (value,))]


def results(family: str) -> dict[str, str]:
    """What the programs of a family compute here."""
    found = {}
    for name, function, arrays, _ in FAMILIES[family]():
        outcome = leaves(dn.jit(function, compiler="cpu")(*arrays))
        found[name] = hashlib.sha256(b"".join(leaf.tobytes() for leaf in outcome)).hexdigest()
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bits_of_the_evaluator(family: str) -> None:
    reference = "cpu" if dn.config()["machine_code"] is None else "evaluator"
    for name, function, arrays, oracle in FAMILIES[family]():
        compiled, x = dn.jit(function, compiler="cpu"), [dn.tensor(a) for a in arrays]
        want = leaves(dn.jit(function, compiler=reference)(*x))
        # Before code is generated, and with it.
        for _ in range(10):
            got = leaves(compiled(*x))
        for mine, other in zip(got, want, strict=True):
            assert mine.dtype == other.dtype, name
            assert mine.tobytes() == other.tobytes(), name
        if oracle is not None:
            np.testing.assert_array_equal(
                got[0], oracle(*arrays).astype(got[0].dtype), err_msg=name
            )


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the levels are those of x86-64"
)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("simd", ["avx2", "portable"])
def test_the_bits_of_other_instructions(family: str, simd: str) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEFN_")}
    here = str(pathlib.Path(__file__).parent)
    imports = f"import sys, json; sys.path.insert(0, {here!r}); import test_pieces as t"
    code = f"{imports}; print(json.dumps(t.results({family!r})))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env={**clean, "DEFN_SIMD": simd, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(done.stdout) == results(family)


def test_what_is_put_together_is_one_step() -> None:
    def steps(function: Callable[..., Any], *arrays: np.ndarray) -> int:
        return len(dn.jit(function, compiler="cpu").profile(*arrays).steps)

    x, labels = array("f32", 256, 64), np.arange(256) % 64
    assert steps(lambda x: dn.window_mean(x * 2, (2, 2), strides=(2, 2)), x) == 1
    assert steps(lambda x: dn.concatenate([x * 2, x + 1, -x]) * 0.5, x) == 1
    assert steps(lambda x: dn.concatenate([x * 2, dn.exp(x)], axis=1), x) == 1
    assert steps(lambda x: dn.pad(x * 2, 0.0, [(1, 1, 0), (1, 1, 0)]) + 1, x) == 1
    assert steps(lambda x: (x * 2)[1:] - (x * 2)[:-1], x) == 1

    square = array("f32", 144, 144)
    assert steps(lambda x: x + x.T, square) == 1
    assert steps(lambda x: dn.exp(x.T) * x[0], square) == 1

    def loss(x, labels):
        return dn.sum(dn.take_along_axis(dn.exp(x), labels[:, None], axis=1))

    assert steps(dn.grad(loss), x, labels) <= 3

    key, large = np.array([1, 2], "uint32"), array("f32", 128, 64)

    def dropped(key, x):
        return dn.select(dn.random.uniform_split(key, shape=x.shape) < 0.5, dn.exp(x), 0.0)

    assert steps(dropped, key, large) == 1
    assert steps(lambda key: dn.random.normal_split(key, 1, 2, shape=(100, 64)) ** 2, key) == 1
    assert steps(lambda key: dn.random.randint_split(key, 1, 7, shape=1001) * 2, key) == 1
    # Few numbers are computed where they are reduced.
    assert steps(lambda key: dn.sum(dn.random.normal_split(key, shape=(10, 64)), axes=1), key) == 1


def test_long_columns_are_gone_through_by_several_steps() -> None:
    def standardised(x: dn.Tensor) -> dn.Tensor:
        centered = x - dn.mean(x, axes=0, keep_axes=True)
        return centered * dn.rsqrt(dn.mean(centered * centered, axes=0, keep_axes=True) + 1e-5)

    # Of short columns one thread does all, while a cache holds them; of long ones threads divide
    # the rows of each pass.
    for rows, count in ((100, 1), (5000, 3)):
        x = array("f32", rows, 64)
        assert len(dn.jit(standardised, compiler="cpu").profile(x).steps) == count
        want = dn.jit(standardised, compiler="evaluator")(x)
        for threads in (1, 2, 7):
            got = dn.jit(standardised, compiler="cpu", threads=threads)(x)
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
