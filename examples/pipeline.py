"""A pipeline of a transformer with eight blocks: four stages of one graph, several batches at once.

python examples/pipeline.py [sequential | threads | ray]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import defn as dn

WORDS, LENGTH, WIDTH, HEADS, BLOCKS = 50, 12, 32, 4, 8


def weights(seed=0, width=WIDTH, blocks=BLOCKS):
    """The weights, as NumPy arrays."""
    rng = np.random.default_rng(seed)

    def matrix(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype("f4")

    block = {"qkv": (width, 3 * width), "out": (width, width)}
    block |= {"up": (width, 4 * width), "down": (4 * width, width)}
    return {
        "words": matrix(WORDS, width),
        "places": matrix(LENGTH, width),
        "blocks": [{name: matrix(*shape) for name, shape in block.items()} for _ in range(blocks)],
    }


def normal(x):
    """Each vector, normalized to mean 0 and variance 1."""
    centred = x - dn.mean(x, axes=[-1], keep_axes=True)
    return centred * dn.rsqrt(dn.mean(centred * centred, axes=[-1], keep_axes=True) + 1e-5)


def attention(x, block):
    """Causal attention over the positions {b, n, d}."""
    batch, length, width = x.shape
    qkv = dn.dot(normal(x), block["qkv"]).reshape(batch, length, 3, HEADS, width // HEADS)
    # The head axis first: three tensors {b, h, n, d}.
    q, k, v = (qkv[:, :, part].transpose(axes=[0, 2, 1, 3]) for part in range(3))
    scores = q @ k.mT / (width // HEADS) ** 0.5
    # Masks later positions.
    scores = scores - 1e9 * (dn.iota(scores.shape, axis=3) > dn.iota(scores.shape, axis=2))
    scores = dn.exp(scores - dn.reduce_max(scores, axes=[-1], keep_axes=True))
    scores = scores / dn.sum(scores, axes=[-1], keep_axes=True)
    gathered = (scores @ v).transpose(axes=[0, 2, 1, 3]).reshape(batch, length, width)
    return x + dn.dot(gathered, block["out"])


def expansion(x, block):
    """The feed-forward layer, of four times the width."""
    wide = dn.dot(normal(x), block["up"])
    return x + dn.dot(wide * dn.sigmoid(1.702 * wide), block["down"])


def transformer(known):
    """The function from words {b, n} to the logits of the next words {b, n, words}."""
    # Captured tensors belong to the stages that use them: they are not sent with each batch.
    known = {
        "words": dn.tensor(known["words"]),
        "places": dn.tensor(known["places"]),
        "blocks": [{k: dn.tensor(v) for k, v in block.items()} for block in known["blocks"]],
    }

    def forward(words):
        x = dn.take(known["words"], words) + known["places"]
        for block in known["blocks"]:
            x = expansion(attention(x, block), block)
        return dn.dot(normal(x), [2], known["words"], [1])

    return forward


def numpy_transformer(known, words):
    """The same in NumPy."""

    def normal(x):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    x = known["words"][words] + known["places"]
    batch, length, width = x.shape
    for block in known["blocks"]:
        qkv = (normal(x) @ block["qkv"]).reshape(batch, length, 3, HEADS, width // HEADS)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) / (width // HEADS) ** 0.5
        scores = scores - 1e9 * np.triu(np.ones((length, length), "f4"), 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + (scores @ v).swapaxes(1, 2).reshape(batch, length, width) @ block["out"]
        wide = normal(x) @ block["up"]
        x = x + wide / (1 + np.exp(-1.702 * wide)) @ block["down"]
    return normal(x) @ known["words"].T


def batches(count, size=2, seed=1):
    """Batches of random words."""
    rng = np.random.default_rng(seed)
    return [dn.tensor(rng.integers(0, WORDS, (size, LENGTH)).astype("i4")) for _ in range(count)]


def pipeline(forward, batch, stages=4):
    """The stages of the graph, with balanced work."""
    return dn.graph.split(dn.debug_expr(forward)(batch), dn.graph.balanced(stages))


ENGINES = {
    "sequential": lambda: dn.engines.Sequential(),
    "threads": lambda: dn.engines.Threads(),
    "ray": lambda: dn.engines.Ray(),
}


def main(name="sequential"):
    """Split the transformer, run batches through it, and print the most likely next words."""
    given = batches(8)
    stages = pipeline(transformer(weights()), given[0])
    for stage in stages:
        work = dn.graph.cost(stage).work / 1e6
        print(
            f"stage {stage.position}: {work:.2f} million operations, {len(stage.captures)} weights"
        )
    engine: Any = ENGINES[name]()
    start = time.perf_counter()
    for number, logits in enumerate(dn.graph.run_each(stages, [[b] for b in given], engine=engine)):
        print(f"batch {number}: {dn.argmax(logits[:, -1], axis=-1).to_list()} follow")
    print(f"{len(given)} batches in {time.perf_counter() - start:.2f} s")
    if name == "ray":
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
