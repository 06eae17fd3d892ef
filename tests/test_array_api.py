"""The array API standard: names, signatures, results and refusals are those of array-api-strict."""

from __future__ import annotations

import inspect
import itertools
import operator
from functools import partial
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import defn.array_api as xp
from defn.array_api import Array

MODULES = ("", "linalg", "fft")

# What the reference has for itself.
ITS_OWN = {
    "ArrayAPIStrictFlags",
    "Device",
    "__version__",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


REAL = ("int8", "uint16", "int64", "float32", "float64")
ANY = (*REAL, "bool", "complex64", "complex128")
FLOATS = ("float32", "float64")
INEXACT = (*FLOATS, "complex64", "complex128")


def names(module: str) -> list[str]:
    of = getattr(strict, module) if module else strict
    public = of.__all__ if hasattr(of, "__all__") else dir(of)
    dotted = [f"{module}.{name}" if module else name for name in public]
    return sorted(set(dotted) - ITS_OWN)


EVERY = [name for module in MODULES for name in names(module)]
FUNCTIONS = [name for name in EVERY if inspect.isfunction(operator.attrgetter(name)(strict))]


def of(namespace: Any, name: str) -> Any:
    return operator.attrgetter(name)(namespace)


def test_the_names_of_the_standard_are_there() -> None:
    for name in EVERY:
        of(xp, name)


def test_everything_listed_is_there() -> None:
    for module in (xp, xp.linalg, xp.fft):
        for name in module.__all__:
            assert hasattr(module, name)
        assert len(set(module.__all__)) == len(module.__all__)


def parameters(function: Any) -> list[tuple[str, Any, bool]]:
    """Names, kinds, and whether there is a default. Names of positional ones do not count."""
    found = inspect.signature(function).parameters.values()
    return [
        (
            "" if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) else p.name,
            p.kind,
            p.default is p.empty,
        )
        for p in found
        if p.kind is not p.VAR_KEYWORD
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_those_of_the_standard(name: str) -> None:
    ours, theirs = (parameters(of(namespace, name)) for namespace in (xp, strict))
    assert [(name, kind) for name, kind, _ in ours] == [(name, kind) for name, kind, _ in theirs]
    # A default where the reference has none takes nothing away.
    for (*_, required), (*_, required_there) in zip(ours, theirs, strict=True):
        assert required <= required_there


def draw(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("complex"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype.startswith("float"):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0 if dtype.startswith("u") else -5, 6, size=shape).astype(dtype)


def both(array: np.ndarray) -> tuple[Array, Any]:
    return xp.asarray(array), strict.asarray(array)


def standard_name(dtype: Any) -> str:
    return str(np.dtype(dtype.to_numpy()))


def check_equal(ours: Any, theirs: Any, rtol: float | None = None) -> None:
    """The same types, shapes, data types and values."""
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, tuple)
        assert len(ours) == len(theirs)
        assert getattr(ours, "_fields", None) == getattr(theirs, "_fields", None)
        for a, b in zip(ours, theirs, strict=True):
            check_equal(a, b, rtol)
        return
    if not hasattr(theirs, "__array_namespace__"):
        assert ours == theirs
        return
    assert isinstance(ours, Array)
    want = np.asarray(theirs)
    got = np.asarray(ours)
    assert (standard_name(ours.dtype), got.dtype, ours.shape) == (
        str(want.dtype),
        want.dtype,
        want.shape,
    )
    if want.dtype.kind in "fc":
        tolerance = rtol or (1e-5 if want.dtype in (np.float32, np.complex64) else 1e-12)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def outcome(call: Any) -> Any:
    """What a call returns, or `TypeError` where it refuses data types."""
    try:
        with np.errstate(all="ignore"):
            return call()
    except TypeError:
        return TypeError


def compare(ours: Any, theirs: Any, rtol: float | None = None) -> None:
    a, b = outcome(ours), outcome(theirs)
    if b is TypeError or a is TypeError:
        assert a is b
    else:
        check_equal(a, b, rtol)


ONE_OPERAND = [
    name
    for name in FUNCTIONS
    if name in xp.__all__
    and [(n, d) for n, _, d in parameters(of(strict, name))] == [("", True)]
    and name
    not in ("finfo", "iinfo", "nonzero", "matrix_transpose", "empty_like", "broadcast_shapes")
    and not name.startswith(("unique_", "meshgrid", "broadcast", "can_cast", "result_type"))
]
TWO_OPERANDS = [
    name
    for name in FUNCTIONS
    if name in xp.__all__
    and [(n, d) for n, _, d in parameters(of(strict, name))] == [("", True)] * 2
    and name not in ("matmul", "tile", "can_cast", "astype")
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE_OPERAND)
def test_functions_of_one_array(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape in ((), (4,), (2, 0), (3, 5)):
        x, y = both(draw(rng, dtype, shape))
        compare(partial(of(xp, name), x), partial(of(strict, name), y))


@pytest.mark.parametrize("name", TWO_OPERANDS)
def test_functions_of_two_arrays(name: str) -> None:
    rng = np.random.default_rng(4)
    for left, right in itertools.product(DTYPES, repeat=2):
        for shapes in (((3, 4), (4,)), ((2, 1), (1, 3))):
            a, b = (
                draw(rng, dtype, shape) for dtype, shape in zip((left, right), shapes, strict=True)
            )
            if b.dtype.kind in "iu":
                # No division by zero, no shift and no power by a negative number.
                b = np.abs(b) + 1
            if name == "pow" and b.dtype.kind == "f":
                a = np.abs(a)
            if name.endswith("shift") and b.dtype.kind in "fc":
                # The reference looks at the values first.
                b = np.abs(b)
            (x, s), (y, t) = both(a), both(b)
            compare(
                partial(of(xp, name), x, y),
                partial(of(strict, name), s, t),
                1e-4,
            )


NUMBERS = (True, 2, 2.5, 1 + 2j)
OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor"),
    *("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge"),
)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_an_array_and_a_number(name: str) -> None:
    rng = np.random.default_rng(5)
    fun = getattr(operator, name)
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        if name in ("lt", "le", "gt", "ge") and (dtype not in REAL or isinstance(number, complex)):
            # The reference orders bools and complex numbers here, and nowhere else.
            continue
        array = np.abs(draw(rng, dtype, (2, 3)))
        if array.dtype.kind != "b":
            array = (array + 1).astype(dtype)
        x, y = both(array.astype(dtype))
        compare(partial(fun, x, number), partial(fun, y, number), 1e-4)
        compare(partial(fun, number, x), partial(fun, number, y), 1e-4)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "iand", "ipow"])
def test_operators_in_place(name: str) -> None:
    rng = np.random.default_rng(6)
    fun = getattr(operator, name)
    for left, right in itertools.product(DTYPES, repeat=2):
        a, b = np.abs(draw(rng, left, (2, 3))), np.abs(draw(rng, right, (3,)))
        a, b = a.astype(left), b.astype(right)
        if b.dtype.kind in "iu":
            b += 1
        (x, s), (y, t) = both(a), both(b)
        compare(partial(fun, x, y), partial(fun, s, t), 1e-4)


# Calls with an array of shape (3, 4) or vectors of it, and the data types for which they are made.
CALLS: list[tuple[tuple[str, ...], Any]] = [
    # Arrangement.
    (ANY, lambda n, x: n.concat([x, x], axis=1)),
    (ANY, lambda n, x: n.concat([x, x[0, ...]], axis=None)),
    (ANY, lambda n, x: n.stack([x, x], axis=-1)),
    (ANY, lambda n, x: n.unstack(x, axis=1)),
    (ANY, lambda n, x: n.expand_dims(x, axis=(0, -1))),
    (ANY, lambda n, x: n.squeeze(n.expand_dims(x, axis=1), axis=1)),
    (ANY, lambda n, x: n.flip(x)),
    (ANY, lambda n, x: n.flip(x, axis=-1)),
    (ANY, lambda n, x: n.moveaxis(n.reshape(x, (3, 2, 2)), 0, -1)),
    (ANY, lambda n, x: n.moveaxis(n.reshape(x, (3, 2, 2)), (0, 1), (2, 0))),
    (ANY, lambda n, x: n.permute_dims(x, (1, 0))),
    (ANY, lambda n, x: n.reshape(x, (-1, 6))),
    (ANY, lambda n, x: n.roll(x, 5)),
    (ANY, lambda n, x: n.roll(x, (1, -2), axis=(0, 1))),
    (ANY, lambda n, x: n.roll(x, (1, 1), axis=(1, 1))),
    (ANY, lambda n, x: n.repeat(x, 2)),
    (ANY, lambda n, x: n.repeat(x, n.asarray([2, 0, 1]), axis=0)),
    (ANY, lambda n, x: n.tile(x, (2, 1, 3))),
    (ANY, lambda n, x: n.tile(x, (2,))),
    (ANY, lambda n, x: n.broadcast_to(x, (2, 3, 4))),
    (ANY, lambda n, x: n.broadcast_arrays(x, x[0, ...])),
    (ANY, lambda n, x: n.meshgrid(x[0, ...], x[:, 0])),
    (ANY, lambda n, x: n.meshgrid(x[0, ...], x[:, 0], indexing="ij")),
    (ANY, lambda n, x: n.tril(x, k=1)),
    (ANY, lambda n, x: n.triu(x, k=-1)),
    (ANY, lambda n, x: n.take(x, n.asarray([2, 0, 2]), axis=0)),
    (ANY, lambda n, x: n.take_along_axis(x, n.asarray([[0, 1], [3, 2], [1, 1]]))),
    (ANY, lambda n, x: n.matrix_transpose(x)),
    (ANY, lambda n, x: x.T),
    (ANY, lambda n, x: x.mT),
    # Reductions.
    (REAL, lambda n, x: n.sum(x, axis=0)),
    (INEXACT, lambda n, x: n.sum(x, axis=(0, 1), keepdims=True)),
    (REAL, lambda n, x: n.sum(x, dtype=n.float64)),
    (REAL, lambda n, x: n.prod(x, axis=-1)),
    (REAL, lambda n, x: n.max(x, axis=1, keepdims=True)),
    (REAL, lambda n, x: n.min(x)),
    (INEXACT, lambda n, x: n.mean(x, axis=1)),
    (FLOATS, lambda n, x: n.var(x, axis=0, correction=1.5)),
    (FLOATS, lambda n, x: n.std(x, keepdims=True)),
    (ANY, lambda n, x: n.all(x, axis=0)),
    (ANY, lambda n, x: n.any(x, keepdims=True)),
    (ANY, lambda n, x: n.count_nonzero(x, axis=1)),
    (REAL, lambda n, x: n.argmax(x, axis=0)),
    (REAL, lambda n, x: n.argmin(x, keepdims=True)),
    (REAL, lambda n, x: n.cumulative_sum(x, axis=1, include_initial=True)),
    (REAL, lambda n, x: n.cumulative_prod(x[0, ...], dtype=n.float32)),
    (REAL, lambda n, x: n.diff(x, axis=0, n=2)),
    (REAL, lambda n, x: n.diff(x, prepend=x[:, :1], append=x[:, :2])),
    # Order, search and sets.
    (REAL, lambda n, x: n.sort(x, axis=0, descending=True)),
    (REAL, lambda n, x: n.argsort(x, axis=1)),
    (REAL, lambda n, x: n.argsort(x, axis=1, descending=True)),
    (ANY, lambda n, x: n.nonzero(x)),
    (REAL, lambda n, x: n.searchsorted(n.sort(x[0, ...]), x[1, ...])),
    (REAL, lambda n, x: n.searchsorted(n.sort(x[0, ...]), x, side="right")),
    (REAL, lambda n, x: n.searchsorted(x[0, ...], x[1, ...], sorter=n.argsort(x[0, ...]))),
    (ANY, lambda n, x: n.where(x == x, x, x[0, ...])),
    (ANY, lambda n, x: n.unique_all(x)),
    (ANY, lambda n, x: n.unique_counts(x)),
    (ANY, lambda n, x: n.unique_inverse(x)),
    (ANY, lambda n, x: n.unique_values(n.concat([x, x]))),
    (("int8", "uint16", "int64"), lambda n, x: n.isin(x, x[1, ...])),
    (("int8", "uint16", "int64"), lambda n, x: n.isin(x[0, ...], n.concat([x, x]))),
    (REAL, lambda n, x: n.clip(x, 1, 3)),
    (REAL, lambda n, x: n.clip(x, max=x[0, ...])),
    # Products.
    (("int64", *INEXACT), lambda n, x: n.matmul(x, x.mT)),
    (("int64", *INEXACT), lambda n, x: x @ x[0, ...]),
    (("int64", *INEXACT), lambda n, x: n.tensordot(x, x, axes=([0], [0]))),
    (("int64", *INEXACT), lambda n, x: n.tensordot(x, x)),
    (("int64", *INEXACT), lambda n, x: n.vecdot(x, x[0, ...])),
    (("int64", *INEXACT), lambda n, x: n.vecdot(x, x, axis=-2)),
    # Linear algebra.
    (INEXACT, lambda n, x: n.linalg.cholesky(n.conj(x) @ x.mT + 4 * n.eye(3, dtype=x.dtype))),
    (INEXACT, lambda n, x: n.linalg.cross(x[:, :3], x[:, 1:])),
    (INEXACT, lambda n, x: n.linalg.cross(x, x[:, :1], axis=-2)),
    (INEXACT, lambda n, x: n.linalg.det(x[:, :3])),
    (ANY, lambda n, x: n.linalg.diagonal(x, offset=1)),
    (ANY, lambda n, x: n.linalg.diagonal(x, offset=-2)),
    (INEXACT, lambda n, x: n.linalg.eigvalsh(x[:, :3] + n.conj(x[:, :3].mT))),
    (INEXACT, lambda n, x: n.linalg.eigh(x[:, :3] + n.conj(x[:, :3].mT)).eigenvalues),
    # NumPy's are real if all of them are.
    (INEXACT, lambda n, x: n.sum(n.linalg.eigvals(x[:, :3])) + 0j),
    (INEXACT, lambda n, x: n.sum(n.linalg.eig(x[:, :3]).eigenvalues) + 0j),
    (INEXACT, lambda n, x: n.linalg.inv(x[:, :3])),
    *(
        (INEXACT, lambda n, x, kind=kind: n.linalg.matrix_norm(x, ord=kind, keepdims=True))
        for kind in ("fro", 1, -1, float("inf"), float("-inf"))
    ),
    *(
        (INEXACT, lambda n, x, kind=kind: n.linalg.matrix_norm(x, ord=kind))
        for kind in (2, -2, "nuc")
    ),
    (INEXACT, lambda n, x: n.linalg.matrix_power(x[:, :3], 3)),
    (INEXACT, lambda n, x: n.linalg.matrix_rank(x)),
    (INEXACT, lambda n, x: n.linalg.outer(x[0, ...], x[1, ...])),
    (INEXACT, lambda n, x: n.linalg.pinv(x)),
    (INEXACT, lambda n, x: n.linalg.pinv(n.concat([x, x]), rtol=1e-3)),
    (INEXACT, lambda n, x: n.linalg.slogdet(x[:, :3])),
    (INEXACT, lambda n, x: n.linalg.solve(x[:, :3], x)),
    (INEXACT, lambda n, x: n.linalg.solve(x[:, :3], x[:, 3])),
    (INEXACT, lambda n, x: n.linalg.svdvals(x)),
    (REAL, lambda n, x: n.linalg.trace(x, offset=1)),
    *(
        (INEXACT, lambda n, x, kind=kind: n.linalg.vector_norm(x, axis=1, ord=kind))
        for kind in (0, 1, 2, 3.5, float("inf"), float("-inf"))
    ),
    (INEXACT, lambda n, x: n.linalg.vector_norm(x, keepdims=True)),
    # Fourier transforms.
    *(
        (
            INEXACT,
            lambda n, x, f=f, norm=norm: getattr(n.fft, f)(x + 0j * x, n=5, axis=0, norm=norm),
        )
        for f in ("fft", "ifft")
        for norm in ("backward", "ortho", "forward")
    ),
    *(
        (
            ("complex64", "complex128"),
            lambda n, x, f=f, norm=norm: getattr(n.fft, f)(x, n=6, norm=norm),
        )
        for f in ("irfft", "hfft")
        for norm in ("backward", "ortho", "forward")
    ),
    *(
        (FLOATS, lambda n, x, f=f, norm=norm: getattr(n.fft, f)(x, norm=norm))
        for f in ("rfft", "ihfft", "rfftn")
        for norm in ("backward", "ortho", "forward")
    ),
    (("complex128",), lambda n, x: n.fft.fftn(x, s=(4, 5), axes=(0, 1))),
    (("complex128",), lambda n, x: n.fft.ifftn(x, axes=(0,), norm="ortho")),
    (("complex128",), lambda n, x: n.fft.irfftn(x)),
    (INEXACT, lambda n, x: n.fft.fftshift(x)),
    (INEXACT, lambda n, x: n.fft.ifftshift(x, axes=1)),
    (("float64",), lambda n, x: n.fft.fftfreq(7, d=0.5)),
    (("float32",), lambda n, x: n.fft.rfftfreq(8, dtype=n.float32)),
    # Indexing.
    (ANY, lambda n, x: x[1, 2]),
    (ANY, lambda n, x: x[None, ..., 1]),
    (ANY, lambda n, x: x[::-2, 1:3]),
    (ANY, lambda n, x: x[x == x[0, ...]]),
    (ANY, lambda n, x: x[n.asarray([2, 0]), 1]),
    (ANY, lambda n, x: x[0, ...][n.asarray([[2], [-1]])]),
    # Creation.
    *(
        (("float64",), call)
        for call in (
            lambda n, x: n.arange(5),
            lambda n, x: n.arange(5, 1, -2, dtype=n.int8),
            lambda n, x: n.arange(0.5, 3, 0.25),
            lambda n, x: n.linspace(0, 1, 7),
            lambda n, x: n.linspace(2.0, -1.0, 4, endpoint=False, dtype=n.float32),
            lambda n, x: n.linspace(3, 4, 1),
            lambda n, x: n.eye(3, 4, k=-1),
            lambda n, x: n.eye(3, 4, k=2**70),
            lambda n, x: n.tril(x, k=-9),
            lambda n, x: n.full((2, 3), 7),
            lambda n, x: n.full(3, True),
            lambda n, x: n.full_like(x, 2.5, dtype=n.float32),
            lambda n, x: n.zeros(3),
            lambda n, x: n.ones((2, 2), dtype=n.bool),
            lambda n, x: n.zeros_like(x),
            lambda n, x: n.ones_like(x, dtype=n.uint8),
            lambda n, x: n.asarray([[1, 2], [3, 4]]),
            lambda n, x: n.asarray(True),
            lambda n, x: n.asarray([1, 2.5]),
            lambda n, x: n.asarray(x, dtype=n.float32, copy=True),
            lambda n, x: n.astype(x, n.int32),
            lambda n, x: n.from_dlpack(np.asarray([1.0, 2.0])),
            lambda n, x: n.broadcast_shapes((3, 1), (1, 4), (2, 1, 1)),
            lambda n, x: n.isdtype(x.dtype, "real floating"),
            lambda n, x: n.isdtype(n.int8, ("bool", n.int8)),
            lambda n, x: n.can_cast(n.int8, n.int16),
            lambda n, x: n.can_cast(n.float64, n.float32),
        )
    ),
]


@pytest.mark.parametrize("index", range(len(CALLS)))
def test_calls_give_what_the_reference_gives(index: int) -> None:
    dtypes, call = CALLS[index]
    for dtype in dtypes:
        array = draw(np.random.default_rng(index), dtype, (3, 4))
        x, y = both(array)
        check_equal(
            call(xp, x), call(strict, y), 2e-4 if dtype in ("float32", "complex64") else 1e-9
        )


def test_isin_takes_all_data_types() -> None:
    rng = np.random.default_rng(7)
    for dtype in DTYPES:
        a, b = draw(rng, dtype, (3, 4)), draw(rng, dtype, (20,))
        b[:3] = a.reshape(-1)[:3]
        for among in (b, b[:5], b[:0]):
            for invert in (False, True):
                found = xp.isin(xp.asarray(a), xp.asarray(among), invert=invert)
                np.testing.assert_array_equal(np.asarray(found), np.isin(a, among, invert=invert))


def test_nan_is_its_own_kind() -> None:
    x = xp.asarray([np.nan, 1.0, np.nan, -0.0, 0.0])
    found = xp.unique_all(x)
    assert [int(n) for n in found.counts] == [2, 1, 1, 1]
    assert [int(n) for n in found.indices] == [3, 1, 0, 2]
    assert not bool(xp.any(xp.isin(x[:1], x)))
    ordered = np.array([1.0, 2.0, np.nan, np.nan])
    values = np.array([np.nan, 0.0, 3.0])
    for side in ("left", "right"):
        found = xp.searchsorted(xp.asarray(ordered), xp.asarray(values), side=side)
        np.testing.assert_array_equal(np.asarray(found), np.searchsorted(ordered, values, side))


def test_round_takes_the_even_of_two() -> None:
    values = np.array([-2.5, -1.5, -0.5, -0.2, 0.5, 1.5, 2.5, 1e30, np.inf, np.nan])
    plane = values.astype(np.complex128)
    plane.imag = values[::-1]
    for array in (values, values.astype(np.float32), plane):
        want = np.round(array)
        got = np.asarray(xp.round(xp.asarray(array)))
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(
        np.signbit(np.asarray(xp.round(xp.asarray(values)))), np.signbit(np.round(values))
    )


def test_division_by_infinity_is_the_standards() -> None:
    a, b = np.meshgrid([np.inf, -np.inf, 3.0, -3.0, 0.0], [np.inf, -np.inf, 2.0, -2.0])
    got = np.asarray(xp.asarray(a) // xp.asarray(b))
    with np.errstate(all="ignore"):
        want = np.floor(a / b)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
