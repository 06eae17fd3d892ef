"""Vectorized axes: every row of the table against a loop over positions, and examples of Nx."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import defn as dn
from cases import Case, all_cases
from cases.dtypes import close, is_integer
from support import assert_alike, in_turn, on_xla

# These functions have their own tests below.
OF_AXES = {"broadcast_vectors", "devectorize", "reshape_vectors", "revectorize", "vectorize"}
CASES = [
    case for case in all_cases() if not case.creates and case.shapes and case.name not in OF_AXES
]

# Arguments that are the same for all positions: their indices, by the function's name.
SAME_FOR_ALL = {
    "clip": (1, 2),
    "pad": (1,),
}

PREFERRED = ("f32", "s32", "u8", "c64", "f64", "s8")


def identify(value: object) -> str:
    return str(value)


def dtypes_of(case: Case) -> list[str]:
    """One float or complex dtype and one integer dtype, if the row has both."""
    known = [dtype for dtype in PREFERRED if dtype in case.dtypes] or list(case.dtypes[:1])
    floats = [dtype for dtype in known if not is_integer(dtype)][:1]
    integers = [dtype for dtype in known if is_integer(dtype)][:1]
    return floats + integers


def vectorized_arguments(case: Case) -> list[int]:
    fixed = SAME_FOR_ALL.get(case.name, ())
    return [at for at in range(len(case.shapes)) if at not in fixed]


def layouts(case: Case) -> list[tuple[tuple[str, ...], ...]]:
    """The axes of each argument: the same axis for all, for one argument alone, different axes."""
    free = vectorized_arguments(case)
    count = len(case.shapes)

    def only(chosen: dict[int, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
        return tuple(chosen.get(at, ()) for at in range(count))

    found = [only(dict.fromkeys(free, ("v",)))]
    if count > 1:
        found += [only({at: ("v",)}) for at in free]
    if len(free) > 1:
        names = ["v", "w", "u", "t"]
        found.append(only({at: (names[i % 4],) for i, at in enumerate(free)}))
        found.append(only({at: ("v", "w") if i else ("w",) for i, at in enumerate(free)}))
        found.append(only({at: ("v",) if i else ("w", ONE_OF["v"]) for i, at in enumerate(free)}))
    return found


SIZES = {"v": 2, "w": 3, "u": 2, "t": 2, "v of one": 1}

# In a layout, the stand-in of an axis that has size 1 in one argument.
ONE_OF = {"v": "v of one"}
REAL = {stand_in: name for name, stand_in in ONE_OF.items()}


def leaves(value: object) -> list[dn.Tensor]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize(
    ("case", "dtype"), [(c, d) for c in CASES for d in dtypes_of(c)], ids=identify
)
def test_is_a_loop_over_positions(case: Case, dtype: str) -> None:
    """Vectorized, eager and compiled, beside a loop over the positions.

    An eager operation on a device is a compiled program of one operation: there, the first layout
    runs eagerly too, and all of them in one program.
    """
    known = layouts(case)
    drawn = [pools_of(case, dtype, axes) for axes in known]
    arguments = [
        [
            dn.vectorize(dn.tensor(pool), [REAL.get(name, name) for name in names])
            for pool, names in zip(pools, axes, strict=True)
        ]
        for pools, axes in zip(drawn, known, strict=True)
    ]
    if on_xla():
        compiled = in_turn(case.run, arguments)
    else:
        compiled = [dn.jit(lambda *given: case.run(*given))(*args) for args in arguments]
    for at, axes in enumerate(known):
        whole = leaves(compiled[at])
        got = whole if at and on_xla() else leaves(case.run(*arguments[at]))
        check_layout(case, dtype, axes, drawn[at], got, whole)


def pools_of(case: Case, dtype: str, axes: tuple[tuple[str, ...], ...]) -> list[np.ndarray]:
    """Each argument's elements for all positions of the axes that it has."""
    pools = []
    for at, names in enumerate(axes):
        sizes = [SIZES[name] for name in names]
        count = int(np.prod(sizes, dtype=int))
        draws = [case.arrays(dtype, seed=seed)[at] for seed in range(count)]
        pools.append(np.stack(draws).reshape((*sizes, *draws[0].shape)))
    return pools


def check_layout(
    case: Case,
    dtype: str,
    axes: tuple[tuple[str, ...], ...],
    pools: list[np.ndarray],
    got: list[dn.Tensor],
    compiled: list[dn.Tensor],
) -> None:
    order = list(dict.fromkeys(REAL.get(name, name) for one in axes for name in one))
    wanted: list[list[dn.Tensor]] = []
    for place in itertools.product(*(range(SIZES[name]) for name in order)):
        at = dict(zip(order, place, strict=True))
        one = [
            dn.tensor(pool[tuple(0 if name in REAL else at[name] for name in names)])
            for pool, names in zip(pools, axes, strict=True)
        ]
        wanted.append(leaves(case.run(*one)))
    for i, result in enumerate(got):
        label = f"{axes}, result {i}"
        inner = wanted[0][i]
        assert result.dtype == inner.dtype, label
        assert result.names == inner.names, label
        known = dict(result.vectorized_axes)
        assert set(known) <= set(order), label
        assert result.shape == inner.shape, label
        # On the host, because a device would compile a program for each of these operations.
        with dn.options(backend="cpu"):
            positions = dn.iota((), vectorized_axes=sizes_of(order))
            full = dn.broadcast_vectors([dn.backend_copy(result, "cpu"), positions])[0]
            full = order_axes(full, order)
        want = np.stack([one[i].to_numpy() for one in wanted])
        array = full.to_numpy().reshape(want.shape)
        exact = is_integer(str(result.dtype))
        ulps = 0 if exact else max(case.tolerance(dtype, str(result.dtype)), 8)
        ok = close(array, want, str(result.dtype), ulps, 0.0 if exact else max(case.scale, 4.0))
        assert ok.all(), f"{label}\ngot\n{array}\nwant\n{want}"
        assert compiled[i].vectorized_axes == result.vectorized_axes, label
        assert_alike(compiled[i], result, max(case.scale, 4.0))


def sizes_of(order: list[str]) -> dict[str, int]:
    return {name: SIZES[name] for name in order}


def order_axes(tensor: dn.Tensor, order: list[str]) -> dn.Tensor:
    """The elements with the vectorized axes in front, in a given order."""
    plain = dn.devectorize(tensor, keep_names=False)
    names = [name for name, _ in tensor.vectorized_axes]
    lead = [names.index(name) for name in order]
    return dn.transpose(plain, axes=[*lead, *range(len(lead), plain.rank)])
