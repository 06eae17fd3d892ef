"""Composites with a name, which a backend may run natively: what a ``block`` callback is given.

A tag is a frozen dataclass whose fields are the options of the operation of the same name.

>>> dn.blocks.Logsumexp(axes=(0,), keep_axes=False)
Logsumexp(axes=(0,), keep_axes=False)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, make_dataclass
from typing import Any

__all__ = ["AllClose", "LogicalNot", "Logsumexp", "Phase"]


@dataclass(frozen=True)
class LogicalNot:
    """1 where ``x`` is zero."""


@dataclass(frozen=True)
class Phase:
    """The angle of a complex number."""


@dataclass(frozen=True)
class Logsumexp:
    """``log(sum(exp(x)))``, without overflow."""

    axes: tuple[int, ...]
    keep_axes: bool


@dataclass(frozen=True)
class AllClose:
    """1 if all elements of two tensors agree within ``atol + rtol * |b|``."""

    equal_nan: bool
    rtol: float
    atol: float


@functools.cache
def _class(name: str, fields: tuple[str, ...]) -> type:
    """The class of an operation's tag; one that is not listed above is made of its options."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    for known in (camel, name.upper()):
        if known in __all__:
            return globals()[known]
    return make_dataclass(camel, fields, frozen=True, module=__name__)


def tag(name: str, fields: dict[str, Any]) -> Any:
    """The tag of an operation, from its name and options."""
    return _class(name, tuple(fields))(**fields)
