"""Counts the places that a new op of each kind touches, and proves that something demands each.

Without options: applies every recipe of `tools/recipes` to the repository's texts, without a change
to the files, checks the numbers of places and that CONTRIBUTING.md has their table, and prints the
numbers. `--write` writes the table.

`--prove KIND` copies the repository, adds the recipe's op, builds it and runs its tests; then it
leaves out one place after the other and requires that the compiler or the named test fails. The
copy and its build stay in `target/prove`, so that only the first kind takes long.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from recipes import COMPILER, YOU, Place, Recipe

ROOT = Path(__file__).resolve().parent.parent
PROVE = ROOT / "target" / "prove"
KINDS = ("elementwise", "structural", "block", "composite")
BEGIN, END = "<!-- places: by tools/add_op.py -->\n", "<!-- end of places -->\n"


def recipe(kind: str) -> Recipe:
    """The recipe of a kind."""
    return importlib.import_module(f"recipes.{kind}").RECIPE


def apply(root: Path, places: list[Place]) -> dict[str, str]:
    """The texts of the files after the edits of some places, by path."""
    texts: dict[str, str] = {}
    for place in places:
        for edit in place.edits:
            text = texts.get(edit.path) or (root / edit.path).read_text(encoding="utf-8")
            count = text.count(edit.anchor)
            if count != 1:
                raise SystemExit(
                    f"{edit.path}: {count} times {edit.anchor!r}, the recipe needs it once"
                )
            texts[edit.path] = text.replace(edit.anchor, edit.text + edit.anchor)
    return texts


def table() -> str:
    """The table of places, for CONTRIBUTING.md."""
    recipes = [recipe(kind) for kind in KINDS]
    names: list[str] = []
    for one in recipes:
        at = 0
        for place in one.places:
            if place.name in names:
                at = names.index(place.name) + 1
            else:
                names.insert(at, place.name)
                at += 1
    lines = [
        "| place | " + " | ".join(one.kind for one in recipes) + " |",
        "|---|" + "---|" * len(recipes),
    ]
    for name in names:
        cells = []
        for one in recipes:
            found = [place for place in one.places if place.name == name]
            cells.append(cell(found[0]) if found else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    counts = [str(len(one.places)) for one in recipes]
    lines.append("| **number of places** | " + " | ".join(counts) + " |")
    return "\n".join(lines) + "\n"


def cell(place: Place) -> str:
    """The files of a place and what demands it."""
    paths = ", ".join(f"`{path}`" for path in dict.fromkeys(edit.path for edit in place.edits))
    return f"{paths}; {place.demanded_by}"


def check(write: bool) -> int:
    """Checks the recipes and the table; returns the exit status."""
    for kind in KINDS:
        one = recipe(kind)
        apply(ROOT, list(one.places))
        count = len(one.places)
        if count > one.limit:
            raise SystemExit(f"{kind}: {count} places, at most {one.limit} are allowed")
        print(f"{kind}: {count} places (at most {one.limit}), for example {one.example}")
    path = ROOT / "CONTRIBUTING.md"
    text = path.read_text(encoding="utf-8")
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    wanted = re.sub(pattern, lambda _: BEGIN + table() + END, text, flags=re.DOTALL)
    if BEGIN not in text:
        raise SystemExit("CONTRIBUTING.md has no place for the table")
    if write:
        path.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        raise SystemExit("CONTRIBUTING.md has another table; run python tools/add_op.py --write")
    return 0


def tracked() -> list[str]:
    """The files under version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in names.splitlines() if (ROOT / name).is_file()]


def prove(kind: str) -> int:
    """Adds the recipe's op to a copy, tests it, and leaves out each place in turn."""
    one = recipe(kind)
    prover = Prover(PROVE / "copy", one)
    prover.whole()
    missing = [place for place in one.places if not prover.demands(place)]
    for place in missing:
        print(f"{kind}: nothing demands the place {place.name}")
    return 1 if missing else 0


def mirror(copy: Path) -> None:
    """Makes a folder a copy of the repository; files that are equal stay as they are."""
    names = set(tracked())
    for name in names:
        path, text = copy / name, (ROOT / name).read_bytes()
        if not path.is_file() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    for path in copy.rglob("*"):
        if path.is_file() and path.relative_to(copy).as_posix() not in names:
            path.unlink()


class Prover:
    """A copy of the repository, to which the op of a recipe is added."""

    def __init__(self, copy: Path, one: Recipe) -> None:
        mirror(copy)
        self.copy, self.recipe = copy, one
        # Without optimisations and information for debuggers a build takes a fraction of the time.
        self.env = dict(os.environ, CARGO_TARGET_DIR=str(PROVE), CARGO_PROFILE_DEV_DEBUG="none")
        self.env["PYTHONPATH"] = str(copy / "python")
        self.env["PYO3_BUILD_EXTENSION_MODULE"] = "1"
        self.env["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{self.env['PATH']}"

    def write(self, places: list[Place]) -> None:
        """Writes the files that the recipe names, with the edits of some places only."""
        texts = apply(ROOT, places)
        for edit in (edit for place in self.recipe.places for edit in place.edits):
            text = texts.get(edit.path) or (ROOT / edit.path).read_text(encoding="utf-8")
            path = self.copy / edit.path
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def run(self, *command: str) -> bool:
        """Whether a command succeeds in the copy; prints its last lines if it does not."""
        done = subprocess.run(
            command, cwd=self.copy, env=self.env, capture_output=True, text=True, errors="replace"
        )
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).strip().splitlines()
            print("\n".join(f"    {line[:160]}" for line in lines[-6:]), flush=True)
        return done.returncode == 0

    def compiles(self) -> bool:
        """Whether all crates compile, tests among them."""
        packages = "--workspace --exclude defn-benches -F defn/pjrt"
        return self.run(*f"cargo check --locked --lib --tests {packages}".split())

    def builds(self) -> bool:
        """Whether the extension builds; it becomes that of the copy."""
        build = "cargo build --locked -p defn-python"
        if not self.run(*build.split()):
            return False
        made = Path(self.env["CARGO_TARGET_DIR"]) / "debug" / "lib_core.so"
        shutil.copy2(made, self.copy / "python" / "defn" / "_core.abi3.so")
        return True

    def passes(self, test: str) -> bool:
        """Whether a test file passes for the op: its catalogue, or the tests with its name."""
        chosen = [] if test.endswith("catalogue.py") else ["-k", self.recipe.example]
        command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test, *chosen]
        return self.run(str(ROOT / ".venv" / "bin" / "python"), *command)

    def whole(self) -> None:
        """Builds the extension with the op, and runs the tests that the recipe names."""
        self.write(list(self.recipe.places))
        print(f"{self.recipe.kind}: building with {self.recipe.example}", flush=True)
        if not self.compiles() or not self.builds():
            raise SystemExit(f"{self.recipe.kind}: the op does not compile with all places")
        for test in ("tests/test_catalogue.py", "tests/test_ops.py", "tests/test_grad.py"):
            if not self.passes(test):
                raise SystemExit(f"{self.recipe.kind}: {test} fails with all places")

    def demands(self, place: Place) -> bool:
        """Whether what the recipe names fails without the place."""
        if place.demanded_by == YOU:
            return True
        self.write([other for other in self.recipe.places if other is not place])
        print(f"  without {place.name}: {place.demanded_by}", flush=True)
        if place.demanded_by == COMPILER:
            return not self.compiles()
        if not any(edit.path.endswith(".rs") for edit in place.edits):
            return not self.passes(place.demanded_by)
        failed = not self.builds() or not self.passes(place.demanded_by)
        self.write(list(self.recipe.places))
        return failed and self.builds()


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to CONTRIBUTING.md")
    parser.add_argument("--prove", choices=KINDS, action="append", default=[])
    options = parser.parse_args()
    status = check(options.write)
    return max([status, *(prove(kind) for kind in options.prove)])


if __name__ == "__main__":
    sys.exit(main())
