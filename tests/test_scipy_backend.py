"""Tests that SciPy wrote run on our arrays. ``tools/scipy_tests.py`` runs all of them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]

# Files whose tests are quick, and a choice of those of others.
FILES = ["special.tests.test_logsumexp"]


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
    command += ["--pyargs", *(f"scipy.{name}" for name in FILES)]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_page_lists_every_file() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "scipy_tests.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
