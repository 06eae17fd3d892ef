"""Rows as in ``promotion.py``: reductions without NaN, quantiles, integrals, counts, products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import defn as dn
from cases.dtypes import FLOATS, INTEGERS, REAL, is_whole, limits, widen
from cases.promotion import VARIANCE, Random, Row, an_axis, dtype_of, folded, some_axes

EVEN = (((2, 4),), ((4,),), ((2, 4, 2),))
ODD = (((1, 3),), ((5,),), ((3, 1, 3),))
METHODS = ("linear", "midpoint", "lower", "higher", "nearest")


# What is done to the operands drawn.


def ascending(*places: int) -> Callable[[list[Any]], list[Any]]:
    """Sorts operands."""

    def sort(operands: list[Any]) -> list[Any]:
        for at in places:
            operands[at] = np.sort(widen(operands[at], dtype_of(operands[at]))).astype(
                operands[at].dtype
            )
        return operands

    return sort


def distinct(at: int) -> Callable[[list[Any]], list[Any]]:
    """Sorts an operand, which becomes consecutive integers if elements are equal."""

    def sort(operands: list[Any]) -> list[Any]:
        x = ascending(at)(operands)[at]
        if len(np.unique(widen(x, dtype_of(x)))) < x.size:
            low = max(limits(dtype_of(x))[0], -2) if is_whole(dtype_of(x)) else -2
            operands[at] = (low + np.arange(x.size)).astype(x.dtype)
        return operands

    return sort


def between(low: int, high: int) -> Callable[[list[Any]], list[Any]]:
    """Takes integers modulo a range."""

    def clip(operands: list[Any]) -> list[Any]:
        x = operands[0]
        small = low + widen(x, dtype_of(x)).astype(np.int64) % min(
            high - low, limits(dtype_of(x))[1] - low + 1
        )
        return [np.asarray(small).astype(x.dtype), *operands[1:]]

    return clip


# NumPy's functions, extended.


def counted(x: Any) -> np.ndarray:
    """Bools as integers, which NumPy adds by a logical or."""
    array = np.asarray(x)
    return array.astype(np.int64) if array.dtype == bool else array


def position(name: str) -> Callable[..., Any]:
    """NumPy's position of an extremum, extended to NaN alone: -1."""

    def find(x: Any, axis: int | None) -> Any:
        x = np.asarray(x)
        alone = np.isnan(x).all(axis=axis)
        filled = np.where(np.expand_dims(alone, axis) if axis is not None else alone, 0, x)
        return np.where(alone, -1, getattr(np, name)(filled, axis=axis))

    return find


def bins(x: Any, edges: Any, right: bool) -> Any:
    """NumPy's bins, extended to Python's integers, which are exact."""
    if np.asarray(edges).dtype == object:
        return np.searchsorted(edges, x, "left" if right else "right")
    return np.digitize(x, edges, right)


def near(a: Any, b: Any) -> Any:
    """NumPy's comparison, extended to Python's integers, which are exact."""
    if any(np.asarray(x).dtype == object for x in (a, b)):
        return abs(a - b) <= 0.75 + 0.25 * abs(b)
    return np.isclose(a, b, 0.25, 0.75)


def middle(name: str) -> Callable[..., Any]:
    """NumPy's median, which is exact for integers of 64 bits, too."""

    def find(x: Any, axis: int | None) -> Any:
        if x.dtype.kind in "iu" and x.dtype.itemsize == 8 and x.size % 2:
            return np.quantile(x, 0.5, axis, method="lower")
        return getattr(np, name)(x, axis)

    return find


def added(weights: Any, positions: np.ndarray) -> np.ndarray:
    weights = counted(weights)
    sums = np.zeros(4, weights.dtype)
    np.add.at(sums, positions, weights)
    return sums


# Draws of options.


def a_share(*methods: str, hundred: int = 1) -> Callable[..., dict[str, Any]]:
    """A share, or several, an axis or all of them, and a method."""
    shares = [hundred * share for share in (0, 0.25, 0.3, 0.5, 0.75, 0.9, 1)]

    def options(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
        drawn = [shares[at] for at in rng.integers(len(shares), size=2)]
        q = drawn[0] if rng.random() < 0.7 else np.array(drawn)
        return {"q": q, "method": methods[rng.integers(len(methods))], **some_axes(rng, shape)}

    return options


def a_step(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"dx": float(rng.choice([0.5, 1.0, 3.0])), **an_axis(rng, shape)}


def a_slope(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"edge_order": int(rng.integers(1, 3)), **a_step(rng, shape)}


def a_mode(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"mode": ("full", "same", "valid")[rng.integers(3)]}


def positions(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"positions": rng.integers(0, 4, size=shape)}


def a_side(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"side": ("left", "right")[rng.integers(2)]}


def right(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"right": bool(rng.integers(2))}


NAN: dict[str, Any] = {"missing": 0.3, "special": False, "numbers": ()}
VECTORS = (((5,), (3,)), ((2,), (4,)), ((3,), (3,)), ((1,), (4,)))
PRODUCT: dict[str, Any] = {"small": True, "sums": 16, "special": False, "numbers": ()}

ROWS: list[Row] = [
    *[
        Row(name, folded(getattr(dn, name)), getattr(np, name), 1, out, some_axes, **options)
        for name, out, options in (
            ("nansum", "sum", {"sums": 8, **NAN}),
            ("nanprod", "sum", {"ulps": 32, "small": True, **NAN}),
            ("nanmean", "float", {"sums": 4, "empty": False, **NAN}),
            ("nanvar", "float", {**VARIANCE, **NAN}),
            ("nanstd", "float", {**VARIANCE, **NAN}),
            ("nanmax", "same", {"empty": False, **NAN}),
            ("nanmin", "same", {"empty": False, **NAN}),
        )
    ],
    *[
        Row(
            name,
            getattr(dn, name),
            position(name),
            1,
            "s32",
            some_axes,
            empty=False,
            dtypes=REAL,
            **NAN,
        )
        for name in ("nanargmax", "nanargmin")
    ],
    *[
        Row(
            name,
            getattr(dn, name),
            middle(name),
            1,
            out,
            some_axes,
            shapes=shapes,
            missing=0.3 * (name == "nanmedian"),
            special=False,
            ulps=2,
            numbers=(),
        )
        for name in ("median", "nanmedian")
        for out, shapes in (("float", EVEN), ("same", ODD))
    ],
    *[
        Row(
            name,
            getattr(dn, name),
            getattr(np, name),
            1,
            out,
            a_share(*methods, hundred=hundred),
            empty=False,
            dtypes=REAL,
            missing=missing,
            special=False,
            sums=sums,
            numbers=(),
        )
        for name, hundred, missing in (
            ("quantile", 1, 0.05),
            ("percentile", 100, 0.05),
            ("nanquantile", 1, 0.3),
            ("nanpercentile", 100, 0.3),
        )
        for out, methods, sums in (("float", METHODS[:2], 4), ("same", METHODS[2:], 0))
    ],
    Row(
        "average",
        folded(dn.average),
        np.average,
        1,
        "float",
        some_axes,
        empty=False,
        sums=4,
        special=False,
    ),
    Row(
        "average",
        lambda x, w, axis: dn.average(x, axis, dn.maximum(w, 1)),
        lambda x, w, axis: np.average(x, axis, np.maximum(w, 1)),
        2,
        "float",
        some_axes,
        alike=True,
        empty=False,
        dtypes=(*INTEGERS, *FLOATS),
        small=True,
        sums=8,
        special=False,
        numbers=(),
    ),
    Row(
        "trapezoid",
        dn.trapezoid,
        np.trapezoid,
        1,
        "float",
        a_step,
        rank=1,
        sums=4,
        special=False,
        numbers=(),
    ),
    Row(
        "trapezoid",
        dn.trapezoid,
        np.trapezoid,
        2,
        "float",
        shapes=(((2, 3), (3,)), ((4,), (4,)), ((2, 3), (2, 3))),
        small=True,
        sums=8,
        special=False,
        numbers=(),
    ),
    Row(
        "gradient",
        lambda x, dx, axis, edge_order: dn.gradient(x, dx, axes=axis, edge_order=edge_order),
        lambda x, dx, axis, edge_order: np.gradient(x, dx, axis=axis, edge_order=edge_order),
        1,
        "float",
        a_slope,
        shapes=(((4,),), ((3, 5),)),
        sums=8,
        special=False,
        numbers=(),
    ),
    Row(
        "searchsorted",
        dn.searchsorted,
        np.searchsorted,
        2,
        "s32",
        a_side,
        shapes=(((5,), (2, 3)), ((8,), ()), ((0,), (3,))),
        prepare=ascending(0),
        dtypes=REAL,
        exact=True,
        numbers=(1,),
    ),
    Row(
        "digitize",
        dn.digitize,
        bins,
        2,
        "s32",
        right,
        shapes=(((2, 3), (5,)), ((), (2,)), ((3,), (1,))),
        prepare=ascending(1),
        dtypes=REAL,
        exact=True,
        special=False,
        numbers=(0,),
    ),
    Row(
        "interp",
        dn.interp,
        np.interp,
        3,
        "float",
        shapes=(((2, 3), (4,), (4,)), ((), (3,), (3,))),
        prepare=distinct(1),
        dtypes=(*INTEGERS, "f8_e5m2", "f16", "bf16", "f32", "f64"),
        small=True,
        sums=8,
        special=False,
        numbers=(0,),
    ),
    Row(
        "bincount",
        partial(dn.bincount, length=4),
        lambda x: np.bincount(x.astype(np.int64), minlength=4)[:4],
        1,
        "s32",
        shapes=(((6,),), ((0,),)),
        prepare=between(0, 6),
        dtypes=INTEGERS,
        numbers=(),
    ),
    Row(
        "bincount",
        lambda x: dn.bincount(x, minlength=3),
        lambda x: np.bincount(x.astype(np.int64), minlength=3),
        1,
        "s32",
        shapes=(((6,),), ((0,),)),
        prepare=between(0, 6),
        dtypes=INTEGERS,
        numbers=(),
        traces=False,
    ),
    Row(
        "bincount",
        lambda x, positions: dn.bincount(positions, x, length=4),
        added,
        1,
        "number",
        positions,
        shapes=(((6,),), ((1,),)),
        sums=4,
        special=False,
        numbers=(),
    ),
    Row(
        "histogram",
        lambda x: dn.histogram(x, 4, (-4, 4))[0],
        lambda x: np.histogram(counted(x), 4, (-4, 4))[0],
        1,
        "s32",
        dtypes=REAL,
        numbers=(),
    ),
    Row(
        "histogram",
        lambda x: dn.histogram(x, dn.tensor([-2, 0, 1, 3]))[0],
        lambda x: np.histogram(counted(x), [-2, 0, 1, 3])[0],
        1,
        "s32",
        dtypes=REAL,
        numbers=(),
    ),
    *[
        Row(
            name,
            getattr(dn, name),
            getattr(np, name),
            2,
            options=a_mode,
            shapes=VECTORS,
            **PRODUCT,
        )
        for name in ("convolve", "correlate")
    ],
    Row(
        "corrcoef",
        dn.corrcoef,
        np.corrcoef,
        1,
        "float",
        shapes=(((3, 4),), ((2, 8),)),
        dtypes=(*INTEGERS, *FLOATS),
        **PRODUCT,
    ),
    Row(
        "polyval",
        dn.polyval,
        lambda p, x: np.polyval(counted(p), counted(x)),
        2,
        "number",
        shapes=(((3,), (2, 3)), ((4,), ()), ((2,), (3,))),
        **{**PRODUCT, "numbers": (1,)},
    ),
    Row(
        "matmul",
        dn.matmul,
        np.matmul,
        2,
        "number",
        shapes=(((2, 3), (3, 2)), ((3,), (3,)), ((2, 2, 3), (3,)), ((2,), (3, 2, 2))),
        **PRODUCT,
    ),
    Row("i0", dn.i0, np.i0, 1, "float", dtypes=REAL, small=True, special=False, ulps=16),
    Row(
        "isclose",
        partial(dn.isclose, rtol=0.25, atol=0.75),
        near,
        2,
        "predicate",
        exact=True,
    ),
    Row(
        "nextafter",
        lambda a, b: dn.nextafter(a, b) > a,
        lambda a, b: np.nextafter(a, b) > a,
        2,
        "predicate",
        dtypes=FLOATS,
        numbers=(1,),
    ),
]
