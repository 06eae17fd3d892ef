"""Donated arguments on the CPU: a result reuses their memory, and they can no longer be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import defn as dn


@dataclass(frozen=True)
class Model:
    weight: dn.Tensor
    bias: dn.Tensor


def jit(fun, **options):
    return dn.jit(fun, compiler="cpu", **options)


def own(value) -> dn.Tensor:
    """A tensor in its own memory; a tensor that is made from an array may share a copy."""
    return dn.tensor(value) * 1.0


def model(size: int = 100_000) -> Model:
    return Model(own(np.arange(size, dtype=np.float32)), own(np.float32(1.0)))


def address(tensor: dn.Tensor) -> int:
    """The address of the elements."""
    return tensor.to_numpy().__array_interface__["data"][0]


def test_a_tensor_made_from_an_array_has_its_own_memory() -> None:
    array = np.arange(1 << 12, dtype=np.float32)
    x = dn.tensor(array)
    before = address(x)
    assert before != array.__array_interface__["data"][0]
    result = jit(lambda x: x + 1.0, donate=0)(x)
    assert address(result) == before
    np.testing.assert_array_equal(result.to_numpy(), np.arange(1, (1 << 12) + 1, dtype=np.float32))
    np.testing.assert_array_equal(array, np.arange(1 << 12, dtype=np.float32))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, y: x * 2.0 + y,
        lambda x, y: y - x * x,
        lambda x, y: dn.exp(dn.put_slice(x * 1.0, [0], y[:10])),
        lambda x, y: dn.put_slice(x, [5], y[:10]),
        lambda x, y: dn.indexed_add(x, dn.iota((8, 1), dtype="s32"), y[:8]),
        lambda x, y: dn.select(x > y, x, y),
    ],
)
@pytest.mark.parametrize("size", [16, 1 << 17])
def test_the_result_lies_where_the_argument_lay(fun, size) -> None:
    x, y = np.linspace(0, 1, size, dtype=np.float32), np.linspace(-1, 2, size, dtype=np.float32)
    want = jit(fun)(x, y).to_numpy()
    given, other = own(x), own(y)
    before = address(given)
    result = jit(fun, donate=0)(given, other)
    np.testing.assert_array_equal(result.to_numpy(), want)
    assert address(result) == before
    assert (other.to_numpy() == y).all()
    with pytest.raises(dn.BackendError, match="donated"):
        given.to_numpy()


def test_several_results_in_the_memory_of_one_argument() -> None:
    x = np.arange(6, dtype="float32").reshape(1, 6)
    moved, seen = jit(lambda x: (dn.reverse(x, axes=[0]), x[0, 2:]), donate=0)(own(x))
    np.testing.assert_array_equal(moved.to_numpy(), x)
    np.testing.assert_array_equal(seen.to_numpy(), x[0, 2:])


def test_the_state_of_a_loop_is_read_before_another_result_lies_over_it() -> None:
    """Rows of two elements, two results of one loop nest, and a state that is added to in place."""
    matrix, rows, start = np.array([[0.5, 0.2], [-0.3, 0.9]]), np.ones((3, 2)), np.array([1.0, 2.0])

    def run(matrix: dn.Tensor, rows: dn.Tensor, start: dn.Tensor) -> dn.Tensor:
        def step(state):
            i, g, total = state
            out = dn.tanh(dn.sum(matrix * rows[i], axes=1))
            scaled = dn.new_axis(g * (1 - out * out), 1)
            return i + 1, dn.sum(matrix * scaled, axes=0), total + scaled * rows[i]

        return dn.while_((0, start, matrix * 0), lambda state: state[0] < 3, step)[2]

    want = run(*(dn.tensor(x) for x in (matrix, rows, start)))
    np.testing.assert_array_equal(jit(run)(matrix, rows, start).to_numpy(), want.to_numpy())


def test_what_reads_elsewhere_first_is_right_all_the_same() -> None:
    """Reversed, shifted, transposed, summed: no element is overwritten before it is read."""
    size = 1 << 16
    x = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    for fun, plain in [
        (lambda x: x + dn.reverse(x), lambda x: x + x[::-1, ::-1]),
        (lambda x: x * dn.transpose(x), lambda x: x * x.T),
        (lambda x: x - dn.sum(x, axes=0), None),
        (lambda x: x - dn.reduce_max(x), lambda x: x - x.max()),
        (
            lambda x: dn.reshape(dn.reverse(dn.reshape(x, (size,))), (256, 256)),
            lambda x: x[::-1, ::-1],
        ),
        (lambda x: dn.sort(x, axis=0), lambda x: np.sort(x, axis=0)),
        (lambda x: x @ x, None),
    ]:
        want = jit(fun)(x).to_numpy()
        if plain is not None:
            np.testing.assert_array_equal(want, plain(x))
        np.testing.assert_array_equal(jit(fun, donate="x")(own(x)).to_numpy(), want)


def test_a_container_is_gone_and_its_memory_is_used_again() -> None:
    step = jit(lambda m, x: Model(m.weight - x, m.bias + dn.sum(x)), donate="m")
    m, x = model(), dn.tensor(np.float32(2.0))
    want = m.weight.to_numpy() - 2.0
    where = address(m.weight)
    for _ in range(5):
        before, m = m, step(m, x)
        assert address(m.weight) == where
    assert (m.weight.to_numpy() == want - 8.0).all()
    assert float(m.bias) == 11.0
    for use in [
        lambda: before.weight.to_numpy(),
        lambda: before.bias + 1.0,
        lambda: step(before, x),
    ]:
        with pytest.raises(dn.BackendError, match=r"memory was donated(?s:.*)test_donation"):
            use()
    assert dn.backend_deallocate(before.weight) == "already_deallocated"


@pytest.mark.parametrize(
    ("fun", "donate", "which"),
    [
        (lambda m, x: dn.sum(m.weight) + m.bias, "m", "m.weight is f32[1000]"),
        (lambda m, x: Model(dn.as_type(m.weight, "f64"), m.bias + x), "m", "m.weight is f32[1000]"),
        (lambda m, x: {"a": m.weight + x, "b": dn.cos(m.bias)}, ("m", "x"), "x is f32"),
    ],
)
def test_what_no_result_can_take_is_refused_before_it_runs(fun, donate, which) -> None:
    m, x = model(1000), dn.tensor(np.float32(1.0))
    said = re.escape(f"donate: argument {which}, a result of")
    with pytest.raises(dn.CompileError, match=said):
        jit(fun, donate=donate)(m, x)
    assert float(m.weight[1]) == float(m.bias) == float(x) == 1.0


def test_other_holders_keep_the_elements() -> None:
    double = jit(lambda x: x * 2, donate="x")
    x = own(np.float32([1.0, 2.0, 3.0]))
    view, part = x.to_numpy(), x[:2]
    assert double(x).to_list() == [2.0, 4.0, 6.0]
    assert view.tolist() == [1.0, 2.0, 3.0]
    assert part.to_list() == [1.0, 2.0]
    array = np.float32([1.0, 2.0])
    assert double(array).to_list() == [2.0, 4.0]
    assert array.tolist() == [1.0, 2.0]
    # A view that begins in the middle of another tensor's memory.
    assert double(own([1.0, 2.0, 3.0])[1:]).to_list() == [4.0, 6.0]


def test_one_tensor_twice() -> None:
    x = own([1.0, 2.0])
    assert jit(lambda x, y: x + y, donate="x")(x, x).to_list() == [2.0, 4.0]
    y = dn.tensor([1.0, 2.0])
    both = jit(lambda x, y: (x + y, x - y), donate=("x", "y"))
    with pytest.raises(dn.BackendError, match="run: argument y is f32"):
        both(y, y)
    assert y.to_list() == [1.0, 2.0], "a call that did not run has used nothing up"


def test_a_call_that_fails_uses_nothing_up() -> None:
    step = jit(lambda m, x: Model(m.weight + x, m.bias * x), donate="m")
    m, x = model(), dn.tensor(np.float32(1.0))
    dn.backend_deallocate(x)
    with pytest.raises(dn.BackendError, match="freed"):
        step(m, x)
    assert float(m.bias) == 1.0


def test_what_is_given_back_as_it_is_lives_on() -> None:
    step = jit(lambda m: Model(m.weight, m.bias + 1.0), donate="m")
    m = model()
    new = step(m)
    assert new.weight is m.weight
    assert float(new.bias) == 2.0


def test_a_loop_changes_a_donated_state_where_it_lies() -> None:
    def run(x):
        return dn.while_((0, x), lambda s: s[0] < 100, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0))[1]

    x = np.linspace(-1, 1, 1 << 16, dtype=np.float32)
    want = jit(run)(x).to_numpy()
    given = own(x)
    before = address(given)
    result = jit(run, donate=0)(given)
    np.testing.assert_array_equal(result.to_numpy(), want)
    assert address(result) == before
