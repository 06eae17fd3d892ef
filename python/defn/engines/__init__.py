"""Engines run the stages of a graph: in order, on threads, or in other processes.

An engine is an object with ``run_each(plan, sets)``, which ``dn.graph.run`` calls. ``RayMesh`` is
no engine: it runs sharded functions in processes of Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from defn.engines.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from defn._core import Tensor
    from defn.engines.ray import Ray, StageReport
    from defn.engines.ray_mesh import RayMesh
    from defn.graph import Plan

__all__ = ["Engine", "Ray", "RayMesh", "Sequential", "StageReport", "Threads"]


@runtime_checkable
class Engine(Protocol):
    """The interface of engines, which run stages.

    >>> class Printing:
    ...     def run_each(self, plan, sets):
    ...         print(len(plan.stages), "stages")
    ...         return dn.engines.Sequential().run_each(plan, sets)
    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)))(1.0)
    >>> stages = dn.graph.split(expr, dn.graph.every(1))
    >>> dn.graph.run(stages, [0.0], engine=Printing()).item()
    2 stages
    1.0
    """

    def run_each(self, plan: Plan, sets: Iterable[Sequence[Tensor]]) -> Iterator[Sequence[Tensor]]:
        """Run the stages of a plan on sets of tensors, each the arguments of the whole in order.

        Yields the results of the last stage for each set, in order. Captured tensors belong to the
        stages and are in none of the sets.
        """
        ...


class Sequential:
    """The engine that runs the stages one after the other, and the sets one after the other.

    >>> dn.engines.Sequential()
    Sequential()
    """

    def __repr__(self) -> str:
        return "Sequential()"

    def run_each(self, plan: Plan, sets: Iterable[Sequence[Tensor]]) -> Iterator[Sequence[Tensor]]:
        """Yield the results of each set, in order."""
        programs = [plan.compile(position) for position in range(len(plan.stages))]
        for tensors in sets:
            values = {(None, index): tensor for index, tensor in enumerate(tensors)}
            del tensors
            yield _run(plan, programs, values)


def _run(
    plan: Plan, programs: Sequence[Callable[..., Any]], values: dict[tuple[Any, int], Tensor]
) -> Sequence[Tensor]:
    """The results of the last stage. A value is dropped when its last user takes it."""
    taken = {source for sources in plan.sources for source in sources}
    for source in [source for source in values if source not in taken]:
        del values[source]
    outputs: Sequence[Tensor] = ()
    for position, program in enumerate(programs):
        # The previous outputs are in `values`; drop this reference to them.
        outputs = ()
        uses = zip(plan.sources[position], plan.last_uses[position], strict=True)
        given = [values.pop(source) if last else values[source] for source, last in uses]
        outputs = program(*given)
        del given
        values.update({(position, index): value for index, value in enumerate(outputs)})
    return outputs


def __getattr__(name: str) -> object:
    """Import what is for Ray on first use, because it needs more imports than all others."""
    modules = {"Ray": "ray", "StageReport": "ray", "RayMesh": "ray_mesh"}
    if name in modules:
        import importlib

        return getattr(importlib.import_module(f"defn.engines.{modules[name]}"), name)
    from defn._names import unknown_name

    raise unknown_name("defn.engines has nothing", name)
