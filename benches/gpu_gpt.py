"""The section of `gpu_check.py` that trains GPT-2, beside JAX on the same device."""

from __future__ import annotations

import gc
import time

import numpy as np
from gpu_found import Found, Place
from report import text
from timing import finish, leaves, turns

import defn as dn


def gpt(place: Place) -> Found:
    """Training steps of GPT-2 in both libraries, from the same parameters, and its attention."""
    # JAX reads variables when it is imported, which only sections beside JAX should do.
    import gpt as model
    import jax
    import jax.numpy as jnp

    found = Found()
    size = model.GPT2 if place.is_gpu else model.TINY_GPT
    tree = jax.tree_util.tree_map
    arrays = model.arguments(size)
    count = sum(array.size for array in arrays[0].values())
    found.say(
        f"{count / 1e6:.1f} million parameters in f32, products in bf16, Adam, "
        f"{size.batch} x {size.length} tokens; JAX {jax.__version__}."
    )
    mine = dn.pjrt.jit(model.our_step(size), donate=(0, 1, 2), client=place.client)
    other = jax.jit(model.their_step(size), donate_argnums=(0, 1, 2))
    rows = []
    for name, step, make in (
        ("defn", mine, place.tensor),
        ("JAX", other, jnp.asarray),
    ):
        *state, batch = tree(make, arrays)
        jax.block_until_ready(state)
        start = time.perf_counter()
        losses, taken = [], []
        for _ in range(20):
            *state, loss = step(*state, batch)
            losses.append(float(loss))
            taken.append(time.perf_counter() - start)
            start = time.perf_counter()
        rows.append((name, losses, taken))
        del state, batch
        gc.collect()
    (_, ours, mine_taken), (_, theirs, other_taken) = rows
    apart = [abs(one - two) / two for one, two in zip(ours, theirs, strict=True)]
    found.require("the first losses are equal", apart[0] <= 1e-3, f"they differ by {apart[0]:.3%}")
    # Adam's first steps depend on the signs of gradients, and so on how products are rounded.
    worst = max(apart)
    found.require("20 losses are equal within 5%", worst <= 0.05, f"they differ by {worst:.2%}")
    found.require("the loss falls", ours[-1] < ours[0], f"{ours[0]:.3f} to {ours[-1]:.3f}")
    cells = []
    for name, _, taken in rows:
        least = min(taken[1:])
        rate, flops = size.tokens / least, size.flops / least
        cells.append([name, text(taken[0]), text(least), f"{rate:,.0f}", f"{flops / 1e12:.3g}"])
    found.table(["library", "first step", "step", "tokens / s", "TFLOP/s in products"], cells)
    found.say(f"- JAX / defn: {min(other_taken[1:]) / min(mine_taken[1:]):.2f}")
    shape = (size.batch, size.heads, size.length, size.width // size.heads)
    drawn = [np.random.default_rng(at).standard_normal(shape).astype(np.float32) for at in range(3)]
    mine_qkv = [dn.as_type(place.tensor(array), "bf16") for array in drawn]
    other_qkv = [jnp.asarray(array, jnp.bfloat16) for array in drawn]

    def our_gradient(q, k, v):
        return dn.grad(lambda x: dn.sum(dn.as_type(model.our_attention(*x), "f32")))((q, k, v))

    def their_gradient(q, k, v):
        total = lambda x: jnp.sum(model.their_attention(*x).astype(jnp.float32))  # noqa: E731
        return jax.grad(total)((q, k, v))

    cells = []
    for name, one, two in (
        ("attention", model.our_attention, model.their_attention),
        ("its gradient", our_gradient, their_gradient),
    ):
        one, two = dn.pjrt.jit(one, client=place.client), jax.jit(two)
        found.compare(name, leaves(one(*mine_qkv)), leaves(two(*other_qkv)), 0.02)
        taken = turns(
            [
                lambda one=one: finish(one(*mine_qkv)),
                lambda two=two: jax.block_until_ready(two(*other_qkv)),
            ]
        )
        least = [min(times) for times in taken]
        cells.append([name, *map(text, least), f"{least[1] / least[0]:.2f}"])
    found.table([f"bf16, {' x '.join(map(str, shape))}", "defn", "JAX", "JAX / defn"], cells)
    return found
