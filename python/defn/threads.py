"""How this process computes on the CPU: threads and machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Any, SupportsIndex

__all__ = ["config", "get_threads", "set_threads"]


@forwards(_core.set_threads)
def set_threads(count: SupportsIndex | None = None) -> int | None:
    """Set how many threads share the work of one call on the CPU, and return the previous setting.

    The calling thread is one of them. ``None`` restores the default: the value of ``DEFN_THREADS``,
    else the number of processors that the affinity and the quota of the process allow, determined
    anew. There may be more threads than processors; unused threads sleep. The setting applies to
    the whole process from the next operation on. Inside ``dn.options(threads=...)`` that option
    takes precedence over it, and ``dn.jit(fun, threads=...)`` over both.

    Results do not depend on the number of threads.

    Raises: ``OptionError`` unless the number is an ``int`` from 1 to 1024.

    >>> before = dn.set_threads(2)
    >>> dn.get_threads()
    2
    >>> dn.set_threads(before)
    2
    """
    ...


@forwards(_core.get_threads)
def get_threads() -> int:
    """The number of threads that share the work of one call on the CPU made here.

    Raises: ``OptionError`` if the value of ``DEFN_THREADS`` or ``DEFN_SIMD`` is invalid.

    >>> with dn.options(threads=3):
    ...     dn.get_threads()
    3
    """
    ...


@forwards(_core.config)
def config() -> dict[str, Any]:
    """How calls made here are computed on the CPU.

    ``"threads"`` is what ``dn.get_threads()`` returns. ``"machine_code"`` is the instruction set
    that the compiler generates code for: ``"avx512"``, ``"avx2"`` or ``"neon"``. It is ``None``
    where there is no machine code; then ``"machine_code_refused"`` says why, and compiled programs
    run in the portable executor: with the same results, but slower.

    Raises: ``OptionError`` if the value of ``DEFN_THREADS`` or ``DEFN_SIMD`` is invalid.

    >>> sorted(dn.config())
    ['machine_code', 'machine_code_refused', 'threads']
    """
    ...
