"""Saving is atomic and loses nothing: kills at every step, bits, numbers, and containers."""

from __future__ import annotations

import builtins
import dataclasses
import os
import pathlib
import re
import signal
import stat
import struct
from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL
from defn import _files
from interruptions import interposed


class Adam(NamedTuple):
    count: Any
    mean: Any
    variance: Any


@dataclasses.dataclass
class State:
    params: Any
    optimizer: Any
    key: Any
    epoch: int
    loss: float
    name: str
    best: Any = None


def state() -> State:
    w = dn.iota((2, 3), dtype="bf16", names=["in", "out"])
    params = {"layers": [{"w": w, "b": dn.tensor([0.5, -0.5, 2.0])}], "scale": 0.1}
    moments = dn.tree.zeros_like(params)
    optimizer = (Adam(dn.tensor(3), moments, moments), {"rate": 1e-3, "steps": 2**40})
    return State(params, optimizer, dn.random.key(7), 3, float("inf"), "run", None)


def same(x: Any, y: Any) -> bool:
    """Whether containers are equal in classes, static values, types and bits."""
    if dn.tree.structure(x) != dn.tree.structure(y):
        return False

    def bits(leaf: Any) -> Any:
        if isinstance(leaf, dn.Tensor):
            return leaf.dtype, leaf.shape, leaf.names, leaf.vectorized_axes, leaf.to_binary()
        return type(leaf), struct.pack("<d", leaf) if isinstance(leaf, float) else leaf

    leaves = zip(dn.tree.leaves(x), dn.tree.leaves(y), strict=True)
    return all(bits(a) == bits(b) for a, b in leaves)


# Content.


@pytest.mark.parametrize("dtype", ALL)
def test_every_bit_comes_back(dtype: str, tmp_path: pathlib.Path) -> None:
    """The elements are random bits: NaNs with every payload are among the floats."""
    data = np.random.default_rng(5).integers(0, 256, 4096, dtype=np.uint8).tobytes()
    if dtype == "bool":
        data = bytes(byte & 1 for byte in data)
    x = dn.from_binary(data, dtype)
    dn.save(tmp_path / "x.defn", {"x": x, "one": x[0]})
    back = dn.load(tmp_path / "x.defn")
    assert (back["x"].dtype, back["x"].to_binary()) == (dtype, x.to_binary())
    assert x.to_binary() == data
    assert back["one"].to_binary() == x[0].to_binary()


def test_the_state_of_a_run_comes_back(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.defn"
    dn.save(path, state(), keep_numbers=True)
    assert same(dn.load(path), state())
    assert same(dn.load(path, like=state()), state())
    assert same(dn.deserialize(dn.serialize(state(), keep_numbers=True)), state())


def test_numbers_keep_their_digits() -> None:
    payload = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_DEAD_BEEF))[0]
    numbers = [0.1, -0.0, 5e-324, float("-inf"), payload, 10**40, -(2**63), 1 - 0.1j]
    back = dn.deserialize(dn.serialize(numbers, keep_numbers=True))
    assert same(back, numbers)
    # NumPy's scalars have dtypes, which are kept in any case.
    x = dn.deserialize(dn.serialize(np.float64(0.1), keep_numbers=True))
    assert (x.dtype, x.item()) == ("f64", 0.1)
    # Without the option numbers are tensors of the default dtypes.
    assert dn.deserialize(dn.serialize(0.1)).dtype == "f32"
    with pytest.raises(dn.OptionError, match=r"^save: keep_numbers is True for the format npz"):
        dn.save("x.npz", {"x": 1}, keep_numbers=True)


# Containers that are expected.


def test_leaves_take_the_class_and_the_names_of_what_is_expected(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.npz"
    dn.save(path, {"b": dn.tensor([1.0, 2.0]), "a": dn.tensor(3)})
    like = {"a": 0, "b": dn.template((2,), "f32", names=["row"])}
    back = dn.load(path, like=like)
    assert list(back) == ["a", "b"]
    assert (back["a"].item(), back["b"].names, back["b"].to_list()) == (3, ("row",), [1.0, 2.0])
    dn.save(tmp_path / "x.npy", dn.tensor([1, 2]))
    assert dn.load(tmp_path / "x.npy", like=np.zeros(2, np.int32)).to_list() == [1, 2]


X = dn.tensor([1.0, 2.0])
NAMED = X.rename(["row"])
MISFITS = {
    "another key": ({"x": X}, {"y": X}, "differ in structure: one is {'y': tensor}"),
    "one more entry": ({"p": [X]}, {"p": [X, X]}, r'at ["p"] one is [tensor, tensor]'),
    "another class": ({"o": Adam(1, X, X)}, {"o": (1, X, X)}, 'at ["o"]'),
    "a static value": ({"name": "a"}, {"name": "b"}, """at ["name"] one is 'b', the other 'a'"""),
    "another size": (
        {"p": [X]},
        {"p": [X[:1]]},
        'content["p"][0] is f32[2], like["p"][0] is f32[1]',
    ),
    "another dtype": ((X,), (X.as_type("bf16"),), "content[0] is f32[2], like[0] is bf16[2]"),
    "other names": (NAMED, X.rename(["column"]), "content is f32[row: 2]"),
    "other lanes": (X.vectorize(["v"]), X, "content is vectorized[v: 2] f32"),
    "a number": ([1], [0.5], "content[0] is the int 1, like[0] is the float 0.5"),
    "a vector for a number": ([X], [0.5], "content[0] is f32[2], like[0] is the float 0.5"),
    "a number for a tensor": ([1], [dn.tensor(1)], "content[0] is the int 1, like[0] is s32"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_content_of_another_type_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    value, like, message = MISFITS[name]
    path = tmp_path / "x.defn"
    dn.save(path, value, keep_numbers=True)
    with pytest.raises(dn.ContainerError, match=re.escape(message)) as caught:
        dn.load(path, like=like)
    assert str(caught.value).startswith(f"load: in {path}, ")
    assert __file__ in str(caught.value)


# Damage.


def test_every_damaged_bit_is_found(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.defn"
    dn.save(path, {"x": dn.iota((3,), dtype="u8"), "n": 2}, keep_numbers=True)
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(dn.FormatError, match=re.escape(f"load: in {path}, ")):
            dn.load(path, format="defn")
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(dn.FormatError, match=re.escape(f"load: in {path}, ")):
            dn.load(path)


# Interruptions.


class Killed(BaseException):
    """What a signal's handler may raise, such as ``KeyboardInterrupt``."""


def steps_of_saving(path: pathlib.Path) -> list[str]:
    with interposed(-1, None) as steps:
        dn.save(path, {"x": X})
    return steps.calls


def test_the_bytes_are_on_the_disk_before_they_have_the_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.defn"
    steps_of_saving(path)
    calls = steps_of_saving(path)
    new = [
        "open r+b",
        "close file",
        "open xb",
        "chmod",
        "write",
        "write",
        "fsync",
        "close file",
        "replace",
    ]
    assert calls == [*new, "open", "fsync directory", "close"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes by fork")
def test_a_kill_at_any_step_leaves_one_content(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.defn"
    old, new = dn.serialize({"x": X}), dn.serialize({"x": dn.iota((1000,))})
    steps_of_saving(path)
    calls = steps_of_saving(path)
    found = []
    for stop in range(len(calls)):
        path.write_bytes(old)
        child = os.fork()
        if child == 0:
            # Nothing but system calls: the child has one of this process's threads.
            with interposed(stop, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                _files.write(path, new)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        content = path.read_bytes()
        assert content in (old, new)
        found.append(content == new)
        assert len(dn.load(path)["x"]) == (1000 if found[-1] else 2)
    renamed = calls.index("replace")
    assert found == [at > renamed for at in range(len(calls))]
    # Another save is not in the way of what is left.
    dn.save(path, {"x": X})
    assert path.read_bytes() == old


@pytest.mark.parametrize("error", [Killed(), OSError(28, "No space left on device")], ids=repr)
def test_an_error_at_any_step_leaves_no_trace(error: BaseException, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.defn"
    calls = steps_of_saving(path)
    old = path.read_bytes()

    def happen() -> None:
        raise error

    for stop in range(calls.index("replace") + 1):
        with interposed(stop, happen), pytest.raises(type(error)):
            dn.save(path, {"x": dn.iota((1000,))})
        assert os.listdir(tmp_path) == ["x.defn"]
        assert path.read_bytes() == old


# Paths.


def test_permissions_links_and_pipes(tmp_path: pathlib.Path) -> None:
    path, link = tmp_path / "x.defn", tmp_path / "link.defn"
    before = os.umask(0o027)
    try:
        dn.save(path, X)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to("x.defn")
    dn.save(link, NAMED)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert dn.load(path).names == ("row",)
    dn.save(os.devnull, X, format="npy")
    assert not os.path.isfile(os.devnull)
    with pytest.raises(FileNotFoundError):
        dn.save(tmp_path / "nowhere" / "x.npy", X)
    with pytest.raises(IsADirectoryError):
        dn.save(tmp_path, X, format="npy")


def test_a_long_name_and_a_relative_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "\u4e16" * 80 + ".npy"
    dn.save(name, X)
    assert dn.load(name).to_list() == [1.0, 2.0]
    assert os.listdir() == [name]


def test_a_protected_file_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.npy"
    dn.save(path, X)
    old = path.read_bytes()

    def refuse(path: str, mode: str) -> Any:
        if mode == "r+b":
            raise PermissionError(13, "Permission denied", path)
        return builtins.open(path, mode)

    # The superuser may write protected files.
    monkeypatch.setattr(_files, "open", refuse, raising=False)
    with pytest.raises(PermissionError):
        dn.save(path, X + 1)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["x.npy"]
