"""Rows of a table, and elements dropped at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axes, TensorLike

__all__ = [
    "dropout",
    "dropout_split",
    "embedding",
]


@forwards(_core.embedding)
def embedding(table: TensorLike, indices: TensorLike, /) -> Tensor:
    """The rows of a table, along its first axis, at indices.

    An index out of range, also a negative one, raises where it is known: in an eager call on the
    CPU, and as a number. In a compiled program and on devices its row is NaN.

    Shapes: those of the indices, then those of the table without its first axis; names are kept.
    Dtypes: a real table, whose integers become f32, and integers for the indices.
    Grad: added to the table at the indices.
    Raises: ``DTypeError`` for a complex table and for indices that are not integers, ``AxisError``
        for a table without axes, ``BoundsError`` for an index out of range.

    >>> table = dn.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> dn.nn.embedding(table, dn.tensor([2, 0])).to_list()
    [[4.0, 5.0], [0.0, 1.0]]
    """
    ...


@forwards(_core.dropout)
def dropout(
    tensor: TensorLike,
    key: TensorLike,
    /,
    rate: float = 0.5,
    *,
    shared_axes: Axes = (),
) -> tuple[Tensor, Tensor]:
    """Elements that are 0 with the probability ``rate``, and the next key.

    What is left is divided by ``1 - rate``, so that means stay. Along ``shared_axes`` all elements
    share one draw. To predict, do not call it, or pass the rate 0. Srivastava, Hinton, Krizhevsky,
    Sutskever & Salakhutdinov, "Dropout: a simple way to prevent neural networks from overfitting"
    (2014).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: through the elements that are left.
    Raises: ``DTypeError`` for complex operands and for an invalid key, ``OptionError`` for a rate
        that is not from 0 to 1, ``AxisError`` for axes that there are not.

    >>> x, key = dn.nn.dropout(dn.broadcast(1.0, (6,)), dn.random.key(1), 0.5)
    >>> set(x.to_list()) == {0.0, 2.0}
    True
    """
    ...


@forwards(_core.dropout_split)
def dropout_split(
    tensor: TensorLike,
    key: TensorLike,
    /,
    rate: float = 0.5,
    *,
    shared_axes: Axes = (),
) -> Tensor:
    """Like :func:`dropout`, but draws from ``key`` itself and returns only the value.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: through the elements that are left.
    Raises: as :func:`dropout`.

    >>> x = dn.broadcast(1.0, (2, 3))
    >>> rows = dn.nn.dropout_split(x, dn.random.key(1), 0.5, shared_axes=1)
    >>> all(len(set(row)) == 1 for row in rows.to_list())
    True
    """
    ...
