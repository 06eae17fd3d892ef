"""Each construct: Python runs it on plain values, the graph on traced ones, or it is refused."""

from __future__ import annotations

import ast
import linecache
from typing import Any

import pytest

import defn as dn
from cases.construct import Construct, function
from cases.syntax_flow import FLOW
from cases.syntax_rest import REST

CONSTRUCTS = FLOW + REST
INPUTS = (2.0, -2.0, 0.5, 7.0)


def made(body: str, file: str = "user.py") -> Any:
    """The function of a program that runs as a file."""
    program = function(body)
    linecache.cache[file] = (len(program), None, program.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "user", "dn": dn}
    exec(compile(program, file, "exec"), names)
    return names["f"]


def agrees(body: str, x: float, definition: Any) -> None:
    """A definition gives the result of its function for a Python number."""
    same = made(body, "same.py")
    want = same(dn.tensor(x)) if "dn." in body else same(x)
    assert float(definition(x)) == pytest.approx(float(want), rel=1e-6)


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=str)
def test_plain(construct: Construct) -> None:
    """The condition is decided while tracing: the graph has no branch or loop."""
    definition = dn.defn(made(construct.plain))
    for x in INPUTS:
        agrees(construct.plain, x, definition)
    graph = repr(dn.debug_expr(definition)(2.0))
    assert "cond" not in graph
    assert "while" not in graph
    assert definition.cache_info()["misses"] == 1


@pytest.mark.parametrize(
    "construct", [c for c in CONSTRUCTS if isinstance(c.traced, tuple)], ids=str
)
def test_traced(construct: Construct) -> None:
    """Each value decides, in one graph."""
    body, op, *same = construct.traced
    definition = dn.defn(made(body))
    for x in INPUTS:
        agrees(same[0] if same else body, x, definition)
    assert op in repr(dn.debug_expr(definition)(2.0))
    assert definition.cache_info()["misses"] == 1


@pytest.mark.parametrize(
    "construct", [c for c in CONSTRUCTS if isinstance(c.refused, tuple)], ids=str
)
def test_refused(construct: Construct) -> None:
    """The message has the reason, what to write instead, and the line."""
    body, text = construct.refused
    definition = dn.defn(made(body))
    call = compile("definition(2.0)", "call.py", "eval")
    with pytest.raises((dn.Error, NameError)) as caught:
        eval(call, {"definition": definition})
    assert f"{type(caught.value).__name__}: {caught.value}" == text


def test_every_statement_is_in_the_table() -> None:
    """The nodes of Python's grammar that decide, bind, leave or repeat something."""
    seen = set()
    for construct in CONSTRUCTS:
        programs = [construct.plain]
        ways = (construct.traced, construct.refused)
        programs += [way[0] for way in ways if isinstance(way, tuple)]
        for program in programs:
            seen |= {type(node) for node in ast.walk(ast.parse(function(program)))}
    statements = set(ast.stmt.__subclasses__())
    # Statements for coroutines and for variables of a module.
    statements -= {ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef, ast.Global}
    # Statements that some versions of Python lack, and that have no meaning for values.
    statements -= {getattr(ast, name, None) for name in ("TypeAlias", "TryStar")}
    assert statements - seen == set()
    deciding = {ast.IfExp, ast.BoolOp, ast.Compare, ast.NamedExpr, ast.Lambda, ast.Yield}
    deciding |= {ast.ListComp, ast.GeneratorExp, ast.Starred, ast.Not, ast.And, ast.Or}
    assert deciding - seen == set()
