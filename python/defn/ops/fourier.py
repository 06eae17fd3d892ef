"""Discrete Fourier transforms.

``eps`` is the size below which a backend may clean parts of a result to 0. The CPU does not: what
a transform gives is not touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from defn._core import Tensor
    from defn.typing import Axis, FftLength, TensorLike

__all__ = ["fft", "fft2", "ifft", "ifft2", "irfft", "rfft"]


def fft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    eps: float = 1e-10,
    **unknown: Never,
) -> Tensor:
    """The discrete Fourier transform along an axis, unscaled.

    Shapes: ``axis`` gets the length, which is its own unless given; it is cut, or filled up with
        zeros. ``"power_of_two"`` is the least power of two that is not below it. Names stay.
    Dtypes: any; c64, c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        if the length is below 1.

    >>> dn.fft(dn.tensor([1, 1, 0, 0])).to_list()
    [(2+0j), (1-1j), 0j, (1+1j)]
    """
    if unknown:
        refuse_options("fft", unknown)
    return _core.fft(tensor, axis, length, eps)


def ifft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    eps: float = 1e-10,
    **unknown: Never,
) -> Tensor:
    """The inverse of ``fft``: divided by the length.

    Shapes: ``axis`` gets the length, which is its own unless given; it is cut, or filled up with
        zeros. ``"power_of_two"`` is the least power of two that is not below it. Names stay.
    Dtypes: any; c64, c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        if the length is below 1.

    >>> dn.ifft(dn.tensor([4, 0, 0, 0])).to_list()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    if unknown:
        refuse_options("ifft", unknown)
    return _core.ifft(tensor, axis, length, eps)


def fft2(
    tensor: TensorLike,
    *,
    axes: Sequence[Axis] = (-2, -1),
    lengths: Sequence[FftLength] | None = None,
    eps: float = 1e-10,
    **unknown: Never,
) -> Tensor:
    """The discrete Fourier transform along two axes, unscaled.

    Shapes: the axes get the lengths, in their order, which are their own unless given; see ``fft``.
        Names stay.
    Dtypes: any; c64, c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` below two axes, ``AxisError`` if the axes are not two or out of range,
        ``OptionError`` if a length is below 1.

    >>> dn.fft2(dn.tensor([[1, 0], [1, 0]])).to_list()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    if unknown:
        refuse_options("fft2", unknown)
    return _core.fft2(tensor, axes, lengths, eps)


def ifft2(
    tensor: TensorLike,
    *,
    axes: Sequence[Axis] = (-2, -1),
    lengths: Sequence[FftLength] | None = None,
    eps: float = 1e-10,
    **unknown: Never,
) -> Tensor:
    """The inverse of ``fft2``.

    Shapes: the axes get the lengths, in their order, which are their own unless given; see ``fft``.
        Names stay.
    Dtypes: any; c64, c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` below two axes, ``AxisError`` if the axes are not two or out of range,
        ``OptionError`` if a length is below 1.

    >>> dn.ifft2(dn.tensor([[2, 2], [0, 0]])).to_list()
    [[(1+0j), 0j], [(1+0j), 0j]]
    """
    if unknown:
        refuse_options("ifft2", unknown)
    return _core.ifft2(tensor, axes, lengths, eps)


def rfft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    eps: float = 1e-10,
    **unknown: Never,
) -> Tensor:
    """The first half of the frequencies of real elements, which determine the others.

    Shapes: ``axis`` gets ``length // 2 + 1`` frequencies; the length is as in ``fft``. Names stay.
    Dtypes: real; c64, c128 for f64.
    Grad: through ``fft``.
    Raises: ``DTypeError`` for complex elements; else as ``fft``.

    >>> dn.rfft(dn.tensor([1, 1, 0, 0])).to_list()
    [(2+0j), (1-1j), 0j]
    """
    if unknown:
        refuse_options("rfft", unknown)
    return _core.rfft(tensor, axis, length, eps)


def irfft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: int | None = None,
    eps: float = 1e-10,
    **unknown: Never,
) -> Tensor:
    """Real elements from the first half of their frequencies.

    Shapes: ``axis`` gets the length, ``2 * (n - 1)`` for an axis of size n unless it is given;
        the axis is cut, or filled up with zeros, to ``length // 2 + 1``. Names stay.
    Dtypes: any; the real half of complex ones, floats stay, integers give f32.
    Grad: through ``ifft``.
    Raises: ``OptionError`` if the axis has fewer than two elements and no length is given; else
        as ``fft``.

    >>> dn.irfft(dn.tensor([2, 1 - 1j, 0])).to_list()
    [1.0, 1.0, 0.0, 0.0]
    """
    if unknown:
        refuse_options("irfft", unknown)
    return _core.irfft(tensor, axis, length, eps)
