"""Callbacks of Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor

__all__ = ["Fourier"]


class Fourier:
    """Transforms along one axis."""

    def fft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The discrete Fourier transform along an axis, cut or padded to ``length``."""
        raise lacks(self, "fft")

    def ifft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The inverse of ``fft``, divided by ``length``."""
        raise lacks(self, "ifft")
