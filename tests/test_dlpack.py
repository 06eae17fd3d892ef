"""DLPack and the buffer protocol, with NumPy and JAX as partners, and with invalid capsules."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
from cases import store
from cases.dtypes import ALL

NUMPYS = [
    "bool",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "f16",
    "f32",
    "f64",
    "c64",
    "c128",
]


class Only:
    """An array that offers only DLPack, with or without the protocol's versions."""

    def __init__(self, array: Any, versioned: bool = True) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and options:
            raise TypeError("no options are known")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def address(x: dn.Tensor) -> int:
    return dn.to_pointer(x).address


# Exports.


@pytest.mark.parametrize("dtype", NUMPYS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 3), (2, 0)])
def test_numpy_takes_tensors(dtype: str, shape: tuple[int, ...]) -> None:
    x = dn.tensor(np.resize(store([1, 0, 1], dtype), shape))
    array = np.from_dlpack(x)
    assert (array.dtype, array.shape) == (x.to_numpy().dtype, shape)
    assert array.tobytes() == x.to_numpy().tobytes()
    assert not array.flags.writeable
    if x.size:
        assert array.ctypes.data == address(x), "nothing is copied"
    copied = np.from_dlpack(x, copy=True)
    assert copied.tobytes() == array.tobytes()
    assert copied.size == 0 or copied.ctypes.data != address(x)


def test_what_was_lent_stays() -> None:
    x = dn.iota((1000,))
    array = np.from_dlpack(x)
    assert dn.backend_deallocate(x) == "ok"
    del x
    gc.collect()
    assert array.tolist() == list(range(1000))


def test_consumers_without_versions_get_a_copy() -> None:
    """A capsule without a version cannot say that the elements are read-only."""
    x = dn.iota((4,))
    capsule = x.__dlpack__()
    assert '"dltensor"' in repr(capsule)
    taken = dn.tensor(Given(capsule), copy=False, backend="cpu")
    assert taken.to_list() == x.to_list()
    assert address(taken) != address(x)
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(2, 5)))
    assert '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))


def test_requests_that_cannot_be_met() -> None:
    x = dn.iota((4,))
    assert x.__dlpack_device__() == (1, 0)
    for options in ({"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises(BufferError):
            x.__dlpack__(max_version=(1, 1), **options)
    small = dn.tensor([1, 0], dtype="u4")
    for version in (None, (1, 0)):
        with pytest.raises(BufferError, match="u4"):
            small.__dlpack__(max_version=version)
    with pytest.raises(dn.TraceError):
        dn.jit(lambda t: (t.__dlpack__(), t)[1])(1.0)
    with pytest.raises(dn.TraceError):
        dn.template((2,), "f32").__dlpack__()
    dn.backend_deallocate(x)
    with pytest.raises(dn.BackendError, match="freed"):
        np.from_dlpack(x)


@pytest.mark.parametrize("dtype", ALL)
def test_tensors_take_tensors(dtype: str) -> None:
    x = dn.tensor(np.resize(store([1, 0, 1, 1], dtype), (2, 3)))
    y = dn.tensor(Only(x), names=["a", None], backend="cpu")
    assert (y.dtype, y.names, y.to_list()) == (x.dtype, ("a", None), x.to_list())
    if dn.dtype(dtype).bits >= 8:
        assert address(y) == address(x), "nobody can write it"
        assert address(dn.tensor(Only(x), copy=True, backend="cpu")) != address(x)
    else:
        with pytest.raises(dn.OptionError, match="unused bits"):
            dn.tensor(Only(x), copy=False, backend="cpu")


def test_jax_takes_tensors_and_gives_them() -> None:
    import jax

    x = dn.iota((2, 3), dtype="f32")
    assert jax.numpy.from_dlpack(x).tolist() == x.to_list()
    for dtype in ("float32", "int8", "uint16", "bfloat16", "float8_e5m2", "bool"):
        array = jax.numpy.arange(6).reshape(2, 3).astype(dtype)
        y = dn.tensor(array)
        assert y.to_list() == np.asarray(array).astype(np.float64).tolist()
    kept = dn.tensor(jax.numpy.arange(100_000), copy=False, backend="cpu")
    gc.collect()
    assert kept.sum().item() == 4_999_950_000 % 2**32
    assert (x + jax.numpy.ones((3,))).to_list() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


# Imports.


def test_writable_memory_is_copied_unless_promised() -> None:
    array = np.arange(4)
    x, y = (dn.tensor(Only(array), copy=copy, backend="cpu") for copy in (None, False))
    array[0] = 7
    assert x.to_list() == [0, 1, 2, 3]
    assert y.to_list() == [7, 1, 2, 3]
    assert address(y) == array.ctypes.data
    frozen = np.arange(4)
    frozen.flags.writeable = False
    assert address(dn.tensor(Only(frozen), copy=False, backend="cpu")) == frozen.ctypes.data
    z = dn.tensor(Only(frozen), backend="cpu")
    frozen.flags.writeable = True
    frozen[0] = 7
    assert z.to_list() == [0, 1, 2, 3], "who lends memory as read-only may write it"


def test_the_producers_memory_is_kept_and_given_back() -> None:
    array = np.arange(1000.0)
    gone = weakref.ref(array)
    x = dn.tensor(Only(array), copy=False, backend="cpu")
    y = x.reshape(10, 100)
    del array, x
    gc.collect()
    assert gone() is not None
    assert y.sum().item() == 499_500.0
    del y
    gc.collect()
    assert gone() is None


@given(
    hnp.arrays(
        st.sampled_from(["i4", "f8", "u1", "c8"]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        elements=st.integers(0, 100),
    ),
    st.data(),
)
def test_any_layout_is_taken(array: np.ndarray, data: st.DataObject) -> None:
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) for _ in range(array.ndim)]
    turned = array[(*(slice(None, None, step) for step in steps), ...)]
    turned = turned.transpose(data.draw(st.permutations(range(array.ndim))))
    for versioned in (True, False):
        x = dn.tensor(Only(turned, versioned))
        assert x.shape == turned.shape
        assert x.to_numpy().tolist() == turned.tolist()


def test_gaps_cannot_be_shared() -> None:
    with pytest.raises(dn.OptionError, match="one after the other"):
        dn.tensor(Only(np.arange(6)[::2]), copy=False, backend="cpu")
    with pytest.raises(dn.OptionError, match="converted"):
        dn.tensor(Only(np.arange(6)), dtype="f32", copy=False, backend="cpu")
    assert dn.tensor(Only(np.arange(6)), dtype="f32").dtype == "f32"


def test_dlpack_alone_does_for_operands_and_backends() -> None:
    x = Only(np.arange(3))
    assert (dn.iota((3,), dtype="s64") + x).to_list() == [0, 2, 4]
    assert dn.sin(Only(np.zeros(2))).to_list() == [0.0, 0.0]
    there = dn.backends.NumPyBackend()
    assert dn.tensor(x, backend=there).backend == there


def test_other_ways_are_taken_where_dlpack_fails() -> None:
    class Failing:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("not this one")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    class Both(Failing):
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.arange(2)

    assert dn.tensor(Both()).to_list() == [0, 1]
    with pytest.raises(BufferError, match="not this one"):
        dn.tensor(Failing())
    with pytest.raises(BufferError, match="not this one"):
        dn.tensor(Both(), copy=False, backend="cpu")


# Invalid capsules.


class Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("id", ctypes.c_int32))


class ElementType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("rank", ctypes.c_int32),
        ("dtype", ElementType),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (("array", Array), ("context", ctypes.c_void_p), ("deleter", DELETER))


class ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("array", Array),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Given:
    """Returns a capsule that already exists."""

    def __init__(self, capsule: Any, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class Lie(Given):
    """A capsule of two floats with any field falsified; it counts how often it is deleted."""

    def __init__(self, versioned: bool = True, name: bytes | None = None, **changes: Any) -> None:
        self.deleted = 0
        self.memory = (ctypes.c_float * 2)(1.0, 2.0)
        self.sizes = (ctypes.c_int64 * 70)(*changes.pop("sizes", [2]))
        self.strides = (ctypes.c_int64 * 70)(*changes.pop("strides", [1]))
        self.deleter = DELETER(self.delete)
        self.managed = managed = ManagedVersioned() if versioned else Managed()
        if versioned:
            managed.major, managed.minor = changes.pop("version", (1, 0))
            managed.flags = changes.pop("flags", 1)
        managed.deleter = DELETER() if changes.pop("undeletable", False) else self.deleter
        array = managed.array
        array.data = ctypes.addressof(self.memory)
        array.device = Device(*changes.pop("inner_device", (1, 0)))
        array.rank = 1
        array.dtype = ElementType(*changes.pop("dtype", (2, 32, 1)))
        array.sizes = ctypes.cast(self.sizes, ctypes.POINTER(ctypes.c_int64))
        array.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        device = changes.pop("device", (1, 0))
        for field, value in changes.items():
            setattr(array, field, value)
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")
        super().__init__(new_capsule(ctypes.addressof(managed), self.name, None), device)

    def delete(self, managed: int) -> None:
        assert managed == ctypes.addressof(self.managed)
        self.deleted += 1


@pytest.mark.parametrize("versioned", [True, False])
def test_an_honest_capsule(versioned: bool) -> None:
    honest = Lie(versioned)
    x = dn.tensor(honest, backend="cpu")
    assert x.to_list() == [1.0, 2.0]
    assert honest.deleted == 1, "a copy needs the memory no more"
    shared = Lie(versioned)
    x = dn.tensor(shared, copy=False, backend="cpu")
    assert (x.to_list(), shared.deleted) == ([1.0, 2.0], 0)
    del x
    gc.collect()
    assert shared.deleted == 1
    with pytest.raises(dn.FormatError, match="used before"):
        dn.tensor(honest)
    assert dn.tensor(Lie(versioned, strides=[0], sizes=[2])).to_list() == [1.0, 1.0]
    assert dn.tensor(Lie(versioned, undeletable=True)).to_list() == [1.0, 2.0]
    null = ctypes.POINTER(ctypes.c_int64)()
    assert dn.tensor(Lie(versioned, strides=[99], rank=0)).item() == 1.0
    compact = Lie(versioned)
    compact.managed.array.strides = null
    assert dn.tensor(compact).to_list() == [1.0, 2.0]
    assert dn.tensor(Lie(versioned, sizes=[0], data=None)).shape == (0,)
    assert dn.tensor(Lie(versioned, offset=4, sizes=[1])).to_list() == [2.0]


LIES: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"name": b"used_dltensor_versioned"}, dn.FormatError),
    ({"name": b"something"}, dn.FormatError),
    ({"rank": -1}, dn.FormatError),
    ({"rank": 65}, dn.FormatError),
    ({"rank": 2**31 - 1}, dn.FormatError),
    ({"sizes": [-1]}, dn.FormatError),
    ({"sizes": [-(2**63)]}, dn.FormatError),
    ({"sizes": [2**62]}, dn.OutOfMemoryError),
    ({"sizes": [2**40] * 2, "rank": 2}, dn.OutOfMemoryError),
    ({"strides": [2**62]}, dn.FormatError),
    ({"strides": [-(2**60)]}, dn.FormatError),
    ({"offset": 2**64 - 1}, dn.FormatError),
    ({"offset": 2**63}, dn.FormatError),
    ({"data": None}, dn.FormatError),
    ({"dtype": (3, 64, 1)}, dn.DTypeError),
    ({"dtype": (2, 32, 4)}, dn.DTypeError),
    ({"dtype": (2, 128, 1)}, dn.DTypeError),
    ({"dtype": (99, 8, 1)}, dn.DTypeError),
    ({"dtype": (0, 4, 1)}, dn.FormatError),
    ({"inner_device": (2, 0)}, dn.BackendError),
    ({"device": (2, 0)}, dn.BackendError),
]


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(("changes", "error"), LIES, ids=[str(changes) for changes, _ in LIES])
def test_lies_are_refused(changes: dict[str, Any], error: type[Exception], versioned: bool) -> None:
    lie = Lie(versioned, **changes)
    with pytest.raises(error):
        dn.tensor(lie)
    was_taken = "name" not in changes and "device" not in changes
    assert lie.deleted == int(was_taken), "what was taken is deleted, once"


def test_null_sizes_are_refused() -> None:
    lie = Lie()
    lie.managed.array.sizes = ctypes.POINTER(ctypes.c_int64)()
    with pytest.raises(dn.FormatError, match="sizes"):
        dn.tensor(lie)
    assert lie.deleted == 1


def test_other_versions_are_refused() -> None:
    for version in ((2, 0), (0, 9), (2**32 - 1, 0)):
        lie = Lie(version=version)
        with pytest.raises(dn.FormatError, match="version"):
            dn.tensor(lie)
        assert lie.deleted == 1
    assert dn.tensor(Lie(version=(1, 77))).to_list() == [1.0, 2.0]


@pytest.mark.parametrize("capsule", [None, 3, "text", object()])
def test_what_is_no_capsule_is_refused(capsule: object) -> None:
    with pytest.raises(dn.FormatError, match="capsule"):
        dn.tensor(Given(capsule))


def test_nonsense_around_capsules() -> None:
    for device in (None, 1, (1,), ("cpu", 0), (1, 2, 3)):
        with pytest.raises((TypeError, ValueError)):
            dn.tensor(Given(None, device))


def test_misaligned_memory_is_copied() -> None:
    memory = np.zeros(9, dtype=np.uint8)
    memory[1:] = np.array([1.0, 2.0], dtype=np.float32).view(np.uint8)
    lie = Lie(data=memory.ctypes.data + 1)
    x = dn.tensor(lie)
    assert x.to_list() == [1.0, 2.0]
    assert lie.deleted == 1
    with pytest.raises(dn.OptionError, match="aligned"):
        dn.tensor(Lie(data=memory.ctypes.data + 1), copy=False, backend="cpu")


# The buffer protocol.


@pytest.mark.parametrize("dtype", ALL)
def test_buffers(dtype: str) -> None:
    x = dn.tensor(np.resize(store([1, 0, 1], dtype), (2, 3)))
    if dtype not in NUMPYS:
        with pytest.raises(BufferError, match=x.dtype.name):
            memoryview(x)
        assert np.asarray(x).dtype == x.to_numpy().dtype
        return
    view = memoryview(x)
    assert (view.shape, view.readonly, view.contiguous) == ((2, 3), True, True)
    assert view.tobytes() == x.to_numpy().tobytes()
    assert view.nbytes == x.nbytes
    array = np.asarray(x)
    assert (array.dtype, array.tolist()) == (x.to_numpy().dtype, x.to_list())
    assert not array.flags.writeable
    assert array.ctypes.data == address(x)
    with contextlib.suppress(ValueError):
        array.flags.writeable = True
        raise AssertionError("the tensor's memory could be written")
    assert address(dn.tensor(array, backend="cpu")) == address(x), (
        "an array of a tensor's memory never changes"
    )
    assert hashlib.sha256(x).digest() == hashlib.sha256(x.to_binary()).digest()


def test_buffers_keep_the_memory() -> None:
    x = dn.iota((3,))
    view = memoryview(x)
    dn.backend_deallocate(x)
    assert view.tolist() == [0, 1, 2]
    with pytest.raises(dn.BackendError, match="freed"):
        memoryview(x)
    view.release()
    with pytest.raises(dn.TraceError):
        dn.jit(lambda t: (memoryview(t), t)[1])(1.0)
    with pytest.raises(TypeError):
        (ctypes.c_char * 12).from_buffer(dn.iota((3,)))
    assert memoryview(dn.tensor(5)).tolist() == 5
    assert memoryview(dn.iota((0, 3))).tobytes() == b""
    there = dn.iota((3,), backend=dn.backends.NumPyBackend())
    assert memoryview(there).tolist() == [0, 1, 2]


def test_other_buffers_become_tensors() -> None:
    import array as arrays

    for made in (b"\x01\x02", bytearray(b"\x01\x02"), memoryview(b"\x01\x02")):
        assert dn.tensor(made).to_list() == [1, 2]
        assert dn.from_binary(made, "u8").to_list() == [1, 2]
    assert dn.tensor(arrays.array("d", [1.5, 2.5])).to_list() == [1.5, 2.5]
