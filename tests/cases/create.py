"""Rows of the functions that create tensors."""

from __future__ import annotations

import numpy as np

from cases import Case, float_ulps, positive, small, values
from cases.dtypes import ALL, FLOATS, NUMPY, REAL, REAL_NUMBERS, is_integer

NONE = {"grad": None}
KEPT = ((("x", None),), ("x", None))


def bitcast(x):
    name = next(name for name in REAL if NUMPY[name] == x.dtype)
    if is_integer(name):
        return x.astype(np.int64)
    return x.view(f"u{x.dtype.itemsize}")


def diagonal(x, offset):
    n = x.shape[0] + abs(offset)
    out = np.zeros((n, n), dtype=x.dtype)
    rows = np.arange(x.shape[0]) + max(-offset, 0)
    out[rows, rows + offset] = x
    return out


def put_diagonal(x, d):
    out = x.copy()
    out[[0, 1], [1, 2]] = d
    return out


CASES = [
    Case(
        "tensor",
        lambda: np.array([[0, 1], [1, 0]]),
        shapes=(),
        creates=True,
        names=((), ("x", None)),
        call=lambda f, dtype: f([[0, 1], [1, 0]], dtype=dtype, names=["x", None]),
        **NONE,
    ),
    Case(
        "iota",
        lambda: np.arange(4).reshape(2, 2) % 4,
        shapes=(),
        creates=True,
        dtypes=tuple(d for d in ALL if d != "s2"),
        refusal=None,
        call=lambda f, dtype: f((2, 2), dtype=dtype, names=["x", None]),
        names=((), ("x", None)),
        **NONE,
    ),
    Case(
        "iota",
        lambda: np.array([[0, 1], [0, 1]]),
        shapes=(),
        creates=True,
        label="axis",
        call=lambda f, dtype: f((2, 2), axis=1, dtype=dtype),
        names=((), (None, None)),
        **NONE,
    ),
    Case(
        "eye",
        lambda: np.eye(2, 3),
        shapes=(),
        creates=True,
        names=((), ("x", None)),
        call=lambda f, dtype: f((2, 3), dtype=dtype, names=["x", None]),
        **NONE,
    ),
    Case(
        "tri",
        lambda: np.tri(2, 3, 1),
        shapes=(),
        creates=True,
        out="bool",
        dtypes=("bool",),
        refusal=None,
        call=lambda f, dtype: f(2, 3, k=1),
        names=((), (None, None)),
        **NONE,
    ),
    Case(
        "tril",
        lambda x: np.tril(x, -1),
        call=lambda f, x: f(x, k=-1),
        shapes=((3, 3),),
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "triu",
        np.triu,
        shapes=((2, 3, 3),),
        names=((("b", "x", "y"),), ("b", "x", "y")),
    ),
    Case(
        "fill",
        lambda x, v: np.full(x.shape, v),
        shapes=((2, 3), ()),
        names=((("x", "y"), ()), ("x", "y")),
        grad_args=(1,),
    ),
    Case(
        "linspace",
        lambda a, b: np.linspace(a, b, 5, axis=-1),
        shapes=((2,), (2,)),
        dtypes=FLOATS,
        draw=(small, positive),
        ulps=float_ulps(4, 4, 2),
        scale=4.0,
        refusal=None,
        call=lambda f, a, b: f(a, b, n=5, name="n", dtype=a.dtype),
        names=((("x",), ("x",)), ("x", "n")),
    ),
    Case(
        "linspace",
        lambda a, b: np.linspace(a, b, 4, endpoint=False, axis=-1),
        shapes=((), ()),
        label="open",
        dtypes=FLOATS,
        draw=(small, positive),
        ulps=float_ulps(4, 4, 2),
        scale=4.0,
        refusal=None,
        call=lambda f, a, b: f(a, b, n=4, dtype=a.dtype, endpoint=False),
        names=(((), ()), (None,)),
    ),
    Case(
        "from_binary",
        lambda: np.array([1, 0, 1, 0]),
        shapes=(),
        creates=True,
        **NONE,
        call=lambda f, dtype: f(binary(dtype), dtype),
        names=((), (None,)),
    ),
    Case(
        "make_diagonal",
        lambda x: diagonal(x, -1),
        out="with s32",
        shapes=((2,),),
        call=lambda f, x: f(x, offset=-1),
        names=((("x",),), (None, None)),
    ),
    Case(
        "take_diagonal",
        lambda x: np.diagonal(x, 1, -2, -1),
        shapes=((2, 3, 4),),
        call=lambda f, x: f(x, offset=1),
        names=((("b", "x", "y"),), (None, None)),
    ),
    Case(
        "put_diagonal",
        put_diagonal,
        shapes=((2, 3), (2,)),
        draw=values,
        call=lambda f, x, d: f(x, d, offset=1),
        names=((("x", "y"), ("d",)), ("x", "y")),
    ),
    Case(
        "as_type",
        lambda x: x.real,
        names=KEPT,
        out="f32",
        call=lambda f, x: f(x, "f32"),
        draw=small,
    ),
    Case(
        "as_type",
        lambda x: x.real,
        names=KEPT,
        out="s8",
        call=lambda f, x: f(x, "s8"),
        label="integer",
        grad=None,
    ),
    Case(
        "bitcast",
        bitcast,
        names=KEPT,
        dtypes=REAL_NUMBERS,
        refusal=None,
        out="bits",
        stored=True,
        grad=None,
        call=lambda f, x: f(x, f"u{min(x.dtype.bits, 64)}"),
    ),
    Case(
        "bitcast",
        lambda x: x,
        names=KEPT,
        dtypes=REAL,
        label="to its own type",
        call=lambda f, x: f(x, x.dtype),
    ),
]


def binary(dtype):
    """1, 0, 1, 0 as bytes; narrow integers are packed, the first element in the highest bits."""
    bits = {"u2": 2, "s2": 2, "u4": 4, "s4": 4}.get(dtype)
    if bits is None:
        return np.array([1, 0, 1, 0]).astype(NUMPY[dtype]).tobytes()
    number = 1 << (3 * bits) | 1 << bits
    return number.to_bytes(4 * bits // 8, "big")
