"""Helpers that the families of callbacks share."""

from __future__ import annotations

from defn._names import caller
from defn.errors import BackendError

__all__ = ["lacks"]


def lacks(backend: object, callback: str, *, by_host: bool = True) -> BackendError:
    """The error for a missing callback without a default; ``by_host`` says whether the host could
    run the operation instead.
    """
    name = type(backend).__name__
    hint = ', or have the host do it, with fallback="host"' if by_host else ""
    error = BackendError(
        f"{callback}: the backend {name} has no such callback, and there is no default; define it"
        + hint
        + caller()
    )
    if by_host:
        error.lacking = callback
    return error
