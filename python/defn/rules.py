"""Rules for the derivatives of values, instead of those of the operations that compute them."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar, overload

from defn import _core
from defn._names import option_error
from defn._public import forwards, public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    Policy = Literal["dots"] | Mapping[str, Literal["device", "host"]] | Collection[str] | None

__all__ = ["checkpoint", "custom_grad", "custom_jvp", "implicit", "stop_grad"]


P = ParamSpec("P")
R = TypeVar("R")


@overload
def checkpoint(fun: Callable[P, R], /, *, policy: Policy = None) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None, /, *, policy: Policy = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@public
def checkpoint(fun: Callable[..., Any] | None = None, /, *, policy: Policy = None) -> Any:
    """Return the function with derivatives that compute again what is inside of it.

    A gradient reads values that were computed on the way to the loss. Each of them takes memory
    until the gradient comes to it. Of a checkpointed function only the arguments are kept (and what
    it uses from outside); other values are computed again when they are needed. A network of
    checkpointed blocks takes the memory of the values between blocks and of one block's inside, in
    about a third more time.

    Without a function it returns a decorator. ``policy`` says which values are kept all the same:

    - A list of names: the values that ``mark`` gives these names in the function.
    - A mapping from such names to memories: values in ``"host"`` lie in the host's memory until the
      gradient comes to them; ``"device"`` is what a list means. On the CPU both are the same.
    - ``"dots"``: the results of products and convolutions, which take the most time.

    Values inside of branches and loops of the function are not kept, whatever their names. The
    function itself and its derivatives in forward mode are as without ``checkpoint``. Hooks in the
    function run once.

    Shapes: those of the function.
    Dtypes: those of the function.
    Grad: that of the function, to any order.
    Raises: ``OptionError`` for a name that no value of the function has, for a policy of another
        kind, and for what is no function.

    >>> @dn.checkpoint
    ... def block(x, w):
    ...     return dn.tanh(x @ w) + x
    >>> x, w = dn.tensor([1.0, 2.0]), dn.tensor([[0.5, 0.0], [0.0, 0.5]])
    >>> dn.grad(lambda w, x: dn.sum(block(x, w)))(w, x)
    Tensor<
      f32[2][2]
      [
        [0.7864477, 0.41997433],
        [1.5728954, 0.83994865]
      ]
    >
    >>> @dn.checkpoint(policy={"projected": "host"})
    ... def block(x, w):
    ...     return dn.mark(x @ w, "projected") ** 2
    >>> dn.grad(lambda w, x: dn.sum(block(x, w)))(w, x).to_list()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    products = isinstance(policy, str) and policy == "dots"
    names = [] if policy is None or products else _kept(policy)
    if fun is None:
        return functools.partial(checkpoint, policy=policy)
    if not callable(fun):
        kind = type(fun).__name__
        raise option_error(f"checkpoint: the argument is of type {kind}, a function is required")
    call: Callable[..., Any] = fun

    @functools.wraps(call)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return _core.checkpoint(call, args, kwargs, names, products)

    return checkpointed


def _kept(policy: Any) -> list[tuple[str, bool]]:
    """Return the names of a policy, each with whether its values are kept on the host."""
    is_list = isinstance(policy, Collection) and not isinstance(policy, (str, bytes))
    if not is_list or not all(isinstance(name, str) for name in policy):
        raise option_error(
            f"checkpoint: policy is {policy!r}, it must be a list of names that mark gives,"
            ' a mapping from such names to "device" or "host", "dots", or None'
        )
    places: dict[str, Any] = dict.fromkeys(policy, "device")
    if isinstance(policy, Mapping):
        places.update(policy)
    for name, memory in places.items():
        if memory not in ("device", "host"):
            raise option_error(
                f"checkpoint: the memory of {name!r} in policy is {memory!r},"
                ' it must be "device" or "host"'
            )
    return [(name, memory == "host") for name, memory in places.items()]


@forwards(_core.stop_grad)
def stop_grad(value: Any) -> Any:
    """Return the value as a constant: no gradient flows through it.

    Shapes: unchanged; a container keeps its structure.
    Dtypes: any; unchanged.
    Grad: zero.
    Raises: ``ContainerError`` for a value that is neither a tensor nor a container.

    >>> float(dn.grad(lambda x: x + dn.stop_grad(x))(3.0))
    1.0
    """
    ...


@forwards(_core.custom_grad)
def custom_grad(
    value: Any,
    inputs: Sequence[Any],
    fun: Callable[[Any], Sequence[Any]],
    *,
    jvp: Callable[..., Any] | None = None,
) -> Any:
    """Return the value with a custom gradient rule.

    ``fun`` is called with the cotangent of the value, which is a tuple if the value is one. It
    returns a list with one cotangent for each of ``inputs``. The operations that compute the value
    are not differentiated.

    In forward mode the rule is transposed. A rule that is not linear in the cotangent has no
    transpose; ``jvp`` is the rule for forward mode then, as that of ``custom_jvp``.

    Shapes: that of the value; each cotangent has the shape of its input.
    Dtypes: any; the cotangent is at least f32.
    Grad: the result of ``fun``.
    Raises: ``ContainerError`` unless ``fun`` returns as many tensors as there are inputs,
        ``ShapeError`` for a cotangent of another shape.

    >>> def clipped(x):
    ...     return dn.custom_grad(x * x, [x], lambda g: [dn.clip(g * 2.0 * x, -1.0, 1.0)])
    >>> float(dn.grad(clipped)(3.0))
    1.0
    """
    ...


@forwards(_core.custom_jvp)
def custom_jvp(value: Any, inputs: Sequence[Any], fun: Callable[..., Any]) -> Any:
    """Return the value with a custom rule for its tangent.

    ``fun`` is called with the tangents of ``inputs``, one argument for each. It returns the tangent
    of the value, with its structure. The operations that compute the value are not differentiated.

    In reverse mode the rule is transposed, so that it must be linear in the tangents there;
    ``custom_grad`` takes a rule for each mode.

    Shapes: that of the value; each tangent has the shape of its input or value, or is a scalar.
    Dtypes: any; a tangent has the dtype of its input, f32 for integers.
    Grad: the result of ``fun``.
    Raises: ``ContainerError`` if ``fun`` returns another structure than that of the value,
        ``ShapeError`` for a tangent of another shape; in reverse mode ``TraceError`` for a rule
        that is not linear.

    >>> def softplus(x):  # Its derivative does not overflow.
    ...     value = dn.log(dn.exp(x) + 1.0)
    ...     return dn.custom_jvp(value, [x], lambda t: t * (1.0 - 1.0 / (dn.exp(x) + 1.0)))
    >>> float(dn.grad(softplus)(100.0)), float(dn.jvp(softplus, (100.0,), (2.0,))[1])
    (1.0, 2.0)
    """
    ...


@public
def implicit(
    value: Any,
    condition: Callable[[Any], Any],
    *,
    solver: str = "gmres",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 20,
) -> Any:
    """Return a value with the derivative that the implicit function theorem gives.

    ``condition`` takes a container like ``value`` and returns one, which is zero at the value. It
    captures the tensors on which the value depends; derivatives flow to them. How the value was
    computed does not count: by iterations of any kind, by a function of the host, or before. So
    the value is a

    - root of ``f``: ``dn.implicit(x, lambda x: f(x, theta))``;
    - fixed point: ``dn.implicit(x, lambda x: f(x, theta) - x)``;
    - minimum: ``dn.implicit(x, lambda x: dn.grad(x, lambda x: loss(x, theta)))``;
    - solution of a system: ``dn.implicit(x, lambda x: a @ x - b)``.

    The tangent ``t`` of the value solves the linear system ``F' t = -(derivative of F by theta)``,
    where ``F'`` is the derivative of the condition by the value; the gradient takes one system with
    the transpose of ``F'``. ``solver`` is how they are solved: ``"gmres"``, ``"bicgstab"`` and
    ``"cg"``, which needs a symmetric positive definite ``F'``, as a minimum of a real loss has,
    only multiply by ``F'`` (see :func:`defn.linalg.cg`); ``"dense"`` forms it and factors it by
    LU, which suits few unknowns. ``rtol``, ``atol``, ``maxiter`` and ``restart`` are those of
    these functions. Without ``rtol`` it is the two-thirds power of the dtype's epsilon: 2e-5 for
    f32, 4e-11 for f64.

    The derivative is NaN where a system is not solved, because ``F'`` is singular or the solver
    does not converge. With ``"dense"`` it is infinite or NaN if a pivot is 0, as in
    :func:`defn.linalg.solve`. The derivative belongs to an exact zero: it is as wrong as the
    residual of the condition is large, which is not checked.

    Shapes: those of ``value``; the condition keeps them.
    Dtypes: floats and complex; the condition keeps them. ``F'`` need not be linear over complex
        numbers: real and imaginary parts are separate unknowns.
    Grad: that of the implicit function, in both modes and of any order; none to ``value``.
    Raises: ``DTypeError`` for integers, ``ShapeError`` for residuals of other shapes or dtypes,
        ``ContainerError`` for those of another structure, ``OptionError`` for an unknown solver,
        a negative tolerance, and a ``maxiter`` or ``restart`` below 1.

    >>> def root(theta):  # of x**3 + x = theta, by Newton's method
    ...     x = theta
    ...     for _ in range(30):
    ...         x = x - (x**3 + x - theta) / (3 * x**2 + 1)
    ...     return dn.implicit(x, lambda x: x**3 + x - theta)
    >>> x, slope = dn.value_and_grad(root)(10.0)
    >>> f"{x:.4f} {slope:.4f}"  # 1 / (3 x**2 + 1)
    '2.0000 0.0769'
    """
    return _core.implicit(value, condition, solver, rtol, atol, maxiter, restart)
