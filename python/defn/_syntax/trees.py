"""Syntax trees: copying, positions, and small generated trees."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from defn._syntax.source import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = [
    "all_arguments",
    "cannot_move",
    "copied",
    "declared_names",
    "forget_defaults",
    "own_statements",
    "parsed",
    "point",
    "relocate",
    "thunk",
    "unless",
]


def copied(node: Any) -> Any:
    """A deep copy of a tree."""

    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(item) for item in value]
        if not isinstance(value, ast.AST):
            return value
        made = ast.copy_location(type(value)(), value)
        for note in ("_defn_stop", "_defn_where"):
            if hasattr(value, note):
                setattr(made, note, getattr(value, note))
        waiting.append((value, made))
        return made

    waiting: list[tuple[ast.AST, Any]] = []
    result = bare(node)
    # Iterative, because `elif` chains nest as deep as they are long.
    while waiting:
        original, made = waiting.pop()
        for name, value in ast.iter_fields(original):
            setattr(made, name, bare(value))
    return result


def unless(stop: str, body: list[ast.stmt]) -> ast.stmt:
    """A loop's body, run only if the loop was not left; needed where Python runs over the items."""
    made = ast.If(ast.UnaryOp(ast.Not(), ast.Name(stop, ast.Load())), body, [])
    ast.copy_location(made, body[0])
    made.end_lineno, made.end_col_offset = body[-1].end_lineno, body[-1].end_col_offset
    for node in ast.walk(made.test):
        if isinstance(node, ast.expr):
            point(node, body[0])
    return made


def declared_names(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements declare ``nonlocal`` or ``global``."""
    return {
        name
        for inner in own_statements(statements)
        if isinstance(inner, ast.Nonlocal | ast.Global)
        for name in inner.names
    }


def thunk(value: ast.expr) -> ast.Lambda:
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, value), value)


def cannot_move(expressions: Iterable[ast.expr]) -> bool:
    """Whether an expression would have another meaning inside a nested function."""
    return any(
        isinstance(node, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await)
        for expression in expressions
        for node in ast.walk(expression)
    )


def own_statements(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements and those inside them, except those of inner functions and classes."""
    waiting = list(statements)
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                waiting.append(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                waiting.extend(child.body)


def all_arguments(args: ast.arguments) -> list[ast.arg]:
    rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *rest]


def forget_defaults(args: ast.arguments) -> None:
    """Remove the defaults; they were computed when the function was created, and are kept."""
    args.defaults = []
    args.kw_defaults = [None for _ in args.kwonlyargs]


def parsed(text: str, at: ast.AST) -> list[ast.stmt]:
    statements = parse(text).body
    relocate(statements, at)
    return statements


def point(node: Any, at: Any) -> None:
    """Give a node the position where ``at`` begins. With the length of ``at``, debuggers would see
    an attribute in the node on the last line.
    """
    node.lineno = node.end_lineno = at.lineno
    node.col_offset = node.end_col_offset = at.col_offset


def relocate(nodes: Iterable[ast.AST], at: ast.AST) -> None:
    """Give all nodes of parsed text the position of ``at``."""
    for node in nodes:
        for child in ast.walk(node):
            if isinstance(child, ast.stmt | ast.expr | ast.arg):
                point(child, at)
