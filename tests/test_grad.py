"""Every differentiable row against central differences in f64, and the rules at their edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases import Case, all_cases, apart, store, values
from cases.dtypes import is_complex, is_integer

CASES = [case for case in all_cases() if case.grad is not None]
FLOWS = [case for case in CASES if case.grad == "flows"]
COMPLEX = [case for case in FLOWS if case.grad_complex and "c128" in case.dtypes]


def identify(value: object) -> str:
    return str(value)


def weights(result: dn.Tensor, seed: int) -> np.ndarray:
    """A cotangent with distinct elements; complex if the result is."""
    rng = np.random.default_rng(seed)
    drawn = rng.uniform(0.5, 1.5, size=result.shape)
    if is_complex(str(result.dtype)):
        return drawn + 1j * rng.uniform(-1.0, 1.0, size=result.shape)
    return drawn


def loss(case: Case, *args: dn.Tensor) -> dn.Tensor:
    result = case.run(*args)
    return dn.sum(dn.real(result * weights(result, 7)))


def numeric(case: Case, arrays: list[np.ndarray], position: int, step: float) -> np.ndarray:
    """Central differences; for a complex variable along both axes: d/dx - i d/dy.

    The host computes them, whatever compiler and backend compute the gradient.
    """
    array = arrays[position]
    out = np.zeros(array.shape, array.dtype)
    directions = (1.0, 1j) if array.dtype.kind == "c" else (1.0,)
    for index in np.ndindex(array.shape):
        for direction in directions:
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[position][index] += sign * step * direction
                with dn.options(backend="cpu", compiler="evaluator"):
                    ends.append(float(loss(case, *[dn.tensor(a) for a in moved])))
            slope = (ends[0] - ends[1]) / (2 * step)
            out[index] += slope if direction == 1.0 else -1j * slope
    return out


def check(case: Case, dtype: str) -> None:
    arrays = case.arrays(
        dtype, draw=case.grad_draw or (apart if case.draw is values else case.draw)
    )
    arrays = [np.array(a) for a in arrays]
    tensors = [dn.tensor(a) for a in arrays]
    result = case.run(*tensors)
    single = str(result.dtype) in ("f32", "c64")
    step, tolerance = (2.0**-4, 2e-3) if single else (1e-6, 2e-6)
    for position in case.grad_args or range(len(arrays)):
        got = dn.grad(lambda *args: loss(case, *args), argnums=position)(*tensors)
        assert got.shape == arrays[position].shape
        want = numeric(case, arrays, position, step)
        error = np.abs(got.to_numpy() - want)
        assert (error <= tolerance * np.maximum(1.0, np.abs(want))).all(), (
            f"argument {position}: got\n{got.to_numpy()}\nwant\n{want}"
        )


@pytest.mark.parametrize("case", FLOWS, ids=identify)
def test_gradient(case: Case) -> None:
    check(case, "f64")


@pytest.mark.parametrize("case", COMPLEX, ids=identify)
def test_complex_gradient(case: Case) -> None:
    check(case, "c128")


@pytest.mark.parametrize("case", [c for c in CASES if c.grad == "zero"], ids=identify)
def test_no_gradient_flows(case: Case) -> None:
    dtype = "f64" if "f64" in case.dtypes else "s32"
    tensors = [dn.tensor(a) for a in case.arrays(dtype, draw=case.grad_draw or case.draw)]
    for position in range(len(tensors)):
        got = dn.grad(lambda *args: dn.sum(case.run(*args)), argnums=position)(*tensors)
        assert got.shape == tensors[position].shape
        assert not got.to_numpy().any()


@pytest.mark.parametrize("case", [c for c in CASES if c.grad == "refused"], ids=identify)
def test_gradient_is_refused(case: Case) -> None:
    tensors = [dn.tensor(a) for a in case.arrays("s32")]
    with pytest.raises(dn.TraceError, match=f"{case.name}: no derivative passes through it"):
        dn.grad(lambda *args: dn.sum(case.run(*args)))(*tensors)


def full(number: float, shape: tuple[int, ...], dtype: str | dn.DType) -> dn.Tensor:
    return dn.broadcast(dn.tensor(number, dtype=dtype), shape)


DTYPES = ("u8", "s32", "f8_e5m2", "f16", "bf16", "f32", "f64", "c64", "c128")
# The bounds that clip's row draws for its gradient are not integers.
TYPED = [
    (case, dtype)
    for case in FLOWS
    for dtype in DTYPES
    if dtype in case.dtypes and not (case.name == "clip" and is_integer(dtype))
]


@pytest.mark.parametrize(("case", "dtype"), TYPED, ids=identify)
def test_gradients_have_the_dtype_of_their_variable(case: Case, dtype: str) -> None:
    if is_complex(dtype) and not case.grad_complex:
        return
    draw = case.grad_draw or (apart if case.draw is values else case.draw)
    arrays = case.arrays(dtype, draw=draw)
    tensors = [dn.tensor(a) for a in arrays]
    expected = "f32" if is_integer(dtype) else dtype
    for position in case.grad_args or range(len(arrays)):
        got = dn.grad(lambda *args: dn.sum(dn.real(case.run(*args))), argnums=position)(*tensors)
        assert (str(got.dtype), got.shape) == (expected, arrays[position].shape), position


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    """It is that of the variable, whatever other operands there are; for integers it is f32."""
    x = dn.tensor(store([1, 2], dtype))
    expected = "f32" if is_integer(dtype) else dtype

    functions = {
        "itself": lambda v: dn.sum(dn.real(v * v)),
        "wider": lambda v: dn.sum(dn.real(dn.as_type(v, "c128"))),
        "narrower": lambda v: dn.sum(dn.as_type(dn.real(v), "f16")),
        "beside a wider one": lambda v: dn.sum(dn.real(v * dn.tensor([1.0, 2.0], dtype="f64"))),
        "nothing flows": lambda v: dn.tensor(1.0),
        "a branch": lambda v: dn.cond(
            [(dn.sum(dn.real(v)) > 0, lambda: dn.sum(dn.real(v)))], lambda: dn.sum(dn.real(v)) * 2
        ),
        "a rule": lambda v: dn.sum(
            dn.real(dn.custom_grad(v, [v], lambda g: [dn.as_type(dn.real(g), "f64")]))
        ),
    }
    for name, fun in functions.items():
        gradient = dn.grad(fun)(x)
        assert (str(gradient.dtype), gradient.shape) == (expected, (2,)), name
        _, both = dn.value_and_grad(fun)(x)
        assert str(both.dtype) == expected, name
    _, pull = dn.vjp(lambda v: dn.real(v) * 2)(x)
    assert str(pull(dn.tensor([1.0, 1.0])).dtype) == expected


def test_casts_to_integers_round_no_cotangent() -> None:
    third = 1 / 3
    got = dn.grad(lambda x: third * dn.as_type(dn.as_type(x, "s32"), "f64"))(
        dn.tensor(2.5, dtype="f64")
    )
    assert float(got) == third


SUMS = {
    "used many times": lambda x: sum(dn.sum(x) for _ in range(1000)),
    "a broadcast": lambda x: dn.sum(dn.broadcast(x, (1000,))),
    "a stretched operand": lambda x: dn.sum(x + full(0, (1000,), x.dtype)),
    "gather": lambda x: dn.sum(dn.gather(x, full(0, (1000, 1), "s32"))),
    "take": lambda x: dn.sum(dn.take(x, full(0, (1000,), "s32"))),
    "a window": lambda x: dn.sum(dn.window_sum(dn.pad(x, 0, [(999, 999, 0)]), 1000)),
    "a product of matrices": lambda x: dn.sum(
        dn.dot(full(1, (1000, 1), x.dtype), dn.reshape(x, (1, 1)))
    ),
    "a padding": lambda x: dn.sum(dn.pad(x, dn.reshape(x, ()), [(0, 999, 0)])),
    "a loop": lambda x: repeated(lambda s: s + dn.sum(x), full(0, (), x.dtype), 1000),
}


def repeated(step: Callable[[dn.Tensor], dn.Tensor], state: dn.Tensor, trips: int) -> dn.Tensor:
    return dn.while_((0, state), lambda s: s[0] < trips, lambda s: (s[0] + 1, step(s[1])))[1]


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("name", SUMS)
def test_cotangents_of_small_floats_add_up(name: str, dtype: str) -> None:
    x = dn.tensor(store([1], dtype))
    fun = SUMS[name]
    for gradient in (dn.grad(fun)(x), dn.jit(dn.grad(fun))(x)):
        assert (str(gradient.dtype), gradient.to_numpy().astype(float).tolist()) == (
            dtype,
            [1000.0],
        )


def test_duplicates_in_a_scatter_add_up() -> None:
    places = full(0, (1000, 1), "s32")
    ones = full(1, (1000,), "bf16")
    target = full(0, (2,), "bf16")
    assert dn.indexed_add(target, places, ones).to_list() == [1000.0, 0.0]
    x = dn.tensor(store([1], "bf16"))
    got = dn.grad(lambda x: dn.sum(dn.indexed_add(target, places, dn.broadcast(x, (1000,)))))(x)
    assert got.to_list() == [1000.0]


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "f64"])
def test_a_training_step_keeps_its_dtype(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = dn.tensor(store(rng.normal(size=(16, 3)), dtype))
    w = np.array([1.0, -2.0, 0.5])
    y = dn.tensor(store(x.to_numpy().astype("f8") @ w, dtype))

    @dn.defn
    def train(params: dict[str, dn.Tensor], x: dn.Tensor, y: dn.Tensor) -> dict[str, dn.Tensor]:
        for _ in dn.range(60):
            slope = dn.grad(params, lambda p: dn.mean((x @ p["w"] + p["b"] - y) ** 2))
            params = {name: params[name] - 0.25 * slope[name] for name in params}
        return params

    start = {"w": full(0, (3,), dtype), "b": full(0, (), dtype)}
    found = train(start, x, y)
    assert {name: str(value.dtype) for name, value in found.items()} == {"w": dtype, "b": dtype}
    np.testing.assert_allclose(found["w"].to_numpy().astype("f8"), w, atol=0.05)


def test_names_are_the_variables() -> None:
    x = dn.tensor([[1.0, 2.0]], names=["row", "column"])
    assert dn.grad(lambda v: dn.sum(v * 2.0))(x).names == ("row", "column")


def test_a_result_that_is_no_scalar_is_summed() -> None:
    assert dn.grad(lambda x: x * x)(dn.tensor([1.0, 2.0])).to_list() == [2.0, 4.0]


def test_ties() -> None:
    x, y = dn.tensor([1.0, 2.0]), dn.tensor([1.0, 1.0])
    assert dn.grad(lambda v: dn.max(v, y))(x).to_list() == [0.5, 1.0]
    assert dn.grad(lambda v: dn.min(v, y))(x).to_list() == [0.5, 0.0]
    assert dn.grad(dn.reduce_max)(dn.tensor([1.0, 3.0, 3.0])).to_list() == [0.0, 0.5, 0.5]
    assert dn.grad(dn.abs)(0.0).item() == 1.0
    edges = dn.tensor([-1.0, 0.0, 0.5, 1.0, 2.0])
    assert dn.grad(lambda v: dn.clip(v, 0.0, 1.0))(edges).to_list() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_product_with_zeros() -> None:
    gradient = dn.grad(dn.product)
    assert gradient(dn.tensor([2.0, 0.0, 3.0])).to_list() == [0.0, 6.0, 0.0]
    assert gradient(dn.tensor([0.0, 0.0, 3.0])).to_list() == [0.0, 0.0, 0.0]


def test_pow_at_zero() -> None:
    assert dn.grad(lambda x: x**0)(0.0).item() == 0.0
    assert dn.grad(lambda x: x**2)(0.0).item() == 0.0
    assert dn.grad(lambda p: dn.pow(0.0, p))(2.0).item() == 0.0


def test_casts_to_integers_pass() -> None:
    assert dn.grad(lambda x: dn.as_type(dn.as_type(x, "s32"), "f32") * 3.0)(2.7).item() == 3.0
    assert dn.grad(lambda x: dn.floor(x) * 3.0)(2.7).item() == 0.0


def test_stop_grad_cuts_the_value() -> None:
    assert dn.grad(lambda x: x + dn.stop_grad(x))(3.0).item() == 1.0
    assert dn.grad(lambda x: dn.stop_grad(x * x))(3.0).item() == 0.0


def test_custom_grad() -> None:
    def halved(x: dn.Tensor) -> dn.Tensor:
        return dn.custom_grad(x * x, [x], lambda g: [g * x])

    assert dn.grad(halved)(3.0).item() == 3.0
    assert float(halved(dn.tensor(3.0))) == 9.0
    with pytest.raises(dn.ContainerError, match="custom_grad"):
        dn.grad(lambda x: dn.custom_grad(x * x, [x], lambda g: [g, g]))(3.0)


def test_the_rest_of_a_pair_comes_with_each_derivative() -> None:
    def fun(x: Any) -> Any:
        return dn.sum(x**3), {"square": x * x}

    x = dn.tensor([1.0, 2.0])
    gradient, hessian = [3.0, 12.0], [[6.0, 0.0], [0.0, 12.0]]
    for derivative, expected in [
        (dn.grad(fun, has_aux=True)(x), gradient),
        (dn.grad(x, fun, has_aux=True), gradient),
        (dn.grad(fun, has_aux=True, compiler="evaluator")(x), gradient),
        (dn.jacobian(fun, has_aux=True)(x), gradient),
        (dn.jacfwd(fun, has_aux=True)(x), gradient),
        (dn.jacrev(fun, has_aux=True)(x), gradient),
        (dn.hessian(fun, has_aux=True)(x), hessian),
    ]:
        found, rest = derivative
        assert found.to_list() == expected
        assert list(rest) == ["square"]
        assert rest["square"].to_list() == [1.0, 4.0]
    for both in (dn.value_and_grad(fun, has_aux=True)(x), dn.value_and_grad(x, fun, has_aux=True)):
        (value, rest), found = both
        assert float(value) == 9.0
        assert rest["square"].to_list() == [1.0, 4.0]
        assert found.to_list() == gradient
    # The transform is applied to what is differentiated.
    (_, rest), found = dn.value_and_grad(fun, lambda loss: 2 * loss, has_aux=True)(x)
    assert found.to_list() == [6.0, 24.0]
    with pytest.raises(dn.OptionError, match="returns a pair"):
        dn.grad(lambda x: x, has_aux=True)(x)


def test_custom_grad_of_a_pair() -> None:
    def both(x: dn.Tensor) -> dn.Tensor:
        a, b = dn.custom_grad((x * 2.0, x * 3.0), [x], lambda g: [g[0] * 10.0 + g[1]])
        return a + b * 5.0

    assert dn.grad(both)(1.0).item() == 15.0


def test_higher_orders() -> None:
    def cube(x: dn.Tensor) -> dn.Tensor:
        return x * x * x

    assert dn.grad(dn.grad(cube))(2.0).item() == 12.0
    assert dn.grad(dn.grad(dn.grad(cube)))(2.0).item() == 6.0
    assert dn.grad(lambda x: dn.grad(dn.sin)(x) * x)(0.5).item() == pytest.approx(
        np.cos(0.5) - 0.5 * np.sin(0.5), rel=1e-6
    )


@dataclass
class Line:
    weight: dn.Tensor
    bias: dn.Tensor


def test_containers() -> None:
    line = Line(dn.tensor([2.0, 3.0]), dn.tensor(1.0))
    gradient = dn.grad(lambda p, x: dn.sum(p.weight * x) + p.bias)(line, dn.tensor([5.0, 7.0]))
    assert isinstance(gradient, Line)
    assert (gradient.weight.to_list(), gradient.bias.item()) == ([5.0, 7.0], 1.0)
    nested = dn.grad({"a": 2.0, "b": (3.0, [4.0])}, lambda v: v["a"] * v["b"][0] * v["b"][1][0])
    assert {"a": nested["a"].item(), "b": (nested["b"][0].item(), [nested["b"][1][0].item()])} == {
        "a": 12.0,
        "b": (8.0, [6.0]),
    }


def test_argnums() -> None:
    def product(x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return x * y

    assert dn.grad(product, argnums=1)(2.0, 3.0).item() == 2.0
    first, second = dn.grad(product, argnums=(0, 1))(2.0, 3.0)
    assert (first.item(), second.item()) == (3.0, 2.0)
    with pytest.raises(dn.OptionError, match="argnums"):
        dn.grad(product, argnums=2)(2.0, 3.0)


def test_value_and_grad() -> None:
    value, gradient = dn.value_and_grad(lambda x: x * x)(3.0)
    assert (value.item(), gradient.item()) == (9.0, 6.0)

    def pair(x: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor]:
        return x * x, x + 1.0

    (square, more), gradient = dn.value_and_grad(pair, lambda both: both[0])(3.0)
    assert (square.item(), more.item(), gradient.item()) == (9.0, 4.0, 6.0)
    (square, _), gradient = dn.value_and_grad(3.0, pair, lambda both: both[0])
    assert (square.item(), gradient.item()) == (9.0, 6.0)
    with pytest.raises(dn.ContainerError, match="transform"):
        dn.value_and_grad(pair)(3.0)


def test_captured_tensors_are_constants() -> None:
    scale = dn.tensor([2.0, 3.0])
    assert dn.grad(lambda x: dn.sum(x * scale))(dn.tensor([1.0, 1.0])).to_list() == [2.0, 3.0]


def test_inside_a_definition() -> None:
    @dn.defn
    def slope(x: dn.Tensor) -> dn.Tensor:
        return dn.grad(lambda v: v * v * x)(x) + dn.grad(x, lambda v: dn.sin(v))

    assert slope(0.0).item() == 1.0


def test_deep_chain() -> None:
    """20,000 operations, forward and backward, without recursion."""

    def chain(x: dn.Tensor) -> dn.Tensor:
        for _ in range(10_000):
            x = -(x + 1.0)
        return x

    assert dn.grad(chain)(0.5).item() == 1.0


def test_select_does_not_protect() -> None:
    """A masked derivative that is infinite gives NaN, as the specification says."""
    gradient = dn.grad(lambda x: dn.select(x > 0.0, dn.sqrt(x), 0.0))(0.0)
    assert np.isnan(gradient.item())


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2)])
def test_an_argument_is_differentiated_once(argnums: tuple[int, int]) -> None:
    with pytest.raises(dn.OptionError, match="each argument once"):
        dn.grad(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)


@pytest.mark.parametrize("make", [dn.grad, dn.value_and_grad, dn.jacobian, dn.hessian])
def test_derivatives_take_the_options_of_jit(make: Any) -> None:
    class Counting(dn.Compiler):
        compiled = 0

        def compile(self, key, vars, fun, options):
            self.compiled += 1
            return dn.compilers.get("evaluator").compile(key, vars, fun, options)

    compiler = Counting()
    f = make(lambda x: dn.sum(x**3), compiler=compiler)
    x = dn.tensor([1.0, 2.0])
    plain = make(lambda x: dn.sum(x**3))(x)
    for got, expected in zip(dn.tree.leaves(f(x)), dn.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert compiler.compiled == 1
    with pytest.raises(dn.CompileError, match="compiler"):
        make(lambda x: x, compiler="no such")(1.0)


def test_gradients_at_variables_take_the_options_of_jit() -> None:
    assert float(dn.grad(2.0, lambda x: x**3, compiler="evaluator")) == 12.0
    value, gradient = dn.value_and_grad(2.0, lambda x: x**3, compiler="evaluator")
    assert (float(value), float(gradient)) == (8.0, 12.0)
    with pytest.raises(dn.CompileError, match="compiler"):
        dn.grad(2.0, lambda x: x, compiler="no such")


@pytest.mark.parametrize("indices", ["s8", "u8", "s32", "s64", "u64"])
def test_positions_out_of_range(indices: str) -> None:
    """A read is clamped, so that its gradient goes to the last element; a write is dropped."""
    x, g = dn.tensor([1.0, 2.0]), dn.tensor([[1.0, 10.0, 100.0]])
    at = np.array([[0], [5], [200 if indices[0] == "u" else -7]]).astype(
        np.dtype(dn.tensor(0, dtype=indices).dtype)
    )
    got = dn.jit(dn.grad(lambda x: dn.sum(dn.gather(x, at) * g[0])))(x).to_list()
    assert got == ([1.0, 110.0] if indices[0] == "u" else [101.0, 10.0])
    for name in ("indexed_add", "indexed_put"):
        write = getattr(dn, name)
        fun = lambda x, u: dn.sum(write(x, at, u) * dn.tensor([1.0, 10.0]))  # noqa: B023, E731
        to_x, to_u = dn.jit(dn.grad(fun, argnums=(0, 1)))(x, dn.tensor([3.0, 4.0, 5.0]))
        assert to_u.to_list() == [1.0, 0.0, 0.0]
        assert to_x.to_list() == ([1.0, 10.0] if name == "indexed_add" else [0.0, 10.0])


def test_positions_out_of_range_along_axes_of_different_sizes() -> None:
    x = dn.tensor(np.arange(6.0).reshape(2, 3))
    at = dn.tensor([[1, -1], [2, 0], [0, -4], [-3, 1]])
    got = dn.jit(dn.grad(lambda x: dn.sum(dn.gather(x, at) * dn.tensor([1.0, 2.0, 4.0, 8.0]))))(x)
    assert got.to_list() == [[4.0, 8.0, 0.0], [2.0, 0.0, 1.0]]
    fun = lambda u: dn.sum(dn.indexed_add(x, at, u))  # noqa: E731
    assert dn.jit(dn.grad(fun))(dn.tensor([1.0] * 4)).to_list() == [1.0, 0.0, 0.0, 0.0]
