"""Random calls compared with NumPy and its promotion: a rule must excuse every difference.

``DEFN_RANDOM_CALLS`` sets the number of calls. ``pytest -s`` prints how many each rule excuses.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases.dtypes import (
    NUMPY,
    close,
    is_complex,
    is_integer,
    is_whole,
    limits,
    narrow,
    wide,
    widen,
)
from cases.excuses import DTYPES, REFUSED, THEIRS, Call, Excuse
from cases.promotion import NAMES, OPERATORS, WITHOUT, Operand, Row
from cases.promotion import ROWS as SIMPLE
from cases.promotion_arrange import ROWS as ARRANGING
from cases.promotion_statistics import ROWS as STATISTICS
from support import on_xla, with_one_nan
from test_catalogue import public_functions

ROWS = [*SIMPLE, *STATISTICS, *ARRANGING]
CALLS = int(os.environ.get("DEFN_RANDOM_CALLS", "3000"))
SHAPES = [
    [(2, 3), (2, 3), (2, 3)],
    [(2, 3), (3,), ()],
    [(2, 1), (1, 3), (2, 3)],
    [(), (4,), (4,)],
    [(5,), (), (1,)],
    [(0, 3), (3,), (1, 3)],
    [(1, 2, 2), (2, 2), (2, 1)],
    [(), (), ()],
]
INTEGERS = [0, 1, 2, 3, -1, -2, 7, 100, 127, 200, -129, 300, 70000, -(2**31), 2**31, 2**40]
FLOATS = [0.1, 0.5, -1.5, 3.0, 1e-3, -0.0, 2.75, 1e5, 16777217.0]
COMPLEX = [0.5 + 0.25j, -1j, 2 + 0j]


def array(rng: np.random.Generator, row: Row, shape: tuple[int, ...]) -> np.ndarray:
    dtype = str(rng.choice(row.dtypes))
    if is_whole(dtype):
        low, high = limits(dtype)
        if row.small or rng.random() < 0.5:
            low, high = max(low, -3), min(high, 4)
        drawn = rng.integers(low, high, size=shape, dtype=wide(dtype), endpoint=True)
        return np.asarray(narrow(drawn, dtype), NUMPY[dtype])
    drawn = np.asarray(rng.normal(size=shape) * 2)
    if is_complex(dtype):
        drawn = drawn + 1j * rng.normal(size=shape)
    elif row.special and rng.random() < 0.1:
        drawn = np.where(rng.random(shape) < 0.3, rng.choice([np.nan, np.inf, -np.inf]), drawn)
    if row.missing:
        drawn = np.where(rng.random(shape) < row.missing, np.nan, drawn)
    return np.asarray(narrow(np.asarray(drawn), dtype), NUMPY[dtype])


def number(rng: np.random.Generator, row: Row) -> Any:
    integers, floats = (INTEGERS[:6], FLOATS[:5]) if row.small else (INTEGERS, FLOATS)
    others = COMPLEX if "c64" in row.dtypes else FLOATS
    kinds = [[False, True], integers, floats, others]
    kind = kinds[rng.choice(4, p=[0.15, 0.45, 0.3, 0.1])]
    return kind[rng.integers(len(kind))]


def draw(rng: np.random.Generator) -> Call:
    row = ROWS[rng.integers(len(ROWS))]
    if row.shapes:
        shapes = list(row.shapes[rng.integers(len(row.shapes))])
    elif row.shape is not None:
        shapes = [row.shape(rng)] * 3
    else:
        fitting = [
            shapes
            for shapes in SHAPES
            if all(
                len(shape) >= row.rank and (row.empty or 0 not in shape)
                for shape in shapes[: row.arity]
            )
        ]
        shapes = fitting[rng.integers(len(fitting))]
    if row.alike:
        shapes = [shapes[0]] * 3
    if row.name == "clip":
        shapes = [shapes[0], (), ()]
    operands = [array(rng, row, shape) for shape in shapes[: row.arity]]
    for at in row.numbers:
        if at < row.arity and rng.random() < 0.35:
            operands[at] = number(rng, row)
    if row.name in OPERATORS and not any(isinstance(x, np.ndarray) for x in operands):
        operands[0] = array(rng, row, shapes[0])
    if row.prepare is not None:
        operands = row.prepare(operands)
    first = (
        np.broadcast_shapes(*(np.shape(x) for x in operands))
        if row.alike
        else np.shape(operands[0])
    )
    return Call(row, tuple(operands), row.options(rng, first))


def theirs(call: Call) -> np.ndarray | Exception:
    try:
        return np.asarray(call.row.theirs(*call.operands, **call.options))
    except (TypeError, OverflowError, ValueError, NotImplementedError) as error:
        return error


def outcome(function: Any, *operands: Any) -> Any:
    try:
        return function(*operands)
    except dn.Error as error:
        return error


def bits(result: Any) -> Any:
    if isinstance(result, Exception):
        return type(result)
    array = np.asarray(result)
    if array.dtype.kind in "fc":
        array = array + array.dtype.type(0)  # A graph drops `x + 0`, also where x is -0.
    return str(result.dtype), array.shape, with_one_nan(array).tobytes()


def excuse(rules: list[Excuse], call: Call, error: Exception | None = None) -> str:
    for rule in rules:
        if (error is None or isinstance(error, rule.error)) and rule.when(call):
            return rule.rule
    return ""


def judge(call: Call, excused: Counter[str]) -> str:
    """The problem of a call; empty if both agree or if a rule excuses the difference."""
    row = call.row
    ours = outcome(lambda: row.ours(*map(converted, call.operands), **call.options))
    numpys = theirs(call)
    wrong = traced(call, ours)
    if wrong:
        return wrong
    if isinstance(ours, dn.Error):
        if isinstance(numpys, Exception):
            excused["(both refuse)"] += 1
            return ""
        rule = excuse(REFUSED, call, ours)
        excused[rule] += 1
        return "" if rule else f"{call} raises {ours!r}, NumPy gives {numpys.dtype}"
    dtype = str(ours.dtype)
    if dtype != row.expected(call.operands):
        return f"{call} is {dtype}, the rules say {row.expected(call.operands)}"
    if isinstance(numpys, Exception):
        rule = excuse(THEIRS, call)
        excused[rule] += 1
        if not rule:
            return f"{call} is {dtype}, NumPy raises {numpys!r}"
    elif NAMES.get(numpys.dtype) != dtype:
        rule = excuse(DTYPES, call)
        excused[rule] += 1
        if not rule:
            return f"{call} is {dtype}, NumPy's is {numpys.dtype}"
    else:
        excused["(the same)"] += 1
    return differ(call, np.asarray(ours), dtype)


def converted(x: Operand) -> Any:
    return dn.tensor(x) if isinstance(x, np.ndarray) else x


def traced(call: Call, eager: Any) -> str:
    """The problem of the compiled call, with its numbers as constants, and as arguments."""
    tensors = [converted(x) for x in call.operands if isinstance(x, np.ndarray)]

    def inside(*tensors: Any) -> Any:
        left = list(tensors)
        operands = [left.pop(0) if isinstance(x, np.ndarray) else x for x in call.operands]
        return call.row.ours(*operands, **call.options)

    def outside(*operands: Any) -> Any:
        return call.row.ours(*operands, **call.options)

    for name, got in (
        ("compiled", outcome(dn.jit(inside), *tensors)),
        ("as argument", outcome(dn.jit(outside), *map(converted, call.operands))),
    ):
        if not call.row.traces:
            if not isinstance(got, dn.Error):
                return f"{call} {name} is {bits(got)}, though its shape depends on values"
            continue
        # An empty result has no element for which an eager op could raise.
        is_empty = isinstance(eager, dn.Tensor) and eager.size == 0 and isinstance(got, dn.Error)
        # As arguments, integers that meet no tensor are s32: their values are not known.
        is_alone = not tensors and isinstance(got, dn.RangeError) and "argument" in name
        excused = is_empty or is_alone or at_run_time(call, eager)
        if bits(got) != bits(eager) and not excused:
            return f"{call} {name} is {bits(got)}, at once {bits(eager)}"
    return ""


def at_run_time(call: Call, eager: Any) -> bool:
    """Whether an eager op raised because of values, which definitions do only under ``checks``."""
    return isinstance(eager, dn.Error) and not isinstance(eager, dn.DTypeError | dn.ShapeError)


def differ(call: Call, got: np.ndarray, dtype: str) -> str:
    row = call.row
    want = row.reference(call.operands, call.options)
    if got.shape != want.shape:
        return f"{call} has shape {got.shape}, NumPy's is {want.shape}"
    scale = 0.0
    if row.sums and not is_integer(dtype):
        scale = float(
            sum(
                np.nansum(np.abs(widen(x, NAMES[x.dtype]).astype(complex)))
                for x in call.operands
                if isinstance(x, np.ndarray)
            )
        )
        scale = max(scale, scale**2)
    ok = close(got, want, dtype, max(row.ulps, row.sums), scale)
    return "" if ok.all() else f"{call}\n{call.operands}\nis {got}\nNumPy's is {want}"


@pytest.mark.skipif(on_xla(), reason="the rules of dtypes are those of tracing, whatever compiles")
def test_every_difference_from_numpy_has_its_rule() -> None:
    excused: Counter[str] = Counter()
    wrong = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(CALLS):
            call = draw(np.random.default_rng(seed))
            problem = judge(call, excused)
            if problem:
                wrong.append(f"{seed}: {problem}")
    print()
    for rule, count in excused.most_common():
        print(f"{count:8} {rule}")
    assert not wrong, f"{len(wrong)} calls, such as\n" + "\n".join(wrong[:200])


def test_every_function_is_called_or_says_why_not() -> None:
    called = {row.name for row in ROWS} - OPERATORS
    assert {name for name in public_functions() if hasattr(np, name)} - WITHOUT <= called
    assert public_functions() >= WITHOUT
    assert not called & WITHOUT
