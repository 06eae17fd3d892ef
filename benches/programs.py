"""Programs that are loops, beside NumPy, numba and JAX on the CPU, in one process.

Before a program is timed, its results are checked to be equal within a tolerance. The libraries
take turns, and of each the least time counts. First calls are timed too, with what is compiled.

    python benches/programs.py [--only NAME,...] [--threads N] [--quick] [--json OUT] [--write]

With ``--write`` it writes `docs/programs.md` with its chart. With ``--quick`` the sizes are those
of the tests, which say whether everything runs, and nothing about speed. Where others use the
processors, ``--threads 1 --cpu-time`` counts the process's own time in the steady calls.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any


def pin(threads: int) -> None:
    """Lets this process use some processors; the libraries look when they are imported."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["NUMBA_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    # By default OpenBLAS's threads spin so long that they slow down the next measurement.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")


def chosen(programs: list[Any], only: str) -> list[Any]:
    """The programs of these names, or else in whose names a word occurs; all without words."""
    words = [word.strip().lower() for word in only.split(",") if word.strip()]
    found = set() if words else {program.name for program in programs}
    for word in words:
        names = [program.name for program in programs if word in program.name.lower()]
        if not names:
            known = ", ".join(program.name for program in programs)
            raise SystemExit(f"no program is called {word}; there are: {known}")
        found.update([name for name in names if name.lower() == word] or names)
    return [program for program in programs if program.name in found]


def main() -> int:
    """Prints the tables; writes what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    processors = len(os.sched_getaffinity(0))
    parser.add_argument("--only", default="", metavar="NAME,...", help="words in names of programs")
    parser.add_argument("--threads", type=int, default=processors, help="of each library")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each program")
    parser.add_argument("--quick", action="store_true", help="the sizes of the tests")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all times to a file")
    parser.add_argument("--write", action="store_true", help="write the page and its chart")
    parser.add_argument("--cpu-time", action="store_true", help="for a machine that others use")
    given = parser.parse_args()
    if not 1 <= given.threads <= processors:
        parser.error(f"--threads {given.threads}: there are 1 to {processors} processors")
    if given.write and (given.only or given.quick or given.cpu_time):
        parser.error("--write needs every program in its full size, and the time that it takes")
    if given.cpu_time and given.threads != 1:
        parser.error("--cpu-time adds up the times of threads, and needs --threads 1")
    pin(given.threads)

    from programs import PROGRAMS, page
    from programs.measuring import measure, warm_up

    selected = chosen(PROGRAMS, given.only)
    print(page.machine(given.threads))
    warm_up()
    rows = []
    print(page.heads(), flush=True)
    for program in selected:
        rows.append(measure(program, given.quick, given.budget, given.cpu_time))
        print(page.line(rows[-1]), flush=True)
    print("\n".join(["", *page.first_lines(rows), *page.means(rows), page.first_means(rows)]))
    if given.json:
        page.keep(rows, given.threads, given.json)
    if given.write:
        page.write(rows, given.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
