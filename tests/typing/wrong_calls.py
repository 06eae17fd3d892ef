"""Calls that type checkers refuse: exactly the lines that end with ``# wrong`` have an error."""

from __future__ import annotations

import defn as dn


@dn.defn
def scale(x: dn.Tensor, *, by: float = 2.0) -> dn.Tensor:
    return x * by


@dn.jit(static="n")
def power(x: dn.Tensor, n: int) -> dn.Tensor:
    return x**n


class Model:
    @dn.defn
    def loss(self, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return dn.mean((x - y) ** 2)


x = dn.tensor([1.0, 2.0])

scale()  # wrong
scale(x, 3.0)  # wrong
scale(x, times=3.0)  # wrong
scale(x, by="2")  # wrong
scale(x).typo()  # wrong
power(x, "2")  # wrong
power(x)  # wrong
power(n=2)  # wrong
Model().loss(x)  # wrong
Model().loss(x, x, x)  # wrong
dn.vmap(scale)(x, x)  # wrong
dn.grad(scale)(by=2.0)  # wrong
dn.value_and_grad(scale)(x, by="2")  # wrong

dn.typo  # wrong
dn.where(x > 1, x, 0.0)  # wrong
dn.linalg.inv(x)  # wrong
dn.random.wald  # wrong
dn.tree.typo  # wrong
x.astype("f32")  # wrong
x[0] = 1.0  # wrong
x.max(axis=0)  # wrong
x.max(x)  # wrong
x.transpose(1.5)  # wrong
dn.sum(x, axis=0)  # wrong
dn.sum(x, keepdims=True)  # wrong
dn.atan2(x)  # wrong
dn.linspace(0, 1)  # wrong
dn.reshape(x)  # wrong
dn.tensor([1.0], dtype=1.5)  # wrong
dn.sort(x, direction="down")  # wrong
dn.argmax(x, tie_break="middle")  # wrong
dn.checks("overflow")  # wrong
dn.jit(scale, donate=1.5)  # wrong
dn.register_container(3, list, list)  # wrong
dn.range("3")  # wrong
