"""Workloads beside JAX on its CPU, in one process: calls, steady runs, and what compiling takes.

Results are checked to be equal before anything is timed. Ours and JAX's runs take turns, and of
each the least and the median count: XLA's short runs take up to twice their least, by waking its
threads. What is not equal work is said in the row.

    python benches/peers.py [--compiler NAME] [--rounds N] [name ...]

With ``--compiler pjrt`` the runs are XLA's in both, so that what differs is ours.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

# OpenBLAS reads this when it is loaded: its threads spin after a call, by default for so long that
# they slow down what is measured next.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from models import digits
from workloads import FAMILIES, Workload

import defn as dn

# Seconds for the turns of one row, and the fewest and the most turns.
BUDGET, LEAST, MOST = 1.0, 5, 400
# What JAX's time may be exceeded by, and how much of it a small call may take.
MARGIN, CALL = 1.05, 0.5


def each(tree: Any, fun: Callable[[np.ndarray], Any]) -> Any:
    """A container of what a function makes of each array."""
    if isinstance(tree, dict):
        return {name: each(item, fun) for name, item in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(each(item, fun) for item in tree)
    return fun(tree)


def leaves(tree: Any) -> list[Any]:
    """What is in a container."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, list | tuple):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def finish(tree: Any) -> Any:
    """Waits for all results of ours."""
    for leaf in leaves(tree):
        leaf.block_until_ready()
    return tree


def check(name: str, ours: Any, theirs: Any) -> None:
    """Raises unless the results are equal."""
    mine, other = leaves(ours), leaves(theirs)
    assert len(mine) == len(other), name
    for one, two in zip(mine, other, strict=True):
        two = np.asarray(two)
        scale = max(float(np.abs(two).max(initial=0.0)), 1e-6)
        np.testing.assert_allclose(one.to_numpy(), two, rtol=2e-4, atol=2e-5 * scale, err_msg=name)


def turns(calls: list[Callable[[], object]], budget: float = BUDGET) -> list[list[float]]:
    """Seconds of each call, in turns."""
    taken: list[list[float]] = [[] for _ in calls]
    spent = 0.0
    while (spent < budget and len(taken[0]) < MOST) or len(taken[0]) < LEAST:
        for place, call in enumerate(calls):
            start = time.perf_counter()
            result = call()
            seconds = time.perf_counter() - start
            del result
            taken[place].append(seconds)
            spent += seconds
    return taken


def time_workload(workload: Workload, options: dict[str, Any]) -> list[list[float]]:
    """Seconds of both libraries' steady runs."""
    with dn.options(backend=options["backend"]):
        ours = each(workload.arguments, dn.tensor)
    theirs = each(workload.arguments, jnp.asarray)
    mine = dn.jit(workload.ours, compiler=options["compiler"])
    other = jax.jit(workload.theirs)
    check(workload.name, finish(mine(*ours)), jax.block_until_ready(other(*theirs)))
    return turns([lambda: finish(mine(*ours)), lambda: jax.block_until_ready(other(*theirs))])


def time_calls(options: dict[str, Any]) -> list[float]:
    """The least seconds of a call with two arrays of 8 elements: with the wait, and without."""
    a, b = np.arange(8, dtype=np.float32), np.ones(8, dtype=np.float32)
    with dn.options(backend=options["backend"]):
        ours = dn.tensor(a), dn.tensor(b)
    theirs = jnp.asarray(a), jnp.asarray(b)
    mine = dn.jit(lambda a, b: a * 2.0 + b, compiler=options["compiler"])
    other = jax.jit(lambda a, b: a * 2.0 + b)
    check("call", mine(*ours), other(*theirs))

    def many(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            for _ in range(1000):
                call()

        return run

    calls = [
        many(lambda: mine(*ours).block_until_ready()),
        many(lambda: other(*theirs).block_until_ready()),
        many(lambda: mine(*ours)),
        many(lambda: other(*theirs)),
    ]
    return [min(taken) / 1000 for taken in turns(calls)]


def time_compiling(options: dict[str, Any], rounds: int) -> list[list[float]]:
    """Seconds of tracing, lowering and compiling the digits' training step, anew each time."""
    model = digits()
    with dn.options(backend=options["backend"]):
        ours = model.arguments(dn.tensor)
    theirs = model.arguments(jnp.asarray)
    taken: list[list[float]] = [[], []]
    for turn in range(rounds):
        # Constants that differ, so that nothing is found again.
        shift = 1e-9 * (turn + 1)

        def mine(params, momentum, batch, shift=shift):
            params, momentum, loss = model.ours(params, momentum, batch)
            return params, momentum, loss + shift

        def other(params, momentum, batch, shift=shift):
            params, momentum, loss = model.theirs(params, momentum, batch)
            return params, momentum, loss + shift

        gc.collect()
        start = time.perf_counter()
        dn.compile(mine, ours, compiler=options["compiler"])
        middle = time.perf_counter()
        jax.jit(other).lower(*theirs).compile()
        taken[0].append(middle - start)
        taken[1].append(time.perf_counter() - middle)
    return taken


def text(seconds: float) -> str:
    """A time that can be read."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def line(name: str, taken: list[list[float]]) -> float:
    """Prints a row, and gives how many times ours JAX's least time is."""
    (mine, other), (middle, their_middle) = map(min, taken), map(statistics.median, taken)
    ratio = other / mine
    cells = [text(x) for x in (mine, other, middle, their_middle)]
    print(f"{name:24}" + "".join(f"{cell:>11}" for cell in cells) + f"{ratio:9.2f}", flush=True)
    return ratio


def main() -> int:
    """Prints the tables; the status says whether the budgets of a compiler that is XLA hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="words in the names of rows; all without")
    parser.add_argument("--compiler", default="evaluator")
    parser.add_argument("--rounds", type=int, default=7, help="of compiling")
    given = parser.parse_args()
    backend = "pjrt" if given.compiler == "pjrt" else "cpu"
    options = {"compiler": given.compiler, "backend": backend}

    def wanted(name: str) -> bool:
        return not given.names or any(word in name for word in given.names)

    print(f'defn {dn.__version__} with "{given.compiler}", JAX {jax.__version__} on its CPU')
    slow = []
    if wanted("call"):
        waited, their_waited, mine, other = time_calls(options)
        print(f"call of two 8-element arrays: {text(mine)}, JAX {text(other)}: {mine / other:.2f}")
        print(
            f"and the result: {text(waited)}, JAX {text(their_waited)}: {waited / their_waited:.2f}"
        )
        if mine > CALL * other:
            slow.append("call")
    head = ("defn", "JAX", "median", "JAX's", "JAX/defn")
    print(f"{'':24}" + "".join(f"{cell:>11}" for cell in head[:-1]) + f"{head[-1]:>9}")
    if wanted("compile") and line("compile digits", time_compiling(options, given.rounds)) < 1:
        slow.append("compile digits")
    ratios = {}
    for family in FAMILIES:
        for workload in family():
            if not wanted(workload.name) and not wanted(workload.family):
                continue
            ratio = ratios[workload.name] = line(workload.name, time_workload(workload, options))
            if ratio < 1 / MARGIN:
                slow.append(workload.name)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
        print(f"{len(ratios)} workloads, geometric mean {mean:.2f}")
    print(f"slower than budgeted: {', '.join(slow) if slow else 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
