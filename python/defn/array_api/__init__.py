"""The array API standard 2025.12: a namespace of functions over our tensors.

Libraries that follow the standard, such as SciPy and scikit-learn, run on its arrays. Functions
written on it can be traced: ``dn.jit``, ``dn.grad`` and ``dn.vmap`` take and give its arrays.

>>> import defn.array_api as xp
>>> x = xp.asarray([1.0, 2.0, 3.0])
>>> xp.sum(x * x)
Array(14., dtype=float64)
>>> dn.jit(lambda x: xp.sum(x * x))(x)
Array(14., dtype=float64)
>>> dn.tensor(x).shape
(3,)
"""

from __future__ import annotations

import math

import defn as _dn
from defn.array_api import (
    _creation,
    _data_types,
    _elementwise,
    _extras,
    _manipulation,
    _products,
    _reductions,
    _searching,
    fft,
    linalg,
)
from defn.array_api._array import Array
from defn.array_api._creation import *
from defn.array_api._data_types import *
from defn.array_api._elementwise import *
from defn.array_api._extras import *
from defn.array_api._manipulation import *
from defn.array_api._products import *
from defn.array_api._reductions import *
from defn.array_api._searching import *

__array_api_version__ = "2025.12"

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

bool = _dn.bool
int8, int16, int32, int64 = _dn.s8, _dn.s16, _dn.s32, _dn.s64
uint8, uint16, uint32, uint64 = _dn.u8, _dn.u16, _dn.u32, _dn.u64
float32, float64 = _dn.f32, _dn.f64
complex64, complex128 = _dn.c64, _dn.c128

__all__ = [
    "Array",
    "__array_api_version__",
    "bool",
    "complex64",
    "complex128",
    "e",
    "fft",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += _creation.__all__
__all__ += _data_types.__all__
__all__ += _elementwise.__all__
__all__ += _extras.__all__
__all__ += _manipulation.__all__
__all__ += _products.__all__
__all__ += _reductions.__all__
__all__ += _searching.__all__


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
