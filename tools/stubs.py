"""Write ``Tensor``'s methods into ``_core.pyi`` from the functions; ``--check`` compares."""

from __future__ import annotations

import inspect
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "python" / "defn" / "_core.pyi"
BEGIN = "    # Methods that are the public functions: written by tools/stubs.py.\n"
END = "    # The end of what tools/stubs.py writes.\n"
RESHAPE = '    def reshape(\n        self, *sizes: int | Literal["auto"] | Shape | Tensor, names: Names | None = None\n    ) -> Tensor: ...\n'  # noqa: E501


def parameter_text(parameter: inspect.Parameter) -> str:
    text = f"{parameter.name}: {parameter.annotation}"
    if parameter.kind is parameter.VAR_POSITIONAL:
        text = "*" + text
    if parameter.default is not parameter.empty:
        default = parameter.default
        text += f' = "{default}"' if isinstance(default, str) else f" = {default!r}"
    return text


def method(name: str, function: object) -> str:
    """One method of the stub: the function less its first parameter and ``**unknown``."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    first, *rest = signature.parameters.values()
    parts = ["self"]
    if first.kind is first.VAR_POSITIONAL:
        parts.append(parameter_text(first))
    keyword_only = False
    for parameter in rest:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        parts.append(parameter_text(parameter))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            following = rest[rest.index(parameter) + 1 :]
            if not any(p.kind is p.POSITIONAL_ONLY for p in following):
                parts.append("/")
    line = f"    def {name}({', '.join(parts)}) -> {signature.return_annotation}: ...\n"
    if len(line) <= 101:
        return line
    inner = f"        {', '.join(parts)}\n"
    if len(inner) <= 101:
        return f"    def {name}(\n{inner}    ) -> {signature.return_annotation}: ...\n"
    lines = "".join(f"        {part},\n" for part in parts)
    return f"    def {name}(\n{lines}    ) -> {signature.return_annotation}: ...\n"


def methods() -> str:
    import defn as dn
    from defn.tensors import method_names

    return "".join(
        RESHAPE if name == "reshape" else method(name, getattr(dn, name))
        for name in sorted(method_names())
    )


def main() -> int:
    old = TARGET.read_text()
    head, rest = old.split(BEGIN)
    _, tail = rest.split(END)
    new = head + BEGIN + methods() + END + tail
    if "--check" in sys.argv[1:]:
        if old == new:
            return 0
        print(f"{TARGET} is out of date; run python tools/stubs.py")
        return 1
    TARGET.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
