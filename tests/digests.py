"""Digests of the results of every row of the case table, in every dtype.

``golden/digests.txt`` has those of the kernels that there were before loop nests, which share
nothing with the functions of loop nests. Below a row is what has changed since, with its reason.
``python tests/digests.py REASON`` adds what is different in this build. The first lines of the file
have the reasons: a new one is written there by hand, and in docs/order.md.
"""

from __future__ import annotations

import hashlib
import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import defn as dn
from cases import Case, all_cases, store
from cases import elementwise as elementwise_cases
from cases import fourier as fourier_cases
from cases import reduce as reduce_cases
from cases.dtypes import is_complex, is_whole, limits

GOLDEN = pathlib.Path(__file__).parent / "golden" / "digests.txt"
# Rows of these shapes get more elements: enough for whole vectors, a rest, and special values.
LARGER = {
    **{case: {(2, 3): (9, 83)} for case in elementwise_cases.CASES},
    **{case: {(2, 3): (5, 300), (3, 5): (20, 47)} for case in reduce_cases.CASES},
}
# The bits of Fourier transforms depend on the processor.
LEFT_OUT = set(fourier_cases.CASES)
DIGITS = 8
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-40, -1e-310)
SPECIAL = (*SPECIAL, 2.0**-24, 1e-8, 88.8, -87.4, 709.9, -745.0, 3e38, -1e300, 1e10, 12345.678)


class Frozen(np.random.RandomState):
    """The generator whose numbers NumPy promises never to change, with the newer one's methods."""

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        if high is None:
            low, high = 0, low
        return self.randint(low, high + endpoint if endpoint else high, size, dtype)

    def random(self, size=None):
        return self.random_sample(size)


def special(dtype: str) -> np.ndarray:
    """Values at which functions have cases of their own."""
    if is_whole(dtype):
        low, high = limits(dtype)
        return store(np.array([low, high, 0, 1, high], np.uint64 if low == 0 else np.int64), dtype)
    numbers = np.array(SPECIAL)
    if is_complex(dtype):
        numbers = (numbers[:, None] + 1j * numbers).reshape(-1)
    return store(numbers, dtype)


def arguments(case: Case, dtype: str, larger: bool, odd: bool) -> list[np.ndarray]:
    """The arguments of a row, drawn as for its other tests; with special values among them."""
    seed = int.from_bytes(hashlib.sha256(f"{case} {dtype}".encode()).digest()[:4], "big")
    rng = Frozen(seed)
    draws = case.draw if isinstance(case.draw, tuple) else (case.draw,) * len(case.shapes)
    shapes = LARGER.get(case, {}) if larger else {}
    arrays = []
    for place, (draw, shape) in enumerate(zip(draws, case.shapes, strict=True)):
        array = np.array(draw(rng, shapes.get(shape, shape), dtype))
        if odd and dtype != "bool":
            # Different counts, so that the special values of two operands meet in many ways.
            values, flat = special(dtype), array.reshape(-1)
            count = min(len(flat) // 2, len(values) * (3 + place))
            flat[rng.permutation(len(flat))[:count]] = np.resize(values, count)
        arrays.append(array)
    return arrays


def digest(results: Any) -> str:
    """Of dtypes, shapes and bits; all NaNs are the same."""
    found = hashlib.sha256()
    for result in results if isinstance(results, tuple | list) else (results,):
        array = np.asarray(result.to_numpy())
        kind = str(result.dtype)
        if is_complex(kind):
            parts = np.ascontiguousarray(array).view(array.real.dtype)
            array = np.where(np.isnan(parts), parts.dtype.type(np.nan), parts)
        elif not is_whole(kind) and kind != "bool":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
        found.update(f"{kind} {tuple(result.shape)}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:DIGITS]


def row(case: Case, dtype: str) -> tuple[str, str]:
    """The digests of a row in a dtype, eager and compiled."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.creates:
            return digest(case.run(dtype)), digest(jit(lambda: case.run(dtype))())
        compiled = jit(lambda *args: case.run(*args))
        odd = case in elementwise_cases.CASES
        # Some rows need their shapes, and some operations refuse special values.
        for larger, special_too in ((True, odd), (True, False), (False, False)):
            arrays = arguments(case, dtype, larger, special_too)
            try:
                tensors = [dn.tensor(array) for array in arrays]
                return digest(case.run(*tensors)), digest(compiled(*tensors))
            except dn.Error:
                if not larger:
                    raise
    raise AssertionError("the last attempt returns or raises")


def jit(function: Any) -> Any:
    return dn.jit(function, compiler="cpu")


def rows() -> list[Case]:
    return [case for case in all_cases() if case not in LEFT_OUT]


Digests = dict[tuple[str, str], str]


def entries(words: str) -> Iterator[tuple[str, str]]:
    for word in words.split():
        dtypes, found = word.split("=")
        yield from ((dtype, found) for dtype in dtypes.split(","))


def golden() -> tuple[Digests, dict[tuple[str, str], tuple[str, str]], str]:
    """The digests of before, those that changed with their reasons, and the first lines."""
    before: Digests = {}
    changed = {}
    head, body = GOLDEN.read_text(encoding="utf-8").split("\n\n")
    name = ""
    for line in body.splitlines():
        first, words = line.split(": ")
        if first.startswith("  "):
            changed.update({(name, t): (first.strip(), key) for t, key in entries(words)})
        else:
            name = first
            before.update({(name, t): key for t, key in entries(words)})
    return before, changed, head


def words(found: dict[str, str]) -> str:
    """Digests as the file has them: dtypes that have the same are together."""
    alike: dict[str, list[str]] = {}
    for dtype, key in found.items():
        alike.setdefault(key, []).append(dtype)
    return " ".join(f"{','.join(dtypes)}={key}" for key, dtypes in alike.items())


def write(reason: str) -> None:
    """Adds what is different in this build."""
    before, changed, head = golden()
    lines = [head, ""]
    for case in rows():
        name = str(case)
        old: dict[str, str] = {}
        new: dict[str, dict[str, str]] = {}
        for dtype in case.dtypes:
            place, (eager, _) = (name, dtype), row(case, dtype)
            old[dtype] = before.get(place, eager)
            why, last = changed.get(place, ("", old[dtype]))
            if eager != last:
                why = reason
            if eager != old[dtype]:
                new.setdefault(why, {})[dtype] = eager
        lines.append(f"{name}: {words(old)}")
        lines.extend(f"  {why}: {words(found)}" for why, found in sorted(new.items()))
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
