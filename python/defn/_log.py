"""What is said about compiling, through Python's logging."""

from __future__ import annotations

import logging

_LOGGER = logging.getLogger("defn")
_STDERR = logging.StreamHandler()
_STDERR.setFormatter(logging.Formatter("defn: %(message)s"))


def compiled(text: str, file: str, line: int) -> None:
    """Log a version that was compiled, as a record of level INFO from the user's line.

    The one who asks for the log wants to see it: where the program has configured no logging, it
    goes to standard error, and the root's level does not hide it, only that of the logger itself.
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
