"""Transformations that decide whether another one makes a step."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from defn import _core
from defn._names import option_error
from defn._public import public
from defn._tree_paths import each
from defn.control import if_
from defn.optim.scaling import next_count, zeros
from defn.optim.transformation import GradientTransformation, require_transformation

if TYPE_CHECKING:
    pass

__all__ = ["AccumulateState", "FiniteState", "accumulate", "apply_if_finite"]


class AccumulateState(NamedTuple):
    """The state of :func:`accumulate`."""

    mini_step: Any
    """The number of gradients since the last step, an s32."""
    gradient_step: Any
    """The number of steps, an s32 that stays at its greatest value."""
    mean: Any
    """The mean of the gradients since the last step."""
    inner: Any
    """The state of the inner transformation."""


class FiniteState(NamedTuple):
    """The state of :func:`apply_if_finite`."""

    not_finite: Any
    """How many updates in a row were not finite, an s32."""
    total_not_finite: Any
    """How many updates were not finite at all, an s32 that stays at its greatest value."""
    inner: Any
    """The state of the inner transformation."""


@public
def accumulate(inner: GradientTransformation, every: int, /) -> GradientTransformation:
    """A transformation of the mean of ``every`` gradients; in between, the updates are zeros.

    So a batch that does not fit into memory is passed in parts.

    Raises: ``OptionError`` for a number that is not positive.

    >>> optimizer = dn.optim.accumulate(dn.optim.sgd(0.5), 2)
    >>> state = optimizer.init(dn.tensor(0.0))
    >>> for gradient in (1.0, 3.0):
    ...     updates, state = optimizer.update(dn.tensor(gradient), state, None)
    ...     print(float(updates))
    0.0
    -1.0
    """
    require_transformation("accumulate", "inner", inner)
    every = _count("accumulate", "every", every)

    def init(params: Any) -> AccumulateState:
        zero = _core.as_type(0, "s32")
        return AccumulateState(zero, zero, zeros("accumulate", params), inner.init(params))

    def update(updates: Any, state: AccumulateState, params: Any = None) -> tuple[Any, Any]:
        number = _core.add(state.mini_step, 1)

        def mixed(update: Any, mean: Any) -> Any:
            mean = _core.to_tensor(mean)
            step = _core.divide(_core.subtract(update, mean), number)
            return _core.as_type(_core.add(mean, step), mean.dtype)

        mean = each("accumulate", ("the updates", "the state"), mixed, updates, state.mean)

        def stepped() -> tuple[Any, AccumulateState]:
            moved, own = inner.update(mean, state.inner, params)
            zero, steps = _core.as_type(0, "s32"), next_count(state.gradient_step)
            return moved, AccumulateState(zero, steps, zeros("accumulate", mean), own)

        def waited() -> tuple[Any, AccumulateState]:
            kept = AccumulateState(number, state.gradient_step, mean, state.inner)
            return zeros("accumulate", mean), kept

        return if_(_core.equal(number, every), stepped, waited)

    return GradientTransformation(init, update)


@public
def apply_if_finite(
    inner: GradientTransformation, max_consecutive: int, /
) -> GradientTransformation:
    """A transformation that leaves out updates with NaN or infinite elements.

    Then the updates are zeros and the inner state stays. After more than ``max_consecutive`` such
    updates in a row they are applied nevertheless, so that the failure shows.

    Raises: ``OptionError`` for a number that is negative.

    >>> optimizer = dn.optim.apply_if_finite(dn.optim.sgd(0.5), 5)
    >>> state = optimizer.init(dn.tensor([0.0, 0.0]))
    >>> updates, state = optimizer.update(dn.tensor([1.0, float("nan")]), state, None)
    >>> updates.to_list(), int(state.total_not_finite)
    ([0.0, 0.0], 1)
    """
    require_transformation("apply_if_finite", "inner", inner)
    limit = _count("apply_if_finite", "max_consecutive", max_consecutive, least=0)

    def init(params: Any) -> FiniteState:
        zero = _core.as_type(0, "s32")
        return FiniteState(zero, zero, inner.init(params))

    def update(updates: Any, state: FiniteState, params: Any = None) -> tuple[Any, Any]:
        finite: Any = True
        for row in _core.corresponding_leaves("apply_if_finite", ("the updates",), updates)[0]:
            finite = _core.logical_and(finite, _core.all(_core.isfinite(row[0]), None, False))
        in_a_row = _core.select(finite, 0, next_count(state.not_finite))
        total = _core.select(finite, state.total_not_finite, next_count(state.total_not_finite))

        def applied() -> tuple[Any, Any]:
            return inner.update(updates, state.inner, params)

        def left_out() -> tuple[Any, Any]:
            return zeros("apply_if_finite", updates), state.inner

        apply = _core.logical_or(finite, _core.greater(in_a_row, limit))
        moved, own = if_(apply, applied, left_out)
        return moved, FiniteState(in_a_row, total, own)

    return GradientTransformation(init, update)


def _count(op: str, name: str, value: Any, least: int = 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < least or isinstance(value, bool):
        raise option_error(f"{op}: {name} is {value!r}, it must be an integer from {least} on")
    return number
