"""Compiled functions in files: loaded in another process, refused where they do not belong."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import defn as dn

HEAD = 16


@dataclass
class Layer:
    weights: dn.Tensor
    bias: dn.Tensor


def affine(layer: Layer, x: dn.Tensor) -> dict[str, dn.Tensor]:
    y = dn.tanh(x @ layer.weights + layer.bias)
    return {"y": y, "x": x, "sum": dn.sum(y * 0.1)}


def arguments() -> tuple[Layer, dn.Tensor]:
    rng = np.random.default_rng(7)
    draw = lambda *shape: dn.tensor(rng.standard_normal(shape).astype(np.float32))  # noqa: E731
    return Layer(draw(5, 3), draw(3)), draw(4, 5)


OTHER_PROCESS = """
import sys
import numpy as np
import defn as dn
sys.path.insert(0, {tests!r})
import test_pjrt_saved as here
given = here.arguments()
out = dn.pjrt.load({path!r}, trust=True)(*given)
assert dn.pjrt.cache_report().compiles == 0
assert out["x"] is given[1]
np.savez({results!r}, **{{name: value.to_numpy() for name, value in out.items()}})
"""


def test_another_process_computes_the_same_bits(tmp_path: Path):
    path, results = tmp_path / "affine.executable", tmp_path / "results.npz"
    compiled = dn.pjrt.compile(affine, arguments())
    compiled.save(path)
    expected = compiled(*arguments())
    tests = str(Path(__file__).parent)
    program = OTHER_PROCESS.format(tests=tests, path=str(path), results=str(results))
    subprocess.run([sys.executable, "-c", program], check=True)
    with np.load(results) as found:
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert found[name].tobytes() == value.to_numpy().tobytes()


def test_files_and_bytes_are_the_same():
    compiled = dn.pjrt.compile(dn.add, [dn.template((2,), "f32"), dn.template((), "f32")])
    file = io.BytesIO()
    compiled.save(file)
    file.seek(0)
    again = dn.pjrt.load(file, trust=True)
    assert repr(again) == repr(compiled)
    assert again(dn.tensor([1.0, 2.0]), 10.0).to_list() == [11.0, 12.0]
    # A loaded executable is saved unchanged.
    assert again.serialize() == file.getvalue()
    third = dn.pjrt.deserialize(again.serialize(), client="host", device_id=2, trust=True)
    out = third(dn.tensor([1.0, 2.0]), 10.0)
    assert (out.to_list(), str(out.backend)) == ([11.0, 12.0], "PJRT(client='host', device_id=2)")


FOLDER = """
import pathlib, sys
import defn as dn
folder = pathlib.Path(sys.argv[1])
fun = lambda x: dn.sin(x) * 3.25 + dn.sum(x)
compiled = dn.pjrt.compile(fun, [dn.template((3,), "f32")], cache_dir=folder)
again = dn.pjrt.deserialize(compiled.serialize(), trust=True)
x = dn.tensor([1.0, 2.0, 3.0])
assert again(x).to_list() == compiled(x).to_list()
if dn.pjrt.cache_report().disk_hits:
    for file in folder.iterdir():
        file.unlink()
    try:
        compiled.serialize()
    except dn.CompileError as error:
        print("whose file is gone" in str(error))
"""


def test_what_came_from_a_folder_is_saved(tmp_path: Path):
    command = [sys.executable, "-c", FOLDER, str(tmp_path / "programs")]
    said = [subprocess.run(command, check=True, capture_output=True).stdout for _ in range(2)]
    assert said == [b"", b"True\n"]


def test_types_names_and_vectorized_axes_are_kept():
    x = dn.vectorize(dn.iota((3, 2), dtype="f32"), "rows")
    named = dn.tensor([1.0, 2.0], names=["x"])
    compiled = dn.pjrt.compile(lambda a, b: (a * b, b), [x, named])
    again = dn.pjrt.deserialize(compiled.serialize(), trust=True)
    for got, want in zip(again(x, named), compiled(x, named), strict=True):
        assert (got.vectorized_axes, got.names) == (want.vectorized_axes, want.names)
        assert dn.devectorize(got).to_list() == dn.devectorize(want).to_list()
    with pytest.raises(dn.ShapeError, match=r"argument args\[1\] is f32\[3\].*f32\[x: 2\]"):
        again(x, dn.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(dn.ContainerError):
        again(x, [named])


def test_captured_tensors_keep_their_values():
    state = {"scale": dn.tensor([2.0, 3.0]), "steps": np.float32(1)}
    fun = lambda x: x * state["scale"] + state["steps"]  # noqa: E731
    compiled = dn.pjrt.compile(fun, [dn.template((2,), "f32")])
    data = compiled.serialize()
    state["scale"] = dn.tensor([0.0, 0.0])
    assert compiled(dn.tensor([1.0, 1.0])).to_list() == [1.0, 1.0]
    assert dn.pjrt.deserialize(data, trust=True)(dn.tensor([1.0, 1.0])).to_list() == [3.0, 4.0]


def test_donation_is_kept():
    compiled = dn.pjrt.compile(dn.add, [dn.template((2,), "f32")] * 2, donate=0)
    again = dn.pjrt.deserialize(compiled.serialize(), trust=True)
    x, y = (dn.tensor([1.0, 2.0], backend="pjrt") for _ in range(2))
    assert again(x, y).to_list() == [2.0, 4.0]
    with pytest.raises(dn.BackendError, match="donated"):
        x.to_list()
    assert y.to_list() == [1.0, 2.0]


def test_damage_is_an_error():
    data = dn.pjrt.compile(dn.add, [dn.template((2,), "f32")] * 2).serialize()
    for length in [0, 1, HEAD, HEAD + 31, HEAD + 40, len(data) // 2, len(data) - 1]:
        with pytest.raises(dn.FormatError, match="load: "):
            dn.pjrt.deserialize(data[:length], trust=True)
    for at in range(0, len(data), max(1, len(data) // 97)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(dn.FormatError, match="load: "):
            dn.pjrt.deserialize(damaged, trust=True)


def sealed(data: bytes, body: bytes) -> bytes:
    """Bytes with a checksum that fits them."""
    return data[:HEAD] + hashlib.sha256(len(body).to_bytes(8, "little") + body).digest() + body


def test_foreign_bytes_are_an_error():
    data = dn.pjrt.compile(dn.add, [dn.template((2,), "f32")] * 2).serialize()
    for other in (b"\x7fELF" * 100, dn.serialize({"a": 1.0}), bytes(4096)):
        with pytest.raises(dn.FormatError, match="no executable of this version"):
            dn.pjrt.deserialize(other, trust=True)
    body = data[HEAD + 32 :]
    whole = dn.pjrt.deserialize(sealed(data, body), trust=True)
    assert whole(np.ones(2, "f4"), np.ones(2, "f4")).to_list() == [2.0, 2.0]
    for other in (b"", body[:-8], body + b"\x01", b"\xff" * 64, body[:8] + b"\xff" + body[9:]):
        with pytest.raises((dn.FormatError, dn.CompileError), match="load: "):
            dn.pjrt.deserialize(sealed(data, other), trust=True)


def test_what_is_loaded_is_trusted(tmp_path: Path):
    compiled = dn.pjrt.compile(dn.add, [dn.template((2,), "f32")] * 2)
    compiled.save(tmp_path / "file")
    for trust in (False, None, 1, "yes", np.True_):
        with pytest.raises(dn.OptionError, match=r"load: an executable is native code.*trust=True"):
            dn.pjrt.load(tmp_path / "file", trust=trust)
        with pytest.raises(dn.OptionError, match=f"trust is {trust!r}, trust=True is required"):
            dn.pjrt.deserialize(compiled.serialize(), trust=trust)
    with pytest.raises(dn.OptionError, match="trust is False"):
        dn.pjrt.load(tmp_path / "file")
    with pytest.raises(dn.OptionError, match="trust is False"):
        dn.pjrt.deserialize(b"")


PRIVATE = """
import pathlib, sys, warnings
import defn as dn
folder = pathlib.Path(sys.argv[1])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for scale in (2.5, 3.5):
        fun = dn.pjrt.jit(lambda x: dn.sin(x) * scale, cache_dir=folder)
        fun(1.0), fun(2.0)
report = dn.pjrt.cache_report()
print(report.disk_hits, report.compiles, len(list(folder.iterdir())), len(seen))
print(*{str(warning.message) for warning in seen})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes there")
def test_the_folder_of_programs_is_the_users_own(tmp_path: Path):
    def run(folder: Path) -> list[str]:
        command = [sys.executable, "-c", PRIVATE, str(folder)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return said.splitlines()

    folder = tmp_path / "made" / "programs"
    hits, compiles, files, warned = map(int, run(folder)[0].split())
    assert (hits, files, warned) == (0, 2, 0)
    assert compiles >= 2
    for made in (folder, folder.parent):
        assert made.stat().st_mode & 0o777 == 0o700
    assert run(folder)[0].split() == ["2", str(compiles - 2), "2", "0"]

    # Other users with write access could have replaced the code.
    folder.chmod(0o770)
    counts, text = run(folder)
    assert counts.split() == ["0", str(compiles), "2", "1"]
    assert text == (
        f"the folder {folder} of compiled programs may be written by others (mode 770) and is not "
        "used, one of the user's own that nobody else may write is required"
    )
    folder.chmod(0o700)
    one, other = folder.iterdir()
    one.chmod(0o666)
    assert run(folder)[0].split()[0] == "1", "a file that others may write is not read"
    one.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(other, 12345, 12345)
        assert run(folder)[0].split()[0] == "1", "nor one of another user"
        os.chown(folder, 12345, 12345)
        counts, text = run(folder)
        assert counts.split()[0] == "0"
        assert "belongs to user 12345 and this process to user 0" in text


def of_another_processor() -> bytes:
    """A saved executable that says that it was made elsewhere."""
    data = dn.pjrt.compile(dn.add, [dn.template((2,), "f32")] * 2).serialize()
    body = data[HEAD + 32 :]
    length = int.from_bytes(body[:8], "little")
    assert body[8 : 8 + length].startswith(b"cpu (")
    other = b"cpu (abacus)"
    moved = len(other).to_bytes(8, "little") + other + body[8 + length :]
    return sealed(data, moved)


def test_another_processor_is_named():
    with pytest.raises(dn.CompileError, match=r"is for cpu \(abacus\) and this is cpu \("):
        dn.pjrt.deserialize(of_another_processor(), trust=True)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: dn.hook(x, print),
        lambda x: dn.print_value(x),
        lambda x: dn.runtime_call(dn.template((), "f32"), x, lambda x: x),
    ],
)
def test_what_asks_the_host_is_not_saved(fun):
    compiled = dn.pjrt.compile(fun, [dn.template((), "f32")])
    with pytest.raises(dn.CompileError, match="save: the program shows values to the host"):
        compiled.serialize()


def test_only_what_is_compiled_is_saved(tmp_path: Path):
    compiled = dn.compile(dn.add, [dn.template((2,), "f32")] * 2, compiler="evaluator")
    with pytest.raises(dn.CompileError, match='such as "pjrt"'):
        compiled.save(tmp_path / "file")
    with dn.checks("nan"):
        checked = dn.pjrt.compile(dn.add, [dn.template((2,), "f32")] * 2)
    with pytest.raises(dn.CompileError, match="with checks"):
        checked.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_targets_are_looked_for():
    template = [dn.template((2,), "f32")]
    with pytest.raises(dn.CompileError, match=r'the target "abacus" is unknown.*"h200"'):
        dn.compile(dn.exp, template, compiler="pjrt", target="abacus", client="host")
    with pytest.raises(dn.OptionError, match="target is 3"):
        dn.compile(dn.exp, template, compiler="pjrt", target=3)
    with pytest.raises(dn.OptionError, match="device_id is given for the target"):
        dn.compile(dn.exp, template, compiler="pjrt", target="h200", device_id=1)
    with pytest.raises(dn.BackendError, match='"abacus" is unknown'):
        dn.compile(dn.exp, template, compiler="pjrt", target="h200", client="abacus")
    # XLA's plugin for the CPU supports no other device.
    with pytest.raises(dn.Error, match="not supported"):
        dn.compile(dn.exp, template, compiler="pjrt", target="h200", client="host")
