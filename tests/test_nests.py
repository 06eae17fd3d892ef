"""Loop nests in machine code: their text, and processes that may not have code or that fork."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import logging
import os
import pathlib
import platform
import re
import signal
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn
from defn import errors

if sys.platform != "win32":
    import resource

# These tests are about the CPU's compiler, whatever the test run uses.
pytestmark = pytest.mark.usefixtures("no_options")

INSTRUCTIONS = ["avx512", "avx2", "neon"]
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these calls")

RNG = np.random.default_rng(5)
WIDE = RNG.normal(size=(61, 333)).astype("float32")
LONG = RNG.normal(size=20_011).astype("float32")
WHOLE = RNG.integers(-(2**31), 2**31, size=9_001)


def twice_and_one(x: dn.Tensor) -> dn.Tensor:
    return x * 2 + 1


def softmax(x: dn.Tensor) -> dn.Tensor:
    weights = dn.exp(x - dn.reduce_max(x, axes=1, keep_axes=True))
    return weights / dn.sum(weights, axes=1, keep_axes=True)


def layer_norm(x: dn.Tensor) -> dn.Tensor:
    centered = x - dn.mean(x, axes=1, keep_axes=True)
    return centered / dn.sqrt(dn.mean(centered * centered, axes=1, keep_axes=True) + 1e-5)


def chain(x: dn.Tensor) -> dn.Tensor:
    return dn.exp(-x * x) + dn.tanh(dn.exp(x / 3) - 1)


def integers(x: dn.Tensor) -> dn.Tensor:
    y = x * 77 + (x >> 3)
    return dn.select(y > 5, y ^ x, dn.minimum(y, -x))


def narrow(x: dn.Tensor) -> dn.Tensor:
    return (x.as_type("f16") * 3).as_type("f32") + (x.as_type("bf16") / 3).as_type("f32")


Function = Callable[[dn.Tensor], dn.Tensor]

PROGRAMS: dict[str, tuple[Function, np.ndarray]] = {
    "twice and one": (twice_and_one, LONG),
    "softmax": (softmax, WIDE),
    "layer norm": (layer_norm, WIDE),
    "chain": (chain, LONG),
    "integers": (integers, WHOLE),
    "short integers": (integers, WHOLE.astype("int32")),
    "narrow floats": (narrow, LONG),
}


def digest(value: dn.Tensor) -> str:
    return hashlib.sha256(value.to_numpy().tobytes()).hexdigest()


def again(function: Function) -> Function:
    """Another function that computes the same."""
    return lambda x: function(x)


def scaled(function: Function, by: int) -> Function:
    return lambda x: function(x) * by


def results() -> dict[str, str]:
    """What the programs compute here, twice: the second run of each has what the first has made."""
    found = {}
    for name, (function, array) in PROGRAMS.items():
        compiled, x = dn.jit(function, compiler="cpu"), dn.tensor(array)
        found[name] = digest(compiled(x))
        assert digest(compiled(x)) == found[name]
    return found


# The text of nests.


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_the_text_has_the_nest_and_its_code(instructions: str) -> None:
    f = dn.jit(twice_and_one)
    text = f.asm(dn.tensor(np.ones((3, 40), "float32")), instructions=instructions)
    lines = text.splitlines()
    assert lines[0] == "nest: add f32[3][40]"
    # The IR is the same for all instruction sets.
    begin, end = lines.index("function(buffers 3, params 2, kernels 0)"), lines.index("")
    nest = [re.sub(r"%\d+", "%", line.strip()) for line in lines[begin + 1 : end]]
    assert nest == [
        "% = param 0 : index",
        "% = param 1 : index",
        "% = 120 : index",
        "lanes %",
        "% = load b0[0 + lane * 4] : <f32>",
        "% = 2.0 : f32",
        "% = mul % % : <f32>",
        "% = 1.0 : f32",
        "% = add % % : <f32>",
        "store % to b1[0 + lane * 4]",
        "end",
    ]
    found = re.search(r"machine code: (\d+) bytes\n", text)
    assert found is not None
    code = [line for line in lines if re.fullmatch(r"  [0-9a-f]{2}( [0-9a-f]{2})*", line)]
    assert len("".join(code).split()) == int(found[1])
    # The vectors have as many lanes as the registers have room for.
    lanes = {"avx512": 16, "avx2": 8, "neon": 4}[instructions]
    assert f"mul f32x{lanes}" in text.lower()
    assert f.cache_info()["size"] <= 1


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_a_softmax_is_one_nest(instructions: str) -> None:
    text = dn.jit(softmax).asm(dn.tensor(WIDE), instructions=instructions)
    assert text.count("nest: ") == 1
    assert text.count("machine code: ") == 1
    # The greatest of each row, the sum of the exponentials, and the quotients.
    assert text.count("    lanes ") == 3
    reductions = re.findall(r"accumulator (\w+) of (\d+) lanes", text)
    assert reductions == [("max", "64"), ("add", "64")]


def test_nothing_runs() -> None:
    ran = []

    def function(x: dn.Tensor) -> dn.Tensor:
        return dn.hook(x * 2, lambda value: ran.append(value)) + 1

    f = dn.jit(function)
    x = dn.tensor(LONG)
    assert "nest: " in f.asm(x)
    assert not ran
    f(x)
    assert len(ran) == 1


def test_the_text_is_for_this_machine_by_default() -> None:
    f, x = dn.jit(softmax), dn.tensor(WIDE)
    known = dn.config()["machine_code"]
    if known is None:
        assert "no machine code: the portable executor runs it" in f.asm(x)
    else:
        assert f.asm(x) == f.asm(x, instructions=known)


def test_instructions_that_nobody_knows() -> None:
    f = dn.jit(twice_and_one)
    with pytest.raises(errors.CompileError, match='"sse" is unknown, it must be one of "avx512"'):
        f.asm(dn.tensor(1.0), instructions="sse")
    with pytest.raises(TypeError, match="'int' object is not an instance of 'str'"):
        f.asm(dn.tensor(1.0), instructions=512)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [32_768, 32_771])
def test_columns_larger_than_the_caches(columns: int) -> None:
    """Threads divide the columns, and results go past the caches: at whole lines alone."""
    x = dn.tensor(RNG.normal(size=(256, columns)).astype("float32"))

    def normalised(x: dn.Tensor) -> dn.Tensor:
        apart = x - dn.mean(x, axes=0)
        return apart / dn.sqrt(dn.mean(apart * apart, axes=0) + 1e-5)

    found = dn.jit(normalised)(x)
    assert found.to_numpy().tobytes() == normalised(x).to_numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 5, 16, 63, 64, 100, 255, 257, 300])
def test_one_nan_anywhere_makes_the_extremes_of_its_row_nan(length: int, dtype: str) -> None:
    """Row `i` has NaN at `i`, the last one nowhere; zeros of either sign are kept as they are."""
    x = np.zeros((length + 1, length), dtype)
    x[:, ::2] = -0.0
    x[-1] = RNG.normal(size=length)
    x[np.arange(length), np.arange(length)] = np.nan

    def extremes(x: Any) -> tuple[Any, ...]:
        rows = (x, -x, x * 2)
        return tuple(f(row, axes=1) for row in rows for f in (dn.reduce_min, dn.reduce_max))

    want = [f(row, axis=1) for row in (x, -x, x * 2) for f in (np.min, np.max)]
    compiled = dn.jit(extremes, compiler="cpu")
    for results in (extremes(dn.tensor(x)), *(compiled(x) for _ in range(9))):
        for result, wanted in zip(results, want, strict=True):
            np.testing.assert_array_equal(np.asarray(result), wanted)


def test_compilers_without_nests_have_no_text() -> None:
    f = dn.jit(twice_and_one, compiler="evaluator")
    with pytest.raises(errors.CompileError, match='compile with "cpu"'):
        f.asm(dn.tensor(1.0))


# What a process runs.


def test_the_configuration() -> None:
    found = dn.config()
    assert set(found) == {"threads", "machine_code", "machine_code_refused"}
    assert found["threads"] == dn.get_threads()
    assert found["machine_code"] in (*INSTRUCTIONS, None)
    assert (found["machine_code"] is None) == isinstance(found["machine_code_refused"], str)


def prctl(option: int, *arguments: Any) -> int:
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
    return call(option, *arguments, *(4 - len(arguments)) * [0])


def without_memory_files() -> None:
    """Make the system refuse ``memfd_create`` from now on, as sandboxes do."""
    memfd_create = {"x86_64": (0xC000003E, 319), "aarch64": (0xC00000B7, 279)}
    architecture, number = memfd_create[platform.machine()]
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 1  # EPERM
    program = [
        (load, 0, 0, 4),
        (jump_if_equal, 0, 3, architecture),
        (load, 0, 0, 0),
        (jump_if_equal, 0, 1, number),
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]
    text = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    kept = ctypes.create_string_buffer(text)
    whole = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(kept))
    kept_whole = ctypes.create_string_buffer(whole)
    assert prctl(38, 1) == 0, "PR_SET_NO_NEW_PRIVS"
    assert prctl(22, 2, ctypes.addressof(kept_whole)) == 0, "PR_SET_SECCOMP"


def with_small_files() -> None:
    """Limit the size of files, which those in memory are, too."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, most))


def without_new_executables() -> None:
    """No mapping that was writable can become executable: ``PR_SET_MDWE``."""
    assert prctl(65, 1) == 0, "PR_SET_MDWE"


def as_it_is() -> None:
    """Change nothing."""


def knows_mdwe() -> bool:
    return sys.platform == "linux" and prctl(66) >= 0


def report(change: str) -> None:
    """Change the process, compile, and print what happened: the main function of a child."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger("defn").addHandler(handler)
    globals()[change]()
    found = {
        "results": results(),
        "config": dn.config(),
        "log": [(record.levelname, record.getMessage()) for record in records],
    }
    print(json.dumps(found))


def run(code: str, **environment: str) -> str:
    """What a new process prints that runs code with this file as ``t``."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEFN_")}
    here = str(pathlib.Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_nests as t\n{code}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-X", "faulthandler", "-c", code],
        env={**clean, **environment, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def reported(change: str, **environment: str) -> dict[str, Any]:
    return json.loads(run(f"t.report({change!r})", **environment))


@ON_LINUX
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("without_memory_files", "the system refuses memfd_create"),
        ("with_small_files", "files of the process are limited to less than code needs"),
    ],
)
def test_a_process_without_executable_memory(change: str, reason: str) -> None:
    found = reported(change)
    assert found["config"]["machine_code"] is None
    assert found["config"]["machine_code_refused"] == reason
    # One line, however many programs are compiled.
    assert len(found["log"]) == 1
    level, message = found["log"][0]
    assert level == "WARNING"
    assert message.startswith(f"no machine code can be generated: {reason}. ")
    assert found["results"] == results()


@ON_LINUX
def test_the_line_is_seen_without_a_configuration_of_logging() -> None:
    code = """
t.without_memory_files()
f = t.dn.jit(t.softmax, compiler="cpu")
import contextlib, io
with contextlib.redirect_stderr(io.StringIO()) as seen:
    f(t.dn.tensor(t.WIDE))
    t.dn.jit(t.chain, compiler="cpu")(t.dn.tensor(t.LONG))
print(seen.getvalue(), end="")
print("portable executor runs it" in f.asm(t.dn.tensor(t.WIDE)))
"""
    line, asm, rest = run(code).split("\n")
    assert line.startswith("no machine code can be generated: the system refuses memfd_create. ")
    assert (asm, rest) == ("False", "")


@pytest.mark.skipif(not knows_mdwe(), reason="the kernel has no PR_SET_MDWE")
def test_a_process_that_may_make_nothing_executable() -> None:
    assert reported("without_new_executables") == reported("as_it_is")


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the levels are those of x86-64"
)
@pytest.mark.parametrize("simd", ["avx2", "portable"])
def test_the_instructions_that_the_environment_allows(simd: str) -> None:
    found, whole = reported("as_it_is", DEFN_SIMD=simd), reported("as_it_is")
    best = whole["config"]["machine_code"]
    assert found["config"]["machine_code"] == (None if simd == "portable" else best and "avx2")
    assert found["log"] == []
    if simd == "portable":
        reason = "no code is generated for the instruction set of the kernels"
        assert found["config"]["machine_code_refused"] == reason
    assert found["results"] == whole["results"]


# Forks and threads.


def forks(count: int) -> None:
    """Fork while threads compile; every child runs old code and compiles new: a main function."""
    warnings.simplefilter("ignore", errors.RecompileWarning)
    old, x = dn.jit(softmax, compiler="cpu"), dn.tensor(WIDE)
    want = results()
    assert digest(old(x)) == want["softmax"]
    stop = threading.Event()
    failures: list[str] = []

    def compile_once(number: int) -> None:
        y = dn.tensor(WIDE[:, : 50 + number])
        f = dn.jit(scaled(softmax, next_number()), compiler="cpu")
        if digest(f(y)) != digest(f(y)):
            failures.append("a thread has other bits")

    def compile_on(number: int) -> None:
        while not stop.is_set():
            compile_once(number)

    numbers = iter(range(1, 1 << 30))
    lock = threading.Lock()

    def next_number() -> int:
        with lock:
            return next(numbers)

    # What PyO3 makes at its first use is never there for a child that is forked meanwhile.
    for number in range(3):
        compile_once(number)
    threads = [threading.Thread(target=compile_on, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for number in range(count):
        child = os.fork()
        if child == 0:
            # A child that waits for a thread of its parent ends.
            signal.alarm(60)
            same = digest(old(x)) == want["softmax"]
            same = same and results() == want
            f = dn.jit(scaled(chain, number), compiler="cpu")
            same = same and digest(f(x)) == digest(dn.jit(f.fun, compiler="evaluator")(x))
            os._exit(0 if same else 1)
        _, status = os.waitpid(child, 0)
        if status != 0:
            failures.append(f"a child ended with {status}")
    stop.set()
    for thread in threads:
        thread.join()
    if results() != want:
        failures.append("the parent has other bits")
    print(failures)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_children_of_a_process_that_compiles() -> None:
    assert run("t.forks(20)") == "[]\n"


def at_once(jobs: list[Callable[[], None]]) -> None:
    """Run jobs on threads that begin together; the first failure is raised."""
    start, failures = threading.Barrier(len(jobs)), []

    def work(job: Callable[[], None]) -> None:
        try:
            start.wait()
            job()
        except BaseException as error:  # whatever fails a thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


def test_threads_compile_equal_and_other_functions() -> None:
    want = {name: digest(dn.jit(f, compiler="cpu")(a)) for name, (f, a) in PROGRAMS.items()}
    evaluated = {
        name: digest(dn.jit(f, compiler="evaluator")(a)) for name, (f, a) in PROGRAMS.items()
    }
    assert want == evaluated

    def job(number: int) -> Callable[[], None]:
        def work() -> None:
            names = list(PROGRAMS)
            for trip in range(6):
                # Half of the threads compile the same function, the others all of them.
                name = names[trip if number % 2 else (trip + number) % len(names)]
                function, array = PROGRAMS[name]
                compiled = dn.jit(again(function), compiler="cpu")
                for _ in range(3):
                    assert digest(compiled(array)) == want[name], name
                # One that no other thread has.
                own = dn.jit(scaled(function, 8 * trip + number), compiler="cpu")
                other = dn.jit(own.fun, compiler="evaluator")
                assert digest(own(array)) == digest(other(array))

        return work

    at_once([job(number) for number in range(8)])


def test_programs_go_while_others_run_equal_ones() -> None:
    want = {name: digest(dn.jit(f, compiler="cpu")(a)) for name, (f, a) in PROGRAMS.items()}
    stop = threading.Event()

    def drop() -> None:
        try:
            for _ in range(15):
                for name, (function, array) in PROGRAMS.items():
                    compiled = dn.jit(again(function), compiler="cpu")
                    assert digest(compiled(array)) == want[name], name
                    del compiled
                gc.collect()
        finally:
            stop.set()

    def keep(name: str) -> Callable[[], None]:
        def work() -> None:
            function, array = PROGRAMS[name]
            compiled = dn.jit(again(function), compiler="cpu")
            while not stop.is_set():
                assert digest(compiled(array)) == want[name], name

        return work

    at_once([drop, drop, keep("softmax"), keep("chain"), keep("integers")])


def test_results_of_early_passes_lie_over_nothing_that_is_read_again() -> None:
    def weights(a: dn.Tensor, b: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
        scores = (a @ b) * 0.125
        shifted = dn.exp(scores - dn.reduce_max(scores, axes=1, keep_axes=True))
        return scores, shifted / dn.sum(shifted, axes=1, keep_axes=True)

    a, b = (dn.tensor(RNG.normal(size=sizes).astype("float32")) for sizes in ((60, 8), (8, 6000)))
    compiled = dn.jit(weights)(a, b)
    evaluated = dn.jit(weights, compiler="evaluator")(a, b)
    for got, want in zip(compiled, evaluated, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_results_of_groups_lie_over_no_elements() -> None:
    """They may have as many bytes as the elements, which others are still to be reduced from."""
    images = RNG.integers(0, 255, (64, 4, 2048)).astype("uint8")
    best = dn.jit(lambda x: dn.argmax(dn.sort(x, axis=2), axis=1))(images)
    np.testing.assert_array_equal(np.asarray(best), np.sort(images, 2).argmax(1))
    columns = RNG.integers(0, 255, (8, 65_536)).astype("uint8")
    total = dn.jit(lambda x: dn.sum(dn.as_type(dn.sort(x, axis=1), "f64"), axes=0))(columns)
    np.testing.assert_array_equal(np.asarray(total), np.sort(columns, 1).sum(0, dtype="f8"))


# The modes of the processor.


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="the modes of another processor or library have another form",
)
@pytest.mark.parametrize("mode", [0x8040, 0x6000, 0xE040], ids=["flush", "truncate", "both"])
def test_modes_that_another_library_has_set(mode: int) -> None:
    """Results are the same, whatever runs them, and the modes are as before."""

    def products(x: dn.Tensor) -> dn.Tensor:
        return dn.exp(x * 0.5) * 1e-40 + x * 1e-30 * 1e-10 + x / 3

    def sums(x: dn.Tensor) -> dn.Tensor:
        return dn.sum(x * 1e-40, axes=1)

    def found(run: Callable[[Function, dn.Tensor], dn.Tensor]) -> list[str]:
        arrays = (WIDE[:3], WIDE)
        return [digest(run(f, dn.tensor(a))) for f in (products, sums) for a in arrays]

    def compiled(compiler: str) -> list[str]:
        # The first run is in the portable executor, the last one in machine code.
        jitted = {f: dn.jit(again(f), compiler=compiler) for f in (products, sums)}
        first = found(lambda f, x: jitted[f](x))
        for _ in range(9):
            assert found(lambda f, x: jitted[f](x)) == first
        return first

    want = found(lambda f, x: f(x))
    libm = ctypes.CDLL("libm.so.6")
    before = (ctypes.c_ubyte * 32)()
    assert libm.fegetenv(before) == 0
    # MXCSR is the last word of the environment.
    changed = (ctypes.c_ubyte * 32)(*before)
    changed[28:32] = list((int.from_bytes(before[28:32], "little") | mode).to_bytes(4, "little"))
    assert libm.fesetenv(changed) == 0
    try:
        eager = found(lambda f, x: f(x))
        evaluated, machine = compiled("evaluator"), compiled("cpu")
        after = (ctypes.c_ubyte * 32)()
        assert libm.fegetenv(after) == 0
    finally:
        assert libm.fesetenv(before) == 0
    assert eager == want
    assert evaluated == want
    assert machine == want
    assert int.from_bytes(after[28:32], "little") & 0xFFC0 == (
        int.from_bytes(changed[28:32], "little") & 0xFFC0
    )


def test_a_long_chain_of_values_that_are_read_several_times() -> None:
    """Counted for each use, the first of them would cost more than a number holds."""

    def chain(x: Any) -> Any:
        for _ in range(80):
            x = 0.5 * x * (x + 1.0)
        return x

    x = np.linspace(-1.0, 1.0, 100)
    np.testing.assert_allclose(dn.jit(chain)(x).to_numpy(), chain(x), rtol=1e-13, atol=1e-300)
