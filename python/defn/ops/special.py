"""Special functions of real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "betainc",
    "betaln",
    "digamma",
    "gammainc",
    "gammaincc",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "ndtr",
    "ndtri",
    "trigamma",
]


@quick
@forwards(_core.lgamma)
def lgamma(tensor: TensorLike) -> Tensor:
    """``log(|gamma(x)|)``, which is infinite at 0 and at negative integers.

    Taylor series around 2 (Abramowitz & Stegun, 6.1.33), Stirling's formula from 8 on.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * digamma(x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.lgamma(dn.tensor([1.0, 2.0, 0.0])).to_list()
    [0.0, 0.0, inf]
    """
    ...


@quick
@forwards(_core.digamma)
def digamma(tensor: TensorLike) -> Tensor:
    """The derivative of :func:`lgamma`. It is infinite at 0 and NaN at negative integers.

    Recurrence and asymptotic series (Abramowitz & Stegun, 6.3.18); a series around the
    positive root, so that the zero is exact to the last digits.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * trigamma(x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.digamma(1.0)):.6f}"
    '-0.577216'
    """
    ...


@quick
@forwards(_core.trigamma)
def trigamma(tensor: TensorLike) -> Tensor:
    """The derivative of :func:`digamma`; infinite at 0 and at negative integers.

    Recurrence and asymptotic series (Abramowitz & Stegun, 6.4.12).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: of the definition.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.trigamma(1.0)):.6f}"
    '1.644934'
    """
    ...


@quick
@forwards(_core.i0)
def i0(tensor: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    Power series below 8 (Abramowitz & Stegun, 9.6.10); from 8 on ``exp(x) / sqrt(x)`` times
    a polynomial in ``1 / x``, as in Moshier's Cephes library (1989).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * i1(x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.i0(1.0)):.6f}"
    '1.266066'
    """
    ...


@quick
@forwards(_core.i0e)
def i0e(tensor: TensorLike) -> Tensor:
    """``exp(-|x|) * i0(x)``, without overflow.

    As for :func:`i0`.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * (i1e(x) - sign(x) * y)``.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.i0e(1000.0)):.6f}"
    '0.012617'
    """
    ...


@quick
@forwards(_core.i1)
def i1(tensor: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 1.

    As for :func:`i0`.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * (i0(x) - y / x)``.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.i1(1.0)):.6f}"
    '0.565159'
    """
    ...


@quick
@forwards(_core.i1e)
def i1e(tensor: TensorLike) -> Tensor:
    """``exp(-|x|) * i1(x)``, without overflow.

    As for :func:`i0`.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * (i0e(x) - y * (sign(x) + 1 / x))``.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.i1e(1000.0)):.6f}"
    '0.012611'
    """
    ...


@quick
@forwards(_core.ndtr)
def ndtr(tensor: TensorLike) -> Tensor:
    """The distribution function of the standard normal distribution.

    ``erfc(-x / sqrt(2)) / 2``.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * exp(-x**2 / 2) / sqrt(2 pi)``.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.ndtr(dn.tensor([0.0, float("inf")])).to_list()
    [0.5, 1.0]
    """
    ...


@quick
@forwards(_core.ndtri)
def ndtri(tensor: TensorLike) -> Tensor:
    """The quantile of the standard normal distribution: the inverse of :func:`ndtr`. NaN outside of
    0 to 1.

    Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988).

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * sqrt(2 pi) * exp(y**2 / 2)``.
    Raises: ``DTypeError`` for complex operands.

    >>> f"{float(dn.ndtri(0.975)):.6f}"
    '1.959964'
    """
    ...


@quick
@forwards(_core.betaln)
def betaln(a: TensorLike, b: TensorLike, /) -> Tensor:
    """``log(|beta(a, b)|)``: ``lgamma(a) + lgamma(b) - lgamma(a + b)`` without its cancellation for
    large operands.

    DiDonato & Morris, "Significant digit computation of the incomplete beta function
    ratios" (1992).

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g`` times ``digamma(a) - digamma(a + b)``, and times ``digamma(b) - digamma(a +
        b)``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> f"{float(dn.betaln(2.0, 3.0)):.6f}"
    '-2.484907'
    """
    ...


@quick
@forwards(_core.gammainc)
def gammainc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularized lower incomplete gamma function: the integral of
    ``t**(a - 1) * exp(-t) / gamma(a)`` from 0 to ``x``. NaN for negative operands.

    Power series, Legendre's continued fraction, and Temme's uniform expansion (1979) for
    large ``a`` near ``x``; the derivative by ``a`` is that of the same terms (Moore, Algorithm
    AS 187, 1982).

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g`` times the density ``x**(a - 1) exp(-x) / gamma(a)`` to ``x``; ``g`` times the
        derivative by ``a``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> f"{float(dn.gammainc(2.0, 3.0)):.6f}"
    '0.800852'
    """
    ...


@quick
@forwards(_core.gammaincc)
def gammaincc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularized upper incomplete gamma function: ``1 - gammainc(a, x)`` without its
    cancellation.

    As for :func:`gammainc`.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: that of ``gammainc``, negated.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> f"{float(dn.gammaincc(2.0, 3.0)):.6f}"
    '0.199148'
    """
    ...


@quick
@forwards(_core.betainc)
def betainc(a: TensorLike, b: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularized incomplete beta function: the integral of
    ``t**(a - 1) * (1 - t)**(b - 1) / beta(a, b)`` from 0 to ``x``. NaN for negative
    parameters and for an ``x`` outside of 0 to 1.

    Continued fraction (Abramowitz & Stegun, 26.5.8; Didonato & Morris, 1992). The number of its
    terms grows with the square root of the greatest parameter.

    Shapes: broadcast together; axis names merge.
    Dtypes: real; promoted, integers to f32; Python numbers are weakly typed.
    Grad: ``g`` times the density to ``x``; ``g`` times the derivatives by ``a`` and ``b``.
    Raises: ``ShapeError`` if the shapes do not broadcast, ``AxisError`` if axis names differ,
        ``DTypeError`` for complex operands.

    >>> f"{float(dn.betainc(2.0, 3.0, 0.5)):.6f}"
    '0.687500'
    """
    ...
