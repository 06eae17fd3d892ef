"""The small programs of `benches/programs.py`: the loops of defn give the results of NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benches"))

from programs import PROGRAMS, Program

GRADIENTS = [program for program in PROGRAMS if program.wrt]


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.wrt], ids=lambda p: p.name)
def test_programs_agree_with_numpy(program: Program) -> None:
    arrays, options = program.made(quick=True)
    program.check("defn", program.ours(*arrays, **options), program.numpy(*arrays, **options))


@pytest.mark.parametrize("program", GRADIENTS, ids=lambda p: p.name)
def test_gradients_agree_with_differences(program: Program) -> None:
    """The slope along a random direction, by central differences of NumPy's loss in f64."""
    arrays, options = program.made(quick=True)
    arrays = [np.asarray(array, np.float64) for array in arrays]
    found = program.ours(*arrays, **options)
    rng, step, slope = np.random.default_rng(0), 1e-6, 0.0
    forth, back = list(arrays), list(arrays)
    for place, gradient in zip(program.wrt, found, strict=True):
        way = rng.standard_normal(arrays[place].shape)
        slope += np.sum(np.asarray(gradient) * way)
        forth[place], back[place] = arrays[place] + step * way, arrays[place] - step * way
    change = program.numpy(*forth, **options) - program.numpy(*back, **options)
    assert slope == pytest.approx(change / (2 * step), rel=1e-5)


def test_the_names_are_apart() -> None:
    """The page and `--only` tell the programs by their names."""
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 24 + 6
    assert len(GRADIENTS) >= 6
