"""Writes the Python reference, docs/reference.md, from signatures and docstrings.

With `--check` nothing is written; the exit status says whether the file is up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import defn as dn

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference.md"

HEAD = """# Reference

Every public name of `import defn as dn`, from its docstring. Written by `./dev docs`; do not edit.
"""


# Modules with public functions besides those of the package.
MODULES = (
    "checkpoints",
    "compilers",
    "constants",
    "data",
    "distributed",
    "engines",
    "graph",
    "linalg",
    "nn",
    "optim",
    "optimize",
    "random",
    "tree",
)


def public(module: ModuleType) -> list[str]:
    """The public functions and classes of a module, in alphabetical order."""
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    objects = {name: getattr(module, name) for name in names}
    return sorted(
        name
        for name, value in objects.items()
        if (inspect.isroutine(value) or inspect.isclass(value))
        # Functions that the package exports too are listed there.
        and (module is dn or getattr(dn, name, None) is not value)
    )


def signature(value: object) -> str:
    """The parameters as written; "(...)" for a function whose signature is not available."""
    try:
        written = str(inspect.signature(value)).replace("'", "")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)" if inspect.isroutine(value) else ""
    # The parameter that catches unknown options, to refuse them by name, is not shown.
    written = re.sub(r"(, )?\*\*unknown: Never| = REQUIRED", "", written)
    written = re.sub(r'"(Literal\[[^"]*\])"', r"\1", written)
    return written.replace("(*, )", "()")


def entry(name: str, value: object) -> str:
    """One name's heading and text; the name of an object in a module includes the module."""
    kind = "class " if inspect.isclass(value) else ""
    parameters = "" if inspect.isclass(value) else signature(value)
    text = inspect.cleandoc(inspect.getdoc(value) or "")
    prose, examples = text.partition("\n>>>")[::2]
    parts = [f"### `{kind}dn.{name}{parameters}`", prose.strip()]
    if examples:
        parts.append(f"```python\n>>>{examples.rstrip()}\n```")
    return "\n\n".join(part for part in parts if part)


def reference() -> str:
    """The whole file: the package's functions, the modules' functions, other classes, errors."""
    names = public(dn)
    groups = {
        "Functions": [],
        **{f"dn.{name}": [] for name in MODULES},
        "Classes": [],
        "Errors": [],
    }
    for name in names:
        value = getattr(dn, name)
        if inspect.isclass(value):
            groups["Errors" if issubclass(value, Exception) else "Classes"].append(
                entry(name, value)
            )
        else:
            groups["Functions"].append(entry(name, value))
    for module in MODULES:
        inner = getattr(dn, module)
        text = inspect.cleandoc(inner.__doc__ or "").partition("\n>>>")[0].strip()
        groups[f"dn.{module}"].append(text)
        groups[f"dn.{module}"] += [
            entry(f"{module}.{name}", getattr(inner, name)) for name in public(inner)
        ]
    parts = [HEAD.strip()]
    for title, entries in groups.items():
        parts += [f"## {title}", *entries]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Writes or checks the file."""
    text = reference()
    name = TARGET.relative_to(TARGET.parent.parent)
    if "--check" in sys.argv[1:]:
        current = TARGET.read_text(encoding="utf-8") if TARGET.is_file() else ""
        print(
            f"{name} is "
            + ("as it should be" if current == text else "out of date; run ./dev docs")
        )
        return 0 if current == text else 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {name}: {text.count(chr(10) + '### ')} names")
    return 0


if __name__ == "__main__":
    sys.exit(main())
