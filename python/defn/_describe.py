"""What objects of the extension are shown as."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def definition(kind: str, name: str, fun: Callable[..., Any], versions: int) -> str:
    """A definition: what made it, its name and parameters, and how often it is compiled."""
    count = {0: "not compiled yet", 1: "1 version"}.get(versions, f"{versions} versions")
    return f"<{kind} {name}{_parameters(fun)}, {count}>"


def _parameters(fun: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))
