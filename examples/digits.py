"""Trains a classifier of handwritten digits, and draws its loss and its errors.

A multilayer perceptron with one hidden layer, cross-entropy, and Adam. Each of them is a numerical
definition, and one call of `train_step` is one compiled program. The same model in Rust reaches the
same losses: `cargo run --release -p defn --example digits`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import defn as dn

DATA = Path(__file__).resolve().parent / "data" / "digits.npz"
PIXELS, HIDDEN, CLASSES = 64, 256, 10
HELD_OUT = 360  # images that training never sees
BATCH = 32
RATE = 3e-3


@dataclass(frozen=True)
class Params:
    """The parameters of both layers; their gradients and moments have the same structure."""

    hidden: dn.Tensor  # f32[64][256]
    hidden_bias: dn.Tensor  # f32[256]
    output: dn.Tensor  # f32[256][10]
    output_bias: dn.Tensor  # f32[10]


@dataclass(frozen=True)
class Adam:
    """The optimizer's state: the step count, and moving averages of gradients and squares."""

    step: dn.Tensor
    mean: Params
    square: Params


def each(fun: Callable[..., dn.Tensor], *params: Params) -> Params:
    """Applies a function to corresponding parameters."""
    names = [field.name for field in dataclasses.fields(Params)]
    return Params(**{name: fun(*(getattr(one, name) for one in params)) for name in names})


@dn.defn
def scores(params: Params, images: dn.Tensor) -> dn.Tensor:
    """A score for each class; the greatest one is the guess."""
    hidden = dn.max(images / 16 @ params.hidden + params.hidden_bias, 0)
    return hidden @ params.output + params.output_bias


@dn.defn
def guess(params: Params, images: dn.Tensor) -> dn.Tensor:
    """The digit that is recognized in each image."""
    return dn.argmax(scores(params, images), axis=1)


@dn.defn
def loss_and_accuracy(params: Params, images: dn.Tensor, labels: dn.Tensor):
    """The mean cross-entropy of a batch, and its accuracy."""
    out = scores(params, images)
    one_hot = labels[:, None] == dn.iota((CLASSES,))
    loss = dn.mean(dn.logsumexp(out, axes=1) - dn.sum(out * one_hot, axes=1))
    return loss, dn.mean(dn.argmax(out, axis=1) == labels)


@dn.defn
def adam(params: Params, gradient: Params, state: Adam, rate: dn.Tensor | float):
    """The next parameters and state. `scale` corrects for averages that start at zero."""
    step = state.step + 1
    mean = each(lambda mean, g: 0.9 * mean + 0.1 * g, state.mean, gradient)
    square = each(lambda square, g: 0.999 * square + 0.001 * g * g, state.square, gradient)
    scale = rate * dn.sqrt(1 - dn.pow(0.999, step)) / (1 - dn.pow(0.9, step))
    params = each(lambda p, m, s: p - scale * m / (dn.sqrt(s) + 1e-8), params, mean, square)
    return params, Adam(step, mean, square)


@dn.defn
def train_step(
    params: Params, state: Adam, images: dn.Tensor, labels: dn.Tensor, rate: dn.Tensor | float
):
    """One step on one batch."""
    (loss, accuracy), gradient = dn.value_and_grad(
        lambda params: loss_and_accuracy(params, images, labels), lambda value: value[0]
    )(params)
    params, state = adam(params, gradient, state, rate)
    return params, state, loss, accuracy


class Random:
    """SplitMix64: a generator so small that the Rust example can draw the same numbers."""

    def __init__(self, seed: int) -> None:
        self.state = seed & (2**64 - 1)

    def bits(self) -> int:
        """64 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return z ^ (z >> 31)

    def uniform(self, shape: Sequence[int], bound: float) -> dn.Tensor:
        """Numbers between `-bound` and `bound`."""
        rows, columns = shape
        draw = [
            [((self.bits() >> 40) / 2**23 - 1) * bound for _ in range(columns)] for _ in range(rows)
        ]
        return dn.tensor(draw)

    def shuffled(self, items: Sequence[int]) -> list[int]:
        """The items in random order."""
        order = list(items)
        for i in range(len(order) - 1, 0, -1):
            j = self.bits() % (i + 1)
            order[i], order[j] = order[j], order[i]
        return order


def initial(random: Random) -> tuple[Params, Adam]:
    """Random weights, scaled to keep the variance of activations, and the optimizer's start."""
    params = Params(
        random.uniform((PIXELS, HIDDEN), (6 / PIXELS) ** 0.5),
        dn.broadcast(0.0, (HIDDEN,)),
        random.uniform((HIDDEN, CLASSES), (6 / HIDDEN) ** 0.5),
        dn.broadcast(0.0, (CLASSES,)),
    )
    zeros = each(lambda p: dn.broadcast(0.0, p.shape), params)
    return params, Adam(dn.tensor(0), zeros, zeros)


@dataclass
class Digits:
    """The images, u8 from 0 to 16, their labels, and the indices of both splits."""

    images: np.ndarray
    labels: np.ndarray
    training: list[int]
    held_out: list[int]

    @classmethod
    def load(cls, random: Random) -> Digits:
        """Reads the data and splits it."""
        with np.load(DATA) as data:
            images, labels = data["images"].reshape(-1, PIXELS), data["labels"]
        order = random.shuffled(range(len(images)))
        return cls(images, labels, order[HELD_OUT:], order[:HELD_OUT])


@dataclass
class Step:
    """The result of one training step."""

    params: Params
    loss: float
    accuracy: float


def train(digits: Digits, random: Random, epochs: int) -> Iterator[Step]:
    """Trains; yields after each step. The learning rate falls with every epoch."""
    params, state = initial(random)
    for epoch in range(epochs):
        rate = RATE * (1 - 0.9 * epoch / epochs)
        order = random.shuffled(digits.training)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            images, labels = dn.tensor(digits.images[batch]), dn.tensor(digits.labels[batch])
            params, state, loss, accuracy = train_step(params, state, images, labels, rate)
            yield Step(params, float(loss), float(accuracy))


def watch(steps: Iterator[Step], total: int) -> Iterator[Step]:
    """Pass the steps on and show progress: a bar with tqdm, else a line every 100 steps."""
    try:
        from tqdm import tqdm
    except ImportError:
        for number, step in enumerate(steps, 1):
            if number % 100 == 0 or number == total:
                print(f"step {number}/{total}, loss {step.loss:.4f}, accuracy {step.accuracy:.3f}")
            yield step
        return
    with tqdm(total=total, unit="step", desc="training") as bar:
        for step in steps:
            bar.set_postfix(loss=f"{step.loss:.4f}", accuracy=f"{step.accuracy:.3f}", refresh=False)
            bar.update()
            yield step


def draw(path: Path, losses: list[float], digits: Digits, guesses: np.ndarray) -> None:
    """Draws the loss curve and the first misclassified digits with their guesses."""
    try:
        import matplotlib as mpl
    except ImportError:
        print(f"{path.name} is not drawn: matplotlib is not installed")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    labels = digits.labels[digits.held_out]
    wrong = np.flatnonzero(guesses != labels)
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    [[curve, gallery]] = figure.subfigures(1, 2, squeeze=False)
    axes = curve.subplots()
    axes.semilogy(range(1, len(losses) + 1), losses, linewidth=0.8)
    axes.set(title="training loss", xlabel="step", ylabel="cross-entropy")
    gallery.suptitle(f"{len(wrong)} of {len(labels)} held-out digits misread")
    for place, at in zip(gallery.subplots(3, 4).flat, [*wrong[:12], *[None] * 12], strict=False):
        place.axis("off")
        if at is not None:
            place.imshow(digits.images[digits.held_out[at]].reshape(8, 8), cmap="gray_r")
            place.set_title(f"{labels[at]} read as {guesses[at]}", fontsize=9)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"wrote {path.name}: the loss curve and {min(len(wrong), 12)} misread digits")


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--compiler", help="the compiler to use, such as evaluator")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data (default 20)")
    parser.add_argument(
        "--seed", type=int, default=0, help="split, initial weights, order (default 0)"
    )
    parser.add_argument("--picture", type=Path, default=Path("digits.png"), help="where to draw")
    parser.add_argument("--log", type=Path, help="write the loss of each step as a JSON list")
    given = parser.parse_args(arguments)
    if given.epochs < 1:
        parser.error("--epochs must be at least 1")
    return given


def main(arguments: Sequence[str] | None = None) -> float:
    """Trains, draws, and returns the accuracy on the held-out digits."""
    given = options(arguments)
    random = Random(given.seed)
    digits = Digits.load(random)
    total = given.epochs * (len(digits.training) // BATCH)
    print(f"{len(digits.training)} digits to train on, {len(digits.held_out)} held out")

    with dn.options(compiler=given.compiler) if given.compiler else nullcontext():
        steps: list[Step] = []
        first = 0.0
        start = time.perf_counter()
        for step in watch(train(digits, random, given.epochs), total):
            if not steps:
                first = time.perf_counter() - start
            steps.append(step)
        seconds = time.perf_counter() - start
        guesses = guess(steps[-1].params, dn.tensor(digits.images[digits.held_out])).to_numpy()

    later = 1e3 * (seconds - first) / max(total - 1, 1)
    print(
        f"{total} steps in {seconds:.2f} s: {later:.3f} ms a step, "
        f"the first, with tracing and compiling, {1e3 * first:.1f} ms"
    )
    losses = [step.loss for step in steps]
    if given.log:
        given.log.write_text(json.dumps(losses))
    draw(given.picture, losses, digits, guesses)
    accuracy = float((guesses == digits.labels[digits.held_out]).mean())
    print(f"test accuracy: {100 * accuracy:.1f}%")
    return accuracy


if __name__ == "__main__":
    main()
