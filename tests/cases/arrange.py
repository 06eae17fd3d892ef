"""Rows of the functions that put elements and tensors in another order."""

from __future__ import annotations

import numpy as np

from cases import Case

KEPT = ((("x", "y"),), ("x", "y"))


def move(name, oracle, call=None, **options):
    return Case(name, oracle, call=call, **options)


def part(name, at, oracle, call, **options):
    """A row for one of the results of a function with several."""
    return Case(name, oracle, call=lambda f, *xs: call(f, *xs)[at], **options)


CASES = [
    move(
        "moveaxis",
        lambda x: np.moveaxis(x, 0, -1),
        lambda f, x: f(x, 0, -1),
        shapes=((2, 3, 4),),
        names=((("x", "y", "z"),), ("y", "z", "x")),
    ),
    move(
        "moveaxis",
        lambda x: np.moveaxis(x, [0, 2], [-1, 0]),
        lambda f, x: f(x, [0, 2], [-1, 0]),
        label="several",
        shapes=((2, 3, 4),),
        names=((("x", "y", "z"),), ("z", "y", "x")),
    ),
    move("roll", lambda x: np.roll(x, 2), lambda f, x: f(x, 2), label="flat", names=KEPT),
    move("roll", lambda x: np.roll(x, -4, 1), lambda f, x: f(x, -4, axis=1), names=KEPT),
    move(
        "roll",
        lambda x: np.roll(x, (1, 7), (0, 1)),
        lambda f, x: f(x, (1, 7), axis=(0, 1)),
        label="axes",
        names=KEPT,
    ),
    move("roll", lambda x: x, lambda f, x: f(x, 3, axis=1), label="whole", names=KEPT),
    move("roll", lambda x: x, lambda f, x: f(x, 1), label="empty", shapes=((0, 3),), names=KEPT),
    move(
        "repeat",
        lambda x: np.repeat(x, 2),
        lambda f, x: f(x, 2),
        label="flat",
        names=((("x", "y"),), (None,)),
    ),
    move("repeat", lambda x: np.repeat(x, 3, 0), lambda f, x: f(x, 3, axis=0), names=KEPT),
    move(
        "repeat",
        lambda x: np.repeat(x, [2, 0, 1], 1),
        lambda f, x: f(x, [2, 0, 1], axis=1),
        label="counts",
        names=KEPT,
    ),
    move(
        "repeat",
        lambda x: np.repeat(x, 0, 1),
        lambda f, x: f(x, 0, axis=-1),
        label="none",
        names=KEPT,
    ),
    move("repeat", lambda x: np.repeat(x, 2), lambda f, x: f(x, 2), label="scalar", shapes=((),)),
    move("rot90", np.rot90, names=((("x", "y"),), ("y", "x"))),
    *(
        move(
            "rot90",
            lambda x, k=k: np.rot90(x, k, (2, 0)),
            lambda f, x, k=k: f(x, k, axes=(2, 0)),
            label=f"{k}",
            shapes=((2, 3, 4),),
            names=((("x", "y", "z"),), ("z", "y", "x") if k % 2 else ("x", "y", "z")),
        )
        for k in (-1, 1, 2, 3, 4)
    ),
    part("unstack", 1, lambda x: x[:, 1], lambda f, x: f(x, axis=1), names=((("x", "y"),), ("x",))),
    part("unstack", -1, lambda x: x[-1], lambda f, x: f(x), label="first", shapes=((3,),)),
    part(
        "broadcast_arrays",
        0,
        lambda x, y: np.broadcast_to(x, (2, 3)),
        lambda f, x, y: f(x, y),
        shapes=((3,), (2, 1)),
        names=((("y",), ("x", None)), ("x", "y")),
        grad_args=(0,),
    ),
    part(
        "broadcast_arrays",
        1,
        lambda x, y: np.broadcast_to(y, (2, 3)),
        lambda f, x, y: f(x, y),
        label="second",
        shapes=((3,), (2, 1)),
        names=((("y",), ("x", None)), ("x", "y")),
        grad_args=(1,),
    ),
    move("atleast_1d", np.atleast_1d, shapes=((),), names=(((),), (None,))),
    move("atleast_1d", np.atleast_1d, label="matrix", names=KEPT),
    move("atleast_2d", np.atleast_2d, shapes=((3,),), names=((("x",),), (None, "x"))),
    move("atleast_2d", np.atleast_2d, label="scalar", shapes=((),)),
    move("atleast_3d", np.atleast_3d, names=((("x", "y"),), ("x", "y", None))),
    move(
        "atleast_3d",
        np.atleast_3d,
        label="vector",
        shapes=((3,),),
        names=((("x",),), (None, "x", None)),
    ),
    move("atleast_3d", np.atleast_3d, label="scalar", shapes=((),)),
    move("atleast_3d", np.atleast_3d, label="more", shapes=((2, 1, 2, 1),)),
    move(
        "column_stack",
        lambda x, y: np.column_stack([x, y]),
        lambda f, x, y: f([x, y]),
        shapes=((2,), (2, 3)),
        names=((("x",), (None, "y")), ("x", "y")),
    ),
    move(
        "column_stack",
        lambda x, y: np.column_stack([x, y]),
        lambda f, x, y: f([x, y]),
        label="deep",
        shapes=((2, 1, 2), (2, 3, 2)),
    ),
    move(
        "dstack",
        lambda x, y: np.dstack([x, y]),
        lambda f, x, y: f([x, y]),
        shapes=((2, 3), (2, 3, 2)),
        names=((("x", None), (None, "y", "z")), ("x", "y", "z")),
    ),
    move(
        "dstack",
        lambda x, y: np.dstack([x, y]),
        lambda f, x, y: f([x, y]),
        label="vectors",
        shapes=((3,), (3,)),
    ),
    *(
        part(
            "array_split",
            at,
            lambda x, at=at: np.array_split(x, 3, 1)[at],
            lambda f, x: f(x, 3, axis=1),
            label=f"{at}",
            shapes=((2, 5),),
            names=KEPT,
        )
        for at in range(3)
    ),
    *(
        part(
            "array_split",
            at,
            lambda x, at=at: np.array_split(x, [3, -4, 9])[at],
            lambda f, x: f(x, [3, -4, 9]),
            label=f"cuts-{at}",
            shapes=((5, 2),),
            names=KEPT,
        )
        for at in range(4)
    ),
    *(
        part(
            "meshgrid",
            at,
            lambda *xs, at=at, how=how: np.meshgrid(*xs, indexing=how)[at],
            lambda f, *xs, how=how: f(*xs, indexing=how),
            label=f"{how}-{at}",
            shapes=((2,), (3,), (4,)),
            names=(
                (("x",), ("y",), ("z",)),
                ("y", "x", "z") if how == "xy" else ("x", "y", "z"),
            ),
            grad_args=(at,),
        )
        for how in ("xy", "ij")
        for at in range(3)
    ),
    part(
        "meshgrid",
        0,
        lambda x, y: np.meshgrid(x, y)[0],
        lambda f, x, y: f(x, y),
        label="scalar",
        shapes=((3,), ()),
        grad_args=(0,),
    ),
]
