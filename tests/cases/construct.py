"""Python's constructs in a definition: on plain values, on tensors, and where they are refused.

Programs define ``f(x, *, n=2)``. Plain conditions depend on the option ``n``. Traced conditions
depend on the scalar ``x``, or on a vector ``v`` where the program makes one.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Construct:
    """A construct with programs for each way. If there is no program, a text says why."""

    name: str
    plain: str
    # The program, the operation in its graph, and for a program that does not run on plain
    # numbers, an equivalent one that does.
    traced: tuple[str, ...] | str
    # The program, and the error that it raises.
    refused: tuple[str, str] | str

    def __str__(self) -> str:
        return self.name


def function(body: str) -> str:
    """The program that defines the function with this body."""
    return "def f(x, *, n=2):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
