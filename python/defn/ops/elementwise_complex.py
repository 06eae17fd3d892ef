"""Element-wise functions of complex numbers and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = ["conjugate", "imag", "phase", "real"]


@quick
@forwards(_core.conjugate)
def conjugate(tensor: TensorLike) -> Tensor:
    """The complex conjugate; a real operand becomes complex.

    Shapes: unchanged; names are kept.
    Dtypes: any; the result is c64, or c128 for f64 and c128.
    Grad: ``conj(g)``; its real part for a real operand.
    Raises: no specific errors.

    >>> complex(dn.conjugate(1 + 2j))
    (1-2j)
    """
    ...


@quick
@forwards(_core.real)
def real(tensor: TensorLike) -> Tensor:
    """The real part.

    Shapes: unchanged; names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: ``real(g)``.
    Raises: no specific errors.

    >>> float(dn.real(1 + 2j))
    1.0
    """
    ...


@quick
@forwards(_core.imag)
def imag(tensor: TensorLike) -> Tensor:
    """The imaginary part; 0 for a real operand.

    Shapes: unchanged; names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: ``-i g``; zero for a real operand.
    Raises: no specific errors.

    >>> float(dn.imag(1 + 2j))
    2.0
    """
    ...


@quick
@forwards(_core.phase)
def phase(tensor: TensorLike) -> Tensor:
    """The angle of a complex number, ``atan2(imag, real)``.

    Shapes: unchanged; names are kept.
    Dtypes: any; complex numbers become floats of half the width, integers become f32.
    Grad: through ``atan2``.
    Raises: no specific errors.

    >>> float(dn.phase(1j))
    1.5707963705062866
    """
    ...
