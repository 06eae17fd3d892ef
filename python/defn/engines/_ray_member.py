"""The actor that holds one process's part of a mesh, and the form in which values are sent to it.

A key stands for a sharded function or tensor, which stays in the actors: the number of the request
that created it, and its position among the results of that request.
"""

from __future__ import annotations

import functools
import io
import pickle
import socket
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np

import defn
from defn import _core
from defn.engines._ray_actors import Process, portable
from defn.engines._ray_cluster import package
from defn.engines._ray_worker import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import CodeType
    from typing import Any

    from defn._core import Mesh

__all__ = ["Key", "Member", "dumps", "loads"]

Key = tuple[int, int]


def _is_of_script(fun: Any) -> bool:
    return getattr(fun, "__module__", None) == "__main__"


@functools.cache
def _pickler() -> Any:
    """Ray's pickler of functions, for tensors too; the class exists once the package is there."""

    class Pickler(package().cloudpickle.CloudPickler):
        def __init__(self, file: Any, name_of: Callable[[Any], Any], buffers: list[Any]):
            super().__init__(file, protocol=5, buffer_callback=buffers.append)
            self._name_of = name_of

        def persistent_id(self, value: Any) -> Any:
            return self._name_of(value)

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, _core.Sharded):
                value = value.to_tensor()
            if isinstance(value, _core.Tensor) and not value.is_template:
                # The actors refuse a vectorized tensor, and tensors pickle with these axes.
                if not value.vectorized_axes:
                    return functools.partial(unpack, copy=False), (pack(value),)
            elif isinstance(value, _core.Jitted) and _is_of_script(value.fun):
                # It is pickled by name, and the main module of the actors is another one.
                raise pickle.PicklingError(f"{value!r} is part of the script")
            return super().reducer_override(value)

    return Pickler


def dumps(value: Any, name_of: Callable[[Any], Any]) -> tuple[bytes, list[Any]]:
    """A pickled value and its arrays; what ``name_of`` names is replaced by that name."""
    file, buffers = io.BytesIO(), []
    _pickler()(file, name_of, buffers).dump(value)
    return file.getvalue(), [np.frombuffer(buffer.raw(), "u1") for buffer in buffers]


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, buffers: Iterable[Any], named: Callable[[Any], Any]):
        super().__init__(io.BytesIO(data), buffers=buffers)
        self._named = named

    def persistent_load(self, name: Any) -> Any:
        return self._named(name)


def loads(data: bytes, buffers: Iterable[Any], named: Callable[[Any], Any]) -> Any:
    """The value that ``dumps`` has pickled, with what the names stand for."""
    return _Unpickler(data, buffers, named).load()


@functools.lru_cache(maxsize=64)
def _code(file: str, line: int) -> CodeType:
    run = lambda request: request()  # noqa: E731
    return run.__code__.replace(co_filename=file, co_firstlineno=line)


def _as_if_at(line: tuple[str, int], request: Callable[[], Any]) -> Any:
    """The result of a request, whose errors name the line of the caller in the other process."""
    return FunctionType(_code(*line), {})(request)


class _Part:
    """A client, and the parts of sharded tensors on its devices, in the process of one rank."""

    mesh: Mesh
    rank: int

    def __init__(self) -> None:
        self.values: dict[Key, Any] = {}

    def drop(self, keys: Sequence[Key | int]) -> None:
        """Free values. A number stands for everything that a request has created."""
        for key in keys:
            created = [k for k in self.values if k[0] == key] if isinstance(key, int) else [key]
            for each in created:
                self.values.pop(each, None)

    def address(self) -> tuple[str, str]:
        """The machine as Ray calls it, and an address there at which nobody listens."""
        ray = package()
        host = ray.util.get_node_ip_address()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
        node = ray.get_runtime_context().get_node_id()
        return node, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def join(
        self,
        coordinator: str | None,
        rank: int,
        world: int,
        timeout: float,
        axes: Any,
        client: str | None,
    ) -> tuple[dict[str, int], list[int], str, list[int]]:
        """Create the mesh; returns its axes, devices and client, and the devices that are here."""
        if coordinator is not None:
            defn.distributed.initialize(coordinator, rank, world, timeout=timeout)
        self.rank, self.mesh = rank, defn.Mesh(axes, client=client)
        devices = [device.device_id for device in self.mesh.devices]
        client = self.mesh.devices[0].client
        own = {device.device_id for device in defn.devices(client) if device.addressable}
        return self.mesh.axes, devices, client, [device for device in devices if device in own]

    def define(self, number: int, sent: tuple[bytes, Sequence[Any]]) -> None:
        """Create a sharded function."""
        fun, in_specs, out_specs, options = loads(*sent, self.values.__getitem__)
        self.values[number, 0] = defn.shard(fun, self.mesh, in_specs, out_specs, **options)

    def call(
        self, number: int, sent: tuple[bytes, Sequence[Any]], key: Key, checks: Sequence[Any]
    ) -> bytes | None:
        """Call a sharded function; rank 0 returns the results with a description of each tensor."""
        args, kwargs = loads(*sent, self.values.__getitem__)
        with defn.checks(*checks):
            results = self.values[key](*args, **kwargs)
        parts: list[Any] = []

        def describe(value: Any) -> Any:
            if not isinstance(value, _core.Sharded):
                return None
            parts.append(value)
            position = len(parts) - 1
            return (number, position), value.shape, value.dtype.name, value.names, value.spec

        written, _ = dumps(results, describe)
        self.values.update(((number, position), part) for position, part in enumerate(parts))
        return written if self.rank == 0 else None

    def read(self, key: Key, devices: Sequence[int]) -> list[Any]:
        """The blocks of a sharded tensor on devices of this process."""
        blocks = {block.backend.device_id: block for block in self.values[key].blocks}
        return [pack(blocks[device]) for device in devices]

    def wait(self, key: Key) -> None:
        """Wait until the blocks here are computed."""
        self.values[key].block_until_ready()

    def about(self, key: Key, name: str) -> Any:
        """What a sharded function reports."""
        return getattr(self.values[key], name)()


class Member(Process):
    """The actor of one rank. Ray wraps its methods, so what it has to do is in another class."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(paths)
        self.part = _Part()

    def perform(
        self, dropped: Sequence[Key | int], line: tuple[str, int], name: str, *args: Any
    ) -> tuple[Any, bytes | None]:
        """Answer a request by the method of this name; returns the answer, or the error."""
        self.part.drop(dropped)
        try:
            return _as_if_at(line, lambda: getattr(self.part, name)(*args)), None
        except Exception as error:
            return None, portable(error)
