"""Messages about compilation, through Python's logging."""

from __future__ import annotations

import logging

_LOGGER = logging.getLogger("defn")
_STDERR = logging.StreamHandler()
_STDERR.setFormatter(logging.Formatter("defn: %(message)s"))


def compiled(text: str, file: str, line: int) -> None:
    """Log a compiled version, as a record of level INFO from the user's line.

    The user has asked for this log, so it must be visible. It goes to standard error if the program
    has not configured logging. Only the level of the logger itself hides it, not the root's.
    """
    if _LOGGER.level > logging.INFO or _LOGGER.disabled:
        return
    record = _LOGGER.makeRecord(
        "defn", logging.INFO, file, line, "%s\n  at %s:%d", (text, file, line), None
    )
    if _LOGGER.hasHandlers():
        _LOGGER.handle(record)
    else:
        _STDERR.handle(record)


def no_machine_code(reason: str) -> None:
    """Warn that the system refuses executable memory, which only costs time."""
    _LOGGER.warning(
        "no machine code can be generated: %s. Programs run in the portable executor, slower and "
        "with the same results.",
        reason,
    )


def not_compiled(fun: str, error: str) -> None:
    """Warn that a compilation in the background failed, which only costs time."""
    _LOGGER.warning(
        "%s was not compiled in the background: %s. Its calls go on with the evaluator, slower and "
        "with the same results.",
        fun,
        error,
    )
