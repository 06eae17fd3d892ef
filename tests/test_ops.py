"""Every row of the table in every dtype, eager and compiled, against its oracle."""

from __future__ import annotations

import functools
import itertools
import os

import numpy as np
import pytest

import defn as dn
from cases import Case, all_cases, store
from cases.dtypes import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMPY,
    SIGNED,
    close,
    is_complex,
    is_integer,
    is_whole,
    limits,
    merge,
    narrow,
    result_dtype,
    to_complex,
    to_float,
    to_number,
    widen,
)
from support import HERE, XLA_ULPS, in_turn, on_xla

CASES = all_cases()
ORACLE = dn.backends.NumPyBackend()
BACKENDS = (HERE, ORACLE)
# Compiled programs multiply and add with one rounding on every processor, eager operations only
# where the processor does it: docs/order.md.
SAME_BITS = not on_xla() and os.environ.get("DEFN_SIMD") != "portable"
# Functions that NumPy's backend does not support yet.
NOT_YET: set[str] = set()


def accepted(case: Case) -> tuple[str, ...]:
    return case.on_devices if on_xla() and case.on_devices else case.dtypes


ACCEPTED = [(case, dtype) for case in CASES for dtype in accepted(case)]
REFUSED = [
    (case, dtype)
    for case in CASES
    if case.refusal is not None and not case.label
    for dtype in ALL
    if dtype not in case.dtypes
]


def identify(value: object) -> str:
    return str(value)


def tolerance(case: Case, dtype: str, out: str) -> float:
    """The error in units of the last place that the default backend and compiler may have."""
    return case.tolerance(dtype, out) * (XLA_ULPS if on_xla() else 1)


def tensors(case: Case, arrays: list[np.ndarray]) -> list[dn.Tensor]:
    return [dn.tensor(array) for array in arrays]


def assert_equal_bits(left: dn.Tensor, right: dn.Tensor) -> None:
    assert (left.dtype, left.shape, left.names) == (right.dtype, right.shape, right.names)
    assert left.to_numpy().tobytes() == right.to_numpy().tobytes()


@functools.cache
def compiled_rows(case: Case) -> list[dn.Tensor]:
    """A row's results in all its dtypes. XLA compiles one program for all of them."""
    if case.creates:
        return in_turn(case.run, [(dtype,) for dtype in accepted(case)])
    return in_turn(case.run, [tensors(case, case.arrays(dtype)) for dtype in accepted(case)])


def compiled(case: Case, dtype: str) -> dn.Tensor:
    if on_xla():
        return compiled_rows(case)[accepted(case).index(dtype)]
    if case.creates:
        return dn.jit(lambda: case.run(dtype))()
    return dn.jit(lambda *args: case.run(*args))(*tensors(case, case.arrays(dtype)))


@pytest.mark.parametrize(("case", "dtype"), ACCEPTED, ids=identify)
def test_matches_oracle(case: Case, dtype: str) -> None:
    """Eager, compiled, and on NumPy's backend, each beside the row's oracle.

    An eager operation on a device is a compiled program of one operation: there, one dtype of each
    row runs eagerly, and the others in one program. NumPy's backend runs without a device.
    """
    expected_dtype = result_dtype(case.out, dtype)
    arrays = [] if case.creates else case.arrays(dtype)
    wide = arrays if case.stored else [widen(array, dtype) for array in arrays]
    with np.errstate(all="ignore"):
        want = narrow(case.oracle(*wide), expected_dtype)

    def check(got: dn.Tensor, how: str, ulps: float) -> None:
        assert str(got.dtype) == expected_dtype, how
        array = got.to_numpy()
        assert array.dtype == NUMPY[expected_dtype], how
        assert array.shape == got.shape == want.shape, how
        ok = close(array, want, expected_dtype, ulps, case.scale)
        assert ok.all(), f"{how}\ngot\n{array}\nwant\n{want}"

    whole = compiled(case, dtype)
    ulps = tolerance(case, dtype, expected_dtype)
    if not on_xla() or dtype == ("f32" if "f32" in case.dtypes else case.dtypes[0]):
        got = case.run(dtype) if case.creates else case.run(*tensors(case, arrays))
        check(got, "eager", ulps)
        if SAME_BITS:
            assert_equal_bits(got, whole)
        assert whole.names == got.names
    if on_xla():
        check(whole, "compiled", ulps)
        return
    if case.name in NOT_YET:
        return
    if case.creates:
        with dn.options(backend=ORACLE):
            got = case.run(dtype)
    else:
        got = case.run(*[dn.tensor(x, backend=ORACLE) for x in arrays])
    assert got.backend == ORACLE
    check(got, "on NumPy's backend", case.tolerance(dtype, expected_dtype))


@pytest.mark.parametrize(("case", "dtype"), REFUSED, ids=identify)
def test_refuses_dtype(case: Case, dtype: str) -> None:
    arrays = [store(np.zeros(shape), dtype) for shape in case.shapes]
    with pytest.raises(case.refusal) as error:
        case.run(*tensors(case, arrays))
    with pytest.raises(case.refusal) as traced:
        dn.jit(lambda *args: case.run(*args))(*tensors(case, arrays))
    first = str(error.value).splitlines()[0]
    assert first.startswith(case.name + ":")
    assert str(traced.value).splitlines()[0] == first


@pytest.mark.parametrize("case", [c for c in CASES if c.names is not None], ids=identify)
def test_names(case: Case) -> None:
    given, expected = case.names
    dtype = "f32" if "f32" in case.dtypes else case.dtypes[0]
    if case.creates:
        assert case.run(dtype).names == expected
        return
    args = [
        dn.tensor(array, names=list(names))
        for array, names in zip(case.arrays(dtype), given, strict=True)
    ]
    assert case.run(*args).names == expected
    assert dn.jit(lambda *args: case.run(*args))(*args).names == expected


ELEMENTWISE = [
    case
    for case in CASES
    if case.names is not None and not case.label and case.names[0] == ((("x", None), (None, "y")))
]
PAIRWISE = [c for c in ELEMENTWISE if c.shapes == ((2, 3), (2, 3)) and c.name != "all_close"]


@pytest.mark.parametrize("case", PAIRWISE, ids=identify)
def test_names_that_differ_are_refused(case: Case) -> None:
    if case.name in ("concatenate", "stack", "put_slice"):
        return
    a = dn.tensor(case.arrays(case.dtypes[0])[0], names=["x", None])
    b = dn.tensor(case.arrays(case.dtypes[0])[1], names=["y", None])
    with pytest.raises(dn.AxisError, match=r'"x".*"y"'):
        case.run(a, b)


def merging(x: dn.Tensor, y: dn.Tensor) -> dict[str, dn.Tensor]:
    """What operations of two operands make of two dtypes."""
    results = {
        "add": dn.add(x, y),
        "divide": dn.divide(x, y + dn.as_type(1, y.dtype)),
        "select": dn.select(x, x, y),
        "concatenate": dn.concatenate([x, y]),
        "dot": dn.dot(x, y),
        "equal": dn.equal(x, y),
    }
    if not is_complex(merge(str(x.dtype), str(y.dtype))):
        results["less"] = dn.less(x, y)
        results["complex"] = dn.complex(x, y)
    return results


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize("left", ALL)
def test_merging(left: str, backend: object) -> None:
    """For operands of any two dtypes: the merged dtype, and the values converted to it first."""
    a, others = store([1, 0, 1], left), [store([1, 1, 0], right) for right in ALL]
    x = dn.tensor(a, backend=backend)
    pairs = [(x, dn.tensor(b, backend=backend)) for b in others]
    for right, b, got in zip(ALL, others, in_turn(merging, pairs, backend), strict=True):
        merged = merge(left, right)
        dtypes = {name: str(value.dtype) for name, value in got.items()}
        expected = {
            "add": merged,
            "divide": to_float(merged),
            "select": merged,
            "concatenate": merged,
            "dot": to_number(merged),
            "equal": "bool",
        }
        assert got["equal"].to_list() == [1, 0, 0]
        if not is_complex(merged):
            assert got["less"].to_list() == [0, 1, 0]
            expected |= {"less": "bool", "complex": to_complex(merged)}
        assert dtypes == expected, (left, right)
        kind = np.int64 if is_whole(merged) else complex
        want = narrow(widen(a, left).astype(kind) + widen(b, right).astype(kind), merged)
        assert (got["add"].to_numpy() == want).all(), (left, right)


@pytest.mark.parametrize("left", INTEGERS)
def test_integers_compare_by_value(left: str) -> None:
    for right in INTEGERS:
        numbers = [(a, b) for a in limits(left) for b in limits(right)]
        for backend in BACKENDS:
            a = store(np.array([a for a, _ in numbers], dtype=object), left)
            b = store(np.array([b for _, b in numbers], dtype=object), right)
            x, y = dn.tensor(a, backend=backend), dn.tensor(b, backend=backend)
            assert dn.less(x, y).to_list() == [int(a < b) for a, b in numbers], (left, right)
            assert dn.equal(x, y).to_list() == [int(a == b) for a, b in numbers], (left, right)
            assert dn.greater_equal(x, y).to_list() == [int(a >= b) for a, b in numbers]


WEAK = [
    ("u8", 255, "u8"),
    ("u2", 3, "u2"),
    ("s8", 127, "s8"),
    ("s8", -128, "s8"),
    ("s2", -2, "s2"),
    ("u64", 2**64 - 1, "u64"),
    ("s32", 1.5, "f32"),
    ("u8", True, "u8"),
    ("f16", 1e9, "f16"),
    ("bf16", 2, "bf16"),
    ("f8_e4m3fn", 1.5, "f8_e4m3fn"),
    ("f64", 0.1, "f64"),
    ("f16", float("inf"), "f16"),
    ("c64", 1.0, "c64"),
    ("f32", 1j, "c64"),
    ("f64", 1j, "c128"),
]


@pytest.mark.parametrize(("dtype", "number", "expected"), WEAK)
def test_weak_numbers(dtype: str, number: complex, expected: str) -> None:
    x = dn.tensor(store([1], dtype))
    for result in (x + number, number + x, dn.add(x, number), dn.jit(lambda t: t + number)(x)):
        assert str(result.dtype) == expected
    assert str(dn.pad(x, number, [(1, 0, 0)]).dtype) == expected
    assert str(dn.fill(x, number).dtype) == expected


def test_a_number_inside_a_definition_keeps_its_precision() -> None:
    x = dn.tensor(np.array([1.0]))
    assert dn.jit(lambda t: t * 0.1)(x).to_list() == [0.1]
    assert (x * 0.1).to_list() == [0.1]


def test_numbers_as_arguments_give_way() -> None:
    half = dn.tensor(store([1], "f16"))
    assert dn.jit(lambda x, y: x + y)(half, 1.0).dtype == "f16"


@pytest.mark.parametrize("source", ALL)
def test_casts(source: str) -> None:
    """Every dtype to every other, with values at the limits."""
    if is_integer(source):
        low, high = limits(source)
        numbers = np.array([0, 1, low, high, high // 2], dtype=object)
        array = store(numbers, source)
    elif is_complex(source):
        array = store([0, 1.5 + 1j, -2.75, 1e4 - 1j, np.inf], source)
    else:
        with np.errstate(all="ignore"):
            array = store([0.0, -0.0, 1.5, -2.75, 448.0, np.nan, np.inf, -np.inf], source)
    for backend in BACKENDS:
        x = dn.tensor(array, backend=backend)
        results = in_turn(dn.as_type, [(x, target) for target in ALL], backend)
        for target, got in zip(ALL, results, strict=True):
            wide_array = widen(array, source)
            if is_complex(source) and not is_complex(target):
                wide_array = wide_array.real
            want = narrow(wide_array, target)
            assert str(got.dtype) == target
            ok = close(got.to_numpy(), want, target, 0, 0.0)
            assert ok.all(), f"{source} to {target} on {backend}: got {got}, want {want}"


SPECIAL = [
    case
    for case in CASES
    if len(case.shapes) <= 2
    and not case.stored
    and case.names is not None
    and case.names[0][:1] == ((("x", None)),)
]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize(
    "case",
    [c for c in SPECIAL if "f32" in c.dtypes and not c.label and c.shapes[-1] == (2, 3)],
    ids=identify,
)
def test_special_values(case: Case, dtype: str) -> None:
    """NaN, infinities, both zeros and subnormals, compared with NumPy and SciPy.

    XLA's programs for the CPU flush subnormals to zero, in operands and in results.
    """
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-30 if on_xla() else 1e-40])
    with np.errstate(all="ignore"):
        if len(case.shapes) == 1:
            arrays = [store(edges, dtype)]
        else:
            pairs = list(itertools.product(edges, edges))
            arrays = [store([p[i] for p in pairs], dtype) for i in (0, 1)]
        want = case.oracle(*[widen(array, dtype) for array in arrays])
    out = result_dtype(case.out, dtype)
    want = narrow(want, out)
    for backend in BACKENDS:
        got = case.run(*[dn.tensor(array, backend=backend) for array in arrays]).to_numpy()
        ulps = tolerance(case, dtype, out) if backend == HERE else case.tolerance(dtype, out)
        ok = close(got, want, out, ulps, 0.0)
        rows = [[float(array.reshape(-1)[i]) for array in arrays] for i in np.flatnonzero(~ok)]
        assert ok.all(), f"on {backend} at {rows}: got {got[~ok]}, want {want[~ok]}"


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize("dtype", SIGNED)
def test_integers_wrap(dtype: str, backend: object) -> None:
    low, high = limits(dtype)
    least = dn.tensor(store(np.array([low], dtype=object), dtype), backend=backend)
    greatest = dn.tensor(store(np.array([high], dtype=object), dtype), backend=backend)
    one = dn.tensor(store([1], dtype), backend=backend)
    assert (greatest + one).to_list() == [low]
    assert (-least).to_list() == [low]
    assert abs(least).to_list() == [low]
    assert dn.quotient(least, -one).to_list() == [low]
    assert dn.remainder(least, -one).to_list() == [0]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_by_zero(dtype: str, backend: object) -> None:
    """An eager division raises an error instead of a trap, and its operands are unchanged."""
    x = dn.tensor(store([1], dtype), backend=backend)
    zero = dn.tensor(store([0], dtype), backend=backend)
    for function in (dn.quotient, dn.remainder):
        with pytest.raises(dn.DivisionError, match="divisor"):
            function(x, zero)
    assert x.to_list() == [1]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_python_division_floors(dtype: str, backend: object) -> None:
    numbers = [(7.0, 2.0), (-7.0, 2.0), (7.0, -2.0), (-7.0, -2.0)]
    x = dn.tensor(store([a for a, _ in numbers], dtype), backend=backend)
    y = dn.tensor(store([b for _, b in numbers], dtype), backend=backend)
    assert (x // y).to_list() == [a // b for a, b in numbers]
    assert (x % y).to_list() == [a % b for a, b in numbers]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize("dtype", SIGNED[2:])
def test_python_integer_division_floors(dtype: str, backend: object) -> None:
    numbers = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)]
    x = dn.tensor(store([a for a, _ in numbers], dtype), backend=backend)
    y = dn.tensor(store([b for _, b in numbers], dtype), backend=backend)
    assert (x // y).to_list() == [a // b for a, b in numbers]
    assert (x % y).to_list() == [a % b for a, b in numbers]
    assert (x // y).dtype == dtype


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_shifts_beyond_the_width(backend: object) -> None:
    x = dn.tensor([-5, 5], backend=backend)
    assert dn.left_shift(x, 40).to_list() == [0, 0]
    assert dn.right_shift(x, 40).to_list() == [-1, 0]
    with pytest.raises(dn.OptionError, match="negative"):
        dn.left_shift(x, dn.tensor(-1, backend=backend))


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_zero_sized_axes(backend: object) -> None:
    empty = dn.broadcast(dn.tensor(0.0, backend=backend), (2, 0, 3))
    assert dn.exp(empty).shape == (2, 0, 3)
    assert (empty + 1).shape == (2, 0, 3)
    assert dn.sum(empty, axes=[1]).to_list() == [[0.0] * 3] * 2
    assert dn.product(empty, axes=[1]).to_list() == [[1.0] * 3] * 2
    assert dn.all(empty, axes=[1]).to_list() == [[1] * 3] * 2
    assert dn.any(empty, axes=[1]).to_list() == [[0] * 3] * 2
    assert dn.concatenate([empty, dn.broadcast(1.0, (2, 1, 3))], axis=1).shape == (2, 1, 3)
    assert dn.dot(dn.broadcast(1.0, (2, 0)), dn.broadcast(1.0, (0, 3))).to_list() == [[0.0] * 3] * 2
    for function in (dn.reduce_max, dn.reduce_min, dn.mean):
        with pytest.raises(dn.ShapeError, match="no element"):
            function(empty, axes=[1])
    for function in (dn.argmax, dn.argmin):
        with pytest.raises(dn.ShapeError, match="no element"):
            function(empty, axis=1)


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_no_axes_reduce_nothing(backend: object) -> None:
    x = dn.tensor([[1, 2], [3, 4]], dtype="u8", backend=backend)
    assert dn.sum(x, axes=[]).to_list() == [[1, 2], [3, 4]]
    assert dn.sum(x, axes=[]).dtype == "u32"
    assert dn.all(x, axes=[]).to_list() == [[True, True], [True, True]]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_rank_ten(backend: object) -> None:
    x = dn.iota((1, 2, 1, 2, 1, 2, 1, 2, 1, 2), backend=backend)
    want = np.arange(32).reshape(x.shape)
    assert (dn.transpose(x).to_numpy() == want.T).all()
    assert (dn.sum(x, axes=[1, 5, 9]).to_numpy() == want.sum((1, 5, 9))).all()
    assert ((x + dn.transpose(x)).to_numpy() == want + want.T).all()


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_uint64_sums_are_signed(backend: object) -> None:
    assert dn.sum(dn.tensor(store([1, 2], "u64"), backend=backend)).dtype == "s64"
    assert dn.mean(dn.tensor(store([1, 2], "s64"), backend=backend)).dtype == "f32"
