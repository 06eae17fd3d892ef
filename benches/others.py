"""The workloads that NumPy, SciPy or numexpr can compute, by the workload's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numexpr
import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special
from workloads import SIZES

# The name of the library, and its function on NumPy arrays.
Other = tuple[str, Callable[..., Any]]


def numexpr_of(text: str) -> Other:
    """A numexpr formula in `x`, or in `x` and `y`."""
    return "numexpr", lambda x, y=None: numexpr.evaluate(text, {"x": x, "y": y})


def layer_norm(x):
    """Rows of mean 0 and variance 1."""
    centered = x - x.mean(1, keepdims=True)
    return centered / np.sqrt((centered * centered).mean(1, keepdims=True) + np.float32(1e-5))


def scattered(x, i, y):
    """Adds rows at positions that may repeat."""
    x = x.copy()
    np.add.at(x, i, y)
    return x


def max_pool(x):
    """The maximum of each 2 x 2 square."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


CHAIN = numexpr_of("tanh(2 * x + 1) * exp(-x * x) + sin(x)")
TWICE = numexpr_of("x * 2 + 1")
GELU = "0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))"
MATMUL: Other = ("NumPy", np.matmul)
SOFTMAX: Other = ("SciPy", lambda x: scipy.special.softmax(x, axis=1))

# Workloads that are timed in several sizes, by their names without the size.
SIZED: dict[str, Other] = {
    "a * 2 + 1": TWICE,
    "chain": CHAIN,
    "gelu": numexpr_of(GELU),
    "rows + bias": ("NumPy", np.add),
    "select": numexpr_of("where(x > y, x, y * 2)"),
    "sum": ("NumPy", np.sum),
    "sum of rows": ("NumPy", lambda x: x.sum(1)),
    "sum of columns": ("NumPy", lambda x: x.sum(0)),
    "argmax of rows": ("NumPy", lambda x: x.argmax(1)),
    "logsumexp of rows": ("SciPy", lambda x: scipy.special.logsumexp(x, axis=1)),
    "layer norm": ("NumPy", layer_norm),
    "softmax": SOFTMAX,
    "variance": ("NumPy", np.var),
}

OTHERS: dict[str, Other] = {
    **{f"{name}, {size}": other for name, other in SIZED.items() for size, _ in SIZES},
    "matmul 128": MATMUL,
    "matmul 256": MATMUL,
    "matmul 512": MATMUL,
    "matmul 1024": MATMUL,
    "matmul 2048": MATMUL,
    "matmul 512, f64": MATMUL,
    "64 matmuls of 64": MATMUL,
    "matrix x vector, 2048": MATMUL,
    "max pool 2 x 2": ("NumPy", max_pool),
    "take rows": ("NumPy", lambda x, i: np.take(x, i, 0)),
    "gather elements, 1 M": ("NumPy", lambda x, i: x[i[:, 0], i[:, 1]]),
    "scatter-add rows": ("NumPy", scattered),
    "sort, 256 K": ("NumPy", np.sort),
    "argsort, 256 K": ("NumPy", np.argsort),
    "cholesky 512": ("SciPy", lambda x: scipy.linalg.cholesky(x, lower=True)),
    "solve 512": ("SciPy", scipy.linalg.solve),
    "fft 64 x 1024": ("SciPy", lambda x: scipy.fft.fft(x, workers=-1)),
    "rfft, 1 M": ("SciPy", scipy.fft.rfft),
    "uniform, 4 M": ("NumPy", lambda s: np.random.default_rng(7).random(1 << 22, np.float32)),
    "normal, 4 M": (
        "NumPy",
        lambda s: np.random.default_rng(7).standard_normal(1 << 22, np.float32),
    ),
}
