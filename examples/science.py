"""Draws the models of docs/science.md: posterior, smoother, Gaussian process, Burgers' equation.

python examples/science.py [--picture FILE] [--steps N]
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence

import gaussian_process
import hmc
import kalman
import physics_informed
from matplotlib.figure import Figure

import defn as dn


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--picture", type=pathlib.Path, default="science.png")
    parser.add_argument("--steps", type=int, default=physics_informed.STEPS, help="of training")
    options = parser.parse_args(arguments)

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    (posterior, level), (process, burgers) = figure.subplots(2, 2)
    hmc.draw_posterior(posterior, hmc.run(hmc.CHAINS, hmc.DRAWS)[0])
    kalman.draw(level, kalman.learn()[0])
    x, y = map(dn.tensor, gaussian_process.observations())
    gaussian_process.draw(process, gaussian_process.best(dn.random.key(0), x, y)[0])
    physics_informed.draw(burgers, physics_informed.train(options.steps)[0])
    figure.savefig(options.picture, dpi=110)
    print(f"{options.picture} is drawn")


if __name__ == "__main__":
    main()
