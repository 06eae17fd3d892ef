"""What memory tensors have on the CPU, and which lines made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from defn._core import DType

__all__ = ["LiveTensors", "MemoryReport", "memory_report"]


@dataclass(frozen=True)
class LiveTensors:
    """Live tensors of one type that one line of the program made.

    ``bytes`` is the memory that all ``count`` of them hold, each part of it counted once: a slice
    holds all of the memory that it is a window of. ``line`` is ``"file:line"``, or ``None`` where
    no line is known. ``borrowed`` says that the memory came with a value of Python's, such as an
    array, and ``shared`` that tensors of other entries hold some of it too.
    """

    dtype: DType
    shape: tuple[int, ...]
    names: tuple[str | None, ...]
    count: int
    bytes: int
    line: str | None
    borrowed: bool
    shared: bool


@dataclass(frozen=True, repr=False)
class MemoryReport:
    """The memory of this process's tensors on the CPU at a moment. Printed, it is a table.

    ``live_bytes`` is what tensors and running programs have asked for and not given back, and
    ``peak_bytes`` the most that this has been: exact, without rounding. ``cached_bytes`` are held
    from the system beside: freed memory that is kept to be given again, and rounding.
    ``borrowed_bytes`` is memory that came with Python's values, in large tensors. ``tensors`` are
    those that hold 64 KiB or more, the largest first; ``unlisted_bytes`` is the rest of what is
    live.
    """

    live_bytes: int
    peak_bytes: int
    cached_bytes: int
    borrowed_bytes: int
    unlisted_bytes: int
    tensors: tuple[LiveTensors, ...]
    _text: str = field(compare=False)

    def __repr__(self) -> str:
        return self._text


def memory_report(**unknown: Never) -> MemoryReport:
    """What is alive on the CPU, and which line of the program made it.

    Only tensors that hold 64 KiB or more are listed: finding the line takes longer than making a
    small one. Freed and donated tensors are not alive, whoever still has them. Tensors on devices
    are not counted here.

    Raises: nothing.

    >>> x = dn.iota((1000, 1000), dtype="f64")
    >>> report = dn.memory_report()
    >>> report.live_bytes >= 8_000_000
    True
    >>> [found.bytes for found in report.tensors if found.shape == (1000, 1000)]
    [8000000]
    """
    if unknown:
        refuse_options("memory_report", unknown)
    live, peak, cached, borrowed, unlisted, listed, text = _core.memory_report()
    tensors = tuple(LiveTensors(*entry) for entry in listed)
    return MemoryReport(live, peak, cached, borrowed, unlisted, tensors, text)
