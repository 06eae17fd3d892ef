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
    from typing import Any, Literal

    from scipy.sparse import csr_array

    from defn._core import Jitted, Tensor

__all__ = [
    "custom_grad",
    "custom_jvp",
    "grad",
    "hessian",
    "hvp",
    "implicit",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "stop_grad",
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
