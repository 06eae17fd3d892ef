"""The output of `peers.py --write`: `docs/benchmarks.md`, its chart, and the gate's ratios."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
CHART = ROOT / "docs" / "benchmarks.png"
RATIOS = ROOT / "benches" / "ratios.json"
THREADS = ROOT / "benches" / "threads.json"

# The gate fails where JAX is faster by the first factor, or where a ratio fell by the second.
SLOWER, FELL = 1.10, 1.25
# Rows of many processors are named where JAX's time is less than this share of ours.
SLOW_THREADS = 0.95


HEAD = """# Benchmarks

`./dev bench peers --write` writes this page. Every number is from one run, in one process, on one
machine. Calls of defn and of the other libraries alternate; the least time counts, and the median
is beside it. Before a workload is timed, a check requires that the results are equal within a
tolerance. Of random numbers it compares the shapes and the moments. With the compiler "cpu" it also
requires that a run takes exactly the memory that `memory` predicts, to the byte.

""".splitlines()

LEGEND = """
![JAX's time as a multiple of defn's](benchmarks.png)

*Limit* is the least time that the machine needs, as a share of defn's time: the time to read and
write each byte once at copying speed, or to do the operations on floats, whichever is longer.
Workloads that fit in the caches can be faster. Functions such as `exp` count as one operation.
*Others* is NumPy, SciPy or numexpr, where it has the same operation.""".splitlines()


@dataclass(frozen=True)
class Measured:
    """A row: our and JAX's least and median seconds, and the least seconds of another library."""

    family: str
    name: str
    ours: tuple[float, float]
    jax: tuple[float, float]
    numpy: tuple[str, float] | None
    # The bytes that must be read and written at least, and the number of float operations.
    bytes: int
    flops: int

    @property
    def ratio(self) -> float:
        """JAX's least time divided by ours."""
        return self.jax[0] / self.ours[0]


@dataclass(frozen=True)
class Machine:
    """The machine's limits, measured in the same run."""

    copied: float  # bytes per second, read and written
    flops: float  # f32 operations per second

    @classmethod
    def measured(cls) -> Machine:
        """Measures this machine."""
        # The page of the Rust crate needs no extension.
        import defn as dn

        found = dn.jit(dn.negate, compiler="cpu").profile(np.ones(1, np.float32)).machine
        return cls(max(copy_bandwidth(), found.bandwidth), found.flops)

    def limit(self, row: Measured) -> float:
        """The least seconds that the machine needs for a row."""
        return max(row.bytes / self.copied, row.flops / self.flops)

    def cause(self, row: Measured) -> str:
        """Why JAX may be faster, as far as the numbers show."""
        share = self.limit(row) / row.ours[0]
        by = "bytes" if row.bytes / self.copied > row.flops / self.flops else "operations"
        if row.family == "index":
            return "its elements are at random addresses, so that both wait for memory"
        if share > 0.8:
            return f"both are near the machine's limit for {by}"
        if row.ratio > 0.9:
            return "within a tenth, which is the noise between two runs"
        return "not at the machine's limit, so that it can be improved"

    @classmethod
    def words(cls) -> str:
        """The processor's model and count, and the version of Python."""
        return f"{cls.processors()}, Python {platform.python_version()}"

    @staticmethod
    def processors() -> str:
        """The processor's model and count."""
        model = platform.processor() or platform.machine()
        try:
            for line in Path("/proc/cpuinfo").read_text().splitlines():
                if line.startswith("model name"):
                    model = line.partition(":")[2].strip()
                    break
        except OSError:
            pass
        count = len(os.sched_getaffinity(0))
        return f"{model}, {count} processors"


def best(call: Callable[[], object], seconds: float = 0.4) -> float:
    """The least time of a call, in seconds."""
    least, spent = math.inf, 0.0
    while spent < seconds:
        start = time.perf_counter()
        call()
        taken = time.perf_counter() - start
        least, spent = min(least, taken), spent + taken
    return least


def copy_bandwidth() -> float:
    """Bytes per second, read and written, of a copy by all processors between arrays in memory."""
    count = len(os.sched_getaffinity(0))
    size = 1 << 24
    parts = [(np.ones(size, np.float32), np.empty(size, np.float32)) for _ in range(count)]

    def work(source: np.ndarray, target: np.ndarray) -> None:
        np.copyto(target, source)

    def copy() -> None:
        threads = [threading.Thread(target=work, args=pair) for pair in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    copy()
    return 2 * 4 * size * count / best(copy)


def text(seconds: float) -> str:
    """A time with its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def times(ratio: float) -> str:
    """A ratio of two times with two or three digits."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


# The family that is beside the means of the others.
BESIDE = "fused"


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def write(rows: Sequence[Measured], machine: Machine, versions: str, extra: Sequence[str]) -> None:
    """Writes the page, the chart and the ratios."""
    PAGE.write_text(page(rows, machine, versions, extra))
    chart(rows)
    ratios = {row.name: round(row.ratio, 3) for row in rows}
    RATIOS.write_text(json.dumps(ratios, indent=1) + "\n")


def page(rows: Sequence[Measured], machine: Machine, versions: str, extra: Sequence[str]) -> str:
    """The text of the page."""
    families = list(dict.fromkeys(row.family for row in rows))
    counted = [row.ratio for row in rows if row.family != BESIDE]
    smooth = [row.ratio for row in rows if row.family in ("element-wise", "reduction")]
    slow = [row for row in rows if row.ratio < 1]
    bandwidth, flops = machine.copied / 1e9, machine.flops / 1e9
    overall, over_smooth = mean(counted), mean(smooth)
    lines = [
        *HEAD,
        f"- {Machine.words()}; {versions}",
        f"- it copies {bandwidth:.1f} GB/s (read and written, all processors) and does {flops:.0f}",
        "  GFLOP/s in f32",
        f"- {len(counted)} workloads: JAX takes {overall:.2f} times as long in the geometric mean,",
        f"  {over_smooth:.2f} times for element-wise operations and reductions",
        *(f"- {line}" for line in extra),
        *LEGEND,
    ]
    for family in families:
        lines += [
            "",
            f"## {family.capitalize()}",
            "",
            "| workload | defn | median | JAX | median | JAX / defn | others | limit |",
            "|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for row in rows:
            if row.family != family:
                continue
            others = f"{text(row.numpy[1])} ({row.numpy[0]})" if row.numpy else ""
            limit = machine.limit(row) / row.ours[0]
            share = f"{100 * limit:.0f} %" if row.bytes or row.flops else ""
            cells = [
                row.name, text(row.ours[0]), text(row.ours[1]), text(row.jax[0]), text(row.jax[1]),
                f"{row.ratio:.2f}", others, share,
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    if slow:
        named = []
        for row in slow:
            share = 100 * machine.limit(row) / row.ours[0]
            named.append(f"- {row.name}: {row.ratio:.2f}, defn at {share:.0f} % of the limit;")
            named.append(f"  {machine.cause(row)}")
        lines += ["", "## Where JAX is faster", "", *named]
    if THREADS.exists():
        lines += ["", *threads_lines(json.loads(THREADS.read_text()))]
    return "\n".join(lines) + "\n"


THREADS_HEAD = "## Threads"


def threads_lines(kept: dict[str, Any]) -> list[str]:
    """The part about numbers of processors: means of families, and rows that do not gain."""
    counts = sorted(kept["counts"], key=int)
    first, last = kept["counts"][counts[0]], kept["counts"][counts[-1]]
    lines = [
        THREADS_HEAD,
        "",
        "`benches/threads.py` measured this, on another machine:",
        "",
        f"- {kept['machine']}",
        "",
        "The columns are numbers of processors, which both libraries use. First JAX's time as a",
        "multiple of defn's, in the geometric mean; then how many times as fast as on one",
        "processor defn is, and JAX.",
        "",
        f"| family | {' | '.join(counts)} | defn on {counts[-1]} | JAX on {counts[-1]} |",
        f"|---|{'--:|' * (len(counts) + 2)}",
    ]

    def means(rows: Callable[[dict[str, Any]], list[list[float]]]) -> list[str]:
        ratios = [mean([b / a for a, b in rows(kept["counts"][count])]) for count in counts]
        pairs = list(zip(rows(first), rows(last), strict=True))
        gains = [mean([one[at] / many[at] for one, many in pairs]) for at in (0, 1)]
        return [f"{ratio:.2f}" for ratio in ratios] + [f"{gain:.1f}" for gain in gains]

    for family in first:
        cells = means(lambda found, family=family: list(found[family].values()))
        lines.append(f"| {family} | {' | '.join(cells)} |")

    def everything(found: dict[str, Any]) -> list[list[float]]:
        return [row for family in found if family != BESIDE for row in found[family].values()]

    lines.append(f"| all but {BESIDE} | {' | '.join(means(everything))} |")
    slow = [
        f"{name} {b / a:.2f}"
        for rows in last.values()
        for name, (a, b) in rows.items()
        if b < SLOW_THREADS * a
    ]
    if slow:
        lines += ["", f"On {counts[-1]} processors JAX is faster at: {', '.join(slow)}."]
    return lines


class Bar(Protocol):
    """A row of a chart: another library's time divided by ours."""

    @property
    def family(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def ratio(self) -> float: ...


def chart(
    rows: Sequence[Bar],
    path: Path = CHART,
    label: str = "how many times our time JAX takes",
) -> None:
    """Draws one bar for each row; its length is the logarithm of the ratio."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    families = list(dict.fromkeys(row.family for row in rows))
    colors = plt.get_cmap("tab10")
    figure, axes = plt.subplots(figsize=(9, 0.22 * len(rows) + 1.2))
    for place, row in enumerate(rows):
        axes.barh(place, row.ratio - 1, left=1, color=colors(families.index(row.family) % 10))
        axes.text(max(row.ratio, 1) * 1.04, place, times(row.ratio), va="center", fontsize=7)
    axes.set_xscale("log", base=2)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.08, y=0.01)
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def verdicts(rows: Sequence[Measured]) -> list[str]:
    """The reasons for which the gate fails: JAX is faster, or the committed ratio was higher."""
    known = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    found = []
    for row in rows:
        if row.ratio * SLOWER < 1:
            found.append(f"{row.name}: JAX takes {row.ratio:.2f} of our time")
        elif row.ratio * FELL < known.get(row.name, 0.0):
            found.append(f"{row.name}: {row.ratio:.2f}, and it was {known[row.name]:.2f}")
    return found
