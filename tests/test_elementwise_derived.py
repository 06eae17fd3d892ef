"""Element-wise functions that are built from others, at the ends of dtypes and in derivatives."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import defn as dn
from cases.dtypes import FLOATS, NUMPY, SIGNED, UNSIGNED


def arrays(*values: float, dtype: str) -> dn.Tensor:
    return dn.tensor(np.array(values).astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sign_bits_are_those_of_zeros_and_of_nan(dtype: str) -> None:
    x = arrays(0.0, -0.0, 1.0, -1.0, math.nan, -math.nan, dtype=dtype)
    want = np.signbit(np.asarray(x).astype(np.float32))
    assert want.tolist()[:4] == [False, True, False, True]
    assert want[4] != want[5]
    for call in (dn.signbit, dn.jit(dn.signbit)):
        assert call(x).to_list() == want.tolist()


@pytest.mark.parametrize("dtype", [*UNSIGNED, *SIGNED])
def test_sign_bits_of_integers(dtype: str) -> None:
    x = arrays(0, 1, dtype=dtype)
    assert dn.signbit(x).to_list() == [False, False]
    assert dn.signbit(-x).to_list() == [False, dtype in SIGNED]


def test_finite_complex_numbers_may_have_no_finite_size() -> None:
    parts = [(3e38, 3e38), (1.0, math.inf), (-math.inf, 0.0), (math.nan, 1.0), (1.0, math.nan)]
    z = dn.tensor(np.array([complex(*pair) for pair in parts], np.complex64))
    assert dn.isfinite(z).to_list() == [True, False, False, False, False]


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_two_are_exact(dtype: str) -> None:
    whole = np.arange(-8, 9)
    got = dn.exp2(dn.tensor(whole.astype(NUMPY[dtype])))
    with np.errstate(over="ignore"):
        want = (2.0**whole).astype(NUMPY[dtype])
    assert np.array_equal(got.to_numpy().astype(np.float64), want.astype(np.float64))


def test_powers_of_two_at_the_ends() -> None:
    x = dn.tensor([1023.0, 1024.0, -1074.0, -1080.0, math.inf, -math.inf], dtype="f64")
    assert dn.exp2(x).to_list() == [2.0**1023, math.inf, 2.0**-1074, 0.0, math.inf, 0.0]


def test_truncated_fractions_keep_their_sign() -> None:
    x = dn.tensor([-0.5, 0.5, -0.0, math.inf, -math.inf, 2.0**23 + 1, -1.5])
    got = dn.trunc(x).to_numpy()
    assert np.array_equal(got, np.trunc(x.to_numpy()))
    assert np.array_equal(np.signbit(got), np.signbit(x.to_numpy()))
    wide = dn.tensor([2**63 - 1, -(2**63)], dtype="s64")
    assert dn.trunc(wide).to_list() == wide.to_list()


def exact_derivatives(x: float) -> tuple[float, float]:
    """The first two derivatives of sin(pi x) / (pi x), of the series with 40 terms."""
    first = second = 0.0
    for k in range(1, 40):
        factor = (-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1)
        first += factor * 2 * k * x ** (2 * k - 1)
        second += factor * 2 * k * (2 * k - 1) * x ** (2 * k - 2)
    return first, second


@pytest.mark.parametrize(("dtype", "within"), [("f32", 2e-6), ("f64", 4e-15)])
@pytest.mark.parametrize("x", [0.0, 1e-30, 1e-8, -1e-4, 0.01, 0.3, 0.3183, 0.319, -0.4, 0.5, 1.0])
def test_derivatives_of_sinc(x: float, dtype: str, within: float) -> None:
    at = dn.tensor(x, dtype=dtype)
    first, second = dn.grad(dn.sinc), dn.grad(dn.grad(dn.sinc))
    want = exact_derivatives(float(at))
    # The first derivative is nearly pi**2 / 3 times x.
    assert abs(float(first(at)) - want[0]) <= within * 4 * max(abs(want[0]), abs(x) * 1e-3)
    assert abs(float(second(at)) - want[1]) <= within * 20


def test_sinc_at_whole_and_large_numbers() -> None:
    x = dn.tensor([1.0, -2.0, 1e6, 2.0**24, 3.4e38, 0.5, 1.5, 2.5, -3.5])
    got = dn.sinc(x).to_numpy()
    assert np.array_equal(got[:5], np.zeros(5))
    halves = np.array([0.5, 1.5, 2.5, -3.5])
    assert np.allclose(got[5:], np.sinc(halves), rtol=3e-7, atol=0)


@pytest.mark.parametrize("name", ["isfinite", "signbit", "square", "reciprocal", "trunc", "exp2"])
def test_empty_tensors_and_names(name: str) -> None:
    x = dn.tensor(np.zeros((0, 2), np.float32), names=["a", None])
    result = getattr(dn, name)(x)
    assert (result.shape, result.names) == ((0, 2), ("a", None))


NAMES = ("isfinite", "signbit", "square", "reciprocal", "trunc", "exp2", "radians", "degrees")


@pytest.mark.parametrize("name", [*NAMES, "sinc"])
def test_vmap_and_vectorized_axes(name: str) -> None:
    function = getattr(dn, name)
    x = dn.tensor(np.linspace(-2.0, 2.0, 6, dtype=np.float32).reshape(2, 3))
    want = function(x).to_numpy()
    assert np.array_equal(dn.vmap(function)(x).to_numpy(), want)
    lanes = function(dn.vectorize(x, "lane"))
    assert np.array_equal(dn.devectorize(lanes).to_numpy(), want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_come_from_zeros_and_nan(dtype: str) -> None:
    a = arrays(1.5, -1.5, 0.0, -0.0, math.nan, dtype=dtype)
    for sign in (0.0, -0.0, 3.0, -3.0, math.nan, -math.nan):
        b = arrays(sign, dtype=dtype)
        got = np.asarray(dn.copysign(a, b)).astype(np.float32)
        want = np.signbit(np.asarray(b).astype(np.float32))
        assert np.array_equal(np.signbit(got), np.broadcast_to(want, 5))
        assert np.array_equal(np.abs(got), np.abs(np.asarray(a).astype(np.float32)), equal_nan=True)


ENDS = {
    "f16": (6e4, 1e-7),
    "bf16": (3e38, 1e-40),
    "f32": (3e38, 1e-44),
    "f64": (1.7e308, 4.9e-323),
}


@pytest.mark.parametrize("dtype", ENDS)
def test_hypotenuses_neither_overflow_nor_underflow(dtype: str) -> None:
    large, tiny = ENDS[dtype]
    sizes = [large / 8, large / 1e3, 1.0, 3e-3, tiny * 100, tiny]
    a = np.array([x for x in sizes for _ in sizes]).astype(NUMPY[dtype])
    b = np.array(sizes * len(sizes)).astype(NUMPY[dtype])
    want = [math.hypot(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    for call in (dn.hypot, dn.jit(dn.hypot)):
        got = call(dn.tensor(a), dn.tensor(-b)).to_numpy()
        error = np.abs(got.astype(np.float64) - want)
        least = float(np.asarray(tiny, NUMPY[dtype])) if dtype != "f16" else 2.0**-24
        one = np.spacing(got) if dtype != "bf16" else got.astype(np.float64) * 2.0**-7
        assert (error <= np.maximum(np.abs(one.astype(np.float64)), least)).all(), (error, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_gradients_of_hypotenuses_at_the_ends(dtype: str) -> None:
    large, _ = ENDS[dtype]
    slope = dn.grad(lambda a, b: dn.sum(dn.hypot(a, b)), argnums=(0, 1))
    a = dn.tensor([0.375 * large, 3e-300 if dtype == "f64" else 3e-36, 3.0, 0.0, 2.0], dtype=dtype)
    b = a * (4 / 3)
    left, right = slope(a, b)
    assert np.allclose(left.to_numpy(), [0.6, 0.6, 0.6, 0.0, 0.6], rtol=1e-6)
    assert np.allclose(right.to_numpy(), [0.8, 0.8, 0.8, 0.0, 0.8], rtol=1e-6)
    ends = (
        dn.tensor([math.inf, math.inf, 0.0], dtype=dtype),
        dn.tensor([math.nan, 1.0, 2.0], dtype=dtype),
    )
    left, right = slope(*ends)
    assert left.to_list() == [0.0, 0.0, 0.0]
    assert right.to_list() == [0.0, 0.0, 1.0]


def test_sums_of_exponentials_at_the_ends() -> None:
    inf = math.inf
    a = dn.tensor([-inf, inf, inf, -inf, 1000.0, -1000.0, 0.0, math.nan], dtype="f64")
    b = dn.tensor([-inf, inf, -inf, 2.0, 1000.0, -1001.0, -50.0, inf], dtype="f64")
    with np.errstate(invalid="ignore"):
        want = np.logaddexp(a.to_numpy(), b.to_numpy())
    assert np.allclose(dn.logaddexp(a, b).to_numpy(), want, rtol=1e-15, atol=0, equal_nan=True)
    assert dn.logaddexp(a, b).to_list()[:3] == [-inf, inf, inf]
    slope = dn.grad(lambda a, b: dn.sum(dn.logaddexp(a, b)), argnums=(0, 1))
    left, right = (part.to_numpy() for part in slope(a, b))
    weight = 1 / (1 + math.exp(-1))
    assert np.allclose(left[2:7], [1.0, 0.0, 0.5, weight, 1.0])
    assert np.allclose(right[2:7], [0.0, 1.0, 0.5, 1 - weight, 0.0])
    assert (left[:2] + right[:2]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("at", [(0.3, 0.3), (0.3, 0.7), (2.0, -1.0)])
def test_second_derivatives_of_a_sum_of_exponentials(at: tuple[float, float]) -> None:
    a, b = (dn.tensor(x, dtype="f64") for x in at)
    weight = 1 / (1 + math.exp(at[1] - at[0]))
    want = weight * (1 - weight)
    twice = dn.grad(dn.grad(dn.logaddexp))
    mixed = dn.grad(lambda b: dn.grad(dn.logaddexp)(a, b))
    assert float(twice(a, b)) == pytest.approx(want, rel=1e-13)
    assert float(mixed(b)) == pytest.approx(-want, rel=1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_next_float_is_next(dtype: str) -> None:
    """Every float of a narrow dtype, and the ends of the others, beside those of ml_dtypes."""
    kind = NUMPY[dtype]
    if kind.itemsize == 1:
        every = np.arange(256, dtype=np.uint8).view(kind)
    elif kind.itemsize == 2:
        every = np.arange(0, 2**16, 7, dtype=np.uint16).view(kind)
    else:
        info = np.finfo(kind)
        ends = [0.0, info.tiny, info.smallest_subnormal, info.max, np.inf, 1.0, np.nan, 2.0]
        every = np.array([*ends, *(-x for x in ends)], kind)
    for direction in (np.inf, -np.inf, 0.0, -0.0, 1.0, np.nan):
        towards = np.full(every.shape, direction).astype(kind)
        with np.errstate(all="ignore"):
            want = np.nextafter(every, towards)
        for call in (dn.nextafter, dn.jit(dn.nextafter)):
            got = call(dn.tensor(every), dn.tensor(towards)).to_numpy()
            assert np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)
    zero = dn.nextafter(dn.tensor(np.zeros(1, kind)), dn.tensor(np.full(1, -0.0, kind)))
    assert np.signbit(np.asarray(zero).astype(np.float32)).all()


def test_the_quotient_and_the_remainder_are_those_of_the_operators() -> None:
    a = dn.tensor([7.5, -7.5, 7.5, -7.5, 0.0, -0.0, math.inf], dtype="f64")
    b = dn.tensor([2.0, 2.0, -2.0, -2.0, -3.0, 3.0, 2.0], dtype="f64")
    for quotient, remainder in (
        dn.divmod(a, b),
        dn.jit(dn.divmod)(a, b),
        divmod(a, b),
        a.divmod(b),
    ):
        assert np.array_equal(quotient.to_numpy(), (a // b).to_numpy(), equal_nan=True)
        assert np.array_equal(remainder.to_numpy(), (a % b).to_numpy(), equal_nan=True)
        assert np.array_equal(np.signbit(quotient.to_numpy()), np.signbit((a // b).to_numpy()))
    quotient, remainder = divmod(7, dn.tensor([2, -2]))
    assert (quotient.to_list(), remainder.to_list()) == ([3, -4], [1, -1])
    wide, _ = divmod(dn.tensor([2**63 - 1], dtype="s64"), 10)
    assert wide.to_list() == [(2**63 - 1) // 10]
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod(a, "two")
    with pytest.raises(dn.DivisionError):
        dn.divmod(dn.tensor([1, 2]), 0)


def test_fmod_is_the_remainder_of_numpys_fmod() -> None:
    a, b = np.array([7.5, -7.5, 7.5, -0.0, np.inf]), np.array([2.0, 2.0, -2.0, 3.0, 2.0])
    got = dn.fmod(dn.tensor(a), dn.tensor(b)).to_numpy()
    with np.errstate(invalid="ignore"):
        want = np.fmod(a, b)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got[:4]), np.signbit(want[:4]))


PAIRS = ("copysign", "hypot", "logaddexp", "heaviside", "nextafter", "fmod")


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_with_vmap_vectorized_axes_and_no_elements(name: str) -> None:
    function = getattr(dn, name)
    x = dn.tensor(np.linspace(-2.0, 2.0, 6, dtype=np.float32).reshape(2, 3))
    y = dn.tensor(np.array([0.5, -1.5, 2.0], np.float32))
    want = function(x, y).to_numpy()
    assert np.array_equal(dn.vmap(function, in_axes=(0, None))(x, y).to_numpy(), want)
    lanes = function(dn.vectorize(x, "lane"), y)
    assert np.array_equal(dn.devectorize(lanes).to_numpy(), want)
    flipped = function(y, dn.vectorize(x, "lane"))
    assert np.array_equal(dn.devectorize(flipped).to_numpy(), function(y, x).to_numpy())
    assert function(x[:0], y).shape == (0, 3)


@pytest.mark.parametrize("dtype", [*FLOATS, "c64", "c128"])
def test_infinities_become_the_ends_of_the_dtype(dtype: str) -> None:
    ends = [math.nan, math.inf, -math.inf, -0.0, 1.5]
    values = np.array(ends)
    if dtype[0] == "c":
        values = np.array([complex(*parts) for parts in zip(ends, ends[::-1], strict=True)])
    if dtype == "f8_e4m3fn":
        values = np.array([math.nan, 448.0, -448.0, -0.0, 1.5])
    stored = values.astype(NUMPY[dtype])
    part = {"c64": "f32", "c128": "f64"}.get(dtype, dtype)
    highest = float(ml_dtypes.finfo(NUMPY[part]).max)
    for call in (dn.nan_to_num, dn.jit(dn.nan_to_num)):
        got = call(dn.tensor(stored)).to_numpy()
        assert got.dtype == stored.dtype
        want = np.array([0.0, highest, -highest, -0.0, 1.5])
        reals = got.real if dtype[0] == "c" else got
        assert np.array_equal(reals.astype(np.float64), want)
        assert np.signbit(reals.astype(np.float64))[3]
        if dtype[0] == "c":
            assert np.array_equal(got.imag.astype(np.float64)[[0, 2, 3, 4]], want[[4, 2, 1, 0]])


def test_gradients_flow_where_no_number_is_replaced() -> None:
    x = dn.tensor([math.nan, math.inf, -math.inf, 2.0, -3.0])
    assert dn.grad(lambda x: dn.sum(dn.nan_to_num(x)))(x).to_list() == [0.0, 0.0, 0.0, 1.0, 1.0]
    wide = dn.tensor([2**63 - 1, -(2**63)], dtype="s64")
    assert dn.nan_to_num(wide, nan=3).to_list() == wide.to_list()


def test_closeness_at_the_ends() -> None:
    inf, nan = math.inf, math.nan
    a = np.array([inf, -inf, inf, 1.0, nan, nan, 0.0, 1.0, 1.001], np.float32)
    b = np.array([inf, inf, 1.0, inf, nan, 1.0, 9e-9, 1 + 5e-6, 1.0], np.float32)
    for equal_nan in (False, True):
        got = dn.isclose(dn.tensor(a), dn.tensor(b), equal_nan=equal_nan)
        assert got.to_list() == np.isclose(a, b, equal_nan=equal_nan).tolist()
    assert dn.isclose(dn.tensor(a), dn.tensor(b), rtol=0.0, atol=0.01).to_list()[-1]
    # Integers neither wrap nor lose digits where they are equal.
    u8 = dn.tensor([0, 254, 3], dtype="u8")
    assert dn.isclose(u8, dn.tensor([255, 255, 3], dtype="u8"), rtol=0.0, atol=1.0).to_list() == [
        False,
        True,
        True,
    ]
    s64 = dn.tensor([2**63 - 1], dtype="s64")
    assert dn.isclose(s64, s64, rtol=0.0, atol=0.0).to_list() == [True]
    x = dn.tensor(a.reshape(3, 3))
    lanes = dn.isclose(dn.vectorize(x, "lane"), dn.tensor(b[:3]))
    want = np.isclose(a.reshape(3, 3), b[:3])
    assert np.array_equal(dn.devectorize(lanes).to_numpy(), want)
