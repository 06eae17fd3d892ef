"""Rows of the functions of neural networks at which a plain number may stand beside a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import defn as dn
from cases.weak_numbers import FLOATS, REAL, Row, floating


def losses(
    name: str, operands: tuple[str, str], oracle: Callable[[Any, Any], Any], **options: Any
) -> list[Row]:
    """The two rows of a loss of single elements."""
    ours = getattr(dn.nn, name)
    common = {"out": floating, "dtypes": REAL, "beyond": "float", "ulps": 8, **options}
    return [
        Row(f"nn.{name}", operands[1], ours, oracle, **common),
        Row(
            f"nn.{name}",
            operands[0],
            lambda x, n: ours(n, x),
            lambda x, n: oracle(n, x),
            **common,
        ),
    ]


ERRORS = ("predictions", "targets")


def huber(a: Any, b: Any) -> Any:
    return special.huber(1.0, a - b)


def log_cosh(a: Any, b: Any) -> Any:
    size = np.abs(a - b)
    return size + np.log1p(np.exp(-2 * size)) - np.log(2)


CASES = [
    *losses("squared_error", ERRORS, lambda a, b: (a - b) * (a - b)),
    *losses("absolute_error", ERRORS, lambda a, b: np.abs(a - b)),
    *losses("huber", ERRORS, huber),
    *losses("log_cosh", ERRORS, log_cosh, ulps=64),
    *losses("hinge", ("scores", "labels"), lambda a, b: np.maximum(1 - a * b, 0)),
    *losses(
        "binary_cross_entropy",
        ("logits", "labels"),
        lambda x, y: y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x),
        dtypes=FLOATS,
        ulps=64,
    ),
]

EXCUSED = {
    "nn.attention": "queries meet keys along axes",
    "nn.softmax": "a mask does not meet the elements",
    "nn.log_softmax": "a mask does not meet the elements",
    "nn.embedding": "indices do not meet the rows",
    "nn.dropout": "a key does not meet the elements",
    "nn.dropout_split": "a key does not meet the elements",
    "nn.lstm_cell": "states and parameters have axes",
    "nn.gru_cell": "states and parameters have axes",
    "nn.conv": "kernels and offsets have axes",
    "nn.conv_transpose": "kernels and offsets have axes",
    "nn.cross_entropy": "classes and probabilities have axes",
    "nn.cosine_similarity": "vectors have an axis",
    "nn.kl_divergence": "probabilities have an axis",
    "nn.layer_norm": "means and variances are computed over axes",
    "nn.rms_norm": "means are computed over axes",
    "nn.group_norm": "means and variances are computed over axes",
    "nn.batch_norm": "means and variances are computed over axes",
}
