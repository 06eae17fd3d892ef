"""Rows of the functions that read and write at positions given by a tensor."""

from __future__ import annotations

import numpy as np

import defn as dn
from cases import Case, between, small
from cases.dtypes import ALL, INTEGERS, NUMBERS, REAL, SIGNED

ROWS = [[1, 2], [0, 0], [1, 2], [0, 1]]
ONE = [[2], [0], [2]]
SUMS = {"other": 4, "f8_e5m2": 2, "f8_e4m3fn": 2}


def at(positions):
    return tuple(np.array(positions).T)


def added(x, index, updates):
    out = x.copy()
    np.add.at(out, index, updates)
    return out


def put(x, index, updates):
    out = x.copy()
    out[index] = updates
    return out


def scatters(name, oracle, again=True, dtypes=ALL):
    """Single elements, whole axes, chosen axes, updates smaller than the axis, and one element.

    With ``again`` some positions repeat. This needs a gradient that equals finite differences.
    That of puts does not: each of several has a gradient, although only the last takes effect.
    """
    options = {"dtypes": dtypes, "draw": small, "ulps": SUMS, "scale": 8.0}
    rows = ROWS if again else [[1, 2], [0, 0], [1, 1], [0, 1]]
    one = [2, 0, 2] if again else [2, 0, 1]

    def smaller(x, u):
        out = x.copy()
        for row, update in zip(one, u, strict=True):
            window = out[row, :2].copy()
            out[row, :2] = oracle(window, slice(None), update)
        return out

    return [
        Case(
            name,
            lambda x, u: oracle(x, at(rows), u),
            call=lambda f, x, u: f(x, dn.tensor(rows), u),
            shapes=((2, 3), (4,)),
            names=((("x", "y"), (None,)), ("x", "y")),
            **options,
        ),
        Case(
            name,
            lambda x, u: oracle(x, (np.array(one),), u),
            call=lambda f, x, u: f(x, dn.new_axis(dn.tensor(one), -1), u),
            label="whole",
            shapes=((3, 2), (3, 2)),
            names=((("x", "y"), ("z", None)), ("x", "y")),
            **options,
        ),
        Case(
            name,
            lambda x, u: oracle(x, (slice(None), one, slice(None)), u.transpose(1, 0, 2)),
            call=lambda f, x, u: f(x, dn.new_axis(dn.tensor(one), -1), u, axes=[1]),
            label="axes",
            shapes=((2, 3, 2), (3, 2, 2)),
            names=((("x", "y", "z"), (None,) * 3), ("x", "y", "z")),
            **options,
        ),
        Case(
            name,
            smaller,
            call=lambda f, x, u: f(x, dn.new_axis(dn.tensor(one), -1), u),
            label="smaller",
            shapes=((3, 3), (3, 2)),
            names=((("x", "y"), (None, None)), ("x", "y")),
            **options,
        ),
        Case(
            name,
            lambda x, u: oracle(x, (1, 2), u),
            call=lambda f, x, u: f(x, dn.tensor([1, 2]), u),
            label="single",
            shapes=((2, 3), ()),
            names=((("x", "y"), ()), ("x", "y")),
            **options,
        ),
        Case(
            name,
            lambda x, u: x,
            call=lambda f, x, u: f(x, dn.iota((0, 2)), u),
            label="none",
            shapes=((2, 3), (0,)),
            names=((("x", "y"), (None,)), ("x", "y")),
            dtypes=dtypes,
            grad=None,
        ),
    ]


# Some ids are out of range.
IDS = np.array([2, 0, 2, 5, -1, 1, 2])


def segments(ufunc, start):
    def oracle(x):
        out = np.full((3, *x.shape[1:]), start, x.dtype)
        inside = (IDS >= 0) & (IDS < 3)
        ufunc.at(out, IDS[inside], x[inside])
        return out

    return oracle


def ends(ufunc):
    def oracle(x):
        return np.stack([ufunc.reduce(x[at == IDS], 0) for at in range(3)])

    return oracle


def segmented(name, oracle, **options):
    return Case(
        name,
        oracle,
        call=lambda f, x: f(x, dn.tensor(IDS), num_segments=3),
        shapes=((7, 2),),
        names=((("x", "y"),), (None, "y")),
        **options,
    )


CASES = [
    segmented("segment_sum", segments(np.add, 0), draw=small, out="number", ulps=SUMS, scale=8.0),
    segmented(
        "segment_product",
        segments(np.multiply, 1),
        draw=between(-2, 2),
        out="number",
        ulps=SUMS,
        scale=1.0,
    ),
    segmented("segment_max", ends(np.maximum), dtypes=REAL),
    segmented("segment_min", ends(np.minimum), dtypes=REAL),
    Case(
        "gather",
        lambda x: x[at(ROWS)],
        call=lambda f, x: f(x, dn.tensor(ROWS)),
        names=((("x", "y"),), (None,)),
    ),
    Case(
        "gather",
        lambda x: x[np.array([[2, 0], [1, 1]])],
        call=lambda f, x: f(x, dn.tensor([[[2], [0]], [[1], [1]]])),
        label="whole",
        shapes=((3, 2),),
        names=((("x", "y"),), (None, None, None)),
    ),
    Case(
        "gather",
        # The first axis has no index. It becomes the last axis of the result.
        lambda x: x[:, [2, 0], [1, 0]].T,
        call=lambda f, x: f(x, dn.tensor([[2, 1], [0, 0]]), axes=[1, -1]),
        label="axes",
        shapes=((2, 3, 2),),
        names=((("x", "y", "z"),), (None, None)),
    ),
    Case(
        "gather",
        lambda x: x[:, [2, 0, 2]].transpose(1, 0, 2),
        call=lambda f, x: f(x, dn.tensor(ONE), axes=[1]),
        label="middle",
        shapes=((2, 3, 2),),
        names=((("x", "y", "z"),), (None,) * 3),
    ),
    Case(
        "gather",
        lambda x: x[1, 2],
        call=lambda f, x: f(x, dn.tensor([1, 2])),
        label="one",
        names=((("x", "y"),), ()),
    ),
    Case(
        "gather",
        lambda x: np.stack([x, x]),
        call=lambda f, x: f(x, dn.iota((2, 0))),
        label="no entries",
        names=((("x", "y"),), (None,) * 3),
    ),
    Case(
        "gather",
        lambda x: x[:0],
        call=lambda f, x: f(x, dn.iota((0, 1))),
        label="nothing",
        names=((("x", "y"),), (None, None)),
        grad=None,
    ),
    Case(
        "gather",
        lambda i: 2 * i + 1,
        dtypes=INTEGERS,
        draw=between(0, 3),
        call=lambda f, i: f(2 * dn.iota((4,)) + 1, dn.new_axis(i, -1)),
        label="positions",
        out="s32",
        grad=None,
        names=((("x", "y"),), (None, None)),
    ),
    Case(
        "take",
        lambda x: x[[1, 0, 1]],
        call=lambda f, x: f(x, dn.tensor([1, 0, 1], names=["x"])),
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "take",
        lambda x: np.take(x, [[2, 0], [1, 1]], 1),
        call=lambda f, x: f(x, dn.tensor([[2, 0], [1, 1]], names=["a", None]), axis=1),
        label="axis",
        shapes=((2, 3, 2),),
        names=((("x", "y", "z"),), ("x", "a", None, "z")),
    ),
    Case(
        "take",
        lambda x: x[:, 2],
        call=lambda f, x: f(x, 2, axis=-1),
        label="one",
        names=((("x", "y"),), ("x",)),
    ),
    Case(
        "take",
        lambda x: x[:, :0],
        call=lambda f, x: f(x, dn.iota((0,)), axis=1),
        label="nothing",
        names=((("x", "y"),), ("x", "y")),
        grad=None,
    ),
    Case(
        "take",
        lambda i: 2 * i + 1,
        dtypes=INTEGERS,
        draw=between(0, 3),
        call=lambda f, i: f(2 * dn.iota((4,)) + 1, i),
        label="positions",
        out="s32",
        grad=None,
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "take_along_axis",
        lambda x: np.take_along_axis(x, np.array([[1, 0, 1], [0, 0, 1], [1, 1, 1]]), 0),
        call=lambda f, x: f(x, dn.tensor([[1, 0, 1], [0, 0, 1], [1, 1, 1]], names=["a", "b"])),
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "take_along_axis",
        lambda x: np.take_along_axis(x, np.array([[2], [0]]), 1),
        call=lambda f, x: f(x, dn.tensor([[2], [0]]), axis=1),
        label="axis",
        names=((("x", "y"),), ("x", "y")),
    ),
    Case(
        "take_along_axis",
        lambda x: np.take_along_axis(x, np.arange(12).reshape(2, 3, 2) % 3, 1),
        call=lambda f, x: f(x, dn.remainder(dn.iota((2, 3, 2)), 3), axis=1),
        label="middle",
        shapes=((2, 3, 2),),
        names=((("x", "y", "z"),), ("x", "y", "z")),
    ),
    Case(
        "take_along_axis",
        lambda i: 2 * i + 1,
        dtypes=INTEGERS,
        shapes=((3,),),
        draw=between(0, 3),
        call=lambda f, i: f(2 * dn.iota((4,)) + 1, i),
        label="positions",
        out="s32",
        grad=None,
        names=((("x",),), (None,)),
    ),
    *scatters("indexed_add", added, dtypes=NUMBERS),
    *scatters("indexed_put", put, again=False),
    Case(
        "indexed_put",
        lambda x, u: put(x, at(ROWS), u),
        call=lambda f, x, u: f(x, dn.tensor(ROWS), u),
        label="again",
        shapes=((2, 3), (4,)),
        names=((("x", "y"), (None,)), ("x", "y")),
        grad=None,
    ),
    Case(
        "indexed_add",
        # The number of times that each number occurs.
        lambda i: (i.reshape(-1, 1) == np.arange(8)).astype(int).sum(0),
        dtypes=INTEGERS,
        shapes=((5,),),
        draw=between(0, 7),
        call=lambda f, i: f(dn.broadcast(0, (8,)), dn.new_axis(i, -1), dn.broadcast(1, (5,))),
        label="positions",
        out="s32",
        grad=None,
        names=((("x",),), (None,)),
    ),
    *(
        Case(
            "unravel_index",
            lambda i, axis=axis: np.unravel_index(i, (2, 3))[axis],
            dtypes=INTEGERS,
            shapes=((2, 3),),
            draw=between(0, 5),
            call=lambda f, i, axis=axis: f(i, (2, 3))[axis],
            label=f"{axis}",
            out="s32",
            grad=None,
            names=((("x", "y"),), ("x", "y")),
        )
        for axis in (0, 1)
    ),
    *(
        Case(
            "unravel_index",
            lambda i, axis=axis: np.unravel_index(i % 24, (2, 3, 4))[axis],
            dtypes=SIGNED,
            shapes=((5,),),
            draw=between(-24, -1),
            call=lambda f, i, axis=axis: f(i, (2, 3, 4))[axis],
            label=f"from-end-{axis}",
            out="s32",
            grad=None,
            names=((("x",),), ("x",)),
        )
        for axis in range(3)
    ),
    *(
        Case(
            name,
            lambda oracle=oracle, args=args: np.stack(oracle(args[0], args[2], args[1])),
            shapes=(),
            creates=True,
            out="s32",
            grad=None,
            call=lambda f, dtype, args=args: dn.stack(f(args[0], args[1], offset=args[2])),
            label=f"{args[0]}-{args[1]}-{args[2]}",
            names=((), (None, None)),
        )
        for name, oracle in (("tril_indices", np.tril_indices), ("triu_indices", np.triu_indices))
        for args in ((3, None, 0), (2, 4, 1), (4, 2, -1), (3, 2, 9), (2, 3, -9), (0, 2, 0))
    ),
]
