"""Every differentiable row against central differences in f64, and the rules at their edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import defn as dn
from cases import Case, all_cases, apart, store, values
from cases.dtypes import is_complex

CASES = [case for case in all_cases() if case.grad is not None]
FLOWS = [case for case in CASES if case.grad == "flows"]
COMPLEX = [case for case in FLOWS if case.grad_complex and "c128" in case.dtypes]


def identify(value: object) -> str:
    return str(value)


def weights(result: dn.Tensor, seed: int) -> np.ndarray:
    """A cotangent whose elements differ, of the kind of the result."""
    rng = np.random.default_rng(seed)
    drawn = rng.uniform(0.5, 1.5, size=result.shape)
    if is_complex(str(result.dtype)):
        return drawn + 1j * rng.uniform(-1.0, 1.0, size=result.shape)
    return drawn


def loss(case: Case, *args: dn.Tensor) -> dn.Tensor:
    result = case.run(*args)
    return dn.sum(dn.real(result * weights(result, 7)))


def numeric(case: Case, arrays: list[np.ndarray], position: int, step: float) -> np.ndarray:
    """Central differences; of a complex variable, along both axes: d/dx - i d/dy.

    They are the host's own, whichever compiler and backend the gradient is asked of.
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
    with pytest.raises(dn.TraceError, match=f"grad: {case.name} has no gradient"):
        dn.grad(lambda *args: dn.sum(case.run(*args)))(*tensors)


def test_dtypes() -> None:
    """The seed is an f32; the variable's dtype takes part through the backward operations."""
    for dtype, expected in [
        ("f32", "f32"),
        ("f64", "f64"),
        ("s32", "f32"),
        ("f16", "f32"),
        ("bf16", "f32"),
        ("u8", "f32"),
    ]:
        x = dn.tensor(store([1, 2], dtype))
        assert str(dn.grad(lambda v: dn.sum(v * v))(x).dtype) == expected, dtype
    unused = dn.grad(lambda v: dn.tensor(1.0))(dn.tensor(store([1, 2], "f64")))
    assert (unused.dtype, unused.to_list()) == ("f32", [0.0, 0.0])


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
