"""Functions of the parts of complex numbers, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._core import quick
from defn._names import refuse_options

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = ["conjugate", "imag", "phase", "real"]


@quick
def conjugate(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The complex conjugate; a real operand becomes complex.

    Shapes: kept, with axis names.
    Dtypes: any; c64, or c128 for f64 and c128.
    Grad: ``conj(g)``, and its real part for a real operand.
    Raises: nothing of its own.

    >>> complex(dn.conjugate(1 + 2j))
    (1-2j)
    """
    if unknown:
        refuse_options("conjugate", unknown)
    return _core.conjugate(tensor)


@quick
def real(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The real part.

    Shapes: kept, with axis names.
    Dtypes: any; complex numbers give floats of half the width, integers f32.
    Grad: ``real(g)``.
    Raises: nothing of its own.

    >>> float(dn.real(1 + 2j))
    1.0
    """
    if unknown:
        refuse_options("real", unknown)
    return _core.real(tensor)


@quick
def imag(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The imaginary part; 0 for a real operand.

    Shapes: kept, with axis names.
    Dtypes: any; complex numbers give floats of half the width, integers f32.
    Grad: ``-i g``; none to a real operand.
    Raises: nothing of its own.

    >>> float(dn.imag(1 + 2j))
    2.0
    """
    if unknown:
        refuse_options("imag", unknown)
    return _core.imag(tensor)


def phase(tensor: TensorLike, **unknown: Never) -> Tensor:
    """The angle of a complex number, ``atan2(imag, real)``.

    Shapes: kept, with axis names.
    Dtypes: any; complex numbers give floats of half the width, integers f32.
    Grad: through ``atan2``.
    Raises: nothing of its own.

    >>> float(dn.phase(1j))
    1.5707963705062866
    """
    if unknown:
        refuse_options("phase", unknown)
    return _core.phase(tensor)
