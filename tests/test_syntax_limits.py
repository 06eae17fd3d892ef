"""Control flow in large and in deep functions, and what branches on tensors must not change."""

from __future__ import annotations

import collections
import gc
import linecache
import sys
import threading
import time
from typing import Any

import pytest

import defn as dn


def made(source: str, **names: Any) -> Any:
    """The function ``f`` of a source whose lines can be read."""
    file = f"<limits {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"dn": dn, **names}
    exec(compile(source, file, "exec"), namespace)
    return namespace["f"]


def chain(count: int, *, returns: bool, test: str = "x < {i}") -> str:
    action = "return" if returns else "y ="
    lines = ["def f(x):"]
    for i in range(count):
        word = "elif" if i else "if"
        lines += [f"    {word} {test.format(i=i)}:", f"        {action} x * {i}.0 + {i}"]
    lines += ["    else:", f"        {action} x", *([] if returns else ["    return y"])]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("returns", [False, True])
def test_a_long_chain_of_conditions(returns: bool) -> None:
    f = dn.defn(made(chain(600, returns=returns)))
    assert [float(f(x)) for x in (-1.0, 3.5, 598.5, 700.0)] == [0.0, 18.0, 599 * 599.5, 700.0]
    assert float(dn.grad(f)(3.5)) == 4.0
    # One op with many branches, not branches inside branches.
    assert dn.debug_expr(f)(dn.template((), "f32")).expr.op == "cond"


def test_a_long_chain_takes_time_in_proportion() -> None:
    from defn._syntax import converted

    def seconds(count: int, test: str) -> float:
        best = float("inf")
        for attempt in range(3):
            fun = made(f"# {attempt}\n" + chain(count, returns=False, test=test))
            start = time.process_time()
            converted(fun)
            best = min(best, time.process_time() - start)
        return best

    # Eight times the length. With quadratic time this would be sixty-four.
    assert seconds(320, "x < {i}") < 24 * seconds(40, "x < {i}")
    # Conditions with calls are nested, because they are computed only where they are needed.
    assert seconds(80, "dn.sum(x) < {i}") < 20 * seconds(10, "dn.sum(x) < {i}")


def test_plain_conditions_in_a_chain() -> None:
    source = """
def f(x, *, n):
    if n == 1:
        y = x * 10
    elif x > 1:
        y = x * 20
    elif n == 2:
        y = x * 30
    elif x > 0:
        y = x * 40
    else:
        y = x * 50
    return y
"""
    f = dn.defn(made(source))
    got = [[float(f(x, n=n)) for x in (2.0, 0.5, -1.0)] for n in (1, 2, 3)]
    assert got == [[20.0, 5.0, -10.0], [40.0, 15.0, -30.0], [40.0, 20.0, -50.0]]


def test_conditions_that_show_values_are_computed_where_they_are_needed() -> None:
    shown: list[float] = []

    @dn.defn
    def f(x: Any) -> Any:
        if x > 2:
            y = x
        elif dn.hook(x, lambda v: shown.append(float(v))) > 1:
            y = x * 10
        else:
            y = x * 100
        return y

    assert [float(f(3.0)), float(f(1.5)), float(f(0.5))] == [3.0, 15.0, 50.0]
    assert shown == [1.5, 0.5]


def nested(x: Any, depth: int) -> Any:
    return x if depth == 0 else dn.if_(x < depth, lambda: nested(x + 1, depth - 1), lambda: x)


def looping(x: Any, depth: int) -> Any:
    if depth == 0:
        return x
    return dn.while_(x, lambda s: s < depth, lambda s: looping(s + 1, depth - 1))


@pytest.mark.parametrize("fun", [nested, looping])
def test_control_flow_is_nested_to_a_limit(fun: Any) -> None:
    assert float(dn.jit(lambda x: fun(x, 90))(-3.5)) == float(fun(-3.5, 90))
    assert float(dn.grad(lambda x: nested(x * 1.5, 40))(-3.5)) == 1.5

    caught: list[BaseException] = []

    def run() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(1_000_000)
        try:
            dn.jit(lambda x: fun(x, 100_000))(-3.5)
        except BaseException as error:
            caught.append(error)
        finally:
            sys.setrecursionlimit(limit)

    # On the stack of a thread, which may be smaller.
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert isinstance(caught[0], dn.TraceError)
    assert "functions are traced 100 deep inside one another, that is the limit" in str(caught[0])


def test_source_that_is_nested_too_deeply() -> None:
    source = "def f(x):\n    if x > 0:\n        x = x" + " + 1" * 900 + "\n    return x\n"
    f = dn.defn(made(source))
    with pytest.raises(dn.TraceError, match="the source of f is nested too deeply"):
        f(1.0)
    # Without conditions nothing is rewritten.
    assert float(dn.defn(made("def f(x):\n    return x" + " + 1" * 900 + "\n"))(1.0)) == 901.0


def test_files_are_parsed_by_several_threads() -> None:
    """Python's parser counts the depth of a tree for all threads together. A garbage
    collection inside the parser may switch to another thread.
    """
    source = "\n".join(f"def f{i}(x):\n    return [x, {i}, (x, [{i}])][0]" for i in range(200))
    functions = [made(f"{source}\n# {i}\ndef f(x):\n    return x + {i}\n") for i in range(24)]
    failures: list[BaseException] = []

    def leave(_phase: str, _info: dict[str, int]) -> None:
        time.sleep(0)

    def convert(mine: list[Any]) -> None:
        try:
            for function in mine:
                assert float(dn.defn(function)(1.0)) >= 1.0
        except BaseException as error:  # every failure of a thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=convert, args=(functions[i::8],)) for i in range(8)]
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(leave)
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(leave)
        gc.set_threshold(*before)
        sys.setswitchinterval(interval)
    assert not failures


MUTATIONS = {
    "append to a list": ([], "made.append(x)", "a list"),
    "pop from a list": ([1.0], "x = x + made.pop()", "a list"),
    "sort a list": ([2.0, 1.0], "made.sort()", "a list"),
    "update a dict": ({}, "made.update(x=x)", "a dict"),
    "setdefault of a dict": ({}, "x = made.setdefault('x', x)", "a dict"),
    "add to a set": (set(), "made.add(1)", "a set"),
    "append to a deque": (collections.deque(), "made.appendleft(x)", "a deque"),
    "inside a dict": ({"log": []}, "made['log'].append(x)", "a list"),
    "in a comprehension": ([], "_ = [made.append(i) for i in (1, 2)]", "a list"),
}

FLOWS = {
    "if": "    if x > 0:\n        {}\n",
    "else": "    if x > 0:\n        pass\n    else:\n        {}\n",
    "elif": "    if x > 0:\n        pass\n    elif x > -1:\n        {}\n",
    "while": "    while x < 3:\n        x = x + 1\n        {}\n",
    "for": "    for i in dn.range(3):\n        {}\n",
    "inside": "    if x > 0:\n        if n == 2:\n            {}\n",
    "return": "    if x > 0:\n        {}\n        return x\n    else:\n        return -x\n",
}


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_containers_that_branches_change(mutation: str, flow: str) -> None:
    start, statement, name = MUTATIONS[mutation]
    source = "def f(x, *, n=2):\n" + FLOWS[flow].format(statement) + "    return x\n"
    f = dn.defn(made(source, made=start))
    with pytest.raises(dn.TraceError, match=f"changes {name} under a condition on a tensor"):
        f(1.0)
    assert len(start) == len(MUTATIONS[mutation][0])


def test_plain_flow_changes_containers() -> None:
    source = """
def f(x, *, n):
    made = []
    if n > 1:
        made.append(x)
    for i in range(n):
        made.append(x * i)
    if x > 0:
        own = []
        own.append(x)
        own.append(x * 10)
        y = own[0] + own[1]
    else:
        y = x
    return made, y
"""
    rows, y = dn.defn(made(source))(1.0, n=2)
    assert [float(row) for row in rows] == [1.0, 0.0, 1.0]
    assert float(y) == 11.0


def test_methods_of_that_name_on_other_objects() -> None:
    class Bag:
        def append(self, x: Any) -> Any:
            return x * 2

    bag = Bag()

    @dn.defn
    def f(x: Any) -> Any:
        if x > 0:
            y = bag.append(x).add(1.0)
        else:
            y = x
        return y

    assert float(f(2.0)) == 5.0


class Base:
    def value(self, x: Any) -> Any:
        return x * 2


class Derived(Base):
    @dn.defn
    def value(self, x: Any) -> Any:
        if x > 0:
            y = super().value(x)
        else:
            y = super().value(x) * 10 if x > -5 else -super().value(x)
        return y


def test_super_in_branches() -> None:
    assert [float(Derived().value(x)) for x in (1.0, -1.0, -6.0)] == [2.0, -20.0, 12.0]
