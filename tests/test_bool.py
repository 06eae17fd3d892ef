"""Bools: how they are created and promoted, imported and exported, and used as masks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL, NUMPY

MASK = np.array([True, False, True, True])
OTHER = np.array([True, True, False, False])
BACKENDS = ("cpu", dn.backends.NumPyBackend())


def ways(f):
    """A function, eager and compiled."""
    return [f, dn.jit(f), dn.jit(f, compiler="evaluator")]


def test_names():
    for name in (bool, "bool", np.bool_, np.dtype(bool), dn.bool):
        assert dn.tensor([1, 0], dtype=name).dtype == dn.bool
    assert str(dn.bool) == "bool"
    assert (dn.bool.kind, dn.bool.bits) == ("bool", 8)
    assert dn.bool.to_numpy() == np.bool_
    assert dn.tensor(True).dtype == dn.tensor([True]).dtype == dn.tensor(np.True_).dtype == "bool"
    assert dn.tensor([True, 2]).dtype == "s32"
    assert dn.tensor([0.5, 0.0, float("nan")], dtype=bool).to_list() == [True, False, True]


def test_shown_and_read():
    x = dn.tensor([[True, False]])
    assert repr(x) == "Tensor<\n  bool[1][2]\n  [\n    [True, False]\n  ]\n>"
    assert x.to_list() == [[True, False]]
    assert x[0, 0].item() is True
    assert [bool(entry) for entry in x[0]] == [True, False]
    assert (float(x[0, 0]), int(x[0, 0])) == (1.0, 1)
    with pytest.raises(dn.DTypeError, match="index: the tensor is bool, it must be an integer"):
        [1, 2][dn.tensor(True)]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_arithmetic_of_two_bools(backend):
    a, b = dn.tensor(MASK, backend=backend), dn.tensor(OTHER, backend=backend)
    for f, want in [
        (lambda a, b: a + b, MASK + OTHER),
        (lambda a, b: a * b, MASK * OTHER),
        (lambda a, b: a & b, MASK & OTHER),
        (lambda a, b: a | b, MASK | OTHER),
        (lambda a, b: a ^ b, MASK ^ OTHER),
        (lambda a, b: ~a, ~MASK),
        (dn.max, np.maximum(MASK, OTHER)),
        (lambda a, b: a & True, MASK),
        (lambda a, b: False | b, OTHER),
        (lambda a, b: a == b, MASK == OTHER),
        (lambda a, b: a > b, MASK > OTHER),
        (lambda a, b: abs(a), abs(MASK)),
        (lambda a, b: dn.sort(a), np.sort(MASK)),
        (lambda a, b: dn.select(a, b, False), np.where(MASK, OTHER, False)),
        (lambda a, b: dn.concatenate([a, b]), np.concatenate([MASK, OTHER])),
        (lambda a, b: dn.cumulative_max(a), np.maximum.accumulate(MASK)),
    ]:
        for run in ways(f):
            got = run(a, b)
            assert got.dtype == "bool"
            np.testing.assert_array_equal(got.to_numpy(), want)


def test_bools_are_counted():
    """The count of a mask with more than 255 elements, which u8 could not hold."""
    ones = np.ones(1000, bool)
    for f, want in [
        (dn.sum, 1000),
        (lambda x: dn.cumulative_sum(x)[-1], 1000),
        (lambda x: dn.dot(x, x), 1000),
        (lambda x: dn.window_sum(x, 1000)[0], 1000),
        (dn.product, 1),
    ]:
        for run in ways(f):
            got = run(dn.tensor(ones))
            assert (got.dtype, got.item()) == ("s32", want)
    assert dn.mean(dn.tensor(MASK)).item() == 0.75
    assert dn.mean(dn.tensor(MASK)).dtype == "f32"


def test_arithmetic_with_numbers():
    x = dn.tensor(MASK)
    assert (2 * x - 1).to_list() == [1, -1, 1, 1]
    for number, dtype in [(1, "s32"), (0.5, "f32"), (1j, "c64"), (True, "bool")]:
        for run in ways(lambda x, number=number: x * number):
            assert run(x).dtype == dtype
    assert (x / x).dtype == dn.exp(x).dtype == "f32"


@pytest.mark.parametrize("dtype", ALL)
def test_gives_way_to_every_dtype(dtype):
    x = dn.tensor(MASK)
    y = dn.tensor(np.ones(4).astype(NUMPY[dtype]))
    for run in ways(dn.max if dtype not in ("c64", "c128") else dn.add):
        assert run(x, y).dtype == run(y, x).dtype == dtype
    assert dn.select(x, y, False).dtype == dtype
    assert dn.as_type(y, "bool").to_list() == [True] * 4
    assert dn.as_type(x, dtype).to_numpy().astype(bool).tolist() == MASK.tolist()


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (
            lambda x: x - x,
            "subtract: the operands are bool[4] and bool[4], their common dtype must be a number, "
            "not bool; use logical_xor, or convert with as_type",
        ),
        (
            lambda x: -x,
            "negate: the operand is bool[4], it must be a number, not bool; "
            "use logical_not, or convert with as_type",
        ),
        (
            lambda x: x**x,
            "pow: the operands are bool[4] and bool[4], their common dtype must be a number, "
            "not bool; convert with as_type",
        ),
        (
            lambda x: x // x,
            "floor_divide: the operands are bool[4] and bool[4], their common dtype must be "
            "an integer or a float; convert with as_type",
        ),
        (
            lambda x: x % x,
            "floor_modulo: the operands are bool[4] and bool[4], their common dtype must be "
            "an integer or a float; convert with as_type",
        ),
        (
            lambda x: dn.quotient(x, x),
            "quotient: the operands are bool[4] and bool[4], their common dtype must be "
            "an integer; convert with as_type",
        ),
        (
            lambda x: x << x,
            "left_shift: the operands are bool[4] and bool[4], their common dtype must be "
            "an integer; convert with as_type",
        ),
        (
            lambda x: dn.take(x, x),
            "take: the indices are bool[4], integers are required; convert them with as_type",
        ),
    ],
)
def test_refused(f, text):
    for run in ways(f):
        with pytest.raises(dn.DTypeError) as error:
            run(dn.tensor(MASK))
        assert str(error.value).splitlines()[0] == text


def test_gradients_are_zero():
    def loss(x):
        return dn.sum(dn.select(x > 0, x, 0.0)) + dn.sum(dn.as_type(x > 0, "f32"))

    assert dn.grad(loss)(dn.tensor([1.0, -2.0])).to_list() == [1.0, 0.0]
    assert dn.grad(lambda m: dn.sum(m * 2.0))(dn.tensor([True, False])).dtype == "f32"


def test_in_branches_and_loops():
    @dn.defn
    def count(x):
        found, total = False, 0
        for i in dn.range(x.shape[0]):
            if x[i]:
                found, total = True, total + 1
        return found, total

    for compiler in ("cpu", "evaluator"):
        found, total = dn.jit(count, compiler=compiler)(dn.tensor(MASK))
        assert (found.dtype, found.item(), total.item()) == ("bool", True, 3)


def test_bytes_other_than_0_and_1_count_as_true():
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    want = [False, True, True, True]
    assert dn.tensor(odd).to_list() == want
    for run in ways(lambda x: (dn.sum(x), dn.equal(x, True), dn.reverse(x))):
        total, equal, reverse = run(odd)
        assert (total.item(), equal.to_list()) == (3, want)
        assert reverse.to_numpy().view(np.uint8).tolist() == [1, 1, 1, 0]
    assert dn.from_binary(bytes([0, 1, 2, 255]), "bool").to_list() == want


def test_goes_out_and_comes_back(tmp_path):
    x = dn.tensor(MASK)
    assert np.asarray(x).dtype == np.bool_
    assert np.from_dlpack(x).tolist() == MASK.tolist()
    assert np.asarray(memoryview(x)).dtype == np.bool_
    assert dn.to_binary(x) == MASK.tobytes()
    np.save(tmp_path / "mask.npy", MASK)
    read = dn.load(tmp_path / "mask.npy")
    assert (read.dtype, read.to_list()) == ("bool", MASK.tolist())
    for copy in (pickle.loads(pickle.dumps(x)), dn.deserialize(dn.serialize(x))):
        assert (copy.dtype, copy.to_list()) == ("bool", MASK.tolist())
    y = np.arange(4.0)
    np.testing.assert_array_equal(y[np.asarray(x)], y[MASK])


def test_text_of_a_program_reads_back():
    def f(x):
        return dn.select(x > 0, True, x < -1)

    text = dn.graph.to_text(dn.debug_expr(f)(dn.template((3,), "f32")))
    assert "bool[3]" in text
    assert dn.graph.to_text(dn.graph.from_text(text)) == text


# Masks.

ARRAY = np.arange(24).reshape(4, 3, 2)


@pytest.mark.parametrize(
    "index",
    [
        lambda m: m(ARRAY > 7),
        lambda m: m(ARRAY[:, 0, 0] > 7),
        lambda m: m(ARRAY[:, :, 0] > 7),
        lambda m: m(np.zeros(4, bool)),
        lambda m: (m(MASK), 1),
        lambda m: (m(MASK), slice(1, None)),
        lambda m: (slice(None), m(np.array([True, False, True]))),
        lambda m: (..., m(np.array([False, True]))),
        lambda m: (1, m(np.array([True, False, True]))),
        lambda m: (slice(1, 3), m(np.ones((3, 2), bool))),
        lambda m: (None, m(MASK)),
        lambda m: (m(MASK), m(np.ones(3, bool))),
        lambda m: (m(MASK), slice(None), m(np.array([True, False]))),
        lambda m: (1, slice(None), m(np.array([True, False]))),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_masks_select_as_in_numpy(index, backend):
    want = ARRAY[index(lambda mask: mask)]
    x = dn.tensor(ARRAY, backend=backend)
    for form in (lambda mask: mask, dn.tensor, lambda mask: mask.tolist()):
        got = x[index(form)]
        np.testing.assert_array_equal(got.to_numpy(), want)
        assert got.dtype == "s64"


def test_masks_keep_names():
    x = dn.tensor(np.ones((4, 3)), names=["row", "column"])
    assert x[x[:, 0] > 0].names == ("row", "column")
    assert x[x > 0].names == (None,)


def test_masks_refused():
    x = dn.tensor([1.0, 2.0, 3.0])
    with pytest.raises(dn.BoundsError) as error:
        dn.jit(lambda x: x[x > 1])(x)
    assert str(error.value).splitlines()[0] == (
        "index: the mask bool[3] cannot index f32[3] while a definition is traced, the shape of "
        "the result would depend on its values; choose element by element with select, as in "
        "sum(select(mask, x, 0)), take n elements at nonzero(mask, size=n), "
        "or index outside of the definition"
    )
    with pytest.raises(dn.BoundsError) as error:
        x[dn.tensor([True, False])]
    assert str(error.value).splitlines()[0] == (
        "index: the mask bool[2] cannot index f32[3] from axis 0 on, it must have the sizes of "
        "the axes that it replaces"
    )
