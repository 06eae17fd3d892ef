"""Several processes: clients that have the devices of all of them.

Each process of a job, on one machine or on several, calls ``dn.distributed.initialize`` before it
uses a device. Then ``dn.devices`` lists the devices of all processes, and a ``dn.Mesh`` of them
runs one program in all processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import SupportsIndex

__all__ = ["initialize"]


@forwards(_core.distributed_initialize)
def initialize(
    coordinator: str | None = None,
    rank: SupportsIndex | None = None,
    world: SupportsIndex | None = None,
    *,
    timeout: float = 300.0,
) -> None:
    """Join the processes of a job, so that clients started after it have the devices of all.

    Each process calls it once, before it uses a device, with the same ``coordinator`` and
    ``world``, the number of processes, and its own ``rank`` in ``range(world)``. What is not given
    is read from ``DEFN_COORDINATOR``, ``DEFN_RANK`` and ``DEFN_WORLD``. ``coordinator`` is an
    address ``"host:port"`` at which the process of rank 0 listens, as long as it runs. Whoever
    reaches it can join, so choose one of a network that only the job uses. The call returns when
    all processes have made it, and waits at most ``timeout`` seconds.

    Plugins for CUDA and ROCm support several processes. A client whose plugin does not, such as
    XLA's for the CPU, does not start after it; ``dn.pjrt.client(name, local=True)`` describes one
    for the devices of this process alone.

    Raises: ``OptionError`` for a value that is missing or out of range. ``BackendError`` for a
    second call and for a call after a client has started; if the coordinator is not reachable or
    its address cannot be listened on; if two processes have one rank, or different worlds; and if
    not all processes join within ``timeout``. After an error it can be called again.

    >>> dn.distributed.initialize("10.0.0.1:4321", rank=0, world=4)  # doctest: +SKIP
    >>> [device.process_index for device in dn.devices("cuda")]  # doctest: +SKIP
    [0, 0, 1, 1, 2, 2, 3, 3]
    >>> dn.distributed.initialize("127.0.0.1:4321", rank=4, world=4)
    Traceback (most recent call last):
    defn.OptionError: initialize: rank is 4, it must be the number of this process, in 0..4, ...
    """
    ...
