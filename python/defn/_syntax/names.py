"""Which names statements bind and read, and how they are left."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Reads", "always_returns", "jumps", "mutated", "rebound", "stored"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Stored(ast.NodeVisitor):
    """The names that are bound in the scope that the visited statements stand in."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._inner: list[set[str]] = []

    def _bind(self, name: str | None) -> None:
        if name is not None:
            self.names[name] = None

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) and not self._inner:
            self._bind(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        # It binds in the scope around a comprehension too.
        self._bind(node.target.id)
        self.visit(node.value)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self._bind((node.asname or node.name).split(".")[0])

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._bind(node.rest)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, _COMPREHENSIONS):
            self._inner.append(set())
            super().generic_visit(node)
            self._inner.pop()
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._bind(node.name)
            for decorator in node.decorator_list:
                self.visit(decorator)
        elif not isinstance(node, ast.Lambda):
            super().generic_visit(node)


def stored(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that nodes bind in their own scope, in order."""
    visitor = _Stored()
    for node in nodes:
        visitor.visit(node)
    return list(visitor.names)


def rebound(statements: Iterable[ast.stmt]) -> list[str]:
    """The names that functions inside statements bind for a function around them."""
    found: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Nonlocal):
                        found.update(dict.fromkeys(inner.names))
    return list(found)


def mutated(nodes: Iterable[ast.AST]) -> list[str]:
    """The attributes and items, as text, that statements assign to of objects made outside."""
    nodes = list(nodes)
    own = set(stored(nodes))
    found: dict[str, None] = {}

    def look(node: ast.AST) -> None:
        if isinstance(node, _SCOPES):
            return
        is_target = isinstance(node, ast.Attribute | ast.Subscript)
        if is_target and not isinstance(node.ctx, ast.Load):
            base: ast.expr = node
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if not (isinstance(base, ast.Name) and base.id in own):
                found[ast.unparse(node)] = None
        for child in ast.iter_child_nodes(node):
            look(child)

    for node in nodes:
        look(node)
    return list(found)


def jumps(nodes: Iterable[ast.AST]) -> set[str]:
    """How statements leave the place that they stand in: ``break``, ``continue``, ``return``,
    ``raise``, ``yield``, ``await``.
    """
    found: set[str] = set()

    def look(node: ast.AST, in_loop: bool) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, ast.Break | ast.Continue) and not in_loop:
            found.add("break" if isinstance(node, ast.Break) else "continue")
        elif isinstance(node, ast.Return):
            found.add("return")
        elif isinstance(node, ast.Raise):
            found.add("raise")
        elif isinstance(node, ast.Yield | ast.YieldFrom):
            found.add("yield")
        elif isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            found.add("await")
        if isinstance(node, ast.For | ast.While):
            for child in node.body:
                look(child, True)
            for child in node.orelse:
                look(child, in_loop)
            return
        for child in ast.iter_child_nodes(node):
            look(child, in_loop)

    for node in nodes:
        look(node, False)
    return found


def always_returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether the last statement returns a value on every way through it."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.Return):
        return True
    return isinstance(last, ast.If) and always_returns(last.body) and always_returns(last.orelse)


Position = tuple[int, int]


class Reads:
    """Where a function reads its names."""

    def __init__(self, function: ast.AST) -> None:
        self._reads: dict[str, list[tuple[Position, bool]]] = {}
        self._writes: dict[str, list[Position]] = {}
        self._look(function, top=True, nested=False, written=None)

    def _look(self, node: ast.AST, *, top: bool, nested: bool, written: Position | None) -> None:
        if isinstance(node, ast.Name):
            where = (node.lineno, node.col_offset)
            if isinstance(node.ctx, ast.Load):
                self._reads.setdefault(node.id, []).append((where, nested))
            else:
                self._writes.setdefault(node.id, []).append(written or where)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            # The value is read before the name is written, although it stands behind it.
            written = (node.end_lineno or node.lineno, node.end_col_offset or 0)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            # `x += y` reads x although its context says that it stores.
            where = (node.lineno, node.col_offset)
            self._reads.setdefault(node.target.id, []).append((where, nested))
        nested = nested or (not top and isinstance(node, _SCOPES))
        for child in ast.iter_child_nodes(node):
            self._look(child, top=False, nested=nested, written=written)

    def is_live(self, name: str, statement: ast.stmt, loop: ast.stmt | None) -> bool:
        """Whether what a statement leaves in a name may be read after it.

        ``loop`` is the outermost loop around the statement. The answer may err on the side of yes.
        """
        first, last = _span(statement)
        for where, nested in self._reads.get(name, []):
            inside = first <= where <= last
            if nested and not inside:
                return True
            if not inside and where > last:
                return True
            if loop is not None and not inside and where >= _span(loop)[0]:
                return True
            # Read again at the next trip, before it is written.
            if loop is not None and inside and self._reads_first(name, first, last):
                return True
        return False

    def _reads_first(self, name: str, first: Position, last: Position) -> bool:
        reads = [where for where, _ in self._reads.get(name, []) if first <= where <= last]
        writes = [where for where in self._writes.get(name, []) if first <= where <= last]
        return bool(reads) and (not writes or min(reads) <= min(writes))

    def is_carried(self, name: str, statement: ast.stmt) -> bool:
        """Whether a loop's body may read what an earlier trip left in a name."""
        return self._reads_first(name, *_span(statement))


def _span(node: ast.stmt) -> tuple[Position, Position]:
    last = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset), last
