"""The examples give the results of their NumPy versions."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag
from scipy.optimize import least_squares
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import defn as dn

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    ["newton", "ray_marcher", "rnn", "metropolis", "kmeans", "pipeline"],
)
def test_they_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(name).main()
    assert capsys.readouterr().out.strip()


def test_newton() -> None:
    example = load("newton")
    for start in (0.1, 1.0, 3.0):
        root, steps = example.newton(np.float64(start), fun=example.kepler)
        expected, count = example.newton_numpy(
            start, lambda e: e - 0.3 * np.sin(e) - 1, lambda e: 1 - 0.3 * np.cos(e)
        )
        assert float(root) == pytest.approx(expected, abs=1e-12)
        assert int(steps) == count
    assert example.newton.cache_info()["misses"] == 1


def test_ray_marcher() -> None:
    example = load("ray_marcher")
    rays = example.camera(40, 20)
    np.testing.assert_allclose(
        example.render(*rays).to_numpy(), example.render_numpy(*rays), atol=1e-6
    )


def test_rnn() -> None:
    example = load("rnn")
    sequence = np.sin(np.linspace(0, 6, 20))
    weights = example.weights(5)
    cell = example.Cell(*map(dn.tensor, weights))
    assert float(example.loss(cell, sequence)) == pytest.approx(
        example.loss_numpy(*weights, sequence), rel=1e-12
    )
    _, slope = dn.value_and_grad(example.loss)(cell, sequence)
    for position, name in enumerate(["inputs", "hidden", "bias", "output"]):
        index = (1,) * weights[position].ndim
        moved = []
        for way in (1e-6, -1e-6):
            changed = [part.copy() for part in weights]
            changed[position][index] += way
            moved.append(example.loss_numpy(*changed, sequence))
        expected = (moved[0] - moved[1]) / 2e-6
        assert float(getattr(slope, name)[index]) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_metropolis() -> None:
    example = load("metropolis")
    draws = example.draws(500)
    chain, accepted = example.sample(np.float64(0.0), *draws)
    expected, count = example.sample_numpy(0.0, *draws)
    np.testing.assert_allclose(chain.to_numpy(), expected, rtol=1e-12)
    assert int(accepted) == count


def test_kmeans() -> None:
    example = load("kmeans")
    points, start = example.clouds(50)
    centres, nearest, rounds = example.kmeans(points, start)
    expected = example.kmeans_numpy(points, start)
    np.testing.assert_allclose(centres.to_numpy(), expected[0], rtol=1e-12)
    np.testing.assert_array_equal(nearest.to_numpy(), expected[1])
    assert int(rounds) == expected[2]


def small_gpt() -> tuple[Any, Any, np.ndarray]:
    example = load("gpt")
    size = example.Size(layers=2, width=32, heads=4, context=12, batch=3)
    return example, size, np.random.default_rng(0).integers(0, 11, (3, 13)).astype(np.int32)


def test_gpt_is_the_network_that_it_says() -> None:
    example, size, tokens = small_gpt()
    params = example.initial(11, dn.random.key(3), size)
    tokens = tokens[:, :9]
    scores = example.logits(params, tokens, heads=4)[0].to_numpy()
    want = gpt_logits(dn.tree.map(lambda p: p.to_numpy().astype(np.float64), params), tokens)
    np.testing.assert_allclose(scores, want, atol=1e-5)
    later = tokens.copy()
    later[:, 6:] = 0
    same = example.logits(params, later, heads=4)[0].to_numpy()
    np.testing.assert_allclose(scores[:, :6], same[:, :6], atol=1e-6)
    # A cache of keys and values gives the same, token by token and by pieces.
    for pieces in ([1] * 9, [4, 5], [9]):
        empty = dn.broadcast(0.0, (3, 12, 4, 8))
        cache, place, rows = [(empty, empty)] * 2, 0, []
        for length in pieces:
            part = tokens[:, place : place + length]
            own, cache = example.logits(params, part, cache, place, heads=4)
            rows.append(own.to_numpy())
            place += length
        np.testing.assert_allclose(np.concatenate(rows, 1), scores, atol=1e-5)


def test_gpt_learns_a_text_and_writes_it() -> None:
    example, size, tokens = small_gpt()
    state = example.begin(11, size=size, steps=150)
    losses = []
    for _ in range(150):
        state, loss = example.train_step(state, tokens[:1], heads=4, steps=150)
        losses.append(float(loss))
    assert losses[0] == pytest.approx(np.log(11), abs=0.2)
    assert losses[-1] < 0.3 * losses[0]
    assert example.train_step.cache_info()["misses"] == 1
    text = example.written(
        state["params"], tokens[0, :3], dn.random.key(0), count=6, heads=4, temperature=0.1
    )
    assert text.to_list() == tokens[0, :9].tolist()


def test_gpt_draws_pieces_of_the_text() -> None:
    example, size, _ = small_gpt()
    text = np.arange(14, dtype=np.int32)
    pieces, key = example.draw(text, dn.random.key(1), size=size)
    others, _ = example.draw(text, key, size=size)
    for tokens in (pieces.to_numpy(), others.to_numpy()):
        assert tokens.shape == (3, 13)
        np.testing.assert_array_equal(tokens, tokens[:, :1] + np.arange(13))
    assert not np.array_equal(pieces.to_numpy(), others.to_numpy())


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_gpt_goes_on_from_a_checkpoint(dtype: str, tmp_path: pathlib.Path) -> None:
    example, size, _ = small_gpt()
    text = np.random.default_rng(1).integers(0, 11, 200).astype(np.int32)

    def trained(state: Any, steps: range) -> Any:
        for _ in steps:
            tokens, state["key"] = example.draw(text, state["key"], size=size)
            state, _ = example.train_step(state, tokens, heads=4, steps=9, dtype=dtype)
        return state

    whole = trained(example.begin(11, size=size, steps=9), range(9))
    half = trained(example.begin(11, size=size, steps=9), range(4))
    dn.checkpoints.save(tmp_path, 4, half)
    step, half = dn.checkpoints.load(tmp_path, like=example.begin(11, size=size, steps=9))
    half = trained(half, range(step, 9))
    for own, other in zip(dn.tree.leaves(whole), dn.tree.leaves(half), strict=True):
        assert own.to_numpy().tobytes() == other.to_numpy().tobytes()


def test_digits_by_convolutions(tmp_path: pathlib.Path) -> None:
    example = load("digits_conv")
    arrays, held_out = example.load()
    arrays = {name: array[:256] for name, array in arrays.items()}
    state, losses = example.train(arrays, example.begin(0, 64), 8, tmp_path)
    assert len(losses) == 64
    assert np.mean(losses[-4:]) < 0.5 * np.mean(losses[:4])
    guesses = example.guess(state["params"], held_out["images"]).to_numpy()
    assert np.mean(guesses == held_out["labels"]) > 0.5
    # From the sixth epoch on again, with the same bits.
    step, saved = dn.checkpoints.load(tmp_path, like=example.begin(0, 64), step=6)
    assert (step, saved["position"]) == (6, (6, 0))
    again, rest = example.train(arrays, saved, 8)
    assert rest == losses[48:]
    for own, other in zip(dn.tree.leaves(again), dn.tree.leaves(state), strict=True):
        assert dn.serialize(own) == dn.serialize(other)
    picture = tmp_path / "digits.png"
    example.draw(picture, losses, held_out, guesses)
    assert picture.read_bytes().startswith(b"\x89PNG")


def gpt_logits(params: Any, tokens: np.ndarray) -> np.ndarray:
    """The model in NumPy."""

    def normalized(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    batch, length = tokens.shape
    x = params["tokens"][tokens] + params["places"][:length]
    for layer in params["layers"]:
        parts = normalized(x, layer["norm_1"]) @ layer["attend"]
        q, k, v = parts.reshape(batch, length, 3, 4, 8).transpose(2, 0, 3, 1, 4)
        scores = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(8)
        scores = np.where(np.tril(np.ones((length, length))), scores, -np.inf)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, 32) @ layer["merge"]
        hidden = normalized(x, layer["norm_2"]) @ layer["widen"]
        inner = np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)
        x = x + (0.5 * hidden * (1 + np.tanh(inner))) @ layer["narrow"]
    return normalized(x, params["norm"]) @ params["tokens"].T


def test_lotka_volterra(tmp_path: pathlib.Path) -> None:
    """The fit of SciPy's least squares over SciPy's solutions."""
    example = load("lotka_volterra")
    times, counts = example.YEARS, example.COUNTS

    def field(_: float, y: np.ndarray, births: float, meals: float, *own: float) -> list[float]:
        both = y[0] * y[1]
        return [births * y[0] - meals * both, own[0] * both - own[1] * y[1]]

    def residuals(x: np.ndarray) -> np.ndarray:
        births, meals, growth, deaths, *start = np.exp(x)
        rates = (births, meals, growth, deaths)
        options = {"t_eval": times, "args": rates, "rtol": 1e-9, "atol": 1e-9}
        found = solve_ivp(field, (times[0], times[-1]), start, "DOP853", **options).y.T
        return np.ravel(np.log(found) - np.log(counts))

    def flat(params: Any) -> np.ndarray:
        rates = [params["rates"][name] for name in ("births", "meals", "growth", "deaths")]
        return np.array([*rates, params["start"]["hares"], params["start"]["lynxes"]], np.float64)

    before = example.initial()
    own = example.residuals(before, times, counts).to_numpy()
    np.testing.assert_allclose(own.ravel(), residuals(flat(before)), atol=1e-5)
    after, losses = example.fit(before, times, counts, steps=40)
    want = least_squares(residuals, flat(before), xtol=1e-10)
    np.testing.assert_allclose(flat(after), want.x, atol=1e-4)
    assert losses[-1] == pytest.approx(2 * want.cost / counts.size, rel=1e-6)
    assert losses[0] > 10 * losses[40] > 10 * losses[-1]
    picture = tmp_path / "fit.png"
    example.draw(picture, before, after, losses)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_hmc() -> None:
    example = load("hmc")
    w, accepted, size = example.run(8, 1000)
    assert w.shape == (8, 1000, 2)
    assert 0.7 < accepted.min() < accepted.max() < 0.98
    assert 0.3 < size.min() < size.max() < 1.0
    sizes, spreads = dn.vmap(example.diagnostics, in_axes=2)(dn.tensor(w))
    assert sizes.to_numpy().min() > 4000
    assert spreads.to_numpy().max() < 1.01
    # The posterior on a grid, up to five standard errors of the draws' means.
    x = (example.TEMPERATURE - example.TEMPERATURE.mean()) / example.TEMPERATURE.std()
    a, b = np.meshgrid(np.linspace(-6, 4, 301), np.linspace(-9, 4, 301), indexing="ij")
    scores = a[..., None] + b[..., None] * x
    log = (example.DAMAGE * scores - np.logaddexp(0, scores)).sum(-1) - (a * a + b * b) / 12.5
    weights = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    for at, places in enumerate((a, b)):
        mean = np.sum(weights * places)
        deviation = np.sqrt(np.sum(weights * (places - mean) ** 2))
        error = deviation / np.sqrt(float(sizes[at]))
        assert w[..., at].mean() == pytest.approx(mean, abs=5 * error)
        assert w[..., at].std() == pytest.approx(deviation, rel=0.06)
    ours = example.grid()
    assert ours[0] @ ours[2].sum(1) == pytest.approx(np.sum(weights * a), abs=1e-3)
    assert ours[1] @ ours[2].sum(0) == pytest.approx(np.sum(weights * b), abs=1e-3)


def test_chains_that_run_together_are_those_that_run_alone() -> None:
    example = load("hmc")
    data = dn.tensor(example.design(example.TEMPERATURE)), dn.tensor(example.DAMAGE)
    keys = dn.random.split(dn.random.key(3), 4)
    states, sizes = dn.vmap(lambda key: example.warm_up(key, *data, steps=30))(keys)
    together = dn.vmap(lambda state, size: example.sample(state, size, *data, draws=20))
    draws = together(states, sizes)[1][0]
    state, size = example.warm_up(keys[2], *data, steps=30)
    alone = example.sample(state, size, *data, draws=20)[1][0]
    np.testing.assert_allclose(draws[2].to_numpy(), alone.to_numpy(), rtol=1e-9)


def test_diagnostics_of_chains() -> None:
    example = load("hmc")
    random = np.random.default_rng(0)
    for correlation in (-0.3, 0.0, 0.6, 0.9):
        # The size of an autoregressive process is known.
        noise = random.normal(size=(4, 20_000))
        draws = noise / np.sqrt(1 - correlation**2)
        for at in range(1, draws.shape[1]):
            draws[:, at] = correlation * draws[:, at - 1] + noise[:, at]
        size, spread = example.diagnostics(dn.tensor(draws))
        known = draws.size * (1 - correlation) / (1 + correlation)
        assert float(size) == pytest.approx(known, rel=0.1)
        assert float(spread) == pytest.approx(1, abs=2e-3)
    # Chains that disagree, with the formula written out.
    draws = random.normal(size=(3, 50)) + np.array([[0.0], [0.5], [2.0]])
    parts = np.stack([half for chain in draws for half in (chain[:25], chain[25:])])
    within, between = parts.var(1, ddof=1).mean(), 25 * parts.mean(1).var(ddof=1)
    total = 24 / 25 * within + between / 25
    size, spread = example.diagnostics(dn.tensor(draws))
    assert float(spread) == pytest.approx(np.sqrt(total / within), rel=1e-12)
    lags, time = [], -1.0
    for lag in range(25):
        products = [np.sum((c - c.mean())[: 25 - lag] * (c - c.mean())[lag:]) / 25 for c in parts]
        lags.append(1 - (within - np.mean(products)) / total)
    least = np.inf
    for at in range(0, 24, 2):
        least = min(least, lags[at] + lags[at + 1])
        if least <= 0:
            break
        time += 2 * least
    assert float(size) == pytest.approx(150 / time, rel=1e-10)


def random_model(example: ModuleType, seed: int = 0) -> tuple[Any, np.ndarray]:
    """A model of 3 states and 2 observations in f64, and 7 observations, of which one is none."""
    random = np.random.default_rng(seed)

    def covariance(size: int) -> np.ndarray:
        root = random.normal(size=(size, size))
        return root @ root.T + 0.5 * np.eye(size)

    model = example.Model(
        mean=random.normal(size=3),
        covariance=covariance(3),
        transition=0.5 * random.normal(size=(3, 3)),
        process=covariance(3),
        observation=random.normal(size=(2, 3)),
        error=covariance(2),
    )
    y = random.normal(size=(7, 2))
    y[4] = np.nan
    return model, y


def conditioned(model: Any, y: np.ndarray, until: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Means and covariances of all states, and the log-likelihood, given the first observations:
    the joint distribution of all states and observations, conditioned by one solve.
    """
    count, size = len(y), len(model.mean)
    # All states are a matrix times the first one and the noise of each step.
    powers = np.zeros((count, size, count, size))
    for at in range(count):
        for before in range(at + 1):
            powers[at, :, before] = np.linalg.matrix_power(model.transition, at - before)
    powers = powers.reshape(count * size, -1)
    noise = block_diag(model.covariance, *[model.process] * (count - 1))
    mean, joint = powers[:, :size] @ model.mean, powers @ noise @ powers.T
    seen = [at for at in range(until) if not np.isnan(y[at]).any()]
    matrix = np.kron(np.eye(count)[seen], model.observation)
    spread = matrix @ joint @ matrix.T + np.kron(np.eye(len(seen)), model.error)
    residual = y[seen].ravel() - matrix @ mean
    gain = np.linalg.solve(spread, matrix @ joint).T
    log = multivariate_normal(np.zeros(len(residual)), spread).logpdf(residual)
    means = (mean + gain @ residual).reshape(count, size)
    whole = (joint - gain @ matrix @ joint).reshape(count, size, count, size)
    return means, np.stack([whole[at, :, at] for at in range(count)]), float(log)


def test_kalman_conditions_the_joint_distribution() -> None:
    example = load("kalman")
    model, y = random_model(example)
    states, log = example.filtered(model, y)
    for at in range(len(y)):
        means, covariances, known = conditioned(model, y, at + 1)
        np.testing.assert_allclose(states.mean[at].to_numpy(), means[at], atol=1e-12)
        np.testing.assert_allclose(states.covariance[at].to_numpy(), covariances[at], atol=1e-12)
    assert float(log) == pytest.approx(known, rel=1e-12)
    whole = example.smoothed(model, states)
    np.testing.assert_allclose(whole.mean.to_numpy(), means, atol=1e-12)
    np.testing.assert_allclose(whole.covariance.to_numpy(), covariances, atol=1e-12)
    others, other = example.filtered_in_parallel(model, y)
    assert float(other) == pytest.approx(known, rel=1e-12)
    for ours, theirs in ((others, states), (example.smoothed_in_parallel(model, states), whole)):
        for own, expected in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(own.to_numpy(), expected.to_numpy(), atol=1e-11)


def test_gradients_through_the_kalman_filter() -> None:
    example = load("kalman")
    model, y = random_model(example, 1)

    def log(model: Any) -> float:
        return conditioned(model, y, len(y))[2]

    slopes = dn.grad(lambda model: example.filtered(model, y)[1])(model)
    others = dn.grad(lambda model: example.filtered_in_parallel(model, y)[1])(model)
    random = np.random.default_rng(2)
    for name in model._fields:
        value = getattr(model, name)
        way = random.normal(size=value.shape)
        if name in {"covariance", "process", "error"}:
            way = way + way.T
        ahead, behind = (
            log(model._replace(**{name: value + step * way})) for step in (1e-5, -1e-5)
        )
        for slope in (slopes, others):
            along = np.sum(getattr(slope, name).to_numpy() * way)
            assert along == pytest.approx((ahead - behind) / 2e-5, rel=1e-6), name


def test_kalman_finds_the_published_variances() -> None:
    example = load("kalman")
    assert example.NILE.shape == (100,)
    variances, found = example.learn()
    # Durbin and Koopman, "Time series analysis by state space methods", 2012, section 2.10.
    np.testing.assert_allclose(variances, [1469.1, 15099], rtol=2e-3)
    assert found[-1] == pytest.approx(-641.5856, abs=1e-4)
    assert found[-1] >= found.max() - 1e-6


def test_gaussian_process_agrees_with_scikit_learn() -> None:
    example = load("gaussian_process")
    random = np.random.default_rng(0)
    x, new = random.normal(size=(25, 2)), random.normal(size=(10, 2))
    y = np.sin(x[:, 0]) + 0.1 * random.normal(size=25)
    for logs in ([0.3, -0.2, 0.7, -2.0], [-1.0, 1.5, 0.0, 0.5]):
        kernel = example.Kernel(*(np.asarray(part) for part in (logs[0], logs[1:3], logs[3])))
        shape = kernels.RBF(np.exp(logs[1:3]))
        theirs = GaussianProcessRegressor(
            kernels.ConstantKernel(np.exp(logs[0])) * shape + kernels.WhiteKernel(np.exp(logs[3])),
            alpha=0.0,
            optimizer=None,
        ).fit(x, y)
        value, slope = dn.value_and_grad(example.log_likelihood)(kernel, dn.tensor(x), dn.tensor(y))
        known, slopes = theirs.log_marginal_likelihood(np.array(logs), eval_gradient=True)
        assert float(value) == pytest.approx(known, rel=1e-11)
        ours = np.concatenate([np.ravel(part.to_numpy()) for part in slope])
        np.testing.assert_allclose(ours, slopes, rtol=1e-9)
        mean, variance = example.predict(kernel, x, y, new)
        expected, deviation = theirs.predict(new, return_std=True)
        np.testing.assert_allclose(mean.to_numpy(), expected, rtol=1e-9)
        # Theirs is the variance of an observation.
        total = variance.to_numpy() + np.exp(logs[3])
        np.testing.assert_allclose(total, deviation**2, rtol=1e-9)


def test_gaussian_process_finds_the_kernel_that_scikit_learn_finds() -> None:
    example = load("gaussian_process")
    x, y = example.observations()
    kernel = example.Kernel(*(np.zeros(shape) for shape in ((), (1,), ())))
    kernel, found = example.fit(kernel, x, y, steps=150)
    theirs = GaussianProcessRegressor(
        kernels.ConstantKernel() * kernels.RBF() + kernels.WhiteKernel(), alpha=0.0
    ).fit(x, y)
    assert found[-1].item() == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    ours = np.concatenate([np.ravel(part.to_numpy()) for part in kernel])
    np.testing.assert_allclose(ours, theirs.kernel_.theta, atol=0.02)


def test_exact_solution_of_burgers_equation() -> None:
    example = load("physics_informed")
    x = np.linspace(-1, 1, 801)
    width = x[1] - x[0]

    def slope(_: float, u: np.ndarray) -> np.ndarray:
        change = np.zeros_like(u)
        flux = (u[2:] ** 2 - u[:-2] ** 2) / (4 * width)
        change[1:-1] = example.VISCOSITY * (u[2:] - 2 * u[1:-1] + u[:-2]) / width**2 - flux
        return change

    times = np.array([0.1, 0.5, 1.0])
    start = -np.sin(np.pi * x)
    tight = {"rtol": 1e-7, "atol": 1e-9, "lband": 1, "uband": 1}
    found = solve_ivp(slope, (0, 1), start, "LSODA", times, **tight).y.T
    np.testing.assert_allclose(example.exact(times[:, None], x), found, atol=2e-4)


def test_residual_of_a_network() -> None:
    """Its derivatives are those of differences, in f64."""
    example = load("physics_informed")
    params = example.initial(dn.random.key(0), (2, 8, 8, 1))
    params = dn.tree.map(lambda leaf: dn.tensor(leaf.to_numpy().astype(np.float64)), params)
    random = np.random.default_rng(0)
    t, x, step = random.uniform(0.1, 0.9, 20), random.uniform(-0.9, 0.9, 20), 1e-4

    def u(t: np.ndarray, x: np.ndarray) -> np.ndarray:
        return example.solution(params, dn.tensor(t), dn.tensor(x)).to_numpy()

    u_t = (u(t + step, x) - u(t - step, x)) / (2 * step)
    u_x = (u(t, x + step) - u(t, x - step)) / (2 * step)
    u_xx = (u(t, x + step) - 2 * u(t, x) + u(t, x - step)) / step**2
    expected = u_t + u(t, x) * u_x - example.VISCOSITY * u_xx
    found = example.residual(params, dn.tensor(t), dn.tensor(x)).to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # Conditions hold for any weights.
    np.testing.assert_allclose(u(0 * t, x), -np.sin(np.pi * x), atol=1e-12)
    np.testing.assert_allclose(u(t, np.sign(x)), 0, atol=1e-12)


def test_physics_informed_network() -> None:
    example = load("physics_informed")
    params, losses = example.train(1000, (2, 16, 16, 16, 1), 64)
    assert len(losses) == 1000
    assert losses[-50:].mean() < 0.05 * losses[0]
    error = example.errors(params)
    assert np.sqrt(np.mean(error**2)) < 0.025
    assert np.abs(error).max() < 0.08


def test_models_keep_f32() -> None:
    hmc, kalman, process = load("hmc"), load("kalman"), load("gaussian_process")

    def halved(value: Any) -> Any:
        return dn.tree.map(lambda leaf: dn.tensor(leaf, dtype="f32"), value)

    x, y = halved((hmc.design(hmc.TEMPERATURE), hmc.DAMAGE))
    state, size = hmc.warm_up(dn.random.key(0), x, y, steps=10)
    found = hmc.sample(state, size, x, y, draws=5)[1], hmc.diagnostics(x.T)
    model, y = random_model(kalman)
    whole = float(kalman.filtered(model, y)[1])
    states, log = kalman.filtered(halved(model), halved(y))
    assert float(log) == pytest.approx(whole, rel=1e-5)
    others = kalman.filtered_in_parallel(halved(model), halved(y))
    found = found, states, log, kalman.smoothed(halved(model), states), others
    x, y = halved(process.observations())
    kernel, likelihoods = process.fit(halved(process.Kernel(0.0, np.zeros(1), 0.0)), x, y, steps=5)
    found = found, kernel, likelihoods, process.predict(kernel, x, y, x)
    assert {str(leaf.dtype) for leaf in dn.tree.leaves(found)} == {"f32"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hmc", ["--chains", "4", "--draws", "200"]),
        ("kalman", []),
        ("gaussian_process", ["--starts", "2"]),
        ("physics_informed", ["--steps", "4"]),
    ],
)
def test_they_draw_pictures(
    name: str,
    options: list[str],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    load(name).main([*options, "--picture", str(picture)])
    assert capsys.readouterr().out.strip()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_picture_of_all(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(EXAMPLES)
    picture = tmp_path / "science.png"
    example = load("science")
    best = functools.partial(example.gaussian_process.best, starts=1)
    monkeypatch.setattr(example.gaussian_process, "best", best)
    example.main(["--steps", "4", "--picture", str(picture)])
    assert picture.read_bytes().startswith(b"\x89PNG")
