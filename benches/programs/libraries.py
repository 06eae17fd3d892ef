"""JAX, which is imported where it is first used, and numba's `prange`.

The programs are tested where neither is installed.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

try:
    # numba finds it among a function's globals, so it cannot come later.
    from numba import prange
except ImportError:
    prange = range


class Lazy:
    """A module whose import waits until an attribute is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self.name), attribute)


jax, jnp, lax = Lazy("jax"), Lazy("jax.numpy"), Lazy("jax.lax")

__all__ = ["jax", "jnp", "lax", "prange"]
