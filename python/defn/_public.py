"""What makes a function public: it refuses options that it does not have, and names those it has.

For an unknown keyword Python raises a ``TypeError`` that names neither the caller's line nor the
option meant. Public functions therefore collect unknown options and pass them to
:func:`defn._names.refuse_options`. The code that does so is compiled once for all functions with as
many parameters of each kind, because compiling it takes 50 microseconds of the import. A function
that passes its arguments to the core consists of this code alone, so that a call costs one Python
frame.
"""

from __future__ import annotations

import functools
import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from defn._names import REQUIRED, refuse_one_operand, refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

__all__ = ["forwards", "public"]

# Constants of the shared code that each function replaces by values.
FUNCTION, TARGET, REFUSE = "<the function>", "<what it calls>", "<refuse_options>"
MISSING, REFUSE_ONE = "<REQUIRED>", "<refuse_one_operand>"


def forwards(target: Callable[..., Any]) -> Callable[[F], F]:
    """Give a function its body: it calls ``target`` with all arguments by position.

    >>> from defn._public import forwards
    >>> @forwards(divmod)
    ... def division(a, b=3, /): ...
    >>> division(7)
    (2, 1)
    """
    return lambda function: _build(function, target, by_position=True)


def public(function: F) -> F:
    """Let a function that has a body refuse unknown options before the body runs."""
    plain = cast("FunctionType", function)
    code = plain.__code__
    if code.co_flags & inspect.CO_VARARGS:
        return _build(function, function, by_position=False)
    # What takes everything by position needs no code of its own for the names of its options.
    body = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    target = FunctionType(body, plain.__globals__, plain.__name__, None, plain.__closure__)
    return _build(function, target, by_position=True)


def _build(declared: F, target: Callable[..., Any], by_position: bool) -> F:
    plain = cast("FunctionType", declared)
    code = plain.__code__
    several = bool(code.co_flags & inspect.CO_VARARGS)
    parameters = code.co_argcount + code.co_kwonlyargcount + several
    names = code.co_varnames[:parameters]
    shared = _template(
        code.co_posonlyargcount,
        code.co_argcount,
        code.co_kwonlyargcount if by_position else names[code.co_argcount : parameters - several],
        several,
        REQUIRED in (plain.__defaults__ or ()),
    )
    made = FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__)
    # The values are constants of the code. In a closure they would be compared by each call of
    # `jit(function)`, as what a definition closes over is.
    values = {
        FUNCTION: made,
        TARGET: target,
        REFUSE: refuse_options,
        MISSING: REQUIRED,
        REFUSE_ONE: refuse_one_operand,
    }
    made.__code__ = shared.replace(
        co_varnames=(*names, "unknown", *shared.co_varnames[parameters + 1 :]),
        co_consts=tuple(
            values.get(value, value) if isinstance(value, str) else value
            for value in shared.co_consts
        ),
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    made.__kwdefaults__ = plain.__kwdefaults__
    made.__annotations__ = {**plain.__annotations__, "unknown": "Never"}
    made.__doc__ = plain.__doc__
    made.__module__ = plain.__module__
    made.__qualname__ = plain.__qualname__
    return cast("F", made)


@functools.cache
def _template(
    positional: int,
    count: int,
    keywords: int | tuple[str, ...],
    several: bool,
    optional: bool,
) -> CodeType:
    """The code of all functions with as many parameters of each kind, whose names are replaced.

    ``keywords`` are passed on by position if their number is given, and by name if their names are.
    """
    first = [f"p{i}" for i in range(count)]
    rest = ["*rest"] if several else []
    by_position = isinstance(keywords, int)
    last = [f"k{i}" for i in range(keywords)] if by_position else list(keywords)
    declared = [*first[:positional], *(["/"] if positional else []), *first[positional:]]
    declared += [*(rest or (["*"] if last else [])), *last, "**unknown"]
    passed = [*first, *rest, *(last if by_position else [f"{name}={name}" for name in last])]
    # A default of REQUIRED is that of the second operand.
    check = f"""
    _1 = {MISSING!r}
    if p1 is _1:
        _2 = {REFUSE_ONE!r}
        _2({FUNCTION!r})"""
    source = f"""
def shared({", ".join(declared)}):{check if optional else ""}
    if unknown:
        _3 = {REFUSE!r}
        _3({FUNCTION!r}, unknown)
    _4 = {TARGET!r}
    return _4({", ".join(passed)})
"""
    names: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), names)
    return names["shared"].__code__
