"""Rows of ``dn.linalg``. Factors with arbitrary signs are multiplied before they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import defn as dn
from cases import Case, is_complex, is_integer, store
from cases.dtypes import is_whole, limits

WIDE = ("f64", "c128")
ULPS = {"other": 64, "f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 2, "bf16": 2}
LOOSE = {"other": 200, "f8_e5m2": 4, "f8_e4m3fn": 4, "f16": 8, "bf16": 8}  # For products.


def wide(x: np.ndarray) -> np.ndarray:
    """Converts integers to floats."""
    return x.astype(np.result_type(x.dtype, np.float64)) if x.dtype.kind in "iu" else x


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of magnitude at most 1; for integer dtypes whole numbers."""
    if is_whole(dtype):
        low, high = limits(dtype)
        return rng.integers(max(low, -1), min(high, 1), size=shape, endpoint=True)
    values = rng.uniform(-1, 1, size=shape)
    return values + 1j * rng.uniform(-1, 1, size=shape) if is_complex(dtype) else values


def plain(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return store(drawn(rng, shape, dtype), dtype)


def regular(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Square matrices that are far from singular."""
    values = drawn(rng, shape, dtype)
    n = shape[-1]
    if is_whole(dtype) and limits(dtype)[1] < 3:
        return store(np.triu(values, 1) + np.eye(n, dtype=np.int64), dtype)
    diagonal = np.eye(n, dtype=values.dtype)
    return store(values * (1 - diagonal) + 3 * diagonal, dtype)


def definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Positive definite Hermitian matrices."""
    upper = np.triu(regular(rng, shape, dtype), 1)
    n = shape[-1]
    high = limits(dtype)[1] if is_whole(dtype) else 3
    if high < 3:
        return store(np.broadcast_to(np.eye(n), shape), dtype)
    turned = np.swapaxes(upper, -1, -2)
    turned = turned.conj() if turned.dtype.kind == "c" else turned
    return store(upper.astype(turned.dtype) + turned + 3 * np.eye(n).astype(turned.dtype), dtype)


def hermitian(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Hermitian matrices with distinct eigenvalues."""
    matrices = definite(rng, shape, dtype)
    n = shape[-1]
    if is_whole(dtype) and limits(dtype)[1] < 7:
        return matrices
    steps = np.diag(np.arange(n)).astype(matrices.dtype)
    return store(matrices + steps, dtype)


def adjoint(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.conj(np.swapaxes(x, -1, -2))
    return dn.linalg.adjoint(x)


def row(name: str, oracle: Any, **options: Any) -> Case:
    settings = {"shapes": ((3, 3),), "draw": regular, "out": "float", "ulps": ULPS, "scale": 4.0}
    return Case(name, oracle, module="linalg", **(settings | options))


def gradient(name: str, oracle: Any, label: str, **options: Any) -> Case:
    """A row in f64 and c128 only, for its gradient."""
    settings = {"dtypes": WIDE, "out": "float", "ulps": 2000, "label": label}
    return row(name, oracle, **(settings | options))


def eigenvalues(x: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(wide(x)).astype(wide(x).dtype)


def weighted(vectors: Any, weights: list[float]) -> Any:
    """``v diag(w) v^H``, which does not depend on the vectors' signs and phases."""
    return dn.dot(vectors * np.array(weights), adjoint(vectors))


def projector(vectors: np.ndarray, weights: list[float]) -> np.ndarray:
    return vectors * np.array(weights) @ adjoint(vectors)


def triangle(which: Any, transform: Any) -> Any:
    def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.solve(transform(which(wide(a))), wide(b))

    return solve


def same(x: np.ndarray) -> np.ndarray:
    return x


def pinv(x: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(wide(x))


def vector_pinv(x: np.ndarray) -> np.ndarray:
    return np.conj(wide(x)) / np.sum(np.abs(wide(x)) ** 2)


def norm(order: Any, **options: Any) -> Any:
    return lambda x: np.linalg.norm(wide(x), order, **options)


def norms() -> list[Case]:
    """Every order of vector and matrix norms."""
    vectors = [
        (3, 3),
        (0, 0),
        (1, 1),
        (-2, -2),
        ("inf", np.inf),
        ("neg_inf", -np.inf),
        (float("-inf"), -np.inf),
    ]
    matrices = [
        (1, 1),
        (-1, -1),
        (2, 2),
        (-2, -2),
        ("inf", np.inf),
        ("neg_inf", -np.inf),
        ("frobenius", "fro"),
        ("nuclear", "nuc"),
    ]
    settings = {"out": "real", "grad_draw": regular}
    cases = [
        row("norm", norm(None), names=((("x", "y"),), ()), **settings),
        row(
            "norm",
            norm(None, axis=0),
            label="columns",
            call=lambda f, x: f(x, axes=[0]),
            names=((("x", "y"),), ("y",)),
            **settings,
        ),
        row(
            "norm",
            norm(2, axis=1, keepdims=True),
            label="kept",
            call=lambda f, x: f(x, ord=2, axes=[1], keep_axes=True),
            names=((("x", "y"),), ("x", "y")),
            **settings,
        ),
    ]
    cases += [
        row(
            "norm",
            norm(theirs),
            shapes=((4,),),
            label=f"vector {ours}",
            call=lambda f, x, ours=ours: f(x, ord=ours),
            draw=away,
            out="real",
            grad="zero" if ours == 0 else "flows",
        )
        for ours, theirs in vectors
    ]
    cases += [
        row(
            "norm",
            norm(theirs),
            shapes=((2, 3),),
            label=f"matrix {ours}",
            call=lambda f, x, ours=ours: f(x, ord=ours),
            draw=plain,
            out="real",
        )
        for ours, theirs in matrices
    ]
    return cases


def away(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of different magnitudes; none is zero if the dtype has enough values."""
    count = int(np.prod(shape))
    if dtype == "bool":
        return store(np.ones(shape) if len(shape) < 2 else np.eye(*shape), dtype)
    if is_integer(dtype):
        low, high = limits(dtype)
        pool = [1, high, 2 if high > 2 else 1, low or 1]
        return store(np.resize(np.clip(pool, -20, 20), count).reshape(shape), dtype)
    values = rng.permutation(np.arange(1, count + 1) * 0.5) * rng.choice([-1, 1], count)
    values = values * np.exp(0.3j) if is_complex(dtype) else values
    return store(values.reshape(shape), dtype)


def factored(f: Any, x: Any) -> Any:
    """The product of all factors."""
    first, *rest = f(x)
    for factor in rest:
        first = dn.matmul(first, factor)
    return first


def svd_back(full: bool) -> Any:
    def back(f: Any, x: Any) -> Any:
        u, s, vh = f(x, full_matrices=full)
        k = s.shape[-1]
        return dn.matmul(u[..., :k] * dn.new_axis(s, -2), vh[..., :k, :])

    return back


def left(weights: list[float], full: bool) -> Any:
    return lambda f, x: weighted(f(x, full_matrices=full)[0], weights)


def right(weights: list[float], full: bool) -> Any:
    return lambda f, x: weighted(adjoint(f(x, full_matrices=full)[2]), weights)


def left_of(weights: list[float], full: bool) -> Any:
    return lambda x: projector(np.linalg.svd(x, full_matrices=full)[0], weights)


def right_of(weights: list[float], full: bool) -> Any:
    return lambda x: projector(adjoint(np.linalg.svd(x, full_matrices=full)[2]), weights)


def orthogonal(weights: list[float], mode: str) -> Any:
    return lambda f, x: weighted(f(x, mode=mode)[0], weights)


def orthogonal_of(weights: list[float], mode: str) -> Any:
    return lambda x: projector(np.linalg.qr(x, mode)[0], weights)


def upper(mode: str) -> Any:
    return lambda f, x: dn.abs(f(x, mode=mode)[1])


def upper_of(mode: str) -> Any:
    return lambda x: np.abs(np.linalg.qr(x, mode)[1])


TALL, BROAD = ((4, 2),), ((2, 4),)

CASES = [
    row(
        "adjoint",
        lambda x: np.conj(x.T),
        shapes=((2, 3),),
        draw=plain,
        out="same",
        ulps=0,
        names=((("x", "y"),), ("y", "x")),
    ),
    row("adjoint", adjoint, shapes=((2, 2, 3),), draw=plain, out="same", ulps=0, label="batch"),
    row("adjoint", np.conj, shapes=((3,),), draw=plain, out="same", ulps=0, label="vector"),
    row(
        "cholesky",
        lambda x: np.linalg.cholesky(wide(x)),
        draw=definite,
        grad=None,
        names=((("x", "y"),), ("x", "y")),
    ),
    row(
        "cholesky",
        lambda x: np.linalg.cholesky(wide(x)),
        shapes=((2, 4, 4),),
        draw=definite,
        grad=None,
        label="batch",
    ),
    gradient(
        "cholesky",
        lambda x: np.linalg.cholesky(x @ adjoint(x)),
        "gradient",
        call=lambda f, x: f(dn.matmul(x, adjoint(x))),
    ),
    gradient(
        "cholesky",
        lambda x: np.linalg.cholesky(x @ adjoint(x)),
        "gradient of a batch",
        shapes=((2, 3, 3),),
        call=lambda f, x: f(dn.matmul(x, adjoint(x))),
    ),
    row(
        "triangular_solve",
        triangle(np.tril, same),
        shapes=((3, 3), (3, 2)),
        draw=(regular, plain),
        names=((("x", "y"), ("z", "w")), ("z", "w")),
    ),
    row(
        "triangular_solve",
        triangle(np.triu, same),
        shapes=((3, 3), (3,)),
        draw=(regular, plain),
        label="upper",
        call=lambda f, a, b: f(a, b, lower=False),
    ),
    row(
        "triangular_solve",
        triangle(np.tril, np.transpose),
        shapes=((3, 3), (3, 2)),
        draw=(regular, plain),
        label="transpose",
        call=lambda f, a, b: f(a, b, transform_a="transpose"),
    ),
    row(
        "triangular_solve",
        triangle(np.triu, adjoint),
        shapes=((3, 3), (3, 2)),
        draw=(regular, plain),
        label="adjoint",
        call=lambda f, a, b: f(a, b, lower=False, transform_a="adjoint"),
    ),
    row(
        "triangular_solve",
        triangle(np.triu, np.conj),
        shapes=((3, 3), (3, 2)),
        draw=(regular, plain),
        label="conjugate",
        call=lambda f, a, b: f(a, b, lower=False, transform_a="conjugate"),
    ),
    row(
        "triangular_solve",
        lambda a, b: np.linalg.solve(np.tril(wide(a)).T, wide(b).T).T,
        shapes=((3, 3), (2, 3)),
        draw=(regular, plain),
        label="right",
        call=lambda f, a, b: f(a, b, left_side=False),
    ),
    row(
        "triangular_solve",
        lambda a, b: np.linalg.solve(np.conj(np.triu(wide(a))), wide(b)),
        shapes=((3, 3), (3,)),
        draw=(regular, plain),
        label="right adjoint vector",
        call=lambda f, a, b: f(a, b, lower=False, left_side=False, transform_a="adjoint"),
    ),
    row(
        "triangular_solve",
        triangle(np.tril, same),
        shapes=((2, 3, 3), (2, 3, 2)),
        draw=(regular, plain),
        label="batch",
    ),
    row(
        "solve",
        lambda a, b: np.linalg.solve(wide(a), wide(b)),
        shapes=((3, 3), (3, 2)),
        draw=(regular, plain),
        names=((("x", "y"), ("z", "w")), (None, None)),
    ),
    row(
        "solve",
        lambda a, b: np.linalg.solve(wide(a), wide(b)),
        shapes=((4, 4), (4,)),
        draw=(regular, plain),
        label="vector",
    ),
    row(
        "solve",
        lambda a, b: np.linalg.solve(wide(a), wide(b)[..., None])[..., 0],
        shapes=((2, 3, 3), (2, 3)),
        draw=(regular, plain),
        label="batch of vectors",
    ),
    row("invert", lambda x: np.linalg.inv(wide(x)), names=((("x", "y"),), (None, None))),
    row("invert", lambda x: np.linalg.inv(wide(x)), shapes=((2, 4, 4),), label="batch"),
    row("determinant", lambda x: np.linalg.det(wide(x)), names=((("x", "y"),), ())),
    row(
        "determinant",
        lambda x: np.linalg.det(wide(x)),
        shapes=((2, 2, 2),),
        label="two rows",
        names=((("b", "x", "y"),), (None,)),
    ),
    row("determinant", lambda x: np.linalg.det(wide(x)), shapes=((2, 4, 4),), label="four rows"),
    row("determinant", lambda x: wide(x)[0, 0], shapes=((1, 1),), label="one row"),
    row("lu", wide, call=factored, ulps=LOOSE, names=((("x", "y"),), (None, None))),
    row("lu", wide, shapes=((2, 4, 4),), draw=regular, call=factored, ulps=LOOSE, label="batch"),
    gradient(
        "lu",
        lambda x: sum(scipy.linalg.lu(x)[1:]),
        "gradient",
        call=lambda f, x: dn.add(*f(x)[1:]),
    ),
    gradient(
        "lu",
        lambda x: scipy.linalg.lu(x[::-1])[2],
        "gradient with exchanged rows",
        call=lambda f, x: f(dn.reverse(x, axes=[0]))[2],
    ),
    row("qr", wide, call=factored, ulps=LOOSE, names=((("x", "y"),), (None, None))),
    row("qr", wide, shapes=((2, 4, 3),), draw=plain, call=factored, ulps=LOOSE, label="tall"),
    row("qr", wide, shapes=((2, 3, 4),), draw=plain, call=factored, ulps=LOOSE, label="broad"),
    row(
        "qr",
        wide,
        shapes=((4, 3),),
        draw=plain,
        call=lambda f, x: factored(lambda x: f(x, mode="complete"), x),
        ulps=LOOSE,
        label="complete",
    ),
    gradient(
        "qr",
        orthogonal_of([1.0, 2.0, 4.0], "reduced"),
        "gradient of q",
        call=orthogonal([1.0, 2.0, 4.0], "reduced"),
    ),
    gradient("qr", upper_of("reduced"), "gradient of r", call=upper("reduced"), out="real"),
    gradient(
        "qr",
        orthogonal_of([1.0, 2.0], "reduced"),
        "gradient of a tall q",
        shapes=TALL,
        draw=plain,
        call=orthogonal([1.0, 2.0], "reduced"),
    ),
    gradient(
        "qr",
        upper_of("reduced"),
        "gradient of a tall r",
        shapes=TALL,
        draw=plain,
        out="real",
        call=upper("reduced"),
    ),
    gradient(
        "qr",
        orthogonal_of([1.0, 2.0], "reduced"),
        "gradient of a broad q",
        shapes=BROAD,
        draw=plain,
        call=orthogonal([1.0, 2.0], "reduced"),
    ),
    gradient(
        "qr",
        upper_of("reduced"),
        "gradient of a broad r",
        shapes=BROAD,
        draw=plain,
        out="real",
        call=upper("reduced"),
    ),
    gradient(
        "qr",
        orthogonal_of([1.0, 2.0, 5.0, 5.0], "complete"),
        "gradient of a complete q",
        shapes=TALL,
        draw=plain,
        call=orthogonal([1.0, 2.0, 5.0, 5.0], "complete"),
    ),
    gradient(
        "qr",
        upper_of("complete"),
        "gradient of a complete r",
        shapes=TALL,
        draw=plain,
        out="real",
        call=upper("complete"),
    ),
    row(
        "eigh",
        eigenvalues,
        draw=hermitian,
        call=lambda f, x: f(x)[0],
        names=((("x", "y"),), (None,)),
    ),
    row(
        "eigh",
        wide,
        shapes=((2, 4, 4),),
        draw=hermitian,
        call=lambda f, x: (lambda w, v: dn.matmul(v * dn.new_axis(w, -2), adjoint(v)))(*f(x)),
        ulps=LOOSE,
        scale=16.0,
        label="put together",
        # eigh takes (x + adjoint(x)) / 2, so that differences of the oracle are not the gradient.
        grad=None,
    ),
    gradient(
        "eigh",
        lambda x: eigenvalues((x + adjoint(x)) / 2),
        "gradient of values",
        draw=hermitian,
        call=lambda f, x: f((x + adjoint(x)) / 2)[0],
    ),
    gradient(
        "eigh",
        lambda x: projector(np.linalg.eigh(x)[1], [1.0, 2.0, 4.0]),
        "gradient of vectors",
        draw=hermitian,
        call=lambda f, x: weighted(f((x + adjoint(x)) / 2)[1], [1.0, 2.0, 4.0]),
    ),
    row(
        "svd",
        lambda x: np.linalg.svd(wide(x), compute_uv=False),
        shapes=((3, 2),),
        draw=plain,
        out="real",
        call=lambda f, x: f(x)[1],
        names=((("x", "y"),), (None,)),
    ),
    row(
        "svd",
        wide,
        shapes=((2, 4, 3),),
        draw=plain,
        call=svd_back(True),
        ulps=LOOSE,
        label="full",
    ),
    row(
        "svd",
        wide,
        shapes=((2, 3, 4),),
        draw=plain,
        call=svd_back(False),
        ulps=LOOSE,
        label="reduced",
    ),
    *[
        gradient(
            "svd",
            oracle(weights, full),
            f"gradient of {label}",
            shapes=shapes,
            draw=plain,
            call=call(weights, full),
        )
        for label, oracle, call, shapes, weights, full in [
            ("u", left_of, left, ((3, 3),), [1.0, 2.0, 4.0], True),
            ("vh", right_of, right, ((3, 3),), [1.0, 2.0, 4.0], True),
            ("a tall u", left_of, left, TALL, [1.0, 2.0], False),
            ("a tall vh", right_of, right, TALL, [1.0, 2.0], False),
            ("a broad u", left_of, left, BROAD, [1.0, 2.0], False),
            ("a broad vh", right_of, right, BROAD, [1.0, 2.0], False),
            ("a full u", left_of, left, TALL, [1.0, 2.0, 5.0, 5.0], True),
            ("a full vh", right_of, right, BROAD, [1.0, 2.0, 5.0, 5.0], True),
        ]
    ],
    *norms(),
    row("pinv", pinv, shapes=((3, 2),), draw=away),
    row("pinv", pinv, shapes=((2, 3),), draw=away, label="broad"),
    row("pinv", vector_pinv, shapes=((3,),), draw=away, label="vector"),
    row("pinv", lambda x: 1 / wide(x), shapes=((),), draw=away, label="scalar"),
    row(
        "matrix_power",
        lambda x: np.linalg.matrix_power(x, 3),
        out="number",
        ulps={"other": 64, "f8_e5m2": 4, "f8_e4m3fn": 4, "f16": 4, "bf16": 4},
        scale=40.0,
        call=lambda f, x: f(x, 3),
        names=((("x", "y"),), (None, None)),
    ),
    row(
        "matrix_power",
        lambda x: np.linalg.matrix_power(wide(x), -2),
        call=lambda f, x: f(x, -2),
        label="negative",
    ),
    row(
        "matrix_rank",
        lambda x: np.linalg.matrix_rank(wide(x)),
        out="s32",
        call=lambda f, x: f(dn.concatenate([x, x], axis=1)),
        shapes=((3, 2),),
        draw=away,
        grad="zero",
    ),
    row(
        "least_squares",
        lambda a, b: np.linalg.lstsq(wide(a), wide(b), rcond=None)[0],
        shapes=((3, 2), (3,)),
        draw=(away, plain),
        names=((("x", "y"), ("z",)), (None,)),
    ),
]
