"""Fourier transforms of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import defn as dn
from defn.array_api._array import Array, require, to_device, wrap
from defn.array_api._manipulation import axes_of, one_axis
from defn.array_api._promotion import ALL, FLOATING, REAL_FLOATING, as_dtype, default_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from defn import DType, Tensor

    Norm = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _checked(function: str, x: Array, kinds: frozenset[DType], norm: str) -> Tensor:
    """The tensor of a transform, whose data type and norm are checked."""
    tensor = require(function, x, kinds)
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(
            f'{function}: norm is {norm!r}, it must be "backward", "ortho" or "forward"'
        )
    return tensor


def _one(
    transform: Callable[..., Tensor],
    x: Array,
    kinds: frozenset[DType],
    n: int | None,
    axis: int,
    norm: str,
) -> Array:
    """A transform along one axis."""
    function = transform.__name__
    tensor = _checked(function, x, kinds, norm)
    at = one_axis(function, axis, tensor.ndim)
    size = tensor.shape[at] if n is None else n
    if size < 1:
        raise ValueError(f"{function}: the length is {size}, it must be at least 1")
    return wrap(transform(tensor, axis=at, length=n, norm=norm, eps=0.0))


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform along an axis, which ``n`` cuts or pads with zeros.

    >>> import defn.array_api as xp
    >>> xp.fft.fft(xp.asarray([1.0, 2.0]))
    Array([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    return _one(dn.fft, x, FLOATING, n, axis, norm)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of ``fft``."""
    return _one(dn.ifft, x, FLOATING, n, axis, norm)


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The first half of the frequencies of real elements, which determine the others."""
    return _one(dn.rfft, x, REAL_FLOATING, n, axis, norm)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of ``rfft``: ``n`` real elements, by default an even number of them."""
    return _one(dn.irfft, x, FLOATING, n, axis, norm)


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The real spectrum of elements of which the second half conjugates the first."""
    return _one(dn.hfft, x, FLOATING, n, axis, norm)


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of ``hfft``."""
    return _one(dn.ihfft, x, REAL_FLOATING, n, axis, norm)


def _several(
    transform: Callable[..., Tensor],
    x: Array,
    kinds: frozenset[DType],
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str,
) -> Array:
    """A transform along several axes; a length of -1 is the size of the axis."""
    function = transform.__name__
    tensor = _checked(function, x, kinds, norm)
    if axes is None:
        first = 0 if s is None else tensor.ndim - len(s)
        axes = range(first, tensor.ndim)
    order = axes_of(function, tuple(axes), tensor.ndim)
    if s is not None and any(n < 1 and n != -1 for n in s):
        raise ValueError(f"{function}: the lengths are {tuple(s)}, they must be at least 1")
    lengths = None if s is None else [None if n == -1 else n for n in s]
    return wrap(transform(tensor, axes=order, lengths=lengths, norm=norm, eps=0.0))


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The transform along several axes, by default along all."""
    return _several(dn.fftn, x, FLOATING, s, axes, norm)


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of ``fftn``."""
    return _several(dn.ifftn, x, FLOATING, s, axes, norm)


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The transform of real elements: ``rfft`` along the last axis, ``fft`` along the others."""
    return _several(dn.rfftn, x, REAL_FLOATING, s, axes, norm)


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of ``rfftn``."""
    return _several(dn.irfftn, x, FLOATING, s, axes, norm)


def _frequencies(
    frequencies: Callable[..., Tensor], n: int, d: float, dtype: Any, device: Any
) -> Array:
    wanted = default_dtype(float) if dtype is None else as_dtype(dtype)
    return wrap(to_device(frequencies(n, d, dtype=wanted), device))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of ``fft``, in cycles per unit, for samples at a distance ``d``."""
    return _frequencies(dn.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of ``rfft``, in cycles per unit, for samples at a distance ``d``."""
    return _frequencies(dn.rfftfreq, n, d, dtype, device)


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The frequencies in ascending order: 0 moves to the middle of each axis."""
    tensor = require("fftshift", x, ALL)
    return wrap(dn.fftshift(tensor, axes_of("fftshift", axes, tensor.ndim)))


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of ``fftshift``."""
    tensor = require("ifftshift", x, ALL)
    return wrap(dn.ifftshift(tensor, axes_of("ifftshift", axes, tensor.ndim)))
