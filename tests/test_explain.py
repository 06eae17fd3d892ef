"""Why a version was compiled: each cause with its exact sentence."""

from __future__ import annotations

import dataclasses
import sys
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn
from support import Held

FIRST = "nothing was compiled before"


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any


@dataclasses.dataclass(frozen=True)
class Dense:
    weight: Any
    bias: Any


class Point(NamedTuple):
    x: Any
    y: Any


class Bag:
    """A container of this test, identified by a label."""

    def __init__(self, label: str, items: list[Any]) -> None:
        self.label, self.items = label, items


dn.register_container(
    Bag, lambda bag: (bag.items, bag.label), lambda label, items: Bag(label, items)
)


def relu(x: Any) -> Any:
    return dn.max(x, 0)


def double(x: Any) -> Any:
    return x * 2


f32 = dn.tensor(1.0)
f32_2 = dn.tensor([1.0, 2.0])
s32_2 = dn.tensor([1, 2])
f32_3 = dn.tensor([1.0, 2.0, 3.0])
f32_2_1 = dn.tensor([[1.0], [2.0]])
named = dn.tensor([1.0, 2.0], names=["row"])

ARGUMENTS = {
    "dtype": (f32_2, s32_2, "the dtype of x changed from f32[2] to s32[2]"),
    "dtype of a number": (1.0, 1, "the dtype of x changed from f32 to s32"),
    "a number and a tensor": (1.0, f32, "x changed from a number (f32) to f32"),
    "a tensor and a number": (f32, 1, "x changed from f32 to a number (s32)"),
    "shape": (f32_2, f32_3, "the shape of x changed from f32[2] to f32[3]"),
    "rank": (f32_2, f32_2_1, "the rank of x changed from f32[2] to f32[2][1]"),
    "names": (f32_2, named, "the names of x changed from f32[2] to f32[row: 2]"),
    "vectorized axes": (
        f32_2,
        dn.vectorize(f32_2, "v"),
        "the rank and vectorized axes of x changed from f32[2] to vectorized[v: 2] f32",
    ),
    "another vectorized axis": (
        dn.vectorize(f32_2_1, "v"),
        dn.vectorize(f32_2_1, "w"),
        "the vectorized axes of x changed from vectorized[v: 2] f32[1] to vectorized[w: 2] f32[1]",
    ),
    "dtype, shape and names": (
        named,
        dn.tensor([1, 2, 3]),
        "the dtype, shape and names of x changed from f32[row: 2] to s32[3]",
    ),
    "keys": (
        {"a": 1.0},
        {"a": 1.0, "b": 2.0},
        'the keys of x changed from ["a"] to ["a", "b"]',
    ),
    "order of keys": (
        {"a": 1.0, "b": 2.0},
        {"b": 1.0, "a": 2.0},
        'the keys of x changed from ["a", "b"] to ["b", "a"]',
    ),
    "length of a tuple": ((1.0,), (1.0, 2.0), "the length of x changed from 1 to 2"),
    "length of a list inside": (
        {"w": [1.0]},
        {"w": []},
        'the length of x["w"] changed from 1 to 0',
    ),
    "tuple and list": ((1.0,), [1.0], "the type of x changed from tuple to list"),
    "dict and ordered dict": (
        {"a": 1.0},
        OrderedDict(a=1.0),
        "the type of x changed from dict to OrderedDict",
    ),
    "class": (
        Layer(1.0, 2.0),
        Dense(1.0, 2.0),
        "the type of x changed from Layer to Dense",
    ),
    "named tuple": (Point(1.0, 2.0), Point(1, 2.0), "the dtype of x.x changed from f32 to s32"),
    "what a container says of itself": (
        Bag("a", [1.0]),
        Bag("b", [1.0]),
        'the value of x changed from "a" to "b"',
    ),
    "a place deep inside": (
        {"w": [Layer(1.0, f32_2)]},
        {"w": [Layer(1.0, f32_3)]},
        'the shape of x["w"][0].bias changed from f32[2] to f32[3]',
    ),
    "a key that is no text": (
        {(1, "a"): 1.0},
        {(1, "a"): 1},
        "the dtype of x[(1, 'a')] changed from f32 to s32",
    ),
    "None and a tensor": (None, f32_2, "x changed from None to f32[2]"),
    "a tensor and None": (f32_2, None, "x changed from f32[2] to None"),
    "a tensor and a container": (f32_2, {"a": f32_2}, "x changed from f32[2] to a dict"),
    "a static text": ("fast", "slow", 'the value of x changed from "fast" to "slow"'),
    "a static truth": (True, False, "the value of x changed from True to False"),
    "a static type": (True, "yes", 'the type of x changed from bool True to str "yes"'),
    "an input that became static": (1, True, "x changed from s32 to True"),
    "functions": (relu, double, "x changed from the function relu to the function double"),
    "functions of one name": (
        lambda x: x,
        lambda x: -x,
        "x changed from the function <lambda> to another <lambda>",
    ),
    "two places": (
        (1.0, 2.0),
        (1, 2),
        "the dtype of x[0] changed from f32 to s32, and the dtype of x[1] changed from f32 to s32",
    ),
    "many places": (
        (1.0,) * 6,
        (1,) * 6,
        "the dtype of x[0] changed from f32 to s32, and the dtype of x[1] changed from f32 to s32, "
        "and the dtype of x[2] changed from f32 to s32, and 3 more differences",
    ),
    "NumPy arrays": (
        np.zeros(2, np.float32),
        np.zeros(2),
        "the dtype of x changed from f32[2] to f64[2]",
    ),
}


@pytest.mark.parametrize("cause", ARGUMENTS)
def test_arguments(cause: str) -> None:
    old, new, sentence = ARGUMENTS[cause]
    f = dn.jit(lambda x: 0)
    f.cache_clear()
    f(old)
    f(new)
    f(old)
    f(new)
    assert f.explain() == [FIRST, sentence]


OPTIONS = {
    "value": ({"n": 2}, {"n": 3}, "the value of n changed from 2 to 3"),
    "value inside": (
        {"n": {"k": (1, 2)}},
        {"n": {"k": (1, 3)}},
        'the value of n["k"][1] changed from 2 to 3',
    ),
    "1 and True": ({"n": 1}, {"n": True}, "the type of n changed from int 1 to bool True"),
    "1 and 1.0": ({"n": 1}, {"n": 1.0}, "the type of n changed from int 1 to float 1.0"),
    "signs of zero": ({"n": 0.0}, {"n": -0.0}, "the value of n changed from 0.0 to -0.0"),
    "a tensor": ({"n": 1}, {"n": f32}, "n changed from 1 to f32"),
    "the type of a tensor": ({"n": f32}, {"n": f32_2}, "the rank of n changed from f32 to f32[2]"),
    "None": ({"n": None}, {"n": 3}, "n changed from None to 3"),
    "not given": ({}, {"n": 3}, "n changed from not given to 3"),
    "no longer given": ({"n": 3}, {}, "n changed from 3 to not given"),
    "further options": ({"a": 1}, {"a": 2}, "the value of a changed from 1 to 2"),
    "order": (
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        "the order of the arguments changed from a, b to b, a",
    ),
    "an object": (
        {"n": Held(1)},
        {"n": Held(1)},
        "n changed from a Held to another Held",
    ),
    "a long value": (
        {"n": "a" * 100},
        {"n": "b" * 100},
        f'the value of n changed from "{"a" * 56}... to "{"b" * 56}...',
    ),
    "dtypes": ({"n": dn.f32}, {"n": dn.f64}, "the value of n changed from f32 to f64"),
    "classes": (
        {"n": Layer},
        {"n": Dense},
        "the value of n changed from the class Layer to the class Dense",
    ),
}


@pytest.mark.parametrize("cause", OPTIONS)
def test_options(cause: str) -> None:
    old, new, sentence = OPTIONS[cause]
    f = dn.jit(lambda *, n=0, **others: 0)
    f.cache_clear()
    f(**old)
    f(**new)
    f(**old)
    f(**new)
    assert f.explain() == [FIRST, sentence]


def test_the_number_of_arguments() -> None:
    f = dn.jit(lambda x, y=1.0, *rest: x)
    f(1.0)
    f(1.0, 2.0)
    f(1.0, 2.0, 3.0, 4)
    f(1.0, y=5.0)
    assert f.explain() == [
        FIRST,
        "y changed from not given to f32",
        "rest[0] changed from not given to f32, and rest[1] changed from not given to s32",
    ]


def test_parameters_that_are_static() -> None:
    f = dn.jit(lambda x, n: x, static="n")
    f(1.0, 2)
    f(1.0, n=3)
    assert f.explain() == [FIRST, "the value of n changed from 2 to 3"]


def closed_over(n: Any) -> Any:
    return dn.jit(lambda x: (x, n)[0])


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (2, 3, "the value of the closure's n changed from 2 to 3"),
        (2, 2.0, "the type of the closure's n changed from int 2 to float 2.0"),
        ({"k": 2}, {"k": 3}, 'the value of the closure\'s n["k"] changed from 2 to 3'),
        (f32_2, s32_2, "the dtype of the closure's n changed from f32[2] to s32[2]"),
        (None, f32_2, "the closure's n changed from None to f32[2]"),
        (relu, double, "the closure's n changed from the function relu to the function double"),
        (Held(1), Held(1), "the closure's n changed from a Held to another Held"),
    ],
)
def test_values_of_closures(old: Any, new: Any, sentence: str) -> None:
    closed_over(old).cache_clear()
    f, g = closed_over(old), closed_over(new)
    f(1.0)
    g(1.0)
    f(2.0)
    closed_over(new)(1.0)
    assert (f.explain(), g.explain()) == ([FIRST], [sentence])


def test_values_of_functions_inside() -> None:
    def make(n: int) -> Any:
        def scale(x: Any) -> Any:
            return x * n

        return dn.jit(lambda x: scale(x))

    f, g = make(2), make(3)
    f(1.0)
    g(1.0)
    assert g.explain() == ["the value of the closure's n of scale changed from 2 to 3"]


def test_a_captured_tensor_of_another_type() -> None:
    weights = {"w": dn.tensor([1.0, 2.0])}
    f = dn.jit(lambda x: x + weights["w"])
    f(1.0)
    weights["w"] = dn.tensor([1.0, 2.0, 3.0])
    assert f(1.0).to_list() == [2.0, 3.0, 4.0]
    assert f.explain() == [
        FIRST,
        'the shape of the closure\'s weights["w"] changed from f32[2] to f32[3]',
    ]


def test_defaults() -> None:
    def make(d: Any) -> Any:
        def f(x: Any, s: Any = d, *, t: Any = d) -> Any:
            return x + s + t

        return dn.jit(f)

    f, g = make(1), make(2)
    f(1.0)
    g(1.0)
    assert g.explain() == [
        "the value of s's default changed from 1 to 2, and the value of t's default changed from "
        "1 to 2"
    ]


def test_what_a_partial_holds() -> None:
    def f(x: Any, *, n: Any) -> Any:
        return x * n

    g = partial(f, n=2)
    jitted = dn.jit(g)
    jitted(1.0)
    g.keywords["n"] = 3
    assert float(jitted(1.0)) == 3.0
    assert jitted.explain() == [
        FIRST,
        'the value of the partial\'s keywords["n"] changed from 2 to 3',
    ]


RATE: Any = 2.0


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    f = dn.jit(lambda x: x * RATE)
    half = dn.tensor(1.0, dtype="f16")
    seen = []
    for rate in (2.0, 3.0, 3, f32_2, s32_2, f32, 5.0, dn.tensor(7.0), 5.0, np.float32(6.0), 8):
        monkeypatch.setattr(module, "RATE", rate)
        seen.append(f(half).dtype)
    assert f.explain() == [
        FIRST,
        "the value of the global RATE changed from 2.0 to 3.0",
        "the type of the global RATE changed from float 3.0 to int 3",
        "the global RATE changed from 3 to f32[2]",
        "the dtype of the global RATE changed from f32[2] to s32[2]",
        "the rank of the global RATE changed from f32[2] to f32",
        "the global RATE changed from f32 to 5.0",
        "the type of the global RATE changed from float 5.0 to int 8",
    ]
    assert [str(dtype) for dtype in seen] == [
        "f16", "f16", "f16", "f32", "f16", "f32", "f16", "f32", "f16", "f32", "f16",
    ]  # fmt: skip


def test_a_global_that_becomes_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dn.jit(lambda x: x * RATE)
    f(1.0)
    monkeypatch.setattr(sys.modules[__name__], "RATE", np.float64(3.0))
    assert f(1.0).dtype == "f64"
    assert f.explain() == [FIRST, "the global RATE changed from 2.0 to f64"]


HELPER: Any = relu


def test_globals_that_are_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dn.jit(lambda x: HELPER(x))
    f(1.0)
    monkeypatch.setattr(sys.modules[__name__], "HELPER", double)
    assert float(f(1.0)) == 2.0
    assert f.explain() == [
        FIRST,
        "the global HELPER changed from the function relu to the function double",
    ]


def test_objects_of_methods() -> None:
    class Model:
        @dn.defn
        def apply(self, x: Any) -> Any:
            return x

    class Other(Model):
        pass

    models = [Model(), Model(), Other()]
    for model in models:
        model.apply(1.0)
        model.apply(2.0)
    assert Model.apply.explain() == [
        FIRST,
        "self changed from a Model to another Model",
        "the type of self changed from Model to Other",
    ]


def test_hooks() -> None:
    def make(log: list[Any]) -> Any:
        return dn.jit(lambda x: dn.hook(x, lambda v: log.append(float(v))))

    first: list[Any] = []
    f, g = make(first), make(first)
    f(1.0)
    g(2.0)
    assert first == [1.0, 2.0]
    assert g.explain() == [
        "the set of hooks changed from those of <lambda> to those of another <lambda>"
    ]


def test_checks_and_default_options() -> None:
    f = dn.jit(lambda x: x + 1)
    f(1.0)
    with dn.checks("nan"):
        f(1.0)
        with dn.checks("index"):
            f(1.0)
    with dn.options(backend="cpu", print_limit=3):
        f(1.0)
    assert f.explain() == [
        FIRST,
        'the set of checks changed from none to "nan"',
        'the set of checks changed from "nan" to "nan" and "index"',
    ]


class Plain(dn.Compiler):
    """Compiles like the evaluator, whatever its options."""

    def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
        return dn.compilers.get("evaluator").compile(key, vars, fun, {})


def test_compilers_and_their_options() -> None:
    def double(x: Any) -> Any:
        return x * 2

    first, second = Plain(), Plain()
    calls = [
        dn.jit(double, compiler="evaluator"),
        dn.jit(double, compiler=first),
        dn.jit(double, compiler=first, level=2),
        dn.jit(double, compiler=second, level=2),
        dn.jit(double, compiler=first, level=2),
    ]
    for call in calls:
        assert float(call(2.0)) == 4.0
    assert [call.explain() for call in calls] == [
        [FIRST],
        ['the compiler changed from "evaluator" to "Plain"'],
        ["the options of the compiler changed from {} to {'level': 2}"],
        ['the compiler changed from "Plain" to another "Plain"'],
        [],
    ]
    default = dn.jit(double)
    with dn.options(compiler="evaluator"):
        default(3.0)
    with dn.options(compiler=second):
        default(3.0)
    assert default.explain() == ["the options of the compiler changed from {'level': 2} to {}"]


def test_the_nearest_is_the_one_with_the_fewest_differences() -> None:
    f = dn.jit(lambda x, y: x)
    f(f32_2, f32_2)
    f(s32_2, f32_3)
    f(s32_2, f32_2_1)
    f(f32_2, f32_3)
    f(f32_2, dn.tensor([1.0, 2.0, 3.0, 4.0]))
    assert f.explain() == [
        FIRST,
        "the dtype of x changed from f32[2] to s32[2], and the shape of y changed from f32[2] to "
        "f32[3]",
        "the rank of y changed from f32[3] to f32[2][1]",
        "the dtype of x changed from s32[2] to f32[2]",
        "the shape of y changed from f32[3] to f32[4]",
    ]


class Loud:
    """A static value whose ``repr`` raises."""

    def __repr__(self) -> str:
        raise ValueError("no text")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 1


def test_a_value_without_a_text() -> None:
    f = dn.jit(lambda *, n: 0)
    f(n=Loud())
    f(n=Loud())
    assert f.explain() == [FIRST, "the value of n changed from a Loud to another Loud"]


def test_what_compiles_nothing_again() -> None:
    weight = dn.tensor([1.0, 2.0])

    def run(x: Any, *, n: Any) -> Any:
        f = dn.jit(lambda x, *, n: x * weight + n)
        f(x, n=n)
        return f.explain()

    nan = float("nan")
    assert run(1.0, n=nan) == [FIRST]
    assert run(2.0, n=nan) == []
    assert run(3.0, n=float("nan")) == []
    assert run(4.0, n=nan) == []
    weight = dn.tensor([3.0, 4.0])
    assert run(5.0, n=nan) == []
    with dn.options(print_limit=5):
        assert run(5.0, n=nan) == []
    assert run(5.0, n=-0.0) == ["the value of n changed from nan to -0.0"]
    assert run(5.0, n=-0.0) == []
    assert run(5.0, n=0.0) == ["the value of n changed from -0.0 to 0.0"]


def test_a_failed_trace_is_no_version() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("mine")

    f = dn.jit(fail)
    with pytest.raises(ValueError, match="mine"):
        f(1.0)
    assert f.explain() == []
    assert f.cache_info()["misses"] == 0


def test_clearing_begins_anew() -> None:
    f = dn.jit(lambda x: x)
    f(1.0)
    f(1)
    f.cache_clear()
    assert f.explain() == []
    f(1)
    assert f.explain() == [FIRST]


def test_max_compiles_says_why() -> None:
    f = dn.jit(lambda x: x, max_compiles=1)
    f(f32_2)
    with pytest.raises(dn.CompileError) as info:
        f(f32_3)
    assert str(info.value).splitlines()[0] == (
        "jit: test_max_compiles_says_why.<locals>.<lambda> was compiled 1 times, max_compiles "
        "allows 1; the shape of x changed from f32[2] to f32[3]"
    )
