"""Writes the table of the array API standard in ``docs/array-api.md``.

The table has a row for each function of the standard, from the namespace itself. A function that
the namespace lacks, or that differs, has a row here with the reason. ``--check`` compares instead
of writing.
"""

from __future__ import annotations

import inspect
import pathlib
import sys

import defn.array_api as xp
from defn.array_api import _extras

TARGET = pathlib.Path(__file__).parents[1] / "docs" / "array-api.md"
MARK = "<!-- The rest is written by tools/array_api.py. -->\n"

# Functions of the standard that are not there yet.
MISSING: dict[str, str] = {}

BY_VALUES = "not traced: the size of the result depends on values"
SINGULAR = "NaN for a singular matrix, where NumPy raises"
DIFFERENCES = {
    "asarray": "a float as Python's is float64; `copy=None` shares read-only memory only",
    "empty": "zeros",
    "empty_like": "zeros",
    "expm1": "infinite complex operands as in the standard's table, where NumPy gives NaN",
    "floor_divide": "infinite operands as in the standard's table, where Python gives NaN",
    "from_dlpack": "memory of the host; other devices through their plugin",
    "isin": "any data type, where the standard has integers",
    "linalg.cholesky": "NaN where no factor is, where NumPy raises",
    "linalg.inv": SINGULAR,
    "linalg.solve": "infinite or NaN for a singular matrix, where NumPy raises",
    "nonzero": BY_VALUES,
    "pow": "a negative power of integers raises, as in NumPy",
    "repeat": "with an array of repeats not traced: it decides the size of the result",
    "reshape": "changes are shared unless `copy` or `x` is a part of another array",
    "unique_all": BY_VALUES,
    "unique_counts": BY_VALUES,
    "unique_inverse": BY_VALUES,
    "unique_values": BY_VALUES,
}


def functions() -> list[str]:
    """The standard's functions in the namespace and in its modules."""
    found = []
    for prefix, module in (("", xp), ("linalg.", xp.linalg), ("fft.", xp.fft)):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)) and name not in _extras.__all__:
                found.append(prefix + name)
    return sorted(found)


def page() -> str:
    """The table."""
    there = functions()
    lines = [
        f"{len(there)} of the standard's {len(there) + len(MISSING)} functions are there.",
        "",
        "| function | there | difference |",
        "|---|---|---|",
    ]
    for name in sorted([*there, *MISSING]):
        is_there = name not in MISSING
        text = DIFFERENCES.get(name, "") if is_there else MISSING[name]
        lines.append(f"| `{name}` | {'yes' if is_there else 'no'} | {text} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    unknown = (set(DIFFERENCES) | set(MISSING)) - (set(functions()) | set(MISSING))
    both = set(MISSING) & set(functions())
    if unknown or both:
        print(f"tools/array_api.py: rows of no function: {sorted(unknown | both)}")
        return 1
    old = TARGET.read_text(encoding="utf-8")
    new = old[: old.index(MARK) + len(MARK)] + "\n" + page()
    if "--check" in sys.argv[1:]:
        if new != old:
            print("docs/array-api.md is out of date; run `./dev docs`")
        return int(new != old)
    TARGET.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
