"""The example on handwritten digits: it learns, Rust agrees with it, and NumPy computes nothing."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits", ROOT / "examples" / "digits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["digits"] = module
    spec.loader.exec_module(module)
    return module


def test_it_learns_to_read(digits: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    picture, log = tmp_path / "digits.png", tmp_path / "losses.json"
    accuracy = digits.main(["--picture", str(picture), "--log", str(log)])
    assert accuracy >= 0.97
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.splitlines()[-1] == f"test accuracy: {100 * accuracy:.1f}%"
    losses = json.loads(log.read_text())
    assert len(losses) == 20 * 44
    assert np.mean(losses[-44:]) < 0.05 * np.mean(losses[:10])


def test_xla_trains_to_the_same_losses(digits: ModuleType, tmp_path: Path):
    losses, accuracies = [], []
    for compiler in ("evaluator", "pjrt"):
        log, picture = tmp_path / f"{compiler}.json", tmp_path / f"{compiler}.png"
        options = ["--epochs", "3", "--compiler", compiler, "--log", str(log)]
        accuracies.append(digits.main([*options, "--picture", str(picture)]))
        losses.append(json.loads(log.read_text()))
    assert len(losses[0]) == len(losses[1]) == 3 * 44
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-3)
    # One of the 360 digits may have two nearly equal scores.
    assert min(accuracies) > 0.9
    assert abs(accuracies[0] - accuracies[1]) < 1.5 / 360


def test_rust_trains_to_the_same_losses(digits: ModuleType, tmp_path: Path):
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    # With other flags than those of `./dev test`, cargo would build crates again.
    flags = runpy.run_path(str(ROOT / "dev"), run_name="flags")["EVERYTHING"]
    subprocess.run([cargo, "build", *flags, "--example", "digits"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    log = tmp_path / "rust.json"
    options = ["--epochs", "4", "--seed", "1"]
    command = [str(target / "release" / "examples" / "digits"), *options, "--log", str(log)]
    subprocess.run(command, cwd=ROOT, check=True)
    rust = json.loads(log.read_text())

    log = tmp_path / "python.json"
    digits.main([*options, "--log", str(log), "--picture", str(tmp_path / "digits.png")])
    python = json.loads(log.read_text())

    assert len(rust) == len(python) == 4 * 44
    np.testing.assert_allclose(rust, python, rtol=0, atol=1e-4)


def test_numpy_computes_nothing_while_training(digits: ModuleType, monkeypatch: pytest.MonkeyPatch):
    random = digits.Random(0)
    data = digits.Digits.load(random)
    with no_numpy_arithmetic(monkeypatch):
        # The guard works: NumPy's operators and functions raise.
        with pytest.raises(TypeError):
            data.images + data.images
        with pytest.raises(AssertionError):
            np.add(data.images, data.images)
        losses = [step.loss for step in digits.train(data, random, epochs=2)]
    assert sum(losses[-10:]) < 0.3 * sum(losses[:10])
    assert (data.images + data.images).max() == 32


# The slots of a type's number protocol, in the order of CPython's `PyNumberMethods`.
NUMBER_SLOTS = (
    "add subtract multiply remainder divmod power negative positive absolute bool invert lshift "
    "rshift and xor or int reserved float inplace_add inplace_subtract inplace_multiply "
    "inplace_remainder inplace_power inplace_lshift inplace_rshift inplace_and inplace_xor "
    "inplace_or floor_divide true_divide inplace_floor_divide inplace_true_divide index "
    "matrix_multiply inplace_matrix_multiply"
).split()
CONVERSIONS = {"bool", "int", "reserved", "float", "index"}


@contextmanager
def no_numpy_arithmetic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Removes the operators of arrays, and makes NumPy's functions that compute raise."""

    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("NumPy computes")

    # The pointer to a type's number protocol is ten words after the common object header.
    words = ctypes.cast(
        id(np.ndarray) + object.__basicsize__ + 10 * ctypes.sizeof(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_void_p),
    )
    slots = ctypes.cast(words[0], ctypes.POINTER(ctypes.c_void_p))
    taken = [at for at, name in enumerate(NUMBER_SLOTS) if name not in CONVERSIONS]
    before = [slots[at] for at in taken]
    reductions = ("sum", "prod", "mean", "max", "min", "dot", "einsum", "argmax", "where", "clip")
    with monkeypatch.context() as patch:
        for name, function in list(vars(np).items()):
            if isinstance(function, np.ufunc) or name in reductions:
                patch.setattr(np, name, refuse)
        for at in taken:
            slots[at] = None
        try:
            yield
        finally:
            for at, slot in zip(taken, before, strict=True):
                slots[at] = slot
