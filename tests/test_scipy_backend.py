"""Tests that SciPy wrote run on our arrays. ``tools/scipy_tests.py`` runs all of them."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]

# Quick files of every kind.
FILES = [
    "cluster.tests.test_vq",
    "constants.tests.test_constants",
    "fft.tests.test_helper",
    "interpolate.tests.test_polyint",
    "ndimage.tests.test_splines",
    "signal.tests.test_upfirdn",
    "special.tests.test_logsumexp",
    "stats.tests.test_rank",
    "stats.tests.test_variation",
]
# Tests of which some fail, for reasons that the page of the tests names.
FAILING = [
    "test_dtypes_ab",
    "test_gh22601_infinite_elements",
    "test_krandinit",
    "softmax_int_array",
]


def test_a_choice_of_scipys_tests_passes(tmp_path: pathlib.Path) -> None:
    paths = [str(ROOT / "python"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "scipy_backend",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-m", "array_api_backends", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-k", f"not ({' or '.join(FAILING)})"]
    command += ["--pyargs", *(f"scipy.{name}" for name in FILES)]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None
    assert int(passed[1]) > 450


def test_the_page_lists_every_file() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "scipy_tests.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
