"""Rows of the functions that rearrange elements."""

from __future__ import annotations

import numpy as np

from cases import Case, values


def move(name, oracle, call=None, **options):
    return Case(name, oracle, call=call, **options)


def pad(x, value):
    out = np.full((7, 2), value, dtype=x.dtype)
    out[1:6:2, 0:2] = x[:, 1:]
    return out


def put(x, part):
    out = x.copy()
    out[1:3, 0:2] = part
    return out


def one(x, y):
    out = x.copy()
    out[1, 1] = y
    return out


CASES = [
    move(
        "reshape",
        lambda x: x.reshape(3, 2),
        lambda f, x: f(x, (3, -1), names=["a", None]),
        names=((("x", "y"),), ("a", None)),
    ),
    move(
        "reshape",
        lambda x: x.reshape(3, 2),
        lambda f, x: f(x, (3, "auto")),
        label="auto",
        names=((("x", "y"),), (None, None)),
    ),
    move("flatten", np.ravel, names=((("x", "y"),), (None,))),
    move(
        "flatten",
        lambda x: x.reshape(2, 12),
        lambda f, x: f(x, axes=[1, 2]),
        shapes=((2, 3, 4),),
        label="axes",
        names=((("x", "y", "z"),), ("x", None)),
    ),
    move("squeeze", np.squeeze, shapes=((1, 3, 1),), names=((("x", "y", "z"),), ("y",))),
    move(
        "squeeze",
        lambda x: x[0],
        lambda f, x: f(x, axes=0),
        shapes=((1, 3, 1),),
        label="axes",
        names=((("x", "y", "z"),), ("y", "z")),
    ),
    move(
        "new_axis",
        lambda x: x[:, None],
        lambda f, x: f(x, 1, name="new"),
        names=((("x", "y"),), ("x", "new", "y")),
    ),
    move(
        "new_axis",
        lambda x: x[..., None],
        lambda f, x: f(x, -1),
        label="last",
        names=((("x", "y"),), ("x", "y", None)),
    ),
    move("rename", lambda x: x, lambda f, x: f(x, ["a", None]), names=((("x", "y"),), ("a", None))),
    move("transpose", np.transpose, names=((("x", "y"),), ("y", "x"))),
    move(
        "transpose",
        lambda x: x.transpose(1, 2, 0),
        lambda f, x: f(x, axes=[1, 2, 0]),
        label="axes",
        shapes=((2, 3, 4),),
        names=((("x", "y", "z"),), ("y", "z", "x")),
    ),
    move(
        "broadcast",
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        lambda f, x: f(x, (2, 3, 4), names=["a", None, "b"]),
        shapes=((3, 1),),
        names=((("x", "y"),), ("a", None, "b")),
    ),
    move(
        "broadcast",
        lambda x: np.broadcast_to(x[:, None, :], (2, 4, 3)),
        lambda f, x: f(x, (2, 4, 3), axes=[0, 2]),
        label="axes",
        names=((("x", "y"),), (None, None, None)),
    ),
    move(
        "tile",
        lambda x: np.tile(x, (2, 1, 2)),
        lambda f, x: f(x, [2, 1, 2]),
        names=((("x", "y"),), (None, None, None)),
    ),
    move(
        "concatenate",
        lambda x, y: np.concatenate([x, y], 1),
        lambda f, x, y: f([x, y], axis=1),
        shapes=((2, 3), (2, 1)),
        names=((("x", None), (None, "y")), ("x", "y")),
    ),
    move(
        "stack",
        lambda x, y: np.stack([x, y], 1),
        lambda f, x, y: f([x, y], axis=1, name="new"),
        shapes=((2, 3), (2, 3)),
        names=((("x", None), (None, "y")), ("x", "new", "y")),
    ),
    move(
        "split",
        lambda x: x[:, :1],
        lambda f, x: f(x, 1, axis=1)[0],
        names=((("x", "y"),), ("x", "y")),
    ),
    move(
        "split",
        lambda x: x[:, 2:],
        lambda f, x: f(x, 0.5, axis=1)[1],
        label="share",
        names=((("x", "y"),), ("x", "y")),
    ),
    move(
        "slice",
        lambda x: x[1:3, 0:3:2],
        lambda f, x: f(x, [1, 0], [2, 3], strides=[1, 2]),
        shapes=((4, 4),),
        names=((("x", "y"),), ("x", "y")),
    ),
    move(
        "slice",
        lambda x: x[2:4, 0:2],
        lambda f, x: f(x, [9, -5], [2, 2]),
        shapes=((4, 4),),
        label="clamped",
        names=((("x", "y"),), ("x", "y")),
    ),
    move(
        "slice",
        lambda x: x[1:3, 0:4:2],
        lambda f, x: f(x, [x.shape[0] // 4 + dn_scalar(0), 0], [2, 4], strides=[1, 2]),
        shapes=((4, 4),),
        label="dynamic",
        names=((("x", "y"),), ("x", "y")),
    ),
    move(
        "slice_along_axis",
        lambda x: x[:, 1:4:2],
        lambda f, x: f(x, 1, 3, axis=1, strides=2),
        shapes=((2, 4),),
        names=((("x", "y"),), ("x", "y")),
    ),
    move(
        "put_slice",
        put,
        lambda f, x, y: f(x, [1, 0], y),
        shapes=((3, 4), (2, 2)),
        names=((("x", None), (None, "y")), ("x", "y")),
    ),
    move(
        "put_slice",
        put,
        lambda f, x, y: f(x, [dn_scalar(-2), dn_scalar(-4)], y),
        shapes=((3, 4), (2, 2)),
        label="dynamic",
        names=((("x", None), (None, "y")), ("x", "y")),
    ),
    move(
        "put_slice",
        one,
        lambda f, x, y: f(x, [1, dn_scalar(-3)], y),
        shapes=((3, 4), ()),
        label="element",
        names=((("x", "y"), ()), ("x", "y")),
    ),
    move(
        "pad",
        pad,
        lambda f, x, v: f(x, v, [(1, 1, 1), (-1, 0, 0)]),
        shapes=((3, 3), ()),
        draw=values,
        names=((("x", "y"), ()), ("x", "y")),
    ),
    *(
        move(
            "pad_outer",
            lambda x, mode=mode: np.pad(x, [(2, 1), (0, 2)], mode=mode),
            lambda f, x, ours=ours: f(x, ours, [(2, 1), (0, 2)]),
            label=ours,
            shapes=((3, 3),),
            names=((("x", "y"),), ("x", "y")),
        )
        for ours, mode in (
            ("cyclic", "wrap"),
            ("mirror", "symmetric"),
            ("replicate", "edge"),
            ("reflect", "reflect"),
        )
    ),
    move(
        "pad_outer",
        lambda x: np.pad(x, [(2, 1), (0, 2)]),
        lambda f, x: f(x, 0, [(2, 1), (0, 2)]),
        label="scalar",
        out="number",
        names=((("x", "y"),), ("x", "y")),
    ),
    move("reverse", lambda x: x[::-1, ::-1], names=((("x", "y"),), ("x", "y"))),
    move(
        "reverse",
        lambda x: x[:, ::-1],
        lambda f, x: f(x, axes=[1]),
        label="axes",
        names=((("x", "y"),), ("x", "y")),
    ),
]


def dn_scalar(number):
    """An integer tensor, created when the row runs."""
    import defn as dn

    return dn.tensor(number)
