"""Activations of neural networks, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axis, TensorLike

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "silu",
    "softplus",
    "softsign",
]


@quick
@forwards(_core.relu)
def relu(tensor: TensorLike, /) -> Tensor:
    """``x`` where it is positive, else 0. NaN stays NaN.

    Nair & Hinton, "Rectified linear units improve restricted Boltzmann machines" (2010).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g`` where ``x > 0``, else 0, also at 0.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.relu(dn.tensor([-1.0, 0.0, 2.0])).to_list()
    [0.0, 0.0, 2.0]
    """
    ...


@quick
@forwards(_core.relu6)
def relu6(tensor: TensorLike, /) -> Tensor:
    """``x`` between 0 and 6.

    Krizhevsky, "Convolutional deep belief networks on CIFAR-10" (2010).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g`` where ``0 < x < 6``, else 0, also at both ends.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.relu6(dn.tensor([-1.0, 2.0, 8.0])).to_list()
    [0.0, 2.0, 6.0]
    """
    ...


@forwards(_core.leaky_relu)
def leaky_relu(tensor: TensorLike, /, negative_slope: float = 0.01) -> Tensor:
    """``x`` where it is not negative, else ``negative_slope * x``.

    Maas, Hannun & Ng, "Rectifier nonlinearities improve neural network acoustic models" (2013).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g`` where ``x >= 0``, else ``negative_slope * g``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.leaky_relu(dn.tensor([-1.0, 2.0]), 0.5).to_list()
    [-0.5, 2.0]
    """
    ...


@forwards(_core.elu)
def elu(tensor: TensorLike, /, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Clevert, Unterthiner & Hochreiter, "Fast and accurate deep network learning by exponential
    linear units" (2015).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g`` where ``x > 0``, else ``g * alpha * exp(x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.elu(dn.tensor([-100.0, 0.0, 2.0])).to_list()
    [-1.0, 0.0, 2.0]
    """
    ...


@quick
@forwards(_core.selu)
def selu(tensor: TensorLike, /) -> Tensor:
    """``scale * elu(x, alpha)`` with the constants that keep a mean of 0 and a variance of 1.

    Klambauer, Unterthiner, Mayr & Hochreiter, "Self-normalizing neural networks" (2017).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: that of :func:`elu`, times the scale.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.nn.selu(1.0)):.6f}"
    '1.050701'
    """
    ...


@forwards(_core.celu)
def celu(tensor: TensorLike, /, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``: a continuous slope.

    Barron, "Continuously differentiable exponential linear units" (2017).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g`` where ``x > 0``, else ``g * exp(x / alpha)``.
    Raises: ``DTypeError`` for complex operands, ``OptionError`` for an ``alpha`` of 0.

    >>> dn.nn.celu(dn.tensor([-100.0, 0.0, 2.0]), 2.0).to_list()
    [-2.0, 0.0, 2.0]
    """
    ...


@forwards(_core.gelu)
def gelu(tensor: TensorLike, /, approximate: bool = False) -> Tensor:
    """``x`` times the distribution function of the standard normal distribution.

    With ``approximate``, that is ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2``. Hendrycks
    & Gimpel, "Gaussian error linear units" (2016).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: that of the product.
    Raises: ``DTypeError`` for complex operands.

    >>> x = dn.tensor([-1.0, 1.0], dtype="f64")
    >>> [f"{value:.4f}" for value in dn.nn.gelu(x).to_list()]
    ['-0.1587', '0.8413']
    >>> [f"{value:.4f}" for value in dn.nn.gelu(x, approximate=True).to_list()]
    ['-0.1588', '0.8412']
    """
    ...


@quick
@forwards(_core.silu)
def silu(tensor: TensorLike, /) -> Tensor:
    """``x * sigmoid(x)``, also called swish.

    Hendrycks & Gimpel, "Gaussian error linear units" (2016); Ramachandran, Zoph & Le, "Searching
    for activation functions" (2017).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: that of the product.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.nn.silu(1.0)):.6f}"
    '0.731059'
    """
    ...


@quick
@forwards(_core.softplus)
def softplus(tensor: TensorLike, /) -> Tensor:
    """``log(1 + exp(x))`` without overflow.

    Dugas, Bengio, Bélisle, Nadeau & Garcia, "Incorporating second-order functional knowledge for
    better option pricing" (2001).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * sigmoid(x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.softplus(dn.tensor([-1000.0, 1000.0])).to_list()
    [0.0, 1000.0]
    """
    ...


@quick
@forwards(_core.softsign)
def softsign(tensor: TensorLike, /) -> Tensor:
    """``x / (1 + |x|)``.

    Turian, Bergstra & Bengio, "Quadratic features and deep architectures for chunking" (2009).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g / (1 + |x|)^2``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.softsign(dn.tensor([-1.0, 0.0, 3.0])).to_list()
    [-0.5, 0.0, 0.75]
    """
    ...


@quick
@forwards(_core.hard_tanh)
def hard_tanh(tensor: TensorLike, /) -> Tensor:
    """``x`` between -1 and 1.

    Collobert, "Large scale machine learning" (2004).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g`` where ``-1 <= x <= 1``, else 0.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.hard_tanh(dn.tensor([-3.0, 0.5, 2.0])).to_list()
    [-1.0, 0.5, 1.0]
    """
    ...


@quick
@forwards(_core.hard_sigmoid)
def hard_sigmoid(tensor: TensorLike, /) -> Tensor:
    """``relu6(x + 3) / 6``, the sigmoid in three straight pieces.

    Howard et al., "Searching for MobileNetV3" (2019).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g / 6`` where ``-3 < x < 3``, else 0.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.hard_sigmoid(dn.tensor([-4.0, 0.0, 4.0])).to_list()
    [0.0, 0.5, 1.0]
    """
    ...


@quick
@forwards(_core.hard_silu)
def hard_silu(tensor: TensorLike, /) -> Tensor:
    """``x * hard_sigmoid(x)``, also called hard swish.

    Howard et al., "Searching for MobileNetV3" (2019).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: that of the product.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.hard_silu(dn.tensor([-4.0, 1.5, 4.0])).to_list()
    [-0.0, 1.125, 4.0]
    """
    ...


@quick
@forwards(_core.log_sigmoid)
def log_sigmoid(tensor: TensorLike, /) -> Tensor:
    """``log(sigmoid(x))`` without overflow.

    It is ``-softplus(-x)``.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * sigmoid(-x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.nn.log_sigmoid(dn.tensor([-1000.0, 1000.0])).to_list()
    [-1000.0, -0.0]
    """
    ...


@quick
@forwards(_core.mish)
def mish(tensor: TensorLike, /) -> Tensor:
    """``x * tanh(softplus(x))``.

    Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: that of the product.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.nn.mish(1.0)):.6f}"
    '0.865098'
    """
    ...


@forwards(_core.glu)
def glu(tensor: TensorLike, /, axis: Axis = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second half.

    Dauphin, Fan, Auli & Grangier, "Language modeling with gated convolutional networks" (2016).

    Shapes: half the size on the axis; names are kept.
    Dtypes: real; integers become f32.
    Grad: that of the product.
    Raises: ``DTypeError`` for complex operands, ``AxisError`` for an axis that there is not,
        ``ShapeError`` for an odd size.

    >>> dn.nn.glu(dn.tensor([1.0, 2.0, 0.0, 0.0])).to_list()
    [0.5, 1.0]
    """
    ...
