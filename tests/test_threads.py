"""Many threads that call, trace and compile the same and different functions at once."""

from __future__ import annotations

import collections
import gc
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import defn as dn

THREADS = 32
SECONDS = 3.0


class Traces:
    """How often each function was traced with each signature."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: collections.Counter[Any] = collections.Counter()

    def note(self, *what: Any) -> None:
        with self.lock:
            self.counts[what] += 1


def test_threads_call_trace_and_compile_at_once() -> None:
    """Each result is right, and each key was compiled once. Functions are traced slowly now and
    then, so that others wait; some call definitions, some differentiate, some are made anew."""
    traces = Traces()

    @dn.defn
    def inner(x: Any, *, n: int) -> Any:
        return x * n

    def make(which: int, made: int) -> Any:
        def function(x: Any, *, n: int) -> Any:
            traces.note(which, made, str(x.dtype), x.shape, n)
            if (which + n) % 3 == 0:
                time.sleep(0.002)
            y = x + made
            for _ in range(which):
                y = inner(y, n=n)
            return y

        return function

    def sum_of_squares(x: Any) -> Any:
        traces.note("squares", str(x.dtype), x.shape)
        return dn.sum(x * x)

    shared = [dn.jit(make(which, 0)) for which in range(4)]
    slope = dn.grad(sum_of_squares)
    end = time.monotonic() + SECONDS
    start = threading.Barrier(THREADS)

    def work(seed: int) -> int:
        rng = random.Random(seed)
        calls = 0
        start.wait(30)
        while time.monotonic() < end:
            size, n, which = rng.randrange(1, 4), rng.randrange(1, 4), rng.randrange(4)
            dtype = rng.choice([np.float32, np.int32, np.float64])
            x = rng.randrange(10) * np.ones(size, dtype)
            made = rng.choice([0, 0, 0, 1, 2])
            f = shared[which] if made == 0 else dn.jit(make(which, made))
            assert (f(x, n=n).to_numpy() == (x + made) * n**which).all()
            if which == 0:
                y = x.astype(np.float32)
                assert (slope(y).to_numpy() == 2 * y).all()
            if rng.random() < 0.01:
                gc.collect()
            calls += 1
        return calls

    with ThreadPoolExecutor(THREADS) as pool:
        calls = list(pool.map(work, range(THREADS)))
    assert min(calls) > 0
    again = {key: count for key, count in traces.counts.items() if count > 1}
    assert again == {}, "each key is compiled once"
    assert len(traces.counts) > 100, "and there were many"
