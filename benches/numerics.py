"""Rows of `eager.py`: products, windows, folds, transforms, linear algebra and random numbers.

Matrices have 256 rows, or there are 1024 matrices of 16 rows. Factors with arbitrary signs are not
compared, and neither are random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rows import COUNT, SIDE, Row, bound

import defn as dn

try:
    import scipy.linalg as scipy_linalg
    from scipy import ndimage
except ImportError:
    ndimage = scipy_linalg = None


def product_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Products of vectors and matrices."""
    m, n = x["f32"].reshape(SIDE, SIDE), t["m32"]
    f, g, row = x["f32"], x["g32"], x["row"]
    yield Row("dot", "f32 matrices", bound("dot", n, n), lambda: m @ m)
    yield Row("matmul", "f32 vector", bound("matmul", n, t["row"]), lambda: m @ row)
    yield Row("dot", "f32 vectors", bound("dot", t["f32"], t["g32"]), lambda: f @ g)
    yield Row("outer", "f32", bound("outer", t["row"], t["row"]), lambda: np.outer(row, row))


def window_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Windows and convolutions beside SciPy's filters, whose borders are cut off."""
    m, n = x["f32"].reshape(SIDE, SIDE), t["m32"]
    inner = lambda y: np.ascontiguousarray(y[1:-1, 1:-1])  # noqa: E731
    places = np.lib.stride_tricks.sliding_window_view(m, (3, 3))
    filters = {
        "window_sum": lambda: inner(ndimage.uniform_filter(m, 3)) * np.float32(9),
        "window_mean": lambda: inner(ndimage.uniform_filter(m, 3)),
        "window_max": lambda: inner(ndimage.maximum_filter(m, 3)),
        "window_min": lambda: inner(ndimage.minimum_filter(m, 3)),
    }
    for name, theirs in filters.items():
        yield Row(name, "f32 3x3", bound(name, n, (3, 3)), theirs if ndimage else None)
    yield Row(
        "window_product",
        "f32 3x3",
        bound("window_product", n, (3, 3)),
        lambda: places.prod(axis=(2, 3)),
    )
    ours = np.arange(9, dtype=np.float32).reshape(3, 3)
    image, kernel = dn.reshape(n, (1, 1, SIDE, SIDE)), dn.tensor(ours.reshape(1, 1, 3, 3))
    theirs = (lambda: inner(ndimage.correlate(m, ours))[None, None]) if ndimage else None
    yield Row("conv", "f32 3x3", bound("conv", image, kernel), theirs)
    source = dn.slice(n, [0, 0], [SIDE // 2, SIDE // 2])
    for name in ("window_scatter_max", "window_scatter_min"):
        call = bound(name, n, source, 0.0, (2, 2), strides=2)
        yield Row(name, "f32 2x2", call, None)


def fold_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Folds by a user's function, which NumPy and SciPy do not have."""

    def decay(element: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        return dn.max(acc * 0.5, element)

    def digits(element: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        return dn.remainder(acc * 31 + element, 1_000_003)

    yield Row("reduce", "f32", bound("reduce", t["f32"], 0.0, decay), None)
    yield Row("reduce", "i32", bound("reduce", t["j32"], 0, digits), None)
    for axis in (0, 1):
        call = bound("reduce", t["m32"], 0.0, decay, axes=axis)
        yield Row("reduce", f"f32 axis {axis}", call, None)
    call = bound("window_reduce", t["m32"], 0.0, (3, 3), decay)
    yield Row("window_reduce", "f32 3x3", call, None)


def fourier_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Transforms. NumPy computes those of single precision in single precision, too."""
    f = x["f32"]
    yield Row("fft", "c64", bound("fft", t["c64"]), lambda: np.fft.fft(x["c64"]), False)
    yield Row("ifft", "c64", bound("ifft", t["c64"]), lambda: np.fft.ifft(x["c64"]), False)
    yield Row("rfft", "f32", bound("rfft", t["f32"]), lambda: np.fft.rfft(f), False)
    half = np.fft.rfft(f)
    yield Row("irfft", "f32", bound("irfft", dn.tensor(half)), lambda: np.fft.irfft(half), False)
    z = x["c64"].reshape(SIDE, SIDE)
    own = dn.tensor(z)
    yield Row("fft", "c64 axis 1", bound("fft", own), lambda: np.fft.fft(z), False)
    yield Row("fft", "c64 axis 0", bound("fft", own, axis=0), lambda: np.fft.fft(z, axis=0), False)
    yield Row("fft2", "c64", bound("fft2", own), lambda: np.fft.fft2(z), False)
    yield Row("ifft2", "c64", bound("ifft2", own), lambda: np.fft.ifft2(z), False)


def linalg_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Linear algebra on one matrix and on many small ones."""
    rng = np.random.default_rng(4)
    for note, shape in (("f32 256", (256, 256)), ("f32 1024 x 16", (1024, 16, 16))):
        size = shape[-1]
        a = (rng.random(shape) + np.eye(size) * size).astype(np.float32)
        b = rng.random((*shape[:-1], 8)).astype(np.float32)
        s = (a @ a.mT / size).astype(np.float32)
        low = np.tril(a)
        rows = {
            "cholesky": ((s,), lambda s=s: np.linalg.cholesky(s)),
            "solve": ((a, b), lambda a=a, b=b: np.linalg.solve(a, b)),
            "invert": ((a,), lambda a=a: np.linalg.inv(a)),
            "determinant": ((a / size,), lambda a=a / size: np.linalg.det(a)),
            "qr": ((a,), lambda a=a: np.linalg.qr(a)),
            "svd": ((a,), lambda a=a: np.linalg.svd(a)),
            "eigh": ((s,), lambda s=s: np.linalg.eigh(s)),
            "lu": ((a,), scipy_linalg and (lambda a=a: scipy_linalg.lu(a))),
            "triangular_solve": (
                (low, b),
                scipy_linalg
                and (lambda a=low, b=b: scipy_linalg.solve_triangular(a, b, lower=True)),
            ),
            "adjoint": ((a,), lambda a=a: np.ascontiguousarray(a.mT)),
        }
        compared = {"cholesky", "solve", "invert", "triangular_solve", "adjoint"}
        for name, (operands, theirs) in rows.items():
            call = bound(f"linalg.{name}", *(dn.tensor(operand) for operand in operands))
            yield Row(f"linalg.{name}", note, call, theirs, name in compared)
        power = lambda a=a / size: np.linalg.matrix_power(a, 5)  # noqa: E731
        call = bound("linalg.matrix_power", dn.tensor(a / size), 5)
        yield Row("linalg.matrix_power", note, call, power)
    a = rng.random((256, 256)).astype(np.float32)
    for name, theirs in (("matrix_rank", np.linalg.matrix_rank), ("pinv", np.linalg.pinv)):
        call = bound(f"linalg.{name}", dn.tensor(a))
        yield Row(f"linalg.{name}", "f32 256", call, lambda f=theirs, a=a: f(a), False)
    a, b = rng.random((512, 64)).astype(np.float32), rng.random(512).astype(np.float32)
    call = bound("linalg.least_squares", dn.tensor(a), dn.tensor(b))
    yield Row("linalg.least_squares", "f32 512x64", call, lambda: np.linalg.lstsq(a, b)[0])
    f = x["f32"]
    yield Row("linalg.norm", "f32", bound("linalg.norm", t["f32"]), lambda: np.linalg.norm(f))


def random_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Random numbers; each library has its own generator."""
    key, rng, f = dn.random.key(1), np.random.default_rng(1), x["f32"]
    f32, f64, n = np.float32, np.float64, COUNT
    samples = (
        ("bits", "u32", {"dtype": "u32"}, lambda: rng.integers(0, 2**32, n, np.uint32)),
        ("bits", "u64", {"dtype": "u64"}, lambda: rng.integers(0, 2**64, n, np.uint64)),
        ("uniform", "f32", {}, lambda: rng.random(n, f32)),
        ("uniform", "f64", {"dtype": "f64"}, lambda: rng.random(n)),
        ("uniform", "f16", {"dtype": "f16"}, lambda: rng.random(n, f32).astype("f2")),
        ("normal", "f32", {}, lambda: rng.standard_normal(n, f32)),
        ("normal", "f64", {"dtype": "f64"}, lambda: rng.standard_normal(n, f64)),
        ("gumbel", "f32", {}, lambda: rng.gumbel(size=n).astype(f32)),
    )
    for name, note, options, theirs in samples:
        call = bound(f"random.{name}_split", key, shape=n, **options)
        yield Row(f"random.{name}", note, call, theirs, False)
    for dtype, own in (("u8", np.uint8), ("s32", np.int32), ("s64", np.int64)):
        call = bound("random.randint_split", key, 0, 100, shape=n, dtype=dtype)
        yield Row("random.randint", dtype, call, lambda d=own: rng.integers(0, 100, n, d), False)
    call = bound("random.shuffle_split", key, t["f32"])
    yield Row("random.shuffle", "f32", call, lambda: rng.permutation(f), False)
    for note, replace in (("f32", True), ("f32 once", False)):
        call = bound("random.choice_split", key, t["f32"], samples=n, replace=replace)
        theirs = lambda r=replace: rng.choice(f, n, replace=r)  # noqa: E731
        yield Row("random.choice", note, call, theirs, False)
    mean, spread = np.zeros(4, f32), np.eye(4, dtype=f32)
    yield Row(
        "random.multivariate_normal",
        "f32 4",
        bound("random.multivariate_normal_split", key, mean, spread, shape=n // 4),
        lambda: rng.multivariate_normal(mean, spread, n // 4, method="cholesky"),
        False,
    )


FAMILIES = (product_rows, window_rows, fold_rows, fourier_rows, linalg_rows, random_rows)
