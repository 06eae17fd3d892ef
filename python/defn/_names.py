"""Names from NumPy, JAX and PyTorch, and their equivalents here.

This module runs only when a name is wrong: public functions pass unknown options to
:func:`refuse_options` (see ``_public``); unknown names of the package come through its
``__getattr__``.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from defn import _foreign
from defn.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import FrameType, FunctionType, ModuleType

_PACKAGE = os.path.dirname(__file__) + os.sep


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""The default of a required parameter whose absence has its own error message."""

# Options of other libraries and our names for them; the first that the function has is suggested.
_FOREIGN_OPTIONS = {
    "axis": ("axes",),
    "axes": ("axis",),
    "dim": ("axes", "axis"),
    "dims": ("axes", "axis"),
    "keepdim": ("keep_axes", "keep_axis"),
    "keepdims": ("keep_axes", "keep_axis"),
    "keep_axis": ("keep_axes",),
    "keep_axes": ("keep_axis",),
    "descending": ("direction",),
    "kind": ("stable",),
    "correction": ("ddof",),
    "unbiased": ("ddof",),
    "type": ("dtype",),
    "name": ("names",),
    "num": ("n",),
    "offset": ("k",),
    "k": ("offset",),
    "static_argnames": ("static",),
    "static_argnums": ("static",),
    "donate_argnums": ("donate",),
    "has_aux": ("transform",),
    "equal_nans": ("equal_nan",),
    "new_sizes": ("shape",),
    "size": ("shape", "samples"),
}


def is_own(frame: FrameType) -> bool:
    """Whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def caller_frame() -> FrameType | None:
    """The innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame):
        frame = frame.f_back
    return frame


def caller() -> str:
    """The innermost file and line outside this package, as the last line of a message."""
    frame = caller_frame()
    # A thread that this package starts has no line of the user's code.
    if frame is None or frame.f_globals.get("__name__") == "threading":
        return ""
    return f"\n  at {frame.f_code.co_filename}:{frame.f_lineno}"


def option_error(message: str) -> OptionError:
    """An ``OptionError`` that ends with the user's line."""
    return OptionError(message + caller())


def unknown_options(function: str, unknown: Iterable[str], known: Iterable[str]) -> OptionError:
    """The error for options that a function does not have; it lists those that it has."""
    given = list(unknown)
    names = [name for name in known if name not in given]
    meant = [
        next(ours for ours in _FOREIGN_OPTIONS[name] if ours in names)
        for name in given
        if any(ours in names for ours in _FOREIGN_OPTIONS.get(name, ()))
    ]
    plural = "s" if len(given) > 1 else ""
    text = f"{function}: unknown option{plural} " + ", ".join(f'"{name}"' for name in given)
    text += f", it takes {', '.join(names)}" if names else ", it takes no options"
    if meant:
        text += f"; use {', '.join(meant)}"
    return option_error(text)


def refuse_options(function: FunctionType, unknown: Mapping[str, object]) -> NoReturn:
    """Raise for unknown options of a public function."""
    known = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind is p.KEYWORD_ONLY
        or (p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty)
    ]
    raise unknown_options(_name(function), unknown, known)


def refuse_one_operand(function: FunctionType) -> NoReturn:
    """Raise for a two-operand function called with one, as the reduction in other libraries."""
    name = _name(function)
    raise option_error(
        f"{name}: one tensor is given, two are required; "
        f"use x.{name}() or dn.reduce_{name}(x) for the elements of one tensor"
    )


def _name(function: FunctionType) -> str:
    # A method that differs from the function of its name is a private function here.
    return function.__name__.removeprefix("_")


def unknown_name(where: str, name: str, module: ModuleType | None = None) -> UnknownNameError:
    """The error for a name that the package, or one of its modules, does not have."""
    # Not imported with the package, since only errors need it.
    import difflib

    import defn

    module = module or defn
    tables = {
        "linalg": _foreign.LINALG,
        "nn": _foreign.NN,
        "optim": _foreign.OPTIM,
        "optimize": _foreign.OPTIMIZE,
        "random": _foreign.RANDOM,
        "tree": _foreign.TREE,
    }
    ours = tables.get(module.__name__.rpartition(".")[2], _foreign.FUNCTIONS).get(name)
    if ours is None:
        close = difflib.get_close_matches(name, module.__all__, 1, 0.75)
        prefix = "dn" + module.__name__.removeprefix("defn")
        ours = f"{prefix}.{close[0]}" if close else None
    return _unknown(where, name, ours)


def unknown_attribute(name: str) -> UnknownNameError:
    """The error for a method or attribute of another library's arrays."""
    return _unknown("tensors have no method", name, attribute_hint(name))


def attribute_hint(name: str) -> str | None:
    """What to write for a method of another library's arrays: a method if there is one."""
    ours = _foreign.METHODS.get(name)
    if ours is not None:
        return ours
    ours = _foreign.FUNCTIONS.get(name)
    if ours is None:
        return None
    from defn.tensors import method_names

    methods = method_names()

    def as_method(found: re.Match[str]) -> str:
        function, rest = found.groups()
        return f"x.{function}({rest}" if function in methods else found.group()

    return re.sub(r"dn\.(\w+)\(x(?:, )?(\)?)", as_method, ours)


def numpy_name(name: str) -> str | None:
    """What to write for a NumPy function, or for ``linalg.name``; None without an equivalent."""
    import defn

    *module, last = name.split(".")
    table, ours = (_foreign.LINALG, defn.linalg) if module else (_foreign.FUNCTIONS, defn)
    if last in ours.__all__:
        return ".".join(["dn", *module, last])
    return table.get(last)


def _unknown(where: str, name: str, ours: str | None) -> UnknownNameError:
    text = f"{name}: {where} of this name"
    if ours is not None:
        text += f"; use {ours}"
    error = UnknownNameError(text + caller())
    error.name = name
    return error
