"""One row for each parameter at which a plain number may stand beside a tensor.

The oracle runs NumPy on wide arrays: the tensor's elements, and the number as an element of the
merged dtype, rounded by NumPy and ml_dtypes. The dtype rules are those of NEP 50, except that a
float beside integers gives f32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

import defn as dn
from cases.dtypes import NUMPY, is_complex, is_float, is_integer
from cases.sets import sized

INTEGERS = ("s8", "u8")
FLOATS = ("bf16", "f16", "f64")
REAL = (*INTEGERS, *FLOATS)
ALL = (*REAL, "c64")

Number = int | float | complex


def together(dtype: str, number: Number) -> str:
    """The merged dtype of a tensor and a number; the number affects only its kind."""
    if isinstance(number, complex):
        return "c128" if dtype == "f64" else "c64"
    if isinstance(number, float) and is_integer(dtype):
        return "f32"
    return dtype


def floating(dtype: str) -> str:
    return "f32" if is_integer(dtype) else dtype


def as_complex(dtype: str) -> str:
    return "c128" if dtype == "f64" else "c64"


@dataclass(frozen=True, eq=False)
class Row:
    """``call`` takes the tensor and the number; ``oracle`` takes both as wide arrays."""

    name: str
    parameter: str
    call: Callable[[Any, Any], Any]
    oracle: Callable[[Any, Any], Any]
    dtypes: tuple[str, ...] = ALL
    numbers: tuple[Number, ...] = (3, 0.1, 0.5 + 0.25j)
    # From the merged dtype to the result's; None for predicates, whose dtype is not checked.
    out: Callable[[str], str] | None = lambda dtype: dtype
    # The tensor's shape.
    shape: tuple[int, ...] = (3,)
    # The greatest error in units of the last place; 0 if elements are only moved.
    ulps: float = 0
    # The treatment of an integer that does not fit the dtype of an integer tensor.
    beyond: str = "raises"

    def __str__(self) -> str:
        return f"{self.name}-{self.parameter}"

    def pairs(self) -> list[tuple[str, Number]]:
        """The combinations of dtypes and numbers that the function takes."""
        return [
            (dtype, number)
            for dtype in self.dtypes
            for number in self.numbers
            if not (isinstance(number, complex) and self.dtypes[-1] != "c64")
        ]

    def array(self, dtype: str) -> np.ndarray:
        count = int(np.prod(self.shape))
        values = np.arange(1, count + 1)
        if is_integer(dtype):
            return values.reshape(self.shape).astype(NUMPY[dtype])
        drawn = values * 0.75 - 0.5
        if is_complex(dtype):
            drawn = drawn + 0.5j * values
        return drawn.reshape(self.shape).astype(NUMPY[dtype])

    def expected(self, array: np.ndarray, number: Number, common: str) -> np.ndarray:
        """The oracle's result, in wide elements."""
        with np.errstate(all="ignore"):
            return np.asarray(self.oracle(wide(array, common), wide(np.asarray(number), common)))


def wide(array: np.ndarray, dtype: str) -> np.ndarray:
    """The elements rounded to a dtype, in a type that holds them exactly."""
    stored = array.astype(NUMPY[dtype])
    if is_complex(dtype):
        return stored.astype(np.complex128)
    return stored.astype(np.float64 if is_float(dtype) else np.int64)


def both_sides(
    name: str, oracle: Callable[[Any, Any], Any], part: int | None = None, **options: Any
) -> list[Row]:
    """The two rows of a binary element-wise op: the number on the right, and on the left."""
    whole = getattr(dn, name)
    op = whole if part is None else lambda a, b: whole(a, b)[part]
    left, right = ("y", "x") if name == "atan2" else ("re", "im") if name == "complex" else "ab"
    if name.startswith("gammainc"):
        left, right = "ax"
    return [
        Row(name, right, op, oracle, **options),
        Row(name, left, lambda x, n: op(n, x), lambda x, n: oracle(n, x), **options),
    ]


def truth(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(a != 0, b != 0)


def clipped(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def padded(x: Any, n: Any) -> Any:
    return np.concatenate([[n], x, [n, n]])


def put(x: Any, n: Any, *, add: bool) -> Any:
    result = np.array(x)
    result[1] = n + (result[1] if add else 0)
    return result


def scattered(x: Any, n: Any, *, at: int) -> Any:
    """The result of window_scatter for the source 5 and one window."""
    result = np.full((3,), n)
    result[at] += 5
    return result


def folded(a: Any, b: Any) -> Any:
    return a + b


def spaced(start: Any, stop: Any) -> Any:
    return np.linspace(start, stop, 3)


KEY = np.array([7, 11], "uint32")


def drawn(name: str, **arguments: Any) -> dn.Tensor:
    return getattr(dn.random, name)(KEY, shape=(8,), **arguments)


def both_sets(name: str) -> list[Row]:
    """The two rows of a function of two sets, with a size."""
    ours, theirs = getattr(dn, name), getattr(np, name)
    return [
        Row(name, "b", lambda x, n: ours(x, n, size=5), lambda x, n: sized(theirs(x, n), 5)),
        Row(name, "a", lambda x, n: ours(n, x, size=5), lambda x, n: sized(theirs(n, x), 5)),
    ]


CASES = [
    *both_sides("add", np.add, ulps=1),
    *both_sides("subtract", np.subtract, ulps=1, numbers=(1, 0.1, 0.5 + 0.25j), dtypes=FLOATS),
    *both_sides("subtract", np.subtract, numbers=(1,), dtypes=("s8",)),
    *both_sides("multiply", np.multiply, ulps=2),
    *both_sides("divide", np.divide, ulps=4, out=floating, beyond="float"),
    *both_sides("pow", np.power, ulps=16, numbers=(2, 0.5, 0.5 + 0.25j)),
    *both_sides("atan2", np.arctan2, ulps=4, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("quotient", lambda a, b: np.floor_divide(a, b), dtypes=INTEGERS, numbers=(2,)),
    *both_sides("remainder", np.fmod, ulps=4, dtypes=REAL),
    *both_sides("max", np.maximum, dtypes=REAL),
    *both_sides("min", np.minimum, dtypes=REAL),
    *both_sides("bitwise_and", np.bitwise_and, dtypes=INTEGERS, numbers=(3,)),
    *both_sides("bitwise_or", np.bitwise_or, dtypes=INTEGERS, numbers=(3,)),
    *both_sides("bitwise_xor", np.bitwise_xor, dtypes=INTEGERS, numbers=(3,)),
    *both_sides("left_shift", np.left_shift, dtypes=INTEGERS, numbers=(2,)),
    *both_sides("right_shift", np.right_shift, dtypes=INTEGERS, numbers=(2,)),
    *both_sides("equal", np.equal, out=None, beyond="exact"),
    *both_sides("not_equal", np.not_equal, out=None, beyond="exact"),
    *both_sides("greater", np.greater, out=None, beyond="exact", dtypes=REAL),
    *both_sides("greater_equal", np.greater_equal, out=None, beyond="exact", dtypes=REAL),
    *both_sides("less", np.less, out=None, beyond="exact", dtypes=REAL),
    *both_sides("less_equal", np.less_equal, out=None, beyond="exact", dtypes=REAL),
    *both_sides("logical_and", truth(np.logical_and), out=None, beyond="exact"),
    *both_sides("logical_or", truth(np.logical_or), out=None, beyond="exact"),
    *both_sides("logical_xor", truth(np.logical_xor), out=None, beyond="exact"),
    *both_sides("complex", lambda a, b: a + 1j * b, out=as_complex, dtypes=REAL, beyond="float"),
    *both_sides(
        "all_close",
        lambda a, b: np.all(np.abs(a - b) <= 1e-8 + 1e-5 * np.abs(b)),
        out=None,
        beyond="exact",
    ),
    *both_sides("copysign", np.copysign, out=floating, dtypes=REAL, beyond="float"),
    Row(
        "betainc",
        "a",
        lambda x, n: dn.betainc(n, x, 0.5),
        lambda x, n: special.betainc(n, x, 0.5),
        ulps=64,
        out=floating,
        dtypes=REAL,
        beyond="float",
    ),
    Row(
        "betainc",
        "b",
        lambda x, n: dn.betainc(x, n, 0.5),
        lambda x, n: special.betainc(x, n, 0.5),
        ulps=64,
        out=floating,
        dtypes=REAL,
        beyond="float",
    ),
    Row(
        "betainc",
        "x",
        lambda x, n: dn.betainc(x, 2, n),
        lambda x, n: special.betainc(x, 2, n),
        ulps=64,
        out=floating,
        dtypes=REAL,
    ),
    *both_sides("betaln", special.betaln, ulps=64, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("gammainc", special.gammainc, ulps=64, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("gammaincc", special.gammaincc, ulps=64, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("hypot", np.hypot, ulps=2, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("logaddexp", np.logaddexp, ulps=4, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("heaviside", np.heaviside, out=floating, dtypes=REAL, beyond="float"),
    *both_sides("nextafter", np.nextafter, dtypes=("f64",)),
    *both_sides("divmod", np.floor_divide, part=0, dtypes=REAL),
    *both_sides("divmod", np.mod, part=1, ulps=4, dtypes=REAL),
    *both_sides(
        "isclose",
        lambda a, b: np.abs(a - b) <= 1e-8 + 1e-5 * np.abs(b),
        out=None,
        beyond="exact",
    ),
    Row("isin", "test_elements", dn.isin, np.isin, out=None),
    Row("isin", "element", lambda x, n: dn.isin(n, x), lambda x, n: np.isin(n, x), out=None),
    *both_sets("union1d"),
    *both_sets("intersect1d"),
    *both_sets("setdiff1d"),
    Row(
        "polyval",
        "x",
        lambda p, x: dn.polyval(p, x),
        lambda p, x: np.polyval(p, x),
        ulps=4,
    ),
    Row(
        "put_along_axis",
        "values",
        lambda x, n: dn.put_along_axis(x, np.array([1]), n),
        lambda x, n: put(x, n, add=False),
    ),
    Row(
        "interp",
        "tensor",
        lambda points, x: dn.interp(x, points, points),
        lambda points, x: np.interp(x, points, points),
        dtypes=REAL,
        out=floating,
        ulps=2,
    ),
    Row(
        "select",
        "on_true",
        lambda x, n: dn.select(dn.tensor([1, 0, 1]), n, x),
        lambda x, n: np.where([True, False, True], n, x),
    ),
    Row(
        "select",
        "on_false",
        lambda x, n: dn.select(dn.tensor([1, 0, 1]), x, n),
        lambda x, n: np.where([True, False, True], x, n),
    ),
    Row(
        "clip",
        "lo",
        lambda x, n: dn.clip(x, n, x[2]),
        lambda x, n: clipped(x, n, x[2]),
        dtypes=REAL,
        numbers=(2, 1.1),
        beyond="saturates",
    ),
    Row(
        "clip",
        "hi",
        lambda x, n: dn.clip(x, x[0], n),
        lambda x, n: clipped(x, x[0], n),
        dtypes=REAL,
        numbers=(2, 1.1),
        beyond="saturates",
    ),
    Row(
        "clip",
        "tensor",
        lambda x, n: dn.clip(n, x[0], x[2]),
        lambda x, n: clipped(n, x[0], x[2]),
        dtypes=REAL,
        numbers=(2, 1.1),
    ),
    Row(
        "log",
        "base",
        dn.log,
        lambda x, n: np.log(x) / np.log(n),
        out=floating,
        ulps=16,
        dtypes=(*INTEGERS, "f64", "c64"),
        numbers=(3, 1.7),
        beyond="float",
    ),
    Row(
        "log",
        "tensor",
        lambda x, n: dn.log(n, x + 2),
        lambda x, n: np.log(n) / np.log(x + 2),
        out=floating,
        ulps=16,
        dtypes=(*INTEGERS, "f64", "c64"),
        numbers=(3, 1.7),
    ),
    Row("fill", "value", dn.fill, lambda x, n: np.full(x.shape, n)),
    Row(
        "linspace",
        "start",
        lambda x, n: dn.linspace(n, x[0], n=3, dtype="f64"),
        lambda x, n: spaced(n, x[0]),
        dtypes=("f64",),
        numbers=(3, 0.1),
        ulps=4,
    ),
    Row(
        "linspace",
        "stop",
        lambda x, n: dn.linspace(x[0], n, n=3, dtype="f64"),
        lambda x, n: spaced(x[0], n),
        dtypes=("f64",),
        numbers=(3, 0.1),
        ulps=4,
    ),
    Row("pad", "value", lambda x, n: dn.pad(x, n, [(1, 2, 0)]), padded),
    Row("pad_outer", "mode", lambda x, n: dn.pad_outer(x, n, [(1, 2)]), padded),
    Row(
        "stack",
        "tensors",
        lambda x, n: dn.stack([x[0], n, x[1], 1]),
        lambda x, n: np.array([x[0], n, x[1], 1]),
    ),
    Row(
        "put_slice",
        "slice",
        lambda x, n: dn.put_slice(x, [], n),
        lambda _, n: n,
        shape=(),
    ),
    Row(
        "put_slice",
        "tensor",
        lambda x, n: dn.put_slice(n, [], x),
        lambda x, _: x,
        shape=(),
    ),
    Row(
        "indexed_add",
        "updates",
        lambda x, n: dn.indexed_add(x, dn.tensor([1]), n),
        lambda x, n: put(x, n, add=True),
        ulps=1,
    ),
    Row(
        "indexed_put",
        "updates",
        lambda x, n: dn.indexed_put(x, dn.tensor([1]), n),
        lambda x, n: put(x, n, add=False),
    ),
    Row(
        "window_scatter_max",
        "init",
        lambda x, n: dn.window_scatter_max(
            dn.tensor([1, 2, 3]), (x * 0 + 5).as_type(x.dtype), n, (3,)
        ),
        lambda x, n: scattered(x, n, at=2),
        dtypes=REAL,
        shape=(1,),
        ulps=1,
    ),
    Row(
        "window_scatter_min",
        "init",
        lambda x, n: dn.window_scatter_min(
            dn.tensor([1, 2, 3]), (x * 0 + 5).as_type(x.dtype), n, (3,)
        ),
        lambda x, n: scattered(x, n, at=0),
        dtypes=REAL,
        shape=(1,),
        ulps=1,
    ),
    Row(
        "reduce",
        "acc",
        lambda x, n: dn.reduce(x, n, folded),
        lambda x, n: x.sum() + n,
        ulps=8,
    ),
    Row(
        "window_reduce",
        "acc",
        lambda x, n: dn.window_reduce(x, n, (3,), folded),
        lambda x, n: [x.sum() + n],
        dtypes=FLOATS,
        numbers=(3, 0.1),
        ulps=8,
    ),
    Row(
        "window_reduce",
        "acc",
        lambda x, n: dn.window_reduce(x, n, (3,), folded),
        lambda x, n: [x.sum() + n],
        dtypes=INTEGERS,
        numbers=(3,),
    ),
    Row("dot", "b", dn.dot, lambda x, n: x * n, ulps=2),
    Row("dot", "a", lambda x, n: dn.dot(n, x), lambda x, n: x * n, ulps=2),
    Row("outer", "b", dn.outer, lambda x, n: (x * np.conj(n))[:, None], ulps=2),
    Row("outer", "a", lambda x, n: dn.outer(n, x), lambda x, n: (n * np.conj(x))[None], ulps=2),
    *both_sides("inner", np.multiply, ulps=2),
    *both_sides("kron", np.multiply, ulps=2),
    Row("vdot", "b", dn.vdot, lambda x, n: np.conj(x) * n, shape=(), ulps=2),
    Row("vdot", "a", lambda x, n: dn.vdot(n, x), lambda x, n: np.conj(n) * x, shape=(), ulps=2),
    Row(
        "column_stack",
        "tensors",
        lambda x, n: dn.column_stack([x, n]),
        lambda x, n: np.column_stack([x, n]),
        shape=(),
    ),
    Row(
        "dstack",
        "tensors",
        lambda x, n: dn.dstack([x, n]),
        lambda x, n: np.dstack([x, n]),
        shape=(),
    ),
    Row(
        "weighted_mean",
        "weights",
        dn.weighted_mean,
        lambda x, _: x,
        out=floating,
        shape=(),
        ulps=2,
    ),
    Row(
        "weighted_mean",
        "tensor",
        lambda x, n: dn.weighted_mean(n, x),
        lambda _, n: n,
        out=floating,
        shape=(),
        ulps=2,
    ),
    Row(
        "logsumexp",
        "exp_scaling_factor",
        lambda x, n: dn.logsumexp(x, exp_scaling_factor=n),
        lambda x, n: np.log(np.sum(n * np.exp(x.astype(np.float64)))),
        out=floating,
        dtypes=REAL,
        ulps=4,
    ),
]


def bounds(
    name: str, first: str, second: str, dtypes: tuple[str, ...], number: Number
) -> list[Row]:
    """Rows of a distribution's parameters. The oracle is the same call, for use with a tensor."""
    rows = []
    for suffix in ("", "_split"):
        for parameter, other in ((first, second), (second, first)):

            def call(
                x: Any, n: Any, name: str = name + suffix, at: str = parameter, other: str = other
            ) -> Any:
                made = drawn(name, **{at: n, other: x[1]})
                return made if name.endswith("_split") else made[0]

            rows.append(Row(f"random.{name}{suffix}", parameter, call, call, dtypes, (number,)))
    return rows


# Their values are compared with those of a call with tensors.
DRAWN = [
    *bounds("uniform", "min", "max", FLOATS, 1.1),
    *bounds("normal", "mean", "standard_deviation", FLOATS, 0.1),
    *bounds("randint", "min", "max", INTEGERS, 2),
]

# Parameters whose numbers do not meet a tensor's dtype, with reasons. A name alone covers all.
EXCUSED = {
    "unique": "the fill takes the dtype of the elements",
    "unique_all": "the fill takes the dtype of the elements",
    "unique_counts": "the fill takes the dtype of the elements",
    "unique_inverse": "the fill takes the dtype of the elements",
    "unique_values": "the fill takes the dtype of the elements",
    "bincount": "a vector is counted, and weights do not meet integers",
    "digitize": "the result is a position, whatever the dtypes",
    "histogram": "elements are counted, and weights do not meet them",
    "nanpercentile": "a share does not meet the dtype of the elements",
    "nanquantile": "a share does not meet the dtype of the elements",
    "percentile": "a share does not meet the dtype of the elements",
    "quantile": "a share does not meet the dtype of the elements",
    "searchsorted": "the result is a position, whatever the dtypes",
    ("average", "weights"): "weights have axes",
    ("average", "tensor"): "an axis is averaged",
    "convolve": "both operands have an axis",
    "correlate": "both operands have an axis",
    "gradient": "a distance does not meet the dtype of the elements",
    "lexsort": "keys have an axis",
    "polyfit": "points are vectors",
    "trapezoid": "samples and their positions have an axis",
    ("polyval", "tensor"): "coefficients are a vector",
    ("put_along_axis", "tensor"): "it has an axis",
    ("put_along_axis", "indices"): "an index is no element of the tensor",
    ("interp", "xp"): "points are vectors",
    ("interp", "fp"): "points are vectors",
    "as_type": "the dtype is said",
    "concatenate": "a number has no axis to be joined along",
    "conv": "both operands have three axes at least",
    "covariance": "both operands have axes",
    "gather": "an index is no element of the tensor",
    "linalg.least_squares": "both operands have axes",
    "linalg.solve": "both operands have axes",
    "linalg.triangular_solve": "both operands have axes",
    "linalg.multi_dot": "all operands have axes",
    "linalg.block_diag": "blocks are listed",
    "linalg.cho_solve": "both operands have axes",
    "linalg.lu_solve": "all operands have axes",
    "linalg.toeplitz": "both operands have axes",
    "matmul": "both operands have axes",
    "cross": "both operands have axes",
    "tensordot": "both operands have axes",
    "vecdot": "both operands have axes",
    "put_diagonal": "both operands have axes",
    "random.choice": "what is chosen from and probabilities have an axis",
    "random.choice_split": "what is chosen from and probabilities have an axis",
    "random.fold_in": "the data do not meet the key's dtype",
    "random.multivariate_normal": "both parameters have axes",
    "random.multivariate_normal_split": "both parameters have axes",
    "random.shuffle": "the key does not meet the tensor's dtype",
    "random.shuffle_split": "the key does not meet the tensor's dtype",
    "segment_max": "an axis has segments, and an id is no element",
    "segment_min": "an axis has segments, and an id is no element",
    "segment_product": "an axis has segments, and an id is no element",
    "segment_sum": "an axis has segments, and an id is no element",
    "take": "an index is no element of the tensor",
    "take_along_axis": "an index is no element of the tensor",
    ("select", "pred"): "a predicate does not meet the branches' dtype",
    ("fill", "tensor"): "a number has the shape of a scalar, and its dtype gives way to the value",
    ("indexed_add", "tensor"): "it has an axis",
    ("indexed_add", "indices"): "an index is no element of the tensor",
    ("indexed_put", "tensor"): "it has an axis",
    ("indexed_put", "indices"): "an index is no element of the tensor",
    ("logsumexp", "tensor"): "an axis is added up",
    ("pad", "tensor"): "a scalar has nothing around it",
    ("pad_outer", "tensor"): "a scalar has nothing around it",
    ("reduce", "tensor"): "an axis is folded",
    ("window_reduce", "tensor"): "a window has an axis",
    ("window_scatter_max", "tensor"): "a window has an axis",
    ("window_scatter_max", "source"): "a window has an axis",
    ("window_scatter_min", "tensor"): "a window has an axis",
    ("window_scatter_min", "source"): "a window has an axis",
}
for _name in ("union1d", "intersect1d", "setdiff1d"):
    EXCUSED[_name, "fill_value"] = "the fill takes the dtype of the elements"
for _name in ("uniform", "normal", "randint"):
    for _suffix in ("", "_split"):
        EXCUSED[f"random.{_name}{_suffix}", "key"] = "the key does not meet the bounds' dtype"
for _name in (
    *("ball", "bernoulli", "beta", "binomial", "categorical", "chisquare"),
    *("dirichlet", "exponential", "gamma", "laplace", "logistic", "permutation"),
    *("poisson", "t", "truncated_normal"),
):
    for _suffix in ("", "_split"):
        EXCUSED[f"random.{_name}{_suffix}"] = "tests/test_distributions.py draws from parameters"

__all__ = ["ALL", "CASES", "DRAWN", "EXCUSED", "FLOATS", "INTEGERS", "Row", "together", "wide"]
