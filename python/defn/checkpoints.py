"""Checkpoints: the state of a run in files, so that the run goes on where it was interrupted.

A directory has one ``.defn`` file for each saved step. Each file is written at once, as
:func:`defn.save` does: a run that is killed at any moment finds the last complete checkpoint. One
process at a time saves to a directory. ``docs/checkpoints.md`` shows a whole training loop.

>>> import tempfile
>>> directory = tempfile.mkdtemp()
>>> state = {"w": dn.tensor([1.0, 2.0]), "key": dn.random.key(0), "rate": 0.1}
>>> for step in range(1, 6):
...     state["w"] = state["w"] * 2
...     dn.checkpoints.save(directory, step, state, keep=2)
>>> dn.checkpoints.steps(directory)
[4, 5]
>>> step, state = dn.checkpoints.load(directory, like=state)
>>> step, state["w"].to_list(), state["rate"]
(5, [32.0, 64.0], 0.1)
"""

from __future__ import annotations

import operator
import os
import re
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

from defn import _files, formats
from defn._names import caller, option_error
from defn._public import public
from defn.errors import FormatError

if TYPE_CHECKING:
    from typing import Literal

    from defn.typing import BackendLike

__all__ = ["latest", "load", "save", "steps"]

_NAME = re.compile(r"step_(\d{10,})\.defn")
_TEMPORARY = re.compile(r"\.step_\d{10,}\.defn\.[0-9a-f]{16}\.tmp")

# Threads of this process that save to one directory take turns: each removes what is left over.
_SAVING = threading.Lock()


@public
def save(
    directory: str | os.PathLike[str],
    step: int,
    state: Any,
    *,
    keep: int | None = 3,
    overwrite: bool = False,
) -> None:
    """Save the state of a run after a step, and remove old checkpoints.

    The state is any container that :func:`defn.serialize` takes, with Python's numbers as they are.
    The directory is created if there is none. The last ``keep`` checkpoints stay, all of them with
    ``None``. A checkpoint of the same step is replaced. Those of later steps belong to another
    course of the run: they are an error, or are removed with ``overwrite``. Temporary files of
    interrupted saves are removed.

    Raises: ``OptionError`` for a ``step`` or ``keep`` that is no such number and for a directory
    with a later step, ``ContainerError`` for a state that cannot be stored, and the errors of the
    file system, after which the checkpoints are as before.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> dn.checkpoints.save(directory, 100, {"w": dn.tensor([1.0])})
    >>> dn.checkpoints.latest(directory)
    100
    """
    step = _step("save", step)
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
        raise option_error(f"save: keep is {keep!r}, it must be an int of at least 1, or None")
    data = formats.serialize(state, keep_numbers=True)
    directory = os.path.realpath(directory)
    with _SAVING:
        if not os.path.isdir(directory):
            os.makedirs(directory, exist_ok=True)
            _files.sync_directory(os.path.dirname(directory))
        for name in os.listdir(directory):
            if _TEMPORARY.fullmatch(name):
                os.unlink(os.path.join(directory, name))
        later = [saved for saved in steps(directory) if saved > step]
        if later and not overwrite:
            raise option_error(
                f"save: step is {step}, {directory} has the later step {later[-1]}, steps must go "
                "up; give another directory, or overwrite=True to remove later steps"
            )
        # The last one goes first, so that what is left is always the beginning of one run.
        for saved in reversed(later):
            os.unlink(_path(directory, saved))
        _files.replace(_path(directory, step), data)
        if keep is not None:
            for saved in steps(directory)[:-keep]:
                os.unlink(_path(directory, saved))


@public
def load(
    directory: str | os.PathLike[str],
    *,
    like: Any = None,
    step: int | None = None,
    damaged: Literal["error", "skip"] = "error",
    backend: BackendLike | None = None,
) -> tuple[int, Any]:
    """Read a checkpoint, the last one without ``step``: its step and the state.

    ``like`` is a container with the structure of the state, as in :func:`defn.load`. Its strings
    and bools are part of the structure: without ``like``, a state comes back whatever it contains.

    A killed run leaves no damaged checkpoint, but a disk may. ``damaged="error"`` raises an error.
    With ``"skip"``, the last checkpoint that can be read is taken, and a ``RuntimeWarning`` names
    those that cannot.

    Raises: ``FileNotFoundError`` without a checkpoint, or without one of the step, ``FormatError``
    for a damaged file, ``ContainerError`` for a state that does not fit ``like``, ``OptionError``
    for another ``step`` or ``damaged``.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> dn.checkpoints.save(directory, 7, {"loss": 0.25, "w": dn.tensor([1.0])})
    >>> step, state = dn.checkpoints.load(directory, like={"loss": 0.0, "w": dn.tensor([0.0])})
    >>> step, state["loss"]
    (7, 0.25)
    """
    if damaged not in ("error", "skip"):
        raise option_error(f'load: damaged is {damaged!r}, it must be "error" or "skip"')
    if step is not None:
        step = _step("load", step)
        if damaged == "skip":
            raise option_error(
                f'load: damaged is "skip" for step {step}, only the last checkpoint is replaced by '
                "the one before; leave step out"
            )
    found = steps(directory)
    wanted = found if step is None else [saved for saved in found if saved == step]
    if not wanted:
        what = "no checkpoint" if step is None else f"no checkpoint of step {step}"
        there = f", it has those of steps {', '.join(map(str, found))}" if found else ""
        raise FileNotFoundError(f"load: {os.fspath(directory)} has {what}{there}{caller()}")
    problems: list[FormatError] = []
    for saved in reversed(wanted):
        path = _path(directory, saved)
        try:
            state = formats.read("load", path, "defn", None, backend, like)
        except FormatError as error:
            problems.append(error)
            if damaged == "error":
                break
        else:
            for error in problems:
                text = str(error).partition("\n")[0]
                warnings.warn(f"{text}; step {saved} is taken", RuntimeWarning, stacklevel=3)
            return saved, state
    text, line, place = str(problems[0]).partition("\n")
    if damaged == "error" and len(wanted) > 1:
        text += f'; damaged="skip" takes the one before, of step {wanted[-2]}'
    raise FormatError(text + line + place)


@public
def latest(directory: str | os.PathLike[str]) -> int | None:
    """The last step that was saved, None without one and where there is no directory.

    Raises: the errors of reading the directory.

    >>> import tempfile
    >>> dn.checkpoints.latest(tempfile.mkdtemp()) is None
    True
    """
    found = steps(directory)
    return found[-1] if found else None


@public
def steps(directory: str | os.PathLike[str]) -> list[int]:
    """The steps that were saved and not removed, in ascending order. Other files are ignored.

    Raises: the errors of reading the directory, unless there is none.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> for step in (10, 20, 30, 40):
    ...     dn.checkpoints.save(directory, step, {"w": dn.tensor([1.0])})
    >>> dn.checkpoints.steps(directory)
    [20, 30, 40]
    """
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    found = (int(match[1]) for match in map(_NAME.fullmatch, names) if match)
    # A number with more zeros than the name of its step is another file.
    return sorted(step for step in found if _file_name(step) in names)


def _file_name(step: int) -> str:
    """The name, with zeros, so that other programs list the files in order."""
    return f"step_{step:010d}.defn"


def _path(directory: str | os.PathLike[str], step: int) -> str:
    return os.path.join(directory, _file_name(step))


def _step(op: str, step: Any) -> int:
    """A step as an int; scalars of integers are steps too."""
    try:
        number = -1 if isinstance(step, bool) else operator.index(step)
    except TypeError:
        number = -1
    if number < 0:
        raise option_error(f"{op}: step is {step!r}, it must be an int of at least 0")
    return number


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.checkpoints has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
