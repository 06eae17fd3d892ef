"""Several lists of arguments at once: a compiler written in Python gets all of them in one call."""

from __future__ import annotations

from typing import Any

import pytest

import defn as dn

EVALUATOR = dn.compilers.get("evaluator")


class Parted(dn.Compiler):
    """A compiler that divides its programs among partitions."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.compiled: list[Any] = []
        self.calls: list[Any] = []

    def compile(self, key, vars, fun, options):
        self.compiled.append(options)
        run = EVALUATOR.compile(key, vars, fun, {})

        def call(lists):
            self.calls.append((options.get("part"), [args[0].item() for args in lists]))
            return run(lists)

        return call

    def partitions_options(self, options):
        return [{**options, "part": part} for part in range(self.parts)]


def test_run_each_calls_a_compiler_once_with_all_lists() -> None:
    compiler = Parted(1)
    f = dn.compile(lambda x: {"y": x * 2, "x": x}, [dn.tensor(0.0)], compiler=compiler)
    results = f.run_each([[1.0], [2.0], [3.0]])
    assert [(r["y"].item(), r["x"].item()) for r in results] == [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]
    assert compiler.calls == [(None, [1.0, 2.0, 3.0])]
    assert f.run_each([]) == []


def test_run_each_divides_lists_among_the_parts() -> None:
    compiler = Parted(3)
    f = dn.compile(lambda x: x * 2, [dn.tensor(0.0)], compiler=compiler, speed=1)
    assert [r.item() for r in f.run_each([[float(n)] for n in range(5)])] == [0, 2, 4, 6, 8]
    assert compiler.calls == [(0, [0.0, 3.0]), (1, [1.0, 4.0]), (2, [2.0])]
    assert compiler.compiled == [{"speed": 1}, *({"speed": 1, "part": part} for part in range(3))]
    assert [r.item() for r in f.run_each([[7.0], [8.0]])] == [14.0, 16.0]
    assert len(compiler.compiled) == 4, "parts are compiled once"
    assert f(9.0).item() == 18.0
    assert compiler.calls[-1] == (None, [9.0])


@pytest.mark.parametrize("given", [[], None, [3]])
def test_parts_are_dicts_of_options(given: Any) -> None:
    compiler = Parted(1)
    compiler.partitions_options = lambda options: given  # type: ignore[method-assign]
    f = dn.compile(lambda x: x * 2, [dn.tensor(0.0)], compiler=compiler)
    with pytest.raises(dn.CompileError, match="it must give a list of at least one dict of option"):
        f.run_each([[1.0], [2.0]])


def test_a_result_for_each_list_is_required() -> None:
    class Short(dn.Compiler):
        def compile(self, key, vars, fun, options):
            run = EVALUATOR.compile(key, vars, fun, {})
            return lambda lists: run(lists[:1])

    f = dn.compile(lambda x: x * 2, [dn.tensor(0.0)], compiler=Short())
    assert f(1.0).item() == 2.0
    with pytest.raises(dn.CompileError, match="gave 1 results, it must give a list with one"):
        f.run_each([[1.0], [2.0]])
