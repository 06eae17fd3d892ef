"""Rows of the functions that sort elements."""

from __future__ import annotations

import numpy as np

from cases import Case, apart, ties, values
from cases.dtypes import REAL


def ascending(x, axis=0):
    return np.argsort(x, axis, kind="stable")


def descending(x, axis=0):
    """A stable descending order: the ascending order of the reversed array, reversed."""
    return x.shape[axis] - 1 - np.flip(ascending(np.flip(x, axis), axis), axis)


NAMES = ((("x", None),), ("x", None))

CASES = [
    Case("sort", lambda x: np.sort(x, 0), dtypes=REAL, draw=values, grad_draw=apart, names=NAMES),
    Case(
        "sort",
        lambda x: np.flip(np.sort(x, 1), 1),
        call=lambda f, x: f(x, axis=1, direction="desc", stable=True),
        dtypes=REAL,
        shapes=((2, 5),),
        label="desc",
        grad_draw=apart,
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "sort",
        lambda x: np.sort(x, 1),
        call=lambda f, x: f(x, axis=1),
        dtypes=REAL,
        shapes=((2, 4, 3),),
        label="middle",
        grad_draw=apart,
        names=((("x", "y", "z"),), ("x", "y", "z")),
    ),
    Case(
        "sort",
        # Long enough for the radix sort.
        lambda x: np.sort(x, 0),
        dtypes=REAL,
        shapes=((3000,),),
        label="long",
        grad=None,
        names=((("x",),), ("x",)),
    ),
    Case(
        "sort",
        lambda x: x,
        dtypes=REAL,
        shapes=((0, 3),),
        label="empty",
        grad=None,
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "argsort",
        ascending,
        dtypes=REAL,
        draw=ties,
        out="s32",
        grad="zero",
        grad_draw=apart,
        names=NAMES,
    ),
    Case(
        "argsort",
        lambda x: descending(x, 1),
        call=lambda f, x: f(x, axis=1, direction="desc", dtype="u8"),
        dtypes=REAL,
        shapes=((2, 6),),
        draw=ties,
        out="u8",
        label="desc",
        grad="zero",
        grad_draw=apart,
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "argsort",
        lambda x: ascending(x, 1),
        call=lambda f, x: f(x, axis=-2, stable=True, dtype="s64"),
        dtypes=REAL,
        shapes=((2, 4, 3),),
        draw=ties,
        out="s64",
        label="middle",
        grad="zero",
        grad_draw=apart,
        names=((("x", "y", "z"),), ("x", "y", "z")),
    ),
    Case(
        "argsort",
        ascending,
        dtypes=REAL,
        shapes=((3000,),),
        out="s32",
        label="long",
        grad=None,
        names=((("x",),), ("x",)),
    ),
    Case(
        "top_k",
        lambda x: np.flip(np.sort(x, -1), -1)[..., :3],
        call=lambda f, x: f(x, k=3)[0],
        dtypes=REAL,
        shapes=((2, 5),),
        grad_draw=apart,
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "top_k",
        lambda x: np.max(x, -1, keepdims=True),
        call=lambda f, x: f(x)[0],
        dtypes=REAL,
        label="one",
        grad_draw=apart,
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "top_k",
        lambda x: descending(x, 1)[:, :3],
        call=lambda f, x: f(x, k=3)[1],
        dtypes=REAL,
        shapes=((2, 6),),
        draw=ties,
        out="s32",
        label="positions",
        grad="zero",
        grad_draw=apart,
        names=((("x", "y"),), ("x", "y")),
    ),
]
