"""Variables that a branch or a loop leaves unbound: errors for reads name that statement."""

from __future__ import annotations

import functools
import re
import threading
from typing import TYPE_CHECKING

from defn._names import caller
from defn.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["explained", "note"]


class _Notes(threading.local):
    """The notes of the running definition: by name, the statement and its line."""

    names: dict[str, tuple[str, str]] | None = None


_NOTES = _Notes()


def note(kind: str, name: str) -> None:
    """Record that a statement on a tensor has bound a name on one path only."""
    if _NOTES.names is not None:
        _NOTES.names[name] = (kind, caller().strip().removeprefix("at "))


def explained(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A definition whose errors for reads of such a name say which statement left it unbound."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        before, _NOTES.names = _NOTES.names, {}
        try:
            return fun(*args, **kwargs)
        except NameError as error:
            raise _error(error, _NOTES.names) or error from None
        finally:
            _NOTES.names = before

    return run


def _error(error: NameError, names: dict[str, tuple[str, str]]) -> TraceError | None:
    found = re.search(r"variable '(\w+)'", str(error))
    if found is None or found[1] not in names:
        return None
    name, (kind, line) = found[1], names[found[1]]
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    read = f"\n  at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    if kind == "if":
        rule = f"in one branch only of the condition on a tensor at {line}"
        way = f"bind it in every branch, or before, as in {name} = 0"
    else:
        rule = f"first in the loop at {line}, which may make no trip"
        way = f"bind it before the loop, as in {name} = 0"
    return TraceError(f"{kind}: the variable {name} is bound {rule}; {way}{read}")
