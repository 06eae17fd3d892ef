"""Donated arguments: their memory is a result's, they are gone after; what cannot be is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import defn as dn
from support import needs_plugin

pytestmark = needs_plugin

CLIENT = "donation"


@dataclass(frozen=True)
class Model:
    weight: dn.Tensor
    bias: dn.Tensor


@pytest.fixture
def place() -> dn.backends.PJRT:
    """A device of a client of its own, so that what lives there can be counted."""
    host = next(plugin.path for plugin in dn.pjrt.plugins() if plugin.client == "host")
    dn.pjrt.client(CLIENT, plugin=host, cpu_device_count=1)
    return dn.backends.PJRT(client=CLIENT)


def jit(fun, **options):
    return dn.jit(fun, compiler="pjrt", client=CLIENT, **options)


def model(place: dn.backends.PJRT, size: int = 1000) -> Model:
    weight = np.arange(size, dtype=np.float32)
    return Model(dn.tensor(weight, backend=place), dn.tensor(np.float32(1.0), backend=place))


def test_a_donated_container_is_gone_and_its_memory_is_used_again(place) -> None:
    step = jit(lambda m, x: Model(m.weight - x, m.bias + dn.sum(x)), donate="m")
    m, x = model(place), dn.tensor(np.float32(2.0), backend=place)
    want = m.weight.to_numpy() - 2.0
    live = dn.pjrt.live_buffers(CLIENT)
    for _ in range(5):
        before, m = m, step(m, x)
        assert dn.pjrt.live_buffers(CLIENT) == live, "each result lies in an argument"
    assert (m.weight.to_numpy() == want - 8.0).all()
    assert float(m.bias) == 11.0
    for use in [
        lambda: before.weight.to_numpy(),
        lambda: before.bias + 1.0,
        lambda: float(before.bias),
        lambda: dn.backend_copy(before.weight, "cpu"),
        lambda: step(before, x),
        lambda: jit(lambda m: m.weight)(before) + 1,
    ]:
        with pytest.raises(dn.BackendError, match=r"memory was donated(?s:.*)test_pjrt_donation"):
            use()
    assert "(donated)" in repr(before.weight)
    assert dn.backend_deallocate(before.weight) == "already_deallocated"


def test_without_donation_memory_is_taken(place) -> None:
    step = jit(lambda m: Model(m.weight * 2, m.bias * 2))
    m = model(place)
    live = dn.pjrt.live_buffers(CLIENT)
    new = step(m)
    assert dn.pjrt.live_buffers(CLIENT) == live + 2
    assert (new.weight.to_numpy() == 2 * m.weight.to_numpy()).all()


@pytest.mark.parametrize(
    ("fun", "donate", "which"),
    [
        (lambda m, x: dn.sum(m.weight) + m.bias, "m", "m.weight is f32[1000]"),
        (lambda m, x: Model(m.weight[:10], m.bias + x), "m", "m.weight is f32[1000]"),
        (lambda m, x: Model(dn.as_type(m.weight, "f64"), m.bias + x), "m", "m.weight is f32[1000]"),
        (lambda m, x: {"a": m.weight + x, "b": dn.cos(m.bias)}, ("m", "x"), "x is f32"),
        (lambda m, *x: Model(m.weight + x[0], m.bias), ("m", 1), "x[0] is f32"),
    ],
)
def test_what_no_result_can_take_is_refused_before_it_runs(place, fun, donate, which) -> None:
    run = jit(fun, donate=donate)
    m, x = model(place), dn.tensor(np.float32(1.0), backend=place)
    said = re.escape(f"donate: argument {which}, a result of")
    with pytest.raises(dn.CompileError, match=said):
        run(m, x)
    with pytest.raises(dn.CompileError, match=said):
        dn.pjrt.compile(fun, [m, x], donate=donate, client=CLIENT)
    assert float(m.weight[1]) == float(m.bias) == float(x) == 1.0


def test_what_is_given_back_as_it_is_lives_on(place) -> None:
    """Frozen parameters of a state that is donated."""
    step = jit(lambda m: Model(m.weight, m.bias + 1.0), donate="m")
    m = model(place)
    new = step(m)
    assert new.weight is m.weight
    assert (new.weight.to_numpy() == np.arange(1000)).all()
    assert float(new.bias) == 2.0
    with pytest.raises(dn.BackendError, match="donated"):
        float(m.bias)
    # Another result of the same type does not reuse its memory either.
    both = jit(lambda x: (x, x + 1.0), donate="x")
    x = dn.tensor([1.0, 2.0], backend=place)
    assert [part.to_list() for part in both(x)] == [[1.0, 2.0], [2.0, 3.0]]


def test_other_holders_keep_the_elements(place) -> None:
    double = jit(lambda x: x * 2, donate="x")
    x = dn.tensor([1.0, 2.0], backend=place)
    copy = dn.backend_copy(x, place)
    assert double(x).to_list() == [2.0, 4.0]
    assert copy.to_list() == [1.0, 2.0]
    with pytest.raises(dn.BackendError, match="donated"):
        x.to_list()


def test_one_tensor_twice(place) -> None:
    x = dn.tensor([1.0, 2.0], backend=place)
    lent = jit(lambda x, y: x + y, donate="x")
    assert lent(x, x).to_list() == [2.0, 4.0]
    y = dn.tensor([1.0, 2.0], backend=place)
    both = jit(lambda x, y: (x + y, x - y), donate=("x", "y"))
    with pytest.raises(dn.BackendError, match="run: argument y is f32"):
        both(y, y)
    assert y.to_list() == [1.0, 2.0], "a call that did not run has used nothing up"


def test_arguments_of_the_host_are_copied_and_stay(place) -> None:
    double = jit(lambda x: x * 2, donate="x")
    array, tensor = np.float32([1.0, 2.0]), dn.tensor([1.0, 2.0])
    for value in [array, tensor]:
        result = double(value)
        assert result.backend == place
        assert result.to_list() == [2.0, 4.0]
    assert tensor.to_list() == array.tolist() == [1.0, 2.0]


def test_a_call_that_fails_uses_nothing_up(place) -> None:
    step = jit(lambda m, x: Model(m.weight + x, m.bias * x), donate="m")
    m, x = model(place), dn.tensor(np.float32(1.0), backend=place)
    dn.backend_deallocate(x)
    with pytest.raises(dn.BackendError, match="freed"):
        step(m, x)
    assert float(m.bias) == 1.0


def test_what_is_gone_is_named_as_it_is_written(place) -> None:
    gone = dn.tensor([1.0, 2.0], backend=place)
    dn.backend_deallocate(gone)
    x = dn.tensor([1.0, 2.0], backend=place)
    add = jit(lambda first, *, state: first + state["parts"][1])
    compiled = dn.pjrt.compile(
        lambda mode, pair: pair[0] * pair[1], ["fast", (x, x)], client=CLIENT
    )
    for use, which in [
        (lambda: add(x, state={"parts": [x, gone]}), r'argument state["parts"][1]'),
        (lambda: add(gone, state={"parts": [x, x]}), "argument first"),
        (lambda: jit(lambda x: x * gone)(x), "the closure's gone"),
        (lambda: compiled((x, gone)), "argument pair[1]"),
    ]:
        for _ in range(2):
            with pytest.raises(dn.BackendError, match=re.escape(f"run: {which} is f32[2] and its")):
                use()
    # A repeated call, which reuses the compiled program, names the argument in the same way.
    assert add(x, state={"parts": [x, x]}).to_list() == [2.0, 4.0]
    with pytest.raises(dn.BackendError, match=re.escape('argument state["parts"][1] is')):
        add(x, state={"parts": [x, gone]})
    with pytest.raises(dn.ShapeError, match=re.escape("compile: argument pair[1] is f32[1], the")):
        compiled((x, dn.tensor([1.0])))


def test_compilers_and_effects_that_reuse_nothing_say_so(place) -> None:
    x = dn.tensor(np.int32(2), backend=place)
    looped = jit(
        lambda x: dn.while_(x, lambda x: x > 0, lambda x: dn.hook(x, print) - 1), donate="x"
    )
    with pytest.raises(dn.CompileError, match="effects inside loops"):
        looped(x)
    with pytest.raises(dn.CompileError, match='the compiler "evaluator" reuses no arguments'):
        dn.jit(lambda x: x + 1, compiler="evaluator", donate="x")(x)
    with pytest.raises(dn.OptionError, match='donate names the parameter "z"'):
        jit(lambda x: x + 1, donate="z")
    assert int(x) == 2


def test_compiled_functions_and_positions(place) -> None:
    template = {"a": dn.template((3,), "f32"), "b": dn.template((), "s32")}
    run = dn.pjrt.compile(
        lambda s, y: {"a": s["a"] * y, "b": s["b"] + 1},
        [template, dn.template((), "f32")],
        donate=0,
        client=CLIENT,
    )
    state = {"a": dn.tensor([1.0, 2.0, 3.0], backend=place), "b": dn.tensor(3, backend=place)}
    new = run(state, 2.0)
    assert (new["a"].to_list(), int(new["b"])) == ([2.0, 4.0, 6.0], 4)
    with pytest.raises(dn.BackendError, match="donated"):
        state["a"].to_list()
