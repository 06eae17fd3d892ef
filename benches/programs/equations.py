"""Ordinary differential equations: steps of fixed and of chosen length, and implicit steps."""

from __future__ import annotations

import numpy as np

import defn as dn

from .libraries import jnp, lax
from .program import Arguments, Program, gradient

FAMILY = "differential equations"


def species(stack, state, rates):
    """The growth of prey and of its predators, after Lotka and Volterra."""
    prey, predators = state[0], state[1]
    born, eaten, died, fed = rates[0], rates[1], rates[2], rates[3]
    both = prey * predators
    return stack([born * prey - eaten * both, fed * both - died * predators])


def rk4_step(stack, state, rates, h):
    """A step of the classical method of Runge and Kutta."""
    a = species(stack, state, rates)
    b = species(stack, state + 0.5 * h * a, rates)
    c = species(stack, state + 0.5 * h * b, rates)
    d = species(stack, state + h * c, rates)
    return state + (h / 6.0) * (a + 2.0 * b + 2.0 * c + d)


# Fixed steps.

FIXED = 1e-2


@dn.defn
def rk4(state, rates, *, steps):
    for _ in dn.range(steps):
        state = rk4_step(dn.stack, state, rates, FIXED)
    return state


def rk4_numpy(state, rates, *, steps):
    for _ in range(steps):
        state = rk4_step(np.array, state, rates, FIXED)
    return state


def rk4_numba(state, rates, steps):
    h, half, sixth, two = (
        np.float32(FIXED),
        np.float32(FIXED / 2),
        np.float32(FIXED / 6),
        np.float32(2),
    )
    born, eaten, died, fed = rates[0], rates[1], rates[2], rates[3]
    x, y = state[0], state[1]

    def slope(x, y):
        return born * x - eaten * x * y, fed * x * y - died * y

    for _ in range(steps):
        ax, ay = slope(x, y)
        bx, by = slope(x + half * ax, y + half * ay)
        cx, cy = slope(x + half * bx, y + half * by)
        dx, dy = slope(x + h * cx, y + h * cy)
        x += sixth * (ax + two * bx + two * cx + dx)
        y += sixth * (ay + two * by + two * cy + dy)
    return np.array([x, y])


def rk4_jax(state, rates, *, steps):
    return lax.fori_loop(0, steps, lambda _, s: rk4_step(jnp.stack, s, rates, FIXED), state)


def populations(steps: int) -> Arguments:
    state, rates = np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.4, 0.1])
    return (state.astype(np.float32), rates.astype(np.float32)), {"steps": steps}


# Steps of chosen length, by the method of order 5 of Dormand and Prince and its error estimate.

TABLEAU = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# The table with zeros, as numba reads it.
ROWS = np.array([row + (0.0,) * (6 - len(row)) for row in TABLEAU])
ALLOWED, FIRST = 1e-9, 1e-3


def combined(weights, slopes):
    """The weighted sum of slopes."""
    return sum(weight * slope for weight, slope in zip(weights, slopes, strict=True) if weight)


def attempt(library, stack, state, rates, h):
    """The state after a step, and the error of the step as a multiple of what is allowed."""
    slopes: list = []
    after = state
    for row in TABLEAU:
        after = state + h * combined(row, slopes) if row else state
        slopes.append(species(stack, after, rates))
    wrong = h * combined(ERROR, slopes) / (ALLOWED * (1.0 + library.abs(state)))
    return after, library.sqrt(0.5 * library.sum(wrong * wrong))


@dn.defn
def rk45(state, rates, end):
    t, h = dn.fill(end, 0.0), dn.fill(end, FIRST)
    while t < end:
        h = dn.minimum(h, end - t)
        after, error = attempt(dn, dn.stack, state, rates, h)
        if error <= 1.0:
            t, state = t + h, after
        h = h * dn.clip(0.9 * dn.pow(error + 1e-30, -0.2), 0.2, 5.0)
    return state


def rk45_numpy(state, rates, end):
    t, h = np.zeros_like(end), np.full_like(end, FIRST)
    while t < end:
        h = min(h, end - t)
        after, error = attempt(np, np.array, state, rates, h)
        if error <= 1.0:
            t, state = t + h, after
        h = h * min(max(0.9 * (error + 1e-30) ** -0.2, 0.2), 5.0)
    return state


def rk45_numba(state, rates, end):
    t, last, h, slopes = 0.0, end[()], FIRST, np.empty((7, 2))
    born, eaten, died, fed = rates[0], rates[1], rates[2], rates[3]
    x, y = state[0], state[1]
    while t < last:
        h = min(h, last - t)
        after_x, after_y = x, y
        for stage in range(7):
            dx, dy = 0.0, 0.0
            for place in range(stage):
                dx += ROWS[stage, place] * slopes[place, 0]
                dy += ROWS[stage, place] * slopes[place, 1]
            after_x, after_y = x + h * dx, y + h * dy
            both = after_x * after_y
            slopes[stage, 0] = born * after_x - eaten * both
            slopes[stage, 1] = fed * both - died * after_y
        wrong_x, wrong_y = 0.0, 0.0
        for stage in range(7):
            wrong_x += ERROR[stage] * slopes[stage, 0]
            wrong_y += ERROR[stage] * slopes[stage, 1]
        wrong_x *= h / (ALLOWED * (1.0 + abs(x)))
        wrong_y *= h / (ALLOWED * (1.0 + abs(y)))
        error = np.sqrt(0.5 * (wrong_x * wrong_x + wrong_y * wrong_y))
        if error <= 1.0:
            t, x, y = t + h, after_x, after_y
        h *= min(max(0.9 * (error + 1e-30) ** -0.2, 0.2), 5.0)
    return np.array([x, y])


def rk45_jax(state, rates, end):
    def step(carried):
        t, h, state = carried
        h = jnp.minimum(h, end - t)
        after, error = attempt(jnp, jnp.stack, state, rates, h)
        t, state = jnp.where(error <= 1.0, t + h, t), jnp.where(error <= 1.0, after, state)
        return t, h * jnp.clip(0.9 * (error + 1e-30) ** -0.2, 0.2, 5.0), state

    start = jnp.zeros_like(end), jnp.full_like(end, FIRST), state
    return lax.while_loop(lambda carried: carried[0] < end, step, start)[2]


def long_populations(end: int) -> Arguments:
    return (np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.4, 0.1]), np.array(float(end))), {}


# Robertson's stiff reaction by Euler's implicit method: each step solves three equations by
# Newton's method, which solves a linear system in each trip.

SLOW, FAST, VERY_FAST, NEAR = 0.04, 1e4, 3e7, 1e-12


def reaction(y):
    """The derivatives of the three concentrations, and the rows of their Jacobian."""
    a, b, c = y[0], y[1], y[2]
    first, second, third = SLOW * a, FAST * b * c, VERY_FAST * b * b
    slopes = [second - first, first - second - third, third]
    rows = [
        [-SLOW + 0.0 * a, FAST * c, FAST * b],
        [SLOW + 0.0 * a, -FAST * c - 2 * VERY_FAST * b, -FAST * b],
        [0.0 * a, 2 * VERY_FAST * b, 0.0 * a],
    ]
    return slopes, rows


@dn.defn
def robertson(y, lengths):
    for h in lengths:
        new, change, trips = y, 1.0, 0
        while change > NEAR and trips < 20:
            slopes, rows = reaction(new)
            residual = new - y - h * dn.stack(slopes)
            jacobian = dn.eye(3) - h * dn.stack([dn.stack(row) for row in rows])
            delta = dn.linalg.solve(jacobian, residual)
            new, change, trips = new - delta, dn.reduce_max(dn.abs(delta)), trips + 1
        y = new
    return y


def robertson_numpy(y, lengths):
    identity = np.eye(3)
    for h in lengths:
        new = y
        for _ in range(20):
            slopes, rows = reaction(new)
            residual = new - y - h * np.array(slopes)
            delta = np.linalg.solve(identity - h * np.array(rows), residual)
            new = new - delta
            if np.abs(delta).max() <= NEAR:
                break
        y = new
    return y


def robertson_numba(y, lengths):
    a, b, c = y[0], y[1], y[2]
    for h in lengths:
        x, y, z = a, b, c
        for _ in range(20):
            first, second, third = SLOW * x, FAST * y * z, VERY_FAST * y * y
            r0 = x - a - h * (second - first)
            r1 = y - b - h * (first - second - third)
            r2 = z - c - h * third
            # Elimination without a choice of pivots: the system is dominated by its diagonal.
            m00, m01, m02 = 1 + h * SLOW, -h * FAST * z, -h * FAST * y
            m21 = -2 * h * VERY_FAST * y
            m11, m12 = 1 - m01 - m21, h * FAST * y
            times = -h * SLOW / m00
            m11, m12, r1 = m11 - times * m01, m12 - times * m02, r1 - times * r0
            times = m21 / m11
            d2 = (r2 - times * r1) / (1 - times * m12)
            d1 = (r1 - m12 * d2) / m11
            d0 = (r0 - m01 * d1 - m02 * d2) / m00
            x, y, z = x - d0, y - d1, z - d2
            if max(abs(d0), abs(d1), abs(d2)) <= NEAR:
                break
        a, b, c = x, y, z
    return np.array([a, b, c])


def robertson_jax(y, lengths):
    def step(y, h):
        def unsolved(state):
            return (state[1] > NEAR) & (state[2] < 20)

        def improve(state):
            new, _, trips = state
            slopes, rows = reaction(new)
            residual = new - y - h * jnp.stack(slopes)
            delta = jnp.linalg.solve(jnp.eye(3) - h * jnp.array(rows), residual)
            return new - delta, jnp.abs(delta).max(), trips + 1

        return lax.while_loop(unsolved, improve, (y, jnp.ones_like(h), 0))[0], None

    return lax.scan(step, y, lengths)[0]


def mixture(steps: int) -> Arguments:
    return (np.array([1.0, 0.0, 0.0]), 1e-4 * 1.003 ** np.arange(steps)), {}


RK4 = Program(
    FAMILY, "Runge-Kutta 4", rk4, rk4_numpy, rk4_numba, rk4_jax, populations,
    {"steps": 12_000}, {"steps": 20}, "2 equations, {steps} steps", tolerance=2e-3,
)  # fmt: skip
RK45 = Program(
    FAMILY, "Runge-Kutta 5(4)", rk45, rk45_numpy, rk45_numba, rk45_jax, long_populations,
    {"end": 200}, {"end": 2}, "2 equations to t = {end}, adaptive, f64", tolerance=1e-6,
)  # fmt: skip
PROGRAMS = [
    RK4,
    RK45,
    Program(
        FAMILY, "implicit Euler", robertson, robertson_numpy, robertson_numba, robertson_jax,
        mixture, {"steps": 3000}, {"steps": 12},
        "{steps} steps, Newton with 3 x 3 systems, f64", tolerance=1e-7,
    ),
    gradient(RK4, 0, 1, full={"steps": 1000}),
    gradient(RK45, 1, full={"end": 50}, forward=True),
]  # fmt: skip
