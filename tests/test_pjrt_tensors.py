"""Tensors on devices: where they are, how they move and go, and what is read of them."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys

import numpy as np
import pytest

import defn as dn
import fake_plugin
from cases import store
from cases.dtypes import ALL
from defn.backends import PJRT, Backend, NumPyBackend


class Failing(Backend):
    """Takes nothing."""

    def from_binary(self, out: dn.Tensor, data: bytes) -> bytes:
        raise RuntimeError("there is no room")

    def to_binary(self, x: dn.Tensor, limit: int) -> bytes:
        raise AssertionError("there is nothing to read")


@pytest.fixture(scope="module")
def device() -> PJRT:
    """The first of two devices of a client of this module's own, so that it can count."""
    (host,) = (plugin for plugin in dn.pjrt.plugins() if plugin.client == "host")
    dn.pjrt.client("tensors", plugin=host.path, cpu_device_count=2)
    return PJRT(client="tensors")


@pytest.fixture
def second(device: PJRT) -> PJRT:
    return PJRT(client="tensors", device_id=1)


def live() -> int:
    return dn.pjrt.live_buffers("tensors")


def compiles() -> int:
    return dn.pjrt.cache_report("tensors").compiles


def address(tensor: dn.Tensor) -> int:
    return dn.to_pointer(tensor).address


def line() -> int:
    """The number of the line that calls this."""
    return sys._getframe(1).f_lineno


# Copying, moving and freeing.


def test_a_copy_at_the_same_place_is_one(device: PJRT) -> None:
    x = dn.tensor([1.0, 2.0, 3.0], names=["a"], backend=device)
    before = live()
    y = dn.backend_copy(x, device)
    assert live() - before == 1
    assert (y.backend, y.names, y.to_list()) == (device, ("a",), x.to_list())
    assert address(x) != address(y)
    assert dn.backend_deallocate(x) == "ok"
    assert live() == before
    assert y.to_list() == [1.0, 2.0, 3.0]


def test_a_copy_on_another_device_and_of_another_client(device: PJRT, second: PJRT) -> None:
    x = dn.vectorize(dn.tensor([[1.0, 2.0], [3.0, 4.0]], backend=device), "v")
    for there in (second, PJRT(client="host"), NumPyBackend(), "cpu"):
        y = dn.backend_copy(x, there)
        assert (y.backend, y.vectorized_axes) == (there, (("v", 2),))
        assert y.to_list() == x.to_list()
        back = dn.backend_copy(y, device)
        assert (back.backend, back.to_list()) == (device, x.to_list())
    assert dn.backend_copy(x).backend == "cpu", "the host unless told otherwise"


def test_moving_to_the_same_place_does_nothing(device: PJRT) -> None:
    x = dn.tensor([1.0, 2.0], backend=device)
    before = live()
    y = dn.backend_transfer(x, device)
    assert live() == before
    assert address(y) == address(x)
    assert y.to_list() == x.to_list() == [1.0, 2.0]


def test_moving_frees_the_source(device: PJRT, second: PJRT) -> None:
    before = live()
    x = dn.tensor([1.0, 2.0], backend=device)
    y = dn.backend_transfer(x, second)
    assert (live() - before, y.backend, y.to_list()) == (1, second, [1.0, 2.0])
    with pytest.raises(dn.BackendError, match="freed"):
        x.to_list()
    z = dn.backend_transfer(y, PJRT(client="host"))
    assert (live(), z.to_list()) == (before, [1.0, 2.0])
    back = dn.backend_transfer(z)
    assert (back.backend, back.to_list()) == ("cpu", [1.0, 2.0])
    assert dn.backend_deallocate((x, y, z)) == ("already_deallocated",) * 3


def test_moving_frees_the_source_also_when_it_fails(device: PJRT) -> None:
    before = live()
    x = dn.tensor([1.0, 2.0], backend=device)
    with pytest.raises(RuntimeError, match="no room"):
        dn.backend_copy(x, Failing())
    assert x.to_list() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="no room"):
        dn.backend_transfer(x, Failing())
    assert live() == before
    assert dn.backend_deallocate(x) == "already_deallocated"


def test_the_line_that_freed_a_tensor_is_named(device: PJRT) -> None:
    for place in (device, "cpu", NumPyBackend()):
        x = dn.tensor([1.0, 2.0], backend=place)
        dn.backend_deallocate(x), (freed := line())
        at = re.escape(f"the tensor's memory was freed at {__file__}:{freed}; keep a copy")
        for use in (x.to_list, lambda x=x: x + 1.0, lambda x=x: dn.jit(lambda a: dn.sin(a))(x)):
            with pytest.raises(dn.BackendError, match=f"{at}|freed at {__file__}:{freed}, "):
                use()
    y = dn.tensor([1.0, 2.0], backend=device)
    dn.backend_transfer(y), (moved := line())
    with pytest.raises(dn.BackendError, match=f"freed at {__file__}:{moved}; "):
        dn.sin(y)


def test_the_call_that_a_tensor_was_donated_to_is_named(device: PJRT) -> None:
    add = dn.pjrt.jit(dn.add, client="tensors", donate=0)
    x, y = (dn.tensor([1.0, 2.0], backend=device) for _ in range(2))
    z, taken = add(x, y), line()
    assert z.to_list() == [2.0, 4.0]
    assert "(donated)" in repr(x)
    with pytest.raises(dn.BackendError, match=f"sin: .* donated at {__file__}:{taken}; "):
        dn.sin(x)
    with pytest.raises(dn.BackendError, match=f"argument a .* donated at {__file__}:{taken}, "):
        add(x, y)
    assert dn.backend_deallocate(x) == "already_deallocated"
    assert y.to_list() == [1.0, 2.0]


# Batches and slices.


def test_batches_are_one_program(device: PJRT) -> None:
    x = dn.iota((12, 2), dtype="s16", backend=device)
    before = compiles()
    batches = [batch.to_list() for batch in x.to_batched(4)]
    assert np.concatenate(batches).tolist() == x.to_list()
    assert compiles() - before == 1
    assert all(batch.backend == device for batch in x.to_batched(4))
    assert compiles() - before == 1


def test_the_last_batch_wraps_or_is_discarded(device: PJRT) -> None:
    x = dn.iota((7,), dtype="u8", backend=device)
    before = compiles()
    assert [b.to_list() for b in x.to_batched(3, leftover="discard")] == [[0, 1, 2], [3, 4, 5]]
    assert compiles() - before == 1
    for _ in range(2):
        repeated = [b.to_list() for b in x.to_batched(3)]
        assert repeated == [[0, 1, 2], [3, 4, 5], [6, 0, 1]]
    # The remainder, the start of the tensor that fills it up, and their concatenation.
    assert compiles() - before == 4


def test_slices_anywhere_are_one_program(device: PJRT) -> None:
    x = dn.iota((16, 3), dtype="u16", backend=device)
    update = dn.tensor([[7, 7, 7]], dtype="u16", backend=device)
    before = compiles()
    for start in range(9):
        part = dn.slice(x, [start, 0], [2, 3])
        assert part.to_list() == x.to_numpy()[start : start + 2].tolist()
    assert compiles() - before == 1
    before = compiles()
    for start in range(9):
        part = dn.slice(x, [dn.tensor(start, backend=device), 0], [3, 3])
        assert part.to_list() == x.to_numpy()[start : start + 3].tolist()
    assert compiles() - before == 1
    before = compiles()
    for start in range(9):
        put = dn.put_slice(x, [start, 0], update)
        assert put.to_numpy()[start].tolist() == [7, 7, 7]
    assert compiles() - before == 1


# Other libraries.


@pytest.mark.parametrize("dtype", ["u8", "s16", "s64", "f16", "f32", "f64", "c64"])
def test_arrays_read_the_devices_memory(device: PJRT, dtype: str) -> None:
    x = dn.tensor(store([[1, 0, 1]], dtype), backend=device)
    before = live()
    for array in (x.to_numpy(), np.from_dlpack(x), x.data):
        assert array.ctypes.data == address(x)
        assert array.tolist() == x.to_list()
        assert not array.flags.writeable
    assert x.__dlpack_device__() == (1, 0)
    y = dn.tensor(array)
    assert y.backend == "cpu"
    # An array keeps the memory that it shows alive.
    assert dn.backend_deallocate(x) == "ok"
    assert live() == before
    assert array.tolist() == y.to_list()
    del array, y
    assert live() == before - 1


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_is_read(device: PJRT, dtype: str) -> None:
    values = np.resize(store([1, 0, 1, 1, 0], dtype), 13)
    here, there = dn.tensor(values), dn.tensor(values, backend=device)
    assert there.to_binary() == here.to_binary()
    for limit in (0, 1, 5, 13, 100):
        assert there.to_binary(limit=limit) == here.to_binary(limit=limit)
        assert there.to_flat_list(limit=limit) == here.to_flat_list(limit=limit)
    assert np.array_equal(there.data, here.data)


def test_pointers(device: PJRT) -> None:
    x = dn.tensor([1.0, 2.0, 3.0], backend=device)
    pointer = dn.to_pointer(x)
    assert pointer.data_size == 12
    y = dn.from_pointer(pointer, "f32", (3, 1), names=["a", None], backend=device)
    assert (address(y), y.backend, y.names) == (pointer.address, device, ("a", None))
    assert (y * 2.0).to_list() == [[2.0], [4.0], [6.0]]
    assert dn.backend_deallocate((x, y)) == ("ok", "ok")
    assert dn.from_pointer(pointer, "f32", (3,)).to_list() == [1.0, 2.0, 3.0]
    # The device cannot read this memory in place, so it is copied.
    array = np.arange(20, dtype=np.float32)
    for start in range(1, 17):
        part = array[start : start + 3]
        z = dn.from_pointer(part.ctypes.data, "f32", (3,), backend=device)
        assert (z + 0.0).to_list() == part.tolist()
        assert (address(z) == part.ctypes.data) == (part.ctypes.data % 64 == 0)
    with pytest.raises(dn.OptionError, match="multiple of 4"):
        dn.from_pointer(pointer.address + 2, "f32", (3,), backend=device)


def test_borrowed_memory_is_not_written(device: PJRT) -> None:
    x = dn.tensor([1.0, 2.0], backend=device)
    y = dn.from_pointer(dn.to_pointer(x), "f32", (2,), backend=device)
    double = dn.pjrt.jit(lambda a: a + a, client="tensors", donate=0)
    assert double(y).to_list() == [2.0, 4.0]
    assert x.to_list() == [1.0, 2.0]
    array = x.to_numpy()
    assert double(x).to_list() == [2.0, 4.0]
    assert array.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["f32", "c128", "bf16", "u8", "bool", "u4"])
@pytest.mark.parametrize("kib", [64, 1023, 1024, 4096])
def test_large_copies_are_the_tensors_own(device: PJRT, dtype: str, kib: int) -> None:
    """Copies of a mebibyte and more lie in memory of the CPU backend."""
    numbers = np.arange(kib << 10, dtype=np.uint8)
    array = dn.tensor(numbers & 1, dtype=dtype).to_numpy()
    array = array[: (kib << 10) // array.itemsize].copy()
    want = array.copy()
    double = dn.pjrt.jit(lambda x: x + x, client="tensors", donate=0)
    live, buffers = dn.memory_report().live_bytes, dn.pjrt.live_buffers("tensors")
    kept, given = (dn.tensor(array, backend=device) for _ in range(2))
    array[...] = 0
    result = double(given)
    # Memory of the donated tensor would be used again for this one, if it were free too early.
    other = dn.tensor(array, backend=device)
    np.testing.assert_array_equal(kept.to_numpy(), want)
    np.testing.assert_array_equal(result.to_numpy(), dn.tensor(want + want).to_numpy())
    assert not other.to_numpy().any()
    with pytest.raises(dn.BackendError, match="donated"):
        given.to_numpy()
    del kept, given, other, result
    assert dn.pjrt.live_buffers("tensors") == buffers
    assert dn.memory_report().live_bytes == live


class Lent(ctypes.Structure):
    """`DLManagedTensorVersioned` of dlpack.h."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
    )


def test_memory_of_an_accelerator_is_lent_where_it_lies() -> None:
    plugin = fake_plugin.fake("pjrt_lending_cuda.so", platform="cuda")
    dn.pjrt.client("lending", plugin=plugin)
    x = dn.tensor(np.float32([1.5, 2.5]), backend=PJRT(client="lending"))
    # Kind 2 is CUDA's; the plugin reports that its device is the third of the machine.
    assert x.__dlpack_device__() == (2, 3)
    capsule = x.__dlpack__(max_version=(1, 1), stream=1)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    lent = Lent.from_address(get(capsule, b"dltensor_versioned"))
    assert (tuple(lent.version), lent.flags, tuple(lent.device), lent.rank) == (
        (1, 1),
        1,
        (2, 3),
        1,
    )
    assert tuple((ctypes.c_float * 2).from_address(lent.data)) == (1.5, 2.5)
    # The borrower keeps the memory alive.
    assert dn.backend_deallocate(x) == "ok"
    assert dn.pjrt.live_buffers("lending") == 1
    assert tuple((ctypes.c_float * 2).from_address(lent.data)) == (1.5, 2.5)
    del lent, capsule
    assert dn.pjrt.live_buffers("lending") == 0
    y = dn.tensor(np.float32([1.5, 2.5]), backend=PJRT(client="lending"))
    for asked in ({}, {"max_version": (1, 1), "copy": True}):
        with pytest.raises(BufferError, match=r"a consumer of DLPack 1\.0 reads them as they lie"):
            y.__dlpack__(**asked)
    with pytest.raises(BufferError, match="cannot be lent on another device"):
        y.__dlpack__(max_version=(1, 1), dl_device=(2, 0))


def test_pointers_of_what_is_gone(device: PJRT) -> None:
    x = dn.tensor([1.0], backend=device)
    dn.backend_deallocate(x)
    for use in (lambda: dn.to_pointer(x), lambda: x.data, lambda: np.from_dlpack(x)):
        with pytest.raises(dn.BackendError, match="was freed at "):
            use()


# Printing.


def test_printed_tensors_say_where_they_are(device: PJRT, second: PJRT) -> None:
    x = dn.tensor([1, 2, 3], backend=device)
    with dn.options(print_place=True):
        pattern = r"Tensor<\n  s32\[3\]\n  PJRT<tensors:0, (\d+)>\n  \[1, 2, 3\]\n>"
        found = re.fullmatch(pattern, repr(x))
        assert found, repr(x)
        same, other = x.reshape(3), dn.backend_copy(x, device)
        assert f"PJRT<tensors:0, {found[1]}>" in repr(same), "the number is the memory's"
        assert f", {found[1]}>" not in repr(other)
        assert "PJRT<tensors:1, " in repr(dn.backend_copy(x, second))
        assert "PJRT" not in repr(dn.backend_copy(x))
        scalar = repr(dn.tensor(2.5, backend=device))
        assert re.fullmatch(r"Tensor\(2\.5, f32, PJRT<tensors:0, \d+>\)", scalar), scalar
        assert "[1, 2, ...]" in x.inspect(limit=2)
    with dn.options(print_place=False):
        assert repr(x) == repr(dn.backend_copy(x))
        with dn.options(print_limit=2):
            assert repr(x) == "Tensor<\n  s32[3]\n  [1, ..., 3]\n>"
    with pytest.raises(dn.OptionError, match="print_place"):
        dn.global_default_options(print_place="no")


# Where operations run.


def test_an_operation_of_two_clients(device: PJRT, second: PJRT) -> None:
    here = dn.tensor([1.0], backend=device)
    there = dn.tensor([2.0], backend=PJRT(client="host"))
    assert (here + there).backend == device, "of two clients of the host the first operand's"
    assert (there + here).backend == there.backend
    assert (here + dn.tensor([2.0])).backend == device
    assert (dn.tensor([2.0]) + here).backend == device
    assert (here + 1.0).backend == (1.0 + here).backend == device
    assert dn.jit(dn.add)(here, dn.tensor([2.0])).backend == device
    other = dn.tensor([1.0], backend=second)
    text = "the operands are on pjrt<tensors:0> and pjrt<tensors:1>; move one with backend_copy"
    with pytest.raises(dn.BackendError, match=text):
        here + other
    with pytest.raises(dn.BackendError, match=text):
        dn.pjrt.jit(dn.add, client="tensors")(here, other)


def test_operations_while_another_definition_is_traced(device: PJRT) -> None:
    x = dn.tensor([1.0, 2.0], backend=device)
    seen = []

    def definition(y: dn.Tensor) -> dn.Tensor:
        seen.append(dn.jit(dn.sum, on_conflict="force")(x).item())
        return y * x

    assert dn.jit(definition)(dn.tensor([3.0, 4.0], backend=device)).to_list() == [3.0, 8.0]
    assert seen == [3.0]


# Listing.


def test_devices_are_listed(device: PJRT) -> None:
    first, second = dn.devices("tensors")
    assert (first.client, first.device_id, second.device_id) == ("tensors", 0, 1)
    assert (first.platform, first.kind) == ("cpu", "cpu")
    assert first.backend == device
    assert str(first.plugin).endswith("xla_cpu_pjrt.so")
    assert re.fullmatch(r"0\.\d+", first.interface)
    assert first.memory_limit is None, "the plugin does not count"
    assert first.kernels
    assert {entry.client for entry in dn.devices()} >= {"tensors", "host"}


def test_the_command_lists_plugins_and_devices() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "defn", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("devices")
    assert done.returncode == 0, done.stderr
    (host,) = (plugin for plugin in dn.pjrt.plugins() if plugin.client == "host")
    lines = done.stdout.splitlines()
    assert f"plugin {host.path} ({host.found})" in lines
    assert any(re.fullmatch(r"host: cpu .*, PJRT 0\.\d+", entry) for entry in lines), done.stdout
    assert any(re.fullmatch(r"  host:0  cpu, memory not counted", entry) for entry in lines)
    for wrong in ((), ("device",), ("devices", "host")):
        done = run(*wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "usage: python -m defn devices\n"
