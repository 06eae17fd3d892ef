"""Queries about types: of tensors, numbers, templates and traced tensors."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL

X = dn.iota((2, 3), names=["row", None])


def test_axes() -> None:
    assert dn.axes(X) == (0, 1)
    assert dn.axes(1.5) == ()
    assert [dn.axis_index(X, axis) for axis in (0, -1, "row")] == [0, 1, 0]
    assert [X.axis_size(axis) for axis in (0, -1, "row")] == [2, 3, 2]
    assert dn.axis_size(np.zeros((4, 5)), 1) == 5
    for function in (dn.axis_index, dn.axis_size):
        for axis in (2, -3, "column"):
            with pytest.raises(dn.AxisError, match=f"^{function.__name__}: "):
                function(X, axis)


@pytest.mark.parametrize("dtype", ALL)
def test_bits(dtype: str) -> None:
    bits = {"bool": 8, "f8_e5m2": 8, "f8_e4m3fn": 8}.get(dtype) or int(dtype.lstrip("usbfc"))
    assert dn.bit_size(dn.template((2, 3), dtype)) == 6 * bits
    assert dn.bit_size(dn.template((2, 0), dtype)) == 0


def test_vectorized_axes_count_as_elements_only() -> None:
    x = dn.vectorize(X, "row")
    assert (dn.axes(x), x.size, x.flat_size, dn.bit_size(x)) == ((0,), 3, 6, 192)
    with pytest.raises(dn.AxisError):
        dn.axis_size(x, "row")


def test_traced_tensors_and_templates_answer() -> None:
    seen = []

    def ask(x: dn.Tensor) -> dn.Tensor:
        seen.append((dn.axes(x), x.axis_size("row"), dn.bit_size(x), dn.compatible(x, X)))
        return x

    dn.jit(ask)(X)
    ask(dn.template((2, 3), "s32", names=["row", None]))
    assert seen == [((0, 1), 2, 192, True)] * 2


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (X, X.rename([None, "column"]), True),
        (X, X.rename(["line", None]), False),
        (X, dn.template((2, 3), "s32"), True),
        (X, X.as_type("s64"), False),
        (X, X.reshape(3, 2), False),
        (X, X.reshape(6), False),
        (X, dn.vectorize(X, "row"), False),
        (dn.vectorize(X, "row"), dn.vectorize(X + 1, "row"), True),
        (1, 2, True),
        (1, 2.0, False),
        ((X, {"a": X}), (X, {"a": X}), True),
        ((X, {"a": X}), (X, {"b": X}), False),
        ((X,), [X], False),
        ((X, X), (X,), False),
        (X, (X,), False),
    ],
)
def test_compatible(a: object, b: object, want: bool) -> None:
    assert dn.compatible(a, b) is want
    assert dn.compatible(b, a) is want
