"""What several test files share."""

from __future__ import annotations

import collections
import faulthandler
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence

import pytest

import defn as dn
from cases.dtypes import close

# For what runs on devices, whatever they are.
needs_plugin = pytest.mark.skipif(not dn.pjrt.plugins(), reason="no PJRT plugin is installed")

# How many times as far off XLA's results may be as ours: it adds up in another order, and its
# functions are its own.
XLA_ULPS = 8


def on_xla() -> bool:
    """Whether XLA computes, so that results are ours within a tolerance only."""
    options = dn.global_default_options()
    return "pjrt" in (options.get("compiler"), options.get("backend"))


def assert_alike(compiled: dn.Tensor, eager: dn.Tensor, scale: float = 0.0) -> None:
    """What is compiled is what runs at once: bit for bit, but for XLA, which compiles a whole."""
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


# The backend that tests compare with others: the default one, unless the tests run with another.
HERE = dn.tensor(0).backend


class Log:
    """A list that no container is: a definition that closes over it sees the same static value."""

    def __init__(self) -> None:
        self.items: list[object] = []

    def append(self, item: object) -> None:
        self.items.append(item)

    def __len__(self) -> int:
        return len(self.items)


class Held:
    """Anything, as a static value that is told apart by identity."""

    def __init__(self, value: object) -> None:
        self.value = value


Job = Callable[[random.Random], None]
# Seconds that a thread may take beyond its time before the run counts as stuck.
PATIENCE = 60.0


def work_at_once(
    threads: int, seconds: float, todo: Sequence[Job], seed: int = 0
) -> collections.Counter[str]:
    """Has threads do the jobs at random for some time; how often each was done, by its name."""
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
        except BaseException as error:  # every failure of a thread is the test's
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
