"""The names that statements bind and read, and the jumps that leave them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Facts", "Reads", "always_returns", "facts", "is_simple", "jumps", "rebound", "stored"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Stored(ast.NodeVisitor):
    """Collects the names that are bound in the scope of the visited statements."""

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
        # Inside a comprehension, too, it binds in the enclosing scope.
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
    """The names that functions inside statements bind in an enclosing function."""
    found: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Nonlocal):
                        found.update(dict.fromkeys(inner.names))
    return list(found)


# Methods that modify Python's containers.
_MUTATORS = frozenset(
    {
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend"),
        *("extendleft", "insert", "intersection_update", "pop", "popitem", "popleft", "remove"),
        *("reverse", "rotate", "setdefault", "sort", "symmetric_difference_update", "update"),
    }
)


class Facts:
    """The effects of statements: the names bound, the jumps, and the objects modified."""

    def __init__(self) -> None:
        self.stored: dict[str, None] = {}
        self.jumps: set[str] = set()
        self.has_call = False
        # Attributes and items that are assigned to: the root variable, and the text.
        self._targets: list[tuple[str | None, str]] = []
        # Calls of modifying methods: the root variable, the text, and the object.
        self._mutators: list[tuple[str | None, str, ast.expr]] = []

    def _add(self, other: Facts) -> None:
        self.stored.update(other.stored)
        self.jumps |= other.jumps
        self.has_call |= other.has_call
        self._targets += other._targets
        self._mutators += other._mutators

    def changes(self) -> list[str]:
        """The text of attributes and items assigned to, of objects created outside."""
        texts = (text for name, text in self._targets if name not in self.stored)
        return list(dict.fromkeys(texts))

    def mutations(self) -> list[tuple[str, ast.expr]]:
        """Calls that modify their object if it is a container: the text, and the object."""
        return [(text, of) for name, text, of in self._mutators if name not in self.stored]


def facts(nodes: Iterable[ast.AST]) -> Facts:
    """The effects of nodes. They are cached for each node, so that long chains take linear time."""
    found = Facts()
    for node in nodes:
        found._add(_facts_of(node))
    return found


def _facts_of(node: ast.AST) -> Facts:
    chain = [node]
    while not hasattr(chain[-1], "_defn_facts"):
        last = chain[-1]
        if not (isinstance(last, ast.If) and len(last.orelse) == 1):
            break
        chain.append(last.orelse[0])
    # From the last link on, because each link contains those after it.
    for link in reversed(chain):
        if hasattr(link, "_defn_facts"):
            continue
        if isinstance(link, ast.If):
            made = facts([link.test, *link.body, *link.orelse])
        else:
            made = Facts()
            made.stored = dict.fromkeys(stored([link]))
            made.jumps = jumps([link])
            made.has_call = any(isinstance(inner, ast.Call) for inner in ast.walk(link))
            _look_for_changes(link, made)
        link._defn_facts = made  # type: ignore[attr-defined]
    known: Facts = node._defn_facts  # type: ignore[attr-defined]
    return known


def _look_for_changes(node: ast.AST, into: Facts) -> None:
    if isinstance(node, _SCOPES):
        return
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        into._targets.append((_root(node), ast.unparse(node)))
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr in _MUTATORS:
        root = _root(called.value)
        if root is not None:
            into._mutators.append((root, ast.unparse(node), called.value))
    for child in ast.iter_child_nodes(node):
        _look_for_changes(child, into)


def _root(node: ast.expr) -> str | None:
    """The root variable of an expression of attributes and items."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def is_simple(test: ast.expr) -> bool:
    """Whether a condition may be evaluated even if it is not needed: it consists of comparisons of
    variables and constants.
    """
    simple = (
        ast.Compare, ast.Name, ast.Constant, ast.Attribute, ast.UnaryOp, ast.expr_context,
        ast.unaryop, ast.cmpop,
    )  # fmt: skip
    return all(isinstance(node, simple) for node in ast.walk(test))


def jumps(nodes: Iterable[ast.AST]) -> set[str]:
    """The ways in which statements leave their block: ``break``, ``continue``, ``return``,
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
    """Whether the last statement returns on every path."""
    while statements:
        last = statements[-1]
        if isinstance(last, ast.Return):
            return True
        if not (isinstance(last, ast.If) and always_returns(last.body)):
            return False
        # The rest of an `elif` chain is in the last branch.
        statements = last.orelse
    return False


Position = tuple[int, int]


class Reads:
    """The positions at which a function reads its names."""

    def __init__(self, function: ast.AST) -> None:
        self._reads: dict[str, list[tuple[Position, bool]]] = {}
        self._writes: dict[str, list[Position]] = {}
        self._look(function)

    def _look(self, function: ast.AST) -> None:
        # Iterative, because `elif` chains nest as deep as they are long.
        waiting: list[tuple[ast.AST, bool, Position | None]] = [(function, False, None)]
        while waiting:
            node, nested, written = waiting.pop()
            if isinstance(node, ast.Name):
                where = getattr(node, "_defn_where", (node.lineno, node.col_offset))
                if isinstance(node.ctx, ast.Load):
                    self._reads.setdefault(node.id, []).append((where, nested))
                else:
                    self._writes.setdefault(node.id, []).append(written or where)
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                # The value is read before the name is written, although it comes later in the text.
                written = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                # `x += y` reads x although its context is a store.
                where = (node.lineno, node.col_offset)
                self._reads.setdefault(node.target.id, []).append((where, nested))
            nested = nested or (node is not function and isinstance(node, _SCOPES))
            waiting.extend((child, nested, written) for child in ast.iter_child_nodes(node))

    def is_live(self, name: str, statement: ast.stmt, loop: ast.stmt | None) -> bool:
        """Whether the value that a statement leaves in a name may be read after it.

        ``loop`` is the outermost loop around the statement. The answer is conservative: True may be
        wrong, False is not.
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
            # Read in the next iteration, before it is written.
            if loop is not None and inside and self._reads_first(name, first, last):
                return True
        return False

    def _reads_first(self, name: str, first: Position, last: Position) -> bool:
        reads = [where for where, _ in self._reads.get(name, []) if first <= where <= last]
        writes = [where for where in self._writes.get(name, []) if first <= where <= last]
        return bool(reads) and (not writes or min(reads) <= min(writes))

    def is_carried(self, name: str, statement: ast.stmt) -> bool:
        """Whether a loop's body may read a value of the name from an earlier iteration."""
        return self._reads_first(name, *_span(statement))


def _span(node: ast.stmt) -> tuple[Position, Position]:
    last = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset), last
