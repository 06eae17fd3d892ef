"""Forward mode: every differentiable row against reverse mode and differences, and loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn
from cases import Case, apart, values
from cases.dtypes import is_complex
from test_grad import CASES, COMPLEX, DTYPES, FLOWS, identify


def drawn(case: Case, dtype: str) -> list[np.ndarray]:
    draw = case.grad_draw or (apart if case.draw is values else case.draw)
    return [np.array(a) for a in case.arrays(dtype, draw=draw)]


def direction(array: np.ndarray, seed: int) -> np.ndarray:
    """A tangent of an array, with elements between 0.5 and 1.5 of either sign."""
    rng = np.random.default_rng(seed)
    real = rng.uniform(0.5, 1.5, array.shape) * rng.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        real = real + 1j * rng.uniform(0.5, 1.5, array.shape)
    return np.asarray(real, array.dtype)


def weighted(value: dn.Tensor) -> dn.Tensor:
    """One number: the sum of the elements with distinct weights."""
    weights = np.random.default_rng(7).uniform(0.5, 1.5, value.shape)
    if is_complex(str(value.dtype)):
        weights = weights + 1j * np.random.default_rng(8).uniform(-1.0, 1.0, value.shape)
    return dn.sum(dn.real(value * weights))


def check(case: Case, dtype: str) -> None:
    arrays = drawn(case, dtype)
    chosen = case.grad_args or range(len(arrays))
    tangents = [
        direction(a, seed) if seed in chosen and a.dtype.kind in "fc" else None
        for seed, a in enumerate(arrays)
    ]
    assert any(t is not None for t in tangents)
    tensors = [dn.tensor(a) for a in arrays]
    value, tangent = dn.jvp(lambda *args: weighted(case.run(*args)), tensors, tangents)
    single = any(str(t.dtype) in ("f32", "c64") for t in dn.tree.leaves(case.run(*tensors)))
    tolerance = 2e-3 if single else 1e-9
    plain = weighted(case.run(*tensors))
    np.testing.assert_allclose(value.to_numpy(), plain.to_numpy(), rtol=1e-5 if single else 1e-12)

    products = []
    for position, along in enumerate(tangents):
        if along is not None:
            slope = dn.grad(lambda *args: weighted(case.run(*args)), argnums=position)(*tensors)
            products.append((slope.to_numpy() * along).real)
    scale = max(1.0, sum(float(np.abs(p).sum()) for p in products))
    want = sum(float(p.sum()) for p in products)
    assert abs(float(tangent) - want) <= tolerance * scale, "reverse mode"

    def at(step: float) -> float:
        moved = [
            dn.tensor(a if along is None else a + step * along)
            for a, along in zip(arrays, tangents, strict=True)
        ]
        with dn.options(backend="cpu", compiler="evaluator"):
            return float(weighted(case.run(*moved)))

    step, tolerance = (2.0**-5, 1e-2) if single else (1e-6, 1e-5)
    difference = (at(step) - at(-step)) / (2 * step)
    assert abs(float(tangent) - difference) <= tolerance * scale, "central differences"


@pytest.mark.parametrize("case", FLOWS, ids=identify)
def test_tangent(case: Case) -> None:
    check(case, "f64")


@pytest.mark.parametrize("case", COMPLEX, ids=identify)
def test_complex_tangent(case: Case) -> None:
    check(case, "c128")


@pytest.mark.parametrize("case", [c for c in CASES if c.grad == "zero"], ids=identify)
def test_no_tangent_flows(case: Case) -> None:
    if "f64" not in case.dtypes:
        return
    arrays = [np.array(a) for a in case.arrays("f64", draw=case.grad_draw or case.draw)]
    tangents = [direction(a, 1) if a.dtype.kind in "fc" else None for a in arrays]
    _, tangent = dn.jvp(lambda *args: dn.sum(case.run(*args)), arrays, tangents)
    assert float(tangent) == 0.0


FLOATS = [
    (case, dtype)
    for case in FLOWS
    for dtype in DTYPES
    if dtype in case.dtypes and dn.tensor(0, dtype=dtype).dtype.kind in "fc"
]


@pytest.mark.parametrize(("case", "dtype"), FLOATS, ids=identify)
def test_tangents_have_the_dtype_of_their_value(case: Case, dtype: str) -> None:
    tensors = [dn.tensor(a) for a in drawn(case, dtype)]
    is_float = [t.dtype.kind in "fc" for t in tensors]
    tangents = [
        dn.ones(t.shape, t.dtype) if f else None for t, f in zip(tensors, is_float, strict=True)
    ]
    values, pushed = dn.jvp(lambda *args: case.run(*args), tensors, tangents)
    for value, tangent in zip(dn.tree.leaves(values), dn.tree.leaves(pushed), strict=True):
        assert tangent.shape == value.shape
        assert tangent.dtype == (value.dtype if value.dtype.kind in "fc" else "f32")


# loops and branches


def newton(a: dn.Tensor) -> dn.Tensor:
    """The square root, by as many steps as are needed."""
    state = dn.while_(
        (a, dn.tensor(1.0, dtype="f64"), 0),
        lambda s: dn.any(dn.abs(s[0] * s[0] - a) > 1e-12),
        lambda s: ((s[0] + a / s[0]) / 2, s[1] * 2, s[2] + 1),
    )
    return state[0]


def test_a_loop_whose_trips_depend_on_values() -> None:
    at = np.array([2.0, 9.0, 0.5])
    value, tangent = dn.jvp(newton, (at,), (np.ones(3),))
    np.testing.assert_allclose(value.to_numpy(), np.sqrt(at))
    np.testing.assert_allclose(tangent.to_numpy(), 0.5 / np.sqrt(at), rtol=1e-9)


def test_tangents_of_captures_states_and_scanned_values() -> None:
    def run(x: dn.Tensor, w: dn.Tensor) -> dn.Tensor:
        zeros = dn.broadcast(dn.f64(0), (3,))
        last, outputs = dn.scan(zeros, x, lambda c, row: (dn.tanh(c * w + row),) * 2)
        return dn.sum(outputs * outputs) + last[0]

    x, w = np.random.default_rng(1).normal(size=(5, 3)), np.array([0.5, -0.3, 0.8])
    tx, tw = np.random.default_rng(2).normal(size=(5, 3)), np.array([1.0, 2.0, -1.0])
    _, tangent = dn.jvp(run, (x, w), (tx, tw))
    gx, gw = dn.grad(run, argnums=(0, 1))(dn.tensor(x), dn.tensor(w))
    want = (gx.to_numpy() * tx).sum() + (gw.to_numpy() * tw).sum()
    np.testing.assert_allclose(float(tangent), want, rtol=1e-12)
    only = dn.jvp(run, (x, w), (None, tw))[1]
    np.testing.assert_allclose(float(only), (gw.to_numpy() * tw).sum(), rtol=1e-12)


@pytest.mark.parametrize("at", [-2.0, 2.0])
def test_the_branch_that_runs(at: float) -> None:
    def fun(x: dn.Tensor) -> dn.Tensor:
        return dn.cond([(x > 0, lambda: x**3)], lambda: dn.tensor(4.0, dtype="f64"))

    value, tangent = dn.jvp(fun, (np.float64(at),), (np.float64(1.0),))
    assert (float(value), float(tangent)) == ((8.0, 12.0) if at > 0 else (4.0, 0.0))


def test_hooks_run_once() -> None:
    seen: list[float] = []

    def fun(x: dn.Tensor) -> dn.Tensor:
        return dn.sin(dn.hook(x * 2, lambda v: seen.append(float(v))))

    _, tangent = dn.jvp(fun, (0.0,), (1.0,))
    assert (float(tangent), seen) == (2.0, [0.0])


def test_a_million_trips_take_no_memory() -> None:
    def fun(x: dn.Tensor) -> dn.Tensor:
        return dn.for_(x, range(1_000_000), lambda s, _: s + dn.sin(s) * 1e-6)

    value, tangent = dn.jvp(fun, (np.ones(8),), (np.ones(8),))
    step = 1e-6
    difference = (fun(dn.tensor(np.ones(8) + step)) - fun(dn.tensor(np.ones(8) - step))) / (
        2 * step
    )
    np.testing.assert_allclose(tangent.to_numpy(), difference.to_numpy(), rtol=1e-6)
    assert value.shape == (8,)


# rules of one's own


def test_the_transpose_of_a_gradient_rule() -> None:
    def scaled(x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return dn.custom_grad(x * y, [x, y], lambda g: [g * 3.0 * y, g * dn.sin(x)])

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    _, tangent = dn.jvp(scaled, (x, y), (np.ones(2), np.full(2, 10.0)))
    np.testing.assert_allclose(tangent.to_numpy(), 3.0 * y + 10.0 * np.sin(x), rtol=1e-12)


def test_a_rule_that_is_not_linear_is_refused() -> None:
    def clipped(x: dn.Tensor) -> dn.Tensor:
        return dn.custom_grad(x * x, [x], lambda g: [dn.clip(g * 2.0 * x, -1.0, 1.0)])

    with pytest.raises(dn.TraceError, match="passes through it; its rule is not linear"):
        dn.jvp(clipped, (3.0,), (1.0,))
    assert float(dn.jacobian(clipped)(3.0)) == 1.0
    with pytest.raises(dn.TraceError, match="not linear"):
        dn.jacfwd(clipped)(3.0)


# containers, orders, axes


class Model(NamedTuple):
    w: Any
    steps: Any


@pytest.mark.parametrize("fun", [dn.maximum, dn.minimum])
def test_neither_operand_wins_against_nan(fun: Any) -> None:
    for a, b in [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan)]:
        assert float(dn.jvp(fun, (a, b), (3.0, 5.0))[1]) == 0.0
        assert [float(g) for g in dn.grad(fun, argnums=(0, 1))(a, b)] == [0.0, 0.0]


def softplus(x: Any) -> Any:
    """Its value overflows, its derivative does not."""
    value = dn.log(dn.exp(x) + 1.0)
    return dn.custom_jvp(value, [x], lambda t: t * (1.0 - 1.0 / (dn.exp(x) + 1.0)))


def test_a_rule_for_tangents_serves_both_modes() -> None:
    assert float(dn.jvp(softplus, (100.0,), (2.0,))[1]) == 2.0
    assert float(dn.grad(softplus)(100.0)) == 1.0
    x = dn.tensor([-1.0, 0.5, 3.0], dtype="f64")
    slope = 1 / (1 + np.exp(-x.to_numpy()))
    np.testing.assert_allclose(dn.grad(softplus)(x).to_numpy(), slope, rtol=1e-14)
    np.testing.assert_allclose(dn.jacfwd(softplus)(x).to_numpy(), np.diag(slope), rtol=1e-14)
    np.testing.assert_allclose(dn.jacrev(softplus)(x).to_numpy(), np.diag(slope), rtol=1e-14)
    np.testing.assert_allclose(dn.vmap(dn.grad(softplus))(x).to_numpy(), slope, rtol=1e-14)
    curvature = slope * (1 - slope)
    for second in (dn.grad(dn.grad(softplus)), dn.vmap(dn.jacfwd(dn.jacfwd(softplus)))):
        np.testing.assert_allclose(second(x).to_numpy(), curvature, rtol=1e-13)


def test_a_rule_for_tangents_of_containers() -> None:
    def fun(x: Any, y: Any) -> Any:
        value = {"product": x * y, "sine": dn.sin(x)}
        rule = lambda s, t: {"product": s * y + x * t, "sine": 7.0 * s}  # noqa: E731
        return dn.custom_jvp(value, [x, y], rule)

    _, tangent = dn.jvp(fun, (2.0, 3.0), (1.0, 10.0))
    assert (float(tangent["product"]), float(tangent["sine"])) == (23.0, 7.0)
    _, pull = dn.vjp(fun, 2.0, 3.0)
    assert [float(g) for g in pull({"product": 1.0, "sine": 1.0})] == [10.0, 2.0]
    # A rule may give one number for all elements, and read other vectorized values than its inputs.
    v = dn.tensor([1.0, 2.0, 3.0])
    same = lambda x: dn.custom_jvp(x * 2.0, [x], lambda t: t.sum())  # noqa: E731
    assert dn.jvp(same, (v,), (v,))[1].to_list() == [6.0, 6.0, 6.0]
    assert dn.grad(same)(v).to_list() == [3.0, 3.0, 3.0]
    scaled = lambda x: dn.custom_jvp(dn.tensor(1.0), [dn.tensor(1.0)], lambda t: t * x)  # noqa: E731
    assert dn.vmap(scaled)(v).to_list() == [1.0, 1.0, 1.0]


def test_a_rule_for_each_mode_need_not_be_linear() -> None:
    def square(x: Any) -> Any:
        clipped = lambda t: dn.clip(t * 2.0 * x, -1.0, 1.0)  # noqa: E731
        return dn.custom_grad(x * x, [x], lambda g: [clipped(g)], jvp=clipped)

    assert float(dn.grad(square)(3.0)) == 1.0
    assert float(dn.jvp(square, (3.0,), (1.0,))[1]) == 1.0
    graph = dn.compile(square, [dn.tensor(1.0)])
    assert float(graph(dn.tensor(3.0))) == 9.0

    def limited(x: Any) -> Any:
        return dn.custom_jvp(x, [x], lambda t: dn.clip(t, -1.0, 1.0))

    assert float(dn.jvp(limited, (3.0,), (5.0,))[1]) == 1.0
    with pytest.raises(dn.TraceError, match="not linear in the tangents"):
        dn.grad(limited)(3.0)


def test_integers_have_no_tangents() -> None:
    model = Model(dn.tensor([1.0, 2.0]), dn.tensor(3))
    value, tangent = dn.jvp(
        lambda m: m._replace(w=m.w * m.steps), (model,), (Model(dn.tensor([1.0, 0.0]), None),)
    )
    assert (value.w.to_list(), value.steps.dtype) == ([3.0, 6.0], "s32")
    assert (tangent.w.to_list(), float(tangent.steps)) == ([3.0, 0.0], 0.0)
    _, nothing = dn.jvp(lambda m, x: m.w * x, (model, 2.0), (None, 1.0))
    assert nothing.to_list() == [1.0, 2.0]
    # Arguments that are no numbers have none either.
    chosen = dn.jvp(lambda how, x: x * x if how == "square" else x, ("square", 3.0), (None, 1.0))
    assert float(chosen[1]) == 6.0


def test_the_order_of_keys_is_free() -> None:
    at, along = {"a": 2.0, "b": {"c": 3.0}}, {"b": {"c": 10.0}, "a": 1.0}
    fun = lambda p: p["a"] * p["b"]["c"]  # noqa: E731
    assert float(dn.jvp(fun, (at,), (along,))[1]) == 23.0
    assert float(dn.jvp(fun, (at,), ({"b": None, "a": 1.0},))[1]) == 3.0


def test_casts_to_integers_pass_as_in_reverse() -> None:
    _, tangent = dn.jvp(lambda x: dn.as_type(x, "s32") * 3, (1.7,), (1.0,))
    assert (float(tangent), str(tangent.dtype)) == (3.0, "f32")


def test_has_aux() -> None:
    value, tangent, rest = dn.jvp(lambda x: (x * x, {"n": x + 1}), (3.0,), (1.0,), has_aux=True)
    assert (float(value), float(tangent), float(rest["n"])) == (9.0, 6.0, 4.0)
    value, back, rest = dn.vjp(lambda x: (x * x, {"n": x + 1}), 3.0, has_aux=True)
    assert (float(value), float(back(1.0)[0]), float(rest["n"])) == (9.0, 6.0, 4.0)
    with pytest.raises(dn.OptionError, match="has_aux is True"):
        dn.jvp(lambda x: x, (3.0,), (1.0,), has_aux=True)


def test_orders_and_modes_agree() -> None:
    def fun(x: dn.Tensor) -> dn.Tensor:
        return dn.sum(dn.sin(x) * dn.cumulative_sum(x * x, axis=0)) * dn.max(x[0], x[1])

    x, v = dn.tensor(np.array([0.3, 0.7, -1.1])), dn.tensor(np.array([1.0, -2.0, 0.5]))
    hessian = dn.hessian(fun)(x).to_numpy()
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    twice = dn.jacrev(dn.jacrev(fun))(x).to_numpy()
    forward = dn.jacfwd(dn.jacfwd(fun))(x).to_numpy()
    np.testing.assert_allclose(hessian, twice, rtol=1e-12)
    np.testing.assert_allclose(hessian, forward, rtol=1e-12)
    (product,) = dn.hvp(fun, (x,), (v,))
    np.testing.assert_allclose(product.to_numpy(), hessian @ v.to_numpy(), rtol=1e-12)
    # Reverse over forward.
    reverse = dn.grad(lambda x: dn.jvp(fun, (x,), (v,))[1])(x)
    np.testing.assert_allclose(reverse.to_numpy(), hessian @ v.to_numpy(), rtol=1e-12)


def test_a_jacobian_over_containers() -> None:
    def fun(p: dict[str, dn.Tensor], s: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
        return dn.outer(p["a"], p["b"]) * s, p["a"] + s

    p = {"a": dn.tensor([1.0, 2.0]), "b": dn.tensor([3.0, 4.0, 5.0])}
    forward = dn.jacfwd(fun, argnums=(0, 1))(p, 2.0)
    reverse = dn.jacrev(fun, argnums=(0, 1))(p, 2.0)
    pairs = zip(dn.tree.leaves(forward), dn.tree.leaves(reverse), strict=True)
    for ours, other in pairs:
        assert ours.shape == other.shape
        np.testing.assert_allclose(ours.to_numpy(), other.to_numpy())
    assert dn.tree.structure(forward) == dn.tree.structure(reverse)


def test_jacobians_of_complex_numbers() -> None:
    z = dn.tensor(np.array([1.0 + 2.0j, -0.5j]))
    want = np.diag(np.exp(z.to_numpy()))
    np.testing.assert_allclose(dn.jacfwd(dn.exp)(z).to_numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(dn.jacobian(dn.exp)(z).to_numpy(), want, rtol=1e-12)
    # Of a real function in reverse, as its gradient.
    slope = dn.jacobian(dn.abs)(z).to_numpy()
    np.testing.assert_allclose(slope, np.diag(np.conj(z.to_numpy()) / np.abs(z.to_numpy())))
    # Of a complex function of real numbers forward.
    turned = dn.jacfwd(lambda t: dn.exp(1j * t))(dn.tensor(np.array([0.3])))
    np.testing.assert_allclose(turned.to_numpy(), [[1j * np.exp(0.3j)]])


def test_batches_of_tangents() -> None:
    x = dn.tensor(np.array([1.0, 2.0, 3.0]))
    basis = dn.vectorize(dn.eye(3, dtype="f64"), "direction")
    value, tangents = dn.jvp(lambda x: dn.cumulative_sum(x * x, axis=0), (x,), (basis,))
    assert value.to_list() == [1.0, 5.0, 14.0]
    want = np.tril(np.ones((3, 3))) * (2 * x.to_numpy())
    np.testing.assert_allclose(dn.devectorize(tangents).to_numpy().T, want)
    # Each position of a loop has its own tangents, and one value.
    value, tangents = dn.jvp(newton, (x,), (basis,))
    np.testing.assert_allclose(
        dn.devectorize(tangents).to_numpy(), np.diag(0.5 / np.sqrt(x.to_numpy())), atol=1e-12
    )
    assert value.vectorized_axes == {} or not value.vectorized_axes
    mapped = dn.vmap(lambda t: dn.jvp(lambda x: x**3, (x,), (t,))[1])(dn.eye(3, dtype="f64"))
    np.testing.assert_allclose(mapped.to_numpy(), np.diag(3 * x.to_numpy() ** 2))


def test_nested_directions_on_one_axis() -> None:
    """The Laplacian, for each position: the second derivative along each direction, with itself."""

    def fun(x: dn.Tensor) -> dn.Tensor:
        return dn.exp(-dn.sum(x * x)) * dn.sin(x[0])

    def laplacian(x: dn.Tensor) -> dn.Tensor:
        def second(e: dn.Tensor) -> dn.Tensor:
            return dn.jvp(lambda x: dn.jvp(fun, (x,), (e,))[1], (x,), (e,))[1]

        return dn.sum(dn.vmap(second)(np.eye(3)))

    points = np.random.default_rng(4).normal(size=(4, 3))
    want = [float(dn.trace(dn.hessian(fun)(dn.tensor(x)))) for x in points]
    np.testing.assert_allclose([float(laplacian(dn.tensor(x))) for x in points], want, rtol=1e-12)
    np.testing.assert_allclose(dn.vmap(laplacian)(dn.tensor(points)).to_numpy(), want, rtol=1e-12)


def test_linearize() -> None:
    calls: list[float] = []

    def fun(x: dn.Tensor, n: dn.Tensor, w: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
        y = dn.hook(dn.tanh(dn.matmul(w, x)), lambda v: calls.append(1.0))
        z = dn.while_((y, 0), lambda s: s[1] < n, lambda s: (dn.sin(s[0]) * x[0], s[1] + 1))[0]
        return dn.cond([(x[0] > 0, lambda: z * w[0])], lambda: z), x[:1] * n

    x, n = np.array([0.5, -0.3]), np.array(3)
    w = np.array([[1.0, 2.0], [-0.5, 0.8]])
    value, push = dn.linearize(fun, x, n, w)
    plain = fun(dn.tensor(x), dn.tensor(n), dn.tensor(w))
    for ours, want in zip(value, plain, strict=True):
        np.testing.assert_allclose(ours.to_numpy(), want.to_numpy())
    assert len(calls) == 2
    for seed in range(3):
        tx, tw = direction(x, seed), direction(w, seed + 10)
        for along in ((tx, None, tw), (None, None, tw), (tx, None, None)):
            got, want = push(*along), dn.jvp(fun, (x, n, w), along)[1]
            for ours, other in zip(got, want, strict=True):
                np.testing.assert_allclose(ours.to_numpy(), other.to_numpy(), rtol=1e-12)
    inside = dn.jit(lambda x, t: dn.linearize(fun, x, n, w)[1](t, None, None))
    np.testing.assert_allclose(
        inside(x, tx)[0].to_numpy(), dn.jvp(fun, (x, n, w), (tx, None, None))[1][0].to_numpy()
    )
    mapped = dn.vmap(lambda t: push(t, None, None)[0])(np.eye(2))
    np.testing.assert_allclose(
        mapped.to_numpy().T,
        dn.jacrev(lambda x: fun(x, n, w)[0])(dn.tensor(x)).to_numpy(),
        rtol=1e-12,
    )
    with pytest.raises(dn.DTypeError, match="integers have none"):
        push(tx, 1.0, tw)
    value, push, rest = dn.linearize(lambda x: (x * x, x + 1), 3.0, has_aux=True)
    assert (float(value), float(push(1.0)), float(rest)) == (9.0, 6.0, 4.0)


def test_names_are_those_of_the_value() -> None:
    x = dn.tensor([[1.0, 2.0]], names=["row", "col"])
    value, tangent = dn.jvp(lambda x: dn.transpose(x), (x,), (dn.tensor([[1.0, 1.0]]),))
    assert value.names == tangent.names == ("col", "row")


def test_plain_numbers_are_exact() -> None:
    x = dn.tensor([0.3], dtype="f64")
    value, tangent = dn.jvp(lambda s: x * s * s, (0.1,), (0.1,))
    assert value.to_list() == [0.3 * 0.1 * 0.1]
    np.testing.assert_allclose(tangent.to_list(), [2 * 0.3 * 0.1 * 0.1], rtol=1e-15)


# wrong tangents

X = dn.tensor([1.0, 2.0])
WRONG = {
    "another shape": (
        lambda: dn.jvp(dn.sin, (X,), (dn.tensor([1.0]),)),
        dn.ShapeError,
        "jvp: shapes",
    ),
    "another dtype": (
        lambda: dn.jvp(dn.sin, (X,), (dn.tensor([1.0, 1.0], dtype="f64"),)),
        dn.DTypeError,
        r"the tangent of f32\[2\] is f64\[2\], it must have that dtype",
    ),
    "an integer": (
        lambda: dn.jvp(lambda n: n * 2, (dn.tensor(3),), (dn.tensor(1),)),
        dn.DTypeError,
        "integers have none; pass None, or convert the value with as_type",
    ),
    "an integer number": (
        lambda: dn.jvp(lambda n: n * 2, (3,), (1,)),
        dn.DTypeError,
        "integers have none",
    ),
    "another structure": (
        lambda: dn.jvp(lambda p: p[0], ((X, X),), (X,)),
        dn.ContainerError,
        "tangent 0 and argument 0 differ in structure",
    ),
    "another number": (
        lambda: dn.jvp(dn.sin, (X,), (X, X)),
        dn.OptionError,
        "the number of tangents is 2",
    ),
    "no tuple": (
        lambda: dn.jvp(dn.sin, X, X),
        dn.OptionError,
        "primals is a Tensor, a tuple with one entry",
    ),
    "no derivative": (
        lambda: dn.jvp(lambda x: dn.quotient(dn.as_type(x, "s32"), 2), (X,), (X,)),
        dn.TraceError,
        "quotient: no derivative passes through it; use divide",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tangents(name: str) -> None:
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()
