"""What a row of `eager.py` is: a call of ours, and the same by NumPy or SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import defn as dn

COUNT = 1 << 20
SIDE = 1 << 10

Call = Callable[[], object]


class Row(NamedTuple):
    """An operation on some operands: ours, NumPy's if it has one, and whether results are equal."""

    name: str
    note: str
    ours: Call
    theirs: Call | None
    checked: bool = True


def function(name: str) -> Callable[..., object]:
    """A function of ours, by its name behind ``dn.``."""
    return reduce(getattr, name.split("."), dn)  # type: ignore[return-value]


def bound(name: str, *args: object, **options: object) -> Call:
    """Our function with its arguments, looked up when it is called."""
    return lambda: function(name)(*args, **options)
