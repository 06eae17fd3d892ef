"""Runs stages in workers of Ray, on one machine or many.

Each stage has a worker: a process that receives the stage's text, constants and options, compiles
it once, and keeps the executable. The results of a stage stay in Ray's object store, from which the
workers of other stages read them. The calling process holds only references until it reads results.
"""

from __future__ import annotations

import dataclasses
import pickle
import threading
from typing import TYPE_CHECKING

from defn import _core
from defn._names import option_error, unknown_options
from defn.engines._ray_actors import amount, mapping, start, whole
from defn.engines._ray_cluster import CLUSTER, demand, package
from defn.engines._ray_pipeline import Pipeline
from defn.engines._ray_worker import Worker
from defn.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Never, Self

    from defn._core import Tensor
    from defn.graph import Plan

__all__ = ["Ray", "StageReport"]


@dataclasses.dataclass(frozen=True)
class StageReport:
    """The workers' report on one stage, over all runs since the engine started."""

    stage: str
    """The stage's ``id``."""
    position: int
    """The position among the stages of its split."""
    calls: int
    """The number of started calls, as counted by the processes that returned a result."""
    compiles: int
    """The number of compilations: one for each process that ran the stage."""
    restarts: int
    """The number of processes that ran it after the first."""
    seconds: float
    """The computing time, without waiting and compiling."""
    compile_seconds: float
    """The compile time."""
    bytes_in: int
    """The bytes of all inputs."""
    bytes_out: int
    """The bytes of all outputs."""
    pid: int
    """The process that ran the stage last."""
    node: str
    """The machine of that process, as Ray calls it."""


class Ray:
    """The engine that runs stages in workers of Ray, in parallel and on any number of machines.

    Each stage has a worker. With ``workers``, this number of workers share the stages, and
    neighbouring stages share a worker. A worker receives a stage's text, constants and options,
    compiles it once, and keeps the executable until the engine is closed. Bounded queues limit the
    argument sets in flight: a stage runs at most ``maxsize`` sets ahead of the stages that take its
    results, and the last stage ahead of the reader of the results.

    If the process of a worker is lost, it is restarted, up to ``restarts`` times. It compiles its
    stages again and repeats unfinished calls. Results of other workers are in the object store and
    are not computed again, unless the machine that held them is lost.

    A worker requests ``num_cpus``, ``num_gpus`` and ``resources`` of its machine, by default none;
    ``placement`` overrides this for single workers by their number, as in ``{3:
    {"num_gpus": 1}}``. Workers are spread over the machines.

    Without ``address`` the engine joins the cluster that the process is connected to, or else
    starts one on this machine, which ends with the engine; ``init`` are the options of ``ray.init``
    for this. With an address, such as ``"auto"``, it joins the cluster there. Every machine needs
    this version of ``defn``. Results are tensors on the host, whatever device ran the stages. An
    engine is a context manager, which closes it.

    An error in a stage is raised in place of the result of its set, after the results of earlier
    sets; the engine stays usable. Stages with hooks or ``runtime_call`` are refused, because these
    call functions of this process. Ctrl-C ends the wait; running workers continue until ``close``.

    Raises: ``OptionError`` for an invalid number of workers, bound or resource, and for options of
        a stage that cannot be sent; ``BackendError`` if Ray is not installed, no machine has the
        requested resources within ``start_timeout`` seconds, or a worker is lost more than
        ``restarts`` times.

    >>> dn.engines.Ray(workers=2, num_cpus=1, placement={1: {"num_gpus": 1}})
    <Ray, no worker yet>
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        num_cpus: float = 0,
        num_gpus: float = 0,
        resources: Mapping[str, float] | None = None,
        placement: Mapping[int, Mapping[str, Any]] | None = None,
        maxsize: int = 2,
        restarts: int = 3,
        start_timeout: float = 60.0,
        address: str | None = None,
        init: Mapping[str, Any] | None = None,
        **unknown: Never,
    ):
        if unknown:
            known = [
                *("workers", "num_cpus", "num_gpus", "resources", "placement", "maxsize"),
                *("restarts", "start_timeout", "address", "init"),
            ]
            raise unknown_options("Ray", unknown, known)
        if workers is not None:
            whole("Ray", "workers", workers, 1)
        self._workers_wanted = workers
        self._maxsize = whole("Ray", "maxsize", maxsize, 1)
        self._restarts = whole("Ray", "restarts", restarts, 0)
        self._start_timeout = amount("Ray", "start_timeout", start_timeout)
        self._init = mapping("Ray", "init", init)
        base: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        base["resources"] = mapping("Ray", "resources", resources)
        self._demand = demand("a worker", base)
        self._placement: dict[int, dict[str, float]] = {}
        for number, wanted in mapping("Ray", "placement", placement).items():
            whole("Ray", "a worker in placement", number, 0)
            mapping("Ray", f"placement of worker {number}", wanted)
            self._placement[number] = demand(f"worker {number}", {**base, **wanted})
        self._address = address
        self._lock = threading.RLock()
        self._connection: int | None = None
        self._workers: list[Any] = []
        self._programs: dict[Any, Any] = {}
        self._reports: dict[Any, tuple[str, int, dict[str, dict[str, Any]]]] = {}

    def __repr__(self) -> str:
        count = len([worker for worker in self._workers if worker is not None])
        return f"<Ray, {count or 'no'} worker{'s' if count > 1 else ''}{'' if count else ' yet'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and the cluster if the engine started it. The engine can be reused."""
        with self._lock:
            workers, self._workers = self._workers, []
            self._programs.clear()
            connection, self._connection = self._connection, None
            if connection is None:
                return
            ray = package()
            if not CLUSTER.leave(ray, connection):
                for worker in workers:
                    if worker is not None:
                        ray.kill(worker)

    def report(self) -> list[StageReport]:
        """The workers' reports on each stage, over all runs since the engine started."""
        with self._lock:
            return [
                _summary(stage, position, list(reports.values()))
                for stage, position, reports in self._reports.values()
            ]

    def run_each(self, plan: Plan, sets: Iterable[Sequence[Tensor]]) -> Iterator[list[Tensor]]:
        """Yield the last stage's results for each argument set, in order."""
        ray = package()
        with self._lock:
            if self._connection is not None and not CLUSTER.is_there(ray, self._connection):
                self.close()
            if self._connection is None:
                self._connection = CLUSTER.join(ray, self._address, self._init)
                self._reports.clear()
            connection = self._connection
            count = len(plan.stages)
            programs = [self._program(ray, plan, position) for position in range(count)]
            workers = min(self._workers_wanted or count, count)
            if self._placement and max(self._placement) >= workers:
                raise option_error(
                    f"run: placement is of worker {max(self._placement)}, the workers are 0 to "
                    f"{workers - 1}"
                )
            numbers = [position * workers // count for position in range(count)]
            self._start(ray, workers)
            handles = [self._workers[number] for number in numbers]

        def method(position: int) -> Callable[..., Sequence[Any]]:
            key, program = programs[position]
            outputs = len(plan.stages[position].outputs)
            run = handles[position].run.options(num_returns=outputs + 1)
            return lambda *inputs: run.remote(key, program, outputs, *inputs)

        pipeline = Pipeline(
            ray,
            plan,
            [method(position) for position in range(count)],
            self._maxsize,
            self._restarts,
            lambda position, report: self._heard(programs[position][0], report),
            lambda position: self._lost(handles[position]),
            lambda: self._connection == connection and CLUSTER.is_there(ray, connection),
        )
        return pipeline.results(iter(sets))

    def _program(self, ray: Any, plan: Plan, position: int) -> tuple[Any, Any]:
        """A stage and its options in the object store, and the key by which workers know it."""
        stage, options = plan.stages[position], dict(plan.options[position])
        # A stage with hooks cannot be sent, because pickling it raises.
        options.pop("hooks", None)
        try:
            # Workers apply the checks of this context. Classes of a script are pickled by value.
            how = ray.cloudpickle.dumps((options, _core.checks_asked()), protocol=5)
            key = (stage.id, how)
            if key not in self._programs:
                self._programs[key] = [ray.put((pickle.dumps(stage, protocol=5), how))]
                self._reports.setdefault(key, (stage.id, position, {}))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            # Errors of our own classes come from the stage itself.
            if isinstance(error, Error):
                raise
            raise option_error(
                f"run: the options of stage {position} cannot be sent to a worker ({error}), "
                "names and numbers are required, and objects that can be pickled"
            ) from error
        return key, self._programs[key]

    def _start(self, ray: Any, count: int) -> None:
        """Start the missing workers, and wait until each has been placed."""
        self._workers += [None] * (count - len(self._workers))
        demands = {
            number: self._placement.get(number, self._demand)
            for number in range(count)
            if self._workers[number] is None
        }
        if not demands:
            return
        started = start(
            ray,
            "run",
            Worker,
            demands,
            self._start_timeout,
            max_restarts=self._restarts,
            # Retry as often as the worker is restarted.
            max_task_retries=-1,
            scheduling_strategy="SPREAD",
        )
        for number, worker in started.items():
            self._workers[number] = worker

    def _lost(self, handle: Any) -> None:
        """Forget a worker that Ray will not restart, so that the next run starts another."""
        with self._lock:
            self._workers = [None if worker is handle else worker for worker in self._workers]

    def _heard(self, key: Any, report: dict[str, Any]) -> None:
        """Keep a worker's report; reports of repeated calls may arrive in any order."""
        with self._lock:
            reports = self._reports[key][2]
            known = reports.get(report["incarnation"])
            if known is None or known["calls"] < report["calls"]:
                reports[report["incarnation"]] = report


def _summary(stage: str, position: int, reports: Sequence[Mapping[str, Any]]) -> StageReport:
    """The combined report of all processes that ran a stage."""

    def total(name: str) -> Any:
        return sum(report[name] for report in reports)

    return StageReport(
        stage=stage,
        position=position,
        calls=total("calls"),
        compiles=len(reports),
        restarts=max(len(reports) - 1, 0),
        seconds=total("seconds"),
        compile_seconds=total("compile_seconds"),
        bytes_in=total("bytes_in"),
        bytes_out=total("bytes_out"),
        pid=reports[-1]["pid"] if reports else 0,
        node=reports[-1]["node"] if reports else "",
    )
