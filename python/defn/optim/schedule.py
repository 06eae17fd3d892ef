"""Schedules: functions of the number of steps done, for learning rates and other factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from defn import _core
from defn._names import option_error
from defn._public import public
from defn.optim.scaling import positive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from defn._core import Tensor
    from defn.optim.scaling import Schedule

__all__ = [
    "constant_schedule",
    "cosine_decay_schedule",
    "exponential_decay",
    "join_schedules",
    "linear_schedule",
    "piecewise_constant_schedule",
    "warmup_cosine_decay_schedule",
]


@public
def constant_schedule(value: float, /) -> Schedule:
    """The same value at each step.

    >>> float(dn.optim.constant_schedule(0.5)(7))
    0.5
    """
    return lambda _: _core.as_type(value, "f32")


@public
def linear_schedule(
    init_value: float, end_value: float, transition_steps: int, /, *, transition_begin: int = 0
) -> Schedule:
    """A line from ``init_value`` to ``end_value`` over ``transition_steps`` steps; both stay.

    The line begins after ``transition_begin`` steps.

    Raises: ``OptionError`` for a number of steps that is not positive.

    >>> schedule = dn.optim.linear_schedule(1.0, 0.0, 4)
    >>> [float(schedule(count)) for count in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    steps = positive("linear_schedule", "transition_steps", transition_steps)

    def value(count: Any) -> Tensor:
        done = _done(count, transition_begin, steps)
        left = _core.subtract(1.0, _core.divide(done, steps))
        return _core.add(_core.multiply(left, init_value - end_value), end_value)

    return value


@public
def cosine_decay_schedule(
    init_value: float, decay_steps: int, /, *, alpha: float = 0.0, exponent: float = 1.0
) -> Schedule:
    """Half a period of a cosine, from ``init_value`` to ``alpha * init_value``, which stays.

    The cosine is taken to the power ``exponent``. Loshchilov & Hutter, "SGDR: stochastic gradient
    descent with warm restarts" (2016).

    Raises: ``OptionError`` for a number of steps that is not positive.

    >>> schedule = dn.optim.cosine_decay_schedule(1.0, 4)
    >>> [round(float(schedule(count)), 6) for count in (0, 2, 4, 9)]
    [1.0, 0.5, 0.0, 0.0]
    """
    steps = positive("cosine_decay_schedule", "decay_steps", decay_steps)

    def value(count: Any) -> Tensor:
        angle = _core.multiply(_done(count, 0, steps), math.pi / steps)
        share = _core.multiply(_core.add(_core.cos(angle), 1.0), 0.5)
        if exponent != 1.0:
            share = _core.pow(share, exponent)
        return _core.multiply(_core.add(_core.multiply(share, 1 - alpha), alpha), init_value)

    return value


@public
def warmup_cosine_decay_schedule(
    init_value: float,
    peak_value: float,
    warmup_steps: int,
    decay_steps: int,
    /,
    *,
    end_value: float = 0.0,
    exponent: float = 1.0,
) -> Schedule:
    """A line from ``init_value`` to ``peak_value``, then a cosine to ``end_value``, which stays.

    ``decay_steps`` counts the steps of both.

    Raises: ``OptionError`` for numbers of steps that are not positive, and where the line takes all
        of them.

    >>> schedule = dn.optim.warmup_cosine_decay_schedule(0.0, 1.0, 2, 6)
    >>> [round(float(schedule(count)), 6) for count in (0, 1, 2, 4, 6, 9)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    op = "warmup_cosine_decay_schedule"
    positive(op, "warmup_steps", warmup_steps)
    if not decay_steps > warmup_steps:
        raise option_error(
            f"{op}: decay_steps is {decay_steps!r}, it must be more than warmup_steps, which is "
            f"{warmup_steps!r}"
        )
    alpha = end_value / peak_value if peak_value else 0.0
    line = linear_schedule(init_value, peak_value, warmup_steps)
    cosine = cosine_decay_schedule(
        peak_value, decay_steps - warmup_steps, alpha=alpha, exponent=exponent
    )
    return join_schedules([line, cosine], [warmup_steps])


@public
def exponential_decay(
    init_value: float,
    transition_steps: int,
    decay_rate: float,
    /,
    *,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """``init_value * decay_rate ** (count / transition_steps)``.

    Steps count from ``transition_begin``; with ``staircase=True`` the quotient is rounded down. The
    value does not go beyond ``end_value``.

    Raises: ``OptionError`` for a number of steps or a rate that is not positive.

    >>> schedule = dn.optim.exponential_decay(1.0, 2, 0.25, end_value=0.1)
    >>> [round(float(schedule(count)), 6) for count in (0, 1, 2, 9)]
    [1.0, 0.5, 0.25, 0.1]
    """
    steps = positive("exponential_decay", "transition_steps", transition_steps)
    rate = positive("exponential_decay", "decay_rate", decay_rate)

    def value(count: Any) -> Tensor:
        power = _core.divide(_done(count, transition_begin, None), steps)
        if staircase:
            power = _core.floor(power)
        decayed = _core.multiply(_core.exp(_core.multiply(power, math.log(rate))), init_value)
        if end_value is None:
            return decayed
        return (_core.max if rate < 1 else _core.min)(decayed, end_value)

    return value


@public
def piecewise_constant_schedule(
    init_value: float, boundaries_and_scales: Mapping[int, float], /
) -> Schedule:
    """A value that is multiplied by a factor at each of some numbers of steps.

    Raises: ``OptionError`` for a factor that is negative.

    >>> schedule = dn.optim.piecewise_constant_schedule(1.0, {2: 0.5, 4: 0.5})
    >>> [float(schedule(count)) for count in (0, 1, 2, 3, 4, 9)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """
    for boundary, factor in boundaries_and_scales.items():
        if not factor >= 0:
            raise option_error(
                f"piecewise_constant_schedule: the factor at {boundary!r} is {factor!r}, it must "
                "be 0 or more"
            )

    def value(count: Any) -> Tensor:
        result = _core.as_type(init_value, "f32")
        for boundary, factor in sorted(boundaries_and_scales.items()):
            factor = _core.select(_core.less(count, boundary), 1.0, factor)
            result = _core.multiply(result, factor)
        return result

    return value


@public
def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int], /) -> Schedule:
    """Schedules one after another; each counts from the boundary at which it begins.

    Raises: ``OptionError`` unless there is one boundary fewer than schedules, and unless they
        ascend.

    >>> parts = [dn.optim.linear_schedule(0.0, 1.0, 2), dn.optim.constant_schedule(0.5)]
    >>> schedule = dn.optim.join_schedules(parts, [2])
    >>> [float(schedule(count)) for count in (0, 1, 2, 3)]
    [0.0, 0.5, 0.5, 0.5]
    """
    if len(boundaries) != len(schedules) - 1:
        raise option_error(
            f"join_schedules: there are {len(schedules)} schedules and {len(boundaries)} "
            "boundaries, one boundary is required between each two schedules"
        )
    if list(boundaries) != sorted(boundaries):
        raise option_error(f"join_schedules: boundaries is {boundaries!r}, it must ascend")

    def value(count: Any) -> Any:
        result = schedules[0](count)
        for boundary, schedule in zip(boundaries, schedules[1:], strict=True):
            later = schedule(_core.subtract(count, boundary))
            result = _core.select(_core.less(count, boundary), result, later)
        return result

    return value


def _done(count: Any, begin: int, steps: float | None) -> Tensor:
    """The steps since the beginning of a schedule, not more than it has, as a float."""
    done = _core.max(_core.subtract(count, begin), 0)
    if steps is not None:
        done = _core.min(done, steps)
    return _core.as_type(done, "f32")
