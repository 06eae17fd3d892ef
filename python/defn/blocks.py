"""Composites with a name, which a backend may run natively: what a ``block`` callback is given.

A tag is a frozen dataclass whose fields are the options of the operation of the same name.

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
    "Cholesky",
    "CumulativeMax",
    "CumulativeMin",
    "CumulativeProduct",
    "CumulativeSum",
    "Determinant",
    "Eigh",
    "Log2",
    "Log10",
    "LogicalNot",
    "Logsumexp",
    "Phase",
    "RandomBelow",
    "RandomBits",
    "RandomUniform",
    "Solve",
    "Take",
    "TakeAlongAxis",
    "Threefry",
    "TopK",
]


@dataclass(frozen=True)
class LogicalNot:
    """1 where ``x`` is zero."""


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
    """``log(sum(exp(x)))``, without overflow."""

    axes: tuple[int, ...]
    keep_axes: bool


@dataclass(frozen=True)
class AllClose:
    """1 if all elements of two tensors agree within ``atol + rtol * |b|``."""

    equal_nan: bool
    rtol: float
    atol: float


@dataclass(frozen=True)
class CumulativeSum:
    """At each place of an axis, the sum of the elements up to it."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class CumulativeProduct:
    """At each place of an axis, the product of the elements up to it."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class CumulativeMax:
    """At each place of an axis, the greatest of the elements up to it."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class CumulativeMin:
    """At each place of an axis, the least of the elements up to it."""

    axis: int
    reverse: bool


@dataclass(frozen=True)
class Take:
    """``x`` at positions along an axis."""

    axis: int


@dataclass(frozen=True)
class TakeAlongAxis:
    """``x`` at a position along an axis for each place along the others."""

    axis: int


@dataclass(frozen=True)
class TopK:
    """The greatest elements along the last axis, descending, and their positions."""

    k: int


@dataclass(frozen=True)
class FFT2:
    """A Fourier transform along two axes."""

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
    """The half of a real tensor's Fourier transform that determines it."""

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
    """The lower factor of a positive definite matrix; NaN for any other."""


@dataclass(frozen=True)
class Solve:
    """The ``x`` of ``a x = b``."""


@dataclass(frozen=True)
class QR:
    """An orthogonal factor, and an upper triangular one."""

    mode: str
    eps: float


@dataclass(frozen=True)
class LU:
    """A permutation, a lower triangular factor of ones on the diagonal, and an upper one."""


@dataclass(frozen=True)
class SVD:
    """Singular vectors, singular values descending, and the adjoint of more vectors."""

    max_iter: int
    full_matrices: bool


@dataclass(frozen=True)
class Eigh:
    """Eigenvalues, the greatest in size first, and eigenvectors in columns."""

    max_iter: int
    eps: float


@dataclass(frozen=True)
class Determinant:
    """The determinant."""


@dataclass(frozen=True)
class Threefry:
    """A pair of random words for each pair of counters, which stand side by side on axis 0."""


@dataclass(frozen=True)
class RandomBits:
    """The random bits of a key, as a vector of unsigned integers."""


@dataclass(frozen=True)
class RandomUniform:
    """The random numbers of a key in [0, 1), as a vector of floats."""


@dataclass(frozen=True)
class RandomBelow:
    """The random integers of a key below a bound, as a vector."""


def class_name(name: str) -> str:
    """The name of the class of an operation's tag."""
    return name.upper() if name.upper() in __all__ else name.title().replace("_", "")


@functools.cache
def _class(name: str, fields: tuple[str, ...]) -> type:
    """The class of an operation's tag; one that is not listed above is made of its options."""
    cls = class_name(name)
    if cls in __all__:
        return globals()[cls]
    return make_dataclass(cls, fields, frozen=True, namespace={"__module__": __name__})


def tag(name: str, fields: dict[str, Any]) -> Any:
    """The tag of an operation, from its name and options."""
    return _class(name, tuple(fields))(**fields)
