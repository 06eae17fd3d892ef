"""Python's constructs in a definition: on plain values, on tensors, and where they are refused.

Programs define ``f(x, *, n=2)``. What is plain is decided by ``n``, which is an option; what is
traced by ``x``, a scalar, or where they say ``v`` by a vector.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Construct:
    """A construct, with programs for each way. A way that there is none of says why."""

    name: str
    plain: str
    # The program, the operation that is in its graph, and where that is no program of plain
    # numbers, one that gives the same.
    traced: tuple[str, ...] | str
    # The program, and what it raises.
    refused: tuple[str, str] | str

    def __str__(self) -> str:
        return self.name


def function(body: str) -> str:
    """The program whose function has this body."""
    return "def f(x, *, n=2):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
