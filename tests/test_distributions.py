"""Distributions of random numbers: SciPy's distributions are the oracle, at fixed keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import defn as dn
from defn import random

COUNT = 4000
KEY = random.key(5)

CONTINUOUS: list[tuple[str, tuple[float, ...], Any]] = [
    ("exponential", (2.0,), stats.expon(scale=2)),
    ("laplace", (1.0, 2.0), stats.laplace(1, 2)),
    ("logistic", (1.0, 2.0), stats.logistic(1, 2)),
    ("truncated_normal", (-1.0, 2.0), stats.truncnorm(-1, 2)),
    ("truncated_normal", (6.0, 8.0), stats.truncnorm(6, 8)),
    ("truncated_normal", (-8.0, -6.0), stats.truncnorm(-8, -6)),
    ("gamma", (0.3,), stats.gamma(0.3)),
    ("gamma", (1.0,), stats.gamma(1)),
    ("gamma", (30.0,), stats.gamma(30)),
    ("chisquare", (3.0,), stats.chi2(3)),
    ("t", (4.0,), stats.t(4)),
    ("beta", (0.5, 2.0), stats.beta(0.5, 2)),
]


@pytest.mark.parametrize(("name", "parameters", "law"), CONTINUOUS, ids=lambda v: str(v)[:24])
def test_samples_have_their_distribution(name: str, parameters: Any, law: Any) -> None:
    for dtype in ("f32", "f64"):
        draw = getattr(random, f"{name}_split")
        x = draw(KEY, *parameters, shape=COUNT, dtype=dtype).to_numpy().astype(np.float64)
        assert stats.kstest(x, law.cdf).pvalue > 1e-3
        assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(COUNT)


DISCRETE: list[tuple[str, tuple[float, ...], Any]] = [
    ("poisson", (0.1,), stats.poisson(0.1)),
    ("poisson", (9.9,), stats.poisson(9.9)),
    ("poisson", (10.0,), stats.poisson(10)),
    ("poisson", (1e4,), stats.poisson(1e4)),
    ("binomial", (10, 0.3), stats.binom(10, 0.3)),
    ("binomial", (10, 0.9), stats.binom(10, 0.9)),
    ("binomial", (1000, 0.7), stats.binom(1000, 0.7)),
    ("binomial", (10**6, 0.5), stats.binom(10**6, 0.5)),
    ("bernoulli", (0.3,), stats.bernoulli(0.3)),
]


@pytest.mark.parametrize(("name", "parameters", "law"), DISCRETE, ids=lambda v: str(v)[:24])
def test_counts_have_their_distribution(name: str, parameters: Any, law: Any) -> None:
    x = getattr(random, f"{name}_split")(KEY, *parameters, shape=COUNT, dtype="s32").to_numpy()
    assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(COUNT)
    edges = np.unique(law.ppf(np.linspace(0.05, 0.95, 12)))
    groups = np.concatenate([[-np.inf], edges, [np.inf]])
    found, _ = np.histogram(-x.astype(np.float64), np.sort(-groups))
    expected = np.diff(np.concatenate([[0], law.cdf(edges), [1]]))[::-1] * COUNT
    kept = expected > 5
    statistic = ((found[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, max(kept.sum() - 1, 1)) > 1e-3


EXACT: list[tuple[str, tuple[float, ...], Any]] = [
    *(
        ("poisson", (lam,), stats.poisson(lam))
        for lam in (1e-3, 0.5, 4.0, 9.99, 10.01, 30.0, 400.0)
    ),
    ("binomial", (1, 0.5), stats.binom(1, 0.5)),
    ("binomial", (20, 0.3), stats.binom(20, 0.3)),
    ("binomial", (25, 0.999), stats.binom(25, 0.999)),
    ("binomial", (999, 0.01), stats.binom(999, 0.01)),
    ("binomial", (1001, 0.01), stats.binom(1001, 0.01)),
    ("binomial", (40, 0.6), stats.binom(40, 0.6)),
    ("binomial", (2000, 0.3), stats.binom(2000, 0.3)),
    ("binomial", (10**12, 3e-12), stats.binom(10**12, 3e-12)),
]


@pytest.mark.parametrize(("name", "parameters", "law"), EXACT, ids=lambda v: str(v)[:24])
def test_each_count_has_its_probability(name: str, parameters: Any, law: Any) -> None:
    count = 200_000
    draw = getattr(random, f"{name}_split")
    low, high = (int(law.ppf(q)) for q in (1e-12, 1 - 1e-12))
    expected = law.pmf(np.arange(low, high + 1)) * count
    # Rare counts share a group.
    kept = expected >= 10
    rare = expected[~kept].sum()
    # Parameters that broadcast and those of each sample have loops of their own.
    for whole in (parameters, [dn.tensor(np.full(count, v)) for v in parameters]):
        x = draw(random.key(8), *whole, shape=count).to_numpy()
        assert low <= x.min()
        assert x.max() <= high
        found = np.bincount(x - low, minlength=high - low + 1)
        statistic = ((found[kept] - expected[kept]) ** 2 / expected[kept]).sum()
        assert stats.chi2.sf(statistic, max(kept.sum() - 1, 1)) > 1e-4
        assert abs(found[~kept].sum() - rare) <= 5 * np.sqrt(rare) + 3


def test_counts_of_mixed_parameters() -> None:
    count, lam = 100_000, np.array([0.0, 0.7, 9.5, 12.0, 1e6, 1e15])
    x = random.poisson_split(KEY, dn.tensor(lam), shape=(count, 6), dtype="f64").to_numpy()
    assert (np.abs(x.mean(0) - lam) <= 5 * np.sqrt(lam / count)).all()
    spread = np.sqrt((lam + 2 * lam**2) / count)
    assert (np.abs(x.var(0) - lam) <= 5 * spread).all()
    n, p = np.array([[3.0], [200.0], [1e9]]), np.array([0.0, 0.01, 0.4, 0.97, 1.0])
    x = random.binomial_split(
        KEY, dn.tensor(n), dn.tensor(p), shape=(count // 10, 3, 5), dtype="f64"
    )
    x = x.to_numpy()
    assert ((x >= 0) & (x <= n)).all()
    deviation = np.sqrt(n * p * (1 - p) / (count // 10))
    assert (np.abs(x.mean(0) - n * p) <= 5 * deviation).all()


def test_orthogonal_matrices() -> None:
    for dtype in ("f32", "f64", "c64", "c128", "f16"):
        q = random.orthogonal_split(KEY, 4, shape=(2, 3), dtype=dtype)
        assert (q.shape, q.dtype) == ((2, 3, 4, 4), dn.dtype(dtype))
        wide = q.to_numpy().astype(np.complex128)
        product = wide @ wide.conj().swapaxes(-1, -2)
        limit = {"f64": 1e-13, "c128": 1e-13, "f16": 5e-3}.get(dtype, 1e-5)
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(4), product.shape), atol=limit)
    assert random.orthogonal_split(KEY, 2, shape=3, names=["n"]).names == ("n", None, None)
    assert random.orthogonal_split(KEY, 0, shape=3).shape == (3, 0, 0)

    # Of the Haar measure a squared element has a beta distribution, the trace the mean 0 and the
    # mean square 1.
    q = random.orthogonal_split(KEY, 3, shape=COUNT, dtype="f64").to_numpy()
    for row in range(3):
        for column in range(3):
            x = q[:, row, column]
            assert stats.kstest(x**2, stats.beta(0.5, 1).cdf).pvalue > 1e-4
            assert abs((x > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(COUNT)
    trace = np.trace(q, axis1=1, axis2=2)
    assert abs(trace.mean()) < 5 / np.sqrt(COUNT)
    assert abs((trace**2).mean() - 1) < 5 * np.sqrt(2 / COUNT)
    assert abs(np.sign(np.linalg.det(q)).mean()) < 5 / np.sqrt(COUNT)
    # A phase of a unitary matrix is uniform, and so is that of its determinant.
    q = random.orthogonal_split(KEY, 2, shape=COUNT, dtype="c128").to_numpy()
    for phases in (q[:, 0, 0], q[:, 1, 1], np.linalg.det(q)):
        uniform = np.angle(phases) / (2 * np.pi) + 0.5
        assert stats.kstest(uniform, stats.uniform.cdf).pvalue > 1e-4
    assert stats.kstest(np.abs(q[:, 0, 0]) ** 2, stats.uniform.cdf).pvalue > 1e-4


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.5, 50.0, np.inf])
def test_points_of_balls(p: float) -> None:
    d = 3
    x = random.ball_split(KEY, d, p, shape=COUNT, dtype="f64").to_numpy()
    assert x.shape == (COUNT, d)
    norm = np.abs(x).max(1) if np.isinf(p) else (np.abs(x) ** p).sum(1) ** (1 / p)
    assert (norm <= 1 + 1e-12).all()
    # The share of a smaller ball is that of its volume, and each side has half of the points.
    assert stats.kstest(norm**d, stats.uniform.cdf).pvalue > 1e-4
    assert (np.abs((x > 0).mean(0) - 0.5) < 5 * 0.5 / np.sqrt(COUNT)).all()
    # A coordinate's density is that of a section's volume, (1 - |x|^p)^((d - 1) / p).
    law = stats.uniform.cdf if np.isinf(p) else stats.beta(1 / p, (d - 1) / p + 1).cdf
    for column in range(d):
        size = np.abs(x[:, column])
        assert stats.kstest(size if np.isinf(p) else size**p, law).pvalue > 1e-4


def test_edges_of_balls() -> None:
    p = dn.tensor([2.0, np.inf, 0.0, -1.0, np.nan])
    x = random.ball_split(KEY, 4, p, shape=(3, 5)).to_numpy()
    assert x.shape == (3, 5, 4)
    assert np.isfinite(x[:, :2]).all()
    assert np.isnan(x[:, 2:]).all()
    assert random.ball_split(KEY, 0, shape=3).shape == (3, 0)
    assert random.ball_split(KEY, 1, 3.0, shape=3, names=["n"]).names == ("n", None)
    assert random.ball_split(KEY, 2, 3.0, dtype="bf16").dtype == dn.bf16
    with pytest.raises(dn.ShapeError, match=r"^ball: "):
        random.ball_split(KEY, 2, dn.tensor([1.0, 2.0]), shape=3)

    def second_moment(p: dn.Tensor) -> dn.Tensor:
        return dn.mean(random.ball_split(KEY, 2, p, shape=COUNT, dtype="f64") ** 2)

    # In the plane it is the mean of a number to the power of 2 / p, whose distribution is beta with
    # the parameters 1 / p and 1 / p + 1.
    slope = dn.grad(second_moment)(dn.tensor(2.0, dtype="f64")).item()
    means = [stats.beta(1 / p, 1 / p + 1).expect(lambda v, p=p: v ** (2 / p)) for p in (1.99, 2.01)]
    assert abs(slope - (means[1] - means[0]) / 0.02) < 0.01


def test_vectors_and_positions() -> None:
    alpha = np.array([0.5, 1, 2])
    x = random.dirichlet_split(KEY, dn.tensor(alpha), shape=COUNT).to_numpy()
    np.testing.assert_allclose(x.sum(1), 1, rtol=1e-6)
    law = stats.dirichlet(alpha)
    assert (np.abs(x.mean(0) - law.mean()) < 5 * np.sqrt(law.var() / COUNT)).all()
    assert random.dirichlet_split(KEY, dn.tensor(alpha), shape=(2,), names=["n"]).names == (
        "n",
        None,
    )

    p = np.array([0.1, 0.2, 0.7, 0.0])
    chosen = random.categorical_split(KEY, dn.log(dn.tensor(p)), shape=COUNT).to_numpy()
    found = np.bincount(chosen, minlength=4) / COUNT
    assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / COUNT)).all()
    logits = dn.tensor(np.zeros((4, 3)), names=["a", "b"])
    drawn = random.categorical_split(KEY, logits, axis="a", shape=(2,))
    assert (drawn.shape, drawn.dtype) == ((2, 3), dn.s32)

    signs = random.rademacher_split(KEY, shape=COUNT).to_numpy()
    assert set(signs.tolist()) == {-1, 1}
    assert abs(signs.mean()) < 5 / np.sqrt(COUNT)

    order = random.permutation_split(KEY, 50).to_numpy()
    assert sorted(order.tolist()) == list(range(50))
    x = dn.iota((5, 2), axis=0)
    assert random.permutation(KEY, x)[0].to_list() == random.shuffle(KEY, x)[0].to_list()


NAMES: list[tuple[str, tuple[float, ...]]] = [
    ("exponential", (2.0,)),
    ("laplace", (0.0, 1.0)),
    ("logistic", (0.0, 1.0)),
    ("truncated_normal", (-1.0, 1.0)),
    ("gamma", (2.0,)),
    ("beta", (2.0, 3.0)),
    ("chisquare", (2.0,)),
    ("t", (2.0,)),
    ("poisson", (3.0,)),
    ("binomial", (30, 0.5)),
    ("bernoulli", (0.5,)),
    ("rademacher", ()),
    ("categorical", (dn.tensor([0.0, 1.0]),)),
    ("dirichlet", (dn.tensor([1.0, 2.0]),)),
    ("orthogonal", (3,)),
    ("ball", (3, 1.5)),
]


@pytest.mark.parametrize(("name", "parameters"), NAMES, ids=lambda v: str(v)[:16])
def test_both_forms_eager_and_compiled(name: str, parameters: Any) -> None:
    draw, alone = getattr(random, name), getattr(random, f"{name}_split")
    following, used = random.split(KEY)
    value, after = draw(KEY, *parameters, shape=(3, 2))
    assert after.to_list() == following.to_list()
    got = alone(used, *parameters, shape=(3, 2))
    assert value.to_numpy().tobytes() == got.to_numpy().tobytes()
    traced = dn.jit(lambda k: alone(k, *parameters, shape=(3, 2)))(used)
    assert traced.ty == got.ty if hasattr(got, "ty") else traced.shape == got.shape
    np.testing.assert_allclose(traced.to_numpy(), got.to_numpy(), rtol=1e-5, atol=1e-6)
    assert alone(KEY, *parameters, shape=(0, 2)).shape[:2] == (0, 2)
    keys = random.split(KEY, 3)
    mapped = dn.vmap(lambda k: alone(k, *parameters, shape=2))(keys).to_numpy()
    single = np.stack([alone(k, *parameters, shape=2).to_numpy() for k in keys])
    np.testing.assert_allclose(mapped, single, rtol=1e-5, atol=1e-6)
    with pytest.raises(dn.DTypeError, match=f"^{name}: the key"):
        alone(dn.tensor([1.0, 2.0]), *parameters)


def test_long_samples_of_one_law() -> None:
    # Their last candidates are drawn as a short vector.
    keys, size = random.split(KEY, 2), (40, 500)
    for name, parameters in (("gamma", (0.7,)), ("poisson", (20.0,)), ("binomial", (90, 0.4))):
        draw = getattr(random, f"{name}_split")
        one = [draw(k, *parameters, shape=size, dtype="f64").to_numpy() for k in keys]
        many = dn.vmap(lambda k, f=draw, v=parameters: f(k, *v, shape=size, dtype="f64"))(keys)
        np.testing.assert_allclose(many.to_numpy(), np.stack(one), rtol=1e-12)
        assert len(np.unique(one[0])) > 20
    slope = dn.grad(lambda a: dn.mean(random.gamma_split(KEY, a, shape=size, dtype="f64")))
    assert abs(slope(dn.tensor(2.0, dtype="f64")).item() - 1) < 0.05


def test_edges_of_parameters() -> None:
    nan, inf = np.nan, np.inf
    a = dn.tensor([0.0, -1.0, nan, inf, 1e-30, 1e30])
    x = random.gamma_split(KEY, a, shape=6).to_numpy()
    np.testing.assert_array_equal(x[:5], [nan, nan, nan, inf, 0.0])
    assert abs(x[5] / 1e30 - 1) < 1e-5
    lam = dn.tensor([0.0, -1.0, nan, inf])
    np.testing.assert_array_equal(
        random.poisson_split(KEY, lam, shape=4, dtype="f32").to_numpy(), [0, nan, nan, inf]
    )
    assert random.poisson_split(KEY, lam, shape=4).to_list()[:3] == [0, 0, 0]
    p = dn.tensor([0.0, 1.0, -0.1, 1.1, nan])
    np.testing.assert_array_equal(
        random.binomial_split(KEY, 7, p, shape=5, dtype="f32").to_numpy(), [0, 7, nan, nan, nan]
    )
    n = dn.tensor([0.0, -1.0, nan, inf, 2.9])
    x = random.binomial_split(KEY, n, 1.0, shape=5, dtype="f32").to_numpy()
    np.testing.assert_array_equal(x, [0, nan, nan, nan, 2])
    assert np.isnan(random.truncated_normal_split(KEY, 1.0, -1.0).item())
    assert np.isnan(random.beta_split(KEY, 0.0, 1.0).item())
    tiny = random.beta_split(KEY, 1e-3, 1e-3, shape=200).to_numpy()
    assert not np.isnan(tiny).any()
    for bad in (dn.tensor([1j]), 1j):
        with pytest.raises(dn.DTypeError, match=r"^gamma: "):
            random.gamma_split(KEY, bad, shape=1)
    with pytest.raises(dn.OptionError, match=r"^gamma: the dtype is s32"):
        random.gamma_split(KEY, 1.0, dtype="s32")
    with pytest.raises(dn.ShapeError):
        random.gamma_split(KEY, dn.tensor([1.0, 2.0]), shape=3)
    with pytest.raises(dn.ShapeError):
        random.dirichlet_split(KEY, 1.0)


def slope(law: Callable[[float], Any], x: float, at: float, step: float = 1e-5) -> float:
    """The derivative of a quantile by a parameter, at the probability of ``x``."""
    q = law(at).cdf(x)
    return (law(at + step).ppf(q) - law(at - step).ppf(q)) / (2 * step)


@pytest.mark.parametrize("a", [0.3, 1.5, 20.0, 200.0])
def test_gradients_of_gamma_are_those_of_quantiles(a: float) -> None:
    def draw(a: dn.Tensor) -> dn.Tensor:
        return random.gamma_split(KEY, a, dtype="f64")

    at = dn.tensor(a, dtype="f64")
    x = draw(at).item()
    got = dn.grad(draw)(at).item()
    assert abs(got / slope(stats.gamma, x, a) - 1) < 1e-5
    q, step = stats.gamma(a).cdf(x), 1e-2 * a
    third = stats.gamma(a + step).ppf(q) - 2 * x + stats.gamma(a - step).ppf(q)
    second = dn.grad(dn.grad(draw))(at).item()
    assert abs(second - third / step**2) < 0.02 * abs(second) + 1e-6


def test_gradients_of_the_other_families() -> None:
    def of(name: str, *values: float) -> tuple[list[float], float]:
        def draw(*parameters: dn.Tensor) -> dn.Tensor:
            return getattr(random, f"{name}_split")(KEY, *parameters, dtype="f64")

        at = [dn.tensor(v, dtype="f64") for v in values]
        slopes = dn.grad(draw, argnums=tuple(range(len(values))))(*at)
        return [s.item() for s in slopes], draw(*at).item()

    (lower, upper), x = of("truncated_normal", -1.0, 2.0)
    assert abs(lower / slope(lambda v: stats.truncnorm(v, 2), x, -1.0) - 1) < 1e-5
    assert abs(upper / slope(lambda v: stats.truncnorm(-1, v), x, 2.0) - 1) < 1e-5
    (scale,), x = of("exponential", 2.0)
    assert abs(scale * 2 / x - 1) < 1e-12
    (loc, scale), x = of("laplace", 1.0, 2.0)
    assert loc == 1
    assert abs(scale * 2 / (x - 1) - 1) < 1e-12
    (df,), x = of("chisquare", 3.0)
    assert abs(df / slope(stats.chi2, x, 3.0) - 1) < 1e-5
    # The other families are functions of gamma numbers; their means have known derivatives.
    a = dn.tensor(2.0, dtype="f64")
    mean = dn.grad(lambda a: dn.mean(random.beta_split(KEY, a, 3.0, shape=2000, dtype="f64")))(a)
    assert abs(mean.item() - 3 / 25) < 0.01
    second = dn.grad(lambda v: dn.mean(random.t_split(KEY, v, shape=4000, dtype="f64") ** 2))
    assert abs(second(dn.tensor(9.0, dtype="f64")).item() - (-2 / 49)) < 0.02


def test_counts_have_no_gradient() -> None:
    for draw in (
        lambda p: random.poisson_split(KEY, p, shape=3, dtype="f32"),
        lambda p: random.bernoulli_split(KEY, p, shape=3, dtype="f32"),
        lambda p: random.binomial_split(KEY, 9, p, shape=3, dtype="f32"),
    ):
        assert dn.grad(lambda p, f=draw: dn.sum(f(p)))(0.5).item() == 0.0
