"""What rewritten control flow calls: Python's behaviour on plain values, a graph's on tensors."""

from __future__ import annotations

import collections
import dataclasses
import operator
from typing import TYPE_CHECKING

import numpy as np

from defn import _core, control
from defn._names import caller
from defn.errors import ContainerError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Thunk = Callable[[], Any]
    Values = tuple[Any, ...]
    Mutation = tuple[str, Thunk]

__all__ = ["RUNTIME"]


class _Undefined:
    """What a name holds that is not bound."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()

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

# What methods change where they stand.
_CONTAINERS = (list, dict, set, bytearray, collections.deque)

# What a condition on a tensor cannot decide, and what does.
_REFUSED = {
    "break": "`break` under a condition on a tensor; use dn.while_, with the condition in its test",
    "continue": "`continue` under a condition on a tensor; use if and else around what is skipped",
    "return": "`return` in one branch only of an if on a tensor; return from every branch, "
    "or use dn.if_",
    "raise": "`raise` under a condition on a tensor; use dn.hook to look at values while they run",
    "yield": "`yield` under a condition on a tensor; use dn.scan",
    "await": "`await` under a condition on a tensor; use dn.hook",
    "assert": "`assert` on a tensor; use dn.hook to look at values while they run, "
    "or dn.checks to find NaNs",
    "guard": "a guard on a tensor in a `match`; use if, elif and else",
    "filter": "`if` on a tensor in a comprehension; use dn.select, or compute all and mask them",
    "generator": "a condition on a tensor in a generator; use dn.scan, or a function that returns",
    "coroutine": "a condition on a tensor in a coroutine; compute it in a definition",
    "walrus": "`:=` in what a condition on a tensor decides; bind the name in a statement before",
    "while break": "`break` in a while on a tensor; use dn.while_, both conditions in its test",
    "while continue": "`continue` in a while on a tensor; use if and else around what is skipped",
    "while return": "`return` in a while on a tensor; use dn.while_, and return after it",
    "while raise": "`raise` in a while on a tensor; use dn.hook to look at values while they run",
    "while yield": "`yield` in a while on a tensor; use dn.scan",
    "while await": "`await` in a while on a tensor; use dn.hook",
}

_REFUSED_ITEMS = {
    "break": "`break` in a for over a tensor or dn.range; use dn.while_, with the condition in its "
    "test",
    "continue": "`continue` in a for over a tensor or dn.range; use if and else around what is "
    "skipped",
    "return": "`return` in a for over a tensor or dn.range; use dn.while_, and return after it",
    "raise": "`raise` in a for over a tensor or dn.range; use dn.hook to look at values while they "
    "run",
    "yield": "`yield` in a for over a tensor or dn.range; use dn.scan",
    "await": "`await` in a for over a tensor or dn.range; use dn.hook",
}


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _core.Tensor)


def _is_state(value: Any) -> bool:
    """Whether branches and loops can carry a value: tensors, numbers, and containers of them."""
    if isinstance(value, _core.Tensor | int | float | complex | np.generic | np.ndarray):
        return True
    if isinstance(value, list | tuple):
        return all(_is_state(item) for item in value)
    if isinstance(value, dict):
        return all(_is_state(item) for item in value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return True
    return hasattr(type(value), "__attrs_attrs__")


def _carried(value: Any) -> Any:
    """A value as branches and loops carry it: a bool, which is static elsewhere, is a tensor."""
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
    """Whether two values are one, or equal plain ones."""
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


def _describe(value: Any) -> str:
    if value is UNDEFINED:
        return "not bound"
    if isinstance(value, _core.Tensor):
        axes = zip(value.names, value.shape, strict=True)
        sizes = [f"[{size}]" if name is None else f"[{name}: {size}]" for name, size in axes]
        return f"{value.dtype}{''.join(sizes)}"
    function = getattr(value, "__qualname__", None)
    if function is not None:
        return f"the function {function.split('.')[-1]}"
    text = repr(value)
    if _is_state(value) and not isinstance(value, np.generic | np.ndarray):
        if isinstance(value, dict):
            items = ", ".join(f"{key!r}: {_describe(item)}" for key, item in value.items())
            text = f"{{{items}}}"
        elif type(value) in (list, tuple):
            items = ", ".join(map(_describe, value))
            text = f"[{items}]" if isinstance(value, list) else f"({items})"
    return text if len(text) <= 80 else f"a {type(value).__name__}"


def _placeholder(value: Any) -> Any:
    """Zeros where one branch has no value for a name; the name is not bound afterwards."""
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


def _disagree(
    kind: str,
    name: str,
    first: str,
    second: str,
    rule: str = "a condition on a tensor needs one type; give it a tensor or a number in both",
) -> ContainerError:
    where = (
        ("in one branch", "in the other") if kind == "if" else ("before the loop", "after a trip")
    )
    return ContainerError(
        f"{kind}: the variable {name} is {first} {where[0]} and {second} {where[1]}, {rule}"
        f"{caller()}"
    )


_KINDS = ("unsigned", "signed", "float", "complex")


def _gives_way(number: Any, dtype: Any) -> bool:
    """Whether a number takes on an element type, which is of its own kind or of a greater one."""
    if not isinstance(number, int | float | complex) or isinstance(number, bool | np.generic):
        return False
    kind = "float" if isinstance(number, float) else "complex"
    least = "unsigned" if isinstance(number, int) else kind
    return _KINDS.index(dtype.kind) >= _KINDS.index(least)


def _require_one_type(kind: str, name: str, first: Any, second: Any, weak: Any = None) -> None:
    """What two ways leave in a variable has one structure, and its tensors one type; a number gives
    way, also one of ``weak``, which the first was made of.
    """
    if isinstance(first, _core.Tensor) and isinstance(second, _core.Tensor):
        clash = any(
            None not in pair and pair[0] != pair[1]
            for pair in zip(first.names, second.names, strict=False)
        )
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
        raise _disagree(kind, name, _describe(first), _describe(second), rule)
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
        # Tensors and numbers; other containers are compared where they are taken apart.
        return
    rule = "the structure must be the same; keep one number of items and one kind of container"
    raise _disagree(kind, name, _describe(first), _describe(second), rule)


def _has_type_of(left: Any, right: Any) -> bool:
    """Whether comparing with the one is as good as comparing with the other."""
    if not _is_tensor(right):
        return True
    return _is_tensor(left) and (left.dtype, left.shape, left.names) == (
        right.dtype,
        right.shape,
        right.names,
    )


def _refuse_changes(kind: str, changes: Sequence[str], mutations: Sequence[Mutation]) -> None:
    """What is changed inside an object cannot be taken back, and would be done for every way."""
    if changes:
        raise _refuse(
            f"{kind}: `{changes[0]}` is assigned under a condition on a tensor, only variables can "
            "be; assign a variable there, and the object after it"
        )
    for text, read in mutations:
        try:
            changed = read()
        except (NameError, AttributeError, LookupError):
            # What the branch makes itself is not there yet.
            continue
        if isinstance(changed, _CONTAINERS):
            name = type(changed).__name__
            raise _refuse(
                f"{kind}: `{text}` changes a {name} under a condition on a tensor, only variables "
                f"can be changed; bind a variable there, or collect with dn.scan"
            )


def _merged(
    name: str, left: Sequence[dict[str, Any]], merged: dict[str, Any], live: Sequence[str]
) -> Any:
    """What a name holds after an if statement."""
    first, *others = (after[name] for after in left)
    if not others:
        return merged.get(name, first)
    if all(_same(first, other) for other in others):
        return first
    if name not in live or any(value is UNDEFINED for value in (first, *others)):
        return UNDEFINED
    for other in others:
        if not _same(first, other) and not (_is_state(first) and _is_state(other)):
            raise _disagree("if", name, _describe(first), _describe(other))
    return merged[name]


class _Loop:
    """The variables of a loop: those it carries from trip to trip, and the rest."""

    def __init__(
        self,
        kind: str,
        get: Callable[[], Values],
        put: Callable[[Values], None],
        names: Sequence[str],
        live: Sequence[str],
        carried: Sequence[str],
    ) -> None:
        self._kind, self._get, self._put, self._names = kind, get, put, names
        self._needed = {*live, *carried}
        self._before = dict(zip(names, get(), strict=True))
        self._changed: set[str] = set()
        # Numbers that the variables hold before take on the types of what the first trip leaves.
        self._weak = True
        self.start = {n: _carried(value) for n, value in self._before.items() if _is_state(value)}
        self._entered: dict[str, Any] = self.start

    def enter(self, state: dict[str, Any]) -> None:
        """Gives the variables the values of a trip's beginning."""
        self._entered = state
        self._put(tuple(state.get(name, self._before[name]) for name in self._names))

    def leave(self) -> dict[str, Any]:
        """What the variables hold at a trip's end."""
        after = dict(zip(self._names, self._get(), strict=True))
        for name, value in after.items():
            before = self._before[name]
            if name in self.start and _is_state(value):
                weak = self.start[name] if self._weak else None
                _require_one_type(self._kind, name, self._entered[name], value, weak)
                continue
            if _same(before, value):
                continue
            if name in self.start or (before is not UNDEFINED and name in self._needed):
                raise _disagree(self._kind, name, _describe(before), _describe(value))
            self._changed.add(name)
        self._weak = False
        return {name: _carried(after[name]) for name in self.start}

    def end(self, state: dict[str, Any]) -> None:
        """Gives the variables what the loop left; what only its trips bound is not bound."""
        rest = {
            name: UNDEFINED if name in self._changed else value
            for name, value in self._before.items()
        }
        self._put(tuple(state.get(name, rest[name]) for name in self._names))


def _refuse(message: str) -> TraceError:
    return TraceError(message + caller())


def _plain_branch(test: Any, tests: Sequence[Thunk]) -> int | list[Any]:
    """Which branch plain conditions decide on; where a tensor has to, all conditions from the first
    on: of those before it none holds.
    """
    verdicts = [test]
    while not _is_tensor(verdicts[-1]):
        if verdicts[-1]:
            return len(verdicts) - 1
        if len(verdicts) > len(tests):
            return len(verdicts)
        verdicts.append(tests[len(verdicts) - 1]())
    verdicts += [read() for read in tests[len(verdicts) - 1 :]]
    # To cond, only numbers are plain.
    return [verdict if _is_tensor(verdict) else bool(verdict) for verdict in verdicts]


def _chosen(
    verdicts: Sequence[Any], branches: Sequence[Thunk], traced: Callable[[Thunk], Thunk]
) -> Any:
    clauses = [(test, traced(branch)) for test, branch in zip(verdicts, branches, strict=False)]
    return _core.cond(clauses, traced(branches[-1]))


class _Runtime:
    """The functions that rewritten code finds under ``__defn__``."""

    undefined = UNDEFINED

    @staticmethod
    def value(read: Thunk) -> Any:
        """What a name holds, or that it is not bound."""
        try:
            return read()
        except NameError:
            return UNDEFINED

    # conditions

    @staticmethod
    def plain(test: Any, kind: str) -> Any:
        """A condition that has to be plain, because of how its statement is left."""
        if _is_tensor(test):
            raise _refuse(f"defn: {_REFUSED[kind]}")
        return test

    @staticmethod
    def plain_items(items: Any, kind: str) -> Any:
        """What a loop runs over that has to be plain, because of how its body is left."""
        if _is_tensor(items) or isinstance(items, control.range):
            raise _refuse(f"defn: {_REFUSED_ITEMS[kind]}")
        return items

    @staticmethod
    def and_(left: Any, *rest: Thunk) -> Any:
        """``left and ...``; on tensors bool, with every operand computed."""
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
        """``left or ...``; on tensors bool, with every operand computed."""
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
        """``not value``; on tensors bool."""
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
        """An if statement, with what follows as elif: its branches are functions that share its
        variables, and the last is that of else.
        """
        position = _plain_branch(test, tests)
        if not isinstance(position, list):
            branches[position]()
            return
        _refuse_changes("if", changes, mutations)
        before = get()
        # What each branch leaves in the names, in the order of the branches.
        left: list[dict[str, Any]] = []
        # What the names are compared with: what the first branch left, and other types of tensors.
        first: dict[str, list[Any]] = {}

        def branch(body: Thunk) -> Thunk:
            def run() -> dict[str, Any]:
                put(before)
                body()
                after = dict(zip(names, get(), strict=True))
                left.append(after)
                kept = {name: _carried(after[name]) for name in live if _is_state(after[name])}
                if len(left) == 1:
                    first.update({name: [value] for name, value in kept.items()})
                    return kept
                # The names that the first branch gave are those of the result.
                for name in first.keys() & kept.keys():
                    for known in first[name]:
                        _require_one_type("if", name, known, kept[name])
                    if not any(_has_type_of(known, kept[name]) for known in first[name]):
                        first[name].append(kept[name])
                return {n: kept[n] if n in kept else _placeholder(first[n][0]) for n in first}

            return run

        merged = _chosen(position, branches, branch)
        put(tuple(_merged(name, left, merged, live) for name in names))

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
        """An if statement that returns from all branches."""
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
        binds: bool,
    ) -> None:
        """A while statement. Trips whose condition is plain are Python's.

        ``binds`` says that the condition binds names: they are bound again where they are read.
        """
        while not _is_tensor(verdict := test()):
            if not verdict:
                return
            body()
        _refuse_changes("while", changes, mutations)
        loop = _Loop("while", get, put, names, live, carried)

        def condition(state: dict[str, Any]) -> Any:
            loop.enter(state)
            return test()

        def step(state: dict[str, Any]) -> dict[str, Any]:
            loop.enter(state)
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
    ) -> None:
        """A for statement: a loop of the graph over a tensor's first axis or ``dn.range``."""
        if not _is_tensor(items) and not isinstance(items, control.range):
            for item in items:
                body(item)
            return
        _refuse_changes("for", changes, mutations)
        loop = _Loop("for", get, put, names, live, carried)

        def step(state: dict[str, Any], item: Any) -> dict[str, Any]:
            loop.enter(state)
            body(item)
            return loop.leave()

        loop.end(control.for_(loop.start, items, step))


RUNTIME = _Runtime()
