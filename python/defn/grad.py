"""Gradients: what a function's result changes by when its inputs change."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Never, ParamSpec, TypeVar, overload

from defn import _core
from defn._names import option_error, refuse_options
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
    """The gradient of a function, or its value at given variables.

    ``grad(fun)`` is a function of the same arguments; ``argnums`` says which of them are
    differentiated, the others are inputs. ``grad(vars, fun)`` is the gradient of ``fun(vars)``,
    where ``vars`` is a tensor or a container. Either form may be used inside a definition, and on
    another gradient.

    A result that is no scalar is added up: its gradient is that of the sum. Tensors that the
    function uses from outside are constants. Other options, such as ``compiler``, are those of
    ``jit``: with any of them the gradient is compiled apart, as by ``dn.jit(dn.grad(fun), ...)``.

    Shapes: each variable's, with its axis names, in the variables' container.
    Dtypes: the variables' own; f32 for integers. On the way small floats add up in f32.
    Grad: the gradient of the gradient, to any order.
    Raises: ``ContainerError`` if the function returns more than one tensor, ``TraceError`` for an
        operation that has no gradient, with what to do instead.

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
    """The derivative, compiled with options where there are any."""
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
    """A function's value together with its gradient, from one trace.

    ``value_and_grad(fun)`` is a function of the same arguments that returns both;
    ``value_and_grad(vars, fun)`` returns both at ``vars``. With a ``transform``, the gradient is
    that of ``transform(value)``, while the whole value is returned: so a function may return more
    than its loss. Other options are those of ``jit``, as for ``grad``.

    Shapes: the value's own; each gradient has its variable's shape and names.
    Dtypes: as for ``grad``.
    Grad: the gradient of the gradient, to any order.
    Raises: ``ContainerError`` if what is differentiated is more than one tensor, ``TraceError`` for
        an operation that has no gradient, with what to do instead.

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
    """The derivative of every element of a function's value by every element of its arguments.

    The function runs once, its reverse for all elements of the value together, on a vectorized
    axis. Where the value or an argument is a container, the result is the value's container, of
    which each tensor is the arguments' container.

    Shapes: the shape of the value, then that of the variable, with their names.
    Dtypes: as for ``grad``.
    Grad: the gradient of the derivative, to any order.
    Raises: ``TraceError`` for an operation that has no gradient, with what to do instead.

    >>> dn.jacobian(lambda x: x * x)(dn.tensor([1.0, 2.0])).to_list()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _compiled(_core.jacobian(fun, argnums), jit_options)


def hessian(
    fun: Callable[P, Any], /, *, argnums: int | Sequence[int] = 0, **jit_options: Any
) -> Jitted[P, Tensor]:
    """The second derivatives of every element of a function's value: the jacobian's jacobian.

    Shapes: the shape of the value, then that of the variable twice, with their names.
    Dtypes: as for ``grad``.
    Grad: the gradient of the derivative, to any order.
    Raises: ``TraceError`` for an operation that has no gradient, with what to do instead.

    >>> dn.hessian(lambda x: x[0] ** 2 * x[1])(dn.tensor([3.0, 5.0])).to_list()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    return _compiled(_core.jacobian(_core.jacobian(fun, argnums), argnums), jit_options)


def vjp(
    fun: Callable[..., Any], /, *, argnums: int | Sequence[int] = 0, **unknown: Never
) -> Callable[..., Any]:
    """A function's value, and what takes a cotangent of the value back to its arguments.

    ``vjp(fun)`` is a function of the same arguments that returns both. The second is a function of
    the value's container, and returns that of the variable, or a tuple of them where ``argnums`` is
    a list. Vectorized axes of a cotangent that the value lacks are positions, each of which is
    taken back by itself.

    Shapes: the value's own; each cotangent has its variable's shape and names.
    Dtypes: as for ``grad``.
    Grad: the gradient of the cotangents, to any order.
    Raises: ``ContainerError`` for a cotangent of another structure, ``ShapeError`` for one of
        another shape, ``TraceError`` for an operation that has no gradient.

    >>> value, back = dn.vjp(lambda x: x * x)(dn.tensor([1.0, 2.0]))
    >>> back(dn.tensor([1.0, 10.0])).to_list()
    [2.0, 40.0]
    """
    if unknown:
        refuse_options("vjp", unknown)

    @functools.wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return _core.vjp(fun, argnums, args, kwargs)

    return differentiated


def stop_grad(value: Any, **unknown: Never) -> Any:
    """The value, as a constant: no gradient flows through it.

    Shapes: kept; a container keeps its structure.
    Dtypes: any; kept.
    Grad: none flows.
    Raises: ``ContainerError`` for something that is no tensor or container.

    >>> float(dn.grad(lambda x: x + dn.stop_grad(x))(3.0))
    1.0
    """
    if unknown:
        refuse_options("stop_grad", unknown)
    return _core.stop_grad(value)


def custom_grad(
    value: Any, inputs: Sequence[Any], fun: Callable[[Any], Sequence[Any]], **unknown: Never
) -> Any:
    """The value, with a gradient rule of its own.

    ``fun`` is called with the cotangent of the value, a tuple where the value is one, and returns a
    list with one cotangent for each of ``inputs``. The operations inside the value get no gradient
    by themselves.

    Shapes: the value's own; each cotangent has its input's shape.
    Dtypes: any; the cotangent is at least an f32.
    Grad: what ``fun`` returns.
    Raises: ``ContainerError`` unless ``fun`` returns as many tensors as there are inputs.

    >>> def clipped(x):
    ...     return dn.custom_grad(x * x, [x], lambda g: [dn.clip(g * 2.0 * x, -1.0, 1.0)])
    >>> float(dn.grad(clipped)(3.0))
    1.0
    """
    if unknown:
        refuse_options("custom_grad", unknown)
    return _core.custom_grad(value, inputs, fun)
