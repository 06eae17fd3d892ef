"""The cluster that a process is connected to, and the resources of its machines."""

from __future__ import annotations

import collections
import importlib
import logging
import os
import socket
import threading
from typing import TYPE_CHECKING

from defn._names import caller, option_error
from defn.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["CLUSTER", "Cluster", "demand", "listed", "package", "reason", "resources"]

# Set while our connection lasts: a cluster that we start sends no usage statistics, and Ray does
# not log the errors that we raise anyway for each value that they leave missing.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}


def package() -> Any:
    """The package ray; the error without it says how to install it."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise BackendError(
            f"Ray: the package ray cannot be imported ({error}), it is required for Ray's "
            f"workers; pip install 'defn[ray]'{caller()}"
        ) from None


class Cluster:
    """The cluster that a process is connected to, shared by its engines and meshes.

    A connection that an engine made ends when the last engine leaves, and so does a cluster that
    was started for it. A connection that existed before stays.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The number of engines that use the connection, and the number of the connection.
        self._users = self._number = 0
        # Whether engines made the connection, and whether they started its cluster.
        self._ours = self._private = False
        self._environment: dict[str, str | None] = {}

    def join(self, ray: Any, address: str | None, init: Mapping[str, Any]) -> int:
        """Add an engine, and connect the process if it is not connected.

        Returns the number of the connection.
        """
        with self._lock:
            if not ray.is_initialized():
                self._connect(ray, address, init)
                self._users, self._ours, self._private = 0, True, address is None
                self._number += 1
            elif address not in (None, "auto"):
                here = ray.get_runtime_context().gcs_address
                if address.removeprefix("ray://") != here:
                    raise BackendError(
                        f"Ray: this process is connected to the cluster at {here}, an engine at "
                        f"{address} needs another process, or this one without a connection; "
                        f"close what made it, or leave address out{caller()}"
                    )
            self._users += 1
            return self._number

    def leave(self, ray: Any, number: int) -> bool:
        """Remove an engine. Returns whether the connection, with all its workers, has ended."""
        with self._lock:
            if number != self._number:
                return True
            self._users -= 1
            alive = ray.is_initialized()
            if self._ours and (self._users <= 0 or not alive):
                self._ours = self._private = False
                # Engines that still use this number see that the connection has ended.
                self._number += 1
                if alive:
                    ray.shutdown()
                self._restore()
                return True
            return not alive

    def is_there(self, ray: Any, number: int) -> bool:
        """Whether a connection still exists."""
        return number == self._number and ray.is_initialized()

    def _connect(self, ray: Any, address: str | None, init: Mapping[str, Any]) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            options["include_dashboard"] = False
        else:
            _probe(address)
        self._environment = {name: os.environ.get(name) for name in _ENVIRONMENT}
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            ray.init(address=address or "local", **{**options, **init})
        except Exception as error:
            self._restore()
            if isinstance(error, TypeError | ValueError) or "keyword argument" in str(error):
                raise option_error(
                    f"Ray: the options {listed(init)} of ray.init are refused ({reason(error)}), "
                    "those that it has are required"
                ) from error
            raise _no_cluster(address, error) from error
        except BaseException:
            self._restore()
            raise

    def _restore(self) -> None:
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def check(self, ray: Any, op: str, demands: Mapping[int, Mapping[str, float]]) -> None:
        """Refuse resources that the machine of our own cluster does not have, without waiting.

        Other clusters may grow, so only waiting shows what they have. Messages start with ``op``.
        """
        if not self._private:
            return
        there = ray.cluster_resources()
        total: dict[str, float] = collections.defaultdict(float)
        for number, wanted in demands.items():
            for name, amount in wanted.items():
                total[name] += amount
                if total[name] > there.get(name, 0):
                    others = f" ({total[name]:g} with those before)" if total[name] > amount else ""
                    raise BackendError(
                        f"{op}: worker {number} asks for {amount:g} {name}{others}, this machine "
                        f"has {there.get(name, 0):g}; ask for less, or join a cluster with "
                        f"address{caller()}"
                    )


CLUSTER = Cluster()


def _probe(address: str) -> None:
    """Refuse an address without a server, because Ray would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str | None, error: Exception) -> BackendError:
    where = "on this machine" if address is None else f"at {address}"
    what = "start it with ray start, or leave address out" if address else "try ray start --head"
    return BackendError(
        f"Ray: no cluster {where} ({reason(error)}), one that runs is required; {what}{caller()}"
    )


def resources(ray: Any) -> tuple[str, str]:
    """The resources of the cluster, and the free ones, as text."""
    return listed(_named(ray.cluster_resources())), listed(_named(ray.available_resources()))


def _named(amounts: Mapping[str, float]) -> dict[str, float]:
    """The resources except memory and the entries for single machines."""
    hidden = ("memory", "object_store_memory")
    return {k: v for k, v in amounts.items() if k not in hidden and not k.startswith("node:")}


def listed(amounts: Mapping[str, Any]) -> str:
    """Names with their amounts, as text."""
    parts = [
        f"{amount:g} {name}" if isinstance(amount, int | float) else f"{name}={amount!r}"
        for name, amount in amounts.items()
    ]
    return ", ".join(parts) or "nothing"


def reason(error: BaseException) -> str:
    """The message of a Ray error, without the processes and addresses around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def demand(what: str, options: Mapping[str, Any]) -> dict[str, float]:
    """A worker's resources by Ray's names; ``what`` names the worker in messages."""
    own = {"num_cpus": "CPU", "num_gpus": "GPU"}
    unknown = [name for name in options if name not in own and name != "resources"]
    if unknown:
        raise option_error(
            f'Ray: {what} asks for "{unknown[0]}", it must be num_cpus, num_gpus or resources'
        )
    amounts = {own[name]: value for name, value in options.items() if name in own}
    for name, value in dict(options.get("resources") or {}).items():
        if name in own.values() or not isinstance(name, str):
            raise option_error(
                f"Ray: {what} asks for the resource {name!r}, num_cpus and num_gpus are required "
                "for those that Ray knows, and names for others"
            )
        amounts[name] = value
    for name, value in amounts.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**31:
            raise option_error(
                f"Ray: {what} asks for {value!r} {name}, a number that is not negative is required"
            )
    return {name: value for name, value in amounts.items() if value}
