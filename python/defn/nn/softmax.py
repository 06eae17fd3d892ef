"""Softmax, and classes as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axes, DTypeLike, TensorLike

__all__ = [
    "log_softmax",
    "one_hot",
    "softmax",
]


@forwards(_core.softmax)
def softmax(
    tensor: TensorLike, /, axes: Axes | None = -1, *, where: TensorLike | None = None
) -> Tensor:
    """``exp(x)`` divided by its sum over axes, without overflow.

    Elements that ``where`` does not select are 0, and so is everything where it selects none.
    Without ``where``, rows whose elements are all -inf are NaN. Bridle, "Training stochastic model
    recognition algorithms as networks" (1990).

    Shapes: unchanged; names are kept, and ``where`` broadcasts to the tensor.
    Dtypes: real; integers become f32.
    Grad: ``y * (g - sum(g * y))``.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not,
        ``ShapeError`` for a ``where`` that does not broadcast to the tensor.

    >>> x = dn.tensor([1000.0, 1000.0, 0.0])
    >>> dn.nn.softmax(x).to_list()
    [0.5, 0.5, 0.0]
    >>> dn.nn.softmax(x, where=dn.tensor([True, False, True])).to_list()
    [1.0, 0.0, 0.0]
    """
    ...


@forwards(_core.log_softmax)
def log_softmax(
    tensor: TensorLike, /, axes: Axes | None = -1, *, where: TensorLike | None = None
) -> Tensor:
    """The logarithm of :func:`softmax`, without its rounding to 0: ``x - logsumexp(x)``.

    Elements that ``where`` does not select are -inf.

    Shapes: unchanged; names are kept, and ``where`` broadcasts to the tensor.
    Dtypes: real; integers become f32.
    Grad: ``g - softmax(x) * sum(g)``.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for axes that there are not,
        ``ShapeError`` for a ``where`` that does not broadcast to the tensor.

    >>> dn.nn.log_softmax(dn.tensor([1000.0, 0.0])).to_list()
    [0.0, -1000.0]
    """
    ...


@forwards(_core.one_hot)
def one_hot(
    labels: TensorLike, /, classes: int, *, dtype: DTypeLike = "f32", axis: int = -1
) -> Tensor:
    """1 at the position of each label along a new axis, else 0.

    A label out of range has no 1: its row is zeros.

    Shapes: that of the labels, with a new axis of ``classes`` at ``axis`` of the result.
    Dtypes: the labels are integers.
    Grad: none.
    Raises: ``DTypeError`` for labels that are not integers, ``AxisError`` for a position that the
        new axis cannot have.

    >>> dn.nn.one_hot(dn.tensor([1, 5]), 3).to_list()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    ...
