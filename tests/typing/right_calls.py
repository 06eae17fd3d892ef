"""Calls that type checkers accept; ``reveal`` pins the inferred types."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import defn as dn


@dn.defn
def scale(x: dn.Tensor, *, by: float = 2.0) -> dn.Tensor:
    return x * by


@dn.jit(donate="x")
def shift(x: dn.Tensor, y: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
    return x + y, y


class Model:
    def __init__(self, w: dn.Tensor) -> None:
        self.w = w

    @dn.defn
    def __call__(self, x: dn.Tensor) -> dn.Tensor:
        return x @ self.w

    @dn.defn
    def loss(self, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return dn.mean((self(x) - y) ** 2)


x = dn.tensor([1.0, 2.0])
assert_type(scale(x, by=3.0), dn.Tensor)
assert_type(shift(x, x), tuple[dn.Tensor, dn.Tensor])
assert_type(scale.explain(), list[str])
assert_type(Model(x).loss(x, x), dn.Tensor)
assert_type(dn.vmap(scale)(x), dn.Tensor)
assert_type(dn.value_and_grad(scale)(x)[0], dn.Tensor)

array = np.ones(2)
assert_type(array + x, dn.Tensor)
assert_type(x + array, dn.Tensor)
assert_type(2.0 * x, dn.Tensor)
assert_type(array > x, dn.Tensor)
assert_type(x.max(0), dn.Tensor)
assert_type(x.sum(0, keep_axes=True), dn.Tensor)
assert_type(x.transpose(0), dn.Tensor)
assert_type(x.transpose((0,)), dn.Tensor)
assert_type(dn.maximum(x, 0.0), dn.Tensor)
assert_type(dn.linspace(0, 1, 5), dn.Tensor)
assert_type(dn.tensor([1], dtype=np.float32), dn.Tensor)
assert_type(dn.tensor([1], dtype="float32"), dn.Tensor)
assert_type(dn.tree.leaves({"a": x})[0] is x, bool)
assert_type(dn.tree.norm({"a": x}, "inf"), dn.Tensor)
assert_type(dn.tree.size({"a": x}), int)
assert_type(dn.tree.path_text(("a", 0)), str)
np.asarray(x)
np.zeros(3, dtype=np.dtype(x.dtype))
