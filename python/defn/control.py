"""Control flow that depends on values.

States, branches and results may be containers. The functions passed in may capture tensors.
"""

from __future__ import annotations

import builtins
import operator
import sys
import time
from typing import TYPE_CHECKING

from defn import _associative, _core
from defn._names import caller, option_error
from defn._public import forwards, public
from defn.errors import DTypeError, ShapeError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, SupportsIndex

    from defn._core import Tensor
    from defn.typing import Axis

__all__ = [
    "associative_scan",
    "cond",
    "for_",
    "hook",
    "if_",
    "io_call",
    "mark",
    "print_expr",
    "print_value",
    "range",
    "scan",
    "while_",
]


class range:  # noqa: N801 - it replaces Python's range.
    """The integers of a loop, like Python's ``range``; a ``for`` over it is a loop of the graph.

    In a function decorated with ``defn``, the body of ``for i in dn.range(n)`` is traced once;
    Python's ``range`` traces it once per iteration. ``start`` and ``stop`` may be scalar integer
    tensors. ``step`` is an int other than 0.

    Raises: ``OptionError`` for a step of 0, ``DTypeError`` and ``ShapeError`` for bounds that are
        not scalar integers.

    >>> @dn.defn
    ... def factorial(n):
    ...     product = 1
    ...     for i in dn.range(1, n + 1):
    ...         product = product * i
    ...     return product
    >>> int(factorial(5))
    120
    """

    def __init__(
        self,
        start: SupportsIndex | Tensor,
        stop: SupportsIndex | Tensor | None = None,
        step: int = 1,
        /,
    ) -> None:
        self.start: Any
        self.stop: Any
        self.start, self.stop = (0, start) if stop is None else (start, stop)
        self.step = operator.index(step)
        if self.step == 0:
            raise option_error("range: the step is 0, it must be another integer")
        for bound in (self.start, self.stop):
            if not isinstance(bound, _core.Tensor):
                operator.index(bound)
            elif bound.dtype.kind not in ("signed", "unsigned"):
                raise DTypeError(
                    f"range: a bound is {bound.dtype}, it must be an integer{caller()}"
                )
            elif bound.rank != 0:
                raise ShapeError(
                    f"range: a bound has rank {bound.rank}, it must be a scalar{caller()}"
                )

    def plain(self) -> builtins.range | None:
        """Python's ``range`` if no bound is a tensor, else None."""
        if isinstance(self.start, _core.Tensor) or isinstance(self.stop, _core.Tensor):
            return None
        return builtins.range(self.start, self.stop, self.step)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the integers. A bound that is a tensor raises."""
        plain = self.plain()
        if plain is None:
            raise TraceError(
                "range: a bound is a tensor, whose value is not known; "
                f"loop over it in a function decorated with defn, or with dn.for_{caller()}"
            )
        return iter(plain)

    def __len__(self) -> int:
        plain = self.plain()
        if plain is None:
            raise TraceError(f"range: a bound is a tensor, whose value is not known{caller()}")
        return len(plain)

    def __repr__(self) -> str:
        return f"dn.range({self.start}, {self.stop}, {self.step})"


@public
def while_(
    init: Any,
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    *,
    snapshots: int | None = None,
    progress: bool | Callable[[int, int | None], object] | None = None,
) -> Any:
    """Repeat ``body(state)`` while ``cond(state)`` is nonzero, and return the last state.

    The gradient keeps some states and computes the others again. ``snapshots`` limits the number of
    states that it keeps; without it, their number grows with the trips up to some hundreds, and a
    trip is computed at most four times. Few snapshots take more time: 20 of them at most 8 times
    the loop for 10^6 trips (Griewank and Walther, 2000).

    After each iteration ``progress`` is called with the number of finished iterations and ``None``,
    because the total is unknown. ``progress=True`` prints the number to standard error, at most ten
    times a second.

    Shapes: those of the state; the body keeps them and the axis names.
    Dtypes: those of the state; the body keeps them. A Python number in the state takes the dtype
        that the body returns for it; if that is weakly typed too, it becomes s32, f32 or c64.
    Grad: through all iterations, in memory independent of their number.
    Raises: ``ContainerError`` if the body returns another structure or other types than it took,
        ``ShapeError`` unless the condition is a scalar, ``OptionError`` unless ``cond`` and
        ``body`` are functions, for ``snapshots`` that are not a positive int, and for a
        ``progress`` that is neither a bool nor a function.

    >>> int(dn.while_(1, lambda x: x < 100, lambda x: x * 2))
    128
    """
    _require_functions("while_(init, cond, body)", cond=cond, body=body)
    show = _progress("while_", progress)
    if show is None:
        return _core.while_(init, cond, body, snapshots)

    def next_state(state: tuple[Any, Any]) -> tuple[Any, Any]:
        done, inner = state[0] + 1, body(state[1])
        hook(done, lambda count: show(int(count), None))
        return done, inner

    start = _core.as_type(0, "s64")
    trips, last = _core.while_((start, init), lambda state: cond(state[1]), next_state, snapshots)
    if progress is True:
        hook(trips, lambda count: _end_progress("while_", int(count)))
    return last


@public
def for_(
    init: Any,
    over: Any,
    body: Callable[[Any, Any], Any],
    *,
    unroll: bool | int = False,
    snapshots: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Any:
    """Repeat ``state = body(state, item)`` for each item of a range or of a tensor's first axis.

    The result is the last state. ``unroll=n`` puts n iterations into the loop body; ``unroll=True``
    unrolls the whole loop. ``snapshots`` is the number of states that the gradient keeps, as in
    :func:`while_`; without it, it keeps all states of a loop of up to 4,096 trips, and those of
    more trips if they fit in 64 MiB. Else it keeps the square root of their number, and computes
    each trip once more. After each iteration ``progress`` is called with the number of finished
    iterations and their total. ``progress=True`` prints both to standard error, at most a hundred
    times.

    Shapes: those of the state; the body keeps them and the axis names. Items of a tensor lack its
        first axis.
    Dtypes: those of the state; the body keeps them. Python numbers are treated as in
        :func:`while_`. Items of a range are s32.
    Grad: through all iterations.
    Raises: ``ContainerError`` if the body returns another structure or other types than it took,
        ``OptionError`` unless ``body`` is a function, for an ``unroll`` that is neither a bool nor
        an int of at least 1, for one of more than 1 with a range whose bounds are tensors, for
        ``snapshots`` that are not a positive int, and for a ``progress`` that is neither a bool nor
        a function.

    >>> int(dn.for_(0, range(5), lambda total, i: total + i))
    10
    """
    _require_functions("for_(init, over, body)", body=body)
    show = _progress("for_", progress)
    if isinstance(over, range):
        plain = over.plain()
        if plain is None:
            if unroll is not False and (unroll is True or unroll != 1):
                raise option_error(
                    f"for_: unroll is {unroll!r} for a range with tensor bounds, "
                    "False or 1 is required"
                )
            return _for_bounds(init, over, body, show, snapshots)
        over = plain
    if show is None:
        return _core.for_(init, over, body, unroll, None, snapshots)
    tell = lambda total: lambda done: show(int(done), total)  # noqa: E731
    return _core.for_(init, over, body, unroll, tell, snapshots)


def _require_functions(call: str, **functions: Any) -> None:
    """Raise an ``OptionError`` that shows the order of arguments, unless these are functions."""
    for name, value in functions.items():
        if not callable(value):
            kind = type(value).__name__
            raise option_error(
                f"{call.partition('(')[0]}: {name} is of type {kind}, a function is required; "
                f"the order of arguments is {call}"
            )


def _progress(loop: str, progress: Any) -> Callable[[int, Any], object] | None:
    """The function that reports each iteration of a loop, or None."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return _Printed(loop)
    if not callable(progress):
        kind = type(progress).__name__
        raise option_error(f"{loop}: progress is of type {kind}, it must be a bool or a function")
    return progress


class _Printed:
    """Print the number of finished iterations: a hundred times, or ten times a second."""

    def __init__(self, loop: str) -> None:
        self._loop = loop
        self._last = 0.0

    def __call__(self, done: int, total: int | None) -> None:
        if total is None:
            now = time.monotonic()
            if now - self._last < 0.1:
                return
            self._last = now
            text, end = f"{done} trips", ""
        elif done == total or done % -(-total // 100) == 0:
            text, end = f"{done} of {total}", "\n" if done == total else ""
        else:
            return
        print(f"\r{self._loop}: {text}", end=end, file=sys.stderr, flush=True)


def _end_progress(loop: str, trips: int) -> None:
    print(f"\r{loop}: {trips} trips", file=sys.stderr, flush=True)


def _counted(bound: Any) -> Any:
    """Return a bound of a range, with narrow integers converted to s32."""
    is_narrow = isinstance(bound, _core.Tensor) and bound.dtype.bits < 32
    return _core.as_type(bound, "s32") if is_narrow else bound


def _for_bounds(
    init: Any,
    over: range,
    body: Callable[[Any, Any], Any],
    show: Callable[[int, int], object] | None,
    snapshots: int | None,
) -> Any:
    """A loop whose bounds are tensors: its trip count is known only at run time."""
    step = over.step
    # Both bounds get one dtype, which is wide enough for a step.
    bounds = _core.stack([_counted(over.start), _counted(over.stop)], 0)
    start, stop = bounds[0], bounds[1]

    def tell(counts: Any) -> None:
        if show is not None:
            show(int(counts[0]), int(counts[1]))

    def goes_on(state: tuple[Any, Any]) -> Any:
        return state[0] < stop if step > 0 else state[0] > stop

    def next_state(state: tuple[Any, Any]) -> tuple[Any, Any]:
        next_item, after = _core.as_type(state[0] + step, start.dtype), body(state[1], state[0])
        if show is not None:
            # The total is rounded up, because the last step may go beyond the bound.
            first, last, item = (_core.as_type(x, "s64") for x in (start, stop, state[0]))
            counts = ((item - first) // step + 1, -((first - last) // step))
            hook(counts, tell)
        return next_item, after

    return _core.while_((start, init), goes_on, next_state, snapshots)[1]


def for_until(
    init: Any,
    over: Any,
    body: Callable[[Any, Any], Any],
    is_over: Callable[[Any], Any],
) -> Any:
    """Like ``for_``, but stops after the first iteration whose state satisfies ``is_over``."""
    step = over.step if isinstance(over, range) else 1
    if isinstance(over, range):
        bounds = _core.stack([_counted(over.start), _counted(over.stop)], 0)
        start, stop = bounds[0], bounds[1]
    elif len(over) == 0:
        return init
    else:
        start, stop = _core.as_type(0, "s32"), _core.as_type(len(over), "s32")

    def goes_on(state: tuple[Any, Any]) -> Any:
        is_within = state[0] < stop if step > 0 else state[0] > stop
        return _core.logical_and(is_within, _core.logical_not(is_over(state[1])))

    def next_state(state: tuple[Any, Any]) -> tuple[Any, Any]:
        at, inner = state
        item = at if isinstance(over, range) else over[at]
        return _core.as_type(at + step, start.dtype), body(inner, item)

    return _core.while_((start, init), goes_on, next_state)[1]


@public
def scan(
    init: Any,
    over: Any,
    body: Callable[[Any, Any], tuple[Any, Any]],
    *,
    reverse: bool = False,
    length: int | None = None,
    snapshots: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Any:
    """Repeat ``state, output = body(state, item)``, and return the last state and all outputs.

    ``over`` is a Python ``range``, or a container of tensors that are iterated together along their
    first axes. It cannot be a ``dn.range``. With ``reverse`` the scan runs from the last item to
    the first; the outputs stay in the order of the items. ``length`` is the number of items, for a
    container without tensors: with ``over=None`` each item is ``None``. ``snapshots``
    and ``progress`` are as in :func:`for_`.

    Shapes: those of the state; the body keeps them. Outputs get a new first axis.
    Dtypes: those of the state; the body keeps them. Python numbers are treated as in
        :func:`while_`.
    Grad: through all iterations.
    Raises: ``ContainerError`` if ``over`` is a ``dn.range``, or the body does not return a pair, or
        returns a state of another structure or other types than it took, ``OptionError`` unless
        ``body`` is a function, for a ``length`` that is not the number of items, for ``snapshots``
        that are not a positive int, and for a ``progress`` that is neither a bool nor a function.

    >>> total, partial = dn.scan(0, dn.tensor([1, 2, 3]), lambda s, x: (s + x, s + x))
    >>> int(total), partial.to_list()
    (6, [1, 3, 6])
    >>> dn.scan(0, dn.tensor([1, 2, 3]), lambda s, x: (s + x, s + x), reverse=True)[1].to_list()
    [6, 5, 3]
    >>> dn.scan(1, None, lambda s, _: (s * 2, s), length=4)[1].to_list()
    [1, 2, 4, 8]
    """
    _require_functions("scan(init, over, body)", body=body)
    show = _progress("scan", progress)
    if show is None:
        return _core.scan(init, over, body, reverse, length, snapshots)
    total = _trips(over) if length is None else length

    def step(state: tuple[Any, Any], item: Any) -> tuple[Any, Any]:
        inner, out = body(state[1], item)
        done = state[0] + 1
        hook(done, lambda count: show(int(count), total))
        return (done, inner), out

    start = (_core.as_type(0, "s64"), init)
    (_, last), outs = _core.scan(start, over, step, reverse, length, snapshots)
    return last, outs


def _trips(over: Any) -> int:
    """The number of items of a range or a container, if there are any."""
    items = (over,) if isinstance(over, builtins.range) else _core.flatten_container(over)[0]
    return len(items[0]) if items else 0


@public
def associative_scan(
    function: Callable[[Any, Any], Any], elements: Any, axis: Axis = 0, *, reverse: bool = False
) -> Any:
    """The combination of the elements up to each position of an axis, in logarithmic depth.

    ``elements`` is a container of tensors. ``function(a, b)`` combines two containers of slices
    of them element by element along the axis, where ``a`` comes before ``b``. It must be
    associative: ``function(function(a, b), c)`` equals ``function(a, function(b, c))``. It is
    called about twice for each power of 2 up to the number of elements, each time with slices of
    another length. It combines less than two pairs for each element. The order of combinations
    depends on the length of the axis alone, so floats are the same for any number of threads.
    With ``reverse`` the scan runs from the last element to the first, which then comes before the
    others. If each step needs the one before, use :func:`scan`; for sums, products and extremes
    there is ``cumulative_sum`` and its like.

    Shapes: unchanged; all tensors have as many elements along the axis, which may be none. The
        function keeps the shapes. Names are kept.
    Dtypes: any; the function keeps them.
    Grad: through all combinations.
    Raises: ``ShapeError`` if the sizes along the axis differ, ``ShapeError`` or ``DTypeError`` if
        the function gives other shapes or dtypes, ``ContainerError`` if it gives another
        structure, ``AxisError`` if a tensor lacks the axis, ``OptionError`` unless ``function`` is
        a function, and for elements without tensors.

    >>> dn.associative_scan(dn.maximum, dn.tensor([2, 1, 5, 3])).to_list()
    [2, 2, 5, 5]
    >>> # The states x of x[i] = a[i] * x[i - 1] + b[i], which is 0 before the first.
    >>> def then(first, second):
    ...     return {"a": second["a"] * first["a"], "b": second["a"] * first["b"] + second["b"]}
    >>> a, b = dn.tensor([0.5, 0.5, 2.0]), dn.tensor([1.0, 1.0, 1.0])
    >>> dn.associative_scan(then, {"a": a, "b": b})["b"].to_list()
    [1.0, 1.5, 4.0]
    """
    _require_functions("associative_scan(function, elements)", function=function)
    return _associative.associative_scan(function, elements, axis, reverse)


@forwards(_core.cond)
def cond(clauses: Sequence[tuple[Any, Callable[[], Any]]], otherwise: Callable[[], Any]) -> Any:
    """Run the function of the first clause whose predicate is nonzero, else ``otherwise``.

    Shapes: every function returns the same structure; its tensors broadcast together.
    Dtypes: promoted; Python numbers are weakly typed.
    Grad: through the branch that ran; zero to the predicates.
    Raises: ``ShapeError`` unless predicates are scalars, ``ContainerError`` if structures differ.

    >>> x = dn.tensor(-3)
    >>> int(dn.cond([(x > 0, lambda: x), (x < 0, lambda: -x)], lambda: 0))
    3
    """
    ...


@forwards(_core.if_)
def if_(pred: Any, then: Any, otherwise: Any = 0) -> Any:
    """Select one of two branches, each a function or a value. See ``cond``.

    Shapes: both branches have the same structure; their tensors broadcast together.
    Dtypes: promoted; Python numbers are weakly typed.
    Grad: through the branch that ran; zero to the predicate.
    Raises: ``ShapeError`` unless the predicate is a scalar, ``ContainerError`` if structures
        differ.

    >>> int(dn.if_(dn.tensor(1), lambda: 10, lambda: 20))
    10
    """
    ...


@public
def hook(value: Any, name_or_fun: Any, fun: Callable[[Any], Any] | None = None) -> Any:
    """Pass a value to a Python function each time the program reaches it, and return the value.

    ``hook(x, print)`` calls ``print``. ``hook(x, "loss")`` has a name;
    ``jit(f, hooks={"loss": print})`` sets its function. ``hook(x, "loss", print)`` has both; a
    function set by name takes precedence. The function receives the value, which may be a
    container; its result is ignored. Hooks run in program order, once for each iteration of a loop,
    and in a branch only if it is taken. An exception in a hook stops the program.

    Shapes: unchanged.
    Dtypes: any; unchanged; a number becomes a tensor.
    Grad: ``g``; the function is not called again.
    Raises: ``OptionError`` unless a name or a function is given.

    >>> @dn.jit
    ... def double(x):
    ...     return dn.hook(x, lambda v: print("seen", float(v))) * 2
    >>> float(double(3.0))
    seen 3.0
    6.0
    """
    name = None
    if isinstance(name_or_fun, str):
        name = name_or_fun
    elif callable(name_or_fun) and fun is None:
        fun = name_or_fun
    else:
        kind = type(name_or_fun).__name__
        raise option_error(f"hook: the name is of type {kind}, a str or a function is required")
    if fun is not None and not callable(fun):
        raise option_error(f"hook: fun is of type {type(fun).__name__}, a function is required")
    return _core.hook(value, name, fun)


@forwards(hook)
def io_call(
    value: Any,
    name_or_fun: str | Callable[[Any], Any],
    fun: Callable[[Any], Any] | None = None,
) -> Any:
    """The same as :func:`hook`, under its name in Nx 0.12.

    ``hooks=`` of ``jit`` sets the functions of named hooks.

    Shapes: unchanged.
    Dtypes: any; unchanged.
    Grad: ``g``.
    Raises: as :func:`hook`.

    >>> seen = []
    >>> f = dn.jit(lambda x: dn.io_call(x + 1, "after") * 2, hooks={"after": seen.append})
    >>> float(f(1.0)), float(seen[0])
    (4.0, 2.0)
    """
    ...


@public
def print_value(
    value: Any,
    fun: Callable[[Any], Any] | None = None,
    *,
    label: str | None = None,
) -> Any:
    """Print a value each time the program reaches it, and return the value.

    ``fun`` maps the value before it is printed. ``label`` is printed in front of it.

    Shapes: unchanged.
    Dtypes: any; unchanged; a number becomes a tensor.
    Grad: ``g``; nothing is printed again.
    Raises: ``OptionError`` unless ``fun`` is a function.

    >>> @dn.jit
    ... def double(x):
    ...     return dn.print_value(x, dn.sum, label="sum") * 2
    >>> double(dn.tensor([1, 2])).to_list()
    sum: 3
    [2, 4]
    """
    if fun is not None and not callable(fun):
        raise option_error(
            f"print_value: fun is of type {type(fun).__name__}, it must be a function"
        )

    def show(shown: Any) -> None:
        print(shown if label is None else f"{label}: {shown}")

    if fun is None:
        return hook(value, show)
    hook(fun(value), show)
    return value


@forwards(_core.mark)
def mark(value: Any, name: str) -> Any:
    """Name a value, so that the graph can be split and read at that name.

    Shapes: unchanged.
    Dtypes: any; unchanged.
    Grad: ``g``.
    Raises: ``ContainerError`` for a value that is neither a tensor nor a container.

    >>> float(dn.mark(2.0, "loss"))
    2.0
    """
    ...


@public
def print_expr(value: Any) -> Any:
    """Print the expression of a value while it is traced, and return the value.

    Shapes: unchanged.
    Dtypes: any; unchanged.
    Grad: ``g``.
    Raises: no specific errors.

    >>> @dn.jit
    ... def double(x):
    ...     return dn.print_expr(x + x)
    >>> float(double(2.0))
    Tensor<
      f32
    <BLANKLINE>
      parameter a:0   f32
      b = add a, a    f32
    >
    4.0
    """
    print(value)
    return value
