"""Runs argument sets through the stages in the workers of a Ray engine."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from defn._names import caller
from defn.engines._ray_actors import SMALL, as_ours, at_home
from defn.engines._ray_worker import pack, unpack
from defn.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from defn._core import Tensor
    from defn.graph import Plan

__all__ = ["Pipeline"]


class _Set:
    """One argument set: references to the values still needed, and its errors."""

    def __init__(self, values: dict[Any, Any]):
        self.values = values
        self.results: list[Any] = []
        # The running calls, and the errors, by the position of their stage.
        self.calls: dict[int, Any] = {}
        self.errors: dict[int, BaseException] = {}


class Pipeline:
    """One run of many argument sets.

    A call is sent to its worker with references to its inputs, which may still be computed. Ray
    delivers the call when they are ready, and keeps them until it has ended, so that it can be
    repeated. The references here are dropped as soon as the last call that uses them is sent.
    """

    def __init__(
        self,
        ray: Any,
        plan: Plan,
        methods: Sequence[Callable[..., Sequence[Any]]],
        maxsize: int,
        restarts: int,
        heard: Callable[[int, dict[str, Any]], None],
        lost: Callable[[int], None],
        is_open: Callable[[], bool],
    ):
        self._ray, self._plan, self._methods = ray, plan, methods
        self._maxsize, self._restarts = maxsize, restarts
        self._heard, self._lost, self._is_open = heard, lost, is_open
        count = len(plan.stages)
        # The stages that a stage must not run too far ahead of: itself, and those that use it.
        self._ahead_of = [{position} for position in range(count)]
        for position, sources in enumerate(plan.sources):
            for source, _ in sources:
                if source is not None:
                    self._ahead_of[source].add(position)
        self._used = sorted(
            {index for sources in plan.sources for source, index in sources if source is None}
        )
        # For each stage, the number of sets sent, and the number completed without a gap.
        self._sent = [0] * count
        self._ended = [0] * count
        self._early: list[set[int]] = [set() for _ in range(count)]
        self._sets: dict[int, _Set] = {}
        self._taken = self._given = 0
        self._more = True
        self._waiting: dict[Any, tuple[int, int]] = {}
        # Arguments that the previous set had too are not sent again.
        self._sent_arguments: dict[int, tuple[Tensor, Any]] = {}

    def results(self, sets: Iterator[Sequence[Tensor]]) -> Iterator[list[Tensor]]:
        """Yield the results of each set, in order; an error of a set ends the run."""
        try:
            while True:
                self._advance(sets)
                current = self._sets.get(self._given)
                if current is None:
                    return
                while not current.errors and (current.calls or min(self._sent) <= self._given):
                    self._listen()
                    self._advance(sets)
                if current.errors:
                    self._fail(current)
                references = current.results
                del self._sets[self._given], current
                results = [unpack(value, copy=True) for value in self._get(references)]
                del references
                self._given += 1
                yield results
        finally:
            # Running calls are not cancelled: workers would wait long for a call that never comes.
            self._waiting.clear()
            self._sets.clear()

    def _advance(self, sets: Iterator[Sequence[Tensor]]) -> None:
        """Send every call that the queues have room for."""
        if not self._is_open():
            # Otherwise Ray would connect again.
            raise BackendError(
                "run: the engine was closed before the last result, it must be open until then; "
                f"take every result first{caller()}"
            )
        moved = True
        while moved:
            moved = False
            for position, number in enumerate(self._sent):
                if self._has_room(position, number) and (
                    number < self._taken or self._take(number, sets)
                ):
                    self._send(position, number)
                    moved = True

    def _take(self, number: int, sets: Iterator[Sequence[Tensor]]) -> bool:
        """Take the next set; returns whether there is one."""
        if not self._more:
            return False
        try:
            current = _Set(self._put(next(sets)))
            self._taken += 1
        except StopIteration:
            self._more = False
            return False
        except Exception as error:
            # It is raised after the results of the earlier sets.
            self._more = False
            current = _Set({})
            current.errors[-1] = error
        self._sets[number] = current
        return self._more

    def _has_room(self, position: int, number: int) -> bool:
        """Whether a stage may run a set: earlier stages were sent, and it is not too far ahead."""
        if any(self._sent[before] <= number for before in self._plan.waits[position]):
            return False
        if number - self._given > self._maxsize * len(self._sent):
            return False
        if len(self._ahead_of[position]) == 1 and number - self._given > self._maxsize:
            return False
        return all(
            number - self._ended[stage] <= self._maxsize for stage in self._ahead_of[position]
        )

    def _put(self, arguments: Sequence[Tensor]) -> dict[Any, Any]:
        """The arguments that stages use, in the form that calls take."""
        sent: dict[int, tuple[Tensor, Any]] = {}
        values: dict[Any, Any] = {}
        for index in self._used:
            tensor = arguments[index]
            found = sent.get(id(tensor)) or self._sent_arguments.get(id(tensor))
            if found is None:
                found = (tensor, self._sendable(tensor, index))
            sent[id(tensor)] = found
            values[None, index] = found[1]
        self._sent_arguments = sent
        return values

    def _sendable(self, tensor: Tensor, index: int) -> Any:
        """A reference to a tensor in the store, or a small tensor itself."""
        packed = pack(tensor)
        if tensor.nbytes <= SMALL:
            return packed
        try:
            return self._ray.put(packed)
        except self._ray.exceptions.RayError as error:
            raise self._as_ours(error, f"argument {index}") from error

    def _send(self, position: int, number: int) -> None:
        current = self._sets[number]
        inputs = []
        uses = zip(self._plan.sources[position], self._plan.last_uses[position], strict=True)
        for source, is_last in uses:
            take = current.values.pop if is_last else current.values.__getitem__
            inputs.append(take(tuple(source)))
        *results, call = self._methods[position](*inputs)
        if position == len(self._methods) - 1:
            current.results = results
        else:
            current.values.update(((position, i), result) for i, result in enumerate(results))
        current.calls[position] = call
        self._waiting[call] = (position, number)
        self._sent[position] += 1

    def _listen(self) -> None:
        """Wait for a call to end, and process all calls that have ended."""
        # Reports are small and arrive with the answer, so nothing is fetched here.
        waiting = list(self._waiting)
        self._ray.wait(waiting, num_returns=1)
        ended, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        for call, answer in zip(ended, self._answers(ended), strict=True):
            position, number = self._waiting.pop(call)
            current = self._sets[number]
            del current.calls[position]
            if isinstance(answer, Exception):
                current.errors[position] = answer
            else:
                report, raised = answer
                if report is not None:
                    self._heard(position, report)
                if raised is not None:
                    current.errors[position] = pickle.loads(raised)
            self._early[position].add(number)
            while self._ended[position] in self._early[position]:
                self._early[position].remove(self._ended[position])
                self._ended[position] += 1

    def _answers(self, calls: list[Any]) -> list[Any]:
        """The answers of calls that have ended; a Ray error in place of a missing answer."""
        errors = self._ray.exceptions.RayError
        try:
            return self._ray.get(calls)
        except errors as error:
            if len(calls) == 1:
                return [error]
            return [answer for call in calls for answer in self._answers([call])]

    def _get(self, references: list[Any]) -> list[Any]:
        try:
            return self._ray.get(references)
        except self._ray.exceptions.RayError as error:
            raise self._as_ours(error, "the results") from error

    def _fail(self, current: _Set) -> None:
        """Raise the error of the first stage that failed; later stages failed because of it."""
        position = min(current.errors)
        error = current.errors[position]
        exceptions = self._ray.exceptions
        if not isinstance(error, exceptions.RayError):
            raise at_home(error)
        if isinstance(error, exceptions.RayActorError):
            self._lost(position)
            raise BackendError(
                f"run: the worker of stage {position} was lost {self._restarts + 1} times, "
                f"at most {self._restarts} restarts are allowed; look for what ends its process, "
                f"such as too little memory{caller()}"
            ) from error
        raise self._as_ours(error, f"stage {position}") from error

    def _as_ours(self, error: BaseException, what: str) -> BaseException:
        """The error of this package for a Ray error."""
        remedy = ", or let fewer sets be under way with maxsize"
        return as_ours(self._ray, "run", error, what, remedy)
