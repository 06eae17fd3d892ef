"""Rows of the products."""

from __future__ import annotations

import numpy as np

from cases import Case, small

PRODUCTS = {"other": 8, "f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 4, "bf16": 4}
OPTIONS = {"draw": small, "out": "number", "ulps": PRODUCTS, "scale": 16.0}


def outer(a, b):
    b = b.conj() if b.dtype.kind == "c" else b
    return np.outer(a, b)


def batched(a, b):
    return np.einsum("bij,bjk->bik", a, b)


CASES = [
    Case(
        "dot",
        np.dot,
        shapes=((2, 3), (3, 4)),
        names=((("x", "y"), ("z", "w")), ("x", "w")),
        **OPTIONS,
    ),
    Case(
        "dot", np.dot, shapes=((3,), (3,)), label="vectors", names=((("x",), ("y",)), ()), **OPTIONS
    ),
    Case(
        "dot",
        np.dot,
        shapes=((), (2, 3)),
        label="scalar",
        names=(((), ("y", "z")), ("y", "z")),
        **OPTIONS,
    ),
    Case(
        "dot",
        lambda a, b: np.tensordot(a, b, ([0], [1])),
        shapes=((3, 2), (4, 3)),
        label="axes",
        call=lambda f, a, b: f(a, [0], b, [1]),
        names=((("x", "y"), ("z", "w")), ("y", "z")),
        **OPTIONS,
    ),
    Case(
        "dot",
        batched,
        shapes=((2, 3, 4), (2, 4, 5)),
        label="batch",
        call=lambda f, a, b: f(a, [2], [0], b, [1], [0]),
        names=((("b", "x", "y"), ("b", "z", "w")), ("b", "x", "w")),
        **OPTIONS,
    ),
    Case(
        "matmul",
        np.matmul,
        shapes=((2, 1, 2, 3), (4, 3, 2)),
        grad_complex=True,
        names=(((None, None, "x", "y"), (None, "z", "w")), (None, None, "x", "w")),
        **OPTIONS,
    ),
    Case("matmul", np.matmul, shapes=((3,), (2, 3, 4)), label="vector", **OPTIONS),
    Case(
        "outer",
        outer,
        shapes=((2,), (3,)),
        names=((("x",), ("y",)), ("x", "y")),
        grad_complex=False,
        **OPTIONS,
    ),
]
