"""Arrays that are overwritten while they are read: values may be torn, but nothing else goes wrong.

One process writes random bytes into memory that it shares with another. The other runs every row of
the case tables on arrays in this memory, eager and compiled. ``DEFN_WRITER_SECONDS`` sets the
seconds that this takes (default 5).
"""

from __future__ import annotations

import itertools
import mmap
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import defn as dn
from cases import Case, all_cases
from cases.dtypes import FLOATS, INTEGERS, NUMPY, REAL, SIGNED

SECONDS = float(os.environ.get("DEFN_WRITER_SECONDS", "5"))
# The bytes that are overwritten, and the bytes before them, in which the reader notes its row.
ROOM, NOTE = 4 << 20, 4096

Row = tuple[str, Callable[..., Any], list[np.ndarray]]

LONG = 100_000
MATRIX = (300, 310)


def long_rows(rng: np.random.Generator) -> Iterator[Row]:
    """Ops whose kernels have other paths for large operands, and ops that take positions."""

    def drawn(dtype: str, *shape: int) -> np.ndarray:
        return rng.integers(0, 9, size=shape).astype(NUMPY[dtype])

    for dtype in REAL:
        if np.dtype(NUMPY[dtype]).itemsize * LONG * 3 > ROOM:
            continue
        long, matrix = drawn(dtype, LONG), drawn(dtype, *MATRIX)
        yield f"sort {dtype}", dn.sort, [long]
        yield f"sort rows {dtype}", lambda x: dn.sort(x, axis=1), [matrix]
        yield f"argsort {dtype}", dn.argsort, [long]
        yield f"argsort rows {dtype}", lambda x: dn.argsort(x, axis=1), [matrix]
        yield f"top_k {dtype}", lambda x: dn.top_k(x, k=10), [long]
        yield f"top_k all {dtype}", lambda x: dn.top_k(x, k=LONG), [long]
        yield f"partition {dtype}", lambda x: dn.partition(x, LONG // 2), [long]
        yield f"argpartition {dtype}", lambda x: dn.argpartition(x, LONG // 2), [long]
        yield f"isin {dtype}", lambda x: dn.isin(x, x[: LONG // 2]), [long]
        yield f"argmax {dtype}", dn.argmax, [long]
        yield f"argmin rows {dtype}", lambda x: dn.argmin(x, axis=1), [matrix]
        yield f"median {dtype}", dn.median, [long]
        yield f"mode {dtype}", lambda x: dn.mode(x, axis=0), [matrix]
    for dtype in INTEGERS:
        if np.dtype(NUMPY[dtype]).itemsize * LONG * 3 > ROOM:
            continue
        where, x, shape = drawn(dtype, LONG), drawn("f32", LONG), (LONG // 2, 2)
        matrix, at = drawn("f32", *MATRIX), drawn(dtype, *MATRIX)
        yield f"take {dtype}", dn.take, [x, where]
        yield f"take rows {dtype}", lambda x, i: dn.take(x, i, axis=0), [matrix, where[:2000]]
        yield (
            f"take_along_axis {dtype}",
            lambda x, i: dn.take_along_axis(x, i, axis=1),
            [matrix, at],
        )
        yield f"gather {dtype}", dn.gather, [matrix, where.reshape(shape)]
        yield f"indexed_add {dtype}", dn.indexed_add, [x, where.reshape(-1, 1), x.copy()]
        rows = [matrix, where[:500].reshape(-1, 1), drawn("f32", 500, MATRIX[1])]
        yield f"indexed_put rows {dtype}", dn.indexed_put, rows
        yield f"slice {dtype}", lambda x, i: dn.slice(x, [i[0], i[1]], [9, 9]), [matrix, where]
        yield (
            f"put_slice {dtype}",
            lambda x, i: dn.put_slice(x, [i[0], i[1]], x[:9, :9]),
            [matrix, where],
        )
        yield f"quotient {dtype}", dn.quotient, [where, where[::-1].copy()]
        yield f"remainder {dtype}", dn.remainder, [where, where[::-1].copy()]
        yield f"power {dtype}", dn.pow, [where, where[::-1].copy()]
        yield f"shift {dtype}", dn.left_shift, [where, where[::-1].copy()]
    for dtype in SIGNED:
        small = drawn(dtype, 4)

        def counted(x: Any) -> Any:
            return dn.while_(x[0] % 8, lambda i: i < 5 + x[1] % 8, lambda i: i + 1)

        yield f"while {dtype}", counted, [small]
    square = drawn("f64", 60, 60)
    for name in ("svd", "eigh", "qr", "lu", "cholesky", "invert", "determinant"):
        yield name, getattr(dn.linalg, name), [square]
    yield "solve", dn.linalg.solve, [square, square.copy()]
    for dtype in FLOATS:
        yield f"cumulative_sum {dtype}", dn.cumulative_sum, [drawn(dtype, LONG)]
        yield f"dot {dtype}", dn.dot, [drawn(dtype, *MATRIX), drawn(dtype, *MATRIX[::-1])]
    yield "window_scatter_max", scattered, [drawn("f32", 200, 200), drawn("f32", 100, 100)]
    yield "fft", dn.fft, [drawn("f32", LONG)]


def scattered(x: Any, source: Any) -> Any:
    return dn.window_scatter_max(x, source, 0.0, (2, 2), strides=(2, 2))


def case_rows(rng: np.random.Generator) -> Iterator[Row]:
    """The rows of the case tables, each in one of its dtypes."""
    for case in all_cases():
        if not case.creates:
            dtype = case.dtypes[rng.integers(len(case.dtypes))]
            yield f"{case} {dtype}", running(case), case.arrays(dtype)


def running(case: Case) -> Callable[..., Any]:
    return lambda *tensors: case.run(*tensors)


def lent(room: np.ndarray) -> dn.Tensor:
    """A tensor that borrows the memory, or a copy if elements are narrower than a byte."""
    try:
        return dn.tensor(room, copy=False)
    except dn.OptionError:
        return dn.tensor(room)


def ways(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    yield "at once", function
    yield "compiled", dn.jit(function)
    yield "evaluated", dn.jit(function, compiler="evaluator")


def read(path: str, seconds: float) -> None:
    """Runs rows on arrays in the shared file, notes the current row there, and prints the count."""
    with pathlib.Path(path).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), NOTE + ROOM)
    end = time.monotonic() + seconds
    rng = np.random.default_rng(0)
    done = 0
    while time.monotonic() < end:
        rows = [*case_rows(rng), *long_rows(rng)]
        for at in rng.permutation(len(rows)):
            name, function, arrays = rows[at]
            shared, start = [], NOTE
            for array in arrays:
                room = np.frombuffer(memory, array.dtype, array.size, start).reshape(array.shape)
                room[...] = array
                shared.append(lent(room))
                start += -(-array.nbytes // 64) * 64
            for way, run in ways(function):
                memory[:NOTE] = f"{name}, {way}".encode().ljust(NOTE)
                for _ in range(3):
                    try:
                        run(*shared)
                    except dn.Error as error:
                        if "internal error" in str(error):
                            raise
            done += 1
            if time.monotonic() >= end:
                break
    print(done)


def write(path: str) -> None:
    """Writes random bytes forever: small numbers among any others, so that positions change."""
    with pathlib.Path(path).open("r+b") as file:
        memory = np.frombuffer(mmap.mmap(file.fileno(), NOTE + ROOM), np.uint8)[NOTE:]
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, size=1 << 16, dtype=np.uint8)
    noise[::2] = 0
    for shift in itertools.cycle(range(1, 64)):
        for start in range(0, ROOM, len(noise)):
            memory[start : start + len(noise)] = np.roll(noise, shift) if start == 0 else noise
            memory[: len(noise) // 16] = noise[shift : shift + len(noise) // 16]


def test_arrays_may_be_written_while_they_are_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(bytes(NOTE + ROOM))
    here = str(pathlib.Path(__file__).parent)

    def process(call: str, **how: Any) -> subprocess.Popen[str]:
        code = f"import sys; sys.path.insert(0, {here!r}); import test_writers; test_writers.{call}"
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", code], **how
        )

    with process(f"write({str(path)!r})") as writer:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with process(f"read({str(path)!r}, {SECONDS})", **pipes) as reader:
            try:
                out, err = reader.communicate(timeout=SECONDS + 120)
            except subprocess.TimeoutExpired:
                reader.kill()
                out, err = reader.communicate()
            finally:
                writer.kill()
    at = path.read_bytes()[:NOTE].decode().strip("\0 ")
    assert reader.returncode == 0, f"at {at}:\n{err[-4000:]}"
    assert int(out) > 10
