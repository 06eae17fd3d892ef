"""The cost of tracing: the graph of a function of about two thousand operations, beside JAX's.

Both libraries trace the same function in one process, in turns, and the least time of each
counts. Each traced function also runs once, and the results are compared.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import defn as dn

ROUNDS = 40
LAYERS = 100
# Budgets: microseconds per operation, and the least speedup over JAX.
LIMIT, RATIO = 2.0, 5.0


def function(lib, x, w, b, relu, total):
    """Layers of mixed operations: element-wise, products, reductions, shapes and comparisons."""
    for _ in range(LAYERS):
        h = lib.tanh(lib.dot(x, w) + b)
        g = lib.exp(-h) / (1.0 + lib.exp(-h * h))
        h = relu(h > 0.1, h, g * 0.5)
        scale = total(h * h)
        h = h / lib.sqrt(scale * 0.25 + 1.0)
        h = lib.transpose(lib.reshape(h, (8, 4)))
        x = lib.reshape(h, (4, 8)) - x * 0.125
    return total(x)


def ours(x, w, b):
    """The function with defn's operations."""
    return function(dn, x, w, b, dn.select, lambda t: dn.sum(t, axes=1, keep_axes=True))


def theirs(x, w, b):
    """The function with JAX's operations."""
    return function(jnp, x, w, b, jnp.where, lambda t: jnp.sum(t, axis=1, keepdims=True))


def lean(x, w, b):
    """The function with JAX's primitives where a ``jnp`` function would trace further functions."""
    lax = jax.lax

    def total(t):
        return lax.expand_dims(lax.reduce_sum(t, (1,)), (1,))

    for _ in range(LAYERS):
        h = lax.tanh(lax.dot(x, w) + b)
        g = lax.exp(-h) / (1.0 + lax.exp(-h * h))
        h = lax.select(h > 0.1, h, g * 0.5)
        h = h / lax.sqrt(total(h * h) * 0.25 + 1.0)
        h = lax.transpose(lax.reshape(h, (8, 4)), (1, 0))
        x = lax.reshape(h, (4, 8)) - x * 0.125
    return total(x)


def equations(jaxpr) -> int:
    """The number of equations of a jaxpr, including those of the functions that it calls."""
    inner = [value for eqn in jaxpr.eqns for value in eqn.params.values()]
    nested = [value.jaxpr for value in inner if hasattr(value, "jaxpr")]
    return len(jaxpr.eqns) + sum(map(equations, nested))


def main() -> int:
    """Prints the table; the status says whether the budgets hold."""
    arrays = [
        np.random.default_rng(7).normal(size=size).astype(np.float32)
        for size in ((4, 8), (8, 8), (8,))
    ]
    a, j = [dn.tensor(array) for array in arrays], [jnp.asarray(array) for array in arrays]
    traced = dn.debug_expr(ours)
    graph = repr(traced(*a))
    count = len(re.findall(r"(?m)^  \w+ = ", graph))

    def fresh(fun):
        """Traces a new function each time, because JAX caches the trace of a function."""
        return jax.make_jaxpr(lambda *args: fun(*args))(*j)

    makers: dict[str, tuple[Callable[[], object], int]] = {
        "defn": (lambda: traced(*a), count),
        "jax.make_jaxpr, jnp": (
            lambda: fresh(theirs),
            equations(fresh(theirs).jaxpr),
        ),
        "jax.make_jaxpr, lax": (
            lambda: fresh(lean),
            equations(fresh(lean).jaxpr),
        ),
    }
    want = dn.jit(ours)(*a).to_numpy()
    np.testing.assert_allclose(want, jax.jit(theirs)(*j), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(want, jax.jit(lean)(*j), rtol=1e-4, atol=1e-5)
    best = dict.fromkeys(makers, float("inf"))
    for _ in range(ROUNDS):
        for name, (make, _) in makers.items():
            gc.collect()
            start = time.perf_counter()
            make()
            best[name] = min(best[name], time.perf_counter() - start)
    print(f"defn {dn.__version__}, JAX {jax.__version__}; the least of {ROUNDS} rounds in turns")
    print(f"{'':24}{'ops':>8}{'ms':>10}{'us an op':>10}   its time / defn's")
    for name, (_, ops) in makers.items():
        seconds = best[name]
        ratio = seconds / best["defn"]
        print(f"{name:24}{ops:8}{1e3 * seconds:10.3f}{1e6 * seconds / ops:10.2f}{ratio:12.1f}")
    fast = 1e6 * best["defn"] / count
    ratio = min(seconds for name, seconds in best.items() if name != "defn") / best["defn"]
    held = fast <= LIMIT and ratio >= RATIO
    print(
        f"{fast:.2f} us an op, at most {LIMIT}; {ratio:.1f} times as fast as JAX's fastest, "
        f"at least {RATIO}: {'held' if held else 'NOT HELD'}"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
