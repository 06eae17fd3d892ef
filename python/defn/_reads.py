"""The names, attributes and items that a function's code reads from outside, found in its bytecode.

A compiled version of a definition is valid as long as the values that it read are the same.
``CONFIG["rate"]`` reads one entry of a dict; other code may pass the whole dict on. The bytecode
tells these cases apart.
"""

from __future__ import annotations

import dis
import functools
import os
import sysconfig
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import types
    from collections.abc import Hashable

__all__ = ["ANY", "is_installed", "reads"]

# Represents attributes whose names are computed at run time.
ANY = "*"

# A step from a value into it: whether it is an item, and the item's key or the attribute's name.
Step = tuple[bool, "Hashable"]
Read = tuple[str, tuple[Step, ...]]
# The name of a variable or an attribute, and the number of constant items after it; the code takes
# an item or an attribute of the value at the end of this path.
Access = tuple[str, int]
# Globals, captured variables, the names of attributes, and the accesses.
Reads = tuple[list[Read], list[Read], set[str], set[Access]]

_KNOWN: weakref.WeakKeyDictionary[types.CodeType, Reads] = weakref.WeakKeyDictionary()
_NOTHING = frozenset({"EXTENDED_ARG", "PUSH_NULL", "PRECALL", "CACHE", "NOP"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CELLS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"})
# Attributes of an array that do not depend on its elements.
_METADATA = frozenset({"dtype", "itemsize", "nbytes", "ndim", "shape", "size"})
_CONSTANTS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})


def reads(code: types.CodeType, without: frozenset[int] = frozenset()) -> Reads:
    """The reads of a code object and of the functions inside it, except the code objects whose ids
    are in ``without``.
    """
    own = _KNOWN.get(code)
    if own is None:
        own = _KNOWN[code] = _own(code)
    found, cells, attributes, accessed = list(own[0]), list(own[1]), set(own[2]), set(own[3])
    for inner in code.co_consts:
        if hasattr(inner, "co_code") and id(inner) not in without:
            more = reads(inner, without)
            found += more[0]
            cells += more[1]
            attributes |= more[2]
            accessed |= more[3]
    free = set(code.co_freevars)
    return found, [(name, steps) for name, steps in cells if name in free], attributes, accessed


def _own(code: types.CodeType) -> Reads:
    every = list(dis.get_instructions(code))
    instructions = [made for made in every if made.opname not in _NOTHING]
    found: list[Read] = []
    cells: list[Read] = []
    attributes: set[str] = set()
    for at, made in enumerate(instructions):
        if made.opname in _ATTRIBUTES:
            attributes.add(str(made.argval))
        elif made.opname in _GLOBALS:
            found.append((made.argval, _steps(instructions, at + 1)))
        elif made.opname in _CELLS:
            cells.append((made.argval, _steps(instructions, at + 1)))
    if "getattr" in code.co_names:
        attributes.update(text for text in code.co_consts if isinstance(text, str))
    if any(_computes(instructions, at) for at in range(len(instructions))):
        attributes.add(ANY)
    read = _ATTRIBUTES | _GLOBALS | _CELLS
    accessed: set[Access] = set()
    for at, made in enumerate(every):
        if made.opname not in read:
            continue
        items, at = 0, at + 1
        while True:
            if _is_accessed(every, at):
                accessed.add((made.argval, items))
            if every[at].opname not in _CONSTANTS or not _is_item(every, at + 1):
                break
            items, at = items + 1, at + 2
    return found, cells, attributes, accessed


def _is_accessed(instructions: list[dis.Instruction], at: int) -> bool:
    """Whether an item or an attribute is taken of the value that was just read."""
    # The number of values on the stack, counted from that one.
    depth = 1
    for made in instructions[at:]:
        if made.opname in _ATTRIBUTES and depth == 1:
            return made.argval not in _METADATA
        if (made.opname == "GET_ITER" or made.opname.startswith("UNPACK_")) and depth == 1:
            return True
        if (_is_subscript(made) and depth == 2) or (made.opname == "BINARY_SLICE" and depth == 3):
            return True
        if made.opcode in dis.hasjrel or made.opcode in dis.hasjabs:
            # The path is unknown after a jump: an index may be computed.
            return True
        effect = dis.stack_effect(made.opcode, made.arg)
        # An instruction that pops two values and pushes one has consumed the value itself.
        if depth + effect < 1 or (depth <= 2 and effect < 0):
            return False
        depth += effect
    return False


def _computes(instructions: list[dis.Instruction], at: int) -> bool:
    """Whether an instruction starts a read of an attribute whose name the code computes."""
    made = instructions[at]
    if made.opname in _ATTRIBUTES:
        return made.argval == "__dict__"
    if made.opname not in _GLOBALS or made.argval not in ("getattr", "vars", "attrgetter"):
        return False
    if made.argval != "getattr":
        return True
    # The second argument is the name; it is a constant if a single instruction pushes it.
    depth, second = 0, 0
    for made in instructions[at + 1 :]:
        if made.opname.startswith("CALL") and depth in (2, 3):
            return second != 1
        if made.opcode in dis.hasjrel or made.opcode in dis.hasjabs:
            return True
        effect = dis.stack_effect(made.opcode, made.arg)
        if depth == 1 and depth + effect >= 1:
            second = 1 if made.opname in _CONSTANTS else 2
        elif depth >= 2 and depth + effect <= 2:
            second = 2
        depth += effect
    return True


@functools.cache
def is_installed(file: str) -> bool:
    """Whether a file is in a directory of installed packages."""
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    parts = os.path.normpath(file).split(os.sep)
    return (
        any(file.startswith(place + os.sep) for place in places)
        or "site-packages" in parts
        or "dist-packages" in parts
    )


def _steps(instructions: list[dis.Instruction], at: int) -> tuple[Step, ...]:
    """The attributes and constant items that are taken of the value that was just read."""
    steps: list[Step] = []
    while at < len(instructions):
        made = instructions[at]
        if made.opname in _ATTRIBUTES:
            steps.append((False, made.argval))
            at += 1
        elif made.opname in _CONSTANTS and _is_item(instructions, at + 1):
            steps.append((True, made.argval))
            at += 2
        else:
            break
    return tuple(steps)


def _is_item(instructions: list[dis.Instruction], at: int) -> bool:
    return at < len(instructions) and _is_subscript(instructions[at])


def _is_subscript(made: dis.Instruction) -> bool:
    return made.opname == "BINARY_SUBSCR" or (made.opname == "BINARY_OP" and made.argrepr == "[]")
