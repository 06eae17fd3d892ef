"""Definitions and objects made from them, while Python's garbage collector runs all the time."""

from __future__ import annotations

import subprocess
import sys

import pytest

MAKERS = {
    "jit": "dn._core.Jitted(double)",
    "grad": "dn._core.gradient(double)",
    "compile": "dn._core.compile(double, [x])",
    "element-wise functions": "dn._core.quick(dn.sin.__wrapped__)",
    "shard": "dn.shard(double, dn.Mesh({'a': 1}, client='host'), [('a',)], ('a',))",
}

# The loop keeps all its dicts, so that the interpreter's free list is empty. The dict of a new
# object is then allocated, which can start the collector before the object's fields are written.
# In each turn of the loop, another allocation starts the collector.
SCRIPT = """
import gc

gc.set_threshold(1)

import numpy as np
import defn as dn


def double(x):
    return x * 2.0


x = dn.tensor([1.0, 2.0])
kept = []
for turn in range(30):
    kept.append([{{}} for _ in range(120)])
    kept.append([[] for _ in range(turn)])
    kept.append({maker})
print(type(kept[-1]).__name__)
"""


@pytest.mark.parametrize("kind", MAKERS)
def test_objects_are_whole_before_they_are_visited(kind: str) -> None:
    script = SCRIPT.format(maker=MAKERS[kind])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in {"Jitted", "Compiled", "Function", "ShardedFunction"}
