"""The order of additions is the one that docs/order.md describes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import defn as dn

# Only the CPU's own backend adds in this order.
pytestmark = pytest.mark.usefixtures("no_options")

NEEDS_FMA = pytest.mark.skipif(
    dn.config()["machine_code"] is None, reason="the processor may lack fused multiply-add"
)

RNG = np.random.default_rng(11)
TILE, PIECE, RUN, PART, BLOCK = 1024, 65_536, 16, 512, 1024


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def factors(*shape: int) -> np.ndarray:
    """Numbers whose products f32 must round, and f64 adds to sums of f32 without rounding."""
    return (RNG.integers(-32767, 32768, shape) * 2.0 ** RNG.integers(-2, 3, shape)).astype(
        "float32"
    )


def pairwise(parts: np.ndarray) -> np.ndarray:
    while len(parts) > 1:
        pairs = parts[: len(parts) // 2 * 2]
        parts = np.concatenate([pairs[::2] + pairs[1::2], parts[len(pairs) :]])
    return parts[0]


def halved(lanes: list[np.ndarray]) -> np.ndarray:
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


def by_parts(row: np.ndarray, length: int, of_part: Callable[[np.ndarray], np.ndarray]) -> list:
    return [of_part(row[at : at + length]) for at in range(0, len(row), length)]


def sum_of_tile(tile: np.ndarray) -> np.ndarray:
    count = 16 if len(tile) < 256 else 256 // tile.itemsize
    # Without elements a lane is -0, which changes nothing.
    lanes = [-tile.dtype.type(0)] * count
    for at, x in enumerate(tile):
        lanes[at % count] += x
    return halved(lanes)


def sum_of_row(row: np.ndarray) -> np.ndarray:
    def piece(part: np.ndarray) -> np.ndarray:
        return pairwise(np.array(by_parts(part, TILE, sum_of_tile)))

    return pairwise(np.array(by_parts(row, PIECE, piece)))


def sum_of_columns(columns: np.ndarray) -> np.ndarray:
    def in_order(run: np.ndarray) -> np.ndarray:
        total = run[0]
        for row in run[1:]:
            total = total + row
        return total

    return pairwise(np.array(by_parts(columns, RUN, in_order)))


def equal(got: dn.Tensor, want: np.ndarray) -> bool:
    return got.to_numpy().tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("length", [1, 7, 40, 255, 256, 1000, 1024, 1100, 5000, 70_000])
def test_rows(dtype: str, length: int) -> None:
    x = numbers(2, length, dtype="float64").astype(dtype)
    if x.dtype.kind == "c":
        x = x + 1j * numbers(2, length, dtype=x.real.dtype.name)
    want = np.array([sum_of_row(row) for row in x])
    assert equal(dn.sum(dn.tensor(x), axes=1), want)
    assert equal(dn.jit(lambda x: dn.sum(x, axes=1))(dn.tensor(x)), want)


def test_a_lane_of_forty_elements() -> None:
    x = numbers(40)
    lanes = [(x[at] + x[at + 16]) + x[at + 32] for at in range(8)]
    lanes += [x[at] + x[at + 16] for at in range(8, 16)]
    assert equal(dn.sum(dn.tensor(x)), halved(lanes))


@pytest.mark.parametrize(("rows", "columns"), [(5, 8), (16, 100), (100, 9), (1000, 70), (9000, 12)])
def test_columns(rows: int, columns: int) -> None:
    x = numbers(2, rows, columns)
    want = np.array([sum_of_columns(x[0]), sum_of_columns(x[1])])
    assert equal(dn.sum(dn.tensor(x), axes=1), want)
    assert equal(dn.jit(lambda x: dn.sum(x, axes=1))(dn.tensor(x)), want)


def test_few_kept_elements_behind_are_rows() -> None:
    x = numbers(300, 7)
    want = np.array([sum_of_row(column) for column in x.T])
    assert equal(dn.sum(dn.tensor(x), axes=0), want)


def test_kept_axes_between_count_rows() -> None:
    x = numbers(20, 3, 30)
    want = np.array([sum_of_row(x[:, at].reshape(-1)) for at in range(3)])
    assert equal(dn.sum(dn.tensor(x), axes=[0, 2]), want)


def test_small_floats_accumulate_in_f32() -> None:
    x = numbers(3, 700).astype("float16")
    want = np.array([sum_of_row(row.astype("float32")) for row in x]).astype("float16")
    assert equal(dn.sum(dn.tensor(x), axes=1), want)


def accumulated(x: np.ndarray, function: np.ufunc) -> np.ndarray:
    """Along the first axis: in order, or blocks in order after the end of the one before."""
    if len(x) <= PIECE:
        return function.accumulate(x, 0)
    parts = [function.accumulate(x[at : at + BLOCK], 0) for at in range(0, len(x), BLOCK)]
    for before, part in itertools.pairwise(parts):
        part[:] = function(before[-1], part)
    return np.concatenate(parts)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 1000, 1025, PIECE, PIECE + 1, 70_000, 200_500])
@pytest.mark.parametrize("columns", [None, 2, 3, 9, 40])
def test_cumulative_sums_and_products(length: int, columns: int | None, reverse: bool) -> None:
    shape = (length,) if columns is None else (length, min(columns, 500_000 // length))
    for x in (numbers(*shape), numbers(*shape, dtype="float64")):
        close = 1 + x / 1000
        for array, call, ufunc in (
            (x, dn.cumulative_sum, np.add),
            (close, dn.cumulative_product, np.multiply),
        ):
            turned = np.flip(array, 0) if reverse else array
            want = accumulated(turned, ufunc)
            want = np.flip(want, 0) if reverse else want
            check_both(want, lambda x, call=call: call(x, reverse=reverse), array)


def test_cumulative_sums_of_small_floats_are_carried_on_in_f32() -> None:
    x = numbers(70_001).astype("float16")
    want = accumulated(x.astype("float32"), np.add).astype("float16")
    check_both(want, dn.cumulative_sum, x)


def alike(run: Callable[..., object], *operands: np.ndarray) -> None:
    """A compiled function gives the bits of single operations."""
    tensors = [dn.tensor(operand) for operand in operands]
    wants, gots = run(*tensors), dn.jit(run)(*tensors)
    for want, got in zip(wants, gots, strict=True):
        assert equal(got, want.to_numpy())


GROUPS = [
    ((3, 65_535), 1),
    ((2, 65_537), 1),
    ((2, 70_000), (0, 1)),
    ((300, 700), (0, 1)),
    ((3, 300, 700), (1, 2)),
    ((20, 3, 30), (0, 2)),
    ((300, 3, 500), (0, 2)),
    ((70_000, 3), 0),
    ((30, 5, 6, 7), (0, 2)),
    ((9, 5), 0),
    ((14, 2, 3), (0, 2)),
    ((9000, 12), 0),
    ((20_000, 70), 0),
    ((700, 6, 5, 40), (0, 2)),
    ((1500, 2000), 0),
]


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16", "int32"])
@pytest.mark.parametrize(("shape", "axes"), GROUPS)
def test_compiled_reductions(dtype: str, shape: tuple[int, ...], axes: int | tuple) -> None:
    x = (numbers(*shape) * 2).astype(dtype)
    if dtype == "complex64":
        x = x + (1j * numbers(*shape)).astype(dtype)
    row = x[(0,) * (x.ndim - 1)].copy()
    alike(lambda x: (dn.sum(x, axes=axes), dn.all(x, axes=axes)), x)
    alike(lambda x, row: (dn.sum(x * row, axes=axes),), x, row)
    alike(lambda x: (x - dn.sum(x, axes=axes, keep_axes=True),), x)
    alike(lambda x, row: (dn.sum(x + row, axes=axes) * 2, x + row), x, row)
    if dtype != "complex64":
        alike(lambda x, row: (dn.reduce_max(x - row, axes=axes), dn.sum(x, axes=axes)), x, row)
    if dtype != "int32":
        near = (x / np.abs(x).clip(0.5)).astype(dtype)
        alike(lambda x: (dn.product(x, axes=axes),), near)
        alike(
            lambda x: (dn.mean(dn.abs(x - dn.mean(x, axes=axes, keep_axes=True)), axes=axes),), near
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16", "int32"])
@pytest.mark.parametrize(
    "shape",
    [(64, 70), (200, 30), (255, 20), (257, 17), (1000, 9), (1025, 130), (2049, 8), (140_000, 9)],
)
def test_transposed_rows(dtype: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    x, row = (numbers(*shape) * 2).astype(dtype), (numbers(rows) * 2).astype(dtype)
    column = (numbers(columns, 1) * 2).astype(dtype)
    matrix = (numbers(columns, rows) * 2).astype(dtype)

    def sums(x, row, column, matrix):
        turned = dn.transpose(x)
        return (
            dn.dot(turned, row),
            dn.sum(turned * row + column, axes=1),
            dn.sum(dn.transpose(x * 2) * dn.transpose(x) * column, axes=1, keep_axes=True),
            dn.sum(turned * matrix, axes=1),
            dn.all(turned + row, axes=1),
            dn.sum(turned - row, axes=0),
        )

    alike(sums, x, row, column, matrix)
    # One at a time: a transposition that is read once need not be in memory.
    for at in range(len(sums(*map(dn.tensor, [x, row, column, matrix])))):
        alike(lambda *operands, at=at: (sums(*operands)[at],), x, row, column, matrix)
    alike(lambda x, row: (row @ dn.transpose(row * dn.transpose(x) + 1),), x, row)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
@pytest.mark.parametrize("tie_break", ["low", "high"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((7, 5), 1),
        ((9, 5), 0),
        ((40, 64), 1),
        ((3, 5000), 1),
        ((2, 200_000), 1),
        ((50, 40), 0),
        ((9000, 12), 0),
        ((70_000, 3), 0),
    ],
)
def test_positions(dtype: str, tie_break: str, shape: tuple[int, int], axis: int) -> None:
    x = RNG.integers(0, 100, shape).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 1] = x[1, 3 % shape[1]] = np.nan
    flipped = np.flip(x, axis) if tie_break == "high" else x
    for name in ["argmax", "argmin"]:
        want = getattr(np, name)(flipped, axis)
        want = want if tie_break == "low" else shape[axis] - 1 - want
        of = getattr(dn, name)
        run = dn.jit(lambda x, of=of: of(x, axis=axis, tie_break=tie_break))
        assert np.array_equal(run(dn.tensor(x)).to_numpy(), want)
        run = dn.jit(lambda x, of=of: of(x * 2 - x, axis=axis, tie_break=tie_break))
        assert np.array_equal(run(dn.tensor(x)).to_numpy(), want)


@pytest.mark.parametrize("compiler", ["cpu", "evaluator"])
@pytest.mark.parametrize(
    ("strides", "first"), [((2, 2), 0), ((1, 2), 1), ((2, 1), 0), ((1, 1), 0), ((2, 3), 1)]
)
def test_windows(compiler: str, strides: tuple[int, int], first: int) -> None:
    x = numbers(61, 199)
    views = np.lib.stride_tricks.sliding_window_view(x, (3, 2))[:: strides[0], :: strides[1]]

    def in_order(parts: np.ndarray, axis: int) -> np.ndarray:
        parts = np.moveaxis(parts, axis, 0)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    # An axis that is gone leaves the other in its place.
    want = in_order(in_order(views, 2 + first), 2)
    compiled = dn.jit(lambda x: dn.window_sum(x, (3, 2), strides=strides), compiler=compiler)
    assert equal(compiled(x), want)


def fused(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``total + a * b`` of f32, rounded once, since f64 holds the sum."""
    return (total.astype("float64") + a.astype("float64") * b.astype("float64")).astype("float32")


@NEEDS_FMA
@pytest.mark.parametrize("depth", [1, 7, 64, 512, 513, 700, 1100, 1600])
def test_products_of_matrices(depth: int) -> None:
    a, b = factors(5, depth), factors(depth, 9)
    parts = math.ceil(depth / PART)
    length = 8 * math.ceil(math.ceil(depth / parts) / 8)
    want = None
    for first in range(0, depth, length):
        total = np.zeros((5, 9), "float32")
        for at in range(first, min(first + length, depth)):
            total = fused(total, a[:, at, None], b[at])
        want = total if want is None else want + total
    assert equal(dn.dot(dn.tensor(a), dn.tensor(b)), want)
    assert equal(dn.jit(dn.dot)(dn.tensor(a), dn.tensor(b)), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", "int8"])
@pytest.mark.parametrize("length", [1, 31, 256, 1040, 3000, 66_000])
def test_products_of_rows_and_a_vector(dtype: str, length: int) -> None:
    a, b = (
        (numbers(*shape, dtype="float64") * 9).astype(dtype) for shape in ((3, length), (length,))
    )
    wide = np.float32 if dtype == "float16" else a.dtype
    products = a.astype(wide) * b.astype(wide)
    whole = a.dtype.kind == "i"
    want = np.array([row.sum(dtype=dtype) if whole else sum_of_row(row) for row in products])
    check_both(want.astype(dtype), dn.dot, a, b)


@pytest.mark.parametrize(("rows", "columns"), [(10, 9), (64, 8), (200, 30), (5000, 300)])
def test_products_of_columns_and_a_vector(rows: int, columns: int) -> None:
    a, b = numbers(rows, columns), numbers(rows)
    check_both(sum_of_columns(a * b[:, None]), lambda a, b: dn.dot(b, a), a, b)


def test_products_of_few_columns_and_a_vector_are_sums_of_rows() -> None:
    a, b = numbers(300, 7), numbers(300)
    want = np.array([sum_of_row(column * b) for column in a.T])
    check_both(want, lambda a, b: dn.dot(b, a), a, b)


def test_products_with_vectors_over_several_axes_are_added_as_the_matrix_lies() -> None:
    a, b = numbers(4, 30, 3, 40), numbers(4, 40, 30)
    products = a * b.transpose(0, 2, 1)[:, :, None]
    want = [[sum_of_row(x[:, at].reshape(-1)) for at in range(3)] for x in products]
    check_both(np.array(want), lambda a, b: dn.dot(a, [3, 1], [0], b, [1, 2], [0]), a, b)


def test_outer_products_are_products() -> None:
    a, b = numbers(5, 3), numbers(2, 4)
    want = a[:, :, None, None] * b
    check_both(want, lambda a, b: dn.dot(a, [], b, []), a, b)


def check_both(want: np.ndarray, run: Callable[..., dn.Tensor], *operands: np.ndarray) -> None:
    """The product has these bits, eager and compiled."""
    tensors = [dn.tensor(operand) for operand in operands]
    assert equal(run(*tensors), want)
    assert equal(dn.jit(run)(*tensors), want)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8_e4m3fn", "s8", "u8"])
@pytest.mark.parametrize(
    ("rows", "length", "columns"),
    [
        (2, 1024, 600),
        (8, 600, 700),
        (40, 300, 350),
        (700, 300, 40),
        (300, 300, 300),
        (3000, 400, 20),
    ],
)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_converted_operands(
    dtype: str, rows: int, length: int, columns: int, turned: tuple[bool, bool]
) -> None:
    """A large operand of a narrower dtype is converted while the product reads it."""
    shapes = [(rows, length), (length, columns)]
    operands = [
        RNG.integers(0, 100, shape[::-1] if is_turned else shape).astype("float32") / 8
        for shape, is_turned in zip(shapes, turned, strict=True)
    ]
    narrow = 0 if rows > columns else 1
    tensors = [dn.tensor(operand) for operand in operands]
    tensors[narrow] = dn.as_type(tensors[narrow], dtype)
    axes = [[0 if turned[0] else 1], [1 if turned[1] else 0]]

    def product(a, b):
        return dn.dot(dn.as_type(a, "f32"), axes[0], dn.as_type(b, "f32"), axes[1])

    want = product(*tensors).to_numpy()
    exact = [tensor.to_numpy().astype("float64") for tensor in tensors]
    exact = [x.T if is_turned else x for x, is_turned in zip(exact, turned, strict=True)]
    assert np.allclose(want, exact[0] @ exact[1], rtol=1e-5)
    assert equal(dn.jit(product)(*tensors), want)
    assert equal(dn.dot(tensors[0], axes[0], tensors[1], axes[1]), want)


@pytest.mark.parametrize(
    ("rows", "length", "columns"),
    [(2, 1000, 2), (2, 513, 3), (32, 32, 32), (7, 100, 5), (33, 31, 30)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_in_loops_add_as_others_do(
    rows: int, length: int, columns: int, dtype: str
) -> None:
    a, b = numbers(rows, length, dtype=dtype), numbers(length, columns, dtype=dtype)

    def again(a: dn.Expr, b: dn.Expr) -> dn.Expr:
        product = dn.dot(a, b)
        for _ in dn.range(2):
            product = dn.dot(a + 0.0 * product[0, 0], b)
        return product

    want = dn.jit(dn.dot, compiler="evaluator")(a, b)
    assert equal(dn.jit(again, compiler="cpu")(a, b), want)
