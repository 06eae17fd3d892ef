"""Random indices as NumPy takes them, for tests of ``x[index]`` and ``x.at[index]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import defn as dn

PLACES = ((), (2,), (3,), (1, 3), (2, 1), (2, 3), (0,))
"""Shapes of positions; some do not broadcast against each other, and are drawn again."""


def selected_by_numpy(x: np.ndarray, index: Any) -> np.ndarray:
    """What NumPy selects; positions that do not broadcast against each other are drawn again."""
    try:
        return x[index]
    except IndexError:
        assume(False)
        raise


@st.composite
def slices(draw: st.DrawFn, size: int) -> slice:
    bound = st.one_of(st.none(), st.integers(-size - 1, size + 1))
    step = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def positions(draw: st.DrawFn, size: int, place: tuple[int, ...]) -> np.ndarray:
    dtype = draw(st.sampled_from(["int32", "int64", "int8", "uint8", "uint64"]))
    low = 0 if dtype.startswith("u") else -size
    count = int(np.prod(place))
    flat = draw(st.lists(st.integers(low, size - 1), min_size=count, max_size=count))
    return np.array(flat, dtype).reshape(place)


@st.composite
def masks(draw: st.DrawFn, shape: tuple[int, ...], count: int | None) -> np.ndarray:
    """A mask; with ``count``, one that selects as many elements, if there are so many."""
    size = int(np.prod(shape))
    mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    if count is not None:
        mask[:] = False
        mask[draw(st.permutations(range(size)))[:count]] = True
    return mask.reshape(shape)


@st.composite
def indices(
    draw: st.DrawFn, shape: tuple[int, ...], kinds: tuple[str, ...] = ("basic", "array", "mask")
) -> tuple[Any, ...]:
    """An index of an array; arrays of integers and of bools are NumPy's."""
    entries: list[Any] = []
    common = draw(st.sampled_from(PLACES[1:-1]))
    axis = 0
    while axis < len(shape) and not (entries and draw(st.integers(0, 5)) == 0):
        kind, size = draw(st.sampled_from(kinds)), shape[axis]
        if kind == "basic":
            entry = draw(st.one_of(slices(size), st.integers(-size, size - 1)))
        elif kind == "array":
            place = draw(st.sampled_from([common, common[-1:], (1,) * len(common), ()]))
            entry = draw(positions(size, place))
        else:
            rank = draw(st.integers(1, len(shape) - axis))
            # Masks are positions too, which must broadcast against the others.
            alone = not any(isinstance(entry, np.ndarray) for entry in entries)
            count = None if alone and kinds == ("basic", "mask") else common[-1]
            entry = draw(masks(shape[axis : axis + rank], count))
            axis += rank - 1
        entries.append(entry)
        axis += 1
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()):
        rest = draw(st.integers(0, len(entries)))
        tail = entries[rest:]
        covered = sum(getattr(e, "ndim", 1) if is_mask(e) else 1 for e in tail if e is not None)
        if sizes_fit(tail, shape[len(shape) - covered :]):
            entries = [*entries[:rest], ..., *tail]
    return tuple(entries)


def is_mask(entry: Any) -> bool:
    return isinstance(entry, np.ndarray) and entry.dtype == bool


def sizes_fit(entries: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether entries that were drawn for other axes are also valid for these."""
    axis = 0
    for entry in entries:
        if entry is None:
            continue
        if is_mask(entry):
            if entry.shape != shape[axis : axis + entry.ndim]:
                return False
            axis += entry.ndim
            continue
        if not isinstance(entry, slice):
            values = np.asarray(entry)
            size = shape[axis]
            if values.size and not (-size <= int(values.min()) and int(values.max()) < size):
                return False
        axis += 1
    return True


def split(index: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The arrays and the ints of an index, and a function that makes the index of such leaves."""
    places = [
        at for at, entry in enumerate(index) if isinstance(entry, np.ndarray) or type(entry) is int
    ]

    def joined(leaves: Any) -> tuple[Any, ...]:
        entries = list(index)
        for at, leaf in zip(places, leaves, strict=True):
            entries[at] = leaf
        return tuple(entries)

    return [np.asarray(index[at]) for at in places], joined


def as_lists(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(e.tolist() if isinstance(e, np.ndarray) and e.size else e for e in index)


def as_tensors(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dn.tensor(e) if isinstance(e, np.ndarray) else e for e in index)
