"""Gradients: the derivatives of a function's result with respect to its inputs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar, overload

from defn import _core
from defn._names import option_error
from defn._public import forwards, public
from defn.jit import jit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from defn._core import Jitted, Tensor

__all__ = ["custom_grad", "grad", "hessian", "jacobian", "stop_grad", "value_and_grad", "vjp"]


P = ParamSpec("P")
R = TypeVar("R")


@overload
def grad(
    fun: Callable[P, Any], /, *, argnums: int | Sequence[int] = 0, **jit_options: Any
) -> Jitted[P, Any]: ...
@overload
def grad(vars: Any, fun: Callable[[Any], Any], /, **jit_options: Any) -> Any: ...
def grad(*args: Any, argnums: int | Sequence[int] = 0, **jit_options: Any) -> Any:
    """Differentiate a function: return its gradient function, or the gradient at given variables.

    ``grad(fun)`` returns a function of the same arguments. ``argnums`` selects the differentiated
    arguments; the others are inputs. ``grad(vars, fun)`` returns the gradient of ``fun(vars)``,
    where ``vars`` is a tensor or a container. Both forms may be used inside a definition and on
    another gradient.

    If the result is not a scalar, the gradient is that of the sum of its elements. Captured tensors
    are constants. Other options, such as ``compiler``, are those of ``jit``. With any of them the
    gradient is compiled separately, as by ``dn.jit(dn.grad(fun), ...)``.

    Shapes: that of each variable, with its axis names, in the container of the variables.
    Dtypes: that of each variable; f32 for integers. Floats of 8 and 16 bits accumulate in f32.
    Grad: differentiable to any order.
    Raises: ``ContainerError`` if the function returns more than one tensor, ``TraceError`` for an
        operation without a gradient; the message says what to do instead.

    >>> float(dn.grad(lambda x: x**2)(3.0))
    6.0
    >>> a, b = dn.grad((2.0, 3.0), lambda v: v[0] * v[1])
    >>> float(a), float(b)
    (3.0, 2.0)
    """
    if len(args) == 2:
        if argnums != 0:
            raise option_error("grad: argnums is for grad(fun), grad(vars, fun) takes none")
        if jit_options:
            return _compiled(_core.gradient(args[1], 0), jit_options)(args[0])
        return _core.gradient_at(args[0], args[1])
    if len(args) != 1 or not callable(args[0]):
        raise option_error("grad: one function, or variables and a function, are required")
    return _compiled(_core.gradient(args[0], argnums), jit_options)


def _compiled(derivative: Jitted[..., Any], options: dict[str, Any]) -> Jitted[..., Any]:
    """The derivative, compiled with the options if any are given."""
    return jit(derivative, **options) if options else derivative


@overload
def value_and_grad(
    fun: Callable[P, R],
    /,
    transform: Callable[[R], Any] | None = None,
    *,
    argnums: int | Sequence[int] = 0,
    **jit_options: Any,
) -> Jitted[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    vars: Any,
    fun: Callable[[Any], Any],
    /,
    transform: Callable[[Any], Any] | None = None,
    **jit_options: Any,
) -> Any: ...
def value_and_grad(
    *args: Any,
    transform: Callable[[Any], Any] | None = None,
    argnums: int | Sequence[int] = 0,
    **jit_options: Any,
) -> Any:
    """The value of a function together with its gradient, from one trace.

    ``value_and_grad(fun)`` returns a function of the same arguments that returns both.
    ``value_and_grad(vars, fun)`` returns both at ``vars``. With ``transform`` the gradient is that
    of ``transform(value)``, but the whole value is returned; so a function can return more than its
    loss. Other options are those of ``jit``, as for ``grad``.

    Shapes: that of the value; each gradient has the shape and names of its variable.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``ContainerError`` if the differentiated result is more than one tensor, ``TraceError``
        for an operation without a gradient; the message says what to do instead.

    >>> value, gradient = dn.value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    if args and callable(args[0]):
        if len(args) == 2 and transform is None:
            args, transform = args[:1], args[1]
        if len(args) == 1:
            return _compiled(_core.gradient(args[0], argnums, transform, True), jit_options)
    elif len(args) in (2, 3):
        if len(args) == 3 and transform is None:
            args, transform = args[:2], args[2]
        if len(args) == 2 and argnums == 0 and jit_options:
            return _compiled(_core.gradient(args[1], 0, transform, True), jit_options)(args[0])
        if len(args) == 2 and argnums == 0:
            return _core.gradient_at(args[0], args[1], transform, True)
    raise option_error(
        "value_and_grad: (fun, transform, argnums=...) or (vars, fun, transform) are required"
    )


def jacobian(
    fun: Callable[P, Any], /, *, argnums: int | Sequence[int] = 0, **jit_options: Any
) -> Jitted[P, Tensor]:
    """The Jacobian: the derivative of each element of the value by each element of the arguments.

    The function runs once. Its reverse pass also runs once, for all elements of the value on a
    vectorized axis. If the value or an argument is a container, the result has the structure of the
    value, and each of its leaves has the structure of the arguments.

    Shapes: the shape of the value followed by that of the variable, with their names.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``TraceError`` for an operation without a gradient; the message says what to do instead.

    >>> dn.jacobian(lambda x: x * x)(dn.tensor([1.0, 2.0])).to_list()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _compiled(_core.jacobian(fun, argnums), jit_options)


def hessian(
    fun: Callable[P, Any], /, *, argnums: int | Sequence[int] = 0, **jit_options: Any
) -> Jitted[P, Tensor]:
    """The Hessian of each element of the value: the Jacobian of the Jacobian.

    Shapes: the shape of the value followed twice by that of the variable, with their names.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``TraceError`` for an operation without a gradient; the message says what to do instead.

    >>> dn.hessian(lambda x: x[0] ** 2 * x[1])(dn.tensor([3.0, 5.0])).to_list()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    return _compiled(_core.jacobian(_core.jacobian(fun, argnums), argnums), jit_options)


@public
def vjp(fun: Callable[..., Any], /, *, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The value of a function, and its vector-Jacobian product.

    ``vjp(fun)`` returns a function of the same arguments that returns both. The product is a
    function that takes a cotangent with the structure of the value. It returns the cotangent of the
    variable, or a tuple of cotangents if ``argnums`` is a list. If the given cotangent has
    vectorized axes that the value lacks, each position on them is pulled back separately.

    Shapes: that of the value; each cotangent has the shape and names of its variable.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``ContainerError`` for a cotangent of another structure, ``ShapeError`` for one of
        another shape, ``TraceError`` for an operation without a gradient.

    >>> value, back = dn.vjp(lambda x: x * x)(dn.tensor([1.0, 2.0]))
    >>> back(dn.tensor([1.0, 10.0])).to_list()
    [2.0, 40.0]
    """

    @functools.wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return _core.vjp(fun, argnums, args, kwargs)

    return differentiated


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
def custom_grad(value: Any, inputs: Sequence[Any], fun: Callable[[Any], Sequence[Any]]) -> Any:
    """Return the value with a custom gradient rule.

    ``fun`` is called with the cotangent of the value, which is a tuple if the value is one. It
    returns a list with one cotangent for each of ``inputs``. The operations that compute the value
    are not differentiated.

    Shapes: that of the value; each cotangent has the shape of its input.
    Dtypes: any; the cotangent is at least f32.
    Grad: the result of ``fun``.
    Raises: ``ContainerError`` unless ``fun`` returns as many tensors as there are inputs.

    >>> def clipped(x):
    ...     return dn.custom_grad(x * x, [x], lambda g: [dn.clip(g * 2.0 * x, -1.0, 1.0)])
    >>> float(dn.grad(clipped)(3.0))
    1.0
    """
    ...
