"""Special functions: accuracy by mpmath, ends of their domains by SciPy, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special

import defn as dn

inf, nan = np.inf, np.nan


def trigamma(x: Any) -> Any:
    return special.polygamma(1, x)


ONE: dict[str, Callable[[Any], Any]] = {
    "lgamma": lambda x: mp.loggamma(x).real,
    "digamma": mp.digamma,
    "trigamma": lambda x: mp.psi(1, x),
    "i0": lambda x: mp.besseli(0, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1": lambda x: mp.besseli(1, x),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "ndtr": mp.ncdf,
}
BESSEL = ("i0", "i0e", "i1", "i1e")


def errors(got: np.ndarray, want: list[mpf]) -> np.ndarray:
    """In units of the last place."""
    exact = np.array([float(abs(w)) for w in want]).astype(got.dtype)
    spacing = np.spacing(np.maximum(exact, np.finfo(got.dtype).tiny)).astype(np.float64)
    return (
        np.array([float(abs(mpf(float(g)) - w)) for g, w in zip(got, want, strict=True)]) / spacing
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ONE)
def test_functions_are_accurate(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.uniform(0, 4, 40), rng.uniform(4, 25, 20), 10 ** rng.uniform(-9, 2, 20)]
    )
    if name in BESSEL:
        x = np.concatenate([np.minimum(x, 80), -x[:20]])
    if name == "ndtr":
        x = x[x < 4] - 2
    x = x.astype({"f32": np.float32, "f64": np.float64}[dtype])
    got = getattr(dn, name)(dn.tensor(x)).to_numpy()
    with mp.workdps(40):
        worst = errors(got, [ONE[name](mpf(float(v))) for v in x]).max()
    assert worst <= 5, worst


def test_quantiles_are_accurate() -> None:
    rng = np.random.default_rng(4)
    p = np.concatenate([rng.uniform(0, 1, 40), 10 ** rng.uniform(-300, 0, 20)])
    got = dn.ndtri(dn.tensor(p)).to_numpy()
    with mp.workdps(40):
        # One step of Newton's method from our own result doubles its digits.
        want = []
        for x, q in zip(got, p, strict=True):
            x, q = mpf(float(x)), mpf(float(q))
            error = mp.ncdf(x) - q if q < 0.5 else (1 - q) - mp.ncdf(-x)
            want.append(x - error / mp.npdf(x))
        assert errors(got, want).max() <= 8


ENDS = np.array([0.0, -0.0, -1, -2, -0.5, -1.5, 0.5, 1, 2, 1e300, -1e300, -1e-10, nan])
SCIPY = {
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "trigamma": trigamma,
    "i0": special.i0,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
}


@pytest.mark.parametrize("name", SCIPY)
def test_ends_of_domains_are_those_of_scipy(name: str) -> None:
    function = getattr(dn, name)
    for call in (function, dn.jit(function)):
        np.testing.assert_allclose(
            call(dn.tensor(ENDS)).to_numpy(), SCIPY[name](ENDS), rtol=1e-13, atol=0
        )


def test_infinite_arguments() -> None:
    x = dn.tensor([inf, -inf])
    for name, want in {
        "lgamma": [inf, inf],
        "digamma": [inf, nan],
        "trigamma": [0.0, nan],
        "i0": [inf, inf],
        "i0e": [0.0, 0.0],
        "i1": [inf, -inf],
        "i1e": [0.0, 0.0],
        "ndtr": [1.0, 0.0],
        "ndtri": [nan, nan],
    }.items():
        np.testing.assert_array_equal(getattr(dn, name)(x).to_numpy(), want, err_msg=name)


def first(function: Any, *operands: Any, at: int = 0) -> np.ndarray:
    return dn.grad(lambda *x: dn.sum(function(*x)), argnums=at)(*operands).to_numpy()


def second(function: Any, x: Any) -> np.ndarray:
    return first(lambda x: dn.grad(lambda y: dn.sum(function(y)))(x), x)


@pytest.mark.parametrize("name", ONE)
def test_first_and_second_derivatives(name: str) -> None:
    # The oracle's differences of the distribution function vanish beyond 9.
    x = np.array([0.01, 0.2, 1.3, 1.46, 5.0, 8.5, 20.0])
    x = dn.tensor(x[x < 9] if name == "ndtr" else x)
    function = getattr(dn, name)
    with mp.workdps(30):
        for order, got in ((1, first(function, x)), (2, second(function, x))):
            want = [float(mp.diff(ONE[name], mpf(float(v)), order)) for v in x.to_numpy()]
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-300)


def test_derivatives_of_quantiles() -> None:
    p = np.array([1e-10, 0.01, 0.3, 0.5, 0.9, 0.999])
    x = special.ndtri(p)
    np.testing.assert_allclose(first(dn.ndtri, dn.tensor(p)), np.sqrt(2 * np.pi) * np.exp(x**2 / 2))
    want = 2 * np.pi * np.exp(x**2) * x
    np.testing.assert_allclose(second(dn.ndtri, dn.tensor(p)), want, rtol=1e-10, atol=1e-12)


def test_derivatives_on_the_negative_side() -> None:
    x = np.array([-0.3, -1.7, -2.5, -10.2])
    np.testing.assert_allclose(first(dn.lgamma, dn.tensor(x)), special.digamma(x), rtol=1e-13)
    want = [float(mp.psi(1, v)) for v in x]
    np.testing.assert_allclose(first(dn.digamma, dn.tensor(x)), want, rtol=1e-13)


def parameters(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = 10 ** rng.uniform(-4, 2.3, count)
    return a, a * 10 ** rng.uniform(-1, 0.6, count)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_are_accurate(name: str) -> None:
    a, x = parameters(60, 5)
    # The borders of the forms.
    a = np.append(a, [40, 39.9, 1.05, 0.5, 500, 1e6])
    x = np.append(x, [28.1, 40, 1.1, 1.1, 380, 1.0005e6])
    bounds = ("a", "b") if name == "gammaincc" else ("b", "a")
    with mp.workdps(30):
        want = []
        for shape, place in zip(a, x, strict=True):
            ends = (place, mp.inf) if bounds == ("a", "b") else (0, place)
            want.append(mp.gammainc(mpf(shape), *ends, regularized=True))
    # The relative error of a tail is its exponent, up to 200 here, times the rounding of a number.
    limit = 400
    for dtype in ("f64", "f32"):
        operands = [dn.as_type(dn.tensor(v), dtype) for v in (a, x)]
        got = getattr(dn, name)(*operands).to_numpy()
        if dtype == "f64":
            assert errors(got, want).max() <= limit
        else:
            # The exponent of the tail is as large as 100, and f32 operands are rounded.
            wide = getattr(dn, name)(*[dn.as_type(v, "f64") for v in operands]).to_numpy()
            kept = wide > 1e-36
            relative = np.abs(got[kept] / wide[kept] - 1)
            assert relative.max() <= limit * 2**-24


def test_ends_of_the_incomplete_gamma_functions() -> None:
    a = np.array([0.0, 0, 1, inf, inf, -1, 2, 1, nan, 1])
    x = np.array([0.0, 1, 0, 1, inf, 1, -1, inf, 1, nan])
    np.testing.assert_array_equal(dn.gammainc(a, x).to_numpy(), special.gammainc(a, x))
    np.testing.assert_array_equal(dn.gammaincc(a, x).to_numpy(), special.gammaincc(a, x))


def test_derivatives_of_the_incomplete_gamma_functions() -> None:
    a, x = parameters(12, 6)

    def lower(t: mpf, place: float) -> mpf:
        return mp.gammainc(t, 0, mpf(place), regularized=True)

    with mp.workdps(30):
        want = [
            float(mp.diff(lambda t, v=v: lower(t, v), mpf(s))) for s, v in zip(a, x, strict=True)
        ]
    density = np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
    for function, sign in ((dn.gammainc, 1), (dn.gammaincc, -1)):
        operands = (dn.tensor(a), dn.tensor(x))
        np.testing.assert_allclose(sign * first(function, *operands), want, rtol=1e-11)
        np.testing.assert_allclose(sign * first(function, *operands, at=1), density, rtol=1e-12)


def test_incomplete_beta_function() -> None:
    rng = np.random.default_rng(7)
    a, b = 10 ** rng.uniform(-3, 4, 200), 10 ** rng.uniform(-3, 4, 200)
    mean = a / (a + b)
    x = np.clip(mean + rng.normal(size=200) * np.sqrt(mean * (1 - mean) / (a + b + 1)), 1e-9, 0.999)
    got = dn.betainc(*map(dn.tensor, (a, b, x))).to_numpy()
    np.testing.assert_allclose(got, special.betainc(a, b, x), rtol=1e-11, atol=1e-300)
    a, b, x = np.meshgrid([0, 2, inf, -1, nan], [0, 3, inf, -1], [0, 0.5, 1, -0.1, 1.1, nan])
    got = dn.betainc(*map(dn.tensor, (a, b, x))).to_numpy()
    np.testing.assert_allclose(got, special.betainc(a, b, x), rtol=1e-14)


def test_derivatives_of_the_incomplete_beta_function() -> None:
    a, b, x = (
        np.array([0.3, 2, 30, 9, 0.5]),
        np.array([0.7, 5, 20, 200, 3]),
        np.array([0.2, 0.5, 0.7, 0.05, 0.99]),
    )
    operands = [dn.tensor(v) for v in (a, b, x)]

    def beta(a: mpf, b: mpf, x: mpf) -> mpf:
        return mp.betainc(a, b, 0, x, regularized=True)

    with mp.workdps(30):
        for at in range(3):
            order = tuple(int(k == at) for k in range(3))
            want = [
                float(mp.diff(beta, tuple(map(mpf, v)), order)) for v in zip(a, b, x, strict=True)
            ]
            np.testing.assert_allclose(first(dn.betainc, *operands, at=at), want, rtol=1e-10)


def test_logarithms_of_beta_keep_their_digits() -> None:
    rng = np.random.default_rng(8)
    a, b = 10 ** rng.uniform(-5, 8, 60), 10 ** rng.uniform(-5, 8, 60)
    got = dn.betaln(dn.tensor(a), dn.tensor(b)).to_numpy()
    with mp.workdps(40):
        want = []
        for x, y in zip(map(mpf, a), map(mpf, b), strict=True):
            want.append(float(mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)))
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)


def test_vectorized_operands_and_names() -> None:
    a, x = (dn.tensor(v) for v in parameters(5, 9))
    b = dn.tensor(np.linspace(0.1, 0.9, 5))
    for function, operands in (
        (dn.lgamma, (a,)),
        (dn.gammainc, (a, x)),
        (dn.betainc, (a, x, b)),
    ):
        want = function(*operands).to_numpy()
        np.testing.assert_allclose(dn.vmap(function)(*operands).to_numpy(), want, rtol=1e-13)
        slopes = dn.vmap(dn.grad(function))(*operands).to_numpy()
        np.testing.assert_allclose(slopes, first(function, *operands), rtol=1e-12)
        named = [v.rename(["n"]) for v in operands]
        assert function(*named).names == ("n",)
        assert dn.grad(lambda v, f=function, r=named[1:]: dn.sum(f(v, *r)))(named[0]).names == (
            "n",
        )


def test_empty_operands() -> None:
    empty = dn.tensor(np.zeros((0, 2)))
    for result in (dn.lgamma(empty), dn.gammainc(empty, 1.0), dn.betainc(empty, 1.0, 0.5)):
        assert result.shape == (0, 2)
