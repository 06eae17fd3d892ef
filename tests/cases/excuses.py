"""The rules by which our results of the rows of ``promotion*.py`` differ from NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import defn as dn
from cases.dtypes import is_bool, is_complex, is_float, is_integer, is_whole, limits
from cases.promotion import ADDED, Operand, Row, dtype_of, together


@dataclass(frozen=True)
class Call:
    row: Row
    operands: tuple[Operand, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        def text(x: Operand) -> str:
            return f"{dtype_of(x)}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)

        return f"{self.row.name}({', '.join(map(text, self.operands))}, {self.options})"

    @property
    def dtypes(self) -> list[str]:
        return [dtype_of(x) for x in self.operands if isinstance(x, np.ndarray)]

    @property
    def deciding(self) -> list[Operand]:
        return self.row.deciding(self.operands)

    @property
    def common(self) -> str:
        return self.row.together(self.operands)

    def has(self, test: Callable[[str], bool]) -> bool:
        return any(test(dtype_of(x)) for x in self.deciding if isinstance(x, np.ndarray))

    def right(self) -> np.ndarray:
        return np.asarray(self.operands[1])


@dataclass(frozen=True)
class Excuse:
    """A rule that applies if ``when`` holds; ``error`` is the class of our error to excuse."""

    rule: str
    when: Callable[[Call], bool]
    error: type[Exception] = Exception


def has_added(call: Call) -> bool:
    return any(dtype in ADDED for dtype in call.dtypes)


def mixes(call: Call) -> bool:
    whole = call.has(is_integer) or any(isinstance(x, int) for x in call.deciding)
    return whole and call.has(lambda dtype: is_float(dtype) or is_complex(dtype))


def signs(call: Call) -> bool:
    return call.has(lambda dtype: dtype == "u64") and call.has(lambda dtype: dtype[0] == "s")


def numbers_decide(call: Call) -> bool:
    """Whether a number's kind is higher than that of every tensor."""
    tensors = [x for x in call.deciding if isinstance(x, np.ndarray)]
    return not tensors or together(tensors) != call.common


def divides_by_zero(call: Call) -> bool:
    is_division = call.row.name in ("//", "%", "divmod", "remainder")
    return is_division and is_integer(call.common) and bool((call.right() == 0).any())


def beyond(call: Call) -> bool:
    """Whether an integer operand does not fit the merged dtype."""
    if not is_integer(call.common):
        return False
    low, high = limits(call.common)
    return any(isinstance(x, int) and not low <= x <= high for x in call.deciding)


ORDERED = frozenset(
    """
    max min less less_equal greater greater_equal < clip reduce_max reduce_min argmax argmin sort
    argsort cumulative_max cumulative_min floor ceil round remainder divmod // % atan2 median
    nanmedian nanmax nanmin partition argpartition
    """.split()
)

DTYPES = [
    Excuse("ml_dtypes: NumPy gives other floats, or integers, beside them", has_added),
    Excuse("numbers decide: s32, f32, c64, and not 64 bits", numbers_decide),
    Excuse("integers take the dtype of floats and complex numbers beside them", mixes),
    Excuse("u64 and signed integers are s64 together, not f64", signs),
    Excuse(
        "sums of integers are counted in 32 bits, or 64 where the elements have them",
        lambda call: call.row.out in ("sum", "number"),
    ),
    Excuse("positions are s32", lambda call: call.row.out == "s32"),
    Excuse(
        "what computes in floats takes integers as f32",
        lambda call: call.row.out in ("float", "real", "complex") and is_whole(call.common),
    ),
    Excuse("NumPy takes the numbers of lists for arrays", lambda call: call.row.name == "stack"),
    Excuse(
        "medians of an odd number of integers are elements",
        lambda call: call.row.name in ("median", "nanmedian") and call.row.out == "same",
    ),
    Excuse(
        "the elements decide, not the shares of quantiles",
        lambda call: isinstance(call.options.get("q"), np.ndarray),
    ),
    Excuse("coefficients of correlation keep the floats", lambda call: call.row.name == "corrcoef"),
    Excuse("both sets decide, not the first alone", lambda call: call.row.name == "setdiff1d"),
    Excuse("NumPy interpolates in f64", lambda call: call.row.name == "interp"),
    Excuse(
        "NumPy's clip takes an integer beside bools for s64",
        lambda call: call.row.name == "clip" and call.has(is_bool) and call.common != "bool",
    ),
    Excuse("conjugates are complex", lambda call: call.row.name == "conjugate"),
    Excuse(
        "transforms of floats up to 32 bits are c64",
        lambda call: call.row.name in ("fft", "ifft"),
    ),
]

REFUSED = [
    Excuse(
        "bools: only or, and, and what is logical", lambda call: is_bool(call.common), dn.DTypeError
    ),
    Excuse(
        "complex numbers have no order",
        lambda call: is_complex(call.common) and call.row.name in ORDERED,
        dn.DTypeError,
    ),
    Excuse(
        "bools are not convolved",
        lambda call: call.has(is_bool) and call.row.name in ("convolve", "correlate"),
        dn.DTypeError,
    ),
    Excuse("integers are not divided by zero", divides_by_zero, dn.Error),
    Excuse(
        "nothing is shifted by a negative distance",
        lambda call: "shift" in call.row.name and bool((call.right() < 0).any()),
        dn.Error,
    ),
    Excuse(
        "integers have no negative powers",
        lambda call: (
            call.row.name in ("pow", "**")
            and is_integer(call.common)
            and bool((call.right() < 0).any())
        ),
        dn.Error,
    ),
    Excuse(
        "integers fit the dtype that they meet, s32 where they meet none", beyond, dn.RangeError
    ),
]

THEIRS = [
    Excuse("ml_dtypes: NumPy has no common dtype, or no loop", has_added),
    Excuse("u64 and signed integers are s64 together, not f64", signs),
    Excuse(
        "what computes in floats takes bools as 0 and 1",
        lambda call: is_bool(call.common) and call.row.out == "float",
    ),
    Excuse("bounds of clip beyond the dtype saturate", lambda call: call.row.name == "clip"),
]
