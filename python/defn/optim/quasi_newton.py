"""L-BFGS as a transformation of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from defn import _core
from defn._names import caller, option_error
from defn._public import public
from defn.errors import ContainerError
from defn.optim.transformation import GradientTransformation, described

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn.typing import TensorLike

__all__ = ["LbfgsState", "lbfgs"]


class LbfgsState(NamedTuple):
    """The state of :func:`lbfgs`: vectors of all ``n`` parameters, one after another."""

    steps: Any
    """The last steps, ``{history, n}``, the newest last."""
    changes: Any
    """The changes of the gradient along them."""
    factors: Any
    """The reciprocals of the products of a step and its change, ``{history}``."""
    scale: Any
    """The scale of the inverse of the Hessian before the steps."""
    fresh: Any
    """Whether nothing is known."""


@public
def lbfgs(fun: Callable[[Any], TensorLike], /, *, history: int = 10) -> GradientTransformation:
    """Steps of L-BFGS with a line search, for a number ``fun(params)`` that does not change.

    It keeps the last ``history`` steps. ``update`` takes the gradient of ``fun`` at the parameters,
    and the length of a step is the optimizer's own: no learning rate follows. Where ``fun``
    captures what a step receives, such as a batch, make the transformation in the step. In a
    compiled step the value and the gradient at the parameters are computed once.

    Where no step makes progress, the updates are zeros, and the next step begins anew.
    :func:`defn.optimize.minimize` iterates by itself until it has converged.

    Source: Nocedal, Updating Quasi-Newton Matrices with Limited Storage, 1980; Nocedal and Wright,
    Numerical Optimization, 2006, algorithms 3.5, 3.6 and 7.4.

    Dtypes: updates have those of the parameters; the state has the widest, at least f32.
    Raises: ``OptionError`` for what is no function, a ``history`` below 1, and where ``update`` is
        called without the parameters. When it is called, ``ContainerError`` and ``ShapeError`` for
        the state of other parameters and for a value that is no scalar.

    >>> def rosenbrock(x):
    ...     return dn.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> optimizer = dn.optim.lbfgs(rosenbrock)
    >>> @dn.jit
    ... def step(x, state):
    ...     updates, state = optimizer.update(dn.grad(rosenbrock)(x), state, x)
    ...     return dn.optim.apply_updates(x, updates), state
    >>> x = dn.tensor([-1.2, 1.0], dtype="f64")
    >>> state = optimizer.init(x)
    >>> for _ in range(40):
    ...     x, state = step(x, state)
    >>> dn.round(x * 1000).to_list()
    [1000.0, 1000.0]
    """
    if not callable(fun):
        raise option_error(
            f"lbfgs: fun is {described(fun)}, it must be a function of the parameters"
        )

    def init(params: Any) -> LbfgsState:
        return LbfgsState(*_core.lbfgs_begin(params, history))

    def update(updates: Any, state: LbfgsState, params: Any = None) -> tuple[Any, LbfgsState]:
        if params is None:
            raise option_error("lbfgs: update needs the parameters; pass params")
        if not isinstance(state, tuple) or len(state) != len(LbfgsState._fields):
            raise ContainerError(
                f"lbfgs: the state is {described(state)}, it must be an LbfgsState; make one with "
                "init" + caller()
            )
        updates, known = _core.lbfgs_update(fun, updates, tuple(state), params)
        return updates, LbfgsState(*known)

    # The history is checked where the transformation is made.
    if isinstance(history, bool) or not isinstance(history, int) or history < 1:
        raise option_error(f"lbfgs: history is {history!r}, it must be an int of at least 1")
    return GradientTransformation(init, update)
