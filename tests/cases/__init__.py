"""One row for each public operation: its oracle, its dtypes, and its gradient.

The oracle of a row works on *wide* NumPy arrays, which hold the values exactly: int64 and uint64
for integers, float64 for floats, complex128 for complex numbers. Its result is converted to the
expected dtype by the rules of ``dtypes.py``. These rules are written a second time on purpose: the
oracle shares no code with the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import defn as dn
from cases.dtypes import ALL, NUMPY, is_complex, is_float, is_integer, is_whole, limits, wide

Draw = Callable[[np.random.Generator, tuple[int, ...], str], np.ndarray]


def store(values: Any, dtype: str) -> np.ndarray:
    """An array of the dtype, from wide values that fit."""
    return np.asarray(values).astype(NUMPY[dtype])


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Integers from the whole range of the dtype, and floats of ordinary size."""
    if is_whole(dtype):
        low, high = limits(dtype)
        kind = wide(dtype)
        drawn = rng.integers(low, high, size=shape, dtype=kind, endpoint=True)
        small = rng.integers(max(low, -3), 4, size=shape).astype(kind) % (
            high // 2 + 1 if high > 1 else 2
        )
        return store(np.where(rng.random(shape) < 0.5, drawn, small), dtype)
    drawn = rng.normal(size=shape) * 2.0
    if is_complex(dtype):
        drawn = drawn + 1j * rng.normal(size=shape)
    return store(drawn, dtype)


def between(low: float, high: float) -> Draw:
    """Draws values between bounds; for integers, the bounds are clipped to the dtype's limits."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        if is_whole(dtype):
            least, greatest = limits(dtype)
            first, last = max(int(np.ceil(low)), least), min(int(np.floor(high)), greatest)
            return store(rng.integers(first, last, size=shape, endpoint=True), dtype)
        drawn = rng.uniform(low, high, size=shape)
        if is_complex(dtype):
            drawn = drawn + 1j * rng.uniform(-1.0, 1.0, size=shape)
        return store(drawn, dtype)

    return draw


small = between(-4, 4)
positive = between(0.5, 4)
unit = between(-0.9, 0.9)
digits = between(0, 3)


def ties(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers from a small range, so that some are equal."""
    low, high = limits(dtype) if is_whole(dtype) else (-1, 1)
    return store(rng.integers(max(low, -1), min(high, 1), size=shape, endpoint=True), dtype)


def apart(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Distinct values; floats and complex numbers are not zero."""
    count = int(np.prod(shape, dtype=np.int64))
    if is_whole(dtype):
        low, high = limits(dtype)
        pool = np.arange(max(low, -8), min(high, 8) + 1)
        return store(rng.permutation(np.resize(pool, count)).reshape(shape), dtype)
    return store(((rng.permutation(count) - count / 2 + 0.5) * 0.5).reshape(shape), dtype)


@dataclass(frozen=True, eq=False)
class Case:
    """A row.

    ``out`` is a rule of ``dtypes.RULES`` or a dtype. ``names`` has the axis names of the inputs
    and of the result.
    """

    name: str
    oracle: Callable[..., Any]
    dtypes: tuple[str, ...] = ALL
    shapes: tuple[tuple[int, ...], ...] = ((2, 3),)
    draw: Draw | tuple[Draw, ...] = values
    out: str = "same"
    call: Callable[..., Any] | None = None
    label: str = ""
    # The greatest error in units of the last place. Below ``scale`` the error is absolute.
    ulps: float | dict[str, float] = 0
    scale: float = 0.0
    names: tuple[tuple[tuple[str | None, ...], ...], tuple[str | None, ...]] | None = None
    # "flows", "zero", "refused", or None if nothing can be differentiated.
    grad: str | None = "flows"
    grad_draw: Draw | tuple[Draw, ...] | None = None
    grad_args: tuple[int, ...] | None = None
    grad_complex: bool = True
    # Whether the function creates tensors from a dtype; whether the oracle takes stored arrays.
    creates: bool = False
    stored: bool = False
    refusal: type[Exception] = field(default=dn.DTypeError)
    # The module under ``defn`` that contains the function.
    module: str = ""
    # The dtypes that are compiled for devices, if a program of all takes a minute to compile.
    on_devices: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name

    def run(self, *tensors: Any) -> Any:
        function = getattr(getattr(dn, self.module) if self.module else dn, self.name)
        return self.call(function, *tensors) if self.call else function(*tensors)

    def arrays(self, dtype: str, *, seed: int = 0, draw: Any = None) -> list[np.ndarray]:
        """The arguments as arrays of the dtype."""
        rng = np.random.default_rng([seed, *str(self).encode()])
        draw = draw or self.draw
        draws = draw if isinstance(draw, tuple) else (draw,) * len(self.shapes)
        return [one(rng, shape, dtype) for one, shape in zip(draws, self.shapes, strict=True)]

    def tolerance(self, dtype: str, out: str) -> float:
        """In units of the last place: set by a complex operand's dtype, else by the result's."""
        if isinstance(self.ulps, dict):
            return self.ulps.get(dtype if is_complex(dtype) else out, self.ulps["other"])
        return self.ulps


def float_ulps(single: float, double: float | None = None, other: float = 1) -> dict[str, float]:
    """Errors of transcendental functions; for narrow floats an f32 result is rounded once more."""
    double = single if double is None else double
    return {
        "f32": single,
        "f64": double,
        "c64": 8 * single,
        "c128": 8 * double,
        "other": other,
    }


def all_cases() -> list[Case]:
    """Every row of every family."""
    from cases import (
        arrange,
        create,
        elementwise,
        elementwise_derived,
        fourier,
        index,
        linalg,
        matrix,
        matrix_general,
        matrix_values,
        missing,
        nn,
        order,
        reduce,
        search,
        sequence,
        sets,
        shape,
        special,
        vectorize,
        window,
    )

    families = (
        create,
        elementwise,
        shape,
        arrange,
        index,
        order,
        reduce,
        linalg,
        matrix,
        vectorize,
        window,
        fourier,
        elementwise_derived,
        matrix_values,
        sets,
        search,
        missing,
        sequence,
        special,
        matrix_general,
        nn,
    )
    return [case for family in families for case in family.CASES]


__all__ = [
    "ALL",
    "Case",
    "all_cases",
    "apart",
    "between",
    "digits",
    "float_ulps",
    "is_complex",
    "is_float",
    "is_integer",
    "is_whole",
    "positive",
    "small",
    "store",
    "ties",
    "unit",
    "values",
]
