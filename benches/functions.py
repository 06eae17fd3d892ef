"""Rows of `eager.py`: functions that are made of operations, beside those of NumPy and SciPy.

Most have two rows, of 2^20 elements and of eight: the second shows what a call costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from rows import COUNT, SIDE, Row, bound

import defn as dn

try:
    import scipy.linalg as scipy_linalg
    from scipy import special
except ImportError:
    special = scipy_linalg = None

# The elements of a small operand.
FEW = 8

Arrays = dict[str, np.ndarray]
Tensors = dict[str, dn.Tensor]


def both(
    name: str,
    theirs: Callable[..., object] | None,
    arrays: list[np.ndarray],
    note: str,
    **options: object,
) -> Iterator[Row]:
    """The row of a function on whole arrays, and the one on their first elements."""
    for count in (len(arrays[0]), FEW):
        part = [np.ascontiguousarray(array[:count]) for array in arrays]
        call = bound(name, *(dn.tensor(array) for array in part), **options)
        text = note if count > FEW else f"{note}, few"
        yield Row(name, text, call, theirs and (lambda part=part: theirs(*part)))


def elementwise_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Functions of one or two operands, element by element."""
    unary = {"isfinite": np.isfinite, "reciprocal": np.reciprocal, "nan_to_num": np.nan_to_num}
    for name in "signbit trunc exp2 radians degrees sinc square".split():
        unary[name] = getattr(np, name)
    binary = {"isclose": np.isclose, "divmod": np.divmod, "fmod": np.fmod}
    for name in "copysign hypot logaddexp heaviside nextafter".split():
        binary[name] = getattr(np, name)
    for dtype, other in (("f32", "g32"), ("f64", "g64")):
        for name, theirs in unary.items():
            yield from both(name, theirs, [x[dtype]], dtype)
        for name, theirs in binary.items():
            yield from both(name, theirs, [x[dtype], x[other]], dtype)


def special_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Special functions. SciPy computes those of f32 in f32 where it can."""
    names = {
        "lgamma": "gammaln",
        "digamma": "psi",
        "ndtr": "ndtr",
        "ndtri": "ndtri",
        "i0": "i0",
        "i0e": "i0e",
        "i1": "i1",
        "i1e": "i1e",
        "gammainc": "gammainc",
        "gammaincc": "gammaincc",
        "betaln": "betaln",
        "betainc": "betainc",
    }
    for dtype, other in (("f32", "g32"), ("f64", "g64")):
        a, b = x[dtype], x[other]
        operands = {"gammainc": [b, a], "gammaincc": [b, a], "betaln": [b, b], "betainc": [b, b, a]}
        for name, theirs in names.items():
            call = getattr(special, theirs) if special else None
            yield from both(name, call, operands.get(name, [a]), dtype)


def reduction_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Reductions, and statistics."""
    names = "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanargmax nanargmin nanmedian ptp"
    for dtype in ("f32", "f64"):
        for name in [*names.split(), "count_nonzero"]:
            yield from both(name, getattr(np, name), [x[dtype]], dtype)
        a, w = t[dtype], t[dtype.replace("f", "g")]
        yield Row(
            "average",
            dtype,
            lambda a=a, w=w: dn.average(a, weights=w),
            lambda dtype=dtype: np.average(x[dtype], weights=x[dtype.replace("f", "g")]),
        )
        for name, q in (("quantile", 0.3), ("percentile", 30.0), ("nanquantile", 0.3)):
            theirs = lambda a, name=name, q=q: getattr(np, name)(a, q)  # noqa: E731
            yield from both(name, theirs, [x[dtype]], dtype, q=q)
        yield from both("trapezoid", np.trapezoid, [x[dtype]], dtype)
        yield from both("gradient", np.gradient, [x[dtype]], dtype)
    m = x["f32"].reshape(SIDE, SIDE)
    yield Row("corrcoef", "f32", bound("corrcoef", t["m32"]), lambda: np.corrcoef(m))


def order_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Places in sorted vectors, counts, and sets."""
    for dtype in ("f32", "f64"):
        a, edges = x[dtype], np.linspace(0, 1, 100, dtype=x[dtype].dtype)
        e = dn.tensor(edges)
        values = np.sin(edges)
        for count in (COUNT, FEW):
            part = a[:count].copy()
            p = dn.tensor(part)
            note = dtype if count == COUNT else f"{dtype}, few"
            yield Row(
                "searchsorted",
                note,
                bound("searchsorted", e, p),
                lambda edges=edges, part=part: np.searchsorted(edges, part),
            )
            yield Row(
                "digitize",
                note,
                bound("digitize", p, e),
                lambda edges=edges, part=part: np.digitize(part, edges),
            )
            yield Row(
                "interp",
                note,
                bound("interp", p, e, dn.tensor(values)),
                lambda edges=edges, part=part, values=values: np.interp(part, edges, values),
            )
            yield Row(
                "histogram",
                note,
                lambda p=p: dn.histogram(p, 20)[0],
                lambda part=part: np.histogram(part, 20)[0],
                # Elements near an edge may be counted on its other side.
                False,
            )
            yield Row(
                "partition",
                note,
                bound("partition", p, count // 2),
                lambda part=part: np.partition(part, len(part) // 2),
                False,
            )
    counts = x["j32"].astype(np.int64)
    yield from both("bincount", np.bincount, [counts], "s64")
    yield from both("flatnonzero", np.flatnonzero, [x["v8"]], "u8")
    yield from both("argwhere", np.argwhere, [x["v8"]], "u8")
    yield from both("unique", np.unique, [x["i32"]], "s32")
    yield from both("isin", np.isin, [x["i32"], x["j32"][:1000]], "s32")
    for name in ("union1d", "intersect1d", "setdiff1d"):
        yield from both(name, getattr(np, name), [x["i32"], x["j32"]], "s32")
    keys = [x["f32"], x["j32"]]
    yield Row(
        "lexsort",
        "f32, s32",
        lambda: dn.lexsort([t["f32"], t["j32"]]),
        lambda: np.lexsort(keys),
    )


def sequence_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Sequences and polynomials."""
    for dtype in ("f32", "f64"):
        a, kernel = x[dtype], x[dtype][:31].copy()
        k = dn.tensor(kernel)
        yield Row(
            "convolve",
            f"{dtype}, 31",
            bound("convolve", t[dtype], k),
            lambda a=a, kernel=kernel: np.convolve(a, kernel),
        )
        yield Row(
            "correlate",
            f"{dtype}, 31",
            bound("correlate", t[dtype], k),
            lambda a=a, kernel=kernel: np.correlate(a, kernel),
        )
        for count in (COUNT, FEW):
            part, few = a[:count].copy(), a[:5].copy()
            yield Row(
                "polyval",
                dtype if count == COUNT else f"{dtype}, few",
                bound("polyval", dn.tensor(few), dn.tensor(part)),
                lambda part=part, few=few: np.polyval(few, part),
            )
    a, b = x["f64"][:4096], x["g64"][:4096]
    yield Row(
        "polyfit",
        "f64",
        bound("polyfit", dn.tensor(a), dn.tensor(b), 3),
        lambda: np.polyfit(a, b, 3),
    )


def moved_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Functions that move elements, and products."""
    m, n = x["f32"].reshape(SIDE, SIDE), t["m32"]
    f, g = x["f32"], x["g32"]
    copy = np.ascontiguousarray
    yield Row("roll", "f32", bound("roll", t["f32"], 1000), lambda: np.roll(f, 1000))
    yield Row("roll", "f32 axis 1", bound("roll", n, 10, axis=1), lambda: np.roll(m, 10, axis=1))
    yield Row("repeat", "f32", bound("repeat", t["row"], SIDE), lambda: np.repeat(x["row"], SIDE))
    yield Row("rot90", "f32", bound("rot90", n), lambda: copy(np.rot90(m)))
    yield Row("fftshift", "f32", bound("fftshift", n), lambda: np.fft.fftshift(m))
    yield Row("trace", "f32", bound("trace", n), lambda: np.trace(m))
    yield Row("vecdot", "f32", bound("vecdot", n, n), lambda: np.vecdot(m, m))
    yield Row("tensordot", "f32", bound("tensordot", n, n), lambda: np.tensordot(m, m))
    yield Row("einsum", "ij,kj->ik", bound("einsum", "ij,kj->ik", n, n), lambda: m @ m.T)
    yield Row(
        "einsum",
        "ij,jk,kl->il",
        bound("einsum", "ij,jk,kl->il", n, n, n),
        lambda: np.einsum("ij,jk,kl->il", m, m, m, optimize=True),
        False,
    )
    small, few = m[:32, :32].copy(), dn.tensor(m[:32, :32].copy())
    yield Row("kron", "f32", bound("kron", few, few), lambda: np.kron(small, small))
    three, other = f[: 3 * (COUNT // 3)].reshape(-1, 3), g[: 3 * (COUNT // 3)].reshape(-1, 3)
    a, b = dn.tensor(three), dn.tensor(other)
    yield Row("cross", "f32", bound("cross", a, b), lambda: np.cross(three, other))


def matrix_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Functions of matrices, some with factors of arbitrary signs."""
    linalg = scipy_linalg
    functions = {
        "svdvals": np.linalg.svdvals,
        "slogdet": np.linalg.slogdet,
        "cond": np.linalg.cond,
        "norm": np.linalg.norm,
        "matrix_rank": np.linalg.matrix_rank,
        "eigvalsh": np.linalg.eigvalsh,
        "eig": np.linalg.eig,
        "eigvals": np.linalg.eigvals,
    }
    if linalg is not None:
        functions["hessenberg"] = linalg.hessenberg
        functions["schur"] = lambda a: linalg.schur(a, output="complex")
        functions.update(expm=linalg.expm, sqrtm=linalg.sqrtm, logm=linalg.logm)
    rng = np.random.default_rng(21)
    for side in (4, 32, 128):
        # Near the identity, all have real logarithms.
        a = rng.standard_normal((side, side)) / side + np.eye(side)
        b = dn.tensor(a)
        for name, theirs in functions.items():
            call = bound(f"linalg.{name}", b)
            yield Row(f"linalg.{name}", f"f64 {side}", call, lambda f=theirs, a=a: f(a), False)


def random_rows(x: Arrays, t: Tensors) -> Iterator[Row]:
    """Distributions, beside NumPy's generator. The numbers differ."""
    key = dn.random.key(3)
    rng = np.random.default_rng(3)
    shape = (COUNT,)
    double = {"dtype": "f64", "shape": shape}
    rows: list[tuple[str, tuple[object, ...], dict[str, object], Callable[[], object] | None]] = [
        ("exponential", (), double, lambda: rng.exponential(size=COUNT)),
        ("laplace", (), double, lambda: rng.laplace(size=COUNT)),
        ("logistic", (), double, lambda: rng.logistic(size=COUNT)),
        ("gumbel", (), double, lambda: rng.gumbel(size=COUNT)),
        ("gamma", (2.5,), double, lambda: rng.gamma(2.5, size=COUNT)),
        ("beta", (2.5, 1.5), double, lambda: rng.beta(2.5, 1.5, size=COUNT)),
        ("chisquare", (3.0,), double, lambda: rng.chisquare(3.0, size=COUNT)),
        ("t", (3.0,), double, lambda: rng.standard_t(3.0, size=COUNT)),
        ("poisson", (4.0,), {"shape": shape}, lambda: rng.poisson(4.0, size=COUNT)),
        ("binomial", (20, 0.3), {"shape": shape}, lambda: rng.binomial(20, 0.3, size=COUNT)),
        ("permutation", (COUNT,), {}, lambda: rng.permutation(COUNT)),
    ]
    for name, arguments, options, theirs in rows:
        call = bound(f"random.{name}", key, *arguments, **options)
        yield Row(f"random.{name}", "f64" if options is double else "", call, theirs, False)


FAMILIES = (
    elementwise_rows,
    special_rows,
    reduction_rows,
    order_rows,
    sequence_rows,
    moved_rows,
    matrix_rows,
    random_rows,
)
