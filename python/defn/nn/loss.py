"""Losses of single elements, and of examples along an axis: neither summed nor averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axis, TensorLike

__all__ = [
    "absolute_error",
    "binary_cross_entropy",
    "cosine_similarity",
    "cross_entropy",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "squared_error",
]


@forwards(_core.cross_entropy)
def cross_entropy(logits: TensorLike, labels: TensorLike, /, axis: Axis = -1) -> Tensor:
    """The negative logarithm of the probability that softmax of the logits gives to each label.

    Labels that are integers are classes. Labels that are floats are probabilities of all classes,
    by which the negative logarithms are weighted; 0 times infinity is 0.

    A class out of range raises where it is known: in an eager call on the CPU, and as a number. In
    a compiled program and on devices its loss is NaN.

    Shapes: that of the logits without the axis. Classes broadcast to this shape, probabilities to
        that of the logits.
    Dtypes: real logits, labels of integers or floats; probabilities and logits are promoted,
        integers become f32.
    Grad: ``g * (softmax(logits) - p)`` to the logits, where ``p`` are the probabilities, or 1 at
        the class.
    Raises: ``DTypeError`` for complex logits and for labels that are bools or complex,
        ``ShapeError`` for labels that do not fit, ``AxisError`` for an axis that there is not,
        ``BoundsError`` for a class out of range.

    >>> logits = dn.tensor([[1000.0, 0.0], [0.0, 0.0]])
    >>> [f"{loss:.4f}" for loss in dn.nn.cross_entropy(logits, dn.tensor([0, 1])).to_list()]
    ['0.0000', '0.6931']
    >>> p = dn.tensor([[0.5, 0.5], [0.25, 0.75]])
    >>> [f"{loss:.4f}" for loss in dn.nn.cross_entropy(logits, p).to_list()]
    ['500.0000', '0.6931']
    """
    ...


@quick
@forwards(_core.binary_cross_entropy)
def binary_cross_entropy(logits: TensorLike, labels: TensorLike, /) -> Tensor:
    """The negative logarithm of the probability that sigmoid of a logit gives to its label.

    A label is 0 or 1, or a probability in between. Both logarithms keep their digits for logits of
    any size.

    Shapes: broadcast; names merge.
    Dtypes: real; promoted, integers to f32.
    Grad: ``g * (sigmoid(logits) - labels)`` to the logits.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast.

    >>> f"{float(dn.nn.binary_cross_entropy(0.0, 1.0)):.4f}"
    '0.6931'
    >>> dn.nn.binary_cross_entropy(dn.tensor([1000.0, -1000.0]), 1.0).to_list()
    [0.0, 1000.0]
    """
    ...


@quick
@forwards(_core.squared_error)
def squared_error(predictions: TensorLike, targets: TensorLike, /) -> Tensor:
    """``(predictions - targets)^2``.

    Half of it is the loss that others call l2.

    Shapes: broadcast; names merge.
    Dtypes: real; promoted, integers to f32.
    Grad: ``2 * g * (predictions - targets)``, and the opposite.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast.

    >>> dn.nn.squared_error(dn.tensor([1.0, 4.0]), 1.0).to_list()
    [0.0, 9.0]
    """
    ...


@quick
@forwards(_core.absolute_error)
def absolute_error(predictions: TensorLike, targets: TensorLike, /) -> Tensor:
    """``|predictions - targets|``.

    It is also called l1.

    Shapes: broadcast; names merge.
    Dtypes: real; promoted, integers to f32.
    Grad: ``g`` times the sign of the difference, and the opposite; 0 where the operands are equal.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast.

    >>> dn.nn.absolute_error(dn.tensor([1.0, -2.0]), 1.0).to_list()
    [0.0, 3.0]
    """
    ...


@forwards(_core.huber)
def huber(predictions: TensorLike, targets: TensorLike, /, delta: float = 1.0) -> Tensor:
    """Half the square of an error up to ``delta``, and beyond it the line that continues it.

    Huber, "Robust estimation of a location parameter" (1964).

    Shapes: broadcast; names merge.
    Dtypes: real; promoted, integers to f32.
    Grad: ``g`` times the difference, at most ``delta`` in size, and the opposite.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast,
        ``OptionError`` for a ``delta`` that is not a finite number above 0.

    >>> dn.nn.huber(dn.tensor([1.5, 4.0]), 1.0).to_list()
    [0.125, 2.5]
    """
    ...


@quick
@forwards(_core.log_cosh)
def log_cosh(predictions: TensorLike, targets: TensorLike, /) -> Tensor:
    """``log(cosh(predictions - targets))``, without overflow and with all digits near 0.

    Shapes: broadcast; names merge.
    Dtypes: real; promoted, integers to f32.
    Grad: ``g * tanh(predictions - targets)``, and the opposite.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast.

    >>> f"{float(dn.nn.log_cosh(1e-3, 0.0)):.4e}"
    '5.0000e-07'
    >>> f"{float(dn.nn.log_cosh(1000.0, 0.0)):.4f}"
    '999.3068'
    """
    ...


@quick
@forwards(_core.hinge)
def hinge(scores: TensorLike, labels: TensorLike, /) -> Tensor:
    """``1 - scores * labels`` where it is positive, else 0, for labels of -1 and 1.

    Cortes & Vapnik, "Support-vector networks" (1995).

    Shapes: broadcast; names merge.
    Dtypes: real; promoted, integers to f32.
    Grad: ``-g * labels`` to the scores where the loss is positive, else 0.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast.

    >>> dn.nn.hinge(dn.tensor([0.5, 3.0, -1.0]), 1.0).to_list()
    [0.5, 0.0, 2.0]
    """
    ...


@forwards(_core.cosine_similarity)
def cosine_similarity(
    x: TensorLike, y: TensorLike, /, axis: Axis = -1, *, eps: float = 1e-8
) -> Tensor:
    """The cosine of the angle between vectors along an axis.

    A norm counts as at least ``eps``, so that vectors of zeros have the cosine 0.

    Shapes: that of the operands broadcast together, without the axis.
    Dtypes: real; promoted, integers to f32.
    Grad: through the unit vectors.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast,
        ``AxisError`` for an axis that there is not, ``OptionError`` for an ``eps`` that is not
        positive.

    >>> x = dn.tensor([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> dn.nn.cosine_similarity(x, dn.tensor([5.0, 0.0])).to_list()
    [1.0, 0.0, 0.0]
    """
    ...


@forwards(_core.kl_divergence)
def kl_divergence(log_predictions: TensorLike, targets: TensorLike, /, axis: Axis = -1) -> Tensor:
    """The divergence of predicted from target probabilities along an axis.

    It is the sum of ``targets * (log(targets) - log_predictions)``, where 0 times infinity is 0.
    Kullback & Leibler, "On information and sufficiency" (1951).

    Shapes: that of the operands broadcast together, without the axis.
    Dtypes: real; promoted, integers to f32.
    Grad: ``-g * targets`` to the predictions, ``g * (log(targets) + 1 - log_predictions)`` to the
        targets.
    Raises: ``DTypeError`` for complex operands, ``ShapeError`` for shapes that do not broadcast,
        ``AxisError`` for an axis that there is not.

    >>> p = dn.tensor([0.5, 0.5, 0.0])
    >>> f"{float(dn.nn.kl_divergence(dn.log(dn.tensor([0.25, 0.5, 0.25])), p)):.4f}"
    '0.3466'
    """
    ...
