"""Bayesian logistic regression by Hamiltonian Monte Carlo, with diagnostics of the chains.

python examples/hmc.py [--chains N] [--draws N] [--picture FILE]

Did cold damage the seals of the Space Shuttle? The code is that of one chain: leapfrog steps, a
test of the proposal, and a step size that is adapted during warm-up. `dn.vmap` makes many chains of
it, and `dn.scan` makes their iterations one compiled program. docs/science.md explains each part.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import defn as dn

# Temperatures in degrees Fahrenheit at 23 launches, and whether a seal was damaged: Dalal, Fowlkes
# and Hoadley, "Risk analysis of the Space Shuttle: pre-Challenger prediction of failure", 1989.
TEMPERATURE = np.array(
    [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58.0]
)
DAMAGE = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1.0])
CHALLENGER = 31.0  # The temperature at its launch in 1986, which was not among the 23.
CHAINS, WARM_UP, DRAWS, BLOCKS = 8, 500, 4000, 20
PRIOR, FIRST_SIZE, LEAPS, TARGET = 2.5, 0.1, 3, 0.8
State = dict[str, Any]


def design(temperature: Any) -> np.ndarray:
    """Rows {n, 2}: ones, and temperatures in standard deviations from the mean of the launches."""
    scaled = (np.asarray(temperature) - TEMPERATURE.mean()) / TEMPERATURE.std()
    return np.stack([np.ones_like(scaled), scaled], -1)


def log_density(w: dn.Tensor, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
    """Of coefficients {d}, for rows {n, d} and labels {n} of 0 and 1; up to a constant."""
    scores = x @ w
    return dn.sum(y * scores - dn.nn.softplus(scores)) - 0.5 * dn.sum((w / PRIOR) ** 2)


def begin(key: dn.Tensor, x: dn.Tensor, y: dn.Tensor) -> State:
    """The state of a chain at a random position."""
    w, key = dn.random.normal(key, shape=x.shape[-1:], dtype=x.dtype)
    value, slope = dn.value_and_grad(log_density)(w, x, y)
    return {"w": w, "value": value, "slope": slope, "key": key}


@dn.defn
def transition(
    state: State, x: dn.Tensor, y: dn.Tensor, size: dn.Tensor
) -> tuple[State, dn.Tensor]:
    """One iteration of a chain, and the probability that its proposal was accepted.

    Duane, Kennedy, Pendleton and Roweth, "Hybrid Monte Carlo", 1987.
    """
    w, value, slope = state["w"], state["value"], state["slope"]
    momentum, key = dn.random.normal(state["key"], shape=w.shape, dtype=w.dtype)
    uniform, key = dn.random.uniform(key, shape=(2,), dtype=w.dtype)
    energy = 0.5 * dn.sum(momentum * momentum) - value
    # A path of a fixed length can return to its start again and again (Neal, "MCMC using
    # Hamiltonian dynamics", 2011).
    size = size * (0.8 + 0.4 * uniform[0])
    ahead = w
    for _ in dn.range(LEAPS):
        momentum = momentum + 0.5 * size * slope
        ahead = ahead + size * momentum
        value, slope = dn.value_and_grad(log_density)(ahead, x, y)
        momentum = momentum + 0.5 * size * slope
    probability = dn.exp(dn.minimum(energy - 0.5 * dn.sum(momentum * momentum) + value, 0.0))
    # An energy that overflowed is not accepted.
    probability = dn.select(dn.is_nan(probability), 0.0, probability)
    if uniform[1] < probability:
        return {"w": ahead, "value": value, "slope": slope, "key": key}, probability
    return {**state, "key": key}, probability


@dn.defn
def warm_up(key: dn.Tensor, x: dn.Tensor, y: dn.Tensor, *, steps: int) -> tuple[State, dn.Tensor]:
    """A chain after some iterations, and the size of leapfrog steps that they have found.

    Dual averaging makes the mean probability of acceptance ``TARGET``: Hoffman and Gelman, "The
    No-U-turn sampler", 2014, section 3.2.
    """

    def adapt(carry: Any, count: Any) -> Any:
        state, log_size, mean, error = carry
        state, probability = transition(state, x, y, dn.exp(log_size))
        count = dn.as_type(count, x.dtype)
        error = error + (TARGET - probability - error) / (count + 10)
        log_size = math.log(10 * FIRST_SIZE) - dn.sqrt(count) / 0.05 * error
        return (state, log_size, mean + count**-0.75 * (log_size - mean), error), None

    zero = dn.fill(x[0, 0], 0.0)
    carry = begin(key, x, y), zero + math.log(FIRST_SIZE), zero, zero
    (state, _, mean, _), _ = dn.scan(carry, range(1, steps + 1), adapt)
    return state, dn.exp(mean)


@dn.defn
def sample(
    state: State, size: dn.Tensor, x: dn.Tensor, y: dn.Tensor, *, draws: int
) -> tuple[State, tuple[dn.Tensor, dn.Tensor]]:
    """A chain after some iterations, its positions {draws, d}, and probabilities {draws}."""

    def iterate(state: State, _: Any) -> Any:
        state, probability = transition(state, x, y, size)
        return state, (state["w"], probability)

    return dn.scan(state, None, iterate, length=draws)


@dn.defn
def diagnostics(draws: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
    """The effective sample size and the split R-hat of one quantity, of draws {chains, n}.

    Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding, and localization:
    an improved R-hat for assessing convergence of MCMC", 2021; without the ranks.
    """
    half = draws.shape[1] // 2
    parts = dn.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    centred = parts - dn.mean(parts, axes=1, keep_axes=True)
    # Sums of products at all lags, by a Fourier transform whose padding keeps the ends apart.
    spectrum = dn.rfft(centred, length=2 * half)
    products = dn.irfft(spectrum * dn.conjugate(spectrum), length=2 * half)[:, :half] / half
    within = dn.mean(products[:, 0]) * half / (half - 1)
    total = dn.mean(products[:, 0]) + dn.variance(dn.mean(parts, axes=1), ddof=1)
    correlation = 1 - (within - dn.mean(products, axes=0)) / total
    # The initial monotone sequence of Geyer, "Practical Markov chain Monte Carlo", 1992.
    pairs = dn.sum(correlation[: half // 2 * 2].reshape(-1, 2), axes=1)
    kept = dn.cumulative_min(dn.as_type(pairs > 0, pairs.dtype))
    time = 2 * dn.sum(kept * dn.cumulative_min(pairs)) - 1
    return parts.size / time, dn.sqrt(total / within)


def run(chains: int, draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws {chains, n, 2}, and of each chain the acceptance and the size of its steps."""
    x, y = dn.tensor(design(TEMPERATURE)), dn.tensor(DAMAGE)
    keys = dn.random.split(dn.random.key(0), chains)
    state, size = dn.vmap(warm_up, in_axes=(0, None, None))(keys, x, y, steps=WARM_UP)
    block = dn.vmap(sample, in_axes=(0, 0, None, None))
    found = []
    for _ in dn.data.progress(range(BLOCKS), label="sampling"):
        state, results = block(state, size, x, y, draws=-(-draws // BLOCKS))
        found.append([result.to_numpy() for result in results])
    w, accepted = (np.concatenate(parts, 1) for parts in zip(*found, strict=True))
    return w, accepted.mean(1), size.to_numpy()


def grid(points: int = 201) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The posterior without sampling, as there are two coefficients: their values, and weights."""
    axes = np.linspace(-5, 3, points), np.linspace(-7, 3, points)
    places = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    data = dn.tensor(design(TEMPERATURE)), dn.tensor(DAMAGE)
    logs = dn.vmap(lambda w: log_density(w, *data))(dn.tensor(places)).to_numpy()
    weights = np.exp(logs - logs.max()).reshape(points, points)
    return *axes, weights / weights.sum()


def risk(w: np.ndarray, temperature: Any) -> np.ndarray:
    """Probabilities of damage {..., n} at temperatures {n}, for coefficients {..., 2}."""
    return 1 / (1 + np.exp(-(w @ design(temperature).T)))


def draw_posterior(axes: Any, w: np.ndarray) -> None:
    """Draws, and contours of the posterior on the grid around 50, 90 and 99 percent of it."""
    first, second, weights = grid()
    ordered = np.sort(weights.ravel())
    levels = [ordered[np.searchsorted(np.cumsum(ordered), 1 - p)] for p in (0.99, 0.9, 0.5)]
    axes.plot(*w.reshape(-1, 2)[::16].T, ".", color="#1f77b4", markersize=2, alpha=0.4)
    axes.contour(first, second, weights.T, levels, colors="black", linewidths=1)
    axes.set(xlabel="intercept", ylabel="slope", xlim=(-4, 1), ylim=(-5, 0.5))
    axes.set_title("Posterior: draws and exact contours", fontsize=10)


def draw_risk(axes: Any, w: np.ndarray) -> None:
    """The probability of damage with its 95 percent interval, and the launches."""
    temperature = np.linspace(CHALLENGER, TEMPERATURE.max(), 100)
    low, middle, high = np.quantile(risk(w.reshape(-1, 2), temperature), [0.025, 0.5, 0.975], 0)
    axes.fill_between(temperature, low, high, color="#1f77b4", alpha=0.25, linewidth=0)
    axes.plot(temperature, middle, color="#1f77b4")
    axes.plot(TEMPERATURE, DAMAGE, "k|")
    axes.set(xlabel="temperature in degrees Fahrenheit", ylabel="probability of damage")
    axes.set_title("Damage of a seal, with its 95% interval", fontsize=10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each chain")
    parser.add_argument("--picture", type=pathlib.Path, help="a file, drawn with matplotlib")
    options = parser.parse_args(arguments)

    w, accepted, size = run(options.chains, options.draws)
    print(f"{accepted.mean():.0%} of proposals accepted, steps of {size.mean():.2f}")
    sizes, spreads = dn.vmap(diagnostics, in_axes=2)(dn.tensor(w))
    first, second, weights = grid()
    print("           mean     sd  exact mean     sd    ESS  R-hat")
    for at, (name, places) in enumerate((("intercept", first), ("slope", second))):
        share = weights.sum(1 - at)
        mean = share @ places
        deviation = np.sqrt(share @ (places - mean) ** 2)
        print(
            f"{name:9} {w[..., at].mean():6.3f} {w[..., at].std():6.3f}"
            f"{mean:12.3f} {deviation:6.3f} {sizes[at]:6.0f} {spreads[at]:6.4f}"
        )
    low, middle, high = np.quantile(risk(w, [CHALLENGER]), [0.025, 0.5, 0.975])
    print(f"damage at {CHALLENGER:.0f} F: {middle:.1%}, 95% interval {low:.1%} to {high:.1%}")
    if options.picture is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_posterior(left, w)
        draw_risk(right, w)
        figure.savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
