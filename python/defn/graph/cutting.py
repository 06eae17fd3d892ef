"""``split``, and rules to cut by."""

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
    """Cut a graph into stages that together compute what it computes.

    ``split(expr, decide)`` asks ``decide(node)`` about every node that the results need, and every
    one with an effect, operands first, but for parameters:

    - ``"before"`` ends a stage that computes the operands of the node,
    - ``"after"`` ends a stage that computes the node,
    - ``"both"`` does one after the other,
    - ``"none"`` cuts nowhere.

    ``split(expr, acc, decide)`` asks ``decide(node, acc)``, which returns the decision and the next
    ``acc``. In place of ``decide`` there may be a rule: ``every``, ``ops``, ``marks``,
    ``balanced``.

    Nothing is computed twice: a value that is used after a cut is an output of the stage that made
    it, and a stage takes only what it uses. What is written in the program, numbers and tensors
    that a definition made, stands in each stage that uses it. A loop or a branch is never cut
    inside; a cut there leaves it alone in its stage. A cut with nothing to compute on one side of
    it is none, so that there may be fewer stages than cuts.

    ``expr`` is a container of traced tensors of one graph. Each stage but the last gives a tuple;
    the last gives the container of ``expr``. Tensors that the function found around it are no
    arguments: they go with the stages that use them, as ``stage.captures``, with the elements that
    they had when the function was traced. Tensors with elements and numbers in ``expr`` are such
    too. Only where a compiler in Python is handed its definition, what that captured follows the
    arguments, as it does there.

    Raises: ``OptionError`` for a decision that is none and a rule that does not fit the graph,
        ``ContainerError`` where there is no decision and accumulator, ``TraceError`` for an
        ``expr`` without a graph or of several, and what ``decide`` raises.

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
    """A rule for ``split``: a stage for so many operations, one after the other.

    Numbers and tensors that are written in the program do not count.

    Raises: ``OptionError`` for a count below 1.

    >>> expr = dn.debug_expr(lambda x: dn.exp(dn.cos(dn.sin(x))))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.every(2)))
    2
    """
    return _core.graph_every(count)


def ops(*names: str, decision: Decision = "before") -> Rule:
    """A rule for ``split``: a decision at the operations of some names.

    Raises: ``OptionError`` for a name that no operation has, and a decision that is none.

    >>> expr = dn.debug_expr(lambda x: dn.exp(dn.cos(dn.sin(x))))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.ops("cos", decision="both")))
    3
    """
    return _core.graph_ops(names, decision)


def marks(*names: str) -> Rule:
    """A rule for ``split``: a stage ends after each mark of these names, or after every one.

    ``dn.mark`` sets marks.

    Raises: ``OptionError`` where the graph has no such mark.

    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.mark(dn.sin(x), "middle")))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.marks("middle")))
    2
    """
    return _core.graph_marks(names)


def balanced(stages: int) -> Rule:
    """A rule for ``split``: so many stages that the one with the most work has little more than it
    must, cut where the fewest bytes travel.

    Work is estimated as ``cost`` does.

    Raises: ``OptionError`` for less than one stage, and for more than there are operations.

    >>> expr = dn.debug_expr(lambda x: dn.exp(dn.cos(dn.sin(x))))(1.0)
    >>> len(dn.graph.split(expr, dn.graph.balanced(3)))
    3
    """
    return _core.graph_balanced(stages)
