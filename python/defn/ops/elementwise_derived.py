"""Element-wise functions of one tensor that are built from other operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._core import quick
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "degrees",
    "exp2",
    "nan_to_num",
    "radians",
    "reciprocal",
    "sinc",
    "square",
    "trunc",
]


@quick
@forwards(_core.square)
def square(tensor: TensorLike) -> Tensor:
    """``x * x``; integers wrap.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: ``2 * g * x``.
    Raises: no specific errors.

    >>> dn.square(dn.tensor([3, -4])).to_list()
    [9, 16]
    """
    ...


@quick
@forwards(_core.reciprocal)
def reciprocal(tensor: TensorLike) -> Tensor:
    """``1 / x``, always a float; infinite at 0.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``-g * y**2``.
    Raises: no specific errors.

    >>> dn.reciprocal(dn.tensor([2, -4])).to_list()
    [0.5, -0.25]
    """
    ...


@quick
@forwards(_core.trunc)
def trunc(tensor: TensorLike) -> Tensor:
    """The number without its fraction; integers stay as they are.

    Shapes: unchanged; names are kept.
    Dtypes: real; unchanged.
    Grad: zero for floats, ``g`` for integers.
    Raises: ``DTypeError`` for complex operands.

    >>> dn.trunc(dn.tensor([-1.5, 1.5])).to_list()
    [-1.0, 1.0]
    """
    ...


@quick
@forwards(_core.exp2)
def exp2(tensor: TensorLike) -> Tensor:
    """``2**x``, always a float.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: ``g * y * log(2)``.
    Raises: no specific errors.

    >>> dn.exp2(dn.tensor([-1, 0, 10])).to_list()
    [0.5, 1.0, 1024.0]
    """
    ...


@quick
@forwards(_core.radians)
def radians(tensor: TensorLike) -> Tensor:
    """An angle in radians, from degrees.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * pi / 180``.
    Raises: ``DTypeError`` for complex operands.

    >>> float(dn.radians(dn.tensor(180.0, dtype="f64")))
    3.141592653589793
    """
    ...


@quick
@forwards(_core.degrees)
def degrees(tensor: TensorLike) -> Tensor:
    """An angle in degrees, from radians.

    Shapes: unchanged; names are kept.
    Dtypes: real; integers become f32.
    Grad: ``g * 180 / pi``.
    Raises: ``DTypeError`` for complex operands.

    >>> float(dn.degrees(dn.tensor(3.141592653589793, dtype="f64")))
    180.0
    """
    ...


@quick
@forwards(_core.sinc)
def sinc(tensor: TensorLike) -> Tensor:
    """``sin(pi x) / (pi x)``, which is 1 at 0.

    Shapes: unchanged; names are kept.
    Dtypes: any; integers become f32.
    Grad: of the definition; accurate near 0, also to higher orders.
    Raises: no specific errors.

    >>> dn.sinc(dn.tensor([0.0, 0.5])).to_list()
    [1.0, 0.6366197466850281]
    """
    ...


@forwards(_core.nan_to_num)
def nan_to_num(
    tensor: TensorLike,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Numbers in place of NaN and of infinities. Without a number for an infinity it becomes the
    greatest or least finite number of the dtype. Each part of a complex number is replaced.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged. Integers stay as they are.
    Grad: ``g`` where the element stays, zero where it is replaced.
    Raises: no specific errors.

    >>> dn.nan_to_num(dn.tensor([float("nan"), float("inf"), 2.0]), posinf=9.0).to_list()
    [0.0, 9.0, 2.0]
    """
    ...
