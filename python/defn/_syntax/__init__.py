"""Python's control flow on traced tensors, by rewriting the source of a definition.

A function decorated with ``defn`` is parsed once, when it is first traced. Its ``if``, ``while``,
``for``, conditional expressions, ``and``, ``or``, ``not`` and chained comparisons become calls of
:mod:`defn._syntax.runtime`, which test the condition: on a plain value they do what Python does, on
a tensor they build branches and loops of the graph. The rewritten function keeps the file, the
lines, the closure cells, the defaults and the globals of the original, so that tracebacks,
debuggers and captured tensors work as before.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING

from defn._names import caller, is_own
from defn._syntax.rewrite import rewrite
from defn._syntax.runtime import RUNTIME
from defn._syntax.source import definition_of
from defn._syntax.unbound import explained
from defn.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["converted"]

# Rewritten code by the id of the original code, which is kept alive here. The value is `None` if
# nothing is rewritten, and the original itself if its source is missing.
_CODES: dict[int, tuple[types.CodeType, types.CodeType | None]] = {}

# Functions that do not return exactly once, by the flag of their code.
_NO_FUNCTIONS = {0x20: "generator", 0x80: "coroutine", 0x200: "asynchronous generator"}


def converted(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its control flow rewritten; itself without control flow or source."""
    if not isinstance(fun, types.FunctionType):
        return _inside(fun)
    original = fun.__code__
    for flag, kind in _NO_FUNCTIONS.items():
        if original.co_flags & flag:
            raise TraceError(
                f"defn: {fun.__qualname__} is a {kind}, a function that returns is required; "
                f"return a tuple or a list, or use dn.scan{caller()}"
            )
    known = _CODES.get(id(original))
    if known is None:
        known = _CODES[id(original)] = (original, _rewritten(fun))
    code = known[1]
    if code is None:
        return fun
    if code is original:
        return _without_source(fun)
    cells = dict(zip(original.co_freevars, fun.__closure__ or (), strict=True))
    cells["__defn__"] = types.CellType(RUNTIME)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__qualname__ = fun.__qualname__
    made.__module__ = fun.__module__
    made.__doc__ = fun.__doc__
    made.__dict__.update(fun.__dict__)
    return explained(made)


def _inside(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper of a Python function, with that function rewritten; other callables unchanged."""
    if isinstance(fun, functools.partial):
        return functools.partial(converted(fun.func), *fun.args, **fun.keywords)
    if isinstance(fun, types.MethodType):
        return types.MethodType(converted(fun.__func__), fun.__self__)
    # The object's class may define `__call__` in Python.
    call = inspect.getattr_static(type(fun), "__call__", None)
    if isinstance(call, types.FunctionType):
        return types.MethodType(converted(call), fun)
    return fun


def _rewritten(fun: types.FunctionType) -> types.CodeType | None:
    try:
        definition = definition_of(fun)
        return fun.__code__ if definition is None else rewrite(fun, definition)
    except RecursionError:
        raise TraceError(
            f"defn: the source of {fun.__qualname__} is nested too deeply to be rewritten; take "
            f"parts of it out into functions of their own, or decorate with convert=False{caller()}"
        ) from None


def _without_source(fun: types.FunctionType) -> Callable[..., Any]:
    """The function unchanged; its errors for conditions on tensors say why it was not rewritten."""

    @functools.wraps(fun)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except TraceError as error:
            trace, text = error.__traceback__, str(error)
            last = None
            while trace is not None:
                if not is_own(trace.tb_frame):
                    last = trace
                trace = trace.tb_next
            is_of_flow = text.startswith(("bool:", "range: a bound is a tensor"))
            if last is None or last.tb_frame.f_code is not fun.__code__ or not is_of_flow:
                raise
            line = f"\n  at {fun.__code__.co_filename}:{last.tb_lineno}"
            raise TraceError(
                f"defn: the source of {fun.__qualname__} cannot be read (it is of exec, an old "
                "prompt, or a file that has changed), so that a condition or a loop on a tensor in "
                "it cannot be rewritten; put it into a file or a notebook, or use dn.cond, "
                f"dn.while_ or dn.for_, which need no source, with convert=False{line}"
            ) from error

    return unconverted
