"""The tags of blocks: named composite operations that a backend may run natively.

The ``block`` callback of a backend receives a tag. It is a frozen dataclass whose fields are the
options of the operation of the same name.

>>> dn.blocks.Logsumexp(axes=(0,), keep_axes=False)
Logsumexp(axes=(0,), keep_axes=False)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, make_dataclass
from typing import Any

__all__ = [
    "FFT2",
    "IFFT2",
    "IRFFT",
    "LU",
    "QR",
    "RFFT",
    "SVD",
    "AllClose",
    "Argpartition",
    "Bincount",
    "Cholesky",
    "CumulativeMax",
    "CumulativeMin",
    "CumulativeProduct",
    "CumulativeSum",
    "Determinant",
    "Eig",
    "Eigh",
    "Eigvalsh",
    "Expm",
    "Hessenberg",
    "Isin",
    "Log2",
    "Log10",
    "LogicalNot",
    "Logm",
    "Logsumexp",
    "Partition",
    "Phase",
    "RandomBelow",
    "RandomBits",
    "RandomUniform",
    "Schur",
    "Solve",
    "Sqrtm",
    "Svdvals",
    "Take",
    "TakeAlongAxis",
    "Threefry",
    "TopK",
]


@dataclass(frozen=True)
class LogicalNot:
    """Whether ``x`` is zero."""


@dataclass(frozen=True)
class Phase:
    """The angle of a complex number."""


@dataclass(frozen=True)
class Log2:
    """The logarithm to base 2."""


@dataclass(frozen=True)
class Log10:
    """The logarithm to base 10."""


@dataclass(frozen=True)
class Logsumexp:
    """``log(sum(exp(x)))`` without overflow."""

    axes: tuple[int, ...]
    keep_axes: bool


@dataclass(frozen=True)
class AllClose:
    """Whether all elements of two tensors agree within ``atol + rtol * |b|``."""

    equal_nan: bool
    rtol: float
    atol: float


@dataclass(frozen=True)
class CumulativeSum:
    """The cumulative sum along an axis."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class CumulativeProduct:
    """The cumulative product along an axis."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class CumulativeMax:
    """The cumulative maximum along an axis."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class CumulativeMin:
    """The cumulative minimum along an axis."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class Take:
    """The elements of ``x`` at positions along an axis."""

    axis: int


@dataclass(frozen=True)
class TakeAlongAxis:
    """The elements of ``x`` along an axis, with separate positions along the other axes."""

    axis: int


@dataclass(frozen=True)
class TopK:
    """The greatest elements along the last axis in descending order, and their indices."""

    k: int


@dataclass(frozen=True)
class Partition:
    """The elements along an axis, divided by the one at a position of a sort, in their order."""

    axis: int
    kth: int


@dataclass(frozen=True)
class Argpartition:
    """The positions of the elements of ``Partition`` before it."""

    axis: int
    kth: int


@dataclass(frozen=True)
class Isin:
    """Whether elements are among those of a vector."""


@dataclass(frozen=True)
class Bincount:
    """The number of each integer of a vector from 0 on; other integers are left out."""

    length: int


@dataclass(frozen=True)
class FFT2:
    """The discrete Fourier transform along two axes."""

    axes: tuple[int, int]
    lengths: tuple[int, int]
    eps: float


@dataclass(frozen=True)
class IFFT2:
    """The inverse of ``FFT2``."""

    axes: tuple[int, int]
    lengths: tuple[int, int]
    eps: float


@dataclass(frozen=True)
class RFFT:
    """The first half of the frequencies of a real tensor, which determines the second half."""

    axis: int
    length: int
    eps: float


@dataclass(frozen=True)
class IRFFT:
    """The inverse of ``RFFT``."""

    axis: int
    length: int
    eps: float


@dataclass(frozen=True)
class Cholesky:
    """The lower triangular factor of a positive semidefinite matrix; NaN for any other matrix."""


@dataclass(frozen=True)
class Solve:
    """The solution ``x`` of ``a @ x = b``."""


@dataclass(frozen=True)
class QR:
    """The orthogonal and the upper triangular factor."""

    mode: str
    eps: float


@dataclass(frozen=True)
class LU:
    """A permutation, a unit lower triangular factor, and an upper triangular factor."""


@dataclass(frozen=True)
class SVD:
    """Left singular vectors, descending singular values, and adjoint right singular vectors."""

    max_iter: int
    full_matrices: bool


@dataclass(frozen=True)
class Eigh:
    """Eigenvalues in ascending order, and eigenvectors in columns."""

    max_iter: int
    eps: float


@dataclass(frozen=True)
class Svdvals:
    """Singular values in descending order, without vectors."""


@dataclass(frozen=True)
class Eigvalsh:
    """Real eigenvalues of a symmetric or Hermitian matrix in ascending order, without vectors."""


@dataclass(frozen=True)
class Eig:
    """Complex eigenvalues and, if wanted, eigenvectors in columns, of a square matrix."""

    vectors: bool


@dataclass(frozen=True)
class Schur:
    """The complex triangular factor and the unitary factor of a square matrix."""


@dataclass(frozen=True)
class Hessenberg:
    """The factor with one subdiagonal and the unitary factor of a square matrix."""


@dataclass(frozen=True)
class Expm:
    """The exponential of a square matrix."""


@dataclass(frozen=True)
class Sqrtm:
    """The principal square root of a square matrix, complex."""


@dataclass(frozen=True)
class Logm:
    """The principal logarithm of a square matrix, complex."""


@dataclass(frozen=True)
class Determinant:
    """The determinant."""


@dataclass(frozen=True)
class Threefry:
    """A pair of random words for each pair of counters; axis 0 holds the two members of a pair."""


@dataclass(frozen=True)
class RandomBits:
    """The random bits of a key as a vector of unsigned integers."""


@dataclass(frozen=True)
class RandomUniform:
    """The random numbers of a key in [0, 1) as a vector of floats."""


@dataclass(frozen=True)
class RandomBelow:
    """The random integers of a key below a bound as a vector."""


def class_name(name: str) -> str:
    """The class name of an operation's tag."""
    return name.upper() if name.upper() in __all__ else name.title().replace("_", "")


@functools.cache
def _class(name: str, fields: tuple[str, ...]) -> type:
    """The class of an operation's tag; a class not listed above is created from the options."""
    cls = class_name(name)
    if cls in __all__:
        return globals()[cls]
    return make_dataclass(cls, fields, frozen=True, namespace={"__module__": __name__})


def tag(name: str, fields: dict[str, Any]) -> Any:
    """Create the tag of an operation from its name and options."""
    return _class(name, tuple(fields))(**fields)
