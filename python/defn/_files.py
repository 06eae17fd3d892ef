"""Reading and writing bytes; users pass a path or an open file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO


def read(source: str | os.PathLike[str] | BinaryIO) -> bytes:
    """The content of a file, or the rest of an open one."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return file.read()
    return source.read()


def write(target: str | os.PathLike[str] | BinaryIO, data: bytes) -> None:
    """Write the bytes to a new file, or append them to an open one."""
    if isinstance(target, (str, os.PathLike)):
        with open(target, "wb") as file:
            file.write(data)
    else:
        target.write(data)
