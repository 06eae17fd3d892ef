"""Ways out of branches and loops on tensors: results equal those for Python's numbers."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import defn as dn


def guard(x):
    if x < 0:
        return -x
    y = x * 2
    if y > 10:
        return y + 100
    return y


def guards_inside(x):
    if x > 0:
        if x > 10:
            return x
        z = 1.0
    else:
        z = 2.0
    return x + z


def forever(x):
    n = 0
    while True:
        x = x / 2
        n = n + 1
        if x < 1:
            break
    return n + x


def collatz(x):
    n = abs(x) // 1 + 2
    steps = 0
    while True:
        if n == 1:
            break
        if n % 2 == 0:
            n = n // 2
            steps += 1
            continue
        n = 3 * n + 1
        steps += 1
    return steps


def broken(x):
    total = 0.0
    for i in dn.range(10):
        if i == 2:
            continue
        total = total + x
        if total > 10:
            break
    return total


def items(x):
    total = 0.0
    for k in [1, 2, 3, 4]:
        total = total + k
        if total > x:
            break
    return total


def otherwise(x):
    i = 0
    for i in dn.range(5):
        if x < i:
            break
    else:
        x = x + 1000
    return x + i


def otherwise_while(x):
    n = 0
    while x < 100:
        x = x * 3 + 1
        n += 1
        if n > 3:
            break
    else:
        x = x + 0.5
    return x + n


def nested(x):
    count = 0
    for i in dn.range(5):
        j = 0
        while True:
            j += 1
            if j > i:
                break
        count += j
        if count > 8 + x:
            break
    return count


def returned(x):
    while True:
        x = x + 1
        if x > 5:
            return x


def returned_twice(x):
    y = 0.0
    while x < 100:
        x = x * 3
        if x > 20:
            y = x + 1
            return y * 2
        if x < -50:
            return x
    return y


def newton(x):
    a, new, i = abs(x) + 1, 1.0, 0
    for i in dn.range(50):
        new = 0.5 * (a + (abs(x) + 1) / a)
        if abs(new - a) < 1e-3:
            return new + i
        a = new
    return -1.0


def from_inner(x):
    i = j = 0
    for i in dn.range(3):
        for j in dn.range(3):
            if i * 3 + j > x:
                return i * 10 + j
    return -1


def unrolled(x):
    for k in [1, 2, 3]:
        if x < k:
            return x * 10 + k
    return x


def skipped(x):
    total = 0.0
    for k in dn.range(6):
        if k > x:
            if k == 4:
                continue
            total += 1
        else:
            total += 10
        total += 100
    return total


FUNCTIONS = [
    guard, guards_inside, forever, collatz, broken, items, otherwise, otherwise_while, nested,
    returned, returned_twice, newton, from_inner, unrolled, skipped,
]  # fmt: skip
INPUTS = (-3.0, -0.5, 0.0, 0.5, 2.5, 4.0, 7.0, 11.0, 150.0)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_they_give_what_python_gives(fun: Any) -> None:
    definition = dn.defn(fun)
    for x in INPUTS:
        if (fun is returned_twice and x == 0) or (fun is forever and x <= 0):
            continue  # This call does not end.
        assert float(definition(x)) == pytest.approx(float(fun(x)), rel=1e-5), x
    assert definition.cache_info()["misses"] == 1, "the values decide nothing while it is traced"


@pytest.mark.parametrize("fun", [guard, guards_inside, forever, broken, returned, unrolled])
def test_gradients_go_through(fun: Any) -> None:
    definition = dn.defn(fun)
    for x in (0.7, 2.2, 5.3):
        step = 1e-6
        slope = (float(fun(x + step)) - float(fun(x - step))) / (2 * step)
        assert float(dn.grad(definition)(np.float64(x))) == pytest.approx(slope, rel=1e-4), x


def test_rows_of_a_tensor() -> None:
    @dn.defn
    def f(x, limit):
        total = 0.0
        for v in x:
            if v < 0:
                continue
            total += v
            if total > limit:
                break
        else:
            total = total + 1000
        return total

    x = np.array([1.0, -2, 3, 4, 5.0])
    assert float(f(x, 7.0)) == 8.0
    assert float(f(x, 700.0)) == 1013.0
    assert float(f(x[:0], 7.0)) == 1000.0


def test_a_loop_ends_where_it_is_left() -> None:
    seen: list[int] = []

    @dn.defn
    def f(x):
        for i in dn.range(1000000000):
            dn.hook(i, lambda value: seen.append(int(value)))
            if i > x:
                break
        return x

    assert int(f(2)) == 2
    assert seen == [0, 1, 2, 3]


def test_an_iterator_is_not_read_beyond_a_break() -> None:
    numbers = iter(range(10))

    @dn.defn
    def f(x):
        for k in numbers:
            if k == 3:
                break
            x = x + k
        return x

    assert float(f(0.0)) == 3.0
    assert next(numbers) == 4


def test_what_only_a_trip_binds_is_named() -> None:
    def f(x):
        for i in dn.range(5):
            new = x + i
            if new > 3:
                return new
        return x

    text = "for: the variable new is bound first in the loop at .*bind it before"
    with pytest.raises(dn.TraceError, match=text):
        dn.defn(f)(1.0)


def test_a_way_out_that_is_never_taken_costs_nothing() -> None:
    @dn.defn
    def f(x):
        for row in x:
            if row.rank == 7:
                return row
        return x

    x = np.ones((2, 2))
    assert f(x).to_list() == x.tolist()
    assert "cond" not in repr(dn.debug_expr(f)(x))


def test_a_name_that_python_left_unbound_is_pythons_error() -> None:
    @dn.defn
    def f(x, *, on=False):
        if on:
            y = x
        return y

    with pytest.raises(UnboundLocalError):
        f(1.0)


def test_many_guards_of_plain_values() -> None:
    lines = ["def f(x, *, kind=0):"]
    for k in range(300):
        lines += [f"    if kind == {k}:", f"        return x + {k}"]
    lines.append("    return x")
    space: dict[str, Any] = {}
    text = "\n".join(lines)
    linecache.cache["guards.py"] = (len(text), None, text.splitlines(True), "guards.py")
    exec(compile(text, "guards.py", "exec"), space)
    f = dn.defn(space["f"])
    assert float(f(1.0, kind=299)) == 300.0
    assert float(f(1.0, kind=300)) == 1.0


def test_numbers_of_a_loop_take_the_type_that_a_branch_gives() -> None:
    @dn.defn
    def f(x):
        total = 0.0
        for v in x:
            if v > 0:
                total = total + v
        return total

    total = f(np.array([1.0, -2.0, 3.0]))
    assert (total.dtype, float(total)) == ("f64", 4.0)


def test_where_a_type_of_the_state_comes_from() -> None:
    def f(x):
        return dn.while_({"s": dn.tensor(0)}, lambda s: s["s"] < 3, lambda s: {"s": s["s"] + x})

    with pytest.raises(dn.ContainerError) as caught:
        dn.jit(f)(1.5)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith('while_: the body\'s value is f32 at ["s"] and was s32 before;')
    assert lines[1] == "  before: s32, from outside the function"
    assert lines[2].startswith("  after: f32, made at ")
