"""Streams: chunks are sent through a compiled step, which carries an accumulator.

The step runs on a separate thread that holds no lock on a device, so other work can run meanwhile.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from defn import _core
from defn._names import caller, option_error
from defn.errors import CompileError, ContainerError, Error, StreamError, TraceError
from defn.jit import _listed, compile, jit_apply
from defn.places import to_template

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

__all__ = ["Stream", "stream"]

# How often a waiting thread checks whether the stream has ended, in seconds.
_PERIOD = 0.05


@runtime_checkable
class Stream(Protocol):
    """The interface of streams. ``dn.stream`` starts one; a compiler may return its own class.

    >>> isinstance(dn.stream(lambda x, acc: (x, acc + x), [dn.template((), "f32"), 0.0]), dn.Stream)
    True
    """

    def send(self, chunk: Any, timeout: float | None = None) -> None:
        """Send a chunk; waits while the stream is full."""
        ...

    def recv(self, timeout: float | None = None) -> Any:
        """Return the output of the oldest chunk not received yet; waits for it."""
        ...

    def done(self) -> Any:
        """End the stream and return the accumulator after the last chunk."""
        ...

    def close(self) -> None:
        """End the stream and drop the chunks in flight."""
        ...


class _End:
    """The sentinel after the last chunk and after the last output."""


_END = _End()


class _Worker:
    """Runs the steps. It has no reference to its stream, which may be collected meanwhile."""

    def __init__(self, step: Callable[..., Any], state: Any, constants: list[Any], size: int):
        self.step, self.state, self.constants = step, state, constants
        self.inbox: queue.Queue[Any] = queue.Queue(size)
        self.outbox: queue.Queue[Any] = queue.Queue()
        self.closed = threading.Event()
        self.finished = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Process chunks until the stream ends, is closed, or a step raises."""
        line = ""
        try:
            while not self.closed.is_set():
                try:
                    chunk = self.inbox.get(timeout=_PERIOD)
                except queue.Empty:
                    continue
                if chunk is _END:
                    break
                chunk, line = chunk
                output, self.state = self.step(chunk, self.state, *self.constants)
                self.outbox.put(output)
        except BaseException as error:
            # An error in a chunk is attributed to the line that sent it: no user line runs here.
            if isinstance(error, Error) and "\n  at " not in str(error):
                error.args = (str(error) + line, *error.args[1:])
            self.error = error
        finally:
            self.finished.set()
            self.outbox.put(_END)


class _ThreadStream:
    """A stream whose steps run on a thread."""

    def __init__(self, worker: _Worker, size: int, template: Any = None):
        self._worker = worker
        self._template = template
        # A chunk occupies a slot from `send` until its output is received.
        self._places = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._ended = False
        self._under_way = 0
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        state = "closed" if self._worker.closed.is_set() else "ended" if self._ended else "open"
        return f"<stream, {state}, {self._under_way} chunks under way>"

    def _start(self) -> None:
        if self._thread is None:
            run = self._worker.run
            self._thread = threading.Thread(target=run, name="defn-stream", daemon=True)
            self._thread.start()

    # The user's side.

    def send(self, chunk: Any, timeout: float | None = None) -> None:
        """Send a chunk; waits while the stream is full.

        Arrays are copied before ``send`` returns, so the caller may overwrite them.

        Raises: ``StreamError`` when the stream has ended or was closed, or no output was received
            within ``timeout`` seconds; ``ContainerError`` and ``ShapeError`` for a chunk of another
            structure or type, which does not change the stream; and the error of an earlier step.
        """
        self._check("send")
        if self._template is not None:
            _core.check_chunk(chunk, self._template)
        # A step may read the chunk long after `send` has returned.
        chunk = _core.owned("send", chunk)
        deadline = _deadline(timeout)
        if self._is_own_thread() and not self._places.acquire(blocking=False):
            raise self._own_thread("send", "a step's own function sends more chunks than fit")
        while not self._is_own_thread() and not self._places.acquire(timeout=_left(deadline)):
            self._check("send")
            if _is_over(deadline):
                raise StreamError(
                    f"send: no place became free within {timeout} s, "
                    f"outputs must be received for more chunks to be sent; call recv{caller()}"
                )
        try:
            self._check("send")
        except BaseException:
            self._places.release()
            raise
        with self._lock:
            self._start()
            self._under_way += 1
        self._worker.inbox.put((chunk, caller()))

    def recv(self, timeout: float | None = None) -> Any:
        """Return the output of the oldest chunk not received yet; waits for it.

        Raises: ``StreamError`` when no chunk is in flight, the stream was closed, or no output came
            within ``timeout`` seconds; and the error of the step.
        """
        deadline = _deadline(timeout)
        if self._is_own_thread():
            raise self._own_thread("recv", "a step's own function waits for an output")
        with self._lock:
            if self._under_way == 0:
                self._check("recv", sending=False)
                raise StreamError(
                    "recv: every output has been received, a chunk must be sent first; "
                    f"call send{caller()}"
                )
            self._under_way -= 1
        while True:
            try:
                output = self._worker.outbox.get(timeout=_left(deadline))
                break
            except queue.Empty:
                if self._worker.closed.is_set():
                    self._check("recv", sending=False)
                if _is_over(deadline):
                    with self._lock:
                        self._under_way += 1
                    raise StreamError(
                        f"recv: no output came within {timeout} s, the step is still running; "
                        f"wait longer{caller()}"
                    ) from None
        if output is _END:
            # Another thread that waits for an output has to see the end too.
            self._worker.outbox.put(_END)
            self._check("recv", sending=False)
            raise StreamError(f"recv: the stream has ended, no output follows{caller()}")
        self._places.release()
        return output

    def done(self) -> Any:
        """End the stream and return the accumulator after the last chunk that was sent.

        Outputs that were not received are dropped.

        Raises: ``StreamError`` when the stream was closed; and the error of a step.
        """
        self._check("done", sending=False)
        if self._is_own_thread():
            raise self._own_thread("done", "a step's own function waits for its end")
        if not self._ended:
            self._ended = True
            if self._thread is not None:
                self._worker.inbox.put(_END)
        if self._thread is not None:
            while not self._worker.finished.wait(_PERIOD):
                # Python handles Ctrl-C between the waits.
                self._check("done", sending=False)
        self._check("done", sending=False)
        self._under_way = 0
        return self._worker.state

    def close(self) -> None:
        """End the stream and drop the chunks in flight. Closing it again has no effect."""
        self._worker.closed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._drain()

    def _is_own_thread(self) -> bool:
        return self._thread is threading.current_thread()

    @staticmethod
    def _own_thread(op: str, what: str) -> StreamError:
        return StreamError(
            f"{op}: {what}, the step must return first; do it on the thread that receives{caller()}"
        )

    def _drain(self) -> None:
        for box in (self._worker.inbox, self._worker.outbox):
            while True:
                try:
                    box.get_nowait()
                except queue.Empty:
                    break

    def _check(self, op: str, *, sending: bool = True) -> None:
        if self._worker.error is not None:
            raise self._worker.error
        if self._worker.closed.is_set():
            raise StreamError(f"{op}: the stream was closed, an open one is required{caller()}")
        if sending and self._ended:
            raise StreamError(
                f"{op}: the stream has ended with done, no more chunks can be sent; "
                f"make another stream{caller()}"
            )

    def map(self, chunks: Iterable[Any]) -> Iterator[Any]:
        """Yield the outputs of chunks, in order; sends chunks ahead until the stream is full.

        Raises: as ``send`` and ``recv``.
        """
        for chunk in chunks:
            while not self._places.acquire(blocking=False):
                yield self.recv()
            self._places.release()
            self.send(chunk)
        while self._under_way:
            yield self.recv()

    def __iter__(self) -> Iterator[Any]:
        """Yield the outputs of all chunks in flight."""
        while self._under_way:
            yield self.recv()

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Yield the outputs of all chunks in flight, without blocking the event loop."""
        # Importing asyncio takes longer than importing this package.
        import asyncio

        loop = asyncio.get_running_loop()
        while self._under_way:
            yield await loop.run_in_executor(None, self.recv)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # The thread ends by itself when nothing can receive its outputs any more.
        self._worker.closed.set()


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(deadline: float | None) -> float:
    return _PERIOD if deadline is None else max(min(_PERIOD, deadline - time.monotonic()), 0.0)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def stream(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    /,
    *,
    maxsize: int = 8,
    **jit_options: Any,
) -> Any:
    """Compile a step and start a stream of chunks through it.

    ``args`` are a template of the chunks, the initial state of the accumulator, and further
    arguments, which are constant. ``fun(chunk, state, *constants)`` returns a pair: an output and
    the next state. At most ``maxsize`` chunks are in flight at a time; ``send`` waits for a slot.

    The stream has ``send``, ``recv``, ``done``, ``close`` and ``map``. It is a context manager,
    which closes it, and an iterator over the outputs of the chunks sent, also in ``async for``. A
    step that raises ends the stream; ``recv`` raises its error.

    Raises: ``OptionError`` for fewer than two arguments or a ``maxsize`` below 1,
        ``ContainerError`` if the step does not return a pair, or the next state has another
        structure or type.

    >>> def running(x, total):
    ...     return total, x + total
    >>> with dn.stream(running, [dn.template((), "s32"), 0]) as sums:
    ...     for i in range(1, 6):
    ...         sums.send(i)
    ...         print(int(sums.recv()), end=" ")
    ...     print(int(sums.done()))
    0 1 3 6 10 15
    """
    given = list(_listed("stream", args))
    if not callable(fun):
        kind = type(fun).__name__
        raise option_error(f"stream: the step is of type {kind}, a function is required")
    if _core.is_tracing():
        raise TraceError(
            "stream: a stream is started while a definition is traced, its chunks are sent between "
            f"runs; start it outside{caller()}"
        )
    if len(given) < 2:
        raise option_error(
            f"stream: {len(given)} arguments, a template of the chunks and a first state are needed"
        )
    if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 1:
        raise option_error(f"stream: maxsize is {maxsize!r}, it must be an int of at least 1")
    # Numbers become tensors, as in every call.
    first = jit_apply(lambda value: value, (given[1],))

    def step(chunk: Any, state: Any, *constants: Any, **options: Any) -> Any:
        pair = fun(chunk, state, *constants, **options)
        if not isinstance(pair, tuple) or len(pair) != 2:
            kind = type(pair).__name__
            raise ContainerError(
                f"stream: the step returns a value of type {kind}, "
                f"it must return a pair of an output and the next state{caller()}"
            )
        # A loop without iterations: its error says how the next state differs from the first.
        try:
            _core.while_(state, lambda _: False, lambda _: pair[1])
        except Error as error:
            text = str(error).replace("while_: the body's value", "stream: the next state", 1)
            error.args = (text, *error.args[1:])
            raise
        return pair

    # Captured tensors are looked up only in functions of the user's modules, so take that module.
    step.__module__ = getattr(fun, "__module__", None) or step.__module__
    # Every step reads them, so they must not change when the caller overwrites its arrays.
    constants = [_core.owned("stream", constant) for constant in given[2:]]
    # A chunk may be a number or a tensor, and so may its template.
    template = to_template(given[0])
    own = _stream_of_compiler(step, [template, first, *constants], kwargs, jit_options)
    if own is not None:
        return own
    compiled = compile(step, [template, first, *constants], kwargs, **jit_options)
    return _ThreadStream(_Worker(compiled, first, constants, maxsize), maxsize, template)


def start(
    step: Callable[..., Any], state: Any, constants: Sequence[Any] = (), maxsize: int = 8
) -> Stream:
    """Start a stream whose steps run on a thread: ``step(chunk, state, *constants)``."""
    state = _core.owned("stream", state)
    constants = [_core.owned("stream", constant) for constant in constants]
    return _ThreadStream(_Worker(step, state, constants, maxsize), maxsize)


def _stream_of_compiler(
    step: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any] | None,
    jit_options: dict[str, Any],
) -> Any:
    """The stream of a compiler that has its own ``stream``, None for other compilers."""
    options = {name: value for name, value in jit_options.items() if name != "compiler"}
    compiler, place = _core.find_compiler(jit_options.get("compiler"))
    if place is not None:
        return None
    from defn.compilers import Compiler

    callback = getattr(type(compiler), "stream", getattr(compiler, "stream", None))
    if callback is None or callback is Compiler.stream:
        return None
    if options.pop("hooks", None):
        raise option_error("stream: hooks are given, which streams of a compiler's own do not take")
    if options.pop("compile", None) == "background":
        raise option_error(
            "stream: compile is 'background', which streams of a compiler's own do not take"
        )
    chunk, state = to_template(args[0]), to_template(args[1])
    count = len(_core.flatten_container(chunk)[0])
    key, vars, fun, lists, given = _core.prepare_stream(
        step, tuple(args), kwargs, count, compiler, options
    )
    streams = compiler.stream(key, chunk, state, vars, fun, lists, given)
    if not isinstance(streams, list) or len(streams) != 1 or not isinstance(streams[0], Stream):
        raise CompileError(
            f"stream: the compiler {type(compiler).__name__} gave {streams!r}, it must give a list "
            f"of one stream, an object with send, recv, done and close{caller()}"
        )
    return streams[0]
