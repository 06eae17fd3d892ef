"""Filters, samplers, a recurrent cell and clusters: loops around small linear algebra."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import jax, jnp, lax
from .program import Arguments, Program, gradient

FAMILY = "statistics and learning"


def normals(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


# Kalman's filter: the logarithm of the likelihood of what was observed, and the last mean.


def kalman_step(functions, model, state, seen):
    """A step in a library, of which the functions are the inverse, the determinant and the log."""
    inverse, determinant, log = functions
    motion, view, drift, noise = model
    mean, spread, total = state
    mean, spread = motion @ mean, motion @ spread @ motion.T + drift
    apart = seen - view @ mean
    around = view @ spread @ view.T + noise
    weight = inverse(around)
    gain = spread @ view.T @ weight
    total = total - 0.5 * (apart @ weight @ apart + log(determinant(around)))
    return mean + gain @ apart, spread - gain @ view @ spread, total


@dn.defn
def kalman(observed, motion, view, drift, noise):
    functions, model = (
        (dn.linalg.invert, dn.linalg.determinant, dn.log),
        (motion, view, drift, noise),
    )
    state = dn.fill(motion[0], 0.0), dn.as_type(dn.eye(4), motion.dtype), 0.0
    for seen in observed:
        state = kalman_step(functions, model, state, seen)
    return state[2], state[0]


def kalman_numpy(observed, motion, view, drift, noise):
    functions = np.linalg.inv, np.linalg.det, np.log
    model = motion, view, drift, noise
    state = np.zeros_like(motion[0]), np.eye(4, dtype=motion.dtype), motion.dtype.type(0)
    for seen in observed:
        state = kalman_step(functions, model, state, seen)
    return state[2], state[0]


def kalman_numba(observed, motion, view, drift, noise):
    zero, half = np.float32(0), np.float32(0.5)
    n, m = motion.shape[0], view.shape[0]
    mean, spread, total = np.zeros(n, np.float32), np.eye(n).astype(np.float32), zero
    new, moved = np.empty_like(mean), np.empty_like(spread)
    apart, seen = np.empty(m, np.float32), np.empty((m, n), np.float32)
    around, gain = np.empty((m, m), np.float32), np.empty((n, m), np.float32)
    for t in range(observed.shape[0]):
        for i in range(n):
            new[i] = zero
            for k in range(n):
                new[i] += motion[i, k] * mean[k]
            for j in range(n):
                moved[i, j] = zero
                for k in range(n):
                    moved[i, j] += motion[i, k] * spread[k, j]
        for i in range(n):
            for j in range(n):
                spread[i, j] = drift[i, j]
                for k in range(n):
                    spread[i, j] += moved[i, k] * motion[j, k]
        for i in range(m):
            apart[i] = observed[t, i]
            for k in range(n):
                apart[i] -= view[i, k] * new[k]
            for j in range(n):
                seen[i, j] = zero
                for k in range(n):
                    seen[i, j] += view[i, k] * spread[k, j]
        for i in range(m):
            for j in range(m):
                around[i, j] = noise[i, j]
                for k in range(n):
                    around[i, j] += seen[i, k] * view[j, k]
        # What is observed has two coordinates.
        determinant = around[0, 0] * around[1, 1] - around[0, 1] * around[1, 0]
        i00, i01 = around[1, 1] / determinant, -around[0, 1] / determinant
        i10, i11 = -around[1, 0] / determinant, around[0, 0] / determinant
        for i in range(n):
            gain[i, 0] = seen[0, i] * i00 + seen[1, i] * i10
            gain[i, 1] = seen[0, i] * i01 + seen[1, i] * i11
            mean[i] = new[i] + gain[i, 0] * apart[0] + gain[i, 1] * apart[1]
        for i in range(n):
            for j in range(n):
                spread[i, j] -= gain[i, 0] * seen[0, j] + gain[i, 1] * seen[1, j]
        far = apart[0] * (i00 * apart[0] + i01 * apart[1])
        far += apart[1] * (i10 * apart[0] + i11 * apart[1])
        total -= half * (far + np.log(determinant))
    return total, mean


def kalman_jax(observed, motion, view, drift, noise):
    functions = jnp.linalg.inv, jnp.linalg.det, jnp.log
    model = motion, view, drift, noise

    def step(state, seen):
        return kalman_step(functions, model, state, seen), None

    start = jnp.zeros_like(motion[0]), jnp.eye(4, dtype=motion.dtype), jnp.zeros((), motion.dtype)
    mean, _, total = lax.scan(step, start, observed)[0]
    return total, mean


def track(steps: int) -> Arguments:
    motion = np.eye(4) + 0.1 * np.eye(4, k=2)
    places = np.cumsum(0.1 * normals(steps, 2), axis=0) + 0.5 * normals(steps, 2)[::-1]
    others = motion, np.eye(2, 4), 0.01 * np.eye(4), 0.25 * np.eye(2)
    return tuple(np.asarray(x, np.float32) for x in (places, *others)), {}


# A cell of long short-term memory along a sequence.


@dn.defn
def lstm(inputs, enter, again, bias):
    width = again.shape[0]
    hidden = memory = dn.broadcast(dn.fill(bias[0], 0.0), (inputs.shape[1], width))
    for x in inputs:
        gates = x @ enter + hidden @ again + bias
        keep, take, show = (
            dn.sigmoid(gates[:, width * gate : width * (gate + 1)]) for gate in range(3)
        )
        memory = keep * memory + take * dn.tanh(gates[:, 3 * width :])
        hidden = show * dn.tanh(memory)
    return hidden, memory


def lstm_numpy(inputs, enter, again, bias):
    width = len(again)
    hidden = memory = np.zeros((inputs.shape[1], width), inputs.dtype)
    for x in inputs:
        gates = x @ enter + hidden @ again + bias
        soft = 1.0 / (1.0 + np.exp(-gates[:, : 3 * width]))
        memory = soft[:, :width] * memory
        memory += soft[:, width : 2 * width] * np.tanh(gates[:, 3 * width :])
        hidden = soft[:, 2 * width :] * np.tanh(memory)
    return hidden, memory


def lstm_numba(inputs, enter, again, bias):
    one, (_, batch, _) = np.float32(1), inputs.shape
    width = again.shape[0]
    hidden, memory = np.zeros((batch, width), np.float32), np.zeros((batch, width), np.float32)
    gates, more = np.empty((batch, 4 * width), np.float32), np.empty((batch, 4 * width), np.float32)
    for t in range(inputs.shape[0]):
        np.dot(inputs[t], enter, gates)
        np.dot(hidden, again, more)
        for i in range(batch):
            for j in range(4 * width):
                gates[i, j] += more[i, j] + bias[j]
            for j in range(3 * width):
                gates[i, j] = one / (one + np.exp(-gates[i, j]))
            for j in range(width):
                new = gates[i, width + j] * np.tanh(gates[i, 3 * width + j])
                memory[i, j] = gates[i, j] * memory[i, j] + new
                hidden[i, j] = gates[i, 2 * width + j] * np.tanh(memory[i, j])
    return hidden, memory


def lstm_jax(inputs, enter, again, bias):
    width = again.shape[0]

    def cell(state, x):
        hidden, memory = state
        gates = x @ enter + hidden @ again + bias
        keep, take, show = jnp.split(jax.nn.sigmoid(gates[:, : 3 * width]), 3, axis=1)
        memory = keep * memory + take * jnp.tanh(gates[:, 3 * width :])
        return (show * jnp.tanh(memory), memory), None

    zero = jnp.zeros((inputs.shape[1], width), inputs.dtype)
    return lax.scan(cell, (zero, zero), inputs)[0]


def sequence(steps: int, batch: int, inputs: int, width: int) -> Arguments:
    x, enter, again = normals(steps, batch, inputs), normals(inputs, 4 * width), normals(4 * width)
    again = normals(width, 4 * width)
    scale = np.float32((inputs + width) ** -0.5)
    return (x, scale * enter, scale * again, 0.1 * normals(4 * width)), {}


# A random walk of Metropolis over a density like a banana. The draws are given.


def banana(x):
    """The logarithm of the density, without its constant."""
    return -0.5 * ((1.0 - x[0]) ** 2 + 10.0 * (x[1] - x[0] * x[0]) ** 2)


@dn.defn
def metropolis(x, moves, logs):
    def step(state, draw):
        x, density = state
        move, log = draw
        new = x + move
        other = banana(new)
        if log < other - density:
            x, density = new, other
        return (x, density), x

    return dn.scan((x, banana(x)), (moves, logs), step)[1]


def metropolis_numpy(x, moves, logs):
    samples, density = np.empty_like(moves), banana(x)
    for i in range(len(moves)):
        new = x + moves[i]
        other = banana(new)
        if logs[i] < other - density:
            x, density = new, other
        samples[i] = x
    return samples


def metropolis_numba(x, moves, logs):
    samples = np.empty_like(moves)
    x0, x1 = x[0], x[1]
    density = -0.5 * ((1.0 - x0) ** 2 + 10.0 * (x1 - x0 * x0) ** 2)
    for i in range(logs.size):
        y0, y1 = x0 + moves[i, 0], x1 + moves[i, 1]
        other = -0.5 * ((1.0 - y0) ** 2 + 10.0 * (y1 - y0 * y0) ** 2)
        if logs[i] < other - density:
            x0, x1, density = y0, y1, other
        samples[i, 0], samples[i, 1] = x0, x1
    return samples


def metropolis_jax(x, moves, logs):
    def step(state, draw):
        x, density = state
        move, log = draw
        new = x + move
        other = banana(new)
        accepted = log < other - density
        x, density = jnp.where(accepted, new, x), jnp.where(accepted, other, density)
        return (x, density), x

    return lax.scan(step, (x, banana(x)), (moves, logs))[1]


def walk(steps: int) -> Arguments:
    moves = 0.5 * normals(steps, 2, dtype="float64")
    return (np.zeros(2), moves, np.log(np.random.default_rng(0).random(steps))), {}


# Hamiltonian Monte Carlo for a logistic regression: steps along the gradient of the density.

LEAP = 0.05


def density(library, w, x, y):
    """The logarithm of the density of weights: the labels are -1 and 1."""
    margins = y * (x @ w)
    return -library.sum(library.log1p(library.exp(-margins))) - 0.5 * library.sum(w * w)


@dn.defn
def hmc(w, x, y, momenta, logs, *, leaps):
    def slope(w):
        return dn.grad(w, lambda w: density(dn, w, x, y))

    def step(w, draw):
        start, log = draw
        new, momentum = w, start + 0.5 * LEAP * slope(w)
        for _ in dn.range(leaps - 1):
            new = new + LEAP * momentum
            momentum = momentum + LEAP * slope(new)
        new = new + LEAP * momentum
        momentum = momentum + 0.5 * LEAP * slope(new)
        gain = density(dn, new, x, y) - density(dn, w, x, y)
        kinetic = 0.5 * (dn.sum(start * start) - dn.sum(momentum * momentum))
        if log < gain + kinetic:
            w = new
        return w, w

    return dn.scan(w, (momenta, logs), step)[1]


def slope_by_hand(w, x, y):
    """The gradient of the density for NumPy, which has none."""
    return x.T @ (y / (1.0 + np.exp(y * (x @ w)))) - w


def hmc_numpy(w, x, y, momenta, logs, *, leaps):
    samples = np.empty_like(momenta)
    for i, start in enumerate(momenta):
        new, momentum = w, start + 0.5 * LEAP * slope_by_hand(w, x, y)
        for _ in range(leaps - 1):
            new = new + LEAP * momentum
            momentum = momentum + LEAP * slope_by_hand(new, x, y)
        new = new + LEAP * momentum
        momentum = momentum + 0.5 * LEAP * slope_by_hand(new, x, y)
        gain = density(np, new, x, y) - density(np, w, x, y)
        kinetic = 0.5 * (np.sum(start * start) - np.sum(momentum * momentum))
        if logs[i] < gain + kinetic:
            w = new
        samples[i] = w
    return samples


def hmc_numba(w, x, y, momenta, logs, leaps):
    one, half = np.float32(1), np.float32(0.5)
    leap = np.float32(LEAP)
    samples, rows = np.empty_like(momenta), x.T.copy()
    new, momentum = np.empty_like(w), np.empty_like(w)
    margins, weights, slope = np.empty_like(y), np.empty_like(y), np.empty_like(w)
    for i in range(momenta.shape[0]):
        new[:], momentum[:] = w, momenta[i]
        before = after = np.float32(0)
        for turn in range(leaps + 1):
            np.dot(x, new, margins)
            loss = half * np.dot(new, new)
            for j in range(y.size):
                small = np.exp(-y[j] * margins[j])
                weights[j] = y[j] * small / (one + small)
                if turn == 0 or turn == leaps:
                    loss += np.log1p(small)
            np.dot(rows, weights, slope)
            length = half * leap if turn == 0 or turn == leaps else leap
            for k in range(w.size):
                momentum[k] += length * (slope[k] - new[k])
            if turn == 0:
                before = loss
            after = loss
            if turn < leaps:
                for k in range(w.size):
                    new[k] += leap * momentum[k]
        kinetic = half * (np.dot(momenta[i], momenta[i]) - np.dot(momentum, momentum))
        if logs[i] < before - after + kinetic:
            w = new.copy()
        samples[i] = w
    return samples


def hmc_jax(w, x, y, momenta, logs, *, leaps):
    slope = jax.grad(lambda w: density(jnp, w, x, y))

    def leap(_, state):
        new, momentum = state
        new = new + LEAP * momentum
        return new, momentum + LEAP * slope(new)

    def step(w, draw):
        start, log = draw
        first = w, start + 0.5 * LEAP * slope(w)
        new, momentum = lax.fori_loop(0, leaps - 1, leap, first)
        new = new + LEAP * momentum
        momentum = momentum + 0.5 * LEAP * slope(new)
        gain = density(jnp, new, x, y) - density(jnp, w, x, y)
        kinetic = 0.5 * (jnp.sum(start * start) - jnp.sum(momentum * momentum))
        w = jnp.where(log < gain + kinetic, new, w)
        return w, w

    return lax.scan(step, w, (momenta, logs))[1]


def labelled(samples: int, count: int, width: int, leaps: int) -> Arguments:
    x, w = normals(count, width), normals(width)
    y = np.where(normals(count) < x @ w, 1, -1).astype(np.float32)
    logs = np.log(np.random.default_rng(0).random(samples)).astype(np.float32)
    return (0 * w, x / 4, y, normals(samples, width), logs), {"leaps": leaps}


# Lloyd's k-means: every point goes to the nearest centre, then every centre to its points' mean.


@dn.defn
def kmeans(points, centres, *, rounds):
    names = dn.iota(centres.shape[0])
    for _ in dn.range(rounds):
        apart = dn.sum(centres * centres, axes=1) - 2.0 * points @ centres.T
        nearest = dn.argmin(apart, axis=1)
        member = dn.as_type(nearest[:, None] == names, points.dtype)
        count = dn.maximum(dn.sum(member, axes=0), 1.0)
        centres = member.T @ points / count[:, None]
    return centres


def kmeans_numpy(points, centres, *, rounds):
    names = np.arange(len(centres))
    for _ in range(rounds):
        apart = (centres * centres).sum(1) - 2.0 * points @ centres.T
        member = (apart.argmin(1)[:, None] == names).astype(points.dtype)
        centres = member.T @ points / np.maximum(member.sum(0), 1)[:, None]
    return centres


def kmeans_numba(points, centres, rounds):
    (n, width), k = points.shape, centres.shape[0]
    columns, sums = centres.T.copy(), np.empty_like(centres)
    count, apart = np.empty(k, np.float32), np.empty(k, np.float32)
    for _ in range(rounds):
        sums[:], count[:] = 0, 0
        for i in range(n):
            apart[:] = 0
            for d in range(width):
                for c in range(k):
                    by = points[i, d] - columns[d, c]
                    apart[c] += by * by
            nearest = np.argmin(apart)
            count[nearest] += 1
            for d in range(width):
                sums[nearest, d] += points[i, d]
        for c in range(k):
            for d in range(width):
                columns[d, c] = sums[c, d] / max(count[c], np.float32(1))
    return columns.T.copy()


def kmeans_jax(points, centres, *, rounds):
    def turn(_, centres):
        apart = (centres * centres).sum(1) - 2.0 * points @ centres.T
        member = jax.nn.one_hot(apart.argmin(1), len(centres), dtype=points.dtype)
        return member.T @ points / jnp.maximum(member.sum(0), 1)[:, None]

    return lax.fori_loop(0, rounds, turn, centres)


def clouds(points: int, width: int, clusters: int, rounds: int) -> Arguments:
    centres = 3 * normals(clusters, width)
    x = centres[np.arange(points) % clusters] + normals(points, width)
    return (x, x[:clusters].copy()), {"rounds": rounds}


KALMAN = Program(
    FAMILY, "Kalman filter", kalman, kalman_numpy, kalman_numba, kalman_jax, track,
    {"steps": 2000}, {"steps": 6}, "4 states, 2 observed, {steps} steps", tolerance=2e-3,
)  # fmt: skip
LSTM = Program(
    FAMILY, "LSTM", lstm, lstm_numpy, lstm_numba, lstm_jax, sequence,
    {"steps": 1000, "batch": 4, "inputs": 32, "width": 64},
    {"steps": 4, "batch": 2, "inputs": 3, "width": 2}, "{steps} steps, {batch} x {width}",
)  # fmt: skip
PROGRAMS = [
    KALMAN,
    LSTM,
    Program(
        FAMILY, "Metropolis", metropolis, metropolis_numpy, metropolis_numba, metropolis_jax, walk,
        {"steps": 20_000}, {"steps": 12}, "2 coordinates, {steps} steps, f64",
    ),
    Program(
        FAMILY, "Hamiltonian Monte Carlo", hmc, hmc_numpy, hmc_numba, hmc_jax, labelled,
        {"samples": 100, "count": 256, "width": 16, "leaps": 10},
        {"samples": 4, "count": 9, "width": 3, "leaps": 3},
        "{samples} samples of {leaps} gradients, {count} x {width}", tolerance=5e-3,
    ),
    Program(
        FAMILY, "k-means", kmeans, kmeans_numpy, kmeans_numba, kmeans_jax, clouds,
        {"points": 8192, "width": 8, "clusters": 16, "rounds": 10},
        {"points": 20, "width": 2, "clusters": 3, "rounds": 3},
        "{points} points in {width} dimensions, {clusters} clusters, {rounds} rounds",
    ),
    gradient(KALMAN, 3, 4, full={"steps": 1000}),
    gradient(LSTM, 1, 2, 3, full={"steps": 1000, "batch": 4, "inputs": 32, "width": 64}),
]  # fmt: skip
