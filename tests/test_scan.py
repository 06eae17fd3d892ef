"""`scan` from the last item, and without items: values, derivatives and `vmap` against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import defn as dn

RNG = np.random.default_rng(11)
START, ITEMS = RNG.normal(size=2), RNG.normal(size=(5, 2))


def body(state: Any, item: Any) -> tuple[Any, Any]:
    after = dn.sin(state) * 0.5 + item * state
    return after, {"before": state, "product": after * item}


def loop(init: Any, items: Any, *, reverse: bool) -> tuple[Any, dict[str, Any]]:
    """The same by Python's loop; each output stands where its item does."""
    state, outs = init, [{}] * len(items)
    for position in reversed(range(len(items))) if reverse else range(len(items)):
        state, outs[position] = body(state, items[position])
    return state, {name: dn.stack([out[name] for out in outs]) for name in outs[0]}


def weighted(last: Any, outs: dict[str, Any]) -> Any:
    weights = dn.tensor(np.arange(1.0, 11.0).reshape(5, 2))
    return dn.sum(last) + dn.sum(outs["before"] * weights) + dn.sum(dn.sin(outs["product"]))


def close(got: Any, want: Any) -> None:
    for ours, other in zip(dn.tree.leaves(got), dn.tree.leaves(want), strict=True):
        assert ours.shape == other.shape
        np.testing.assert_allclose(ours.to_numpy(), other.to_numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("apply", [lambda f: f, dn.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_derivatives(apply: Any, reverse: bool) -> None:
    init, items = dn.tensor(START), dn.tensor(ITEMS)
    scanned = apply(lambda init, items: dn.scan(init, items, body, reverse=reverse))
    close(scanned(init, items), loop(init, items, reverse=reverse))

    ours = lambda init, items: weighted(*dn.scan(init, items, body, reverse=reverse))  # noqa: E731
    other = lambda init, items: weighted(*loop(init, items, reverse=reverse))  # noqa: E731
    close(
        apply(dn.grad(ours, argnums=(0, 1)))(init, items),
        dn.grad(other, argnums=(0, 1))(init, items),
    )
    tangents = (np.array([1.0, -2.0]), RNG.normal(size=(5, 2)))
    close(dn.jvp(ours, (init, items), tangents), dn.jvp(other, (init, items), tangents))


@pytest.mark.parametrize("reverse", [False, True])
def test_vmap(reverse: bool) -> None:
    inits, items = RNG.normal(size=(3, 2)), RNG.normal(size=(5, 3, 2))
    got = dn.vmap(lambda s, x: dn.scan(s, x, body, reverse=reverse), in_axes=(0, 1))(inits, items)
    each = [
        loop(dn.tensor(s), dn.tensor(items[:, at]), reverse=reverse) for at, s in enumerate(inits)
    ]
    close(got, dn.tree.map(lambda *parts: dn.stack(parts), *each))
    # A state that is the same for all, and gains the axis in the body.
    ones = dn.tensor(np.ones(2))
    got = dn.vmap(lambda x: dn.scan(ones, x, body, reverse=reverse), in_axes=1)(items)
    each = [loop(ones, dn.tensor(items[:, at]), reverse=reverse) for at in range(3)]
    close(got, dn.tree.map(lambda *parts: dn.stack(parts), *each))


def test_a_range_in_reverse() -> None:
    last, items = dn.scan(0, range(3, 11, 3), lambda s, i: (s * 10 + i, i), reverse=True)
    assert (int(last), items.to_list()) == (963, [3, 6, 9])
    _, partial = dn.scan(0, range(4), lambda s, i: (s + i, s + i), reverse=True)
    assert partial.to_list() == [6, 6, 5, 3]


def test_as_many_times_as_length_says() -> None:
    seen: list[Any] = []

    def step(state: Any, item: Any) -> tuple[Any, Any]:
        seen.append(item)
        return state * 2, state

    last, outs = dn.scan(1, None, step, length=4)
    assert (int(last), outs.to_list(), set(seen)) == (16, [1, 2, 4, 8], {None})
    assert dn.scan(1, None, step, length=4, reverse=True)[1].to_list() == [8, 4, 2, 1]
    last, outs = dn.scan(dn.f32(3.0), None, step, length=0)
    assert (float(last), outs.shape, outs.dtype) == (3.0, (0,), "f32")
    # A length that says what the items say.
    assert int(dn.scan(0, dn.tensor([1, 2]), lambda s, x: (s + x, s), length=2)[0]) == 3
    assert dn.scan(0, {"none": ()}, lambda s, x: (s + 1, s), length=2)[1].to_list() == [0, 1]
    slope = dn.grad(lambda x: dn.scan(x, None, lambda s, _: (s * x, s), length=3)[0])(2.0)
    assert float(slope) == 4 * 2.0**3


def test_is_what_jax_gives() -> None:
    import jax

    jnp = jax.numpy
    jax.config.update("jax_enable_x64", True)

    def other(state: Any, item: Any) -> tuple[Any, Any]:
        after = jnp.sin(state) * 0.5 + item * state
        return after, {"before": state, "product": after * item}

    want = jax.lax.scan(other, jnp.asarray(START), jnp.asarray(ITEMS), reverse=True)
    got = dn.scan(START, ITEMS, body, reverse=True)
    for ours, theirs in zip(dn.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(ours.to_numpy(), np.asarray(theirs), rtol=1e-12)


@pytest.mark.parametrize("over", [None, range(3), dn.iota((3,))], ids=["none", "range", "tensor"])
def test_progress(over: Any) -> None:
    seen: list[tuple[int, int]] = []
    tell = lambda done, total: seen.append((done, total))  # noqa: E731
    dn.scan(0, over, lambda s, _: (s + 1, s), reverse=True, length=3, progress=tell)
    assert seen == [(1, 3), (2, 3), (3, 3)]


WRONG = {
    "no length": (lambda s: dn.scan(s, None, body), "without them give length="),
    "another length": (
        lambda s: dn.scan(s, dn.iota((3,)), body, length=4),
        "length is 4, it must be 3, the number of items, or None",
    ),
    "a negative length": (lambda s: dn.scan(s, None, body, length=-1), "length is -1, it must"),
    "a length that is no int": (lambda s: dn.scan(s, None, body, length=2.5), "length is 2.5"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("progress", [None, lambda done, total: None], ids=["plain", "progress"])
def test_wrong_lengths(name: str, progress: Any) -> None:
    call, message = WRONG[name]
    scan = dn.scan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dn, "scan", lambda *a, **k: scan(*a, progress=progress, **k))
        with pytest.raises(dn.OptionError, match=message):
            call(0.0)
