"""``python -m defn devices``: lists the installed plugins and their devices."""

from __future__ import annotations

import sys

from defn import _core
from defn.pjrt import Device, plugins

_USAGE = "usage: python -m defn devices"


def _memory(device: Device) -> str:
    if device.memory_limit is None:
        return "memory not counted"
    used, limit = ((device.memory_used or 0) / 2**30, device.memory_limit / 2**30)
    return f"{used:.2f} of {limit:.2f} GiB used"


def main(arguments: list[str]) -> int:
    """Print the table. The status is 1 without a device, and 2 for an unknown command."""
    if arguments != ["devices"]:
        print(_USAGE, file=sys.stderr)
        return 2
    if not plugins():
        print("no PJRT plugin is installed; pip install 'defn[xla]' installs XLA's for the CPU")
        return 1
    for plugin in plugins():
        print(f"plugin {plugin.path} ({plugin.found})")
    count = 0
    for client, listed in _core.pjrt_devices():
        if isinstance(listed, str):
            print(f"{client}: {listed}")
            continue
        devices = [Device(**entry) for entry in listed]
        count += len(devices)
        if not devices:
            print(f"{client}: no device")
            continue
        first = devices[0]
        print(f"{client}: {first.platform} {first.platform_version}, PJRT {first.interface}")
        for device in devices:
            print(f"  {client}:{device.device_id}  {device.kind}, {_memory(device)}")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
