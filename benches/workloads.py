"""The workloads that `peers.py` times, each written for defn and for JAX."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from models import MODELS

import defn as dn


@dataclass(frozen=True)
class Workload:
    """A function in both libraries, and a tree of arrays to call it with."""

    family: str
    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arguments: tuple[Any, ...]


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random numbers, the same ones in every run."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def gelu(lib, x):
    """The approximation by tanh."""
    return 0.5 * x * (1.0 + lib.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def chain(lib, x):
    """Transcendental functions."""
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
    """Rows that add up to 1."""
    e = dn.exp(x - dn.reduce_max(x, axes=1, keep_axes=True))
    return e / dn.sum(e, axes=1, keep_axes=True)


def our_trips(x, count):
    """A loop of a few operations."""
    state = dn.while_((0, x), lambda s: s[0] < count, lambda s: (s[0] + 1, s[1] * 0.999 + 0.5))
    return state[1]


def their_trips(x, count):
    """The same."""
    return jax.lax.fori_loop(0, count, lambda _, x: x * 0.999 + 0.5, x)


def elementwise() -> Iterator[Workload]:
    """Each element on its own; in cache and out of it."""
    large, small = normal(1 << 24), normal(1 << 16)
    rows, bias = normal(4096, 1024), normal(1024)
    yield Workload("element-wise", "a * 2 + 1, 16 M", *[lambda a: a * 2.0 + 1.0] * 2, (large,))
    yield Workload("element-wise", "a * 2 + 1, 64 K", *[lambda a: a * 2.0 + 1.0] * 2, (small,))
    for name, x in (("16 M", large), ("64 K", small)):
        yield Workload(
            "element-wise", f"chain, {name}", lambda x: chain(dn, x), lambda x: chain(jnp, x), (x,)
        )
    yield Workload(
        "element-wise", "gelu, 16 M", lambda x: gelu(dn, x), lambda x: gelu(jnp, x), (large,)
    )
    yield Workload("element-wise", "Horner, 16 M", horner, horner, (large,))
    yield Workload("element-wise", "rows + bias, 4 M", *[lambda x, b: x + b] * 2, (rows, bias))
    yield Workload(
        "element-wise",
        "select, 4 M",
        lambda x, y: dn.select(x > y, x, y * 2.0),
        lambda x, y: jnp.where(x > y, x, y * 2.0),
        (rows, rows[::-1].copy()),
    )


def reductions() -> Iterator[Workload]:
    """Sums and what is built on them."""
    large, rows = normal(1 << 24), normal(4096, 1024)
    yield Workload("reduction", "sum, 16 M", dn.sum, jnp.sum, (large,))
    yield Workload(
        "reduction", "sum of rows, 4 M", lambda x: dn.sum(x, axes=1), lambda x: x.sum(1), (rows,)
    )
    yield Workload(
        "reduction", "sum of columns, 4 M", lambda x: dn.sum(x, axes=0), lambda x: x.sum(0), (rows,)
    )
    yield Workload(
        "reduction",
        "argmax of rows, 4 M",
        lambda x: dn.argmax(x, axis=1),
        lambda x: jnp.argmax(x, axis=1),
        (rows,),
    )
    yield Workload(
        "reduction",
        "logsumexp of rows, 4 M",
        lambda x: dn.logsumexp(x, axes=1),
        lambda x: jax.nn.logsumexp(x, axis=1),
        (rows,),
    )
    yield Workload("reduction", "layer norm, 4 M", our_layer_norm, their_layer_norm, (rows,))
    yield Workload(
        "reduction", "softmax, 4 M", our_softmax, lambda x: jax.nn.softmax(x, axis=1), (rows,)
    )
    yield Workload("reduction", "variance, 16 M", dn.variance, lambda x: jnp.var(x), (large,))


def products() -> Iterator[Workload]:
    """Matrix products."""
    for size in (128, 512, 1024):
        a, b = normal(size, size), normal(size, size)
        yield Workload("dot", f"matmul {size}", *[lambda a, b: a @ b] * 2, (a, b))
    batched = normal(64, 64, 64)
    yield Workload("dot", "64 matmuls of 64", *[lambda a, b: a @ b] * 2, (batched, batched))
    yield Workload(
        "dot",
        "matrix x vector, 2048",
        *[lambda a, b: a @ b] * 2,
        (normal(2048, 2048), normal(2048)),
    )


def windows() -> Iterator[Workload]:
    """Convolution and pooling."""
    images, kernels = normal(8, 16, 64, 64), normal(32, 16, 3, 3)
    yield Workload(
        "window",
        "conv 3 x 3",
        lambda x, k: dn.conv(x, k, padding="same"),
        lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "SAME"),
        (images, kernels),
    )
    size = (1, 1, 2, 2)
    yield Workload(
        "window",
        "max pool 2 x 2",
        lambda x: dn.window_max(x, size, strides=size),
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, size, "VALID"),
        (images,),
    )


def positions() -> Iterator[Workload]:
    """Reading and writing by positions, and sorting."""
    table = normal(65536, 64)
    places = np.random.default_rng(5).integers(0, 65536, 16384).astype(np.int32)
    yield Workload(
        "index",
        "take rows",
        lambda x, i: dn.take(x, i),
        lambda x, i: jnp.take(x, i, 0),
        (table, places),
    )
    yield Workload(
        "index",
        "scatter-add rows",
        lambda x, i, y: dn.indexed_add(x, i[:, None], y),
        lambda x, i, y: x.at[i].add(y),
        (table, places, normal(16384, 64)),
    )
    yield Workload("index", "sort, 256 K", dn.sort, jnp.sort, (normal(1 << 18),))


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


def training() -> Iterator[Workload]:
    """Training steps."""
    for make in MODELS:
        model = make()
        yield Workload(
            "training", model.name, model.ours, model.theirs, model.arguments(lambda array: array)
        )


FAMILIES = (elementwise, reductions, products, windows, positions, loops, training)
