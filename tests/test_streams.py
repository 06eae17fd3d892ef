"""Streams: order, backpressure, errors, early ends, and concurrent work."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import defn as dn


def running(x, total):
    return total, x + total


def sums(**options):
    return dn.stream(running, [dn.template((), "s32"), 0], **options)


def test_each_chunk_in_turn() -> None:
    with sums() as stream:
        seen = []
        for i in range(1, 6):
            stream.send(i)
            seen.append(int(stream.recv()))
        assert seen == [0, 1, 3, 6, 10]
        assert int(stream.done()) == 15


def test_sends_run_ahead() -> None:
    with sums(maxsize=100) as stream:
        for i in range(1, 6):
            stream.send(i)
        assert [int(output) for output in stream] == [0, 1, 3, 6, 10]
        assert int(stream.done()) == 15


def test_done_waits_for_all_chunks() -> None:
    stream = sums(maxsize=64)
    for i in range(50):
        stream.send(i)
    assert int(stream.done()) == sum(range(50))
    assert int(stream.done()) == sum(range(50)), "asked again, it answers again"
    with pytest.raises(dn.StreamError, match="ended with done"):
        stream.send(1)
    with pytest.raises(dn.StreamError, match="received"):
        stream.recv()


def test_constants_containers_and_options() -> None:
    def step(chunk, state, scale, *, shift=0.0):
        mean = chunk["x"] * scale + shift
        return {"out": mean}, (state[0] + mean, state[1] + 1)

    template = {"x": dn.template((2,), "f32")}
    start = (np.zeros(2, np.float32), 0)
    with dn.stream(step, [template, start, dn.tensor(2.0)], {"shift": 1.0}) as stream:
        outputs = list(stream.map({"x": np.full(2, i, np.float32)} for i in range(4)))
        total, count = stream.done()
    assert [output["out"].to_list() for output in outputs] == [[2 * i + 1.0] * 2 for i in range(4)]
    assert total.to_list() == [16.0, 16.0]
    assert int(count) == 4


def test_sending_waits_for_a_place() -> None:
    with sums(maxsize=2) as stream:
        stream.send(1)
        stream.send(2)
        with pytest.raises(dn.StreamError, match="no place became free"):
            stream.send(3, timeout=0.05)
        assert int(stream.recv()) == 0
        stream.send(3, timeout=5.0)


def test_a_thousand_chunks_beside_other_work() -> None:
    stop, started = threading.Event(), threading.Event()
    rounds = []

    def work() -> None:
        x = dn.iota((64,), dtype="f32")
        while not stop.is_set():
            rounds.append(float(dn.sum(dn.exp(x * 0.01))))
            started.set()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        # The first round of a compiler may take longer than all chunks do.
        assert started.wait(60)
        with sums() as stream:
            outputs = [int(output) for output in stream.map(range(1000))]
            total = int(stream.done())
    finally:
        stop.set()
        worker.join()
    assert outputs == [n * (n - 1) // 2 for n in range(1000)]
    assert total == 499500
    assert len(set(rounds)) == 1


def test_an_error_in_a_step_reaches_the_receiver() -> None:
    def refuse_zero(x):
        if int(x) == 0:
            raise ZeroDivisionError("the chunk is 0")

    def step(x, count):
        return dn.quotient(100, dn.hook(x, refuse_zero)), count + 1

    stream = dn.stream(step, [dn.template((), "s32"), 0], maxsize=4)
    with stream:
        for _ in range(500):
            stream.send(1)
            assert int(stream.recv()) == 100
        stream.send(0)
        with pytest.raises(ZeroDivisionError, match="the chunk is 0"):
            stream.recv()
        with pytest.raises(ZeroDivisionError):
            stream.send(1)
        with pytest.raises(ZeroDivisionError):
            stream.done()


def test_closing_early_leaks_nothing() -> None:
    before = threading.active_count()
    for _ in range(5):
        with sums() as stream:
            for i in range(4):
                stream.send(i)
        with pytest.raises(dn.StreamError, match="closed"):
            stream.send(1)
        with pytest.raises(dn.StreamError, match="closed"):
            stream.recv()
        with pytest.raises(dn.StreamError, match="closed"):
            stream.done()
        stream.close()
    assert threading.active_count() == before


def test_a_forgotten_stream_ends() -> None:
    before = threading.active_count()
    stream = sums()
    stream.send(1)
    assert int(stream.recv()) == 0
    del stream
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    assert threading.active_count() == before


def test_async() -> None:
    async def use() -> tuple[list[int], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        with sums(maxsize=100) as stream:
            for i in range(50):
                stream.send(i)
            outputs = [int(output) async for output in stream]
        ticking.cancel()
        return outputs, ticks

    outputs, ticks = asyncio.run(use())
    assert outputs == [n * (n - 1) // 2 for n in range(50)]
    assert ticks > 0


def test_what_is_refused() -> None:
    with pytest.raises(dn.OptionError, match="1 arguments"):
        dn.stream(running, [dn.template((), "s32")])
    with pytest.raises(dn.OptionError, match="maxsize"):
        sums(maxsize=0)
    with pytest.raises(dn.ContainerError, match="pair"):
        dn.stream(lambda x, acc: x + acc, [dn.template((), "s32"), 0])
    with pytest.raises(dn.ContainerError, match="f32"):
        dn.stream(lambda x, acc: (x, acc + 0.5), [dn.template((), "s32"), 0])
    with pytest.raises(dn.StreamError, match="a chunk must be sent"):
        sums().recv()


def test_a_chunk_of_another_type_is_refused_where_it_is_sent() -> None:
    with dn.stream(
        lambda x, acc: (x["a"], acc + x["a"]), [{"a": dn.template((), "s32")}, 0]
    ) as sums:
        sums.send({"a": 1})
        for chunk, what in (
            ({"a": 1.5}, r'^send: the chunk\["a"\] is f32, the stream was made for s32'),
            ({"b": 1}, r"^send: the chunk and those that the stream was made for differ"),
            ([1], "^send: the chunk and those"),
            ({"a": "text"}, "^send: the chunk and those"),
            (
                {"a": dn.vectorize(dn.tensor([1, 2]), "v")},
                r'^send: the chunk\["a"\] is s32\[v: 2\]',
            ),
        ):
            with pytest.raises((dn.ContainerError, dn.ShapeError), match=what):
                sums.send(chunk)
        sums.send({"a": 2})
        assert [int(sums.recv()), int(sums.recv()), int(sums.done())] == [1, 2, 3]


@pytest.mark.parametrize("method", ["recv", "done", "send"])
def test_a_step_that_waits_for_itself_is_refused(method: str) -> None:
    def call(_: Any) -> None:
        stream.send(1.0) if method == "send" else getattr(stream, method)()

    with dn.stream(
        lambda x, acc: (dn.hook(x, call), acc), [dn.template((), "f32"), 0.0], maxsize=2
    ) as stream:
        stream.send(1.0)
        stream.send(1.0)
        with pytest.raises(dn.StreamError, match=f"^{method}: a step's own function"):
            stream.recv(timeout=10)


def test_a_traced_tensor_is_no_chunk() -> None:
    with sums() as stream:
        with pytest.raises(dn.TraceError, match=r"^send: "):
            dn.jit(lambda x: (stream.send(x), x)[1])(1)
        stream.send(1)
        assert int(stream.recv()) == 0


def test_what_is_no_stream() -> None:
    chunk = dn.template((), "f32")
    with pytest.raises(dn.OptionError, match=r"^stream: args is of type str"):
        dn.stream(lambda x, acc: (x, acc), "ab")
    with pytest.raises(dn.OptionError, match=r"^stream: the step is of type NoneType"):
        dn.stream(None, [chunk, 0.0])
    with pytest.raises(dn.ContainerError, match=r"^stream: the next state is f32\[1\]"):
        dn.stream(lambda x, acc: (x, dn.tensor([1.0])), [chunk, 0.0])
    with pytest.raises(dn.TraceError, match=r"^stream: a stream is started while"):
        dn.jit(lambda x: (dn.stream(lambda y, acc: (y, acc), [chunk, 0.0]), x)[1])(1.0)


def test_the_process_ends_while_a_step_runs() -> None:
    program = """
import time
import defn as dn
stream = dn.stream(
    lambda x, acc: (dn.hook(x, lambda _: time.sleep(60)), acc), [dn.template((), "f32"), 0.0]
)
stream.send(1.0)
time.sleep(0.2)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=30, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
