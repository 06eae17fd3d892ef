"""Loops over grids: each trip replaces the cells by a function of their neighbours."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import jnp, lax, prange
from .program import Arguments, Program, gradient

FAMILY = "stencils"


def grids(*shape: int, count: int = 2) -> tuple[np.ndarray, ...]:
    """Random grids, whose cells are normal."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(np.float32) for _ in range(count))


# Jacobi's method for the equation of Poisson: every cell from the last sweep's neighbours.


@dn.defn
def jacobi(x, b, *, sweeps):
    for _ in dn.range(sweeps):
        inner = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - b[1:-1, 1:-1])
        x = dn.put_slice(x, [1, 1], inner)
    return x


def jacobi_numpy(x, b, *, sweeps):
    x = x.copy()
    for _ in range(sweeps):
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        x[1:-1, 1:-1] = 0.25 * (around - b[1:-1, 1:-1])
    return x


def jacobi_numba(x, b, sweeps):
    quarter = np.float32(0.25)
    x, y = x.copy(), x.copy()
    for _ in range(sweeps):
        for i in prange(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                around = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
                y[i, j] = quarter * (around - b[i, j])
        x, y = y, x
    return x


def jacobi_jax(x, b, *, sweeps):
    def sweep(_, x):
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return x.at[1:-1, 1:-1].set(0.25 * (around - b[1:-1, 1:-1]))

    return lax.fori_loop(0, sweeps, sweep, x)


def poisson(n: int, sweeps: int) -> Arguments:
    return grids(n, n), {"sweeps": sweeps}


# The method of Gauss and Seidel: each cell from its newest neighbours, cell by cell.


@dn.defn
def gauss_seidel(x, b, *, sweeps):
    rows, columns = x.shape
    for _ in dn.range(sweeps):
        for i in dn.range(1, rows - 1):
            for j in dn.range(1, columns - 1):
                around = x[i - 1, j] + x[i + 1, j] + x[i, j + 1] + x[i, j - 1]
                x = dn.put_slice(x, [i, j], 0.25 * (around - b[i, j])[None, None])
    return x


def gauss_seidel_numpy(x, b, *, sweeps):
    # The cells of an anti-diagonal do not need each other. In memory they are a slice.
    n = x.shape[0]
    x, b = x.ravel().copy(), b.ravel()
    for _ in range(sweeps):
        for total in range(2, 2 * n - 3):
            first = max(1, total - n + 2)
            start = first * n + total - first
            stop = start + (min(total - 1, n - 2) - first) * (n - 1) + 1

            def at(by, start=start, stop=stop):
                return slice(start + by, stop + by, n - 1)

            x[at(0)] = 0.25 * (x[at(-n)] + x[at(n)] + x[at(1)] + x[at(-1)] - b[at(0)])
    return x.reshape(n, n)


def gauss_seidel_numba(x, b, sweeps):
    quarter = np.float32(0.25)
    x = x.copy()
    for _ in range(sweeps):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                around = x[i - 1, j] + x[i + 1, j] + x[i, j + 1] + x[i, j - 1]
                x[i, j] = quarter * (around - b[i, j])
    return x


def gauss_seidel_jax(x, b, *, sweeps):
    def cell(left, others):
        around, right_side = others
        new = 0.25 * (around + left - right_side)
        return new, new

    def row(i, x):
        around = x[i - 1, 1:-1] + x[i + 1, 1:-1] + x[i, 2:]
        _, new = lax.scan(cell, x[i, 0], (around, b[i, 1:-1]))
        return x.at[i, 1:-1].set(new)

    def sweep(_, x):
        return lax.fori_loop(1, x.shape[0] - 1, row, x)

    return lax.fori_loop(0, sweeps, sweep, x)


# The wave equation with a speed at each point, by the leapfrog method; the border is at rest.


@dn.defn
def wave(u, speed, *, steps):
    before = u
    for _ in dn.range(steps):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        after = 2.0 * inner - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * (around - 4.0 * inner)
        before, u = u, dn.put_slice(u, [1, 1], after)
    return u


def wave_numpy(u, speed, *, steps):
    before, u = u.copy(), u.copy()
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        after = 2.0 * inner - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * (around - 4.0 * inner)
        before[1:-1, 1:-1] = after
        before, u = u, before
    return u


def wave_numba(u, speed, steps):
    two, four = np.float32(2), np.float32(4)
    before, u = u.copy(), u.copy()
    for _ in range(steps):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                change = speed[i, j] * (around - four * u[i, j])
                before[i, j] = two * u[i, j] - before[i, j] + change
        before, u = u, before
    return u


def wave_jax(u, speed, *, steps):
    def step(_, state):
        before, u = state
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        after = 2.0 * inner - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * (around - 4.0 * inner)
        return u, u.at[1:-1, 1:-1].set(after)

    return lax.fori_loop(0, steps, step, (u, u))[1]


def pulse(n: int, steps: int) -> Arguments:
    y, x = np.mgrid[0:n, 0:n] / n - 0.4
    u = np.exp(-200 * (x * x + y * y)).astype(np.float32)
    u[[0, -1]], u[:, [0, -1]] = 0, 0
    speed = (0.2 + 0.05 * np.sin(9 * x) * np.cos(7 * y)).astype(np.float32)
    return (u, speed), {"steps": steps}


# Shallow water on a torus: velocities between the cells, then the height that they carry.

PULL, SPIN = 0.2, 0.01


def rolled(x, by, axis):
    """The tensor with its elements moved along an axis, around the end."""
    at = -by % x.shape[axis]
    after = dn.slice_along_axis(x, at, x.shape[axis] - at, axis)
    return dn.concatenate([after, dn.slice_along_axis(x, 0, at, axis)], axis)


def water_step(library, roll):
    """A step that needs no more of a library than how to roll an array."""

    def step(height, u, v):
        right, below = roll(height, -1, 1), roll(height, -1, 0)
        u, v = u - PULL * (right - height) + SPIN * v, v - PULL * (below - height) - SPIN * u
        across, down = 0.5 * (height + right) * u, 0.5 * (height + below) * v
        gain = roll(across, 1, 1) - across + roll(down, 1, 0) - down
        return height + PULL * gain, u, v

    return step


@dn.defn
def water(height, u, v, *, steps):
    step = water_step(dn, rolled)
    for _ in dn.range(steps):
        height, u, v = step(height, u, v)
    return height, u, v


def water_numpy(height, u, v, *, steps):
    step = water_step(np, np.roll)
    for _ in range(steps):
        height, u, v = step(height, u, v)
    return height, u, v


def water_numba(height, u, v, steps):
    pull, spin, half = np.float32(PULL), np.float32(SPIN), np.float32(0.5)
    rows, columns = height.shape
    # A row and a column on each side repeat those of the other side.
    h = np.zeros((rows + 2, columns + 2), np.float32)
    h[1:-1, 1:-1], u, v = height, u.copy(), v.copy()
    across, down = np.zeros_like(h), np.zeros_like(h)
    for _ in range(steps):
        h[-1], h[:, -1] = h[1], h[:, 1]
        for i in prange(rows):
            for j in range(columns):
                here, right, below = h[i + 1, j + 1], h[i + 1, j + 2], h[i + 2, j + 1]
                eastward = u[i, j] - pull * (right - here) + spin * v[i, j]
                v[i, j] += -pull * (below - here) - spin * u[i, j]
                u[i, j] = eastward
                across[i + 1, j + 1] = half * (here + right) * eastward
                down[i + 1, j + 1] = half * (here + below) * v[i, j]
        across[:, 0], down[0] = across[:, -2], down[-2]
        for i in prange(1, rows + 1):
            for j in range(1, columns + 1):
                gain = across[i, j - 1] - across[i, j] + down[i - 1, j] - down[i, j]
                h[i, j] += pull * gain
    return h[1:-1, 1:-1].copy(), u, v


def water_jax(height, u, v, *, steps):
    step = water_step(jnp, jnp.roll)
    return lax.fori_loop(0, steps, lambda _, state: step(*state), (height, u, v))


def basin(n: int, steps: int) -> Arguments:
    y, x = np.mgrid[0:n, 0:n] / n - 0.5
    height = (1 + 0.1 * np.exp(-50 * (x * x + y * y))).astype(np.float32)
    return (height, np.zeros_like(height), np.zeros_like(height)), {"steps": steps}


# Conway's Game of Life on a torus.


@dn.defn
def life(cells, *, generations):
    for _ in dn.range(generations):
        padded = dn.pad_outer(cells, "cyclic", [(1, 1), (1, 1)])
        rows = padded[:-2] + padded[1:-1] + padded[2:]
        three = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
        # Three of nine are alive, or four with the one in the middle.
        cells = dn.as_type((three == 3) | ((three == 4) & (cells == 1)), "u8")
    return cells


def life_numpy(cells, *, generations):
    padded = np.zeros((cells.shape[0] + 2, cells.shape[1] + 2), np.uint8)
    for _ in range(generations):
        padded[1:-1, 1:-1] = cells
        padded[0], padded[-1] = padded[-2], padded[1]
        padded[:, 0], padded[:, -1] = padded[:, -2], padded[:, 1]
        rows = padded[:-2] + padded[1:-1] + padded[2:]
        three = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
        cells = ((three == 3) | ((three == 4) & (cells == 1))).astype(np.uint8)
    return cells


def life_numba(cells, generations):
    rows, columns = cells.shape
    x = np.zeros((rows + 2, columns + 2), np.uint8)
    x[1:-1, 1:-1] = cells
    y = x.copy()
    for _ in range(generations):
        x[0], x[-1] = x[-2], x[1]
        x[:, 0], x[:, -1] = x[:, -2], x[:, 1]
        for i in prange(1, rows + 1):
            for j in range(1, columns + 1):
                above = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1]
                beside = x[i, j - 1] + x[i, j] + x[i, j + 1]
                below = x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
                three = np.uint8(above + beside + below)
                y[i, j] = (three == 3) | ((three == 4) & x[i, j])
        x, y = y, x
    return x[1:-1, 1:-1].copy()


def life_jax(cells, *, generations):
    def generation(_, cells):
        padded = jnp.pad(cells, 1, mode="wrap")
        rows = padded[:-2] + padded[1:-1] + padded[2:]
        three = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
        return ((three == 3) | ((three == 4) & (cells == 1))).astype(jnp.uint8)

    return lax.fori_loop(0, generations, generation, cells)


def soup(n: int, generations: int) -> Arguments:
    cells = np.random.default_rng(0).random((n, n)) < 0.35
    return (cells.astype(np.uint8),), {"generations": generations}


# A bilateral filter: a mean of near pixels, weighted by how near and how alike they are.

ALIKE = 12.5


@dn.defn
def bilateral(image, spatial):
    side = spatial.shape[0]
    border = (side // 2, side // 2)
    padded = dn.pad_outer(image, "reflect", [border, border])
    total, weights = dn.fill(image, 0.0), dn.fill(image, 0.0)
    for dy in dn.range(side):
        for dx in dn.range(side):
            near = dn.slice(padded, [dy, dx], image.shape)
            weight = spatial[dy, dx] * dn.exp(-ALIKE * (near - image) ** 2)
            total, weights = total + weight * near, weights + weight
    return total / weights


def bilateral_numpy(image, spatial):
    side, (rows, columns) = spatial.shape[0], image.shape
    padded = np.pad(image, side // 2, mode="reflect")
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for dy in range(side):
        for dx in range(side):
            near = padded[dy : dy + rows, dx : dx + columns]
            weight = spatial[dy, dx] * np.exp(-ALIKE * (near - image) ** 2)
            total += weight * near
            weights += weight
    return total / weights


def bilateral_numba(image, spatial):
    alike, half = np.float32(ALIKE), spatial.shape[0] // 2
    rows, columns = image.shape
    result = np.empty_like(image)
    for i in prange(rows):
        for j in range(columns):
            total, weights = np.float32(0), np.float32(0)
            for dy in range(-half, half + 1):
                y = rows - 1 - abs(rows - 1 - abs(i + dy))
                for dx in range(-half, half + 1):
                    x = columns - 1 - abs(columns - 1 - abs(j + dx))
                    near = image[y, x]
                    apart = near - image[i, j]
                    weight = spatial[dy + half, dx + half] * np.exp(-alike * apart * apart)
                    total += weight * near
                    weights += weight
            result[i, j] = total / weights
    return result


def bilateral_jax(image, spatial):
    side = spatial.shape[0]
    padded = jnp.pad(image, side // 2, mode="reflect")

    def offset(k, sums):
        total, weights = sums
        near = lax.dynamic_slice(padded, (k // side, k % side), image.shape)
        weight = spatial[k // side, k % side] * jnp.exp(-ALIKE * (near - image) ** 2)
        return total + weight * near, weights + weight

    zero = jnp.zeros_like(image)
    total, weights = lax.fori_loop(0, side * side, offset, (zero, zero))
    return total / weights


def picture(n: int, side: int) -> Arguments:
    y, x = np.mgrid[0:n, 0:n] / n
    (noise,) = grids(n, n, count=1)
    image = ((np.sin(9 * x) > np.cos(7 * y)) + 0.1 * noise).astype(np.float32)
    offsets = np.arange(side) - side // 2
    near = np.exp(-0.1 * (offsets[:, None] ** 2 + offsets**2)).astype(np.float32)
    return (image, near), {}


JACOBI = Program(
    FAMILY, "Jacobi", jacobi, jacobi_numpy, jacobi_numba, jacobi_jax, poisson,
    {"n": 256, "sweeps": 100}, {"n": 10, "sweeps": 5}, "{n} x {n}, {sweeps} sweeps",
)  # fmt: skip
WAVE = Program(
    FAMILY, "wave equation", wave, wave_numpy, wave_numba, wave_jax, pulse,
    {"n": 192, "steps": 150}, {"n": 12, "steps": 7}, "{n} x {n}, {steps} steps",
)  # fmt: skip
PROGRAMS = [
    JACOBI,
    Program(
        FAMILY, "Gauss-Seidel", gauss_seidel, gauss_seidel_numpy, gauss_seidel_numba,
        gauss_seidel_jax, poisson, {"n": 128, "sweeps": 20}, {"n": 9, "sweeps": 4},
        "{n} x {n}, {sweeps} sweeps, cell by cell",
    ),
    WAVE,
    Program(
        FAMILY, "shallow water", water, water_numpy, water_numba, water_jax, basin,
        {"n": 128, "steps": 100}, {"n": 8, "steps": 5}, "3 x {n} x {n}, {steps} steps",
    ),
    Program(
        FAMILY, "Game of Life", life, life_numpy, life_numba, life_jax, soup,
        {"n": 512, "generations": 50}, {"n": 12, "generations": 6},
        "{n} x {n}, {generations} generations, u8",
    ),
    Program(
        FAMILY, "bilateral filter", bilateral, bilateral_numpy, bilateral_numba, bilateral_jax,
        picture, {"n": 256, "side": 7}, {"n": 12, "side": 5},
        "{n} x {n}, windows of {side} x {side}",
    ),
    gradient(JACOBI, 1, full={"n": 128, "sweeps": 50}),
    gradient(WAVE, 1, full={"n": 96, "steps": 100}),
]  # fmt: skip
