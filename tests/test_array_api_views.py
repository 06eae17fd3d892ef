"""Arrays of ``defn.array_api`` share changes with their parts where NumPy's views do."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
import defn.array_api as xp

SHAPE = (3, 4, 2)


def axes(data: st.DataObject, rank: int) -> int:
    return data.draw(st.integers(-rank, rank - 1))


def part(data: st.DataObject, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """The same part of both arrays."""
    rank = theirs.ndim
    how = data.draw(st.sampled_from(["index", "permute", "move", "flip", "expand", "T"]))
    if how == "permute":
        order = tuple(data.draw(st.permutations(range(rank))))
        return xp.permute_dims(ours, order), np.transpose(theirs, order)
    if how == "move" and rank:
        source, to = axes(data, rank), axes(data, rank)
        return xp.moveaxis(ours, source, to), np.moveaxis(theirs, source, to)
    if how == "flip" and rank:
        axis = data.draw(st.none() | st.integers(-rank, rank - 1))
        return xp.flip(ours, axis=axis), np.flip(theirs, axis)
    if how == "expand" and rank < 5:
        axis = axes(data, rank + 1)
        return xp.expand_dims(ours, axis=axis), np.expand_dims(theirs, axis)
    if how == "T" and rank >= 2:
        return ours.mT, np.matrix_transpose(theirs)
    key = data.draw(hnp.basic_indices(theirs.shape, allow_newaxis=rank < 4, allow_ellipsis=True))
    return ours[key], theirs[key]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changes_show_where_numpys_do(data: st.DataObject) -> None:
    start = np.arange(24.0).reshape(SHAPE)
    pairs: list[tuple[Any, Any]] = [(xp.asarray(start), start.copy())]
    for step in range(data.draw(st.integers(1, 8))):
        ours, theirs = data.draw(st.sampled_from(pairs))
        if data.draw(st.booleans()):
            made = part(data, ours, theirs)
            # NumPy makes numbers, which are no views, of all positions.
            if isinstance(made[1], np.ndarray):
                pairs.append(made)
            continue
        key = data.draw(hnp.basic_indices(theirs.shape, allow_ellipsis=True))
        how = data.draw(st.sampled_from(["set", "add", "add to part"]))
        if how == "set":
            ours[key], theirs[key] = float(-step), float(-step)
        elif how == "add":
            ours += 100.0
            theirs += 100.0
        else:
            ours[key] += 1000.0
            theirs[key] += 1000.0
        for got, want in pairs:
            np.testing.assert_array_equal(np.asarray(got), want)


def test_reshaped_arrays_share_where_the_elements_are_in_order() -> None:
    x = xp.zeros((2, 3))
    row = xp.reshape(x, (6,))
    xp.squeeze(xp.reshape(row, (6, 1)), axis=1)[4] = 1.0
    assert x[1, 1] == 1.0
    x[0, 0] = 2.0
    assert row[0] == 2.0
    # NumPy copies such an array, and this one.
    across = xp.reshape(x.T, (6,))
    across += 5.0
    copied = xp.reshape(x, (6,), copy=True)
    copied += 5.0
    assert float(xp.sum(x)) == 3.0


def test_what_numpy_copies_is_not_shared() -> None:
    x = xp.asarray([1.0, 2.0, 3.0])
    for other in (
        x[xp.asarray([0, 1])],
        x[x > 1.0],
        x[0],
        x[np.int64(0)],
        +x,
        xp.astype(x, xp.float64),
        copy.copy(x[:2]),
        copy.deepcopy(x[:2]),
        pickle.loads(pickle.dumps(x[:2])),
    ):
        other += 1.0
    assert np.asarray(x).tolist() == [1.0, 2.0, 3.0]
    number = x[0, ...]
    number += 1.0
    assert float(x[0]) == 2.0


def test_parts_do_not_outlive_their_use() -> None:
    x = xp.zeros(100)
    for i in range(100):
        x[i : i + 1] += float(i)
    gc.collect()
    assert not x._parts
    kept = x[10:]
    del x
    kept += 1.0
    assert float(kept[0]) == 11.0


def test_tensors_and_traces_never_change() -> None:
    x = xp.asarray([1.0, 2.0])
    tensor, inside = dn.tensor(x), x[:1]
    inside += 1.0
    assert tensor.to_list() == [1.0, 2.0]
    assert np.asarray(x).tolist() == [2.0, 2.0]

    def changed(x: Any) -> Any:
        part = x[:1]
        part += 1.0
        return x

    with pytest.raises(dn.TraceError, match="a traced array never changes"):
        dn.jit(changed)(x)
