"""The cost of a call: eager and compiled functions on small arrays, beside NumPy and JAX.

Each row is checked before it is timed. The time of a call is the least of several rounds.
"""

from __future__ import annotations

import os
import sys
import timeit
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import defn as dn

ROUNDS = 9


def time_of(call: Callable[[], object]) -> float:
    """Microseconds per call: the least of several rounds of about 20 ms."""
    timer = timeit.Timer(call)
    once = timer.timeit(200) / 200
    number = max(int(0.02 / once), 1)
    return 1e6 * min(timer.repeat(ROUNDS, number)) / number


def formula(a, b):
    """Works on tensors and on JAX's arrays."""
    return a * 2.0 + b


def update(params, gradients):
    """A gradient descent step on twenty leaves."""
    return {name: params[name] - 0.1 * gradients[name] for name in params}


def rows() -> list[tuple[str, dict[str, Callable[[], object]]]]:
    """The calls to compare, by library; ours is first."""
    a, b = np.arange(8, dtype=np.float32), np.ones(8, dtype=np.float32)
    ours, theirs = (dn.tensor(a), dn.tensor(b)), (jnp.asarray(a), jnp.asarray(b))
    jitted, jax_jitted = dn.jit(formula), jax.jit(formula)
    names = [f"p{i}" for i in range(10)]
    tree, jax_tree = dict.fromkeys(names, ours[0]), dict.fromkeys(names, theirs[0])
    step, jax_step = dn.jit(update), jax.jit(update)
    gradient = dn.jit(dn.grad(lambda x: dn.sum(dn.sin(x) * x)))
    jax_gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)))

    np.testing.assert_allclose(jitted(*ours).to_numpy(), jax_jitted(*theirs), rtol=1e-6)
    np.testing.assert_allclose(
        step(tree, tree)["p3"].to_numpy(), jax_step(jax_tree, jax_tree)["p3"]
    )
    np.testing.assert_allclose(gradient(ours[0]).to_numpy(), jax_gradient(theirs[0]), rtol=1e-5)
    return [
        (
            "a + b, eager",
            {
                "defn": lambda: ours[0] + ours[1],
                "jax": lambda: theirs[0] + theirs[1],
                "numpy": lambda: a + b,
            },
        ),
        (
            "jit(a * 2 + b), tensors",
            {
                "defn": lambda: jitted(*ours),
                "jax": lambda: jax_jitted(*theirs).block_until_ready(),
                "numpy": lambda: formula(a, b),
            },
        ),
        (
            "jit(a * 2 + b), NumPy arrays",
            {
                "defn": lambda: jitted(a, b),
                "jax": lambda: jax_jitted(a, b).block_until_ready(),
            },
        ),
        (
            "jit(step), two dicts of 10",
            {
                "defn": lambda: step(tree, tree),
                "jax": lambda: jax.block_until_ready(jax_step(jax_tree, jax_tree)),
            },
        ),
        (
            "jit(grad(sum(sin(x) * x)))",
            {
                "defn": lambda: gradient(ours[0]),
                "jax": lambda: jax_gradient(theirs[0]).block_until_ready(),
            },
        ),
    ]


def main() -> int:
    """Prints the table."""
    print(
        f"float32[8], us per call; defn {dn.__version__}, JAX {jax.__version__} on its CPU, "
        f"NumPy {np.__version__}"
    )
    print(f"{'':30}{'defn':>9}{'jax':>9}{'numpy':>9}   jax / defn")
    for name, calls in rows():
        times = {library: time_of(call) for library, call in calls.items()}
        cells = "".join(
            f"{times[x]:9.2f}" if x in times else " " * 9 for x in ("defn", "jax", "numpy")
        )
        print(f"{name:30}{cells}{times['jax'] / times['defn']:13.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
