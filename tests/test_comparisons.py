"""Comparisons of every dtype with every other, by the exact values of the elements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL, NUMPY, REAL, is_complex, is_whole, limits, narrow, widen
from support import HERE, in_turn, on_xla

EQUALITIES: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
}
ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
# Each float dtype rounds some of these, and has values that a narrower one rounds to the same
# number: f8_e4m3fn holds 1.125, which f8_e5m2 does not, and bf16 holds 1.0078125.
MAGNITUDES = [
    # XLA's programs for the CPU flush f32 subnormals to zero.
    *(
        0.0,
        1e-300,
        1e-37 if on_xla() else 1e-40,
        1e-30,
        2.0**-24,
        2.0**-16,
        2.0**-9,
        0.875,
        1.0,
        1.0 + 2.0**-40,
    ),
    *(1.0 + 2.0**-23, 1.0 + 2.0**-10, 1.0078125, 1.125, 1.25, 3.0, 127.0, 128.0, 255.0, 256.0),
    *(257.0, 448.0, 480.0, 57344.0, 61440.0, 65504.0, 65536.0, 2.0**24 + 1, 2.0**31, 2.0**63),
    *(1e30, 3e38, 1e300, np.inf, np.nan),
]


def elements(dtype: str) -> np.ndarray:
    """Elements that other dtypes round: the limits, and neighbours of values that others hold."""
    if is_whole(dtype):
        low, high = limits(dtype)
        near = {low, low + 1, high - 1, high, 0, 1, 2, -1, -2}
        near |= {
            sign * (2**bit + by)
            for bit in (7, 8, 24, 31, 53, 63)
            for by in (-1, 0, 1)
            for sign in (1, -1)
        }
        kept = sorted(number for number in near if low <= number <= high)
        return np.array(kept, dtype=NUMPY[dtype])
    parts = [sign * size for size in MAGNITUDES for sign in (1.0, -1.0)]
    with np.errstate(all="ignore"):
        if is_complex(dtype):
            both = [*(complex(part, 0.0) for part in parts), 1j, complex(1.0, 1.0)]
            return np.array(both).astype(NUMPY[dtype])
        return np.array(parts).astype(NUMPY[dtype])


def numbers(array: np.ndarray, dtype: str, other: str) -> list[Any]:
    """The values as Python numbers, which compare integers of any size and floats exactly.

    Integers are rounded to the other dtype if that is a float.
    """
    if is_whole(dtype) and not is_whole(other):
        array, dtype = narrow(widen(array, dtype), other), other
    kind = int if is_whole(dtype) else complex if is_complex(dtype) else float
    return [kind(element) for element in array]


@pytest.mark.parametrize("backend", [HERE, dn.backends.NumPyBackend()], ids=["cpu", "numpy"])
@pytest.mark.parametrize("left", ALL)
def test_values_are_compared(left: str, backend: Any) -> None:
    a, others = elements(left), {right: elements(right) for right in ALL}
    rows = []
    for right, b in others.items():
        x = dn.tensor(a[:, None], backend=backend)
        y = dn.tensor(b[None, :], backend=backend)
        asked = {**EQUALITIES, **ORDERINGS} if {left, right} <= set(REAL) else EQUALITIES
        rows += [(name, right, x, y) for name in asked]
    results = in_turn(lambda name, _, x, y: getattr(dn, name)(x, y), rows, backend)
    for (name, right, _, _), got in zip(rows, results, strict=True):
        b, compare = others[right], {**EQUALITIES, **ORDERINGS}[name]
        want = [[compare(p, q) for q in numbers(b, right, left)] for p in numbers(a, left, right)]
        wrong = got.to_numpy().astype(bool) != np.array(want)
        pairs = [(a[i], b[j]) for i, j in np.argwhere(wrong)]
        assert (str(got.dtype), pairs) == ("bool", []), (name, left, right)
