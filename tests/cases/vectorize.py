"""Rows of the functions that create, rearrange and merge vectorized axes."""

from __future__ import annotations

import numpy as np

import defn as dn
from cases import Case


def flat(value):
    return dn.devectorize(value, keep_names=False)


def identity(a):
    return a


CASES = [
    Case(
        "vectorize",
        identity,
        call=lambda f, x: flat(f(x, "v")),
        names=((("x", "y"),), (None, "y")),
    ),
    Case(
        "devectorize",
        identity,
        call=lambda f, x: f(dn.vectorize(x, "v")),
        names=((("x", "y"),), ("v", "y")),
    ),
    Case(
        "revectorize",
        lambda a: a.reshape(3, 2),
        call=lambda f, x: flat(f(dn.vectorize(x, "v"), {"w": 3}, target_shape=[-1])),
        names=((("x", "y"),), (None, None)),
    ),
    Case(
        "reshape_vectors",
        lambda a, b: (a[:, None] + b[None])[:, :, 0],
        shapes=((2, 3), (4, 3)),
        call=lambda f, x, y: flat(sum_of(f([dn.vectorize(x, "v"), dn.vectorize(y, "w")])))[..., 0],
    ),
    Case(
        "broadcast_vectors",
        lambda a, b: np.broadcast_to(b[None, :], (2, 4, 3)),
        shapes=((2, 3), (4, 3)),
        call=lambda f, x, y: flat(f([dn.vectorize(x, "v"), dn.vectorize(y, "w")])[1]),
    ),
]


def sum_of(pair):
    return dn.add(*pair)
