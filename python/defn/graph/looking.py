"""Looks at graphs: what they cost, how they differ, pictures, and their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from defn import _core

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Difference, Tensor


@dataclass(frozen=True)
class Cost:
    """What running a graph costs, as far as types tell.

    ``flops`` are operations on elements, ``read`` and ``written`` the bytes that operations take
    and give, each by itself, ``peak`` the most bytes that are there at one time. ``work`` is one
    number for the time it takes: for each operation its flops, or its bytes in the time of 16
    flops each, whichever is more. A loop counts as often as it is known to run; ``assumed_loops``
    says how many are not known, which count once.
    """

    flops: int
    read: int
    written: int
    peak: int
    work: int
    assumed_loops: int


def cost(expr: Any) -> Cost:
    """Estimate what running a graph or a stage costs.

    Raises: ``TraceError`` for what is no graph.

    >>> expr = dn.debug_expr(dn.dot)(dn.template((8, 16), "f32"), dn.template((16, 4), "f32"))
    >>> dn.graph.cost(expr).flops == 2 * 8 * 16 * 4
    True
    """
    return Cost(**_core.graph_cost(expr))


def diff(old: Any, new: Any) -> Difference:
    """Say how a graph or a stage differs from another.

    The result is true if anything differs, prints as lines with ``-`` and ``+``, and has the
    operations as ``removed``, ``added``, ``changed`` and the number of ``equal`` ones.

    Raises: ``TraceError`` for what is no graph.

    >>> double = dn.debug_expr(lambda x: dn.sin(x) * 2)(1.0)
    >>> triple = dn.debug_expr(lambda x: dn.sin(x) * 3)(1.0)
    >>> print(dn.graph.diff(double, triple), end="")
    - %2 = constant {value: 2.0} : f32
    + %2 = constant {value: 3.0} : f32
    >>> bool(dn.graph.diff(double, double))
    False
    """
    return _core.graph_diff(old, new)


def mermaid(expr: Any) -> str:
    """A picture of a graph, a stage or a list of stages, in the language of Mermaid.

    Loops and branches are boxes, and so are stages. GitHub and most notebooks draw it.

    Raises: ``TraceError`` for what is no graph, ``ContainerError`` for stages that are not all
        of one split.

    >>> print(dn.graph.mermaid(dn.debug_expr(dn.sin)(1.0)), end="")
    flowchart TD
      in0(["parameter 0<br/>f32"])
      n1["sin<br/>f32"]
      out0(["result 0<br/>f32"])
      in0 --> n1
      n1 --> out0
    """
    return _core.graph_mermaid(expr)


def dot(expr: Any) -> str:
    r"""A picture of a graph, a stage or a list of stages, in DOT, the language of Graphviz.

    Raises: as ``mermaid``.

    >>> print(dn.graph.dot(dn.debug_expr(dn.sin)(1.0)), end="")
    digraph {
      node [shape=box]
      in0 [label="parameter 0\nf32", shape=ellipse]
      n1 [label="sin\nf32"]
      out0 [label="result 0\nf32", shape=ellipse]
      in0 -> n1
      n1 -> out0
    }
    """
    return _core.graph_dot(expr)


def to_text(expr: Any) -> str:
    """A graph as text, exact to the bit, which ``from_text`` reads.

    The container is left out, and so are the elements of captured tensors.

    Raises: ``TraceError`` for what is no graph.

    >>> print(dn.graph.to_text(dn.debug_expr(dn.sin)(1.0)), end="")
    defn-ir 1
    (f32) {
      %0 = parameter {index: 0} : f32
      %1 = sin %0 : f32
      return %1
    }
    """
    return _core.graph_to_text(expr)


def from_text(text: str, captures: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The graph of a text: a traced tensor for each result.

    ``captures`` are the tensors that the graph captured, where it did. A stage's text is read by
    ``dn.graph.Stage.from_text``.

    Raises: ``TraceError`` for another text, with the line; ``ContainerError`` for another number
        of ``captures``, ``ShapeError`` and others for captures of another type.

    >>> text = dn.graph.to_text(dn.debug_expr(dn.sin)(1.0))
    >>> dn.graph.to_text(dn.graph.from_text(text)) == text
    True
    """
    return _core.graph_from_text(text, captures)
