"""Initial value problems of ordinary differential equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from defn import _core
from defn._public import public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from defn.typing import TensorLike

__all__ = ["OdeSolution", "odeint"]


class OdeSolution(NamedTuple):
    """What :func:`odeint` returns, a container of tensors.

    >>> solution = dn.odeint(lambda t, y: y**2, 1.0, dn.tensor([0.0, 0.5, 2.0]))
    >>> int(solution.status), bool(dn.is_nan(solution.ys[2])), round(solution.t_reached.item(), 2)
    (2, True, 1.0)
    """

    ys: Any
    """The unknowns at the times, along a new first axis; NaN at times that were not reached."""
    status: Any
    """0 if all times were reached; 1 after ``max_steps`` steps; 2 where steps became too short to
    change the time, as for stiff problems and where values are not finite; 3 for times that are not
    in order; 4 where an event ended the solution."""
    t_reached: Any
    """The time that was reached."""
    steps: Any
    """The number of accepted steps."""
    rejected: Any
    """The number of rejected steps."""
    t_event: Any = None
    """The time of the event, NaN where there was none; None without ``event``."""
    y_event: Any = None
    """The unknowns at the event; None without ``event``."""

    def check(self) -> Self:
        """This solution; an error that says where it stopped before an event or the last time.

        Raises: ``ConvergenceError`` for another status than 0 and 4, of any position of vectorized
            axes.

        >>> dn.odeint(lambda t, y: -y, 1.0, dn.tensor([0.0, 1.0])).check().ys.shape
        (2,)
        """
        status, times = (_core.to_tensor(part) for part in (self.status, self.t_reached))
        _core.require_reached(status.to_flat_list(), times.to_flat_list())
        return self


@public
def odeint(
    f: Callable[..., Any],
    y0: Any,
    ts: TensorLike | Sequence[float],
    /,
    *args: Any,
    event: Callable[..., Any] | None = None,
    method: Literal["tsit5", "dopri5"] = "tsit5",
    rtol: float | None = None,
    atol: float | None = None,
    max_steps: int = 4096,
    first_step: float | None = None,
    gradient: Literal["direct", "adjoint"] = "direct",
    snapshots: int | None = None,
) -> OdeSolution:
    """The solution of ``dy/dt = f(t, y, *args)`` with ``y = y0`` at the first of the times ``ts``.

    ``y0`` is a container, and ``f`` returns slopes in a container like it. The methods are explicit
    Runge-Kutta pairs of order 5(4), of Tsitouras (2011) and of Dormand and Prince (1980). A step is
    so long that its estimated error is at most ``atol + rtol * abs(y)``, on average over the
    elements; by default ``rtol`` is 1e-6 for f64 and 1e-4 for f32, ``atol`` a hundredth of it.
    Values at the times are those of dense output of order 4: times determine no steps, and ``f`` is
    not called beyond the last one. Times may descend.

    A solution that stops before the last time has NaN at the times that it did not reach.
    ``status`` says why, ``t_reached`` where, and :meth:`OdeSolution.check` raises an error.

    ``event(t, y, *args)`` returns a number, or a container of numbers. The first time at which one
    of them changes its sign ends the solution: ``t_event`` and ``y_event`` say when and where, and
    the unknowns are NaN at later times. A sign is looked at after each step, so that two changes
    within a step are not seen. The time is found on the dense output by bisection.

    Shapes: ``ts`` is a vector, or a list of numbers, which are f64; ``ys`` has its size as a new
        first axis. With vectorized axes each position has steps of its own.
    Dtypes: ``y0`` keeps its dtypes, integers become f32; computed in at least f32.
    Grad: to ``y0``, ``ts``, ``args`` and what ``f`` captures. ``gradient="direct"``: that of the
        steps that were taken, whose lengths count as constants, in both modes and of any order;
        ``snapshots`` bounds the states that reverse mode keeps, as in :func:`while_`.
        ``gradient="adjoint"``: by the adjoint equation, solved from the last time to the first
        (Chen et al., "Neural ordinary differential equations", 2018), in reverse mode, to the
        tolerances; it keeps the unknowns at the times only. The time of an event has the derivative
        of an implicit function, with ``gradient="direct"``.
    Raises: ``ShapeError`` for times that are not a vector and for slopes of another shape,
        ``ContainerError`` for slopes of another structure, ``OptionError`` for options out of
        range, ``TraceError`` for complex unknowns, and functions that use vectorized values, with
        ``gradient="adjoint"``.

    >>> ts = dn.tensor([0.0, 0.5, 1.0])
    >>> solution = dn.odeint(lambda t, y, rate: -rate * y, 1.0, ts, 2.0)
    >>> [round(y, 3) for y in solution.ys.to_list()]
    [1.0, 0.368, 0.135]
    >>> def end(rate):
    ...     ts = dn.tensor([0.0, 1.0])
    ...     return dn.odeint(lambda t, y: -rate * y, 1.0, ts).ys[-1]
    >>> round(dn.grad(end)(2.0).item(), 3)
    -0.135
    >>> def fall(t, y):
    ...     return {"height": y["speed"], "speed": -9.81}
    >>> start = {"height": 1.0, "speed": 0.0}
    >>> solution = dn.odeint(fall, start, [0.0, 1.0], event=lambda t, y: y["height"])
    >>> int(solution.status), round(solution.t_event.item(), 3)
    (4, 0.452)
    """

    def with_args(function: Any) -> Any:
        if not args or not callable(function):
            return function
        return lambda t, y: function(t, y, *args)

    # Plain numbers as they are: rounded to f32 they would be other times.
    times = np.array(ts, np.float64) if isinstance(ts, (list, tuple)) else ts
    options = (method, rtol, atol, max_steps, first_step, gradient, snapshots)
    return OdeSolution(*_core.odeint(with_args(f), with_args(event), y0, times, *options))
