"""What devices refuse, and what is said then: plugins, drivers, memory, limits, damaged caches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import defn as dn
import fake_plugin
from defn.backends import PJRT


def run(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, without any plugin but the one that is named."""
    environment = {name: value for name, value in os.environ.items() if "PJRT" not in name}
    hide = "import importlib.metadata, sys\nimportlib.metadata.entry_points = lambda **_: ()\n"
    return subprocess.run(
        [sys.executable, "-c", hide + textwrap.dedent(code), *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


# Plugins.


@pytest.mark.parametrize(
    "use",
    [
        'dn.tensor([1.0], backend="pjrt")',
        "dn.backends.PJRT()",
        'dn.backends.PJRT(client="host")',
        'dn.jit(dn.sin, compiler="pjrt")(1.0)',
        "dn.pjrt.cache_report()",
    ],
)
def test_without_a_plugin_the_command_is_named_that_installs_one(use: str) -> None:
    done = run(f"import defn as dn\n{use}")
    assert done.returncode == 1
    error = done.stderr.splitlines()[-2]
    assert re.match(r"defn\.BackendError: \w+: no PJRT plugin is installed, one is", error), error
    assert "for the CPU by pip install 'defn[xla]', one for a GPU by pip install" in error


def test_without_a_plugin_there_are_no_devices() -> None:
    done = run("""
        import defn as dn
        print(dn.devices(), dn.pjrt.plugins(), dn.sin(0.0).item())
        import runpy
        sys.argv = ["defn", "devices"]
        runpy.run_module("defn", run_name="__main__")
        """)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "[] () 0.0",
        "no PJRT plugin is installed; pip install 'defn[xla]' installs XLA's for the CPU",
    ]


def test_a_client_without_its_plugin_says_how_to_install_it() -> None:
    code = """
        import defn as dn
        for name in ("host", "tpu", "abacus"):
            try:
                dn.backends.PJRT(client=name)
            except dn.BackendError as error:
                print(str(error).splitlines()[0])
        """
    done = run(code, DEFN_PJRT_PLUGIN=str(fake_plugin.fake()))
    unknown = 'backend: the client "{}" is unknown, it must be one of "cuda"'
    assert done.stdout.splitlines() == [
        unknown.format("host") + "; install XLA's plugin for the CPU by pip install 'defn[xla]'",
        unknown.format("tpu") + "; install a plugin for it by pip install libtpu",
        unknown.format("abacus"),
    ]


def test_the_environments_plugin_is_the_default_one() -> None:
    code = """
        import defn as dn
        print(dn.backends.PJRT(), dn.pjrt.plugins()[0].found)
        print(dn.devices()[0].kind)
        """
    done = run(code, DEFN_PJRT_PLUGIN=str(fake_plugin.fake()))
    assert done.stdout.splitlines() == [
        "PJRT(client='cuda', device_id=0) DEFN_PJRT_PLUGIN",
        "cardboard",
    ], done.stderr


def test_one_broken_plugin_does_not_hide_the_others() -> None:
    dn.pjrt.client("broken", plugin=fake_plugin.text())
    with pytest.raises(dn.BackendError, match=r"pjrt_text\.so cannot be loaded"):
        PJRT(client="broken")
    assert {device.client for device in dn.devices()} >= {"host"}
    with pytest.raises(dn.BackendError, match=r"pjrt_text\.so cannot be loaded"):
        dn.devices("broken")
    # It can be registered again because it never ran.
    dn.pjrt.client("broken", plugin=fake_plugin.host())
    assert dn.devices("broken")[0].platform == "cpu"


def test_to_list_one_client_starts_no_other() -> None:
    code = """
        import sys
        import defn as dn
        plugin = sys.argv[1]
        dn.pjrt.client("idle", plugin=plugin, cpu_device_count=1)
        dn.pjrt.client("asked", plugin=plugin, cpu_device_count=3)
        print(len(dn.devices("asked")))
        # Only what does not run can be described otherwise.
        dn.pjrt.client("idle", plugin=plugin, cpu_device_count=2)
        print(len(dn.devices("idle")), len(dn.devices()))
        for wrong in ("abacus", 3):
            try:
                dn.devices(wrong)
            except dn.Error as error:
                print(type(error).__name__, str(error).splitlines()[0])
        """
    done = run(code, str(fake_plugin.host()))
    assert done.stdout.splitlines() == [
        "3",
        "2 5",
        'BackendError devices: the client "abacus" is unknown, it must be one of "idle", "asked"',
        "OptionError devices: client is 3, it must be the name of a client",
    ], done.stderr


def test_a_broken_plugin_is_listed_with_its_error() -> None:
    code = """
        import runpy
        sys.argv = ["defn", "devices"]
        runpy.run_module("defn", run_name="__main__")
        """
    file = fake_plugin.text()
    done = run(code, DEFN_PJRT_PLUGIN=str(file))
    assert done.returncode == 1
    plugin, client = done.stdout.splitlines()
    assert plugin == f"plugin {file} (DEFN_PJRT_PLUGIN)"
    assert client.startswith(f"pjrt_text: plugin: {file} cannot be loaded, a PJRT plugin for this ")


def test_a_plugin_with_memory_is_listed_with_it() -> None:
    code = """
        import runpy
        import defn as dn
        kept = dn.tensor([0.0] * 65536, backend="pjrt")
        sys.argv = ["defn", "devices"]
        runpy.run_module("defn", run_name="__main__")
        """
    done = run(code, DEFN_PJRT_PLUGIN=str(fake_plugin.fake()))
    assert done.returncode == 0, done.stderr
    _, client, device = done.stdout.splitlines()
    assert client == "cuda: fake preallocate=0 , PJRT 0.81"
    assert device == "  cuda:0  cardboard, 0.00 of 0.00 GiB used"


# Memory.


def test_memory_is_taken_as_it_is_needed_unless_the_user_says_otherwise() -> None:
    dn.pjrt.client("growing", plugin=fake_plugin.fake(), size=3)
    (device,) = dn.devices("growing")
    assert device.platform_version == "size=3 preallocate=0 "
    dn.pjrt.client("taking", plugin=fake_plugin.fake(), preallocate=True)
    assert dn.devices("taking")[0].platform_version == "preallocate=1 "


@pytest.mark.parametrize(("limit", "part"), [(1 << 18, "0.25"), (1 << 20, "1"), (1 << 30, "1")])
def test_a_limit_is_a_part_of_the_memory(limit: int, part: str) -> None:
    name = f"limited{limit}"
    dn.pjrt.client(name, plugin=fake_plugin.fake(), memory_limit=limit)
    (device,) = dn.devices(name)
    assert device.platform_version == f"preallocate=0 memory_fraction={part} "
    assert device.memory_limit == 1 << 20


def test_a_limit_is_a_number_of_bytes() -> None:
    for wrong in ("1 GiB", 1.5, -1, 0, 2**70):
        said = r"memory_limit is .*, it must be a number of bytes"
        with pytest.raises(dn.OptionError, match=said):
            dn.pjrt.client("wrong", plugin=fake_plugin.fake(), memory_limit=wrong)  # type: ignore[arg-type]


def test_a_full_device_names_its_largest_tensors() -> None:
    dn.pjrt.client("full", plugin=fake_plugin.fake())
    place = PJRT(client="full")

    def make(size: int) -> dn.Tensor:
        return dn.tensor(np.zeros(size, np.float32), backend=place)

    kept = [make(20_000 + size) for size in range(8)]
    made = make.__code__.co_firstlineno + 1
    with pytest.raises(dn.OutOfMemoryError) as caught:
        make(200_000)
    text = str(caught.value)
    assert 'tensor: the device of client "full" has no memory left (nothing is left), ' in text
    largest = (
        f"f32[{size}] of {4 * size} bytes made at {__file__}:{made}"
        for size in range(20_007, 20_002, -1)
    )
    assert f"the largest of 8 live tensors are {', '.join(largest)}; free tensors with " in text
    assert isinstance(caught.value, MemoryError)
    # Freed memory can be allocated again.
    assert dn.backend_deallocate(kept) == ["ok"] * 8
    assert dn.devices("full")[0].memory_used == 0
    assert make(200_000).shape == (200_000,)


def test_more_than_the_hosts_memory_is_refused_before_it_is_asked_for() -> None:
    dn.pjrt.client("crowded", plugin=fake_plugin.host())
    place = PJRT(client="crowded")
    x = dn.tensor(np.zeros((1 << 20, 1), np.float32), backend=place)
    at = r"f32\[1048576\]\[1\] of 4194304 bytes made at .*test_pjrt_refusals\.py:\d+"
    for use in (
        lambda: x + x.reshape(1, 1 << 20),
        lambda: dn.pjrt.jit(lambda x: dn.sort(x + dn.transpose(x)), client="crowded")(x),
        lambda: dn.eye(1 << 21, backend=place),
    ):
        with pytest.raises(dn.OutOfMemoryError, match=at):
            use()
    assert dn.sum(x).item() == 0.0


# Devices and programs.


@pytest.mark.parametrize("device_id", [1, 7, -1, 2**40])
def test_devices_out_of_range(device_id: int) -> None:
    dn.pjrt.client("single", plugin=fake_plugin.host(), cpu_device_count=1)
    text = f'device_id is {device_id}, the client "single" has 1 devices; it must be in 0..1'
    for use in (
        lambda: PJRT(client="single", device_id=device_id),
        lambda: dn.pjrt.jit(dn.sin, client="single", device_id=device_id)(1.0),
    ):
        with pytest.raises(dn.OptionError, match=re.escape(text)):
            use()


def test_options_of_a_backend() -> None:
    with pytest.raises(dn.OptionError, match=r'PJRT: unknown option "device", it takes client, de'):
        PJRT(device=1)  # type: ignore[call-arg]


def client_of_its_own(name: str) -> str:
    dn.pjrt.client(name, plugin=fake_plugin.host(), cpu_device_count=1)
    return name


def test_damaged_files_of_a_cache_are_made_again(tmp_path: Path) -> None:
    def report(name: str) -> tuple[int, int, int]:
        client = client_of_its_own(name)
        compiled = dn.pjrt.jit(lambda x: dn.cos(x) * 3.0, client=client, cache_dir=tmp_path)
        assert compiled(np.zeros(2, np.float32)).to_list() == [3.0, 3.0]
        done = dn.pjrt.cache_report(client)
        return done.compiles, done.disk_hits, done.corrupt

    assert report("cache0") == (1, 0, 0)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    assert report("cache1") == (0, 1, 0)
    damages = [whole[:-1], whole[: len(whole) // 2], whole[:10], b"", whole[:-9] + bytes(9)]
    for number, damaged in enumerate(damages, 2):
        file.write_bytes(damaged)
        assert report(f"cache{2 * number}") == (1, 0, 1)
        # A plugin numbers its programs, so that the length can differ.
        assert file.read_bytes()[:16] == whole[:16]
        assert file.read_bytes() != damaged
        assert report(f"cache{2 * number + 1}") == (0, 1, 0)


@pytest.mark.parametrize("custom_calls", ["none", "refused", "short"])
def test_plugins_without_custom_calls_run_no_kernels(custom_calls: str) -> None:
    name = f"calls_{custom_calls}"
    library = fake_plugin.fake(f"{name}_cpu.so", platform="cpu", custom_calls=custom_calls)
    dn.pjrt.client(name, plugin=library)
    (device,) = dn.devices(name)
    assert (device.platform, device.kernels) == ("cpu", False)


def test_an_operation_of_a_device_that_cannot() -> None:
    dn.pjrt.client("still", plugin=fake_plugin.fake())
    x = dn.tensor(1.0, backend=PJRT(client="still"))
    for use in (lambda: x + x, lambda: dn.jit(dn.sin, compiler="pjrt", client="still")(x)):
        with pytest.raises(dn.BackendError, match=r"PJRT_Client_Compile answered Unimplemented"):
            use()
    with pytest.raises(dn.BackendError, match=r'the device of client "still" failed'):
        x.item()
    assert x.block_until_ready() is x
    with pytest.raises(dn.BackendError, match=r"to_pointer: .*, its memory must be on the host"):
        dn.to_pointer(x)
    with pytest.raises(BufferError, match="DLPack has no number for the device"):
        x.__dlpack_device__()
    with pytest.raises(BufferError, match="on a device that DLPack has no number for"):
        x.__dlpack__()
    with pytest.raises(dn.BackendError, match=r'the device of client "still" failed'):
        dn.backend_transfer(x)
    assert dn.backend_deallocate(x) == "already_deallocated"
