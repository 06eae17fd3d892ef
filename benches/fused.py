"""Workloads of what a compiler puts together; they are beside the mean of the others."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from report import BESIDE
from workloads import (
    Workload,
    below,
    horner,
    normal,
    our_layer_norm,
    our_softmax,
    their_layer_norm,
)

import defn as dn

FAMILY = BESIDE


def our_distances(x, y):
    """The squared distances of all pairs of rows."""
    return dn.sum((x[:, None, :] - y[None, :, :]) ** 2, axes=2)


def their_distances(x, y):
    """The same."""
    return jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2)


def our_entropy(scores, labels):
    """The mean cross-entropy of scores and labels."""
    shifted = scores - dn.reduce_max(scores, axes=1, keep_axes=True)
    normed = shifted - dn.log(dn.sum(dn.exp(shifted), axes=1, keep_axes=True))
    return -dn.mean(dn.take_along_axis(normed, labels[:, None], axis=1))


def their_entropy(scores, labels):
    """The same."""
    normed = jax.nn.log_softmax(scores, axis=1)
    return -jnp.mean(jnp.take_along_axis(normed, labels[:, None], axis=1))


def our_attention(q, k, v):
    """Attention of heads: each query's mean of values, weighted by keys."""
    scores = dn.dot(q, [2], [0], k, [2], [0]) * 0.125
    shifted = dn.exp(scores - dn.reduce_max(scores, axes=2, keep_axes=True))
    weights = shifted / dn.sum(shifted, axes=2, keep_axes=True)
    return dn.dot(weights, [2], [0], v, [1], [0])


def their_attention(q, k, v):
    """The same."""
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * 0.125
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=2), v)


def stencil(x):
    """The mean of four neighbours."""
    return 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def our_columns(x):
    """Columns of mean 0 and variance 1."""
    apart = x - dn.mean(x, axes=0)
    return apart / dn.sqrt(dn.mean(apart * apart, axes=0) + 1e-5)


def their_columns(x):
    """The same."""
    apart = x - x.mean(0)
    return apart / jnp.sqrt((apart * apart).mean(0) + 1e-5)


def fused() -> Iterator[Workload]:
    """Work in the last cache, and programs that should not write what is between."""
    x = normal(4096, 1024)
    yield Workload(FAMILY, "a * 2 + 1, 4 M", *[lambda a: a * 2.0 + 1.0] * 2, (x,))
    yield Workload(FAMILY, "Horner, 4 M", horner, horner, (x,))
    yield Workload(FAMILY, "rows + bias, 4 M", *[lambda x, b: x + b] * 2, (x, normal(1024)))
    yield Workload(FAMILY, "layer norm, 4 M", our_layer_norm, their_layer_norm, (x,))
    yield Workload(FAMILY, "softmax, 4 M", our_softmax, lambda x: jax.nn.softmax(x, axis=1), (x,))
    yield Workload(FAMILY, "columns normalised, 4 M", our_columns, their_columns, (x,))
    square = normal(2048, 2048)
    yield Workload(FAMILY, "x + x transposed, 4 M", *[lambda x: x + x.T] * 2, (square,))
    yield Workload(
        FAMILY,
        "pairwise distances",
        our_distances,
        their_distances,
        (normal(1000, 64), normal(1000, 64)),
    )
    table, words = normal(8192, 128), below(8192, 4096)
    yield Workload(
        FAMILY,
        "embedding",
        lambda table, words: dn.take(table, words) * 2.0 + 1.0,
        lambda table, words: jnp.take(table, words, 0) * 2.0 + 1.0,
        (table, words),
    )
    yield Workload(
        FAMILY,
        "gradient of embedding",
        dn.grad(lambda table, words: dn.sum(dn.take(table, words) ** 2)),
        jax.grad(lambda table, words: jnp.sum(jnp.take(table, words, 0) ** 2)),
        (table, words),
    )
    scores, labels = normal(4096, 1000), below(1000, 4096)
    yield Workload(FAMILY, "cross-entropy", our_entropy, their_entropy, (scores, labels))
    yield Workload(
        FAMILY,
        "gradient of cross-entropy",
        dn.grad(our_entropy),
        jax.grad(their_entropy),
        (scores, labels),
    )
    heads = tuple(normal(8, 512, 64) for _ in range(3))
    yield Workload(FAMILY, "attention 8 x 512 x 64", our_attention, their_attention, heads)
    small = normal(4096, 16, 16)
    yield Workload(FAMILY, "4096 matmuls of 16", *[lambda a, b: a @ b] * 2, (small, small))
    yield Workload(FAMILY, "stencil of 5, 4 M", stencil, stencil, (square,))
    yield Workload(
        FAMILY,
        "three concatenated, 3 M",
        lambda x: dn.concatenate([x * 2.0, x + 1.0, -x]) * 0.5,
        lambda x: jnp.concatenate([x * 2.0, x + 1.0, -x]) * 0.5,
        (normal(1 << 20),),
    )
    count = np.arange(1 << 20)
    yield Workload(
        FAMILY,
        "s64 x * 4 + y * 3 + 9, 1 M",
        *[lambda x, y: x * 4 + y * 3 + 9] * 2,
        (count, count[::-1].copy()),
        wide=True,
    )
    yield Workload(
        FAMILY,
        "matrix x vector, 2048, f64",
        *[lambda a, b: a @ b] * 2,
        (normal(2048, 2048, dtype="float64"), normal(2048, dtype="float64")),
        wide=True,
    )
