"""Attention beside JAX's: values and gradients, masks, groups of heads, and a cache of keys."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import defn as dn
from cases.dtypes import NUMPY

BATCH, QUERIES, KEYS, HEADS, SIZE, OF_VALUES = 2, 5, 7, 4, 3, 6
# Of the largest result or gradient.
NEAR = {"f64": 1e-13, "f32": 2e-6, "bf16": 2e-2}


def draw(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape)) * 1.7 + len(shape)).reshape(shape)


def operands(groups: int = 1, keys: int = KEYS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    heads = HEADS // groups
    return (
        2 * draw(BATCH, QUERIES, HEADS, SIZE),
        draw(BATCH, keys, heads, SIZE),
        draw(BATCH, keys, heads, OF_VALUES),
    )


def near(got: Any, want: Any, dtype: str) -> None:
    got, want = (np.asarray(x).astype(np.float64) for x in (got, want))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=NEAR[dtype] * max(1.0, abs(want).max()))


MASK = draw(BATCH, HEADS, QUERIES, KEYS) > -0.4
BIAS = draw(HEADS, QUERIES, KEYS)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.7},
    "mask": {"mask": MASK},
    "mask of keys": {"mask": MASK[:, :1, :1]},
    "bias": {"bias": BIAS},
    "mask and bias": {"mask": MASK, "bias": BIAS, "scale": 0.3},
    "causal": {"causal": True},
    "causal and mask": {"causal": True, "mask": MASK},
}


def theirs(q: Any, k: Any, v: Any, bias: Any = None, causal: bool = False, **options: Any) -> Any:
    """JAX's causal mask has the first query at the place of the first key, ours the last ones."""
    if causal:
        own = np.tri(q.shape[-3], k.shape[-3], k.shape[-3] - q.shape[-3], dtype=bool)
        options["mask"] = own & options.get("mask", True)
    if bias is not None:
        bias = jnp.broadcast_to(bias, (BATCH, HEADS, QUERIES, KEYS)).astype(q.dtype)
    if "mask" in options:
        options["mask"] = jnp.broadcast_to(options["mask"], (BATCH, HEADS, q.shape[1], k.shape[1]))
    # JAX takes values of the size of the keys.
    wide = jnp.pad(q, ((0, 0),) * 3 + ((0, OF_VALUES - SIZE),))
    of_keys = jnp.pad(k, ((0, 0),) * 3 + ((0, OF_VALUES - SIZE),))
    options.setdefault("scale", SIZE**-0.5)
    return jax.nn.dot_product_attention(wide, of_keys, v, bias=bias, **options)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", OPTIONS)
def test_values_in_f64_are_those_of_the_formula(name: str, groups: int) -> None:
    """JAX computes the weights in f32."""
    q, k, v = operands(groups)
    options = OPTIONS[name]
    scores = np.einsum("bqhd,bkhd->bhqk", q, k.repeat(groups, 2))
    scores = scores * options.get("scale", SIZE**-0.5) + options.get("bias", 0)
    seen = options.get("mask", np.full((QUERIES, KEYS), True))
    if options.get("causal"):
        seen = seen & np.tri(QUERIES, KEYS, KEYS - QUERIES, dtype=bool)
    weights = np.exp(scores) * seen
    weights /= weights.sum(-1, keepdims=True)
    want = np.einsum("bhqk,bkhd->bqhd", weights, v.repeat(groups, 2))
    near(dn.nn.attention(q, k, v, **options), want, "f64")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", OPTIONS)
def test_values_and_gradients_are_those_of_jax(name: str, groups: int, dtype: str) -> None:
    arrays = tuple(array.astype(NUMPY[dtype]) for array in operands(groups))
    options = OPTIONS[name]
    weights = draw(BATCH, QUERIES, HEADS, OF_VALUES).astype(NUMPY[dtype])
    wide = tuple(a.astype(np.float32) if dtype == "bf16" else a for a in arrays)
    want, pull = jax.vjp(lambda *qkv: theirs(*qkv, **options), *wide)
    slopes = pull(weights.astype(want.dtype))
    for run in (dn.nn.attention, dn.defn(dn.nn.attention)):
        got, own_pull = dn.vjp(lambda *qkv, run=run: run(*qkv, **options), *arrays)
        assert got.dtype == dtype
        near(got, want, dtype)
        for own, slope in zip(own_pull(weights), slopes, strict=True):
            near(own, slope, dtype)


def test_the_gradient_of_the_bias() -> None:
    q, k, v = (array.astype(np.float32) for array in operands())
    want = jax.grad(lambda bias: jnp.sum(theirs(q, k, v, bias) ** 2))(BIAS.astype(np.float32))
    got = dn.grad(lambda bias: dn.sum(dn.nn.attention(q, k, v, bias=bias) ** 2))(BIAS)
    near(got, want, "f32")


def test_both_modes_and_second_derivatives() -> None:
    q, k, v = operands(2)

    def loss(q: Any) -> Any:
        return dn.sum(dn.nn.attention(q, k, v, causal=True, mask=MASK) ** 2)

    step = draw(*q.shape)
    slope, along = dn.jvp(dn.grad(loss), (q,), (step,))
    near(dn.jvp(loss, (q,), (step,))[1], np.sum(np.asarray(slope) * step), "f64")
    ends = [np.asarray(dn.grad(loss)(q + sign * 1e-5 * step)) for sign in (1, -1)]
    np.testing.assert_allclose(np.asarray(along), (ends[0] - ends[1]) / 2e-5, atol=1e-7)


def test_a_query_without_a_key_has_zeros() -> None:
    mask = MASK.copy()
    mask[1, 2, 3] = False
    q, k, v = operands()
    got, pull = dn.vjp(lambda q, k, v: dn.nn.attention(q, k, v, mask=mask), q, k, v)
    assert (np.asarray(got)[1, 3, 2] == 0).all()
    slopes = [np.asarray(slope) for slope in pull(np.ones(got.shape))]
    assert all(np.isfinite(slope).all() for slope in slopes)
    assert (slopes[0][1, 3, 2] == 0).all()
    # More queries than keys: the first ones are before all keys.
    early = np.asarray(dn.nn.attention(q, k[:, :3], v[:, :3], causal=True))
    assert (early[:, :2] == 0).all()
    assert (early[:, 2:] != 0).all()
    assert (np.asarray(dn.nn.attention(q, k[:, :0], v[:, :0])) == 0).all()


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (array.astype(np.float32) for array in operands())
    got = np.asarray(dn.nn.attention(q * 1e15, k * 1e15, v, causal=True))
    near(got, theirs(q * 1e15, k * 1e15, v, causal=True), "f32")


def test_a_cache_of_keys_gives_what_the_whole_sequence_gives() -> None:
    q, k, v = operands(2, QUERIES)
    whole = np.asarray(dn.nn.attention(q, k, v, causal=True))
    for length in range(1, QUERIES + 1):
        last = dn.nn.attention(q[:, length - 1 : length], k[:, :length], v[:, :length], causal=True)
        near(last, whole[:, length - 1 : length], "f64")

    @dn.jit
    def decoded(q: dn.Tensor, k: dn.Tensor, v: dn.Tensor, place: dn.Tensor) -> dn.Tensor:
        """The cache has its whole length; what is not written yet is masked."""
        return dn.nn.attention(q, k, v, mask=dn.iota(QUERIES) <= place)

    for place in range(QUERIES):
        written = (np.arange(QUERIES) <= place)[:, None, None]
        cache = np.where(written, k, 1e30), np.where(written, v, 1e30)
        near(decoded(q[:, place : place + 1], *cache, place), whole[:, place : place + 1], "f64")


def test_lanes_and_axes_before_the_length() -> None:
    q, k, v = operands(2)
    want = dn.nn.attention(q, k, v, causal=True)
    near(dn.vmap(lambda *qkv: dn.nn.attention(*qkv, causal=True))(q, k, v), want, "f64")
    near(dn.nn.attention(q[0], k[0], v[0], causal=True), np.asarray(want)[0], "f64")
    more = dn.nn.attention(q[None], k[None], v[None], causal=True)
    near(more, np.asarray(want)[None], "f64")
    shared = dn.vmap(dn.nn.attention, in_axes=(0, None, None))(q, k[0], v[0])
    near(shared, np.stack([dn.nn.attention(one, k[0], v[0]) for one in q]), "f64")


def test_integers_and_names() -> None:
    q = dn.tensor(np.ones((2, 1, 3), np.int32), names=["time", "head", "part"])
    got = dn.nn.attention(q, q.rename([None] * 3), q.rename([None] * 3))
    assert got.dtype == "f32"
    assert got.names == ("time", "head", None)
    mixed = dn.nn.attention(
        *(dn.tensor(x, dtype=d) for x, d in zip(operands(), ("bf16", "f32", "f16"), strict=True))
    )
    assert mixed.dtype == "f32"
