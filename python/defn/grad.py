"""Gradients: the derivatives of a function's result with respect to its inputs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar, overload

from defn import _core
from defn._names import option_error
from defn._public import public
from defn.jit import jit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from scipy.sparse import csr_array

    from defn._core import Jitted, Tensor

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
]


P = ParamSpec("P")
R = TypeVar("R")


@overload
def grad(
    fun: Callable[P, Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **jit_options: Any,
) -> Jitted[P, Any]: ...
@overload
def grad(
    vars: Any, fun: Callable[[Any], Any], /, *, has_aux: bool = False, **jit_options: Any
) -> Any: ...
def grad(
    *args: Any, argnums: int | Sequence[int] = 0, has_aux: bool = False, **jit_options: Any
) -> Any:
    """Differentiate a function: return its gradient function, or the gradient at given variables.

    ``grad(fun)`` returns a function of the same arguments. ``argnums`` selects the differentiated
    arguments; the others are inputs. ``grad(vars, fun)`` returns the gradient of ``fun(vars)``,
    where ``vars`` is a tensor or a container. Both forms may be used inside a definition and on
    another gradient.

    If the result is not a scalar, the gradient is that of the sum of its elements. Captured tensors
    are constants. With ``has_aux`` the function returns a pair, what is differentiated and the
    rest, and the result is the gradient and the rest. Other options, such as ``compiler``, are
    those of ``jit``. With any of them the gradient is compiled separately, as by
    ``dn.jit(dn.grad(fun), ...)``.

    Shapes: that of each variable, with its axis names, in the container of the variables.
    Dtypes: that of each variable; f32 for integers. Floats of 8 and 16 bits accumulate in f32.
    Grad: differentiable to any order.
    Raises: ``ContainerError`` if the function returns more than one tensor, ``TraceError`` for an
        operation without a gradient; the message says what to do instead. ``OptionError`` for
        ``has_aux`` and a function that returns no pair.

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
            gradient = _core.gradient(args[1], 0, None, False, has_aux)
            return _compiled(gradient, jit_options)(args[0])
        return _core.gradient_at(args[0], args[1], None, False, has_aux)
    if len(args) != 1 or not callable(args[0]):
        raise option_error("grad: one function, or variables and a function, are required")
    return _compiled(_core.gradient(args[0], argnums, None, False, has_aux), jit_options)


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
    has_aux: bool = False,
    **jit_options: Any,
) -> Jitted[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    vars: Any,
    fun: Callable[[Any], Any],
    /,
    transform: Callable[[Any], Any] | None = None,
    *,
    has_aux: bool = False,
    **jit_options: Any,
) -> Any: ...
def value_and_grad(
    *args: Any,
    transform: Callable[[Any], Any] | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **jit_options: Any,
) -> Any:
    """The value of a function together with its gradient, from one trace.

    ``value_and_grad(fun)`` returns a function of the same arguments that returns both.
    ``value_and_grad(vars, fun)`` returns both at ``vars``. With ``transform`` the gradient is that
    of ``transform(value)``, but the whole value is returned; so a function can return more than its
    loss. With ``has_aux`` the function returns a pair, the loss and the rest: the value is the
    pair, the gradient that of its first part. Other options are those of ``jit``, as for ``grad``.

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
            gradient = _core.gradient(args[0], argnums, transform, True, has_aux)
            return _compiled(gradient, jit_options)
    elif len(args) in (2, 3):
        if len(args) == 3 and transform is None:
            args, transform = args[:2], args[2]
        if len(args) == 2 and argnums == 0 and jit_options:
            gradient = _core.gradient(args[1], 0, transform, True, has_aux)
            return _compiled(gradient, jit_options)(args[0])
        if len(args) == 2 and argnums == 0:
            return _core.gradient_at(args[0], args[1], transform, True, has_aux)
    raise option_error(
        "value_and_grad: (fun, transform, argnums=...) or (vars, fun, transform) are required"
    )


@overload
def jacobian(
    fun: Callable[P, Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Literal[False] = False,
    **jit_options: Any,
) -> Jitted[P, Tensor]: ...
@overload
def jacobian(
    fun: Callable[P, Any], /, *, argnums: int = 0, sparse: Any, **jit_options: Any
) -> Callable[P, csr_array[Any, Any]]: ...
def jacobian(
    fun: Callable[..., Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Any = False,
    **jit_options: Any,
) -> Any:
    """The Jacobian: the derivative of each element of the value by each element of the arguments.

    The function runs once. So does its differentiated form: where the arguments have no more
    elements than the value, in forward mode for all elements of the arguments, else in reverse mode
    for all elements of the value, on a vectorized axis. ``jacfwd`` and ``jacrev`` choose the mode.
    If the value or an argument is a container, the result has the structure of the value, and each
    of its leaves has the structure of the arguments. With ``has_aux`` the function returns a pair,
    what is differentiated and the rest, and the result is the Jacobian and the rest.

    ``sparse=True`` is for functions of which each element depends on few elements of the argument.
    The result is a ``scipy.sparse.csr_array`` with a row for each element of the value and a column
    for each element of the argument. ``sparsity`` finds its entries, and columns that have none in
    a common row are computed together; if fewer passes do for rows, rows are. Pattern and program
    are kept for the types of the arguments. ``sparse=pattern`` gives the entries: a sparse matrix,
    or a matrix of bools, with all that are not zero. The argument and the value are one tensor of
    floats each. A pattern as dense as its matrix causes a ``UserWarning``, once.

    Shapes: the shape of the value followed by that of the variable, with their names.
    Dtypes: as for ``grad``; a sparse result has at least f32.
    Grad: differentiable to any order; a sparse result is no tensor.
    Raises: ``TraceError`` for an operation without a gradient; the message says what to do instead.
        With ``sparse``, ``OptionError`` for containers, several ``argnums``, ``has_aux``, a pattern
        of another shape, a call inside a definition, and where SciPy is missing.

    >>> dn.jacobian(lambda x: x * x)(dn.tensor([1.0, 2.0])).to_list()
    [[2.0, 0.0], [0.0, 4.0]]
    >>> differences = dn.jacobian(lambda x: x[1:] - x[:-1], sparse=True)
    >>> differences(dn.tensor([1.0, 2.0, 4.0])).toarray().tolist()
    [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]
    """
    if sparse is not False:
        return _sparse("jacobian", fun, argnums, None, sparse, has_aux, jit_options)
    return _compiled(_core.jacobian(fun, argnums, None, has_aux), jit_options)


@overload
def jacfwd(
    fun: Callable[P, Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Literal[False] = False,
    **jit_options: Any,
) -> Jitted[P, Tensor]: ...
@overload
def jacfwd(
    fun: Callable[P, Any], /, *, argnums: int = 0, sparse: Any, **jit_options: Any
) -> Callable[P, csr_array[Any, Any]]: ...
def jacfwd(
    fun: Callable[..., Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Any = False,
    **jit_options: Any,
) -> Any:
    """The Jacobian in forward mode: one tangent for each element of the arguments.

    It suits functions of few numbers with large values. Loops carry the tangents along, so that it
    takes no memory for their iterations. ``sparse`` is as for ``jacobian``, with one tangent for
    each color of the columns.

    Shapes: the shape of the value followed by that of the variable, with their names.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``TraceError`` for an operation without a derivative, and for a gradient rule of
        ``custom_grad`` that is not linear.

    >>> dn.jacfwd(lambda t: t * dn.tensor([1.0, 10.0]))(3.0).to_list()
    [1.0, 10.0]
    """
    if sparse is not False:
        return _sparse("jacfwd", fun, argnums, "forward", sparse, has_aux, jit_options)
    return _compiled(_core.jacobian(fun, argnums, "forward", has_aux), jit_options)


@overload
def jacrev(
    fun: Callable[P, Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Literal[False] = False,
    **jit_options: Any,
) -> Jitted[P, Tensor]: ...
@overload
def jacrev(
    fun: Callable[P, Any], /, *, argnums: int = 0, sparse: Any, **jit_options: Any
) -> Callable[P, csr_array[Any, Any]]: ...
def jacrev(
    fun: Callable[..., Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Any = False,
    **jit_options: Any,
) -> Any:
    """The Jacobian in reverse mode: one cotangent for each element of the value.

    It suits functions with few results. ``sparse`` is as for ``jacobian``, with one cotangent for
    each color of the rows.

    Shapes: the shape of the value followed by that of the variable, with their names.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``TraceError`` for an operation without a gradient; the message says what to do instead.

    >>> dn.jacrev(lambda x: (x * x).sum())(dn.tensor([1.0, 2.0])).to_list()
    [2.0, 4.0]
    """
    if sparse is not False:
        return _sparse("jacrev", fun, argnums, "reverse", sparse, has_aux, jit_options)
    return _compiled(_core.jacobian(fun, argnums, "reverse", has_aux), jit_options)


@overload
def hessian(
    fun: Callable[P, Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Literal[False] = False,
    **jit_options: Any,
) -> Jitted[P, Tensor]: ...
@overload
def hessian(
    fun: Callable[P, Any], /, *, argnums: int = 0, sparse: Any, **jit_options: Any
) -> Callable[P, csr_array[Any, Any]]: ...
def hessian(
    fun: Callable[..., Any],
    /,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    sparse: Any = False,
    **jit_options: Any,
) -> Any:
    """The Hessian of each element of the value: the Jacobian of the Jacobian.

    For a function with one result it is computed forward over reverse. For such a function
    ``sparse`` is as for ``jacobian``.

    Shapes: the shape of the value followed twice by that of the variable, with their names.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``TraceError`` for an operation without a gradient; the message says what to do instead.

    >>> dn.hessian(lambda x: x[0] ** 2 * x[1])(dn.tensor([3.0, 5.0])).to_list()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    if sparse is not False:
        gradient = _core.gradient(fun, argnums, _one_number)
        return _sparse("hessian", gradient, argnums, None, sparse, has_aux, jit_options)
    inner = _core.jacobian(fun, argnums, None, has_aux)
    return _compiled(_core.jacobian(inner, argnums, None, has_aux), jit_options)


def _sparse(
    op: str,
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    mode: str | None,
    sparse: Any,
    has_aux: bool,
    jit_options: dict[str, Any],
) -> Callable[..., csr_array[Any, Any]]:
    """A sparse Jacobian. The module, which is seldom needed, is imported here."""
    from defn.sparse import SparseJacobian

    if has_aux:
        raise option_error(
            f"{op}: has_aux is True, with sparse it must be False; compute the rest apart"
        )
    return SparseJacobian(op, fun, argnums, mode, sparse, jit_options)


def _one_number(value: Any) -> Any:
    """The value of a function whose sparse Hessian is taken."""
    if getattr(value, "size", 1) != 1:
        raise option_error(
            f"hessian: the value has {value.size} elements, with sparse it must have one; take the"
            " Hessian of one of them, or leave sparse out"
        )
    return value


def _arguments(op: str, what: str, values: Any) -> tuple[Any, ...]:
    """The values, of which there is one for each argument of the function."""
    if not isinstance(values, (tuple, list)):
        raise option_error(
            f"{op}: {what} is a {type(values).__name__}, a tuple with one entry for each argument"
            " is required"
        )
    return tuple(values)


@public
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    /,
    *,
    has_aux: bool = False,
) -> Any:
    """The value of a function and its Jacobian-vector product: the tangent of the value.

    ``primals`` are the positional arguments, ``tangents`` the directions in which they change: one
    for each, with its structure. ``None`` stands for a tangent of zero, also inside a container;
    integers have no other. The product takes about twice the time of the function and no memory for
    the iterations of loops. With ``has_aux`` the function returns a pair, its value and the rest,
    and the result is the value, its tangent, and the rest.

    A gradient rule of ``custom_grad`` is applied in forward mode as its transpose; it must be
    linear. If a tangent has vectorized axes that its argument lacks, there is a tangent of the
    value for each position on them.

    Shapes: each tangent has the shape of its argument, or of the value.
    Dtypes: each tangent has the dtype of its argument; that of an integer value is f32.
    Grad: differentiable to any order, in both modes.
    Raises: ``ContainerError`` for a tangent of another structure, ``ShapeError`` for one of another
        shape, ``DTypeError`` for one of another dtype and for the tangent of an integer,
        ``TraceError`` for an operation without a derivative.

    >>> value, tangent = dn.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    >>> float(value), float(tangent)
    (6.0, 23.0)
    """
    points = _arguments("jvp", "primals", primals)
    directions = _arguments("jvp", "tangents", tangents)
    return _core.pushforward(fun, has_aux)(points, directions)


@public
def linearize(fun: Callable[..., Any], /, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its linearization: a function of tangents.

    The linearization takes one tangent for each argument, as ``jvp`` does, and returns the tangent
    of the value. What it needs of the values is computed once, for any number of directions;
    branches and loops are run again with each. With ``has_aux`` the function returns a pair, its
    value and the rest; the rest is returned last.

    Shapes: that of the value; each tangent has the shape of its argument, or of the value.
    Dtypes: as for ``jvp``.
    Grad: differentiable to any order, in both modes.
    Raises: as ``jvp``.

    >>> value, push = dn.linearize(lambda x: dn.sin(x), 0.0)
    >>> float(value), float(push(1.0)), float(push(3.0))
    (0.0, 1.0, 3.0)
    """
    return _core.linearize(fun, primals, has_aux)


@public
def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], /
) -> tuple[Any, ...]:
    """The Hessian-vector product: the derivative of the gradient in a direction.

    It is computed forward over reverse, in about three times the time of the gradient, and the
    Hessian is never formed. ``fun`` returns one number; ``primals`` and ``tangents`` are as for
    ``jvp``.

    Shapes: those of the arguments, in a tuple with one entry for each.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: as ``jvp`` and ``grad``.

    >>> x, direction = dn.tensor([1.0, 2.0]), dn.tensor([1.0, 1.0])
    >>> (product,) = dn.hvp(lambda x: (x**3).sum(), (x,), (direction,))
    >>> product.to_list()
    [6.0, 12.0]
    """
    points = _arguments("hvp", "primals", primals)
    directions = _arguments("hvp", "tangents", tangents)
    gradient = _core.gradient(fun, tuple(range(len(points))))
    return _core.pushforward(gradient, False)(points, directions)[1]


@public
def vjp(
    fun: Callable[..., Any],
    /,
    *primals: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
) -> Any:
    """The value of a function, and its vector-Jacobian product.

    ``vjp(fun)`` returns a function of the same arguments that returns both. The product is a
    function that takes a cotangent with the structure of the value. It returns the cotangent of the
    variable, or a tuple of cotangents if ``argnums`` is a list. If the given cotangent has
    vectorized axes that the value lacks, each position on them is pulled back separately.

    ``vjp(fun, *primals)`` returns both at these arguments, with a tuple of the cotangents of all.
    With ``has_aux`` the function returns a pair, its value and the rest; the rest is returned last.

    Shapes: that of the value; each cotangent has the shape and names of its variable.
    Dtypes: as for ``grad``.
    Grad: differentiable to any order.
    Raises: ``ContainerError`` for a cotangent of another structure, ``ShapeError`` for one of
        another shape, ``TraceError`` for an operation without a gradient.

    >>> value, back = dn.vjp(lambda x: x * x)(dn.tensor([1.0, 2.0]))
    >>> back(dn.tensor([1.0, 10.0])).to_list()
    [2.0, 40.0]
    >>> value, back = dn.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(cotangent) for cotangent in back(1.0)]
    [3.0, 2.0]
    """
    if primals:
        if argnums != 0:
            raise option_error("vjp: argnums is for vjp(fun), vjp(fun, *primals) takes none")
        return _core.vjp(fun, tuple(range(len(primals))), primals, None, has_aux)

    @functools.wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return _core.vjp(fun, argnums, args, kwargs, has_aux)

    return differentiated
