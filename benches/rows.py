"""The rows of `eager.py`: a call of defn, and the same call of NumPy or SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import defn as dn

COUNT = 1 << 20
SIDE = 1 << 10

Call = Callable[[], object]


class Row(NamedTuple):
    """An operation on some operands: our call, NumPy's if any, and whether to compare results."""

    name: str
    note: str
    ours: Call
    theirs: Call | None
    checked: bool = True


def function(name: str) -> Callable[..., object]:
    """A function of defn, by its name after ``dn.``."""
    return reduce(getattr, name.split("."), dn)  # type: ignore[return-value]


def bound(name: str, *args: object, **options: object) -> Call:
    """Our function with its arguments. It is looked up when it is called."""
    return lambda: function(name)(*args, **options)
