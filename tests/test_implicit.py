"""``dn.implicit`` beside closed forms, SciPy and finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.optimize

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

SOLVERS = ["gmres", "bicgstab", "cg", "dense"]
RNG = np.random.default_rng(11)


def forward(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of a function of a number, in forward mode."""
    return lambda t: dn.jvp(f, (t,), (dn.tensor(1.0, dtype="f64"),))[1]


def number(value: float) -> dn.Tensor:
    return dn.tensor(value, dtype="f64")


def cube_root(theta: Any, solver: str = "gmres") -> Any:
    """The root of ``x**3 = theta`` by bisection, which has no derivative of its own."""
    low, high = dn.stop_grad(0.0 * theta), dn.stop_grad(theta + 1.0)
    for _ in dn.range(60):
        middle = (low + high) / 2.0
        is_low = middle**3 < theta
        low, high = dn.select(is_low, middle, low), dn.select(is_low, high, middle)
    return dn.implicit(low, lambda x: x**3 - theta, solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_derivatives_of_a_root_to_the_third_order(solver: str) -> None:
    root = dn.defn(lambda theta: cube_root(theta, solver))
    theta = 5.0
    powers = [
        (1 / 3) * theta ** (-2 / 3),
        (-2 / 9) * theta ** (-5 / 3),
        (10 / 27) * theta ** (-8 / 3),
    ]
    for first in (dn.grad, forward):
        np.testing.assert_allclose(float(first(root)(number(theta))), powers[0], rtol=1e-9)
        for second in (dn.grad, forward):
            got = float(second(first(root))(number(theta)))
            np.testing.assert_allclose(got, powers[1], rtol=1e-9)
    for modes in [(dn.grad, dn.grad, dn.grad), (forward, dn.grad, forward)]:
        f = root
        for mode in modes:
            f = mode(f)
        np.testing.assert_allclose(float(f(number(theta))), powers[2], rtol=1e-8)
    np.testing.assert_allclose(float(dn.hessian(root)(number(theta))), powers[1], rtol=1e-9)


def test_a_value_of_the_host() -> None:
    """SciPy finds the root, outside of any trace."""
    a, b = RNG.normal(size=(4, 4)) / 4 + np.eye(4), RNG.normal(size=4)

    def f(x: Any, b: Any, tanh: Any = np.tanh) -> Any:
        return a @ x + 0.3 * tanh(x) - b

    def solve(b: np.ndarray) -> np.ndarray:
        return scipy.optimize.fsolve(lambda x: f(x, b), np.zeros(4), xtol=1e-13)

    root = solve(b)
    got = dn.jacrev(lambda b: dn.implicit(root, lambda x: f(x, b, dn.tanh)))(b)
    want = np.linalg.inv(a + np.diag(0.3 / np.cosh(root) ** 2))
    np.testing.assert_allclose(got.to_numpy(), want, atol=1e-8)
    got = dn.jacfwd(lambda b: dn.implicit(root, lambda x: f(x, b, dn.tanh)))(b)
    np.testing.assert_allclose(got.to_numpy(), want, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fixed_point(solver: str) -> None:
    s = RNG.normal(size=(6, 6))
    w = (s + s.T) / 12
    b = RNG.normal(size=6)

    def point(w: Any, b: Any) -> Any:
        x = dn.stop_grad(0.0 * b)
        for _ in dn.range(200):
            x = dn.tanh(w @ x + b)
        # Minus the map of the other examples: positive definite, for conjugate gradients.
        return dn.implicit(x, lambda x: dn.atanh(x) - w @ x - b, solver=solver, rtol=1e-12)

    loss = dn.defn(lambda w, b: dn.sum(point(w, b) ** 2))
    got = dn.grad(loss, argnums=(0, 1))(w, b)

    def oracle(w: np.ndarray, b: np.ndarray) -> float:
        x = np.zeros(6)
        for _ in range(400):
            x = np.tanh(w @ x + b)
        return float((x**2).sum())

    for gradient, argument in zip(got, (w, b), strict=True):
        want = np.zeros_like(argument)
        for at in np.ndindex(argument.shape):
            shift = np.zeros_like(argument)
            shift[at] = 1e-6
            above = oracle(w + shift, b) if argument is w else oracle(w, b + shift)
            below = oracle(w - shift, b) if argument is w else oracle(w, b - shift)
            want[at] = (above - below) / 2e-6
        np.testing.assert_allclose(gradient.to_numpy(), want, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_optimum_of_a_ridge_regression(solver: str) -> None:
    x, y = RNG.normal(size=(20, 4)), RNG.normal(size=20)

    def loss(w: Any, x: Any, y: Any, strength: Any) -> Any:
        return dn.sum((x @ w - y) ** 2) / 2 + strength * dn.sum(w**2) / 2

    def optimum(x: Any, y: Any, strength: Any) -> Any:
        w = dn.stop_grad(
            dn.linalg.solve(dn.transpose(x) @ x + strength * dn.eye(4), dn.transpose(x) @ y)
        )
        return dn.implicit(
            w, lambda w: dn.grad(w, lambda w: loss(w, x, y, strength)), solver=solver, rtol=1e-13
        )

    cost = lambda x, y, strength: dn.sum(optimum(x, y, strength) ** 3)  # noqa: E731

    def closed(x: np.ndarray, y: np.ndarray, strength: float) -> float:
        return float((np.linalg.solve(x.T @ x + strength * np.eye(4), x.T @ y) ** 3).sum())

    strength = 0.7
    got_x, got_y, got_strength = dn.grad(cost, argnums=(0, 1, 2))(x, y, number(strength))
    step = 1e-6
    want = (closed(x, y, strength + step) - closed(x, y, strength - step)) / (2 * step)
    np.testing.assert_allclose(float(got_strength), want, rtol=1e-6)
    w = np.linalg.solve(x.T @ x + strength * np.eye(4), x.T @ y)
    u = np.linalg.solve(x.T @ x + strength * np.eye(4), 3 * w**2)
    np.testing.assert_allclose(float(got_strength), -w @ u, rtol=1e-9)
    np.testing.assert_allclose(got_y.to_numpy(), x @ u, atol=1e-9)
    want_x = np.outer(y - x @ w, u) - np.outer(x @ u, w)
    np.testing.assert_allclose(got_x.to_numpy(), want_x, atol=1e-9)
    # The second derivative by the strength: 2 w'' terms, from the closed form.
    second = dn.grad(dn.grad(lambda t: cost(x, y, t)))(number(strength))
    inverse = np.linalg.inv(x.T @ x + strength * np.eye(4))
    w1, w2 = -inverse @ w, 2 * inverse @ inverse @ w
    np.testing.assert_allclose(float(second), (6 * w * w1**2 + 3 * w**2 * w2).sum(), rtol=1e-8)


def test_a_container_of_values() -> None:
    """The intersection of a circle and a line, of different shapes and dtypes."""

    def point(radius: Any) -> Any:
        at = {"x": dn.reshape(radius / 2**0.5, (1, 1)), "y": [dn.as_type(radius / 2**0.5, "f32")]}

        def condition(at: Any) -> Any:
            x, y = at["x"], dn.as_type(at["y"][0], "f64")
            circle = x**2 + y**2 - radius**2
            line = dn.as_type(dn.reshape(x, ()) - y, "f32")
            return {"y": [line], "x": circle}

        return dn.implicit(dn.stop_grad(at), condition, rtol=1e-6)

    f = lambda r: dn.sum(point(r)["x"]) + 2.0 * dn.as_type(point(r)["y"][0], "f64")  # noqa: E731
    for got in (dn.grad(f)(number(3.0)), forward(f)(number(3.0))):
        np.testing.assert_allclose(float(got), 3 / 2**0.5, rtol=1e-5)


@pytest.mark.parametrize("solver", ["gmres", "bicgstab", "dense"])
def test_complex_roots(solver: str) -> None:
    """``x**2 = c`` is holomorphic, ``x |x| = c`` is not."""
    c = np.array([1.0 + 2.0j, -3.0 + 0.5j, 2.0j])
    weights = np.array([1.0 - 1.0j, 0.5j, 2.0])
    cases: list[tuple[Any, Any]] = [
        (np.sqrt, lambda x, c: x * x - c),
        (lambda c: c / np.sqrt(abs(c)), lambda x, c: x * dn.as_type(dn.abs(x), "c128") - c),
    ]
    for closed, condition in cases:
        root = closed(c)

        def loss(c: Any, root: Any = root, condition: Any = condition) -> Any:
            x = dn.implicit(root, lambda x: condition(x, c), solver=solver, rtol=1e-12)
            return dn.sum(dn.real(x * weights))

        want, step = np.zeros(3, complex), 1e-6
        for at in range(3):
            for unit in (1, 1j):
                shift = np.zeros(3, complex)
                shift[at] = step * unit
                change = np.real(np.sum((closed(c + shift) - closed(c - shift)) * weights))
                want[at] += np.conj(unit) * change / (2 * step)
        np.testing.assert_allclose(dn.grad(loss)(c).to_numpy(), want, atol=1e-8)
        tangent = np.array([1.0j, 1.0 + 1.0j, 0.3])
        _, got = dn.jvp(
            lambda c, root=root, condition=condition: dn.implicit(
                root, lambda x: condition(x, c), solver=solver, rtol=1e-12
            ),
            (c,),
            (tangent,),
        )
        want = (closed(c + step * tangent) - closed(c - step * tangent)) / (2 * step)
        np.testing.assert_allclose(got.to_numpy(), want, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_each_position_of_a_vectorized_axis_is_a_system(solver: str) -> None:
    theta = np.array([1.0, 8.0, 27.0, 0.0])

    def root(theta: Any, x: Any) -> Any:
        return dn.implicit(x, lambda x: x**3 - theta, solver=solver)

    x = np.cbrt(theta)
    slopes = dn.vmap(lambda theta, x: dn.grad(lambda t: root(t, x))(theta))(theta, x).to_numpy()
    np.testing.assert_allclose(slopes[:3], x[:3] ** -2 / 3, rtol=1e-9)
    # The last system is singular, and none of the others is affected.
    assert not np.isfinite(slopes[3])
    batched = dn.grad(lambda t: dn.sum(dn.vmap(root)(t, x)[:3]))(theta).to_numpy()
    np.testing.assert_allclose(batched[:3], x[:3] ** -2 / 3, rtol=1e-9)
    # The value lacks the axis that the condition brings in.
    same = dn.vmap(
        lambda a: dn.grad(lambda t: dn.implicit(number(2.0), lambda x: a * (x**3 - t)))(number(8.0))
    )
    np.testing.assert_allclose(same(np.array([1.0, 5.0])).to_numpy(), [1 / 12] * 2, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_singular_system_gives_no_number(solver: str) -> None:
    singular = dn.tensor(np.diag([1.0, 0.0]))
    root = dn.tensor(np.zeros(2))
    f = lambda b: dn.implicit(root, lambda x: singular @ x - b, solver=solver)  # noqa: E731
    assert not np.isfinite(dn.grad(f)(np.zeros(2)).to_numpy()).all()
    assert not np.isfinite(dn.jvp(f, (np.zeros(2),), (np.ones(2),))[1].to_numpy()).all()
    if solver != "dense":
        with dn.checks("nan"), pytest.raises(dn.NonFiniteError):
            dn.grad(f)(np.zeros(2))
        # A consistent system has solutions, one of which is a derivative.
        tangent = dn.jvp(f, (np.zeros(2),), (np.array([1.0, 0.0]),))[1]
        np.testing.assert_allclose(tangent.to_numpy()[0], 1.0)


def test_the_iterations_are_not_differentiated() -> None:
    """Neither through the value nor to what it was computed from."""

    def f(theta: Any) -> Any:
        return dn.implicit(theta**2, lambda x: x - 3.0 * dn.stop_grad(theta) * theta)

    assert float(dn.grad(f)(number(3.0))) == pytest.approx(9.0)
    assert float(forward(f)(number(3.0))) == pytest.approx(9.0)
    assert float(f(number(3.0))) == 9.0
    text = str(dn.debug_expr(dn.jit(f))(number(3.0)))
    assert "while" not in text


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_the_tolerance_fits_the_dtype(dtype: str) -> None:
    theta, x = dn.tensor(8.0, dtype=dtype), dn.tensor(2.0, dtype=dtype)
    slope = dn.grad(lambda t: dn.implicit(x, lambda x: x * x * x - t))(theta)
    assert str(slope.dtype) == dtype
    np.testing.assert_allclose(float(slope), 1 / 12, rtol=0.02)


def test_a_condition_with_loops_and_branches() -> None:
    def condition(x: Any, theta: Any) -> Any:
        power = 0.0 * x + 1.0
        for _ in dn.range(3):
            power = power * x
        return dn.cond([(theta > 0.0, lambda: power - theta)], lambda: power + theta)

    f = lambda theta: dn.implicit(number(2.0), lambda x: condition(x, theta))  # noqa: E731
    for derivative in (dn.grad, forward):
        np.testing.assert_allclose(float(derivative(f)(number(8.0))), 1 / 12, rtol=1e-9)
        np.testing.assert_allclose(float(derivative(f)(number(-8.0))), -1 / 12, rtol=1e-9)


def test_refusals() -> None:
    v = dn.tensor(np.ones(3))
    for call, error, text in [
        (lambda: dn.implicit(v, lambda x: x, solver="lu"), dn.OptionError, "implicit: solver is"),
        (lambda: dn.implicit(v, lambda x: x, rtol=-1.0), dn.OptionError, "implicit: rtol is -1"),
        (lambda: dn.implicit(v, lambda x: x, maxiter=0), dn.OptionError, "implicit: maxiter is 0"),
        (lambda: dn.implicit(v, lambda x: x, restart=0), dn.OptionError, "implicit: restart is 0"),
        (
            lambda: dn.implicit(dn.iota((3,)), lambda x: x),
            dn.DTypeError,
            "implicit: a value is s32",
        ),
        (
            lambda: dn.implicit(v, lambda x: x[:2]),
            dn.ShapeError,
            "implicit: the condition gives f64.2.",
        ),
        (
            lambda: dn.implicit(v, lambda x: dn.as_type(x, "f32")),
            dn.DTypeError,
            "implicit: the condition gives f32",
        ),
        (lambda: dn.implicit(v, v), dn.OptionError, "implicit: condition is"),
        (lambda: dn.implicit(v, lambda x: (x, x)), dn.ContainerError, "implicit: the condition"),
        (
            lambda: dn.implicit((v, v), lambda x: (x[0],)),
            dn.ContainerError,
            "implicit: the condition",
        ),
    ]:
        with pytest.raises(error, match=f"^{text}"):
            call()
