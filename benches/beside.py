"""Two builds of defn measured in turn, for `peers.py --beside`.

The ratios of `ratios.json` were measured on one machine. On another one, JAX and defn do not slow
down alike: whether a change made workloads slower is answered by the build before it, measured on
the same machine at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import report

# Processes that measure all rows, and the greatest number for a row that seems slower. The memory
# of a process is placed once, which changes its times by up to a tenth.
PROCESSES, MOST_PROCESSES = 2, 8
# The gate fails where the least time of this build is greater by this factor.
SLOWER = 1.10


def measure(folder: Path, options: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The least seconds of each row, with the package `defn` of a folder."""
    command = [sys.executable, str(Path(__file__).with_name("peers.py")), "--raw", *options, *names]
    env = dict(os.environ, PYTHONPATH=str(folder))
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: min(row["times"][0]) for row in rows}


def compare(other: Path, options: Sequence[str], names: Sequence[str]) -> int:
    """Prints the least times of both builds; the exit status is 1 if a row became slower."""
    if not (other / "defn" / "__init__.py").is_file():
        raise SystemExit(f"{other} has no package defn; give the folder that contains it")
    builds = (report.ROOT / "python", other.resolve())
    least: dict[str, list[float]] = {}

    def measure_both(chosen: Sequence[str]) -> None:
        for build, folder in enumerate(builds):
            for name, seconds in measure(folder, options, chosen).items():
                times = least.setdefault(name, [float("inf")] * 2)
                times[build] = min(times[build], seconds)

    def slower() -> list[str]:
        return [name for name, (ours, theirs) in least.items() if ours > SLOWER * theirs]

    for _ in range(PROCESSES):
        measure_both(names)
    for _ in range(MOST_PROCESSES - PROCESSES):
        if slower():
            measure_both(slower())
    print(f"{'':30}{'this':>11}{'other':>11}{'other/this':>12}")
    for name, (ours, theirs) in least.items():
        cells = f"{report.text(ours):>11}{report.text(theirs):>11}"
        print(f"{name:30}{cells}{theirs / ours:>12.2f}")
    mean = report.mean([theirs / ours for ours, theirs in least.values()])
    print(f"{len(least)} rows, geometric mean {mean:.3f}")
    print(f"slower than the other build by a tenth: {', '.join(slower()) or 'none'}")
    return 1 if slower() else 0
