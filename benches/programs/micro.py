"""The smallest loops: what a trip costs, and one reduction, product or branch in it."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import lax
from .program import Arguments, Program

FAMILY = "micro loops"


# A counter and a number.


@dn.defn
def counter(x, *, trips):
    for _ in dn.range(trips):
        x = x * 0.999 + 0.5
    return x


def counter_numpy(x, *, trips):
    for _ in range(trips):
        x = x * 0.999 + 0.5
    return x


def counter_numba(x, trips):
    x, factor, more = x[()], np.float32(0.999), np.float32(0.5)
    for _ in range(trips):
        x = x * factor + more
    return x


def counter_jax(x, *, trips):
    return lax.fori_loop(0, trips, lambda _, x: x * 0.999 + 0.5, x)


def number(trips: int) -> Arguments:
    return (np.array(1, np.float32),), {"trips": trips}


# The sum of 16 numbers.


@dn.defn
def summed(x, *, trips):
    for _ in dn.range(trips):
        x = 0.5 * x + 0.03125 * dn.sum(x)
    return x


def summed_numpy(x, *, trips):
    for _ in range(trips):
        x = 0.5 * x + 0.03125 * x.sum()
    return x


def summed_numba(x, trips):
    half, part, x = np.float32(0.5), np.float32(0.03125), x.copy()
    for _ in range(trips):
        total = np.float32(0)
        for value in x:
            total += value
        for i in range(x.size):
            x[i] = half * x[i] + part * total
    return x


def summed_jax(x, *, trips):
    return lax.fori_loop(0, trips, lambda _, x: 0.5 * x + 0.03125 * x.sum(), x)


# The product of a matrix and a vector, and of two matrices. The matrix turns without stretching.


@dn.defn
def product(x, turn, *, trips):
    for _ in dn.range(trips):
        x = turn @ x
    return x


def product_numpy(x, turn, *, trips):
    for _ in range(trips):
        x = turn @ x
    return x


def product_numba(x, turn, trips):
    x, y = x.copy(), np.empty_like(x)
    for _ in range(trips):
        np.dot(turn, x, y)
        x, y = y, x
    return x


def product_jax(x, turn, *, trips):
    return lax.fori_loop(0, trips, lambda _, x: turn @ x, x)


def turned(n: int, columns: int, trips: int) -> Arguments:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0].astype(np.float32)
    x = rng.standard_normal((n, columns) if columns > 1 else n).astype(np.float32)
    return (x, turn), {"trips": trips}


# A branch on the sum of 16 numbers.


@dn.defn
def branch(x, by, *, trips):
    for _ in dn.range(trips):
        x = x - by if dn.sum(x) > 0 else x + 1.0
    return x


def branch_numpy(x, by, *, trips):
    for _ in range(trips):
        x = x - by if x.sum() > 0 else x + 1.0
    return x


def branch_numba(x, by, trips):
    one, x = np.float32(1), x.copy()
    for _ in range(trips):
        total = np.float32(0)
        for value in x:
            total += value
        if total > 0:
            for i in range(x.size):
                x[i] -= by[i]
        else:
            for i in range(x.size):
                x[i] += one
    return x


def branch_jax(x, by, *, trips):
    def trip(_, x):
        return lax.cond(x.sum() > 0, lambda: x - by, lambda: x + 1.0)

    return lax.fori_loop(0, trips, trip, x)


def vector(n: int, trips: int) -> Arguments:
    x = np.random.default_rng(0).random(n).astype(np.float32)
    return (x,), {"trips": trips}


def pair(n: int, trips: int) -> Arguments:
    # Multiples of a quarter, whose sums are exact in every order.
    x = np.arange(n, dtype=np.float32) / 2
    return (x, np.full(n, 0.75, np.float32)), {"trips": trips}


PROGRAMS = [
    Program(
        FAMILY, "counter", counter, counter_numpy, counter_numba, counter_jax, number,
        {"trips": 10_000}, {"trips": 10}, "a number, {trips} trips",
    ),
    Program(
        FAMILY, "sum", summed, summed_numpy, summed_numba, summed_jax, vector,
        {"n": 16, "trips": 10_000}, {"n": 3, "trips": 10}, "{n} numbers, {trips} trips",
    ),
    Program(
        FAMILY, "matrix x vector", product, product_numpy, product_numba, product_jax, turned,
        {"n": 32, "columns": 1, "trips": 10_000}, {"n": 3, "columns": 1, "trips": 5},
        "{n} x {n} and a vector, {trips} trips", tolerance=5e-3,
    ),
    Program(
        FAMILY, "matrix x matrix", product, product_numpy, product_numba, product_jax, turned,
        {"n": 32, "columns": 32, "trips": 10_000}, {"n": 3, "columns": 3, "trips": 5},
        "{n} x {n} and {n} x {columns}, {trips} trips", tolerance=5e-3,
    ),
    Program(
        FAMILY, "branch", branch, branch_numpy, branch_numba, branch_jax, pair,
        {"n": 16, "trips": 10_000}, {"n": 3, "trips": 10}, "{n} numbers, {trips} trips",
    ),
]  # fmt: skip
