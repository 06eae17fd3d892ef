"""A transformer that learns to write Python, character by character.

python examples/gpt.py [steps]

The parameters are a dict of dicts. ``train_step`` is one compiled program that includes the
gradient and AdamW. The text is the source of Python's ``textwrap``.
"""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from typing import Any

import numpy as np

import defn as dn

LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 2, 64, 4, 64, 16
Params = dict[str, Any]


def initial(vocabulary: int, seed: int = 0) -> Params:
    """Normal weights; those of the projections back into the residual stream are smaller."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 0.08) -> dn.Tensor:
        return dn.tensor(random.normal(0, scale, shape).astype(np.float32))

    def layer() -> Params:
        return {
            "norm_1": dn.broadcast(1.0, (WIDTH,)),
            "attend": normal(WIDTH, 3 * WIDTH),
            "merge": normal(WIDTH, WIDTH, scale=0.08 / math.sqrt(2 * LAYERS)),
            "norm_2": dn.broadcast(1.0, (WIDTH,)),
            "widen": normal(WIDTH, 4 * WIDTH),
            "narrow": normal(4 * WIDTH, WIDTH, scale=0.08 / math.sqrt(2 * LAYERS)),
        }

    return {
        "tokens": normal(vocabulary, WIDTH),
        "places": normal(CONTEXT, WIDTH),
        "layers": [layer() for _ in range(LAYERS)],
        "norm": dn.broadcast(1.0, (WIDTH,)),
    }


def normalized(x: dn.Tensor, weight: dn.Tensor) -> dn.Tensor:
    """Rows scaled to a root mean square of 1, times a weight."""
    return x * dn.rsqrt(dn.mean(x * x, -1, keep_axes=True) + 1e-5) * weight


def softmax(x: dn.Tensor) -> dn.Tensor:
    return dn.exp(x - dn.logsumexp(x, -1, keep_axes=True))


def attention(x: dn.Tensor, layer: Params) -> dn.Tensor:
    """Causal attention of each head."""
    batch, length, _ = x.shape
    parts = (x @ layer["attend"]).reshape(batch, length, 3, HEADS, WIDTH // HEADS)
    q, k, v = parts.transpose(2, 0, 3, 1, 4)
    scores = q @ k.mT / math.sqrt(WIDTH // HEADS)
    scores = dn.select(dn.tri(length, length), scores, -1e9)
    mixed = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
    return mixed @ layer["merge"]


def logits(params: Params, tokens: dn.Tensor) -> dn.Tensor:
    """The logits of the next character at each position of texts {batch, length}."""
    length = tokens.shape[1]
    x = params["tokens"][tokens] + params["places"][:length]
    for layer in params["layers"]:
        x = x + attention(normalized(x, layer["norm_1"]), layer)
        hidden = normalized(x, layer["norm_2"]) @ layer["widen"]
        x = x + (hidden * dn.sigmoid(1.702 * hidden)) @ layer["narrow"]
    return normalized(x, params["norm"]) @ params["tokens"].T


@dn.defn
def loss(params: Params, tokens: dn.Tensor) -> dn.Tensor:
    """The mean cross-entropy of the next characters of texts {batch, length + 1}."""
    scores, targets = logits(params, tokens[:, :-1]), tokens[:, 1:]
    scores = scores - dn.logsumexp(scores, -1, keep_axes=True)
    return -dn.mean(dn.take_along_axis(scores, targets[..., None], -1))


@dn.jit(donate=("params", "moments"))
def train_step(
    params: Params, moments: tuple[Params, Params], step: int, tokens: dn.Tensor, rate: float
) -> tuple[Params, tuple[Params, Params], dn.Tensor]:
    """One step of AdamW (Loshchilov and Hutter, 2019)."""
    value, gradient = dn.value_and_grad(loss)(params, tokens)
    first = dn.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    second = dn.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], gradient)

    def updated(p: dn.Tensor, m: dn.Tensor, v: dn.Tensor) -> dn.Tensor:
        change = m / (1 - 0.9**step) / (dn.sqrt(v / (1 - 0.99**step)) + 1e-8)
        return p - rate * (change + (0.01 * p if p.rank > 1 else 0.0))

    return dn.tree.map(updated, params, first, second), (first, second), value


@dn.defn
def written(params: Params, start: dn.Tensor, key: dn.Tensor, *, count: int) -> dn.Tensor:
    """The start and ``count`` more characters, sampled from the predictions."""
    text = dn.pad(start, 0, [(0, count, 0)])
    for at in dn.range(start.size, start.size + count):
        window = dn.slice_along_axis(text, dn.max(at - CONTEXT, 0), min(CONTEXT, text.size))
        scores = logits(params, window[None])[0][dn.min(at, CONTEXT) - 1]
        noise, key = dn.random.gumbel(key, shape=scores.shape)
        text = dn.put_slice(text, [at], dn.argmax(scores / 0.8 + noise)[None])
    return text


def main(steps: int = 300) -> None:
    source = inspect.getsource(textwrap)
    letters = sorted(set(source))
    numbers = np.array([letters.index(letter) for letter in source], np.int32)
    random = np.random.default_rng(1)

    params = initial(len(letters))
    moments = tuple(dn.tree.zeros_like(params) for _ in range(2))
    for step in range(1, steps + 1):
        starts = random.integers(0, len(numbers) - CONTEXT - 1, BATCH)
        tokens = dn.tensor(np.stack([numbers[at : at + CONTEXT + 1] for at in starts]))
        rate = 3e-3 * min(1.0, step / 20) * (1 - 0.9 * step / steps)
        params, moments, value = train_step(params, moments, step, tokens, rate)
        if step % max(steps // 5, 1) == 0:
            print(f"step {step:4}: loss {float(value):.3f}")
    prompt = dn.tensor([letters.index(letter) for letter in "    def "])
    text = written(params, prompt, dn.random.key(7), count=200)
    print("".join(letters[number] for number in text.to_list()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
