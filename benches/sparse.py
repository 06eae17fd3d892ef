"""A sparse Jacobian beside the dense one: a step of nonlinear diffusion, in time and memory.

python benches/sparse.py [elements]

Each side runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse  # noqa: F401 - its import is not timed

import defn as dn

ELEMENTS = 10_000
# Later calls that are timed; the median counts.
CALLS = 9
SIDES = ("import", "pattern", "sparse", "dense")


def diffusion(u: dn.Tensor) -> dn.Tensor:
    """A step whose flux depends on the state: each element depends on three."""
    rates = 1.0 + u * u
    flux = 0.5 * (rates[1:] + rates[:-1]) * (u[1:] - u[:-1])
    flux = dn.pad(flux, 0.0, [(1, 1, 0)])
    return u + 0.1 * (flux[1:] - flux[:-1])


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def side(name: str, elements: int) -> None:
    """Times one side, and prints the peak of memory."""
    u = dn.tensor(np.random.default_rng(0).normal(size=elements))
    if name == "pattern":
        first, pattern = seconds(lambda: dn.sparsity(diffusion, u))
        print(f"{name}: {1e3 * first:.1f} ms, {pattern.nnz} entries", end="")
    elif name != "import":
        if name == "sparse":
            jacobian = dn.jacobian(diffusion, sparse=True)
            run = lambda: jacobian(u)  # noqa: E731
        else:
            jacobian = dn.jacobian(diffusion)
            compiled = dn.jit(jacobian)
            run = lambda: compiled(u).block_until_ready()  # noqa: E731
        first, _ = seconds(run)
        later = sorted(seconds(run)[0] for _ in range(CALLS))[CALLS // 2]
        print(f"{name}: first call {1e3 * first:.1f} ms, later {1e3 * later:.2f} ms", end="")
    else:
        print(name, end="")
    print(f", peak of {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def check() -> None:
    """Both sides have equal elements."""
    u = dn.tensor(np.random.default_rng(1).normal(size=100))
    got = dn.jacobian(diffusion, sparse=True)(u)
    np.testing.assert_allclose(got.toarray(), dn.jacobian(diffusion)(u).to_numpy(), rtol=1e-12)
    assert got.nnz == 3 * 100 - 2


def main(arguments: list[str]) -> None:
    if len(arguments) == 2:
        return side(arguments[0], int(arguments[1]))
    check()
    elements = int(arguments[0]) if arguments else ELEMENTS
    print(f"{elements} elements of f64, {os.cpu_count()} x {platform.processor() or 'processor'}")
    for name in SIDES:
        subprocess.run([sys.executable, __file__, name, str(elements)], check=True)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
