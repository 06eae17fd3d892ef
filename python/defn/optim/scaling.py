"""Transformations of single leaves: factors, limits, decay, and what the known methods remember."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

from defn import _core
from defn._names import option_error
from defn._public import public
from defn._tree_arithmetic import norm
from defn._tree_arithmetic import scale as _scaled
from defn._tree_paths import each
from defn.errors import OptionError
from defn.optim.transformation import GradientTransformation, masked

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from defn._core import Tensor
    from defn.typing import DTypeLike, TensorLike

    Schedule: TypeAlias = Callable[[Any], TensorLike]

__all__ = [
    "AdamState",
    "LionState",
    "RmsState",
    "ScheduleState",
    "TraceState",
    "add_decayed_weights",
    "clip",
    "clip_by_global_norm",
    "scale",
    "scale_by_adam",
    "scale_by_learning_rate",
    "scale_by_lion",
    "scale_by_rms",
    "scale_by_schedule",
    "trace",
]

_LAST = 2**31 - 1


class ScheduleState(NamedTuple):
    """The state of :func:`scale_by_schedule`."""

    count: Any
    """The number of steps, an s32 that stays at its greatest value."""


class TraceState(NamedTuple):
    """The state of :func:`trace`."""

    trace: Any
    """The decaying sums of updates, as the parameters."""


class AdamState(NamedTuple):
    """The state of :func:`scale_by_adam`."""

    count: Any
    """The number of steps, an s32 that stays at its greatest value."""
    mu: Any
    """The moving averages of gradients, as the parameters."""
    nu: Any
    """The moving averages of their squares."""


class RmsState(NamedTuple):
    """The state of :func:`scale_by_rms`."""

    nu: Any
    """The moving averages of squares of gradients, as the parameters."""


class LionState(NamedTuple):
    """The state of :func:`scale_by_lion`."""

    mu: Any
    """The moving averages of gradients, as the parameters."""


@public
def scale(factor: TensorLike, /) -> GradientTransformation:
    """Updates times a factor.

    >>> dn.optim.scale(0.5).update(dn.tensor([2.0, 4.0]), (), None)[0].to_list()
    [1.0, 2.0]
    """
    return GradientTransformation(
        lambda _: (), lambda updates, state, _=None: (_scaled(factor, updates), state)
    )


@public
def scale_by_schedule(schedule: Schedule, /) -> GradientTransformation:
    """Updates times the value of a schedule, a function of the number of steps done.

    >>> halves = dn.optim.scale_by_schedule(lambda count: 0.5**count)
    >>> state = halves.init(dn.tensor(0.0))
    >>> for _ in range(3):
    ...     updates, state = halves.update(dn.tensor(8.0), state, None)
    >>> float(updates), int(state.count)
    (2.0, 3)
    """
    if not callable(schedule):
        raise option_error(
            f"scale_by_schedule: schedule is {schedule!r}, it must be a function of the count"
        )

    def update(updates: Any, state: ScheduleState, _: Any = None) -> tuple[Any, ScheduleState]:
        return _scaled(schedule(state.count), updates), ScheduleState(next_count(state.count))

    return GradientTransformation(lambda _: ScheduleState(_core.as_type(0, "s32")), update)


@public
def scale_by_learning_rate(
    learning_rate: TensorLike | Schedule, /, *, flip_sign: bool = True
) -> GradientTransformation:
    """Updates times a learning rate, or times the value of a schedule; with the sign of descent.

    ``flip_sign=False`` keeps the sign, for ascent.

    >>> dn.optim.scale_by_learning_rate(0.5).update(dn.tensor(2.0), (), None)[0].item()
    -1.0
    """
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: _core.multiply(learning_rate(count), sign))
    if isinstance(learning_rate, numbers.Real):
        return scale(sign * float(learning_rate))
    return scale(_core.multiply(learning_rate, sign))


@public
def clip(limit: float, /) -> GradientTransformation:
    """Elements limited to the range from ``-limit`` to ``limit``.

    Raises: ``OptionError`` for a limit that is not positive.

    >>> dn.optim.clip(1.0).update(dn.tensor([-3.0, 0.5]), (), None)[0].to_list()
    [-1.0, 0.5]
    """
    limit = positive("clip", "limit", limit)

    def update(updates: Any, state: Any, _: Any = None) -> tuple[Any, Any]:
        return each("clip", ("updates",), lambda x: _core.clip(x, -limit, limit), updates), state

    return GradientTransformation(lambda _: (), update)


@public
def clip_by_global_norm(max_norm: float, /) -> GradientTransformation:
    """Updates scaled so that the norm of all together is at most ``max_norm``.

    The norm is the root of the sum of squares over all elements of all leaves, summed in at least
    f32. Pascanu, Mikolov & Bengio, "On the difficulty of training recurrent neural networks"
    (2012).

    Raises: ``OptionError`` for a norm that is not positive.

    >>> clipped = dn.optim.clip_by_global_norm(1.0)
    >>> updates, _ = clipped.update({"a": dn.tensor(3.0), "b": dn.tensor(4.0)}, (), None)
    >>> [round(float(x), 6) for x in updates.values()]
    [0.6, 0.8]
    """
    max_norm = positive("clip_by_global_norm", "max_norm", max_norm)

    def update(updates: Any, state: Any, _: Any = None) -> tuple[Any, Any]:
        length = norm(updates)
        factor = _core.select(_core.less(length, max_norm), 1.0, _core.divide(max_norm, length))
        return _scaled(factor, updates), state

    return GradientTransformation(lambda _: (), update)


@public
def add_decayed_weights(
    weight_decay: float, /, *, mask: Any | Callable[[Any], Any] = None
) -> GradientTransformation:
    """Updates plus ``weight_decay`` times the parameters, for the leaves that a mask selects.

    ``mask`` is as in :func:`masked`. Loshchilov & Hutter, "Decoupled weight decay regularization"
    (2017).

    Raises: ``OptionError`` for a decay that is negative, and where ``update`` is called without the
        parameters.

    >>> decay = dn.optim.add_decayed_weights(0.5)
    >>> decay.update(dn.tensor(1.0), decay.init(dn.tensor(4.0)), dn.tensor(4.0))[0].item()
    3.0
    """
    weight_decay = _number("add_decayed_weights", "weight_decay", weight_decay)
    if not weight_decay >= 0:
        raise _refused("add_decayed_weights", "weight_decay", weight_decay, "0 or more")

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if params is None:
            raise option_error("add_decayed_weights: update needs the parameters; pass params")

        def decayed(update: Any, param: Any) -> Any:
            return _core.momentum(update, param, weight_decay)

        names = ("the updates", "the parameters")
        return each("add_decayed_weights", names, decayed, updates, params), state

    made = GradientTransformation(lambda _: (), update)
    return made if mask is None else masked(made, mask)


@public
def trace(
    decay: float, /, *, nesterov: bool = False, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformation:
    """Momentum: ``trace = update + decay * trace``.

    With ``nesterov=True`` the result is ``update + decay * trace``. Polyak, "Some methods of
    speeding up the convergence of iteration methods" (1964); Nesterov (1983); Sutskever et al., "On
    the importance of initialization and momentum in deep learning" (2013).

    Raises: ``OptionError`` for a decay that is not in ``[0, 1)``.

    >>> momentum = dn.optim.trace(0.5)
    >>> state = momentum.init(dn.tensor(0.0))
    >>> for _ in range(3):
    ...     updates, state = momentum.update(dn.tensor(1.0), state, None)
    >>> float(updates)
    1.75
    """
    decay = fraction("trace", "decay", decay)

    def summed(update: Any, trace: Any) -> Any:
        return _core.momentum(update, trace, decay)

    def update(updates: Any, state: TraceState, _: Any = None) -> tuple[Any, TraceState]:
        names = ("the updates", "the state")
        moved = each("trace", names, summed, updates, state.trace)
        kept = _as_state("trace", moved, state.trace)
        if nesterov:
            moved = each("trace", names, summed, updates, moved)
        return moved, TraceState(kept)

    return GradientTransformation(
        lambda params: TraceState(zeros("trace", params, accumulator_dtype)), update
    )


@public
def scale_by_adam(
    *,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    mu_dtype: DTypeLike | None = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """The directions of Adam: moving averages of gradients over the roots of those of squares.

    Both averages count as if they had not begun with zeros. With ``nesterov=True`` the average
    looks a step ahead. ``mu_dtype`` is the dtype in which the averages of gradients are kept.
    Kingma & Ba, "Adam: a method for stochastic optimization" (2014); Dozat, "Incorporating Nesterov
    momentum into Adam" (2016).

    Dtypes: those of the parameters and the updates, promoted; computed in at least f32.
    Raises: ``OptionError`` for decays that are not in ``[0, 1)`` and for a negative ``eps``. When
        it is called, ``ContainerError`` and ``ShapeError`` for the state of other parameters.

    >>> adam = dn.optim.scale_by_adam()
    >>> gradients = dn.tensor([3.0, -0.5])
    >>> directions, state = adam.update(gradients, adam.init(gradients), None)
    >>> [round(x, 6) for x in directions.to_list()]
    [1.0, -1.0]
    """
    op = "scale_by_adam"
    b1, b2 = fraction(op, "b1", b1), fraction(op, "b2", b2)
    eps, eps_root = _not_negative(op, "eps", eps), _not_negative(op, "eps_root", eps_root)

    def init(params: Any) -> AdamState:
        squares = each(op, ("the parameters",), _zero_square, params)
        return AdamState(_core.as_type(0, "s32"), zeros(op, params, mu_dtype), squares)

    def update(updates: Any, state: AdamState, _: Any = None) -> tuple[Any, AdamState]:
        names = ("the updates", "the state")
        count = next_count(state.count)
        # What looks ahead has divided by the sum of the weights.
        weighted = 0.0 if nesterov else b1

        def mean(update: Any, mu: Any) -> Any:
            return _core.moving_mean(update, mu, b1)

        def square(update: Any, nu: Any) -> Any:
            return _core.moving_square(update, nu, b2)

        def direction(mu: Any, nu: Any) -> Any:
            return _core.adam_direction(mu, nu, count, weighted, b2, eps, eps_root)

        def ahead(update: Any, mu: Any) -> Any:
            return _core.adam_ahead(update, mu, count, b1)

        mu = each(op, names, mean, updates, state.mu)
        nu = each(op, names, square, updates, state.nu)
        moved = each(op, names, ahead, updates, mu) if nesterov else mu
        moved = each(op, names, direction, moved, nu)
        kept = (_as_state(op, new, old) for new, old in ((mu, state.mu), (nu, state.nu)))
        return moved, AdamState(count, *kept)

    return GradientTransformation(init, update)


@public
def scale_by_rms(
    *,
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    eps_in_sqrt: bool = True,
) -> GradientTransformation:
    """Updates over the root of the moving average of their squares.

    ``eps`` is added to the average, and with ``eps_in_sqrt=False`` to the root. The average begins
    with ``initial_scale``. Tieleman & Hinton, "Lecture 6.5: rmsprop" (2012).

    Dtypes: those of the parameters and the updates, promoted; computed in at least f32.
    Raises: as :func:`scale_by_adam`.

    >>> rms = dn.optim.scale_by_rms(decay=0.75, eps=0.0)
    >>> rms.update(dn.tensor([3.0, -0.01]), rms.init(dn.tensor([0.0, 0.0])), None)[0].to_list()
    [2.0, -2.0]
    """
    op = "scale_by_rms"
    decay, eps = fraction(op, "decay", decay), _not_negative(op, "eps", eps)

    def init(params: Any) -> RmsState:
        def begun(param: Any) -> Any:
            return _core.add(_zero_square(param), initial_scale)

        return RmsState(each(op, ("the parameters",), begun, params))

    def update(updates: Any, state: RmsState, _: Any = None) -> tuple[Any, RmsState]:
        def square(update: Any, nu: Any) -> Any:
            return _core.moving_square(update, nu, decay)

        def direction(update: Any, nu: Any) -> Any:
            return _core.rms_direction(update, nu, eps, eps_in_sqrt)

        names = ("the updates", "the state")
        nu = each(op, names, square, updates, state.nu)
        moved = each(op, names, direction, updates, nu)
        return moved, RmsState(_as_state(op, nu, state.nu))

    return GradientTransformation(init, update)


@public
def scale_by_lion(
    *, b1: float = 0.9, b2: float = 0.99, mu_dtype: DTypeLike | None = None
) -> GradientTransformation:
    """The signs of moving averages of gradients.

    The average whose sign is taken has the decay ``b1``, the one that is kept ``b2``. Chen et al.,
    "Symbolic discovery of optimization algorithms" (2023).

    Raises: as :func:`scale_by_adam`.

    >>> lion = dn.optim.scale_by_lion()
    >>> lion.update(dn.tensor([3.0, -0.01]), lion.init(dn.tensor([0.0, 0.0])), None)[0].to_list()
    [1.0, -1.0]
    """
    op = "scale_by_lion"
    b1, b2 = fraction(op, "b1", b1), fraction(op, "b2", b2)

    def update(updates: Any, state: LionState, _: Any = None) -> tuple[Any, LionState]:
        def sign(update: Any, mu: Any) -> Any:
            return _core.sign(_core.moving_mean(update, mu, b1))

        def mean(update: Any, mu: Any) -> Any:
            return _core.moving_mean(update, mu, b2)

        names = ("the updates", "the state")
        mu = each(op, names, mean, updates, state.mu)
        moved = each(op, names, sign, updates, state.mu)
        return moved, LionState(_as_state(op, mu, state.mu))

    return GradientTransformation(lambda params: LionState(zeros(op, params, mu_dtype)), update)


def next_count(count: Any) -> Tensor:
    """One more, which stays at the greatest s32."""
    return _core.add(_core.min(count, _LAST - 1), 1)


def zeros(op: str, params: Any, dtype: DTypeLike | None = None) -> Any:
    """Zeros like the parameters, in a dtype or their own; f32 for integers."""

    def zero(param: Any) -> Any:
        param = _float(param)
        return _core.fill(param, 0, param.dtype if dtype is None else dtype)

    return each(op, ("the parameters",), zero, params)


def _zero_square(param: Any) -> Any:
    """Zeros for averages of squares, which are real."""
    param = _float(param)
    return _core.fill(
        param, 0, param.dtype if param.dtype.kind != "complex" else _core.real(param).dtype
    )


def _float(param: Any) -> Tensor:
    param = _core.to_tensor(param)
    return param if param.dtype.kind in {"float", "complex"} else _core.as_type(param, "f32")


def _as_state(op: str, new: Any, old: Any) -> Any:
    """The next state in the dtypes of the last, so that it can be the state of a loop."""

    def kept(new: Any, old: Any) -> Any:
        return _core.as_type(new, _core.to_tensor(old).dtype)

    return each(op, ("the updates", "the state"), kept, new, old)


def _number(op: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _refused(op, name, value, "a number")
    return float(value)


def positive(op: str, name: str, value: Any) -> float:
    """The number; an error unless it is positive."""
    number = _number(op, name, value)
    if not number > 0:
        raise _refused(op, name, value, "a positive number")
    return number


def fraction(op: str, name: str, value: Any) -> float:
    """The number; an error unless it is in ``[0, 1)``."""
    number = _number(op, name, value)
    if not 0 <= number < 1:
        raise _refused(op, name, value, "at least 0 and less than 1")
    return number


def _not_negative(op: str, name: str, value: Any) -> float:
    number = _number(op, name, value)
    if not number >= 0:
        raise _refused(op, name, value, "0 or more")
    return number


def _refused(op: str, name: str, value: Any, required: str) -> OptionError:
    return option_error(f"{op}: {name} is {value!r}, it must be {required}")
