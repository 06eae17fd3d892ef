"""The result of ``profile`` of a definition: the time that each step of one run took."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from defn import _core

if TYPE_CHECKING:
    import os
    from typing import Any

__all__ = ["Machine", "Profile", "Step"]


@dataclass(frozen=True)
class Machine:
    """The measured peak rates of the machine, with which speeds are compared."""

    threads: int
    """The number of threads."""
    bandwidth: float
    """Bytes read and written per second when copying data that fits into no cache."""
    flops: float
    """Multiplications and additions of f32 per second, in registers."""
    wide_flops: float
    """Multiplications and additions of f64 per second, in registers."""


@dataclass(frozen=True)
class Step:
    """One step (fused operations), with the totals of all its runs."""

    name: str
    """The operations, or the loop or branch that contains the next steps."""
    lines: list[str]
    """The source lines of the operations, as ``file:line``."""
    depth: int
    """The number of loops and branches around the step."""
    runs: int
    """The number of runs."""
    seconds: float
    """The time of all runs."""
    bytes: int
    """The bytes read and written, computed from the types."""
    flops: int
    """The number of operations on elements, computed from the types; a sine counts as one."""
    share: float
    """The minimum time on this machine, divided by the time taken: more than 1 if the data is in a
    cache."""


class _Row(NamedTuple):
    ops: list[str]
    lines: list[str]
    runs: int
    seconds: float
    bytes: int
    flops: int
    is_control: bool


class _Total(NamedTuple):
    row: int
    depth: int
    bytes: int
    flops: int
    is_wide: bool


class Profile:
    """The time that each step of one run took. It prints as a table; ``save_trace`` writes a trace.

    ``result`` is the result of the function. ``seconds`` is the time of the run, without looking up
    or compiling the version, and ``steps`` are its parts. The time outside of all steps is spent on
    memory and on passing arguments and results. The first run of a version also allocates memory
    and wakes the threads, so a second profile shows what later calls take.
    """

    def __init__(
        self,
        rows: list[tuple[Any, ...]],
        totals: list[tuple[int, int, int, int, bool]],
        spans: list[tuple[int, float, float]],
        seconds: float,
        left_out: int,
        threads: int,
        result: Any,
    ) -> None:
        self._rows = [_Row(*row) for row in rows]
        self._totals = [_Total(*total) for total in totals]
        self._spans = spans
        self._left_out = left_out
        self._threads = threads
        self.seconds = seconds
        self.result = result

    @functools.cached_property
    def machine(self) -> Machine:
        """The peak rates of the machine with this number of threads, measured once in a process."""
        return Machine(self._threads, *_core.roofline(self._threads))

    @functools.cached_property
    def steps(self) -> list[Step]:
        """The steps in order; a loop or branch comes before the steps inside it."""
        steps: list[Step] = []
        for total in self._totals:
            row = self._rows[total.row]
            peak = self.machine.wide_flops if total.is_wide else self.machine.flops
            least = max(total.bytes / self.machine.bandwidth, total.flops / peak)
            share = least / row.seconds if row.seconds > 0 else 0.0
            name, lines, depth = " ".join(row.ops), row.lines, total.depth
            steps.append(
                Step(name, lines, depth, row.runs, row.seconds, total.bytes, total.flops, share)
            )
        return steps

    def __repr__(self) -> str:
        machine, steps = self.machine, self.steps
        threads = "1 thread" if machine.threads == 1 else f"{machine.threads} threads"
        count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
        top = (
            f"{_scaled(self.seconds, 's')} in {count}; {threads}: "
            f"{_scaled(machine.bandwidth, 'B/s')}, {_scaled(machine.flops, 'FLOP/s')} of f32, "
            f"{_scaled(machine.wide_flops, 'FLOP/s')} of f64"
        )
        head = ("time", "", "runs", "bytes", "flops", "share", "step", "lines")
        table: list[tuple[str, ...]] = [head]
        for step in steps:
            name = step.name if len(step.name) <= 48 else step.name[:47] + "…"
            lines = ", ".join(step.lines[:2]) + (" …" if len(step.lines) > 2 else "")
            part = step.seconds / self.seconds if self.seconds > 0 else 0.0
            table.append(
                (
                    _scaled(step.seconds, "s"),
                    f"{part:.0%}",
                    str(step.runs),
                    _scaled(step.bytes, "B"),
                    _scaled(step.flops, ""),
                    f"{step.share:.0%}",
                    "  " * step.depth + name,
                    lines,
                )
            )
        widths = [max(len(row[column]) for row in table) for column in range(len(head))]
        texts = [
            "  ".join(
                cell.ljust(width) if column >= 6 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join([top, *texts])

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the runs of all steps as a trace for https://ui.perfetto.dev and Chrome's
        ``about:tracing``.

        Only the first 100,000 runs of steps are in the trace.
        """
        names = [" ".join(row.ops) for row in self._rows]
        events: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "defn"}}
        ]
        for at, start, seconds in self._spans:
            row = self._rows[at]
            args: dict[str, Any] = {"lines": row.lines}
            if not row.is_control:
                args |= {"bytes": row.bytes, "flops": row.flops}
            events.append(
                {
                    "name": names[at],
                    "cat": "control" if row.is_control else "step",
                    "ph": "X",
                    "ts": start * 1e6,
                    "dur": seconds * 1e6,
                    "pid": 1,
                    "tid": 1,
                    "args": args,
                }
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "traceEvents": events,
                    "displayTimeUnit": "ms",
                    "otherData": {"left_out": self._left_out},
                },
                file,
            )


def _scaled(value: float, unit: str) -> str:
    """Three digits and a prefix: ``12.3 ms``."""
    if value == 0:
        return f"0 {unit}".rstrip()
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{unit}"
    if value >= 1 or unit != "s":
        return f"{value:.3g} {unit}".rstrip()
    for limit, prefix in ((1e-3, "m"), (1e-6, "µ")):
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{unit}"
    return f"{value * 1e9:.3g} n{unit}"
