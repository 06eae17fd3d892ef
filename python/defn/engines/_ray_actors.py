"""The start of Ray's actors, and the errors that come from them."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING

from defn._names import caller, option_error
from defn.engines._ray_cluster import CLUSTER, listed, package, reason, resources
from defn.errors import BackendError, Error, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["SMALL", "Process", "amount", "as_ours", "at_home", "mapping", "portable", "start"]
__all__ += ["whole"]

# Tensors up to this number of bytes are sent with the call, which is faster than the object store;
# Ray treats results in the same way.
SMALL = 64 << 10


class Process:
    """An actor, in a process of Ray."""

    def __init__(self, paths: Sequence[str]) -> None:
        # Objects pickled by name must be importable here as in the caller.
        sys.path.extend(path for path in paths if path not in sys.path)

    def ready(self) -> str:
        """The version of the package here; called to find out whether the process runs."""
        import defn

        return defn.__version__


def start(
    ray: Any,
    op: str,
    kind: type[Process],
    demands: Mapping[int, Mapping[str, float]],
    timeout: float,
    **options: Any,
) -> dict[int, Any]:
    """Start an actor for each of the numbers, and wait until each has been placed.

    ``demands`` are their resources, ``options`` those of all actors; messages start with ``op``.
    """
    CLUSTER.check(ray, op, demands)
    actor = ray.remote(kind)
    started = {
        number: actor.options(
            num_cpus=demand.get("CPU", 0),
            num_gpus=demand.get("GPU", 0),
            resources={name: n for name, n in demand.items() if name not in ("CPU", "GPU")},
            **options,
        ).remote(sys.path)
        for number, demand in demands.items()
    }
    try:
        waiting = {worker.ready.remote(): number for number, worker in started.items()}
        ready, missing = ray.wait(list(waiting), num_returns=len(waiting), timeout=timeout)
        for reference in ready:
            _began(ray, op, reference, waiting[reference])
        if missing:
            number = waiting[missing[0]]
            total, free = resources(ray)
            raise BackendError(
                f"{op}: worker {number} asks for {listed(demands[number])} and has no place "
                f"after {timeout:g} s, the cluster has {total}, of which {free} is "
                f"free; ask for less, or add machines{caller()}"
            )
    except BaseException:
        for worker in started.values():
            ray.kill(worker)
        raise
    return started


def _began(ray: Any, op: str, reference: Any, number: int) -> None:
    import defn

    try:
        version = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise BackendError(
            f"{op}: worker {number} did not start, every machine needs this version of defn: "
            f"{reason(error)}{caller()}"
        ) from error
    if version != defn.__version__:
        raise BackendError(
            f"{op}: worker {number} has defn {version}, every machine needs this version, "
            f"{defn.__version__}{caller()}"
        )


def portable(error: Exception) -> bytes:
    """An exception that another process can unpickle, with its traceback if that is useful.

    Actors return it, because an exception that Ray re-raises loses its class.
    """
    if isinstance(error, Error):
        _without_ray(error)
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


def _without_ray(error: Error) -> None:
    """Drop the last line of a message if it is one of Ray's code, for want of the user's."""
    text, _, line = str(error).rpartition("\n  at ")
    if line.startswith(os.path.dirname(package().__file__)):
        error.args = (text, *error.args[1:])


def at_home(error: BaseException) -> BaseException:
    """The error with the line that requested the run, in place of a line of Ray's code or none."""
    if isinstance(error, Error):
        _without_ray(error)
    if isinstance(error, Error) and error.args and "\n  at " not in str(error.args[0]):
        error.args = (f"{error.args[0]}{caller()}", *error.args[1:])
    return error


def as_ours(ray: Any, op: str, error: BaseException, what: str, remedy: str) -> BaseException:
    """The error of this package for a Ray error; ``remedy`` follows "give the store more"."""
    exceptions = ray.exceptions
    if isinstance(error, exceptions.ObjectStoreFullError | exceptions.OutOfMemoryError):
        return OutOfMemoryError(
            f"{op}: no memory for {what} ({reason(error)}); give the object store more"
            f"{remedy}{caller()}"
        )
    return BackendError(f"{op}: {what}: {reason(error)}{caller()}")


def whole(op: str, name: str, value: Any, least: int) -> int:
    """The value of an option that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise option_error(f"{op}: {name} is {value!r}, a whole number from {least} on is required")
    return value


def amount(op: str, name: str, value: Any) -> float:
    """The value of an option that is a positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise option_error(f"{op}: {name} is {value!r}, a positive number is required")
    return value


def mapping(op: str, name: str, value: Any) -> dict[Any, Any]:
    """The value of an option that is a dict, or None for an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise option_error(f"{op}: {name} is {value!r}, a dict is required")
    return dict(value or {})
