"""Backends hold tensors and run operations; ``Backend`` is the base class of those in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn._core import PJRT
from defn.backends.base import Backend
from defn.backends.inspect import inspect

if TYPE_CHECKING:
    from defn.backends.numpy import NumPyBackend

__all__ = ["PJRT", "Backend", "NumPyBackend", "inspect"]


def __getattr__(name: str) -> object:
    """Load the NumPy backend on first use, to keep it out of the package's import."""
    if name == "NumPyBackend":
        from defn.backends.numpy import NumPyBackend

        return NumPyBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
