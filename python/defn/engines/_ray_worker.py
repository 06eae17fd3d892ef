"""The code that runs in Ray's worker processes, and the transfer of tensors between them."""

from __future__ import annotations

import os
import pickle
import time
import uuid
from typing import TYPE_CHECKING

from defn import _core
from defn.engines._ray_actors import Process, portable
from defn.engines._ray_cluster import package

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Failed", "Worker", "pack", "unpack"]


def pack(tensor: Tensor) -> tuple[str, tuple[int, ...], tuple[str | None, ...], Any]:
    """A tensor as its type and a view of its bytes, which pickle transfers out of band.

    NumPy pickles arrays of foreign dtypes, such as bf16, in band and with one more copy.
    """
    array = tensor.to_numpy()
    return tensor.dtype.name, tensor.shape, tensor.names, array.reshape(-1).view("u1")


def unpack(packed: tuple[str, tuple[int, ...], tuple[str | None, ...], Any], *, copy: bool) -> Any:
    """The unpacked tensor. Without ``copy`` it shares the object store's memory if possible."""
    dtype, shape, names, data = packed
    kind = _core.dtype(dtype)
    array = data.view(kind.to_numpy()).reshape(shape)
    # Narrow integers are validated during the copy. Memory of the store is never written again.
    alias = None if copy or kind.bits < 8 else False
    return _core.tensor(array, None, list(names), "cpu", True if copy else alias)


class Failed:
    """Stands for the results of a stage that raised; a stage that receives it does not run."""


class Worker(Process):
    """The actor in a Ray process; it runs stages and compiles each at its first call."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(paths)
        self.incarnation = uuid.uuid4().hex
        self.stages: dict[Any, _Loaded] = {}

    def run(self, key: Any, program: list[Any], outputs: int, *packed: Any) -> Any:
        """Run a stage; returns its results, and a pair of its report and the error it raised."""
        if any(isinstance(value, Failed) for value in packed):
            return (*(Failed() for _ in range(outputs)), (None, None))
        loaded = self.stages.get(key)
        try:
            if loaded is None:
                loaded = self.stages[key] = _Loaded(self.incarnation, package().get(program[0]))
            given = loaded.run(packed)
        except Exception as error:
            report = loaded and loaded.report
            return (*(Failed() for _ in range(outputs)), (report, portable(error)))
        return (*given, (loaded.report, None))


class _Loaded:
    """A stage that a worker has compiled, and the statistics of its runs."""

    def __init__(self, incarnation: str, program: tuple[bytes, bytes]):
        import defn

        start = time.perf_counter()
        stage, (options, checks) = map(pickle.loads, program)
        with defn.checks(*checks):
            self.program = defn.graph.compile(stage, **options)
        self.report: dict[str, Any] = {
            "incarnation": incarnation,
            "pid": os.getpid(),
            "node": package().get_runtime_context().get_node_id(),
            "compile_seconds": time.perf_counter() - start,
            "calls": 0,
            "seconds": 0.0,
            "bytes_in": 0,
            "bytes_out": 0,
        }

    def run(self, packed: Sequence[Any]) -> list[Any]:
        """Run the stage once."""
        report = self.report
        report["calls"] += 1
        report["bytes_in"] += sum(data.nbytes for *_, data in packed)
        start = time.perf_counter()
        results = self.program(*(unpack(value, copy=False) for value in packed))
        given = [pack(tensor) for tensor in results]
        report["seconds"] += time.perf_counter() - start
        report["bytes_out"] += sum(data.nbytes for *_, data in given)
        return given
