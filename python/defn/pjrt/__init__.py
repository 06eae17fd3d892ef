"""Devices: PJRT plugins, the clients that drive them, and programs that XLA compiles for them.

A plugin is a package such as ``xla-cpu-pjrt``, which ``pip install 'defn[xla]'`` installs. Its
client starts on first use. ``dn.backends.PJRT(client="cuda", device_id=1)`` is a device as a
backend of tensors, and ``"pjrt"`` is the first device of the default client. ``compiler="pjrt"``
compiles whole definitions for a device.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from defn import _core, _files
from defn._names import caller
from defn._public import forwards, public
from defn.errors import BackendError
from defn.jit import compile as _compile
from defn.jit import jit as _jit
from defn.pjrt.discovery import Plugin, plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any, BinaryIO

    from defn._core import PJRT, Compiled

__all__ = [
    "CacheReport",
    "Device",
    "Plugin",
    "cache_report",
    "client",
    "compile",
    "deserialize",
    "devices",
    "jit",
    "live_buffers",
    "load",
    "plugins",
]


@dataclass(frozen=True)
class Device:
    """A device of a client.

    ``process_index`` is the rank of the process that it belongs to, and ``addressable`` says
    whether that is this process: tensors can be placed on it, and it runs programs. Others take
    part in those that all devices of a mesh run together (see ``dn.distributed``).

    ``memory_used`` and ``memory_limit`` are in bytes, or None if the plugin does not count them;
    ``interface`` is the plugin's version of the PJRT interface. ``kernels`` says whether XLA's
    programs call the kernels of the CPU's compiler, which the host's do if the plugin lets them;
    ``solver`` says whether they call NVIDIA's cuSOLVER, through JAX's package for CUDA.
    """

    client: str
    device_id: int
    process_index: int
    addressable: bool
    platform: str
    platform_version: str
    kind: str
    plugin: Path
    interface: str
    memory_used: int | None
    memory_limit: int | None
    kernels: bool
    solver: bool

    @property
    def backend(self) -> PJRT:
        """The device as a backend of tensors."""
        return _backend(self.client, self.device_id)


@dataclass(frozen=True)
class CacheReport:
    """The statistics of a client's cache of compiled programs, in this process so far.

    ``memory_hits`` and ``disk_hits`` programs were found, and ``compiles`` programs were compiled
    in ``compile_seconds``. ``disk_misses`` programs were not in the directory, and ``corrupt``
    files there were replaced. ``entries`` programs are in memory now, and ``disk_entries`` files of
    ``disk_bytes`` in the directories.
    """

    memory_hits: int
    disk_hits: int
    disk_misses: int
    corrupt: int
    compiles: int
    compile_seconds: float
    entries: int
    disk_entries: int
    disk_bytes: int


def _backend(client: str, device_id: int) -> PJRT:
    return _core.PJRT(client=client, device_id=device_id)


def _path(client: str) -> Path:
    """The library of the plugin for a client of this name."""
    for plugin in plugins():
        if plugin.client == client:
            return plugin.path
    known = ", ".join(f'"{plugin.client}"' for plugin in plugins())
    raise BackendError(
        f'client: no plugin for "{client}" is installed, '
        + (f"there are {known}; " if known else "there is none at all; ")
        + "install one, such as by pip install 'defn[xla]' or 'defn[cuda13]', "
        + f"or give plugin= with the path of its library{caller()}"
    )


def jit(fun: Callable[..., Any] | None = None, /, **jit_options: Any) -> Any:
    """As ``dn.jit``, with ``compiler="pjrt"``.

    Besides the options of ``dn.jit`` it takes ``client`` and ``device_id``, which select the device
    of programs whose arguments are on no device, ``cache_dir``, a directory that keeps compiled
    programs for other processes, and XLA's flags, such as ``xla_cpu_enable_fast_math``. Results
    stay on the device.

    Raises: as ``dn.jit``, and ``BackendError`` without a plugin, client or device of that name.

    >>> double = dn.pjrt.jit(lambda x: x + x)
    >>> double(dn.tensor([1, 2])).backend
    PJRT(client='host', device_id=0)
    """
    return _jit(fun, compiler="pjrt", **jit_options)


def compile(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    /,
    **compile_options: Any,
) -> Compiled:
    """As ``dn.compile``, with ``compiler="pjrt"`` and the options of ``dn.pjrt.jit``.

    With ``target="h200"`` it compiles for that device, which need not be present: only the plugin
    of ``client``, by default ``"cuda"``, must be installed. The result can be saved here, and
    loaded and run on a machine with the device. ``run_each`` of the result runs it on several
    devices at once.

    Raises: as ``dn.compile``, and ``BackendError`` without a plugin, client or device of that name.

    >>> add = dn.pjrt.compile(dn.add, [dn.template((2,), "f32"), dn.template((), "f32")])
    >>> add(dn.tensor([1.0, 2.0]), 10.0).to_list()
    [11.0, 12.0]
    """
    return _compile(fun, args, kwargs, compiler="pjrt", **compile_options)


@public
def load(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    trust: bool = False,
    client: str | None = None,
    device_id: int | None = None,
) -> Compiled:
    """Read a compiled function from a file that its ``save`` wrote, in this process or another.

    ``source`` is a path or a file that is open for reading bytes. The function takes and returns
    the same as before. It runs on a device of ``client``, by default the first one of the default
    client. On the host this must be a processor of the same kind, elsewhere the platform that the
    function was compiled for. Nothing is traced or compiled. Captured tensors have the values that
    they had when the function was saved, and are on the device ``device_id``.

    The file holds native code, which this process runs without checks: a checksum detects damage,
    but not who wrote the file. ``trust=True`` states that you would run any program of its author.

    Raises: ``OptionError`` without ``trust=True``, ``FormatError`` for a file that is truncated,
    damaged or of another format, ``CompileError`` for an executable for another device,
    ``ContainerError`` if a class of its containers does not exist, ``BackendError`` without that
    client or device, and the errors of opening the file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "add.executable")
    >>> dn.pjrt.compile(dn.add, [dn.template((2,), "f32"), dn.template((), "f32")]).save(path)
    >>> dn.pjrt.load(path, trust=True)(dn.tensor([1.0, 2.0]), 10.0).to_list()
    [11.0, 12.0]
    """
    return _core.pjrt_load(_files.read(source) if trust is True else b"", trust, client, device_id)


@forwards(_core.pjrt_load)
def deserialize(
    data: bytes | bytearray | memoryview,
    *,
    trust: bool = False,
    client: str | None = None,
    device_id: int | None = None,
) -> Compiled:
    """Read a compiled function from the bytes that its ``serialize`` returned, as ``load`` does.

    The bytes hold native code, so ``trust=True`` is required here too.

    Raises: as ``load``.

    >>> double = dn.pjrt.compile(lambda x: x + x, [dn.template((), "s32")]).serialize()
    >>> int(dn.pjrt.deserialize(double, trust=True)(21))
    42
    """
    ...


def client(
    name: str,
    /,
    *,
    plugin: str | os.PathLike[str] | None = None,
    memory_limit: int | None = None,
    local: bool = False,
    **options: Any,
) -> None:
    """Configure a client before it starts: the library of its plugin, and its options.

    Without ``plugin``, the installed plugin of that name is used. ``memory_limit`` is the maximum
    number of bytes that it takes on each device, if the platform supports a limit; without a limit,
    memory is taken as needed. A ``local`` client has the devices of this process alone, even after
    ``dn.distributed.initialize``. Other options go to the plugin, such as ``cpu_device_count=8``.

    Raises: ``BackendError`` if the client already runs with other options, or if there is no plugin
    of that name; ``OptionError`` for a limit that is not a number of bytes, and for a ``local``
    that is not a bool.

    >>> dn.pjrt.client("twins", plugin=dn.pjrt.plugins()[0].path, cpu_device_count=2)
    >>> dn.backends.PJRT(client="twins", device_id=1)
    PJRT(client='twins', device_id=1)
    """
    _core.pjrt_client(name, plugin, memory_limit, local, options)


@public
def devices(client: str | None = None) -> list[Device]:
    """The devices of a client, or of all clients that start.

    If a client is named, only that client is started. A client that has joined other processes
    (``dn.distributed``) lists their devices too.

    Raises: ``BackendError`` for a client that is unknown or does not start; ``OptionError`` for a
    name that is not a string.

    >>> dn.devices("host")[0].platform
    'cpu'
    """
    if client is not None:
        return [Device(**entry) for entry in _core.pjrt_devices_of(client)]
    clients = [listed for _, listed in _core.pjrt_devices() if not isinstance(listed, str)]
    return [Device(**entry) for listed in clients for entry in listed]


def cache_report(client: str | None = None) -> CacheReport:
    """The statistics of the cache of compiled programs of a client, or of the default one.

    Raises: ``BackendError`` for a client that is unknown or does not start.

    >>> before = dn.pjrt.cache_report().compiles
    >>> triple = dn.pjrt.jit(lambda x: x * 3)
    >>> triple(dn.tensor([1, 2])) is triple(dn.tensor([3, 4]))
    False
    >>> dn.pjrt.cache_report().compiles - before
    1
    """
    return CacheReport(**_core.pjrt_cache_report(client))


def live_buffers(client: str | None = None) -> int:
    """The number of tensors with memory on the devices of a client, or of the default one.

    Raises: ``BackendError`` for a client that is unknown or does not start.

    >>> before = dn.pjrt.live_buffers()
    >>> x = dn.tensor([1.0], backend="pjrt")
    >>> dn.pjrt.live_buffers() - before
    1
    """
    return _core.pjrt_live_buffers(client)
