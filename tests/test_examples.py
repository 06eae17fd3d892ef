"""The examples give what their NumPy versions give."""

from __future__ import annotations

import importlib.util
import pathlib
from types import ModuleType

import numpy as np
import pytest

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
    "name", ["newton", "ray_marcher", "rnn", "metropolis", "kmeans", "pipeline"]
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
