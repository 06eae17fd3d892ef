"""Generated operations, shapes and values on two backends, which must agree.

NumPy's backend is simple and slow; the CPU's kernels are optimized. Their results are compared in
every dtype, with axes of size 0 and 1, and with NaN, infinities and the dtype's limits among the
elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
from cases import all_cases
from cases.dtypes import (
    ALL,
    EPSILON,
    FLOATS,
    INTEGERS,
    LEAST,
    NUMPY,
    REAL,
    is_complex,
    is_integer,
    limits,
    wide,
)
from defn import _core
from support import HERE, XLA_ULPS, on_xla

ORACLE = dn.backends.NumPyBackend()
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SOLID = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
SEEDS = st.integers(0, 2**32 - 1)

EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 3e38, -7.25, 448.0, 65504.0]
# XLA's programs for the CPU flush f32 subnormals to zero, in operands and in results.
SUBNORMAL = 2.0**-126
EDGES.append(1e-30 if on_xla() else 1e-40)


def draw(seed: int, shape: tuple[int, ...], dtype: str, *, edges: bool = True) -> np.ndarray:
    """Elements of a dtype; some of them are edge values."""
    rng = np.random.default_rng(seed)
    if is_integer(dtype):
        low, high = limits(dtype)
        drawn = rng.integers(low, high, size=shape, dtype=wide(dtype), endpoint=True)
        near = [low, high, 0, 1, high // 2, max(low, -1)]
        chosen = np.array(near, dtype=wide(dtype))[rng.integers(0, len(near), size=shape)]
        mixed = np.where(rng.random(shape) < 0.5, drawn, chosen)
        return mixed.astype(NUMPY[dtype])
    drawn = rng.normal(size=shape) * 3.0
    if is_complex(dtype):
        return np.asarray(drawn + 1j * rng.normal(size=shape)).astype(NUMPY[dtype])
    if edges:
        chosen = np.array(EDGES)[rng.integers(0, len(EDGES), size=shape)]
        drawn = np.where(rng.random(shape) < 0.3, chosen, drawn)
    with np.errstate(all="ignore"):
        return np.asarray(drawn).astype(NUMPY[dtype])


def agree(
    function: Callable[..., Any], arrays: list[np.ndarray], ulps: float = 0, scale: float = 0.0
) -> None:
    """The function gives equal results, or raises the same kind of error, on both backends."""
    ulps *= XLA_ULPS if on_xla() else 1
    outcomes = []
    for backend in (HERE, ORACLE):
        try:
            outcomes.append(function(*[dn.tensor(array, backend=backend) for array in arrays]))
        except dn.Error as error:
            outcomes.append(error)
    got, want = outcomes
    # Devices clamp positions instead of raising.
    if on_xla() and isinstance(want, dn.BoundsError) and isinstance(got, dn.Tensor):
        return
    if isinstance(got, dn.Error) or isinstance(want, dn.Error):
        assert type(got) is type(want), outcomes
        return
    if isinstance(got, dn.Tensor):
        got, want = [got], [want]
    for one, other in zip(got, want, strict=True):
        assert (one.dtype, one.shape, one.names) == (other.dtype, other.shape, other.names)
        assert other.backend == ORACLE
        compare(one.to_numpy(), other.to_numpy(), str(one.dtype), ulps, scale)


def compare(got: np.ndarray, want: np.ndarray, dtype: str, ulps: float, scale: float) -> None:
    x, y = got.astype(wide(dtype)), want.astype(wide(dtype))
    with np.errstate(all="ignore"):
        same = (x == y) | ((x != x) & (y != y))
        if ulps and not is_integer(dtype):
            size = np.maximum(np.abs(y), scale)
            room = ulps * np.maximum(EPSILON[dtype] * size, LEAST[dtype])
            same |= np.abs(x - y) <= room
            if on_xla():
                same |= (x == 0) & (np.abs(y) < SUBNORMAL)
    assert same.all(), f"{dtype}: the CPU gives {x[~same]}, NumPy {y[~same]}"


TOLERANCES: dict[str, float | dict[str, float]] = {}
for case in all_cases():
    if not case.label or case.name not in TOLERANCES:
        TOLERANCES[case.name] = case.ulps


def tolerance(name: str, dtype: str, out: str) -> float:
    """Each of the two backends may be off by the tolerance of the operation's rows."""
    ulps = TOLERANCES.get(name, 0)
    if isinstance(ulps, dict):
        ulps = ulps.get(dtype if is_complex(dtype) else out, ulps["other"])
    return 2 * ulps


@pytest.mark.parametrize("name", _core.unary_names())
@given(SHAPES, st.sampled_from(ALL), SEEDS)
def test_unary(name: str, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    def run(x: dn.Tensor) -> dn.Tensor:
        return getattr(dn, name)(x)

    out = dtype if not is_integer(dtype) else "f32"
    agree(run, [draw(seed, shape, dtype)], tolerance(name, dtype, out))


@pytest.mark.parametrize("name", _core.binary_names())
@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    st.tuples(st.sampled_from(ALL), st.sampled_from(ALL)),
    SEEDS,
)
def test_binary(
    name: str, shapes: hnp.BroadcastableShapes, dtypes: tuple[str, str], seed: int
) -> None:
    arrays = [
        draw(seed + position, shape, dtype)
        for position, (shape, dtype) in enumerate(zip(shapes.input_shapes, dtypes, strict=True))
    ]
    # The tolerance is that of the complex operand.
    kind = next((dtype for dtype in dtypes if is_complex(dtype)), dtypes[0])
    ulps, scale = tolerance(name, kind, kind), 1.0 if is_complex(kind) else 0.0
    # The error of a complex logarithm grows with the exponent.
    agree(getattr(dn, name), arrays, 32 * ulps if name == "pow" else ulps, scale)


@given(SHAPES, st.sampled_from(ALL), st.sampled_from(ALL), SEEDS)
def test_casts(shape: tuple[int, ...], source: str, target: str, seed: int) -> None:
    agree(lambda x: dn.as_type(x, target), [draw(seed, shape, source)])


@given(SHAPES, st.tuples(*[st.sampled_from(ALL)] * 3), SEEDS)
def test_choices(shape: tuple[int, ...], dtypes: tuple[str, str, str], seed: int) -> None:
    arrays = [draw(seed + i, shape, dtype) for i, dtype in enumerate(dtypes)]
    agree(dn.select, arrays)
    if shape == ():
        agree(dn.clip, arrays)


@pytest.mark.parametrize("name", ["sum", "product", "all", "any", "reduce_max", "reduce_min"])
@given(SHAPES, st.sampled_from(ALL), SEEDS, st.data())
def test_reductions(
    name: str, shape: tuple[int, ...], dtype: str, seed: int, data: st.DataObject
) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else None
    keep = data.draw(st.booleans())
    is_sum = name in ("sum", "product")
    array = draw(seed, shape, dtype, edges=not is_sum)
    agree(
        lambda x: getattr(dn, name)(x, axes=axes, keep_axes=keep),
        [array],
        16 if is_sum else 0,
        scale=16.0 if name == "sum" else 0.0,
    )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(SHAPES, st.sampled_from(REAL), SEEDS, st.data())
def test_extremes(
    name: str, shape: tuple[int, ...], dtype: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    keep = data.draw(st.booleans())
    tie = data.draw(st.sampled_from(["low", "high"]))
    agree(
        lambda x: getattr(dn, name)(x, axis=axis, keep_axis=keep, tie_break=tie),
        [draw(seed, shape, dtype)],
    )


@pytest.mark.parametrize("name", ["sort", "argsort"])
@given(SOLID, st.sampled_from(REAL), SEEDS, st.data())
def test_order(
    name: str, shape: tuple[int, ...], dtype: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(range(len(shape))))
    direction = data.draw(st.sampled_from(["asc", "desc"]))
    agree(
        lambda x: getattr(dn, name)(x, axis=axis, direction=direction, stable=True),
        [draw(seed, shape, dtype)],
    )


@pytest.mark.parametrize(
    "name", ["cumulative_sum", "cumulative_product", "cumulative_max", "cumulative_min"]
)
@given(SOLID, st.sampled_from(REAL), SEEDS, st.data())
def test_scans(
    name: str, shape: tuple[int, ...], dtype: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(range(len(shape))))
    reverse = data.draw(st.booleans())
    is_sum = name in ("cumulative_sum", "cumulative_product")
    agree(
        lambda x: getattr(dn, name)(x, axis=axis, reverse=reverse),
        [draw(seed, shape, dtype, edges=not is_sum)],
        16 if is_sum else 0,
        scale=16.0 if is_sum else 0.0,
    )


@given(SHAPES, st.sampled_from(ALL), SEEDS, st.data())
def test_moves(shape: tuple[int, ...], dtype: str, seed: int, data: st.DataObject) -> None:
    array = draw(seed, shape, dtype)
    axes = range(len(shape))
    order = data.draw(st.permutations(axes))
    agree(lambda x: dn.transpose(x, axes=order), [array])
    backwards = data.draw(st.lists(st.sampled_from(axes), unique=True)) if shape else []
    agree(lambda x: dn.reverse(x, axes=backwards), [array])
    config = [data.draw(st.tuples(*[st.integers(-2, 3)] * 2, st.integers(0, 2))) for _ in axes]
    other = data.draw(st.sampled_from(ALL))
    agree(lambda x, value: dn.pad(x, value, config), [array, draw(seed + 1, (), other)])
    starts = [data.draw(st.integers(-2, size + 1)) for size in shape]
    lengths = [data.draw(st.integers(0, size)) for size in shape]
    strides = [data.draw(st.integers(1, 3)) for _ in axes]
    agree(lambda x: dn.slice(x, starts, lengths, strides=strides), [array])
    moving = [dn.tensor(start) for start in starts]
    agree(lambda x: dn.slice(x, moving, lengths, strides=strides), [array])
    agree(lambda x, part: dn.put_slice(x, moving, part), [array, draw(seed, tuple(lengths), other)])
    agree(lambda x, y: dn.concatenate([x, y], axis=0), [array, draw(seed + 2, shape, other)])
    agree(lambda x, y: dn.stack([x, y], axis=len(shape)), [array, draw(seed + 2, shape, other)])


@given(SOLID, st.sampled_from(ALL), st.sampled_from(INTEGERS[1:6]), SEEDS, st.data())
def test_positions(
    shape: tuple[int, ...], dtype: str, kind: str, seed: int, data: st.DataObject
) -> None:
    axes = sorted(data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1)))
    count = data.draw(st.integers(0, 3))
    rng = np.random.default_rng(seed)
    sizes = [shape[axis] for axis in axes]
    # Some positions are out of range: both backends must refuse them.
    places = rng.integers(0, np.array(sizes) + (rng.random() < 0.2), size=(count, len(axes)))
    indices = places.astype(NUMPY[kind])
    array = draw(seed, shape, dtype, edges=False)
    rest = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    updates = draw(seed + 1, (count, *rest), data.draw(st.sampled_from(ALL)), edges=False)
    agree(lambda x, at: dn.gather(x, at, axes=axes), [array, indices])
    agree(lambda x, at, new: dn.indexed_put(x, at, new, axes=axes), [array, indices, updates])
    agree(
        lambda x, at, new: dn.indexed_add(x, at, new, axes=axes), [array, indices, updates], 4, 8.0
    )
    axis = axes[0]
    agree(lambda x, at: dn.take(x, at, axis=axis), [array, indices[:, 0]])


@st.composite
def windows(draw_: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    shape = draw_(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    rank = len(shape)
    window = tuple(draw_(st.integers(1, 3)) for _ in range(rank))
    options = {
        "strides": [draw_(st.integers(1, 3)) for _ in range(rank)],
        "padding": [draw_(st.tuples(st.integers(-1, 2), st.integers(-1, 2))) for _ in range(rank)],
        "window_dilations": [draw_(st.integers(1, 2)) for _ in range(rank)],
    }
    return shape, window, options


@pytest.mark.parametrize(
    "name", ["window_sum", "window_product", "window_max", "window_min", "window_mean"]
)
@given(windows(), st.sampled_from(REAL), SEEDS)
def test_windows(
    name: str,
    drawn: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
    dtype: str,
    seed: int,
) -> None:
    shape, window, options = drawn
    is_exact = name in ("window_max", "window_min")
    array = draw(seed, shape, dtype, edges=is_exact)
    # The terms of a mean may cancel, and integers are large floats: scale by the largest.
    largest = np.abs(array.astype(np.float64)).max(initial=16.0)
    agree(
        lambda x: getattr(dn, name)(x, window, **options),
        [array],
        0 if is_exact else 16,
        scale=0.0 if is_exact else float(largest),
    )


@pytest.mark.parametrize("name", ["window_scatter_max", "window_scatter_min"])
@given(windows(), st.sampled_from(REAL), SEEDS)
def test_scattered_windows(
    name: str,
    drawn: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
    dtype: str,
    seed: int,
) -> None:
    shape, window, options = drawn
    del options["window_dilations"]
    array = draw(seed, shape, dtype, edges=False)
    try:
        pooled = dn.window_sum(dn.tensor(array), window, **options).shape
    except dn.Error:
        return
    source, init = (
        draw(seed + 1, pooled, dtype, edges=False),
        draw(seed + 2, (), dtype, edges=False),
    )
    agree(
        lambda x, source, init: getattr(dn, name)(x, source, init, window, **options),
        [array, source, init],
        16,
        16.0,
    )


@given(
    st.integers(1, 2),
    st.sampled_from([(1, 1), (2, 1), (1, 2)]),
    st.sampled_from([*FLOATS, "s8", "u32", "c64"]),
    SEEDS,
    st.data(),
)
def test_convolutions(
    spatial: int, groups: tuple[int, int], dtype: str, seed: int, data: st.DataObject
) -> None:
    def size(least: int, most: int) -> int:
        return data.draw(st.integers(least, most))

    features, batches = groups
    channels, outs = size(1, 2), size(1, 2)
    x = (batches * size(1, 2), channels * features, *(size(3, 6) for _ in range(spatial)))
    kernel = (outs * features * batches, channels, *(size(1, 3) for _ in range(spatial)))
    options = {
        "strides": [size(1, 2) for _ in range(spatial)],
        "padding": [(size(0, 2), size(-1, 2)) for _ in range(spatial)],
        "input_dilation": [size(1, 2) for _ in range(spatial)],
        "kernel_dilation": [size(1, 2) for _ in range(spatial)],
        "feature_group_size": features,
        "batch_group_size": batches,
    }
    arrays = [draw(seed, x, dtype, edges=False), draw(seed + 1, kernel, dtype, edges=False)]
    if is_integer(dtype):
        arrays = [(array.astype(wide(dtype)) % 8).astype(array.dtype) for array in arrays]
    agree(lambda x, kernel: dn.conv(x, kernel, **options), arrays, 16, 64.0)


@given(st.integers(0, 2), st.sampled_from(ALL), SEEDS, st.data())
def test_products(batch: int, dtype: str, seed: int, data: st.DataObject) -> None:
    def sizes(count: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(0, 3)) for _ in range(count))

    lead, shared = sizes(batch), sizes(data.draw(st.integers(0, 2)))
    free_a, free_b = sizes(data.draw(st.integers(0, 2))), sizes(data.draw(st.integers(0, 2)))
    a, b = (*lead, *free_a, *shared), (*lead, *shared, *free_b)
    batches = list(range(batch))
    contract_a = list(range(batch + len(free_a), len(a)))
    contract_b = list(range(batch, batch + len(shared)))
    arrays = [draw(seed, a, dtype, edges=False), draw(seed + 1, b, dtype, edges=False)]
    agree(
        lambda x, y: dn.dot(x, contract_a, batches, y, contract_b, batches), arrays, 16, scale=32.0
    )


@pytest.mark.parametrize("name", ["fft", "ifft"])
@given(SOLID, st.sampled_from(ALL), SEEDS, st.data())
def test_transforms(
    name: str, shape: tuple[int, ...], dtype: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(range(len(shape))))
    length = data.draw(st.sampled_from([None, "power_of_two", 1, 3, 6]))
    array = draw(seed, shape, dtype, edges=False)
    if is_integer(dtype):
        # In a type that has an 8: NumPy may take it as one of two bits, which is 0.
        array = (array.astype(wide(dtype)) % 8).astype(array.dtype)
    agree(lambda x: getattr(dn, name)(x, axis=axis, length=length), [array], 16, scale=64.0)
