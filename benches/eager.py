"""Every eager operation on 2^20 elements, beside NumPy with a contiguous result.

Functions that are made of operations have rows of few elements, too.

A row is checked before it is timed. Our calls and NumPy's alternate, and the least of many runs
of each counts. Operations that NumPy lacks are timed alone, or beside SciPy if it has them.
Operations without a row are listed at the end. If both calls take less than five microseconds, no
element is moved: the row says `view`, and its times show only the overhead of a call, which
`calls.py` measures.

    python benches/eager.py [name ...]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

# OpenBLAS reads this when it is loaded. By default its threads spin after a call for so long that
# they slow down the next measurement.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

import functions
import numerics
import numpy as np
from rows import COUNT, SIDE, Row, bound

import defn as dn

try:
    from scipy import special
except ImportError:
    special = None

# Seconds for a row, and the least and greatest number of runs.
BUDGET, LEAST, MOST = 0.6, 3, 150
# Seconds of warming up in each turn: before that, the other library's threads may still be awake.
WARM = 0.0008
# A call below this number of milliseconds moves no elements.
VIEW = 0.005


def plain(x: object) -> object:
    """The result of a call as NumPy arrays."""
    if isinstance(x, dn.Tensor):
        return x.to_numpy()
    if isinstance(x, list | tuple):
        return [plain(item) for item in x]
    return x


def time_row(row: Row) -> tuple[float, float | None]:
    """Our milliseconds, and NumPy's."""
    ours, theirs = row.ours, row.theirs
    got = plain(ours())
    if theirs is not None and row.checked:
        want = theirs()
        pairs = zip(got, want, strict=True) if isinstance(got, list) else [(got, want)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-4, err_msg=row.name)
    best = [float("inf"), float("inf")]
    spent = 0.0
    for turn in range(MOST):
        for place, call in enumerate((ours, theirs)):
            if call is None:
                continue
            begin = time.perf_counter()
            while time.perf_counter() - begin < WARM:
                call()
            start = time.perf_counter()
            result = call()
            end = time.perf_counter()
            del result
            best[place] = min(best[place], end - start)
            spent += end - begin
        if spent > BUDGET and turn + 1 >= LEAST:
            break
    return 1e3 * best[0], 1e3 * best[1] if theirs is not None else None


def operands() -> dict[str, np.ndarray]:
    """The operands of the rows, by name."""
    rng = np.random.default_rng(20)
    uniform = rng.random(COUNT)
    return {
        "f32": uniform.astype(np.float32),
        "g32": (rng.random(COUNT) + 0.5).astype(np.float32),
        "f64": uniform,
        "g64": rng.random(COUNT) + 0.5,
        "i32": rng.integers(-1000, 1000, COUNT, dtype=np.int32),
        "j32": rng.integers(1, 20, COUNT, dtype=np.int32),
        "i64": rng.integers(-1000, 1000, COUNT),
        "u8": rng.integers(0, 255, COUNT, dtype=np.uint8),
        "v8": rng.integers(0, 8, COUNT, dtype=np.uint8),
        "bool": rng.integers(0, 2, COUNT, dtype=np.uint8),
        "c64": (uniform + 1j * rng.random(COUNT)).astype(np.complex64),
        "d64": (rng.random(COUNT) + 1j * uniform).astype(np.complex64),
        "row": rng.random(SIDE).astype(np.float32),
        "column": rng.random((SIDE, 1)).astype(np.float32),
        "places": rng.integers(0, COUNT, COUNT),
    }


def unary_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Functions of one operand."""
    names = {
        "acos": "arccos",
        "acosh": "arccosh",
        "asin": "arcsin",
        "asinh": "arcsinh",
        "atan": "arctan",
        "atanh": "arctanh",
        "negate": "negative",
        "is_nan": "isnan",
        "is_infinity": "isinf",
        "round": "rint",
        "conjugate": "conjugate",
        "phase": "angle",
        "real": "real",
        "imag": "imag",
    }
    floats = (
        "abs acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erf_inv erfc exp expm1 floor "
        "is_infinity is_nan log log10 log1p log2 negate round rsqrt sigmoid sign sin sinh sqrt tan "
        "tanh"
    ).split()
    scipy = {"erf": "erf", "erfc": "erfc", "erf_inv": "erfinv", "sigmoid": "expit"}
    for name in floats:
        for dtype in ("f32", "f64"):
            # The domain of acosh begins at 1.
            of = dtype.replace("f", "g") if name == "acosh" else dtype
            a, b = (x[of] + 1, t[of] + 1) if name == "acosh" else (x[of], t[of])
            theirs = getattr(np, names.get(name, name), None)
            if name in scipy:
                theirs = getattr(special, scipy[name]) if special else None
            if name == "rsqrt":
                theirs = lambda v: 1 / np.sqrt(v)  # noqa: E731
            yield Row(name, dtype, bound(name, b), theirs and (lambda f=theirs, a=a: f(a)))
    for name in "abs exp log sqrt sin tanh conjugate real imag phase".split():
        theirs = getattr(np, names.get(name, name))
        contiguous = name in ("real", "imag")
        call = (
            (lambda f=theirs: np.ascontiguousarray(f(x["c64"])))
            if contiguous
            else (lambda f=theirs: f(x["c64"]))
        )
        yield Row(name, "c64", bound(name, t["c64"]), call)
    for name, of, theirs in (
        ("abs", "i32", np.abs),
        ("negate", "i32", np.negative),
        ("sign", "i32", np.sign),
        ("bitwise_not", "i32", np.invert),
        ("population_count", "u8", np.bitwise_count),
        ("count_leading_zeros", "i32", None),
        ("logical_not", "u8", np.logical_not),
    ):
        yield Row(
            name,
            of,
            bound(name, t[of]),
            theirs and (lambda f=theirs, of=of: f(x[of])),
            name != "sign",
        )


def binary_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Functions of two or more operands."""
    names = {
        "max": "maximum",
        "min": "minimum",
        "atan2": "arctan2",
        "pow": "power",
        "remainder": "fmod",
        "left_shift": "left_shift",
    }
    table = {
        "add subtract multiply divide": "f32,g32 f64,g64 c64,d64",
        "add multiply": "i32,j32 u8,v8 i64,i64",
        "max min": "f32,g32 f64,g64 i32,j32",
        "pow atan2 remainder": "f32,g32 f64,g64",
        "remainder pow": "i32,j32",
        "equal not_equal greater greater_equal less less_equal": "f32,g32 i32,j32",
        "less": "f64,g64 u8,v8",
        "logical_and logical_or logical_xor": "u8,v8 f32,g32",
        "bitwise_and bitwise_or bitwise_xor": "i32,j32",
        "left_shift right_shift": "i32,j32",
    }
    for ops, pairs in table.items():
        for name in ops.split():
            theirs = getattr(np, names.get(name, name))
            for pair in pairs.split():
                a, b = pair.split(",")
                if name == "pow" and a == "i32":
                    a, b = "i32", "v8i"
                    x["v8i"], t["v8i"] = x["v8"].astype(np.int32), dn.as_type(t["v8"], "s32")
                call = lambda f=theirs, a=a, b=b: f(x[a], x[b])  # noqa: E731
                yield Row(name, a, bound(name, t[a], t[b]), call)
    i, j = x["i32"], x["j32"]
    yield Row("quotient", "i32", bound("quotient", t["i32"], t["j32"]), lambda: i // j, False)
    f, g = x["f32"], x["g32"]
    m, row, column = f.reshape(SIDE, SIDE), x["row"], x["column"]
    yield Row("add", "f32 + number", lambda: t["f32"] + 1.5, lambda: f + np.float32(1.5))
    yield Row("add", "f32 + row", bound("add", t["m32"], t["row"]), lambda: m + row)
    yield Row("add", "f32 + column", bound("add", t["m32"], t["column"]), lambda: m + column)
    yield Row("add", "f32 + i32", bound("add", t["f32"], t["i32"]), None)
    yield Row("clip", "f32", bound("clip", t["f32"], 0.2, 0.8), lambda: np.clip(f, 0.2, 0.8))
    yield Row("clip", "i32", bound("clip", t["i32"], -5, 5), lambda: np.clip(i, -5, 5))
    pred = x["bool"].astype(bool)
    yield Row(
        "select",
        "f32",
        bound("select", t["bool"], t["f32"], t["g32"]),
        lambda: np.where(pred, f, g),
    )
    yield Row("complex", "f32", bound("complex", t["f32"], t["g32"]), None)
    yield Row("all_close", "f32", bound("all_close", t["f32"], t["f32"]), lambda: np.allclose(f, f))


def create_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Functions that create or convert tensors."""
    numpy = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "s64": np.int64, "u8": np.uint8}
    for a, b in (
        ("f32", "f64"),
        ("f64", "f32"),
        ("f32", "s32"),
        ("i32", "f32"),
        ("i32", "s64"),
        ("i64", "f64"),
        ("u8", "f32"),
        ("i64", "s32"),
        ("f32", "u8"),
        ("f64", "s64"),
        ("i32", "u8"),
    ):
        yield Row(
            "as_type",
            f"{a} to {b}",
            bound("as_type", t[a], b),
            lambda a=a, b=b: x[a].astype(numpy[b]),
        )
    yield Row(
        "as_type", "f32 to f16", bound("as_type", t["f32"], "f16"), lambda: x["f32"].astype("f2")
    )
    half = dn.as_type(t["f32"], "f16")
    own = half.to_numpy()
    yield Row("as_type", "f16 to f32", bound("as_type", half, "f32"), lambda: own.astype("f4"))
    yield Row("as_type", "f32 to bf16", bound("as_type", t["f32"], "bf16"), None)
    yield Row("add", "f16", bound("add", half, half), lambda: own + own)
    yield Row(
        "bitcast",
        "f32 to s32",
        bound("bitcast", t["f32"], "s32"),
        lambda: x["f32"].view("i4").copy(),
    )
    yield Row("iota", "s32", bound("iota", (COUNT,)), lambda: np.arange(COUNT, dtype=np.int32))
    yield Row(
        "iota", "f32", bound("iota", (COUNT,), dtype="f32"), lambda: np.arange(COUNT, dtype="f4")
    )
    yield Row("eye", "s32", bound("eye", SIDE), lambda: np.eye(SIDE, dtype=np.int32))
    yield Row("fill", "f32", bound("fill", t["f32"], 2.5), lambda: np.full(COUNT, 2.5, "f4"))
    yield Row(
        "linspace",
        "f32",
        bound("linspace", 0.0, 1.0, n=COUNT),
        lambda: np.linspace(0, 1, COUNT, dtype="f4"),
    )
    data = x["f32"].tobytes()
    yield Row(
        "from_binary",
        "f32",
        bound("from_binary", data, "f32"),
        lambda: np.frombuffer(data, "f4").copy(),
    )
    m = x["f32"].reshape(SIDE, SIDE)
    yield Row("tri", "u8", bound("tri", SIDE, SIDE), lambda: np.tri(SIDE, SIDE, dtype=np.uint8))
    yield Row("tril", "f32", bound("tril", t["m32"]), lambda: np.tril(m))
    yield Row("triu", "f32", bound("triu", t["m32"]), lambda: np.triu(m))
    yield Row("make_diagonal", "f32", bound("make_diagonal", t["row"]), lambda: np.diag(x["row"]))
    yield Row(
        "take_diagonal", "f32", bound("take_diagonal", t["m32"]), lambda: np.diagonal(m).copy()
    )

    def put() -> np.ndarray:
        out = m.copy()
        np.fill_diagonal(out, x["row"])
        return out

    yield Row("put_diagonal", "f32", bound("put_diagonal", t["m32"], t["row"]), put)
    yield Row("tensor", "f32", lambda: dn.tensor(x["f32"]), lambda: x["f32"].copy())


def reduce_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Reductions and scans."""
    names = {"reduce_max": "max", "reduce_min": "min", "product": "prod", "variance": "var"}
    names["standard_deviation"] = "std"
    names.update(
        cumulative_sum="cumsum",
        cumulative_product="cumprod",
    )
    m = x["f32"].reshape(SIDE, SIDE)
    for (
        name
    ) in "sum product mean variance standard_deviation reduce_max reduce_min all any".split():
        theirs = getattr(np, names.get(name, name))
        yield Row(name, "f32", bound(name, t["f32"]), lambda f=theirs: f(x["f32"]))
        for axis in (0, 1):
            call = lambda f=theirs, axis=axis: f(m, axis=axis)  # noqa: E731
            yield Row(name, f"f32 axis {axis}", bound(name, t["m32"], axes=[axis]), call)
    for name in "sum reduce_max".split():
        theirs = getattr(np, names.get(name, name))
        for dtype in ("f64", "i32", "i64"):
            note = dtype
            call = lambda f=theirs, d=dtype: f(x[d])  # noqa: E731
            yield Row(name, note, bound(name, t[dtype]), call)
    for name in ("argmax", "argmin"):
        theirs = getattr(np, name)
        for dtype in ("f32", "i32"):
            yield Row(name, dtype, bound(name, t[dtype]), lambda f=theirs, d=dtype: f(x[d]))
        for axis in (0, 1):
            call = lambda f=theirs, axis=axis: f(m, axis=axis)  # noqa: E731
            yield Row(name, f"f32 axis {axis}", bound(name, t["m32"], axis=axis), call)
    w = x["g32"]
    yield Row(
        "weighted_mean",
        "f32",
        bound("weighted_mean", t["f32"], t["g32"]),
        lambda: np.average(x["f32"], weights=w),
    )
    yield Row("covariance", "f32", bound("covariance", t["m32"]), lambda: np.cov(m.T, ddof=0))
    yield Row("diff", "f32", bound("diff", t["f32"]), lambda: np.diff(x["f32"]))
    logsumexp = (lambda: special.logsumexp(x["f32"])) if special else None
    yield Row("logsumexp", "f32", bound("logsumexp", t["f32"]), logsumexp)
    yield Row("median", "f32", bound("median", t["f32"]), lambda: np.median(x["f32"]))
    yield Row("mode", "u8", bound("mode", t["u8"]), None)
    for name in ("cumulative_sum", "cumulative_product"):
        theirs = getattr(np, names[name])
        yield Row(
            name,
            "f32",
            bound(name, t["f32"]),
            lambda f=theirs: f(x["f32"]),
            name == "cumulative_sum",
        )
        yield Row(name, "f32 axis 1", bound(name, t["m32"], axis=1), lambda f=theirs: f(m, axis=1))
    for name, ufunc in (("cumulative_max", np.maximum), ("cumulative_min", np.minimum)):
        yield Row(name, "f32", bound(name, t["f32"]), lambda f=ufunc: f.accumulate(x["f32"]))
    for dtype in ("f32", "f64", "i32"):
        yield Row("sort", dtype, bound("sort", t[dtype]), lambda d=dtype: np.sort(x[d]))
    yield Row("sort", "f32 axis 1", bound("sort", t["m32"], axis=1), lambda: np.sort(m, axis=1))
    yield Row(
        "argsort",
        "f32",
        bound("argsort", t["f32"]),
        lambda: np.argsort(x["f32"], kind="stable"),
        False,
    )
    yield Row("top_k", "f32, 10", bound("top_k", t["f32"], k=10), None)


def shape_rows(x: dict[str, np.ndarray], t: dict[str, dn.Tensor]) -> Iterator[Row]:
    """Functions that move elements."""
    f, g = x["f32"], x["g32"]
    m, n = f.reshape(SIDE, SIDE), t["m32"]
    cube, tensor = f.reshape(64, 128, 128), dn.reshape(t["f32"], (64, 128, 128))
    copy = np.ascontiguousarray
    full = (SIDE, SIDE)
    yield Row("reshape", "f32", bound("reshape", t["f32"], full), lambda: f.reshape(full))
    yield Row("flatten", "f32", bound("flatten", n), lambda: m.reshape(-1))
    yield Row("squeeze", "f32", bound("squeeze", n), lambda: np.squeeze(m))
    yield Row("new_axis", "f32", bound("new_axis", n, 0), lambda: m[None])
    yield Row("rename", "f32", bound("rename", n, ["a", "b"]), None)
    yield Row("transpose", "f32", bound("transpose", n), lambda: copy(m.T))
    yield Row(
        "transpose", "u8", bound("transpose", t["m8"]), lambda: copy(x["u8"].reshape(SIDE, SIDE).T)
    )
    yield Row(
        "transpose",
        "f32 [2, 0, 1]",
        bound("transpose", tensor, axes=[2, 0, 1]),
        lambda: copy(cube.transpose(2, 0, 1)),
    )
    yield Row(
        "transpose",
        "f32 [1, 0, 2]",
        bound("transpose", tensor, axes=[1, 0, 2]),
        lambda: copy(cube.transpose(1, 0, 2)),
    )
    yield Row(
        "broadcast",
        "f32 row",
        bound("broadcast", t["row"], full),
        lambda: copy(np.broadcast_to(x["row"], full)),
    )
    yield Row(
        "broadcast",
        "f32 column",
        bound("broadcast", t["column"], full),
        lambda: copy(np.broadcast_to(x["column"], full)),
    )
    yield Row(
        "tile", "f32", bound("tile", t["row"], [SIDE, 1]), lambda: np.tile(x["row"], (SIDE, 1))
    )
    yield Row(
        "concatenate",
        "f32 axis 0",
        bound("concatenate", [t["f32"], t["g32"]]),
        lambda: np.concatenate([f, g]),
    )
    p, q = g.reshape(SIDE, SIDE), dn.reshape(t["g32"], full)
    yield Row(
        "concatenate",
        "f32 axis 1",
        bound("concatenate", [n, q], axis=1),
        lambda: np.concatenate([m, p], axis=1),
    )
    yield Row("stack", "f32", bound("stack", [t["f32"], t["g32"]]), lambda: np.stack([f, g]))
    yield Row(
        "stack",
        "f32 axis 1",
        bound("stack", [t["f32"], t["g32"]], axis=1),
        lambda: np.stack([f, g], axis=1),
    )
    yield Row(
        "split",
        "f32 axis 1",
        bound("split", n, SIDE // 2, axis=1),
        lambda: [copy(part) for part in np.split(m, 2, axis=1)],
    )
    yield Row(
        "slice", "f32", bound("slice", n, [1, 1], [SIDE - 2, SIDE - 2]), lambda: copy(m[1:-1, 1:-1])
    )
    yield Row(
        "slice",
        "f32 strided",
        bound("slice", n, [0, 0], [SIDE, SIDE], strides=[1, 2]),
        lambda: copy(m[:, ::2]),
    )
    yield Row(
        "slice_along_axis",
        "f32",
        bound("slice_along_axis", n, 1, SIDE - 2, axis=1),
        lambda: copy(m[:, 1:-1]),
    )

    def put() -> np.ndarray:
        out = m.copy()
        out[1:513, 1:513] = p[:512, :512]
        return out

    part = dn.slice(q, [0, 0], [512, 512])
    yield Row("put_slice", "f32", bound("put_slice", n, [1, 1], part), put)
    yield Row("pad", "f32", bound("pad", n, 0.0, [(1, 1, 0), (1, 1, 0)]), lambda: np.pad(m, 1))
    yield Row(
        "pad_outer",
        "f32 reflect",
        bound("pad_outer", n, "reflect", [(1, 1), (1, 1)]),
        lambda: np.pad(m, 1, mode="reflect"),
    )
    yield Row("reverse", "f32", bound("reverse", t["f32"]), lambda: copy(f[::-1]))
    yield Row("reverse", "f32 axis 0", bound("reverse", n, axes=[0]), lambda: copy(m[::-1]))
    places = x["places"]
    yield Row("take", "f32", bound("take", t["f32"], t["places"]), lambda: np.take(f, places))
    rows = places[:SIDE] % SIDE
    yield Row(
        "take", "f32 rows", bound("take", n, dn.tensor(rows)), lambda: np.take(m, rows, axis=0)
    )
    along = (places % SIDE).reshape(full)
    yield Row(
        "take_along_axis",
        "f32",
        bound("take_along_axis", n, dn.tensor(along), axis=1),
        lambda: np.take_along_axis(m, along, axis=1),
    )
    pairs = dn.reshape(t["places"], (COUNT, 1))
    yield Row("gather", "f32", bound("gather", t["f32"], pairs), lambda: f[places])

    def add_at() -> np.ndarray:
        out = f.copy()
        np.add.at(out, places, g)
        return out

    def put_at() -> np.ndarray:
        out = f.copy()
        out[places] = g
        return out

    yield Row("indexed_add", "f32", bound("indexed_add", t["f32"], pairs, t["g32"]), add_at)
    yield Row("indexed_put", "f32", bound("indexed_put", t["f32"], pairs, t["g32"]), put_at)


# Not timed: these return their operand, are only traced, or are not operations.
WITHOUT_ROWS = {"stop_grad", "template", "vectorize", "devectorize", "revectorize"} | {
    "broadcast_vectors",
    "reshape_vectors",
}


def main(wanted: list[str]) -> int:
    """Prints the table, the functions without a row, and the rows that are too slow."""
    x = operands()
    t = {name: dn.tensor(value) for name, value in x.items()}
    t["m32"] = dn.reshape(t["f32"], (SIDE, SIDE))
    t["m8"] = dn.reshape(t["u8"], (SIDE, SIDE))
    print(f"2^20 elements, ms; defn {dn.__version__}, NumPy {np.__version__}")
    print(f"{'operation':27}{'operands':16}{'defn':>9}{'NumPy':>9}   defn / NumPy")
    seen: set[str] = set()
    slower: list[str] = []
    families = (create_rows, unary_rows, binary_rows, shape_rows, reduce_rows)
    everything = families + numerics.FAMILIES + functions.FAMILIES
    for row in (row for family in everything for row in family(x, t)):
        seen.add(row.name)
        if wanted and row.name not in wanted:
            continue
        ours, theirs = time_row(row)
        cells = f"{ours:9.3f}" + (f"{theirs:9.3f}{ours / theirs:13.2f}" if theirs else "")
        # Our sort is stable; NumPy's is not.
        bound_of_row = 2.0 if row.name == "sort" else 1.1
        if theirs and max(ours, theirs) < VIEW:
            cells += "  view"
        elif theirs and ours > bound_of_row * theirs:
            slower.append(f"{row.name} {row.note}")
            cells += "  slower"
        print(f"{row.name:27}{row.note:16}{cells}", flush=True)
    if not wanted:
        ops = [name for module in dn.tensors.METHOD_MODULES for name in module.__all__]
        ops += [f"linalg.{name}" for name in dn.linalg.__all__]
        missing = sorted(set(ops) - seen - WITHOUT_ROWS)
        print(f"without a row: {', '.join(missing) or 'none'}")
    print(f"slower by more than a tenth: {', '.join(slower) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
