"""Gradients of matrices that all trips of a loop multiply with: one product is of many trips."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import defn as dn

COMPILERS = ["cpu", "evaluator"]


def normals(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def rnn(lib: Any, h: Any, x: Any, enter: Any, again: Any) -> Any:
    return lib.tanh(x @ enter + h @ again)


def rnn_gradients(x: np.ndarray, enter: np.ndarray, again: np.ndarray) -> list[np.ndarray]:
    """Of the sum of the last state's squares, by NumPy, one trip after the other."""
    states = [np.zeros((x.shape[1], len(again)))]
    for row in x:
        states.append(rnn(np, states[-1], row, enter, again))
    g, to_enter, to_again = 2 * states[-1], np.zeros_like(enter), np.zeros_like(again)
    for row, before, after in zip(x[::-1], states[-2::-1], states[:0:-1], strict=True):
        g = g * (1 - after * after)
        to_enter += row.T @ g
        to_again += before.T @ g
        g = g @ again.T
    return [to_enter, to_again]


def by_axis(x: Any, enter: Any, again: Any) -> Any:
    start = dn.broadcast(dn.fill(x[0, 0, 0], 0.0), (x.shape[1], again.shape[0]))
    last = dn.for_(start, x, lambda h, row: rnn(dn, h, row, enter, again))
    return dn.sum(last * last)


def by_bound(x: Any, enter: Any, again: Any, count: Any) -> Any:
    start = dn.broadcast(dn.fill(x[0, 0, 0], 0.0), (x.shape[1], again.shape[0]))
    last = dn.for_(start, dn.range(count), lambda h, i: rnn(dn, h, x[i], enter, again))
    return dn.sum(last * last)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("trips", [1, 2, 7, 8, 63, 64, 65, 128, 131, 200, 257])
@pytest.mark.parametrize("batch", [1, 3, 5])
def test_numbers_of_trips(trips: int, batch: int, compiler: str) -> None:
    arrays = normals(trips, trips, batch, 24), normals(1, 24, 48) / 9, normals(2, 48, 48) / 9
    want = rnn_gradients(*arrays)
    known = dn.jit(dn.grad(by_axis, argnums=(1, 2)), compiler=compiler)(*arrays)
    unknown = dn.jit(dn.grad(by_bound, argnums=(1, 2)), compiler=compiler)(*arrays, trips)
    for got in (known, unknown):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one.to_numpy(), other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("is_known", [True, False])
def test_no_trips(is_known: bool) -> None:
    arrays = normals(0, 4, 2, 24), normals(1, 24, 48), normals(2, 48, 48)
    if is_known:
        got = dn.jit(dn.grad(lambda x, e, a: by_bound(x, e, a, 0), argnums=(1, 2)))(*arrays)
    else:
        got = dn.jit(dn.grad(by_bound, argnums=(1, 2)))(*arrays, 0)
    for gradient in got:
        assert not gradient.to_numpy().any()


def twice(h: Any, w: Any) -> Any:
    return dn.tanh(dn.tanh(h @ w) @ w / 4)


def transposed(h: Any, w: Any) -> Any:
    return dn.tanh(h @ w) + dn.tanh(h @ w.T) / 2


def and_elements(h: Any, w: Any) -> Any:
    return dn.tanh(h @ w + w[:3]) * dn.cos(w[0, 1])


def on_condition(h: Any, w: Any) -> Any:
    return dn.if_(h[0, 0] > 0, lambda: dn.tanh(h @ w), lambda: dn.sin(h @ w) / 2)


def of_vector(h: Any, w: Any) -> Any:
    return dn.tanh(h @ w + (h[0] @ w)[None]) / 2


def of_a_loop(h: Any, w: Any) -> Any:
    return dn.for_(h, range(9), lambda h, i: dn.tanh(h @ w))


def of_a_constant(h: Any, w: Any) -> Any:
    return dn.tanh(h + dn.broadcast(0.1, h.shape) @ w)


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "twice": twice,
    "transposed": transposed,
    "and elements": and_elements,
    "on condition": on_condition,
    "of vector": of_vector,
    "of a loop": of_a_loop,
    "of a constant": of_a_constant,
}


def repeated(body: Callable[[Any, Any], Any], trips: int) -> Callable[[Any, Any], Any]:
    def loss(h: Any, w: Any) -> Any:
        return dn.sum(dn.for_(h, range(trips), lambda h, i: body(h, w)) ** 2)

    return loss


def unrolled(body: Callable[[Any, Any], Any], trips: int) -> Callable[[Any, Any], Any]:
    def loss(h: Any, w: Any) -> Any:
        for _ in range(trips):
            h = body(h, w)
        return dn.sum(h**2)

    return loss


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("trips", [8, 70, 96])
@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str, trips: int, compiler: str) -> None:
    """A slope by central differences, along a random direction."""
    h, w, way = normals(0, 3, 40), normals(1, 40, 40) / 7, normals(2, 40, 40)
    loss = repeated(BODIES[name], trips)
    gradient = dn.jit(dn.grad(loss, argnums=1), compiler=compiler)(h, w).to_numpy()
    value, step = dn.jit(loss, compiler="cpu"), 1e-6
    slope = (float(value(h, w + step * way)) - float(value(h, w - step * way))) / (2 * step)
    np.testing.assert_allclose((gradient * way).sum(), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["twice", "transposed", "of a loop"])
def test_gradients_of_gradients(name: str) -> None:
    h, w, way = normals(0, 2, 36), normals(1, 36, 36) / 7, normals(2, 36, 36)

    def slope(loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda h, w: dn.sum(dn.grad(loss, argnums=1)(h, w) * way)

    trips = 40
    got = dn.jit(dn.grad(slope(repeated(BODIES[name], trips)), argnums=1), compiler="cpu")(h, w)
    value, step = dn.jit(slope(repeated(BODIES[name], trips)), compiler="cpu"), 1e-6
    other = normals(3, 36, 36)
    want = (float(value(h, w + step * other)) - float(value(h, w - step * other))) / (2 * step)
    np.testing.assert_allclose((got.to_numpy() * other).sum(), want, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["bf16", "f32", "c64"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_dtypes(dtype: str, compiler: str) -> None:
    h, w = normals(0, 3, 32), normals(1, 32, 40) / 8
    if dtype == "c64":
        h, w = h + 1j * normals(2, 3, 32), w + 1j * normals(3, 32, 40)

    def loss(h: Any, w: Any) -> Any:
        def trip(s: Any, i: Any) -> Any:
            return s * 0.9 + dn.sum(dn.real((h * dn.as_type(s, h.dtype)) @ w))

        return dn.for_(dn.as_type(0.5, "f32"), range(20), trip)

    def exact(h: Any, w: Any, trips: int = 20) -> np.ndarray:
        s, states = 0.5, []
        total = (h @ w).sum().real
        for _ in range(trips):
            states.append(s)
            s = s * 0.9 + s * total
        g, gradient = 1.0, np.zeros_like(w)
        for s in states[::-1]:
            gradient = gradient + g * s * h.sum(0)[:, None]
            g = g * (0.9 + total)
        return gradient

    scale = 0.01
    args = dn.tensor(scale * h, dtype=dtype), dn.tensor(w, dtype=dtype)
    got = dn.jit(dn.grad(loss, argnums=1), compiler=compiler)(*args)
    wide = [x.to_numpy().astype(complex if dtype == "c64" else float) for x in args]
    np.testing.assert_allclose(
        got.to_numpy().astype(wide[0].dtype), exact(*wide), rtol=0.1 if dtype == "bf16" else 1e-4
    )


@pytest.mark.parametrize("trips", [64, 131])
def test_the_evaluator_gives_the_same_bits(trips: int) -> None:
    arrays = [normals(0, trips, 3, 24), normals(1, 24, 48) / 9, normals(2, 48, 48) / 9]
    for function, args in ((by_axis, ()), (by_bound, (trips,))):
        gradient = dn.grad(function, argnums=(1, 2))
        one, other = (dn.jit(gradient, compiler=name)(*arrays, *args) for name in COMPILERS)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a.to_numpy(), b.to_numpy())


@pytest.mark.parametrize(
    ("trips", "batch", "width", "rows"),
    [
        (100, 4, 64, "50, 4"),
        (40, 1, 64, "40, 1"),
        # With 43 left over, which come first; the number of each loop's trips is known.
        (131, 4, 64, "44, 4"),
        # Too few trips, too many rows, and a small matrix.
        (4, 4, 64, None),
        (100, 64, 64, None),
        (100, 4, 8, None),
    ],
)
def test_products_are_of_many_trips(trips: int, batch: int, width: int, rows: str | None) -> None:
    def loss(h: Any, w: Any) -> Any:
        return dn.sum(dn.for_(h, range(trips), lambda h, i: dn.tanh(h @ w)))

    types = dn.template((batch, width), "f32"), dn.template((width, width), "f32")
    text = dn.graph.to_text(dn.debug_expr(dn.grad(loss, argnums=1))(*types))
    products = [
        line for line in text.splitlines() if "dot" in line and "contract_a: [0, 1]" in line
    ]
    if rows is None:
        assert not products
    else:
        assert products
        assert f"f32[{rows.replace(', ', '][')}][{width}]" in text
        assert "trips: none" not in text
