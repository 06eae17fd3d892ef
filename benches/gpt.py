"""GPT-2's training step, written twice: for defn and for JAX, with equal parameters and formulas.

The network is that of Radford et al., "Language models are unsupervised multitask learners", 2019:
124 million parameters in its smallest size. Parameters are f32; products, and what runs between
them, are bf16; normalizations, the scores' softmax and the loss are f32. The optimizer is Adam
(Kingma and Ba, 2015). Biases are left out of the products and of the normalizations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import defn as dn

RATE, FIRST, SECOND, TINY = 3e-4, 0.9, 0.95, 1e-8
HIDDEN = -1e9


@dataclass(frozen=True)
class Size:
    """The size of the network and of a batch."""

    layers: int
    heads: int
    width: int
    words: int
    length: int
    batch: int

    @property
    def tokens(self) -> int:
        """The tokens of a batch."""
        return self.batch * self.length

    @property
    def flops(self) -> float:
        """Operations of a step in products: 6 for each parameter and token, and attention's."""
        parameters = self.words * self.width + 12 * self.layers * self.width**2
        return self.tokens * (6.0 * parameters + 12.0 * self.layers * self.width * self.length)


# The smallest GPT-2; the vocabulary of 50,257 words is filled up to a multiple of 128.
GPT2 = Size(layers=12, heads=12, width=768, words=50304, length=1024, batch=8)
TINY_GPT = Size(layers=2, heads=2, width=64, words=256, length=32, batch=2)


def parameters(size: Size) -> dict[str, np.ndarray]:
    """Random parameters, as GPT-2 starts with."""
    rng = np.random.default_rng(4)
    scale, width = 0.02, size.width

    def normal(*shape: int, scale: float = scale) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    made = {"words": normal(size.words, width), "places": normal(size.length, width)}
    deep = scale / math.sqrt(2 * size.layers)
    for layer in range(size.layers):
        made |= {
            f"{layer}.norm_1": np.ones(width, np.float32),
            f"{layer}.attention": normal(width, 3 * width),
            f"{layer}.mix": normal(width, width, scale=deep),
            f"{layer}.norm_2": np.ones(width, np.float32),
            f"{layer}.up": normal(width, 4 * width),
            f"{layer}.down": normal(4 * width, width, scale=deep),
        }
    return made | {"norm": np.ones(width, np.float32)}


def batch(size: Size) -> dict[str, np.ndarray]:
    """Random words, and the words that follow them."""
    words = np.random.default_rng(5).integers(0, size.words, (size.batch, size.length + 1))
    words = words.astype(np.int32)
    return {"words": words[:, :-1].copy(), "next": words[:, 1:].copy()}


def arguments(size: Size) -> tuple[dict[str, np.ndarray], ...]:
    """Parameters, both moments, and a batch."""
    params = parameters(size)
    zeros = [{name: np.zeros_like(array) for name, array in params.items()} for _ in range(2)]
    return params, *zeros, batch(size)


def adam(value_and_grad: Callable[..., Any], root: Callable[..., Any], loss: Any) -> Any:
    """A step of Adam, without the correction of the first steps."""

    def step(params, first, second, batch):
        value, gradient = value_and_grad(lambda params: loss(params, batch))(params)
        first = {k: FIRST * first[k] + (1 - FIRST) * gradient[k] for k in params}
        second = {k: SECOND * second[k] + (1 - SECOND) * gradient[k] ** 2 for k in params}
        params = {k: params[k] - RATE * first[k] / (root(second[k]) + TINY) for k in params}
        return params, first, second, value

    return step


def our_attention(q, k, v):
    """Causal attention of `[batch, heads, length, size]`, with the softmax in f32."""
    length, size = q.shape[-2:]
    scores = dn.as_type(dn.dot(q, (3,), (0, 1), k, (3,), (0, 1)), "f32") * size**-0.5
    causal = dn.iota((length, length), axis=0) >= dn.iota((length, length), axis=1)
    scores = dn.select(dn.broadcast(causal, scores.shape), scores, HIDDEN)
    scores = dn.exp(scores - dn.stop_grad(dn.reduce_max(scores, axes=-1, keep_axes=True)))
    scores = scores / dn.sum(scores, axes=-1, keep_axes=True)
    return dn.dot(dn.as_type(scores, "bf16"), (3,), (0, 1), v, (2,), (0, 1))


def their_attention(q, k, v):
    """The same."""
    length, size = q.shape[-2:]
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype(jnp.float32) * size**-0.5
    causal = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
    scores = jnp.where(causal, scores, HIDDEN)
    scores = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True)))
    scores = scores / jnp.sum(scores, axis=-1, keepdims=True)
    return jnp.einsum("bhqk,bhkd->bhqd", scores.astype(jnp.bfloat16), v)


def our_norm(x, scale):
    """Rows of mean 0 and variance 1, scaled; in f32, then bf16."""
    x = dn.as_type(x, "f32")
    centered = x - dn.mean(x, axes=-1, keep_axes=True)
    variance = dn.mean(centered * centered, axes=-1, keep_axes=True)
    return dn.as_type(centered * dn.rsqrt(variance + 1e-5) * scale, "bf16")


def their_norm(x, scale):
    """The same."""
    x = x.astype(jnp.float32)
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
    return (centered * jax.lax.rsqrt(variance + 1e-5) * scale).astype(jnp.bfloat16)


def our_step(size: Size) -> Callable[..., Any]:
    """The training step in defn."""
    heads, part = size.heads, size.width // size.heads

    def loss(params, batch):
        weight = {name: dn.as_type(array, "bf16") for name, array in params.items()}
        x = dn.take(weight["words"], batch["words"], axis=0) + weight["places"]
        for layer in range(size.layers):
            y = our_norm(x, params[f"{layer}.norm_1"]) @ weight[f"{layer}.attention"]
            y = dn.reshape(y, (size.batch, size.length, 3, heads, part))
            q, k, v = (dn.transpose(y[:, :, at], axes=(0, 2, 1, 3)) for at in range(3))
            y = dn.transpose(our_attention(q, k, v), axes=(0, 2, 1, 3))
            x = x + dn.reshape(y, (size.batch, size.length, size.width)) @ weight[f"{layer}.mix"]
            y = our_norm(x, params[f"{layer}.norm_2"]) @ weight[f"{layer}.up"]
            y = 0.5 * y * (1.0 + dn.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
            x = x + y @ weight[f"{layer}.down"]
        x = our_norm(x, params["norm"])
        scores = dn.as_type(x @ dn.transpose(weight["words"]), "f32")
        right = dn.take_along_axis(scores, batch["next"][:, :, None], axis=-1)[:, :, 0]
        return dn.mean(dn.logsumexp(scores, axes=-1) - right)

    return adam(dn.value_and_grad, dn.sqrt, loss)


def their_step(size: Size) -> Callable[..., Any]:
    """The training step in JAX."""
    heads, part = size.heads, size.width // size.heads

    def loss(params, batch):
        weight = {name: array.astype(jnp.bfloat16) for name, array in params.items()}
        x = weight["words"][batch["words"]] + weight["places"]
        for layer in range(size.layers):
            y = their_norm(x, params[f"{layer}.norm_1"]) @ weight[f"{layer}.attention"]
            y = jnp.reshape(y, (size.batch, size.length, 3, heads, part))
            q, k, v = (jnp.transpose(y[:, :, at], (0, 2, 1, 3)) for at in range(3))
            y = jnp.transpose(their_attention(q, k, v), (0, 2, 1, 3))
            x = x + jnp.reshape(y, (size.batch, size.length, size.width)) @ weight[f"{layer}.mix"]
            y = their_norm(x, params[f"{layer}.norm_2"]) @ weight[f"{layer}.up"]
            y = 0.5 * y * (1.0 + jnp.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
            x = x + y @ weight[f"{layer}.down"]
        x = their_norm(x, params["norm"])
        scores = (x @ weight["words"].T).astype(jnp.float32)
        right = jnp.take_along_axis(scores, batch["next"][:, :, None], axis=-1)[:, :, 0]
        return jnp.mean(jax.nn.logsumexp(scores, axis=-1) - right)

    return adam(jax.value_and_grad, jnp.sqrt, loss)
