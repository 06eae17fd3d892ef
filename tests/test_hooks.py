"""Hooks: their values, their order, loops, branches and gradients, and the errors they raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import defn as dn


def test_a_hook_sees_the_value_and_returns_it() -> None:
    seen: list[Any] = []

    @dn.jit
    def f(x):
        return dn.hook(x * 2, seen.append) + 1

    assert float(f(3.0)) == 7.0
    assert float(f(4.0)) == 9.0
    assert [float(value) for value in seen] == [6.0, 8.0]
    assert f.cache_info()["misses"] == 1


def test_names_are_filled_at_call_time() -> None:
    first: list[float] = []
    second: list[float] = []

    def f(x):
        x = dn.hook(x, "in")
        return dn.hook(x * 2, "out", lambda value: first.append(float(value)))

    plain = dn.jit(f)
    filled = dn.jit(f, hooks={"in": lambda v: second.append(float(v)), "out": lambda _: None})
    assert float(plain(1.0)) == 2.0
    assert (first, second) == ([2.0], [])
    assert float(filled(5.0)) == 10.0
    assert (first, second) == ([2.0], [5.0])
    assert float(dn.jit_apply(f, (7.0,), hooks={"unknown": print})) == 14.0
    compiled = dn.compile(
        f, [dn.template((), "f32")], hooks={"in": lambda v: second.append(float(v))}
    )
    compiled(9.0)
    assert second == [5.0, 9.0]


def test_a_hook_whose_value_is_not_used_runs() -> None:
    seen: list[float] = []

    @dn.jit
    def f(x):
        dn.hook(dn.exp(x), lambda value: seen.append(float(value)))
        return x

    assert float(f(0.0)) == 0.0
    assert seen == [1.0]


def test_order_in_straight_code() -> None:
    seen: list[int] = []

    @dn.jit
    def f(x):
        for i in range(5):
            dn.hook(x + i, lambda value: seen.append(int(value)))
        return x * 0

    f(0)
    assert seen == [0, 1, 2, 3, 4]


def test_order_in_loops_and_branches() -> None:
    seen: list[str] = []

    def note(label: str):
        return lambda value: seen.append(f"{label}{int(value)}")

    @dn.defn
    def f(n):
        dn.hook(n, note("start"))
        i = 0
        while i < n:
            if i % 2 == 0:
                dn.hook(i, note("even"))
            else:
                dn.hook(i, note("odd"))
            i = dn.hook(i + 1, note("next"))
        dn.hook(i, note("end"))
        return i

    assert int(f(3)) == 3
    expected = ["start3", "even0", "next1", "odd1", "next2", "even2", "next3", "end3"]
    assert seen == expected
    seen.clear()
    assert int(f(0)) == 0
    assert seen == ["start0", "end0"]


def test_containers_and_vectorized_values() -> None:
    @dataclass
    class Pair:
        a: Any
        b: Any

    seen: list[Any] = []

    @dn.jit
    def f(x):
        pair = dn.hook(Pair(x, {"y": x + 1}), seen.append)
        return pair.a + pair.b["y"]

    x = dn.vectorize(dn.tensor([1.0, 2.0]), "v")
    assert f(x).vectorized_axes == x.vectorized_axes
    assert isinstance(seen[0], Pair)
    assert seen[0].b["y"].vectorized_axes == x.vectorized_axes
    assert dn.devectorize(seen[0].a).to_list() == [1.0, 2.0]


def test_gradients_do_not_call_again() -> None:
    seen: list[float] = []

    def f(x):
        return dn.hook(x * x, lambda value: seen.append(float(value))) * 3

    value, slope = dn.value_and_grad(f)(2.0)
    assert (float(value), float(slope)) == (12.0, 12.0)
    assert seen == [4.0]


def test_in_control_flow_that_runs_at_once() -> None:
    seen: list[int] = []

    def body(x):
        return dn.hook(x + 1, lambda value: seen.append(int(value)))

    assert int(dn.while_(0, lambda x: x < 3, body)) == 3
    assert seen == [1, 2, 3]
    assert float(dn.hook(2.0, lambda value: seen.append(int(value)))) == 2.0
    assert seen == [1, 2, 3, 2]
    assert float(dn.hook(2.0, "nobody")) == 2.0


def test_what_a_hook_raises_stops_the_run() -> None:
    seen: list[float] = []
    fails = True

    def check(value: dn.Tensor) -> None:
        if fails and float(value) > 2:
            raise KeyError("too large")

    @dn.jit
    def f(x):
        x = dn.hook(x, check)
        return dn.hook(x + 1, lambda value: seen.append(float(value)))

    assert float(f(1.0)) == 2.0
    with pytest.raises(KeyError, match="too large"):
        f(3.0)
    assert seen == [2.0], "nothing runs after it"
    assert float(f(0.0)) == 1.0, "the definition works at the next call"
    with pytest.raises(KeyError):
        dn.while_(0.0, lambda x: x < 9, lambda x: dn.hook(x + 1, check))
    fails = False
    assert float(f(3.0)) == 4.0


def test_functions_of_one_code_do_not_mix_their_hooks() -> None:
    def make() -> tuple[Any, list[float]]:
        log: list[float] = []
        return dn.jit(lambda x: dn.hook(x, lambda value: log.append(float(value)))), log

    (first, log_a), (second, log_b) = make(), make()
    first(1.0)
    second(2.0)
    first(3.0)
    assert (log_a, log_b) == ([1.0, 3.0], [2.0])

    def bound() -> tuple[Any, list[Any]]:
        log: list[Any] = []
        return dn.jit(lambda x: dn.hook(x, log.append)), log

    (first, log_a), (second, log_b) = bound(), bound()
    first(1.0)
    second(2.0)
    first(3.0)
    assert [float(value) for value in log_a] == [1.0, 3.0]
    assert [float(value) for value in log_b] == [2.0]


def test_hooks_call_definitions() -> None:
    seen: list[float] = []
    inner = dn.jit(lambda x: x * 10)

    @dn.jit
    def f(x):
        return dn.hook(x, lambda value: seen.append(float(inner(value))))

    assert float(f(2.0)) == 2.0
    assert seen == [20.0]


def test_print_value(capsys: pytest.CaptureFixture[str]) -> None:
    @dn.jit
    def f(x):
        x = dn.print_value(x, label="x")
        return dn.print_value(x, lambda v: v + 1)

    assert float(f(1.0)) == 1.0
    assert capsys.readouterr().out == "x: 1.0\n2.0\n"


def test_what_is_refused() -> None:
    with pytest.raises(dn.OptionError, match="a str or a function"):
        dn.hook(1.0, 3)
    with pytest.raises(dn.OptionError, match="hooks"):
        dn.jit(lambda x: x, hooks=[print])
    with pytest.raises(dn.OptionError, match="hooks"):
        dn.jit(lambda x: x, hooks={"a": 3})
    with pytest.warns(UserWarning, match="not used"):
        dn.jit(lambda x: x, compiler="evaluator", on_conflict="reuse")
    assert "hook" in repr(dn.debug_expr(lambda x: dn.hook(x, print))(1.0))


def test_many_values() -> None:
    seen: list[np.ndarray] = []

    @dn.jit
    def f(n):
        def body(i):
            dn.hook(dn.iota((3,)) + i, lambda value: seen.append(value.to_numpy()))
            return i + 1

        return dn.while_(0, lambda i: i < n, body)

    f(200)
    np.testing.assert_array_equal(seen, np.arange(200)[:, None] + np.arange(3))


def test_hooks_that_run_their_program_again_stop_at_a_limit():
    def again(value):
        f(value)

    f = dn.jit(lambda x: dn.hook(x + 1, again))
    for _ in range(2):
        with pytest.raises(dn.TraceError, match="150 deep"):
            f(1.0)

    def until_five(value):
        if float(value) < 5:
            g(value)

    g = dn.jit(lambda x: dn.hook(x + 1, until_five))
    assert float(g(1.0)) == 2.0


def test_functions_that_a_program_asks_stop_at_a_limit_too():
    def asked(value):
        return dn.runtime_call(dn.template((), "f32"), value, asked)

    for call in (asked, dn.jit(lambda x: asked(x))):
        with pytest.raises(dn.TraceError, match="150 deep"):
            call(dn.tensor(1.0))


def test_io_call_is_a_hook_by_another_name() -> None:
    seen: list[Any] = []

    def f(x):
        y = dn.io_call(x + 1, "after", lambda v: seen.append(("own", v.item())))
        return dn.io_call(y, lambda v: seen.append(("now", v.item()))) * 2

    assert dn.jit(f)(1.0).item() == 4.0
    assert seen == [("own", 2.0), ("now", 2.0)]
    seen.clear()
    given = dn.jit(f, hooks={"after": lambda v: seen.append(("given", v.item()))})
    assert given(2.0).item() == 6.0
    assert seen == [("given", 3.0), ("now", 3.0)]
    assert float(dn.grad(f)(1.0)) == 2.0
    with pytest.raises(dn.OptionError, match="io_call"):
        dn.io_call(1.0, "x", speed=1)  # type: ignore[call-arg]
