"""Discrete Fourier transforms.

``eps`` is the magnitude below which a backend may set parts of a result to 0. The CPU backend does
not change them.

``norm`` says which direction of a transform of n elements is divided: ``"backward"``, the default,
divides the inverse by n, ``"forward"`` the transform, and ``"ortho"`` both by the square root of n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axes, Axis, DTypeLike, FftLength, TensorLike

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


@forwards(_core.fft)
def fft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The discrete Fourier transform along an axis; by default it is unscaled.

    Shapes: ``axis`` is cut or padded with zeros to ``length``, by default its own size.
        ``"power_of_two"`` is the next power of two at or above that size. Names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        if the length is below 1 or the norm unknown.

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
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``fft``; by default it is divided by the length.

    Shapes: ``axis`` is cut or padded with zeros to ``length``, by default its own size.
        ``"power_of_two"`` is the next power of two at or above that size. Names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a scalar, ``AxisError`` if the axis is out of range, ``OptionError``
        if the length is below 1 or the norm unknown.

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
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The discrete Fourier transform along two axes; by default it is unscaled.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fft``. Names
        are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a rank below 2, ``AxisError`` unless two axes in range are given,
        ``OptionError`` if a length is below 1 or the norm unknown.

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
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``fft2``.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fft``. Names
        are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``ShapeError`` for a rank below 2, ``AxisError`` unless two axes in range are given,
        ``OptionError`` if a length is below 1 or the norm unknown.

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
    norm: Literal["backward", "ortho", "forward"] = "backward",
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
    norm: Literal["backward", "ortho", "forward"] = "backward",
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


@forwards(_core.hfft)
def hfft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: int | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The real spectrum of elements of which the second half conjugates the first. The operand is
    the first half.

    Shapes: ``axis`` gets ``length``, by default ``2 * (n - 1)`` for an axis of size n; the operand
        is cut or padded with zeros to ``length // 2 + 1``. Names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: through ``ifft``.
    Raises: as ``irfft``.

    >>> dn.hfft(dn.tensor([1, 1j, 0])).to_list()
    [1.0, 3.0, 1.0, -1.0]
    """
    ...


@forwards(_core.ihfft)
def ihfft(
    tensor: TensorLike,
    *,
    axis: Axis = -1,
    length: FftLength = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``hfft``: the first half of the elements that have a real spectrum.

    Shapes: ``axis`` has ``length // 2 + 1`` elements; ``length`` is as in ``fft``. Names are kept.
    Dtypes: real; the result is c64, or c128 for f64.
    Grad: through ``fft``.
    Raises: ``DTypeError`` for complex elements; otherwise as ``fft``.

    >>> dn.real(dn.ihfft(dn.tensor([4, 0, 0, 0]))).to_list()
    [1.0, 1.0, 1.0]
    """
    ...


@forwards(_core.fftn)
def fftn(
    tensor: TensorLike,
    *,
    axes: Axes | None = None,
    lengths: Sequence[FftLength] | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The discrete Fourier transform along several axes; by default along all, and unscaled.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fft``.
        Lengths without axes are those of the last axes. Names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: ``AxisError`` if an axis is out of range or given twice, ``OptionError`` if a length is
        below 1 or the norm unknown, or unless there is one length for each axis.
    Source: rows and columns are transformed one after the other (J. W. Cooley and J. W. Tukey, An
        Algorithm for the Machine Calculation of Complex Fourier Series, 1965).

    >>> dn.fftn(dn.tensor([[1, 0], [1, 0]])).to_list()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    ...


@forwards(_core.ifftn)
def ifftn(
    tensor: TensorLike,
    *,
    axes: Axes | None = None,
    lengths: Sequence[FftLength] | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``fftn``; by default it is divided by the product of the lengths.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fftn``.
        Names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: the same transform of ``g``.
    Raises: as ``fftn``.

    >>> dn.ifftn(dn.tensor([[2, 2], [0, 0]])).to_list()
    [[(1+0j), 0j], [(1+0j), 0j]]
    """
    ...


@forwards(_core.rfft2)
def rfft2(
    tensor: TensorLike,
    *,
    axes: Sequence[Axis] = (-2, -1),
    lengths: Sequence[FftLength] | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The transform of real elements along two axes: ``rfft`` along the second, ``fft`` along the
    first.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fft``. The
        second then has ``length // 2 + 1`` frequencies. Names are kept.
    Dtypes: real; the result is c64, or c128 for f64.
    Grad: through ``fft``.
    Raises: ``DTypeError`` for complex elements; otherwise as ``fft2``.

    >>> dn.rfft2(dn.tensor([[1, 0, 0], [1, 0, 0]])).to_list()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    ...


@forwards(_core.irfft2)
def irfft2(
    tensor: TensorLike,
    *,
    axes: Sequence[Axis] = (-2, -1),
    lengths: Sequence[FftLength] | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``rfft2``: real elements.

    Shapes: the axes get ``lengths``, in their order; by default the first keeps its size and the
        second gets ``2 * (n - 1)`` for an axis of size n. Names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: through ``ifft``.
    Raises: ``OptionError`` as ``irfft``; otherwise as ``fft2``.

    >>> dn.irfft2(dn.tensor([[2, 2], [0, 0]])).to_list()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    ...


@forwards(_core.rfftn)
def rfftn(
    tensor: TensorLike,
    *,
    axes: Axes | None = None,
    lengths: Sequence[FftLength] | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The transform of real elements along several axes: ``rfft`` along the last, ``fft`` along the
    others.

    Shapes: the axes get ``lengths``, in their order, by default their own sizes; see ``fftn``. The
        last then has ``length // 2 + 1`` frequencies. Names are kept.
    Dtypes: real; the result is c64, or c128 for f64.
    Grad: through ``fft``.
    Raises: ``DTypeError`` for complex elements, ``AxisError`` without an axis; otherwise as
        ``fftn``.

    >>> dn.rfftn(dn.tensor([[1, 0, 0], [1, 0, 0]])).to_list()
    [[(2+0j), (2+0j)], [0j, 0j]]
    """
    ...


@forwards(_core.irfftn)
def irfftn(
    tensor: TensorLike,
    *,
    axes: Axes | None = None,
    lengths: Sequence[FftLength] | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
    eps: float = 1e-10,
) -> Tensor:
    """The inverse of ``rfftn``: real elements.

    Shapes: the axes get ``lengths``, in their order; by default they keep their sizes but for the
        last, which gets ``2 * (n - 1)`` for an axis of size n. Names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: through ``ifft``.
    Raises: ``OptionError`` as ``irfft``, ``AxisError`` without an axis; otherwise as ``fftn``.

    >>> dn.irfftn(dn.tensor([[2, 2], [0, 0]])).to_list()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    ...


@forwards(_core.fftshift)
def fftshift(tensor: TensorLike, axes: Axes | None = None) -> Tensor:
    """Put frequency 0 in the middle of the axes, by default of all, so that frequencies ascend.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g``, shifted back.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.fftshift(dn.fftfreq(5, 0.2)).to_list()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    ...


@forwards(_core.ifftshift)
def ifftshift(tensor: TensorLike, axes: Axes | None = None) -> Tensor:
    """The inverse of ``fftshift``.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: ``g``, shifted.
    Raises: ``AxisError`` if an axis is out of range or given twice.

    >>> dn.ifftshift(dn.tensor([-2, -1, 0, 1, 2])).to_list()
    [0, 1, 2, -2, -1]
    """
    ...


@forwards(_core.fftfreq)
def fftfreq(
    n: int,
    d: TensorLike = 1.0,
    *,
    name: str | None = None,
    dtype: DTypeLike = "f32",
) -> Tensor:
    """The frequencies of ``fft``, in cycles per unit, for samples at a distance ``d``: 0 and the
    positive ones, then the negative ones.

    Shapes: ``d`` is a scalar; the result is a vector of ``n`` elements, its axis named ``name``.
    Dtypes: the given dtype, a real float.
    Grad: through the definition, to ``d``.
    Raises: ``OptionError`` unless ``n`` is at least 1 and the dtype a real float, ``ShapeError``
        unless ``d`` is a scalar, ``DTypeError`` for a complex ``d``.

    >>> dn.fftfreq(5, 0.2).to_list()
    [0.0, 1.0, 2.0, -2.0, -1.0]
    """
    ...


@forwards(_core.rfftfreq)
def rfftfreq(
    n: int,
    d: TensorLike = 1.0,
    *,
    name: str | None = None,
    dtype: DTypeLike = "f32",
) -> Tensor:
    """The frequencies of ``rfft``, in cycles per unit, for samples at a distance ``d``.

    Shapes: ``d`` is a scalar; the result is a vector of ``n // 2 + 1`` elements, its axis named
        ``name``.
    Dtypes: the given dtype, a real float.
    Grad: through the definition, to ``d``.
    Raises: as ``fftfreq``.

    >>> dn.rfftfreq(5, 0.2).to_list()
    [0.0, 1.0, 2.0]
    """
    ...
