"""Mathematical constants and the limits of dtypes: ``dn.constants.pi("f64")``.

Each function returns a scalar tensor of a dtype, by default f32, rounded to nearest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import public

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import BackendLike, DTypeLike

__all__ = [
    "e",
    "epsilon",
    "euler_gamma",
    "i",
    "infinity",
    "max",
    "max_finite",
    "min",
    "min_finite",
    "nan",
    "neg_infinity",
    "pi",
    "smallest_positive_normal",
]


@public
def pi(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The ratio of a circle's circumference to its diameter.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> float(dn.constants.pi())
    3.1415927410125732
    """
    return _core.constant("pi", dtype, backend)


@public
def e(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The base of the natural logarithm.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.e("f64").item()
    2.718281828459045
    """
    return _core.constant("e", dtype, backend)


@public
def euler_gamma(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The Euler-Mascheroni constant: the limit of the harmonic series minus the logarithm.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.euler_gamma("f64").item()
    0.5772156649015329
    """
    return _core.constant("euler_gamma", dtype, backend)


@public
def nan(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """Not a number.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.nan().item()
    nan
    """
    return _core.constant("nan", dtype, backend)


@public
def infinity(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """Infinity; in f8_e4m3fn, which has no infinity, the greatest number.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.infinity().item()
    inf
    """
    return _core.constant("infinity", dtype, backend)


@public
def neg_infinity(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """Negative infinity; in f8_e4m3fn, which has no infinity, the least number.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.neg_infinity().item()
    -inf
    """
    return _core.constant("neg_infinity", dtype, backend)


@public
def max(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The greatest value: infinity if the dtype has it.

    Shapes: a scalar.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for a complex dtype.

    >>> dn.constants.max("u8").item(), dn.constants.max("f32").item()
    (255, inf)
    """
    return _core.constant("max", dtype, backend)


@public
def min(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The least value: negative infinity if the dtype has it.

    Shapes: a scalar.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for a complex dtype.

    >>> dn.constants.min("s8").item(), dn.constants.min("f32").item()
    (-128, -inf)
    """
    return _core.constant("min", dtype, backend)


@public
def max_finite(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The greatest finite number.

    Shapes: a scalar.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for a complex dtype.

    >>> dn.constants.max_finite("f16").item()
    65504.0
    """
    return _core.constant("max_finite", dtype, backend)


@public
def min_finite(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The least finite number.

    Shapes: a scalar.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for a complex dtype.

    >>> dn.constants.min_finite("f16").item()
    -65504.0
    """
    return _core.constant("min_finite", dtype, backend)


@public
def epsilon(dtype: DTypeLike = "f32", *, backend: BackendLike | None = None) -> Tensor:
    """The machine epsilon: the difference between 1 and the next greater number.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.epsilon("f64").item()
    2.220446049250313e-16
    """
    return _core.constant("epsilon", dtype, backend)


@public
def smallest_positive_normal(
    dtype: DTypeLike = "f32", *, backend: BackendLike | None = None
) -> Tensor:
    """The smallest positive normal number, which has full precision.

    Shapes: a scalar.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not a float.

    >>> dn.constants.smallest_positive_normal("f64").item()
    2.2250738585072014e-308
    """
    return _core.constant("smallest_positive_normal", dtype, backend)


@public
def i(dtype: DTypeLike = "c64", *, backend: BackendLike | None = None) -> Tensor:
    """The imaginary unit.

    Shapes: a scalar.
    Dtypes: complex.
    Grad: none.
    Raises: ``DTypeError`` for a dtype that is not complex.

    >>> dn.constants.i().item()
    1j
    """
    return _core.constant("i", dtype, backend)
