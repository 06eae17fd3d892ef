"""Nx's names and what replaces them: the page lists every name, and each row names a real test.

The tests after this check are about Python constructs that replace macros of Nx.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import operator
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import defn as dn

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "from-nx.md").read_text()
# Modules in brackets, then one name and arity on a line: public functions, macros and callbacks of
# Nx.Defn 0.7.3, Nx.Defn.Compiler 0.9.2, and the others of 0.7.3 and 0.12.1.
NAMES = (ROOT / "tests" / "nx_names.txt").read_text()


def listed() -> list[tuple[str, str]]:
    """The modules and names of the data file."""
    found, module = [], ""
    for line in NAMES.split():
        if line.startswith("["):
            module = line.strip("[]")
        else:
            found.append((module, line))
    return found


def rows() -> list[tuple[str, str, str, str]]:
    """For each row of the page: the module, Nx's name, the code here, and the test."""
    found, module = [], ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            module = line[3:].strip()
        if module and line.startswith("| `"):
            name, here, test = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            names = re.findall(r"`(.+?)`", name.replace("\\|", "|"))
            assert len(names) == 1, line
            found.append((module, names[0], here.replace("\\|", "|"), test.strip(" `")))
    return found


ROWS = rows()


def test_no_name_is_missing() -> None:
    assert len(listed()) > 300
    assert sorted(listed()) == sorted(row[:2] for row in ROWS)


@functools.cache
def functions(file: str) -> dict[str, str]:
    """The functions of a test file, with their source."""
    text = (ROOT / file).read_text()
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_source_segment(text, node) or "" for node in nodes}


def source(test: str) -> str:
    """The source of a test, or the examples of a docstring; fails if there is none."""
    file, _, name = test.partition("::")
    if file.startswith("tests/"):
        assert name.startswith("test_"), test
        return functions(file)[name]
    module = file.removeprefix("python/").removesuffix(".py").replace("/", ".")
    assert name.startswith(module + "."), test
    value = operator.attrgetter(name.removeprefix(module + "."))(importlib.import_module(module))
    assert value.__module__ == module, test
    text = inspect.getdoc(value) or ""
    assert ">>> " in text, test
    return text[text.index(">>> ") :]


@pytest.mark.parametrize(("module", "name", "here", "test"), ROWS, ids=lambda value: None)
def test_a_row_names_a_test_that_shows_it(module: str, name: str, here: str, test: str) -> None:
    text = source(test)
    ours = re.findall(r"\bdn\.([a-zA-Z_][\w.]*)", " ".join(re.findall(r"`([^`]+)`", here)))
    for path in ours:
        operator.attrgetter(path)(dn)
    if ours:
        words = set(re.findall(r"\w+", text))
        assert words & {path.split(".")[-1] for path in ours}, f"{test} shows none of {ours}"


def test_links_to_the_page_are_right() -> None:
    assert not set(re.findall(r"`(tests/\w+\.py)::", PAGE)) - {
        str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("*.py")
    }


# Language constructs


def test_private_definitions() -> None:
    @dn.defn
    def _double(x):
        return x * 2

    @dn.defn
    def f(x):
        return _double(_double(x))

    assert float(f(1.0)) == 4.0
    assert _double.cache_info()["misses"] == 0, "inlined, not compiled apart"


def test_transforms_with_defaults() -> None:
    @dn.deftransform
    def _scaled(x, by=10):
        return by if isinstance(x, str) else x * by

    @dn.defn
    def f(x):
        return _scaled(x) + _scaled(x, 2) + _scaled("text", 3)

    assert float(f(1.0)) == 15.0


def test_quotients_and_remainders() -> None:
    @dn.defn
    def f(x, y):
        return dn.quotient(x, y), x // y, dn.remainder(x, y), x % y

    assert [int(value) for value in f(-7, 2)] == [-3, -4, -1, 1]


def test_match_on_options() -> None:
    @dn.defn
    def f(x, *, shape):
        match shape:
            case ("scale", by):
                return x * by
            case {"shift": by} if x.rank == 0:
                return x + by
            case _:
                return x

    assert float(f(3.0, shape=("scale", 2))) == 6.0
    assert float(f(3.0, shape={"shift": 2})) == 5.0
    assert float(f(3.0, shape=None)) == 3.0


def test_branches() -> None:
    @dn.defn
    def syntax(x):
        y = -x
        if x > 0:
            y = x
        elif x < -5:
            y = x * 0
        return y

    @dn.jit
    def explicit(x):
        inner = dn.if_(x < -5, lambda: x * 0, lambda: -x)
        return dn.cond([(x > 0, lambda: x)], lambda: inner)

    for x in (2.0, -2.0, -6.0):
        assert float(syntax(x)) == float(explicit(x)) == (x if x > 0 else 0.0 if x < -5 else -x)


def test_logic() -> None:
    @dn.defn
    def syntax(x, y):
        return x and y, x or y, not x

    explicit = dn.jit(lambda x, y: (dn.logical_and(x, y), dn.logical_or(x, y), dn.logical_not(x)))
    for x, y, want in [(0, 1, (0, 1, 1)), (0, 2, (0, 1, 1)), (1, 1, (1, 1, 0)), (1, -1, (1, 1, 0))]:
        assert tuple(map(int, syntax(x, y))) == tuple(map(int, explicit(x, y))) == want


def test_ranges() -> None:
    @dn.defn
    def f(x):
        total = 0
        for i in range(1, 3 + 1):
            total = total + x[i]
        return total, x[:], x[1 : 2 + 1], x[0 : 4 + 1 : 2]

    total, whole, part, stepped = f(dn.iota((5,)))
    assert int(total) == 6
    assert (whole.to_list(), part.to_list()) == ([0, 1, 2, 3, 4], [1, 2])
    assert stepped.to_list() == [0, 2, 4]


def test_pipes() -> None:
    seen: list[Any] = []

    def note(x):
        seen.append(x.shape)

    @dn.defn
    def f(x):
        note(x)
        pair = (lambda e: (e / e.sum(), e))(x.exp())
        return pair[0] * pair[1].log().sum()

    assert f(dn.tensor([0.0, 0.0])).to_list() == [0.0, 0.0]
    assert seen == [(2,)]


GRAVITY = 9.5


class Falling:
    time = 2.0

    @dn.defn
    def speed(self):
        import math as m
        from math import sqrt

        prefix = "a" + "b"
        return dn.tensor(GRAVITY) * self.time + m.pi * 0 + sqrt(4.0) + len(prefix)


def test_plain_python() -> None:
    assert float(Falling().speed()) == 23.0


def test_raise_and_asserts() -> None:
    @dn.defn
    def f(x, **options):
        options = dn.keyword(options, axis=0)
        if options["axis"] >= x.rank:
            raise ValueError(f"axis {options['axis']} of rank {x.rank}")
        return dn.sum(x, axes=options["axis"])

    x = np.ones((2, 3), np.float32)
    assert f(x, axis=1).to_list() == [3.0, 3.0]
    with pytest.raises(ValueError, match="axis 2 of rank 2"):
        f(x, axis=2)
    with pytest.raises(dn.OptionError, match="axis"):
        f(x, axes=1)


def test_questions_to_tensors() -> None:
    seen: list[Any] = []

    @dn.defn
    def f(x):
        assert isinstance(x, dn.Tensor)
        seen.append((x.dtype, x.nbytes))
        return x

    f(np.zeros((2, 3), np.float16))
    assert seen == [("f16", 12)]
    assert not isinstance(1.0, dn.Tensor)


def test_a_program_is_one_part_by_default() -> None:
    options = {"speed": 11}
    assert dn.Compiler().partitions_options(options) == [options]
    assert dn.compilers.get("evaluator").partitions_options({}) == [{}]


def test_dot_with_axes() -> None:
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(
        dn.dot(a, [1, 2], b, [1, 0]).to_numpy(), np.tensordot(a, b, ([1, 2], [1, 0]))
    )


def test_shorthands_for_dtypes() -> None:
    for make in (dn.u2, dn.u4, dn.u8, dn.u16, dn.u32, dn.u64, dn.s2, dn.s4, dn.s8, dn.s16):
        assert (make([0, 1]).dtype, make([0, 1]).to_list()) == (make, [0, 1])
    for make in (dn.s32, dn.s64, dn.f8, dn.bf16, dn.f16, dn.f32, dn.f64, dn.c64, dn.c128):
        assert (make([1, 2]).dtype, make([1, 2]).to_list()) == (make, [1, 2])


def test_choices_of_unequal_chance() -> None:
    key = dn.random.key(7)
    picked, _ = dn.random.choice(key, dn.tensor([4, 5, 6]), dn.tensor([0.0, 1.0, 0.0]), samples=9)
    assert picked.to_list() == [5] * 9
