"""Rows of the products."""

from __future__ import annotations

import numpy as np

from cases import ALL, Case, small

PRODUCTS = {"other": 8, "f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 4, "bf16": 4}
OPTIONS = {"draw": small, "out": "number", "ulps": PRODUCTS, "scale": 16.0}
# Differences of products are not defined for bools.
CROSSED = tuple(dtype for dtype in ALL if dtype != "bool")
DIFFERENCE = OPTIONS | {"out": "same"}


def outer(a, b):
    b = b.conj() if b.dtype.kind == "c" else b
    return np.outer(a, b)


def vdot(a, b):
    return np.sum(np.conjugate(a.ravel()) * b.ravel())


def vecdot(axis=-1):
    def oracle(a, b):
        return np.sum(np.conjugate(np.moveaxis(a, axis, -1)) * np.moveaxis(b, axis, -1), -1)

    return oracle


def einsum(equation, *shapes, label="", names=None):
    return Case(
        "einsum",
        lambda *operands: np.einsum(equation, *operands),
        shapes=shapes,
        label=label,
        call=lambda f, *operands: f(equation, *operands),
        names=names,
        **OPTIONS,
    )


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
    einsum(
        "ij,kj->ki",
        (2, 3),
        (4, 3),
        names=((("x", "y"), ("z", None)), ("z", "x")),
    ),
    einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 5), label="batch"),
    einsum("ij,j->ij", (2, 3), (3,), label="elements", names=((("x", None), ("y",)), ("x", "y"))),
    einsum("iij->j", (3, 3, 2), label="diagonal", names=((("x", "y", "z"),), ("z",))),
    einsum("ji", (2, 3), label="transposed", names=((("x", "y"),), ("y", "x"))),
    einsum("...ij,jk", (2, 1, 3, 2), (2, 2), label="ellipsis"),
    einsum("ij,jk,kl->il", (2, 3), (3, 2), (2, 2), label="chain"),
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
    Case(
        "inner",
        np.inner,
        shapes=((2, 3), (4, 3)),
        names=((("x", "y"), ("z", "w")), ("x", "z")),
        **OPTIONS,
    ),
    Case("inner", np.inner, shapes=((3,), (2, 2, 3)), label="vector", **OPTIONS),
    Case("inner", np.inner, shapes=((2,), ()), label="scalar", **OPTIONS),
    Case(
        "kron",
        np.kron,
        shapes=((2, 3), (3, 2)),
        names=((("x", "y"), ("z", "w")), (None, None)),
        **OPTIONS,
    ),
    Case("kron", np.kron, shapes=((2,), (2, 1, 3)), label="ranks", **OPTIONS),
    Case("kron", np.kron, shapes=((), (3,)), label="scalar", **OPTIONS),
    Case(
        "tensordot",
        np.tensordot,
        shapes=((2, 3, 4), (3, 4, 2)),
        names=((("x", "y", "z"), ("u", "v", "w")), ("x", "w")),
        **OPTIONS,
    ),
    Case(
        "tensordot",
        lambda a, b: np.tensordot(a, b, ([0, -1], [1, 0])),
        shapes=((2, 3, 4), (4, 2)),
        label="axes",
        call=lambda f, a, b: f(a, b, axes=([0, -1], [1, 0])),
        **OPTIONS,
    ),
    Case(
        "tensordot",
        lambda a, b: np.tensordot(a, b, (1, 0)),
        shapes=((2, 3), (3, 4)),
        label="axis",
        call=lambda f, a, b: f(a, b, (1, 0)),
        **OPTIONS,
    ),
    Case(
        "tensordot",
        lambda a, b: np.tensordot(a, b, 0),
        shapes=((2,), (3, 2)),
        label="no axis",
        call=lambda f, a, b: f(a, b, 0),
        **OPTIONS,
    ),
    Case(
        "vdot",
        vdot,
        shapes=((2, 3), (3, 2)),
        names=((("x", "y"), ("z", "w")), ()),
        grad_complex=False,
        **OPTIONS,
    ),
    Case(
        "vecdot",
        vecdot(),
        shapes=((2, 3), (3,)),
        names=((("x", "y"), ("z",)), ("x",)),
        grad_complex=False,
        **OPTIONS,
    ),
    Case(
        "vecdot",
        vecdot(0),
        shapes=((3, 2, 1), (3, 4)),
        label="axis",
        call=lambda f, a, b: f(a, b, axis=0),
        grad_complex=False,
        **OPTIONS,
    ),
    Case(
        "cross",
        np.cross,
        CROSSED,
        shapes=((2, 3), (4, 1, 3)),
        names=((("x", None), (None, "x", "y")), (None, "x", "y")),
        **DIFFERENCE,
    ),
    Case(
        "cross",
        lambda a, b: np.cross(a, b, axis=0),
        CROSSED,
        shapes=((3, 2), (3, 1)),
        label="axis",
        call=lambda f, a, b: f(a, b, axis=0),
        **DIFFERENCE,
    ),
    Case(
        "cross",
        lambda a, b: np.moveaxis(np.cross(a, np.moveaxis(b, 0, -1)), -1, 0),
        CROSSED,
        shapes=((3,), (3, 4)),
        label="other ranks",
        call=lambda f, a, b: f(a, b, axis=0),
        **DIFFERENCE,
    ),
]
