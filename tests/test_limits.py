"""Growth and speed: gradients of long loops, tracing of long programs, importing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import defn as dn
from defn import _core


@pytest.fixture(autouse=True)
def _without_verification():
    """What is measured is what users get."""
    _core.verify_graphs(False)
    yield
    _core.verify_graphs(True)


def best_of(runs: int, action) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


LOOP = """
    import resource
    import defn as dn

    def run(x, n):
        state = dn.while_((0, x), lambda s: s[0] < n, lambda s: (s[0] + 1, dn.sin(s[1]) * 1.01))
        return dn.sum(state[1])

    gradient = dn.grad(run)
    x = dn.iota(({size},), dtype="f32") / {size}
    gradient(x, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradient(x, {trips})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def peak_growth(trips: int, size: int) -> int:
    """The bytes by which a process's peak grows while the gradient of so many trips is computed."""
    program = textwrap.dedent(LOOP.format(trips=trips, size=size))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


def test_gradient_of_a_long_loop_takes_linear_time() -> None:
    gradient = dn.grad(
        lambda x, n: dn.while_(
            (0, x), lambda s: s[0] < n, lambda s: (s[0] + 1, dn.sin(s[1]) * 1.01)
        )[1]
    )
    gradient(0.5, 10)
    short = best_of(5, lambda: gradient(0.5, 1_000))
    long = best_of(2, lambda: gradient(0.5, 10_000))
    assert long <= 12 * short, f"{short:.4f} s for 1,000 trips, {long:.4f} s for 10,000"


def test_gradient_of_a_long_loop_takes_linear_memory() -> None:
    size = 16 * 1024
    short = min(peak_growth(1_000, size) for _ in range(2))
    long = min(peak_growth(10_000, size) for _ in range(2))
    every_state = 10_000 * size * 4
    assert long <= 12 * max(short, 1 << 20), f"{short} bytes for 1,000 trips, {long} for 10,000"
    assert long < every_state, "the states of all trips are not kept at once"


def mixed(x: dn.Tensor, w: dn.Tensor) -> dn.Tensor:
    """About 2,000 operations: element-wise, reductions, products, and one loop."""
    for i in range(220):
        y = dn.tanh(x * 1.5 + float(i))
        y = y - dn.mean(y, axes=[1], keep_axes=True)
        x = dn.dot(y, w) / (dn.sum(dn.abs(y)) + 1.0)
    return dn.sum(dn.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5))[1])


def test_trace_speed() -> None:
    x, w = dn.iota((4, 8), dtype="f32"), dn.iota((8, 8), dtype="f32")
    text = repr(dn.debug_expr(mixed)(x, w))
    assert text.count("\n") > 1_900, "the program is as long as it is meant to be"
    seconds = best_of(5, lambda: dn.debug_expr(mixed)(x, w))
    assert seconds < 0.020, f"{seconds * 1e3:.1f} ms"


def test_import_is_light() -> None:
    """Importing costs at most 30 ms beyond NumPy, and does not load what is rarely needed."""
    program = """
        import sys, time
        import numpy
        start = time.perf_counter()
        import defn
        print(time.perf_counter() - start)
        print(sorted({"ml_dtypes", "scipy", "asyncio", "attrs", "attr", "jax"} & set(sys.modules)))
    """
    lines = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(5)
    ]
    assert {line[1] for line in lines} == {"[]"}
    seconds = min(float(line[0]) for line in lines)
    assert seconds < 0.030, f"{seconds * 1e3:.1f} ms"


def test_numpy_is_not_computing() -> None:
    """No arithmetic of NumPy's takes part in a training step."""

    class Refusing(np.ndarray):
        def __array_ufunc__(self, *args: object, **kwargs: object) -> object:
            raise AssertionError("NumPy computes")

    x = np.ones((4, 3), dtype=np.float32).view(Refusing)
    w = dn.tensor(np.zeros((3,), dtype=np.float32))
    step = dn.jit(lambda w, x: w - 0.1 * dn.grad(lambda v: dn.mean((x @ v - 1.0) ** 2))(w))
    for _ in range(3):
        w = step(w, x)
    assert (w.to_numpy() > 0).all()
