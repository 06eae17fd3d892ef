"""The cost of each step of a run, as a table and as a trace."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import pytest

import defn as dn
from defn.profile import Profile
from support import needs_plugin

# A compiler whose programs run in steps; that of the test run may not have steps.
pytestmark = pytest.mark.usefixtures("no_options")

WIDE = dn.tensor(np.ones((64, 500), dtype="f4"), backend="cpu")


def layer(x: dn.Tensor, w: dn.Tensor) -> dn.Tensor:
    y = dn.dot(x, w)
    return dn.sum(dn.tanh(2 * y) * y, axes=1)


def profiled(compiler: str) -> Profile:
    return dn.jit(layer, compiler=compiler).profile(WIDE, dn.transpose(WIDE))


@pytest.mark.parametrize("compiler", ["cpu", "evaluator"])
def test_every_step_has_its_work(compiler: str) -> None:
    profile = profiled(compiler)
    assert np.array_equal(profile.result.to_numpy(), layer(WIDE, dn.transpose(WIDE)).to_numpy())
    steps = profile.steps
    assert all(step.runs == 1 and step.depth == 0 and step.seconds > 0 for step in steps)
    assert sum(step.seconds for step in steps) <= profile.seconds
    assert all(step.lines and step.lines[0].startswith(f"{__file__}:") for step in steps)
    dot = next(step for step in steps if step.name.startswith("dot"))
    assert dot.flops >= 2 * 64 * 64 * 500
    assert dot.bytes >= 4 * 2 * 64 * 500
    start = layer.__code__.co_firstlineno
    assert dot.lines[0] == f"{__file__}:{start + 1}"
    assert (
        sum(step.flops for step in steps)
        == dn.graph.cost(dn.debug_expr(layer)(WIDE, dn.transpose(WIDE))).flops
    )
    for step in steps:
        least = max(step.bytes / profile.machine.bandwidth, step.flops / profile.machine.flops)
        assert step.share == pytest.approx(least / step.seconds)


def test_the_evaluator_has_a_step_for_each_operation() -> None:
    names = [step.name for step in profiled("evaluator").steps]
    assert [name for name in names if name != "transpose"] == [
        "dot",
        "multiply",
        "tanh",
        "multiply",
        "sum",
    ]
    together = profiled("cpu").steps
    assert len(together) < len(names)
    assert {name for step in together for name in step.name.split()} >= {"dot", "tanh", "sum"}


def test_loops_have_steps_inside(tmp_path: pathlib.Path) -> None:
    def loop(x: dn.Tensor) -> dn.Tensor:
        return dn.while_(
            (0, x),
            lambda state: state[0] < 5,
            lambda state: (state[0] + 1, dn.tanh(dn.dot(state[1], state[1]))),
        )[1]

    profile = dn.compile(loop, [WIDE[:, :64]], compiler="cpu").profile(WIDE[:, :64])
    outer, *inner = profile.steps
    assert (outer.name, outer.depth, outer.runs) == ("while", 0, 1)
    dots = [step for step in inner if step.name.startswith("dot")]
    assert [(step.depth, step.runs, step.flops >= 5 * 2 * 64**3) for step in dots] == [(1, 5, True)]
    assert outer.flops == sum(step.flops for step in inner if step.depth == 1)
    assert outer.seconds >= sum(step.seconds for step in inner if step.depth == 1)

    path = tmp_path / "trace.json"
    profile.save_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == sum(step.runs for step in profile.steps)
    around = next(event for event in spans if event["name"] == "while")
    for event in spans:
        assert around["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= around["ts"] + around["dur"] + 1
    dot = next(event for event in spans if event["name"].startswith("dot"))
    assert dot["cat"] == "step"
    assert dot["args"]["flops"] >= 2 * 64**3
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+", dot["args"]["lines"][0])


def test_a_profile_runs_once() -> None:
    shown: list[float] = []

    @dn.defn
    def show(x: dn.Tensor) -> dn.Tensor:
        return dn.hook(2 * x, lambda value: shown.append(value.item()))

    for compiler in ("cpu", "evaluator"):
        profile = dn.jit(show, compiler=compiler).profile(3.0)
        assert "hook" in [step.name for step in profile.steps]
    assert shown == [6.0, 6.0]
    # A compiled version is reused, and calls that are not profiled record nothing.
    both = dn.jit(lambda x, w: layer(x, w), compiler="cpu")
    both.profile(WIDE, dn.transpose(WIDE))
    both(WIDE, dn.transpose(WIDE))
    both.profile(WIDE, dn.transpose(WIDE))
    assert both.cache_info()["misses"] == 1


def test_the_table() -> None:
    profile = dn.jit(layer, compiler="cpu", threads=1).profile(WIDE, dn.transpose(WIDE))
    top, head, *rows = repr(profile).splitlines()
    assert re.fullmatch(
        r"[\d.]+ [mµn]?s in \d+ steps?; 1 thread: \S+ \wB/s, "
        r"\S+ \wFLOP/s of f32, \S+ \wFLOP/s of f64",
        top,
    )
    assert head.split() == ["time", "runs", "bytes", "flops", "share", "step", "lines"]
    assert len(rows) == len(profile.steps)
    assert profile.machine.threads == 1
    assert any("dot" in row and "test_profile.py:" in row for row in rows)


def test_what_computes_nothing_has_no_steps() -> None:
    profile = dn.jit(lambda x: x, compiler="cpu").profile(1.0)
    assert (profile.steps, profile.result.item()) == ([], 1.0)
    assert "0 steps" in repr(profile)


def test_what_is_no_profile() -> None:
    class Own(dn.Compiler):
        def compile(self, key, vars, fun, options):
            return dn.compilers.get("evaluator").compile(key, vars, fun, options)

    with pytest.raises(dn.CompileError, match='profile: "Own" runs a program as a whole, "cpu" or'):
        dn.jit(dn.sin, compiler=Own()).profile(1.0)
    with pytest.raises(dn.CompileError, match="profile: a definition is being traced, which runs"):
        dn.jit(lambda x: dn.jit(dn.sin).profile(x))(1.0)


@needs_plugin
def test_a_device_runs_programs_as_a_whole() -> None:
    with pytest.raises(
        dn.CompileError, match='profile: "pjrt" runs a program as a whole, "cpu" or'
    ):
        dn.jit(dn.sin, compiler="pjrt").profile(1.0)


def test_a_step_in_place_counts_what_it_touches() -> None:
    """If little of a large array is written in place, only that part is counted."""
    n = 1 << 20

    def f(i):
        x = dn.iota((n,), dtype="f32") * 2.0
        x = dn.put_slice(x, (i,), dn.tensor([1.0, 2.0, 3.0]))
        x = dn.indexed_put(x, dn.tensor([[7], [9]]), dn.tensor([5.0, 6.0]))
        x = dn.indexed_add(x, dn.tensor([[7], [9]]), dn.tensor([5.0, 6.0]))
        return dn.sort(x)

    steps = dn.jit(f, compiler="cpu").profile(4).steps
    bytes_of = {name: step.bytes for step in steps for name in [step.name.split()[0]]}
    assert bytes_of["put_slice"] == 4 + 2 * 12, "an index, and the slice read and written"
    assert bytes_of["indexed_put"] == 8 + 2 * 8
    assert bytes_of["indexed_add"] == 8 + 3 * 8
    assert bytes_of["sort"] >= 2 * 4 * n
