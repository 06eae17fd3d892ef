"""Functions that make tensors, and that convert their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

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


def tensor(
    value: Any,
    *,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    backend: BackendLike | None = None,
    copy: bool | None = None,
    **unknown: Never,
) -> Tensor:
    """A tensor from a number, a nested list, an array, or anything with DLPack or a buffer.

    An array's memory is copied unless nothing can write to it, and a read-only view of an array can
    be written by way of the array. ``copy=True`` always copies, ``copy=False`` never does, on the
    promise that nobody writes to the memory any more. A tensor is
    taken as it is, and stays on its backend.

    Shapes: the nesting of the list or the array's shape; ``names`` has one entry per axis.
    Dtypes: of numbers, integers give s32, floats f32, complex numbers c64, bools bool; mixed ones
        merge; an array keeps its own. With ``dtype``, numbers are stored as that type, where
        integers wrap.
    Grad: none flows.
    Raises: ``ShapeError`` for a ragged list, ``DTypeError`` for an integer that fits no s32 or for
        numbers that the ``dtype`` cannot hold, ``AxisError`` if ``names`` does not fit the shape,
        ``OptionError`` for a masked array, and for ``copy=False`` where a copy is needed,
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
    if unknown:
        refuse_options("tensor", unknown)
    return _core.tensor(value, dtype, names, backend, copy)


def template(
    shape: Shape | int, dtype: DTypeLike, *, names: Names | None = None, **unknown: Never
) -> Tensor:
    """A type without elements: what a compiled function is to expect.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: the given one.
    Grad: none flows.
    Raises: ``ShapeError`` for a negative size, ``DTypeError`` for an unknown type, ``AxisError`` if
        ``names`` does not fit the shape. Using its elements raises ``TraceError``.

    >>> dn.template((3,), "s32").dtype
    s32
    """
    if unknown:
        refuse_options("template", unknown)
    return _core.template(shape, dtype, names)


def iota(
    shape: Shape | int,
    *,
    axis: int | str | None = None,
    dtype: DTypeLike = "s32",
    names: Names | None = None,
    vectorized_axes: VectorizedAxes | None = None,
    backend: BackendLike | None = None,
    **unknown: Never,
) -> Tensor:
    """Count from 0 along an axis; without one, in row-major order over all axes.

    Shapes: the given one; ``names`` has one entry per axis. Each position of ``vectorized_axes``
        counts alike.
    Dtypes: the given one.
    Grad: none flows.
    Raises: ``AxisError`` if ``axis`` is out of range, ``ShapeError`` for a negative size,
        ``OutOfMemoryError`` if there is no room for so many elements.

    >>> dn.iota((2, 3), axis=1).to_list()
    [[0, 1, 2], [0, 1, 2]]
    """
    if unknown:
        refuse_options("iota", unknown)
    return _core.iota(shape, axis, dtype, names, vectorized_axes, backend)


def eye(
    shape: Shape | int,
    *,
    dtype: DTypeLike = "s32",
    names: Names | None = None,
    vectorized_axes: VectorizedAxes | None = None,
    backend: BackendLike | None = None,
    **unknown: Never,
) -> Tensor:
    """1 where the last two indices are equal, else 0. A number gives a square matrix.

    Shapes: the given one, of rank 2 or more; ``names`` has one entry per axis. With
        ``vectorized_axes`` every position has one, and a shape of rank 1 is a matrix of one row.
    Dtypes: the given one.
    Grad: none flows.
    Raises: ``ShapeError`` for a rank below 2 or a negative size.

    >>> dn.eye(2).to_list()
    [[1, 0], [0, 1]]
    """
    if unknown:
        refuse_options("eye", unknown)
    return _core.eye(shape, dtype, names, vectorized_axes, backend)


def tri(n: int, m: int, k: int = 0, **unknown: Never) -> Tensor:
    """A matrix that is true on and below a diagonal. ``k`` moves the diagonal to the right.

    Shapes: ``(n, m)``.
    Dtypes: bool.
    Grad: none flows.
    Raises: ``ShapeError`` for a negative size.

    >>> dn.tri(2, 3).to_list()
    [[True, False, False], [True, True, False]]
    """
    if unknown:
        refuse_options("tri", unknown)
    return _core.tri(n, m, k)


def tril(tensor: TensorLike, k: int = 0, **unknown: Never) -> Tensor:
    """The matrix with 0 above a diagonal. ``k`` moves the diagonal to the right.

    Shapes: kept, with axis names; the last two axes are the matrices.
    Dtypes: any; kept.
    Grad: ``g`` with the same part set to 0.
    Raises: ``ShapeError`` for a rank below 2.

    >>> dn.tril(dn.tensor([[1, 2], [3, 4]])).to_list()
    [[1, 0], [3, 4]]
    """
    if unknown:
        refuse_options("tril", unknown)
    return _core.tril(tensor, k)


def triu(tensor: TensorLike, k: int = 0, **unknown: Never) -> Tensor:
    """The matrix with 0 below a diagonal. ``k`` moves the diagonal to the right.

    Shapes: kept, with axis names; the last two axes are the matrices.
    Dtypes: any; kept.
    Grad: ``g`` with the same part set to 0.
    Raises: ``ShapeError`` for a rank below 2.

    >>> dn.triu(dn.tensor([[1, 2], [3, 4]])).to_list()
    [[1, 2], [0, 4]]
    """
    if unknown:
        refuse_options("triu", unknown)
    return _core.triu(tensor, k)


def fill(
    tensor: TensorLike, value: TensorLike, *, dtype: DTypeLike | None = None, **unknown: Never
) -> Tensor:
    """The value at every position of a tensor.

    Shapes: the tensor's, with axis names; the value is a scalar.
    Dtypes: any; merged, a plain number is weak; or ``dtype``.
    Grad: to the value the sum of ``g``, none to the tensor.
    Raises: ``ShapeError`` if the value is no scalar.

    >>> dn.fill(dn.tensor([1, 2]), 7).to_list()
    [7, 7]
    """
    if unknown:
        refuse_options("fill", unknown)
    return _core.fill(tensor, value, dtype)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    /,
    n: int,
    *,
    name: str | None = None,
    dtype: DTypeLike = "f32",
    endpoint: bool = True,
    **unknown: Never,
) -> Tensor:
    """``n`` values at equal distances from ``start`` to ``stop``, which is the last one if
    ``endpoint``.

    Shapes: that of both bounds, which must be equal, and a new last axis of size ``n`` named
        ``name``.
    Dtypes: the given one.
    Grad: through the definition, to both bounds.
    Raises: ``ShapeError`` if the bounds' shapes differ, ``OptionError`` unless ``n`` is at least 1.

    >>> dn.linspace(0.0, 1.0, n=5).to_list()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if unknown:
        refuse_options("linspace", unknown)
    return _core.linspace(start, stop, n, name, dtype, endpoint)


def from_binary(
    data: bytes | bytearray | memoryview,
    dtype: DTypeLike,
    *,
    backend: BackendLike | None = None,
    **unknown: Never,
) -> Tensor:
    """A vector from bytes in native order, in which elements of 2 or 4 bits are packed.

    Shapes: one axis, as long as there are elements.
    Dtypes: the given one.
    Grad: none flows.
    Raises: ``ShapeError`` unless the bytes are a whole number of elements and at least one.

    >>> dn.from_binary(bytes([1, 2, 255]), "s8").to_list()
    [1, 2, -1]
    """
    if unknown:
        refuse_options("from_binary", unknown)
    return _core.from_binary(data, dtype, backend)


def make_diagonal(tensor: TensorLike, offset: int = 0, **unknown: Never) -> Tensor:
    """A square matrix with a vector on a diagonal, else 0. ``offset`` moves the diagonal to the
    right.

    Shapes: ``(n,)`` gives a square of size ``n + abs(offset)``.
    Dtypes: any; merged with s32.
    Grad: the diagonal of ``g``.
    Raises: ``ShapeError`` unless the rank is 1.

    >>> dn.make_diagonal(dn.tensor([1, 2])).to_list()
    [[1, 0], [0, 2]]
    """
    if unknown:
        refuse_options("make_diagonal", unknown)
    return _core.make_diagonal(tensor, offset)


def take_diagonal(tensor: TensorLike, offset: int = 0, **unknown: Never) -> Tensor:
    """The elements on a diagonal of matrices. ``offset`` moves the diagonal to the right.

    Shapes: the last two axes become one, as long as the diagonal; names are dropped.
    Dtypes: any; kept.
    Grad: ``g`` on the diagonal, else 0.
    Raises: ``ShapeError`` for a rank below 2, ``OptionError`` for an offset outside the matrix.

    >>> dn.take_diagonal(dn.tensor([[1, 2], [3, 4]])).to_list()
    [1, 4]
    """
    if unknown:
        refuse_options("take_diagonal", unknown)
    return _core.take_diagonal(tensor, offset)


def put_diagonal(
    tensor: TensorLike, diagonal: TensorLike, offset: int = 0, **unknown: Never
) -> Tensor:
    """A matrix with a diagonal overwritten. ``offset`` moves the diagonal to the right.

    Shapes: the matrix's; the new diagonal is a vector as long as the diagonal.
    Dtypes: any; merged.
    Grad: to the matrix ``g`` with zeros on the diagonal, to the vector the diagonal of ``g``.
    Raises: ``ShapeError`` for other ranks or lengths, ``OptionError`` for an offset outside the
        matrix.

    >>> dn.put_diagonal(dn.tensor([[1, 2], [3, 4]]), dn.tensor([9, 9])).to_list()
    [[9, 2], [3, 9]]
    """
    if unknown:
        refuse_options("put_diagonal", unknown)
    return _core.put_diagonal(tensor, diagonal, offset)


def as_type(tensor: TensorLike, dtype: DTypeLike, **unknown: Never) -> Tensor:
    """Convert the elements to another type.

    Integers wrap modulo 2**bits. A float becomes an integer by dropping its fraction; NaN becomes
    0, and what is out of range the nearest value in range. A complex number becomes real by
    dropping its imaginary part. Narrower floats round to the nearest, ties to even.

    Shapes: kept, with axis names.
    Dtypes: any to any.
    Grad: ``g`` passes unchanged, also through conversions to integers; its real part from complex
        to real.
    Raises: ``DTypeError`` for an unknown type.

    >>> dn.as_type(dn.tensor([1.9, -1.9]), "s8").to_list()
    [1, -1]
    """
    if unknown:
        refuse_options("as_type", unknown)
    return _core.as_type(tensor, dtype)


def bitcast(tensor: TensorLike, dtype: DTypeLike, **unknown: Never) -> Tensor:
    """Read the bits of the elements as another type of the same width.

    Shapes: kept, with axis names.
    Dtypes: any but complex, to one of the same width.
    Grad: ``g`` passes unchanged.
    Raises: ``DTypeError`` if the widths differ or a type is complex.

    >>> dn.bitcast(dn.tensor([1.0]), "u32").to_list()
    [1065353216]
    """
    if unknown:
        refuse_options("bitcast", unknown)
    return _core.bitcast(tensor, dtype)
