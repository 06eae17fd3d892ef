"""How many threads share the work of one call on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from typing import SupportsIndex

__all__ = ["get_threads", "set_threads"]


def set_threads(count: SupportsIndex | None = None, **unknown: Never) -> int | None:
    """Set how many threads share the work of one call on the CPU, and return what was set before.

    The calling thread is one of them. ``None`` goes back to the default: what ``DEFN_THREADS``
    says, else as many processors as the affinity and the quota of the process leave it, found out
    anew. There may be more threads than processors; threads that are not asked for any more sleep.
    It holds in the whole process from the next operation on. ``dn.options(threads=...)`` comes
    before it for what is called inside, and ``dn.jit(fun, threads=...)`` before both.

    Results do not depend on the number of threads.

    Raises: ``OptionError`` for what is no ``int`` from 1 to 1024.

    >>> before = dn.set_threads(2)
    >>> dn.get_threads()
    2
    >>> dn.set_threads(before)
    2
    """
    if unknown:
        refuse_options("set_threads", unknown)
    return _core.set_threads(count)


def get_threads(**unknown: Never) -> int:
    """How many threads share the work of one call on the CPU that is made here.

    Raises: ``OptionError`` where ``DEFN_THREADS`` or ``DEFN_SIMD`` is not understood.

    >>> with dn.options(threads=3):
    ...     dn.get_threads()
    3
    """
    if unknown:
        refuse_options("get_threads", unknown)
    return _core.get_threads()
