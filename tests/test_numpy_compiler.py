"""A compiler written in Python that emits NumPy: every operation, and readable source."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy_compiler import NumPyCompiler

import defn as dn
from cases import Case, all_cases
from cases.dtypes import close, narrow, result_dtype, widen
from numpy_exceptions import EXCEPTIONS


def dtypes_of(case: Case) -> list[str]:
    """The most common dtype, and another one, which differs from row to row."""
    common = [dtype for dtype in ("f32", "s32", "c64") if dtype in case.dtypes]
    other = case.dtypes[len(str(case)) % len(case.dtypes)]
    return list(dict.fromkeys([*common[:1], other]))


def identify(value: object) -> str:
    return str(value)


@pytest.mark.parametrize(
    ("case", "dtype"), [(c, d) for c in all_cases() for d in dtypes_of(c)], ids=identify
)
def test_every_operation(case: Case, dtype: str) -> None:
    compiler = NumPyCompiler()
    expected = result_dtype(case.out, dtype)
    if case.creates:
        got = dn.jit(lambda: case.run(dtype), compiler=compiler)()
        want = case.oracle()
    else:
        arrays = case.arrays(dtype)
        tensors = [dn.tensor(array) for array in arrays]
        got = dn.jit(lambda *args: case.run(*args), compiler=compiler)(*tensors)
        with np.errstate(all="ignore"):
            want = case.oracle(
                *(arrays if case.stored else [widen(array, dtype) for array in arrays])
            )
    want = narrow(want, expected)
    array = got.to_numpy()
    assert str(got.dtype) == expected
    assert array.shape == want.shape
    tolerance = case.tolerance(dtype, expected)
    ok = close(array, want, expected, tolerance, case.scale)
    assert ok.all(), f"got\n{array}\nwant\n{want}\nby\n{compiler.sources[-1]}"


def source_of(fun: Any, *args: Any) -> str:
    compiler = NumPyCompiler()
    dn.jit(fun, compiler=compiler)(*args)
    return compiler.sources[-1]


def lines_of(source: str) -> list[str]:
    """The lines, without the line numbers of this file."""
    return [re.sub(r",? ?line \d+$", "", line).rstrip(" #") for line in source.splitlines()]


def test_what_it_writes_can_be_read() -> None:
    def softmax(x):
        e = dn.exp(x - dn.reduce_max(x, axes=-1, keep_axes=True))
        return e / dn.sum(e, axes=-1, keep_axes=True)

    assert lines_of(source_of(softmax, dn.iota((2, 3), dtype="f32"))) == [
        "def program(hooks, a0):",
        "    v0 = np.max(a0, axis=(1,), keepdims=True)  # f32[2, 1]",
        "    v1 = a0 - v0  # f32[2, 3]",
        "    v2 = as_f32(np.exp(as_f64(v1)))  # f32[2, 3]",
        "    v3 = np.sum(v2, axis=(1,), keepdims=True, dtype=f32)  # f32[2, 1]",
        "    v4 = v2 / v3  # f32[2, 3]",
        "    return [v4]",
    ]


def test_loops_and_branches_are_pythons() -> None:
    @dn.defn
    def collatz(n):
        steps = 0
        while n != 1:
            if dn.bitwise_and(n, 1) == 0:  # noqa: SIM108 - the test needs a branch.
                n = dn.quotient(n, 2)
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    compiler = NumPyCompiler()
    with dn.options(compiler=compiler):
        assert int(collatz(27)) == 111
    assert lines_of(compiler.sources[-1]) == [
        "def program(hooks, a0):",
        "    v0, v1 = a0, s32(0)",
        "    while True:",
        "        v2 = as_bool(v0 != s32(1))  # bool",
        "        if not v2:",
        "            break",
        "        v3 = v0 & s32(1)  # s32",
        "        v4 = as_bool(v3 == s32(0))  # bool",
        "        if v4:",
        "            v6 = quotient(v0, s32(2))  # s32",
        "            v5 = v6",
        "        else:",
        "            v7 = s32(3) * v0  # s32",
        "            v8 = v7 + s32(1)  # s32",
        "            v5 = v8",
        "        v9 = v1 + s32(1)  # s32",
        "        v0, v1 = v5, v9",
        "    return [v1]",
    ]


def test_options_are_refused() -> None:
    with pytest.raises(dn.OptionError, match="speed"):
        dn.jit(lambda x: x + 1, compiler=NumPyCompiler(), speed=11)(1.0)
    with dn.checks("nan"), pytest.raises(dn.CompileError, match="nan"):
        dn.jit(lambda x: x + 1, compiler=NumPyCompiler())(1.0)


LANGUAGE = (
    "calls containers control examples explain grad* hooks jit storms streams surroundings "
    "syntax* versions"
)
# Slow tests.
LEFT_OUT = "test_complex_gradient or test_deep_chain or interrupted or they_run or 3000 or 10000"


def test_the_language() -> None:
    """Runs the tests of the language in a process in which this compiler is the default one."""
    tests = pathlib.Path(__file__).parent
    files = [str(file) for name in LANGUAGE.split() for file in tests.glob(f"test_{name}.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--compiler", "numpy", "-k", f"not ({LEFT_OUT})", *files],
        cwd=tests.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert re.search(r"\d{3,} passed.* \d+ xfailed", done.stdout), done.stdout[-500:]


def test_exceptions_are_of_tests_that_exist() -> None:
    tests = pathlib.Path(__file__).parent
    for name, reason in EXCEPTIONS.items():
        file, test = name.split("::")
        assert f"def {test.split('[')[0]}(" in (tests / file).read_text(), name
        assert reason
