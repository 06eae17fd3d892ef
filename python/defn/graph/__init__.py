"""Graphs in stages: ``split`` cuts a traced graph, ``run`` runs the stages in order, in parallel or
in other processes; other functions analyse, draw and print graphs.

A graph is a container of traced tensors, as ``dn.debug_expr`` returns it.

>>> expr = dn.debug_expr(lambda x, y: dn.cos(dn.sin(-x)) + y)(1, 2)
>>> stages = dn.graph.split(expr, lambda node: "before" if node.op == "cos" else "none")
>>> [stage.sources for stage in stages]
[[(None, 0)], [(None, 1), (0, 0)]]
>>> print(f"{dn.graph.run(stages, [1, 2]):.4f}")
2.6664
"""

from defn._core import Difference, Node, Rule, Stage, StageProgram
from defn.graph.cutting import balanced, every, marks, ops, split
from defn.graph.looking import Cost, cost, diff, dot, from_text, mermaid, to_text
from defn.graph.running import Plan, compile, run, run_each

__all__ = [
    "Cost",
    "Difference",
    "Node",
    "Plan",
    "Rule",
    "Stage",
    "StageProgram",
    "balanced",
    "compile",
    "cost",
    "diff",
    "dot",
    "every",
    "from_text",
    "marks",
    "mermaid",
    "ops",
    "run",
    "run_each",
    "split",
    "to_text",
]
