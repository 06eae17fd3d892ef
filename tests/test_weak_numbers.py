"""Plain numbers beside tensors: they affect the kind of a dtype, never its width."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases import weak_nn, weak_numbers
from cases.dtypes import EPSILON, NUMPY, is_complex, is_float
from cases.weak_numbers import DRAWN, Row, together, wide
from defn.tensors import ALIASES

CASES = [*weak_numbers.CASES, *weak_nn.CASES]
EXCUSED: dict[Any, str] = {**weak_numbers.EXCUSED, **weak_nn.EXCUSED}

PAIRS = [
    pytest.param(row, dtype, number, id=f"{row}-{dtype}-{number}")
    for row in CASES
    for dtype, number in row.pairs()
]


def bits(tensor: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(tensor)
    return str(array.dtype), array.shape, array.tobytes()


def same_traced(row: Row, x: dn.Tensor, number: Any, eager: dn.Tensor) -> None:
    """In a definition the number is a constant, and gives the same result as an eager call."""
    traced = dn.jit(lambda x: row.call(x, number))(x)
    assert traced.dtype == eager.dtype
    assert bits(traced) == bits(eager)


@pytest.mark.parametrize(("row", "dtype", "number"), PAIRS)
def test_numbers_give_way(row: Row, dtype: str, number: Any) -> None:
    array = row.array(dtype)
    x = dn.tensor(array)
    common = together(dtype, number)
    result = row.call(x, number)
    wanted = row.expected(array, number, common)
    assert tuple(result.shape) == wanted.shape
    if row.out is None:
        assert np.array_equal(np.asarray(result) != 0, wanted != 0)
    else:
        out = row.out(common)
        assert result.dtype == out
        found = wide(np.asarray(result), out)
        if not (is_float(out) or is_complex(out)) or row.ulps == 0:
            assert np.array_equal(found, wide(wanted, out), equal_nan=True)
        else:
            limit = row.ulps * EPSILON[out] * np.maximum(np.abs(wanted), EPSILON[out])
            close = np.abs(found - wanted) <= limit
            assert np.all(close | (np.isnan(found) & np.isnan(wanted))), (found, wanted)
    same_traced(row, x, number, result)


@pytest.mark.parametrize("row", DRAWN, ids=str)
def test_bounds_of_samples_give_way(row: Row) -> None:
    for dtype in row.dtypes:
        x = dn.tensor(row.array(dtype) + (4 if row.parameter == "min" else 0))
        (number,) = row.numbers
        if row.name.startswith("random.randint") and row.parameter == "max":
            number = 90
        result = row.call(x, number)
        assert result.dtype == dtype
        strong = dn.tensor(np.asarray(number, NUMPY[dtype]))
        assert bits(result) == bits(row.call(x, strong))
        same_traced(row, x, number, result)


# Functions that are not defined for negative numbers, or not by the same convention as the oracle.
OF_POSITIVE = ("log", "pow", "betainc", "betaln", "gammainc", "gammaincc")

BEYOND = [
    pytest.param(row, dtype, number, id=f"{row}-{dtype}-{number}")
    for row in CASES
    for dtype, number in (("u8", 300), ("u8", -1), ("s8", 128), ("s8", -(2**40)), ("u8", 10**40))
    if dtype in row.dtypes and not (row.name in OF_POSITIVE and number < 0)
    # Infinite as f32, where the logarithm of the function is not the limit of its finite values.
    if not (row.name == "betaln" and number == 10**40)
]


@pytest.mark.parametrize(("row", "dtype", "number"), BEYOND)
def test_integers_beyond_the_dtype(row: Row, dtype: str, number: int) -> None:
    array = row.array(dtype)
    x = dn.tensor(array)
    if row.beyond == "raises":
        # The error is also an OverflowError, as in Python.
        with pytest.raises(OverflowError) as at_once:
            row.call(x, number)
        assert isinstance(at_once.value, dn.RangeError)
        with pytest.raises(dn.RangeError) as traced:
            dn.jit(lambda x: row.call(x, number))(x)
        first = str(at_once.value).splitlines()[0]
        assert first == str(traced.value).splitlines()[0]
        assert f"the integer {number if abs(number) < 2**127 else '1e40'} beside {dtype}" in first
        assert "convert the tensor to a wider dtype with as_type" in first
        return
    result = row.call(x, number)
    if row.beyond == "exact":
        wanted = np.asarray(row.oracle(array.astype(object), np.asarray(number, dtype=object)))
        assert np.array_equal(np.asarray(result) != 0, wanted.astype(bool))
    elif row.beyond == "saturates":
        limits = np.iinfo(NUMPY[dtype])
        nearest = min(max(number, limits.min), limits.max)
        assert result.dtype == dtype
        wanted = row.oracle(array, np.asarray(nearest, array.dtype))
        assert np.array_equal(np.asarray(result), wanted)
    else:
        assert row.beyond == "float"
        wanted = np.asarray(row.oracle(array.astype(np.float64), np.float64(number)))
        with np.errstate(over="ignore"):
            wanted = wanted.astype(np.asarray(result).dtype)
        assert np.allclose(np.asarray(result), wanted, rtol=1e-6, equal_nan=True)
    same_traced(row, x, number, result)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "f64", "c64"])
@pytest.mark.parametrize("number", [1e6, -(10**6), 10**20, 2**127, 10**40, -(10**400), 1e300])
def test_floats_become_infinite(dtype: str, number: Any) -> None:
    array = np.array([1, 2], NUMPY[dtype])
    x = dn.tensor(array)
    try:
        value = float(number)
    except OverflowError:
        value = -np.inf
    with np.errstate(over="ignore"):
        wanted = np.asarray(value, np.float64).astype(NUMPY[dtype])
    for call in (dn.fill, lambda x, n: dn.select(dn.tensor([0, 0]), x, n), lambda x, n: x * 0 + n):
        for result in (call(x, number), dn.jit(lambda x, call=call: call(x, number))(x)):
            assert result.dtype == dtype
            assert np.array_equal(np.asarray(result), np.array([wanted, wanted]))


def test_numbers_alone() -> None:
    """Without a tensor the numbers determine the dtype."""
    assert dn.add(1, 2).dtype == "s32"
    assert dn.add(1, 0.5).dtype == "f32"
    assert dn.stack([1, 0.5, 2j]).dtype == "c64"
    assert dn.select(dn.tensor(1), 1, 0.5).dtype == "f32"
    assert dn.clip(5, 0, 0.5).dtype == "f32"
    with pytest.raises(dn.RangeError):
        dn.add(2**31, 1)


def test_numpy_scalars_are_strong() -> None:
    x = dn.tensor(np.array([1, 2], np.float32))
    for number in (np.float64(0.1), np.array(0.1)):
        for result in (x * number, dn.select(dn.tensor([0, 1]), x, number), dn.max(x, number)):
            assert result.dtype == "f64"
    assert (dn.tensor(np.array([1], np.int8)) + np.int32(300)).dtype == "s32"
    assert dn.jit(lambda x: dn.stack([x[0], np.float64(0.1)]))(x).dtype == "f64"


def functions() -> list[tuple[str, str]]:
    """The operands of each public function that takes several, at which a number may stand."""
    found = []
    modules = [("", dn), ("linalg.", dn.linalg), ("nn.", dn.nn), ("random.", dn.random)]
    for prefix, module in modules:
        for name in dir(module):
            function = getattr(module, name)
            is_ours = getattr(function, "__module__", "").startswith("defn")
            if name in ALIASES or name.startswith("_") or not callable(function) or not is_ours:
                continue
            if inspect.isclass(function) or isinstance(function, dn.DType):
                continue
            parameters = inspect.signature(function).parameters.values()
            operands = [
                p.name
                for p in parameters
                if "TensorLike" in str(p.annotation) and "Callable" not in str(p.annotation)
            ]
            several = len(operands) > 1 or "Sequence[TensorLike]" in str(
                inspect.signature(function)
            )
            if several:
                found.extend((prefix + name, operand) for operand in operands)
    return found


def test_every_function_has_its_rows() -> None:
    rows = {(row.name, row.parameter) for row in (*CASES, *DRAWN)}
    wanted = {
        (name, parameter)
        for name, parameter in functions()
        if name not in EXCUSED and (name, parameter) not in EXCUSED
    }
    # The signature of `dot` does not name its operands.
    assert rows - {("dot", "a"), ("dot", "b")} == wanted
    known = {name for name, _ in functions()} | set(functions())
    assert {key for key in EXCUSED if key not in known and key != "as_type"} == set()


DTYPES = ["bf16", "f16", "f64", "c64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_branches(dtype: str) -> None:
    """The number in one branch takes the dtype of the tensor in the other."""
    x = dn.tensor(np.array(1.5, NUMPY[dtype]))

    def chosen(p: Any, x: Any) -> Any:
        return dn.cond([(p > 0, lambda: 0.1)], lambda: x), dn.if_(p > 0, x, 0.1)

    for call in (chosen, dn.jit(chosen)):
        for p in (dn.tensor(1), dn.tensor(-1)):
            for result in call(p, x):
                assert result.dtype == dtype
    number = np.asarray(0.1).astype(NUMPY[dtype])
    assert np.asarray(chosen(dn.tensor(1), x)[0]) == number
    byte = dn.tensor(np.array(3, np.uint8))
    with pytest.raises(dn.RangeError, match="cond: the integer 300 beside u8"):
        dn.jit(lambda p, x: dn.if_(p > 0, x, 300))(dn.tensor(1), byte)


LOOPS = {
    "while_": lambda start, x: dn.while_(
        (start, 0), lambda s: s[1] < 3, lambda s: (s[0] + x, s[1] + 1)
    )[0],
    "for_": lambda start, x: dn.for_(start, range(3), lambda s, _: s + x),
    "for_ unrolled": lambda start, x: dn.for_(start, range(3), lambda s, _: s + x, unroll=True),
    "for_ in pairs": lambda start, x: dn.for_(start, range(5), lambda s, _: s + x, unroll=2),
    "scan": lambda start, x: dn.scan(start, range(3), lambda s, _: (s + x, s))[0],
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("start", "dtype", "wanted"),
    [
        (0, "f64", "f64"),
        (0.1, "f64", "f64"),
        (0, "bf16", "bf16"),
        (0, "c64", "c64"),
        (0, "s64", "s64"),
    ],
)
def test_loop_states(loop: str, start: Any, dtype: str, wanted: str) -> None:
    """A number as the initial state takes the dtype of the body's result."""
    x = dn.tensor(np.array(1.25 if dtype != "s64" else 2).astype(NUMPY[dtype]))
    run = LOOPS[loop]
    trips = 5 if loop == "for_ in pairs" else 3
    expected = np.asarray(start).astype(NUMPY[wanted])
    for _ in range(trips):
        expected = (expected + np.asarray(x)).astype(NUMPY[wanted])
    for result in (run(start, x), dn.jit(lambda x: run(start, x))(x)):
        assert result.dtype == wanted
        assert np.asarray(result) == expected


def test_loop_statements() -> None:
    @dn.defn
    def total(x: Any) -> Any:
        s, n = 0, 0
        while n < 3:
            s = s + x
            n = n + dn.tensor(1)
        return s

    @dn.defn
    def each(xs: Any) -> Any:
        s = 0
        for x in xs:
            s = s + x
        return s

    x = dn.tensor(np.array(0.1))
    assert total(x).dtype == "f64"
    assert np.asarray(total(x)) == 0.1 + 0.1 + 0.1
    assert each(dn.tensor(np.array([0.5, 0.25]))).dtype == "f64"


def test_what_still_changes_raises() -> None:
    def body(state: Any) -> Any:
        # The second trace returns another dtype than the first.
        return (state + 0.5).as_type("f64" if state.dtype == "s32" else "f16")

    with pytest.raises(dn.ContainerError, match="while_: the body's value"):
        dn.while_(0, lambda s: s < 3, body)
    with pytest.raises(dn.ContainerError, match="s32"):
        # A float does not give way to an integer.
        dn.while_(0.5, lambda s: s < 3, lambda s: s.as_type("s32"))


def test_ranges_with_narrow_bounds_end() -> None:
    """The counter is wide enough for a step beyond the bound."""

    @dn.defn
    def count(n: Any) -> Any:
        trips = 0
        for _ in dn.range(0, n, 100):
            trips = trips + 1
        return trips

    assert int(count(dn.tensor(np.array(255, np.uint8)))) == 3
    assert [int(x) for x in dn.scan(0, range(0, 1, 2**40), lambda s, i: (s, i))[1]] == [0]


def test_loops_position_by_position() -> None:
    """A loop that runs position by position must not be traced for all positions at once."""
    starts = dn.vectorize(dn.tensor([0, 2]), "row")
    x = dn.tensor(np.zeros(4, np.float32))

    def body(state: Any) -> Any:
        at, total, x = state
        return at + 1, total + x[0], dn.put_slice(x, [at], dn.tensor([7.0]))

    _, total, last = dn.while_((starts, 0.5, x), lambda s: s[0] < 3, body)
    assert dn.devectorize(last).to_list() == [[7, 7, 7, 0], [0, 0, 7, 0]]
    assert np.allclose(dn.devectorize(total).to_numpy(), [14.5, 0.5])
