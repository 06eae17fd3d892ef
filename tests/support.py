"""Helpers that several test files share."""

from __future__ import annotations

import collections
import faulthandler
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases.dtypes import close

# For tests that need a device of any kind.
needs_plugin = pytest.mark.skipif(not dn.pjrt.plugins(), reason="no PJRT plugin is installed")

# The factor by which XLA's errors may exceed ours: it adds in another order, and has its own
# functions.
XLA_ULPS = 8


def on_xla() -> bool:
    """Whether XLA computes: its results equal ours only within a tolerance."""
    options = dn.global_default_options()
    return "pjrt" in (options.get("compiler"), options.get("backend"))


def assert_alike(compiled: dn.Tensor, eager: dn.Tensor, scale: float = 0.0) -> None:
    """Compiled results equal eager ones: bit for bit, except with XLA, which compiles the whole."""
    assert (compiled.dtype, compiled.shape, compiled.names) == (
        eager.dtype,
        eager.shape,
        eager.names,
    )
    got, want = compiled.to_numpy(), eager.to_numpy()
    if on_xla():
        ok = close(got, want, str(eager.dtype), XLA_ULPS, scale)
        assert ok.all(), f"compiled\n{got}\nat once\n{want}"
    else:
        assert got.tobytes() == want.tobytes()


def with_one_nan(array: np.ndarray) -> np.ndarray:
    """The array with one NaN for all: the sign and the payload of NaN are not specified."""
    if array.dtype.kind == "c":
        parts = array.reshape(-1).view(array.real.dtype)
        return with_one_nan(parts).view(array.dtype).reshape(array.shape)
    if array.dtype.kind in "biu" or array.dtype.name.startswith(("int", "uint")):
        return array
    return np.where(np.isnan(array), np.array(np.nan, array.dtype), array)


# The backend of the test run, which tests compare with others.
HERE = dn.tensor(0).backend


def in_turn(
    function: Callable[..., Any], arguments: Sequence[Sequence[Any]], backend: object = HERE
) -> list[Any]:
    """The results for each list of arguments; XLA compiles one program for all of them."""
    if on_xla() and backend == HERE:
        return dn.jit(lambda: [function(*row) for row in arguments])()
    return [function(*row) for row in arguments]


class Log:
    """A list that is not a container: a definition that captures it sees one static value."""

    def __init__(self) -> None:
        self.items: list[object] = []

    def append(self, item: object) -> None:
        self.items.append(item)

    def __len__(self) -> int:
        return len(self.items)


class Held:
    """A wrapper that makes any object a static value, compared by identity."""

    def __init__(self, value: object) -> None:
        self.value = value


Job = Callable[[random.Random], None]
# The seconds that a thread may exceed its time before the run counts as stuck.
PATIENCE = 60.0


def work_at_once(
    threads: int, seconds: float, todo: Sequence[Job], seed: int = 0
) -> collections.Counter[str]:
    """Run random jobs on threads for some time; returns how often each ran, by its name."""
    start, failures, done = threading.Barrier(threads), [], collections.Counter[str]()
    lock = threading.Lock()

    def run(seed: int) -> None:
        rng = random.Random(seed)
        mine = collections.Counter[str]()
        try:
            start.wait()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not failures:
                job = rng.choice(todo)
                job(rng)
                mine[job.__name__] += 1
        except BaseException as error:  # any failure of a thread fails the test
            failures.append(error)
        with lock:
            done.update(mine)

    started = [
        threading.Thread(target=run, args=(seed + number,), daemon=True)
        for number in range(threads)
    ]
    for thread in started:
        thread.start()
    deadline = time.monotonic() + seconds + PATIENCE
    for thread in started:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in started):
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        raise AssertionError("threads are stuck; where each stands is on standard error")
    if failures:
        raise failures[0]
    return done
