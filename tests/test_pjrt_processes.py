"""Waiting for devices: others run meanwhile, Ctrl-C ends it; forks, and the end of the process."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import defn as dn
from support import needs_plugin

pytestmark = needs_plugin

# A product that takes about a second, in one program; `long` starts it.
LONG = """
import os, signal, sys, threading, time
import numpy as np
import defn as dn

x = dn.tensor(np.full((1200, 1200), 1 / 1200, np.float32), backend="pjrt")

def power(x):
    y = x
    for _ in range(12):
        y = dn.dot(y, x)
    return y

long = dn.pjrt.jit(power)
long(x).block_until_ready()
endless = dn.pjrt.jit(lambda n: dn.while_(n, lambda n: n != 1, lambda n: n + 2))
"""


def run(code: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Runs a program that has `long` and `x`."""
    return subprocess.run(
        [sys.executable, "-c", LONG + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    "wait",
    [
        "for _ in range(20): y = long(x)\ny.to_numpy()",
        "for _ in range(20): y = long(x)\nfloat(y[0, 0])",
        "for _ in range(20): y = long(x)\ny.block_until_ready()",
        "for _ in range(20): y = long(x)\nrepr(y)",
        "for _ in range(20): y = long(x)\ndn.backend_transfer(y, 'cpu')",
        "while True: y = long(x)",
        "endless(np.int32(0))",
        "endless(dn.tensor(np.int32(0), backend='pjrt'))",
    ],
)
def test_a_wait_is_interrupted(wait: str) -> None:
    """Within a fraction of a second, whatever it is that the thread waits for."""
    code = f"""
def wait():
{textwrap.indent(wait, "    ")}

try:
    print("waiting", flush=True)
    wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(float(dn.sum(dn.iota((4,), dtype="f32"))), flush=True)
os._exit(0)
"""
    with subprocess.Popen(
        [sys.executable, "-c", LONG + code], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "waiting\n"
            time.sleep(1.0)
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            took = time.monotonic() - start
            assert child.stdout.readline() == "6.0\n"
        finally:
            child.kill()
    assert took < 1.0, f"it took {took} seconds"


def test_compiling_is_interrupted_and_made_later() -> None:
    done = run("""
        def deep(x):
            for n in range(600):
                x = dn.sin(dn.dot(x, x) + n) if n % 2 else dn.cumulative_sum(dn.sort(x, axis=0))
            return x

        compiled = dn.pjrt.jit(deep)
        y = dn.tensor(np.ones((8, 8), np.float32), backend="pjrt")
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
        start = time.monotonic()
        try:
            compiled(y)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 2.5)
        before = dn.pjrt.cache_report().compiles
        print(compiled(y).shape, dn.pjrt.cache_report().compiles - before)
        """)
    assert done.returncode == 0, done.stderr
    # The thread that compiles continues, and the second call waits for it.
    assert done.stdout.splitlines() == ["interrupted True", "(8, 8) 1"]


@pytest.mark.parametrize(
    "wait",
    [
        lambda y: y.to_numpy(),
        lambda y: float(y[0, 0]),
        lambda y: y.block_until_ready(),
        lambda y: memoryview(y),
        lambda y: dn.backend_copy(y, "cpu"),
        lambda y: dn.serialize(y),
        lambda y: repr(y),
    ],
)
def test_other_threads_run_while_one_waits(wait: object) -> None:
    x = dn.tensor(np.full((1200, 1200), 1 / 1200, np.float32), backend="pjrt")
    gaps: list[float] = []
    over = threading.Event()

    def tick() -> None:
        before = time.perf_counter()
        while not over.wait(0.001):
            now = time.perf_counter()
            gaps.append(now - before)
            before = now

    y = dn.dot(x, x).block_until_ready()
    for _ in range(8):
        y = dn.dot(y, x)
    ticking = threading.Thread(target=tick)
    ticking.start()
    start = time.perf_counter()
    wait(y)  # type: ignore[operator]
    took = time.perf_counter() - start
    over.set()
    ticking.join()
    # If the wait held the lock, it would be one single gap.
    assert took < 0.1 or max(gaps) < took / 2, (took, max(gaps))


def test_a_fork_is_refused_and_its_parent_goes_on() -> None:
    done = run("""
        from defn.pjrt import cache_report

        y = long(x)
        other = dn.jit(lambda x: x - 1, compiler="pjrt")
        asked = {
            "op": lambda: x + x,
            "read": lambda: x.to_numpy(),
            "wait": lambda: y.block_until_ready(),
            "call": lambda: long(x),
            "compile": lambda: other(x),
            "tensor": lambda: dn.tensor([1.0], backend="pjrt"),
            "copy": lambda: dn.backend_copy(x, "pjrt"),
            "transfer": lambda: dn.backend_transfer(x, "cpu"),
            "place": lambda: dn.backends.PJRT(client="host"),
            "report": lambda: cache_report(),
            "devices": lambda: dn.devices("host"),
        }
        child = os.fork()
        if child == 0:
            for name, ask in asked.items():
                try:
                    ask()
                    print(name, "went on", flush=True)
                except dn.BackendError as error:
                    print(name, "fork" in str(error), flush=True)
            del x, y
            print(float(dn.sum(dn.iota((4,), dtype="f32"))), flush=True)
            sys.exit(7)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        print(y.shape, float(x[0, 0]) > 0)
        """)
    assert done.returncode == 0, done.stderr
    names = "op read wait call compile tensor copy transfer place report devices".split()
    expected = [f"{name} True" for name in names]
    assert done.stdout.splitlines() == [*expected, "6.0", "child 7", "(1200, 1200) True"]


def test_a_fork_while_a_client_starts_does_not_wait_for_it() -> None:
    code = """
import os, sys, threading
import defn as dn

# What is imported is imported: a fork in the middle of that would wait for Python's own locks.
dn.pjrt.plugins()
dn.pjrt.client("small", plugin=dn.pjrt.plugins()[0].path, cpu_device_count=2)
threading.Thread(target=dn.devices, args=("host",)).start()
children = []
for delay in range(20):
    child = os.fork()
    if child == 0:
        try:
            dn.backends.PJRT(client="host")
        except dn.BackendError as error:
            assert "fork" in str(error)
        os._exit(5)
    children.append(child)
    threading.Event().wait(0.002)
print({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, "{5}\n"), done.stderr


@pytest.mark.parametrize(
    ("leave", "status"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise SystemExit(4)", 4),
        ("del y", 0),
    ],
)
def test_the_process_ends_while_devices_work(leave: str, status: int) -> None:
    done = run(f"""
        for _ in range(4):
            y = long(x)
        {leave}
        """)
    assert (done.returncode, done.stderr) == (status, "")


def test_an_error_ends_the_process_while_devices_work() -> None:
    done = run("y = long(x)\nraise ValueError('at the end')")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: at the end\n")


def test_threads_use_devices_while_the_process_ends() -> None:
    """Threads that nobody waits for neither end it by force nor keep it."""
    done = run("""
        def ops():
            y = dn.tensor(np.float32([1.0, 2.0]), backend="pjrt")
            while True:
                y = (y + y).block_until_ready()

        def calls():
            while True:
                long(x).to_numpy()

        for target in [ops, ops, calls, calls]:
            threading.Thread(target=target, daemon=True).start()
        time.sleep(1.0)
        print("leaving", flush=True)
        """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")
