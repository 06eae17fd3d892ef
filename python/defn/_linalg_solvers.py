"""Functions of ``defn.linalg``: linear systems that are solved by products with the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import public

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = ["bicgstab", "cg", "gmres"]


@public
def bicgstab(
    a: TensorLike | Callable[[Any], Any],
    b: Any,
    /,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    m: TensorLike | Callable[[Any], Any] | None = None,
) -> tuple[Any, Tensor]:
    """The solution ``x`` of ``a @ x = b`` by BiCGSTAB, for any matrix.

    The arguments, and the result ``(x, info)``, are those of :func:`cg`. An iteration takes two
    products with the matrix. The preconditioner is on the right: residuals are those of the system
    itself. After a breakdown the method begins again from its last iterate.

    Source: van der Vorst, Bi-CGSTAB: A Fast and Smoothly Converging Variant of Bi-CG for the
    Solution of Nonsymmetric Linear Systems, 1992.

    Shapes: as :func:`cg`.
    Dtypes: as :func:`cg`.
    Grad: as :func:`cg`, for any matrix.
    Raises: as :func:`cg`.

    >>> a = dn.tensor([[4.0, 1.0], [-2.0, 3.0]])
    >>> x, info = dn.linalg.bicgstab(a, dn.tensor([6.0, 4.0]))
    >>> dn.round(x).to_list(), int(info)
    ([1.0, 2.0], 0)
    """
    return _core.linear_solve("bicgstab", a, b, x0, rtol, atol, maxiter, m)


@public
def cg(
    a: TensorLike | Callable[[Any], Any],
    b: Any,
    /,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    m: TensorLike | Callable[[Any], Any] | None = None,
) -> tuple[Any, Tensor]:
    """The solution ``x`` of ``a @ x = b`` by conjugate gradients, for a Hermitian positive definite
    matrix.

    ``a`` is a matrix, or a function that multiplies by it: it takes a container like ``b`` and
    returns one. It must be linear, which is not checked. It is called once, while it is traced.
    ``m`` is a preconditioner, an approximate inverse of ``a`` in one of these forms, and Hermitian
    positive definite too. Iterations begin with ``x0``, or with zeros.

    The result is ``(x, info)``. ``info`` is 0 where the norm of ``b - a @ x`` is at most
    ``max(rtol * norm(b), atol)``, which is checked by the residual itself. Else it is the number of
    iterations done: there were ``maxiter`` of them, by default ten for each unknown, or the method
    made no more progress, for example because the matrix is singular. The method does not find out
    that a matrix is not positive definite.

    With vectorized axes there is a system for each position. They are solved together, and each
    ends by itself.

    Source: Hestenes and Stiefel, Methods of Conjugate Gradients for Solving Linear Systems, 1952.

    Shapes: ``a`` and ``m`` are ``{n, n}`` for a ``b`` of ``{n}`` or ``{n, k}``; functions take any
        shapes. ``x`` has those of ``b``, ``info`` is a scalar.
    Dtypes: floats and complex; integers become f32. A matrix and ``b`` are promoted; functions keep
        the dtypes. Floats of 8 and 16 bits are computed in f32. ``info`` is s32.
    Grad: that of the solution, not of the iterations, in both modes and of any order: to ``b``, to
        a matrix, and to what a function captures, but not to ``m`` and ``x0``. It solves systems
        with the matrix or its transpose in the same way, and is NaN where they do not converge.
    Raises: ``ShapeError`` for other shapes, ``DTypeError`` or ``ShapeError`` for a function whose
        result has other types than its argument, ``ContainerError`` if it has another structure,
        ``OptionError`` for a negative tolerance and a ``maxiter`` below 1.

    >>> a = dn.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = dn.linalg.cg(a, dn.tensor([6.0, 7.0]))
    >>> dn.round(x).to_list(), int(info)
    ([1.0, 2.0], 0)
    >>> def laplacian(x):  # Without a matrix: 2 x[i] - x[i - 1] - x[i + 1].
    ...     return 2.0 * x - dn.pad(x[:-1], 0.0, [(1, 0, 0)]) - dn.pad(x[1:], 0.0, [(0, 1, 0)])
    >>> x, _ = dn.linalg.cg(laplacian, dn.tensor([1.0, 0.0, 1.0]))
    >>> dn.round(x).to_list()
    [1.0, 1.0, 1.0]
    """
    return _core.linear_solve("cg", a, b, x0, rtol, atol, maxiter, m)


@public
def gmres(
    a: TensorLike | Callable[[Any], Any],
    b: Any,
    /,
    *,
    x0: Any = None,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    m: TensorLike | Callable[[Any], Any] | None = None,
    restart: int = 20,
) -> tuple[Any, Tensor]:
    """The solution ``x`` of ``a @ x = b`` by GMRES, for any matrix.

    The arguments, and the result ``(x, info)``, are those of :func:`cg`. An iteration is a cycle of
    at most ``restart`` products with the matrix, for which as many vectors are kept; ``maxiter``
    and ``info`` count cycles. With ``restart`` equal to the number of unknowns, the first cycle
    solves every regular system. The preconditioner is on the right: residuals are those of the
    system itself.

    Source: Saad and Schultz, GMRES: A Generalized Minimal Residual Algorithm for Solving
    Nonsymmetric Linear Systems, 1986.

    Shapes: as :func:`cg`.
    Dtypes: as :func:`cg`.
    Grad: as :func:`cg`, for any matrix.
    Raises: as :func:`cg`, and ``OptionError`` for a ``restart`` below 1.

    >>> a = dn.tensor([[4.0, 1.0], [-2.0, 3.0]])
    >>> x, info = dn.linalg.gmres(a, dn.tensor([6.0, 4.0]))
    >>> dn.round(x).to_list(), int(info)
    ([1.0, 2.0], 0)
    """
    return _core.linear_solve("gmres", a, b, x0, rtol, atol, maxiter, m, restart)
