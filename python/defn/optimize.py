"""Zeros and minima of functions of containers.

Unknowns are a container of tensors of any shapes. Functions are traced once, and derivatives are
computed. A :class:`Result` says by its status how the iterations ended; ``check`` raises unless
they converged. All functions work in eager calls and in definitions, and with vectorized axes each
position iterates by itself.

Derivatives of the unknowns found are those of the implicit function, as those of
:func:`defn.implicit`: the iterations are not differentiated.

>>> def condition(x, total):
...     return {"a": x["a"] * x["b"] - 6.0, "b": x["a"] + x["b"] - total}
>>> result = dn.optimize.root(condition, {"a": 1.0, "b": 4.0}, 5.0).check()
>>> {name: round(float(x), 4) for name, x in result.x.items()}
{'a': 2.0, 'b': 3.0}
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from defn import _core
from defn._public import public
from defn.containers import register_container

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from defn._core import Tensor

__all__ = ["Result", "least_squares", "minimize", "root"]


@dataclass(frozen=True)
class Result:
    """What an optimization found, and how it ended. It is a container.

    ``x`` are the unknowns, and ``fun`` is the value of the function there: the residuals or the
    number to be minimized. ``status`` is

    - 0 where the iterations converged;
    - 1 where the last iteration that ``maxiter`` allows was done;
    - 2 where no step makes progress: there is no zero or minimum nearby, or rounding hides it;
    - 3 where a value or a derivative is NaN or infinite.

    ``x`` is the best that was found, whatever the status. ``iterations`` counts steps, and
    ``evaluations`` how often the function was evaluated. ``gradient_norm`` is the greatest
    magnitude in the gradient of the number to be minimized: for residuals, of half their sum of
    squares. ``function`` is the name of the function that made the result.

    Shapes: ``x`` and ``fun`` as the function's argument and value; the rest are scalars.
    Dtypes: ``status``, ``iterations`` and ``evaluations`` are s32.
    Grad: see :func:`root`; none through ``gradient_norm``.

    >>> result = dn.optimize.root(lambda x: x**2 - 2.0, 1.0)
    >>> int(result.status), f"{result.x:.4f}"
    (0, '1.4142')
    """

    x: Any
    fun: Any
    status: Tensor
    iterations: Tensor
    evaluations: Tensor
    gradient_norm: Tensor
    function: str

    def check(self) -> Result:
        """Return the result if it converged at every position, else raise ``ConvergenceError``.

        It reads the values, so that it belongs outside of definitions.

        Raises: ``ConvergenceError`` with the status, the iterations and the gradient of the first
            position that did not converge; ``TraceError`` in a definition.

        >>> dn.optimize.root(lambda x: x**2 + 1.0, 1.0).check()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        defn.ConvergenceError: root: no step makes progress after ...
        """
        numbers = (self.status, self.iterations, self.gradient_norm)
        status, iterations, gradients = (number.to_flat_list() for number in numbers)
        _core.require_converged(self.function, status, iterations, gradients)
        return self


def _flatten(result: Result) -> tuple[list[Any], str]:
    parts = [result.x, result.fun, result.status, result.iterations, result.evaluations]
    return [*parts, result.gradient_norm], result.function


register_container(Result, _flatten, lambda function, parts: Result(*parts, function=function))


@public
def root(
    fun: Callable[..., Any],
    x0: Any,
    /,
    *args: Any,
    method: Literal["newton", "krylov"] = "newton",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int = 100,
    restart: int = 20,
) -> Result:
    """A zero of a function from a container to one like it, near ``x0``.

    ``fun(x, *args)`` returns a residual for each unknown. Steps are those of Newton's method,
    shortened until the norm of the residuals decreases:

    - ``"newton"`` forms the Jacobian column by column and factors it by LU, which suits up to some
      hundreds of unknowns.
    - ``"krylov"`` finds steps by GMRES, with products with the Jacobian, in cycles of ``restart``
      products. It suits many unknowns.

    It has converged where no residual is greater than ``atol``, or after a whole step of at most
    ``rtol`` times each unknown; one that goes to zero is compared with ``rtol`` times its greatest
    magnitude on the way. Without ``rtol`` it is the two-thirds power of the dtype's epsilon: 2e-5
    for f32, 4e-11 for f64. It has converged, too, where rounding hides the decrease of a step that
    is at most ``rtol`` times the greatest unknown. Where the norm of the residuals has a minimum
    that is not zero, the status is 2. Begin elsewhere then.

    Source: Dennis and Schnabel, Numerical Methods for Unconstrained Optimization and Nonlinear
    Equations, 1983; Brown and Saad, Hybrid Krylov Methods for Nonlinear Systems of Equations, 1990.

    Shapes: any; ``fun`` keeps them.
    Dtypes: floats and complex, which ``fun`` keeps; integers become f32. Real and imaginary parts
        are separate unknowns. Floats of 8 and 16 bits are evaluated as they are.
    Grad: ``x`` has that of the implicit function, to ``args`` and to what ``fun`` captures, in both
        modes and of any order; none to ``x0``. It is NaN where the status is not 0. Its linear
        systems are solved by LU for ``"newton"`` and by GMRES for ``"krylov"``.
    Raises: ``ContainerError``, ``ShapeError`` or ``DTypeError`` for residuals unlike ``x0``,
        ``OptionError`` for an unknown method, a negative tolerance, a ``maxiter`` or ``restart``
        below 1, a container without tensors, and for what is no function.

    >>> def kepler(anomaly, mean, eccentricity):
    ...     return anomaly - eccentricity * dn.sin(anomaly) - mean
    >>> anomaly = lambda mean: dn.optimize.root(kepler, mean, mean, 0.5).x
    >>> value, slope = dn.value_and_grad(anomaly)(1.0)
    >>> f"{value:.4f} {slope:.4f}"  # 1 / (1 - 0.5 cos(value))
    '1.4987 1.0374'
    """
    call = _with(fun, args)
    found = _core.root(call, x0, method, rtol, atol, maxiter, restart)
    return Result(*found, function="root")


@public
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    /,
    *args: Any,
    method: Literal["bfgs", "lbfgs", "newton"] = "bfgs",
    gtol: float | None = None,
    maxiter: int = 1000,
    history: int = 10,
) -> Result:
    """A minimum of a real number, a function of a container, near ``x0``.

    ``fun(x, *args)`` returns the number. Steps go in a direction of descent, as far as a line
    search for the strong Wolfe conditions says:

    - ``"bfgs"`` keeps an approximate inverse of the Hessian, which suits up to some hundreds of
      unknowns.
    - ``"lbfgs"`` keeps the last ``history`` steps instead. It suits many unknowns.
    - ``"newton"`` forms the Hessian, and takes the magnitudes of its eigenvalues, so that it
      descends from saddles, too.

    It has converged where no element of the gradient is greater than ``gtol``; without one this is
    the root of the dtype's epsilon: 3e-4 for f32, 1e-8 for f64. It has converged, too, where
    rounding of the number hides what a step would gain.

    Source: Nocedal and Wright, Numerical Optimization, 2006, chapters 3, 6 and 7; Hager and Zhang,
    A New Conjugate Gradient Method with Guaranteed Descent and an Efficient Line Search, 2005.

    Shapes: any for ``x0``; ``fun`` returns a scalar.
    Dtypes: floats and complex; integers become f32. Real and imaginary parts are separate unknowns.
        The number is a float.
    Grad: ``x`` has that of the zero of the gradient, to ``args`` and to what ``fun`` captures, in
        both modes and of any order; none to ``x0``. It is NaN where the status is not 0. Its linear
        systems, with the Hessian, are solved by LU, and for ``"lbfgs"`` by conjugate gradients.
    Raises: ``ShapeError`` or ``DTypeError`` for a value that is no real scalar, ``OptionError`` for
        an unknown method, a negative tolerance, a ``maxiter`` or ``history`` below 1, a container
        without tensors, and for what is no function.

    >>> def rosenbrock(x):
    ...     return (1.0 - x["a"]) ** 2 + 100.0 * (x["b"] - x["a"] ** 2) ** 2
    >>> start = {"a": dn.f64(-1.2), "b": dn.f64(1.0)}
    >>> result = dn.optimize.minimize(rosenbrock, start).check()
    >>> {name: round(float(x), 6) for name, x in result.x.items()}
    {'a': 1.0, 'b': 1.0}
    """
    call = _with(fun, args)
    found = _core.minimize(call, x0, method, gtol, maxiter, history)
    return Result(*found, function="minimize")


@public
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    /,
    *args: Any,
    method: Literal["lm", "gauss_newton"] = "lm",
    rtol: float | None = None,
    gtol: float | None = None,
    maxiter: int = 500,
) -> Result:
    """A minimum of half the sum of squares of residuals, near ``x0``.

    ``fun(x, *args)`` returns the residuals, in a container of any structure. The Jacobian is formed
    column by column, and factored by QR:

    - ``"lm"``, the method of Levenberg and Marquardt, damps steps.
    - ``"gauss_newton"`` shortens them until the squares decrease, which suits small residuals.
      There must be at least as many residuals as unknowns.

    It has converged where the step that the linearization asks for is at most ``rtol`` times each
    unknown, or where the cosine of the angle between the residuals and the range of the Jacobian is
    at most ``gtol``; without them both are the two-thirds power of the dtype's epsilon: 2e-5 for
    f32, 4e-11 for f64. So it does not depend on the units of unknowns and residuals. It has
    converged, too, where no step decreases the squares and the linearization promises a part of
    them that rounding may hide: 3e-4 for f32, 1e-8 for f64. Residuals that a solver computes, such
    as :func:`defn.odeint`, have errors of their own.

    Source: Moré, The Levenberg-Marquardt Algorithm: Implementation and Theory, 1978; Nielsen,
    Damping Parameter in Marquardt's Method, 1999; Bates and Watts, A Relative Offset Orthogonality
    Convergence Criterion for Nonlinear Least Squares, 1981.

    Shapes: any.
    Dtypes: floats and complex; integer unknowns become f32, residuals must not be integers. Real
        and imaginary parts are separate.
    Grad: as :func:`minimize`, with the second derivatives of the residuals.
    Raises: ``DTypeError`` for residuals that are integers, ``OptionError`` for an unknown method,
        fewer residuals than unknowns with ``"gauss_newton"``, a negative tolerance, a ``maxiter``
        below 1, a container without tensors, and for what is no function.

    >>> t = dn.tensor([0.0, 1.0, 2.0, 3.0])
    >>> y = 2.0 * dn.exp(-0.5 * t)
    >>> def residuals(x, t, y):
    ...     return x["scale"] * dn.exp(-x["rate"] * t) - y
    >>> result = dn.optimize.least_squares(residuals, {"scale": 1.0, "rate": 1.0}, t, y).check()
    >>> {name: round(float(x), 4) for name, x in result.x.items()}
    {'scale': 2.0, 'rate': 0.5}
    """
    call = _with(fun, args)
    found = _core.least_squares(call, x0, method, rtol, gtol, maxiter)
    return Result(*found, function="least_squares")


def _with(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """The function of the unknowns alone."""
    return (lambda x: fun(x, *args)) if args and callable(fun) else fun


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.optimize has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
