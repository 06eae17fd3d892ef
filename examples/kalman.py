"""A Kalman filter and smoother, in sequence and in parallel, whose noise is learnt from the data.

python examples/kalman.py [--picture FILE]

The level of the Nile over a hundred years. `dn.scan` runs the filter forwards and the smoother
backwards. The gradient of the log-likelihood goes through the filter, and `dn.optim` finds the
variances of the noise. `dn.associative_scan` does the same work in logarithmic depth.
docs/science.md explains each part.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import defn as dn

# The yearly flow of the Nile at Aswan in 10^8 cubic metres, 1871 to 1970: Cobb, "The problem of the
# Nile: conditional solution to a changepoint problem", 1978.
NILE = np.array(
    """1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140
    1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831
    726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944
    984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797
    923 975 815 1020 906 901 1170 912 746 919 718 714 740""".split(),
    np.float64,
)
YEARS = np.arange(1871, 1971)
STEPS, RATE = 300, 0.2


class Model(NamedTuple):
    """A linear Gaussian model: s states, of which there are m observations at each time."""

    mean: Any  # {s}, of the first state
    covariance: Any  # {s, s}
    transition: Any  # {s, s}
    process: Any  # {s, s}, the covariance of the noise between two times
    observation: Any  # {m, s}
    error: Any  # {m, m}, the covariance of the noise of observations


class Gaussian(NamedTuple):
    """Means {..., s} and covariances {..., s, s}."""

    mean: Any
    covariance: Any


def predict(model: Model, state: Gaussian) -> Gaussian:
    """The state at the next time."""
    spread = model.transition @ state.covariance @ model.transition.T + model.process
    return Gaussian(model.transition @ state.mean, spread)


def update(model: Model, state: Gaussian, y: dn.Tensor) -> tuple[Gaussian, dn.Tensor]:
    """The state given an observation {m}, and the log-likelihood of that; NaN is none."""
    known = ~dn.any(dn.is_nan(y))
    residual = dn.select(known, y - model.observation @ state.mean, 0.0)
    cross = model.observation @ state.covariance
    factor = dn.linalg.cholesky(cross @ model.observation.T + model.error)
    # With z = solve(factor, residual), the gain times the residual is solve(factor, cross).T @ z.
    scaled = dn.linalg.triangular_solve(factor, cross)
    z = dn.linalg.triangular_solve(factor, residual)
    log = -0.5 * dn.sum(z * z + math.log(2 * math.pi)) - dn.sum(dn.log(dn.take_diagonal(factor)))
    after = Gaussian(state.mean + scaled.T @ z, state.covariance - scaled.T @ scaled)
    return dn.tree.where(known, after, state), dn.select(known, log, 0.0)


@dn.defn
def filtered(model: Model, y: dn.Tensor) -> tuple[Gaussian, dn.Tensor]:
    """The states given the observations {n, m} up to each time, and the log-likelihood.

    Kalman, "A new approach to linear filtering and prediction problems", 1960.
    """

    def step(before: Gaussian, y: dn.Tensor) -> Any:
        state, log = update(model, before, y)
        return predict(model, state), (state, log)

    _, (states, logs) = dn.scan(Gaussian(model.mean, model.covariance), y, step)
    return states, dn.sum(logs)


def backwards(model: Model, state: Gaussian) -> tuple[dn.Tensor, Gaussian]:
    """The gain {s, s} of the smoother, and the state at the next time."""
    ahead = predict(model, state)
    factor = dn.linalg.cholesky(ahead.covariance)
    return dn.linalg.cho_solve(factor, model.transition @ state.covariance).T, ahead


def split(states: Gaussian) -> tuple[Gaussian, Gaussian]:
    """All states but the last one, and the last one."""
    rest = dn.tree.map(lambda leaf: leaf[:-1], states)
    return rest, dn.tree.map(lambda leaf: leaf[-1], states)


@dn.defn
def smoothed(model: Model, states: Gaussian) -> Gaussian:
    """The states given all observations, from those of the filter.

    Rauch, Tung and Striebel, "Maximum likelihood estimates of linear dynamic systems", 1965.
    """

    def step(after: Gaussian, state: Gaussian) -> Any:
        gain, ahead = backwards(model, state)
        mean = state.mean + gain @ (after.mean - ahead.mean)
        change = gain @ (after.covariance - ahead.covariance) @ gain.T
        own = Gaussian(mean, state.covariance + change)
        return own, own

    rest, last = split(states)
    _, found = dn.scan(last, rest, step, reverse=True)
    return dn.tree.map(lambda a, b: dn.concatenate([a, b[None]]), found, last)


@dn.defn
def filtered_in_parallel(model: Model, y: dn.Tensor) -> tuple[Gaussian, dn.Tensor]:
    """The result of ``filtered`` in logarithmic depth.

    Särkkä and García-Fernández, "Temporal parallelization of Bayesian smoothers", 2021. A step
    makes of a state ``x`` one of mean ``a @ x + b`` and covariance ``c``, and its observation has a
    likelihood with the exponent ``x @ eta - x @ j @ x / 2``. So have several steps together.
    """
    observation = model.observation
    seen = observation @ model.process
    factor = dn.linalg.cholesky(seen @ observation.T + model.error)

    def step(y: dn.Tensor) -> Any:
        known = ~dn.any(dn.is_nan(y))
        y = dn.select(known, y, 0.0)
        gain = dn.select(known, dn.linalg.cho_solve(factor, seen).T, 0.0)
        ahead = dn.select(known, observation @ model.transition, 0.0)
        weighted = dn.linalg.cho_solve(factor, ahead).T
        a = model.transition - gain @ ahead
        return a, gain @ y, model.process - gain @ seen, weighted @ y, weighted @ ahead

    def then(before: Any, after: Any) -> Any:
        (a, b, c, eta, j), (a_2, b_2, c_2, eta_2, j_2) = before, after
        factors = dn.linalg.lu(dn.eye(j.shape, dtype=j.dtype) + c @ j_2)
        left = dn.linalg.lu_solve(factors, a)
        mean = a_2 @ dn.linalg.lu_solve(factors, b + c @ eta_2) + b_2
        covariance = a_2 @ dn.linalg.lu_solve(factors, c) @ a_2.T + c_2
        return a_2 @ left, mean, covariance, left.T @ (eta_2 - j_2 @ b) + eta, left.T @ j_2 @ a + j

    first, log = update(model, Gaussian(model.mean, model.covariance), y[0])
    zero = 0.0 * first.covariance
    start = zero, first.mean, first.covariance, zero[0], zero
    steps = dn.tree.map(lambda a, b: dn.concatenate([a[None], b]), start, dn.vmap(step)(y[1:]))
    _, mean, covariance, _, _ = dn.associative_scan(dn.vmap(then), steps)
    states = Gaussian(mean, covariance)
    ahead = dn.vmap(lambda state, y: update(model, predict(model, state), y)[1])
    return states, log + dn.sum(ahead(split(states)[0], y[1:]))


@dn.defn
def smoothed_in_parallel(model: Model, states: Gaussian) -> Gaussian:
    """The result of ``smoothed`` in logarithmic depth."""

    def step(state: Gaussian) -> Any:
        gain, ahead = backwards(model, state)
        spread = state.covariance - gain @ ahead.covariance @ gain.T
        return gain, Gaussian(state.mean - gain @ ahead.mean, spread)

    def then(after: Any, before: Any) -> Any:
        (gain, state), (gain_2, state_2) = after, before
        spread = gain_2 @ state.covariance @ gain_2.T + state_2.covariance
        return gain_2 @ gain, Gaussian(gain_2 @ state.mean + state_2.mean, spread)

    rest, last = split(states)
    start = 0.0 * last.covariance, last
    steps = dn.tree.map(lambda a, b: dn.concatenate([a, b[None]]), dn.vmap(step)(rest), start)
    return dn.associative_scan(dn.vmap(then), steps, reverse=True)[1]


def local_level(logs: dn.Tensor) -> Model:
    """A level that wanders, observed with noise; both variances are given by their logarithms.

    Durbin and Koopman, "Time series analysis by state space methods", 2012, chapter 2.
    """
    one = dn.broadcast(dn.fill(logs[0], 1.0), (1, 1))
    process, error = dn.exp(logs)
    return Model(0.0 * one[0], 1e7 * one, one, process * one, one, error * one)


@dn.defn
def fit(logs: dn.Tensor, y: dn.Tensor, *, steps: int = STEPS) -> tuple[dn.Tensor, dn.Tensor]:
    """Logarithms of variances {2} of the greatest likelihood, and log-likelihoods {steps}."""
    optimizer = dn.optim.adam(dn.optim.cosine_decay_schedule(RATE, steps))

    def step(carry: Any, _: Any) -> Any:
        logs, state = carry
        loss, slope = dn.value_and_grad(lambda logs: -filtered(local_level(logs), y)[1])(logs)
        updates, state = optimizer.update(slope, state, logs)
        return (dn.optim.apply_updates(logs, updates), state), -loss

    (logs, _), found = dn.scan((logs, optimizer.init(logs)), None, step, length=steps)
    return logs, found


def learn() -> tuple[np.ndarray, np.ndarray]:
    """Variances {2} of the level and of the observations, and log-likelihoods of the search."""
    start = dn.tensor(np.full(2, np.log(NILE.var())))
    logs, found = fit(start, dn.tensor(NILE[:, None]))
    return np.exp(logs.to_numpy()), found.to_numpy()


def draw(axes: Any, variances: np.ndarray, flow: np.ndarray = NILE) -> None:
    """The observations, and the smoothed level with its 95 percent interval."""
    model = local_level(dn.log(dn.tensor(variances)))
    level = smoothed(model, filtered(model, dn.tensor(flow[:, None]))[0])
    mean, half = level.mean[:, 0].to_numpy(), 1.96 * np.sqrt(level.covariance[:, 0, 0].to_numpy())
    axes.fill_between(YEARS, mean - half, mean + half, color="#1f77b4", alpha=0.25, linewidth=0)
    axes.plot(YEARS, mean, color="#1f77b4")
    axes.plot(YEARS, flow, "k.", markersize=3)
    axes.set(xlabel="year", ylabel="flow in 10$^8$ m$^3$")
    axes.set_title("The Nile: smoothed level, with its 95% interval", fontsize=10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--picture", type=pathlib.Path, help="a file, drawn with matplotlib")
    options = parser.parse_args(arguments)

    variances, found = learn()
    print(f"log-likelihood {found[0]:.2f} at first, {found[-1]:.4f} after {len(found)} steps")
    print(f"variances: level {variances[0]:.0f}, observations {variances[1]:.0f}")
    model, y = local_level(dn.log(dn.tensor(variances))), dn.tensor(NILE[:, None])
    states, log = filtered(model, y)
    level = smoothed(model, states)
    for year in (1871, 1898, 1899, 1970):
        mean, variance = level.mean[year - 1871].item(), level.covariance[year - 1871].item()
        print(f"{year}: level {mean:.0f} +- {np.sqrt(variance):.0f}")
    others, other = filtered_in_parallel(model, y)
    apart = dn.abs(smoothed_in_parallel(model, others).mean - level.mean).max()
    print(f"in parallel: log-likelihood {other - log:+.0e}, levels within {apart:.0e}")
    if options.picture is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        draw(left, variances)
        gaps = NILE.copy()
        gaps[20:40] = gaps[60:80] = np.nan
        draw(right, variances, gaps)
        right.set_title("Without the observations of 40 years", fontsize=10)
        figure.savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
