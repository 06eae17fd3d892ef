"""Random orthogonal matrices, and points of balls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import DTypeLike, Names, Shape, TensorLike

__all__ = ["ball", "ball_split", "orthogonal", "orthogonal_split"]


@forwards(_core.random_ball)
def ball(
    key: TensorLike,
    d: int,
    p: TensorLike = 2.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random points of the unit ball of the ``p``-norm in ``d`` dimensions, uniformly distributed;
    NaN where ``p`` is not positive, and the next key.

    Barthe, Guedon, Mendelson & Naor, "A probabilistic approach to the geometry of the l_p^n-ball"
    (2005): from gamma-distributed numbers with the shape parameter ``1 / p`` and an exponential
    one. ``math.inf`` is the cube.

    Shapes: the given shape, which ``names`` name and to which ``p`` broadcasts, and an axis of
        size ``d``.
    Dtypes: floats; by default that of ``p``, f32 for numbers and integers.
    Grad: to ``p``, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for a complex ``p``, ``OptionError`` for a
        negative ``d`` and for a dtype that is not a float, ``ShapeError`` for a ``p`` that does
        not broadcast to the shape.

    >>> value, key = dn.random.ball(dn.random.key(1), 3, shape=2)
    >>> value.shape, bool(dn.all(dn.linalg.norm(value, axes=1) <= 1))
    ((2, 3), True)
    """
    ...


@forwards(_core.random_ball_split)
def ball_split(
    key: TensorLike,
    d: int,
    p: TensorLike = 2.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`ball`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, which ``names`` name and to which ``p`` broadcasts, and an axis of
        size ``d``.
    Dtypes: floats; by default that of ``p``, f32 for numbers and integers.
    Grad: to ``p``, as for :func:`gamma`.
    Raises: as :func:`ball`.

    >>> dn.random.ball_split(dn.random.key(1), 3, 1.0, shape=2).shape
    (2, 3)
    """
    ...


@forwards(_core.random_orthogonal)
def orthogonal(
    key: TensorLike,
    n: int,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random orthogonal matrices, for complex dtypes unitary ones, and the next key.

    They are uniformly distributed: a product with any orthogonal matrix has the same
    distribution. Stewart, "The efficient generation of random orthogonal matrices with an
    application to condition estimators" (1980), and Mezzadri, "How to generate random matrices
    from the classical compact groups" (2007): the QR factorization of a normal matrix, with the
    signs of the diagonal of ``r`` moved to ``q``.

    Shapes: the given shape, which ``names`` name, and two axes of size ``n``.
    Dtypes: floats and complex; by default f32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a negative ``n`` and for a dtype
        that is neither float nor complex.

    >>> q, key = dn.random.orthogonal(dn.random.key(1), 3)
    >>> q.shape, dn.all_close(q @ q.T, dn.eye(3), atol=1e-5).item()
    ((3, 3), True)
    """
    ...


@forwards(_core.random_orthogonal_split)
def orthogonal_split(
    key: TensorLike,
    n: int,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`orthogonal`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, which ``names`` name, and two axes of size ``n``.
    Dtypes: floats and complex; by default f32.
    Grad: none.
    Raises: as :func:`orthogonal`.

    >>> dn.random.orthogonal_split(dn.random.key(1), 3, shape=2, dtype="c64").shape
    (2, 3, 3)
    """
    ...
