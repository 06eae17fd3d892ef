"""An iterator whose items are made ahead, on a thread."""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
import types
from typing import TYPE_CHECKING, Any

from defn._names import caller, option_error
from defn._public import public
from defn.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

__all__ = ["Prefetch", "prefetch"]

# How often a waiting thread checks whether the iterator is closed, in seconds.
_PERIOD = 0.05


class _End:
    """The sentinel after the last item."""


_END = _End()


class _Worker:
    """Makes the items. It has no reference to its iterator, which may be collected meanwhile."""

    def __init__(self, source: Iterator[Any], size: int) -> None:
        self.source = source
        self.items: queue.Queue[Any] = queue.Queue(size)
        self.closed = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Make items until there are no more, the iterator is closed, or one raises."""
        try:
            for item in self.source:
                # The source is ahead of the consumer: its position goes with the item.
                if not self._put((item, getattr(self.source, "position", None))):
                    break
        except BaseException as error:
            self.error = error
        finally:
            if isinstance(self.source, types.GeneratorType):
                self.source.close()
            self._put(_END)

    def _put(self, item: Any) -> bool:
        """Whether the item is in the queue; it is not once the iterator is closed."""
        while not self.closed.is_set():
            try:
                self.items.put(item, timeout=_PERIOD)
            except queue.Full:
                continue
            return True
        return False


class Prefetch:
    """The items of another iterator, made ahead on a thread. :func:`defn.data.prefetch` returns it.

    ``position`` is that of the source after the last item that was handed out, so that a checkpoint
    leaves out the items that are waiting.

    >>> items = dn.data.prefetch(iter("ab"))
    >>> isinstance(items, dn.data.Prefetch), list(items)
    (True, ['a', 'b'])
    """

    __module__ = "defn.data"

    def __init__(self, source: Iterator[Any], size: int) -> None:
        self._worker = _Worker(source, size)
        self._thread: threading.Thread | None = None
        # Held while the thread starts: a thread that has not started cannot be joined.
        self._starting = threading.Lock()
        self._context = contextvars.copy_context()
        self._position = getattr(source, "position", None)
        self._ended = False

    @property
    def position(self) -> Any:
        """The position of the source after the last item that was handed out; None without one."""
        return self._position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        thread = self._started()
        item = self._next_item()
        if item is not _END:
            item, self._position = item
            return item
        self._ended = True
        thread.join()
        if self._worker.error is not None:
            raise self._worker.error
        raise StopIteration

    def _started(self) -> threading.Thread:
        """The thread, which the first item starts."""
        with self._starting:
            self._check()
            if self._thread is None:
                # Options and the default backend are those of the thread that made the iterator.
                self._thread = threading.Thread(
                    target=self._context.run,
                    args=(self._worker.run,),
                    name="defn-prefetch",
                    daemon=True,
                )
                self._thread.start()
            return self._thread

    def _next_item(self) -> Any:
        """The next item. Another thread may close the iterator while this one waits for it."""
        while True:
            try:
                return self._worker.items.get(timeout=_PERIOD)
            except queue.Empty:
                self._check()

    def _check(self) -> None:
        if self._worker.closed.is_set():
            raise StreamError(f"prefetch: the iterator is closed, an open one is needed{caller()}")

    def close(self) -> None:
        """End the thread and drop the items that are waiting. Closing it again has no effect."""
        self._worker.closed.set()
        with self._starting:
            thread = self._thread
        if thread is not None:
            thread.join()
        with contextlib.suppress(queue.Empty):
            while True:
                self._worker.items.get_nowait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The thread ends by itself when nothing can take its items any more.
        if hasattr(self, "_worker"):
            self._worker.closed.set()


@public
def prefetch(iterable: Iterable[Any], size: int = 2) -> Prefetch:
    """Make the next items on a thread while the last one is used.

    At most ``size`` items wait. An error of the iterable is raised by the ``next`` that would have
    returned the item. The thread starts at the first ``next`` and ends with the items; ``close``,
    the end of a ``with`` block and the loss of the last reference end it earlier.

    Raises: ``OptionError`` for what is not iterable and for a ``size`` below 1, ``StreamError`` for
        an item of a closed iterator.

    >>> batches = dn.data.batches({"x": np.arange(6)}, 4)
    >>> with dn.data.prefetch(batches) as ahead:
    ...     for batch in ahead:
    ...         print(batch["x"].to_list(), ahead.position)
    [0, 1, 2, 3] Position(epoch=0, rows=4)
    [4, 5] Position(epoch=1, rows=0)
    """
    if not hasattr(iterable, "__iter__"):
        kind = type(iterable).__name__
        raise option_error(f"prefetch: iterable is of type {kind}, an iterable is required")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise option_error(f"prefetch: size is {size!r}, it must be an int of at least 1")
    return Prefetch(iter(iterable), size)
