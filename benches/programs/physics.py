"""Bodies, spins, maps and differential equations: many small steps, each from the last."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import jnp, lax, prange
from .program import Arguments, Program

FAMILY = "physics"


# Bodies that attract each other, by the leapfrog method.

SOFT, STEP = 1e-2, 1e-3


@dn.defn
def bodies(x, v, mass, *, steps):
    def pull(x):
        apart = x - x[:, None]
        square = dn.sum(apart * apart, axes=2) + SOFT
        force = mass / (square * dn.sqrt(square))
        return dn.sum(force[:, :, None] * apart, axes=1)

    a = pull(x)
    for _ in dn.range(steps):
        v = v + 0.5 * STEP * a
        x = x + STEP * v
        a = pull(x)
        v = v + 0.5 * STEP * a
    return x, v


def bodies_numpy(x, v, mass, *, steps):
    def pull(x):
        apart = x - x[:, None]
        square = np.einsum("ijk,ijk->ij", apart, apart) + SOFT
        return np.einsum("ij,ijk->ik", mass / (square * np.sqrt(square)), apart)

    a = pull(x)
    for _ in range(steps):
        v = v + 0.5 * STEP * a
        x = x + STEP * v
        a = pull(x)
        v = v + 0.5 * STEP * a
    return x, v


def bodies_numba(x, v, mass, steps):
    soft, step, half, zero = np.float32(SOFT), np.float32(STEP), np.float32(STEP / 2), np.float32(0)
    n = x.shape[0]
    # Each coordinate lies by itself, so that the inner loop becomes vectors.
    x, v, a = x.T.copy(), v.T.copy(), np.zeros((3, n), np.float32)
    for turn in range(steps + 1):
        if turn > 0:
            v += half * a
            x += step * v
        x0, x1, x2 = x[0].copy(), x[1].copy(), x[2].copy()
        for i in prange(n):
            force = np.empty((3, n), np.float32)
            for j in range(n):
                d0, d1, d2 = x0[j] - x0[i], x1[j] - x1[i], x2[j] - x2[i]
                square = d0 * d0 + d1 * d1 + d2 * d2 + soft
                weight = mass[j] / (square * np.sqrt(square))
                force[0, j], force[1, j], force[2, j] = weight * d0, weight * d1, weight * d2
            s0, s1, s2 = zero, zero, zero
            for j in range(n):
                s0, s1, s2 = s0 + force[0, j], s1 + force[1, j], s2 + force[2, j]
            a[0, i], a[1, i], a[2, i] = s0, s1, s2
        if turn > 0:
            v += half * a
    return x.T.copy(), v.T.copy()


def bodies_jax(x, v, mass, *, steps):
    def pull(x):
        apart = x - x[:, None]
        square = (apart * apart).sum(2) + SOFT
        force = mass / (square * jnp.sqrt(square))
        return (force[:, :, None] * apart).sum(1)

    def step(_, state):
        x, v, a = state
        v = v + 0.5 * STEP * a
        x = x + STEP * v
        a = pull(x)
        return x, v + 0.5 * STEP * a, a

    return lax.fori_loop(0, steps, step, (x, v, pull(x)))[:2]


def cluster(n: int, steps: int) -> Arguments:
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((2, n, 3)).astype(np.float32)
    return (x, v, (rng.random(n) / n).astype(np.float32)), {"steps": steps}


# Ising's model on a torus: each sweep offers a flip to the spins of one colour, then of the other.

COLD = 0.44


@dn.defn
def ising(spins, draws):
    rows, columns = spins.shape
    colour = (dn.iota((rows, columns), axis=0) + dn.iota((rows, columns), axis=1)) % 2
    for draw in draws:
        for turn in (0, 1):
            padded = dn.pad_outer(spins, "cyclic", [(1, 1), (1, 1)])
            around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
            chance = dn.exp(-2.0 * COLD * dn.as_type(spins * around, "f32"))
            spins = dn.select((colour == turn) & (draw < chance), -spins, spins)
    return spins


def ising_numpy(spins, draws):
    colour = np.indices(spins.shape).sum(0) % 2
    colours = colour == 0, colour == 1
    likely, unlikely = np.exp(np.array([-4 * COLD, -8 * COLD], draws.dtype))
    padded = np.pad(spins, 1)
    for draw in draws:
        either, both = draw < likely, draw < unlikely
        for mine in colours:
            padded[1:-1, 1:-1] = spins
            padded[0], padded[-1] = padded[-2], padded[1]
            padded[:, 0], padded[:, -1] = padded[:, -2], padded[:, 1]
            around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
            alike = spins * around
            flip = mine & ((alike <= 0) | ((alike == 2) & either) | both)
            spins = np.where(flip, -spins, spins)
    return spins


def ising_numba(spins, draws):
    rows, columns = spins.shape
    # A row and a column on each side repeat those of the other side.
    x = np.zeros((rows + 2, columns + 2), np.int8)
    x[1:-1, 1:-1] = spins
    likely, unlikely = np.exp(np.float32(-4 * COLD)), np.exp(np.float32(-8 * COLD))
    for sweep in range(draws.shape[0]):
        draw = draws[sweep]
        for turn in range(2):
            x[0], x[-1], x[:, 0], x[:, -1] = x[-2], x[1], x[:, -2], x[:, 1]
            for i in prange(rows):
                above, here, below = x[i], x[i + 1], x[i + 2]
                new = np.empty(columns, np.int8)
                # Without branches, so that it becomes vectors.
                for j in range(columns):
                    spin = here[j + 1]
                    alike = spin * (above[j + 1] + below[j + 1] + here[j] + here[j + 2])
                    flip = (alike <= 0) | ((alike == 2) & (draw[i, j] < likely))
                    flip = (flip | (draw[i, j] < unlikely)) & ((i + j + turn) % 2 == 0)
                    new[j] = -spin if flip else spin
                for j in range(columns):
                    here[j + 1] = new[j]
    return x[1:-1, 1:-1].copy()


def ising_jax(spins, draws):
    rows, columns = jnp.indices(spins.shape)
    colour = (rows + columns) % 2

    def sweep(spins, draw):
        for turn in (0, 1):
            around = jnp.roll(spins, 1, 0) + jnp.roll(spins, -1, 0)
            around += jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
            chance = jnp.exp(-2.0 * COLD * (spins * around).astype(jnp.float32))
            spins = jnp.where((colour == turn) & (draw < chance), -spins, spins)
        return spins, None

    return lax.scan(sweep, spins, draws)[0]


def magnet(n: int, sweeps: int) -> Arguments:
    rng = np.random.default_rng(0)
    spins = np.where(rng.random((n, n)) < 0.5, -1, 1).astype(np.int8)
    # Halves between multiples of a small number, so that no draw is near a library's `exp`.
    draws = (rng.integers(0, 1 << 12, (sweeps, n, n)) + 0.5) / (1 << 12)
    return (spins, draws.astype(np.float32)), {}


# A Julia set: after how many steps a point leaves the circle of radius 2.

SEED = (-0.8, 0.156)


@dn.defn
def julia(x, y, *, limit):
    steps = dn.fill(x, 0)
    for _ in dn.range(limit):
        inside = x * x + y * y < 4.0
        x, y = (
            dn.select(inside, x * x - y * y + SEED[0], x),
            dn.select(inside, 2.0 * x * y + SEED[1], y),
        )
        steps = steps + dn.as_type(inside, steps.dtype)
    return steps


def julia_numpy(x, y, *, limit):
    # Only the points that are still inside take part.
    steps, place = np.zeros(x.shape, np.float32), np.arange(x.size)
    x, y = x.ravel(), y.ravel()
    for _ in range(limit):
        inside = x * x + y * y < 4.0
        place, x, y = place[inside], x[inside], y[inside]
        x, y = x * x - y * y + SEED[0], 2.0 * x * y + SEED[1]
        steps.ravel()[place] += 1
    return steps


def julia_numba(x, y, limit):
    steps, two, four = np.zeros(x.shape, np.float32), np.float32(2), np.float32(4)
    real, imaginary = np.float32(SEED[0]), np.float32(SEED[1])
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            a, b, count = x[i, j], y[i, j], 0
            while count < limit and a * a + b * b < four:
                a, b = a * a - b * b + real, two * a * b + imaginary
                count += 1
            steps[i, j] = count
    return steps


def julia_jax(x, y, *, limit):
    def step(_, state):
        x, y, steps = state
        inside = x * x + y * y < 4.0
        after = x * x - y * y + SEED[0], 2.0 * x * y + SEED[1]
        x, y = jnp.where(inside, after[0], x), jnp.where(inside, after[1], y)
        return x, y, steps + inside

    return lax.fori_loop(0, limit, step, (x, y, jnp.zeros_like(x)))[2]


def plane(n: int, limit: int) -> Arguments:
    side = np.linspace(-1.5, 1.5, n, dtype=np.float32)
    x, y = np.meshgrid(side, side)
    return (x, y), {"limit": limit}


PROGRAMS = [
    Program(
        FAMILY, "N-body", bodies, bodies_numpy, bodies_numba, bodies_jax, cluster,
        {"n": 256, "steps": 20}, {"n": 5, "steps": 4}, "{n} bodies, {steps} steps",
    ),
    Program(
        FAMILY, "Ising sweeps", ising, ising_numpy, ising_numba, ising_jax, magnet,
        {"n": 256, "sweeps": 20}, {"n": 8, "sweeps": 3}, "{n} x {n}, {sweeps} sweeps, s8",
    ),
    Program(
        FAMILY, "Julia set", julia, julia_numpy, julia_numba, julia_jax, plane,
        {"n": 256, "limit": 100}, {"n": 12, "limit": 20}, "{n} x {n}, at most {limit} steps",
        outliers=0.02,
    ),
]  # fmt: skip
