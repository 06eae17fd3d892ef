"""Convolutions and pools: `jax.lax` is the oracle, with Flax's formulas of pools."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import defn as dn

NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f64": np.float64}
TOLERANCE = {"f32": 1e-5, "bf16": 0.02, "f64": 1e-12}


def distinct(dtype: str, *shape: int) -> np.ndarray:
    """Numbers of which no two are equal, so that every maximum is one element."""
    size = int(np.prod(shape))
    order = np.random.default_rng(1).permutation(size)
    return ((order - size / 2) / 32).reshape(shape).astype(NUMPY[dtype])


def compare(ours: Any, theirs: Any, operands: list[np.ndarray], dtype: str) -> None:
    """Values and gradients to all operands."""
    wide = np.float32 if dtype == "bf16" else NUMPY[dtype]
    with jax.enable_x64(True):
        want, pull = jax.vjp(theirs, *(jnp.asarray(a.astype(wide)) for a in operands))
        weights = np.round(np.cos(np.arange(want.size)) * 8).reshape(want.shape) / 8
        slopes = pull(jnp.asarray(weights.astype(wide)))
    got, back = dn.vjp(ours, *operands)
    for mine, their in zip(
        [got, *back(weights.astype(NUMPY[dtype]))], [want, *slopes], strict=True
    ):
        assert (mine.shape, mine.dtype) == (their.shape, dtype)
        exact = np.asarray(their)
        error = np.abs(mine.to_numpy().astype(np.float64) - exact).max()
        assert error <= TOLERANCE[dtype] * max(1.0, np.abs(exact).max())
    run: Any = dn.jit(ours)
    compiled = run(*operands).to_numpy().astype(np.float64)
    assert np.abs(compiled - got.to_numpy().astype(np.float64)).max() <= TOLERANCE[dtype] * 16


def numbers(rank: int) -> Any:
    letters = "DHW"[3 - rank :]
    return (f"N{letters}C", f"{letters}IO", f"N{letters}C")


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 7, 3), (3, 3, 4), {}),
    ((2, 8, 3), (3, 3, 4), {"strides": 2, "padding": "same"}),
    ((2, 7, 3), (4, 3, 4), {"strides": 3, "padding": "same", "dilation": 2}),
    ((2, 7, 4), (3, 2, 6), {"groups": 2, "padding": "same"}),
    ((2, 6, 5, 3), (3, 2, 3, 4), {"strides": (2, 1), "padding": "same"}),
    ((2, 6, 5, 4), (3, 3, 1, 8), {"groups": 4}),
    ((2, 6, 5, 3), (2, 2, 3, 2), {"padding": ((1, 0), (2, 1)), "dilation": (1, 2)}),
    ((1, 4, 3, 5, 2), (2, 2, 3, 2, 2), {"padding": "same", "strides": (1, 2, 2)}),
]


def per_axis(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(("shape", "kernel", "options"), CONVOLUTIONS, ids=str)
def test_convolutions_are_those_of_jax(
    shape: Any, kernel: Any, options: dict[str, Any], dtype: str
) -> None:
    rank = len(shape) - 2
    padding = options.get("padding", "valid")

    def theirs(x: Any, w: Any, b: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x,
            w,
            per_axis(options.get("strides", 1), rank),
            padding.upper() if isinstance(padding, str) else padding,
            rhs_dilation=per_axis(options.get("dilation", 1), rank),
            dimension_numbers=numbers(rank),
            feature_group_count=options.get("groups", 1),
        )
        return y + b

    operands = [distinct(dtype, *shape), distinct(dtype, *kernel), distinct(dtype, kernel[-1])]
    compare(lambda x, w, b: dn.nn.conv(x, w, b, **options), theirs, operands, dtype)


@pytest.mark.parametrize("dilation", [1, 2])
def test_causal_convolutions(dilation: int) -> None:
    x, kernel = distinct("f64", 2, 9, 3), distinct("f64", 3, 3, 4)

    def theirs(x: Any, w: Any) -> Any:
        x = jnp.pad(x, ((0, 0), (2 * dilation, 0), (0, 0)))
        dilated = (dilation,)
        return jax.lax.conv_general_dilated(
            x, w, (1,), "VALID", rhs_dilation=dilated, dimension_numbers=numbers(1)
        )

    ours = lambda x, w: dn.nn.conv(x, w, padding="causal", dilation=dilation)  # noqa: E731
    compare(ours, theirs, [x, kernel], "f64")
    changed = x.copy()
    changed[:, 5:] += 1
    same = ours(x, kernel).to_numpy() == ours(changed, kernel).to_numpy()
    assert same[:, :5].all()
    assert not same[:, 5:].any()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("padding", ["same", "valid", ((2, 1), (0, 3))])
@pytest.mark.parametrize(("strides", "dilation"), [(1, 1), (2, 1), (3, 2), ((4, 1), 1)])
def test_transposed_convolutions_are_those_of_jax(
    strides: Any, dilation: int, padding: Any, dtype: str
) -> None:
    def theirs(x: Any, w: Any, b: Any) -> Any:
        y = jax.lax.conv_transpose(
            x,
            w,
            per_axis(strides, 2),
            padding.upper() if isinstance(padding, str) else padding,
            rhs_dilation=(dilation, dilation),
            dimension_numbers=numbers(2),
        )
        return y + b

    operands = [distinct(dtype, 2, 4, 5, 3), distinct(dtype, 3, 2, 3, 4), distinct(dtype, 4)]
    options = {"strides": strides, "padding": padding, "dilation": dilation}
    compare(lambda x, w, b: dn.nn.conv_transpose(x, w, b, **options), theirs, operands, dtype)


POOLS: list[tuple[tuple[int, ...], Any, dict[str, Any]]] = [
    ((2, 7, 3), 2, {}),
    ((2, 7, 3), 3, {"strides": 2, "padding": "same"}),
    ((2, 6, 5, 3), (3, 2), {"padding": "same"}),
    ((2, 6, 5, 3), 3, {"strides": 1, "padding": "same"}),
    ((2, 6, 5, 3), (2, 3), {"strides": (1, 2), "padding": ((1, 1), (0, 2))}),
]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("kind", ["max", "avg", "avg without padding"])
@pytest.mark.parametrize(("shape", "window", "options"), POOLS, ids=str)
def test_pools_are_those_of_jax(
    shape: Any, window: Any, options: dict[str, Any], kind: str, dtype: str
) -> None:
    rank = len(shape) - 2
    sizes = per_axis(window, rank)
    steps = per_axis(options.get("strides", sizes), rank)
    padding = options.get("padding", "valid")
    padding = padding.upper() if isinstance(padding, str) else ((0, 0), *padding, (0, 0))

    def reduced(x: Any, initial: float, fold: Any) -> Any:
        return jax.lax.reduce_window(x, initial, fold, (1, *sizes, 1), (1, *steps, 1), padding)

    def theirs(x: Any) -> Any:
        if kind == "max":
            return reduced(x, -jnp.inf, jax.lax.max)
        sums = reduced(x, 0.0, jax.lax.add)
        if kind == "avg":
            return sums / np.prod(sizes)
        return sums / reduced(jnp.ones_like(x), 0.0, jax.lax.add)

    def ours(x: Any) -> Any:
        if kind == "max":
            return dn.nn.max_pool(x, window, **options)
        return dn.nn.avg_pool(x, window, count_include_pad=kind == "avg", **options)

    # Of few numbers bf16 holds all.
    x = distinct(dtype, *shape) if kind != "max" or dtype != "bf16" else distinct("f32", *shape)
    compare(ours, theirs, [x.astype(NUMPY[dtype])], dtype)


def test_pools_of_integers() -> None:
    x = np.arange(12, dtype=np.int32).reshape(1, 6, 2)
    assert dn.nn.max_pool(x, 3).dtype == "s32"
    assert dn.nn.max_pool(x, 3).to_list() == [[[4, 5], [10, 11]]]
    assert dn.nn.avg_pool(x, 3).dtype == "f32"
    empty = dn.nn.avg_pool(x, 2, padding=[(2, 0)], count_include_pad=False)
    assert empty.to_list()[0][0] == [0.0, 0.0]


def test_names_of_positions_and_channels() -> None:
    x = dn.tensor(distinct("f32", 2, 6, 3), names=["batch", "time", "channel"])
    kernel = distinct("f32", 2, 3, 4)
    assert dn.nn.conv(x, kernel).names == ("batch", "time", "channel")
    assert dn.nn.max_pool(x, 2).names == ("batch", "time", "channel")
    assert dn.nn.avg_pool(x, 2, count_include_pad=False).names == ("batch", "time", "channel")


def test_convolutions_of_examples_are_those_of_each() -> None:
    x, kernel, bias = distinct("f64", 3, 2, 6, 3), distinct("f64", 2, 3, 4), distinct("f64", 4)
    each = dn.vmap(lambda x: dn.nn.conv(x, kernel, bias, padding="same"))(x)
    for own, one in zip(each, x, strict=True):
        want = dn.nn.conv(one, kernel, bias, padding="same")
        np.testing.assert_allclose(own.to_numpy(), want.to_numpy(), rtol=1e-12)
