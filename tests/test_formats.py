"""Files and bytes: round trips, NumPy and safetensors as oracles, and every way to damage them."""

from __future__ import annotations

import collections
import dataclasses
import enum
import io
import pathlib
import struct
import sys
import tracemalloc
import zipfile
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
from cases import store
from cases.dtypes import ALL

NUMPYS = [
    name
    for name in ALL
    if name not in ("u2", "u4", "s2", "s4", "f8", "f8_e5m2", "f8_e4m3fn", "bf16")
]
TENSORS = [name for name in ALL if name not in ("u2", "u4", "s2", "s4", "c128")]


def written(value: Any, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    dn.save(file, value, format=format, **options)
    return file.getvalue()


def read(data: bytes, **options: Any) -> Any:
    return dn.load(io.BytesIO(data), **options)


def npy(array: np.ndarray, **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def same(x: dn.Tensor, y: dn.Tensor) -> bool:
    kinds = [(t.dtype, t.shape, t.names, t.vectorized_axes) for t in (x, y)]
    return kinds[0] == kinds[1] and x.to_binary() == y.to_binary()


SHAPES = [(), (0,), (1,), (3,), (2, 3), (2, 0, 3), (1, 2, 1, 2)]


def of(dtype: str, shape: tuple[int, ...]) -> dn.Tensor:
    return dn.tensor(np.resize(store([1, 0, 1, 1], dtype), shape))


# NumPy's files.


@pytest.mark.parametrize("dtype", NUMPYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_reads_what_is_written(dtype: str, shape: tuple[int, ...]) -> None:
    x = of(dtype, shape)
    data = written(x, "npy")
    array = np.load(io.BytesIO(data))
    assert (array.dtype, array.shape) == (x.to_numpy().dtype, shape)
    assert array.tobytes() == x.to_numpy().tobytes()
    assert same(read(data), x)
    assert data == npy(x.to_numpy(), version=(1, 0)), "byte for byte as NumPy writes it"


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16", "b1"])
def test_every_layout_of_numpys(version, order: str, endian: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        values = rng.integers(0, 2, size=shape) if kind == "b1" else rng.normal(size=shape) * 50
        array = np.asarray(values, order=order).astype(endian + kind, order=order)
        x = dn.load_numpy(npy(array, version=version))
        assert x.shape == shape
        assert (x.to_numpy() == array).all()
        assert x.dtype == ("bool" if kind == "b1" else array.dtype.newbyteorder("="))


@given(
    hnp.arrays(
        st.sampled_from(["<i4", ">i4", "<f8", ">u2", "|u1", ">c8", "|b1"]),
        hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
    ),
    st.booleans(),
)
def test_any_array_is_loaded(array: np.ndarray, is_turned: bool) -> None:
    array = np.asfortranarray(array) if is_turned else array
    loaded = dn.load_numpy(npy(array)).to_numpy()
    want = array.astype(np.uint8) if array.dtype == bool else array
    assert loaded.shape == array.shape
    assert loaded.tobytes() == want.astype(loaded.dtype).tobytes()


def test_the_types_of_ml_dtypes() -> None:
    array = np.array([1, -2, 0.5], dtype=ml_dtypes.bfloat16)
    assert dn.load_numpy(npy(array)).to_list() == [1.0, -2.0, 0.5]
    assert written(dn.tensor(array), "npy") == npy(array)
    array = np.array([1, -2, 0.5], dtype=ml_dtypes.float8_e5m2)
    assert dn.load_numpy(npy(array)).dtype == "f8_e5m2"
    for name, values in [
        ("float8_e4m3fn", [1, -2, 0.5]),
        ("int4", [1, -8, 7]),
        ("uint2", [1, 3, 0]),
    ]:
        array = np.array(values, dtype=getattr(ml_dtypes, name))
        dtype = dn.tensor(array).dtype
        with pytest.raises(dn.DTypeError, match="dtype="):
            dn.load_numpy(npy(array))
        assert dn.load_numpy(npy(array), dtype=dtype).to_list() == values
        with pytest.raises(dn.DTypeError, match="as_type"):
            written(dn.tensor(array), "npy")


@pytest.mark.parametrize("kind", ["O", "U3", "S3", "M8[s]", "m8[s]", "V3", "g", [("a", "<i4")]])
def test_elements_without_a_counterpart(kind: Any) -> None:
    file = io.BytesIO()
    np.save(file, np.zeros(2, dtype=kind), allow_pickle=True)
    with pytest.raises(dn.DTypeError, match="no counterpart"):
        dn.load_numpy(file.getvalue())


HEADERS = [
    "", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} # no",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 0, 8)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1, " * 65 + ")}",
    "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
    "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
    "__import__('os').system('true')",
    "{'descr': " + "(" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_that_are_refused(header: str, version: int) -> None:
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    data = b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + bytes(8)
    with pytest.raises((dn.FormatError, dn.DTypeError)):
        dn.load_numpy(data)


def test_a_long_header_is_not_read() -> None:
    data = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{"
    with pytest.raises(dn.FormatError, match="long"):
        dn.load_numpy(data)


# Archives.


@pytest.mark.parametrize("compressed", [False, True])
def test_archives(compressed: bool) -> None:
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "empty": np.zeros((0, 2), np.int8),
        "scalar": np.float64(2.5),
        "fortran/x": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "ä": np.zeros(100_000, np.uint8),
    }
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    loaded = dn.load_numpy(file.getvalue())
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].shape == np.shape(array)
        assert (loaded[name].to_numpy() == array).all()
    data = written(loaded, "npz", compressed=compressed)
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    assert (len(data) < 20_000) is compressed
    back = np.load(io.BytesIO(data))
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert (back[name] == array).all()
    again = read(data)
    assert all(same(again[name], loaded[name]) for name in arrays)


def test_archives_without_arrays() -> None:
    file = io.BytesIO()
    np.savez(file)
    assert dn.load_numpy(file.getvalue()) == {}
    assert np.load(io.BytesIO(written({}, "npz"))).files == []
    assert read(written({}, "npz")) == {}


def archive(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return file.getvalue()


def test_archives_with_a_comment_and_old_sizes() -> None:
    file = io.BytesIO(archive({"a.npy": npy(np.arange(3))}))
    with zipfile.ZipFile(file, "a") as made:
        made.comment = b"PK\x05\x06 is not the end"
    assert dn.load_numpy(file.getvalue())["a"].to_list() == [0, 1, 2]


def test_archives_that_are_refused() -> None:
    data = archive({"a.npy": npy(np.arange(3))})
    central = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")

    def changed(at: int, new: bytes) -> bytes:
        return data[:at] + new + data[at + len(new) :]

    huge = struct.pack("<I", 2**31)
    for bad in (
        changed(central + 8, b"\x01"),  # Encrypted.
        changed(central + 10, b"\x0e"),  # Compressed by LZMA.
        changed(central + 24, huge),  # Inflated to more than deflate allows.
        changed(central + 20, huge),  # Longer than the file.
        changed(central + 42, huge),  # Outside the file.
        changed(end + 10, b"\x02"),  # More entries than there are.
        changed(end + 4, b"\x01"),  # One of several disks.
        changed(end + 16, huge),  # A directory outside the file.
        changed(end + 12, huge),
        archive({"a.txt": b"text"}),
        archive({"a.npy": b"text"}),
        archive({"a.npy": npy(np.arange(3)) + b"x"}),
        archive({"a.npy": npy(np.arange(3))}, zipfile.ZIP_BZIP2),
    ):
        with pytest.raises(dn.FormatError):
            dn.load_numpy(bad)
    # Both entries get the same name, whose length does not change.
    data = archive({"a.npy": npy(np.arange(3)), "b.npy": npy(np.arange(3))})
    with pytest.raises(dn.FormatError, match="twice"):
        dn.load_numpy(data.replace(b"b.npy", b"a.npy"))


def test_entries_may_not_overlap() -> None:
    """Many entries that share one piece of data could inflate without bound."""
    data = archive({"a.npy": npy(np.zeros(10_000)), "b.npy": npy(np.zeros(10_000))})
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 1)
    bad = data[: second + 42] + data[first + 42 : first + 46] + data[second + 46 :]
    with pytest.raises(dn.FormatError, match="overlap"):
        dn.load_numpy(bad)


def test_an_archive_that_promises_more_than_there_is() -> None:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4000000000,)}".ljust(117) + "\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    data = bytearray(archive({"a.npy": start + bytes(4_500_000)}))
    central = data.index(b"PK\x01\x02")
    data[central + 24 : central + 28] = struct.pack("<I", 4_000_000_000 + len(start))
    tracemalloc.start()
    with pytest.raises((dn.FormatError, dn.OutOfMemoryError)):
        dn.load_numpy(bytes(data))
    tracemalloc.stop()


# Safetensors.


@pytest.mark.parametrize("dtype", TENSORS)
def test_safetensors(dtype: str) -> None:
    tensors = {f"t{i}": of(dtype, shape) for i, shape in enumerate(SHAPES)}
    data = written(tensors, "safetensors")
    loaded = read(data)
    assert sorted(loaded) == sorted(tensors)
    assert all(same(loaded[name], tensor) for name, tensor in tensors.items())
    if dtype != "c64":
        oracle = safetensors.deserialize(data)
        assert {name: (entry["shape"], bytes(entry["data"])) for name, entry in oracle} == {
            name: (list(t.shape), t.to_numpy().tobytes()) for name, t in tensors.items()
        }


def test_safetensors_are_read_as_the_package_writes_them() -> None:
    arrays = {
        "b": np.arange(6, dtype=np.float64).reshape(2, 3),
        'a "quoted" \u00e4\n': np.array([True, False]),
        "c": np.arange(3, dtype=np.uint16),
        "h": np.float16(0.5),
    }
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    data = safetensors.numpy.save(arrays, metadata={"by": "the package", "n": '{"a": [1]}'})
    loaded = read(data)
    assert sorted(loaded) == sorted(arrays)
    for name, array in arrays.items():
        assert (loaded[name].to_numpy() == array).all()
    ours = written(loaded | {'a "quoted" \u00e4\n': loaded["c"]}, "safetensors")
    back = safetensors.numpy.load(ours)
    assert (back['a "quoted" \u00e4\n'] == arrays["c"]).all()
    plain = {"b": arrays["b"], "c": arrays["c"], "h": arrays["h"]}
    assert written({n: dn.tensor(a) for n, a in plain.items()}, "safetensors") == (
        safetensors.numpy.save(plain)
    ), "byte for byte as the package writes it"


ENTRY = '"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
BAD_HEADERS = [
    "", "{", "[]", "null", "{" + ENTRY, "{" + ENTRY + "}x", "{" + ENTRY + "," + ENTRY + "}",
    "{" + ENTRY.replace("[0,2]", "[0,3]") + "}", "{" + ENTRY.replace("[0,2]", "[1,3]") + "}",
    "{" + ENTRY.replace("[0,2]", "[2,0]") + "}", "{" + ENTRY.replace("[0,2]", "[0]") + "}",
    "{" + ENTRY.replace("[0,2]", "[0,99999999999999999999]") + "}",
    "{" + ENTRY.replace("[2]", "[3]") + "}", "{" + ENTRY.replace("[2]", "[-2]") + "}",
    "{" + ENTRY.replace("[2]", "[4294967296,4294967296,2]") + "}",
    "{" + ENTRY.replace("U8", "X8") + "}", "{" + ENTRY.replace('"U8"', "8") + "}",
    "{" + ENTRY.replace('"dtype":"U8",', "") + "}", "{" + ENTRY + ',"b":3}',
    "{" + ENTRY.replace('"a"', '"\\ud800"') + "}",
    '{"__metadata__":' + "[" * 100_000 + "]" * 100_000 + "," + ENTRY + "}",
    "{" + ENTRY + ',"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}',
]  # fmt: skip


@pytest.mark.parametrize("header", BAD_HEADERS, ids=range(len(BAD_HEADERS)))
def test_headers_of_safetensors_that_are_refused(header: str) -> None:
    data = struct.pack("<Q", len(header)) + header.encode() + b"ab"
    with pytest.raises((dn.FormatError, dn.DTypeError)):
        read(data, format="safetensors")
    if header.count('"a"') < 2:
        # The package accepts several entries of one name, and takes the last.
        with pytest.raises(safetensors.SafetensorError):
            safetensors.deserialize(data)


def test_lengths_of_safetensors_that_are_refused() -> None:
    for length in (1, 10**9, 2**63, 2**64 - 1):
        with pytest.raises(dn.FormatError):
            read(struct.pack("<Q", length) + b"{", format="safetensors")


# Our own format.


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any
    kind: dn.Static[Kind] = Kind.ONE
    dtype: dn.Static[Any] = None
    sizes: dn.Static[Any] = ()


class Registered:
    def __init__(self, left: Any, right: Any, name: str) -> None:
        self.left, self.right, self.name = left, right, name


dn.register_container(
    Registered, lambda r: ([r.left, r.right], r.name), lambda name, c: Registered(*c, name)
)


@pytest.mark.parametrize("dtype", ALL)
def test_tensors_come_back(dtype: str) -> None:
    for shape in SHAPES:
        x = of(dtype, shape)
        assert same(dn.deserialize(dn.serialize(x)), x)
        assert same(read(written(x, "defn")), x)
        named = x.rename([f"n{axis}" if axis % 2 == 0 else None for axis in range(x.rank)])
        assert same(dn.deserialize(dn.serialize(named)), named)
        if len(shape) > 1:
            vectorized = dn.vectorize(x, ["v", ("w", shape[1])])
            assert same(dn.deserialize(dn.serialize(vectorized)), vectorized)


def test_containers_come_back() -> None:
    x, y = dn.iota((2, 3), names=["a", None]), dn.tensor([0.5], dtype="bf16")
    value = {
        "tuple": (x, [y, None, True, "text"], ()),
        ("key", 1): Point(x, {2: y, None: x}),
        "layer": Layer(x, Point(y, y), Kind.TWO, dn.bf16, (1, 2.5, -(10**40), b"b", 1j, [None])),
        "registered": Registered(x, {"deep": y}, "name"),
        "ordered": collections.OrderedDict(z=x, a=y),
        "number": 3,
        "array": np.arange(2, dtype=np.int16),
        "nan": Layer(x, y, sizes=(float("nan"), float("inf"), -0.0)),
    }
    back = dn.deserialize(dn.serialize(value))
    assert list(back) == list(value)
    assert same(back["tuple"][0], x)
    assert back["tuple"][1][1:] == [None, True, "text"]
    assert back["tuple"][2] == ()
    point = back["key", 1]
    assert type(point) is Point
    assert same(point.x, x)
    assert list(point.y) == [2, None]
    layer = back["layer"]
    assert type(layer) is Layer
    assert (layer.kind, layer.dtype) == (Kind.TWO, dn.bf16)
    assert layer.sizes == value["layer"].sizes
    assert type(layer.bias) is Point
    assert back["registered"].name == "name"
    assert same(back["registered"].right["deep"], y)
    assert type(back["ordered"]) is collections.OrderedDict
    assert list(back["ordered"]) == ["z", "a"]
    assert (back["number"].dtype, back["number"].item()) == ("s32", 3)
    assert (back["array"].dtype, back["array"].to_list()) == ("s16", [0, 1])
    assert str(back["nan"].sizes) == "(nan, inf, -0.0)"


def test_only_classes_that_are_there_are_made() -> None:
    module = type(sys)("made_up")
    sys.modules["made_up"] = module
    module.Point = Point
    try:
        made = type("Hidden", (), {"__module__": "made_up"})
        module.Hidden = made
        with pytest.raises(dn.ContainerError):
            dn.serialize(made())
    finally:
        del sys.modules["made_up"]
    # A class that is not a container is not called, whatever the data says.
    data = dn.serialize(Point(dn.tensor(1), None))
    name = f"{Point.__module__}".encode()
    assert name in data
    hostile = data.replace(struct.pack("<I", len(name)) + name, b"\x08\0\0\0builtins")
    hostile = resealed(hostile.replace(b"\x05\0\0\0Point", b"\x05\0\0\0slice"))
    with pytest.raises((dn.ContainerError, dn.FormatError)):
        dn.deserialize(hostile)


def resealed(data: bytes) -> bytes:
    """The data with a correct checksum."""
    import zlib

    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def test_other_byte_orders() -> None:
    """Elements in the other byte order are swapped; everything else is always little-endian."""
    x = dn.tensor([1, 2, 258], dtype="s32")
    data = bytearray(dn.serialize(x))
    start = len(data) - 4 - 12
    assert data[12] == (1 if sys.byteorder == "little" else 2)
    data[12] = 3 - data[12]
    data[start : start + 12] = x.to_numpy().byteswap().tobytes()
    assert dn.deserialize(resealed(bytes(data))).to_list() == [1, 2, 258]
    data[12] = 7
    with pytest.raises(dn.FormatError, match="byte order"):
        dn.deserialize(resealed(bytes(data)))


def test_the_description_in_the_documentation() -> None:
    """`docs/formats.md` shows the bytes of a small tensor, which must be those that are written."""
    text = (pathlib.Path(__file__).parents[1] / "docs" / "formats.md").read_text()
    block = text.split("```text\n")[1].split("```")[0]
    shown = bytes.fromhex("".join(line.split("|")[0].strip() for line in block.splitlines()))
    assert shown == dn.serialize({"x": dn.tensor([1, 2, 3], dtype="u8", names=["a"])})


def test_nesting_is_bounded() -> None:
    deep: Any = dn.tensor(1)
    for _ in range(200):
        deep = [deep]
    back = dn.deserialize(dn.serialize(deep))
    for _ in range(200):
        (back,) = back
    assert back.item() == 1
    for _ in range(200):
        deep = (deep,)
    with pytest.raises(dn.ContainerError, match="deep"):
        dn.serialize(deep)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(dn.ContainerError, match="deep"):
        dn.serialize(endless)
    data = dn.serialize([])
    structure = b"\x03\x01\x00\x00\x00" * 100_000 + b"\x06"
    head = data[:16] + struct.pack("<Q", len(structure)) + structure
    hostile = head + bytes(-len(head) % 64) + bytes(4)
    with pytest.raises(dn.FormatError, match="deep"):
        dn.deserialize(resealed(hostile))


# Damage.


def model() -> dict[str, dn.Tensor]:
    return {"w": dn.iota((3, 4), dtype="f32"), "b": dn.tensor([True, False]), "n": dn.tensor(7)}


VALID = {
    "npy": lambda: written(dn.iota((3, 4)), "npy"),
    "npz": lambda: written(model(), "npz"),
    "npz deflated": lambda: written(model(), "npz", compressed=True),
    "safetensors": lambda: written(model(), "safetensors"),
    "defn": lambda: dn.serialize([model(), Layer(dn.tensor([1, 2], dtype="u4"), None), "text"]),
}
ERRORS = (dn.FormatError, dn.DTypeError, dn.ContainerError, dn.OutOfMemoryError)


@pytest.mark.parametrize("name", VALID)
def test_every_truncation_is_an_error(name: str) -> None:
    data = VALID[name]()
    format = name.split()[0]
    for length in range(len(data)):
        with pytest.raises(ERRORS):
            read(data[:length], format=format)
    with pytest.raises(ERRORS):
        read(data + b"\0", format=format)


@pytest.mark.parametrize("name", VALID)
@given(data=st.data())
def test_changed_bytes_do_no_harm(name: str, data: st.DataObject) -> None:
    """The result is an error of ours or a value, never a crash, and never much memory."""
    valid = bytearray(VALID[name]())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(valid) - 1))
        valid[at] = data.draw(st.integers(0, 255))
    format = name.split()[0]
    changed = bytes(valid)
    for attempt in (changed, resealed(changed)) if format == "defn" else (changed,):
        try:
            value = read(attempt, format=format)
        except ERRORS:
            continue
        leaves = value.values() if isinstance(value, dict) else [value]
        for leaf in leaves:
            if isinstance(leaf, dn.Tensor):
                assert len(leaf.to_binary()) <= 8 * len(attempt)


@given(st.binary(max_size=300), st.sampled_from(["npy", "npz", "safetensors", "defn", None]))
def test_noise_is_an_error(noise: bytes, format: str | None) -> None:
    with pytest.raises(ERRORS):
        read(noise, format=format)
    for start in (b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\x89DEFN\r\n\x1a\x01\0\0\0\x01\0\0\0"):
        with pytest.raises(ERRORS):
            read(start + noise)


# Files.


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "defn"])
def test_paths(tmp_path: pathlib.Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    value = dn.iota((3,)) if suffix == "npy" else {"a": dn.iota((3,))}
    assert dn.save(path, value) is None
    loaded = dn.load(str(path))
    assert (loaded if suffix == "npy" else loaded["a"]).to_list() == [0, 1, 2]
    # The first bytes identify the format.
    other = path.rename(tmp_path / "y.bin")
    assert type(dn.load(other)) is type(value)
    there = dn.backends.NumPyBackend()
    moved = dn.load(other, backend=there)
    assert (moved if suffix == "npy" else moved["a"]).backend == there
    with pytest.raises(FileNotFoundError):
        dn.load(path)


def test_nothing_is_written_when_saving_fails(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"before")
    with pytest.raises(dn.ContainerError):
        dn.save(path, {"a": "text"})
    with pytest.raises(dn.TraceError):
        dn.jit(lambda x: (dn.save(path, {"a": x}), x)[1])(1.0)
    assert path.read_bytes() == b"before"


def test_large_elements_are_not_copied() -> None:
    """The tensors of a file use the memory of the bytes that were read."""
    data = written(dn.broadcast(dn.tensor(1.0), (1000, 1000)), "npy")
    x = dn.load_numpy(data, backend="cpu")
    address = dn.to_pointer(x).address
    start = np.frombuffer(data, np.uint8).ctypes.data
    assert start <= address < start + len(data)
    assert x.sum().item() == 1_000_000
