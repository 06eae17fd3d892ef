"""The workloads that `peers.py` times, each written for defn and for JAX."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from models import MODELS, digits

import defn as dn


@dataclass(frozen=True)
class Workload:
    """A function in both libraries, and a tree of arrays as its arguments."""

    family: str
    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arguments: tuple[Any, ...]
    drawn: bool = False
    """Whether the results are random numbers, of which only shapes and moments are equal."""
    wide: bool = False
    """Whether there are 64-bit elements, which JAX has where it is asked for them."""


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def complex_normal(*shape: int) -> np.ndarray:
    """Random complex numbers."""
    parts = normal(2, *shape)
    return parts[0] + 1j * parts[1]


def below(limit: int, *shape: int) -> np.ndarray:
    """Random positions below a bound."""
    return np.random.default_rng(5).integers(0, limit, shape).astype(np.int32)


def gelu(lib, x):
    """GELU, approximated with tanh."""
    return 0.5 * x * (1.0 + lib.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def chain(lib, x):
    """A chain of transcendental functions."""
    return lib.tanh(2.0 * x + 1.0) * lib.exp(-x * x) + lib.sin(x)


def horner(x):
    """A polynomial of degree 8."""
    y = x * 0.1 + 0.2
    for coefficient in (0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9):
        y = y * x + coefficient
    return y


def our_layer_norm(x):
    """Rows of mean 0 and variance 1."""
    centered = x - dn.mean(x, axes=1, keep_axes=True)
    return centered * dn.rsqrt(dn.mean(centered * centered, axes=1, keep_axes=True) + 1e-5)


def their_layer_norm(x):
    """The same."""
    centered = x - jnp.mean(x, axis=1, keepdims=True)
    return centered * jax.lax.rsqrt(jnp.mean(centered * centered, axis=1, keepdims=True) + 1e-5)


def our_softmax(x):
    """Rows that sum to 1."""
    e = dn.exp(x - dn.reduce_max(x, axes=1, keep_axes=True))
    return e / dn.sum(e, axes=1, keep_axes=True)


def our_trips(x, count):
    """A loop of a few operations."""
    state = dn.while_((0, x), lambda s: s[0] < count, lambda s: (s[0] + 1, s[1] * 0.999 + 0.5))
    return state[1]


def their_trips(x, count):
    """The same."""
    return jax.lax.fori_loop(0, count, lambda _, x: x * 0.999 + 0.5, x)


# The small arrays fit in the caches of one core; the large ones exceed all caches. Sizes between
# these would be in the last cache of one machine and in the memory of another.
SIZES = (("64 K", 1 << 16), ("16 M", 1 << 24))


def elementwise() -> Iterator[Workload]:
    """Element-wise functions; in cache and out of cache."""
    family, bias = "element-wise", normal(1024)
    for size, count in SIZES:
        x, y = normal(count), normal(count)[::-1].copy()
        yield Workload(family, f"a * 2 + 1, {size}", *[lambda a: a * 2.0 + 1.0] * 2, (x,))
        yield Workload(
            family, f"chain, {size}", lambda x: chain(dn, x), lambda x: chain(jnp, x), (x,)
        )
        yield Workload(family, f"gelu, {size}", lambda x: gelu(dn, x), lambda x: gelu(jnp, x), (x,))
        yield Workload(family, f"Horner, {size}", horner, horner, (x,))
        yield Workload(
            family, f"rows + bias, {size}", *[lambda x, b: x + b] * 2, (x.reshape(-1, 1024), bias)
        )
        yield Workload(
            family,
            f"select, {size}",
            lambda x, y: dn.select(x > y, x, y * 2.0),
            lambda x, y: jnp.where(x > y, x, y * 2.0),
            (x, y),
        )
        yield Workload(
            family,
            f"f32 to bf16 to f32, {size}",
            lambda x: dn.as_type(dn.as_type(x, "bf16"), "f32"),
            lambda x: jax.lax.reduce_precision(x, 8, 7),
            (x,),
        )
        yield Workload(
            family,
            f"f32 to s32, {size}",
            lambda x: dn.as_type(x * 100.0, "s32"),
            lambda x: (x * 100.0).astype(jnp.int32),
            (x,),
        )
        waves = (x + 1j * y)[: count // 2]
        yield Workload(
            family,
            f"complex product, {size}",
            *[lambda x, y: x * y] * 2,
            (waves, waves[::-1].copy()),
        )


def reductions() -> Iterator[Workload]:
    """Sums and functions built on them; in cache and out of cache."""
    family = "reduction"
    for size, count in SIZES:
        x = normal(count)
        rows, narrow = x.reshape(-1, 1024), x.reshape(-1, 64)
        yield Workload(family, f"sum, {size}", dn.sum, jnp.sum, (x,))
        yield Workload(
            family, f"sum of rows, {size}", lambda x: dn.sum(x, axes=1), lambda x: x.sum(1), (rows,)
        )
        yield Workload(
            family,
            f"sum of columns, {size}",
            lambda x: dn.sum(x, axes=0),
            lambda x: x.sum(0),
            (rows,),
        )
        yield Workload(
            family,
            f"argmax of rows, {size}",
            lambda x: dn.argmax(x, axis=1),
            lambda x: jnp.argmax(x, axis=1),
            (rows,),
        )
        yield Workload(
            family,
            f"logsumexp of rows, {size}",
            lambda x: dn.logsumexp(x, axes=1),
            lambda x: jax.nn.logsumexp(x, axis=1),
            (rows,),
        )
        yield Workload(family, f"layer norm, {size}", our_layer_norm, their_layer_norm, (rows,))
        for name, lines in ((f"softmax, {size}", rows), (f"softmax of 64, {size}", narrow)):
            yield Workload(family, name, our_softmax, lambda x: jax.nn.softmax(x, axis=1), (lines,))
        yield Workload(
            family,
            f"cumulative sum of rows, {size}",
            lambda x: dn.cumulative_sum(x, axis=1),
            lambda x: jnp.cumsum(x, axis=1),
            (rows,),
        )
        yield Workload(family, f"variance, {size}", dn.variance, lambda x: jnp.var(x), (x,))


def products() -> Iterator[Workload]:
    """Matrix products."""
    family = "dot"
    for size in (128, 256, 512, 1024, 2048):
        a, b = normal(size, size), normal(size, size)
        yield Workload(family, f"matmul {size}", *[lambda a, b: a @ b] * 2, (a, b))
    a, b = normal(512, 512, dtype="float64"), normal(512, 512, dtype="float64")
    yield Workload(family, "matmul 512, f64", *[lambda a, b: a @ b] * 2, (a, b), wide=True)
    batched = normal(64, 64, 64)
    yield Workload(family, "64 matmuls of 64", *[lambda a, b: a @ b] * 2, (batched, batched))
    vector = normal(2048)
    yield Workload(
        family, "matrix x vector, 2048", *[lambda a, b: a @ b] * 2, (normal(2048, 2048), vector)
    )
    yield Workload(
        family,
        "dense + bias + relu, 1024",
        lambda x, w, b: dn.max(x @ w + b, 0.0),
        lambda x, w, b: jnp.maximum(x @ w + b, 0.0),
        (normal(1024, 1024), normal(1024, 1024), normal(1024)),
    )


def our_conv(x, kernel, stride=1):
    """A convolution that keeps the size, unless it has a stride."""
    return dn.conv(x, kernel, strides=stride, padding=[(1, 1), (1, 1)])


def their_conv(x, kernel, stride=1):
    """The same."""
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), [(1, 1), (1, 1)])


PLACE = (1, 1, 2, 2)


def our_max_pool(x):
    """The maximum of each square."""
    return dn.window_max(x, PLACE, strides=PLACE)


def their_max_pool(x):
    """The same."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, PLACE, PLACE, "VALID")


def their_mean_pool(x):
    """The mean of each square."""
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, PLACE, PLACE, "VALID") * 0.25


def windows() -> Iterator[Workload]:
    """Convolution and pooling."""
    family = "window"
    images, kernels = normal(8, 16, 64, 64), normal(32, 16, 3, 3)
    wide, narrow, pooled = normal(8, 32, 64, 64), normal(8, 32, 32, 32), normal(8, 16, 32, 32)
    yield Workload(family, "conv 3 x 3", our_conv, their_conv, (images, kernels))
    yield Workload(
        family,
        "conv 3 x 3, stride 2",
        lambda x, k: our_conv(x, k, 2),
        lambda x, k: their_conv(x, k, 2),
        (images, kernels),
    )
    yield Workload(
        family,
        "conv of 64 channels",
        our_conv,
        their_conv,
        (normal(8, 64, 28, 28), normal(64, 64, 3, 3)),
    )
    for stride, name, g in ((1, "conv", wide), (2, "conv, stride 2", narrow)):
        for place, by in ((0, "input"), (1, "kernel")):
            yield Workload(
                family,
                f"gradient of {name} by {by}",
                dn.grad(lambda x, k, g, s=stride: dn.sum(our_conv(x, k, s) * g), argnums=place),
                jax.grad(lambda x, k, g, s=stride: jnp.sum(their_conv(x, k, s) * g), argnums=place),
                (images, kernels, g),
            )
    yield Workload(family, "max pool 2 x 2", our_max_pool, their_max_pool, (images,))
    yield Workload(
        family,
        "mean pool 2 x 2",
        lambda x: dn.window_mean(x, PLACE, strides=PLACE),
        their_mean_pool,
        (images,),
    )
    yield Workload(
        family,
        "gradient of max pool 2 x 2",
        dn.grad(lambda x, g: dn.sum(our_max_pool(x) * g)),
        jax.grad(lambda x, g: jnp.sum(their_max_pool(x) * g)),
        (images, pooled),
    )


def positions() -> Iterator[Workload]:
    """Reads and writes at positions, and sorting."""
    family = "index"
    table, places, updates = normal(65536, 64), below(65536, 16384), normal(16384, 64)
    yield Workload(
        family,
        "take rows",
        lambda x, i: dn.take(x, i),
        lambda x, i: jnp.take(x, i, 0),
        (table, places),
    )
    pairs = np.stack([below(65536, 1 << 20), below(64, 1 << 20)], axis=1)
    yield Workload(
        family,
        "gather elements, 1 M",
        dn.gather,
        lambda x, i: x[i[:, 0], i[:, 1]],
        (table, pairs),
    )
    yield Workload(
        family,
        "scatter-add rows",
        lambda x, i, y: dn.indexed_add(x, i[:, None], y),
        lambda x, i, y: x.at[i].add(y),
        (table, places, updates),
    )
    yield Workload(
        family,
        "scatter-add elements, 1 M",
        dn.indexed_add,
        lambda x, i, y: x.at[i[:, 0], i[:, 1]].add(y),
        (table, pairs, normal(1 << 20)),
    )
    # No two elements are equal, so that there is only one order.
    shuffled = np.random.default_rng(6).permutation(1 << 18).astype(np.float32)
    yield Workload(family, "sort, 256 K", dn.sort, jnp.sort, (shuffled,))
    yield Workload(family, "argsort, 256 K", dn.argsort, jnp.argsort, (shuffled,))


def loops() -> Iterator[Workload]:
    """Compiled loops."""
    yield Workload(
        "control",
        "10,000 scalar trips",
        lambda x: our_trips(x, 10_000),
        lambda x: their_trips(x, 10_000),
        (np.float32(1.0),),
    )
    yield Workload(
        "control",
        "1,000 trips on 1,024",
        lambda x: our_trips(x, 1_000),
        lambda x: their_trips(x, 1_000),
        (normal(1024),),
    )


def decompositions() -> Iterator[Workload]:
    """Factorizations and transforms."""
    family = "linalg and fft"
    square = normal(512, 512)
    positive = (square @ square.T / 512 + np.eye(512)).astype(np.float32)
    yield Workload(family, "cholesky 512", dn.linalg.cholesky, jnp.linalg.cholesky, (positive,))
    yield Workload(
        family, "solve 512", dn.linalg.solve, jnp.linalg.solve, (positive, normal(512, 16))
    )
    yield Workload(family, "fft 64 x 1024", dn.fft, jnp.fft.fft, (complex_normal(64, 1024),))
    yield Workload(family, "rfft, 1 M", dn.rfft, jnp.fft.rfft, (normal(1 << 20),))


def draws() -> Iterator[Workload]:
    """Random numbers from the same generator."""
    shape, seed = (1 << 22,), np.int32(7)
    for ours, theirs, name in (
        (dn.random.uniform_split, jax.random.uniform, "uniform, 4 M"),
        (dn.random.normal_split, jax.random.normal, "normal, 4 M"),
    ):
        yield Workload(
            "random",
            name,
            lambda seed, draw=ours: draw(dn.random.key(dn.as_type(seed, "s64")), shape=shape),
            lambda seed, draw=theirs: draw(jax.random.key(seed), shape),
            (seed,),
            drawn=True,
        )


def training() -> Iterator[Workload]:
    """Training steps."""
    large = dataclasses.replace(digits(batch=512, hidden=2048), name="digits, large")
    for model in (*(make() for make in MODELS), large):
        yield Workload(
            "training", model.name, model.ours, model.theirs, model.arguments(lambda array: array)
        )


FAMILIES = (
    elementwise,
    reductions,
    products,
    windows,
    positions,
    loops,
    decompositions,
    draws,
    training,
)
