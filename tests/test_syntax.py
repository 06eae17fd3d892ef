"""Python's own control flow in definitions: on plain values, on tensors, and what is refused."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import defn as dn


def both(fun: Any, *args: Any) -> tuple[Any, Any]:
    """What a definition gives, and what the function gives on Python's own numbers."""
    return dn.defn(fun)(*args), fun(*args)


def agrees(fun: Any, *inputs: tuple[Any, ...]) -> None:
    """A definition and the function itself agree on every input."""
    definition = dn.defn(fun)
    for args in inputs:
        np.testing.assert_allclose(
            np.asarray(definition(*args).to_numpy(), float), float(fun(*args)), rtol=1e-6
        )
    assert definition.cache_info()["misses"] == 1, "the values decide, and nothing is traced again"


# if


def test_if_else() -> None:
    def f(x):
        if x > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    agrees(f, (3.0,), (-3.0,), (0.0,))


def test_if_without_else_keeps_the_variable() -> None:
    def f(x):
        y = x + 1
        if x > 0:
            y = y * 10
        return y

    agrees(f, (3.0,), (-3.0,))


def test_elif() -> None:
    def f(x):
        if x > 10:
            y = 1.0
        elif x > 5:
            y = 2.0
        elif x > 0:
            y = 3.0
        else:
            y = 4.0
        return y

    agrees(f, (20.0,), (7.0,), (1.0,), (-1.0,))


def test_every_branch_returns() -> None:
    def f(x):
        if x > 1:
            return x
        elif x < -1:
            scale = 2
            return x * scale
        else:
            return x * x

    agrees(f, (3.0,), (-3.0,), (0.5,))


def test_nested_ifs_share_variables() -> None:
    def f(x, y):
        a = 0.0
        if x > 0:
            a = a + 1
            if y > 0:
                a = a + 10
            else:
                a = a + 20
        elif y > 0:
            a = a - 5
        return a + x

    agrees(f, (1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))


def test_only_the_branch_taken_runs() -> None:
    seen = []

    @dn.defn
    def f(x):
        if x > 0:
            y = dn.log(x)
        else:
            y = x
        return y

    gradient = dn.grad(f)
    assert float(gradient(0.0)) == 1.0, "log's gradient at 0 would be infinite"
    assert float(f(-1.0)) == -1.0
    assert seen == []


def test_augmented_assignment_and_tuples() -> None:
    def f(x):
        a, b = x, 1.0
        if x > 0:
            a += 2
            (a, b) = (b, a)
        return a * 10 + b

    agrees(f, (3.0,), (-3.0,))


def test_containers_go_through_branches() -> None:
    @dataclass
    class Point:
        x: Any
        y: Any

    @dn.defn
    def f(x):
        state = {"w": x, "b": (x, 0.0)}
        point = Point(x, 1.0)
        if x > 0:
            state = {"w": x * 2, "b": (x + 1, 3.0)}
            point = Point(x, 2.0)
        return state["w"] + state["b"][0] + state["b"][1] + point.y

    assert float(f(1.0)) == 2.0 + 2.0 + 3.0 + 2.0
    assert float(f(-1.0)) == -1.0 - 1.0 + 0.0 + 1.0


def test_a_variable_of_one_branch_is_not_bound_after() -> None:
    @dn.defn
    def unused(x):
        if x > 0:
            inner = x * 3
            x = inner + 1
        return x

    assert float(unused(2.0)) == 7.0

    @dn.defn
    def used(x):
        if x > 0:
            inner = x * 3
        return inner

    with pytest.raises(NameError, match="inner"):
        used(2.0)


def test_plain_conditions_stay_plain() -> None:
    log = []

    @dn.defn
    def f(x, *, mode="a", layers=2):
        if mode == "a":
            log.append("a")
            name = "first"
        else:
            log.append("b")
            name = "second"
        for _ in range(layers):
            x = x * 2
        total = 0
        while total < 3:
            total += 1
        return x if name == "first" and not total == 4 else -x

    assert float(f(1.0)) == 4.0
    assert float(f(1.0, mode="b", layers=3)) == -8.0
    assert log == ["a", "b"]


def test_loops_with_break_stay_plain() -> None:
    @dn.defn
    def f(x):
        for i in range(10):
            if i == 3:
                break
            if i == 1:
                continue
            x = x + i
        else:
            x = x * 100
        while True:
            x = x + 1
            if x.rank == 0:
                break
        return x

    assert float(f(0.0)) == 3.0


# while


def test_while() -> None:
    def f(x):
        n = 0
        while x < 100:
            x = x * 2
            n += 1
        return x + n

    agrees(f, (1.0,), (7.0,), (200.0,))


def test_while_with_temporaries_and_a_branch() -> None:
    def f(n):
        steps = 0
        while n != 1:
            half = n // 2
            if n % 2 == 0:
                n = half
            else:
                n = 3 * n + 1
            steps = steps + 1
        return steps

    agrees(f, (27,), (1,), (6,))


def test_while_else_and_a_test_that_binds() -> None:
    def f(x):
        while (y := x * x) < 50:
            x = x + 1
        else:
            x = x + 0.5
        return x + y

    agrees(f, (1.0,), (9.0,))


def test_nested_loops() -> None:
    def f(n):
        total = 0
        i = 0
        while i < n:
            j = 0
            while j < i:
                total = total + i * j
                j = j + 1
            i = i + 1
        return total

    agrees(f, (5,), (0,), (1,))


def test_gradient_of_a_while() -> None:
    @dn.defn
    def f(x):
        i = 0
        while i < 3:
            x = x * x
            i = i + 1
        return x

    assert float(dn.grad(f)(1.1)) == pytest.approx(8 * 1.1**7, rel=1e-5)


# for


def test_for_over_a_range() -> None:
    def f(n):
        total = 0
        for i in dn.range(n):
            total = total + i * i
        return total

    agrees(f, (5,), (0,), (9,))


def test_for_over_a_range_with_bounds_and_step() -> None:
    @dn.defn
    def f(a, b):
        total = 0
        for i in dn.range(a, b, 2):
            total = total * 10 + i
        for i in dn.range(b, a, -3):
            total = total * 10 + i
        return total

    def plain(a, b):
        total = 0
        for i in [*range(a, b, 2), *range(b, a, -3)]:
            total = total * 10 + i
        return total

    for a, b in [(0, 7), (3, 3), (2, 9)]:
        assert int(f(a, b)) == plain(a, b)


def test_a_range_of_numbers_is_one_loop() -> None:
    traces = []

    @dn.defn
    def f(x):
        for i in dn.range(1000):
            traces.append(i)
            x = x + i
        return x

    assert float(f(0.0)) == 499500.0
    assert len(traces) == 1
    assert list(dn.range(2, 8, 3)) == [2, 5]
    assert len(dn.range(2, 8, 3)) == 2


def test_for_over_a_tensor() -> None:
    @dn.defn
    def f(rows):
        total = dn.broadcast(0.0, (2,))
        for row in rows:
            if dn.sum(row) > 0:
                total = total + row
        return total

    rows = np.array([[1, 2], [-5, 1], [3, 4]], np.float32)
    assert f(rows).to_list() == [4.0, 6.0]


def test_the_item_is_not_bound_after_a_traced_loop() -> None:
    @dn.defn
    def f(x):
        for i in dn.range(3):
            x = x + i
        return x + i

    with pytest.raises(NameError):
        f(1.0)


# expressions


def test_conditional_expressions() -> None:
    def f(x):
        return x * 2 if x > 0 else (x - 1 if x < -5 else 0.0)

    agrees(f, (3.0,), (-3.0,), (-30.0,))


def test_and_or_not() -> None:
    @dn.defn
    def f(x, y):
        return x and y, x or y, not x, 1 and y, 0 or x, 0 and y, None or x

    results = [value.item() if isinstance(value, dn.Tensor) else value for value in f(2, 0)]
    assert results == [0, 1, 0, 0, 2, 0, 2]
    results = [value.item() if isinstance(value, dn.Tensor) else value for value in f(1, -1)]
    assert results == [1, 1, 0, -1, 1, 0, 1]


def test_chained_comparisons() -> None:
    calls = []

    @dn.defn
    def f(x):
        def middle():
            calls.append(1)
            return x

        return 0 < middle() < 10, 0 < 1 < x, 3 < 2 < x

    first, second, third = f(5.0)
    assert (int(first), int(second), third) == (1, 1, False)
    assert len(calls) == 1
    assert int(f(50.0)[0]) == 0


def test_lambdas_and_inner_functions_are_rewritten() -> None:
    clamp = dn.defn(lambda x: x if x > 0 else 0.0)
    other = dn.defn(lambda x: -x)
    assert float(clamp(-3.0)) == 0.0
    assert float(clamp(3.0)) == 3.0
    assert float(other(3.0)) == -3.0

    @dn.defn
    def outer(x):
        def inner(y):
            if y > 1:
                y = y * 10
            return y

        return inner(x) + (lambda z: 1.0 if z > 1 else 2.0)(x)

    assert float(outer(2.0)) == 21.0
    assert float(outer(0.5)) == 2.5


# what stays of the function


def test_closures_defaults_and_nonlocal() -> None:
    factor = 3.0
    count = 0

    @dn.defn
    def f(x, bias=10.0, *, scale=2.0):
        nonlocal count
        count += 1
        if x > 0:
            x = x * factor * scale
        return x + bias

    assert float(f(1.0)) == 16.0
    assert float(f(1.0, 0.0, scale=1.0)) == 3.0
    factor = 5.0
    assert float(f(1.0)) == 20.0
    assert count == 3


class Model:
    __secret = 2.0

    def __init__(self, weight: float) -> None:
        self.weight = dn.tensor(weight)

    @dn.defn
    def apply(self, x):
        if x > 0:
            x = x * self.weight * self.__secret
        return x

    @dn.defn
    def twice(self, x):
        if x > 0:
            x = self.apply(x)
        return self.apply(x)


def test_methods_and_private_names() -> None:
    model = Model(3.0)
    assert float(model.apply(2.0)) == 12.0
    assert float(model.apply(-2.0)) == -2.0
    assert float(model.twice(1.0)) == 36.0
    model.weight = dn.tensor(5.0)
    assert float(model.apply(2.0)) == 20.0


@dn.defn
def halvings(x, *, depth=3):
    y = x / 2 if x > 1 else x
    return y if depth == 0 else halvings(y, depth=depth - 1)


class Scale:
    factor = 3.0

    @dn.defn
    def apply(self, x):
        return x * Scale.factor if x > 0 else self.other(x)

    @dn.defn
    def other(self, x):
        return Scale.factor if isinstance(self, Scale) and x < 0 else x


def test_a_function_may_name_itself_and_its_class() -> None:
    assert float(halvings(32.0)) == 2.0
    assert float(halvings(32.0, depth=0)) == 16.0
    assert (float(Scale().apply(2.0)), float(Scale().apply(-2.0))) == (6.0, 3.0)


class Sub(Model):
    def plain(self, x):
        return x + 1

    @dn.defn
    def apply(self, x):
        y = super().apply(x)
        return y if x > 0 else y * 10


def test_super_works() -> None:
    assert float(Sub(3.0).apply(2.0)) == 12.0
    assert float(Sub(3.0).apply(-2.0)) == -20.0


def test_tracebacks_show_the_line() -> None:
    @dn.defn
    def f(x):
        if x > 0:
            y = x
            raise_here(y)
        return x

    def raise_here(y):
        raise RuntimeError("seen")

    with pytest.raises(RuntimeError, match="seen") as caught:
        f(1.0)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "raise_here(y)" in lines
    assert f.__name__ == "f"
    assert "test_tracebacks_show_the_line" in f.__qualname__


def test_lines_are_those_of_the_source() -> None:
    seen: list[int] = []

    def line() -> None:
        seen.append(sys._getframe(1).f_lineno)

    # fmt: off
    @dn.deftransform
    @dn.defn
    def f(x):
        line()
        for i in dn.range(2):
            line()
            x = x + i
        if x > 0:
            line()
        y = (
            x if x > 1 else line()
            or -x
        )
        line()
        return y
    # fmt: on

    f(1.0)
    first = f.__wrapped__.__code__.co_firstlineno
    assert [number - first for number in seen] == [3, 5, 8, 10, 13]


def test_jit_does_not_rewrite_and_keeps_what_defn_did() -> None:
    def f(x):
        if x > 0:
            x = x * 2
        return x

    with pytest.raises(dn.TraceError):
        dn.jit(f)(1.0)
    with pytest.raises(dn.TraceError):
        dn.defn(f, convert=False)(1.0)
    assert float(dn.jit(dn.defn(f))(1.0)) == 2.0
    assert float(dn.jit(lambda x: dn.defn(f)(x))(1.0)) == 2.0


def test_compile_and_debug_expr_rewrite_what_defn_marked() -> None:
    @dn.defn
    def f(x):
        return x * 2 if x > 0 else x

    assert float(dn.compile(f, [dn.template((), "f32")])(3.0)) == 6.0
    assert "cond" in repr(dn.debug_expr(f)(1.0))
    assert float(dn.jit_apply(f, (3.0,))) == 6.0
    assert float(dn.value_and_grad(f)(3.0)[1]) == 2.0


def helper(x):
    return 1.0 if x > 0 else 2.0


def test_plain_helpers_are_not_rewritten() -> None:
    with pytest.raises(dn.TraceError, match="decorated"):
        dn.defn(lambda x: helper(x))(1.0)

    @dn.defn
    def f(x):
        @dn.deftransform
        def rank(y):
            return "vector" if y.rank else "scalar"

        return x if rank(x) == "scalar" else -x

    assert float(f(1.0)) == 1.0
