"""Streams through a step that is compiled for a device."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

import defn as dn
from support import needs_plugin

pytestmark = needs_plugin

CLIENT = "streams"


@pytest.fixture
def options() -> dict[str, str]:
    """A client of its own, so that what lives there can be counted."""
    host = next(plugin.path for plugin in dn.pjrt.plugins() if plugin.client == "host")
    dn.pjrt.client(CLIENT, plugin=host, cpu_device_count=2)
    return {"compiler": "pjrt", "client": CLIENT}


def live() -> int:
    gc.collect()
    return dn.pjrt.live_buffers(CLIENT)


def running(chunk, state):
    return {"seen": state["total"], "mean": state["total"] / state["count"]}, {
        "total": state["total"] + dn.sum(chunk),
        "count": state["count"] + 1,
    }


START = {"total": np.float32(0.0), "count": np.float32(1.0)}
CHUNK = dn.template((4,), "f32")


def test_chunks_go_through_a_device(options) -> None:
    before = live()
    with dn.stream(running, [CHUNK, START], **options) as stream:
        for i in range(6):
            stream.send(np.full(4, i, np.float32))
        seen = [stream.recv() for _ in range(6)]
        assert [float(part["seen"]) for part in seen] == [0.0, 0.0, 4.0, 12.0, 24.0, 40.0]
        assert all(part["mean"].backend.client == CLIENT for part in seen)
        state = stream.done()
        assert (float(state["total"]), float(state["count"])) == (60.0, 7.0)
    del seen, state, stream
    assert live() == before


def test_chunks_that_lie_on_a_device_stay_there(options) -> None:
    place = dn.backends.PJRT(client=CLIENT, device_id=1)
    start = {name: dn.tensor(value, backend=place) for name, value in START.items()}
    with dn.stream(running, [CHUNK, start], **options) as stream:
        stream.send(dn.tensor(np.ones(4, np.float32), backend=place))
        assert stream.recv()["seen"].backend == place
        assert stream.done()["total"].backend == place


def test_the_device_does_other_work_meanwhile(options) -> None:
    """A stream that waits for chunks, or whose step waits for a hook, holds nothing."""
    waiting, go_on = threading.Event(), threading.Event()

    def shown(value: dn.Tensor) -> None:
        waiting.set()
        assert go_on.wait(30)

    def step(chunk, total):
        return dn.hook(total, shown), total + dn.sum(chunk)

    double = dn.jit(lambda x: x * 2, **options)
    place = dn.backends.PJRT(client=CLIENT)
    with dn.stream(step, [CHUNK, np.float32(0.0)], **options) as stream:
        start = time.monotonic()
        assert double(np.float32([1.0])).to_list() == [2.0]
        stream.send(np.ones(4, np.float32))
        assert waiting.wait(30)
        # The step is in the middle of its run on the same device.
        x = dn.tensor([1.0, 2.0], backend=place)
        assert double(x).to_list() == [2.0, 4.0]
        assert float(dn.sum(x + x)) == 6.0
        with dn.stream(running, [CHUNK, START], **options) as other:
            other.send(np.ones(4, np.float32))
            assert float(other.recv()["seen"]) == 0.0
            assert float(other.done()["total"]) == 4.0
        go_on.set()
        assert float(stream.recv()) == 0.0
        assert float(stream.done()) == 4.0
        assert time.monotonic() - start < 30


def test_streams_and_calls_side_by_side(options) -> None:
    failures: list[BaseException] = []

    def feed(seed: int) -> None:
        try:
            for _ in range(5):
                with dn.stream(running, [CHUNK, START], **options) as stream:
                    for i in range(20):
                        stream.send(np.full(4, i * seed, np.float32))
                        stream.recv()
                    assert float(stream.done()["total"]) == 4 * seed * 190
        except BaseException as error:  # the test's
            failures.append(error)

    before = live()
    threads = [threading.Thread(target=feed, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    square = dn.jit(lambda x: x * x, **options)
    while any(thread.is_alive() for thread in threads):
        assert square(np.float32([3.0])).to_list() == [9.0]
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert live() == before


@pytest.mark.parametrize("end", ["close", "leave", "forget", "fail"])
def test_ending_early_leaves_nothing_on_the_device(options, end) -> None:
    before = live()
    stream = dn.stream(running, [CHUNK, START], maxsize=16, **options)
    for i in range(10):
        stream.send(np.full(4, i, np.float32))
    stream.recv()
    if end == "close":
        stream.close()
    elif end == "leave":
        with stream:
            pass
    elif end == "fail":
        with pytest.raises(ZeroDivisionError), stream:
            raise ZeroDivisionError
    del stream
    deadline = time.monotonic() + 20
    # The thread of the stream releases its current value.
    while live() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert live() == before


def test_a_step_that_fails_is_told_and_leaves_nothing(options) -> None:
    def refuse(value: dn.Tensor) -> None:
        if float(value) >= 4.0:
            raise ValueError("enough")

    def step(chunk, total):
        return dn.hook(total, refuse), total + dn.sum(chunk)

    before = live()
    stream = dn.stream(step, [CHUNK, np.float32(0.0)], **options)
    stream.send(np.ones(4, np.float32))
    assert float(stream.recv()) == 0.0
    stream.send(np.ones(4, np.float32))
    with pytest.raises(ValueError, match="enough"):
        stream.recv()
    stream.close()
    del stream
    deadline = time.monotonic() + 20
    while live() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert live() == before
