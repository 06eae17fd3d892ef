"""A transformer that learns to write Python, character by character.

python examples/gpt.py [--steps N] [--dtype bf16] [--directory RUN]

The network is that of Radford et al., "Language models are unsupervised multitask learners" (2019),
at a small size. The text is the source of modules of Python's library. A run saves its state in a
directory, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import inspect
import math
import textwrap
from typing import Any, NamedTuple

import numpy as np

import defn as dn

Container = dict[str, Any]


class Size(NamedTuple):
    """The size of the network and of a batch."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 128
    batch: int = 16


SIZE = Size()
STEPS, RATE, DECAY, LARGEST_NORM = 2000, 1e-3, 0.1, 1.0


def initial(vocabulary: int, key: dn.Tensor, size: Size = SIZE) -> Container:
    """Normal weights; those of the projections back into the residual stream are smaller."""
    width, deep = size.width, 0.02 / math.sqrt(2 * size.layers)

    def normal(*shape: int, scale: float = 0.02) -> dn.Tensor:
        nonlocal key
        drawn, key = dn.random.normal(key, 0.0, scale, shape=shape)
        return drawn

    def layer() -> Container:
        return {
            "norm_1": dn.broadcast(1.0, (width,)),
            "attend": normal(width, 3 * width),
            "merge": normal(width, width, scale=deep),
            "norm_2": dn.broadcast(1.0, (width,)),
            "widen": normal(width, 4 * width),
            "narrow": normal(4 * width, width, scale=deep),
        }

    return {
        "tokens": normal(vocabulary, width),
        "places": normal(size.context, width),
        "layers": [layer() for _ in range(size.layers)],
        "norm": dn.broadcast(1.0, (width,)),
    }


def logits(
    params: Container, tokens: Any, cache: Any = None, place: Any = 0, *, heads: int
) -> tuple[dn.Tensor, Any]:
    """The logits of the next character at each position of texts ``{batch, length}``.

    With a cache of keys and values, the texts begin at ``place``, and the cache is returned with
    their keys and values in it.
    """
    batch, length = tokens.shape
    width = params["tokens"].shape[1]
    places = dn.slice_along_axis(params["places"], place, length)
    x = dn.nn.embedding(params["tokens"], tokens) + places
    for number, layer in enumerate(params["layers"]):
        parts = dn.nn.layer_norm(x, scale=layer["norm_1"]) @ layer["attend"]
        parts = parts.reshape(batch, length, 3, heads, width // heads)
        query, key, value = parts.transpose(2, 0, 1, 3, 4)
        if cache is None:
            mixed = dn.nn.attention(query, key, value, causal=True)
        else:
            start = (0, place, 0, 0)
            keys, values = (
                dn.put_slice(old, start, new)
                for old, new in zip(cache[number], (key, value), strict=True)
            )
            cache = [*cache[:number], (keys, values), *cache[number + 1 :]]
            seen = dn.iota(keys.shape[1]) <= place + dn.iota(length)[:, None]
            mixed = dn.nn.attention(query, keys, values, mask=seen)
        x = x + mixed.reshape(batch, length, width) @ layer["merge"]
        hidden = dn.nn.layer_norm(x, scale=layer["norm_2"]) @ layer["widen"]
        x = x + dn.nn.gelu(hidden, approximate=True) @ layer["narrow"]
    return dn.nn.layer_norm(x, scale=params["norm"]) @ params["tokens"].T, cache


def loss(params: Container, tokens: dn.Tensor, *, heads: int, dtype: str = "f32") -> dn.Tensor:
    """The mean cross-entropy of the next characters of texts ``{batch, length + 1}``."""
    scores, _ = logits(dn.tree.cast(params, dtype), tokens[:, :-1], heads=heads)
    return dn.mean(dn.nn.cross_entropy(scores.as_type("f32"), tokens[:, 1:]))


def optimizer(steps: int = STEPS) -> dn.optim.GradientTransformation:
    """AdamW with a warmup, a cosine decay, and gradients of bounded norm."""
    rate = dn.optim.warmup_cosine_decay_schedule(0.0, RATE, max(1, steps // 20), max(2, steps))

    def matrices(params: Container) -> Container:
        return dn.tree.map(lambda leaf: leaf.rank > 1, params)

    adamw = dn.optim.adamw(rate, b2=0.95, weight_decay=DECAY, mask=matrices)
    return dn.optim.chain(dn.optim.clip_by_global_norm(LARGEST_NORM), adamw)


@dn.jit(donate=("state",))
def train_step(
    state: Container, tokens: dn.Tensor, *, heads: int, steps: int = STEPS, dtype: str = "f32"
) -> tuple[Container, dn.Tensor]:
    """The state after one more batch, and the loss before it."""
    gradient = dn.value_and_grad(lambda params: loss(params, tokens, heads=heads, dtype=dtype))
    value, gradients = gradient(state["params"])
    updates, own = optimizer(steps).update(gradients, state["optimizer"], state["params"])
    params = dn.optim.apply_updates(state["params"], updates)
    return {**state, "params": params, "optimizer": own}, value


@dn.defn
def draw(text: dn.Tensor, key: dn.Tensor, *, size: Size = SIZE) -> tuple[dn.Tensor, dn.Tensor]:
    """Pieces ``{batch, context + 1}`` of the text at random places, and the next key."""
    starts, key = dn.random.randint(key, 0, text.size - size.context, shape=(size.batch, 1))
    return text[starts + dn.iota(size.context + 1)], key


def begin(vocabulary: int, seed: int = 0, size: Size = SIZE, steps: int = STEPS) -> Container:
    """The state of a run before its first step: all that it depends on."""
    first, second = dn.random.split(dn.random.key(seed), 2)
    params = initial(vocabulary, first, size)
    return {"params": params, "optimizer": optimizer(steps).init(params), "key": second}


@dn.defn
def written(
    params: Container,
    prompt: dn.Tensor,
    key: dn.Tensor,
    *,
    count: int,
    heads: int,
    temperature: float = 0.8,
) -> dn.Tensor:
    """The prompt and ``count`` more characters, sampled one by one with a cache of keys and values.

    Both together have at most as many characters as the context.
    """
    width, context = params["tokens"].shape[1], params["places"].shape[0]
    empty = dn.broadcast(0.0, (1, context, heads, width // heads))
    cache = [(empty, empty) for _ in params["layers"]]
    text = dn.pad(prompt, 0, [(0, count, 0)])
    for at in dn.range(text.size - 1):
        scores, cache = logits(params, text[at][None, None], cache, at, heads=heads)
        noise, key = dn.random.gumbel(key, shape=scores.shape[-1:])
        drawn = dn.argmax(scores[0, 0] / temperature + noise).as_type(text.dtype)
        letter = dn.select(at + 1 < prompt.size, text[at + 1], drawn)
        text = dn.put_slice(text, [at + 1], letter[None])
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="of products")
    parser.add_argument("--directory", default="gpt", help="of the run's checkpoints")
    options = parser.parse_args()

    source = "".join(inspect.getsource(module) for module in (textwrap, argparse, inspect))
    letters = sorted(set(source))
    text = dn.tensor(np.array([letters.index(letter) for letter in source], np.int32))

    state, done = begin(len(letters), steps=options.steps), 0
    if dn.checkpoints.latest(options.directory) is not None:
        done, state = dn.checkpoints.load(options.directory, like=state)
        print(f"{options.directory} has step {done}, going on from there")
    for step in range(done + 1, options.steps + 1):
        tokens, state["key"] = draw(text, state["key"])
        state, value = train_step(
            state, tokens, heads=SIZE.heads, steps=options.steps, dtype=options.dtype
        )
        if step % 100 == 0 or step == options.steps:
            print(f"step {step:5}: loss {float(value):.3f}", flush=True)
            dn.checkpoints.save(options.directory, step, state)
    prompt = dn.tensor([letters.index(letter) for letter in "    def "])
    sample = written(state["params"], prompt, dn.random.key(7), count=100, heads=SIZE.heads)
    print("".join(letters[number] for number in sample.to_list()))


if __name__ == "__main__":
    main()
