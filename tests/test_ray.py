"""Stages run by Ray's workers: the same bits as in one process, also if a worker is lost."""

from __future__ import annotations

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pipeline as example
import pytest
import ray

import defn as dn
from defn.engines._ray_actors import portable
from defn.engines._ray_cluster import _ENVIRONMENT
from defn.engines._ray_worker import pack, unpack

# The resources of a private cluster of these tests.
INIT = {"object_store_memory": 128 << 20, "num_cpus": 2}

pytestmark = pytest.mark.usefixtures("no_options")


@pytest.fixture(scope="module")
def engine() -> Iterator[dn.engines.Ray]:
    with dn.engines.Ray(init=INIT) as engine:
        yield engine


@pytest.fixture(scope="module")
def pipeline() -> Any:
    """The transformer's function, batches, its four stages, and the results of one process."""
    forward = example.transformer(example.weights())
    batches = [[batch] for batch in example.batches(12)]
    stages = example.pipeline(forward, batches[0][0])
    expected = list(dn.graph.run_each(stages, batches))
    return forward, batches, stages, expected


def same(results: list[Any], expected: list[Any]) -> bool:
    pairs = zip(results, expected, strict=True)
    return all(a.to_numpy().tobytes() == b.to_numpy().tobytes() for a, b in pairs)


def of(engine: dn.engines.Ray, stages: list[Any]) -> list[dn.engines.StageReport]:
    """The engine's reports on these stages, in order."""
    ids = [stage.id for stage in stages]
    return sorted((r for r in engine.report() if r.stage in ids), key=lambda r: r.position)


def kill(report: dn.engines.StageReport) -> None:
    os.kill(report.pid, signal.SIGKILL)


def cut(fun: Any, *args: Any) -> list[Any]:
    return dn.graph.split(dn.debug_expr(fun)(*args), dn.graph.marks())


def chain(x: Any) -> Any:
    """Three different stages."""
    x = dn.mark(dn.sin(x) * 3.0, "first")
    x = dn.mark(dn.cos(x) + x, "second")
    return {"out": dn.exp(x), "sum": dn.sum(x)}


def test_a_transformer_in_four_stages(engine: dn.engines.Ray, pipeline: Any) -> None:
    forward, batches, stages, expected = pipeline
    work = [dn.graph.cost(stage).work for stage in stages]
    assert len(stages) == 4
    assert max(work) < 1.1 * min(work)
    known = example.weights()
    for (words,), logits in zip(batches, expected, strict=True):
        given = example.numpy_transformer(known, words.to_numpy())
        np.testing.assert_allclose(logits.to_numpy(), given, atol=1e-5)
    # The CPU's evaluator computes each operation as in the whole program: the bits are equal.
    assert same([dn.jit(forward)(*batch) for batch in batches], expected)
    assert same(list(dn.graph.run_each(stages, batches, engine=engine)), expected)
    reports = of(engine, stages)
    assert [r.position for r in reports] == [0, 1, 2, 3]
    assert [(r.calls, r.compiles, r.restarts) for r in reports] == [(12, 1, 0)] * 4
    assert len({r.pid for r in reports}) == 4
    assert all(r.seconds > 0 and r.compile_seconds > 0 for r in reports)
    assert reports[0].bytes_in == sum(batch.nbytes for (batch,) in batches)
    assert reports[3].bytes_out == sum(logits.nbytes for logits in expected)
    # The stages are compiled once, for later runs too.
    assert same([dn.graph.run(stages, batches[0], engine=engine)], expected[:1])
    assert [(r.calls, r.compiles) for r in of(engine, stages)] == [(13, 1)] * 4


def test_a_worker_is_killed(pipeline: Any) -> None:
    _, batches, stages, expected = pipeline
    with dn.engines.Ray(init=INIT) as engine:
        results = dn.graph.run_each(stages, batches, engine=engine)
        given = [next(results)]
        kill(of(engine, stages)[2])
        given += results
        reports = of(engine, stages)
    assert same(given, expected)
    assert [r.restarts for r in reports] == [0, 0, 1, 0]
    assert [r.compiles for r in reports] == [1, 1, 2, 1]
    # No other stage ran again: the workers count the calls that they begin.
    assert [r.calls for r in reports] == [12, 12, 12, 12]


def test_a_worker_is_killed_while_it_computes() -> None:
    def long(x: Any, turns: Any) -> Any:
        x = dn.mark(dn.sin(x), "before")
        x = dn.for_(x, dn.range(turns), lambda x, _: dn.tanh(x @ x))
        return dn.cos(dn.mark(x, "after"))

    x = dn.iota((64, 64), dtype="f32") / 4096.0
    stages = cut(long, x, 1)
    assert len(stages) == 3
    expected = [dn.graph.run(stages, [x, 1]), dn.graph.run(stages, [x, 100])]
    with dn.engines.Ray(init=INIT) as engine:
        assert same([dn.graph.run(stages, [x, 1], engine=engine)], expected[:1])
        victim = of(engine, stages)[1]
        # Runs far longer than the time until the worker is killed.
        results: list[Any] = []
        turns = 1
        seconds = 0.0
        while seconds < 1.0:
            turns *= 4
            start = time.perf_counter()
            expected[1] = dn.graph.run(stages, [x, turns])
            seconds = time.perf_counter() - start
        run = threading.Thread(
            target=lambda: results.append(dn.graph.run(stages, [x, turns], engine=engine))
        )
        run.start()
        time.sleep(0.3)
        assert run.is_alive()
        kill(victim)
        run.join()
        reports = of(engine, stages)
    assert same(results, expected[1:])
    assert [(r.calls, r.restarts) for r in reports] == [(2, 0), (2, 1), (2, 0)]


def test_a_worker_is_killed_again_and_again(engine: dn.engines.Ray) -> None:
    stages = cut(chain, 0.0)
    want = [r["out"].item() for r in dn.graph.run_each(stages, [[0.5 * i] for i in range(40)])]
    with dn.engines.Ray(restarts=1) as frail:
        results = dn.graph.run_each(stages, [[0.5 * i] for i in range(40)], engine=frail)
        given = [next(results)["out"].item()]
        first = of(frail, stages)[1]
        kill(first)
        while of(frail, stages)[1].pid == first.pid:
            given.append(next(results)["out"].item())
        kill(of(frail, stages)[1])
        with pytest.raises(dn.BackendError) as raised:
            given.extend(result["out"].item() for result in results)
        assert str(raised.value).startswith(
            "run: the worker of stage 1 was lost 2 times, at most 1 restarts are allowed; "
        )
        assert f"at {__file__}:" in str(raised.value)
        # The results before the error were returned, and the next run gets another worker.
        assert given == want[: len(given)]
        assert 2 <= len(given) < 40
        again = dn.graph.run_each(stages, [[0.5 * i] for i in range(40)], engine=frail)
        assert [result["out"].item() for result in again] == want


def diamond(x: Any, y: Any) -> Any:
    x = dn.mark(dn.rename(x, ["row", None]) * 2.0, "start")
    left = dn.mark(dn.sin(x) @ y, "left")
    right = dn.mark(dn.cos(x) @ y, "right")
    return left, {"both": left - right}, dn.as_type(dn.sum(right), "bf16")


def test_what_runs_side_by_side(engine: dn.engines.Ray) -> None:
    x, y = dn.iota((3, 4), dtype="f32"), dn.iota((4, 5), dtype="f32")
    stages = cut(diamond, x, y)
    plan = dn.graph.Plan.of(stages)
    assert plan.waits == ((), (0,), (0,), (1, 2))
    # One stage has another compiler, and one argument is the same in all sets.
    options: Any = {1: {"compiler": "pjrt"}}
    sets = [(x + float(i), y) for i in range(5)]
    expected = list(dn.graph.run_each(stages, sets, stage_options=options))
    given = list(dn.graph.run_each(stages, sets, engine=engine, stage_options=options))
    for a, b in zip(given, expected, strict=True):
        # Whatever ran a stage, results are tensors on the host.
        with dn.options(print_place=False):
            assert repr(a) == repr(b)
        assert a[0].backend == "cpu"
        assert same([a[0], a[1]["both"], a[2]], [b[0], b[1]["both"], b[2]])
    assert given[0][0].names == ("row", None)
    # The same stages with other options are compiled again, on the same workers.
    before = {r.pid for r in of(engine, stages)}
    dn.graph.run(stages, sets[0], engine=engine)
    assert [r.calls for r in of(engine, stages) if r.position == 1] == [5, 1]
    assert {r.pid for r in of(engine, stages)} == before


def test_fewer_workers_than_stages() -> None:
    x = dn.iota((3, 4), dtype="f32")
    stages = cut(diamond, x, dn.iota((4, 5), dtype="f32"))
    sets = [(x, dn.iota((4, 5), dtype="f32"))] * 3
    expected = list(dn.graph.run_each(stages, sets))
    with dn.engines.Ray(workers=2, init=INIT) as engine:
        given = list(dn.graph.run_each(stages, sets, engine=engine))
        pids = [r.pid for r in of(engine, stages)]
        assert repr(engine) == "<Ray, 2 workers>"
    assert same([a[0] for a in given], [b[0] for b in expected])
    assert pids[0] == pids[1] != pids[2] == pids[3]
    # A closed engine starts new workers.
    assert repr(engine) == "<Ray, no worker yet>"
    assert same([dn.graph.run(stages, sets[0], engine=engine)[0]], [expected[0][0]])
    engine.close()
    engine.close()


@pytest.mark.parametrize("dtype", [dtype.name for dtype in dn._core.dtypes])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_travel_out_of_band(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = dn.as_type(dn.iota(shape, dtype="u8"), dtype)
    tensor = dn.rename(tensor, [None, "column"]) if shape else tensor
    buffers: list[Any] = []
    written = pickle.dumps(pack(tensor), protocol=5, buffer_callback=buffers.append)
    (buffer,) = buffers
    assert buffer.raw().nbytes == tensor.nbytes
    assert buffer.raw().obj is not None
    read = pickle.loads(written, buffers=[bytes(buffer.raw())])
    alias, copy = unpack(read, copy=False), unpack(read, copy=True)
    for given in (alias, copy):
        assert (given.dtype, given.shape, given.names) == (tensor.dtype, tensor.shape, tensor.names)
        assert given.to_numpy().tobytes() == tensor.to_numpy().tobytes()
    if tensor.size:
        start = read[3].ctypes.data
        # Integers narrower than a byte are checked, and copied for that.
        assert (alias.to_numpy().ctypes.data == start) == (tensor.dtype.bits >= 8)
        assert copy.to_numpy().ctypes.data != start


def test_large_values_stay_in_the_store(engine: dn.engines.Ray) -> None:
    """Each value is far larger than those that Ray sends along with a call."""

    def grow(x: Any) -> Any:
        x = dn.mark(dn.broadcast(x, (512, 1024)) + 1.0, "large")
        y = dn.mark(x * 2.0, "larger")
        # The first value is used again: a stage does not overwrite a value that another one reads.
        return dn.sum(x + y, axes=[0])

    x = dn.iota((1024,), dtype="f32")
    stages = cut(grow, x)
    count = 48
    sets = [[x + float(i)] for i in range(count)]
    expected = list(dn.graph.run_each(stages, sets))
    # More passes through the store than it holds, and it never spills to the disk: values are
    # released after their last use.
    assert count * 2 * 512 * 1024 * 4 > 1.4 * INIT["object_store_memory"]
    assert same(list(dn.graph.run_each(stages, sets, engine=engine)), expected)
    context = ray.get_runtime_context()
    session = pathlib.Path(context.get_temp_dir(), context.get_session_name())
    assert session.is_dir()
    assert list(session.glob("*spilled*")) == []
    reports = of(engine, stages)
    assert reports[0].bytes_out == count * 512 * 1024 * 4
    assert reports[2].bytes_in == 2 * reports[0].bytes_out


def test_queues_are_bounded() -> None:
    stages = cut(chain, 0.0)
    taken = 0

    def sets() -> Iterator[list[float]]:
        nonlocal taken
        for number in range(30):
            taken += 1
            yield [float(number)]

    with dn.engines.Ray(maxsize=1, init=INIT) as engine:
        results = dn.graph.run_each(stages, sets(), engine=engine)
        assert taken == 0
        ahead = []
        for given, _ in enumerate(results):
            time.sleep(0.01)
            ahead.append(taken - given)
    assert taken == 30
    assert 2 <= max(ahead) <= 1 + len(stages)


def test_an_error_in_a_stage(engine: dn.engines.Ray) -> None:
    def look_up(x: Any, at: Any) -> Any:
        y = dn.mark(x * 2.0, "first")
        z = dn.mark(dn.take(y, at), "second")
        return dn.sin(z)

    line = look_up.__code__.co_firstlineno + 2
    x = dn.tensor([1.0, 2.0, 3.0])
    stages = cut(look_up, x, 0)
    sets = [[x, at] for at in (0, 2, 5, 1)]
    messages = []
    for runner in (dn.engines.Sequential(), engine):
        given = []
        with dn.checks("index"), pytest.raises(dn.BoundsError) as raised:
            given.extend(result.item() for result in dn.graph.run_each(stages, sets, engine=runner))
        assert given == [dn.sin(2.0).item(), dn.sin(6.0).item()]
        messages.append(str(raised.value))
    # The line of the operation is sent with its stage.
    problem = "take: index 5 on axis 0 of f32[3], it must be in -3..3\n  in stage 1 of 3"
    assert messages == [f"{problem}\n  at {__file__}:{line}"] * 2
    # The engine still works, and without checks positions are clamped.
    results = dn.graph.run_each(stages, sets, engine=engine)
    assert [result.item() for result in results] == [
        dn.sin(2.0 * value).item() for value in (1.0, 3.0, 3.0, 2.0)
    ]


def test_another_shape_in_the_third_set(engine: dn.engines.Ray) -> None:
    stages = cut(chain, dn.template((4,), "f32"))
    sets = [[np.zeros(size, "f4")] for size in (4, 4, 5, 4)]
    given = []
    with pytest.raises(dn.ShapeError, match=r"args\[0\] is f32\[5\], the graph was traced with"):
        given.extend(dn.graph.run_each(stages, sets, engine=engine))
    assert len(given) == 2
    assert len(list(dn.graph.run_each(stages, [sets[0], sets[3]], engine=engine))) == 2


def test_what_sets_raise_comes_in_its_turn(engine: dn.engines.Ray) -> None:
    stages = cut(chain, 0.0)

    def sets() -> Iterator[list[float]]:
        yield [1.0]
        yield [2.0]
        raise ZeroDivisionError

    given = []
    with pytest.raises(ZeroDivisionError):
        given.extend(dn.graph.run_each(stages, sets(), engine=engine))
    assert len(given) == 2
    assert list(dn.graph.run_each(stages, [], engine=engine)) == []


def test_stages_that_cannot_be_sent(engine: dn.engines.Ray) -> None:
    stages = cut(lambda x: dn.mark(dn.hook(dn.sin(x), print), "hooked") + 1.0, 0.0)
    with pytest.raises(dn.ContainerError, match="take hooks and runtime_call out of it"):
        dn.graph.run(stages, [0.0], engine=engine)
    stages = cut(chain, 0.0)
    with pytest.raises(dn.OptionError, match="options of stage 0 cannot be sent"):
        dn.graph.run(stages, [0.0], engine=engine, compiler=Refusing(threading.Lock()))
    # A stage that can be sent contains no hook.
    hooks: Any = {"loss": print}
    assert dn.graph.run(stages, [0.0], engine=engine, hooks=hooks)["sum"].item() == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "Ray: workers is 0, a whole number from 1 on is required"),
        ({"maxsize": True}, "Ray: maxsize is True, a whole number from 1 on is required"),
        ({"restarts": -1}, "Ray: restarts is -1, a whole number from 0 on is required"),
        ({"start_timeout": 0}, "Ray: start_timeout is 0, a positive number is required"),
        ({"num_cpus": -1}, "Ray: a worker asks for -1 CPU, a number that is not negative"),
        ({"num_gpus": float("nan")}, "Ray: a worker asks for nan GPU, a number that is"),
        ({"resources": {"CPU": 1}}, "Ray: a worker asks for the resource 'CPU', num_cpus and"),
        ({"placement": {"a": {}}}, "Ray: a worker in placement is 'a', a whole number from 0"),
        ({"placement": {2: {"gpus": 1}}}, 'Ray: worker 2 asks for "gpus", it must be num_cpus,'),
        ({"placement": [1]}, "Ray: placement is [1], a dict is required"),
        ({"placement": {0: 1}}, "Ray: placement of worker 0 is 1, a dict is required"),
        ({"resources": "tpu"}, "Ray: resources is 'tpu', a dict is required"),
        ({"num_gpu": 1}, 'Ray: unknown option "num_gpu", it takes workers, num_cpus, num_gpus,'),
    ],
)
def test_options_are_looked_at(options: Any, message: str) -> None:
    with pytest.raises(dn.OptionError) as raised:
        dn.engines.Ray(**options)
    assert str(raised.value).startswith(message)
    assert f"at {__file__}:" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_gpus": 1}, "run: worker 0 asks for 1 GPU, this machine has 0; ask for less"),
        ({"num_cpus": 1}, "run: worker 2 asks for 1 CPU (3 with those before), this machine has 2"),
        ({"placement": {1: {"resources": {"tpu": 2}}}}, "run: worker 1 asks for 2 tpu, this"),
    ],
)
def test_a_place_that_there_is_not(engine: dn.engines.Ray, options: Any, message: str) -> None:
    with dn.engines.Ray(**options) as greedy, pytest.raises(dn.BackendError) as raised:
        dn.graph.run(cut(chain, 0.0), [0.0], engine=greedy)
    assert str(raised.value).startswith(message)


def test_a_place_that_is_taken(engine: dn.engines.Ray) -> None:
    stages = cut(lambda x: dn.cos(dn.mark(dn.sin(x), "here")), 0.0)
    with (
        dn.engines.Ray(num_cpus=1) as first,
        dn.engines.Ray(num_cpus=1, workers=1, start_timeout=1.0) as second,
    ):
        assert dn.graph.run(stages, [0.0], engine=first).item() == 1.0
        with pytest.raises(dn.BackendError) as raised:
            dn.graph.run(stages, [0.0], engine=second)
        message = str(raised.value)
        assert message.startswith("run: worker 0 asks for 1 CPU and has no place after 1 s, ")
        assert "the cluster has 2 CPU, of which nothing is free" in message
        first.close()
        # Nothing that holds resources was left behind.
        with dn.engines.Ray(num_cpus=2, workers=1) as third:
            assert dn.graph.run(stages, [0.0], engine=third).item() == 1.0


def test_placement_of_a_worker_that_there_is_not(engine: dn.engines.Ray) -> None:
    with (
        dn.engines.Ray(placement={3: {"num_cpus": 1}}) as other,
        pytest.raises(dn.OptionError, match="run: placement is of worker 3, the workers are 0 to"),
    ):
        dn.graph.run(cut(chain, 0.0), [0.0], engine=other)


def test_another_version(engine: dn.engines.Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    real = dn.__version__
    monkeypatch.setattr(dn, "__version__", "9.9.9")
    with dn.engines.Ray() as other, pytest.raises(dn.BackendError) as raised:
        dn.graph.run(cut(chain, 0.0), [0.0], engine=other)
    assert f"has defn {real}, every machine needs this version, 9.9.9" in str(raised.value)


def test_an_engine_is_closed_too_early(engine: dn.engines.Ray) -> None:
    stages = cut(chain, 0.0)
    with dn.engines.Ray() as other:
        results = dn.graph.run_each(stages, [[0.0], [1.0], [2.0]], engine=other)
        assert next(results)["sum"].item() == 1.0
    with pytest.raises(dn.BackendError, match="closed before the last result"):
        next(results)
    # Other engines on the same connection still work.
    assert dn.graph.run(stages, [0.0], engine=engine)["sum"].item() == 1.0


def test_ray_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(dn.BackendError, match=r"pip install 'defn\[ray\]'"):
        dn.graph.run(cut(chain, 0.0), [0.0], engine=dn.engines.Ray())


def in_another_process(program: str, *, interrupt: bool = False) -> tuple[list[str], str]:
    """The lines and the errors that a program prints. Its first line requests the interrupt."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Without the variables that the engine of these tests has set.
        env={name: value for name, value in os.environ.items() if name not in _ENVIRONMENT},
    )
    first = ""
    if interrupt:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("ready"), process.communicate()
        # By then the program waits for a worker.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return (first + out).splitlines(), err


def test_an_interrupt() -> None:
    """The wait ends, and every process of the engine ends too."""
    lines, _ = in_another_process(
        """
        import os, signal, sys
        import defn as dn
        assert not [name for name in sys.modules if name == "ray" or "_ray_" in name]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def turn(x):
            return dn.while_(x, lambda x: x > -1.0, lambda x: dn.abs(x))
        expr = dn.debug_expr(lambda x: turn(dn.mark(dn.sin(x), "here")))(1.0)
        stages = dn.graph.split(expr, dn.graph.marks())
        engine = dn.engines.Ray(init={"object_store_memory": 100 << 20})
        short = dn.graph.split(dn.debug_expr(dn.cos)(0.0), dn.graph.every(1))
        assert dn.graph.run(short, [0.0], engine=engine).item() == 1.0
        try:
            print("ready", engine.report()[0].pid, flush=True)
            dn.graph.run(stages, [1.0], engine=engine)
        except KeyboardInterrupt:
            print("interrupted")
        engine.close()
        import ray
        print(ray.is_initialized(), "RAY_USAGE_STATS_ENABLED" in os.environ)
        """,
        interrupt=True,
    )
    assert lines[1:] == ["interrupted", "False False"]
    worker = int(lines[0].split()[1])
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}")


def test_a_cluster_that_is_there(engine: dn.engines.Ray) -> None:
    """An engine joins the cluster at an address, and leaves the cluster unchanged."""
    address = ray.get_runtime_context().gcs_address
    lines, errors = in_another_process(
        f"""
        import defn as dn
        expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)))(0.0)
        stages = dn.graph.split(expr, dn.graph.every(1))
        with dn.engines.Ray(address="{address}", num_cpus=1) as engine:
            print(dn.graph.run(stages, [0.0], engine=engine).item())
        try:
            dn.graph.run(stages, [0.0], engine=dn.engines.Ray(address="127.0.0.1:1"))
        except dn.BackendError as error:
            print(str(error).splitlines()[0])
        """
    )
    # Ray itself prints nothing.
    assert errors == ""
    first, second = lines
    assert first == "1.0"
    assert second.startswith("Ray: no cluster at 127.0.0.1:1 (")
    elsewhere = dn.engines.Ray(address="127.0.0.1:1")
    with pytest.raises(dn.BackendError, match="this process is connected to the cluster at "):
        dn.graph.run(cut(chain, 0.0), [0.0], engine=elsewhere)
    stages = cut(chain, 0.0)
    assert dn.graph.run(stages, [0.0], engine=engine)["sum"].item() == 1.0


class Refusing(dn.Compiler):
    """A user's compiler, which is sent with the options of a stage."""

    def __init__(self, part: Any = None):
        self.part = part

    def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
        raise LookupError("not today")


class OddError(Exception):
    """An exception that cannot be unpickled in another process."""

    def __init__(self, first: str, second: str):
        super().__init__(first + second)


def test_an_exception_that_is_not_ours(engine: dn.engines.Ray) -> None:
    stages = cut(chain, 0.0)
    options: Any = {1: {"compiler": Refusing()}}
    with pytest.raises(LookupError) as raised:
        dn.graph.run(stages, [0.0], engine=engine, stage_options=options)
    assert str(raised.value) == "not today"
    (where,) = [note for note in raised.value.__notes__ if "raised by a worker" in note]
    assert f'File "{__file__}", line {Refusing.compile.__code__.co_firstlineno + 1}' in where
    assert dn.graph.run(stages, [0.0], engine=engine)["out"].item() == np.float32(np.e)
    read = pickle.loads(portable(OddError("un", "pickled")))
    assert isinstance(read, dn.BackendError)
    assert "OddError: unpickled" in str(read)


def test_the_line_of_what_is_in_a_loop(engine: dn.engines.Ray) -> None:
    def walk(x: Any, at: Any) -> Any:
        x = dn.mark(x * 2.0, "first")
        return dn.for_(x, dn.range(3), lambda x, i: x + dn.take(x, at + i))

    line = walk.__code__.co_firstlineno + 2
    x = dn.tensor([1.0, 2.0, 3.0])
    stages = pickle.loads(pickle.dumps(cut(walk, x, 0)))
    for runner in (dn.engines.Sequential(), engine):
        with dn.checks("index"), pytest.raises(dn.BoundsError) as raised:
            dn.graph.run(stages, [x, 1], engine=runner)
        assert str(raised.value) == (
            "take: index 3 on axis 0 of f32[3], it must be in -3..3\n"
            f"  in trip 2\n  in stage 1 of 2\n  at {__file__}:{line}"
        )
