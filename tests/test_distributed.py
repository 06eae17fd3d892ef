"""Processes that join: clients with the devices of all, and what does not join."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

import defn as dn
import fake_plugin
from support import needs_plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = needs_plugin

VARIABLES = ("DEFN_COORDINATOR", "DEFN_RANK", "DEFN_WORLD")


@pytest.fixture
def address() -> str:
    """An address that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def start(code: str, **variables: str) -> subprocess.Popen[str]:
    """Starts a process that can print errors."""
    head = """
        import os, sys, threading, time
        import numpy as np
        import defn as dn

        def tried(what):
            try:
                return what()
            except dn.Error as error:
                print(type(error).__name__, str(error).splitlines()[0], flush=True)
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes: Sequence[subprocess.Popen[str]]) -> list[list[str]]:
    """The lines that each process has printed; all must end well."""
    lines = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=90)
            assert process.returncode == 0, err
            lines.append(out.splitlines())
    finally:
        for process in processes:
            process.kill()
    return lines


def together(code: str, address: str, world: int = 4, **variables: str) -> list[list[str]]:
    """Runs a program in `world` processes, which know their places from the environment."""
    everyone = {"DEFN_COORDINATOR": address, "DEFN_WORLD": str(world), **variables}
    return finish([start(code, DEFN_RANK=str(rank), **everyone) for rank in range(world)])


# The process has joined the others, and knows its rank.
JOINED = """
dn.distributed.initialize(timeout=60)
rank = int(os.environ["DEFN_RANK"])
"""


@pytest.fixture(scope="module")
def plugin() -> str:
    return str(fake_plugin.fake("pjrt_joining_cuda.so", computes=True))


def test_a_client_has_the_devices_of_all_processes(address: str, plugin: str) -> None:
    code = (
        JOINED
        + """
for device in dn.devices("cuda"):
    print(device.device_id, device.process_index, device.addressable, device.memory_used)
print(dn.devices("cuda")[0].platform_version)
print(dn.backends.PJRT(client="cuda").device_id)
options = dn.compilers.get("pjrt").partitions_options({"client": "cuda"})
print([each["device_id"] for each in options])
"""
    )
    for rank, lines in enumerate(together(code, address, DEFN_PJRT_PLUGIN=plugin)):
        own = [2 * rank, 2 * rank + 1]
        expected = [f"{id} {id // 2} {id in own} {0 if id in own else None}" for id in range(8)]
        expected += [f"preallocate=0 node_id={rank} num_nodes=4 ", str(own[0]), str(own)]
        assert lines == expected


def test_only_own_devices_hold_tensors(address: str, plugin: str) -> None:
    code = (
        JOINED
        + """
own, other = 2 * rank + 1, (2 * rank + 3) % 8
mine = dn.tensor([1.0, 2.0], backend=dn.backends.PJRT(client="cuda", device_id=own))
print(mine.to_list(), mine.backend.device_id)
there = dn.devices("cuda")[other].backend
tried(lambda: dn.tensor([1.0], backend=there))
tried(lambda: dn.backend_copy(mine, there))
tried(lambda: dn.pjrt.jit(lambda x: x + 1, client="cuda", device_id=other)(np.float32([1])))
tried(lambda: dn.backends.PJRT(client="cuda", device_id=8))
"""
    )
    for rank, lines in enumerate(together(code, address, DEFN_PJRT_PLUGIN=plugin)):
        own, other = 2 * rank + 1, (2 * rank + 3) % 8
        refusal = (
            f'BackendError {{}}: the device {other} of client "cuda" belongs to process '
            f"{other // 2}, "
            f"one of this process is required: {2 * rank}, {own}; "
            "place it there, or let all processes run it on a mesh"
        )
        assert lines == [
            f"[1.0, 2.0] {own}",
            refusal.format("tensor"),
            refusal.format("backend_copy"),
            refusal.format("run"),
            'OptionError backend: device_id is 8, the client "cuda" has 8 devices; it must be '
            "in 0..8",
        ]


def test_a_mesh_spans_processes(address: str, plugin: str) -> None:
    """Each process runs its part: the plugin's program adds 10 times the number of the device."""
    code = (
        JOINED
        + """
mesh = dn.Mesh({"data": 8}, client="cuda")
rows = np.arange(16, dtype="f4").reshape(8, 2)
out = dn.shard(lambda x: x + 1, mesh, [("data",)], ("data",))(rows)
print(out.shape, [(block.backend.device_id, block.to_list()) for block in out.blocks])
again = dn.shard(lambda x: x + 1, mesh, [("data",)], ("data",))(out)
print([block.to_list() for block in again.blocks])
whole = dn.shard(lambda x: x + 1, mesh, [()], ())(rows[0])
print(whole.to_numpy().tolist())
tried(out.to_tensor)
others = [device.device_id for device in dn.devices("cuda") if not device.addressable]
tried(lambda: dn.Mesh({"data": 2}, others[:2], client="cuda"))
one = dn.Mesh({"data": 2}, [2 * rank + 1, 2 * rank], client="cuda")
print(dn.shard(lambda x: x, one, [("data",)], ("data",))(rows[:2]).to_numpy().tolist())
"""
    )
    for rank, lines in enumerate(together(code, address, DEFN_PJRT_PLUGIN=plugin)):
        own = [2 * rank, 2 * rank + 1]
        once = {id: [[12.0 * id, 12.0 * id + 1]] for id in own}
        twice = [[[22.0 * id, 22.0 * id + 1]] for id in own]
        far = 2 if rank == 0 else 0
        assert lines == [
            f"(8, 2) {list(once.items())}",
            str(twice),
            str([10.0 * own[0], 10.0 * own[0] + 1]),
            "BackendError to_tensor: the tensor is stored in blocks in several processes, and "
            "the one on "
            f"pjrt<cuda:{far}> is in process {far // 2}, all blocks in this process are required; "
            "read the blocks that are here, or replicate the result by all_gather",
            "OptionError mesh: none of the devices of "
            f"pjrt<cuda:{far},{far + 1} as {{data: 2}}> belongs to this process, one at least "
            "is required; "
            "choose other devices, or use the mesh only in the processes that have one",
            "[[0.0, 1.0], [2.0, 3.0]]",
        ]


def test_xla_on_the_cpu_is_refused_with_what_was_tried(address: str) -> None:
    """It asks the store for nothing, and its devices are all of process 0."""
    code = """
dn.distributed.initialize(timeout=60)
tried(lambda: dn.devices("host"))
dn.pjrt.client("host", local=True, cpu_device_count=3)
print([device.process_index for device in dn.devices("host")])
print(dn.tensor([1.0, 2.0], backend=dn.backends.PJRT(client="host", device_id=2)).to_list())
"""
    file = fake_plugin.host()
    for lines in together(code, address, world=2):
        assert lines == [
            f'BackendError client "host": {file} does not join the 2 processes of '
            "distributed.initialize: it was given the key-value store, made 0 requests to it, "
            "and has "
            "devices of process 0 only, a plugin whose devices span processes is required, such as "
            "CUDA's or ROCm's; or describe the client as local, for the devices of this "
            "process alone",
            "[0, 0, 0]",
            "[1.0, 2.0]",
        ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"coordinator is None, it must be the address host:port .* DEFN_COORDINATOR"),
        ({"coordinator": 3}, r"coordinator is 3, .*an address host:port"),
        (
            {"coordinator": "127.0.0.1", "rank": 0, "world": 1},
            r'coordinator is "127.0.0.1", it must',
        ),
        ({"coordinator": "127.0.0.1:0", "rank": 0, "world": 1}, r'coordinator is "127.0.0.1:0"'),
        ({"coordinator": "a:1", "rank": 0}, r"world is None, it must be an integer.* DEFN_WORLD"),
        ({"coordinator": "a:1", "world": 2}, r"rank is None, it must be an integer.* DEFN_RANK"),
        ({"coordinator": "a:1", "rank": 2, "world": 2}, r"rank is 2, .* in 0\.\.2"),
        ({"coordinator": "a:1", "rank": -1, "world": 2}, r"rank is -1, .* in 0\.\.2"),
        ({"coordinator": "a:1", "rank": 0, "world": 0}, r"world is 0, .* at least 1"),
        ({"coordinator": "a:1", "rank": "0", "world": 1}, r"rank is '0', .*an int"),
        ({"coordinator": "a:1", "rank": 0, "world": 1, "timeout": 0}, r"timeout is 0, .*positive"),
        ({"coordinator": "a:1", "rank": 0, "world": 1, "timeout": "5"}, r"timeout is '5'"),
        ({"coordinator": "a:1", "ranks": 0}, r'unknown option "ranks"'),
    ],
)
def test_options_are_checked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(dn.OptionError, match=message):
        dn.distributed.initialize(**arguments)  # type: ignore[arg-type]
    with pytest.raises(dn.OptionError, match=r"client: local is 1, .*True or False"):
        dn.pjrt.client("wrong", plugin=fake_plugin.fake(), local=1)  # type: ignore[arg-type]


def test_variables_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFN_COORDINATOR", "127.0.0.1:1")
    monkeypatch.setenv("DEFN_WORLD", "two")
    with pytest.raises(dn.OptionError, match="world is two, it must be an integer"):
        dn.distributed.initialize(rank=0)
    monkeypatch.setenv("DEFN_WORLD", "2")
    monkeypatch.setenv("DEFN_RANK", "5")
    with pytest.raises(dn.OptionError, match=r"rank is 5, .* in 0\.\.2, here or in DEFN_RANK"):
        dn.distributed.initialize()


def test_who_does_not_come_is_named_and_a_call_can_be_repeated(address: str) -> None:
    first = start(f"""
        tried(lambda: dn.distributed.initialize({address!r}, 0, 3, timeout=1.5))
        dn.distributed.initialize({address!r}, 0, 1)
        print("alone")
        """)
    second = start(f"tried(lambda: dn.distributed.initialize({address!r}, 2, 3, timeout=60))")
    lines = finish([first, second])
    assert lines[0] == [
        "BackendError initialize: after 1 s rank 0 of 3 still waits at the coordinator "
        f"{address} for "
        "rank 1, all processes must call it within the timeout; start them, see why they ended, or "
        "give a longer timeout",
        "alone",
    ]
    assert lines[1][0].startswith(
        f"BackendError initialize: rank 2 of 3 did not reach the coordinator {address} in 60 s "
        "(it ended before all had joined), the process of rank 0 must run and listen there; "
    )


def test_nobody_listens(address: str) -> None:
    (lines,) = finish(
        [start(f"tried(lambda: dn.distributed.initialize({address!r}, 1, 2, timeout=1))")]
    )
    assert lines[0].startswith(
        f"BackendError initialize: rank 1 of 2 did not reach the coordinator {address} in 1 s "
    )
    assert lines[0].endswith("; start it, correct the address, or give a longer timeout")


def test_another_program_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        process = start(f"tried(lambda: dn.distributed.initialize({address!r}, 1, 2, timeout=30))")
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n" * 4)
            (lines,) = finish([process])
        assert f"what listens on {address} is not the coordinator of this version" in lines[0]
        busy = start(f"tried(lambda: dn.distributed.initialize({address!r}, 0, 2, timeout=30))")
        (lines,) = finish([busy])
        assert lines[0].startswith(f"BackendError initialize: rank 0 cannot listen on {address} (")


def test_ranks_and_worlds_must_fit(address: str) -> None:
    code = "tried(lambda: dn.distributed.initialize({!r}, {}, {}, timeout=60))"
    code += "\nprint('end', flush=True)"
    first = start(code.format(address, 0, 3))
    second = start(code.format(address, 1, 3))
    try:
        time.sleep(0.5)
        (other,) = finish([start(code.format(address, 1, 4))])
        assert other[0] == (
            "BackendError initialize: world is 4 in the process of rank 1 and 3 in that of "
            "rank 0 at "
            f"{address}, it must be the same in all processes; correct one of them"
        )
        # Whichever of the two comes second is told.
        third = start(code.format(address, 1, 3))
        deadline = time.monotonic() + 60
        while second.poll() is None and third.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        late, waiting = (second, third) if second.poll() is not None else (third, second)
        (told,) = finish([late])
        assert told[0].startswith(
            f"BackendError initialize: rank 1 is there already at the coordinator {address}, "
            "each of "
            "the 3 processes must have its own rank; "
        )
        lines = finish([start(code.format(address, 2, 3)), first, waiting])
        assert lines == [["end"]] * 3
    finally:
        for process in (first, second):
            process.kill()


def test_it_is_called_once_and_first(address: str) -> None:
    (lines,) = finish([
        start(f"""
        dn.pjrt.client("mine", plugin={str(fake_plugin.host())!r}, local=True)
        dn.devices("mine")
        dn.distributed.initialize({address!r}, 0, 1)
        tried(lambda: dn.distributed.initialize({address!r}, 0, 1))
        child = os.fork()
        if child == 0:
            tried(lambda: dn.devices("host"))
            os._exit(0)
        os.waitpid(child, 0)
        print(len(dn.devices("host")))
        """)
    ])  # fmt: skip
    assert lines == [
        "BackendError initialize: this process has joined others before, as rank 0 of 1 at "
        f"{address}, "
        "one call in each process is required; leave out the second one",
        "BackendError client: this process was forked from rank 0 of 1, which has joined "
        "others at "
        f'{address}; start processes by "spawn", or call initialize in each process after the fork',
        "4",
    ]
    (lines,) = finish([
        start(f"""
        dn.devices("host")
        tried(lambda: dn.distributed.initialize({address!r}, 0, 1))
        """)
    ])  # fmt: skip
    assert lines == [
        'BackendError initialize: the client "host" was started before, processes must be joined '
        "before clients start; call it first, or describe that client as local"
    ]


def test_a_process_that_goes_away_is_named(address: str, plugin: str) -> None:
    """Rank 0 waits for what rank 1 would have put."""
    code = (
        JOINED
        + """
if rank == 1:
    os._exit(0)
start = time.monotonic()
tried(lambda: dn.devices("cuda"))
print(time.monotonic() - start < 20)
"""
    )
    lines = together(code, address, world=2, DEFN_PJRT_PLUGIN=plugin)[0]
    key = "cuda/local_topology/fake/1"
    assert (
        f'rank 0 of 2: nobody has put "{key}" to the coordinator {address}, and rank 1 went away'
        in (lines[0])
    )
    assert lines[1:] == ["True"]


def test_a_coordinator_that_goes_away_is_named(address: str, plugin: str) -> None:
    code = (
        JOINED
        + """
if rank == 0:
    os._exit(0)
time.sleep(0.5)
tried(lambda: dn.devices("cuda"))
"""
    )
    lines = together(code, address, world=2, DEFN_PJRT_PLUGIN=plugin)[1]
    assert f"rank 1 of 2: the coordinator {address} does not answer any more (" in lines[0]


def test_a_client_that_others_do_not_start_is_named(address: str) -> None:
    impatient = str(fake_plugin.fake("pjrt_impatient_cuda.so", wait=1.0))
    code = (
        JOINED
        + """
if rank == 0:
    tried(lambda: dn.devices("cuda"))
else:
    time.sleep(6)
"""
    )
    lines = together(code, address, world=2, DEFN_PJRT_PLUGIN=impatient)[0]
    assert (
        f'nobody has put "cuda/local_topology/fake/1" to the coordinator {address} in 1 s; '
        "each process must start the client of this name" in lines[0]
    )


@pytest.mark.parametrize("wait", ["dn.distributed.initialize(world=3)", "dn.devices('cuda')"])
def test_waits_are_interrupted(address: str, plugin: str, wait: str) -> None:
    joined = JOINED if "devices" in wait else ""
    code = f"""
{joined}
if int(os.environ["DEFN_RANK"]) == 1:
    time.sleep(600)
print("waiting", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""
    everyone = {"DEFN_COORDINATOR": address, "DEFN_WORLD": "2", "DEFN_PJRT_PLUGIN": plugin}
    other = start(code, DEFN_RANK="1", **everyone)
    process = start(code, DEFN_RANK="0", **everyone)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(1.0)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - begin < 1.0
    finally:
        other.kill()
        process.kill()
        other.communicate()
        process.communicate()
