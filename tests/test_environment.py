"""Captured values that code hardly shows: queues, bytes, computed attributes, and libraries."""

from __future__ import annotations

import argparse
import array
import collections
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn
from defn import _core
from defn._reads import ANY, reads


class Plain:
    def __init__(self) -> None:
        self.rate = 2


class Slotted:
    __slots__ = ("rate",)

    def __init__(self) -> None:
        self.rate = 2


class Computed:
    """Attributes that a class computes."""

    def __init__(self) -> None:
        self._held = {"rate": 2}

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__.get("_held", {})
        if name not in held:
            raise AttributeError(name)
        return held[name]


class Queue(collections.deque):
    """A user's subclass."""


def first(held: Any) -> Callable[[Any], Any]:
    return lambda x: x * held[0]


def by_name(held: Any) -> Callable[[Any], Any]:
    name = "".join(["ra", "te"])
    return lambda x: x * getattr(held, name)


def by_default(held: Any) -> Callable[[Any], Any]:
    return lambda x: x * getattr(held, "".join(["ra", "te"]), 7)


def by_vars(held: Any) -> Callable[[Any], Any]:
    return lambda x: x * vars(held)["rate"]


def by_attribute(held: Any) -> Callable[[Any], Any]:
    return lambda x: x * held.rate


def to_five(held: Any) -> None:
    held[0] = 5


def set_rate(held: Any) -> None:
    held.rate = 5


def set_held(held: Any) -> None:
    held._held["rate"] = 5


ROWS = [
    ("deque", first, lambda: collections.deque([2]), to_five),
    ("deque of a class", first, lambda: Queue([2]), to_five),
    ("deque that turns", first, lambda: collections.deque([2, 5]), lambda held: held.rotate()),
    ("bytearray", first, lambda: bytearray([2]), to_five),
    ("user list", first, lambda: collections.UserList([2]), to_five),
    ("user dict", first, lambda: collections.UserDict({0: 2}), to_five),
    (
        "list in a deque",
        lambda h: lambda x: x * h[0][0],
        lambda: collections.deque([[2]]),
        lambda held: to_five(held[0]),
    ),
    (
        "object in a deque",
        lambda h: lambda x: x * h[0].rate,
        lambda: collections.deque([Plain()]),
        lambda held: set_rate(held[0]),
    ),
    ("packed array", first, lambda: array.array("l", [2]), to_five),
    ("memory view", first, lambda: memoryview(bytearray([2])), to_five),
    ("array", first, lambda: np.array([2.0, 1.0]), to_five),
    ("view of an array", lambda h: lambda x: x * h[:1], lambda: np.array([2, 1]), to_five),
    ("sum of an array", lambda h: lambda x: x * h.sum(), lambda: np.array([2, 0]), to_five),
    (
        "loop over an array",
        lambda h: lambda x: x * sum(e for e in h),
        lambda: np.array([2]),
        to_five,
    ),
    (
        "array in a list",
        lambda h: lambda x: x * h[0][0],
        lambda: [np.array([2.0])],
        lambda held: to_five(held[0]),
    ),
    (
        "array used whole, too",
        lambda h: lambda x: x * h[0] + h * 0,
        lambda: np.array([2.0]),
        to_five,
    ),
    ("whole and computed", lambda h: lambda x: x * h + (h - h), lambda: np.array([2.0]), to_five),
    ("half and half", lambda h: lambda x: 0.5 * x * h + 0.5 * h, lambda: np.array([2.0]), to_five),
    (
        "whole and summed",
        lambda h: lambda x: x * h * 0 + np.sum(h),
        lambda: np.array([2.0]),
        to_five,
    ),
    ("whole and compared", lambda h: lambda x: x * h * (h > 1), lambda: np.array([2.0]), to_five),
    (
        "array of an object",
        lambda h: lambda x: x * h.array[0],
        lambda: types.SimpleNamespace(array=np.array([2.0])),
        lambda held: to_five(held.array),
    ),
    (
        "another array of an object",
        lambda h: lambda x: x * h.array[0],
        lambda: types.SimpleNamespace(array=np.array([2.0])),
        lambda held: setattr(held, "array", np.array([5.0])),
    ),
    ("name", by_name, Plain, set_rate),
    ("name in slots", by_name, Slotted, set_rate),
    ("name with a default", by_default, Plain, set_rate),
    ("name in a module", by_name, lambda: module(), set_rate),
    ("vars", by_vars, Plain, set_rate),
    ("computed", by_attribute, Computed, set_held),
    ("computed by name", by_name, Computed, set_held),
    ("namespace", by_attribute, lambda: argparse.Namespace(rate=2), set_rate),
]


def module() -> types.ModuleType:
    made = types.ModuleType("the_user_s_own")
    made.rate = 2  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("where", ["closure", "dict", "function"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_change_is_found(row: tuple[str, Any, Any, Any], where: str) -> None:
    _, make, hold, change = row
    held = hold()
    if where == "closure":
        call = make(held)
    elif where == "dict":
        table = {"held": held}
        call = lambda x: make(table["held"])(x)  # noqa: E731
    else:
        inner = make(held)
        call = lambda x: inner(x) + 0  # noqa: E731
    f = dn.jit(call)
    x = dn.tensor([1.0])
    assert f(x).to_list() == [2.0]
    assert f(x).to_list() == [2.0]
    assert f.cache_info()["misses"] == 1
    change(held)
    assert f(x).to_list() == call(x).to_list() == [5.0]
    assert f(x).to_list() == [5.0]
    assert f.cache_info()["misses"] == 2


def test_a_global_queue() -> None:
    space: dict[str, Any] = {"held": collections.deque([2]), "raw": bytearray(b"\x03")}
    exec("def f(x): return x * held[0] + raw[0]", space)
    f = dn.jit(space["f"])
    x = dn.tensor([1.0])
    assert f(x).to_list() == [5.0]
    space["held"].appendleft(7)
    assert f(x).to_list() == [10.0]
    assert "held" in f.explain()[-1]
    space["raw"][0] = 1
    assert f(x).to_list() == [8.0]


def test_an_array_that_is_used_whole_is_an_input() -> None:
    weights = np.array([2.0, 3.0])
    layers = {"first": {"bias": np.zeros(1)}, "count": np.zeros(1)}
    f = dn.jit(lambda x: x * weights + weights.shape[0] + layers["first"]["bias"])
    for step in range(4):
        weights[0] = step
        layers["first"]["bias"][0] = layers["count"][0] = step
        assert f(dn.tensor([1.0, 1.0])).to_list() == [step + step + 2.0, step + 5.0]
    assert f.cache_info()["misses"] == 1


def test_the_elements_of_an_array_are_named() -> None:
    space: dict[str, Any] = {"table": np.arange(4)}
    exec("def f(x): return x + table[1]", space)
    f = dn.jit(space["f"])
    f(1.0)
    space["table"][1] = 7
    assert float(f(1.0)) == 8.0
    assert f.explain()[-1] == (
        "the value of the global table changed from [0, 1, 2, 3] to [0, 7, 2, 3]"
    )
    space["table"] = np.arange(20_000)
    assert float(f(1.0)) == 2.0
    space["table"] = np.arange(20_000) + 1
    assert float(f(1.0)) == 3.0


@pytest.mark.parametrize(
    ("source", "is_accessed"),
    [
        ("w[0]", True),
        ("w[i]", True),
        ("w[i + 1, f(j)]", True),
        ("w[:i]", True),
        ("w[a if b else c]", True),
        ("w.T @ x", True),
        ("w.sum()", True),
        ("[e for e in w]", True),
        ("o.w[0]", True),
        ("w", False),
        ("x @ w", False),
        ("w @ x", False),
        ("w.shape[0]", False),
        ("dot(w, x[0])", False),
        ("x[0] * w + x.T", False),
        ("[w, x]", False),
        ("-w", False),
    ],
)
def test_arrays_of_which_code_takes_items(source: str, is_accessed: bool) -> None:
    code = compile(f"def f(x):\n    y = {source}\n    return y + x[0]", "here", "exec").co_consts[0]
    assert (("w", 0) in reads(code)[3]) == is_accessed


def test_a_queue_that_tracing_fills_is_no_dependency() -> None:
    log: collections.deque[int] = collections.deque(maxlen=3)

    def f(x: Any) -> Any:
        log.append(1)
        return x * 2

    g = dn.jit(f)
    for _ in range(3):
        g(dn.tensor([1.0]))
    assert g.cache_info()["misses"] == 1


@pytest.mark.parametrize(
    ("source", "computes"),
    [
        ("getattr(o, 'a')", False),
        ("getattr(o.b, 'a', 1)", False),
        ("getattr(o[0], 'a', o.c + 1)", False),
        ("getattr(o, n)", True),
        ("getattr(o, 'a' + n)", True),
        ("getattr(o, n, None)", True),
        ("getattr(o, n.name)", True),
        ("vars(o)[n]", True),
        ("o.__dict__[n]", True),
        ("o.a.b", False),
    ],
)
def test_which_code_computes_names(source: str, computes: bool) -> None:
    code = compile(f"def f(o, n): return {source}", "f", "exec").co_consts[0]
    assert (ANY in reads(code)[2]) == computes


def test_libraries_are_looked_through_within_bounds() -> None:
    """The search limits the number of objects and attributes, because a library has too many."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    optimize = pytest.importorskip("scipy.optimize")
    stats = pytest.importorskip("scipy.stats")
    x = dn.tensor([1.0])
    for reached in (optimize.minimize, pyplot.plot, stats.norm, optimize.curve_fit):

        def f(x: Any, reached: Any = reached) -> Any:
            return x * 2 if callable(reached) else x

        g = dn.jit(f)
        assert g(x).to_list() == [2.0]
        assert _core.last_looked() <= 5_000
    space = {"optimize": optimize, "plt": pyplot}
    exec("def f(x):\n if x.shape == (2,): optimize.minimize(plt.plot)\n return x", space)
    dn.jit(space["f"])(x)
    assert 0 < _core.last_looked() <= 5_000
