"""Integrals and slopes of samples, convolutions, correlations and polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, TensorLike

__all__ = ["convolve", "corrcoef", "correlate", "gradient", "polyfit", "polyval", "trapezoid"]


@forwards(_core.trapezoid)
def trapezoid(
    tensor: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: Axis = -1
) -> Tensor:
    """The integral along an axis by the trapezoidal rule.

    The samples are at the positions ``x``, or at the distance ``dx``.

    Shapes: the axis is removed; other axes keep their names. The positions are a vector, or have
        the shape of the tensor.
    Dtypes: any; promoted with the positions, integers to f32.
    Grad: through the definition, to both.
    Raises: ``AxisError`` if the axis is out of range, ``ShapeError`` if the positions do not fit.

    >>> dn.trapezoid(dn.tensor([1.0, 2.0, 4.0])).item()
    4.5
    """
    ...


@forwards(_core.slopes)
def gradient(
    tensor: TensorLike, *spacing: TensorLike, axes: Axes | None = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """The slopes along axes: central differences, and one-sided ones at the ends.

    ``spacing`` is the distance of neighbours, or a vector with the position of each element; one
    serves all axes, or there is one for each. ``edge_order`` is the order of the differences at the
    ends: 1 for those of two elements, 2 for those of three. (Fornberg, Generation of Finite
    Difference Formulas on Arbitrarily Spaced Grids, 1988.)

    Shapes: unchanged; names are kept. Several axes have a tuple of tensors.
    Dtypes: any; integers become f32. Distances are real.
    Grad: through the definition, to the tensor and the distances.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``OptionError`` if an axis has
        too few elements, the order is not 1 or 2, or the number of distances does not fit,
        ``ShapeError`` if a distance is neither a scalar nor a vector for its axis.

    >>> dn.gradient(dn.tensor([1.0, 2.0, 5.0])).to_list()
    [1.0, 2.0, 3.0]
    """
    ...


@forwards(_core.convolve)
def convolve(
    tensor: TensorLike, other: TensorLike, mode: Literal["full", "same", "valid"] = "full"
) -> Tensor:
    """The discrete convolution of two vectors.

    ``mode`` is "full" for all positions at which they overlap, "same" for as many as the longer one
    has elements, and "valid" for those at which they overlap completely. Floats of at least 512
    elements are multiplied as Fourier transforms, whose errors are relative to the greatest result.

    Shapes: a vector without a name.
    Dtypes: any but bool; promoted. Integers are summed in f64, exactly up to 2**53, and wrap.
    Grad: through the definition, to both.
    Raises: ``DTypeError`` for bools, ``ShapeError`` if an operand is no vector or has no element,
        ``OptionError`` if ``mode`` is unknown.

    >>> dn.convolve(dn.tensor([1, 2, 3]), dn.tensor([1, 10])).to_list()
    [1, 12, 23, 30]
    """
    ...


@forwards(_core.correlate)
def correlate(
    tensor: TensorLike, other: TensorLike, mode: Literal["full", "same", "valid"] = "valid"
) -> Tensor:
    """The sums of the products of a vector with the conjugate of another at all its positions.

    ``mode`` is as in ``convolve``, as are the errors.

    Shapes: a vector without a name.
    Dtypes: any but bool; promoted. Integers are summed in f64, exactly up to 2**53, and wrap.
    Grad: through the definition, to both.
    Raises: ``DTypeError`` for bools, ``ShapeError`` if an operand is no vector or has no element,
        ``OptionError`` if ``mode`` is unknown.

    >>> dn.correlate(dn.tensor([1, 2, 3]), dn.tensor([1, 10])).to_list()
    [21, 32]
    """
    ...


@forwards(_core.polyval)
def polyval(tensor: TensorLike, x: TensorLike) -> Tensor:
    """The values of a polynomial by Horner's rule.

    The tensor has its coefficients, that of the greatest power first.

    Shapes: those of ``x``, with their names; the coefficients are a vector.
    Dtypes: any; promoted, bools to s32. Integers wrap. Python numbers are weakly typed.
    Grad: through the definition, to both.
    Raises: ``ShapeError`` if the coefficients are no vector.

    >>> dn.polyval(dn.tensor([1, 0, 2]), dn.tensor([3, -1])).to_list()
    [11, 3]
    """
    ...


@forwards(_core.polyfit)
def polyfit(tensor: TensorLike, y: TensorLike, deg: int) -> Tensor:
    """The coefficients of the polynomial of degree ``deg`` that is nearest to points by least
    squares.

    The points have the positions of the tensor and the values ``y``. The coefficient of the
    greatest power is first.

    Shapes: a vector of ``deg + 1`` elements; the points are vectors of one size.
    Dtypes: real; promoted, integers to f32.
    Grad: through the definition, to both.
    Raises: ``DTypeError`` for complex elements, ``ShapeError`` unless the points are vectors of one
        size with a point.

    >>> line = dn.polyfit(dn.tensor([0.0, 1.0, 2.0]), dn.tensor([1.0, 3.0, 5.0]), 1)
    >>> dn.all_close(line, dn.tensor([2.0, 1.0])).item()
    True
    """
    ...


@forwards(_core.corrcoef)
def corrcoef(tensor: TensorLike, rowvar: bool = True) -> Tensor:
    """The correlation coefficients of variables: covariances divided by both standard deviations.

    The variables are the rows of a matrix, or without ``rowvar`` its columns. In ``covariance``
    they are the columns.

    Shapes: ``(n, m)`` becomes ``(n, n)``, or without ``rowvar`` ``(m, m)``, without names. A vector
        becomes a scalar.
    Dtypes: any; integers become f32.
    Grad: through the definition.
    Raises: ``ShapeError`` for another rank than 1 and 2 and for variables without values.

    >>> dn.corrcoef(dn.tensor([[1.0, 2.0], [5.0, 3.0]])).to_list()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    ...
