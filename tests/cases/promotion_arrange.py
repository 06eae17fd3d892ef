"""Rows as in ``promotion.py`` of functions that arrange, sort, find and choose elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import defn as dn
from cases.dtypes import INTEGERS
from cases.promotion import Random, Row, an_axis, extended, some_axes
from cases.promotion_statistics import between

# Draws of options.


def a_shift(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"shift": int(rng.integers(-4, 8)), **some_axes(rng, shape)}


def repeats(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    options = some_axes(rng, shape)
    axis = options["axis"]
    if axis is not None and rng.random() < 0.5:
        return {"repeats": rng.integers(0, 3, size=shape[axis]).tolist(), "axis": axis}
    return {"repeats": int(rng.integers(0, 3)), "axis": axis}


def a_turn(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    axes = rng.permutation(len(shape))[:2]
    return {"k": int(rng.integers(-4, 5)), "axes": tuple(axes.tolist())}


def a_move(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    count = int(rng.integers(1, len(shape) + 1))
    source, destination = (rng.permutation(len(shape))[:count].tolist() for _ in range(2))
    return {"source": source, "destination": destination}


def repetitions(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"reps": rng.integers(1, 3, size=rng.integers(1, 4)).tolist()}


def cuts(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    options = an_axis(rng, shape)
    if rng.random() < 0.5:
        return {"cuts": int(rng.integers(1, 4)), **options}
    return {"cuts": sorted(rng.integers(0, 5, size=2).tolist()), **options}


def a_diagonal(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"k": int(rng.integers(-3, 4))}


def an_element(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    options = an_axis(rng, shape)
    size = shape[options["axis"]]
    return {"kth": int(rng.integers(-size, size)), **options}


def indices(rng: Random, shape: tuple[int, ...]) -> dict[str, Any]:
    options = an_axis(rng, shape)
    size, wanted = shape[options["axis"]], list(shape)
    wanted[options["axis"]] = 2
    return {"indices": rng.integers(-size, size, size=wanted), **options}


# NumPy's functions, with results that do not depend on free choices.


def joined(parts: Any, axis: int) -> Any:
    """The last parts first, so that the cuts show."""
    concatenate = dn.concatenate if isinstance(parts[0], dn.Tensor) else np.concatenate
    return concatenate(list(parts)[::-1], axis=axis)


def halves(x: np.ndarray, kth: int, axis: int) -> np.ndarray:
    """Sorts the elements before and behind a position, whose order NumPy leaves open."""
    kth %= x.shape[axis]
    parts = np.split(x, [kth, kth + 1], axis)
    return np.concatenate([np.sort(part, axis) for part in parts], axis)


def sides(x: Any, kth: int, axis: int) -> Any:
    """As ``halves``, of a tensor."""
    kth %= x.shape[axis]
    parts = [(0, kth), (kth, 1), (kth + 1, x.shape[axis] - kth - 1)]
    parts = [dn.slice_along_axis(x, start, length=size, axis=axis) for start, size in parts]
    return dn.concatenate([dn.sort(part, axis) for part in parts], axis)


def put(x: Any, values: Any, indices: np.ndarray, axis: int) -> np.ndarray:
    result = np.array(x, np.result_type(x, values))
    np.put_along_axis(result, indices, values, axis)
    return result


def moved(name: str, **options: Any) -> Row:
    return Row(name, getattr(dn, name), getattr(np, name), **options)


def at(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    return lambda *operands: function(*operands)[place]


EAGER: dict[str, Any] = {"numbers": (), "traces": False}
SOME = (((2, 3), (4,)), ((5,), (3,)), ((3,), ()), ((0,), (2,)))

ROWS: list[Row] = [
    moved("roll", options=a_shift, numbers=()),
    moved("repeat", options=repeats, numbers=()),
    moved("rot90", options=a_turn, rank=2, numbers=()),
    moved("moveaxis", options=a_move, rank=1, numbers=()),
    Row("tile", lambda x, reps: dn.tile(x, reps), np.tile, options=repetitions),
    moved("squeeze"),
    moved("atleast_1d"),
    moved("atleast_2d"),
    moved("atleast_3d"),
    Row(
        "reshape",
        lambda x: dn.reshape(x, (-1, 1, x.shape[0])),
        lambda x: np.reshape(x, (-1, 1, x.shape[0])),
        rank=1,
        empty=False,
        numbers=(),
    ),
    Row(
        "broadcast",
        lambda x: dn.broadcast(x, (2, *x.shape)),
        lambda x: np.broadcast_to(x, (2, *x.shape)),
        numbers=(),
    ),
    *[
        Row(
            name,
            lambda *x, name=name, place=place: getattr(dn, name)(*x)[place],
            at(getattr(np, name), place),
            2,
            predicates=(1 - place,),
            shapes=shapes,
            numbers=(),
        )
        for name, shapes in (
            ("broadcast_arrays", (((2, 1), (3,)), ((), (4,)), ((0, 1), (2,)))),
            ("meshgrid", (((2,), (3,)), ((0,), (1,)), ((4,), ()))),
        )
        for place in (0, 1)
    ],
    Row(
        "array_split",
        lambda x, cuts, axis: joined(dn.array_split(x, cuts, axis), axis),
        lambda x, cuts, axis: joined(np.array_split(x, cuts, axis), axis),
        options=cuts,
        rank=1,
        numbers=(),
    ),
    Row(
        "split",
        lambda x: joined(dn.split(x, 2), 0),
        lambda x: joined(np.split(x, [2]), 0),
        shapes=(((3,),), ((4, 2),)),
        numbers=(),
    ),
    Row("unstack", at(dn.unstack, -1), at(np.unstack, -1), rank=1, empty=False, numbers=()),
    *[
        Row(
            name,
            extended(getattr(dn, name)),
            extended(getattr(np, name)),
            2,
            shapes=shapes,
            numbers=(),
        )
        for name, shapes in (
            ("column_stack", (((3,), (3,)), ((2,), (2, 2)), ((0, 1), (0,)))),
            ("dstack", (((3,), (3,)), ((2, 1), (2, 1, 2)), ((1, 3), (3,)))),
        )
    ],
    Row(
        "eye",
        lambda x, k: dn.eye((3, 2), offset=k, dtype=x.dtype),
        lambda x, k: np.eye(3, 2, k, dtype=x.dtype),
        options=a_diagonal,
        numbers=(),
    ),
    Row(
        "tri",
        lambda x, k: dn.tri(x.shape[0], x.shape[1], k),
        lambda x, k: np.tri(x.shape[0], x.shape[1], k, dtype=bool),
        1,
        "predicate",
        a_diagonal,
        shapes=(((2, 3),), ((3, 2),), ((0, 2),)),
        numbers=(),
    ),
    *[
        Row(
            name,
            lambda x, k, name=name: x[getattr(dn, name)(*x.shape, offset=k)],
            lambda x, k, name=name: x[getattr(np, name)(x.shape[0], k, x.shape[1])],
            options=a_diagonal,
            shapes=(((2, 3),), ((3, 2),)),
            numbers=(),
        )
        for name in ("tril_indices", "triu_indices")
    ],
    Row(
        "partition",
        lambda x, kth, axis: sides(dn.partition(x, kth, axis), kth, axis),
        lambda x, kth, axis: halves(np.partition(x, kth, axis), kth, axis),
        options=an_element,
        rank=1,
        empty=False,
        numbers=(),
    ),
    Row(
        "argpartition",
        lambda x, kth, axis: sides(
            dn.take_along_axis(x, dn.argpartition(x, kth, axis), axis), kth, axis
        ),
        lambda x, kth, axis: halves(
            np.take_along_axis(x, np.argpartition(x, kth, axis), axis), kth, axis
        ),
        options=an_element,
        rank=1,
        empty=False,
        numbers=(),
    ),
    Row(
        "lexsort",
        extended(dn.lexsort),
        extended(np.lexsort),
        2,
        "s32",
        an_axis,
        rank=1,
        alike=True,
        dtypes=("bool", *INTEGERS, "f16", "f32", "f64"),
        small=True,
        numbers=(),
    ),
    Row(
        "take_along_axis",
        lambda x, indices, axis: dn.take_along_axis(x, indices, axis),
        np.take_along_axis,
        options=indices,
        rank=1,
        empty=False,
        numbers=(),
    ),
    Row(
        "put_along_axis",
        lambda x, values, indices, axis: dn.put_along_axis(x, indices, values, axis),
        put,
        2,
        options=indices,
        shapes=(((2, 3), ()), ((4,), (1,)), ((3, 2), (1, 1))),
        numbers=(1,),
    ),
    Row(
        "unravel_index",
        lambda x: dn.unravel_index(x, (2, 3))[1],
        lambda x: np.unravel_index(x.astype(np.int64), (2, 3))[1],
        1,
        "s32",
        prepare=between(0, 6),
        dtypes=INTEGERS,
        numbers=(),
    ),
    Row("isin", dn.isin, np.isin, 2, "predicate", shapes=SOME, small=True),
    moved("unique", **EAGER),
    Row("unique_values", dn.unique_values, partial(np.unique, equal_nan=False), **EAGER),
    *[
        Row(name, at(getattr(dn, name), place), at(getattr(np, name), place), 1, "s32", **EAGER)
        for name, place in (("unique_counts", 1), ("unique_inverse", 1), ("unique_all", 1))
    ],
    *[
        moved(name, arity=2, shapes=SOME, small=True, **EAGER)
        for name in ("union1d", "intersect1d", "setdiff1d")
    ],
    moved("flatnonzero", out="s32", **EAGER),
    moved("argwhere", out="s32", **EAGER),
    Row("nonzero", at(dn.nonzero, -1), at(np.nonzero, -1), 1, "s32", rank=1, **EAGER),
]
