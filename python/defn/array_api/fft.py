"""Fourier transforms of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import defn as dn
from defn.array_api._array import Array, convert, require, to_device, wrap
from defn.array_api._manipulation import axes_of, one_axis, roll
from defn.array_api._promotion import ALL, COMPLEX, FLOATING, REAL_FLOATING, as_dtype, default_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence
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

_COMPLEX = {dn.f64: dn.c128, dn.c128: dn.c128}


def _transform(
    function: str, x: Array, kinds: frozenset[DType], axis: int, n: int | None, norm: str
) -> tuple[Tensor, int, int]:
    """The tensor, the axis from the front and the length of a transform that is checked."""
    tensor = require(function, x, kinds)
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(
            f'{function}: norm is {norm!r}, it must be "backward", "ortho" or "forward"'
        )
    at = one_axis(function, axis, tensor.ndim)
    length = tensor.shape[at] if n is None else n
    if length < 1:
        raise ValueError(f"{function}: the length is {length}, it must be at least 1")
    return tensor, at, length


def _scaled(tensor: Tensor, length: int, norm: str, inverse: bool) -> Tensor:
    """A transform with its factor, of one that has the factor of "backward"."""
    if norm == "backward":
        return tensor
    # The inverse has divided by the length already.
    factor = float(length) if inverse else 1 / length
    if norm == "ortho":
        factor **= 0.5
    return tensor * dn.tensor(factor, dtype=tensor.dtype)


def _fft(tensor: Tensor, at: int, length: int, norm: str, inverse: bool) -> Tensor:
    fun = dn.ifft if inverse else dn.fft
    return _scaled(fun(tensor, axis=at, length=length, eps=0.0), length, norm, inverse)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform along an axis, which ``n`` cuts or pads with zeros.

    >>> import defn.array_api as xp
    >>> xp.fft.fft(xp.asarray([1.0, 2.0]))
    Array([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    return wrap(_fft(*_transform("fft", x, FLOATING, axis, n, norm), norm, False))


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of ``fft``."""
    return wrap(_fft(*_transform("ifft", x, FLOATING, axis, n, norm), norm, True))


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The first half of the frequencies of real elements, which determine the others."""
    tensor, at, length = _transform("rfft", x, REAL_FLOATING, axis, n, norm)
    return wrap(_scaled(dn.rfft(tensor, axis=at, length=length, eps=0.0), length, norm, False))


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of ``rfft``: ``n`` real elements, by default an even number of them."""
    return wrap(_irfft("irfft", x, n, axis, norm))


def _irfft(function: str, x: Array, n: int | None, axis: int, norm: str) -> Tensor:
    tensor, at, size = _transform(function, x, FLOATING, axis, None, norm)
    length = 2 * (size - 1) if n is None else n
    if length < 1:
        raise ValueError(f"{function}: the length is {length}, it must be at least 1")
    return _scaled(dn.irfft(tensor, axis=at, length=length, eps=0.0), length, norm, True)


_OTHER_WAY = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The real spectrum of elements of which the second half conjugates the first."""
    tensor = require("hfft", x, FLOATING)
    conjugate = dn.conjugate(tensor) if tensor.dtype in COMPLEX else tensor
    return wrap(_irfft("hfft", wrap(conjugate), n, axis, _OTHER_WAY.get(norm, norm)))


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of ``hfft``."""
    half = rfft(x, n=n, axis=axis, norm=_OTHER_WAY.get(norm, norm))  # pyright: ignore
    return wrap(dn.conjugate(half._tensor))


def _several(
    function: str, x: Array, s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """The axes of a transform, and its lengths along them."""
    tensor = require(function, x, FLOATING)
    if axes is None:
        first = 0 if s is None else tensor.ndim - len(s)
        axes = range(first, tensor.ndim)
    order = axes_of(function, tuple(axes), tensor.ndim)
    sizes = [tensor.shape[axis] for axis in order]
    lengths = sizes if s is None else [n if n != -1 else m for n, m in zip(s, sizes, strict=True)]
    return order, lengths


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The transform along several axes, by default along all."""
    for axis, n in zip(*_several("fftn", x, s, axes), strict=True):
        x = fft(x, n=n, axis=axis, norm=norm)
    return _complex(x)


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of ``fftn``."""
    for axis, n in zip(*_several("ifftn", x, s, axes), strict=True):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return _complex(x)


def _complex(x: Array) -> Array:
    """What a transform along no axis gives."""
    return x if x.dtype in COMPLEX else wrap(convert(x._tensor, _COMPLEX.get(x.dtype, dn.c64)))


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The transform of real elements: ``rfft`` along the last axis, ``fft`` along the others."""
    order, lengths = _several("rfftn", x, s, axes)
    if not order:
        raise ValueError("rfftn: at least one axis is required")
    x = rfft(x, n=lengths[-1], axis=order[-1], norm=norm)
    return fftn(x, s=lengths[:-1], axes=order[:-1], norm=norm)


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of ``rfftn``."""
    order, lengths = _several("irfftn", x, s, axes)
    if not order:
        raise ValueError("irfftn: at least one axis is required")
    x = ifftn(x, s=lengths[:-1], axes=order[:-1], norm=norm)
    return irfft(x, n=None if s is None or s[-1] == -1 else lengths[-1], axis=order[-1], norm=norm)


def _frequencies(positions: Tensor, n: int, d: float, dtype: Any, device: Any) -> Array:
    wanted = default_dtype(float) if dtype is None else as_dtype(dtype)
    values = dn.as_type(positions, dn.f64) / dn.f64(n * d)
    return wrap(to_device(dn.as_type(values, wanted), device))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of ``fft``, in cycles per unit, for samples at a distance ``d``."""
    position = dn.iota((n,), dtype=dn.s64)
    positions = dn.select(dn.less(position, dn.s64((n + 1) // 2)), position, position - dn.s64(n))
    return _frequencies(positions, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of ``rfft``, in cycles per unit, for samples at a distance ``d``."""
    return _frequencies(dn.iota((n // 2 + 1,), dtype=dn.s64), n, d, dtype, device)


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The frequencies in ascending order: 0 moves to the middle of each axis."""
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of ``fftshift``."""
    return _shifted("ifftshift", x, axes, lambda size: -(size // 2))


def _shifted(function: str, x: Array, axes: int | Sequence[int] | None, by: Any) -> Array:
    tensor = require(function, x, ALL)
    order = axes_of(function, axes, tensor.ndim)
    return roll(x, tuple(by(tensor.shape[axis]) for axis in order), axis=tuple(order))
