"""Gaussian process regression: a function with its uncertainty, and a kernel that is learnt.

python examples/gaussian_process.py [--picture FILE]

The logarithm of the marginal likelihood is a Cholesky factor and two solves. Its gradient finds the
parameters of the kernel. It may have several maxima, so `dn.vmap` goes there from several starts.
Rasmussen and Williams, "Gaussian processes for machine learning", 2006. docs/science.md
explains each part.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import defn as dn

POINTS, NOISE, STARTS, STEPS, RATE = 40, 0.2, 8, 300, 0.1


class Kernel(NamedTuple):
    """Logarithms of positive parameters, so that any step is allowed."""

    variance: Any  # of the function
    length: Any  # {d}, over which the function changes, for each input
    noise: Any  # the variance of the observations


def squared_exponential(kernel: Kernel, a: dn.Tensor, b: dn.Tensor) -> dn.Tensor:
    """Covariances {n, m} of the function at points {n, d} and {m, d}."""
    distance = (a[:, None] - b[None]) / dn.exp(kernel.length)
    return dn.exp(kernel.variance - 0.5 * dn.sum(distance * distance, axes=-1))


def condition(kernel: Kernel, x: dn.Tensor, y: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
    """The Cholesky factor of the covariance of observations, and its inverse times ``y``."""
    covariance = squared_exponential(kernel, x, x)
    factor = dn.linalg.cholesky(covariance + dn.exp(kernel.noise) * dn.eye(len(x), dtype=x.dtype))
    return factor, dn.linalg.cho_solve(factor, y)


def log_likelihood(kernel: Kernel, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
    """The log marginal likelihood of observations {n} at points {n, d}: equation 2.30."""
    factor, weights = condition(kernel, x, y)
    determinant = dn.sum(dn.log(dn.take_diagonal(factor)))
    return -0.5 * y @ weights - determinant - 0.5 * len(x) * math.log(2 * math.pi)


@dn.defn
def predict(
    kernel: Kernel, x: dn.Tensor, y: dn.Tensor, new: dn.Tensor
) -> tuple[dn.Tensor, dn.Tensor]:
    """The mean and the variance {m} of the function at new points {m, d}: algorithm 2.1."""
    factor, weights = condition(kernel, x, y)
    cross = squared_exponential(kernel, x, new)
    scaled = dn.linalg.triangular_solve(factor, cross)
    return cross.T @ weights, dn.exp(kernel.variance) - dn.sum(scaled * scaled, axes=0)


@dn.defn
def fit(
    kernel: Kernel, x: dn.Tensor, y: dn.Tensor, *, steps: int = STEPS
) -> tuple[Kernel, dn.Tensor]:
    """The kernel after steps uphill from a first one, and the log-likelihood before each."""
    optimizer = dn.optim.adam(dn.optim.cosine_decay_schedule(RATE, steps))

    def step(carry: Any, _: Any) -> Any:
        kernel, state = carry
        loss, slope = dn.value_and_grad(lambda kernel: -log_likelihood(kernel, x, y))(kernel)
        updates, state = optimizer.update(slope, state, kernel)
        return (dn.optim.apply_updates(kernel, updates), state), -loss

    (kernel, _), found = dn.scan((kernel, optimizer.init(kernel)), None, step, length=steps)
    return kernel, found


def best(key: dn.Tensor, x: dn.Tensor, y: dn.Tensor, *, starts: int = STARTS) -> Any:
    """The most likely of the kernels that random starts lead to, and all log-likelihoods."""
    drawn = dn.random.normal_split(key, shape=(starts, x.shape[1] + 2), dtype=x.dtype)
    first = Kernel(drawn[:, 0], drawn[:, 1:-1], drawn[:, -1] - 2.0)
    kernels, found = dn.vmap(fit, in_axes=(0, None, None))(first, x, y)
    last = dn.argmax(dn.vmap(log_likelihood, in_axes=(0, None, None))(kernels, x, y))
    return dn.tree.map(lambda leaf: leaf[last], kernels), found


def truth(x: Any) -> np.ndarray:
    """The function that is to be found."""
    return np.sin(x) + 0.4 * np.sin(3.3 * x)


def observations() -> tuple[np.ndarray, np.ndarray]:
    """Points {n, 1}, of which there are none between 4 and 6, and noisy values {n}."""
    random = np.random.default_rng(0)
    x = random.uniform(0, 8, POINTS)
    x = np.where(x > 4, x + 2, x)
    return x[:, None], truth(x) + NOISE * random.normal(size=POINTS)


def draw(axes: Any, kernel: Kernel) -> None:
    """The function with its 95 percent interval, beside the one that the observations are of."""
    x, y = observations()
    new = np.linspace(-1, 11, 300)
    mean, variance = predict(kernel, dn.tensor(x), dn.tensor(y), dn.tensor(new[:, None]))
    middle, half = mean.to_numpy(), 1.96 * np.sqrt(variance.to_numpy())
    axes.fill_between(new, middle - half, middle + half, color="#1f77b4", alpha=0.25, linewidth=0)
    axes.plot(new, middle, color="#1f77b4", label="mean")
    axes.plot(new, truth(new), "k--", linewidth=1, label="truth")
    axes.plot(x[:, 0], y, "k.", markersize=4)
    axes.legend(fontsize=8, loc="lower left")
    axes.set(xlabel="x", ylabel="y")
    axes.set_title("Gaussian process, with its 95% interval", fontsize=10)


def draw_likelihood(axes: Any, kernel: Kernel, points: int = 30) -> None:
    """The log-likelihood of other lengths and of other noise, and the kernel that was found."""
    data = map(dn.tensor, observations())
    length, noise = np.linspace(-2, 1.5, points), np.linspace(-5, 0, points)
    lengths, noises = np.meshgrid(length, noise)
    value = dn.vmap(log_likelihood, in_axes=(Kernel(None, 0, 0), None, None))
    others = Kernel(kernel.variance, dn.tensor(lengths.reshape(-1, 1)), dn.tensor(noises.ravel()))
    logs = value(others, *data).to_numpy().reshape(points, points)
    levels = logs.max() - np.array([60, 40, 25, 15, 8, 4, 2, 1, 0.3])
    axes.contour(np.exp(length), np.exp(noise / 2), logs, levels, colors="C0", linestyles="-")
    axes.plot(np.exp(float(kernel.length[0])), np.exp(float(kernel.noise) / 2), "ko")
    axes.set(xlabel="length", ylabel="deviation of the noise", xscale="log", yscale="log")
    axes.minorticks_off()
    axes.set_xticks([0.25, 0.5, 1, 2, 4], labels=["0.25", "0.5", "1", "2", "4"])
    axes.set_yticks([0.1, 0.2, 0.5, 1], labels=["0.1", "0.2", "0.5", "1"])
    axes.set_title("Log marginal likelihood", fontsize=10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--picture", type=pathlib.Path, help="a file, drawn with matplotlib")
    options = parser.parse_args(arguments)

    x, y = map(dn.tensor, observations())
    kernel, found = best(dn.random.key(0), x, y, starts=options.starts)
    print("log-likelihood", *(f"{first:.1f} -> {last:.3f}" for first, last in found[:, [0, -1]]))
    print(f"variance {dn.exp(kernel.variance):.3f}, length {dn.exp(kernel.length[0]):.3f}")
    print(f"deviation of the noise {dn.exp(kernel.noise / 2):.3f}, made with {NOISE}")
    for place in (3.0, 5.0):
        mean, variance = predict(kernel, x, y, dn.tensor([[place]], dtype=x.dtype))
        half = 1.96 * np.sqrt(variance.item())
        print(f"at {place}: {mean.item():.2f} +- {half:.2f}, truth {truth(place):.2f}")
    if options.picture is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw(left, kernel)
        draw_likelihood(right, kernel)
        figure.savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
