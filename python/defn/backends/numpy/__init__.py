"""A backend on NumPy: simple, slow, correct. Other backends are tested against it."""

from __future__ import annotations

from defn.backends.base import Backend
from defn.backends.numpy.blocks import Blocks
from defn.backends.numpy.create import Create
from defn.backends.numpy.elementwise import Elementwise
from defn.backends.numpy.fourier import Fourier
from defn.backends.numpy.index import Index
from defn.backends.numpy.linalg import Linalg
from defn.backends.numpy.order import Order
from defn.backends.numpy.place import Place
from defn.backends.numpy.reduce import Reduce
from defn.backends.numpy.shape import Shape
from defn.backends.numpy.window import Window

__all__ = ["NumPyBackend"]


class NumPyBackend(
    Create,
    Place,
    Elementwise,
    Shape,
    Index,
    Order,
    Reduce,
    Window,
    Fourier,
    Linalg,
    Blocks,
    Backend,
):
    """Tensors as NumPy arrays, with every operation in plain NumPy.

    It has every callback, in every dtype, and computes in float64 and 64-bit integers before it
    rounds or wraps: it is a reference for correctness, not for speed. ``x.data`` is the array.

    Raises: ``OptionError`` for any option, because it takes none.

    >>> x = dn.tensor([1.0, 2.0], backend=dn.backends.NumPyBackend())
    >>> (x + 1.0).data
    array([2., 3.], dtype=float32)
    """
