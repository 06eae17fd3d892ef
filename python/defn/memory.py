"""The memory of tensors on the CPU, and the lines that created them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from defn import _core
from defn._public import public

if TYPE_CHECKING:
    from defn._core import DType

__all__ = ["LiveTensors", "MemoryReport", "memory_report"]


@dataclass(frozen=True)
class LiveTensors:
    """Live tensors of one type that were created by one line of the program.

    ``bytes`` is the memory that all ``count`` of them keep alive, where shared memory counts once:
    a slice keeps the whole memory alive that it is a view of. ``line`` is ``"file:line"``, or
    ``None`` if the line is not known. ``borrowed`` says that the memory comes from a Python value,
    such as an array, and ``shared`` that tensors of other entries use some of it too.
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
    """The memory of this process's tensors on the CPU at one moment. It prints as a table.

    ``live_bytes`` is the memory of tensors and running programs, and ``peak_bytes`` its maximum so
    far; both are exact, without rounding. ``cached_bytes`` is further memory held from the system:
    freed blocks kept for reuse, and rounding. ``borrowed_bytes`` is memory that comes from Python
    values, in large tensors. ``tensors`` lists the tensors of 64 KiB or more, the largest first;
    ``unlisted_bytes`` is the rest of the live memory.
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


@public
def memory_report() -> MemoryReport:
    """Report the live tensors on the CPU, and the lines of the program that created them.

    Only tensors of 64 KiB or more are listed, because finding the line takes longer than creating a
    small tensor. Freed and donated tensors are not live, even if they are still referenced. Tensors
    on devices are not counted.

    Raises: nothing.

    >>> x = dn.iota((1000, 1000), dtype="f64")
    >>> report = dn.memory_report()
    >>> report.live_bytes >= 8_000_000
    True
    >>> [found.bytes for found in report.tensors if found.shape == (1000, 1000)]
    [8000000]
    """
    live, peak, cached, borrowed, unlisted, listed, text = _core.memory_report()
    tensors = tuple(LiveTensors(*entry) for entry in listed)
    return MemoryReport(live, peak, cached, borrowed, unlisted, tensors, text)
