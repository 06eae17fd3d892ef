"""Bytes in files, which users give as a path or as a file that is open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO


def read(source: str | os.PathLike[str] | BinaryIO) -> bytes:
    """All that a file holds, or what is left of an open one."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return file.read()
    return source.read()


def write(target: str | os.PathLike[str] | BinaryIO, data: bytes) -> None:
    """Makes a file of the bytes, or adds them to an open one."""
    if isinstance(target, (str, os.PathLike)):
        with open(target, "wb") as file:
            file.write(data)
    else:
        target.write(data)
