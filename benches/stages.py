"""The throughput of a transformer pipeline on each engine, and the overhead of an empty stage.

python benches/stages.py [repetitions]
"""

from __future__ import annotations

import os
import pathlib
import platform
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "examples"))

import pipeline as example

import defn as dn

# The numbers of micro-batches in one run.
COUNTS = (1, 8, 32)
STAGES = 4
# 512 MiB are enough for Ray's object store. The default is a third of the memory.
INIT = {"object_store_memory": 512 << 20}


def least(runs, repetitions):
    """The least time of each run, in seconds.

    The runs alternate, so that other load affects all. The first round compiles: not counted.
    """
    times = [[] for _ in runs]
    for _ in range(repetitions + 1):
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [min(taken[1:]) for taken in times]


def same(results, expected):
    """Whether all results have the same bits."""
    pairs = zip(results, expected, strict=True)
    return all(a.to_numpy().tobytes() == b.to_numpy().tobytes() for a, b in pairs)


def table(title, stages, batches, engines, repetitions):
    """Prints and returns each engine's times, one for each number of batches."""
    print(f"\n{title}\n")
    head = "".join(f" {count} at a time |" for count in COUNTS)
    print(f"| engine |{head} batches per second |")
    print("|---|" + "---:|" * (len(COUNTS) + 1))
    expected = list(dn.graph.run_each(stages, batches[: COUNTS[-1]]))
    times = {name: [] for name in engines}
    for count in COUNTS:
        given = batches[:count]

        def runner(engine, given=given):
            return lambda: list(dn.graph.run_each(stages, given, engine=engine))

        for name, engine in engines.items():
            if not same(runner(engine)(), expected[:count]):
                raise AssertionError(f"{name} gives other bits")
        found = least([runner(engine) for engine in engines.values()], repetitions)
        for name, seconds in zip(engines, found, strict=True):
            times[name].append(seconds)
    for name, taken in times.items():
        cells = "".join(f" {1e3 * seconds:.1f} ms |" for seconds in taken)
        print(f"| `{name}` |{cells} {COUNTS[-1] / taken[-1]:.0f} |", flush=True)
    return times


def main(repetitions=10):
    """Prints the tables of docs/graphs.md."""
    print(f"{platform.machine()}, {os.cpu_count()} processors, {STAGES} stages")
    engines = {
        "Sequential()": dn.engines.Sequential(),
        "Threads()": dn.engines.Threads(),
        "Ray()": dn.engines.Ray(init=INIT),
    }
    try:
        width = 256
        forward = example.transformer(example.weights(width=width))
        batches = [[batch] for batch in example.batches(COUNTS[-1], size=8)]
        stages = example.pipeline(forward, batches[0][0], STAGES)
        moved = example.LENGTH * 8 * width * 4
        title = f"A transformer of {example.BLOCKS} blocks, width {width}, {moved >> 10} KiB"
        table(f"{title} between stages", stages, batches, engines, repetitions)

        def nothing(x):
            for number in range(STAGES):
                x = dn.mark(-x, str(number))
            return x

        for shape, title in (((), "4 bytes"), ((1 << 20,), "4 MiB")):
            x = dn.iota(shape, dtype="f32")
            stages = dn.graph.split(dn.debug_expr(nothing)(x), dn.graph.marks())
            # Each batch is a tensor of its own, so that each is sent.
            batches = [[x + float(i)] for i in range(COUNTS[-1])]
            times = table(
                f"Stages of one negation, of {title}", stages, batches, engines, repetitions
            )
            base = times["Sequential()"]
            for name, taken in times.items():
                calls = COUNTS[-1] * STAGES
                alone = (taken[0] - base[0]) / STAGES
                piped = (taken[-1] - base[-1]) / calls
                print(
                    f"{name}: {1e6 * alone:.0f} us more per stage alone, {1e6 * piped:.0f} us piped"
                )
    finally:
        engines["Ray()"].close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
