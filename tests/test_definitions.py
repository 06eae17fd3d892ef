"""Definitions: their arguments, options, transforms, and the forms of a gradient."""

from __future__ import annotations

import asyncio
import contextvars
import operator
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import attrs
import numpy as np
import pytest

import defn as dn
from support import Log


def test_one_definition_for_every_rank() -> None:
    @dn.defn
    def softmax(t):
        return dn.exp(t) / dn.sum(dn.exp(t), axes=-1, keep_axes=True) if t.rank else t * 0 + 1

    assert float(softmax(3.0)) == 1.0
    for shape in ((3,), (2, 3), (2, 1, 3)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        e = np.exp(x)
        np.testing.assert_allclose(softmax(x), e / e.sum(-1, keepdims=True), rtol=1e-6)


def test_operators_are_the_tensors() -> None:
    binary = [
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
        *(operator.mod, operator.pow, operator.lt, operator.le, operator.gt, operator.ge),
        *(operator.eq, operator.ne, operator.and_, operator.or_, operator.xor),
        *(operator.lshift, operator.rshift),
    ]
    x, y = dn.tensor([7, 2, 5]), dn.tensor([2, 3, 1])
    for apply in binary:
        want = apply(x.to_numpy(), y.to_numpy())
        np.testing.assert_allclose(dn.jit(apply)(x, y), want, rtol=1e-7)
        reflected = dn.jit(lambda x, *, f: f(7, x))(y, f=apply)
        np.testing.assert_allclose(reflected, apply(7, y.to_numpy()), rtol=1e-7)
    for apply in (operator.neg, operator.pos, operator.invert, abs):
        np.testing.assert_array_equal(dn.jit(apply)(x), apply(x.to_numpy()))


def test_numbers_among_themselves_stay_numbers() -> None:
    seen: list[Any] = []

    @dn.defn
    def f(x):
        half = 1 / 2
        seen.append((half, 7 // 2, 2**0.5 > 1))
        return x * half

    assert float(f(3.0)) == 1.5
    assert seen == [(0.5, 3, True)]


def test_shapes_and_names_are_matched_while_tracing() -> None:
    @dn.defn
    def rows(x):
        match x.shape:
            case ():
                return "a scalar", x
            case (n,) if n % 2 == 0:
                return f"{n // 2} pairs", x[::2]
            case (_, columns):
                return f"rows of {columns}", x[0]
            case _:
                return "something else", x

    assert rows(1.0)[0] == "a scalar"
    assert rows(dn.iota((4,)))[1].to_list() == [0, 2]
    assert rows(dn.iota((2, 3)))[0] == "rows of 3"
    assert rows(dn.iota((3,)))[0] == "something else"
    graph = repr(dn.debug_expr(rows)(dn.iota((4,)))[1])
    assert "slice" in graph
    assert "cond" not in graph


def test_jit_apply() -> None:
    def f(x, y=1.0, *, by=2):
        return dn.hook((x + y) * by, "out")

    seen: list[float] = []
    assert float(dn.jit_apply(f, [3.0])) == 8.0
    assert float(dn.jit_apply(f, (3.0,), {"y": 2.0, "by": 10})) == 50.0
    out = dn.jit_apply(
        f, [3.0], hooks={"out": lambda v: seen.append(float(v))}, compiler="evaluator"
    )
    assert (float(out), seen) == (8.0, [8.0])


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *((1, "s32"), (1.5, "f32"), (1j, "c64"), (np.int16(1), "s16"), (np.float64(1), "f64")),
        *((np.array([1.0]), "f64"), (np.array([True]), "bool"), (dn.tensor(1, dtype="u2"), "u2")),
    ],
    ids=str,
)
def test_numbers_and_arrays_become_tensors(value: Any, dtype: str) -> None:
    seen = Log()

    @dn.jit
    def f(x):
        seen.append((type(x), x.dtype))
        return x

    assert f(value).dtype == dtype
    f(value)
    assert seen.items == [(dn.Tensor, dtype)]


def test_numbers_are_no_constants() -> None:
    f = dn.jit(lambda x, y: x + y)
    assert [int(f(n, n)) for n in range(5)] == [0, 2, 4, 6, 8]
    assert f.cache_info()["misses"] == 1


def test_functions_are_static_arguments() -> None:
    traced = Log()

    @dn.defn
    def twice(fun, x):
        traced.append(fun)
        return fun(fun(x))

    double = lambda x: x * 2  # noqa: E731
    assert float(twice(double, 3.0)) == 12.0
    assert float(twice(double, 4.0)) == 16.0
    assert float(twice(dn.sin, 0.0)) == 0.0
    assert len(traced) == 2
    assert float(twice((lambda x: x + 1), 3.0)) == 5.0
    pair = dn.jit(lambda funs, x: funs[0](funs[1](x)))
    assert float(pair((dn.negate, dn.abs), -3.0)) == -3.0


def test_each_set_of_options_is_a_version() -> None:
    @dn.defn
    def zeros(*, dtype="f32", shape=()):
        return dn.broadcast(dn.tensor(0, dtype=dtype), shape)

    assert (zeros().shape, zeros().dtype) == ((), "f32")
    assert zeros(dtype="s8", shape=(2, 3)).shape == (2, 3)
    zeros(shape=(2, 3), dtype="s8")
    assert zeros.cache_info()["misses"] == 2


def test_keyword_in_a_definition() -> None:
    @dn.defn
    def scaled(x, **options):
        options = dn.keyword(options, by=2.0, shift=0.0)
        return x * options["by"] + options["shift"]

    assert float(scaled(3.0)) == 6.0
    assert float(scaled(3.0, shift=1.0)) == 7.0
    with pytest.raises(dn.OptionError, match='"shft", it takes by, shift'):
        scaled(3.0, shft=1.0)


def test_a_transform_runs_while_tracing_and_is_python() -> None:
    """It takes traced tensors, returns plain data, keeps defaults, and uses Python's conditions."""
    seen = Log()

    @dn.deftransform
    def strides(shape, unit=1):
        out, size = [], unit
        for n in reversed(shape):
            out.append(size)
            if n > 1:
                size = size * n
        return tuple(reversed(out))

    @dn.deftransform
    def note(x):
        seen.append(repr(x))

    @dn.defn
    def flat(x):
        note(x + 1)
        return dn.sum(x * dn.tensor(list(strides(x.shape))))

    assert int(flat(dn.tensor([[1, 1], [1, 1]]))) == 6
    assert int(flat(dn.tensor([[2, 2], [2, 2]]))) == 12
    assert len(seen) == 1
    assert "b = add a, 1" in seen.items[0]
    assert strides((2, 3), unit=4) == (12, 4)


def test_print_expr_passes_on_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    @dn.defn
    def tanh_power(a, b):
        return dn.print_expr(dn.tanh(a) + dn.pow(b, 2))

    value = tanh_power(0.0, 3.0)
    assert float(value) == 9.0
    assert tanh_power(0.0, 4.0).item() == 16.0
    assert capsys.readouterr().out.splitlines() == [
        "Tensor<",
        "  f32",
        "",
        "  parameter a:0    f32",
        "  parameter c:1    f32",
        "  b = tanh a       f32",
        "  d = pow c, 2.0   f32",
        "  e = add b, d     f32",
        ">",
    ]


def test_debug_expr_takes_jits_options_and_runs_nothing() -> None:
    seen: list[Any] = []

    def f(x, n, *, by):
        return {"y": dn.hook(dn.broadcast(x * by, (n,)), seen.append), "n": n}

    expr = dn.debug_expr(f, static=("n",), compiler="evaluator", on_conflict="reuse")
    found = expr(dn.tensor(1.0), n=3, by=2.0)
    assert (found["n"], found["y"].shape, found["y"].dtype) == (3, (3,), "f32")
    marked = dn.jit(f, static="n")
    assert dn.debug_expr(marked)(1.0, 3, by=2.0)["y"].shape == (3,)
    assert "parameter b:1" in repr(dn.debug_expr(lambda x, y: x + y)(1.0, y=2.0))
    with pytest.raises(dn.OptionError, match='"m", the function has x, n, by'):
        dn.debug_expr(f, static="m")(1.0, 3, by=2.0)
    assert seen == []
    assert repr(dn.debug_expr_apply(f, [1.0, 3], {"by": 2.0}, static=("n",))["y"]) == repr(
        found["y"]
    )


def test_a_compiler_for_all_calls_of_a_block() -> None:
    with dn.options(compiler="evaluator"):
        assert float(dn.grad(lambda x: x * x)(3.0)) == 6.0
        assert float(dn.compile(dn.sin, [0.0])(0.0)) == 0.0
    with pytest.raises(dn.CompileError), dn.options(compiler="fast"):
        dn.jit(dn.sin)(0.0)


@pytest.mark.usefixtures("no_options")
def test_options_are_a_contexts_own() -> None:
    """They override the process's options. A task starts with the options where it was created."""

    async def child() -> tuple[dict[str, Any], dict[str, Any]]:
        before = dn.default_options()
        dn.default_options(max_compiles=7)
        return before, dn.default_options()

    async def parent() -> list[Any]:
        dn.default_options(max_compiles=5)
        return [await asyncio.create_task(child()), dn.default_options()]

    assert asyncio.run(parent()) == [
        ({"max_compiles": 5}, {"max_compiles": 7}),
        {"max_compiles": 5},
    ]
    assert dn.default_options() == {}
    context = contextvars.copy_context()
    context.run(dn.default_options, max_compiles=3)
    assert (dn.default_options(), context.run(dn.default_options)) == ({}, {"max_compiles": 3})
    before = dn.global_default_options(max_compiles=9)
    try:
        assert dn.default_options() == {"max_compiles": 9}
        with dn.options(max_compiles=1):
            assert dn.default_options() == {"max_compiles": 1}
            assert dn.global_default_options() == {"max_compiles": 9}
    finally:
        dn.global_default_options(before)


@pytest.mark.parametrize(
    ("variables", "program", "printed"),
    [
        ({"DEFN_COMPILER": "evaluator"}, "", "{'compiler': 'evaluator'}"),
        ({"DEFN_BACKEND": "cpu"}, "", "{'backend': 'cpu'}"),
        ({}, "", "{}"),
        ({"DEFN_COMPILER": ""}, "", "{}"),
        ({"DEFN_COMPILER": "evaluator"}, "dn.global_default_options({})", "{}"),
        ({"DEFN_COMPILER": "evaluator"}, "dn.jit(dn.sin)(0.0)", "{'compiler': 'evaluator'}"),
        ({"DEFN_COMPILER": "fast"}, "dn.jit(dn.sin)(0.0)", 'CompileError: compiler: "fast"'),
    ],
    ids=str,
)
def test_the_environment_says_the_first_options(
    variables: dict[str, str], program: str, printed: str
) -> None:
    code = f"import defn as dn\n{program}\nprint(dn.global_default_options())"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DEFN_")}
    environment = {**clean, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert printed in (done.stdout if done.returncode == 0 else done.stderr)


@dataclass
class Line:
    slope: Any
    shift: Any


@attrs.frozen
class Curve:
    slope: Any
    shift: Any


FORMS: list[tuple[Any, Any]] = [
    (3.0, lambda v: v * v),
    (dn.tensor([3.0, 3.0]), lambda v: v * v / 2),
    ((3.0, 2.0), lambda v: v[0] * v[0] * v[1] / 2),
    ([3.0], lambda v: v[0] * v[0]),
    ({"a": 3.0, "b": {"c": 1.0}}, lambda v: v["a"] * v["a"] * v["b"]["c"]),
    (Line(3.0, 1.0), lambda v: v.slope * v.slope + v.shift),
    (Curve(3.0, 1.0), lambda v: v.slope * v.slope * v.shift),
]


@pytest.mark.parametrize(("variables", "fun"), FORMS, ids=lambda v: type(v).__name__)
def test_every_form_of_a_gradient(variables: Any, fun: Any) -> None:
    """Of a function, at variables, with the value, with a transform: all have the same gradient."""
    one = dn.grad(variables, fun)
    assert type(one) is (dn.Tensor if isinstance(variables, float) else type(variables))
    leaves = dn.jit(lambda v: repr(v) and v)
    value, two = dn.value_and_grad(variables, fun)
    many, three = dn.value_and_grad(variables, lambda v: (fun(v), v), transform=lambda m: m[0])
    more, four = dn.value_and_grad(lambda v: {"loss": fun(v)}, lambda m: m["loss"])(variables)
    inside = dn.jit(lambda v: dn.grad(v, fun))(variables)
    plain = dn.grad(fun)(variables)
    assert repr(many[0]) == repr(value) == repr(more["loss"]) == repr(fun(leaves(variables)))
    assert repr(one) == repr(two) == repr(three) == repr(four) == repr(inside) == repr(plain)


def test_stop_grad_and_mark_keep_containers() -> None:
    line = Line(dn.tensor(2.0), {"x": dn.tensor([3.0])})
    for keep in (dn.stop_grad, lambda v: dn.mark(v, "line")):
        kept = dn.jit(keep)(line)
        assert isinstance(kept, Line)
        assert kept.shift["x"].to_list() == [3.0]
