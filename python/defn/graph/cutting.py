"""``split``, and the rules for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from defn import _core
from defn._core import Rule, Stage
from defn._names import caller
from defn.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeAlias, TypeVar

    from defn._core import Node

    Decision: TypeAlias = Literal["before", "after", "both", "none"]
    Acc = TypeVar("Acc")


@overload
def split(expr: Any, decide: Callable[[Node], Decision] | Rule, /) -> list[Stage]: ...
@overload
def split(
    expr: Any, acc: Acc, decide: Callable[[Node, Acc], tuple[Decision, Acc]], /
) -> list[Stage]: ...
def split(expr: Any, /, *given: Any) -> list[Stage]:
    """Cut a graph into stages that together compute the same results.

    ``split(expr, decide)`` calls ``decide(node)`` for each node that the results need or that has
    an effect, with operands first. It is not called for parameters. It is called for constants,
    where a cut has no effect. It returns:

    - ``"before"`` ends a stage that computes the operands of the node,
    - ``"after"`` ends a stage that computes the node,
    - ``"both"`` does one after the other,
    - ``"none"`` does not cut.

    ``split(expr, acc, decide)`` calls ``decide(node, acc)``, which returns the decision and the
    next ``acc``. A rule may replace ``decide``: ``every``, ``ops``, ``marks``, ``balanced``.

    Nothing is computed twice: a value that is used after a cut is an output of the stage that
    computes it, and a stage takes only the values that it uses. Constants of the program, such as
    numbers, are part of each stage that uses them. Loops and branches are never cut inside; a cut
    there puts the whole loop or branch into a stage of its own. A cut with nothing to compute on
    one side is ignored, so there may be fewer stages.

    ``expr`` is a container of traced tensors of one graph. Each stage returns a tuple, except the
    last, which returns the container of ``expr``. Captured tensors are not arguments: they belong
    to the stages that use them, as ``stage.captures``, with the elements that they had when the
    function was traced. The same applies to tensors that the function creates with ``dn.tensor``,
    and to numbers and tensors with elements in ``expr``. Only in a graph that a Python compiler
    receives, captured tensors follow the arguments, as in ``Compiler.compile``.

    Raises: ``OptionError`` for an invalid decision and for a rule that does not fit the graph,
        ``ContainerError`` if ``decide`` does not return a decision and an accumulator,
        ``TraceError`` for an ``expr`` without a graph or with several, and the errors of
        ``decide``.

    >>> expr = dn.debug_expr(lambda x, y: dn.cos(dn.sin(-x)) + y)(1, 2)
    >>> first, last = dn.graph.split(expr, lambda n: "before" if n.op == "cos" else "none")
    >>> first.expr[0]
    Tensor<
      f32
    <BLANKLINE>
      parameter a:0   s32
      b = negate a    s32
      c = sin b       f32
    >
    >>> last.expr
    Tensor<
      f32
    <BLANKLINE>
      parameter a:1   f32
      parameter c:0   f32
      b = cos a       f32
      d = add b, c    f32
    >
    >>> last.arguments == [{"source": (None, 1)}, {"source": (first.id, 0)}]
    True

    After every third operation:

    >>> def third(node, count):
    ...     return "before" if count > 0 and (count + 1) % 3 == 0 else "none", count + 1
    >>> [stage.position for stage in dn.graph.split(expr, 0, third)]
    [0, 1]
    """
    if len(given) == 1:
        return _core.graph_split(expr, given[0])
    if len(given) == 2:
        acc, decide = given
        return _core.graph_split(expr, decide, (acc,))
    raise OptionError(
        f"split: {len(given) + 1} arguments, a graph and a decider are required, "
        f"or a graph, an accumulator and a decider{caller()}"
    )


def every(count: int) -> Rule:
    """A rule for ``split``: stages of ``count`` operations, in order.

    Constants of the program are not counted.

    Raises: ``OptionError`` for a count below 1.

    >>> expr = dn.debug_expr(lambda x: dn.exp(dn.cos(dn.sin(x))))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.every(2)))
    2
    """
    return _core.graph_every(count)


def ops(*names: str, decision: Decision = "before") -> Rule:
    """A rule for ``split``: the same decision at all operations with these names.

    Raises: ``OptionError`` for an unknown operation, and for an invalid decision.

    >>> expr = dn.debug_expr(lambda x: dn.exp(dn.cos(dn.sin(x))))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.ops("cos", decision="both")))
    3
    """
    return _core.graph_ops(names, decision)


def marks(*names: str) -> Rule:
    """A rule for ``split``: ends a stage after each mark with one of these names, or after all.

    ``dn.mark`` sets marks.

    Raises: ``OptionError`` if the graph has no such mark.

    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.mark(dn.sin(x), "middle")))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.marks("middle")))
    2
    """
    return _core.graph_marks(names)


def balanced(stages: int) -> Rule:
    """A rule for ``split``: ``stages`` stages of balanced work, with cuts where the fewest bytes
    are transferred.

    The stage with the most work has little more than necessary. Work is estimated as by ``cost``.

    Raises: ``OptionError`` for fewer than one stage, and for more stages than operations.

    >>> expr = dn.debug_expr(lambda x: dn.exp(dn.cos(dn.sin(x))))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.balanced(3)))
    3
    """
    return _core.graph_balanced(stages)
