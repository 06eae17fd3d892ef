"""Python's own control flow in definitions: on plain values, on tensors, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import defn as dn


def both(fun: Any, *args: Any) -> tuple[Any, Any]:
    """The results of a definition, and of its function on Python's own numbers."""
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

    with pytest.raises(dn.TraceError, match="variable inner is bound in one branch only"):
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

    def note(i):
        traces.append(i)

    @dn.defn
    def f(x):
        for i in dn.range(1000):
            note(i)
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

    with pytest.raises(dn.TraceError, match="variable i is bound first in the loop at"):
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


def test_a_range_with_a_traced_bound_is_a_loop() -> None:
    @dn.defn
    def power(x: Any, n: Any) -> Any:
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    assert [float(power(3.0, n)) for n in (0, 1, 4)] == [1.0, 3.0, 81.0]
    assert power.cache_info()["misses"] == 1
    assert "while" in repr(dn.debug_expr(power)(3.0, 4))
    for n in (0, 1, 4):
        assert float(dn.grad(power)(3.0, n)) == n * 3.0 ** max(n - 1, 0)
    with pytest.raises(dn.DTypeError, match="range: a bound is f32, it must be an integer"):
        power(3.0, 4.0)


def test_a_range_with_traced_bounds_steps_stops_and_nests() -> None:
    @dn.defn
    def count(first: Any, last: Any) -> Any:
        total, steps = 0, 0
        for i in range(last, first, -2):
            for k in range(i):
                if k == 3:
                    break
                total = total + i
            steps = steps + 1
        return total, steps

    def wanted(first: int, last: int) -> tuple[int, int]:
        found = [(i, k) for i in range(last, first, -2) for k in range(i) if k < 3]
        return sum(i for i, _ in found), len(range(last, first, -2))

    for first, last in ((0, 7), (2, 8), (5, 5), (6, 2)):
        assert tuple(int(value) for value in count(first, last)) == wanted(first, last)
    assert count.cache_info()["misses"] == 1


def test_another_range_is_called_as_it_is() -> None:
    """One that the user defines, and Python's with values that are known."""

    @dn.defn
    def own(x: Any, n: Any) -> Any:
        def range(bound: Any) -> Any:
            return [1.0, 2.0, 3.0] if isinstance(bound, dn.Tensor) else []

        for k in range(n):
            x = x * k
        return x

    assert float(own(1.0, 5)) == 6.0

    @dn.defn
    def known(x: Any, *, n: int) -> Any:
        for k in range(*(1, n)):
            x = x + k
        return x

    assert float(known(0.0, n=4)) == 6.0
    assert "while" not in repr(dn.debug_expr(known)(0.0, n=4))


def test_a_range_that_is_not_rewritten_says_what_to_use() -> None:
    def power(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x * x
        return x

    hint = "loop over it in a function decorated with defn, or with dn.for_ over dn.range"
    for wrapped in (dn.jit(power), dn.defn(power, convert=False)):
        with pytest.raises(dn.TraceError, match=hint):
            wrapped(3.0, 2)
