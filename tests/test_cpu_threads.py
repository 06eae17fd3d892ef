"""The number of CPU threads that share a call: equal bits for any number, and ways to set it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import defn as dn

NUMBERS = (1, 2, 7)

# These tests are about the CPU, whatever backend the test run uses.
pytestmark = pytest.mark.usefixtures("no_options")


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = dn.set_threads()
    dn.set_threads(before)
    yield
    dn.set_threads(before)


RNG = np.random.default_rng(7)
WIDE = RNG.normal(size=(150, 803)).astype("float32")
LONG = RNG.normal(size=200_007).astype("float32")
MANY = RNG.normal(size=900_000).astype("float32")
SQUARE = RNG.normal(size=(3, 70, 70))
PICTURES = RNG.normal(size=(5, 6, 41, 43)).astype("float32")
KERNELS = RNG.normal(size=(8, 6, 3, 3)).astype("float32")
WHOLE = RNG.integers(-1000, 1000, size=(300, 151))
PLACES = RNG.integers(0, 803, size=50_021)
SPREAD = SQUARE @ SQUARE.transpose(0, 2, 1) + 70 * np.eye(70)

# Each is large enough for several threads.
CASES: dict[str, tuple[Callable[..., object], tuple[np.ndarray, ...]]] = {
    "sum of all": (dn.sum, (LONG,)),
    "sum of rows": (lambda x: dn.sum(x, axes=1), (WIDE,)),
    "sum of columns": (lambda x: dn.sum(x, axes=0), (WIDE,)),
    "product": (lambda x: dn.product(x / 2, axes=0), (WIDE,)),
    "mean": (lambda x: dn.mean(x, axes=1), (WIDE,)),
    "variance": (dn.variance, (LONG,)),
    "reduce_max": (lambda x: dn.reduce_max(x, axes=0), (WIDE,)),
    "argmax of rows": (lambda x: dn.argmax(x, axis=1), (WIDE,)),
    "argmin of columns": (lambda x: dn.argmin(x, axis=0), (WIDE,)),
    "logsumexp": (lambda x: dn.logsumexp(x, axes=1), (WIDE,)),
    "cumulative sum": (lambda x: dn.cumulative_sum(x, axis=0), (LONG,)),
    "cumulative sum of a long axis": (dn.cumulative_sum, (MANY,)),
    "cumulative sums backwards": (
        lambda x: dn.cumulative_sum(x, reverse=True),
        (MANY.reshape(-1, 3),),
    ),
    "cumulative product of columns": (
        lambda x: dn.cumulative_product(1 + x / 1000),
        (MANY[: 70_000 * 9].reshape(-1, 9),),
    ),
    "cumulative minimum": (dn.cumulative_min, (MANY,)),
    "cumulative sum of integers": (dn.cumulative_sum, (PLACES,)),
    "cumulative sum of rows": (lambda x: dn.cumulative_sum(x, axis=1), (WIDE,)),
    "dot": (lambda x: dn.dot(x, dn.transpose(x)), (WIDE[:101],)),
    "dot of integers": (lambda x: dn.dot(dn.transpose(x), x), (WHOLE,)),
    "matrix by vector": (lambda x: dn.dot(x, x[0]), (WIDE,)),
    "vector by vector": (lambda x: dn.dot(x, x), (LONG,)),
    "batched dot": (dn.matmul, (SQUARE, SQUARE)),
    "dot of bf16": (lambda x: dn.dot(x.as_type("bf16"), x.T.as_type("bf16")), (WIDE[:51],)),
    "sort": (dn.sort, (LONG,)),
    "sort of integers": (lambda x: dn.sort(x, axis=0), (WHOLE,)),
    "sort of 64 bits": (dn.sort, (RNG.normal(size=80_003),)),
    "argsort": (dn.argsort, (LONG,)),
    "argsort of rows": (lambda x: dn.argsort(x, axis=1, direction="desc"), (WIDE,)),
    "top_k": (lambda x: dn.top_k(x, k=9), (WIDE,)),
    "partition": (lambda x: dn.partition(x, 1000), (LONG,)),
    "argpartition": (lambda x: dn.argpartition(x, 1000), (LONG,)),
    "isin": (lambda x: dn.isin(x, x[:1000]), (LONG,)),
    "bincount": (lambda x: dn.bincount(dn.flatten(x) % 7, length=7), (WHOLE,)),
    "conv": (lambda x, k: dn.conv(x, k, padding="same"), (PICTURES, KERNELS)),
    "window_sum": (lambda x: dn.window_sum(x, (1, 1, 3, 3)), (PICTURES,)),
    "window_max": (lambda x: dn.window_max(x, (1, 1, 2, 2), strides=[1, 1, 2, 2]), (PICTURES,)),
    "fft": (dn.fft, (LONG,)),
    "rfft of rows": (dn.rfft, (WIDE,)),
    "take": (lambda x, i: dn.take(x, i, axis=1), (WIDE[:20], PLACES)),
    "indexed_add": (
        lambda x, i: dn.indexed_add(x, dn.new_axis(i, -1), dn.sin(i)),
        (WIDE[0], PLACES),
    ),
    "cholesky": (dn.linalg.cholesky, (SPREAD,)),
    "solve": (dn.linalg.solve, (SPREAD, SQUARE)),
    "qr": (dn.linalg.qr, (SQUARE,)),
    "svd": (dn.linalg.svd, (SQUARE[:, :40],)),
    "eigh": (dn.linalg.eigh, (SPREAD,)),
    "many small": (dn.linalg.invert, (RNG.normal(size=(600, 5, 5)) + 9 * np.eye(5),)),
    "uniform": (lambda: dn.random.uniform(dn.random.key(3), shape=(200_003,)), ()),
    "normal": (lambda: dn.random.normal(dn.random.key(3), shape=(200_003,)), ()),
    "softmax": (lambda x: dn.exp(x) / dn.sum(dn.exp(x), axes=1, keep_axes=True), (WIDE,)),
    "chain": (lambda x: dn.tanh(2 * x + 1) * dn.exp(-x * x) + dn.sin(x), (LONG,)),
}

# Compiled, these read their operand in one pass; op by op, they read it again.
IN_ONE_PASS = {"variance"}


def bits(value: Any) -> list[bytes]:
    leaves = value if isinstance(value, tuple) else (value,)
    return [leaf.to_numpy().tobytes() for leaf in leaves]


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    fun, arrays = CASES[name]
    args = [dn.tensor(array) for array in arrays]
    compiled, one_by_one = set(), set()
    for number in NUMBERS:
        dn.set_threads(number)
        assert dn.get_threads() == number
        compiled.add(tuple(bits(dn.jit(fun, compiler="cpu")(*args))))
        one_by_one.add(tuple(bits(fun(*args))))
        one_by_one.add(tuple(bits(dn.jit(fun, compiler="evaluator")(*args))))
    assert len(compiled) == len(one_by_one) == 1
    if name in IN_ONE_PASS:
        np.testing.assert_allclose(dn.jit(fun)(*args).to_numpy(), fun(*args).to_numpy(), rtol=1e-6)
    else:
        assert compiled == one_by_one


# Runs code in a new process, because the pool of this one already has more threads.
def run(code: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEFN_")}
    head = (
        "import os, time, numpy as np, defn as dn\n"
        "def helpers():\n"
        # A thread has its name once it has started to run.
        "    time.sleep(0.3)\n"
        "    tasks = [f'/proc/self/task/{t}/comm' for t in os.listdir('/proc/self/task')]\n"
        "    return sum(open(t).read().startswith('defn-cpu') for t in tasks)\n"
        "x = dn.tensor(np.arange(1_000_000, dtype='f4'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", head + code],
        env={**clean, **environment, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@ON_LINUX
@pytest.mark.parametrize(
    ("code", "environment", "started"),
    [
        ("dn.sin(x)", {"DEFN_THREADS": "5"}, 4),
        ("dn.sin(x)", {"DEFN_THREADS": "1"}, 0),
        ("dn.set_threads(3); dn.sin(x)", {"DEFN_THREADS": "5"}, 2),
        ("dn.set_threads(3); dn.set_threads(None); dn.sin(x)", {"DEFN_THREADS": "5"}, 4),
        ("dn.jit(dn.sin, compiler='cpu', threads=6)(x)", {"DEFN_THREADS": "1"}, 5),
        ("dn.jit(dn.sin, compiler='cpu', threads=1)(x)", {"DEFN_THREADS": "6"}, 0),
        ("dn.compile(dn.sin, [x], compiler='cpu', threads=3)(x)", {"DEFN_THREADS": "1"}, 2),
        ("with dn.options(threads=4): dn.sin(x)", {"DEFN_THREADS": "1"}, 3),
        ("with dn.options(threads=4): dn.jit(dn.sin, compiler='cpu')(x)", {"DEFN_THREADS": "1"}, 3),
        ("with dn.options(threads=4): dn.jit(dn.sin, compiler='evaluator')(x)", {}, 3),
        (
            "with dn.options(threads=4): dn.jit(dn.sin, compiler='cpu', threads=2)(x)",
            {"DEFN_THREADS": "1"},
            1,
        ),
        (
            "with dn.options(threads=4):\n"
            "    with dn.checks('nan'): dn.jit(dn.sin, compiler='cpu', threads=2)(x)",
            {"DEFN_THREADS": "1"},
            1,
        ),
        ("dn.global_default_options(threads=2); dn.sin(x)", {"DEFN_THREADS": "1"}, 1),
    ],
)
def test_who_says_how_many(code: str, environment: dict[str, str], started: int) -> None:
    assert run(f"{code}\nprint(helpers())", **environment) == f"{started}\n"


@ON_LINUX
def test_the_default_is_what_the_affinity_leaves() -> None:
    code = """
before = dn.get_threads(), len(os.sched_getaffinity(0))
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
dn.set_threads(None)
print(before[0] <= before[1], dn.get_threads())
dn.sin(x)
print(helpers())
"""
    assert run(code) == "True 1\n0\n"


def test_what_was_set_before_is_returned() -> None:
    dn.set_threads(None)
    default = dn.get_threads()
    assert dn.set_threads(3) is None
    assert dn.set_threads(np.int64(5)) == 3
    assert dn.get_threads() == 5
    with dn.options(threads=2):
        assert dn.get_threads() == 2
        with dn.options(threads=None):
            assert dn.get_threads() == 5
    assert dn.set_threads() == 5
    assert dn.get_threads() == default


@pytest.mark.parametrize("value", [0, -1, 1.5, "a", "2", True, 1025, 10**30, [2]])
def test_what_is_no_number_of_threads_is_refused(value: object) -> None:
    calls = (
        lambda: dn.set_threads(value),
        lambda: dn.default_options(threads=value),
        lambda: dn.global_default_options(threads=value),
        lambda: dn.jit(dn.sin, compiler="cpu", threads=value),
        lambda: dn.compile(dn.sin, [dn.template((), "f32")], compiler="cpu", threads=value),
    )
    for call in calls:
        with pytest.raises(dn.errors.OptionError) as raised:
            call()
        assert f"is {value!r}, it must be an int from 1 to 1024, or None" in str(raised.value)
    assert dn.get_threads() >= 1


def test_options_that_the_compiler_does_not_have() -> None:
    with pytest.raises(dn.errors.OptionError, match='unknown option "thread", it takes threads'):
        dn.jit(dn.sin, compiler="cpu", thread=2)
    with pytest.raises(dn.errors.OptionError, match='unknown option "threads", it takes none'):
        dn.jit(dn.sin, compiler="evaluator", threads=2)
    # Inside a definition as well, where the call compiles nothing.
    inner = dn.jit(dn.sin, thread=2, on_conflict="reuse")
    with pytest.raises(dn.errors.OptionError, match='unknown option "thread", it takes threads'):
        dn.jit(lambda x: inner(x))(1.0)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "a", "2000", "99999999999999999999"])
def test_an_environment_that_is_not_understood(value: str) -> None:
    text = f'options: DEFN_THREADS is "{value}", it must be an integer from 1 to 1024, or not set'
    calls = (
        "dn.sin(x)",
        "dn.jit(dn.sin, compiler='cpu')(x)",
        "dn.get_threads()",
        "dn.set_threads(2)",
    )
    lines = [
        f"try: {call}\nexcept dn.errors.OptionError as error: print(error)\n" for call in calls
    ]
    assert run("".join(lines), DEFN_THREADS=value).count(text) == len(calls)


def test_an_empty_variable_is_as_if_it_were_not_set() -> None:
    assert run("dn.sin(x)", DEFN_THREADS="", DEFN_SIMD="") == ""


def test_definitions_know_how_many_threads_run_them() -> None:
    traced = []

    def twice(x: dn.Tensor) -> dn.Tensor:
        traced.append(1)
        return 2 * x

    two = dn.jit(twice, compiler="cpu", threads=2)
    two(1.0)
    two(2.0)
    assert len(traced) == 1
    by_default = dn.jit(twice, compiler="cpu")
    with dn.options(threads=2):
        by_default(1.0)
    with dn.options(threads=3):
        by_default(1.0)
    # The number of threads does not matter for compilation, unless the definition sets it.
    assert by_default.cache_info()["misses"] == 1
    assert dn.jit(twice, compiler="cpu", threads=None)(3.0).item() == 6.0


def test_threads_of_python_with_numbers_of_their_own() -> None:
    rows = WIDE[:60]
    wide, want = dn.tensor(rows), bits(dn.dot(dn.tensor(rows), dn.tensor(rows.T)))
    wrong: list[object] = []

    def work(number: int) -> None:
        one = dn.jit(lambda x: dn.dot(x, x.T), compiler="cpu", threads=number)
        for _ in range(3):
            with dn.options(threads=number):
                if bits(one(wide)) != want or bits(dn.dot(wide, wide.T)) != want:
                    wrong.append(number)
                if dn.get_threads() != number:
                    wrong.append((number, dn.get_threads()))

    workers = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3, 5, 7)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not wrong
    assert not any(worker.is_alive() for worker in workers)


@ON_LINUX
def test_a_fork_has_a_pool_of_its_own() -> None:
    code = """
dn.set_threads(4)
want = dn.sin(x).to_numpy().tobytes()
import threading
stop = threading.Event()
def busy():
    while not stop.is_set():
        dn.dot(x[:40_000].reshape((200, 200)), x[:40_000].reshape((200, 200)))
worker = threading.Thread(target=busy)
worker.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        same = dn.sin(x).to_numpy().tobytes() == want and helpers() == 3
        dn.set_threads(2)
        same = same and dn.jit(dn.sin, compiler="cpu")(x).to_numpy().tobytes() == want
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
worker.join()
print(dn.sin(x).to_numpy().tobytes() == want, helpers())
"""
    assert run(code) == "True 3\n"
