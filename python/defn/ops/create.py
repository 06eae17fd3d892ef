"""Functions that create tensors and convert their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from typing import Any

    from defn._core import Tensor
    from defn.typing import BackendLike, DTypeLike, Names, Shape, TensorLike, VectorizedAxes

__all__ = [
    "as_type",
    "bitcast",
    "eye",
    "fill",
    "from_binary",
    "iota",
    "linspace",
    "make_diagonal",
    "put_diagonal",
    "take_diagonal",
    "template",
    "tensor",
    "tri",
    "tril",
    "triu",
]


@forwards(_core.tensor)
def tensor(
    value: Any,
    *,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    backend: BackendLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Create a tensor from a number, a nested list, an array, or an object with DLPack or a buffer.

    The memory of an array is copied unless nothing can write to it. A read-only view is copied too
    if the array behind it is writable. ``copy=True`` always copies. ``copy=False`` never copies;
    the caller promises that nobody writes to the memory again. A tensor is used as it is and stays
    on its backend.

    Shapes: the nesting of the list or the shape of the array; ``names`` has one entry per axis.
    Dtypes: Python integers become s32, floats f32, complex numbers c64 and bools bool; mixed
        numbers are promoted. An array keeps its dtype. With ``dtype``, numbers are stored in that
        dtype, and integers wrap.
    Grad: ``g`` if the value is a tensor.
    Raises: ``ShapeError`` for a ragged list, ``DTypeError`` for an integer that does not fit s32
        and for numbers that ``dtype`` cannot hold, ``AxisError`` if ``names`` does not fit the
        shape, ``OptionError`` for a masked array and for ``copy=False`` where a copy is needed,
        ``BackendError`` for an array on a device or a tensor on another backend than ``backend``.

    >>> dn.tensor([[1, 2], [3, 4]], names=["row", None])
    Tensor<
      s32[row: 2][2]
      [
        [1, 2],
        [3, 4]
      ]
    >
    """
    ...


@forwards(_core.template)
def template(shape: Shape | int, dtype: DTypeLike, *, names: Names | None = None) -> Tensor:
    """A tensor type without elements, which describes an argument of a compiled function.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: the given dtype.
    Grad: none.
    Raises: ``ShapeError`` for a negative size, ``DTypeError`` for an unknown dtype, ``AxisError``
        if ``names`` does not fit the shape. Using the elements raises ``TraceError``.

    >>> dn.template((3,), "s32").dtype
    s32
    """
    ...


@forwards(_core.iota)
def iota(
    shape: Shape | int,
    *,
    axis: int | str | None = None,
    dtype: DTypeLike = "s32",
    names: Names | None = None,
    vectorized_axes: VectorizedAxes | None = None,
    backend: BackendLike | None = None,
) -> Tensor:
    """Count from 0 along ``axis``; without an axis, over all axes in row-major order.

    Shapes: the given shape; ``names`` has one entry per axis. Every position of ``vectorized_axes``
        has the same elements.
    Dtypes: the given dtype.
    Grad: none.
    Raises: ``AxisError`` if ``axis`` is out of range, ``ShapeError`` for a negative size,
        ``OutOfMemoryError`` if the elements do not fit in memory.

    >>> dn.iota((2, 3), axis=1).to_list()
    [[0, 1, 2], [0, 1, 2]]
    """
    ...


@forwards(_core.eye)
def eye(
    shape: Shape | int,
    *,
    offset: int = 0,
    dtype: DTypeLike = "s32",
    names: Names | None = None,
    vectorized_axes: VectorizedAxes | None = None,
    backend: BackendLike | None = None,
) -> Tensor:
    """1 where the last two indices are equal, else 0. An int as the shape creates a square matrix.

    With ``offset`` the ones are on that diagonal: above the main one, or below it if negative.

    Shapes: the given shape, of rank 2 or more; ``names`` has one entry per axis. With
        ``vectorized_axes`` each position has one matrix, and a shape of rank 1 is one row.
    Dtypes: the given dtype.
    Grad: none.
    Raises: ``ShapeError`` for a rank below 2 or a negative size.

    >>> dn.eye(2).to_list()
    [[1, 0], [0, 1]]
    """
    ...


@forwards(_core.tri)
def tri(n: int, m: int, k: int = 0) -> Tensor:
    """A matrix that is true on and below a diagonal. ``k`` shifts the diagonal to the right.

    Shapes: ``(n, m)``.
    Dtypes: bool.
    Grad: none.
    Raises: ``ShapeError`` for a negative size.

    >>> dn.tri(2, 3).to_list()
    [[True, False, False], [True, True, False]]
    """
    ...


@forwards(_core.tril)
def tril(tensor: TensorLike, k: int = 0) -> Tensor:
    """Set the elements above a diagonal to 0. ``k`` shifts the diagonal to the right.

    Shapes: unchanged; names are kept. The last two axes are the matrices.
    Dtypes: any; unchanged.
    Grad: ``g`` with the same elements set to 0.
    Raises: ``ShapeError`` for a rank below 2.

    >>> dn.tril(dn.tensor([[1, 2], [3, 4]])).to_list()
    [[1, 0], [3, 4]]
    """
    ...


@forwards(_core.triu)
def triu(tensor: TensorLike, k: int = 0) -> Tensor:
    """Set the elements below a diagonal to 0. ``k`` shifts the diagonal to the right.

    Shapes: unchanged; names are kept. The last two axes are the matrices.
    Dtypes: any; unchanged.
    Grad: ``g`` with the same elements set to 0.
    Raises: ``ShapeError`` for a rank below 2.

    >>> dn.triu(dn.tensor([[1, 2], [3, 4]])).to_list()
    [[1, 2], [0, 4]]
    """
    ...


@forwards(_core.fill)
def fill(tensor: TensorLike, value: TensorLike, *, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of the same shape with ``value`` at every position.

    Shapes: that of the tensor, with its axis names; the value is a scalar.
    Dtypes: any; ``dtype`` if given, else promoted; Python numbers are weakly typed.
    Grad: the sum of ``g`` to the value, zero to the tensor.
    Raises: ``ShapeError`` if the value is not a scalar.

    >>> dn.fill(dn.tensor([1, 2]), 7).to_list()
    [7, 7]
    """
    ...


@forwards(_core.linspace)
def linspace(
    start: TensorLike,
    stop: TensorLike,
    /,
    n: int,
    *,
    name: str | None = None,
    dtype: DTypeLike = "f32",
    endpoint: bool = True,
) -> Tensor:
    """``n`` evenly spaced values from ``start`` to ``stop``. ``stop`` is the last one if
    ``endpoint`` is true.

    Shapes: both bounds have the same shape; the result has a new last axis of size ``n`` named
        ``name``.
    Dtypes: the given dtype.
    Grad: through the definition, to both bounds.
    Raises: ``ShapeError`` if the shapes of the bounds differ, ``OptionError`` unless ``n`` is at
        least 1.

    >>> dn.linspace(0.0, 1.0, n=5).to_list()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    ...


@forwards(_core.from_binary)
def from_binary(
    data: bytes | bytearray | memoryview,
    dtype: DTypeLike,
    *,
    backend: BackendLike | None = None,
) -> Tensor:
    """Create a vector from bytes in native byte order. Elements of 2 or 4 bits are packed.

    Shapes: one axis, whose size is the number of elements.
    Dtypes: the given dtype.
    Grad: none.
    Raises: ``ShapeError`` unless the bytes hold a whole number of elements and at least one.

    >>> dn.from_binary(bytes([1, 2, 255]), "s8").to_list()
    [1, 2, -1]
    """
    ...


@forwards(_core.make_diagonal)
def make_diagonal(tensor: TensorLike, offset: int = 0) -> Tensor:
    """A square matrix with a vector on a diagonal and 0 elsewhere. ``offset`` shifts the diagonal
    to the right.

    Shapes: ``(n,)`` becomes a square matrix of size ``n + abs(offset)``.
    Dtypes: any; promoted with s32.
    Grad: the diagonal of ``g``.
    Raises: ``ShapeError`` unless the rank is 1.

    >>> dn.make_diagonal(dn.tensor([1, 2])).to_list()
    [[1, 0], [0, 2]]
    """
    ...


@forwards(_core.take_diagonal)
def take_diagonal(tensor: TensorLike, offset: int = 0) -> Tensor:
    """The elements on a diagonal of matrices. ``offset`` shifts the diagonal to the right.

    Shapes: the last two axes become one axis of the size of the diagonal, which is 0 outside the
        matrix; names are dropped.
    Dtypes: any; unchanged.
    Grad: ``g`` on the diagonal, 0 elsewhere.
    Raises: ``ShapeError`` for a rank below 2.

    >>> dn.take_diagonal(dn.tensor([[1, 2], [3, 4]])).to_list()
    [1, 4]
    """
    ...


@forwards(_core.put_diagonal)
def put_diagonal(tensor: TensorLike, diagonal: TensorLike, offset: int = 0) -> Tensor:
    """A copy of a matrix with one diagonal replaced. ``offset`` shifts the diagonal to the right.

    Shapes: that of the matrix; the new diagonal is a vector of the size of the diagonal.
    Dtypes: any; promoted.
    Grad: ``g`` with zeros on the diagonal to the matrix, the diagonal of ``g`` to the vector.
    Raises: ``ShapeError`` for other ranks or sizes, ``OptionError`` for an offset outside the
        matrix.

    >>> dn.put_diagonal(dn.tensor([[1, 2], [3, 4]]), dn.tensor([9, 9])).to_list()
    [[9, 2], [3, 9]]
    """
    ...


@forwards(_core.as_type)
def as_type(tensor: TensorLike, dtype: DTypeLike) -> Tensor:
    """Convert the elements to another dtype.

    Integers wrap modulo 2**bits. Conversion from float to integer drops the fraction; NaN becomes
    0, and a value out of range becomes the nearest value in range. Conversion from complex to real
    drops the imaginary part. Conversion to a narrower float rounds to nearest, ties to even.
    Conversion to bool is true for every element that is not 0, also for fractions and NaN, and for
    a complex number if either part is not 0. Conversion from bool returns 1 and 0.

    Shapes: unchanged; names are kept.
    Dtypes: any to any.
    Grad: ``g``, also through conversions to integers; zero through conversions to bool; the real
        part of ``g`` if the operand is real and ``g`` is complex.
    Raises: ``DTypeError`` for an unknown dtype.

    >>> dn.as_type(dn.tensor([1.9, -1.9]), "s8").to_list()
    [1, -1]
    """
    ...


@forwards(_core.bitcast)
def bitcast(tensor: TensorLike, dtype: DTypeLike) -> Tensor:
    """Reinterpret the bits of the elements as another dtype of the same width.

    Shapes: unchanged; names are kept.
    Dtypes: any but complex, to one of the same width.
    Grad: ``g``.
    Raises: ``DTypeError`` if the widths differ or a dtype is complex.

    >>> dn.bitcast(dn.tensor([1.0]), "u32").to_list()
    [1065353216]
    """
    ...
