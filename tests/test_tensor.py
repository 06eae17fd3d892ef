"""Creating, reading, indexing, copying and printing tensors."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
from cases import store
from cases.dtypes import ALL, BITS, NUMPY, is_complex, is_integer
from support import HERE, Held, on_xla


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (True, "bool", ()),
        (1, "s32", ()),
        (1.5, "f32", ()),
        (1j, "c64", ()),
        ([True, False], "bool", (2,)),
        ([1, 2.5], "f32", (2,)),
        ([1, 1j], "c64", (2,)),
        ([True, 2], "s32", (2,)),
        ([[1], [2]], "s32", (2, 1)),
        ((1, 2), "s32", (2,)),
        (np.float64(1.5), "f64", ()),
        (np.int8(1), "s8", ()),
        (np.bool_(True), "bool", ()),
        (float("nan"), "f32", ()),
        (2**31 - 1, "s32", ()),
    ],
)
def test_inference(value: object, dtype: str, shape: tuple[int, ...]) -> None:
    x = dn.tensor(value)
    assert (str(x.dtype), x.shape) == (dtype, shape)


@pytest.mark.parametrize("dtype", ALL)
def test_arrays_go_in_and_out(dtype: str) -> None:
    array = store([[1, 0, 1], [0, 1, 0]], dtype)
    x = dn.tensor(array)
    assert str(x.dtype) == dtype
    assert x.to_numpy().dtype == NUMPY[dtype]
    assert (x.to_numpy() == array).all()
    assert (np.asarray(x) == array).all()
    assert x.nbytes == array.size * BITS[dtype] // 8 or BITS[dtype] < 8
    assert dn.tensor(x.to_list(), dtype=dtype).to_numpy().tobytes() == array.tobytes()


def test_attributes() -> None:
    x = dn.tensor([[1.0, 2.0, 3.0]], names=["row", None])
    assert (x.shape, x.names, x.rank, x.ndim, x.size) == ((1, 3), ("row", None), 2, 2, 3)
    assert x.T.shape == (3, 1)
    assert dn.iota((2, 3, 4)).mT.shape == (2, 4, 3)
    assert (x.vectorized_axes, x.backend) == ((), HERE)


def test_dtypes() -> None:
    assert dn.f32 == "f32" == dn.f32
    assert dn.f32 == np.float32
    assert dn.f8 is dn.f8_e5m2
    assert (dn.bf16.name, dn.bf16.kind, dn.bf16.bits) == ("bf16", "float", 16)
    assert str(dn.s4) == "s4"
    assert dn.f32([1, 2]).to_list() == [1.0, 2.0]
    assert dn.u8(300).item() == 44
    assert hash(dn.f32) == hash(dn.dtype("f32"))
    assert [dn.dtype(t) for t in (bool, int, float, complex)] == [dn.bool, dn.s32, dn.f32, dn.c64]
    for name in ALL:
        assert str(dn.dtype(name)) == name
        assert dn.dtype(NUMPY[name]) == name


def test_arrays_are_copied_unless_nothing_can_write() -> None:
    array = np.array([1.0, 2.0])
    x = dn.tensor(array)
    array[0] = 9.0
    assert x.to_list() == [1.0, 2.0]

    fixed = np.array([1.0, 2.0])
    fixed.flags.writeable = False
    view = array[:]
    view.flags.writeable = False
    from_view = dn.tensor(view)
    array[0] = 7.0
    assert from_view.to_list() == [9.0, 2.0], "a read-only view of writable memory is copied"

    aliased = dn.tensor(array, copy=False, backend="cpu")
    assert address(aliased.to_numpy()) == address(array)
    with pytest.raises(dn.Error, match="copy=False"):
        dn.tensor([1.0], copy=False)
    assert address(dn.tensor(fixed, copy=True).to_numpy()) != address(fixed)
    with pytest.raises(dn.OptionError, match="are copied to there"):
        dn.tensor(array, copy=False, backend=dn.backends.NumPyBackend())


def test_more_axes_than_numpys_arrays_have() -> None:
    most = dn.reshape(dn.tensor([1.0, 2.0], backend="cpu"), (1,) * 63 + (2,))
    assert most.to_numpy().shape == (1,) * 63 + (2,)
    x = dn.new_axis(most, 0)
    for read in (
        x.to_numpy,
        lambda: x.to_numpy(dtype="f64"),
        lambda: np.asarray(x),
        lambda: x.data,
    ):
        with pytest.raises(dn.ShapeError, match="arrays of NumPy have at most 64 axes; reshape it"):
            read()
    with pytest.raises(BufferError, match="memoryview: the tensor has 65 axes"):
        memoryview(x)
    assert str(x).count("[") >= 65
    assert dn.reshape(x, (2,)).to_list() == [1.0, 2.0]
    assert x.to_flat_list() == [1.0, 2.0]


def test_to_numpy_is_a_read_only_view() -> None:
    x = dn.tensor([1.0, 2.0], backend="cpu")
    array = x.to_numpy()
    assert not array.flags.writeable
    assert not dn.tensor([1.0, 2.0]).to_numpy().flags.writeable
    assert address(array) == address(x.to_numpy())
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        array.flags.writeable = True
    assert x.to_numpy(dtype="f64").dtype == np.float64
    kept = dn.tensor([1.0, 2.0]).to_numpy()
    assert kept.tolist() == [1.0, 2.0], "the view keeps the memory alive"


def test_numpy_gives_way() -> None:
    x, array = dn.tensor([1.0, 2.0]), np.array([10.0, 20.0], dtype=np.float32)
    for out in (x + array, array + x, array * x, x @ array, array @ x):
        assert isinstance(out, dn.Tensor)
    assert (array - x).to_list() == [9.0, 18.0]
    assert (array > x).to_list() == [1, 1]
    assert isinstance(np.float32(2.0) * x, dn.Tensor)
    before = array
    array += x
    assert isinstance(array, dn.Tensor), "the name is bound again"
    assert before.tolist() == [10.0, 20.0]


OPERATORS = [
    (operator.add, [8, -4]),
    (operator.sub, [6, -10]),
    (operator.mul, [7, -21]),
    (operator.truediv, [7.0, -7 / 3]),
    (operator.floordiv, [7, -3]),
    (operator.mod, [0, 2]),
    (operator.pow, [7, -343]),
    (operator.and_, [1, 1]),
    (operator.or_, [7, -5]),
    (operator.xor, [6, -6]),
    (operator.lshift, [14, -56]),
    (operator.rshift, [3, -1]),
    (operator.eq, [0, 0]),
    (operator.ne, [1, 1]),
    (operator.lt, [0, 1]),
    (operator.le, [0, 1]),
    (operator.gt, [1, 0]),
    (operator.ge, [1, 0]),
]


@pytest.mark.parametrize(("operation", "want"), OPERATORS, ids=lambda v: getattr(v, "__name__", ""))
def test_operators(operation, want: list[float]) -> None:
    x, y = dn.tensor([7, -7]), dn.tensor([1, 3])
    for got in (
        operation(x, y),
        operation(np.array([7, -7], dtype=np.int32), y),
        dn.jit(operation)(x, y),
    ):
        assert got.to_list() == pytest.approx(want)
    numbers = dn.tensor([operation(a, 3) for a in (7, -7)])
    assert operation(x, 3).to_list() == pytest.approx(numbers.to_list())
    reflected = [operation(2, b) for b in (1, 3)]
    assert operation(2, y).to_list() == pytest.approx(dn.tensor(reflected).to_list())


def test_unary_operators() -> None:
    x = dn.tensor([1.5, -2.5])
    assert (-x).to_list() == [-1.5, 2.5]
    assert (+x).to_list() == [1.5, -2.5]
    assert abs(x).to_list() == [1.5, 2.5]
    assert round(x).to_list() == [2.0, -3.0]
    assert (~dn.tensor([0, 5])).to_list() == [-1, -6]
    assert (~(x > 0)).to_list() == [False, True]


def test_matmul() -> None:
    a, b = dn.iota((2, 3)), dn.iota((3, 2))
    assert (a @ b).to_list() == (a.to_numpy() @ b.to_numpy()).tolist()
    assert (dn.iota((4, 2, 3)) @ b).shape == (4, 2, 2)


def test_conversions() -> None:
    assert float(dn.tensor(1.5)) == 1.5
    assert int(dn.tensor(7)) == 7
    assert complex(dn.tensor(1j)) == 1j
    assert [10, 20, 30][dn.tensor(1)] == 20
    assert bool(dn.tensor(0.0)) is False
    assert dn.tensor([[3]]).item() == 3
    assert f"{dn.tensor(1.23456):.2f}" == "1.23"
    assert f"{dn.tensor(7):03d}" == "007"
    assert len(dn.iota((4, 2))) == 4
    assert [row.to_list() for row in dn.iota((2, 2))] == [[0, 1], [2, 3]]
    assert dn.iota((2, 2)).to_flat_list() == [0, 1, 2, 3]
    assert dn.iota((2, 2)).to_flat_list(limit=3) == [0, 1, 2]
    with pytest.raises(dn.ShapeError):
        float(dn.tensor([1.0, 2.0]))
    with pytest.raises(dn.ShapeError):
        bool(dn.tensor([1, 2]))
    with pytest.raises(TypeError):
        operator.index(dn.tensor(1.5))


def test_pickle_and_copy() -> None:
    for dtype in ALL:
        x = dn.tensor(store([[1, 0], [0, 1]], dtype), names=["x", None])
        y = pickle.loads(pickle.dumps(x))
        assert (y.dtype, y.shape, y.names) == (x.dtype, x.shape, x.names)
        assert y.to_numpy().tobytes() == x.to_numpy().tobytes()
    x = dn.tensor([1.0])
    assert copy.copy(x).to_list() == copy.deepcopy(x).to_list() == [1.0]
    assert pickle.loads(pickle.dumps(dn.f32)) == dn.f32
    template = pickle.loads(pickle.dumps(dn.template((2,), "f32", names=["x"])))
    assert (template.shape, template.names) == ((2,), ("x",))
    with pytest.raises(dn.TraceError):
        dn.jit(lambda t: (pickle.dumps(t), t)[1])(1.0)


def test_hash_and_equality() -> None:
    """``==`` compares the elements; dicts and sets compare tensors by identity."""
    x = dn.tensor([1, 2])
    assert (x == [1, 2]).to_list() == [1, 1] if isinstance(x == [1, 2], dn.Tensor) else True
    assert hash(x) == hash(x)
    assert len({x: 1, dn.tensor([1, 2]): 2}) == 2


def test_methods() -> None:
    x = dn.tensor([[1.0, 4.0], [9.0, 16.0]], names=["row", "column"])
    assert x.sqrt().to_list() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.sum(axes="row").to_list() == [10.0, 20.0]
    assert x.reduce_max(axes=[1], keep_axes=True).shape == (2, 1)
    assert x.reshape(4).shape == x.reshape(-1).shape == x.reshape((4,)).shape == (4,)
    assert x.reshape(2, -1).shape == x.reshape((2, "auto")).shape == (2, 2)
    assert x.reshape(1, 4, names=["a", "b"]).names == ("a", "b")
    assert x.as_type("s32").dtype == "s32"
    assert x.add(1.0).to_list() == (x + 1.0).to_list()
    assert dn.tensor([1.0, 2.0]).dot(dn.tensor([3.0, 4.0])).item() == 11.0
    assert x.transpose().names == ("column", "row")


@pytest.mark.parametrize("name", ["astype", "keepdims", "numpy", "tolist", "unsqueeze", "prod"])
def test_foreign_names(name: str) -> None:
    x = dn.tensor([1.0])
    assert not hasattr(x, name)
    assert not hasattr(dn, name)
    assert name not in dir(x)
    with pytest.raises(AttributeError):
        getattr(x, name)


def test_templates_have_no_values() -> None:
    template = dn.template((2, 3), "bf16", names=["x", None])
    assert (str(template.dtype), template.shape, template.names) == ("bf16", (2, 3), ("x", None))
    for use in (lambda: template + 1, template.to_numpy, template.to_list, lambda: float(template)):
        with pytest.raises(dn.TraceError):
            use()


def test_traced_tensors_have_no_values() -> None:
    uses = [
        float,
        int,
        bool,
        lambda t: t.to_numpy(),
        lambda t: t.reshape(1).to_list(),
        lambda t: t.item(),
        np.asarray,
        pickle.dumps,
        lambda t: f"{t:.2f}",
    ]
    for use in uses:
        with pytest.raises(dn.TraceError):
            dn.jit(lambda t, use=use: (use(t), t)[1])(1.0)
    leaked: list[dn.Tensor] = []
    dn.jit(lambda t: (leaked.append(t), t)[1])(1.0)
    with pytest.raises(dn.TraceError, match="has ended"):
        leaked[0] + 1.0
    with pytest.raises(dn.TraceError, match="has ended"):
        dn.jit(lambda t: t + leaked[0])(1.0)


# Indexing.

SHAPE = (3, 4, 5)
ARRAY = np.arange(60).reshape(SHAPE)

integers = st.integers(-5, 4)
bounds = st.none() | st.integers(-7, 7)
steps = st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])
slices = st.builds(slice, bounds, bounds, steps)
items = st.lists(integers | slices | st.none(), max_size=5)


@given(items, st.integers(0, 5), st.booleans())
def test_indexing_is_numpys(parts: list[object], at: int, ellipsis: bool) -> None:
    index = list(parts)
    if ellipsis:
        index.insert(min(at, len(index)), Ellipsis)
    key = tuple(index)
    x = dn.tensor(ARRAY)
    try:
        want = ARRAY[key]
    except IndexError:
        with pytest.raises((dn.BoundsError, dn.ShapeError)):
            x[key]
        return
    got, held = x[key], Held(key)
    assert got.shape == np.shape(want)
    assert (got.to_numpy() == want).all()
    assert dn.jit(lambda t: t[held.value])(x).to_numpy().tolist() == want.tolist()


def test_indexing_keeps_names() -> None:
    x = dn.tensor(ARRAY, names=["a", "b", "c"])
    assert x[0].names == ("b", "c")
    assert x[:, None, 1:3].names == ("a", None, "b", "c")
    assert x[..., 0].names == ("a", "b")
    assert x[{"b": 1, "c": slice(2)}].names == ("a", "c")
    assert (x[{"b": 1, "c": slice(2)}].to_numpy() == ARRAY[:, 1, :2]).all()
    with pytest.raises(dn.AxisError, match='"d"'):
        x[{"d": 0}]


def test_scalar_tensor_indices() -> None:
    x = dn.tensor(ARRAY)
    assert (x[dn.tensor(1)].to_numpy() == ARRAY[1]).all()
    assert (x[dn.tensor(-1)].to_numpy() == ARRAY[-1]).all()
    assert (dn.jit(lambda t, i: t[i])(x, 99).to_numpy() == ARRAY[2]).all()
    assert (x[:, dn.tensor(1), 2].to_numpy() == ARRAY[:, 1, 2]).all()
    assert dn.jit(lambda t, i: t[i, i])(x, 2).to_list() == ARRAY[2, 2].tolist()


def test_indices_that_are_refused() -> None:
    x = dn.tensor(ARRAY)
    with pytest.raises(IndexError, match="out of range"):
        x[3]
    with pytest.raises(IndexError, match="select"):
        dn.jit(lambda x: x[x > 5])(x)
    with pytest.raises(IndexError, match="sizes"):
        x[np.zeros(7, dtype=bool)]
    with pytest.raises(IndexError, match="zero"):
        x[::0]
    with pytest.raises(IndexError):
        x["a"]
    with pytest.raises(dn.ShapeError):
        x[0, 0, 0, 0]


def test_indexing_gradient() -> None:
    x = dn.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    gradient = dn.grad(lambda t: dn.sum(t[1, ::-2] * dn.tensor([10.0, 1.0])))(x)
    assert gradient.to_list() == [[0.0, 0.0, 0.0], [1.0, 0.0, 10.0]]


# Arrays of every kind.

NUMPY_DTYPES = [
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
]


@given(
    st.sampled_from(NUMPY_DTYPES).flatmap(
        lambda dtype: hnp.arrays(
            dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
        )
    )
)
def test_any_array_survives(array: np.ndarray) -> None:
    x = dn.tensor(array)
    assert x.shape == array.shape
    assert x.to_numpy().tobytes() == np.ascontiguousarray(array).tobytes()
    assert pickle.loads(pickle.dumps(x)).to_numpy().tobytes() == x.to_numpy().tobytes()
    back = dn.tensor(np.asfortranarray(array))
    assert back.to_numpy().tobytes() == x.to_numpy().tobytes()
    assert dn.transpose(x).to_numpy().tobytes() == np.ascontiguousarray(array.T).tobytes()


def test_foreign_byte_order() -> None:
    assert dn.tensor(np.array([1, 2], dtype=">i4")).to_list() == [1, 2]


# Printing.


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dn.tensor(1), "Tensor(1, s32)"),
        (
            lambda: dn.tensor([1.0, float("nan"), float("-inf")]),
            "Tensor<\n  f32[3]\n  [1.0, NaN, -Inf]\n>",
        ),
        (
            lambda: dn.tensor([[1, 2, 3], [4, 5, 6]], names=["x", None]),
            "Tensor<\n  s32[x: 2][3]\n  [\n    [1, 2, 3],\n    [4, 5, 6]\n  ]\n>",
        ),
        (lambda: dn.tensor([1 + 2j, -1.5j]), "Tensor<\n  c64[2]\n  [1.0+2.0i, -0.0-1.5i]\n>"),
        (lambda: dn.tensor(store([0.1], "f16")), "Tensor<\n  f16[1]\n  [0.1]\n>"),
        (lambda: dn.tensor(store([0.1], "bf16")), "Tensor<\n  bf16[1]\n  [0.1]\n>"),
        (lambda: dn.broadcast(0.0, (0, 2)), "Tensor<\n  f32[0][2]\n  []\n>"),
    ],
)
def test_repr(make, text: str) -> None:
    assert repr(make()) == text


def test_long_tensors_are_cut() -> None:
    assert repr(dn.iota((51,))) == "Tensor<\n  s32[51]\n  [0, 1, 2, ..., 48, 49, 50]\n>"
    text = repr(dn.iota((60, 60)))
    assert "    [0, 1, 2, ..., 57, 58, 59],\n" in text
    assert "    ...,\n    [3420, 3421, 3422, ..., 3477, 3478, 3479],\n" in text
    assert text.endswith("[3540, 3541, 3542, ..., 3597, 3598, 3599]\n  ]\n>")
    assert repr(dn.iota((2,) * 5)).count("...") == 0
    # The number of printed elements is limited, for any number of axes.
    # XLA stores repeated elements in full.
    most = (2,) * (20 if on_xla() else 30)
    for shape in ((9, 9, 9), (5, 6, 7, 8), (3,) * 8, most, (1, 7, 1, 99)):
        text = repr(dn.broadcast(8, shape))
        assert 0 < text.partition("\n  ")[2].partition("\n")[2].count("8") <= 50
        assert max(map(len, text.splitlines()[2:])) <= 80


def test_long_rows_are_continued() -> None:
    lines = repr(dn.iota((40,)) + 1000).splitlines()
    assert lines[2].startswith("  [1000, 1001, ")
    assert lines[3].startswith("   10")
    assert all(len(line) <= 80 for line in lines)
    assert lines[-2].endswith("1039]")


def test_traced_tensors_print_their_graph() -> None:
    texts = []
    dn.jit(lambda x: (texts.append(repr(dn.sin(-x))), x)[1])(1.0)
    assert "negate a" in texts[0]
    assert "sin b" in texts[0]
    assert "f32" in texts[0]


@pytest.mark.parametrize("dtype", ALL)
def test_list_values_are_pythons(dtype: str) -> None:
    kind = int if is_integer(dtype) else complex if is_complex(dtype) else float
    kind = bool if dtype == "bool" else kind
    assert [type(v) for v in dn.tensor(store([1, 0], dtype)).to_list()] == [kind, kind]


def test_huge_shapes_do_not_abort() -> None:
    for make in (
        lambda: dn.iota((2**40,)),
        lambda: dn.broadcast(1.0, (2**20, 2**20, 2**20)),
        lambda: dn.eye(2**31),
        lambda: dn.jit(lambda: dn.broadcast(dn.tensor(1.0), (2**45,)) + 1)(),
    ):
        with pytest.raises(dn.OutOfMemoryError):
            make()
    with pytest.raises(MemoryError):
        dn.iota((2**62, 4))
    assert dn.iota((3,)).to_list() == [0, 1, 2]


def test_a_list_takes_rows() -> None:
    x = np.arange(12).reshape(4, 3)
    for index in (
        *([0, 2], [-1], [3, 3, 0], [], [[0]], [[0, 1], [2, 3]]),
        *(np.array([[0, 1], [2, -1]]), np.array([2], np.uint8)),
    ):
        assert dn.tensor(x)[index].to_list() == x[index].tolist()


@pytest.mark.parametrize("index", [[0.0], [None], [slice(None)], [0, [1]], [0, True]], ids=repr)
def test_other_lists_are_no_index(index: list[object]) -> None:
    with pytest.raises(dn.BoundsError, match="cannot index"):
        dn.iota((2, 3))[index]


def test_tensors_of_very_many_axes() -> None:
    # XLA's time is quadratic in the number of axes.
    x = dn.iota((1,) * (2_000 if on_xla() else 50_000))
    assert repr(x).endswith("...\n>")
    assert (x + 1).sum().item() == 1
    with pytest.raises(dn.ShapeError, match="1000 axes"):
        x.to_list()
