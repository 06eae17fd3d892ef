"""The output of `programs.py`: its table, `docs/programs.md` with its chart, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import jax
import numba
import numpy as np
import report

import defn as dn

from .measuring import JAX, NUMBA, NUMPY, OURS, Row

PAGE = report.ROOT / "docs" / "programs.md"
CHART = report.ROOT / "docs" / "programs.png"

HEAD = """# Programs

`./dev bench programs --write` writes this page. Each program is a loop that is written four times:
with the loops of defn, with NumPy, with the loops of numba, and with those of JAX. All four are in
`benches/programs`, side by side. Every number is from one run, in one process, on one machine.
Calls of the libraries alternate, and the least time counts. Before a program is timed, a check
requires that all results are equal within a tolerance. numba compiles a program whose trips are
independent for one thread and for all threads, and the better one counts; its `fastmath` is off.

""".splitlines()

LEGEND = """
![The best other library's time as a multiple of defn's](programs.png)

The columns of NumPy, numba and JAX are their times as multiples of defn's: where a number is less
than 1, the library is faster. *Best* is the fastest of the three. Numbers are f32 unless the size
says otherwise. NumPy and numba have no gradients. The gradient of the adaptive Runge-Kutta method
is JAX's `jacfwd`, because its reverse mode refuses a `while_loop`.""".splitlines()

FIRST = """
## First calls

The first call of a program compiles and runs it. *Reading* is the part in which defn reads and
rewrites the source of the Python function, which it does once for each function; *compiling* is the
part in which it traces and compiles. Each library has compiled another loop before, so that what it
does once in a process is not counted. NumPy compiles nothing.

""".splitlines()

# Programs for which another library takes less than so much of our time, and what bounds ours.
SLOW = 0.8
BOUNDS = {
    "Jacobi": "each sweep goes through 524 KB, in the second-level cache, and its threads meet.",
    "Runge-Kutta 5(4)": "scalar operations that wait for each other, stage by stage.",
    "shallow water": "three nests go through 918 KB in each step, in the second-level cache by "
    "one thread: their rows are too short to be divided. numba's program has two loops.",
    "Levinson-Durbin": "arrays are as long as the last order of a part needs: they have 1.25 times "
    "as many elements as numba's slices. Two of five sweeps in each order write a mirrored "
    "filter and the zeros behind it.",
    "implicit Euler": "scalar operations that wait for each other. The solver picks pivots: "
    "there are comparisons and selections before each quotient. numba's program has all of it "
    "written out, without them.",
}

FIRST_COLUMNS = (OURS, "reading", "compiling", NUMBA, JAX)


def ratio(row: Row, library: str) -> str:
    """A library's time as a multiple of ours, or nothing."""
    return report.times(row.least[library] / row.least[OURS]) if library in row.least else ""


def heads() -> str:
    """The head of the table that is printed."""
    cells = "".join(map("{:>11}".format, (OURS, NUMPY, NUMBA, JAX)))
    return f"{'':30}{cells}{'best':>8}{'best/defn':>11}{'JAX/defn':>10}"


def line(row: Row) -> str:
    """A row of the table that is printed."""
    least = [row.least.get(library) for library in (OURS, NUMPY, NUMBA, JAX)]
    cells = "".join(f"{'' if seconds is None else report.text(seconds):>11}" for seconds in least)
    return f"{row.name:30}{cells}{row.best:>8}{report.times(row.ratio):>11}{ratio(row, JAX):>10}"


def first_lines(rows: Sequence[Row]) -> list[str]:
    """The table of first calls that is printed."""
    table = [("first calls", FIRST_COLUMNS), *((row.name, first_cells(row)) for row in rows)]
    return [f"{name:30}" + "".join(f"{cell:>11}" for cell in cells) for name, cells in table]


def first_cells(row: Row) -> list[str]:
    """Our first call with its parts, then the first calls of numba and JAX."""
    others = [row.first.get(library) for library in (NUMBA, JAX)]
    seconds = [row.first[OURS], row.reading, row.compiling, *others]
    return ["" if value is None else report.text(value) for value in seconds]


def means(rows: Sequence[Row]) -> list[str]:
    """The geometric means beside the best library and beside JAX: of programs, and of gradients."""
    found = []
    for what, chosen in (
        ("programs", [row for row in rows if NUMPY in row.least]),
        ("gradients", [row for row in rows if NUMPY not in row.least]),
    ):
        if chosen:
            best = report.times(report.mean([row.ratio for row in chosen]))
            beside = report.mean([row.least[JAX] / row.least[OURS] for row in chosen])
            found.append(
                f"{len(chosen)} {what}: the best other library takes {best} times as long as defn "
                f"in the geometric mean, and JAX {report.times(beside)} times"
            )
    return found


def first_means(rows: Sequence[Row]) -> str:
    """The geometric means of the first calls beside ours."""
    cells = []
    for library in (NUMBA, JAX):
        both = [row.first[library] / row.first[OURS] for row in rows if library in row.first]
        if both:
            cells.append(f"{report.mean(both):.1f} times as long in {library}")
    return f"first calls take {' and '.join(cells)} as in defn, in the geometric mean"


def machine(threads: int) -> str:
    """The machine, the libraries and the number of threads."""
    libraries = (
        f"defn {dn.__version__}, NumPy {np.__version__}, numba {numba.__version__}, "
        f"JAX {jax.__version__}"
    )
    return f"{report.Machine.words()}; threads of each library: {threads}; {libraries}"


def bounds(rows: Sequence[Row]) -> list[str]:
    """The section on the programs that are slow, if there are any."""
    slow = [row for row in rows if row.ratio < SLOW]
    if not slow:
        return []
    head = (
        f"These are the programs for which another library takes less than {SLOW} of defn's time."
    )
    said = [f"- {row.name}: {BOUNDS.get(row.name, 'not known yet')}" for row in slow]
    return ["", "## What bounds the slowest", "", head, "", *said]


def page(rows: Sequence[Row], threads: int) -> str:
    """The text of the page."""
    lines = [
        *HEAD,
        f"- {machine(threads)}",
        *(f"- {mean}" for mean in means(rows)),
        *LEGEND,
    ]
    for family in dict.fromkeys(row.family for row in rows):
        lines += [
            "",
            f"## {family.capitalize()}",
            "",
            "| program | size | defn | NumPy | numba | JAX | best |",
            "|---|---|--:|--:|--:|--:|--:|",
        ]
        for row in rows:
            if row.family == family:
                cells = [row.name, row.size, report.text(row.least[OURS])]
                cells += [ratio(row, library) for library in (NUMPY, NUMBA, JAX)]
                lines.append(f"| {' | '.join(cells)} | {report.times(row.ratio)} ({row.best}) |")
    lines += bounds(rows)
    lines += [
        *FIRST,
        f"- {first_means(rows)}",
        "",
        f"| program | {' | '.join(FIRST_COLUMNS)} |",
        f"|---|{'--:|' * len(FIRST_COLUMNS)}",
        *(f"| {row.name} | {' | '.join(first_cells(row))} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def write(rows: Sequence[Row], threads: int) -> None:
    """Writes the page and the chart."""
    PAGE.write_text(page(rows, threads))
    report.chart(rows, CHART, "how many times our time the best of NumPy, numba and JAX takes")


def keep(rows: Sequence[Row], threads: int, path: Path) -> None:
    """Writes all that was measured as JSON."""
    found = {"machine": machine(threads), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(found, indent=1) + "\n")
