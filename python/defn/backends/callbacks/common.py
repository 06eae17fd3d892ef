"""What the families of callbacks share."""

from __future__ import annotations

from defn._names import caller
from defn.errors import BackendError

__all__ = ["lacks"]


def lacks(backend: object, callback: str) -> BackendError:
    """The error for a callback that a backend does not have, and that has no default."""
    name = type(backend).__name__
    return BackendError(
        f"{callback}: the backend {name} has no such callback, and there is no default; define it"
        + caller()
    )
