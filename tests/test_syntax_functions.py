"""What rewriting the control flow keeps: closures, methods, lines, debuggers."""

from __future__ import annotations

import bdb
import functools
import sys
import traceback
from typing import Any

import pytest

import defn as dn
from support import Log


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


class Kinds:
    factor = 3.0

    @staticmethod
    @dn.defn
    def of_static(x):
        return x if x > 0 else -x

    @dn.defn
    @staticmethod
    def static_of(x):
        return x if x > 0 else -x

    @dn.defn
    @classmethod
    def of_class(cls, x):
        return x * cls.factor if x > 0 else -x

    @property
    @dn.defn
    def value(self):
        return dn.tensor(2.0) if dn.tensor(self.factor) > 2 else dn.tensor(1.0)

    def __call__(self, x):
        return x * self.factor if x > 0 else -x

    def plain(self, x, y=1.0):
        return x * y if x > 0 else -x


def test_kinds_of_methods_and_callables() -> None:
    kinds = Kinds()
    assert [float(f(-2.0)) for f in (kinds.of_static, Kinds.of_static, kinds.static_of)] == [
        2.0
    ] * 3
    assert [float(f(2.0)) for f in (kinds.of_class, Kinds.of_class)] == [6.0, 6.0]
    assert float(kinds.value) == 2.0
    for fun in (kinds, kinds.__call__, functools.partial(kinds.plain, y=3.0)):
        definition = dn.defn(fun)
        assert (float(definition(2.0)), float(definition(-2.0))) == (6.0, 2.0)


def test_decorators_stay() -> None:
    calls = Log()

    def counted(fun):
        @functools.wraps(fun)
        def call(*args):
            calls.append(fun.__name__)
            return fun(*args)

        return call

    @counted
    @dn.defn
    def outside(x):
        return x if x > 0 else -x

    @dn.defn
    @counted
    def inside(x):
        return x * 2

    assert (float(outside(-1.0)), float(outside(1.0)), float(inside(1.0))) == (1.0, 1.0, 2.0)
    assert calls.items == ["outside", "outside", "inside"], "inside, it is traced once"

    @dn.defn
    def f(x):
        @counted
        def inner(y):
            return y if y > 0 else -y

        return inner(x)

    assert float(f(-3.0)) == 3.0


class Stops(bdb.Bdb):
    """A debugger that records the lines and variables where it stops."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, list[str]]] = []

    def user_line(self, frame: Any) -> None:
        if self.break_here(frame):
            self.seen.append((frame.f_lineno, sorted(n for n in frame.f_locals if len(n) == 1)))
        self.set_continue()


def test_breakpoints_in_branches_and_loops() -> None:
    @dn.defn
    def f(x):
        y = x
        if x > 0:
            y = x * 2
        for k in dn.range(3):
            y = y + k
        return y

    first = f.__wrapped__.__code__.co_firstlineno
    debugger = Stops()
    for line in (2, 4, 6, 7):
        assert debugger.set_break(__file__, first + line) is None
    before = sys.gettrace()
    try:
        assert float(debugger.runcall(f, 2.0)) == 7.0
    finally:
        sys.settrace(before)
        debugger.clear_all_breaks()
    assert [(line - first, "y" in names) for line, names in debugger.seen] == [
        (2, False),
        (4, True),
        (6, True),
        (7, True),
    ]


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
