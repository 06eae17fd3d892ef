"""Callbacks of linear algebra and Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import Tensor

__all__ = ["Linalg"]


class Linalg:
    """Products, solvers and transforms."""

    def dot(
        self,
        out: Tensor,
        a: Tensor,
        contract_a: Sequence[int],
        batch_a: Sequence[int],
        b: Tensor,
        contract_b: Sequence[int],
        batch_b: Sequence[int],
    ) -> Any:
        """Sums of products over contracted axes; batch axes first, then a's, then b's."""
        raise lacks(self, "dot")

    def conv(
        self,
        out: Tensor,
        x: Tensor,
        kernel: Tensor,
        *,
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        input_dilation: Sequence[int],
        kernel_dilation: Sequence[int],
        feature_group_size: int,
        batch_group_size: int,
        input_permutation: Sequence[int],
        kernel_permutation: Sequence[int],
        output_permutation: Sequence[int],
    ) -> Any:
        """The convolution, without flipping the kernel."""
        raise lacks(self, "conv")

    def fft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The discrete Fourier transform along an axis, cut or padded to ``length``."""
        raise lacks(self, "fft")

    def ifft(self, out: Tensor, x: Tensor, *, axis: int, length: int, eps: float) -> Any:
        """The inverse of ``fft``, divided by ``length``."""
        raise lacks(self, "ifft")

    def triangular_solve(
        self, out: Tensor, a: Tensor, b: Tensor, *, left_side: bool, lower: bool, transform_a: str
    ) -> Any:
        """The ``x`` of ``a x = b``, or of ``x a = b``; one triangle of ``a`` is read."""
        raise lacks(self, "triangular_solve")
