"""Python's own control flow on traced tensors: the source of a definition, rewritten.

A function decorated with ``defn`` is parsed once, when it is first traced. Its ``if``, ``while``,
``for``, conditional expressions, ``and``, ``or``, ``not`` and chained comparisons become calls of
:mod:`defn._syntax.runtime`, which look at the condition: on a plain value they do what Python
does, on a tensor they build branches and loops of the graph. The rewritten function keeps the file,
the lines, the closure cells, the defaults and the globals of the original, so that tracebacks,
debuggers and captured tensors know no difference.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from defn._syntax.rewrite import rewrite
from defn._syntax.runtime import RUNTIME
from defn._syntax.source import definition_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["converted"]

# By the identity of the original code, which is kept alive here: `None` where nothing is rewritten.
_CODES: dict[int, tuple[types.CodeType, types.CodeType | None]] = {}


def converted(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its control flow rewritten; itself where there is none, or no source."""
    if not isinstance(fun, types.FunctionType):
        return fun
    original = fun.__code__
    known = _CODES.get(id(original))
    if known is None:
        known = _CODES[id(original)] = (original, _rewritten(fun))
    code = known[1]
    if code is None:
        return fun
    cells = dict(zip(original.co_freevars, fun.__closure__ or (), strict=True))
    cells["__defn__"] = types.CellType(RUNTIME)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__qualname__ = fun.__qualname__
    made.__module__ = fun.__module__
    made.__doc__ = fun.__doc__
    made.__dict__.update(fun.__dict__)
    return made


def _rewritten(fun: types.FunctionType) -> types.CodeType | None:
    definition = definition_of(fun)
    return None if definition is None else rewrite(fun, definition)
