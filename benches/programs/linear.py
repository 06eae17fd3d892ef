"""Linear algebra in which each trip needs the columns, rows or sums of the trips before."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import jax, jnp, lax, prange
from .program import Arguments, Program

FAMILY = "linear algebra"


# Thomas's algorithm: many tridiagonal systems at once, one in each column.


def eliminate(state, row):
    c, d = state
    lower, diagonal, upper, right = row
    pivot = 1.0 / (diagonal - lower * c)
    state = upper * pivot, (right - lower * d) * pivot
    return state, state


def substitute(x, row):
    c, d = row
    x = d - c * x
    return x, x


@dn.defn
def thomas(lower, diagonal, upper, right):
    zero = dn.fill(right[0], 0.0)
    _, (c, d) = dn.scan((zero, zero), (lower, diagonal, upper, right), eliminate)
    _, x = dn.scan(zero, (dn.reverse(c, 0), dn.reverse(d, 0)), substitute)
    return dn.reverse(x, 0)


def thomas_numpy(lower, diagonal, upper, right):
    c, d = np.empty_like(upper), np.empty_like(right)
    c[0], d[0] = upper[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, len(c)):
        pivot = 1.0 / (diagonal[i] - lower[i] * c[i - 1])
        c[i], d[i] = upper[i] * pivot, (right[i] - lower[i] * d[i - 1]) * pivot
    for i in range(len(c) - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def thomas_numba(lower, diagonal, upper, right):
    one, (n, systems) = np.float32(1), right.shape
    c, d = np.empty_like(upper), np.empty_like(right)
    for j in range(systems):
        pivot = one / diagonal[0, j]
        c[0, j], d[0, j] = upper[0, j] * pivot, right[0, j] * pivot
    for i in range(1, n):
        for j in range(systems):
            pivot = one / (diagonal[i, j] - lower[i, j] * c[i - 1, j])
            c[i, j] = upper[i, j] * pivot
            d[i, j] = (right[i, j] - lower[i, j] * d[i - 1, j]) * pivot
    for i in range(n - 2, -1, -1):
        for j in range(systems):
            d[i, j] -= c[i, j] * d[i + 1, j]
    return d


def thomas_jax(lower, diagonal, upper, right):
    zero = jnp.zeros_like(right[0])
    _, (c, d) = lax.scan(eliminate, (zero, zero), (lower, diagonal, upper, right))
    return lax.scan(substitute, zero, (c, d), reverse=True)[1]


def tridiagonal(n: int, systems: int) -> Arguments:
    rng = np.random.default_rng(0)
    shape = (n, systems)
    lower, upper, right = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    return (lower, (np.abs(lower) + np.abs(upper) + 1).astype(np.float32), upper, right), {}


# The algorithm of Floyd and Warshall: the lengths of the shortest paths between all pairs.


@dn.defn
def floyd_warshall(d):
    for k in dn.range(d.shape[0]):
        d = dn.minimum(d, dn.slice_along_axis(d, k, 1, axis=1) + d[k])
    return d


def floyd_warshall_numpy(d):
    d = d.copy()
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d


def floyd_warshall_numba(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        # A copy, which the inner loop cannot write to.
        row = d[k].copy()
        for i in prange(n):
            before = d[i, k]
            for j in range(n):
                d[i, j] = min(d[i, j], before + row[j])
    return d


def floyd_warshall_jax(d):
    return lax.fori_loop(0, d.shape[0], lambda k, d: jnp.minimum(d, d[:, k, None] + d[k]), d)


def network(n: int) -> Arguments:
    rng = np.random.default_rng(0)
    d = np.where(rng.random((n, n)) < 0.1, rng.random((n, n)), 1e6).astype(np.float32)
    np.fill_diagonal(d, 0)
    return (d,), {}


# Cholesky's factor, column by column.


@dn.defn
def cholesky(a):
    factor, rows = dn.fill(a, 0.0), dn.iota(a.shape[0])
    for j in dn.range(a.shape[0]):
        column = a[j] - factor @ factor[j]
        column = dn.select(rows >= j, column / dn.sqrt(column[j]), 0.0)
        factor = dn.put_slice(factor, [0, j], column[:, None])
    return factor


def cholesky_numpy(a):
    factor = np.zeros_like(a)
    for j in range(len(a)):
        column = a[j:, j] - factor[j:, :j] @ factor[j, :j]
        factor[j:, j] = column / np.sqrt(column[0])
    return factor


def cholesky_numba(a):
    # Rows of the transposed factor, so that the inner loop is along memory.
    n, rest = a.shape[0], a.copy()
    for k in range(n):
        scale = np.float32(1) / np.sqrt(rest[k, k])
        for j in range(k, n):
            rest[k, j] *= scale
        for i in prange(k + 1, n):
            times = rest[k, i]
            for j in range(i, n):
                rest[i, j] -= times * rest[k, j]
    for i in range(n):
        for j in range(i):
            rest[j, i], rest[i, j] = np.float32(0), rest[j, i]
    return rest


def cholesky_jax(a):
    rows = jnp.arange(a.shape[0])

    def step(j, factor):
        column = a[j] - factor @ factor[j]
        column = jnp.where(rows >= j, column / jnp.sqrt(column[j]), 0.0)
        return factor.at[:, j].set(column)

    return lax.fori_loop(0, a.shape[0], step, jnp.zeros_like(a))


def positive(n: int) -> Arguments:
    x = np.random.default_rng(0).standard_normal((n, n))
    return ((x @ x.T / n + np.eye(n)).astype(np.float32),), {}


# The recursion of Levinson and Durbin: the filter that predicts a signal from its last values.


# Where lengths are known before, the orders are done in so many parts: arrays are as long as the
# last order of each needs.
PARTS = 4


def parts(n: int) -> list[tuple[int, int]]:
    return [(n * part // PARTS, n * (part + 1) // PARTS) for part in range(PARTS)]


@dn.defn
def levinson(r):
    n = r.shape[0] - 1
    backward = dn.concatenate([dn.reverse(r), dn.fill(r[1:], 0.0)])
    a, error = r[:0], r[0]
    for first, end in parts(n):
        zeros = dn.fill(r[:end], 0.0)
        a = dn.concatenate([a, zeros[first:]])
        for k in dn.range(first, end):
            lags = dn.slice(backward, [n - k], [end])
            reflection = -(r[k + 1] + dn.dot(a, lags)) / error
            mirrored = dn.slice(dn.concatenate([dn.reverse(a), zeros]), [end - k], [end])
            a = dn.put_slice(a + reflection * mirrored, [k], reflection[None])
            error = error * (1.0 - reflection * reflection)
    return a, error


def levinson_numpy(r):
    a, error = np.zeros_like(r[1:]), r[0]
    for k in range(len(a)):
        reflection = -(r[k + 1] + a[:k] @ r[k:0:-1]) / error
        a[:k] += reflection * a[:k][::-1]
        a[k] = reflection
        error = error * (1.0 - reflection * reflection)
    return a, error


def levinson_numba(r):
    a, before, error = np.zeros_like(r[1:]), np.zeros_like(r[1:]), r[0]
    n, backward = a.size, r[::-1].copy()
    for k in range(n):
        reflection = -(r[k + 1] + np.dot(a[:k], backward[n - k : n])) / error
        a, before = before, a
        for i in range(k):
            a[i] = before[i] + reflection * before[k - 1 - i]
        a[k] = reflection
        error = error * (1.0 - reflection * reflection)
    return a, error


def levinson_jax(r):
    n = r.shape[0] - 1
    backward = jnp.concatenate([r[::-1], jnp.zeros_like(r[1:])])
    a, error = r[:0], r[0]
    for first, end in parts(n):
        zeros = jnp.zeros_like(r[:end])

        def order(k, state, end=end, zeros=zeros):
            a, error = state
            lags = lax.dynamic_slice(backward, (n - k,), (end,))
            reflection = -(r[k + 1] + jnp.dot(a, lags)) / error
            mirrored = lax.dynamic_slice(jnp.concatenate([a[::-1], zeros]), (end - k,), (end,))
            a = (a + reflection * mirrored).at[k].set(reflection)
            return a, error * (1.0 - reflection * reflection)

        a = jnp.concatenate([a, zeros[first:]])
        a, error = lax.fori_loop(first, end, order, (a, error))
    return a, error


def autocorrelation(n: int) -> Arguments:
    signal = np.random.default_rng(0).standard_normal(4 * n)
    signal[2:] += 0.9 * signal[1:-1] - 0.5 * signal[:-2]
    spectrum = np.abs(np.fft.rfft(signal, 8 * n)) ** 2
    return (np.fft.irfft(spectrum)[: n + 1] / (4 * n),), {}


# PageRank: each round sums over the links to a page, which are sorted by their targets.

DAMPING = 0.85


@dn.defn
def pagerank(source, target, degree, *, rounds):
    pages = degree.shape[0]
    rank = dn.fill(degree, 1.0 / pages)
    for _ in dn.range(rounds):
        share = dn.take(rank / degree, source)
        total = dn.indexed_add(dn.fill(rank, 0.0), dn.new_axis(target, 1), share)
        rank = (1.0 - DAMPING) / pages + DAMPING * total
    return rank


def pagerank_numpy(source, target, degree, *, rounds):
    pages = len(degree)
    rank = np.full_like(degree, 1.0 / pages)
    for _ in range(rounds):
        total = np.bincount(target, (rank / degree)[source], pages).astype(degree.dtype)
        rank = (1.0 - DAMPING) / pages + DAMPING * total
    return rank


def pagerank_numba(source, target, degree, rounds):
    pages = degree.size
    rank, share = np.full_like(degree, 1.0 / pages), np.empty_like(degree)
    rest, damping = np.float32((1.0 - DAMPING) / pages), np.float32(DAMPING)
    for _ in range(rounds):
        for page in range(pages):
            share[page] = rank[page] / degree[page]
            rank[page] = 0
        for link in range(source.size):
            rank[target[link]] += share[source[link]]
        for page in range(pages):
            rank[page] = rest + damping * rank[page]
    return rank


def pagerank_jax(source, target, degree, *, rounds):
    pages = degree.shape[0]

    def turn(_, rank):
        share = (rank / degree)[source]
        total = jax.ops.segment_sum(share, target, pages, indices_are_sorted=True)
        return (1.0 - DAMPING) / pages + DAMPING * total

    return lax.fori_loop(0, rounds, turn, jnp.full_like(degree, 1.0 / pages))


def links(pages: int, count: int, rounds: int) -> Arguments:
    rng = np.random.default_rng(0)
    source = np.concatenate([np.arange(pages), rng.integers(0, pages, count - pages)])
    target = np.sort((pages * rng.random(count) ** 2).astype(np.int32))
    degree = np.bincount(source, minlength=pages).astype(np.float32)
    return (rng.permuted(source).astype(np.int32), target, degree), {"rounds": rounds}


PROGRAMS = [
    Program(
        FAMILY, "Thomas algorithm", thomas, thomas_numpy, thomas_numba, thomas_jax, tridiagonal,
        {"n": 256, "systems": 1024}, {"n": 7, "systems": 3}, "{systems} systems of {n}",
    ),
    Program(
        FAMILY, "Floyd-Warshall", floyd_warshall, floyd_warshall_numpy, floyd_warshall_numba,
        floyd_warshall_jax, network, {"n": 256}, {"n": 20}, "{n} nodes",
    ),
    Program(
        FAMILY, "Cholesky", cholesky, cholesky_numpy, cholesky_numba, cholesky_jax, positive,
        {"n": 256}, {"n": 9}, "{n} x {n}, by columns",
    ),
    Program(
        FAMILY, "Levinson-Durbin", levinson, levinson_numpy, levinson_numba, levinson_jax,
        autocorrelation, {"n": 2000}, {"n": 12}, "order {n}, f64",
    ),
    Program(
        FAMILY, "PageRank", pagerank, pagerank_numpy, pagerank_numba, pagerank_jax, links,
        {"pages": 10_000, "count": 100_000, "rounds": 20}, {"pages": 9, "count": 30, "rounds": 5},
        "{pages} pages, {count} links, {rounds} rounds",
    ),
]  # fmt: skip
