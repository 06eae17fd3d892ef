"""Moves statements that leave a block early to the ends of branches.

``if test: return a`` with code after it becomes an ``if`` with an ``else``. ``break`` sets a
variable that the loop's condition tests, ``return`` in a loop sets another one, and ``continue``
becomes the end of a branch. The result behaves like the original, on plain values too, and has the
form of branches and loops of a graph (structuring as in Erosa and Hendren, "Taming control flow",
1994, for jumps out of branches only).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from defn._syntax.names import always_returns, jumps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn._syntax.source import Definition

__all__ = ["STOP", "restructure", "stop_of"]

STOP = "_defn_stop_"
"""The prefix of the variables that a ``break`` sets."""

# The maximum nesting depth of branches, and the maximum number of statements that are duplicated
# where both branches of an `if` continue.
_DEEPEST = 20
_MOST_COPIES = 64


def restructure(function: Definition, copied: Callable[[Any], Any]) -> None:
    """Rewrite the tree of a function, and those of functions inside it.

    ``copied`` copies a tree.
    """
    if isinstance(function, ast.FunctionDef):
        _Function(copied).function(function)


class _Function:
    """Rewrites one function after those inside it, and loops after the loops inside them."""

    def __init__(self, copied: Callable[[Any], Any]) -> None:
        self._copied = copied
        self._loops = 0

    def function(self, node: ast.FunctionDef) -> None:
        if jumps(node.body) & {"yield", "await"}:
            return
        node.body = self._block(node.body)
        body = _Block({"return"}, self._copied).put(node.body)
        if body is not None and always_returns(body):
            node.body = body

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in block:
            if isinstance(statement, ast.FunctionDef):
                _Function(self._copied).function(statement)
            elif isinstance(statement, ast.If):
                self._chain(statement)
            elif not isinstance(statement, ast.AsyncFunctionDef):
                self._inside(statement)
            if isinstance(statement, ast.For | ast.While):
                self._loops += 1
                made += _loop(statement, self._loops, self._copied)
            else:
                made.append(statement)
        return made

    def _chain(self, node: ast.If) -> None:
        """Rewrite the branches of an ``elif`` chain, iteratively: a long chain nests deeply."""
        link: ast.If | None = node
        while link is not None:
            link.body = self._block(link.body)
            rest = link.orelse
            if len(rest) == 1 and isinstance(rest[0], ast.If):
                link = rest[0]
            else:
                link.orelse = self._block(rest)
                link = None

    def _inside(self, statement: Any) -> None:
        for field in ("body", "orelse", "finalbody"):
            block = getattr(statement, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(statement, field, self._block(block))
        for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            part.body = self._block(part.body)


def stop_of(loop: ast.For | ast.While) -> str | None:
    """The variable that a rewritten ``break`` of the loop sets."""
    return getattr(loop, "_defn_stop", None)


def _loop(
    loop: ast.For | ast.While, number: int, copied: Callable[[Any], Any]
) -> Sequence[ast.stmt]:
    """The loop without ``break``, ``continue`` and ``return``; unchanged if they cannot be removed.

    A return value is computed after the loop. The loop ends where ``return`` stood, so all
    variables still have the values that they had there.
    """
    left = jumps(loop.body)
    if not left or not left <= {"break", "continue", "return"}:
        return [loop]
    body = _Block({"break", "continue", "return"}, copied).put(loop.body)
    if body is None:
        return [loop]
    stop, returns = f"{STOP}{number}", _Returns(number, loop)
    changed = returns.put(_ends(copied(body), stop), stop)
    if jumps(changed):
        return [loop]
    loop.body = changed
    if left == {"continue"}:
        return [loop]
    loop._defn_stop = stop  # type: ignore[union-attr]
    made: list[ast.stmt] = [_assigned(name, False, loop) for name in (stop, *returns.names)]
    made.append(loop)
    if loop.orelse:
        went_on = ast.UnaryOp(ast.Not(), ast.Name(stop, ast.Load()))
        made.append(_placed(ast.If(went_on, loop.orelse, []), loop.orelse[0], loop.orelse[-1]))
        loop.orelse = []
    # A loop that only `return` can leave needs no condition for the last one.
    is_endless = (
        isinstance(loop, ast.While)
        and isinstance(loop.test, ast.Constant)
        and bool(loop.test.value)
        and "break" not in left
    )
    for name, statement in zip(returns.names, returns.statements, strict=True):
        if is_endless and name == returns.names[-1]:
            made.append(statement)
        else:
            test = ast.Name(name, ast.Load())
            made.append(_placed(ast.If(test, [statement], []), statement, statement))
    return made


class _Returns:
    """The returns of a loop, each with a variable that is set when it is reached."""

    def __init__(self, number: int, loop: ast.For | ast.While) -> None:
        self._number = number
        self._after = (loop.end_lineno or 0, (loop.end_col_offset or 0) + 1)
        self.names: list[str] = []
        self.statements: list[ast.Return] = []

    def put(self, block: list[ast.stmt], stop: str) -> list[ast.stmt]:
        """The block, in which returns at the end set variables instead."""
        if not block:
            return block
        *others, last = block
        if isinstance(last, ast.If):
            last.body, last.orelse = self.put(last.body, stop), self.put(last.orelse, stop)
        elif isinstance(last, ast.Return):
            name = f"{STOP}{self._number}_{len(self.names)}"
            self.names.append(name)
            self.statements.append(last)
            for node in ast.walk(last):
                if isinstance(node, ast.Name):
                    # The expression is now read after the loop; liveness analysis uses this.
                    node._defn_where = self._after  # type: ignore[attr-defined]
            return [*others, _assigned(name, True, last), _assigned(stop, True, last)]
        return [*others, last]


class _Block:
    """Moves the rest of a block into the branches of statements that may leave the block."""

    def __init__(self, kinds: set[str], copied: Callable[[Any], Any]) -> None:
        self._kinds, self._copied = kinds, copied
        self._copies = 0

    def put(self, block: list[ast.stmt], depth: int = 0) -> list[ast.stmt] | None:
        """The rewritten block; None if it would be too large."""
        if depth > _DEEPEST:
            return None
        for position, statement in enumerate(block):
            if _is_jump(statement, self._kinds):
                # The code after it never runs.
                return block[: position + 1]
            if not isinstance(statement, ast.If) or not self._leaves(statement):
                continue
            rest = block[position + 1 :]
            goes_on = [not self._ends(branch) for branch in (statement.body, statement.orelse)]
            first, second = rest, rest
            if all(goes_on) and rest:
                self._copies += sum(1 for part in rest for _ in ast.walk(part))
                if self._copies > 100 * _MOST_COPIES:
                    return None
                second = self._copied(rest)
            body = self.put([*statement.body, *(first if goes_on[0] else [])], depth + 1)
            orelse = self.put([*statement.orelse, *(second if goes_on[1] else [])], depth + 1)
            if body is None or orelse is None:
                return None
            made = ast.If(statement.test, body, orelse)
            return [*block[:position], _placed(made, statement, (rest or [statement])[-1])]
        return block

    def _leaves(self, statement: ast.If, depth: int = 0) -> bool:
        """Whether a branch, or one inside it, has a jump; very deep branches are ignored."""
        for inner in [*statement.body, *statement.orelse]:
            if _is_jump(inner, self._kinds):
                return True
            if isinstance(inner, ast.If) and depth < _DEEPEST and self._leaves(inner, depth + 1):
                return True
        return False

    def _ends(self, block: Sequence[ast.stmt], depth: int = 0) -> bool:
        """Whether control never reaches the code after a block."""
        if not block or depth > _DEEPEST:
            return False
        last = block[-1]
        if isinstance(last, ast.If):
            return self._ends(last.body, depth + 1) and self._ends(last.orelse, depth + 1)
        return isinstance(last, ast.Raise) or _is_jump(last, self._kinds)


def _is_jump(statement: ast.stmt, kinds: set[str]) -> bool:
    jump = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}
    return jump.get(type(statement)) in kinds


def _ends(block: list[ast.stmt], stop: str) -> list[ast.stmt]:
    """The block with the last statements of it and of its branches rewritten: ``break`` sets the
    variable, ``continue`` does nothing.
    """
    if not block:
        return block
    *others, last = block
    if isinstance(last, ast.Break):
        last = _assigned(stop, True, last)
    elif isinstance(last, ast.Continue):
        last = ast.copy_location(ast.Pass(), last)
    elif isinstance(last, ast.If):
        last.body, last.orelse = _ends(last.body, stop), _ends(last.orelse, stop)
    return [*others, last]


def _assigned(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
    return _placed(made, at, None)


def _placed(made: Any, first: ast.stmt, last: ast.stmt | None) -> Any:
    """Give a statement the source range from the start of ``first`` to the end of ``last``."""
    ast.copy_location(made, first)
    if last is None:
        made.end_lineno, made.end_col_offset = made.lineno, made.col_offset
    else:
        made.end_lineno, made.end_col_offset = last.end_lineno, last.end_col_offset
    for child in ast.walk(made):
        if isinstance(child, ast.expr | ast.stmt) and not hasattr(child, "lineno"):
            child.lineno = child.end_lineno = first.lineno
            child.col_offset = child.end_col_offset = first.col_offset
    return made
