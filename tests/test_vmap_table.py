"""`vmap` of every row of the table against a loop over the parts, and of its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases import Case, all_cases, apart, values
from cases.dtypes import close, is_complex, is_integer
from support import on_xla
from test_vectorize import OF_AXES, dtypes_of

PARTS = 3
# The rows that create tensors take none. Functions of vectorized axes see the mapped axis as one of
# them: they move it, so that the results of a part are not those without it.
CASES = [
    case for case in all_cases() if not case.creates and case.shapes and case.name not in OF_AXES
]
FLOWS = [case for case in CASES if case.grad == "flows" and "f64" in case.dtypes]

# All parts at once are one product of larger matrices, or of a matrix in the place of a vector: its
# sums are in another order. All other rows have the same bits.
PRODUCTS = {
    "conv",
    "dot",
    "einsum",
    "inner",
    "least_squares",
    "matmul",
    "multi_dot",
    "polyfit",
    "tensordot",
    "vecdot",
}


def identify(value: object) -> str:
    return str(value)


def parts_of(case: Case, dtype: str, draw: Any = None) -> list[list[np.ndarray]]:
    """For each argument, its arrays."""
    drawn = [case.arrays(dtype, seed=seed, draw=draw) for seed in range(PARTS)]
    return [[np.asarray(arrays[at]) for arrays in drawn] for at in range(len(case.shapes))]


def choices(count: int) -> list[list[int]]:
    """The mapped arguments: all, and each alone."""
    return [list(range(count)), *([at] for at in range(count) if count > 1)]


def beside_a_loop(
    fun: Callable[..., Any], parts: list[list[np.ndarray]], mapped: list[int]
) -> tuple[list[dn.Tensor], list[list[dn.Tensor]]]:
    """The results of all parts at once, and those of each part."""
    axes = [0 if at in mapped else None for at in range(len(parts))]
    whole = [
        dn.tensor(np.stack(arrays)) if at in mapped else dn.tensor(arrays[0])
        for at, arrays in enumerate(parts)
    ]
    each = [
        [dn.tensor(arrays[part if at in mapped else 0]) for at, arrays in enumerate(parts)]
        for part in range(PARTS)
    ]
    got = dn.tree.leaves(dn.vmap(fun, in_axes=axes)(*whole))
    return got, [dn.tree.leaves(fun(*one)) for one in each]


@pytest.mark.parametrize(
    ("case", "dtype"), [(c, d) for c in CASES for d in dtypes_of(c)], ids=identify
)
def test_values(case: Case, dtype: str) -> None:
    parts = parts_of(case, dtype)
    for mapped in choices(len(parts)):
        got, each = beside_a_loop(case.run, parts, mapped)
        for leaf, result in enumerate(got):
            want = np.stack([one[leaf].to_numpy() for one in each])
            assert (result.dtype, result.names[1:]) == (each[0][leaf].dtype, each[0][leaf].names)
            array = result.to_numpy()
            if array.tobytes() == want.tobytes():
                continue
            assert case.name in PRODUCTS or on_xla(), f"{mapped}: {array} {want}"
            out = str(result.dtype)
            exact = is_integer(out)
            ulps = 0 if exact else max(case.tolerance(dtype, out), 8)
            scale = 0.0 if exact else max(case.scale, 4.0)
            assert close(array, want, out, ulps, scale).all(), f"{mapped}: {array} {want}"


def weighted(case: Case) -> Callable[..., Any]:
    """One number: the sum of the elements of the result with distinct weights."""

    def loss(*args: Any) -> Any:
        result = case.run(*args)
        weights = np.random.default_rng(7).uniform(0.5, 1.5, result.shape)
        if is_complex(str(result.dtype)):
            weights = weights + 1j * np.random.default_rng(8).uniform(-1.0, 1.0, result.shape)
        return dn.sum(dn.real(result * weights))

    return loss


@pytest.mark.parametrize("case", FLOWS, ids=identify)
def test_gradients(case: Case) -> None:
    parts = parts_of(case, "f64", case.grad_draw or (apart if case.draw is values else case.draw))
    floats = [at for at, arrays in enumerate(parts) if arrays[0].dtype.kind in "fc"]
    chosen = case.grad_args or tuple(floats)
    slope = dn.grad(weighted(case), argnums=tuple(chosen))
    for mapped in choices(len(parts)):
        got, each = beside_a_loop(slope, parts, mapped)
        for leaf, result in enumerate(got):
            want = np.stack([one[leaf].to_numpy() for one in each])
            scale = max(1.0, float(np.nanmax(np.abs(want), initial=0.0)))
            tolerance = 1e-9 if result.dtype in ("f64", "c128") else 1e-4
            np.testing.assert_allclose(
                result.to_numpy(), want, rtol=tolerance, atol=tolerance * scale, err_msg=str(mapped)
            )
