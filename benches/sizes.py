"""The wheel's size, a run of it in a bare virtual environment, and its import time.

Fails if a budget is exceeded.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEEL_MB = 9.0
IMPORT_MS = 30.0
ROUNDS = 15

PROGRAM = """
import defn as dn
loss = lambda x: dn.sum(x ** 3)
gradient = dn.jit(dn.grad(loss))(dn.tensor([1.0, 2.0]))
assert gradient.to_list() == [3.0, 12.0], gradient
print("ran:", f"the gradient of sum(x ** 3) at [1, 2] is {gradient.to_list()}")
"""

# NumPy and ml_dtypes are imported first, so that only the additional time counts.
IMPORT = """
import numpy, ml_dtypes, time
start = time.perf_counter()
import defn
print(1e3 * (time.perf_counter() - start))
"""


def output(*command: str | Path, cwd: Path = ROOT) -> str:
    """The standard output of a command; raises SystemExit if the command fails."""
    env = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed with status {done.returncode}")
    return done.stdout


def main() -> int:
    """Builds, installs and runs the wheel, and measures it."""
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        # As for a release: the default level leaves 0.3 MB more.
        options = ("--release", "--locked", "--quiet", "--compression-level", "9")
        output(scripts / "maturin", "build", *options, "--out", place)
        (wheel,) = place.glob("*.whl")
        size = wheel.stat().st_size / 1e6
        bare = place / "bare"
        output(sys.executable, "-m", "venv", bare)
        python = bare / ("Scripts" if os.name == "nt" else "bin") / "python"
        output(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        print(f"installed {wheel.name} in a bare virtual environment")
        print(output(python, "-c", PROGRAM, cwd=place), end="")
        output(python, "-c", IMPORT, cwd=place)  # The first import writes the bytecode.
        times = [float(output(python, "-c", IMPORT, cwd=place)) for _ in range(ROUNDS)]

    middle, least = statistics.median(times), min(times)
    print(
        f"import: {middle:.1f} ms beyond NumPy and ml_dtypes (median of {ROUNDS}, "
        f"least {least:.1f}), budget {IMPORT_MS:.0f} ms"
    )
    print(f"wheel: {size:.2f} MB, budget {WHEEL_MB:.0f} MB")
    kept = middle <= IMPORT_MS and size <= WHEEL_MB
    print("both within their budgets" if kept else "OVER BUDGET")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
