"""Runs type checkers on code as users write it: the examples and ``tests/typing``.

Both checkers must accept ``right_calls.py`` and the examples. In ``wrong_calls.py`` they must
refuse every line that ends with ``# wrong``, and no other line.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
WRONG = ROOT / "tests" / "typing" / "wrong_calls.py"
RIGHT = [ROOT / "tests" / "typing" / "right_calls.py", *sorted((ROOT / "examples").glob("*.py"))]
BIN = pathlib.Path(sys.executable).parent

Found = set[tuple[pathlib.Path, int]]


def basedpyright(files: list[pathlib.Path]) -> tuple[Found, str]:
    """The lines with an error, and the checker's output."""
    command = [BIN / "basedpyright", "--outputjson", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found, lines = set(), []
    for problem in json.loads(result.stdout)["generalDiagnostics"]:
        if problem["severity"] == "error":
            place = pathlib.Path(problem["file"]), problem["range"]["start"]["line"] + 1
            found.add(place)
            lines.append(f"{place[0]}:{place[1]}: {problem['message']}")
    return found, "\n".join(lines)


def mypy(files: list[pathlib.Path]) -> tuple[Found, str]:
    """The lines with an error, and the checker's output."""
    command = [BIN / "mypy", "--config-file", ROOT / "pyproject.toml", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    places = re.findall(r"^(.+?):(\d+): error:", result.stdout, re.M)
    return {(ROOT / file, int(line)) for file, line in places}, result.stdout + result.stderr


def main() -> int:
    lines = WRONG.read_text().splitlines()
    wanted = {(WRONG, at) for at, line in enumerate(lines, 1) if line.endswith("# wrong")}
    failed = False
    for checker in (basedpyright, mypy):
        found, text = checker(RIGHT)
        if found or "error" in text:
            failed = True
            print(f"{checker.__name__} has something against right calls:\n{text}")
        found, text = checker([WRONG])
        if found != wanted:
            failed = True
            missed = sorted(line for _, line in wanted - found)
            print(f"{checker.__name__} misses lines {missed} of {WRONG.name}")
            print(f"and has errors in lines {sorted(line for _, line in found - wanted)}\n{text}")
    if not failed:
        print(f"{len(wanted)} wrong calls are found, {len(RIGHT)} files are right")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
