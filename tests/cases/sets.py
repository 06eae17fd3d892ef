"""Rows of the functions whose sizes depend on values, with a size that is given."""

from __future__ import annotations

from functools import partial

import numpy as np

from cases import Case, apart, digits, ties

SIZES = (1, 4, 30)
UNNAMED = ((("x", "y"),), (None,))


def sized(found, size, fill=None):
    """The first of the elements found, then the fill: by default the first, or 0."""
    found = np.asarray(found)
    if fill is None:
        fill = found[0] if len(found) else 0
    more = np.full((max(size - len(found), 0), *found.shape[1:]), fill, dtype=found.dtype)
    return np.concatenate([found, more])[:size]


def positions(name, oracle, at=None, names=UNNAMED):
    """Rows of a function that gives positions, of which ``at`` chooses one."""

    def call(f, x, size):
        found = f(x, size=size, fill_value=-1)
        return found if at is None else found[at]

    return [
        Case(
            name,
            lambda x, size=size: sized(oracle(x), size, -1),
            call=lambda f, x, size=size: call(f, x, size),
            label=f"{size} of {at}",
            shapes=((3, 4),),
            draw=ties,
            out="s32",
            grad="zero",
            grad_draw=apart,
            names=names,
        )
        for size in SIZES
    ]


FLAGS = ("return_index", "return_inverse", "return_counts")


def parts(size):
    """Rows of the results of ``unique``."""

    def oracle(x, at):
        values, index, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True
        )
        if at == 2:
            return inverse.reshape(x.shape)
        return sized((values, index, inverse, counts)[at], size, 0 if at == 3 else None)

    return [
        Case(
            "unique",
            lambda x, at=at: oracle(x, at),
            call=lambda f, x, at=at: f(x, size=size, **dict.fromkeys(FLAGS, True))[at],
            label=f"part {at} of {size}",
            shapes=((3, 4),),
            draw=ties,
            out="s32" if at else "same",
            grad="zero" if at else "flows",
            grad_draw=apart,
            names=((("x", "y"),), ("x", "y") if at == 2 else (None,)),
        )
        for at in range(4)
    ]


def pairs(name):
    """Rows of a function of two sets."""
    oracle = getattr(np, name)
    return [
        Case(
            name,
            lambda x, y, size=size, fill=fill: sized(oracle(x, y), size, fill),
            call=lambda f, x, y, size=size, fill=fill: f(x, y, size=size, fill_value=fill),
            label=f"{label} of {size}",
            shapes=((6,), shape),
            draw=draw,
            # Among many, a step takes elements out of both sets: there is no slope to compare with.
            grad="flows" if label == "few" else None,
            grad_draw=apart,
            names=((("x",), ("y",)), (None,)),
        )
        for size in SIZES
        for label, shape, draw, fill in (("few", (3,), ties, 1), ("many", (30,), digits, None))
    ]


def standard(name, at):
    """A row of a function of the standard, with one of its results."""
    # NumPy's own does not sort all of them.
    oracle = partial(np.unique, equal_nan=False) if at is None else getattr(np, name)
    return Case(
        name,
        lambda x: sized(oracle(x) if at is None else oracle(x)[at], 3, None if not at else 0),
        call=lambda f, x: f(x, size=3) if at is None else f(x, size=3)[at],
        label=f"part {at}",
        shapes=((2, 3),),
        draw=ties,
        out="s32" if at else "same",
        grad="zero" if at else "flows",
        grad_draw=apart,
        names=UNNAMED,
    )


CASES = [
    *positions("flatnonzero", np.flatnonzero),
    *positions("nonzero", lambda x: np.nonzero(x)[0], 0),
    *positions("nonzero", lambda x: np.nonzero(x)[1], 1),
    *positions("argwhere", np.argwhere, names=((("x", "y"),), (None, None))),
    *[case for size in SIZES for case in parts(size)],
    standard("unique_values", None),
    standard("unique_counts", 0),
    standard("unique_counts", 1),
    standard("unique_inverse", 0),
    standard("unique_all", 0),
    standard("unique_all", 3),
    *[
        Case(
            "isin",
            lambda x, y, invert=invert: np.isin(x, y, invert=invert),
            call=lambda f, x, y, invert=invert: f(x, y, invert=invert),
            label=f"{label} {invert}",
            shapes=((2, 5), shape),
            draw=draw,
            out="predicate",
            grad="zero",
            grad_draw=apart,
            names=((("x", "y"), (None,) * len(shape)), ("x", "y")),
        )
        for invert in (False, True)
        for label, shape, draw in (("few", (3,), ties), ("many", (4, 5), digits))
    ],
    *pairs("union1d"),
    *pairs("intersect1d"),
    *pairs("setdiff1d"),
]
