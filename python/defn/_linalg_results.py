"""The results of factorizations, with the names that NumPy gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from defn._core import Tensor

__all__ = ["EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"]


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The factors of a QR decomposition."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition."""

    U: Tensor
    S: Tensor
    Vh: Tensor
