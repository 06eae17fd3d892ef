"""The engine that runs stages on threads.

A stage of an argument set is ready when the stages that it waits for have run. Threads take the
ready stage of the oldest set first, so that results come in order and few values are alive.
"""

from __future__ import annotations

import contextlib
import contextvars
import heapq
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING

from defn._names import caller, option_error
from defn.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from defn._core import Tensor
    from defn.graph import Plan


# How often a thread without work checks whether the process ends, in seconds.
_PERIOD = 0.2


class Threads:
    """The engine that runs stages on threads: independent stages in parallel, and several argument
    sets at a time, as in a pipeline.

    ``workers`` is the number of threads, by default one for each processor. ``maxsize`` is the
    number of sets in flight at a time, by default the number of threads: the next arguments are
    read when the oldest result was taken. Results are those of ``Sequential``, and so is the order
    of effects.

    An error is raised in the caller, in place of the result of its set; earlier sets still return
    their results. Ctrl-C ends the wait. Stages that are running then continue to their end, and the
    process waits for them before it exits.

    Raises: ``OptionError`` for numbers below 1.

    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)) + dn.cos(dn.exp(x)))(1.0)
    >>> stages = dn.graph.split(expr, dn.graph.ops("cos", decision="after"))
    >>> engine = dn.engines.Threads(2)
    >>> [y.item() == dn.graph.run(stages, [0.0]).item()
    ...  for y in dn.graph.run_each(stages, [[0.0]] * 3, engine=engine)]
    [True, True, True]
    """

    def __init__(self, workers: int | None = None, maxsize: int | None = None) -> None:
        for name, value in (("workers", workers), ("maxsize", maxsize)):
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if value is not None and not is_count:
                raise option_error(f"Threads: {name} is {value!r}, an int from 1 on is required")
        self.workers = os.cpu_count() or 1 if workers is None else workers
        self.maxsize = self.workers if maxsize is None else maxsize

    def __repr__(self) -> str:
        return f"Threads({self.workers}, maxsize={self.maxsize})"

    def run_each(self, plan: Plan, sets: Iterable[Sequence[Tensor]]) -> Iterator[Sequence[Tensor]]:
        """Yield the results of each set, in order."""
        job = _Job(plan, self.workers)
        pending: Exception | None = None
        given, begun, is_over = 0, 0, False
        iterator = iter(sets)
        try:
            while True:
                while not is_over and begun - given < self.maxsize:
                    try:
                        tensors = next(iterator)
                    except StopIteration:
                        is_over = True
                    except Exception as error:
                        # It is raised in place of the result of this set.
                        pending, is_over = error, True
                    else:
                        job.begin(begun, tensors)
                        del tensors
                        begun += 1
                if given == begun:
                    if pending is not None:
                        raise pending
                    return
                yield job.result(given)
                given += 1
        except KeyboardInterrupt:
            job.stop(wait=False)
            job.unlock()
            raise
        finally:
            job.stop(wait=True)


class _Set:
    """One argument set in flight."""

    def __init__(self, plan: Plan, tensors: Sequence[Tensor]) -> None:
        # The number of remaining uses of each value. A value without uses is dropped.
        self.uses = Counter(source for sources in plan.sources for source in sources)
        self.values: dict[tuple[int | None, int], Tensor] = {}
        self.put(None, tensors)
        self.waits = [len(waits) for waits in plan.waits]
        self.left = len(plan.stages)
        self.results: Sequence[Tensor] = ()

    def take(self, sources: Sequence[tuple[int | None, int]]) -> list[Tensor]:
        given = []
        for source in sources:
            self.uses[source] -= 1
            last = self.uses[source] == 0
            given.append(self.values.pop(source) if last else self.values[source])
        return given

    def put(self, position: int | None, tensors: Sequence[Tensor]) -> None:
        for index, value in enumerate(tensors):
            if (position, index) in self.uses:
                self.values[position, index] = value


class _Job:
    """One call of an engine: its sets, threads, and ready stages."""

    def __init__(self, plan: Plan, workers: int) -> None:
        self.plan, self.workers = plan, workers
        self.programs: list[Callable[..., Any]] = [
            plan.compile(position) for position in range(len(plan.stages))
        ]
        self.followers: list[list[int]] = [[] for _ in plan.stages]
        for position, waits in enumerate(plan.waits):
            for other in waits:
                self.followers[other].append(position)
        effects = [position for position, has in enumerate(plan.has_effects) if has]
        # The effects of one set come before those of the next.
        self.first_effect, self.last_effect = (effects[0], effects[-1]) if effects else (None, None)
        self.effects_done = 0
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.ready: list[tuple[int, int]] = []
        self.sets: dict[int, _Set] = {}
        self.failed: tuple[int, BaseException] | None = None
        self.stopped = False
        self.idle = 0
        self.threads: list[threading.Thread] = []

    # the caller's side

    def begin(self, number: int, tensors: Sequence[Tensor]) -> None:
        """Start a set."""
        one = _Set(self.plan, tensors)
        with self.changed:
            if self.failed is not None:
                # Its result is never read: an earlier set has failed.
                return
            self.sets[number] = one
            if self.first_effect is not None and self.effects_done < number:
                one.waits[self.first_effect] += 1
            self._push(number, [position for position, waits in enumerate(one.waits) if waits == 0])

    def result(self, number: int) -> Sequence[Tensor]:
        """Wait for the results of the last stage for a set."""
        with self.changed:
            while True:
                if self.failed is not None and self.failed[0] <= number:
                    error = self.failed[1]
                    break
                if self.sets[number].left == 0:
                    return self.sets.pop(number).results
                self.changed.wait()
        if isinstance(error, Error) and "\n  at " not in str(error):
            error.args = (str(error) + caller(), *error.args[1:])
        raise error

    def stop(self, *, wait: bool) -> None:
        """End the threads. Running stages are not interrupted."""
        with self.changed:
            self.stopped = True
            self.sets.clear()
            self.ready.clear()
            self.changed.notify_all()
            threads, self.threads = self.threads, []
        if wait:
            for thread in threads:
                thread.join()

    def unlock(self) -> None:
        """Release a lock that Ctrl-C has left locked.

        It may strike after the lock was taken and before the block that releases it, or before it
        is released. Threads would then wait forever, and the process for them.
        """
        with contextlib.suppress(RuntimeError):
            while True:
                self.lock.release()

    # with the lock held

    def _push(self, number: int, positions: Iterable[int]) -> None:
        for position in positions:
            heapq.heappush(self.ready, (number, position))
        missing = min(len(self.ready) - self.idle, self.workers - len(self.threads))
        for _ in range(missing):
            # The options and checks of the caller's context apply here too.
            run = contextvars.copy_context().run
            thread = threading.Thread(target=run, args=(self._work,), name="defn-stages")
            self.threads.append(thread)
            thread.start()
        self.changed.notify_all()

    def _done(self, number: int, position: int, outputs: Sequence[Tensor]) -> None:
        one = self.sets.get(number)
        if one is None:
            return
        one.put(position, outputs)
        if position == len(self.programs) - 1:
            one.results = outputs
        one.left -= 1
        free = []
        for follower in self.followers[position]:
            one.waits[follower] -= 1
            if one.waits[follower] == 0:
                free.append(follower)
        self._push(number, free)
        if position == self.last_effect:
            self.effects_done = number + 1
            after = self.sets.get(number + 1)
            if after is not None and self.first_effect is not None:
                after.waits[self.first_effect] -= 1
                if after.waits[self.first_effect] == 0:
                    self._push(number + 1, [self.first_effect])

    def _fail(self, number: int, error: BaseException) -> None:
        if self.failed is None or number < self.failed[0]:
            self.failed = (number, error)
        # Earlier sets continue; the results of later ones are never read.
        self.ready = [entry for entry in self.ready if entry[0] < number]
        heapq.heapify(self.ready)
        for other in [other for other in self.sets if other >= number]:
            del self.sets[other]
        self.changed.notify_all()

    # a thread

    def _work(self) -> None:
        while True:
            with self.changed:
                while not self.ready and not self.stopped:
                    self.idle += 1
                    self.changed.wait(_PERIOD)
                    self.idle -= 1
                    # The process waits for running stages when it ends, but not for idle threads.
                    self.stopped |= not threading.main_thread().is_alive()
                if self.stopped:
                    return
                number, position = heapq.heappop(self.ready)
                given = self.sets[number].take(self.plan.sources[position])
            try:
                outputs = self.programs[position](*given)
            except BaseException as error:
                with self.changed:
                    self._fail(number, error)
            else:
                with self.changed:
                    self._done(number, position, outputs)
                del outputs
            del given
