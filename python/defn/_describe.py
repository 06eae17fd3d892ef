"""The text of objects of the extension."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def definition(kind: str, name: str, fun: Callable[..., Any], versions: int) -> str:
    """The text of a definition: its kind, name, parameters, and number of compiled versions."""
    count = {0: "not compiled yet", 1: "1 version"}.get(versions, f"{versions} versions")
    return f"<{kind} {name}{_parameters(fun)}, {count}>"


def _parameters(fun: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))
