"""Analysis of graphs: their cost, differences, diagrams, and text."""

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
    """The cost of running a graph, estimated from the types.

    ``flops`` is the number of operations on elements. ``read`` and ``written`` are the bytes of the
    inputs and outputs of all operations, ``peak`` the most bytes alive at one time. ``work`` is one
    number for the run time: for each operation the greater of its flops and 16 flops for each of
    its bytes. A loop counts as often as it is known to run; ``assumed_loops`` is the number of
    loops with an unknown trip count, which count once.
    """

    flops: int
    read: int
    written: int
    peak: int
    work: int
    assumed_loops: int


def cost(expr: Any) -> Cost:
    """Estimate the cost of running a graph or a stage.

    Raises: ``TraceError`` for a value that is not a graph.

    >>> expr = dn.debug_expr(dn.dot)(dn.template((8, 16), "f32"), dn.template((16, 4), "f32"))
    >>> dn.graph.cost(expr).flops == 2 * 8 * 16 * 4
    True
    """
    return Cost(**_core.graph_cost(expr))


def diff(old: Any, new: Any) -> Difference:
    """Compare two graphs or stages.

    The result is true if anything differs, and prints as lines with ``-`` and ``+``. It has the
    operations as ``removed``, ``added`` and ``changed``, and the number of ``equal`` ones.

    Raises: ``TraceError`` for a value that is not a graph.

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
    """A Mermaid diagram of a graph, a stage or a list of stages.

    Loops, branches and stages are boxes. GitHub and most notebooks draw it.

    Raises: ``TraceError`` for a value that is not a graph, ``ContainerError`` for stages that are
        not all of one split.

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
    r"""A diagram of a graph, a stage or a list of stages, in DOT, the language of Graphviz.

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

    The text contains neither the container nor the elements of captured tensors.

    Raises: ``TraceError`` for a value that is not a graph.

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
    """Read a graph from its text; returns a traced tensor for each result.

    ``captures`` are the graph's captured tensors, if it has any. ``dn.graph.Stage.from_text`` reads
    the text of a stage.

    Raises: ``TraceError`` for invalid text, with the line; ``ContainerError`` for a wrong number
        of ``captures``, ``ShapeError`` and others for captures of another type.

    >>> text = dn.graph.to_text(dn.debug_expr(dn.sin)(1.0))
    >>> dn.graph.to_text(dn.graph.from_text(text)) == text
    True
    """
    return _core.graph_from_text(text, captures)
