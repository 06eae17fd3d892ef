"""Trains a convolutional network on handwritten digits, and draws its loss and its errors.

python examples/digits_conv.py [--epochs N] [--directory RUN] [--picture FILE]

Two convolutions, two pools and one product, dropout, AdamW with a schedule. The state of the run is
saved after each epoch, and a run that is started again goes on from there. docs/train.md explains
each part.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import numpy as np

import defn as dn

DATA = pathlib.Path(__file__).resolve().parent / "data" / "digits.npz"
HELD_OUT, BATCH, EPOCHS, RATE = 360, 32, 10, 3e-3
Container = dict[str, Any]


def initial(key: dn.Tensor) -> Container:
    """Random kernels, and offsets of zero."""

    def kernel(*shape: int) -> dn.Tensor:
        nonlocal key
        drawn, key = dn.nn.he(key, shape=shape)
        return drawn

    return {
        "first": {"kernel": kernel(3, 3, 1, 16), "bias": dn.broadcast(0.0, (16,))},
        "second": {"kernel": kernel(3, 3, 16, 32), "bias": dn.broadcast(0.0, (32,))},
        "output": {"kernel": kernel(2 * 2 * 32, 10), "bias": dn.broadcast(0.0, (10,))},
    }


def scores(params: Container, images: Any, key: Any = None, rate: float = 0.0) -> dn.Tensor:
    """A score for each class of images ``{batch, 8, 8}``. With a key, dropout at a rate."""
    x = dn.as_type(images, "f32")[..., None] / 16
    for name in ("first", "second"):
        x = dn.nn.relu(dn.nn.conv(x, **params[name], padding="same"))
        x = dn.nn.max_pool(x, 2)
    x = x.reshape(x.shape[0], -1)
    if key is not None:
        x = dn.nn.dropout_split(x, key, rate)
    return x @ params["output"]["kernel"] + params["output"]["bias"]


def optimizer(steps: int) -> dn.optim.GradientTransformation:
    """AdamW, whose rate rises for a tenth of the steps and falls to zero."""
    rate = dn.optim.warmup_cosine_decay_schedule(0.0, RATE, max(1, steps // 10), max(2, steps))
    return dn.optim.adamw(rate, weight_decay=0.01)


def begin(seed: int, steps: int) -> Container:
    """The state of a run before its first step: all that it depends on."""
    first, second = dn.random.split(dn.random.key(seed), 2)
    params = initial(first)
    state = optimizer(steps).init(params)
    return {"params": params, "optimizer": state, "key": second, "position": dn.data.Position(0, 0)}


@dn.jit(donate=("params", "state"))
def train_step(
    params: Container, state: Any, key: dn.Tensor, images: Any, labels: Any, *, steps: int
) -> tuple[Container, Any, dn.Tensor, dn.Tensor]:
    """The parameters, the optimizer's state and the key after a batch, and the loss before it."""
    own, key = dn.random.split(key, 2)

    def loss(params: Container) -> dn.Tensor:
        return dn.mean(dn.nn.cross_entropy(scores(params, images, own, 0.25), labels))

    value, gradients = dn.value_and_grad(loss)(params)
    updates, state = optimizer(steps).update(gradients, state, params)
    return dn.optim.apply_updates(params, updates), state, key, value


@dn.defn
def guess(params: Container, images: Any) -> dn.Tensor:
    """The digit that is recognized in each image."""
    return dn.argmax(scores(params, images), -1)


def load() -> tuple[Container, Container]:
    """The images and labels for training, and those that training never sees."""
    with np.load(DATA) as data:
        images, labels = data["images"].reshape(-1, 8, 8), data["labels"].astype(np.int32)
    order = np.random.default_rng(0).permutation(len(images))

    def taken(part: np.ndarray) -> Container:
        return {"images": images[part], "labels": labels[part]}

    return taken(order[HELD_OUT:]), taken(order[:HELD_OUT])


def train(arrays: Container, state: Container, epochs: int, directory: Any = None) -> Any:
    """The state after so many epochs, and the losses since the one that was given."""
    steps = epochs * -(-len(arrays["labels"]) // BATCH)
    order = dn.random.key(1)
    batches = dn.data.batches(arrays, BATCH, key=order, epochs=epochs, start=state["position"])
    losses: list[float] = []
    with dn.data.prefetch(batches) as ahead:
        for batch in dn.data.progress(ahead, total=len(batches), label="training"):
            parts = state["params"], state["optimizer"], state["key"]
            params, own, key, loss = train_step(
                *parts, batch["images"], batch["labels"], steps=steps
            )
            state = {"params": params, "optimizer": own, "key": key, "position": ahead.position}
            losses.append(float(loss))
            if directory is not None and ahead.position.rows == 0:
                dn.checkpoints.save(directory, ahead.position.epoch, state)
    return state, losses


def draw(path: pathlib.Path, losses: list[float], held_out: Container, guesses: Any) -> None:
    """The losses, and images that are not recognized."""
    try:
        import matplotlib as mpl
    except ImportError:
        print(f"{path.name} is not drawn: matplotlib is not installed")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(9, 3.2), layout="constrained")
    grid = figure.add_gridspec(2, 7)
    axes = figure.add_subplot(grid[:, :3])
    axes.plot(losses, color="#1f77b4", linewidth=0.8, alpha=0.5)
    smooth = np.convolve(losses, np.ones(20) / 20, "valid")
    axes.plot(np.arange(len(smooth)) + 10, smooth, color="#1f77b4")
    axes.set(xlabel="step", ylabel="cross-entropy", yscale="log", title="Loss of batches")
    wrong = np.flatnonzero(guesses != held_out["labels"])
    figure.suptitle(f"Not recognized: {len(wrong)} of {len(guesses)} images", fontsize=10)
    for place, at in enumerate(wrong[:8]):
        axes = figure.add_subplot(grid[place // 4, 3 + place % 4])
        axes.axis("off")
        axes.imshow(held_out["images"][at], cmap="gray_r")
        axes.set_title(f"{held_out['labels'][at]} as {guesses[at]}", fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--directory", help="of checkpoints; none are saved without it")
    parser.add_argument("--picture", default="digits_conv.png")
    options = parser.parse_args()

    arrays, held_out = load()
    steps = options.epochs * -(-len(arrays["labels"]) // BATCH)
    state = begin(0, steps)
    if options.directory and dn.checkpoints.latest(options.directory) is not None:
        epoch, state = dn.checkpoints.load(options.directory, like=state)
        print(f"{options.directory} has epoch {epoch}, going on from there")
    state, losses = train(arrays, state, options.epochs, options.directory)
    guesses = guess(state["params"], held_out["images"]).to_numpy()
    accuracy = np.mean(guesses == held_out["labels"])
    print(f"accuracy on {len(guesses)} images that training did not see: {accuracy:.1%}")
    if losses:
        draw(pathlib.Path(options.picture), losses, held_out, guesses)


if __name__ == "__main__":
    main()
