"""Dynamic programming: tables whose entries need the entries before, and running sums."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import jax, jnp, lax
from .program import Arguments, Program, gradient

FAMILY = "dynamic programming"


# The algorithm of Needleman and Wunsch: the table of the best scores of aligned prefixes.

MATCH, MISMATCH, GAP = 2, -1, 2


@dn.defn
def needleman(first, second):
    rows, columns = first.shape[0] + 1, second.shape[0] + 1
    table = dn.put_slice(dn.broadcast(0, (rows, columns)), [0, 0], -GAP * dn.iota((1, columns)))
    table = dn.put_slice(table, [0, 0], -GAP * dn.iota((rows, 1)))
    for i in dn.range(1, rows):
        for j in dn.range(1, columns):
            score = dn.select(first[i - 1] == second[j - 1], MATCH, MISMATCH)
            gap = dn.maximum(table[i - 1, j], table[i, j - 1]) - GAP
            best = dn.maximum(table[i - 1, j - 1] + score, gap)
            table = dn.put_slice(table, [i, j], best[None, None])
    return table


@dn.defn
def needleman_rows(first, second):
    gaps = GAP * dn.iota(second.shape[0] + 1)

    def row(above, symbol):
        score = dn.select(second == symbol, MATCH, MISMATCH)
        start = dn.maximum(above[:-1] + score, above[1:] - GAP)
        start = dn.concatenate([above[:1] - GAP, start])
        line = dn.cumulative_max(start + gaps) - gaps
        return line, line

    _, lines = dn.scan(-gaps, first, row)
    return dn.concatenate([-gaps[None], lines])


def needleman_numpy(first, second):
    gaps = GAP * np.arange(len(second) + 1, dtype=np.int32)
    table = np.empty((len(first) + 1, len(second) + 1), np.int32)
    table[0] = -gaps
    for i, symbol in enumerate(first, 1):
        above, row = table[i - 1], table[i]
        score = np.where(second == symbol, MATCH, MISMATCH)
        row[0] = -GAP * i
        np.maximum(above[:-1] + score, above[1:] - GAP, out=row[1:])
        # The gaps along the row: the best of the starts to the left, less their distances.
        np.maximum.accumulate(row + gaps, out=row)
        row -= gaps
    return table


def needleman_numba(first, second):
    table = np.empty((first.size + 1, second.size + 1), np.int32)
    for j in range(second.size + 1):
        table[0, j] = -GAP * j
    for i in range(1, first.size + 1):
        table[i, 0] = -GAP * i
        for j in range(1, second.size + 1):
            score = MATCH if first[i - 1] == second[j - 1] else MISMATCH
            gap = max(table[i - 1, j], table[i, j - 1]) - GAP
            table[i, j] = max(table[i - 1, j - 1] + score, gap)
    return table


def needleman_jax(first, second):
    gaps = GAP * jnp.arange(second.shape[0] + 1, dtype=jnp.int32)

    def row(above, symbol):
        score = jnp.where(second == symbol, MATCH, MISMATCH)
        start = jnp.maximum(above[:-1] + score, above[1:] - GAP)
        start = jnp.concatenate([above[:1] - GAP, start])
        line = lax.cummax(start + gaps) - gaps
        return line, line

    _, lines = lax.scan(row, -gaps, first)
    return jnp.concatenate([-gaps[None], lines])


def sequences(n: int) -> Arguments:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, n)
    second = np.where(rng.random(n) < 0.2, rng.integers(0, 4, n), np.roll(first, 3))
    return (first.astype(np.int32), second.astype(np.int32)), {}


# Viterbi's algorithm: the most probable states. A loop forwards keeps the best scores, and one back
# finds where they came from.


@dn.defn
def viterbi(start, transition, emission):
    arrivals = transition.T

    def forward(best, row):
        return dn.reduce_max(arrivals + best, axes=1) + row, best

    def back(state, best):
        return dn.argmax(arrivals[state] + best), state

    best, before = dn.scan(start + emission[0], emission[1:], forward)
    first, path = dn.scan(dn.argmax(best), dn.reverse(before, 0), back)
    return dn.concatenate([first[None], dn.reverse(path)]), best


def viterbi_numpy(start, transition, emission):
    arrivals, best = np.ascontiguousarray(transition.T), np.empty_like(emission)
    best[0] = start + emission[0]
    for t in range(1, len(emission)):
        best[t] = (arrivals + best[t - 1]).max(1) + emission[t]
    path = np.empty(len(emission), np.int32)
    path[-1] = best[-1].argmax()
    for t in range(len(emission) - 2, -1, -1):
        path[t] = (arrivals[path[t + 1]] + best[t]).argmax()
    return path, best[-1]


def viterbi_numba(start, transition, emission):
    steps, states = emission.shape
    best, path = np.empty_like(emission), np.empty(steps, np.int32)
    best[0] = start + emission[0]
    row, arrivals = np.empty_like(start), transition.T.copy()
    for t in range(1, steps):
        row[:] = -np.inf
        for i in range(states):
            before = best[t - 1, i]
            for j in range(states):
                row[j] = max(row[j], before + transition[i, j])
        best[t] = row + emission[t]
    path[-1] = np.argmax(best[-1])
    for t in range(steps - 2, -1, -1):
        path[t] = np.argmax(arrivals[path[t + 1]] + best[t])
    return path, best[-1]


def viterbi_jax(start, transition, emission):
    arrivals = transition.T

    def forward(best, row):
        return (arrivals + best).max(1) + row, best

    def back(state, best):
        return (arrivals[state] + best).argmax(), state

    best, before = lax.scan(forward, start + emission[0], emission[1:])
    first, path = lax.scan(back, best.argmax(), before, reverse=True)
    return jnp.concatenate([first[None], path]), best


def chain(states: int, steps: int) -> Arguments:
    rng = np.random.default_rng(0)

    def logs(*shape: int) -> np.ndarray:
        x = rng.standard_normal(shape)
        return (x - np.log(np.exp(x).sum(-1, keepdims=True))).astype(np.float32)

    return (logs(states), logs(states, states), logs(steps, states)), {}


# Viterbi's recursion with sums in the place of maxima: the likelihood of what was observed.


@dn.defn
def forward(start, transition, emission):
    now = start + emission[0]
    for row in emission[1:]:
        now = dn.logsumexp(now[:, None] + transition, axes=0) + row
    return dn.logsumexp(now)


def forward_numpy(start, transition, emission):
    def logsumexp(x):
        top = x.max(0)
        return top + np.log(np.exp(x - top).sum(0))

    now = start + emission[0]
    for row in emission[1:]:
        now = logsumexp(now[:, None] + transition) + row
    return logsumexp(now)


def forward_numba(start, transition, emission):
    steps, states = emission.shape
    now, new = start + emission[0], np.empty_like(start)
    scores = np.empty_like(transition)
    for t in range(1, steps):
        for j in range(states):
            top, total = -np.float32(np.inf), np.float32(0)
            for i in range(states):
                scores[j, i] = now[i] + transition[i, j]
                top = max(top, scores[j, i])
            for i in range(states):
                total += np.exp(scores[j, i] - top)
            new[j] = top + np.log(total) + emission[t, j]
        now, new = new, now
    top = now.max()
    return top + np.log(np.exp(now - top).sum())


def forward_jax(start, transition, emission):
    def step(now, row):
        return jax.nn.logsumexp(now[:, None] + transition, axis=0) + row, None

    return jax.nn.logsumexp(lax.scan(step, start + emission[0], emission[1:])[0])


# Prefix sums of a vector, element by element.


@dn.defn
def prefix_sums(x):
    def add(total, item):
        total = total + item
        return total, total

    return dn.scan(0.0, x, add)[1]


def prefix_sums_numpy(x):
    return np.cumsum(x)


def prefix_sums_numba(x):
    sums, total = np.empty_like(x), x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
        sums[i] = total
    return sums


def prefix_sums_jax(x):
    return jnp.cumsum(x)


def positive_numbers(n: int) -> Arguments:
    return (np.random.default_rng(0).random(n).astype(np.float32),), {}


# A leaky sum of each column, of which every row is kept.


@dn.defn
def leaky(x, decay):
    def step(state, row):
        state = decay * state + row
        return state, state

    return dn.scan(dn.fill(x[0], 0.0), x, step)[1]


def leaky_numpy(x, decay):
    sums = np.empty_like(x)
    sums[0] = x[0]
    for i in range(1, len(x)):
        np.multiply(sums[i - 1], decay, out=sums[i])
        sums[i] += x[i]
    return sums


def leaky_numba(x, decay):
    sums = np.empty_like(x)
    sums[0] = x[0]
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            sums[i, j] = decay[j] * sums[i - 1, j] + x[i, j]
    return sums


def leaky_jax(x, decay):
    def step(state, row):
        state = decay * state + row
        return state, state

    return lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def signals(steps: int, columns: int) -> Arguments:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((steps, columns)).astype(np.float32)
    return (x, np.linspace(0.5, 0.95, columns).astype(np.float32)), {}


FORWARD = Program(
    FAMILY, "soft Viterbi", forward, forward_numpy, forward_numba, forward_jax, chain,
    {"states": 32, "steps": 500}, {"states": 4, "steps": 6}, "{states} states, {steps} steps",
)  # fmt: skip
LEAKY = Program(
    FAMILY, "leaky sums", leaky, leaky_numpy, leaky_numba, leaky_jax, signals,
    {"steps": 1000, "columns": 2048}, {"steps": 6, "columns": 3}, "{steps} rows of {columns}",
)  # fmt: skip
PROGRAMS = [
    Program(
        FAMILY, "Needleman-Wunsch by cells", needleman, needleman_numpy, needleman_numba,
        needleman_jax, sequences, {"n": 500}, {"n": 9}, "{n} x {n} symbols, s32",
    ),
    Program(
        FAMILY, "Needleman-Wunsch by rows", needleman_rows, needleman_numpy, needleman_numba,
        needleman_jax, sequences, {"n": 500}, {"n": 9}, "{n} x {n} symbols, s32",
    ),
    Program(
        FAMILY, "Viterbi", viterbi, viterbi_numpy, viterbi_numba, viterbi_jax, chain,
        {"states": 64, "steps": 1000}, {"states": 5, "steps": 7}, "{states} states, {steps} steps",
    ),
    FORWARD,
    Program(
        FAMILY, "prefix sums", prefix_sums, prefix_sums_numpy, prefix_sums_numba, prefix_sums_jax,
        positive_numbers, {"n": 1 << 18}, {"n": 13}, "{n} elements, one by one",
    ),
    LEAKY,
    gradient(FORWARD, 1, 2, full={"states": 32, "steps": 500}),
    gradient(LEAKY, 0, 1, full={"steps": 1000, "columns": 512}),
]  # fmt: skip
