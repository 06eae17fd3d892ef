"""The training of ``examples/gpt.py`` beside the same in JAX, with equal parameters and batches.

./dev bench training [--steps N] [--dtype f32|bf16]

Both take steps in turns, in one process: JAX with ``jax.jit``, ``jax.nn`` and optax. Printed are
the times of a step, the ratios, and how far the losses are from each other. The first step
(tracing, compiling and running) is measured in processes of its own, in turns of two, the least of
six: the first process after a pause pays for memory that the machine has given away.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import defn as dn


def example() -> Any:
    """The module ``examples/gpt.py``."""
    path = pathlib.Path(__file__).parents[1] / "examples" / "gpt.py"
    spec = importlib.util.spec_from_file_location("gpt_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


gpt = example()
SIZE = gpt.SIZE
DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}


def layer_norm(x: Any, scale: Any) -> Any:
    """As flax has it: mean and variance in f32."""
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = wide.var(-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5) * scale).astype(x.dtype)


def logits(params: Any, tokens: Any) -> Any:
    """The network of the example."""
    batch, length = tokens.shape
    x = params["tokens"][tokens] + params["places"]
    for layer in params["layers"]:
        parts = layer_norm(x, layer["norm_1"]) @ layer["attend"]
        shape = (batch, length, SIZE.heads, SIZE.width // SIZE.heads)
        query, key, value = (part.reshape(shape) for part in jnp.split(parts, 3, -1))
        mixed = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        x = x + mixed.reshape(batch, length, SIZE.width) @ layer["merge"]
        x = x + jax.nn.gelu(layer_norm(x, layer["norm_2"]) @ layer["widen"]) @ layer["narrow"]
    return layer_norm(x, params["norm"]) @ params["tokens"].T


def optimizer(steps: int) -> optax.GradientTransformation:
    """The optimizer of the example."""
    rate = optax.warmup_cosine_decay_schedule(0.0, gpt.RATE, max(1, steps // 20), max(2, steps))

    def matrices(params: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf.ndim > 1, params)

    adamw = optax.adamw(rate, b2=0.95, weight_decay=gpt.DECAY, mask=matrices)
    return optax.chain(optax.clip_by_global_norm(gpt.LARGEST_NORM), adamw)


def training(steps: int, dtype: str) -> Callable[[Any, Any, Any], Any]:
    """The compiled step."""
    own = optimizer(steps)

    def loss(params: Any, tokens: Any) -> Any:
        params = jax.tree.map(lambda leaf: leaf.astype(DTYPES[dtype]), params)
        scores = logits(params, tokens[:, :-1]).astype(jnp.float32)
        errors = optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:])
        return errors.mean()

    def step(params: Any, state: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        updates, state = own.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return jax.jit(step, donate_argnums=(0, 1))


def text() -> np.ndarray:
    """The characters of the example, as numbers."""
    source = "".join(inspect.getsource(module) for module in (textwrap, argparse, inspect))
    letters = sorted(set(source))
    return np.array([letters.index(letter) for letter in source], np.int32)


def batches(characters: np.ndarray, steps: int) -> list[np.ndarray]:
    """The pieces of text of each step."""
    random = np.random.default_rng(3)
    places = np.arange(SIZE.context + 1)
    last = len(characters) - SIZE.context
    return [characters[random.integers(0, last, (SIZE.batch, 1)) + places] for _ in range(steps)]


class Ours:
    """The example's run."""

    def __init__(self, steps: int, dtype: str, characters: np.ndarray) -> None:
        self.state = gpt.begin(int(characters.max()) + 1, steps=steps)
        self.options = {"heads": SIZE.heads, "steps": steps, "dtype": dtype}

    def step(self, tokens: np.ndarray) -> float:
        self.state, value = gpt.train_step(self.state, tokens, **self.options)
        return float(value)


class Theirs:
    """The same run in JAX."""

    def __init__(self, steps: int, dtype: str, characters: np.ndarray) -> None:
        params = gpt.begin(int(characters.max()) + 1, steps=steps)["params"]
        arrays = jax.tree.map(np.array, params, is_leaf=lambda x: isinstance(x, dn.Tensor))
        self.params = jax.tree.map(jnp.asarray, arrays)
        self.state = optimizer(steps).init(self.params)
        self.compiled = training(steps, dtype)

    def step(self, tokens: np.ndarray) -> float:
        self.params, self.state, value = self.compiled(self.params, self.state, tokens)
        return float(value)


RUNS = {"ours": Ours, "theirs": Theirs}


def timed(run: Any, tokens: np.ndarray) -> tuple[float, float]:
    """The seconds of a step, and the loss."""
    begun = time.perf_counter()
    value = run.step(tokens)
    return time.perf_counter() - begun, value


def first_steps(dtype: str, rounds: int = 3) -> dict[str, float]:
    """The least seconds of the first step of a process."""
    least = dict.fromkeys(RUNS, float("inf"))
    for _ in range(rounds):
        for name in RUNS:
            command = [sys.executable, __file__, "--first", name, "--dtype", dtype]
            # A virtual machine gives free memory away: the second process gets that of the first.
            for _ in range(2):
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                least[name] = min(least[name], float(done.stdout))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="f32")
    parser.add_argument("--first", choices=tuple(RUNS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    characters = text()
    pieces = batches(characters, options.steps)
    if options.first is not None:
        run = RUNS[options.first](options.steps, options.dtype, characters)
        print(timed(run, pieces[0])[0])
        return
    print(f"{options.dtype}, {options.steps} steps of {SIZE}")
    first = first_steps(options.dtype)
    report("first step", first["ours"], first["theirs"])
    runs = {name: run(options.steps, options.dtype, characters) for name, run in RUNS.items()}
    measured = [{name: timed(run, tokens) for name, run in runs.items()} for tokens in pieces]
    times = {name: [row[name][0] for row in measured[1:]] for name in RUNS}
    report("step", min(times["ours"]), min(times["theirs"]))
    report("median step", float(np.median(times["ours"])), float(np.median(times["theirs"])))
    losses = np.array([[row[name][1] for name in RUNS] for row in measured])
    apart = abs(losses[:, 0] - losses[:, 1])
    print(f"losses: from {losses[0, 0]:.4f} to {losses[-1, 0]:.4f}, JAX to {losses[-1, 1]:.4f}")
    print(f"apart by at most {apart.max():.1e}, {(apart / losses[:, 1]).max():.3%} of the loss")


def report(what: str, ours: float, theirs: float) -> None:
    """Two times, and how much longer JAX takes."""
    print(f"{what}: {ours * 1e3:.1f} ms, JAX {theirs * 1e3:.1f} ms, {theirs / ours:.2f} times")


if __name__ == "__main__":
    main()
