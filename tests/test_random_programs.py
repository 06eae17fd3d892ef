"""Random programs of bools, mixed widths and number arguments: compilers give the same bits.

``DEFN_RANDOM_PROGRAMS`` sets the number of programs.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases.dtypes import EPSILON, is_complex, is_float, is_whole, limits, narrow
from cases.promotion import ROWS, Row
from support import needs_plugin, on_xla

PROGRAMS = int(os.environ.get("DEFN_RANDOM_PROGRAMS", "600"))
SHAPES = ((2, 3), (3,), (2, 1), ())
NUMBERS = [True, False, 0, 1, 2, -3, 100, 0.1, 0.5, -1.5, 1e-3, 0.5 + 0.25j]
DTYPES = ("bool", "bool", "u2", "s4", "u8", "s8", "s16", "u32", "s32", "u64", "s64")
DTYPES = (*DTYPES, "f8_e5m2", "f16", "bf16", "f32", "f64", "c64", "c128")
# Left out: operations that need certain shapes, and operations whose results are larger.
SKIPPED = (
    *("concatenate", "stack", "pad", "dot", "einsum", "@", "outer", "fft", "diff", "take", "clip"),
    *("inner", "tensordot", "vdot", "vecdot", "kron", "cross"),
    # They show the sign of a NaN, which is not specified.
    *("copysign", "signbit"),
)
STEPS = [row for row in ROWS if row.name not in SKIPPED]
# Operations that no compiler rounds differently.
EXACT = [
    row for row in STEPS if not row.ulps and not row.sums and row.out not in ("float", "complex")
]


@dataclass(frozen=True)
class Step:
    row: Row
    operands: tuple[int, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class Program:
    """Steps on the inputs and on the values of earlier steps; the last values are the results."""

    inputs: tuple[Any, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for step in self.steps:
            values.append(step.row.ours(*(values[at] for at in step.operands), **step.options))
        return tuple(values[at] for at in self.results)

    def __str__(self) -> str:
        lines = [f"{at}: {x!r}" for at, x in enumerate(self.inputs)]
        lines += [
            f"{at}: {step.row.name} {step.operands} {step.options}"
            for at, step in enumerate(self.steps, len(self.inputs))
        ]
        return "\n".join((*lines, f"results {self.results}"))


def tensor(rng: np.random.Generator) -> dn.Tensor:
    dtype, shape = str(rng.choice(DTYPES)), SHAPES[rng.integers(len(SHAPES))]
    if is_whole(dtype):
        low, high = limits(dtype)
        drawn = rng.integers(max(low, -5), min(high, 6), size=shape, endpoint=True)
        return dn.tensor(np.asarray(narrow(drawn, dtype)))
    drawn = rng.integers(-6, 7, size=shape) / 2
    if is_complex(dtype):
        drawn = drawn + 0.5j
    return dn.tensor(np.asarray(narrow(np.asarray(drawn), dtype)))


def made(rng: np.random.Generator, rows: list[Row]) -> Program:
    """A program that runs: a step that raises eagerly is drawn again."""
    inputs: list[Any] = [tensor(rng) for _ in range(rng.integers(1, 4))]
    inputs += [NUMBERS[rng.integers(len(NUMBERS))] for _ in range(rng.integers(0, 3))]
    values, steps = list(inputs), []
    wanted = int(rng.integers(2, 9))
    for _ in range(8 * wanted):
        if len(steps) == wanted:
            break
        row = rows[rng.integers(len(rows))]
        places = tuple(int(at) for at in rng.integers(len(values), size=row.arity))
        drawn = [values[at] for at in places]
        if not any(isinstance(x, dn.Tensor) for x in drawn):
            continue
        rank = max(len(x.shape) if isinstance(x, dn.Tensor) else 0 for x in drawn)
        if rank < row.rank:
            continue
        options = row.options(rng, drawn[0].shape if isinstance(drawn[0], dn.Tensor) else ())
        try:
            values.append(row.ours(*drawn, **options))
        except (dn.Error, ValueError):
            continue
        steps.append(Step(row, places, options))
    results = tuple(range(max(len(inputs), len(values) - 3), len(values)))
    return Program(tuple(inputs), tuple(steps), results)


def arrays(results: Any) -> list[tuple[str, np.ndarray]]:
    return [(str(x.dtype), np.asarray(x)) for x in results]


def bits(results: Any) -> list[Any]:
    found = []
    for dtype, array in arrays(results):
        if is_float(dtype) or is_complex(dtype):
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
        found.append((dtype, array.shape, array.tobytes()))
    return found


def programs(rows: list[Row], count: int) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(count):
            program = made(np.random.default_rng(seed), rows)
            if program.results:
                yield program


@pytest.mark.skipif(on_xla(), reason="both compilers are named")
def test_compilers_give_the_same_bits() -> None:
    count = 0
    for program in programs(STEPS, PROGRAMS):
        compiled = dn.jit(program, compiler="cpu")(*program.inputs)
        evaluated = dn.jit(program, compiler="evaluator")(*program.inputs)
        assert bits(compiled) == bits(evaluated), str(program)
        # Number arguments do not affect the width of a dtype, as in eager calls.
        at_once = program(*program.inputs)
        assert [x.dtype for x in compiled] == [x.dtype for x in at_once], str(program)
        count += 1
    assert count > PROGRAMS * 0.9


@needs_plugin
def test_devices_give_the_same() -> None:
    for program in programs(EXACT, PROGRAMS // 20):
        ours = dn.jit(program, compiler="cpu")(*program.inputs)
        devices = dn.jit(program, compiler="pjrt")(*program.inputs)
        for (dtype, want), (other, got) in zip(arrays(ours), arrays(devices), strict=True):
            assert dtype == other, str(program)
            if is_float(dtype) or is_complex(dtype):
                kind = np.complex128 if is_complex(dtype) else np.float64
                want, got = want.astype(kind), got.astype(kind)
                size = EPSILON[dtype] * np.abs(want)
                near = (np.abs(want - got) <= 4 * size) | (want == got)
                assert np.all(near | (np.isnan(want) & np.isnan(got))), f"{program}\n{want}\n{got}"
            else:
                assert np.array_equal(want, got), f"{program}\n{want}\n{got}"
