"""Newton's method with a data-dependent number of steps.

python examples/newton.py
"""

from __future__ import annotations

import numpy as np

import defn as dn


@dn.defn
def newton(x, *, fun, tolerance=1e-10, limit=50):
    """A root of ``fun`` near ``x`` (f64 scalar), and the number of steps to it."""
    steps = 0
    error = dn.abs(fun(x))
    while error > tolerance and steps < limit:
        slope = dn.grad(fun)(x)
        if slope == 0:
            x = x + tolerance
        else:
            x = x - fun(x) / slope
        error = dn.abs(fun(x))
        steps = steps + 1
    return x, steps


def newton_numpy(x, fun, slope, tolerance=1e-10, limit=50):
    """The same with Python's numbers; the derivative is an argument."""
    steps = 0
    while abs(fun(x)) > tolerance and steps < limit:
        if slope(x) == 0:
            x = x + tolerance
        else:
            x = x - fun(x) / slope(x)
        steps += 1
    return x, steps


def kepler(anomaly, eccentricity=0.3):
    """Kepler's equation for a mean anomaly of 1."""
    return anomaly - eccentricity * dn.sin(anomaly) - 1.0


def main() -> None:
    root, steps = newton(np.float64(1.0), fun=kepler)
    print(f"E = {root:.12f} after {int(steps)} steps")
    expected, _ = newton_numpy(
        1.0, lambda e: e - 0.3 * np.sin(e) - 1, lambda e: 1 - 0.3 * np.cos(e)
    )
    print(f"    {expected:.12f} in Python's own numbers")


if __name__ == "__main__":
    main()
