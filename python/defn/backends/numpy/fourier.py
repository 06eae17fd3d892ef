"""Callbacks of Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import quiet, store, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from defn._core import Tensor

__all__ = ["Fourier"]


def _along(function: Callable[..., Any], out: Tensor, x: Tensor, length: int, axis: int) -> Any:
    """A transform along an axis; NumPy does not transform empty axes."""
    values = wide(x, out.dtype)
    return store(function(values, length, axis) if out.size else np.zeros(out.shape), out)


class Fourier:
    """Transforms along one axis, with NumPy."""

    @quiet
    def fft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The discrete Fourier transform along an axis."""
        return _along(np.fft.fft, out, x, length, axis)

    @quiet
    def ifft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The inverse of ``fft``."""
        return _along(np.fft.ifft, out, x, length, axis)
