"""Saving that is interrupted before one of its calls of the operating system."""

from __future__ import annotations

import builtins
import contextlib
import os
import stat
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

from defn import _files, checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Steps:
    """The module ``os`` as saving sees it, with something that happens before one call."""

    def __init__(self, stop: int, happen: Callable[[], None] | None) -> None:
        self.stop, self.happen = stop, happen
        self.calls: list[str] = []

    def step(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self.stop + 1 and self.happen is not None:
            self.happen()

    def file(self, path: str, mode: str) -> Any:
        self.step(f"open {mode}")
        return Parts(self, builtins.open(path, mode))

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        if name not in ("open", "fsync", "replace", "close", "chmod", "unlink", "makedirs"):
            return value

        def call(*args: Any, **options: Any) -> Any:
            is_directory = name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode)
            self.step("fsync directory" if is_directory else name)
            return value(*args, **options)

        return call


class Parts:
    """A file that is written in two parts."""

    def __init__(self, steps: Steps, file: Any) -> None:
        self.steps, self.file = steps, file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.steps.step("close file")
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: bytes) -> None:
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            self.steps.step("write")
            self.file.write(part)
            self.file.flush()


@contextlib.contextmanager
def interposed(stop: int, happen: Callable[[], None] | None) -> Iterator[Steps]:
    """Let something happen before the call of this number, of those that saving makes."""
    steps = Steps(stop, happen)
    with (
        mock.patch.object(_files, "os", steps),
        mock.patch.object(_files, "open", steps.file, create=True),
        mock.patch.object(checkpoints, "os", steps),
    ):
        yield steps
