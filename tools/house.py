"""The house rules that a text search can check. Prints each offence, and returns 1 if it found any.

The compiler and the linters enforce most rules. These are the rules for which no lint exists.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 600

# Files that may be longer, each with its reason. A file within the limit must leave this list.
LONG: dict[str, str] = {
    "python/defn/_core.pyi": "a stub is one file, and a tool writes most of it",
}

# Absolute paths of one machine, markers of unfinished work, and tests that are switched off.
FORBIDDEN = {
    "an absolute path": r"""["'(= ](?:/(?:home|root|work|mnt|srv|tmp|Users)/|[A-Z]:\\)""",
    "unfinished work": r"\b(?:TO"
    + r"DO|FIX"
    + r"ME|XX"
    + r"X)\b|\b(?:to"
    + r"do|unimple"
    + r"mented)!\(",
    "a test that is switched off": r"#\[ignore|pytest\.mark\.skip\b|pytest\.skip\(",
}

# `matches!` hides a wildcard arm, and an `allow` would switch off the lint against wildcard arms.
RUST_ONLY = {
    "`matches!` on an op": r"matches!\([^)]*\b(?:Op|UnaryOp|BinaryOp|ReduceOp|ArgOp|Block)::",
    "an `allow` of wildcard arms": r"allow\([^)]*wildcard_enum_match_arm",
    "an `expect` of wildcard arms without a reason": r"expect\(clippy::wildcard_enum_match_arm\)",
}


# Identifiers that were replaced by standard terms, with their replacements.
RETIRED = dict(
    line.split()
    for line in (ROOT / "tools" / "retired.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
# What holds no identifiers of Rust code: comments and strings.
NOT_CODE = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""")


def retired(name: str, text: str) -> list[str]:
    """The retired identifiers in a Rust file."""
    words = set(re.findall(r"\w+", NOT_CODE.sub(" ", text)))
    return [
        f"{name}: the identifier {old} is retired, the name is {RETIRED[old]}"
        for old in sorted(words & RETIRED.keys())
    ]


def tracked() -> list[Path]:
    """The files under version control, and new files that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({ROOT / name for name in names.splitlines() if (ROOT / name).is_file()})


def is_source(path: Path) -> bool:
    """Whether the file is a program: by its suffix, or `dev`, which has none."""
    return path.suffix in {".rs", ".py", ".pyi"} or path == ROOT / "dev"


def offences(path: Path) -> list[str]:
    """The offences in one file."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = retired(name, text) if path.suffix == ".rs" else []
    if len(lines) > LIMIT and name not in LONG:
        found.append(f"{name}: {len(lines)} lines, at most {LIMIT}; split it by family")
    if len(lines) <= LIMIT and name in LONG:
        found.append(f"{name}: {len(lines)} lines, it no longer needs its exception")
    # A test may match a single op. A consumer of the catalogue may not.
    is_test = "tests" in path.with_suffix("").relative_to(ROOT).parts
    rules = FORBIDDEN | (RUST_ONLY if path.suffix == ".rs" and not is_test else {})
    for number, line in enumerate(lines, 1):
        found += [
            f"{name}:{number}: {rule}" for rule, text in rules.items() if re.search(text, line)
        ]
    return found


def is_left_out(path: Path) -> bool:
    """Whether a file of tests is in the folder of a program that does not name it as a module."""
    module = path.parent if path.name == "mod.rs" else path.with_suffix("")
    program = module.parent / "main.rs"
    if "tests" not in program.parts or path == program or not program.is_file():
        return False
    return re.search(rf"^mod {module.name};", program.read_text("utf-8"), re.MULTILINE) is None


def main() -> int:
    """Checks every program in the repository."""
    sources = [path for path in tracked() if is_source(path)]
    found = [offence for path in sources for offence in offences(path)]
    missing = [
        f"{name}: named as an exception, but there is no such file"
        for name in LONG
        if not (ROOT / name).is_file()
    ]
    left_out = [
        f"{path.relative_to(ROOT).as_posix()}: its tests do not run, main.rs does not name it"
        for path in sources
        if path.suffix == ".rs" and is_left_out(path)
    ]
    found += missing + left_out
    for line in found:
        print(line)
    print(f"{len(sources)} files, {len(found)} offences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
