"""Rows of ``dn.linalg``: eigenvalues of general matrices, functions of matrices, and solutions from
factors. Factors are put together before they are compared, because they are not unique.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import scipy.linalg

import defn as dn
from cases import Case, store
from cases.dtypes import is_whole, limits
from cases.matrix import LOOSE, adjoint, definite, gradient, norm, plain, regular, row, wide


def distinct(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Square matrices with distinct eigenvalues."""
    n = shape[-1]
    if is_whole(dtype) and limits(dtype)[1] < 7:
        cycle = np.roll(np.eye(n, dtype=np.int64), 1, 0)
        return store(np.broadcast_to(cycle, shape), dtype)
    matrices = regular(rng, shape, dtype)
    return store(matrices + np.diag(np.arange(n)).astype(matrices.dtype), dtype)


def complexes(x: np.ndarray) -> np.ndarray:
    return wide(x) + 0j


def power_sums(x: np.ndarray) -> np.ndarray:
    """The sums of the first powers of the eigenvalues, which do not depend on their order."""
    x = complexes(x)
    return np.array([np.trace(np.linalg.matrix_power(x, k)) for k in (1, 2, 3)])


def sums_of_powers(f: Any, x: Any) -> Any:
    values = f(x)
    return dn.stack([dn.sum(values), dn.sum(values * values), dn.sum(values * values * values)])


def from_vectors(f: Any, x: Any) -> Any:
    values, vectors = f(x)
    return dn.matmul(vectors * dn.new_axis(values, -2), dn.linalg.invert(vectors))


def from_unitary(f: Any, x: Any) -> Any:
    inner, unitary = f(x)
    return dn.matmul(dn.matmul(unitary, inner), adjoint(unitary))


# Other dtypes are computed in f32.
FLOATS = ("f32", "f64", "c64", "c128")
ON_DEVICES = (*FLOATS, "bf16", "s32", "bool")
WEIGHTS = np.array([1.0, -2.0, 0.5])


def shares(x: np.ndarray) -> np.ndarray:
    """A number that depends on the values and the vectors, but not on orders and phases."""
    values, vectors = np.linalg.eig(x)
    return np.sum(values * (WEIGHTS @ np.abs(vectors) ** 2))


def shares_of(f: Any, x: Any) -> Any:
    values, vectors = f(x)
    sizes = dn.real(vectors * dn.conjugate(vectors))
    return dn.sum(values * dn.dot(dn.tensor(WEIGHTS), sizes))


def exponential(x: np.ndarray) -> np.ndarray:
    """With 40 digits: those of SciPy have errors of thousands of units in the last place."""
    x = wide(x)
    if x.ndim == 3:
        return np.stack([exponential(one) for one in x])
    with mpmath.workdps(40):
        rows = mpmath.expm(mpmath.matrix(x.tolist())).tolist()
    values = np.array([[complex(value) for value in row] for row in rows])
    return values if x.dtype.kind == "c" else values.real


def matrix_function(function: Any) -> Any:
    return lambda x: np.asarray(function(complexes(x)))


def each(function: Any) -> Any:
    def of(x: np.ndarray) -> np.ndarray:
        return np.stack([np.asarray(function(complexes(one))) for one in x])

    return of


def back(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(wide(a), wide(b))


CASES = [
    row(
        "eigvals",
        power_sums,
        draw=distinct,
        call=sums_of_powers,
        out="complex",
        ulps=LOOSE,
        scale=200.0,
        names=((("x", "y"),), (None,)),
    ),
    row(
        "eig",
        complexes,
        shapes=((2, 4, 4),),
        draw=distinct,
        call=from_vectors,
        out="complex",
        ulps=LOOSE,
        scale=40.0,
        grad=None,
    ),
    gradient(
        "eig",
        shares,
        "gradient of vectors",
        draw=distinct,
        call=shares_of,
        out="complex",
        scale=10.0,
    ),
    row(
        "schur",
        complexes,
        shapes=((2, 4, 4),),
        draw=regular,
        call=from_unitary,
        out="complex",
        ulps=LOOSE,
        scale=16.0,
        grad=None,
    ),
    row(
        "hessenberg",
        wide,
        shapes=((2, 4, 4),),
        draw=regular,
        call=from_unitary,
        ulps=LOOSE,
        scale=16.0,
    ),
    row(
        "expm",
        exponential,
        ulps=LOOSE,
        scale=100.0,
        on_devices=ON_DEVICES,
        names=((("x", "y"),), (None, None)),
    ),
    row(
        "expm",
        exponential,
        dtypes=FLOATS,
        shapes=((2, 4, 4),),
        ulps=LOOSE,
        scale=200.0,
        label="batch",
    ),
    row(
        "sqrtm",
        matrix_function(scipy.linalg.sqrtm),
        draw=definite,
        out="complex",
        ulps=LOOSE,
        scale=16.0,
        names=((("x", "y"),), (None, None)),
        on_devices=ON_DEVICES,
    ),
    row(
        "sqrtm",
        each(scipy.linalg.sqrtm),
        dtypes=FLOATS,
        shapes=((2, 3, 3),),
        draw=distinct,
        out="complex",
        ulps=LOOSE,
        scale=16.0,
        label="batch",
    ),
    row(
        "logm",
        matrix_function(scipy.linalg.logm),
        out="complex",
        ulps=LOOSE,
        scale=16.0,
        on_devices=ON_DEVICES,
    ),
    row(
        "logm",
        each(scipy.linalg.logm),
        dtypes=FLOATS,
        shapes=((2, 3, 3),),
        draw=distinct,
        out="complex",
        ulps=LOOSE,
        scale=16.0,
        label="batch",
    ),
    row(
        "lu_solve",
        back,
        shapes=((3, 3), (3, 2)),
        draw=(regular, plain),
        call=lambda f, a, b: f(dn.linalg.lu(a), b),
        names=((("x", "y"), ("z", "w")), (None, None)),
    ),
    row(
        "lu_solve",
        lambda a, b: np.linalg.solve(wide(a), wide(b)[..., None])[..., 0],
        shapes=((2, 3, 3), (2, 3)),
        draw=(regular, plain),
        call=lambda f, a, b: f(dn.linalg.lu(a), b),
        label="vectors",
    ),
    row(
        "cho_solve",
        back,
        shapes=((3, 3), (3, 2)),
        draw=(definite, plain),
        call=lambda f, a, b: f(dn.linalg.cholesky(a), b),
        grad=None,
    ),
    row(
        "cho_solve",
        back,
        shapes=((3, 3), (3,)),
        draw=(definite, plain),
        call=lambda f, a, b: f(adjoint(dn.linalg.cholesky(a)), b, lower=False),
        label="upper",
        grad=None,
    ),
    Case(
        "block_diag",
        scipy.linalg.block_diag,
        module="linalg",
        shapes=((2, 3), (), (2,)),
        call=lambda f, *tensors: f(tensors),
        names=((("x", "y"), (), ("z",)), (None, None)),
    ),
    Case(
        "toeplitz",
        scipy.linalg.toeplitz,
        module="linalg",
        shapes=((3,), (4,)),
        names=((("x",), ("y",)), (None, None)),
    ),
    Case("toeplitz", scipy.linalg.toeplitz, module="linalg", shapes=((3,),), label="column"),
    *[
        row(
            "norm",
            norm(theirs, axis=axes),
            shapes=((2, 3, 4),),
            label=f"{ours} along {axes}",
            call=lambda f, x, ours=ours, axes=axes: f(x, ord=ours, axes=axes),
            draw=plain,
            out="real",
            grad=None,
        )
        for ours, theirs, axes in [
            (1, 1, (1, 2)),
            (1, 1, (2, 0)),
            ("inf", np.inf, (0, 2)),
            (-2, -2, (1, 0)),
            ("nuclear", "nuc", (2, 1)),
            ("frobenius", "fro", (0, 1)),
            ("neg_inf", -np.inf, 1),
        ]
    ],
    row(
        "norm",
        norm(1.5),
        shapes=((4,),),
        label="a fraction",
        call=lambda f, x: f(x, ord=1.5),
        out="real",
        draw=lambda rng, shape, dtype: store(np.ones(shape), dtype),
    ),
    row(
        "norm",
        lambda x: np.sqrt(np.sum(np.abs(wide(x)) ** 2)),
        shapes=((2, 2, 2),),
        label="of three axes",
        out="real",
        names=((("x", "y", "z"),), ()),
    ),
    row(
        "norm",
        norm("nuc", axis=(1, 2), keepdims=True),
        shapes=((2, 3, 2),),
        label="kept matrices",
        call=lambda f, x: f(x, ord="nuclear", axes=[1, 2], keep_axes=True),
        draw=plain,
        out="real",
        grad=None,
        names=((("x", "y", "z"),), ("x", "y", "z")),
    ),
    row(
        "matrix_rank",
        lambda x: np.linalg.matrix_rank(wide(x)),
        shapes=((2, 3, 3),),
        out="s32",
        label="batch",
        grad="zero",
    ),
    row(
        "cond",
        lambda x: np.linalg.cond(wide(x), 1),
        shapes=((2, 3, 3),),
        out="real",
        call=lambda f, x: f(x, 1),
        label="1 of a batch",
    ),
]
