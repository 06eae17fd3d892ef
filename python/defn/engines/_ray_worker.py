"""What runs in the processes of Ray's workers, and how tensors travel between them."""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
import uuid
from typing import TYPE_CHECKING

from defn import _core
from defn.engines._ray_cluster import package
from defn.errors import BackendError, Error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Failed", "Worker", "pack", "unpack"]


def pack(tensor: Tensor) -> tuple[str, tuple[int, ...], tuple[str | None, ...], Any]:
    """A tensor as its type and a view of its bytes, which pickle keeps out of band.

    NumPy pickles elements of types that are not its own, such as bf16, one copy more and in band.
    """
    array = tensor.to_numpy()
    return tensor.dtype.name, tensor.shape, tensor.names, array.reshape(-1).view("u1")


def unpack(packed: tuple[str, tuple[int, ...], tuple[str | None, ...], Any], *, copy: bool) -> Any:
    """The tensor again. Without ``copy`` it has the object store's memory where it can."""
    dtype, shape, names, data = packed
    kind = _core.dtype(dtype)
    array = data.view(kind.to_numpy()).reshape(shape)
    # Narrow integers are checked while they are copied. Memory of the store is never written again.
    alias = None if copy or kind.bits < 8 else False
    return _core.tensor(array, None, list(names), "cpu", True if copy else alias)


class Failed:
    """Stands for what a stage that raised would have given; a stage that takes it does not run."""


class Worker:
    """What runs in a process of Ray's: stages, each compiled when it is called first."""

    def __init__(self, paths: Sequence[str]) -> None:
        # What is pickled by name is found where the caller finds it.
        sys.path.extend(path for path in paths if path not in sys.path)
        self.incarnation = uuid.uuid4().hex
        self.stages: dict[Any, _Loaded] = {}

    def ready(self) -> str:
        """The version of the package here; that the process runs is what this is asked for."""
        import defn

        return defn.__version__

    def run(self, key: Any, program: list[Any], outputs: int, *packed: Any) -> Any:
        """Runs a stage: what it gives, then what to report of it and the error that it raised.

        An error is no error of Ray's, which would lose its class where it passes a stage.
        """
        if any(isinstance(value, Failed) for value in packed):
            return (*(Failed() for _ in range(outputs)), (None, None))
        loaded = self.stages.get(key)
        try:
            if loaded is None:
                loaded = self.stages[key] = _Loaded(self.incarnation, package().get(program[0]))
            given = loaded.run(packed)
        except Exception as error:
            report = loaded and loaded.report
            return (*(Failed() for _ in range(outputs)), (report, _portable(error)))
        return (*given, (loaded.report, None))


def _portable(error: Exception) -> bytes:
    """An exception that another process can read, with where it was raised if that says more."""
    if isinstance(error, Error):
        # A line of Ray's, where none of the user's is known, is nobody's.
        text, _, line = str(error).rpartition("\n  at ")
        if line.startswith(os.path.dirname(package().__file__)):
            error.args = (text, *error.args[1:])
    else:
        trace = "".join(traceback.format_exception(error)).rstrip()
        error.add_note(f"raised by a worker in:\n{trace}")
    try:
        data = pickle.dumps(error, protocol=5)
        pickle.loads(data)
    except Exception:
        text = "".join(traceback.format_exception_only(error)).rstrip()
        return pickle.dumps(BackendError(f"run: {text}"), protocol=5)
    return data


class _Loaded:
    """A stage that a worker has, and what it has done with it."""

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
        """Computes the stage once."""
        report = self.report
        report["calls"] += 1
        report["bytes_in"] += sum(data.nbytes for *_, data in packed)
        start = time.perf_counter()
        results = self.program(*(unpack(value, copy=False) for value in packed))
        given = [pack(tensor) for tensor in results]
        report["seconds"] += time.perf_counter() - start
        report["bytes_out"] += sum(data.nbytes for *_, data in given)
        return given
