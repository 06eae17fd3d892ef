"""Rows of integrals, slopes, convolutions, correlations and polynomials."""

from __future__ import annotations

import numpy as np

from cases import Case, apart, between, float_ulps, small, store
from cases.dtypes import FLOATS, NUMBERS, REAL, is_whole

KEPT = ((("x", "y"),), ("x", "y"))
NEAR = {"out": "float", "ulps": float_ulps(8, 8, 1), "scale": 8.0, "draw": small}
PRODUCTS = {
    "dtypes": NUMBERS,
    "draw": small,
    "ulps": {"f32": 8, "f64": 8, "c64": 16, "c128": 16, "other": 4},
    "scale": 16.0,
    "names": ((("x",), ("y",)), (None,)),
}


def floats(oracle):
    def compute(*xs, **options):
        return oracle(*(x.astype(np.float64) if x.dtype.kind in "iu" else x for x in xs), **options)

    return compute


def steps(rng, shape, dtype):
    """Ascending positions at unequal distances."""
    return store(np.cumsum(np.resize([1, 2, 1, 3], shape)).reshape(shape), dtype)


def unlike(rng, shape, dtype):
    """Rows that are no multiples of each other."""
    drawn = np.array([[1, 0, 2, 3], [0, 2, 1, 1], [3, 1, 0, 2]])[: shape[0], : shape[1]]
    return store(
        drawn % 2
        if dtype == "bool"
        else np.minimum(drawn, 1)
        if is_whole(dtype) and (dtype[1:] == "2")
        else drawn,
        dtype,
    )


CASES = [
    Case("trapezoid", floats(np.trapezoid), names=((("x", "y"),), ("x",)), **NEAR),
    Case(
        "trapezoid",
        floats(lambda y: np.trapezoid(y, dx=0.5, axis=0)),
        call=lambda f, y: f(y, dx=0.5, axis=0),
        label="axis",
        names=((("x", "y"),), ("y",)),
        **NEAR,
    ),
    Case(
        "trapezoid",
        floats(np.trapezoid),
        label="positions",
        shapes=((2, 3), (3,)),
        names=((("x", "y"), ("z",)), ("x",)),
        **NEAR,
    ),
    Case(
        "gradient",
        floats(lambda x: np.gradient(x, axis=1)),
        call=lambda f, x: f(x, axes=1),
        names=KEPT,
        **NEAR,
    ),
    Case(
        "gradient",
        floats(lambda x: np.gradient(x, 2.0, 0.5, edge_order=2)[0]),
        call=lambda f, x: f(x, 2.0, 0.5, edge_order=2)[0],
        label="edges",
        shapes=((4, 3),),
        names=KEPT,
        **{**NEAR, "scale": 16.0},
    ),
    *(
        Case(
            "gradient",
            lambda x, at, order=order: floats(np.gradient)(
                x, at.astype(np.float64), edge_order=order
            ),
            call=lambda f, x, at, order=order: f(x, at, edge_order=order),
            label=f"unequal{order}",
            dtypes=("s16", "s32", *FLOATS),
            refusal=None,
            shapes=((4,), (4,)),
            grad_draw=(apart, steps),
            names=((("x",), ("y",)), ("x",)),
            **{**NEAR, "draw": (small, steps), "scale": 16.0},
        )
        for order in (1, 2)
    ),
    Case("convolve", np.convolve, shapes=((5,), (3,)), **PRODUCTS),
    *(
        Case(
            name,
            lambda a, b, name=name, mode=mode: getattr(np, name)(a, b, mode),
            call=lambda f, a, b, mode=mode: f(a, b, mode),
            label=f"{mode}{len_a}{len_b}",
            shapes=((len_a,), (len_b,)),
            **PRODUCTS,
        )
        for name in ("convolve", "correlate")
        for mode, len_a, len_b in (("same", 5, 4), ("same", 3, 6), ("valid", 3, 6), ("full", 2, 5))
    ),
    Case("correlate", np.correlate, shapes=((5,), (3,)), **PRODUCTS),
    Case(
        "polyval",
        lambda p, x: np.polyval(p, x),
        shapes=((4,), (2, 3)),
        draw=between(-2, 2),
        out="number",
        ulps=float_ulps(16, 16, 4),
        scale=8.0,
        names=((("z",), ("x", "y")), ("x", "y")),
    ),
    Case(
        "polyfit",
        lambda x, y: np.polyfit(x, y.astype(np.float64), 1),
        call=lambda f, x, y: f(x, y, 1),
        dtypes=("s16", "s32", "f16", "bf16", "f32", "f64"),
        refusal=None,
        shapes=((4,), (4,)),
        draw=(steps, small),
        grad_draw=(steps, small),
        out="float",
        ulps=float_ulps(64, 64, 2),
        scale=8.0,
        names=((("x",), ("y",)), (None,)),
    ),
    Case(
        "corrcoef",
        floats(np.corrcoef),
        dtypes=("u8", "s16", "s32", *FLOATS),
        refusal=None,
        shapes=((3, 4),),
        draw=unlike,
        out="float",
        ulps=float_ulps(16, 16, 1),
        scale=1.0,
        names=((("x", "y"),), (None, None)),
    ),
    Case(
        "corrcoef",
        floats(lambda x: np.corrcoef(x, rowvar=False)),
        call=lambda f, x: f(x, rowvar=False),
        label="columns",
        dtypes=("f32", "f64", "c64", "c128"),
        shapes=((3, 2),),
        draw=unlike,
        out="float",
        ulps=float_ulps(16, 16, 1),
        scale=1.0,
    ),
]


def partition_order(x, kth, axis=-1):
    """The positions on each side of ``kth`` in a sort, in the order of the elements."""
    order = np.moveaxis(np.argsort(x, axis, kind="stable"), axis, -1)
    size = order.shape[-1]
    begin = 0
    for at in [*sorted(k % size for k in kth), size]:
        order[..., begin:at] = np.sort(order[..., begin:at])
        begin = at + 1
    return np.moveaxis(order, -1, axis)


def parted(x, kth, axis=-1):
    return np.take_along_axis(x, partition_order(x, kth, axis), axis)


ORDERED = {"dtypes": REAL, "draw": small, "names": KEPT}
CASES += [
    Case(
        "partition",
        lambda x: parted(x, [1]),
        call=lambda f, x: f(x, 1),
        grad_draw=apart,
        **ORDERED,
    ),
    Case(
        "partition",
        lambda x: parted(x, [0, -1], 0),
        call=lambda f, x: f(x, [0, -1], axis=0),
        label="axis",
        grad_draw=apart,
        **ORDERED,
    ),
    Case(
        "argpartition",
        lambda x: partition_order(x, [1]),
        call=lambda f, x: f(x, 1),
        out="s32",
        grad="zero",
        **ORDERED,
    ),
    Case(
        "lexsort",
        lambda x, y: np.lexsort((x, y % 2)),
        call=lambda f, x, y: f([x, y % 2]),
        dtypes=("u8", "s32", "f32", "f64"),
        refusal=None,
        shapes=((2, 6), (2, 6)),
        draw=between(0, 3),
        out="s32",
        grad="zero",
        names=((("x", "y"), ("x", "y")), ("x", "y")),
    ),
    Case(
        "lexsort",
        lambda x, y: np.lexsort((y, x), axis=0),
        call=lambda f, x, y: f((y, x), axis=0),
        label="axis",
        dtypes=REAL,
        shapes=((6,), (6,)),
        draw=between(0, 3),
        out="s32",
        grad="zero",
    ),
    Case(
        "put_along_axis",
        lambda x, v: put(x, v),
        call=lambda f, x, v: f(x, AT, v, axis=1),
        shapes=((2, 3), (2, 2)),
        names=((("x", "y"), ("z", "w")), ("x", "y")),
    ),
    Case(
        "put_along_axis",
        lambda x, v: put(x, v),
        call=lambda f, x, v: f(x, AT, v, axis=1),
        label="scalar",
        shapes=((2, 3), ()),
    ),
]
AT = np.array([[2, 0], [1, -1]])


def put(x, values):
    result = np.array(x)
    np.put_along_axis(result, AT, values, 1)
    return result
