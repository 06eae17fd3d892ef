"""Backends: places for tensors that run operations, and the base class of those in Python."""

from __future__ import annotations

from defn.backends.base import Backend

__all__ = ["Backend"]
