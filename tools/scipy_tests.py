"""Runs SciPy's own tests on our arrays, and writes the results in ``docs/scipy-tests.md``.

SciPy's wheel has its tests with it. Those that take the fixture ``xp`` run on the arrays of any
library of the array API standard; ``tests/scipy_backend.py`` gives them ours. Beside them run the
same tests on the arrays of ``array_api_strict``, which have nothing but the standard.

    python tools/scipy_tests.py [words]   run the files with a word in their names, by default all
    python tools/scipy_tests.py --check   compare the names of files in the page with SciPy's

The whole takes a quarter of an hour on two processors, so that no test runs it. Files that were not
run keep their rows.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter

import scipy

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "docs" / "scipy-tests.md"
MARK = "<!-- The rest is written by tools/scipy_tests.py. -->\n"
SCIPY = pathlib.Path(scipy.__file__).parent
# Tests that take the namespace as an argument, or whose class or fixture does.
USES = re.compile(r"def (?:test|setup)\w*\([^)]*\bxp\b")
BACKENDS = ("defn", "array_api_strict")
SECONDS = 1500

# What a failure's message says, and the group of reasons that it belongs to. The first that is
# found counts.
REASONS = [
    (
        r"no common data type|a Python \w+ does not combine|\+=: the result has",
        "integers and floats are combined, which the standard leaves undefined and we refuse",
    ),
    (
        r"arrays of the standard have no attribute|has no attribute|unexpected keyword"
        r"|True cannot index",
        "methods and functions of NumPy that the standard does not have, such as `x.sum()`",
    ),
    (
        r"the array has data type \w+, it must be",
        "data types that the standard does not have for a function, such as `exp` of integers",
    ),
    (
        r"read-only",
        "SciPy's C functions write to an `output=` or another operand, and ours are read-only",
    ),
    (r"bool: the array has shape", "an array of one element is taken for its truth value"),
    (r"zoom_1_gh20999_output", "SciPy fills a copy of an `output=`"),
    (r"inf (?:location|values) mismatch", "the mean of float32 does not overflow, -0 + -0 is -0"),
    (r"krandinit|test_freq_range|_sort_cmplx", "the last bit or the sign of a vector decides"),
    (
        r"DID NOT (?:RAISE|WARN)|Regex pattern did not match",
        "an error or a warning of NumPy is expected",
    ),
]

Counts = dict[str, int]


def files() -> list[str]:
    """SciPy's files of tests that use the fixture, as names of modules without ``scipy``."""
    found = []
    for path in SCIPY.glob("**/tests/test_*.py"):
        if USES.search(path.read_text(encoding="utf-8")):
            found.append(".".join(path.relative_to(SCIPY).with_suffix("").parts))
    return sorted(found)


def run(name: str, backend: str) -> tuple[Counts, Counter[str], list[str]]:
    """The counts of a file, the groups of its failures, and the failures of no group."""
    env = dict(os.environ, SCIPY_ARRAY_API=json.dumps([backend]), OPENBLAS_NUM_THREADS="1")
    plugin = []
    if backend == "defn":
        paths = [str(ROOT / "python"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
        env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        plugin = ["-p", "scipy_backend"]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *plugin, "-m", "array_api_backends"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull, "--tb=native"]
        command += ["--rootdir", folder, f"--junitxml={report}", "--pyargs", f"scipy.{name}"]
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return {}, Counter(), [f"{name}: it did not end in {SECONDS} s"]
        if not report.exists():
            return {}, Counter(), [f"{name}: {done.stdout}{done.stderr}"]
        return read(name, report)


def read(name: str, report: pathlib.Path) -> tuple[Counts, Counter[str], list[str]]:
    """What a report of pytest says."""
    counts: Counts = {"passed": 0, "failed": 0, "skipped": 0}
    groups: Counter[str] = Counter()
    unknown = []
    for case in ElementTree.parse(report).iter("testcase"):
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        if failure is not None:
            counts["failed"] += 1
            text = f"{failure.get('message')}\n{failure.text}"
            group = next((group for sign, group in REASONS if re.search(sign, text)), None)
            groups[group or "others"] += 1
            if group is None:
                unknown.append(f"{name}::{case.get('name')}: {text}")
        elif case.find("skipped") is not None:
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts, groups, unknown


def rows(text: str) -> dict[str, str]:
    """The lines of the table by the name of the file."""
    return {found[1]: found[0] for found in re.finditer(r"(?m)^\| `scipy\.([\w.]+)` \|.*$", text)}


def line(name: str, results: dict[str, Counts]) -> str:
    """The line of a file."""
    cells = [f"`scipy.{name}`"]
    for backend in BACKENDS:
        counts = results[backend]
        cells += [str(counts.get(key, "-")) for key in ("passed", "failed", "skipped")]
    return "| " + " | ".join(cells) + " |"


def check(page: str) -> int:
    """Whether the table has a row for each file, if SciPy is of the release that it names."""
    release = re.search(r"SciPy (\d+\.\d+)", page)
    if release is None or not scipy.__version__.startswith(release[1] + "."):
        return 0
    wrong = sorted(set(files()) ^ set(rows(page)))
    if wrong:
        print(f"docs/scipy-tests.md: run tools/scipy_tests.py for {', '.join(wrong)}")
    return int(bool(wrong))


def main() -> int:
    page = TARGET.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        return check(page)
    words = sys.argv[1:]
    names = [name for name in files() if not words or any(word in name for word in words)]
    tasks = [(name, backend) for name in names for backend in BACKENDS]
    results: dict[str, dict[str, Counts]] = {name: {} for name in names}
    groups: Counter[str] = Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (name, backend), found in zip(tasks, pool.map(lambda t: run(*t), tasks), strict=True):
            results[name][backend] = found[0]
            print(f"{name} {backend} {found[0]}", flush=True)
            if backend == "defn":
                groups += found[1]
                print("\n".join(found[2]), flush=True)
    for group, count in groups.most_common():
        print(f"{count:5} {group}")
    write(page, results, groups, bool(words))
    return 0


def write(
    page: str, results: dict[str, dict[str, Counts]], groups: Counter[str], part: bool
) -> None:
    """The page with the table, and after a run of all files with the reasons of failures."""
    start = page[: page.index(MARK) + len(MARK)]
    table = rows(page) | {name: line(name, found) for name, found in results.items()}
    table = {name: table[name] for name in files() if name in table}
    cells = [[cell.strip() for cell in row.split("|")[2:8]] for row in table.values()]
    sums = [sum(int(n) for n in column if n != "-") for column in zip(*cells, strict=True)]
    lines = [
        "",
        f"With SciPy {scipy.__version__}:",
        "",
        "| file | passed | failed | skipped | strict: passed | failed | skipped |",
        "|---|---|---|---|---|---|---|",
        *table.values(),
        "| all | " + " | ".join(map(str, sums)) + " |",
        "",
    ]
    old = re.search(r"(?ms)^## Reasons.*", page)
    if part and old:
        reasons = old[0]
    else:
        reasons = "## Reasons of failures\n\n| tests | reason |\n|---|---|\n" + "".join(
            f"| {count} | {group} |\n" for group, count in groups.most_common()
        )
    TARGET.write_text(start + "\n".join(lines) + "\n" + reasons, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
