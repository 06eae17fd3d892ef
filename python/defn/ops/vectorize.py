"""Functions that make, move and join vectorized axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from defn.typing import Names, Shape, VectorizedAxes

__all__ = ["broadcast_vectors", "devectorize", "reshape_vectors", "revectorize", "vectorize"]


def vectorize(value: Any, axes: VectorizedAxes, **unknown: Never) -> Any:
    """Leading axes as vectorized ones, after those that are vectorized already.

    A vectorized axis has a name, and is outside the shape: every operation works on what is inside,
    for each position on the vectorized axes.

    Shapes: any, or a container of tensors; the leading axes leave the shape. ``axes`` is a name,
        a list of names or of ``(name, size)``, or a dict of names and sizes, which are checked.
    Dtypes: any; kept.
    Grad: flows.
    Raises: ``ShapeError`` for more axes than the tensor has, or another size than was said;
        ``AxisError`` if a name would stand on two axes.

    >>> x = dn.vectorize(dn.tensor([[1, 2, 3], [4, 5, 6]]), "rows")
    >>> x.sum()
    Tensor<
      vectorized[rows: 2]
      s32
      [6, 15]
    >
    """
    if unknown:
        refuse_options("vectorize", unknown)
    return _core.vectorize(value, axes)


def devectorize(value: Any, *, keep_names: bool = True, **unknown: Never) -> Any:
    """Vectorized axes as the leading axes of the shape, under their names or none.

    Shapes: any, or a container of tensors; vectorized axes come in front.
    Dtypes: any; kept.
    Grad: flows.
    Raises: ``ContainerError`` for something that is no tensor or container.

    >>> x = dn.vectorize(dn.tensor([[1, 2, 3], [4, 5, 6]]), "rows")
    >>> dn.devectorize(x).names
    ('rows', None)
    """
    if unknown:
        refuse_options("devectorize", unknown)
    return _core.devectorize(value, keep_names)


def revectorize(
    value: Any,
    target_axes: Sequence[tuple[str, int | str]] | Mapping[str, int | str],
    *,
    target_shape: Shape | int | None = None,
    target_names: Names | None = None,
    **unknown: Never,
) -> Any:
    """The same elements, in row-major order, under other vectorized axes and another shape.

    Shapes: any, or a container of tensors; the shape is kept unless ``target_shape`` says another.
        At most one size, among axes and shape together, is ``-1`` or ``"auto"``.
    Dtypes: any; kept.
    Grad: flows.
    Raises: ``ShapeError`` if the sizes do not hold as many elements, ``AxisError`` if a name would
        stand on two axes.

    >>> x = dn.iota((4,), vectorized_axes={"a": 2, "b": 3})
    >>> dn.revectorize(x, {"c": -1}).vectorized_axes
    (('c', 6),)
    """
    if unknown:
        refuse_options("revectorize", unknown)
    return _core.revectorize(value, target_axes, target_shape, target_names)


def reshape_vectors(values: Any, *, align_ranks: bool = False, **unknown: Never) -> Any:
    """The vectorized axes of all tensors on each of them, with size 1 where one lacks an axis.

    Shapes: any, in a container; kept, or filled up with leading axes of size 1 to the greatest
        rank with ``align_ranks``. The axes come in the order in which they first appear.
    Dtypes: any; kept.
    Grad: flows.
    Raises: ``ShapeError`` if axes of one name have sizes that differ and are not 1, ``AxisError``
        if a name would stand on two axes.

    >>> x, y = dn.iota((2,)).vectorize("x"), dn.iota((3,)).vectorize("y")
    >>> [t.vectorized_axes for t in dn.reshape_vectors([x, y])]
    [(('x', 2), ('y', 1)), (('x', 1), ('y', 3))]
    """
    if unknown:
        refuse_options("reshape_vectors", unknown)
    return _core.reshape_vectors(values, align_ranks)


def broadcast_vectors(values: Any, *, align_ranks: bool = False, **unknown: Never) -> Any:
    """The vectorized axes of all tensors on each of them, in full.

    Shapes: any, in a container; kept, or filled up with leading axes of size 1 to the greatest
        rank with ``align_ranks``. The axes come in the order in which they first appear.
    Dtypes: any; kept.
    Grad: flows.
    Raises: ``ShapeError`` if axes of one name have sizes that differ and are not 1, ``AxisError``
        if a name would stand on two axes.

    >>> x, y = dn.iota((2,)).vectorize("x"), dn.iota((3,)).vectorize("y")
    >>> dn.broadcast_vectors([x, y])[0].to_list()
    [[0, 0, 0], [1, 1, 1]]
    """
    if unknown:
        refuse_options("broadcast_vectors", unknown)
    return _core.broadcast_vectors(values, align_ranks)
