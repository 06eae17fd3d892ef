"""Discrete Fourier transforms.

``eps`` is the magnitude below which a backend may set parts of a result to 0. The CPU backend does
not change them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor
    from defn.typing import Axis, FftLength, TensorLike

__all__ = ["fft", "fft2", "ifft", "ifft2", "irfft", "rfft"]


@forwards(_core.fft)
def fft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    eps: float = 1e-10,
) -> Tensor:
    """The discrete Fourier transform along an axis, unscaled.

    Shapes: ``axis`` is cut or padded with zeros to ``length``, by default its own size.
        ``"power_of_two"`` is the next power of two at or above that size. Names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        if the length is below 1.

    >>> dn.fft(dn.tensor([1, 1, 0, 0])).to_list()
    [(2+0j), (1-1j), 0j, (1+1j)]
    """
    ...


@forwards(_core.ifft)
def ifft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``fft``; it divides by the length.

    Shapes: ``axis`` is cut or padded with zeros to ``length``, by default its own size.
        ``"power_of_two"`` is the next power of two at or above that size. Names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        if the length is below 1.

    >>> dn.ifft(dn.tensor([4, 0, 0, 0])).to_list()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    ...


@forwards(_core.fft2)
def fft2(
    tensor: TensorLike,
    *,
    axes: Sequence[Axis] = (-2, -1),
    lengths: Sequence[FftLength] | None = None,
    eps: float = 1e-10,
) -> Tensor:
    """The discrete Fourier transform along two axes, unscaled.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fft``. Names
        are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a rank below 2, ``AxisError`` unless two axes in range are given,
        ``OptionError`` if a length is below 1.

    >>> dn.fft2(dn.tensor([[1, 0], [1, 0]])).to_list()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    ...


@forwards(_core.ifft2)
def ifft2(
    tensor: TensorLike,
    *,
    axes: Sequence[Axis] = (-2, -1),
    lengths: Sequence[FftLength] | None = None,
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``fft2``.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fft``. Names
        are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a rank below 2, ``AxisError`` unless two axes in range are given,
        ``OptionError`` if a length is below 1.

    >>> dn.ifft2(dn.tensor([[2, 2], [0, 0]])).to_list()
    [[(1+0j), 0j], [(1+0j), 0j]]
    """
    ...


@forwards(_core.rfft)
def rfft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    eps: float = 1e-10,
) -> Tensor:
    """The first half of the frequencies of real elements. It determines the second half.

    Shapes: ``axis`` has ``length // 2 + 1`` frequencies; ``length`` is as in ``fft``. Names are
        kept.
    Dtypes: real; the result is c64, or c128 for f64.
    Grad: through ``fft``.
    Raises: ``DTypeError`` for complex elements; otherwise as ``fft``.

    >>> dn.rfft(dn.tensor([1, 1, 0, 0])).to_list()
    [(2+0j), (1-1j), 0j]
    """
    ...


@forwards(_core.irfft)
def irfft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: int | None = None,
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``rfft``: real elements from the first half of their frequencies.

    Shapes: ``axis`` gets ``length``, by default ``2 * (n - 1)`` for an axis of size n; the operand
        is cut or padded with zeros to ``length // 2 + 1``. Names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: through ``ifft``.
    Raises: ``OptionError`` if the axis has fewer than two elements and no length is given;
        otherwise as ``fft``.

    >>> dn.irfft(dn.tensor([2, 1 - 1j, 0])).to_list()
    [1.0, 1.0, 0.0, 0.0]
    """
    ...
