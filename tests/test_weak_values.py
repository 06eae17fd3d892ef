"""Weak values in ops, loops, conversions and pullbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn
from test_weak_arguments import FLOATS, bits, values


def test_tensor_converts_a_number() -> None:
    def made(n):
        return dn.tensor(n, dtype="f64"), dn.tensor(n), dn.tensor(n, dtype="bf16")

    assert [str(part.dtype) for part in dn.jit(made)(0.1)] == ["f64", "f32", "bf16"]
    assert float(dn.jit(made)(0.1)[0]) == 0.1
    narrow = dn.jit(lambda n: (dn.tensor(n, dtype="u8"), dn.tensor(n, dtype="bool")))(300)
    assert [part.to_number() for part in narrow] == [300 % 256, True]
    with pytest.raises(dn.DTypeError, match=r"^tensor: the tensor is f32, dtype=s32 was given"):
        dn.jit(lambda n: dn.tensor(n, dtype="s32"))(0.1)
    x = dn.tensor(values("bf16"))
    assert str(dn.jit(lambda x, n: x * dn.tensor(n))(x, 0.1).dtype) == "f32"


@pytest.mark.parametrize("dtype", [*FLOATS, "s8", "u8"])
def test_a_number_gives_way_in_every_op(dtype: str) -> None:
    x, number = dn.tensor(values(dtype)), 2 if dtype in ("s8", "u8") else 2.1
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "select": lambda x, n: dn.select(x > 2, x, n),
        "clip": lambda x, n: dn.clip(x, n, 5),
        "stack": lambda x, n: dn.stack([x[0], n]),
        "concatenate": lambda x, n: dn.concatenate([x, dn.tensor([1], dtype=dtype) * n]),
        "pad": lambda x, n: dn.pad(x, n, [(1, 1, 0)]),
        "max": lambda x, n: dn.max(n, x),
        "min": lambda x, n: dn.min(x, n),
        "fill": lambda x, n: dn.fill(x, n),
        "if": lambda x, n: dn.if_(x[0] > 1, lambda: x[0], lambda: n),
        "reduce": lambda x, n: dn.reduce(x, n, dn.add),
    }
    for name, function in functions.items():
        got, want = dn.jit(function)(x, number), function(x, number)
        assert bits(got) == bits(want), name
        assert str(got.dtype) == dtype, name


def test_bounds_of_clip_saturate() -> None:
    x = dn.tensor(values("u8"))
    for low, high in [(-300, 300), (3, 2**40), (-(2**40), 4)]:
        got = dn.jit(lambda x, low, high: dn.clip(x, low, high))(x, low, high)
        assert bits(got) == bits(dn.clip(x, low, high))


def test_states_of_loops_begin_with_numbers() -> None:
    x = dn.tensor([1.0, 3.0], dtype="f64")

    def doubled(x, n):
        return dn.while_((n, 0), lambda s: s[1] < 3, lambda s: (s[0] * x[1], s[1] + 1))[0]

    want = ("f64", np.float64(0.1 * 3 * 3 * 3).tobytes())
    assert bits(dn.jit(doubled)(x, 0.1)) == want
    for unroll in (1, 2, True):
        looped = dn.jit(lambda x, n: dn.for_(n, range(3), lambda s, i: s * x[1], unroll=unroll))  # noqa: B023
        assert bits(looped(x, 0.1)) == want
    last, outs = dn.jit(lambda x, n: dn.scan(n, range(3), lambda s, i: (s * x[1], s)))(x, 0.1)
    assert bits(last) == want
    assert bits(outs) == ("f64", np.asarray([0.1, 0.1 * 3, 0.1 * 3 * 3]).tobytes())
    # A state that meets no tensor has the number's own dtype; a state with a dtype keeps it.
    alone = dn.jit(lambda n: dn.while_(n, lambda s: s < 3, lambda s: s + 1))
    assert [bits(alone(0)), str(alone(0.1).dtype)] == [("s32", np.int32(3).tobytes()), "f32"]
    taken = dn.jit(lambda x, n: dn.while_(x, lambda s: s < 2, lambda s: n))
    assert bits(taken(x[0], 2.1)) == ("f64", np.float64(2.1).tobytes())


def test_numbers_of_a_state_take_on_their_types_one_after_the_other() -> None:
    """The new dtype of one number changes the next number's, also if the first is an argument."""
    x = dn.tensor(1.5, dtype="f64")

    def explicit(start):
        return dn.while_(
            (start, 0.0, 0.0, 0),
            lambda s: s[3] < 3,
            lambda s: (s[0] + x, s[1] + s[0], s[2] + s[1], s[3] + 1),
        )

    def syntax(start):
        a, b, c, n = start, 0.0, 0.0, dn.tensor(0)
        while n < 3:
            a, b, c, n = a + x, b + a, c + b, n + 1
        return a, b, c, n

    for run in (explicit, dn.jit(explicit), dn.defn(syntax)):
        out = run(0.25)
        assert [str(value.dtype) for value in out] == ["f64", "f64", "f64", "s32"]
        assert [value.item() for value in out] == [4.75, 5.25, 2.25, 3]


def test_operators_of_bits_stay_weak() -> None:
    x = dn.tensor(values("u8"))

    def mixed(x, n):
        return x + (n & 6 | 1 ^ (n >> 1)) + (~n & 3) + (1 << n)

    assert bits(dn.jit(mixed)(x, 5)) == bits(x + ((5 & 6 | 1 ^ (5 >> 1)) + (~5 & 3) + (1 << 5)))
    odd = dn.jit(lambda x, n: x * (n | 1))
    assert odd(dn.tensor([2.0], dtype="f64"), 2**40).to_list() == [2.0 * (2**40 + 1)]
    assert bits(odd(dn.tensor(values("bf16")), 8)) == bits(dn.tensor(values("bf16")) * 9)
    with pytest.raises(dn.DTypeError, match=r"^bitwise_or: the operands are f32"):
        odd(x, 0.5)


def test_pullbacks_of_numbers() -> None:
    x = dn.tensor(values("f64"))
    value, back = dn.vjp(lambda n: dn.sum(x * n))(0.1)
    assert bits(value) == bits(dn.sum(x * 0.1))
    assert [str(back(1.0).dtype), float(back(1.0))] == ["f32", 18.0]
    both = dn.vjp(lambda n: (x * n, n * n), argnums=[0])
    (scaled, squared), back = both(3)
    assert bits(scaled) == bits(x * 3)
    assert bits(squared) == ("s32", np.int32(9).tobytes())
    assert float(back((dn.fill(x, 1.0), 1.0))[0]) == 18.0 + 6.0
    with pytest.raises(dn.RangeError, match="the integer 300 beside u8"):
        dn.vjp(lambda n: dn.tensor(values("u8")) + n)(300)


def test_bools_are_no_numbers() -> None:
    x = dn.tensor(values("bf16"))
    scaled = dn.jit(lambda x, n: x * n)
    assert bits(scaled(x, True)) == bits(x * True)
    assert scaled.explain() == ["nothing was compiled before"]
    scaled(x, False)
    assert scaled.explain()[1:] == ["the value of n changed from True to False"], "it is static"
    assert bits(dn.jit(lambda x, n: x + n)(x > 2, 3)) == bits((x > 2) + 3)


def test_integers_of_any_size() -> None:
    scaled = dn.jit(lambda x, n: x * n)
    x = dn.tensor(values("f64"))
    assert bits(scaled(x, 10**40)) == bits(x * 10**40)
    with pytest.raises(dn.RangeError, match=r"argument n is the integer 1e40, it must fit u8"):
        scaled(dn.tensor(values("u8")), 10**40)
