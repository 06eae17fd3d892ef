"""Reading and writing bytes; users pass a path or an open file."""

from __future__ import annotations

import os
import stat
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
    """Replace a file by the bytes, or append them to an open one.

    Whatever interrupts it, the path leads to the whole old content or to the whole new one.
    """
    if not isinstance(target, (str, os.PathLike)):
        target.write(data)
        return
    # A symbolic link stays: the file that it leads to is replaced.
    path = os.path.realpath(target)
    if os.path.exists(path) and not os.path.isfile(path):
        # Pipes and devices have no content to keep.
        with open(path, "wb") as file:
            file.write(data)
        return
    replace(path, data)


def replace(path: str, data: bytes) -> None:
    """Write a temporary file in the same directory, and rename it.

    The bytes are on the disk before the name refers to them, and the name is when this returns: a
    system that loses power keeps one of both contents.
    """
    mode = _mode(path)
    directory, name = os.path.split(path)
    # The name is cut so that it stays one that the file system takes.
    temporary = os.path.join(directory, f".{name[:40]}.{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    sync_directory(directory)


def sync_directory(directory: str) -> None:
    """Wait until the entries of a directory are on the disk, where the system can say so."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: str) -> int | None:
    """The permissions of a file that may be written, None where there is no file.

    Raises: ``PermissionError`` for a file that is protected; renaming would not ask.
    """
    try:
        with open(path, "r+b") as file:
            return stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return None
