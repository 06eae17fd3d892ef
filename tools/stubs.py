"""Writes ``Tensor``'s methods into ``_core.pyi`` from the functions; ``--check`` only compares."""

from __future__ import annotations

import inspect
import json
import pathlib
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "python" / "defn" / "_core.pyi"
METHODS = (
    "    # Methods that are the public functions: written by tools/stubs.py.\n",
    "    # The end of the methods.\n",
)
FUNCTIONS = (
    "# What the public functions call, in their order of parameters: written by tools/stubs.py.\n",
    "# The end of the functions.\n",
)
# Methods whose parameters differ from those of the function with the same name.
OWN = {
    "max": "    def max(self, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor: ...\n",  # noqa: E501
    "min": "    def min(self, axes: Axes | None = None, *, keep_axes: bool = False) -> Tensor: ...\n",  # noqa: E501
    "reshape": '    def reshape(\n        self, *sizes: int | Literal["auto"] | Shape | Tensor, names: Names | None = None\n    ) -> Tensor: ...\n',  # noqa: E501
    "transpose": "    @overload\n    def transpose(self, *axes: Axis) -> Tensor: ...\n    @overload\n    def transpose(self, axes: Axes | None = None) -> Tensor: ...\n",  # noqa: E501
}


def parameter_text(parameter: inspect.Parameter) -> str:
    annotation = str(parameter.annotation).replace("'", '"')
    text = f"{parameter.name}: {annotation}"
    if parameter.kind is parameter.VAR_POSITIONAL:
        text = "*" + text
    if parameter.default is not parameter.empty and repr(parameter.default) != "REQUIRED":
        default = parameter.default
        text += f" = {json.dumps(default) if isinstance(default, str) else repr(default)}"
    return text


def declaration(name: str, parts: list[str], result: object, indent: str) -> str:
    """A function's declaration, on one line or on as many as it needs."""
    line = f"{indent}def {name}({', '.join(parts)}) -> {result}: ...\n"
    if len(line) <= 101:
        return line
    inner = f"{indent}    {', '.join(parts)}\n"
    if len(inner) <= 101:
        return f"{indent}def {name}(\n{inner}{indent}) -> {result}: ...\n"
    lines = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{indent}def {name}(\n{lines}{indent}) -> {result}: ...\n"


def method(name: str, function: Callable[..., object]) -> str:
    """One method of the stub: the function without its first parameter and ``**unknown``."""
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    rest = [p for p in rest if p.kind is not p.VAR_KEYWORD]
    parts = ["self"]
    if first.kind is first.VAR_POSITIONAL:
        parts.append(parameter_text(first))
    for before, parameter in zip([first, *rest], rest, strict=False):
        starred = (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        if parameter.kind is parameter.KEYWORD_ONLY and (
            before.kind not in starred or (before is first and len(parts) == 1)
        ):
            parts.append("*")
        parts.append(parameter_text(parameter))
    positional = [p for p in rest if p.kind is p.POSITIONAL_ONLY]
    if positional:
        parts.insert(1 + len(positional), "/")
    return declaration(name, parts, signature.return_annotation, "    ")


def function(name: str, public: Callable[..., object]) -> str:
    """The core function that a public function calls: the same parameters, all positional."""
    signature = inspect.signature(public)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    parts = [parameter_text(p) for p in parameters]
    several = [p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters]
    if not several[0]:
        parts.insert(several.index(True) if any(several) else len(parts), "/")
    return declaration(name, parts, signature.return_annotation, "")


def methods() -> str:
    import defn as dn
    from defn.tensors import ALIASES, method_names

    return "".join(
        OWN[name] if name in OWN else method(name, getattr(dn, name))
        for name in sorted([*method_names(), *ALIASES])
    )


def functions() -> str:
    from defn import linalg, nn, random
    from defn.tensors import METHOD_MODULES

    # The core's `gradient` is that of a function.
    written = [
        function({"gradient": "slopes"}.get(name, name), getattr(module, name))
        for module in METHOD_MODULES
        for name in module.__all__
    ]
    written += [function(f"linalg_{name}", getattr(linalg, name)) for name in linalg.__all__]
    # What takes or returns containers calls other functions; the core's `conv` is that of `dn`.
    containers = ("lstm_cell", "lstm_parameters", "gru_parameters")
    containers += ("lstm_parameters_split", "gru_parameters_split")
    written += [
        function({"conv": "channels_last_conv"}.get(name, name), getattr(nn, name))
        for name in nn.__all__
        if name not in containers
    ]
    # One core function serves both forms of shuffle and of permutation; the generator has none.
    without = ("Generator", "permutation", "permutation_split", "shuffle_split")
    written += [
        function(f"random_{name}", getattr(random, name))
        for name in random.__all__
        if name not in without
    ]
    return "".join(written)


def replaced(text: str, marks: tuple[str, str], written: str) -> str:
    head, rest = text.split(marks[0])
    _, tail = rest.split(marks[1])
    return head + marks[0] + written + marks[1] + tail


def main() -> int:
    old = TARGET.read_text()
    new = replaced(replaced(old, METHODS, methods()), FUNCTIONS, functions() + "\n")
    if "--check" in sys.argv[1:]:
        if old == new:
            return 0
        print(f"{TARGET} is out of date; run python tools/stubs.py")
        return 1
    TARGET.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
