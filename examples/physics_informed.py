"""A physics-informed network: the solution of Burgers' equation, without any data of it.

python examples/physics_informed.py [--steps N] [--picture FILE]

The network is a function of time and place. Its loss is the residual of the equation, which has
derivatives of the network up to second order, by nested `dn.grad`. Raissi, Perdikaris and
Karniadakis, "Physics-informed neural networks", 2019. docs/science.md explains each part.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import defn as dn

# u_t + u u_x = VISCOSITY u_xx for -1 < x < 1, with u = -sin(pi x) at t = 0 and u = 0 at both ends.
VISCOSITY = 0.05
SIZES, BATCH, STEPS, RATE, BLOCK = (2, 32, 32, 32, 1), 256, 4000, 2e-2, 100
Container = dict[str, Any]


def initial(key: dn.Tensor, sizes: Sequence[int] = SIZES) -> list[Container]:
    """Random weights, and offsets of zero."""
    params = []
    for before, after in itertools.pairwise(sizes):
        weights, key = dn.nn.glorot(key, shape=(before, after))
        params.append({"weights": weights, "bias": dn.broadcast(0.0, (after,))})
    return params


def solution(params: list[Container], t: Any, x: Any) -> dn.Tensor:
    """The network at times {n} and places {n}.

    Its form meets the conditions at the beginning and at both ends, whatever the weights: Lagaris,
    Likas and Fotiadis, "Artificial neural networks for solving ordinary and partial differential
    equations", 1998.
    """
    h = dn.stack([2.0 * t - 1.0, x], -1)
    for layer in params[:-1]:
        h = dn.tanh(h @ layer["weights"] + layer["bias"])
    free = (h @ params[-1]["weights"] + params[-1]["bias"])[..., 0]
    return t * (1.0 - x * x) * free - dn.sin(np.pi * x)


def residual(params: list[Container], t: dn.Tensor, x: dn.Tensor) -> dn.Tensor:
    """What is left of the equation at times {n} and places {n}."""

    def u(t: dn.Tensor, x: dn.Tensor) -> dn.Tensor:
        return solution(params, t, x)

    # Values at different places do not depend on each other, so that the gradient of their sum is
    # the derivative at each.
    u_x = dn.grad(u, argnums=1)
    u_t, u_xx = dn.grad(u)(t, x), dn.grad(u_x, argnums=1)(t, x)
    return u_t + u(t, x) * u_x(t, x) - VISCOSITY * u_xx


def optimizer(steps: int) -> dn.optim.GradientTransformation:
    """Adam, whose rate rises for a fortieth of the steps and falls to zero."""
    rate = dn.optim.warmup_cosine_decay_schedule(0.0, RATE, max(1, steps // 40), max(2, steps))
    return dn.optim.adam(rate)


@dn.jit(donate=("params", "state"))
def train_block(
    params: Any, state: Any, key: dn.Tensor, *, count: int, steps: int, batch: int
) -> Any:
    """Parameters, optimizer's state and key after ``count`` of so many steps, and their losses."""

    def step(carry: Any, _: Any) -> Any:
        params, state, key = carry
        points, key = dn.random.uniform(key, shape=(2, batch))

        def loss(params: Any) -> dn.Tensor:
            return dn.mean(residual(params, points[0], 2.0 * points[1] - 1.0) ** 2)

        value, gradients = dn.value_and_grad(loss)(params)
        updates, state = optimizer(steps).update(gradients, state, params)
        return (dn.optim.apply_updates(params, updates), state, key), value

    return dn.scan((params, state, key), None, step, length=count)


def train(
    steps: int, sizes: Sequence[int] = SIZES, batch: int = BATCH
) -> tuple[list[Container], np.ndarray]:
    """The parameters after so many steps, and the loss of each."""
    first, key = dn.random.split(dn.random.key(0))
    params, losses = initial(first, sizes), []
    state = optimizer(steps).init(params)
    for done in dn.data.progress(range(0, steps, BLOCK), label="training"):
        count = min(BLOCK, steps - done)
        (params, state, key), values = train_block(
            params, state, key, count=count, steps=steps, batch=batch
        )
        losses.append(values.to_numpy())
    return params, np.concatenate(losses)


def exact(t: Any, x: Any, nodes: int = 100) -> np.ndarray:
    """The solution at times and places, which broadcast: a ratio of two integrals.

    Cole, "On a quasi-linear parabolic equation occurring in aerodynamics", 1951; Hopf, "The partial
    differential equation u_t + u u_x = mu u_xx", 1950; by Gauss-Hermite quadrature.
    """
    places, weights = np.polynomial.hermite.hermgauss(nodes)
    y = np.asarray(x)[..., None] - np.sqrt(4 * VISCOSITY * np.asarray(t)[..., None]) * places
    weights = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return -np.sum(weights * np.sin(np.pi * y), -1) / np.sum(weights, -1)


def errors(params: list[Container], points: int = 101) -> np.ndarray:
    """The network minus the solution, at times and places of a grid {points, points}."""
    t, x = np.meshgrid(np.linspace(0, 1, points), np.linspace(-1, 1, points), indexing="ij")
    found = solution(params, dn.tensor(t, dtype="f32"), dn.tensor(x, dtype="f32"))
    return found.to_numpy() - exact(t, x)


def draw(axes: Any, params: list[Container]) -> None:
    """The network and the solution at some times."""
    x = np.linspace(-1, 1, 201)
    for at, t in enumerate((0.0, 0.25, 0.5, 1.0)):
        times = dn.broadcast(t, x.shape)
        found = solution(params, times, dn.tensor(x, dtype="f32")).to_numpy()
        axes.plot(x, found, color=f"C{at}", label=f"t = {t}")
        axes.plot(x[::8], exact(t, x[::8]), ".", color="black", markersize=4)
    axes.legend(fontsize=8)
    axes.set(xlabel="x", ylabel="u")
    axes.set_title("Burgers' equation: network, and exact solution (dots)", fontsize=10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--picture", type=pathlib.Path, help="a file, drawn with matplotlib")
    options = parser.parse_args(arguments)

    params, losses = train(options.steps)
    error = errors(params)
    print(f"loss {losses[0]:.3f} at first, {losses[-BLOCK:].mean():.1e} after {len(losses)} steps")
    root = np.sqrt(np.mean(error**2))
    print(f"error: root mean square {root:.1e}, greatest {np.abs(error).max():.1e}")
    if options.picture is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw(left, params)
        right.semilogy(losses, color="#1f77b4", linewidth=0.6)
        right.set(xlabel="step", ylabel="mean square of the residual")
        right.set_title("Loss of batches", fontsize=10)
        figure.savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
