"""The errors for control flow on tensors that cannot be rewritten."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from defn import _core
from defn._names import caller
from defn.errors import ContainerError, TraceError

if TYPE_CHECKING:
    from typing import Any

__all__ = ["LOOPS", "STATEMENTS", "UNDEFINED", "describe", "disagree", "is_state", "refuse"]


class _Undefined:
    """The value of a name that is not bound."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()
"""The value of a name that is not bound."""

STATEMENTS = {
    "break": "`break` under a condition on a tensor inside with or try; take the loop out of it, "
    "or use dn.while_, with the condition in its test",
    "continue": "`continue` under a condition on a tensor inside with or try; use if and else "
    "around what is skipped",
    "return": "`return` in one branch only of an if on a tensor; return from every branch, "
    "or bind a variable in both and return it after the if:\n"
    "      if condition: result = a\n"
    "      else: result = b\n"
    "      return result",
    "raise": "`raise` under a condition on a tensor; use dn.hook to look at values while they run",
    "yield": "`yield` under a condition on a tensor; use dn.scan",
    "await": "`await` under a condition on a tensor; use dn.hook",
    "assert": "`assert` on a tensor; use dn.hook to look at values while they run, "
    "or dn.checks to find NaNs",
    "guard": "a guard on a tensor in a `match`; use if, elif and else",
    "filter": "`if` on a tensor in a comprehension; use dn.select, or compute all and mask them",
    "generator": "a condition on a tensor in a generator; use dn.scan, or a function that returns",
    "coroutine": "a condition on a tensor in a coroutine; compute it in a definition",
    "walrus": "`:=` in what a condition on a tensor decides; bind the name in a statement before",
    "while break": "`break` inside with or try in a while on a tensor; use dn.while_, both "
    "conditions in its test",
    "while continue": "`continue` inside with or try in a while on a tensor; use if and else "
    "around what is skipped",
    "while return": "`return` in a while on a tensor; bind the result, leave with break, and "
    "return after the loop:\n"
    "      while condition:\n"
    "          if found:\n"
    "              break\n"
    "      return result",
    "while raise": "`raise` in a while on a tensor; use dn.hook to look at values while they run",
    "while yield": "`yield` in a while on a tensor; use dn.scan",
    "while await": "`await` in a while on a tensor; use dn.hook",
}
"""Code that a condition on a tensor cannot control, and the alternatives."""

LOOPS = {
    "break": "`break` inside with or try in a for over a tensor or dn.range; use dn.while_, with "
    "the condition in its test",
    "continue": "`continue` inside with or try in a for over a tensor or dn.range; use if and else "
    "around what is skipped",
    "return": "`return` in a for over a tensor or dn.range; bind the result, leave with break, and "
    "return after the loop:\n"
    "      for i in dn.range(n):\n"
    "          if found:\n"
    "              break\n"
    "      return result",
    "raise": "`raise` in a for over a tensor or dn.range; use dn.hook to look at values while they "
    "run",
    "yield": "`yield` in a for over a tensor or dn.range; use dn.scan",
    "await": "`await` in a for over a tensor or dn.range; use dn.hook",
}
"""Statements that cannot leave a loop over a tensor, and the alternatives."""


def refuse(message: str) -> TraceError:
    """The error for code that cannot be rewritten; it ends with the user's line."""
    return TraceError(message + caller())


def is_state(value: Any) -> bool:
    """Whether branches and loops can carry a value: tensors, numbers, and containers of them."""
    if isinstance(value, _core.Tensor | int | float | complex | np.generic | np.ndarray):
        return True
    if isinstance(value, list | tuple):
        return all(is_state(item) for item in value)
    if isinstance(value, dict):
        return all(is_state(item) for item in value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return True
    return hasattr(type(value), "__attrs_attrs__")


def describe(value: Any) -> str:
    if value is UNDEFINED:
        return "not bound"
    if isinstance(value, _core.Tensor):
        axes = zip(value.names, value.shape, strict=True)
        sizes = [f"[{size}]" if name is None else f"[{name}: {size}]" for name, size in axes]
        return f"{value.dtype}{''.join(sizes)}"
    function = getattr(value, "__qualname__", None)
    if function is not None:
        return f"the function {function.split('.')[-1]}"
    text = repr(value)
    if is_state(value) and not isinstance(value, np.generic | np.ndarray):
        if isinstance(value, dict):
            items = ", ".join(f"{key!r}: {describe(item)}" for key, item in value.items())
            text = f"{{{items}}}"
        elif type(value) in (list, tuple):
            items = ", ".join(map(describe, value))
            text = f"[{items}]" if isinstance(value, list) else f"({items})"
    return text if len(text) <= 80 else f"a {type(value).__name__}"


def disagree(
    kind: str,
    name: str,
    first: Any,
    second: Any,
    rule: str = "a condition on a tensor needs one type; give it a tensor or a number in both",
) -> ContainerError:
    """The error for a variable that has different types on two paths; it says where the values come
    from.
    """
    ways = (
        ("in one branch", "in the other") if kind == "if" else ("before the loop", "after a trip")
    )
    made = "".join(
        f"\n  {way}: {describe(value)}, made at {line}"
        for way, value in zip(ways, (first, second), strict=True)
        if (line := _made_at(value)) is not None
    )
    return ContainerError(
        f"{kind}: the variable {name} is {describe(first)} {ways[0]} and {describe(second)} "
        f"{ways[1]}, {rule}{made}{caller()}"
    )


def _made_at(value: Any) -> str | None:
    """The file and line that created a traced tensor; None for an input of a loop or branch."""
    if not isinstance(value, _core.Tensor) or not value.is_traced or not _core.has_graph(value):
        return None
    node = value.expr
    if node.op == "parameter" or node.source is None:
        return None
    file, line = node.source
    return f"{file}:{line}"
