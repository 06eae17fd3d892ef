"""Random graphs with random cuts: the stages give the results of the whole graph, bit for bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn
from support import needs_plugin

# Operations that are exact on small whole numbers, so that no compiler rounds them differently.
EXACT = ("add", "subtract", "multiply", "max", "min", "negate", "abs", "sum", "loop", "branch")
ROUNDED = ("sin", "cos", "exp", "sigmoid", "divide")
CAPTURED = dn.tensor([1.0, -1.0, 2.0])


def loop(x: Any, y: Any) -> Any:
    """A loop that captures a value."""
    init = (dn.tensor(0), x)
    return dn.while_(init, lambda s: s[0] < 3, lambda s: (s[0] + 1, dn.min(s[1] + y, 9.0)))[1]


def branch(x: Any, y: Any) -> Any:
    """Branches that capture values."""
    return dn.cond([(dn.sum(x) > 0, lambda: x + y)], lambda: dn.negate(y))


def apply(name: str, x: Any, y: Any) -> Any:
    if name == "loop":
        return loop(x, y)
    if name == "branch":
        return branch(x, y)
    if name == "sum":
        return dn.sum(x) + y * 0
    # Numbers stay small, so that products are exact.
    if name == "multiply":
        return dn.clip(x * y, -9.0, 9.0)
    fun = getattr(dn, name)
    return fun(x, y) if name in ("add", "subtract", "max", "min", "divide") else fun(x)


def program(steps: list[tuple[str, int, int]], results: list[int], shape: str) -> Any:
    """A function whose steps take two earlier values; it returns some values in a container."""

    def fun(a: Any, b: Any) -> Any:
        values = [a, b, CAPTURED]
        for name, left, right in steps:
            x, y = values[left % len(values)], values[right % len(values)]
            values.append(apply(name, x, y))
        given = [values[-1], *(values[at % len(values)] for at in results)]
        if shape == "dict":
            return {"first": given[0], "others": tuple(given[1:]), "number": 3}
        return tuple(given) if shape == "tuple" else given

    return fun


def programs(names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    step = st.tuples(st.sampled_from(names), st.integers(0, 20), st.integers(0, 20))
    return st.builds(
        program,
        st.lists(step, min_size=1, max_size=10),
        st.lists(st.integers(0, 20), max_size=3),
        st.sampled_from(["dict", "tuple", "list"]),
    )


def bits(value: Any) -> list[tuple[str, tuple[int, ...], bytes]]:
    leaves, _ = dn.compilers.flatten(value)
    arrays = [dn.tensor(leaf).to_numpy() for leaf in leaves]
    return [(str(a.dtype), a.shape, a.tobytes()) for a in arrays]


def nodes(expr: Any) -> int:
    """The number of operations that the values need, without parameters and constants."""
    written = ("parameter", "constant", "tensor")
    leaves, _ = dn.compilers.flatten(expr)
    needed: set[dn.graph.Node] = set()
    for leaf in leaves:
        # Captured values and numbers have no node.
        if isinstance(leaf, dn.Tensor) and leaf is not CAPTURED:
            needed.update(leaf.expr.walk())
    return sum(node.op not in written for node in needed)


ARGUMENTS = [dn.tensor([2.0, -3.0, 1.0]), dn.tensor([0.0, 4.0, -2.0])]


def check(fun: Any, decisions: list[str], **options: Any) -> None:
    expr = dn.debug_expr(fun)(*ARGUMENTS)
    asked: list[dn.graph.Node] = []

    def decide(node: dn.graph.Node) -> Any:
        assert node.op != "parameter"
        assert all(other in asked or other.op == "parameter" for other in map(first, node.inputs))
        asked.append(node)
        return decisions[len(asked) % len(decisions)]

    stages = dn.graph.split(expr, decide)
    assert len(set(asked)) == len(asked)
    # No operation is computed twice, and a stage passes on only values that are used.
    assert sum(nodes(stage.expr) for stage in stages) == nodes(expr)
    plan = dn.graph.Plan.of(stages)
    taken = {source for sources in plan.sources for source in sources}
    for stage in stages[:-1]:
        assert {(stage.position, index) for index in range(len(stage.outputs))} <= taken
    for stage in stages:
        assert len(stage.arguments) == len(set(stage.sources)) == len(stage.inputs)
        again = dn.graph.Stage.from_text(stage.to_text(), stage.captures)
        assert again.to_text() == stage.to_text()
        graph = dn.graph.to_text(stage.expr)
        assert dn.graph.to_text(dn.graph.from_text(graph, stage.captures)) == graph
    whole = dn.jit(fun, **options)(*ARGUMENTS)
    result = dn.graph.run(stages, ARGUMENTS, **options)
    assert bits(result) == bits(whole)
    assert type(result) is type(whole)
    other = dn.graph.run(
        pickle.loads(pickle.dumps(stages)), ARGUMENTS, engine=dn.engines.Threads(2), **options
    )
    assert bits(other) == bits(whole)


def first(node: dn.graph.Node) -> dn.graph.Node:
    """The first output of a node's operation, which is the node that a decider gets."""
    return node.outputs[0]


DECISIONS = st.lists(
    st.sampled_from(["none", "none", "before", "after", "both"]), min_size=1, max_size=12
)


@settings(max_examples=150, deadline=None)
@given(programs(EXACT + ROUNDED), DECISIONS)
def test_on_the_evaluator(fun: Any, decisions: list[str]) -> None:
    check(fun, decisions, compiler="evaluator")


@needs_plugin
@settings(max_examples=25, deadline=None)
@given(programs(EXACT), DECISIONS)
def test_on_xla(fun: Any, decisions: list[str]) -> None:
    check(fun, decisions, compiler="pjrt")


@pytest.mark.parametrize(
    "rule", [dn.graph.every(1), dn.graph.every(3), dn.graph.ops("while", "cond", decision="both")]
)
def test_rules(rule: dn.graph.Rule) -> None:
    steps = [("loop", 0, 1), ("branch", 3, 2), ("sin", 4, 0), ("add", 4, 5), ("loop", 6, 2)]
    fun = program(steps, [4], "dict")
    stages = dn.graph.split(dn.debug_expr(fun)(*ARGUMENTS), rule)
    assert len(stages) > 1
    assert bits(dn.graph.run(stages, ARGUMENTS)) == bits(dn.jit(fun)(*ARGUMENTS))


def test_a_loop_is_alone_in_its_stage() -> None:
    fun = program([("sin", 0, 0), ("loop", 3, 1), ("cos", 4, 0)], [], "tuple")
    expr = dn.debug_expr(fun)(*ARGUMENTS)
    for decision in ("before", "after", "both"):
        stages = dn.graph.split(expr, dn.graph.ops("while", decision=decision))
        names = [[node.op for node in dn.compilers.program(s.expr).walk()] for s in stages]
        computed = [[n for n in some if n not in ("parameter", "constant")] for some in names]
        assert computed == [["sin"], ["while"], ["cos"]]
    # The decider does not see the operations inside the loop.
    assert len(dn.graph.split(expr, dn.graph.ops("min", decision="both"))) == 1
    np.testing.assert_array_equal(dn.graph.run(stages, ARGUMENTS)[0], dn.jit(fun)(*ARGUMENTS)[0])
