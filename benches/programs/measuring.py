"""A program's first calls and its steady calls in each library."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numba
from timing import each, finish, turns

import defn as dn

from .program import Program

# The libraries, as the page names them.
OURS, NUMPY, NUMBA, JAX = "defn", "NumPy", "numba", "JAX"
# numba compiles a function with `prange` twice; the faster one counts.
SERIAL, PARALLEL = "numba, serial", "numba, parallel"
# The least number of turns of a slow library.
LEAST = 3


def njit(function: Callable[..., Any], parallel: bool = False) -> Callable[..., Any]:
    """The function compiled by numba; divisions by 0 are NumPy's, so that loops are vectorized."""
    return numba.njit(parallel=parallel, error_model="numpy")(function)


@dataclass
class Row:
    """A program's times: least seconds and first calls by library, and the parts of ours."""

    family: str
    name: str
    size: str
    least: dict[str, float]
    first: dict[str, float] = field(default_factory=dict)
    # Parts of our first call: rewriting the function's source, which happens once, and compiling.
    reading: float = 0.0
    compiling: float = 0.0
    # How often each library was timed, and which of numba's two is the faster.
    turns: dict[str, int] = field(default_factory=dict)
    numba: str = ""

    @property
    def best(self) -> str:
        """The fastest of the other libraries."""
        return min((name for name in self.least if name != OURS), key=self.least.__getitem__)

    @property
    def ratio(self) -> float:
        """The time of the best other library divided by ours."""
        return self.least[self.best] / self.least[OURS]


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """The duration of a call, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def warm_up() -> None:
    """Compiles a loop with each library: what each does once in a process is not a program's."""

    def count(x: Any) -> Any:
        for _ in numba.prange(3):
            x = x + 1
        return x

    njit(count)(1.0)
    njit(count, parallel=True)(1.0)
    finish(jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: x + 1, x))(1.0))
    finish(dn.jit(lambda x: dn.for_(x, range(3), lambda x, _: x + 1))(1.0))


def measure(program: Program, quick: bool, budget: float, cpu_time: bool = False) -> Row:
    """Checks that all results are equal, and times the libraries in turn."""
    clock = time.process_time if cpu_time else time.perf_counter
    arrays, options = program.made(quick)
    calls: dict[str, Callable[[], Any]] = {}
    row = Row(program.family, program.name, program.described(quick), {})
    wide = any("64" in str(array.dtype) for array in arrays)
    with jax.enable_x64(wide):
        ours = each(arrays, dn.tensor)
        both, compiled = seconds(lambda: dn.compile(program.ours, ours, options))
        first, _ = seconds(lambda: finish(compiled(*ours)))
        row.first[OURS] = both + first
        again = [seconds(lambda: dn.compile(program.ours, ours, options))[0] for _ in range(LEAST)]
        row.compiling = min(again)
        row.reading = max(both - row.compiling, 0.0)
        calls[OURS] = lambda: finish(program.ours(*ours, **options))
        if not program.wrt:
            calls[NUMPY] = lambda: program.numpy(*arrays, **options)
        if program.numba is not None:
            serial = njit(program.numba)
            calls[SERIAL] = lambda: serial(*arrays, **options)
            if "prange" in program.numba.__code__.co_names:
                parallel = njit(program.numba, parallel=True)
                calls[PARALLEL] = lambda: parallel(*arrays, **options)
        # Two programs may have one function for JAX, which is compiled for each.
        jax.clear_caches()
        theirs = each(arrays, jax.device_put)
        jitted = jax.jit(program.jax, static_argnames=tuple(options))
        calls[JAX] = lambda: finish(jitted(*theirs, **options))
        results = {}
        for library, call in calls.items():
            took, results[library] = seconds(call)
            row.first.setdefault(library, took)
        reference = results.get(NUMPY, results[JAX])
        for library, result in results.items():
            program.check(library, result, reference)
        del results, reference
        taken = turns(list(calls.values()), budget, LEAST, apart=True, clock=clock)
    for library, times in zip(calls, taken, strict=True):
        row.least[library], row.turns[library] = min(times), len(times)
    if SERIAL in row.least:
        row.numba = min((SERIAL, PARALLEL), key=lambda name: row.least.get(name, float("inf")))
        for found in (row.least, row.first):
            one, two = found.pop(SERIAL), found.pop(PARALLEL, None)
            found[NUMBA] = two if two is not None and row.numba == PARALLEL else one
    return row
