"""The runtime of rewritten control flow: Python semantics on plain values, graphs on tensors."""

from __future__ import annotations

import builtins
import collections
import contextlib
import operator
import threading
from typing import TYPE_CHECKING

import numpy as np

from defn import _core, control
from defn._syntax import unbound
from defn._syntax.refusals import (
    LOOPS,
    STATEMENTS,
    UNDEFINED,
    disagree,
    is_state,
    refuse,
)
from defn._syntax.restructure import STOP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Thunk = Callable[[], Any]
    Values = tuple[Any, ...]
    Mutation = tuple[str, Thunk]

__all__ = ["RUNTIME"]


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}

# Containers that methods modify in place.
_CONTAINERS = (list, dict, set, bytearray, collections.deque)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _core.Tensor)


def _carried(value: Any) -> Any:
    """A value as branches and loops carry it: a bool, static elsewhere, becomes a tensor."""
    if isinstance(value, bool):
        return _core.as_type(value, "bool")
    if type(value) in (list, tuple):
        items = [_carried(item) for item in value]
        is_same = all(map(operator.is_, items, value))
        return value if is_same else type(value)(items)
    if type(value) is dict:
        return {key: _carried(item) for key, item in value.items()}
    return value


def _same(left: Any, right: Any) -> bool:
    """Whether two values are identical, or equal plain values."""
    if left is right:
        return True
    if type(left) is not type(right) or isinstance(left, _core.Tensor | np.ndarray):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, bool | int | float | complex | str | bytes | np.generic):
        return left == right and repr(left) == repr(right)
    return False


def _placeholder(value: Any) -> Any:
    """Zeros for a name without a value in one branch; the name is unbound afterwards."""
    if isinstance(value, _core.Tensor):
        zero = _core.as_type(0, value.dtype)
        return _core.broadcast(zero, value.shape, None, list(value.names))
    if isinstance(value, dict):
        return {key: _placeholder(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_placeholder, value))
    if isinstance(value, list | tuple):
        return type(value)(map(_placeholder, value))
    return value


_KINDS = ("unsigned", "signed", "float", "complex")


def _gives_way(number: Any, dtype: Any) -> bool:
    """Whether a number takes a dtype, which must be of the number's kind or of a higher one."""
    if isinstance(number, _core.Tensor):
        # The result of operators on numbers among the arguments.
        is_number = _core.is_weak(number) and number.dtype.kind != "bool"
        return is_number and _KINDS.index(dtype.kind) >= _KINDS.index(number.dtype.kind)
    if not isinstance(number, int | float | complex) or isinstance(number, bool | np.generic):
        return False
    kind = "float" if isinstance(number, float) else "complex"
    least = "unsigned" if isinstance(number, int) else kind
    return _KINDS.index(dtype.kind) >= _KINDS.index(least)


class _Numbers(threading.local):
    """The tensors that stand for numbers in the first iteration of the loops being traced."""

    tensors: list[Any] = []  # noqa: RUF012 - it is never changed, but bound again


_NUMBERS = _Numbers()
_WIDEST = _core.dtype("c128")


def _is_weak(first: Any, second: Any) -> bool:
    """Whether a tensor that stands for a number takes the dtype of the other one."""
    if first.shape != second.shape:
        return False
    return any(
        (_core.is_weak(one) or any(one is known for known in _NUMBERS.tensors))
        and other.dtype.kind != "bool"
        and _KINDS.index(other.dtype.kind) >= _KINDS.index(one.dtype.kind)
        for one, other in ((first, second), (second, first))
        if one.dtype.kind != "bool"
    )


def _require_one_type(kind: str, name: str, first: Any, second: Any, weak: Any = None) -> None:
    """Require one structure and type of the values that two paths leave in a variable. A number
    takes the other's dtype, and so does a tensor in ``first`` that was a number in ``weak``.
    """
    if isinstance(first, _core.Tensor) and isinstance(second, _core.Tensor):
        clash = any(
            None not in pair and pair[0] != pair[1]
            for pair in zip(first.names, second.names, strict=False)
        )
        if _is_weak(first, second):
            # One of them represents a number, which takes the other's dtype.
            return
        if first.dtype != second.dtype and not _gives_way(weak, second.dtype):
            hint = "convert one with as_type"
            if kind != "if" and (first.dtype.kind, first.rank) == ("signed", 0):
                hint = "start from a float, as in 0.0, or convert with as_type"
        elif first.shape != second.shape:
            hint = "broadcast one to the shape of the other"
        elif clash:
            hint = "rename the axes of one"
        else:
            return
        rule = f"dtype, shape and names must be the same; {hint}"
        raise disagree(kind, name, first, second, rule)
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() == second.keys():
            for key in first:
                inner = weak[key] if weak is not None else None
                _require_one_type(kind, f"{name}[{key!r}]", first[key], second[key], inner)
            return
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if type(first) is type(second) and len(first) == len(second):
            inner = weak if weak is not None else [None] * len(first)
            for position, items in enumerate(zip(first, second, inner, strict=True)):
                _require_one_type(kind, f"{name}[{position}]", *items)
            return
    elif not isinstance(first, list | tuple | dict) and not isinstance(second, list | tuple | dict):
        # Tensors and numbers; other containers are compared when they are flattened.
        return
    rule = "the structure must be the same; keep one number of items and one kind of container"
    raise disagree(kind, name, first, second, rule)


def _has_type_of(left: Any, right: Any) -> bool:
    """Whether a comparison with ``left`` makes one with ``right`` redundant."""
    if not _is_tensor(right):
        return True
    return _is_tensor(left) and (left.dtype, left.shape, left.names) == (
        right.dtype,
        right.shape,
        right.names,
    )


def _refuse_changes(kind: str, changes: Sequence[str], mutations: Sequence[Mutation]) -> None:
    """Refuse changes inside objects, because tracing would make them on every path."""
    if changes:
        raise refuse(
            f"{kind}: `{changes[0]}` is assigned under a condition on a tensor, only variables can "
            "be; assign a variable there, and the object after it"
        )
    for text, read in mutations:
        try:
            changed = read()
        except (NameError, AttributeError, LookupError):
            # An object that the branch itself creates does not exist yet.
            continue
        if isinstance(changed, _CONTAINERS):
            name = type(changed).__name__
            raise refuse(
                f"{kind}: `{text}` changes a {name} under a condition on a tensor, only variables "
                f"can be changed; bind a variable there, or collect with dn.scan"
            )


def _merged(
    name: str, left: Sequence[dict[str, Any]], merged: dict[str, Any], live: Sequence[str]
) -> Any:
    """The value of a name after an if statement."""
    first, *others = (after[name] for after in left)
    if not others:
        return merged.get(name, first)
    if all(_same(first, other) for other in others):
        return first
    if name not in live or any(value is UNDEFINED for value in (first, *others)):
        return UNDEFINED
    for other in others:
        if not _same(first, other) and not (is_state(first) and is_state(other)):
            raise disagree("if", name, first, other)
    return merged[name]


class _Loop:
    """The variables of a loop: those carried from iteration to iteration, and the others."""

    def __init__(
        self,
        kind: str,
        get: Callable[[], Values],
        put: Callable[[Values], None],
        names: Sequence[str],
        live: Sequence[str],
        carried: Sequence[str],
        stop: str | None,
    ) -> None:
        self._kind, self._get, self._put, self._names = kind, get, put, names
        self._stop = stop
        self._needed = {*live, *carried}
        self._before = dict(zip(names, get(), strict=True))
        self._changed: set[str] = set()
        # The variables that record how the loop was left, and those of them that are never set.
        self._ways_out = [name for name in names if name.startswith(STOP)]
        self._unmet = set(self._ways_out)
        self.start = {n: _carried(value) for n, value in self._before.items() if is_state(value)}
        self._entered: dict[str, Any] = self.start

    @contextlib.contextmanager
    def trip(self, state: dict[str, Any]) -> Iterator[None]:
        """Set the variables to their values at the start of an iteration: the loop was not left."""
        self._entered = state = {**state, **dict.fromkeys(self._ways_out, False)}
        self._put(tuple(state.get(name, self._before[name]) for name in self._names))
        before = _NUMBERS.tensors
        numbers = [state[n] for n, value in self.start.items() if _gives_way(value, _WIDEST)]
        _NUMBERS.tensors = [*before, *numbers]
        try:
            yield
        finally:
            _NUMBERS.tensors = before

    def goes_on(self, state: dict[str, Any], verdict: Any) -> Any:
        """Whether another iteration follows: the condition holds and the loop was not left."""
        if self._stop is None:
            return verdict
        return _core.logical_and(_core.logical_not(state[self._stop]), _carried(verdict))

    def leave(self) -> dict[str, Any]:
        """Check and return the values of the variables at the end of an iteration."""
        after = dict(zip(self._names, self._get(), strict=True))
        self._unmet -= {name for name in self._unmet if after[name] is not False}
        for name, value in after.items():
            before = self._before[name]
            if name in self.start and is_state(value):
                _require_one_type(self._kind, name, self._entered[name], value, self.start[name])
                continue
            if _same(before, value):
                continue
            if name in self.start or (before is not UNDEFINED and name in self._needed):
                raise disagree(self._kind, name, before, value)
            self._changed.add(name)
        return {name: _carried(after[name]) for name in self.start}

    def end(self, state: dict[str, Any]) -> None:
        """Set the variables to their values after the loop; names bound only in it are unbound."""
        rest = {
            name: UNDEFINED if name in self._changed else value
            for name, value in self._before.items()
        }
        state = {**state, **dict.fromkeys(self._unmet, False)}
        self._put(tuple(state.get(name, rest[name]) for name in self._names))
        for name in self._changed:
            unbound.note(self._kind, name)


def _plain_branch(test: Any, tests: Sequence[Thunk]) -> int | list[Any]:
    """The index of the branch that plain conditions choose. If a tensor has to choose, all
    conditions; those before the tensor are false.
    """
    verdicts = [test]
    while not _is_tensor(verdicts[-1]):
        if verdicts[-1]:
            return len(verdicts) - 1
        if len(verdicts) > len(tests):
            return len(verdicts)
        verdicts.append(tests[len(verdicts) - 1]())
    verdicts += [read() for read in tests[len(verdicts) - 1 :]]
    # `cond` takes only numbers as plain conditions.
    return [verdict if _is_tensor(verdict) else bool(verdict) for verdict in verdicts]


def _chosen(
    verdicts: Sequence[Any], branches: Sequence[Thunk], traced: Callable[[Thunk], Thunk]
) -> Any:
    clauses = [(test, traced(branch)) for test, branch in zip(verdicts, branches, strict=False)]
    return _core.cond(clauses, traced(branches[-1]))


class _Runtime:
    """The functions that rewritten code calls through ``__defn__``."""

    undefined = UNDEFINED

    @staticmethod
    def value(read: Thunk) -> Any:
        """The value of a name, or ``UNDEFINED`` if it is not bound."""
        try:
            return read()
        except NameError:
            return UNDEFINED

    # conditions

    @staticmethod
    def plain(test: Any, kind: str) -> Any:
        """Require a plain condition; ``kind`` is the reason, such as a jump in the statement."""
        if _is_tensor(test):
            raise refuse(f"defn: {STATEMENTS[kind]}")
        return test

    @staticmethod
    def plain_items(items: Any, kind: str) -> Any:
        """Require plain items of a loop; ``kind`` is the jump in its body."""
        if _is_tensor(items) or isinstance(items, control.range):
            raise refuse(f"defn: {LOOPS[kind]}")
        return items

    @staticmethod
    def range_of(function: Any, *bounds: Any) -> Any:
        """``range(...)`` of a for statement: ``dn.range`` if a bound of Python's is traced."""
        if function is builtins.range and any(
            isinstance(bound, _core.Tensor) and bound.is_traced for bound in bounds
        ):
            return control.range(*bounds)
        return function(*bounds)

    @staticmethod
    def and_(left: Any, *rest: Thunk) -> Any:
        """``left and ...``; on tensors a bool, for which every operand is computed."""
        for right in rest:
            if _is_tensor(left):
                left = _core.logical_and(left, right())
            elif left:
                left = right()
            else:
                return left
        return left

    @staticmethod
    def or_(left: Any, *rest: Thunk) -> Any:
        """``left or ...``; on tensors a bool, for which every operand is computed."""
        for right in rest:
            if _is_tensor(left):
                left = _core.logical_or(left, right())
            elif left:
                return left
            else:
                left = right()
        return left

    @staticmethod
    def not_(value: Any) -> Any:
        """``not value``; on tensors a bool."""
        return _core.logical_not(value) if _is_tensor(value) else not value

    @staticmethod
    def compare(left: Any, *rest: Any) -> Any:
        """``left op value op value``, each value computed once."""
        verdict: Any = True
        for op, thunk in zip(rest[::2], rest[1::2], strict=True):
            right = thunk()
            step = _COMPARISONS[op](left, right)
            if _is_tensor(verdict):
                verdict = _core.logical_and(verdict, step)
            elif verdict:
                verdict = step
            if not _is_tensor(verdict) and not verdict:
                return verdict
            left = right
        return verdict

    @staticmethod
    def if_else(test: Any, then: Thunk, otherwise: Thunk) -> Any:
        """``then if test else otherwise``."""
        if not _is_tensor(test):
            return then() if test else otherwise()
        return _core.cond([(test, lambda: _carried(then()))], lambda: _carried(otherwise()))

    # statements

    @staticmethod
    def if_(
        test: Any,
        tests: Sequence[Thunk],
        branches: Sequence[Thunk],
        get: Callable[[], Values],
        put: Callable[[Values], None],
        names: Sequence[str],
        live: Sequence[str],
        changes: Sequence[str],
        mutations: Sequence[Mutation],
    ) -> None:
        """An if statement with its elif clauses. The branches are functions that share its
        variables; the last one is that of else.
        """
        position = _plain_branch(test, tests)
        if not isinstance(position, list):
            branches[position]()
            return
        _refuse_changes("if", changes, mutations)
        before = get()
        # The values of the names after each branch, in the order of the branches.
        left: list[dict[str, Any]] = []
        # The values that names are compared with: the first branch's, and tensors of other types.
        first: dict[str, list[Any]] = {}

        def branch(body: Thunk) -> Thunk:
            def run() -> dict[str, Any]:
                put(before)
                body()
                after = dict(zip(names, get(), strict=True))
                left.append(after)
                kept = {name: _carried(after[name]) for name in live if is_state(after[name])}
                if len(left) == 1:
                    first.update({name: [value] for name, value in kept.items()})
                    return kept
                # The result has the names that the first branch bound.
                for name in first.keys() & kept.keys():
                    for known in first[name]:
                        _require_one_type("if", name, known, kept[name])
                    if not any(_has_type_of(known, kept[name]) for known in first[name]):
                        first[name].append(kept[name])
                return {n: kept[n] if n in kept else _placeholder(first[n][0]) for n in first}

            return run

        merged = _chosen(position, branches, branch)
        values = tuple(_merged(name, left, merged, live) for name in names)
        put(values)
        for name, value in zip(names, values, strict=True):
            if value is UNDEFINED and any(after[name] is not UNDEFINED for after in left):
                unbound.note("if", name)

    @staticmethod
    def if_return(
        test: Any,
        tests: Sequence[Thunk],
        branches: Sequence[Thunk],
        get: Callable[[], Values],
        put: Callable[[Values], None],
        names: Sequence[str],
        live: Sequence[str],
        changes: Sequence[str],
        mutations: Sequence[Mutation],
    ) -> Any:
        """An if statement whose branches all return."""
        position = _plain_branch(test, tests)
        if not isinstance(position, list):
            return branches[position]()
        _refuse_changes("if", changes, mutations)
        before = get()

        def branch(body: Thunk) -> Thunk:
            def run() -> Any:
                put(before)
                return _carried(body())

            return run

        return _chosen(position, branches, branch)

    @staticmethod
    def while_(
        test: Thunk,
        body: Thunk,
        get: Callable[[], Values],
        put: Callable[[Values], None],
        names: Sequence[str],
        live: Sequence[str],
        changes: Sequence[str],
        mutations: Sequence[Mutation],
        carried: Sequence[str],
        stop: str | None,
        binds: bool,
    ) -> None:
        """A while statement. Python runs the iterations whose condition is plain.

        ``stop`` is the variable that a ``break`` sets. ``binds`` says that the condition binds
        names: the condition is computed again where they are read.
        """
        left = (lambda: get()[names.index(stop)]) if stop is not None else (lambda: False)
        while not _is_tensor(is_left := left()):
            if is_left:
                return
            verdict = test()
            if _is_tensor(verdict):
                break
            if not verdict:
                return
            body()
        _refuse_changes("while", changes, mutations)
        loop = _Loop("while", get, put, names, live, carried, stop)

        def condition(state: dict[str, Any]) -> Any:
            with loop.trip(state):
                return loop.goes_on(state, test())

        def step(state: dict[str, Any]) -> dict[str, Any]:
            with loop.trip(state):
                if binds:
                    test()
                body()
            return loop.leave()

        loop.end(_core.while_(loop.start, condition, step))
        if binds:
            test()

    @staticmethod
    def for_(
        items: Any,
        body: Callable[[Any], None],
        get: Callable[[], Values],
        put: Callable[[Values], None],
        names: Sequence[str],
        live: Sequence[str],
        changes: Sequence[str],
        mutations: Sequence[Mutation],
        carried: Sequence[str],
        stop: str | None,
    ) -> None:
        """A for statement: a loop of the graph over a tensor's first axis or ``dn.range``.

        ``stop`` is the variable that a ``break`` sets; the loop ends when it is set.
        """
        if not _is_tensor(items) and not isinstance(items, control.range):
            for item in items:
                body(item)
                # If the variable is a tensor, the body itself tests it.
                if stop is not None and get()[names.index(stop)] is True:
                    return
            return
        _refuse_changes("for", changes, mutations)
        loop = _Loop("for", get, put, names, live, carried, stop)

        def step(state: dict[str, Any], item: Any) -> dict[str, Any]:
            with loop.trip(state):
                body(item)
            return loop.leave()

        if stop is None:
            loop.end(control.for_(loop.start, items, step))
        else:
            loop.end(control.for_until(loop.start, items, step, lambda state: state[stop]))


RUNTIME = _Runtime()
