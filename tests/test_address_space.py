"""Programs with a limited address space: without memory they raise errors, but do not crash."""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import defn as dn

# Each random program runs under every limit; ``DEFN_TEST_PROGRAMS`` sets their number.
PROGRAMS = int(os.environ.get("DEFN_TEST_PROGRAMS", "6"))
# The address space of a program, in addition to that in use when it begins. With none at all the
# C library ends the process when a new thread has no room for its thread-local data.
LIMITS = [1 << 18, 1 << 20, 3 << 20, 9 << 20, 40 << 20, 150 << 20]


def random_function(rng: np.random.Generator, steps: int) -> Callable[..., Any]:
    """A chain of ops on earlier values; all keep the shape of a square matrix."""
    unary = [dn.sin, dn.exp, dn.tanh, dn.negate, dn.transpose, dn.cumulative_sum]
    unary += [lambda x: dn.sort(x, axis=0), lambda x: dn.as_type(dn.argsort(x), "f32")]
    unary += [lambda x: dn.dot(x, x), lambda x: x - dn.sum(x, axes=[0], keep_axes=True)]
    unary += [lambda x: dn.concatenate([x, x])[: x.shape[0]], lambda x: dn.reverse(x)]
    unary += [
        lambda x: dn.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, dn.sin(s[1])))[1]
    ]
    binary = [dn.add, dn.multiply, dn.dot, lambda x, y: dn.select(x > y, x, y)]
    plan = [(rng.integers(2), rng.integers(100), rng.integers(2, size=2)) for _ in range(steps)]

    def function(x: Any) -> Any:
        values = [x, x]
        for two, which, back in plan:
            if two:
                made = binary[which % len(binary)](values[-1 - back[0]], values[-1 - back[1]])
            else:
                made = unary[which % len(unary)](values[-1 - back[0]])
            values.append(made)
        return values[-1]

    return function


def live(seed: int) -> None:
    """The life of a program, with allocations in every step."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 30, 300]))
    function = random_function(rng, int(rng.choice([5, 40, 400])))
    x = dn.tensor(rng.standard_normal((size, size)).astype(np.float32))
    function(x)
    compiled = dn.jit(function)
    compiled(x)
    dn.jit(function, compiler="evaluator")(x)
    dn.grad(lambda x: dn.sum(function(x)))(x)
    expr = dn.debug_expr(function)(x)
    str(expr)
    repr(compiled(x))
    kept = []
    for _ in range(30):
        kept.append(compiled(x) + 1)
    dn.stack(kept).to_numpy()


def run(seed: int, limit: int) -> str:
    """How a child process with this limit ends: "done", "memory", or anything else."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        how = "memory"
        try:
            pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            most = pages * resource.getpagesize() + limit
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            live(seed)
            how = "done"
        except MemoryError:
            pass
        except BaseException as error:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            how = f"{type(error).__name__}: {error}"
        os.write(write, how.encode()[:2000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        how = pipe.read()
    _, status = os.waitpid(child, 0)
    return how if status == 0 else f"it ended with the status {status}"


def main() -> None:
    # Loads everything that is loaded on first use.
    live(0)
    seen = set()
    for seed in range(PROGRAMS):
        for limit in LIMITS:
            how = run(seed, limit)
            print(seed, limit, how, flush=True)
            seen.add(how)
    sys.exit(0 if seen == {"done", "memory"} else 1)


def test_programs_without_memory_raise_errors() -> None:
    """Some programs end, others lack memory: nothing else may happen."""
    here = str(pathlib.Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_address_space as t; t.main()"
    # In a new process: pool threads do not survive a fork, and each stack would take addresses.
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
