"""Rows of ``dn.linalg``: values of matrices without their factors, and chains of products."""

from __future__ import annotations

from typing import Any

import numpy as np

import defn as dn
from cases import Case
from cases.linalg import OPTIONS
from cases.matrix import adjoint, hermitian, plain, regular, row, wide


def log_determinant(x: np.ndarray) -> np.ndarray:
    return np.linalg.slogdet(wide(x))[1]


def cond(order: Any) -> Any:
    return lambda x: np.linalg.cond(wide(x), order)


def chain(*matrices: np.ndarray) -> np.ndarray:
    product = matrices[0]
    for matrix in matrices[1:]:
        product = np.dot(product, matrix)
    return product


def multi_dot(*shapes: tuple[int, ...], label: str = "", names: Any = None) -> Case:
    return Case(
        "multi_dot",
        chain,
        module="linalg",
        shapes=shapes,
        label=label,
        call=lambda f, *tensors: f(tensors),
        names=names,
        **OPTIONS,
    )


CASES = [
    row(
        "slogdet",
        log_determinant,
        call=lambda f, x: f(x)[1],
        out="real",
        names=((("x", "y"),), ()),
    ),
    row(
        "slogdet",
        log_determinant,
        shapes=((2, 4, 4),),
        call=lambda f, x: f(x)[1],
        out="real",
        label="batch",
    ),
    row(
        "slogdet",
        lambda x: np.linalg.slogdet(wide(x[..., ::-1, :]))[0],
        shapes=((2, 4, 4),),
        call=lambda f, x: f(dn.reverse(x, axes=[-2]))[0],
        label="sign",
        # The sign of a real determinant is constant.
        grad=None,
    ),
    row("svdvals", lambda x: np.linalg.svd(wide(x), compute_uv=False), draw=plain, out="real"),
    row(
        "svdvals",
        lambda x: np.linalg.svd(wide(x), compute_uv=False),
        out="real",
        shapes=((2, 2, 3),),
        draw=plain,
        label="batch",
        names=((("b", "x", "y"),), (None, None)),
    ),
    row(
        "eigvalsh",
        lambda x: np.linalg.eigvalsh(wide(x + adjoint(x)) / 2),
        draw=hermitian,
        call=lambda f, x: f(x),
        out="real",
        names=((("x", "y"),), (None,)),
    ),
    row("cond", cond(None), out="real", names=((("x", "y"),), ())),
    row("cond", cond(2), out="real", shapes=((2, 3, 3),), label="batch"),
    row(
        "cond",
        cond(-2),
        out="real",
        label="least",
        call=lambda f, x: f(x, -2),
    ),
    *[
        row(
            "cond",
            cond(theirs),
            label=str(ours),
            call=lambda f, x, ours=ours: f(x, ours),
            draw=regular,
            out="real",
        )
        for ours, theirs in ((1, 1), (-1, -1), ("inf", np.inf), ("frobenius", "fro"))
    ],
    multi_dot((2, 3), (3, 4), (4, 2), names=((("x", "y"), ("y", "x"), (None, "z")), ("x", "z"))),
    multi_dot((3,), (3, 4), (4, 2), (2,), label="vectors"),
    multi_dot((2, 3), (3,), label="pair", names=((("x", "y"), ("z",)), ("x",))),
    multi_dot((2, 3), label="one", names=((("x", "y"),), ("x", "y"))),
]
