"""Control flow that definitions refuse: the message, and the line."""

from __future__ import annotations

from typing import Any

import pytest

import defn as dn


def refused(fun: Any, *args: Any, text: str, kind: type[Exception] = dn.TraceError) -> None:
    with pytest.raises(kind, match=text) as caught:
        dn.defn(fun)(*args)
    assert "test_syntax_refused.py" in str(caught.value).splitlines()[-1]


def test_jumps_under_a_traced_condition_are_refused() -> None:
    def failing(x):
        if x > 0:
            raise ValueError
        return x

    refused(failing, 1.0, text="`raise`")

    def bind(x):
        return (y := x) if x > 0 else y

    refused(bind, 1.0, text="`:=`")


def test_generators_are_not_rewritten() -> None:
    @dn.defn
    def f(x):
        def items():
            if x > 0:
                yield x

        return list(items())

    with pytest.raises(dn.TraceError):
        f(1.0)


def test_assignments_into_objects_are_refused() -> None:
    def item(x):
        state = {"x": x}
        if x > 0:
            state["x"] = x * 2
        return state["x"]

    refused(item, 1.0, text=r"`state\['x'\]` is assigned")

    def own(x):
        if x > 0:
            state = {}
            state["x"] = x * 2
            x = state["x"]
        return x

    assert float(dn.defn(own)(2.0)) == 4.0


def test_variables_must_keep_their_types() -> None:
    def branches(x):
        y = None
        if x > 0:
            y = x
        return y

    refused(branches, 1.0, text="variable y is f32 in one branch and None", kind=dn.ContainerError)

    def loop(x):
        total = dn.tensor(0)
        while x < 10:
            total = total + 0.5
            x = x + 1
        return total

    refused(
        loop,
        1.0,
        text="variable total is s32 before the loop and f32 after a trip",
        kind=dn.ContainerError,
    )

    def trip(x):
        last = None
        for i in dn.range(3):
            last = x + i
        return last

    refused(trip, 1.0, text="variable last is None before the loop", kind=dn.ContainerError)

    def shapes(x):
        if x > 0:
            y = dn.iota((2,))
        else:
            y = dn.iota((3,))
        return y

    refused(
        shapes,
        1.0,
        text=r"variable y is s32\[2\] in one branch and s32\[3\] in the other",
        kind=dn.ContainerError,
    )


def test_missing_source_says_so() -> None:
    space: dict[str, Any] = {}
    exec(
        "def f(x, *, n=2):\n    x = x * n if n > 1 else x\n    return 1.0 if x > 0 else 2.0", space
    )
    with pytest.raises(dn.TraceError) as caught:
        dn.defn(space["f"])(1.0)
    assert str(caught.value) == (
        "defn: the source of f cannot be read (it is of exec, an old prompt, or a file that has "
        "changed), so that a condition or a loop on a tensor in it cannot be rewritten; put it "
        "into a file or a notebook, or use dn.cond, dn.while_ or dn.for_, which need no source, "
        "with convert=False\n  at <string>:3"
    )
    exec("def f(x, *, n=2):\n    return x * n if n > 1 else x", space)
    assert float(dn.defn(space["f"])(3.0)) == 6.0, "what is plain needs no source"
    exec("def f(x):\n    return float(x)", space)
    with pytest.raises(dn.TraceError, match=r"^float: "):
        dn.defn(space["f"])(3.0)


def test_coroutines_are_no_definitions() -> None:
    async def wait(x):
        return x

    with pytest.raises(dn.TraceError, match="wait is a coroutine, a function that returns"):
        dn.defn(wait)(1.0)

    @dn.defn
    def f(x):
        async def inner():
            return x if x > 0 else -x

        try:
            inner().send(None)
        except StopIteration as result:
            return result.value

    with pytest.raises(dn.TraceError, match="in a coroutine; compute it in a definition"):
        f(1.0)
