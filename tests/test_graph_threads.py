"""The engine that runs stages on threads."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import defn as dn
from defn.engines.threads import _Job

SECONDS = 20.0


class Meeting(dn.Compiler):
    """Compiles like the evaluator; each run first waits for others at a barrier."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties)

    def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
        run = dn.compilers.get("evaluator").compile(key, vars, fun, options)

        def meet(args_list: Any) -> Any:
            self.barrier.wait(SECONDS)
            return run(args_list)

        return meet


def diamond(x: Any) -> Any:
    return dn.multiply(dn.cos(x), dn.exp(x))


def chain(x: Any) -> Any:
    return dn.exp(dn.cos(dn.sin(dn.negate(x))))


def cut(fun: Callable[..., Any], *args: Any) -> list[dn.graph.Stage]:
    return dn.graph.split(dn.debug_expr(fun)(*args), dn.graph.every(1))


def test_independent_stages_run_side_by_side() -> None:
    stages = cut(diamond, 1.0)
    assert dn.graph.Plan.of(stages).waits == ((), (), (0, 1))
    compiler = Meeting(2)
    options = {0: {"compiler": compiler}, 1: {"compiler": compiler}}
    engine = dn.engines.Threads(2)
    result = dn.graph.run(stages, [1.0], engine=engine, stage_options=options)
    assert result.item() == dn.graph.run(stages, [1.0]).item()


def test_sets_are_under_way_side_by_side() -> None:
    stages = cut(chain, 1.0)
    compiler = Meeting(2)
    # The first stage of one set waits until the last stage of another begins.
    options = {0: {"compiler": "evaluator"}, 3: {"compiler": compiler}}
    engine = dn.engines.Threads(2)
    args_list = [[0.5], [1.5], [2.5], [3.5]]
    results = list(dn.graph.run_each(stages, args_list, engine=engine, stage_options=options))
    assert [r.item() for r in results] == [dn.graph.run(stages, args).item() for args in args_list]


def test_no_more_sets_than_fit_are_begun() -> None:
    stages = cut(chain, 1.0)
    begun: list[int] = []

    def sets() -> Iterator[list[float]]:
        for number in range(6):
            begun.append(number)
            yield [float(number)]

    results = dn.graph.run_each(stages, sets(), engine=dn.engines.Threads(3, maxsize=2))
    assert begun == []
    for taken, _ in enumerate(results):
        assert len(begun) <= taken + 2
    assert begun == list(range(6))


@pytest.mark.parametrize("workers", [1, 3])
def test_effects_are_in_order(workers: int) -> None:
    seen: list[tuple[str, float]] = []

    def fun(x: Any) -> Any:
        a = dn.hook(dn.sin(x), lambda v: seen.append(("a", v.item())))
        b = dn.hook(dn.cos(x), lambda v: seen.append(("b", v.item())))
        return dn.exp(a) + dn.exp(b)

    stages = dn.graph.split(dn.debug_expr(fun)(1.0), dn.graph.every(1))
    args_list = [[float(number)] for number in range(8)]
    expected = [r.item() for r in dn.graph.run_each(stages, args_list)]
    in_order, seen[:] = list(seen), []
    engine = dn.engines.Threads(workers)
    assert [r.item() for r in dn.graph.run_each(stages, args_list, engine=engine)] == expected
    assert seen == in_order
    assert len(seen) == 16


def failing_at(number: float) -> Callable[[Any], Any]:
    def fun(x: Any) -> Any:
        def look(value: Any) -> None:
            if value.item() == number:
                raise ValueError("not this one")

        return dn.exp(dn.hook(dn.negate(x), look))

    return fun


def test_an_error_is_raised_where_its_result_would_be() -> None:
    stages = dn.graph.split(dn.debug_expr(failing_at(-2.0))(1.0), dn.graph.every(1))
    engine = dn.engines.Threads(2)
    results = dn.graph.run_each(stages, ([float(n)] for n in range(9)), engine=engine)
    np.testing.assert_allclose([next(results).item(), next(results).item()], np.exp([0.0, -1.0]))
    with pytest.raises(ValueError, match="not this one") as raised:
        next(results)
    assert raised.value.__notes__ == ["in stage 1 of 3"]
    assert list(results) == []
    # The engine, the stages and the arguments can be used again.
    assert dn.graph.run(stages, [1.0], engine=engine).item() == np.float32(np.exp(-1.0))
    assert not [t for t in threading.enumerate() if t.name == "defn-stages"]


def test_wrong_arguments_are_told_after_the_results_before_them() -> None:
    stages = cut(chain, 1.0)
    results = dn.graph.run_each(stages, [[1.0], [dn.iota((2,))]], engine=dn.engines.Threads(2))
    assert next(results).item() == dn.graph.run(stages, [1.0]).item()
    with pytest.raises(dn.ShapeError, match=r"argument args\[0\] is s32\[2\]"):
        next(results)


def test_an_error_in_a_thread_has_the_users_line() -> None:
    stages = cut(lambda x: dn.log(dn.negate(x)), 1.0)
    with dn.checks("nan"), pytest.raises(dn.Error) as raised:
        dn.graph.run(stages, [1.0], engine=dn.engines.Threads(2))
    *_, stage, line = str(raised.value).splitlines()
    assert stage == "  in stage 1 of 2"
    assert line.startswith("  at ")
    assert "test_graph_threads.py" in line


def test_options_of_the_context_hold_in_threads() -> None:
    stages = cut(lambda: dn.iota((2,)) + 1)
    backend = dn.backends.NumPyBackend()
    with dn.options(backend=backend):
        result = dn.graph.run(stages, [], engine=dn.engines.Threads(1))
    assert result.backend is backend


def test_an_iterator_that_is_left_ends_its_threads() -> None:
    stages = cut(chain, 1.0)
    results = dn.graph.run_each(
        stages, ([float(n)] for n in range(1000)), engine=dn.engines.Threads(2)
    )
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "defn-stages"]


def test_ctrl_c_ends_the_wait() -> None:
    program = """
import threading, time
import defn as dn

class Slow(dn.Compiler):
    def compile(self, key, vars, fun, options):
        run = dn.compilers.get("evaluator").compile(key, vars, fun, options)
        def slow(args_list):
            print("begun", flush=True)
            time.sleep(2)
            return run(args_list)
        return slow

stages = dn.graph.split(dn.debug_expr(lambda x: dn.sin(x))(1.0), dn.graph.every(1))
try:
    dn.graph.run(stages, [1.0], engine=dn.engines.Threads(2), compiler=Slow())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - start < 1.5
        assert child.wait(SECONDS) == 0


def test_ctrl_c_leaves_nothing_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt may arrive between taking the lock and the block that releases it."""
    begin = _Job.begin

    def interrupted(job: _Job, number: int, tensors: Sequence[dn.Tensor]) -> None:
        begin(job, number, tensors)
        job.changed.acquire()
        raise KeyboardInterrupt

    monkeypatch.setattr(_Job, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dn.graph.run(cut(chain, 1.0), [1.0], engine=dn.engines.Threads(2))
    for thread in threading.enumerate():
        if thread.name == "defn-stages":
            thread.join(SECONDS)
            assert not thread.is_alive()


def test_a_process_ends_with_an_iterator_that_is_left() -> None:
    program = """
import defn as dn
stages = dn.graph.split(dn.debug_expr(lambda x: dn.sin(x))(1.0), dn.graph.every(1))
results = dn.graph.run_each(stages, [[1.0]] * 9, engine=dn.engines.Threads(2))
next(results)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS)


def test_numbers_of_threads() -> None:
    assert repr(dn.engines.Threads(3)) == "Threads(3, maxsize=3)"
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(dn.OptionError, match="an int from 1 on is required"):
            dn.engines.Threads(wrong)  # type: ignore[arg-type]
