"""Ctrl-C during an eager op or a definition: it ends soon, and leaves no trace."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

# The seconds that it may take on a machine with other load. Usually it takes a tenth of a second.
SOON = 3.0

# Programs that take some seconds on one thread.
CALLS = {
    "dot": "a = dn.tensor(np.ones((7000, 7000), np.float32)); run = lambda: dn.dot(a, a)",
    "compiled dot": (
        "a = dn.tensor(np.ones((7000, 7000), np.float32))\n"
        "f = dn.jit(lambda a: dn.tanh(dn.dot(a, a))); run = lambda: f(a)"
    ),
    "dot of integers": (
        "a = dn.tensor(np.ones((4000, 4000), np.int64)); run = lambda: dn.dot(a, a)"
    ),
    "sort": "x = dn.tensor(draw(40_000_000)); run = lambda: dn.sort(x)",
    "argsort": "x = dn.tensor(draw(20_000_000)); run = lambda: dn.argsort(x)",
    "svd": "x = dn.tensor(draw(1500, 1500)); run = lambda: dn.linalg.svd(x)",
    "eigh": "x = dn.tensor(draw(1500, 1500)); run = lambda: dn.linalg.eigh(x)",
    "fft": "x = dn.tensor(draw(30_000_000)); run = lambda: [dn.fft(x) for _ in range(20)]",
    "conv": (
        "x = dn.tensor(draw(64, 64, 128, 128)); k = dn.tensor(draw(64, 64, 7, 7))\n"
        "run = lambda: dn.conv(x, k)"
    ),
    "scatter": (
        "x = dn.tensor(draw(20_000_000))\n"
        "at = dn.tensor(rng.integers(0, 20_000_000, (40_000_000, 1)))\n"
        "run = lambda: dn.indexed_add(x, at, dn.tensor(draw(40_000_000)))"
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_op_is_interrupted(call: str) -> None:
    program = f"""
import os, signal, threading, time
import numpy as np
import defn as dn

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
draw = lambda *shape: rng.standard_normal(shape)
dn.set_threads(1)
{textwrap.dedent(call)}
sent = []

def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

timer = threading.Timer(0.3, send)
timer.start()
try:
    run()
    took = time.monotonic()
    timer.join()
    print("ended", took - sent[0])
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent[0])
print(float(dn.sum(dn.iota((100_000,), dtype="f64"))))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    (how, took), (total,) = (line.split() for line in done.stdout.splitlines())
    assert (how, float(total)) == ("interrupted", 4999950000.0)
    assert float(took) < SOON
