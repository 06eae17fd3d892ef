"""Rows of the functions of neural networks."""

from __future__ import annotations

import numpy as np
from scipy import special

from cases import float_ulps
from cases.dtypes import REAL
from cases.elementwise import transcendental

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
]
