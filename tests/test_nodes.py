"""Graphs as Python reads them: nodes, their arguments, and the regions inside operations."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Any

import pytest

import defn as dn
from support import Log


def expr(fun: Any, *args: Any) -> Any:
    return dn.debug_expr(fun)(*args).expr


def test_a_node() -> None:
    x = dn.tensor([[1.0, 2.0]], names=["row", "col"])
    node = expr(lambda x: dn.sum(dn.exp(x), axes="col"), x)
    assert (node.op, node.attrs, node.dtype) == ("sum", {"axes": (1,), "keep_axes": False}, "f32")
    assert (node.shape, node.names) == ((1,), ("row",))
    (inner,) = node.args
    assert inner.op == "exp"
    assert inner == node.inputs[0] != node
    assert {inner: 1}[node.args[0]] == 1
    assert [n.op for n in node.walk()] == ["parameter", "exp", "sum"]
    assert [n.id for n in node.walk()] == [0, 1, 2]
    assert node.template.shape == (1,)
    assert repr(node) == "<%2 = sum(%1, axes=(1,), keep_axes=False): f32[row: 1]>"
    file, line = node.source
    assert file.endswith("test_nodes.py")
    assert "dn.exp" in linecache.getline(file, line)
    assert expr(lambda x: x, 1.0).args == (0,)
    constant = expr(lambda x: x + 2.0, 1.0).inputs[1]
    assert (constant.op, constant.args) == ("constant", (2.0,))


def test_the_arguments_are_those_of_the_callbacks() -> None:
    """A backend in Python gets the same arguments, with tensors instead of nodes."""
    given = Log()

    class Spying(dn.backends.NumPyBackend):
        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if name in ("conv", "dot", "slice", "window_sum", "argmax", "pad", "block"):

                def spied(out, *args, **options):
                    given.append((name, len(args), sorted(options)))
                    return found(out, *args, **options)

                return spied
            return found

    x, k = dn.iota((1, 1, 4, 4), dtype="f32"), dn.iota((1, 1, 2, 2), dtype="f32")
    programs = [
        lambda x, k: dn.conv(x, k),
        lambda x, k: dn.dot(x, [3], dn.transpose(x), [0]),
        lambda x, k: dn.window_sum(x, (1, 1, 2, 2)),
        lambda x, k: dn.argmax(x, axis=2),
        lambda x, k: dn.pad(x, 0.0, [(1, 1, 0)] * 4),
    ]  # fmt: skip
    for fun in programs:
        node = expr(fun, x, k)
        del given.items[:]
        fun(dn.backend_copy(x, Spying()), dn.backend_copy(k, Spying()))
        name, count, options = given.items[-1]
        assert (node.op, len(node.args), sorted(node.attrs)) == (name, count, options)


def test_control_flow_has_regions() -> None:
    def f(x):
        return dn.while_((x, 0), lambda s: s[0] < x + 10.0, lambda s: (s[0] * 2, s[1] + 1))

    value, count = dn.debug_expr(f)(dn.tensor(1.0))
    node = value.expr
    assert (node.op, node.output, count.expr.output) == ("while", 0, 1)
    assert node.id == count.expr.id
    assert node != count.expr
    assert [one.dtype for one in node.outputs] == ["f32", "s32"]
    initial, cond, body = node.args
    assert [one.op for one in initial] == ["parameter", "constant"]
    assert node.regions == (cond, body) or [r.name for r in node.regions] == ["cond", "body"]
    assert (cond.name, body.name) == ("cond", "body")
    assert [p.dtype for p in body.parameters] == ["f32", "s32"]
    assert [one.op for one in body.outputs] == ["multiply", "add"]
    assert [one.op for one in cond.outputs] == ["less"]
    assert all(isinstance(one, dn.compilers.Node) for one in cond.captures)
    assert len(cond.captures) + 2 == len(node.inputs)
    assert "while([%0, " in repr(node)
    assert "(f32, s32) -> (bool)" in repr(cond)
    branch = expr(lambda x: dn.cond([(x > 0, lambda: x + 1)], lambda: x - 1), 1.0)
    predicates, first, second = branch.args
    assert [one.op for one in predicates] == ["greater"]
    assert [first.outputs[0].op, second.outputs[0].op] == ["add", "subtract"]
    fold = expr(lambda x: dn.reduce(x, 0.0, lambda a, b: a + b), dn.tensor([1.0]))
    assert (fold.op, len(fold.args), fold.args[2].name) == ("reduce", 3, "fun")


def test_a_block_has_its_default() -> None:
    q, r = dn.debug_expr(dn.linalg.qr)(dn.eye((2, 2), dtype="f32"))
    assert q.expr.op == "block"
    tag, operands = q.expr.args
    assert isinstance(tag, dn.blocks.QR)
    assert len(operands) == 1
    (default,) = q.expr.regions
    assert [one.shape for one in default.outputs] == [(2, 2), (2, 2)]
    assert r.expr.output == 1
    assert sum(1 for _ in default.walk()) > 5


@dataclass(frozen=True)
class Scale:
    factor: float


def test_a_block_of_the_users() -> None:
    def f(x):
        return dn.block(Scale(3.0), [x], x, lambda tag, x: x * tag.factor)

    node = dn.debug_expr(f)(dn.tensor([1.0, 2.0])).expr
    tag, (operand,) = node.args
    assert (node.op, tag, operand.op, node.attrs) == ("block", Scale(3.0), "parameter", {})
    assert [one.name for one in node.regions] == ["default"]
    assert [one.op for one in node.regions[0].outputs] == ["multiply"]
    seen = Log()
    dn.jit(lambda x: seen.append(f(x).expr.args[0]) or f(x))(dn.tensor([1.0]))
    assert seen.items == [Scale(3.0)]


def test_effects_are_walked() -> None:
    def f(x):
        dn.hook(dn.exp(x), print)
        return x + 1

    program = dn.compilers.program(dn.debug_expr(f)(1.0))
    assert [n.op for n in program.walk()] == ["parameter", "exp", "hook", "constant", "add"]
    assert [n.op for n in program.outputs[0].walk()] == ["parameter", "constant", "add"]


def test_where_there_is_no_node() -> None:
    with pytest.raises(dn.TraceError, match="has values"):
        dn.tensor(1.0).expr  # noqa: B018
    with pytest.raises(dn.TraceError, match="template"):
        dn.template((), "f32").expr  # noqa: B018
    with pytest.raises(dn.Error, match="data"):
        dn.debug_expr(lambda x: x)(1.0).data  # noqa: B018
    kept = Log()
    dn.jit(
        lambda x: kept.append(x + 1) or kept.append((x + 1).expr) or x * 2, compiler="evaluator"
    )(1.0)
    with pytest.raises(dn.TraceError, match="ended"):
        kept.items[0].expr  # noqa: B018
    with pytest.raises(dn.TraceError, match="ended"):
        kept.items[1].op  # noqa: B018
    with pytest.raises(dn.TraceError, match="traced tensor"):
        dn.compilers.program({})
    one, two = dn.debug_expr(lambda x: x)(1.0), dn.debug_expr(lambda x: x)(1.0)
    with pytest.raises(dn.TraceError, match="another definition"):
        dn.compilers.program([one, two])
    with pytest.raises(dn.CompileError):
        dn.compilers.get("nonsense")


def test_vectorized_axes_lead_a_nodes_shape() -> None:
    x = dn.vectorize(dn.iota((2, 3), dtype="f32"), "row")
    total = dn.debug_expr(lambda x: dn.sum(x))(x)
    assert total.shape == ()
    assert (total.expr.shape, total.expr.attrs["axes"]) == ((2,), (1,))
    assert total.expr.args[0].shape == (2, 3)
