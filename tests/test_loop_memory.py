"""The memory of a loop's state: parts that take over that of others, and windows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn

SIZE = 40


def arrays(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.normal(size=SIZE).astype(np.float32) for _ in range(count)]


def after(state: list[np.ndarray], trip: Callable[..., Any], trips: int) -> list[np.ndarray]:
    """What NumPy's arrays are after some trips."""
    for i in range(trips):
        state = [np.array(part) for part in trip(np, i, *state)]
    return state


# Each takes the library, the trip and the state.
TRIPS: dict[str, tuple[int, Callable[..., Any]]] = {
    "before and now": (2, lambda lib, _, a, b: (b, b * b[::-1] - a)),
    "now and before": (2, lambda lib, _, a, b: (a * a[::-1] - b, a)),
    "a chain": (4, lambda lib, _, a, b, c, d: (b, c, d, d * d[::-1] - a)),
    "a chain backwards": (4, lambda lib, _, a, b, c, d: (d[::-1] + a, a, b, c)),
    "two chains": (4, lambda lib, _, a, b, c, d: (c, d, d[::-1] - a, c[::-1] - b)),
    "two of one": (3, lambda lib, _, a, b, c: (c, c, c[::-1] - a + b)),
    "a swap": (2, lambda lib, _, a, b: (b, a)),
    "a circle and a chain": (4, lambda lib, _, a, b, c, d: (b, a, d, d[::-1] - c + a)),
    "one that stays": (3, lambda lib, _, a, b, c: (a, c, c[::-1] - b + a)),
}


@pytest.mark.parametrize("name", TRIPS)
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("is_known", [True, False])
def test_parts_take_over_the_memory_of_others(name: str, trips: int, is_known: bool) -> None:
    count, trip = TRIPS[name]
    # Numbers that stay exact.
    state = [np.round(4 * part) % 3 for part in arrays(count)]

    def limited(lib: Any, i: Any, *state: Any) -> Any:
        return tuple(part - 3 * lib.floor(part / 3) for part in trip(lib, i, *state))

    for body in (trip, limited):
        steps = min(trips, 3) if body is trip else trips

        def loop(n: Any, *state: Any, body: Any = body, steps: int = steps) -> Any:
            over = dn.range(steps) if is_known else dn.range(n)
            return dn.for_(tuple(state), over, lambda s, i: tuple(body(dn, i, *s)))

        got = dn.jit(loop, compiler="cpu")(steps, *state)
        for one, other in zip(got, after(state, body, steps), strict=True):
            np.testing.assert_array_equal(one.to_numpy(), other)


def test_windows_are_read_where_they_are_until_that_is_written() -> None:
    def rows(x):
        def trip(state, i):
            x, kept = state
            row = x[i]
            following = x[(i + 1) % x.shape[0]]
            x = dn.put_slice(x, [i, 0], following[None])
            # The row as it was before.
            return dn.put_slice(x, [(i + 2) % x.shape[0], 0], (row + following)[None]), kept + row

        return dn.for_((x, x[0]), dn.range(7), trip)

    x = np.arange(5 * SIZE, dtype=np.float32).reshape(5, SIZE)
    want, kept = x.copy(), x[0].copy()
    for i in range(7):
        at = min(i, 4)
        row, following = want[at].copy(), want[(i + 1) % 5].copy()
        want[at] = following
        want[(i + 2) % 5] = row + following
        kept = kept + row
    got = dn.jit(rows, compiler="cpu")(x)
    np.testing.assert_array_equal(got[0].to_numpy(), want)
    np.testing.assert_array_equal(got[1].to_numpy(), kept)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_a_loop_overwrites_is_not_seen(length: int, reverse: bool) -> None:
    """The collected rows are all written, from the first or from the last, or all but one."""

    def collected(x, missing: bool):
        rows = dn.broadcast(-1.0, x.shape)

        def trip(rows, i):
            at = x.shape[0] - 1 - i if reverse else i
            return dn.put_slice(rows, [at, 0], (2.0 * x[at])[None])

        return dn.for_(rows, dn.range(length - missing), trip)

    x = np.arange(length * SIZE, dtype=np.float32).reshape(length, SIZE)
    for missing in (False, True):
        want = 2 * x
        if missing:
            want[0 if reverse else -1] = -1
        got = dn.jit(lambda x, missing=missing: collected(x, missing), compiler="cpu")(x)
        np.testing.assert_array_equal(got.to_numpy(), want)
