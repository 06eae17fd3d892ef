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
from typing import Any

from report import ROOT, SLOWER, mean, text

# Processes that measure all rows, and the greatest number for a row that seems slower. The memory
# of a process is placed once, which changes its times by up to a tenth.
PROCESSES, MOST_PROCESSES = 2, 8


def raw_rows(options: Sequence[str], **variables: str) -> list[dict[str, Any]]:
    """The rows that another process of `peers.py` measures."""
    command = [sys.executable, str(Path(__file__).with_name("peers.py")), *options, "--raw"]
    env = dict(os.environ, **variables)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(other: Path, options: Sequence[str], names: Sequence[str]) -> int:
    """Prints the least times of both builds; the exit status is 1 if a row became slower."""
    if not (other / "defn" / "__init__.py").is_file():
        raise SystemExit(f"{other} has no package defn; give the folder that contains it")
    builds = (ROOT / "python", other.resolve())
    least: dict[str, list[float]] = {}

    def measure_both(chosen: Sequence[str]) -> None:
        for build, folder in enumerate(builds):
            for row in raw_rows([*options, *chosen], PYTHONPATH=str(folder)):
                times = least.setdefault(row["name"], [float("inf")] * 2)
                times[build] = min(times[build], *row["times"][0])

    def slower() -> list[str]:
        return [name for name, (ours, theirs) in least.items() if ours > SLOWER * theirs]

    for _ in range(PROCESSES):
        measure_both(names)
    for _ in range(MOST_PROCESSES - PROCESSES):
        if chosen := slower():
            measure_both(chosen)
    print(f"{'':30}{'this':>11}{'other':>11}{'other/this':>12}")
    for name, (ours, theirs) in least.items():
        cells = f"{text(ours):>11}{text(theirs):>11}"
        print(f"{name:30}{cells}{theirs / ours:>12.2f}")
    ratio = mean([theirs / ours for ours, theirs in least.values()])
    print(f"{len(least)} rows, geometric mean {ratio:.3f}")
    print(f"slower than the other build by a tenth: {', '.join(slower()) or 'none'}")
    return 1 if slower() else 0
