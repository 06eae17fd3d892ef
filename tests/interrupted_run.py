"""A training run that is killed again and again: the script of ``test_checkpoints.py``.

This process imports the package and computes nothing, so it has one thread. Each run is a fork of
it, which trains from the last checkpoint on and saves after each step. Half of them are killed at a
random moment, the others before a random call of the operating system in a save.

Usage: ``interrupted_run.py DIRECTORY KILLS SEED``. It prints a JSON object: the number of kills, by
kind, and whether each run that came to its end gave the same bits as one without kills.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from typing import Any, NamedTuple

import numpy as np

import defn as dn
from interruptions import interposed

STEPS, ROWS, FEATURES, BATCH = 40, 90, 6, 8


class Adam(NamedTuple):
    """Kingma & Ba, "Adam: A Method for Stochastic Optimization" (2015)."""

    count: Any
    mean: Any
    square: Any


def start() -> dict[str, Any]:
    """The state before the first step."""
    rng = np.random.default_rng(1)
    params = {
        "hidden": {"w": dn.tensor(rng.normal(size=(FEATURES, 5)), dtype="f32"), "b": dn.f32(0.0)},
        "out": dn.tensor(rng.normal(size=(5,)), dtype="bf16"),
    }
    zeros = dn.tree.zeros_like(params)
    optimizer = Adam(dn.tensor(0), zeros, zeros)
    state = {"params": params, "optimizer": optimizer, "key": dn.random.key(3)}
    return state | {"position": dn.data.Position(0, 0), "loss": 0.0, "name": "run"}


def loss(params: Any, x: Any, y: Any) -> Any:
    hidden = dn.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return dn.mean((hidden @ params["out"] - y) ** 2)


@dn.defn
def update(params: Any, optimizer: Adam, x: Any, y: Any) -> Any:
    """A step of Adam."""
    value, gradient = dn.value_and_grad(loss)(params, x, y)
    count = optimizer.count + 1
    mean = dn.tree.map(lambda m, g: 0.9 * m + 0.1 * g, optimizer.mean, gradient)
    square = dn.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, optimizer.square, gradient)
    scale = 0.05 / (1 - 0.9 ** dn.as_type(count, "f32"))
    params = dn.tree.map(
        lambda p, m, s: p - dn.as_type(scale * m / (dn.sqrt(s) + 1e-6), p.dtype),
        *(params, mean, square),
    )
    return params, Adam(count, mean, square), value


def train(directory: str) -> None:
    """Go on from the last checkpoint to the end."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = np.sin(x.sum(1))
    step, state = 0, start()
    if dn.checkpoints.latest(directory) is not None:
        step, state = dn.checkpoints.load(directory, like=state)
    key, start_at = dn.random.key(4), state["position"]
    batches = dn.data.batches((x, y), BATCH, key=key, epochs=None, start=start_at)
    with dn.data.prefetch(batches) as ahead:
        while step < STEPS:
            x_batch, y_batch = next(ahead)
            noise, state["key"] = dn.random.normal(state["key"], shape=x_batch.shape)
            state["params"], state["optimizer"], value = update(
                state["params"], state["optimizer"], x_batch + 0.1 * noise, y_batch
            )
            state["loss"] = 0.9 * state["loss"] + 0.1 * value.item()
            # That of the batches ahead, which are made again after a kill, is further on.
            state["position"] = ahead.position
            step += 1
            dn.checkpoints.save(directory, step, state, keep=2)


def child(directory: str, stop: int | None = None, ready: int | None = None) -> None:
    """Train in a fork of this process, which ends with it."""
    try:
        if ready is not None:
            os.write(ready, b".")
        with interposed(-1 if stop is None else stop, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            train(directory)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def forked(directory: str, stop: int | None = None, delay: float | None = None) -> int:
    """The exit code of a run: 0 at its end, negative where it was killed."""
    ends = os.pipe()
    process = os.fork()
    if process == 0:
        child(directory, stop, ends[1])
    os.close(ends[1])
    os.read(ends[0], 1)
    os.close(ends[0])
    if delay is not None:
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code


def result(directory: str) -> bytes:
    """The bytes of the last checkpoint."""
    with open(os.path.join(directory, f"step_{STEPS:010d}.defn"), "rb") as file:
        return file.read()


def main(root: str, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    plain = os.path.join(root, "plain")
    assert forked(plain) == 0
    started = time.monotonic()
    assert forked(os.path.join(root, "timed")) == 0
    took = time.monotonic() - started
    counts = {"at a call": 0, "at a moment": 0}
    same: list[bool] = []
    leftovers = 0
    while sum(counts.values()) < kills or len(same) < 1:
        directory = os.path.join(root, f"run{len(same)}")
        code = -1
        while code != 0:
            is_enough = sum(counts.values()) >= kills
            at_call = rng.random() < 0.5
            if is_enough:
                code = forked(directory)
            elif at_call:
                code = forked(directory, stop=rng.randrange(60))
            else:
                code = forked(directory, delay=rng.uniform(0, took / 4))
            if code:
                counts["at a call" if at_call else "at a moment"] += 1
            names = os.listdir(directory) if os.path.isdir(directory) else []
            leftovers += any(name.endswith(".tmp") for name in names)
        assert not any(name.endswith(".tmp") for name in os.listdir(directory))
        same.append(result(directory) == result(plain))
    print(json.dumps({"kills": counts, "same": same, "leftovers": leftovers}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
