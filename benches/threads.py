"""The workloads of `peers.py` on 1, 2, 4, ... processors, beside JAX on the same ones.

    python benches/threads.py [--counts 1 2 4 8 16] [name ...]

Each count has a process of its own, which may run on that many processors only. Both libraries
use as many threads. The ratios and the speed-ups are kept in `threads.json`, and the page
`docs/benchmarks.md` shows them; counts that are not measured again stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path

import report
from beside import raw_rows


def measure(count: int, budget: float, names: list[str]) -> dict[str, dict[str, list[float]]]:
    """By family and row, the least seconds of defn and of JAX on some processors."""
    before = os.sched_getaffinity(0)
    # The process that measures inherits it.
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        rows = raw_rows(["--budget", str(budget), *names])
    finally:
        os.sched_setaffinity(0, before)
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["family"]:
            least = [min(times) for times in row["times"][:2]]
            found.setdefault(row["family"], {})[row["name"]] = least
    return found


def main() -> None:
    """Measures, keeps what was measured, and writes the page's part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="words in the names of rows; all without")
    parser.add_argument("--counts", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each row")
    parser.add_argument("--out", type=Path, default=report.THREADS)
    given = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    kept = json.loads(given.out.read_text()) if given.out.exists() else {"counts": {}}
    for count in given.counts:
        if count > processors:
            parser.error(f"{count} processors are asked for, and there are {processors}")
        kept["machine"] = f"{report.Machine.words()}, {platform.system()}"
        kept["counts"][str(count)] = measure(count, given.budget, given.names)
        given.out.write_text(json.dumps(kept, indent=1) + "\n")
        print("\n".join(report.threads_lines(kept)), flush=True)
    if given.out == report.THREADS:
        page = report.PAGE.read_text().partition(f"\n{report.THREADS_HEAD}\n")[0]
        report.PAGE.write_text(page + "\n".join(["", *report.threads_lines(kept)]) + "\n")


if __name__ == "__main__":
    main()
