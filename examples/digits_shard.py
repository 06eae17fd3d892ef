"""Trains the classifier of `digits.py` on four devices: each gets a part of every batch.

Every device has all parameters. It computes the loss and the gradient on its own images. The
devices sum their gradients, and each takes the same step with the mean. The losses are those of
one device except for the order of additions. `--text` prints the graph of a step, which shows the
collectives between the devices.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from digits import (
    BATCH,
    RATE,
    Adam,
    Digits,
    Params,
    Random,
    Step,
    adam,
    each,
    guess,
    initial,
    loss_and_accuracy,
)

import defn as dn

DEVICES = 4


def mean(value: dn.Tensor) -> dn.Tensor:
    """The mean over the devices."""
    return dn.all_reduce(value, "data") / dn.mesh_size("data")


def step(params: Params, state: Adam, images: dn.Tensor, labels: dn.Tensor, rate: dn.Tensor):
    """One step on one batch, of which this device has a part."""
    (loss, accuracy), gradient = dn.value_and_grad(
        lambda params: loss_and_accuracy(params, images, labels), lambda value: value[0]
    )(params)
    params, state = adam(params, each(mean, gradient), state, rate)
    return params, state, mean(loss), mean(accuracy)


def sharded(devices: int = DEVICES) -> Any:
    """A step on several devices: batches are split, everything else is replicated."""
    mesh = dn.Mesh({"data": devices})
    batch = ("data",)
    return dn.shard(
        step, mesh, in_specs=[None, None, batch, batch, None], out_specs=[None, None, None, None]
    )


def train(digits: Digits, random: Random, epochs: int, devices: int = DEVICES) -> Iterator[Step]:
    """Trains; yields after each step. Parameters and state stay on the devices."""
    train_step = sharded(devices)
    params, state = initial(random)
    for epoch in range(epochs):
        rate = RATE * (1 - 0.9 * epoch / epochs)
        order = random.shuffled(digits.training)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            params, state, loss, accuracy = train_step(
                params, state, digits.images[batch], digits.labels[batch], rate
            )
            yield Step(params, float(loss.to_tensor()), float(accuracy.to_tensor()))


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--devices", type=int, default=DEVICES, help="how many (default 4)")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="split, initial weights, order")
    parser.add_argument("--log", type=Path, help="write the loss of each step as a JSON list")
    parser.add_argument("--text", action="store_true", help="print the graph of a step")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> float:
    """Trains, and returns the accuracy on the held-out digits."""
    given = options(arguments)
    random = Random(given.seed)
    digits = Digits.load(random)
    if given.text:
        params, state = initial(Random(given.seed))
        images, labels = digits.images[:BATCH], digits.labels[:BATCH]
        print(sharded(given.devices).text(params, state, images, labels, RATE))
    steps = list(train(digits, random, given.epochs, given.devices))
    params = each(lambda part: part.to_tensor(), steps[-1].params)
    if given.log:
        given.log.write_text(json.dumps([step.loss for step in steps]))
    guesses = guess(params, dn.tensor(digits.images[digits.held_out])).to_numpy()
    accuracy = float((guesses == digits.labels[digits.held_out]).mean())
    print(f"{len(steps)} steps on {given.devices} devices, the last with loss {steps[-1].loss:.4f}")
    print(f"test accuracy: {100 * accuracy:.1f}%")
    return accuracy


if __name__ == "__main__":
    main()
