"""Many threads that trace, compile and call at once: right results, one compile a key, no deadlock.

``DEFN_TEST_THREAD_SECONDS`` sets the seconds of a run (default 5). Before a release it runs for
a minute.
"""

from __future__ import annotations

import collections
import gc
import os
import random
import threading
import time
from collections.abc import Callable

import numpy as np

import defn as dn
from support import Job, work_at_once

THREADS = 32
SECONDS = float(os.environ.get("DEFN_TEST_THREAD_SECONDS", "5"))


class Traces:
    """The number of traces for each key of each shared function."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: collections.Counter[tuple[object, ...]] = collections.Counter()

    def add(self, *key: object) -> None:
        with self.lock:
            self.counts[key] += 1


def shared_functions(traces: Traces) -> tuple[Callable[..., dn.Tensor], ...]:
    """Functions that every thread calls, and that call each other while they are traced."""

    @dn.defn
    def inner(x: dn.Tensor, *, power: int = 2) -> dn.Tensor:
        traces.add("inner", x.shape, str(x.dtype), power)
        return dn.sum(x**power)

    @dn.jit
    def outer(x: dn.Tensor, w: dn.Tensor) -> dn.Tensor:
        traces.add("outer", x.shape, str(x.dtype), w.shape)
        time.sleep(0.002)  # other threads call it while this one traces
        return inner(x * w) + inner(x, power=3)

    @dn.defn
    def collatz(n: dn.Tensor) -> dn.Tensor:
        traces.add("collatz", n.shape, str(n.dtype))
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps = steps + 1
        return steps

    slope = dn.jit(dn.grad(lambda x: dn.sum(dn.tanh(x) ** 2)))
    return outer, collatz, slope


def layers(traces: Traces, which: int, shift: int) -> Callable[..., dn.Tensor]:
    """One of several functions that share their code; some are slow to trace."""

    @dn.jit
    def layer(x: dn.Tensor, *, n: int) -> dn.Tensor:
        traces.add("layer", which, shift, x.shape, str(x.dtype), n)
        if (which + n) % 3 == 0:
            time.sleep(0.002)
        y = x + shift
        for _ in range(which):
            y = y * n
        return y

    return layer


def jobs(traces: Traces) -> list[Job]:
    """The jobs of a thread, which runs them in random order; each checks its result."""
    outer, collatz, slope = shared_functions(traces)
    steps = {1: 0, 2: 1, 3: 7, 6: 8, 7: 16, 27: 111}
    constant = dn.tensor([1.0, 2.0, 4.0])

    def call(rng: random.Random) -> None:
        n, dtype = rng.randint(1, 24), rng.choice(["float32", "float64"])
        x, scale = np.arange(n, dtype=dtype) / 8, np.float32(rng.random())
        want = np.sum((x * scale) ** 2) + np.sum(x**3)
        np.testing.assert_allclose(float(outer(x, scale)), want, rtol=1e-5, atol=1e-6)

    def branch(rng: random.Random) -> None:
        n = rng.choice(list(steps))
        assert int(collatz(np.int32(n))) == steps[n]

    def differentiate(rng: random.Random) -> None:
        x = np.full(rng.randint(1, 16), rng.random())
        want = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
        np.testing.assert_allclose(slope(x).to_numpy(), want, rtol=1e-6, atol=1e-7)

    shared = [layers(traces, which, 0) for which in range(4)]

    def layered(rng: random.Random) -> None:
        which, n, shift = rng.randrange(4), rng.randint(1, 3), rng.choice([0, 0, 0, 1, 2])
        x = rng.randrange(10) * np.ones(rng.randint(1, 3), rng.choice(["f4", "i4", "f8"]))
        layer = shared[which] if shift == 0 else layers(traces, which, shift)
        assert (layer(x, n=n).to_numpy() == (x + shift) * n**which).all()

    def collect(rng: random.Random) -> None:
        if rng.random() < 0.05:
            gc.collect()

    def fresh(rng: random.Random) -> None:
        shift = rng.randint(-1000, 1000)
        got = dn.jit(lambda x: x * constant + shift)(np.float32(2.0))
        assert got.to_list() == [2.0 + shift, 4.0 + shift, 8.0 + shift]

    def ahead(rng: random.Random) -> None:
        n = rng.randint(1, 8)
        run = dn.compile(
            lambda x, *, k: dn.cumulative_sum(x) * k, [dn.template((n,), "s32")], {"k": 3}
        )
        assert run(np.arange(n, dtype=np.int32)).to_list() == (3 * np.arange(n).cumsum()).tolist()

    def hooked(rng: random.Random) -> None:
        seen: list[float] = []
        value = rng.random()
        run = dn.jit(
            lambda x: dn.while_(
                (0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, dn.hook(s[1] + 1, "step"))
            ),
            hooks={"step": lambda t: seen.append(float(t))},
        )
        run(value)
        np.testing.assert_allclose(seen, [value + 1, value + 2, value + 3], rtol=1e-6)

    def evaluator(rng: random.Random) -> None:
        n = rng.randint(1, 6)
        with dn.options(compiler="evaluator"):
            assert dn.default_options()["compiler"] == "evaluator"
            assert int(dn.jit_apply(dn.sum, [np.arange(n)])) == n * (n - 1) // 2

    def eager(rng: random.Random) -> None:
        n = rng.choice([1, 7, 4096, 100_000])
        x = dn.iota((n,), dtype="f64")
        assert float(dn.sum(x * 2 - x)) == n * (n - 1) / 2
        assert dn.sort(dn.reverse(x))[0].item() == 0.0

    def show(rng: random.Random) -> None:
        text = repr(dn.debug_expr(lambda x: dn.exp(x) + rng.randint(0, 3))(np.float32(1.0)))
        assert "exp" in text

    def stream(rng: random.Random) -> None:
        n = rng.randint(1, 12)
        with dn.stream(
            lambda x, acc: (acc, acc + x), [dn.template((), "s32"), np.int32(0)], maxsize=4
        ) as flow:
            got = [int(part) for part in flow.map(np.arange(n, dtype=np.int32))]
        assert got == [i * (i - 1) // 2 for i in range(n)]

    return [
        call,
        call,
        branch,
        differentiate,
        layered,
        layered,
        collect,
        fresh,
        ahead,
        hooked,
        evaluator,
        eager,
        show,
        stream,
    ]


def test_threads_trace_compile_and_call_at_once() -> None:
    traces = Traces()
    work = jobs(traces)
    done = work_at_once(THREADS, SECONDS, work)
    assert set(done) == {job.__name__ for job in work}, "each kind of work was done"
    compiled = {key: n for key, n in traces.counts.items() if key[0] != "inner"}
    assert set(compiled.values()) == {1}, compiled
