"""Rows of the functions of neural networks."""

from __future__ import annotations

import numpy as np
from scipy import special

import defn as dn
from cases import Case, between, float_ulps, positive, small
from cases.dtypes import FLOATS, INTEGERS, REAL
from cases.elementwise import KEPT, binary, floating, transcendental, unary

KEY = np.array([0, 1], np.uint32)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848, 1.0507009873554804934


def activation(name, oracle, **options):
    """A function of each element. The rounding of a sum or a product shows where it is near 0."""
    defaults = {"dtypes": REAL, "module": "nn", "ulps": float_ulps(8), "scale": 1.0}
    return transcendental(name, oracle, **{**defaults, **options})


def exponential(x, alpha=1.0, width=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / width))


def approximate_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))


def hard_sigmoid(x):
    return np.clip(x + 3, 0, 6) / 6


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def standardize(x, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def affine(x, scale, bias, shape):
    return x * scale.reshape(shape) + bias.reshape(shape)


def rms_norm(x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def over(x, axes):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


def group_norm(x, scale, bias):
    grouped = over(x.reshape(2, 2, 2, 3), (2, 3)).reshape(x.shape)
    return affine(grouped, scale, bias, (1, 4, 1))


def one_hot(x):
    return x[..., None] == np.arange(3)


def loss(name, oracle, **options):
    """A function of each element of two operands."""
    defaults = {
        "dtypes": REAL,
        "module": "nn",
        "draw": small,
        "out": "float",
        "ulps": float_ulps(8),
        "scale": 1.0,
    }
    return binary(name, floating(oracle), **{**defaults, **options})


def rows(name, oracle, **options):
    """A function along the last axis."""
    defaults = {
        "dtypes": REAL,
        "module": "nn",
        "names": KEPT,
        "draw": small,
        "out": "float",
        "ulps": float_ulps(16),
        "scale": 1.0,
    }
    return Case(name, floating(oracle), **{**defaults, **options})


def attention(q, k, v):
    scores = np.einsum("qhd,kd->hqk", q, k[:, 0]) * q.shape[-1] ** -0.5
    scores = np.where(np.tri(2, 3, 1, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,kd->qhd", weights / weights.sum(-1, keepdims=True), v[:, 0])


def binary_cross_entropy(x, y):
    return y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x)


def huber(x, y):
    size = np.abs(x - y)
    return np.where(size <= 0.75, 0.5 * size * size, 0.75 * (size - 0.375))


def log_cosh(x, y):
    size = np.abs(x - y)
    far = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    return np.where(size < 1, np.log1p(2 * np.sinh(np.minimum(size, 1) / 2) ** 2), far)


def cosine(x, y):
    def unit(x):
        return x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-8)

    return (unit(x) * unit(y)).sum(-1)


def kl_divergence(x, y):
    with np.errstate(all="ignore"):
        return np.where(y == 0, 0, y * (np.log(y) - x)).sum(-1)


def of_probabilities(x, p):
    return -(p * np.log(softmax(x))).sum(-1)


def of_classes(x):
    return -np.log(softmax(x))[np.arange(2), [2, 0]]


CASES = [
    activation("relu", lambda x: np.maximum(x, 0), ulps=0),
    activation("relu6", lambda x: np.clip(x, 0, 6), ulps=0),
    activation("leaky_relu", lambda x: np.where(x >= 0, x, 0.01 * x)),
    activation(
        "leaky_relu",
        lambda x: np.where(x >= 0, x, 0.3 * x),
        call=lambda f, x: f(x, 0.3),
        label="0.3",
    ),
    activation("elu", exponential),
    activation("elu", lambda x: exponential(x, 0.7), call=lambda f, x: f(x, 0.7), label="0.7"),
    activation("selu", lambda x: SELU_SCALE * exponential(x, SELU_ALPHA)),
    activation("celu", exponential),
    activation(
        "celu", lambda x: exponential(x, 2.5, 2.5), call=lambda f, x: f(x, 2.5), label="2.5"
    ),
    activation("gelu", lambda x: x * special.ndtr(x)),
    activation("gelu", approximate_gelu, call=lambda f, x: f(x, True), label="approximate"),
    activation("silu", lambda x: x * special.expit(x)),
    activation("softplus", lambda x: np.logaddexp(x, 0)),
    activation("softsign", lambda x: x / (1 + np.abs(x))),
    activation("hard_tanh", lambda x: np.clip(x, -1, 1), ulps=0),
    activation("hard_sigmoid", hard_sigmoid),
    activation("hard_silu", lambda x: x * hard_sigmoid(x)),
    activation("log_sigmoid", special.log_expit),
    activation("mish", lambda x: x * np.tanh(np.logaddexp(x, 0))),
    activation(
        "glu",
        lambda x: x[..., :2] * special.expit(x[..., 2:]),
        shapes=((3, 4),),
        names=((("x", None),), ("x", None)),
    ),
    activation(
        "glu",
        lambda x: x[:1] * special.expit(x[1:]),
        call=lambda f, x: f(x, 0),
        shapes=((2, 3),),
        label="first-axis",
        names=((("x", None),), ("x", None)),
    ),
    rows("softmax", softmax),
    rows(
        "softmax",
        lambda x: softmax(x, (0, 1)),
        call=lambda f, x: f(x, axes=None),
        label="all-axes",
    ),
    rows(
        "softmax",
        lambda x: np.concatenate([softmax(x[:, :2]), 0 * x[:, :1]], -1),
        call=lambda f, x: f(x, where=dn.tensor([True, True, False])),
        label="masked",
    ),
    rows("log_softmax", lambda x: np.log(softmax(x))),
    rows("standardize", standardize, ulps=float_ulps(64)),
    unary(
        "one_hot",
        one_hot,
        call=lambda f, x: f(x, 3),
        dtypes=INTEGERS,
        module="nn",
        draw=between(-2, 4),
        out="f32",
        names=((("x", None),), ("x", None, None)),
        grad=None,
    ),
    rows(
        "embedding",
        lambda x: x[[1, 0, 1]],
        call=lambda f, x: f(x, dn.tensor([1, 0, 1], names=["y"])),
        ulps=0,
        names=((("x", "z"),), ("y", "z")),
    ),
    rows(
        "attention",
        attention,
        call=lambda f, q, k, v: f(q, k, v, causal=True),
        shapes=((2, 2, 3), (3, 1, 3), (3, 1, 2)),
        names=((("x", None, "y"), (None,) * 3, (None,) * 3), ("x", None, None)),
        ulps=float_ulps(64),
    ),
    rows("dropout", lambda x: x, call=lambda f, x: f(x, KEY, 0.0)[0], ulps=0),
    rows(
        "cross_entropy",
        of_classes,
        call=lambda f, x: f(x, dn.tensor([2, 0])),
        label="classes",
        names=((("x", None),), ("x",)),
    ),
    rows(
        "cross_entropy",
        of_probabilities,
        shapes=((2, 3),) * 2,
        draw=(small, between(0.0, 1.0)),
        dtypes=FLOATS,
        names=((("x", None), ("x", None)), ("x",)),
        label="probabilities",
    ),
    loss("binary_cross_entropy", binary_cross_entropy, label="finite"),
    loss("squared_error", lambda x, y: (x - y) ** 2),
    loss("absolute_error", lambda x, y: np.abs(x - y), ulps=1),
    loss("huber", huber, call=lambda f, x, y: f(x, y, 0.75)),
    loss("log_cosh", log_cosh),
    loss("hinge", lambda x, y: np.maximum(1 - x * y, 0)),
    loss(
        "cosine_similarity", cosine, names=((("x", None), ("x", None)), ("x",)), ulps=float_ulps(16)
    ),
    loss(
        "kl_divergence",
        kl_divergence,
        draw=(small, positive),
        names=((("x", None), ("x", None)), ("x",)),
        ulps=float_ulps(16),
    ),
    rows(
        "layer_norm",
        lambda x, s, b: affine(over(x, (-1,)), s, b, (1, 3)),
        call=lambda f, x, s, b: f(x, scale=s, bias=b),
        shapes=((2, 3), (3,), (3,)),
        names=((("x", None), (None,), (None,)), ("x", None)),
        ulps=float_ulps(64),
    ),
    rows(
        "layer_norm",
        lambda x, s: over(x, (0, 2)) * s.T[:, None],
        call=lambda f, x, s: f(x, [2, 0], scale=s),
        shapes=((2, 3, 4), (4, 2)),
        names=None,
        ulps=float_ulps(64),
        label="two-axes",
    ),
    rows(
        "layer_norm",
        lambda x, b: over(x, (-1,)) + b,
        call=lambda f, x, b: f(x, bias=b),
        shapes=((2, 3), (3,)),
        names=None,
        ulps=float_ulps(64),
        label="offset",
    ),
    rows(
        "rms_norm",
        rms_norm,
        call=lambda f, x, s: f(x, scale=s),
        shapes=((2, 3), (3,)),
        draw=(positive, small),
        names=((("x", None), (None,)), ("x", None)),
        ulps=float_ulps(32),
    ),
    rows(
        "group_norm",
        group_norm,
        call=lambda f, x, s, b: f(x, 2, scale=s, bias=b),
        shapes=((2, 4, 3), (4,), (4,)),
        names=((("x", None, "y"), (None,), (None,)), ("x", None, "y")),
        ulps=float_ulps(64),
    ),
    rows(
        "batch_norm",
        lambda x, s, b: affine(over(x, (0, 2)), s, b, (1, 3, 1)),
        call=lambda f, x, s, b: f(x, scale=s, bias=b)[0],
        shapes=((4, 3, 2), (3,), (3,)),
        names=((("x", None, "y"), (None,), (None,)), ("x", None, "y")),
        ulps=float_ulps(64),
    ),
    rows(
        "batch_norm",
        lambda x, m, v: (x - m) / np.sqrt(v + 1e-5),
        call=lambda f, x, m, v: f(x, axis=-1, mean=m, variance=v)[0],
        shapes=((4, 3), (3,), (3,)),
        draw=(small, small, positive),
        names=None,
        dtypes=("f32", "f64"),
        refusal=None,
        label="given-statistics",
    ),
]
