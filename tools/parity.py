"""Writes the table in ``docs/rust.md`` of Python's names and their counterparts in Rust.

``crates/defn/src/python.md`` has a row for each public name; rustdoc shows it as the page of the
module ``python``, and checks its links. This checks that the rows are Python's public names, each
once, and that few lack a counterpart. ``--check`` compares instead of writing.
"""

from __future__ import annotations

import pathlib
import re
import sys
import types

import defn as dn

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / "crates" / "defn" / "src" / "python.md"
TARGET = ROOT / "docs" / "rust.md"
MARK = "<!-- The rest is written by tools/parity.py. -->\n"

# Modules that count as one name.
WHOLE = {"array_api"}

# The most names that may lack a counterpart; each says why.
MOST_WITHOUT = 15

ROW = re.compile(r"\| `(dn\.[\w.]+)` \| (.+) \|")


def public_names() -> set[str]:
    """The names of the package and of its public modules."""
    names: set[str] = set()
    for name in dn.__all__:
        value = getattr(dn, name)
        if isinstance(value, types.ModuleType) and name not in WHOLE:
            names |= {f"dn.{name}.{inner}" for inner in getattr(value, "__all__", ())}
        elif name != "__version__":
            names.add(f"dn.{name}")
    return names


def problems(text: str) -> list[str]:
    """What is wrong with the rows."""
    rows = ROW.findall(text)
    names = [name for name, _ in rows]
    public = public_names()
    found = [f"{name} has no row" for name in sorted(public - set(names))]
    found += [f"{name} is no public name" for name in sorted(set(names) - public)]
    found += [f"{name} has several rows" for name in sorted(public) if names.count(name) > 1]
    for name, rust in rows:
        if not re.fullmatch(r"\[`[^`]+`\]\([\w@:!]+\)|none: .+", rust):
            found.append(f"{name}: {rust} is neither a link nor a reason after `none: `")
    without = [name for name, rust in rows if rust.startswith("none: ")]
    if len(without) > MOST_WITHOUT:
        found.append(f"{len(without)} names lack a counterpart: {', '.join(without)}")
    return found


def page(text: str) -> str:
    """The table without rustdoc's links, which lead nowhere outside its pages."""
    return re.sub(r"\[(`[^`]+`)\]\((?:\w+@)?crate::[\w:!]+\)", r"\1", text)


def main() -> int:
    text = SOURCE.read_text(encoding="utf-8")
    found = problems(text)
    for problem in found:
        print(f"{SOURCE.relative_to(ROOT)}: {problem}")
    if found:
        return 1
    old = TARGET.read_text(encoding="utf-8")
    new = old[: old.index(MARK) + len(MARK)] + "\n" + page(text)
    if "--check" in sys.argv[1:]:
        if new != old:
            print(f"{TARGET.relative_to(ROOT)} is out of date; run `./dev docs`")
        return int(new != old)
    TARGET.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
