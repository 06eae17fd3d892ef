"""Definitions that are compiled in the background, while the evaluator runs their first calls."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import textwrap
import threading
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pytest

import defn as dn
from support import needs_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Options of a compiler, the last two of which XLA's plugin refuses: the evaluator runs every call.
CPU = {"compiler": "cpu"}
PJRT = {"compiler": "pjrt", "client": "host"}
REFUSED = {**PJRT, "xla_cpu_no_such_flag": True}

with_pjrt = pytest.param(PJRT, marks=needs_plugin, id="pjrt")
with_refused = pytest.param(REFUSED, marks=needs_plugin, id="evaluated")
EACH = [pytest.param(CPU, id="cpu"), with_pjrt, with_refused]

X = np.float32([0.5, -1.0, 2.0])


def wait(fun: Any, options: dict[str, Any]) -> None:
    """Waits for the program of a function, or for the error that is expected."""
    if options is REFUSED:
        with pytest.raises(dn.OptionError, match="xla_cpu_no_such_flag"):
            fun.wait()
    else:
        fun.wait()


def in_background(fun: Any, options: dict[str, Any], **others: Any) -> Any:
    return dn.jit(fun, compile="background", **options, **others)


def phases(fun: Any, options: dict[str, Any]) -> Iterator[str]:
    """The first calls, then those after the compilation."""
    yield "before"
    wait(fun, options)
    yield "after"


@pytest.mark.parametrize("options", EACH)
def test_calls_before_and_after_are_those_of_the_program(options: dict[str, Any]) -> None:
    fun = in_background(lambda x, n: {"y": dn.exp(x) * n, "x": x}, options)
    for _ in phases(fun, options):
        for _ in range(3):
            result = fun(X, 2)
            np.testing.assert_allclose(result["y"].to_numpy(), 2 * np.exp(X), rtol=1e-6)
            assert result["y"].dtype == dn.tensor(X).dtype
            assert result["x"].to_list() == X.tolist()
    info = fun.cache_info()
    assert (info["hits"], info["misses"], info["compiling"]) == (5, 1, 0)


@pytest.mark.parametrize("options", [with_pjrt, with_refused])
def test_results_are_on_the_device(options: dict[str, Any]) -> None:
    fun = in_background(lambda x: dn.sin(x) + 1, options)
    place = dn.to_backend(**PJRT)
    for _ in phases(fun, options):
        for x in (X, dn.tensor(X, backend="cpu"), dn.tensor(X, backend=place)):
            result = fun(x)
            assert result.backend == place
            np.testing.assert_allclose(result.to_numpy(), np.sin(X) + 1, rtol=1e-6)


def test_on_the_cpu_results_are_the_evaluators_bits_at_any_time() -> None:
    def loss(w: Any, key: Any) -> Any:
        x, _ = dn.random.normal(key, shape=(64, 8))
        return dn.mean(dn.tanh(dn.dot(x, w)) ** 2)

    step = dn.value_and_grad(loss)
    w, key = np.linspace(-1, 1, 8, dtype=np.float32), dn.random.key(7)
    fun = in_background(step, CPU)
    want = dn.jit(step, compiler="cpu")(w, key)
    for _ in phases(fun, CPU):
        value, gradient = fun(w, key)
        assert value.to_numpy().tobytes() == want[0].to_numpy().tobytes()
        assert gradient.to_numpy().tobytes() == want[1].to_numpy().tobytes()


@pytest.mark.parametrize("options", EACH)
def test_random_numbers_and_gradients(options: dict[str, Any]) -> None:
    def loss(w: Any, key: Any) -> Any:
        x, _ = dn.random.uniform(key, shape=(16, 3))
        return dn.sum(dn.dot(x, w) ** 2)

    x = dn.random.uniform(dn.random.key(3), shape=(16, 3))[0].to_numpy().astype(np.float64)
    fun = in_background(dn.grad(loss), options)
    for _ in phases(fun, options):
        got = fun(X, dn.random.key(3)).to_numpy()
        np.testing.assert_allclose(got, 2 * x.T @ (x @ X), rtol=1e-5)


@pytest.mark.parametrize("options", EACH)
def test_donated_arguments_are_gone(options: dict[str, Any]) -> None:
    fun = in_background(lambda x, y: x + y, options, donate=0)
    place = "cpu" if options is CPU else dn.to_backend(**PJRT)
    for _ in phases(fun, options):
        x, y = dn.tensor(X, backend=place), dn.tensor(X, backend=place)
        assert fun(x, y).to_list() == (X + X).tolist()
        with pytest.raises(dn.BackendError, match=r"the tensor's memory was donated at .*test_b"):
            x.to_list()
        with pytest.raises(
            dn.BackendError, match=r"run: argument x is .* and its memory was donat"
        ):
            fun(x, y)
        assert y.to_list() == X.tolist()


@pytest.mark.parametrize("options", EACH)
def test_hooks_run_once_in_order(options: dict[str, Any]) -> None:
    seen: list[tuple[str, float]] = []

    def note(name: str) -> Any:
        return lambda value: seen.append((name, float(value)))

    def count(n: Any) -> Any:
        n = dn.hook(n, note("first"))
        n = dn.while_(n, lambda n: n > 0, lambda n: dn.hook(n, note("trip")) - 1)
        doubled = dn.runtime_call(dn.template((), "s32"), n, lambda n: np.int32(2 * int(n) + 8))
        return dn.hook(doubled, note("last"))

    fun = in_background(count, options)
    for _ in phases(fun, options):
        seen.clear()
        assert int(fun(2)) == 8
        assert seen == [("first", 2), ("trip", 2), ("trip", 1), ("last", 8)]


@pytest.mark.parametrize("options", EACH)
def test_an_error_of_a_hook_is_the_calls(options: dict[str, Any]) -> None:
    def refuse(value: Any) -> None:
        raise ValueError("no")

    fun = in_background(lambda x: dn.hook(x, refuse) + 1, options)
    for _ in phases(fun, options):
        with pytest.raises(ValueError, match="no"):
            fun(X)


@pytest.mark.parametrize("options", [pytest.param(CPU, id="cpu"), with_pjrt])
def test_checks_hold(options: dict[str, Any]) -> None:
    fun = in_background(lambda x, i: dn.take(dn.log(x), i), options)
    for _ in phases(fun, options):
        assert float(fun(np.float32([1.0, 1.0]), 7)) == 0.0, "the nearest"
        with dn.checks("index"), pytest.raises(dn.BoundsError, match="take: index 7"):
            fun(np.float32([1.0, 1.0]), 7)
        with dn.checks("nan"), pytest.raises(dn.NonFiniteError, match="log"):
            fun(np.float32([-1.0, 1.0]), 1)


@pytest.mark.parametrize("options", EACH)
def test_streams(options: dict[str, Any]) -> None:
    def total(chunk: Any, acc: Any) -> Any:
        return acc, acc + dn.sum(chunk)

    start = [dn.template((2,), "f32"), 0.0]
    with dn.stream(total, start, compile="background", **options) as stream:
        sent = np.arange(40, dtype=np.float32).reshape(20, 2)
        got = []
        for chunk in sent:
            stream.send(chunk)
            got.append(float(stream.recv()))
        assert got == [0.0, *np.cumsum(sent.sum(1))[:-1]]
        assert float(stream.done()) == sent.sum()


@pytest.mark.parametrize("options", EACH)
def test_definitions_inside_are_part_of_the_program(options: dict[str, Any]) -> None:
    inner = dn.defn(lambda x: x * 3, compile="background")
    forced = dn.jit(lambda x: x + 5, compile="background", on_conflict="force")

    def outer(x: Any) -> Any:
        return inner(x) + float(forced(1.0))

    fun = in_background(outer, options)
    for _ in phases(fun, options):
        assert fun(X).to_list() == (3 * X + 6).tolist()
    assert inner.cache_info()["misses"] == 0


@pytest.mark.parametrize("options", EACH)
def test_captured_tensors_are_read_at_each_call(options: dict[str, Any]) -> None:
    scale = dn.tensor(X)

    def times(x: Any) -> Any:
        return x * scale

    fun = in_background(times, options)
    for _ in phases(fun, options):
        scale = dn.tensor(X)
        assert fun(X).to_list() == (X * X).tolist()
        scale = dn.tensor(2 * X)
        assert fun(X).to_list() == (2 * X * X).tolist()


def test_compile_returns_while_the_program_compiles() -> None:
    made = dn.compile(dn.sin, [dn.template((3,), "f32")], compile="background")
    np.testing.assert_allclose(made(X).to_numpy(), np.sin(X), rtol=1e-6)
    made.wait()
    assert made.ready()
    np.testing.assert_allclose(made.run_each([[X]])[0].to_numpy(), np.sin(X), rtol=1e-6)
    assert dn.compile(dn.sin, [dn.template((3,), "f32")]).ready()


@needs_plugin
def test_what_is_asked_of_a_program_waits_for_it() -> None:
    fun = in_background(lambda x: dn.exp(x) + 1, CPU)
    fun(X)
    assert fun.memory(X).results == 12
    fun = in_background(lambda x: dn.exp(x) + 2, CPU)
    fun(X)
    assert fun.asm(X, instructions="avx2").startswith("nest: ")
    made = dn.compile(dn.exp, [dn.template((3,), "f32")], compile="background", **PJRT)
    loaded = dn.pjrt.deserialize(made.serialize(), trust=True, client="host")
    np.testing.assert_allclose(loaded(X).to_numpy(), np.exp(X), rtol=1e-6)


def test_the_option_has_defaults_and_is_part_of_the_signature() -> None:
    fun = dn.jit(lambda x: x + 1)
    for _ in range(2):
        with dn.options(compile="background"):
            assert fun(1.0).item() == 2.0
        assert fun(1.0).item() == 2.0
    assert fun.explain()[1] == 'the option compile changed from "background" to "now"'
    assert fun.cache_info()["misses"] == 2
    fun.wait()
    with dn.options(compile="background"):
        now = dn.jit(lambda x: x + 2, compile="now")
        assert now(1.0).item() == 3.0
        assert "compile" in dn.default_options()


def test_the_log_says_how(caplog: pytest.LogCaptureFixture) -> None:
    fun = in_background(lambda x: x + 3, CPU)
    with caplog.at_level(logging.INFO, "defn"), dn.options(log_compiles=True):
        fun(1.0)
    assert "ms and is compiled in the background: nothing was compiled" in caplog.text


@needs_plugin
def test_a_failure_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def wave(x: Any) -> Any:
        return dn.sin(x)

    fun = in_background(wave, REFUSED)
    with caplog.at_level(logging.WARNING, "defn"):
        np.testing.assert_allclose(fun(X).to_numpy(), np.sin(X), rtol=1e-6)
        wait(fun, REFUSED)
        for _ in range(3):
            np.testing.assert_allclose(fun(X).to_numpy(), np.sin(X), rtol=1e-6)
        (record,) = caplog.records
        assert "wave was not compiled in the background: compiler" in record.getMessage()
        assert "xla_cpu_no_such_flag" in record.getMessage()
        assert record.getMessage().endswith(
            "Its calls go on with the evaluator, slower and with the same results."
        )
        assert fun.cache_info()["compiling"] == 0
        made = dn.compile(wave, [dn.template((3,), "f32")], compile="background", **REFUSED)
        wait(made, REFUSED)
        assert not made.ready()
        made(X)
        made(X)
        assert len(caplog.records) == 2, "once for each program"
        with pytest.raises(dn.OptionError, match="xla_cpu_no_such_flag"):
            made.serialize()


def test_other_values_are_refused() -> None:
    text = r"compile is '?\"?later'?\"?, .*\"now\" or \"background\""
    with pytest.raises(dn.OptionError, match=text):
        dn.jit(dn.sin, compile="later")  # type: ignore[call-overload]
    with pytest.raises(dn.OptionError, match=text):
        dn.compile(dn.sin, [1.0], compile="later")  # type: ignore[arg-type]
    with pytest.raises(dn.OptionError, match=text), dn.options(compile="later"):
        pass
    with pytest.raises(dn.OptionError, match="compile is 1, "):
        dn.default_options(compile=1)
    with pytest.raises(dn.OptionError, match="unknown option"):
        dn.debug_expr(dn.sin, compiles="background")


def test_mistakes_are_told_by_the_call() -> None:
    fun = in_background(lambda x, y: x + y, CPU)
    with pytest.raises(dn.ShapeError, match=r"add: shapes \[3\] and \[2\]"):
        fun(X, X[:2])
    fun = in_background(dn.sum, CPU, donate=0)
    with pytest.raises(dn.CompileError, match=r"donate: argument tensor is f32.3., a result"):
        fun(dn.tensor(X))
    fun = in_background(lambda x: 1 / 0, CPU)
    with pytest.raises(ZeroDivisionError):
        fun(X)


def test_a_compiler_in_python_is_refused() -> None:
    class Own(dn.Compiler):
        def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
            return dn.compilers.get("evaluator").compile(key, vars, fun, options)

    text = 'the compiler "Own" only compiles at once'
    with pytest.raises(dn.CompileError, match=text):
        dn.jit(dn.sin, compiler=Own(), compile="background")(X)
    with pytest.raises(dn.CompileError, match=text):
        dn.compile(dn.sin, [X], compiler=Own(), compile="background")


def test_the_evaluator_has_nothing_to_wait_for() -> None:
    made = dn.compile(dn.sin, [X], compiler="evaluator", compile="background")
    assert made.ready()
    np.testing.assert_allclose(made(X).to_numpy(), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("options", EACH)
def test_threads_call_during_the_switch(options: dict[str, Any]) -> None:
    fun = in_background(lambda x: dn.cumulative_sum(dn.sin(x) * 2), options)
    want = np.cumsum(2 * np.sin(X))
    begin, wrong = threading.Barrier(16), []

    def work() -> None:
        begin.wait()
        for _ in range(30):
            if not np.allclose(fun(X).to_numpy(), want, rtol=1e-5):
                wrong.append(1)
        wait(fun, options)
        if not np.allclose(fun(X).to_numpy(), want, rtol=1e-5):
            wrong.append(2)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert fun.cache_info()["misses"] == 1


@pytest.mark.parametrize("options", [pytest.param(CPU, id="cpu"), with_pjrt])
def test_a_function_is_dropped_while_it_is_compiled(options: dict[str, Any]) -> None:
    def make(n: int) -> weakref.ref[Any]:
        fun = in_background(lambda x: dn.sin(x) + n, options)
        fun(X)
        return weakref.ref(fun)

    refs = [make(n) for n in range(5)]
    gc.collect()
    assert [ref() for ref in refs] == [None] * 5


# A program that XLA compiles for seconds, and our compiler for a while.
LONG = """
import os, sys, time
import numpy as np
import defn as dn

def deep(x):
    for n in range(400):
        # Errors shrink from step to step, so that every compiler has the same result.
        x = dn.sin(dn.dot(x, x) / 100 + n) if n % 2 else dn.cumulative_sum(dn.sort(x, axis=0)) / 9
    return x

options = {"compiler": sys.argv[1]}
if sys.argv[1] == "pjrt":
    options["cache_dir"] = sys.argv[2]
deep = dn.jit(deep, compile="background", **options)
x = dn.tensor(np.ones((4, 4), np.float32))
"""


def run(compiler: str, folder: Any, code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LONG + textwrap.dedent(code), compiler, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


COMPILERS = ["cpu", pytest.param("pjrt", marks=needs_plugin)]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("leave", ["", "sys.exit(0)", "deep(x)\nraise SystemExit(0)"])
def test_the_process_ends_while_a_program_is_compiled(
    compiler: str, leave: str, tmp_path: Any
) -> None:
    code = "print(deep(x).shape, flush=True)\n" + leave
    assert run(compiler, tmp_path, code) == ["(4, 4)"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_fork_while_a_program_is_compiled(compiler: str, tmp_path: Any) -> None:
    code = """
        want = deep(x).to_numpy()
        y = np.ones((4, 4), np.float32)
        child = os.fork()
        if child == 0:
            try:
                for _ in range(2):
                    assert np.array_equal(deep(y).to_numpy(), want)
                deep.wait()
                print("waited", flush=True)
                assert np.allclose(deep(y).to_numpy(), want, rtol=1e-3)
                print("same", flush=True)
            except dn.BackendError as error:
                print("forked", "fork" in str(error), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        deep.wait()
        assert np.allclose(deep(x).to_numpy(), want, rtol=1e-3)
        print("parent", deep.cache_info()["compiling"], flush=True)
    """
    in_child = ["waited", "same"] if compiler == "cpu" else ["forked True"]
    assert run(compiler, tmp_path, code) == [*in_child, "parent 0"]


@needs_plugin
def test_a_wait_is_interrupted(tmp_path: Any) -> None:
    code = """
        import signal, threading
        deep(x)
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        try:
            while True:
                deep.wait()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        deep.wait()
        print(deep(x).shape)
    """
    assert run("pjrt", tmp_path, code) == ["interrupted", "(4, 4)"]
