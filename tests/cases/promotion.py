"""Calls as NumPy accepts them, and the rules by which our results differ from NumPy's.

Each row is one of our operations beside NumPy's function with the same meaning; more rows are in
``promotion_statistics.py`` and ``promotion_arrange.py``. A dtype that differs from NumPy's needs a
rule of ``excuses.DTYPES``, a call that only we refuse a rule of ``REFUSED``, and a call that only
NumPy refuses a rule of ``THEIRS``. The expected dtype of a row is computed here, by the rules of
``dtypes.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import defn as dn
from cases.dtypes import (
    ALL,
    NUMPY,
    REAL,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    is_whole,
    limits,
    merge,
    narrow,
    result_dtype,
    to_complex,
    wide,
)
from cases.elementwise import round_half_away
from cases.elementwise_derived import sinc

Number = bool | int | float | complex
Operand = np.ndarray | Number
Random = np.random.Generator

NAMES = {dtype: name for name, dtype in NUMPY.items()}
# The dtypes that ml_dtypes adds to NumPy.
ADDED = frozenset(("u2", "u4", "s2", "s4", "f8_e5m2", "f8_e4m3fn", "bf16"))


def dtype_of(array: np.ndarray) -> str:
    return NAMES[array.dtype]


@dataclass(frozen=True, eq=False)
class Row:
    """``ours`` and ``theirs`` take the operands and the options that ``options`` draws."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arity: int = 1
    # The result's dtype from the operands' merged dtype: a rule of dtypes.py or a dtype.
    out: str = "same"
    options: Callable[[Random, tuple[int, ...]], dict[str, Any]] = lambda rng, shape: {}
    shape: Callable[[Random], tuple[int, ...]] | None = None
    # The shapes to choose from, one for each operand, and what is done to the operands drawn.
    shapes: tuple[tuple[tuple[int, ...], ...], ...] = ()
    prepare: Callable[[list[Any]], list[Any]] | None = None
    # The least rank, whether sizes may be 0, and whether all operands need the same shape.
    rank: int = 0
    empty: bool = True
    alike: bool = False
    # The dtypes to draw, and whether values are small instead of from the whole range.
    dtypes: tuple[str, ...] = ALL
    small: bool = False
    # Whether infinities and NaN give the same results in both, and the share of NaN to draw.
    special: bool = True
    missing: float = 0
    # The error in units of the last place: of the result, and of the sum of the operands' sizes.
    ulps: float = 0
    sums: float = 0
    # The operands that are predicates: they do not affect the dtype.
    predicates: tuple[int, ...] = ()
    # Whether integers, and floats, are compared by value, whatever the dtypes.
    exact: bool = False
    # Whether integers outside the dtype's range become its limits.
    saturates: bool = False
    # The operands that may be plain numbers.
    numbers: tuple[int, ...] = (0, 1, 2)
    # Whether the result's shape is known without values, so that definitions can be traced.
    traces: bool = True

    def deciding(self, operands: tuple[Operand, ...]) -> list[Operand]:
        """The operands that determine the dtype."""
        return [x for at, x in enumerate(operands) if at not in self.predicates]

    def together(self, operands: tuple[Operand, ...]) -> str:
        """The merged dtype of the operands; plain numbers affect only its kind."""
        return together(self.deciding(operands))

    def expected(self, operands: tuple[Operand, ...]) -> str:
        return result_dtype(self.out, self.together(operands))

    def reference(self, operands: tuple[Operand, ...], options: dict[str, Any]) -> np.ndarray:
        """NumPy's result on wide operands that are rounded to our dtype of computation."""
        common, out = self.together(operands), self.expected(operands)
        compute = common
        if is_float(out) and is_whole(common):
            compute = "f32"
        if is_complex(out) and not is_complex(common):
            compute = to_complex(common)
        kind = np.bool_ if is_bool(compute) else wide(compute)

        def convert(at: int, x: Operand) -> Any:
            if at in self.predicates:
                return np.asarray(x).astype(bool) if isinstance(x, np.ndarray) else bool(x)
            if self.exact and all(is_integral(y) for y in operands):
                return x.astype(object) if isinstance(x, np.ndarray) else int(x)
            if self.saturates and not isinstance(x, np.ndarray) and is_integer(compute):
                return int(x)
            number = x.astype(wide(dtype_of(x))) if isinstance(x, np.ndarray) else np.asarray(x)
            if self.exact and isinstance(x, np.ndarray) and is_float(dtype_of(x)):
                return number
            computed = np.asarray(narrow(number, compute)).astype(kind)
            return computed.astype(object) if self.saturates and is_integer(compute) else computed

        result = self.theirs(*(convert(at, x) for at, x in enumerate(operands)), **options)
        if self.saturates and is_integer(out):
            result = np.asarray(np.clip(result, *limits(out))).astype(wide(out))
        return np.asarray(narrow(np.asarray(result), out))


def is_integral(x: Operand) -> bool:
    return is_whole(dtype_of(x)) if isinstance(x, np.ndarray) else isinstance(x, int)


def together(operands: list[Operand]) -> str:
    dtype = ""
    for x in operands:
        if isinstance(x, np.ndarray):
            dtype = merge(dtype, dtype_of(x)) if dtype else dtype_of(x)
    for x in operands:
        if isinstance(x, np.ndarray):
            continue
        alone = {bool: "bool", int: "s32", float: "f32", complex: "c64"}[type(x)]
        if not dtype:
            dtype = alone
        elif is_bool(dtype) or (is_integer(dtype) and alone in ("f32", "c64")):
            dtype = merge(dtype, alone)
        elif alone == "c64":
            dtype = to_complex(dtype)
    return dtype


# Draws of options.


def an_axis(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"axis": int(rng.integers(-len(shape), len(shape)))}


def some_axes(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    if rng.random() < 0.3:
        return {"axis": None}
    return an_axis(rng, shape) if shape else {"axis": None}


def folded(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis: function(x) if axis is None else function(x, axes=[axis])


def functions(names: dict[str, str], **options: Any) -> list[Row]:
    """Rows of functions that differ only in their names."""
    return [
        Row(ours, getattr(dn, ours), getattr(np, theirs), **options)
        for ours, theirs in names.items()
    ]


def extended(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turns a function of one sequence into a function of several operands."""
    return lambda *x, **options: function(list(x), **options)


def cut(x: Any, low: Any, high: Any) -> Any:
    """Clips to bounds, which need not fit the dtype."""
    raised = np.maximum(x, low)
    if np.asarray(x).dtype == object:
        # NumPy makes a scalar of objects a plain number, which may not fit 64 bits.
        raised = np.asarray(raised, dtype=object)
    return np.minimum(raised, high)


def sign(x: Any) -> Any:
    """NumPy's sign, extended to bools."""
    return x if np.asarray(x).dtype == bool else np.sign(x)


def truths(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(np.asarray(a) != 0, np.asarray(b) != 0)


FLOATING = {
    name: name
    for name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh")
} | {
    "cosh": "cosh",
    "tanh": "tanh",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "sqrt": "sqrt",
}

TO_NUMBERS = {"nan": 1.5, "posinf": 3.0, "neginf": -2.0}


def part(at: int, a: Any, b: Any) -> Any:
    return dn.divmod(a, b)[at]


# Our variance of complex numbers is complex: the mean of the squared deviations.
VARIANCE = {"special": False, "empty": False, "small": True, "dtypes": REAL, "ulps": 8, "sums": 8}


ROWS: list[Row] = [
    *functions(FLOATING, out="float", ulps=16, special=False, small=True),
    *functions({"cbrt": "cbrt"}, out="float", ulps=4, dtypes=REAL, special=False),
    *functions({"abs": "abs"}, out="magnitude", ulps=2, special=False),
    *functions({"negate": "negative"}),
    Row("sign", dn.sign, sign, ulps=4, special=False),
    *functions({"floor": "floor", "ceil": "ceil"}, dtypes=REAL),
    Row("round", dn.round, round_half_away, dtypes=REAL),
    *functions({"bitwise_not": "invert"}),
    *functions({"real": "real", "imag": "imag"}, out="real"),
    *functions({"conjugate": "conjugate"}, out="complex"),
    *functions({"phase": "angle"}, out="real", ulps=8, special=False),
    *functions({"is_nan": "isnan", "is_infinity": "isinf"}, out="predicate"),
    *functions({"logical_not": "logical_not", "isfinite": "isfinite"}, out="predicate"),
    *functions({"signbit": "signbit"}, out="predicate", dtypes=REAL),
    Row("square", dn.square, lambda x: np.multiply(x, x), ulps=4, special=False),
    *functions({"reciprocal": "reciprocal"}, out="float", ulps=8, special=False),
    Row("sinc", dn.sinc, sinc, out="float", dtypes=REAL, special=False, sums=4),
    Row("nan_to_num", partial(dn.nan_to_num, **TO_NUMBERS), partial(np.nan_to_num, **TO_NUMBERS)),
    *functions({"trunc": "trunc"}, dtypes=REAL),
    *functions({"radians": "radians", "degrees": "degrees"}, out="float", dtypes=REAL, ulps=4),
    *functions({"exp2": "exp2"}, out="float", dtypes=REAL, ulps=8, small=True),
    *functions(
        {"copysign": "copysign", "hypot": "hypot"}, arity=2, out="float", dtypes=REAL, ulps=4
    ),
    *functions(
        {"logaddexp": "logaddexp"}, arity=2, out="float", dtypes=REAL, ulps=8, special=False
    ),
    *functions({"heaviside": "heaviside"}, arity=2, out="float", dtypes=REAL),
    Row("divmod", partial(part, 0), np.floor_divide, 2, special=False, small=True, ulps=2),
    Row("divmod", partial(part, 1), np.mod, 2, special=False, small=True, ulps=2),
    *functions(
        {"add": "add", "subtract": "subtract", "multiply": "multiply"},
        arity=2,
        ulps=4,
        special=False,
    ),
    *functions({"divide": "divide"}, arity=2, out="float", ulps=8, special=False),
    *functions({"pow": "power"}, arity=2, ulps=64, special=False, small=True),
    *functions({"atan2": "arctan2"}, arity=2, out="float", ulps=4, special=False),
    *functions({"remainder": "fmod"}, arity=2, special=False),
    *functions({"max": "maximum", "min": "minimum"}, arity=2),
    *functions(
        {"left_shift": "left_shift", "right_shift": "right_shift"},
        arity=2,
        small=True,
    ),
    *functions(
        {"bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"},
        arity=2,
    ),
    *functions(
        {
            name: name
            for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
        },
        arity=2,
        out="predicate",
        exact=True,
    ),
    *[
        Row(name, getattr(dn, name), truths(getattr(np, name)), 2, "predicate", exact=True)
        for name in ("logical_and", "logical_or", "logical_xor")
    ],
    Row("+", operator.add, operator.add, 2, ulps=4, special=False),
    Row("-", operator.sub, operator.sub, 2, ulps=4, special=False),
    Row("*", operator.mul, operator.mul, 2, ulps=4, special=False),
    Row("/", operator.truediv, operator.truediv, 2, "float", ulps=8, special=False),
    Row("//", operator.floordiv, np.floor_divide, 2, special=False, small=True, ulps=2),
    Row("%", operator.mod, np.mod, 2, special=False, small=True, ulps=2),
    Row("**", operator.pow, np.power, 2, ulps=64, special=False, small=True),
    Row("<", operator.lt, operator.lt, 2, "predicate", exact=True),
    Row("==", operator.eq, operator.eq, 2, "predicate", exact=True),
    Row("&", operator.and_, operator.and_, 2),
    Row("|", operator.or_, operator.or_, 2),
    Row("^", operator.xor, operator.xor, 2),
    Row("select", dn.select, np.where, 3, predicates=(0,), numbers=(1, 2)),
    Row("clip", dn.clip, cut, 3, special=False, numbers=(1, 2), saturates=True),
    *[
        Row(ours, folded(getattr(dn, ours)), getattr(np, theirs), 1, out, some_axes, **options)
        for ours, theirs, out, options in (
            ("sum", "sum", "sum", {"sums": 8, "special": False}),
            ("product", "prod", "sum", {"ulps": 32, "small": True, "special": False}),
            ("mean", "mean", "float", {"sums": 4, "special": False, "empty": False}),
            ("variance", "var", "float", VARIANCE),
            ("standard_deviation", "std", "float", VARIANCE),
            ("reduce_max", "max", "same", {"empty": False}),
            ("reduce_min", "min", "same", {"empty": False}),
            ("all", "all", "predicate", {}),
            ("any", "any", "predicate", {}),
            ("ptp", "ptp", "same", {"empty": False, "dtypes": REAL}),
            ("count_nonzero", "count_nonzero", "s32", {}),
        )
    ],
    Row(
        "trace",
        dn.trace,
        lambda x: np.trace(x, axis1=-2, axis2=-1),
        1,
        "sum",
        rank=2,
        sums=8,
        special=False,
        numbers=(),
    ),
    *[
        Row(
            ours,
            lambda x, axis, ours=ours: getattr(dn, ours)(x, axis=axis),
            getattr(np, theirs),
            1,
            "s32",
            an_axis,
            rank=1,
            empty=False,
            numbers=(),
        )
        for ours, theirs in (("argmax", "argmax"), ("argmin", "argmin"))
    ],
    *[
        Row(
            ours,
            lambda x, axis, ours=ours: getattr(dn, ours)(x, axis=axis),
            theirs,
            1,
            out,
            an_axis,
            rank=1,
            numbers=(),
            **options,
        )
        for ours, theirs, out, options in (
            ("cumulative_sum", np.cumsum, "number", {"sums": 8, "special": False}),
            (
                "cumulative_product",
                np.cumprod,
                "number",
                {"ulps": 32, "small": True, "special": False},
            ),
            ("cumulative_max", np.maximum.accumulate, "same", {}),
            ("cumulative_min", np.minimum.accumulate, "same", {}),
            ("sort", np.sort, "same", {}),
            ("argsort", lambda x, axis: np.argsort(x, axis, kind="stable"), "s32", {}),
        )
    ],
    Row(
        "concatenate",
        lambda *x, axis: dn.concatenate(list(x), axis=axis),
        extended(np.concatenate),
        2,
        options=an_axis,
        rank=1,
        alike=True,
        numbers=(),
    ),
    Row(
        "stack",
        lambda *x: dn.stack(list(x)),
        extended(np.stack),
        2,
        alike=True,
        shape=lambda rng: (),
    ),
    Row(
        "pad",
        lambda x, value: dn.pad(x, value, [(1, 2, 0)]),
        lambda x, value: np.concatenate([np.full(1, value), x, np.full(2, value)]).astype(x.dtype),
        2,
        shape=lambda rng: (3,),
        numbers=(1,),
    ),
    Row("tril", dn.tril, np.tril, rank=2, numbers=()),
    Row("triu", dn.triu, np.triu, rank=2, numbers=()),
    Row(
        "diff",
        lambda x, axis: dn.diff(x, axis=axis),
        lambda x, axis: np.diff(x, axis=axis),
        options=an_axis,
        rank=1,
        empty=False,
        special=False,
        numbers=(),
        ulps=4,
    ),
    Row(
        "dot",
        dn.dot,
        np.dot,
        2,
        "number",
        shape=lambda rng: (3,),
        sums=16,
        special=False,
        small=True,
    ),
    *[
        Row(
            name,
            ours,
            theirs,
            2,
            "number",
            shape=lambda rng: (3,),
            sums=16,
            special=False,
            small=True,
            numbers=(),
        )
        for name, ours, theirs in (
            ("inner", dn.inner, np.inner),
            ("outer", dn.outer, lambda a, b: np.conj(np.outer(np.conj(a), b))),
            ("tensordot", lambda a, b: dn.tensordot(a, b, 1), lambda a, b: np.tensordot(a, b, 1)),
            ("vdot", dn.vdot, np.vdot),
            ("vecdot", dn.vecdot, np.vdot),
            ("kron", dn.kron, np.kron),
            ("einsum", lambda a, b: dn.einsum("i,i->i", a, b), lambda a, b: a * b),
        )
    ],
    Row(
        "cross",
        dn.cross,
        np.cross,
        2,
        shape=lambda rng: (3,),
        dtypes=tuple(dtype for dtype in ALL if dtype != "bool"),
        sums=16,
        special=False,
        small=True,
        numbers=(),
    ),
    Row(
        "@",
        operator.matmul,
        operator.matmul,
        2,
        "number",
        shape=lambda rng: (2, 2),
        sums=16,
        special=False,
        small=True,
        numbers=(),
    ),
    *[
        Row(
            name,
            getattr(dn, name),
            getattr(np.fft, name),
            out="complex",
            rank=1,
            empty=False,
            small=True,
            sums=64,
            special=False,
            numbers=(),
        )
        for name in ("fft", "ifft")
    ],
    Row("transpose", dn.transpose, np.transpose),
    Row("reverse", dn.reverse, np.flip),
    Row("flatten", dn.flatten, np.ravel),
    Row(
        "take",
        lambda x, axis: dn.take(x, np.array([0, 0]), axis=axis),
        lambda x, axis: np.take(x, [0, 0], axis=axis),
        options=an_axis,
        rank=1,
        empty=False,
        numbers=(),
    ),
]

# Functions with NumPy's names that have no row: their dtype is an option, their errors depend on
# the points, or they have their own definition. Other tables test them.
WITHOUT = frozenset("linspace polyfit vectorize".split())
OPERATORS = frozenset("+ - * / // % ** < == & | ^ @".split())
