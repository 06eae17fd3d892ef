"""Copying, moving and freeing; default backends; templates; pointers; reading and printing."""

from __future__ import annotations

import concurrent.futures
import contextvars
import subprocess
import sys
import threading
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defn as dn
from cases import store
from cases.dtypes import ALL
from defn.backends import Backend, NumPyBackend


class Pair(NamedTuple):
    a: object
    b: object


class Bytes(Backend):
    """Stores bytes and does nothing else; raises an error if `fails` is set."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def from_binary(self, out: dn.Tensor, data: bytes) -> bytes:
        if self.fails:
            raise RuntimeError("there is no room")
        return data

    def to_binary(self, tensor: dn.Tensor, limit: int) -> bytes:
        self.limit = limit
        return tensor.data[: (limit * tensor.dtype.bits + 7) // 8]

    def backend_deallocate(self, tensor: dn.Tensor) -> None:
        self.freed = tensor.shape


@pytest.mark.parametrize("dtype", ALL)
def test_copies_are_equal(dtype: str) -> None:
    x = dn.tensor(store([[1, 0], [0, 1], [1, 1]], dtype), names=["row", None])
    for backend in ("cpu", NumPyBackend(), Bytes()):
        y = dn.backend_copy(x, backend)
        assert (y.dtype, y.shape, y.names) == (x.dtype, x.shape, x.names)
        assert y.backend == backend
        assert y.to_binary() == x.to_binary()
        assert dn.backend_copy(y).backend == "cpu", "the host unless told otherwise"


def test_a_copy_is_one() -> None:
    x = dn.iota((3,))
    y = dn.backend_copy(x)
    assert dn.to_pointer(x).address != dn.to_pointer(y).address
    assert dn.backend_deallocate(x) == "ok"
    assert y.to_list() == [0, 1, 2]


def test_moving_frees_the_source() -> None:
    x, there = dn.iota((3,)), NumPyBackend()
    y = dn.backend_transfer(x, there)
    assert y.backend == there
    with pytest.raises(dn.BackendError, match="freed"):
        x.to_list()
    back = dn.backend_transfer(y)
    assert (back.backend, back.to_list()) == ("cpu", [0, 1, 2])
    with pytest.raises(dn.BackendError, match="freed"):
        y.to_list()


def test_moving_to_the_same_place_does_nothing() -> None:
    x = dn.iota((3,), backend="cpu")
    y = dn.backend_transfer(x, "cpu")
    assert dn.to_pointer(x).address == dn.to_pointer(y).address
    there = NumPyBackend()
    z = dn.backend_copy(x, there)
    assert dn.backend_transfer(z, there).to_list() == z.to_list() == [0, 1, 2]


def test_moving_frees_the_source_also_when_it_fails() -> None:
    x = dn.iota((3,))
    with pytest.raises(RuntimeError, match="no room"):
        dn.backend_transfer(x, Bytes(fails=True))
    assert dn.backend_deallocate(x) == "already_deallocated"
    y = dn.iota((3,))
    with pytest.raises(RuntimeError, match="no room"):
        dn.backend_copy(y, Bytes(fails=True))
    assert y.to_list() == [0, 1, 2]


def test_containers() -> None:
    x = dn.iota((3,))
    value = {"x": x, "pair": Pair(x, 2.5), "rest": [None, "text", np.arange(2)]}
    there = NumPyBackend()
    moved = dn.backend_transfer(value, there)
    assert isinstance(moved["pair"], Pair)
    assert moved["rest"][:2] == [None, "text"]
    for leaf in (moved["x"], moved["pair"].a, moved["pair"].b, moved["rest"][2]):
        assert leaf.backend == there
    assert moved["x"].to_list() == moved["pair"].a.to_list() == [0, 1, 2]
    freed = dn.backend_deallocate(moved)
    assert freed["x"] == "ok"
    assert freed["pair"].b == "ok"
    assert dn.backend_deallocate((x, moved["x"])) == ("already_deallocated",) * 2


def test_vectorized_axes_are_kept() -> None:
    x = dn.vectorize(dn.iota((2, 3, 4), names=[None, None, "c"]), ["v", "w"])
    there = NumPyBackend()
    for y in (dn.backend_copy(x, there), dn.backend_copy(dn.backend_copy(x, there))):
        assert (y.vectorized_axes, y.shape, y.names) == ((("v", 2), ("w", 3)), (4,), ("c",))
        assert y.to_list() == x.to_list()
    moved = dn.backend_transfer(x, there)
    assert moved.vectorized_axes == x.vectorized_axes
    assert dn.to_template(moved).vectorized_axes == x.vectorized_axes
    with pytest.raises(dn.BackendError):
        x.to_list()


def test_views_outlive_what_is_freed() -> None:
    x = dn.iota((4,))
    array, buffer, reshaped = x.to_numpy(), memoryview(x), x.reshape(2, 2)
    pointer = dn.to_pointer(x)
    assert dn.backend_deallocate(x) == "ok"
    assert array.tolist() == buffer.tolist() == [0, 1, 2, 3]
    assert reshaped.to_list() == [[0, 1], [2, 3]]
    assert dn.from_pointer(pointer, "s32", (4,)).to_list() == [0, 1, 2, 3]


def test_freed_tensors_still_print_their_type() -> None:
    x = dn.iota((4,), names=["a"])
    dn.backend_deallocate(x)
    assert repr(x) == "Tensor<\n  s32[a: 4]\n  (freed)\n>"
    assert (x.shape, x.names) == ((4,), ("a",))


def test_freeing_one_while_others_compute() -> None:
    """A run keeps its operands alive."""
    wrong = []

    def work() -> None:
        for _ in range(200):
            x = dn.iota((1000,), dtype="f32")
            thread = threading.Thread(target=dn.backend_deallocate, args=(x,))
            thread.start()
            try:
                if (x + 1.0).sum().item() != 500_500.0:
                    wrong.append(x)
            except dn.BackendError:
                pass
            thread.join()

    work()
    assert not wrong


# Default backends.


@pytest.mark.usefixtures("no_options")
def test_the_default_backend() -> None:
    there = NumPyBackend()
    assert dn.default_backend() == "cpu"
    assert dn.default_backend(there) == "cpu"
    try:
        assert dn.default_backend() == there
        for made in (
            dn.tensor([1, 2]), dn.iota((2,)), dn.tensor(np.arange(2)), dn.eye(2), dn.tensor(1.0),
            dn.from_binary(b"ab", "u8"), dn.deserialize(dn.serialize(dn.tensor(1))), dn.sin(1.0),
        ):  # fmt: skip
            assert made.backend == there
        assert dn.iota((2,), backend="cpu").backend == "cpu"
        assert dn.backend_copy(dn.iota((2,))).backend == "cpu", "the default makes no difference"
    finally:
        assert dn.default_backend("cpu") == there
    assert dn.iota((2,)).backend == "cpu"


@pytest.mark.usefixtures("no_options")
def test_the_default_backend_runs_definitions() -> None:
    there = NumPyBackend()
    double = dn.jit(lambda x: x + x)
    assert dn.with_default_backend(there, lambda: double(2.0)).backend == there
    assert double(2.0).backend == "cpu"


@pytest.mark.usefixtures("no_options")
def test_the_default_backend_is_the_contexts() -> None:
    there = NumPyBackend()
    with dn.options(backend=there):
        assert dn.default_backend() == there
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(dn.default_backend).result() == "cpu"
            context = contextvars.copy_context()
            assert pool.submit(context.run, dn.default_backend).result() == there
    assert dn.default_backend() == "cpu"


@pytest.mark.usefixtures("no_options")
def test_the_contexts_default_comes_before_the_processes() -> None:
    there, other = NumPyBackend(), Bytes()

    def check() -> None:
        assert dn.default_backend() == other
        assert dn.with_default_backend(there, dn.default_backend) == there
        assert dn.default_backend() == other, "the context has none of its own again"

    before = dn.global_default_options(backend=other)
    try:
        contextvars.Context().run(check)
    finally:
        dn.global_default_options(before)
    assert dn.default_backend() == "cpu"


@pytest.mark.usefixtures("no_options")
def test_the_default_backend_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        dn.with_default_backend(NumPyBackend(), lambda: 1 // 0)
    assert dn.default_backend() == "cpu"
    with pytest.raises(dn.BackendError):
        dn.with_default_backend("gpu", lambda: 1)
    with pytest.raises(dn.OptionError):
        dn.with_default_backend(5, lambda: 1)
    assert dn.default_backend() == "cpu"


@pytest.mark.parametrize(("name", "works"), [("cpu", True), ("gpu", False)])
def test_the_environments_backend(name: str, works: bool) -> None:
    program = "import defn as dn; print(dn.iota((2,)).backend)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"DEFN_BACKEND": name, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is works
    assert done.stdout == ("cpu\n" if works else "")
    assert works or 'BackendError: backend: "gpu" is unknown' in done.stderr


# Templates.


def test_templates_of_values() -> None:
    value = {"x": dn.iota((2, 3), names=["a", None]), "n": 1, "array": np.zeros((4,), np.float16)}
    made = dn.to_template(value)
    assert all(leaf.is_template for leaf in made.values())
    assert (made["x"].shape, made["x"].names) == ((2, 3), ("a", None))
    assert (made["n"].dtype, made["array"].dtype) == ("s32", "f16")
    shapes = []
    dn.jit(lambda x: (shapes.append(dn.to_template(x).shape), x)[1])(dn.iota((5,)))
    assert shapes == [(5,)]


def test_every_operation_on_a_template_raises() -> None:
    """Functions that read only the type, such as `vectorize`, may return another template."""
    from cases import all_cases

    refused = set()
    for case in all_cases():
        if case.creates or not case.shapes:
            continue
        arrays = case.arrays(case.dtypes[0])
        arguments = [dn.template(array.shape, case.dtypes[0]) for array in arrays]
        try:
            given = case.run(*arguments)
        except dn.TraceError as error:
            if "is a template" not in str(error):
                raise
            refused.add(case.name)
        else:
            assert given.is_template, case
    assert len(refused) > 150


# Pointers.


@pytest.mark.parametrize("dtype", ALL)
def test_pointers(dtype: str) -> None:
    # Only the host stores each element of less than a byte in a byte of its own.
    is_small = dn.dtype(dtype).bits < 8
    x = dn.tensor(store([1, 0, 1], dtype), backend="cpu" if is_small else None)
    pointer = dn.to_pointer(x)
    y = dn.from_pointer(pointer, dtype, (3, 1), names=["a", None])
    assert (y.to_flat_list(), y.names) == (x.to_flat_list(), ("a", None))
    assert pointer.data_size == x.nbytes
    assert pointer == dn.Pointer(pointer.address, pointer.data_size)
    if not is_small:
        assert dn.to_pointer(y).address == pointer.address, "nothing is copied"


def test_a_pointer_to_an_array() -> None:
    array = np.arange(6, dtype=np.float64)
    x = dn.from_pointer(array.ctypes.data, "f64", (2, 3))
    assert x.to_list() == array.reshape(2, 3).tolist()
    there = dn.from_pointer(array.ctypes.data, "f64", (2, 3), backend=NumPyBackend())
    assert there.to_list() == x.to_list()
    for bad in (0, -8, 2**64, array.ctypes.data + 1, "x", None, 1.5):
        with pytest.raises(dn.OptionError):
            dn.from_pointer(bad, "f64", (2, 3))
    assert dn.from_pointer(array.ctypes.data, "f64", (0, 3)).to_list() == []


# Reading.


def test_limits_reach_the_backend() -> None:
    there = Bytes()
    x = dn.backend_copy(dn.iota((100, 100)), there)
    for read, elements in [
        (lambda: x.to_binary(limit=3), 3),
        (lambda: x.to_flat_list(limit=7), 7),
        (lambda: x.inspect(limit=4), 4),
        (lambda: repr(x), 50),
        (lambda: x.to_binary(limit=10**9), 10_000),
        (x.to_numpy, 10_000),
    ]:
        read()
        assert there.limit == elements


@pytest.mark.parametrize("dtype", ALL)
def test_bytes_and_back(dtype: str) -> None:
    values = np.resize(store([1, 0, 1, 1, 0], dtype), 13)
    x = dn.tensor(values)
    bits = dn.dtype(dtype).bits
    for limit in (None, 0, 1, 5, 13, 1000):
        count = 13 if limit is None else min(limit, 13)
        data = x.to_binary(limit=limit)
        assert len(data) == (count * bits + 7) // 8
        if bits >= 8:
            assert data == values[:count].tobytes()
        if count:
            back = dn.from_binary(data, dtype).to_flat_list()
            assert back[:count] == x.to_flat_list(limit=count) == x.to_flat_list()[:count]


def test_numbers() -> None:
    assert dn.to_number(3) == 3
    assert dn.tensor(2 + 1j).to_number() == 2 + 1j
    for bad in (dn.tensor([1]), dn.vectorize(dn.tensor([1]), "x")):
        with pytest.raises(dn.ShapeError):
            dn.to_number(bad)
    assert dn.to_list(np.arange(3)) == [0, 1, 2]
    assert dn.to_flat_list(dn.vectorize(dn.iota((2, 2)), "x"), limit=3) == [0, 1, 2]
    assert dn.to_list(dn.vectorize(dn.iota((2,)), "x")) == [0, 1]


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([(), (2,), (0,)]))
def test_batches(rows: int, size: int, inner: tuple[int, ...]) -> None:
    x = dn.iota((rows, *inner))
    if size > rows:
        with pytest.raises(dn.ShapeError, match="batch"):
            x.to_batched(size)
        return
    array = x.to_numpy()
    whole = [array[start : start + size] for start in range(0, rows - rows % size, size)]
    discarded = x.to_batched(size, leftover="discard")
    assert [b.to_numpy().tolist() for b in discarded] == [b.tolist() for b in whole]
    repeated = x.to_batched(size)
    if rows % size:
        last = np.concatenate([array[rows - rows % size :], array])[:size]
        whole.append(last)
    assert len(repeated) == len(whole)
    assert [b.to_numpy().tolist() for b in repeated] == [b.tolist() for b in whole]
    assert repeated[-1].to_numpy().tolist() == whole[-1].tolist()
    with pytest.raises(IndexError):
        repeated[len(whole)]


def test_batches_keep_names_and_vectorized_axes() -> None:
    x = dn.iota((5, 2), names=["x", "y"])
    assert {batch.names for batch in x.to_batched(2)} == {("x", "y")}
    batches = dn.vectorize(x, "x").to_batched(2)
    assert [batch.vectorized_axes for batch in batches] == [(("x", 2),)] * 3
    assert [batch.names for batch in batches] == [("y",)] * 3
    assert batches[2].to_list() == [[8, 9], [0, 1]]
    scalars = dn.vectorize(dn.tensor([1, 2, 3]), "x").to_batched(2)
    assert [batch.to_list() for batch in scalars] == [[1, 2], [3, 1]]
    two = dn.vectorize(dn.iota((2, 2, 2)), ["x", "y"]).to_batched(1)
    assert two[1].vectorized_axes == (("x", 1), ("y", 2))
    assert two[1].to_list() == [[[4, 5], [6, 7]]]
    assert [b.to_list() for b in x.to_batched(2)[1:2]] == [[[4, 5], [6, 7]]]


# Printing.


def test_limits_of_printing() -> None:
    x = dn.iota((3, 3))
    full = "[\n    [0, 1, 2],\n    [3, 4, 5],\n    [6, 7, 8]\n  ]"
    texts = {
        0: "[\n    ...\n  ]",
        1: "[\n    [0, ...],\n    ...\n  ]",
        3: "[\n    [0, 1, 2],\n    ...\n  ]",
        4: "[\n    [0, 1, 2],\n    [3, ...],\n    ...\n  ]",
        8: "[\n    [0, 1, 2],\n    [3, 4, 5],\n    [6, 7, ...]\n  ]",
        9: full,
        None: full,
    }
    for limit, text in texts.items():
        assert dn.inspect(x, limit=limit) == f"Tensor<\n  s32[3][3]\n  {text}\n>"
        data = x.to_binary(limit=limit)
        assert dn.backends.inspect(dn.to_template(x), data, limit) == text
    ends = "[\n    [0, ..., 2],\n    ...,\n    [6, ..., 8]\n  ]"
    few = {0: "[\n    ...\n  ]", 3: "[\n    [0, ..., 2],\n    ...\n  ]"}
    for limit, text in few.items():
        with dn.options(print_limit=limit):
            assert repr(x) == f"Tensor<\n  s32[3][3]\n  {text}\n>"
    for limit, text in {4: ends, 8: ends, 9: full, None: full}.items():
        with dn.options(print_limit=limit):
            assert repr(x) == f"Tensor<\n  s32[3][3]\n  {text}\n>"
    assert dn.inspect(dn.tensor(5), limit=0) == "Tensor<\n  s32\n  ...\n>"
    assert repr(dn.iota((50,))) == dn.inspect(dn.iota((50,)), limit=None)
    assert "..." not in dn.inspect(dn.iota((2000,)), limit=None)


@pytest.mark.parametrize("dtype", ALL)
def test_backends_print_as_tensors_do(dtype: str) -> None:
    x = dn.tensor(np.resize(store([1, 0, 1], dtype), (3, 5)))
    for limit in (1, 7, None):
        text = dn.backends.inspect(dn.to_template(x), x.to_binary(limit=limit), limit)
        assert dn.inspect(x, limit=limit).split("\n", 2)[2] == f"  {text}\n>"


def test_vectorized_tensors_print_their_axes() -> None:
    x = dn.vectorize(dn.iota((2, 2), names=[None, "x"]), "v")
    want = "Tensor<\n  vectorized[v: 2]\n  s32[x: 2]\n  [\n    [0, 1],\n    [2, 3]\n  ]\n>"
    assert repr(x) == want
    assert "s32[x: 2]" in repr(dn.to_template(x))


def test_heatmaps() -> None:
    x = dn.tensor([[0.0, 1.0, 9.0], [float("nan"), float("inf"), float("-inf")]], names=["r", None])
    assert str(x.to_heatmap(ansi_enabled=False)) == "Heatmap<\n  f32[r: 2][3]\n  019\n  x+-\n>"
    drawn = repr(x.to_heatmap(ansi_enabled=True, ansi_whitespace=" "))
    first = "\x1b[48;5;232m \x1b[48;5;235m \x1b[48;5;255m \x1b[0m"
    second = "\x1b[41m \x1b[48;5;255m\u221e\x1b[48;5;232m\u221e\x1b[0m"
    assert drawn == f"Heatmap<\n  f32[r: 2][3]\n  {first}\n  {second}\n>"
    assert "\x1b" not in repr(x.to_heatmap()), "no terminal shows this"
    assert x.to_heatmap(ansi_enabled=False)[0].tensor.to_list() == [0.0, 1.0, 9.0]
    assert x.to_heatmap()[0, 1].item() == 1.0


def test_heatmaps_of_many_axes() -> None:
    drawn = lambda t: str(dn.to_heatmap(t, ansi_enabled=False))  # noqa: E731
    assert drawn(dn.tensor([5, 5, 5])) == "Heatmap<\n  s32[3]\n  000\n>"
    assert drawn(dn.iota((2, 1, 2))) == ("Heatmap<\n  s32[2][1][2]\n  [\n    09,\n    09\n  ]\n>")
    long = drawn(dn.iota((60, 1, 2)))
    assert long.count("09") == 50
    assert long.endswith(",\n    ...\n  ]\n>")
    vectorized = dn.vectorize(dn.iota((2, 2, 2)), "v")
    assert drawn(vectorized).startswith("Heatmap<\n  vectorized[v: 2]\n  s32[2][2]\n  [\n")
    for empty in ((0,), (0, 3), (3, 0), (0, 2, 2), (2, 0, 2)):
        assert drawn(dn.iota(empty)).startswith("Heatmap<")
    assert drawn(dn.tensor([2**63, 0], dtype="u64")).endswith("\n  90\n>")


def test_a_scope_frees_what_was_made_in_it() -> None:
    x = dn.tensor([1.0, 2.0, 3.0])
    before = x.to_numpy()
    with dn.scope() as scope:
        y = x * 2
        same, view = dn.reshape(x, (3, 1)), dn.reshape(y, (3, 1))
        z, pair = scope.keep(y + 1), scope.keep({"a": y - 1, "b": (x, 4)})
        array = (y * 3).to_numpy()
        copied = np.asarray(y)
    for freed in (y, same, view):
        with pytest.raises(dn.BackendError, match=r"memory was freed at .*test_places\.py"):
            freed + 1
    assert z.to_list() == [3.0, 5.0, 7.0]
    assert pair["a"].to_list() == [1.0, 3.0, 5.0]
    assert (x + 1).to_list() == [2.0, 3.0, 4.0], "what is older stays"
    assert before.tolist() == [1.0, 2.0, 3.0]
    assert array.tolist() == [6.0, 12.0, 18.0], "so does what NumPy holds"
    assert copied.tolist() == [2.0, 4.0, 6.0]


def test_scopes_in_scopes() -> None:
    with dn.scope() as outer:
        with dn.scope() as inner:
            a, b = dn.tensor([1.0]), inner.keep(dn.tensor([2.0]))
        with pytest.raises(dn.BackendError, match="freed"):
            a + 1
        c = outer.keep(b * 2)
    with pytest.raises(dn.BackendError, match="freed"):
        b + 1
    assert c.to_list() == [4.0]


def test_a_scope_leaves_what_programs_hold() -> None:
    f = None
    with dn.scope():
        table = dn.tensor([1.0, 2.0])
        constant = dn.jit(lambda x: x + dn.tensor([3.0, 4.0]))
        f = dn.compile(lambda x: x + 1, [table])
        made = [constant(table), f(table)]
    assert constant(dn.tensor([0.0, 0.0])).to_list() == [3.0, 4.0]
    assert f(dn.tensor([0.0, 0.0])).to_list() == [1.0, 1.0]
    for freed in made:
        with pytest.raises(dn.BackendError, match="freed"):
            freed + 1


def test_a_scope_ends_when_the_block_raises() -> None:
    made: list[dn.Tensor] = []

    def block() -> None:
        with dn.scope():
            made.append(dn.tensor([1.0]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    with pytest.raises(dn.BackendError, match="freed"):
        made[0] + 1
    scope = dn.scope()
    with scope:
        pass
    with pytest.raises(dn.OptionError, match="scope: it was entered before"), scope:
        pass


def test_many_temporaries_of_a_scope_are_forgotten() -> None:
    x = dn.tensor([0.0])
    with dn.scope() as scope:
        for _ in range(5000):
            x = x + 1
        total = scope.keep(x * 1)
    assert total.item() == 5000.0
    with pytest.raises(dn.BackendError, match="freed"):
        x + 1


def test_scopes_are_a_threads_own() -> None:
    made: list[dn.Tensor] = []
    with dn.scope():
        thread = threading.Thread(target=lambda: made.append(dn.tensor([1.0]) * 2))
        thread.start()
        thread.join()
    assert made[0].to_list() == [2.0]
    scope = dn.scope()
    scope.__enter__()
    faults: list[BaseException] = []

    def leave() -> None:
        try:
            scope.__exit__(None, None, None)
        except dn.OptionError as error:
            faults.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert "another thread" in str(faults[0])
    scope.__exit__(None, None, None)
