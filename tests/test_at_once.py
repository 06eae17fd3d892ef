"""The fast paths of eager ops on small tensors give the same results as the general path."""

from __future__ import annotations

import inspect
import operator
import pickle
import pydoc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import defn as dn
from support import with_one_nan

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.lshift,
    operator.lt,
    operator.ge,
    operator.eq,
    operator.ne,
    dn.max,
    dn.logical_xor,
    dn.atan2,
]
NUMBERS = [
    True,
    2,
    -3,
    300,
    2**40,
    2**63,
    2**70,
    0.1,
    float("nan"),
    1j,
    np.float32(0.1),
    np.float64(0.1),
    np.float16(0.5),
    np.int32(3),
    np.int64(-3),
    np.uint8(3),
    np.bool_(True),
    np.complex64(1j),
    np.longdouble(2),
]
DTYPES = ["f32", "f64", "bf16", "f16", "s32", "s64", "u8", "u4", "c64"]


def outcome(call: Callable[[], dn.Tensor]) -> object:
    """The type and the bytes of a result, or the class of the error."""
    try:
        made = call()
    except Exception as error:
        return type(error)
    return (made.dtype.name, made.shape, made.names, with_one_nan(made.to_numpy()).tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_numbers_beside_tensors_give_what_programs_give(op: Any, dtype: str) -> None:
    x = dn.as_type(dn.tensor([1, 2, 5]), dtype)
    for number in NUMBERS:
        if op in (operator.pow, operator.lshift) and number in (-3, np.int64(-3)):
            # A negative exponent or shift raises in an eager op, but not in a compiled program.
            continue
        assert outcome(lambda: op(x, number)) == outcome(  # noqa: B023
            lambda: dn.jit(lambda x: op(x, number))(x)  # noqa: B023
        ), repr(number)
        if dtype != "c64" or not isinstance(number, np.generic):
            assert outcome(lambda: op(number, x)) == outcome(  # noqa: B023
                lambda: dn.jit(lambda x: op(number, x))(x)  # noqa: B023
            ), repr(number)


INDICES: list[Any] = [
    0,
    -1,
    True,
    np.int64(1),
    slice(1, 2),
    slice(None),
    slice(1, None),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(5, 1),
    slice(1, 2, 7),
    None,
    ...,
    (0, 1),
    (1, slice(1, 3)),
    (slice(0, 1), slice(1, 3)),
    (slice(0, 2), slice(1, 3)),
    (slice(1, 2), -1),
    (slice(None), 1),
    (..., 1),
    (..., slice(0, 2)),
    (1, ..., 2),
    (None, 1, None, slice(1, 3)),
    (1, 2, 3, None),
    (slice(1, 2), None, 0),
    (0, slice(None, None, 2)),
    (0, slice(1, 2, 2), 1),
    (0, slice(0, 0)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "c64", "u8"])
def test_indices_give_what_numpy_gives(index: Any, dtype: str) -> None:
    values = np.arange(24).reshape(2, 3, 4).astype(dn.dtype(dtype).to_numpy())
    x = dn.tensor(values, names=["a", None, "c"])
    if index is True:
        with pytest.raises(dn.Error):
            x[index]
        return
    made, expected = x[index], values[index]
    np.testing.assert_array_equal(made.to_numpy(), expected, strict=True)
    traced = dn.jit(lambda x: x[index])(x)
    assert (made.dtype, made.shape, made.names) == (traced.dtype, traced.shape, traced.names)
    for row, wanted in zip(x, values, strict=True):
        np.testing.assert_array_equal(row.to_numpy(), wanted)


def test_parts_lie_in_the_memory_of_what_they_are_parts_of() -> None:
    x = dn.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    start = x.data.ctypes.data
    assert x[1].data.ctypes.data == start + 12
    assert x[1, 1:].data.ctypes.data == start + 16
    assert x[:, None].data.ctypes.data == start
    assert dn.reshape(x, (3, 2)).data.ctypes.data == start
    part = x[1]
    dn.backend_deallocate(x)
    assert part.to_list() == [3.0, 4.0, 5.0]
    with pytest.raises(dn.Error, match="freed"):
        x[1]


def test_small_results_are_freed_and_donated_like_others() -> None:
    made = dn.tensor([1.0, 2.0]) + 1.0
    again = made + made
    assert again.to_list() == [4.0, 6.0]
    dn.backend_deallocate(made)
    with pytest.raises(dn.Error, match="freed"):
        operator.add(made, 1.0)
    double = dn.jit(lambda x: x + x, donate=["x"])
    assert double(again).to_list() == [8.0, 12.0]
    with pytest.raises(dn.Error, match="donated"):
        operator.add(again, 1.0)


def test_checks_are_kept_to() -> None:
    x = dn.tensor([1.0, float("nan")])
    with dn.checks("nan"), pytest.raises(dn.Error, match="NaN"):
        operator.add(x, 1.0)
    assert np.isnan((x + 1.0).to_numpy()[1])


def test_threads_share_operands() -> None:
    a, b = dn.tensor([1.0, 2.0]), dn.tensor([3.0, 4.0])
    call = dn.jit(lambda a, b: a * 2.0 + b)
    wrong: list[object] = []

    def work(x: dn.Tensor, y: dn.Tensor, expected: list[float]) -> None:
        for _ in range(300):
            if (x + y).to_list() != [4.0, 6.0] or call(x, y).to_list() != expected:
                wrong.append((x, y))

    threads = [
        threading.Thread(target=work, args=args)
        for args in [(a, b, [5.0, 8.0]), (b, a, [7.0, 10.0])] * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_quick_functions_look_like_functions() -> None:
    assert inspect.isroutine(dn.exp)
    assert list(inspect.signature(dn.exp).parameters) == ["tensor", "unknown"]
    assert dn.exp.__module__ == "defn.ops.elementwise_unary"
    assert dn.exp.__name__ == dn.exp.__qualname__ == "exp"
    assert "Grad: " in (dn.exp.__doc__ or "")
    assert "exp(tensor" in pydoc.plain(pydoc.render_doc(dn.exp))
    assert pickle.loads(pickle.dumps(dn.exp)) is dn.exp
    assert repr(dn.exp).startswith("<function exp at 0x")

    class Holder:
        f = dn.exp
        g = staticmethod(dn.exp)

        def __init__(self) -> None:
            self.h = dn.exp

    x = dn.tensor([0.0])
    assert Holder.f(x).to_list() == Holder.g(x).to_list() == Holder().h(x).to_list() == [1.0]
    with pytest.raises(dn.Error, match="Holder"):
        Holder().f()


def test_quick_functions_take_what_they_took() -> None:
    x = dn.tensor([4.0])
    assert dn.sqrt(tensor=x).to_list() == [2.0]
    assert dn.sqrt(np.float64(4.0)).dtype == dn.f64
    assert dn.max(3, x).to_list() == [4.0]
    assert dn.log(x, base=2.0).to_list() == [2.0]
    with pytest.raises(dn.OptionError, match="unknown option"):
        dn.sqrt(x, axis=0)
    with pytest.raises(dn.OptionError, match="reduce_max"):
        dn.max(x)
    with pytest.raises(TypeError, match="positional"):
        dn.sqrt(x, x, x)
    with pytest.raises(dn.Error, match="sqrt"):
        dn.sqrt("a")


ACTIVATION = dn.exp


def test_programs_tell_quick_functions_apart() -> None:
    global ACTIVATION
    x = dn.tensor([0.0])
    run = dn.jit(lambda x: ACTIVATION(x))
    assert run(x).to_list() == [1.0]
    ACTIVATION = dn.sin
    assert run(x).to_list() == [0.0]
    apply = dn.jit(lambda f, x: f(x), static=["f"])
    assert apply(dn.exp, x).to_list() == [1.0]
    assert apply(dn.sin, x).to_list() == [0.0]
    assert dn.jit(dn.exp)(x).to_list() == [1.0]
    assert dn.jit(dn.sin)(x).to_list() == [0.0]
    assert dn.grad(dn.exp)(dn.tensor(0.0)).to_number() == 1.0
    assert dn.vmap(dn.exp)(x).to_list() == [1.0]
