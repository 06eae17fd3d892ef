"""Fits the rates of a predator-prey equation to counts of hares and lynxes, and draws the fit.

python examples/lotka_volterra.py [--steps N] [--picture FILE]

Adam moves the logarithms of the rates and of the initial animals; gradients pass through
``dn.odeint``. Gauss-Newton steps then end at the least squares. docs/fit-ode.md explains each part.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import numpy as np

import defn as dn

# Thousands of pelts of hares and of lynxes that the Hudson's Bay Company bought in each year from
# 1900 to 1920 (Howard, "Modeling basics", 2009).
COUNTS = np.array(
    [
        (30.0, 4.0),
        (47.2, 6.1),
        (70.2, 9.8),
        (77.4, 35.2),
        (36.3, 59.4),
        (20.6, 41.7),
        (18.1, 19.0),
        (21.4, 13.0),
        (22.0, 8.3),
        (25.4, 9.1),
        (27.1, 7.4),
        (40.3, 8.0),
        (57.0, 12.3),
        (76.6, 19.5),
        (52.3, 45.7),
        (19.5, 51.1),
        (11.2, 29.7),
        (7.6, 15.8),
        (14.6, 9.7),
        (16.2, 10.1),
        (24.7, 8.6),
    ]
)
YEARS = np.arange(21.0)
STEPS, RATE = 150, 0.05
Container = dict[str, Any]


def initial() -> Container:
    """Logarithms of a guess: rates of the right order, and the animals of the first year."""
    rates = {"births": 0.4, "meals": 0.02, "growth": 0.02, "deaths": 0.6}
    start = {"hares": COUNTS[0, 0], "lynxes": COUNTS[0, 1]}
    return dn.tree.map(lambda value: dn.f64(np.log(value)), {"rates": rates, "start": start})


def slopes(t: dn.Tensor, animals: Container, rates: Container) -> Container:
    """Births, meals, growth and deaths, per year."""
    hares, lynxes = animals["hares"], animals["lynxes"]
    meals = hares * lynxes
    return {
        "hares": rates["births"] * hares - rates["meals"] * meals,
        "lynxes": rates["growth"] * meals - rates["deaths"] * lynxes,
    }


def course(params: Container, times: Any) -> dn.OdeSolution:
    """The animals at the times."""
    positive = dn.tree.map(dn.exp, params)
    return dn.odeint(slopes, positive["start"], times, positive["rates"], rtol=1e-8)


def residuals(params: Container, times: Any, counts: Any) -> dn.Tensor:
    """How far the logarithms of the animals are from those of the counts."""
    animals = course(params, times).ys
    return dn.log(dn.stack([animals["hares"], animals["lynxes"]], axis=1)) - dn.log(counts)


def loss(params: Container, times: Any, counts: Any) -> dn.Tensor:
    """The mean of the squares of the residuals."""
    return dn.mean(residuals(params, times, counts) ** 2)


def optimizer(steps: int) -> dn.optim.GradientTransformation:
    """Adam, whose rate falls to zero, with gradients that are not longer than 1."""
    rate = dn.optim.cosine_decay_schedule(RATE, max(1, steps))
    return dn.optim.chain(dn.optim.clip_by_global_norm(1.0), dn.optim.adam(rate))


@dn.jit
def fit_step(
    params: Container, state: Any, times: Any, counts: Any, *, steps: int
) -> tuple[Container, Any, dn.Tensor]:
    """The parameters and the optimizer's state after a step, and the loss before it."""
    value, gradients = dn.value_and_grad(loss)(params, times, counts)
    updates, state = optimizer(steps).update(gradients, state, params)
    return dn.optim.apply_updates(params, updates), state, value


@dn.jit
def least(params: Container, times: Any, counts: Any) -> dn.optimize.Result:
    """The parameters at which the squares of the residuals are least, near others."""
    return dn.optimize.least_squares(residuals, params, times, counts, method="gauss_newton")


def fit(
    params: Container, times: Any, counts: Any, steps: int = STEPS
) -> tuple[Container, list[float]]:
    """The parameters after steps of Adam and of Gauss-Newton, and the losses."""
    state, losses = optimizer(steps).init(params), []
    for _ in dn.data.progress(range(steps), label="fitting"):
        params, state, value = fit_step(params, state, times, counts, steps=steps)
        losses.append(float(value))
    losses.append(float(loss(params, times, counts)))
    params = least(params, times, counts).check().x
    return params, [*losses, float(loss(params, times, counts))]


def draw(path: pathlib.Path, before: Container, after: Container, losses: list[float]) -> None:
    """The counts, the solutions before and after the fit, and the losses."""
    try:
        import matplotlib as mpl
    except ImportError:
        print(f"{path.name} is not drawn: matplotlib is not installed")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    fine = np.linspace(YEARS[0], YEARS[-1], 401)
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 3.2), layout="constrained", width_ratios=[3, 3, 2]
    )
    for panel, params, title in zip(
        axes, (before, after), ("Before", "After the fit"), strict=False
    ):
        animals = course(params, fine).check().ys
        for place, (name, color) in enumerate((("hares", "#1f77b4"), ("lynxes", "#d95f02"))):
            panel.plot(1900 + fine, animals[name].to_numpy(), color=color, label=name)
            panel.plot(1900 + YEARS, COUNTS[:, place], "o", color=color, markersize=3.5)
        panel.set(xlabel="year", ylabel="thousands of pelts", title=title, ylim=(0, 90))
        panel.set_xticks(range(1900, 1921, 5))
        panel.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")
    axes[2].plot(losses, color="#1f77b4")
    axes[2].set(
        xlabel="step", ylabel="mean squared error of logarithms", yscale="log", title="Loss"
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--picture", default="lotka_volterra.png")
    options = parser.parse_args()

    before = initial()
    after, losses = fit(before, YEARS, COUNTS, options.steps)
    print(f"loss {losses[0]:.4f} before, {losses[-1]:.4f} after the fit")
    for part, values in dn.tree.map(dn.exp, after).items():
        print(part, {name: round(float(value), 4) for name, value in values.items()})
    draw(pathlib.Path(options.picture), before, after, losses)


if __name__ == "__main__":
    main()
