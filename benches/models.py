"""Models to train, written twice: for defn and for JAX, with equal parameters and equal steps.

Each is a training step by gradient descent with momentum, `step(params, momentum, batch)`. It
returns the next parameters, the next momentum and the loss. Both libraries use the same names and
the same formulas.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import defn as dn

RATE, DECAY = 0.05, 0.9
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Model:
    """A training step in both libraries, with its initial parameters and a batch."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    params: Arrays
    batch: Arrays

    def arguments(self, convert: Callable[[np.ndarray], Any]) -> tuple[Any, Any, Any]:
        """Parameters, momentum and batch, with each array converted."""
        momentum = {name: np.zeros_like(array) for name, array in self.params.items()}
        return tuple(
            {name: convert(array) for name, array in arrays.items()}
            for arrays in (self.params, momentum, self.batch)
        )


def descent(value_and_grad: Callable[..., Any], loss: Callable[..., Any]) -> Callable[..., Any]:
    """A step of gradient descent with momentum on a loss of parameters and a batch."""

    def step(params, momentum, batch):
        value, gradient = value_and_grad(lambda params: loss(params, batch))(params)
        momentum = {name: DECAY * momentum[name] + gradient[name] for name in params}
        params = {name: params[name] - RATE * momentum[name] for name in params}
        return params, momentum, value

    return step


def weights(rng: np.random.Generator, **shapes: tuple[int, ...]) -> Arrays:
    """Random weights, scaled to keep the variance of activations; vectors start at zero."""
    made = {}
    for name, shape in shapes.items():
        inputs = math.prod(shape[1:]) if len(shape) == 4 else shape[0]
        scale = 0.0 if len(shape) == 1 else inputs**-0.5
        made[name] = (scale * rng.standard_normal(shape)).astype(np.float32)
    return made


def our_cross_entropy(scores, labels):
    """The mean of the labels' negative log-probabilities."""
    one_hot = labels[:, None] == dn.iota((10,))
    return dn.mean(dn.logsumexp(scores, axes=1) - dn.sum(scores * one_hot, axes=1))


def their_cross_entropy(scores, labels):
    """The same."""
    one_hot = labels[:, None] == jnp.arange(10)
    return jnp.mean(jax.nn.logsumexp(scores, axis=1) - jnp.sum(scores * one_hot, axis=1))


# A multilayer perceptron for images of 8 x 8.


def our_digits(params, batch):
    """The loss of a network with one hidden layer."""
    hidden = dn.max(batch["images"] @ params["hidden"] + params["hidden_bias"], 0.0)
    scores = hidden @ params["output"] + params["output_bias"]
    return our_cross_entropy(scores, batch["labels"])


def their_digits(params, batch):
    """The same."""
    hidden = jnp.maximum(batch["images"] @ params["hidden"] + params["hidden_bias"], 0.0)
    scores = hidden @ params["output"] + params["output_bias"]
    return their_cross_entropy(scores, batch["labels"])


def digits(batch: int = 32, hidden: int = 256) -> Model:
    """The training step of `examples/digits.py`, with another optimizer."""
    rng = np.random.default_rng(1)
    return Model(
        "digits",
        descent(dn.value_and_grad, our_digits),
        descent(jax.value_and_grad, their_digits),
        weights(
            rng,
            hidden=(64, hidden),
            hidden_bias=(hidden,),
            output=(hidden, 10),
            output_bias=(10,),
        ),
        {
            "images": rng.random((batch, 64), dtype=np.float32),
            "labels": rng.integers(0, 10, batch).astype(np.int32),
        },
    )


# A convolutional net for images of 28 x 28: two convolutions with pooling, then a dense layer.


def our_convolutions(params, batch):
    """The loss of the network."""
    x = batch["images"]
    for name in ("first", "second"):
        x = dn.conv(x, params[name], padding="same") + params[f"{name}_bias"][:, None, None]
        x = dn.window_max(dn.max(x, 0.0), (1, 1, 2, 2), strides=(1, 1, 2, 2))
    x = dn.reshape(x, (x.shape[0], -1))
    return our_cross_entropy(x @ params["dense"] + params["dense_bias"], batch["labels"])


def their_convolutions(params, batch):
    """The same."""
    x = batch["images"]
    for name in ("first", "second"):
        x = jax.lax.conv_general_dilated(x, params[name], (1, 1), "SAME")
        x = jnp.maximum(x + params[f"{name}_bias"][:, None, None], 0.0)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = jnp.reshape(x, (x.shape[0], -1))
    return their_cross_entropy(x @ params["dense"] + params["dense_bias"], batch["labels"])


def convolutions(batch: int = 32, channels: int = 16) -> Model:
    """A small network similar to LeNet."""
    rng = np.random.default_rng(2)
    wide = 2 * channels
    return Model(
        "convolutions",
        descent(dn.value_and_grad, our_convolutions),
        descent(jax.value_and_grad, their_convolutions),
        weights(
            rng,
            first=(channels, 1, 3, 3),
            first_bias=(channels,),
            second=(wide, channels, 3, 3),
            second_bias=(wide,),
            dense=(wide * 49, 10),
            dense_bias=(10,),
        ),
        {
            "images": rng.random((batch, 1, 28, 28), dtype=np.float32),
            "labels": rng.integers(0, 10, batch).astype(np.int32),
        },
    )


# A transformer block: attention and a dense part, each after a normalization (Vaswani et al.,
# "Attention is all you need", 2017; the order is that of Xiong et al., "On layer normalization in
# the transformer architecture", 2020).


def our_normalization(x, scale, shift):
    """Mean 0 and variance 1 along the last axis, then scaled and shifted."""
    centered = x - dn.mean(x, axes=-1, keep_axes=True)
    variance = dn.mean(centered * centered, axes=-1, keep_axes=True)
    return centered * dn.rsqrt(variance + 1e-5) * (1.0 + scale) + shift


def their_normalization(x, scale, shift):
    """The same."""
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + 1e-5) * (1.0 + scale) + shift


def our_transformer(params, batch, heads=4):
    """The mean squared error of the block's output against a target."""
    x = batch["x"]
    rows, length, width = x.shape
    size = width // heads
    y = our_normalization(x, params["scale_1"], params["shift_1"])
    q, k, v = (
        dn.transpose(dn.reshape(y @ params[name], (rows, length, heads, size)), axes=(0, 2, 1, 3))
        for name in ("query", "key", "value")
    )
    scores = dn.dot(q, (3,), (0, 1), k, (3,), (0, 1)) * size**-0.5
    causal = dn.iota((length, length), axis=0) >= dn.iota((length, length), axis=1)
    scores = dn.select(dn.broadcast(causal, scores.shape), scores, -1e9)
    scores = dn.exp(scores - dn.stop_grad(dn.reduce_max(scores, axes=-1, keep_axes=True)))
    scores = scores / dn.sum(scores, axes=-1, keep_axes=True)
    mixed = dn.dot(scores, (3,), (0, 1), v, (2,), (0, 1))
    mixed = dn.reshape(dn.transpose(mixed, axes=(0, 2, 1, 3)), (rows, length, width))
    x = x + mixed @ params["mix"]
    y = our_normalization(x, params["scale_2"], params["shift_2"])
    y = y @ params["up"] + params["up_bias"]
    y = 0.5 * y * (1.0 + dn.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
    x = x + y @ params["down"] + params["down_bias"]
    return dn.mean((x - batch["target"]) ** 2)


def their_transformer(params, batch, heads=4):
    """The same."""
    x = batch["x"]
    rows, length, width = x.shape
    size = width // heads
    y = their_normalization(x, params["scale_1"], params["shift_1"])
    q, k, v = (
        jnp.transpose(jnp.reshape(y @ params[name], (rows, length, heads, size)), (0, 2, 1, 3))
        for name in ("query", "key", "value")
    )
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * size**-0.5
    causal = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
    scores = jnp.where(causal, scores, -1e9)
    scores = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True)))
    scores = scores / jnp.sum(scores, axis=-1, keepdims=True)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", scores, v)
    mixed = jnp.reshape(jnp.transpose(mixed, (0, 2, 1, 3)), (rows, length, width))
    x = x + mixed @ params["mix"]
    y = their_normalization(x, params["scale_2"], params["shift_2"])
    y = y @ params["up"] + params["up_bias"]
    y = 0.5 * y * (1.0 + jnp.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))
    x = x + y @ params["down"] + params["down_bias"]
    return jnp.mean((x - batch["target"]) ** 2)


def transformer(batch: int = 4, length: int = 64, width: int = 128) -> Model:
    """One block with four heads, causal."""
    rng = np.random.default_rng(3)
    square, vector = (width, width), (width,)
    return Model(
        "transformer",
        descent(dn.value_and_grad, our_transformer),
        descent(jax.value_and_grad, their_transformer),
        weights(
            rng,
            query=square,
            key=square,
            value=square,
            mix=square,
            scale_1=vector,
            shift_1=vector,
            scale_2=vector,
            shift_2=vector,
            up=(width, 4 * width),
            up_bias=(4 * width,),
            down=(4 * width, width),
            down_bias=vector,
        ),
        {
            "x": rng.standard_normal((batch, length, width)).astype(np.float32),
            "target": rng.standard_normal((batch, length, width)).astype(np.float32),
        },
    )


MODELS: tuple[Callable[[], Model], ...] = (digits, convolutions, transformer)
