"""Types of arguments, for your own annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from defn._core import PJRT, DType, Tensor
from defn.backends.base import Backend

__all__ = [
    "Axes",
    "Axis",
    "BackendLike",
    "CompilerLike",
    "DTypeLike",
    "FftLength",
    "Names",
    "Padding",
    "PerAxis",
    "Shape",
    "TensorLike",
    "VectorizedAxes",
]

DTypeLike: TypeAlias = DType | str | np.dtype[Any] | type
"""An element type: ``dn.f32``, ``"f32"``, ``np.float32``.

Python's bool means bool, int means s32, float means f32, and complex means c64.
"""

TensorLike: TypeAlias = Tensor | complex | np.ndarray[Any, Any] | np.generic
"""A tensor, a number or a NumPy array."""

Axis: TypeAlias = int | str
"""The position of an axis (from the end if negative), or its name."""

Axes: TypeAlias = Axis | Sequence[Axis]
"""One axis or several."""

Names: TypeAlias = Sequence[str | None]
"""One entry per axis: its name, or None."""

Shape: TypeAlias = Sequence[int]
"""One size per axis."""

BackendLike: TypeAlias = str | Backend | PJRT
"""The name of a backend, a device, or a backend that is written in Python."""

CompilerLike: TypeAlias = object
"""The name of a compiler, or an object with the callbacks of ``dn.Compiler``."""

VectorizedAxes: TypeAlias = str | Sequence[str | tuple[str, int]] | Mapping[str, int]
"""Names of vectorized axes, with their sizes where these are needed."""

PerAxis: TypeAlias = int | Sequence[int]
"""An int for each axis of an operation, or one for all of them."""

Padding: TypeAlias = Literal["valid", "same"] | Sequence[tuple[int, int]]
"""Padding: none, as much as keeps the sizes, or a number before and after for each axis."""

FftLength: TypeAlias = int | Literal["power_of_two"] | None
"""The length of a transform: a number, the next power of two, or (None) the size of its axis."""
