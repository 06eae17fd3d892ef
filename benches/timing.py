"""Calls that are timed in turn, and containers of arrays, for the benchmarks beside others."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

# Seconds for the turns of one row, and the least and greatest number of turns.
BUDGET, LEAST, MOST = 1.0, 5, 400

# The seconds of each call.
Times = list[list[float]]


def each(tree: Any, fun: Callable[[Any], Any]) -> Any:
    """Applies a function to each array in a container."""
    if isinstance(tree, dict):
        return {name: each(item, fun) for name, item in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(each(item, fun) for item in tree)
    return fun(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a container."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, list | tuple):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def finish(tree: Any) -> Any:
    """Waits for all results of a library whose calls may return before them."""
    for leaf in leaves(tree):
        leaf.block_until_ready()
    return tree


def turns(
    calls: list[Callable[[], object]],
    budget: float = BUDGET,
    least: int = LEAST,
    apart: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Seconds of each call. The calls take turns in random order.

    Each call runs once before it is timed. So its time does not include effects of the
    call before: contents of caches, memory that the process keeps, threads that are still awake.
    If calls are `apart`, each has an equal share of the budget, and a slow one takes fewer turns.
    """
    taken: Times = [[] for _ in calls]
    spent, order = [0.0] * len(calls), random.Random(0)

    def takes(place: int) -> bool:
        used = spent[place] * len(calls) if apart else sum(spent)
        return len(taken[place]) < least or (len(taken[place]) < MOST and used < budget)

    while places := [place for place in range(len(calls)) if takes(place)]:
        for place in order.sample(places, len(places)):
            begin = time.perf_counter()
            calls[place]()
            start = clock()
            result = calls[place]()
            taken[place].append(clock() - start)
            spent[place] += time.perf_counter() - begin
            del result
    return taken
