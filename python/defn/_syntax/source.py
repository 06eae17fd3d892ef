"""Finds the syntax tree of a function."""

from __future__ import annotations

import ast
import linecache
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator

__all__ = ["Definition", "definition_of", "parse"]

Definition = ast.FunctionDef | ast.Lambda
"""The syntax tree of a function. Coroutines and generators are never rewritten."""

# The trees of files by name, with the parsed text.
_TREES: dict[str, tuple[str, ast.Module]] = {}

# Up to 3.12, Python counts the recursion depth in a tree for all threads together, and raises
# SystemError if another thread interferes. The lock is reentrant because a garbage collection
# during a parse may start another parse in the same thread, which is harmless.
_PARSING = threading.RLock()

# The flags of the code of generators and coroutines of all kinds.
_NOT_PLAIN = 0x20 | 0x80 | 0x200


def definition_of(fun: types.FunctionType) -> Definition | None:
    """The tree of a function, with the line numbers of its file; None if its source is missing or
    has changed since, or if it is a generator or a coroutine.
    """
    code = fun.__code__
    if code.co_flags & _NOT_PLAIN:
        return None
    lines = linecache.getlines(code.co_filename, fun.__globals__)
    tree = _parsed(code.co_filename, "".join(lines))
    if tree is None:
        return None
    found = [node for node in _definitions(tree) if _fits(node, code)]
    if len(found) > 1:
        found = [node for node in found if _spans(node, code)]
    return found[0] if len(found) == 1 else None


def parse(text: str, filename: str = "<unknown>") -> ast.Module:
    """Parse a text, as ``ast.parse`` does, but safely in several threads.

    Raises: as ``ast.parse``.
    """
    with _PARSING:
        return ast.parse(text, filename)


def _parsed(filename: str, text: str) -> ast.Module | None:
    known = _TREES.get(filename)
    if known is not None and known[0] == text:
        return known[1]
    if not text:
        return None
    try:
        tree = parse(text, filename)
    except (SyntaxError, ValueError, RecursionError):
        return None
    _TREES[filename] = (text, tree)
    return tree


def _definitions(tree: ast.Module) -> Iterator[Definition]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node


def _fits(node: Definition, code: types.CodeType) -> bool:
    """Whether a definition has the name, the line and the parameters of the code."""
    if isinstance(node, ast.Lambda):
        name, line = "<lambda>", node.lineno
    else:
        name = node.name
        line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    if name != code.co_name or line != code.co_firstlineno:
        return False
    args = node.args
    names = [arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    count = code.co_argcount + code.co_kwonlyargcount
    # Inside a class, names with two leading underscores are mangled.
    given = zip(code.co_varnames[:count], names, strict=False)
    return count == len(names) and all(have.endswith(want) for have, want in given)


def _spans(node: Definition, code: types.CodeType) -> bool:
    """Whether a definition contains all instructions; it distinguishes several on one line."""
    body = node.body if isinstance(node, ast.Lambda) else node
    first = (body.lineno, body.col_offset)
    last = (body.end_lineno or 0, body.end_col_offset or 0)
    found = False
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) == (end_line, end_column):
            continue
        if not first <= (line, column) <= (end_line, end_column) <= last:
            return False
        found = True
    return found
