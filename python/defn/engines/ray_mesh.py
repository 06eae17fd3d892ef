"""A mesh whose devices belong to processes of Ray, on one machine or many.

Each worker is an actor: a process with a client. The clients join to one, and a sharded function
runs in all workers at once. Its results stay there; the calling process holds their keys.
"""

from __future__ import annotations

import collections
import itertools
import os
import pickle
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from defn import _core
from defn._names import caller, caller_frame, option_error, unknown_options
from defn.engines._ray_actors import (
    SMALL,
    amount,
    as_ours,
    at_home,
    mapping,
    start,
    whole,
)
from defn.engines._ray_cluster import CLUSTER, demand, package
from defn.engines._ray_member import Member, dumps, loads
from defn.engines._ray_worker import unpack
from defn.errors import BackendError, Error, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Never, Self

    from defn._core import DType, Tensor
    from defn.engines._ray_member import Key

__all__ = ["RayMesh", "RaySharded", "RayShardedFunction"]

# The seconds in which all workers must answer once one has raised an error. Those that do not are
# taken to wait for it in a collective.
_GRACE = 10.0

# How often it is seen whether the workers that have answered are still there, in seconds.
_PERIOD = 1.0


class RayMesh:
    """A mesh of devices in workers of Ray, each of which is a process with a client.

    Worker ``i`` of ``workers`` calls ``dn.distributed.initialize`` with rank ``i``, at an address
    that the worker of rank 0 chooses on its machine, and then creates ``dn.Mesh(axes,
    client=client)``, so that the mesh has the devices of all. Ranks on one machine are neighbours.
    With one worker nothing is joined, and any client will do. With several, the client must be one
    whose plugin joins processes, such as CUDA's; the one of XLA on the CPU is refused.

    ``shard(fun, in_specs, out_specs, ...)`` is ``dn.shard``: it sends the function to all workers,
    and a call runs it in all of them. Arguments are tensors, arrays and numbers, which are sent at
    each call, once to each machine, and results of other calls. Results are containers of
    ``RaySharded``, whose blocks stay in the workers. These have ``shape``, ``dtype``, ``names``,
    ``rank``, ``spec`` and ``mesh``; ``to_tensor()`` and ``to_numpy()`` read the blocks and assemble
    the whole here, and ``block_until_ready()`` waits for them. When one is collected, the workers
    free it before their next call. Another mesh refuses it.

    A worker requests ``num_cpus``, ``num_gpus`` and ``resources`` of its machine, by default none.
    It has the devices of its GPUs only, so a client for GPUs needs ``num_gpus``. ``environment``
    has environment variables for the workers. ``address`` and ``init`` are those of
    ``dn.engines.Ray``, and so is the cluster. ``start_timeout`` limits the wait for the resources,
    and that for the other processes.

    An error is raised once, with its class and the line of the call; the mesh stays usable if all
    workers have answered. If the process of a worker is lost, or if others do not answer within
    10 seconds after an error, all workers are ended, as they may wait for each other for ever, and
    the mesh is closed. Ctrl-C ends the wait for a call; the workers finish it before the next one.
    Calls from several threads are sent to all workers in one order. A mesh is a context manager,
    which closes it.

    Raises: ``OptionError`` for invalid axes, workers or resources, for more devices than the
        client has, and for a function that cannot be sent; ``BackendError`` if Ray is not
        installed, no machine has the requested resources, the processes cannot be joined, a worker
        is lost, and for use after ``close`` and after a fork.

    >>> def center(x):
    ...     return x - dn.all_reduce(dn.sum(x), "data") / (x.size * dn.mesh_size("data"))
    >>> with dn.engines.RayMesh({"data": 4}, client="host") as mesh:
    ...     centered = mesh.shard(center, in_specs=[("data",)], out_specs=("data",))
    ...     out = centered(np.arange(8.0))
    ...     print(out, out.to_numpy())
    RaySharded(f64[8], spec=('data',), mesh=RayMesh({'data': 4}, workers=1, client='host'))
    [-3.5 -2.5 -1.5 -0.5  0.5  1.5  2.5  3.5]
    """

    def __init__(
        self,
        axes: dict[str, int],
        *,
        workers: int = 1,
        client: str | None = None,
        num_cpus: float = 0,
        num_gpus: float = 0,
        resources: Mapping[str, float] | None = None,
        environment: Mapping[str, str] | None = None,
        start_timeout: float = 60.0,
        address: str | None = None,
        init: Mapping[str, Any] | None = None,
        **unknown: Never,
    ):
        if unknown:
            known = [
                *("workers", "client", "num_cpus", "num_gpus", "resources", "environment"),
                *("start_timeout", "address", "init"),
            ]
            raise unknown_options("RayMesh", unknown, known)
        count = whole("RayMesh", "workers", workers, 1)
        timeout = amount("RayMesh", "start_timeout", start_timeout)
        options = mapping("RayMesh", "init", init)
        wanted: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        wanted["resources"] = mapping("RayMesh", "resources", resources)
        variables = mapping("RayMesh", "environment", environment)
        for variable, text in variables.items():
            if not isinstance(variable, str) or not isinstance(text, str):
                raise option_error(
                    f"RayMesh: environment has {variable!r}: {text!r}, strings are required"
                )
        demands = dict.fromkeys(range(count), demand("a worker", wanted))
        ray = package()
        self._process = os.getpid()
        # Held while a request is sent, so that all workers get all requests in one order.
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._dropped: collections.deque[Key | int] = collections.deque()
        # Why the mesh is closed, once it is.
        self._closed: str | None = None
        self._connection = CLUSTER.join(ray, address, options)
        self._workers: list[Any] = []
        try:
            started = start(
                ray,
                "RayMesh",
                Member,
                demands,
                timeout,
                **({"runtime_env": {"env_vars": variables}} if variables else {}),
            )
            self._workers = list(started.values())
            places = self._everywhere("address")
            order = sorted(range(count), key=lambda number: places[number][0])
            self._workers = [self._workers[number] for number in order]
            coordinator = places[order[0]][1] if count > 1 else None
            join = (count, timeout, axes, client)
            joined = self._request({r: ("join", coordinator, r, *join) for r in range(count)})
        except BaseException:
            self._end("it did not start")
            raise
        self.axes: dict[str, int]
        self.axes, self._devices, self._client, _ = joined[0]
        self._owners = {device: rank for rank, (*_, own) in joined.items() for device in own}

    def __repr__(self) -> str:
        return f"RayMesh({self.axes}, workers={len(self._workers)}, client={self._client!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self._devices)

    def close(self) -> None:
        """End the workers, and the cluster if the mesh started it."""
        # The workers belong to the process that started them.
        if os.getpid() == self._process:
            self._end("it was closed")

    def shard(
        self,
        fun: Callable[..., Any],
        in_specs: Sequence[Any],
        out_specs: Any,
        *,
        static: str | Sequence[str] = (),
        donate: int | str | Sequence[int | str] = (),
        max_compiles: int | None = None,
        **compiler_options: Any,
    ) -> RayShardedFunction:
        """Create a function that the devices of the mesh run together, as ``dn.shard`` does."""
        name = getattr(fun, "__name__", type(fun).__name__)
        options = {
            "static": static,
            "donate": donate,
            "max_compiles": max_compiles,
            **compiler_options,
        }
        sent = self._sendable(name, (fun, in_specs, out_specs, options))
        number = next(self._numbers)
        try:
            self._everywhere("define", number, sent)
        except BaseException:
            self._dropped.append(number)
            raise
        return RayShardedFunction(self, (number, 0), name)

    def _sendable(self, name: str, value: Any) -> Any:
        """A value in the form that workers take: pickled, or a reference to that in the store."""

        def key_of(value: Any) -> Key | None:
            if not isinstance(value, RaySharded):
                return None
            if value.mesh is not self:
                raise BackendError(
                    f"shard: {name} is given {value}, of another mesh, one of {self} is required; "
                    "pass its to_tensor()"
                )
            return value._key

        self._check()
        try:
            data, arrays = dumps(value, key_of)
        except Error as error:
            raise at_home(error)  # noqa: B904
        except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
            raise option_error(
                f"shard: {name} cannot be sent to the workers ({error}); a plain function can be, "
                "with what it uses, and a definition by dn.jit or dn.defn of a module that the "
                "workers can import"
            ) from error
        if len(data) + sum(array.nbytes for array in arrays) <= SMALL:
            return data, arrays
        ray = package()
        try:
            return ray.put((data, arrays))
        except ray.exceptions.RayError as error:
            raise as_ours(ray, "shard", error, f"what {name} is given", "") from error

    def _check(self) -> None:
        """Refuse what cannot work any more."""
        if os.getpid() != self._process:
            raise BackendError(
                f"RayMesh: this process was forked from {self._process}, only that one can use the "
                f"workers that it has started; use the mesh there, or start processes by "
                f'"spawn"{caller()}'
            )
        if self._closed is None and not CLUSTER.is_there(package(), self._connection):
            self._end("the connection to Ray has ended")
        if self._closed is not None:
            raise self._closed_error()

    def _closed_error(self) -> BackendError:
        return BackendError(
            f"RayMesh: the mesh is closed ({self._closed}), one that is open is required; "
            f"start another{caller()}"
        )

    def _end(self, reason: str) -> None:
        """Close the mesh, and end the workers even if they wait for each other."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = reason
            ray = package()
            if CLUSTER.is_there(ray, self._connection):
                for worker in self._workers:
                    ray.kill(worker)
            CLUSTER.leave(ray, self._connection)

    def _everywhere(self, name: str, *args: Any) -> dict[int, Any]:
        """The answers of all workers to one request, by rank."""
        return self._request(dict.fromkeys(range(len(self._workers)), (name, *args)))

    def _request(self, requests: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """The answers to the requests, by rank."""
        frame = caller_frame()
        line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
        everyone = len(requests) == len(self._workers)
        sent: dict[Any, int] = {}
        with self._lock:
            self._check()
            # What is dropped must be dropped by all, and no one that is asked alone is told of it.
            dropped = [self._dropped.popleft() for _ in range(len(self._dropped) * everyone)]
            try:
                for rank, request in requests.items():
                    sent[self._workers[rank].perform.remote(dropped, line, *request)] = rank
            except BaseException:
                self._end("an exception came while a call was sent, so some workers do not have it")
                raise
        return self._answers(sent)

    def _answers(self, sent: Mapping[Any, int]) -> dict[int, Any]:
        """The answers, by rank, or the error of the lowest rank that raised one."""
        ray = package()
        answers: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}
        # Who is waited for: for an answer, and for a sign of life, as the others may wait for it.
        waiting = dict(sent)
        asked: dict[Any, int] = {}
        deadline = float("inf")
        while waiting:
            left = max(min(deadline - time.monotonic(), _PERIOD), 0)
            reference, rank, answer = None, -1, None
            try:
                for reference in ray.wait([*waiting, *asked], num_returns=1, timeout=left)[0]:
                    rank = waiting[reference] if reference in waiting else asked[reference]
                    answer = ray.get(reference)
            except Exception as error:
                if self._closed is not None:
                    raise self._closed_error() from error
                if reference is None:
                    raise
                if isinstance(error, ray.exceptions.RayActorError):
                    raise self._lost(rank) from error
                errors[rank] = as_ours(ray, "RayMesh", error, f"the answer of rank {rank}", "")
            if reference in waiting and answer is not None:
                answers[rank], raised = answer
                if raised is not None:
                    errors[rank] = at_home(pickle.loads(raised))
            waiting.pop(reference, None)
            asked.pop(reference, None)
            if errors:
                deadline = min(deadline, time.monotonic() + _GRACE)
            if waiting and time.monotonic() > deadline:
                ranks = ", ".join(map(str, sorted(waiting.values())))
                problem = f"rank {min(errors)} raised an error, and rank {ranks} did not answer"
                self._end(problem)
                errors[min(errors)].add_note(f"{problem} within {_GRACE:g} s: the mesh is closed")
                break
            if reference is None and self._closed is None:
                busy = {*waiting.values(), *asked.values()}
                for rank, worker in enumerate(self._workers):
                    if rank not in busy:
                        asked[worker.ready.remote()] = rank
        if errors:
            raise errors[min(errors)]
        return answers

    def _lost(self, rank: int) -> BackendError:
        problem = f"the worker of rank {rank} was lost"
        self._end(problem)
        return BackendError(
            f"RayMesh: {problem}, the processes of all ranks are required; the mesh is closed and "
            "the other workers were ended, because they may wait for it; look for what ended its "
            f"process, such as too little memory, and start another mesh{caller()}"
        )


class RayShardedFunction:
    """A function that the devices of a ``RayMesh`` run together, as its ``shard`` returns it."""

    def __init__(self, mesh: RayMesh, key: Key, name: str):
        self.mesh, self._key, self._name = mesh, key, name

    def __repr__(self) -> str:
        return f"<shard {self._name} over {self.mesh}>"

    def __del__(self) -> None:
        self.mesh._dropped.append(self._key)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in all workers; the results are those of the function, of ``RaySharded``."""
        if _core.is_tracing():
            raise TraceError(
                f"shard: {self._name} is called while another definition is traced, it runs on the "
                f"devices of its mesh only by itself; call it outside{caller()}"
            )
        mesh = self.mesh
        sent = mesh._sendable(self._name, (args, kwargs))
        number = next(mesh._numbers)
        try:
            answers = mesh._everywhere("call", number, sent, self._key, _core.checks_asked())
            return loads(answers[0], (), lambda part: RaySharded(mesh, *part))
        except BaseException:
            # The workers may have results.
            mesh._dropped.append(number)
            raise

    def cache_info(self) -> dict[str, Any]:
        """The numbers of calls that found or compiled a version, in the worker of rank 0."""
        return self.mesh._request({0: ("about", self._key, "cache_info")})[0]

    def explain(self) -> list[str]:
        """Why each version was compiled, in the worker of rank 0."""
        return self.mesh._request({0: ("about", self._key, "explain")})[0]


class RaySharded:
    """A tensor in blocks on the devices of a ``RayMesh``, as its sharded functions return it.

    ``shape``, ``dtype``, ``names`` and ``rank`` are those of the whole, ``spec`` says how it is
    sharded over ``mesh``. NumPy and other functions of this package read it as an array.
    """

    def __init__(
        self,
        mesh: RayMesh,
        key: Key,
        shape: tuple[int, ...],
        dtype: str,
        names: tuple[str | None, ...],
        spec: tuple[str | tuple[str, ...] | None, ...],
    ):
        self.mesh, self._key = mesh, key
        self.shape, self.names, self.spec = shape, names, spec
        self.dtype: DType = _core.dtype(dtype)

    def __del__(self) -> None:
        self.mesh._dropped.append(self._key)

    def __repr__(self) -> str:
        kind = _core.type_text(_core.template(self.shape, self.dtype, self.names))
        return f"RaySharded({kind}, spec={self.spec}, mesh={self.mesh})"

    def __reduce__(self) -> Never:
        raise BackendError(
            f"pickle: {self} is stored in the workers of its mesh, a tensor of this process is "
            f"required; pickle its to_tensor(){caller()}"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.to_numpy(), dtype=dtype, copy=copy)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def to_tensor(self) -> Tensor:
        """The whole, on the host of this process. A replicated one is read from one worker."""
        mesh = self.mesh
        # For each block the first device that has it.
        sources: dict[tuple[int, ...], int] = {}
        sizes = mesh.axes.values()
        for device, indices in zip(mesh._devices, np.ndindex(*sizes), strict=True):
            position = dict(zip(mesh.axes, indices, strict=True))
            sources.setdefault(tuple(_along(mesh, position, axis) for axis in self.spec), device)
        wanted: dict[int, list[int]] = {}
        for device in sources.values():
            wanted.setdefault(mesh._owners[device], []).append(device)
        answers = mesh._request({r: ("read", self._key, ids) for r, ids in wanted.items()})
        blocks = {d: b for r, ids in wanted.items() for d, b in zip(ids, answers[r], strict=True)}
        whole = np.empty(self.shape, self.dtype.to_numpy())
        for position, device in sources.items():
            _, shape, _, data = blocks[device]
            # A spec leaves out axes at its end that are whole.
            where = (slice(at * n, (at + 1) * n) for at, n in zip(position, shape, strict=False))
            whole[tuple(where)] = data.view(whole.dtype).reshape(shape)
        packed = (self.dtype.name, self.shape, self.names, whole.reshape(-1).view("u1"))
        return unpack(packed, copy=False)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The whole as a NumPy array."""
        return self.to_tensor().to_numpy()

    def block_until_ready(self) -> Self:
        """Wait until the workers have computed all blocks."""
        self.mesh._everywhere("wait", self._key)
        return self


def _along(mesh: RayMesh, position: Mapping[str, int], axis: str | tuple[str, ...] | None) -> int:
    """The number of the block along an axis of a tensor that a device at this position has."""
    number = 0
    for name in (axis,) if isinstance(axis, str) else axis or ():
        number = number * mesh.axes[name] + position[name]
    return number
