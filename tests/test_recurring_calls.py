"""Eager functions of several operations are compiled if they recur; the elements do not change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import defn as dn

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 1e30, -1e-30, 2.0, 3.0, -3.0]

ONE = {
    "isfinite": dn.isfinite,
    "signbit": dn.signbit,
    "square": dn.square,
    "reciprocal": dn.reciprocal,
    "trunc": dn.trunc,
    "exp2": dn.exp2,
    "radians": dn.radians,
    "degrees": dn.degrees,
    "sinc": dn.sinc,
    "nan_to_num": dn.nan_to_num,
}
TWO = {
    "copysign": dn.copysign,
    "hypot": dn.hypot,
    "logaddexp": dn.logaddexp,
    "heaviside": dn.heaviside,
    "nextafter": dn.nextafter,
    "floor_divide": lambda a, b: a // b,
    "floor_modulo": lambda a, b: a % b,
    "isclose": dn.isclose,
    "divmod": lambda a, b: dn.stack(dn.divmod(a, b)),
}
# More calls than compile a small one.
CALLS = 20


def bits(x: dn.Tensor) -> np.ndarray:
    """The elements, of which all NaN are alike."""
    elements = x.to_numpy()
    if elements.dtype.kind == "b":
        return elements
    elements = np.where(np.isnan(elements), elements.dtype.type(np.nan), elements)
    return elements.view(f"u{elements.dtype.itemsize}")


def repeated(call: Callable[[], dn.Tensor], calls: int) -> None:
    first = bits(call())
    for _ in range(calls):
        assert_array_equal(bits(call()), first)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_every_call_gives_the_same_elements(name: str, dtype: str) -> None:
    a = dn.as_type(dn.tensor(SPECIAL, dtype="f64"), dtype)
    b = a[::-1]
    if name in ONE:
        repeated(lambda: ONE[name](a), CALLS)
    else:
        repeated(lambda: TWO[name](a, b), CALLS)


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_large_operands(name: str) -> None:
    rng = np.random.default_rng(3)
    a = dn.tensor(np.concatenate([rng.standard_normal(30_000), SPECIAL]).astype(np.float32))
    b = dn.tensor(np.concatenate([SPECIAL, rng.standard_normal(30_000)]).astype(np.float32))
    repeated((lambda: ONE[name](a)) if name in ONE else (lambda: TWO[name](a, b)), 4)


SMALL = {
    **{name: (call, 1) for name, call in ONE.items()},
    **{name: (call, 2) for name, call in TWO.items()},
    **{
        name: (getattr(dn, name), 1)
        for name in ("lgamma", "digamma", "trigamma", "i0", "i0e", "i1", "i1e", "ndtr", "ndtri")
    },
    **{name: (getattr(dn, name), 2) for name in ("betaln", "gammainc", "gammaincc")},
    "betainc": (dn.betainc, 3),
}


@pytest.mark.parametrize("dtype", ["bool", "u8", "s32", "s64", "bf16", "f32", "f64", "c64"])
@pytest.mark.parametrize("name", SMALL)
def test_the_fast_path_converts_operands_as_the_general_one(name: str, dtype: str) -> None:
    """Names of axes, dtypes and errors are those of the first call."""
    call, count = SMALL[name]
    values = [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    operands = [dn.tensor(value, dtype=dtype, names=["n"]) for value in values[:count]]
    try:
        first = call(*operands)
    except dn.Error as error:
        for _ in range(CALLS):
            with pytest.raises(type(error)):
                call(*operands)
        return
    for _ in range(CALLS):
        again = call(*operands)
        assert (again.dtype, again.names) == (first.dtype, first.names)
        # NumPy does not know that bf16 has NaN.
        assert_array_equal(*(dn.as_type(x, "c128").to_numpy() for x in (again, first)))
    # Operands of two dtypes are converted.
    if count == 2:
        wide = dn.as_type(operands[1], "c64" if dtype == "c64" else "f64")
        assert call(operands[0], wide).dtype == dn.jit(call)(operands[0], wide).dtype


def test_a_call_on_the_fast_path_in_a_trace_is_traced() -> None:
    x, y = dn.tensor([3.0]), dn.tensor([4.0])
    for _ in range(CALLS):
        dn.hypot(x, y)
    gradient = dn.grad(lambda a: dn.sum(dn.hypot(a, y)))(x)
    np.testing.assert_allclose(gradient.to_numpy(), [0.6], rtol=1e-6)


def test_options_and_shapes_have_programs_of_their_own() -> None:
    x = dn.tensor([1.0, np.nan, np.inf, -np.inf])
    for _ in range(CALLS):
        for nan in (0.0, 7.0):
            got = dn.nan_to_num(x, nan=nan, posinf=9.0)
            assert got.to_list()[1:3] == [nan, 9.0]
        assert dn.nan_to_num(x, neginf=-2.0).to_list()[3] == -2.0
        assert dn.nan_to_num(x, posinf=-2.0).to_list()[3] == np.finfo(np.float32).min
        assert dn.isclose(1.0, x, rtol=0.5).to_list() == [True, False, False, False]
        assert dn.hypot(x[:1], 3.0).shape == (1,)
        assert dn.hypot(x[:1, None], x[None, :2]).shape == (1, 2)


def test_names_and_vectorized_axes_stay() -> None:
    named = dn.tensor([[3.0, 4.0]], names=["rows", "columns"])
    vectors = dn.vectorize(dn.tensor([[3.0], [4.0]]), "v")
    for _ in range(CALLS):
        assert dn.hypot(named, named).names == ("rows", "columns")
        assert dn.devectorize(dn.hypot(vectors, 4.0)).shape == (2, 1)


def test_errors_stay() -> None:
    a, b = dn.tensor([7, 0]), dn.tensor([2, 0])
    for _ in range(CALLS):
        with pytest.raises(ZeroDivisionError, match="quotient"):
            a // b
        with pytest.raises(dn.errors.ShapeError, match="hypot"):
            dn.hypot(dn.tensor([1.0, 2.0]), dn.tensor([1.0, 2.0, 3.0]))


def test_checks_hold_after_compiling() -> None:
    x = dn.tensor([1.0, -1.0])
    call = lambda: dn.logaddexp(x, np.nan)  # noqa: E731
    for _ in range(CALLS):
        call()
    with dn.checks("nan"), pytest.raises(dn.errors.NonFiniteError):
        call()


def test_tangents_go_through_the_operations() -> None:
    x = dn.tensor([3.0, 4.0])
    for _ in range(CALLS):
        dn.hypot(x, x)
    slope = dn.grad(lambda x: dn.sum(dn.hypot(x, 4.0)))(x)
    np.testing.assert_allclose(slope.to_numpy(), [0.6, 4 / np.hypot(4, 4)], rtol=1e-6)
