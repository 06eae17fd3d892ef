"""Kernels and programs of the Rust crate beside those of other Rust libraries.

It builds `benches/rivals`, runs it with one thread and with two, and prints a table.

    python benches/rivals.py [--only WORD,...] [--budget SECONDS] [--write]

With ``--write`` it writes `docs/benchmarks-rust.md` with its chart.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import report
from rivals_reasons import REASONS

CRATE = report.ROOT / "benches" / "rivals"
PAGE = report.ROOT / "docs" / "benchmarks-rust.md"
CHART = report.ROOT / "docs" / "benchmarks-rust.png"

OURS = "defn"
THREADS = (1, 2)
# A workload needs a reason where our time is more than so many times that of the best library.
SLOWER = 1.10
# The crates behind the libraries' names; `Rust` is the standard library.
CRATES = {
    "matrixmultiply": "matrixmultiply",
    "rustfft": "rustfft",
    "rayon": "rayon",
    "rand": "rand",
    "ndarray": "ndarray",
    "nalgebra": "nalgebra",
    "faer": "faer",
    "candle": "candle-core",
    "burn": "burn-tensor",
}
FLAGS = "-C target-cpu=native"
UNKNOWN = "The reason is not known."

HEAD = """# Benchmarks in Rust

`./dev bench kernels --write` writes this page. It times the crate `defn` beside the libraries that
Rust programs use for the same work: loops over slices with the standard library (*Rust*), ndarray,
nalgebra, faer, candle, burn, matrixmultiply, rustfft, rayon and rand. All programs are in
`benches/rivals`, side by side. Before a workload is timed, a check requires that all results are
equal within a tolerance. Of random numbers it compares the moments.

Every number of a table is from one process. Calls of the libraries alternate, and the least time
counts. Each library has its input in its own layout. Everything is compiled with
`-C target-cpu=native`, so that the other libraries may use all instructions of the machine; defn
chooses its kernels when it runs.

""".splitlines()

LEGEND = """
![The best other library's time as a multiple of defn's](benchmarks-rust.png)

*Best* is the fastest other library. The columns of libraries are their times as multiples of
defn's: where a number is less than 1, the library is faster. They are measured with one thread; the
last two columns with two threads, which all libraries but nalgebra, rustfft, rand and loops can
use. *burn* is burn on its backend flex.""".splitlines()


@dataclass
class Row:
    """A workload: the least seconds of each library, by the number of threads."""

    family: str
    name: str
    least: dict[int, dict[str, float]] = field(default_factory=dict)

    def best(self, threads: int = 1) -> str:
        """The fastest of the other libraries."""
        least = self.least[threads]
        return min((name for name in least if name != OURS), key=least.__getitem__)

    def beside(self, threads: int = 1) -> float:
        """The time of the best other library divided by ours."""
        return self.least[threads][self.best(threads)] / self.least[threads][OURS]

    @property
    def ratio(self) -> float:
        """The same with one thread."""
        return self.beside()


def build() -> Path:
    """Builds the program with all libraries, and returns its path."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", report.ROOT / "target")) / "rivals"
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(target)]
    env = dict(os.environ, RUSTFLAGS=f"{os.environ.get('RUSTFLAGS', '')} {FLAGS}".strip())
    subprocess.run([*command, "--manifest-path", str(CRATE / "Cargo.toml")], check=True, env=env)
    return target / "release" / "defn-rivals"


def measure(program: Path, only: str, budget: float) -> list[Row]:
    """Runs the program with each number of threads."""
    rows: dict[str, Row] = {}
    for threads in THREADS:
        command = [str(program), "--threads", str(threads), "--budget", str(budget)]
        command += ["--only", only] if only else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for printed in process.stdout:
                family, name, library, least, _ = printed.rstrip("\n").split("\t")
                row = rows.setdefault(name, Row(family, name))
                row.least.setdefault(threads, {})[library] = float(least)
                if len(row.least) == 1 and library == OURS:
                    print(f"{threads} {name}", file=sys.stderr, flush=True)
        if process.returncode != 0:
            raise SystemExit(f"{program.name} failed with status {process.returncode}")
    return list(rows.values())


def versions() -> str:
    """The compiler and the libraries."""
    lock = tomllib.loads((CRATE / "Cargo.lock").read_text())
    found = {package["name"]: package["version"] for package in lock["package"]}
    names = [f"{name} {found[crate]}" for name, crate in CRATES.items()]
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    return f"{' '.join(rustc.stdout.split()[:2])}; defn {found[OURS]}, {', '.join(names)}"


def timed(row: Row, threads: int = 1) -> str:
    """The best library's time, with its name."""
    best = row.best(threads)
    return f"{report.text(row.least[threads][best])} ({best})"


def means(rows: Sequence[Row]) -> list[str]:
    """The geometric means, and how many workloads are slower."""
    found = []
    for threads in THREADS:
        ratio = report.times(report.mean([row.beside(threads) for row in rows]))
        slow = sum(is_slower(row, threads) for row in rows)
        count = f"{threads} thread{'s' if threads > 1 else ''}"
        found.append(
            f"{count}, {len(rows)} workloads: the best other library takes {ratio} times as long "
            f"as defn in the geometric mean; at {slow} of them defn takes more than {SLOWER} times "
            "as long as the best"
        )
    return found


def is_slower(row: Row, threads: int) -> bool:
    """Whether a workload needs a reason."""
    return row.beside(threads) * SLOWER < 1


def table(rows: Sequence[Row]) -> list[str]:
    """One family's table."""
    libraries = dict.fromkeys(name for row in rows for name in row.least[1] if name != OURS)
    heads = ["workload", "defn", "best", "best / defn", *libraries]
    heads += [f"defn, {THREADS[-1]} threads", "best / defn"]
    lines = ["", f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}"]
    for row in rows:
        one, two = row.least[1], row.least[THREADS[-1]]
        cells = [row.name, report.text(one[OURS]), timed(row), f"**{report.times(row.ratio)}**"]
        cells += [report.times(one[name] / one[OURS]) if name in one else "" for name in libraries]
        beside = f"{report.times(row.beside(THREADS[-1]))} ({row.best(THREADS[-1])})"
        lines.append(f"| {' | '.join([*cells, report.text(two[OURS]), beside])} |")
    return lines


def reasons(rows: Sequence[Row]) -> list[str]:
    """A paragraph for each workload at which another library is faster by more than a tenth."""
    lines = ["", "## Where another library is faster", ""]
    slow = [row for row in rows if any(is_slower(row, threads) for threads in THREADS)]
    if not slow:
        return [*lines, "No library is faster than defn by more than a tenth."]
    lines += [
        "Another library is faster by more than a tenth at these workloads. The reasons were",
        "measured with `perf`, or by changing one thing.",
    ]
    rest = []
    for row in slow:
        reason = " ".join(REASONS.get(row.name, "").split())
        if not reason and not is_slower(row, 1):
            rest.append(f"{row.name} ({report.times(row.beside(2))}, {row.best(2)})")
            continue
        found = [
            f"{report.times(row.beside(threads))} ({row.best(threads)}) with {threads}"
            for threads in THREADS
            if is_slower(row, threads)
        ]
        count = "threads" if is_slower(row, THREADS[-1]) else "thread"
        lines += ["", f"**{row.name}**: {' and '.join(found)} {count}. {reason or UNKNOWN}"]
    if rest:
        lines += ["", f"With two threads, for reasons that are not known: {', '.join(rest)}."]
    return lines


def page(rows: Sequence[Row]) -> str:
    """The text of the page."""
    lines = [
        *HEAD,
        f"- {report.Machine.processors()}; {versions()}",
        *(f"- {mean}" for mean in means(rows)),
        *LEGEND,
    ]
    for family in dict.fromkeys(row.family for row in rows):
        lines += ["", f"## {family.capitalize()}"]
        lines += table([row for row in rows if row.family == family])
    return "\n".join(lines + reasons(rows)) + "\n"


def main() -> int:
    """Prints the table; writes what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--only", default="", metavar="WORD,...", help="words in names of workloads"
    )
    parser.add_argument("--budget", type=float, default=1.5, help="seconds for each workload")
    parser.add_argument("--write", action="store_true", help="write the page and its chart")
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write needs every workload")
    rows = measure(build(), given.only, given.budget)
    for row in rows:
        cells = [f"{report.text(row.least[t][OURS]):>9} {timed(row, t):>24}" for t in THREADS]
        ratios = [f"{report.times(row.beside(t)):>6}" for t in THREADS]
        print(f"{row.name:44}" + "".join(map("".join, zip(cells, ratios, strict=True))))
    print("\n".join(means(rows)))
    if given.write:
        PAGE.write_text(page(rows))
        report.chart(rows, CHART, "how many times our time the best other library takes, 1 thread")
    return 0


if __name__ == "__main__":
    sys.exit(main())
