"""Initial value problems of ordinary differential equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from defn import _core
from defn._public import public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from defn._core import Tensor
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
    in order."""
    t_reached: Any
    """The time that was reached."""
    steps: Any
    """The number of accepted steps."""
    rejected: Any
    """The number of rejected steps."""

    def check(self) -> Self:
        """This solution; an error that says where it stopped, unless all times were reached.

        Raises: ``ConvergenceError`` for another status than 0, of any position of vectorized axes.

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

    Shapes: ``ts`` is a vector, or a list of numbers, which are f64; ``ys`` has its size as a new
        first axis. With vectorized axes each position has steps of its own.
    Dtypes: ``y0`` keeps its dtypes, integers become f32; computed in at least f32.
    Grad: to ``y0``, ``ts``, ``args`` and what ``f`` captures. ``gradient="direct"``: that of the
        steps that were taken, whose lengths count as constants, in both modes and of any order;
        ``snapshots`` bounds the states that reverse mode keeps, as in :func:`while_`.
        ``gradient="adjoint"``: by the adjoint equation, solved from the last time to the first
        (Chen et al., "Neural ordinary differential equations", 2018), in reverse mode, to the
        tolerances; it keeps the unknowns at the times only.
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
    """

    def slopes(t: Tensor, y: Any) -> Any:
        return f(t, y, *args)

    target = slopes if args else f
    # Plain numbers as they are: rounded to f32 they would be other times.
    times = np.array(ts, np.float64) if isinstance(ts, (list, tuple)) else ts
    return OdeSolution(
        *_core.odeint(
            target, y0, times, method, rtol, atol, max_steps, first_step, gradient, snapshots
        )
    )
