"""Hares and lynxes: an adaptive ODE solver, and rates that are fitted through it.

python examples/lotka_volterra.py

The solver is a ``while`` loop whose step size depends on the error; the gradient goes through it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import defn as dn

# Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980: the stages, and the weights
# of the difference between the solutions of order 5 and order 4.
STAGES = [
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
DIFFERENCE = [71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


def animals(y: dn.Tensor, rates: dn.Tensor) -> dn.Tensor:
    """The rates of change of hares and lynxes: births, meals, growth and deaths."""
    hares, lynxes = y
    births, meals, growth, deaths = rates
    return dn.stack(
        [births * hares - meals * hares * lynxes, growth * hares * lynxes - deaths * lynxes]
    )


def combined(weights: list[float], slopes: list[dn.Tensor]) -> dn.Tensor:
    """The weighted sum of slopes."""
    total = weights[0] * slopes[0]
    for weight, slope in zip(weights[1:], slopes[1:], strict=True):
        total = total + weight * slope
    return total


@dn.defn
def solve(
    y: dn.Tensor,
    rates: dn.Tensor,
    start: dn.Tensor | float,
    end: dn.Tensor | float,
    *,
    field: Callable[[dn.Tensor, dn.Tensor], dn.Tensor] = animals,
    tolerance: float = 1e-8,
) -> tuple[dn.Tensor, dn.Tensor | int]:
    """The state at ``end``, and the number of steps tried."""
    time, size, tried = start, (end - start) / 10, 0
    while time < end:
        size = dn.min(size, end - time)
        ahead, slopes = y, [field(y, rates)]
        for weights in STAGES:
            ahead = y + size * combined(weights, slopes)
            slopes.append(field(ahead, rates))
        error = size * combined(DIFFERENCE, slopes)
        share = dn.stop_grad(dn.sqrt(dn.mean((error / (tolerance * (1 + dn.abs(y)))) ** 2)))
        if share < 1:
            time, y = time + size, ahead
        size = size * dn.clip(0.9 * dn.pow(share + 1e-12, -0.2), 0.2, 5.0)
        tried = tried + 1
        if tried > 10_000:
            break
    return y, tried


@dn.defn
def course(y: dn.Tensor, rates: dn.Tensor, times: dn.Tensor) -> dn.Tensor:
    """The states {n, 2} at several times {n}, starting from ``y`` at time 0."""

    def onwards(state, until):
        y, before = state
        y, _ = solve(y, rates, before, until)
        return (y, until), y

    return dn.scan((y, dn.fill(times[0], 0.0)), times, onwards)[1]


def main(steps: int = 6) -> None:
    true = dn.tensor(np.array([0.55, 0.028, 0.024, 0.8]))
    y, times = dn.tensor(np.array([33.0, 6.0])), dn.tensor(np.linspace(1.0, 20.0, 20))
    seen = course(y, true, times)
    end, tried = solve(y, true, 0.0, 20.0)
    print(f"after 20 years {end[0]:.3f} hares, {end[1]:.3f} lynxes, by {tried} steps")

    # Gauss-Newton on the logarithms of the rates.
    guess = dn.log(true * np.array([1.3, 0.8, 1.2, 0.8]))

    @dn.defn
    def residuals(guess):
        return dn.flatten(dn.log(course(y, dn.exp(guess), times)) - dn.log(seen))

    for step in range(steps):
        error, slopes = residuals(guess), dn.jacobian(residuals)(guess)
        guess = guess - dn.linalg.least_squares(slopes, error)
        print(f"step {step}: loss {dn.mean(error * error):.3e}")
    print("rates", np.round(np.exp(guess.to_numpy()), 4))


if __name__ == "__main__":
    main()
