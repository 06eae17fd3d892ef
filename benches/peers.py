"""Workloads beside JAX on its CPU, in one process: calls, steady runs, and compile times.

Before a workload is timed, its results are checked to be equal within a tolerance. Of random
numbers the shapes and the moments are compared. With the compiler "cpu" a run must take exactly
the memory that `memory` predicts, as the allocator counts it. Our runs and JAX's alternate, and
of each the least and the median count: short runs of XLA can take twice their least time, because
XLA wakes its threads. If the work of both is not equal, the row says so.

    python benches/peers.py [options] [name ...]

With ``--write`` it writes `docs/benchmarks.md` with its chart and the ratios. With ``--gate`` it
fails where JAX is faster by more than a tenth, or where a ratio is less than the committed one by
more than a quarter. With ``--beside FOLDER`` it measures the package of a folder in turn with
this one, and fails where this one is slower by more than a tenth.

With ``--processes`` several processes measure, one after the other, and their times are pooled:
where the memory of a process is placed changes its times by up to a tenth until it ends.

JAX contains an XLA of its own. With ``--compiler pjrt`` JAX runs twice: on its own XLA, and on
the plugin that defn uses. The second is the same XLA as ours, so that a difference is due to
defn. The budgets compare with the same XLA; only a small call is compared with JAX's own.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# OpenBLAS reads this when it is loaded. By default its threads spin after a call for so long that
# they slow down the next measurement.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
# What an earlier run has compiled would be found.
os.environ["DEFN_CACHE_DIR"] = ""

import defn as dn

# JAX's name for the plugin that defn uses. JAX reads these variables when it is imported.
SAME = "same"
if "pjrt" in sys.argv:
    plugin = next(plugin for plugin in dn.pjrt.plugins() if plugin.client == "host")
    os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"{SAME}:{plugin.path}"
    os.environ["JAX_PLATFORMS"] = f"cpu,{SAME}"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import beside  # noqa: E402
import jax  # noqa: E402 - it reads the variables.
import numpy as np  # noqa: E402
import report  # noqa: E402
from fused import fused  # noqa: E402
from models import digits  # noqa: E402
from timing import BUDGET, Times, each, finish, leaves, turns  # noqa: E402
from workloads import FAMILIES, Workload  # noqa: E402

# How often a row that seems slow is timed again.
AGAIN = 4
# The allowed ratio to JAX's time, and a ratio too large to be caused by other load on the machine.
MARGIN, SLOW = 1.05, 2.0
# The allowed ratio of a small call to JAX's.
CALL = 0.5
# The rows that are not workloads.
CALLS = ("call of two 8-element arrays", "and its result")
COMPILE = "compile digits"


@dataclass
class Row:
    """The measurements of a workload, or of calls."""

    name: str
    # Our seconds, then JAX's seconds on each of its devices.
    times: Times
    family: str = ""
    # Another library, such as NumPy, and its seconds.
    other: tuple[str, list[float]] | None = None
    bytes: int = 0
    flops: int = 0

    def measured(self) -> report.Measured:
        """The row as the report shows it."""
        ours, jax = [(min(times), statistics.median(times)) for times in self.times[:2]]
        other = (self.other[0], min(self.other[1])) if self.other else None
        return report.Measured(self.family, self.name, ours, jax, other, self.bytes, self.flops)


def check(name: str, ours: Any, theirs: Any) -> None:
    """Raises unless the results are equal within a tolerance."""
    mine, other = leaves(ours), leaves(theirs)
    assert len(mine) == len(other), name
    for one, two in zip(mine, other, strict=True):
        two = np.asarray(two)
        scale = max(float(np.abs(two).max(initial=0.0)), 1e-6)
        np.testing.assert_allclose(one.to_numpy(), two, rtol=2e-4, atol=2e-5 * scale, err_msg=name)


def check_draws(name: str, ours: Any, theirs: Any) -> None:
    """Raises unless random numbers have equal shapes, and moments that differ by chance alone."""
    for one, two in zip(leaves(ours), leaves(theirs), strict=True):
        one, two = one.to_numpy().astype(np.float64), np.asarray(two, dtype=np.float64)
        assert one.shape == two.shape, f"{name}: {one.shape} and {two.shape}"
        for power in (1, 2, 3, 4):
            mine, other = (one**power).mean(), (two**power).mean()
            spread = (one**power).std() * (2 / one.size) ** 0.5
            assert abs(mine - other) < 6 * spread, f"{name}: moments {mine} and {other}"


def check_memory(name: str, fun: Any, arguments: Any) -> None:
    """Raises unless the peak memory of a run is exactly the predicted number of bytes."""
    need = fun.memory(*arguments)
    before = dn.memory_report()
    # Fills memory up to the highest peak so far, so that the run's peak is a new one.
    filling = dn.broadcast(dn.tensor(0, dtype="u8"), (before.peak_bytes - before.live_bytes,))
    before = dn.memory_report()
    assert before.peak_bytes == before.live_bytes, f"{name}: {before}"
    result = fun(*arguments)
    seen = dn.memory_report().peak_bytes - before.live_bytes
    assert need.peak == seen, f"{name}: {need} was told, and {seen} bytes were seen"
    del result, filling


def devices(options: dict[str, Any]) -> list[Any]:
    """JAX's devices: its own CPU, and with the backend "pjrt" the CPU of the same XLA."""
    own = jax.devices("cpu")[0]
    return [own, jax.devices(SAME)[0]] if options["backend"] == "pjrt" else [own]


def on(device: Any, tree: Any) -> Any:
    """Arrays on one of JAX's devices."""
    return each(tree, lambda array: jax.device_put(array, device))


def time_workload(workload: Workload, options: dict[str, Any], others: bool, budget: float) -> Row:
    """Seconds of steady runs: ours, JAX's on each of its devices, and another library's.

    A row that seems slow is timed again a few times, because other load on the machine varies.
    """
    with dn.options(backend=options["backend"]), jax.enable_x64(workload.wide):
        ours = each(workload.arguments, dn.tensor)
        mine = dn.jit(workload.ours, compiler=options["compiler"])
        other = jax.jit(workload.theirs)
        result = finish(mine(*ours))
        if options["compiler"] == "cpu":
            check_memory(workload.name, mine, ours)
        calls: list[Callable[[], object]] = [lambda: finish(mine(*ours))]
        compare = check_draws if workload.drawn else check
        absent = []
        for place, device in enumerate(devices(options), 1):
            theirs = on(device, workload.arguments)
            try:
                compare(workload.name, result, jax.block_until_ready(other(*theirs)))
            except jax.errors.JaxRuntimeError as error:
                # JAX's own kernels, as LAPACK's, are not in other plugins.
                if "No FFI handler" not in str(error):
                    raise
                absent.append(place)
                continue
            calls.append(lambda theirs=theirs: jax.block_until_ready(other(*theirs)))
        row = Row(workload.name, [], workload.family)
        known = None
        if others:
            # They need packages that runs beside JAX alone do without.
            from others import OTHERS

            known = OTHERS.get(workload.name)
        if known:
            library, plain = known
            calls.append(lambda: plain(*workload.arguments))
        taken = turns(calls, budget)
        for _ in range(AGAIN):
            if not MARGIN < min(taken[0]) / min(taken[len(devices(options)) - len(absent)]) < SLOW:
                break
            for times, more in zip(taken, turns(calls, budget), strict=True):
                times += more
        if known:
            row.other = (library, taken.pop())
        for place in absent:
            taken.insert(place, [])
        row.times = taken
        given = [np.asarray(array).nbytes for array in leaves(workload.arguments)]
        row.bytes = sum(given) + sum(leaf.to_numpy().nbytes for leaf in leaves(result))
        row.flops = dn.graph.cost(dn.debug_expr(workload.ours)(*ours)).flops
    return row


def time_calls(options: dict[str, Any]) -> list[Times]:
    """Seconds of a call with two 8-element arrays, without and with waiting for the result.

    Each time is the mean of a thousand calls.
    """
    a, b = np.arange(8, dtype=np.float32), np.ones(8, dtype=np.float32)
    with dn.options(backend=options["backend"]):
        ours = dn.tensor(a), dn.tensor(b)
    mine = dn.jit(lambda a, b: a * 2.0 + b, compiler=options["compiler"])
    other = jax.jit(lambda a, b: a * 2.0 + b)

    def many(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            for _ in range(1000):
                call()

        return run

    alone = [many(lambda: mine(*ours))]
    waited = [many(lambda: mine(*ours).block_until_ready())]
    for device in devices(options):
        theirs = on(device, (a, b))
        check("call", mine(*ours), other(*theirs))
        alone.append(many(lambda theirs=theirs: other(*theirs)))
        waited.append(many(lambda theirs=theirs: other(*theirs).block_until_ready()))
    taken = [[seconds / 1000 for seconds in times] for times in turns([*alone, *waited])]
    return [taken[: len(alone)], taken[len(alone) :]]


def time_compiling(options: dict[str, Any], rounds: int) -> Times:
    """Seconds of tracing, lowering and compiling the digits' training step, without any cache."""
    model = digits()
    with dn.options(backend=options["backend"]):
        ours = model.arguments(dn.tensor)
    all_theirs = [on(device, model.arguments(np.asarray)) for device in devices(options)]
    taken: Times = [[], *([] for _ in all_theirs)]
    for turn in range(rounds):
        # Different constants, so that no cache has the program.
        shift = 1e-9 * (turn + 1)

        def mine(params, momentum, batch, shift=shift):
            params, momentum, loss = model.ours(params, momentum, batch)
            return params, momentum, loss + shift

        gc.collect()
        start = time.perf_counter()
        dn.compile(mine, ours, compiler=options["compiler"])
        taken[0].append(time.perf_counter() - start)
        for place, theirs in enumerate(all_theirs, 1):

            def other(params, momentum, batch, shift=shift):
                params, momentum, loss = model.theirs(params, momentum, batch)
                return params, momentum, loss + shift

            gc.collect()
            start = time.perf_counter()
            jax.jit(other).lower(*theirs).compile()
            taken[place].append(time.perf_counter() - start)
    return taken


def line(name: str, taken: Times) -> list[float]:
    """Prints a row; returns JAX's least time on each device, divided by ours.

    A device that does not run it has no times, and the ratio is not a number.
    """
    least = [min(times, default=math.nan) for times in taken]
    middle = [statistics.median(times) if times else math.nan for times in taken]
    ratios = [other / least[0] for other in least[1:]]
    cells = "".join(f"{report.text(seconds):>11}" for seconds in [*least, *middle])
    print(f"{name:30}{cells}" + "".join(f"{ratio:10.2f}" for ratio in ratios), flush=True)
    return ratios


def measured(given: argparse.Namespace, options: dict[str, Any]) -> Iterator[Row]:
    """Measures the selected rows."""

    def wanted(name: str) -> bool:
        return not given.names or any(word in name for word in given.names)

    if wanted("call"):
        yield from map(Row, CALLS, time_calls(options))
    if wanted("compile"):
        yield Row(COMPILE, time_compiling(options, given.rounds))
    for family in (*FAMILIES, fused):
        for workload in family():
            if wanted(workload.name) or wanted(workload.family):
                yield time_workload(workload, options, given.write, given.budget)


def in_processes(count: int) -> Iterator[Row]:
    """Measures the same rows in several processes, and pools the times."""
    options = [*sys.argv[1:], "--processes", "1"]
    runs = [[Row(**row) for row in beside.raw_rows(options)] for _ in range(count)]
    for rows in zip(*runs, strict=True):
        columns = zip(*(row.times for row in rows), strict=True)
        times = [[seconds for times in column for seconds in times] for column in columns]
        yield dataclasses.replace(rows[0], times=times)


def is_slow(name: str, taken: Times) -> bool:
    """Whether a row exceeds its budget."""
    least = [min(times) for times in taken if times]
    if name == CALLS[0]:
        return least[0] > CALL * least[1]
    # Waiting for a small result takes the same time in both.
    return name != CALLS[1] and least[0] > (1 if name == COMPILE else MARGIN) * least[-1]


def main() -> int:
    """Prints the table; the exit status says whether all rows are within their budgets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="words in the names of rows; all without")
    parser.add_argument("--compiler", default="cpu")
    parser.add_argument("--rounds", type=int, default=7, help="of compiling")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for each row")
    parser.add_argument("--processes", type=int, default=1, help="how many measure all")
    parser.add_argument("--write", action="store_true", help="write the page and the ratios")
    parser.add_argument("--gate", action="store_true", help="fail where a row became slower")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="compare with its defn")
    parser.add_argument("--raw", action="store_true", help="print the times of each row as JSON")
    given = parser.parse_args()
    if given.beside:
        return beside.compare(given.beside, ["--compiler", given.compiler], given.names)
    backend = "pjrt" if given.compiler == "pjrt" else "cpu"
    options = {"compiler": given.compiler, "backend": backend}
    if given.raw:
        for row in measured(given, options):
            print(json.dumps(asdict(row)), flush=True)
        return 0
    print(f'defn {dn.__version__} with "{given.compiler}", JAX {jax.__version__} on its CPU')
    names = ["JAX", f"JAX, {SAME}"][: len(devices(options))]
    head = ["defn", *names, *("median" for _ in ["defn", *names])]
    heads = [f"{name[5:] or 'JAX'}/defn" for name in names]
    print(f"{'':30}" + "".join(map("{:>11}".format, head)) + "".join(map("{:>10}".format, heads)))
    rows = measured(given, options) if given.processes == 1 else in_processes(given.processes)
    table, slow, workloads, extra = [], [], [], []
    for row in rows:
        ratios = line(row.name, row.times)
        if row.family:
            if row.family != report.BESIDE:
                table.append(ratios)
            workloads.append(row.measured())
        else:
            ours, theirs = [report.text(min(times)) for times in row.times[:2]]
            extra.append(f"{row.name}: {ours}, JAX {theirs} ({ratios[0]:.1f} times as long)")
        if is_slow(row.name, row.times):
            slow.append(row.name)
    if table:
        columns = zip(*table, strict=True)
        means = [report.mean([ratio for ratio in column if ratio == ratio]) for column in columns]
        print(
            f"{len(table)} workloads, geometric mean {', '.join(f'{mean:.2f}' for mean in means)}"
        )
    if given.write:
        machine = report.Machine.measured()
        versions = f"defn {dn.__version__}, JAX {jax.__version__}, NumPy {np.__version__}"
        report.write(workloads, machine, versions, extra)
    if given.gate:
        found = report.verdicts(workloads)
        print(
            "\n".join(found) or "no row is slower than JAX by a tenth, or than it was by a quarter"
        )
        return 1 if found else 0
    print(f"slower than budgeted: {', '.join(slow) if slow else 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
