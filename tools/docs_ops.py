"""Write ``docs/ops.md``: operations, their dtypes and cases; ``--check`` compares instead."""

from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
TARGET = ROOT / "docs" / "ops.md"


def dtypes_text(names: set[str]) -> str:
    from cases.dtypes import ALL, COMPLEX, FLOATS, INTEGERS, REAL, SIGNED, UNSIGNED

    for label, group in (
        ("all", ALL),
        ("real", REAL),
        ("integers", INTEGERS),
        ("floats", FLOATS),
        ("floats, complex", FLOATS + COMPLEX),
        ("unsigned", UNSIGNED),
        ("signed", SIGNED),
    ):
        if names == set(group):
            return label
    left_out = [name for name in ALL if name not in names]
    if len(left_out) < 4:
        return f"all but {', '.join(left_out)}"
    return ", ".join(name for name in ALL if name in names)


GRADS = {
    "flows": "checked by differences",
    "zero": "none flows",
    "refused": "refused",
    None: "",
}


def document() -> str:
    import defn as dn
    from cases import all_cases
    from defn import _core
    from defn.tensors import METHOD_MODULES

    cases = all_cases()
    lines = [
        "# Operations",
        "",
        "Written by `python tools/docs_ops.py` from the table of test cases. Every operation is",
        "compared with an oracle in each of its dtypes, eager and compiled; in others it raises.",
        "",
    ]
    total_cases = total_checks = total_names = 0
    tables = []
    for module in METHOD_MODULES:
        family = module.__name__.rsplit(".", 1)[-1].replace("_", ", ")
        rows = [
            f"## {family.capitalize()}",
            "",
            "| operation | what it does | dtypes | cases | checks | gradient |",
            "|---|---|---|---:|---:|---|",
        ]
        for name in module.__all__:
            own = [case for case in cases if case.name == name]
            if not own:
                continue
            dtypes = {dtype for case in own for dtype in case.dtypes}
            checks = sum(len(case.dtypes) for case in own)
            grads = [case.grad for case in own if case.grad is not None]
            summary = (getattr(dn, name).__doc__ or "").split("\n\n")[0]
            summary = " ".join(summary.split()).replace("|", "\\|")
            rows.append(
                f"| `{name}` | {summary} | {dtypes_text(dtypes)} | {len(own)} | {checks} "
                f"| {GRADS[grads[0] if grads else None]} |"
            )
            total_cases += len(own)
            total_checks += checks
            total_names += 1
        tables.append("\n".join(rows))
    lines.append(
        f"{total_names} operations over {len(_core.op_names())} names of the catalogue, "
        f"{len(_core.dtypes)} dtypes, {total_cases} cases, "
        f"{total_checks} checks of a case in a dtype."
    )
    return "\n".join(lines) + "\n\n" + "\n\n".join(tables) + "\n"


def main() -> int:
    text = document()
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text() == text:
            return 0
        print(f"{TARGET} is out of date; run python tools/docs_ops.py")
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
