"""What makes a function public: it refuses options that it does not have, and names those it has.

For an unknown keyword Python raises a ``TypeError`` that names neither the caller's line nor the
option meant. Public functions therefore collect unknown options and pass them to
:func:`defn._names.refuse_options`. All functions with the same parameters share one code object,
which is compiled once. A function that passes its arguments to the core consists of this code
alone, so that a call costs one Python frame.
"""

from __future__ import annotations

import functools
import inspect
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from defn._names import REQUIRED, refuse_one_operand, refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

__all__ = ["forwards", "public"]


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
    return _build(function, function, by_position=False)


def _build(declared: F, target: Callable[..., Any], by_position: bool) -> F:
    plain = cast("FunctionType", declared)
    code = plain.__code__
    optional = REQUIRED in (plain.__defaults__ or ())
    shared = _template(
        code.co_varnames[: code.co_posonlyargcount],
        code.co_varnames[code.co_posonlyargcount : code.co_argcount],
        code.co_varnames[code.co_argcount : _parameters(code)],
        bool(code.co_flags & inspect.CO_VARARGS),
        by_position,
        optional,
    )
    own = shared.replace(
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    myself = CellType()
    values = {
        "_function": myself,
        "_target": CellType(target),
        "_refuse": CellType(refuse_options),
        "_REQUIRED": CellType(REQUIRED),
        "_one_operand": CellType(refuse_one_operand),
    }
    closure = tuple(values[name] for name in own.co_freevars)
    made = FunctionType(own, plain.__globals__, plain.__name__, plain.__defaults__, closure)
    made.__kwdefaults__ = plain.__kwdefaults__
    made.__annotations__ = {**plain.__annotations__, "unknown": "Never"}
    made.__doc__ = plain.__doc__
    made.__module__ = plain.__module__
    made.__qualname__ = plain.__qualname__
    myself.cell_contents = made
    return cast("F", made)


def _parameters(code: CodeType) -> int:
    """How many of a function's variables are parameters, without ``**``."""
    several = bool(code.co_flags & inspect.CO_VARARGS)
    return code.co_argcount + code.co_kwonlyargcount + several


@functools.cache
def _template(
    first: tuple[str, ...],
    middle: tuple[str, ...],
    last: tuple[str, ...],
    several: bool,
    by_position: bool,
    optional: bool,
) -> CodeType:
    """The code of all functions with these parameters: positional ones, others, keywords.

    With ``several`` the last of the keywords' names is that of ``*args``, as in a code object.
    """
    keywords, rest = (last[:-1], last[-1:]) if several else (last, ())
    declared = [*first, "/"] if first else []
    declared += middle
    declared += [f"*{name}" for name in rest] or (["*"] if keywords else [])
    declared += [*keywords, "**unknown"]
    passed = [*first, *middle, *(f"*{name}" for name in rest)]
    passed += keywords if by_position else [f"{name}={name}" for name in keywords]
    # A default of REQUIRED is that of the second operand.
    check = f"if {first[1]} is _REQUIRED: _one_operand(_function)" if optional else "pass"
    source = f"""
def factory(_function, _target, _refuse, _REQUIRED, _one_operand):
    def shared({", ".join(declared)}):
        {check}
        if unknown:
            _refuse(_function, unknown)
        return _target({", ".join(passed)})
    return shared.__code__
"""
    names: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), names)
    return names["factory"](*[None] * 5)
