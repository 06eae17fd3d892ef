"""Callbacks of Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from defn.backends.numpy.values import quiet, store, wide

if TYPE_CHECKING:
    from defn._core import Tensor

__all__ = ["Fourier"]


class Fourier:
    """Transforms along one axis, by NumPy's."""

    @quiet
    def fft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The discrete Fourier transform along an axis."""
        return store(np.fft.fft(wide(x, out.dtype), length, axis), out)

    @quiet
    def ifft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The inverse of ``fft``."""
        return store(np.fft.ifft(wide(x, out.dtype), length, axis), out)
