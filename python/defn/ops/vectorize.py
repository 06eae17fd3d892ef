"""Functions that create, move and combine vectorized axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from defn.typing import Names, Shape, VectorizedAxes

__all__ = ["broadcast_vectors", "devectorize", "reshape_vectors", "revectorize", "vectorize"]


@forwards(_core.vectorize)
def vectorize(value: Any, axes: VectorizedAxes) -> Any:
    """Turn leading axes into vectorized axes, after the axes that are vectorized already.

    A vectorized axis has a name and is not part of the shape. Every operation is applied to the
    inner tensor at each position on the vectorized axes.

    Shapes: any, or a container of tensors; the leading axes leave the shape. ``axes`` is a name, a
        list of names or of ``(name, size)``, or a dict of names and sizes; sizes are checked.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``ShapeError`` for more axes than the tensor has and for a size that differs;
        ``AxisError`` if two axes would have the same name.

    >>> x = dn.vectorize(dn.tensor([[1, 2, 3], [4, 5, 6]]), "rows")
    >>> x.sum()
    Tensor<
      vectorized[rows: 2]
      s32
      [6, 15]
    >
    """
    ...


@forwards(_core.devectorize)
def devectorize(value: Any, *, keep_names: bool = True) -> Any:
    """Turn vectorized axes into leading axes of the shape, with their names or without names.

    Shapes: any, or a container of tensors; the vectorized axes become the first axes.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``ContainerError`` for a value that is neither a tensor nor a container.

    >>> x = dn.vectorize(dn.tensor([[1, 2, 3], [4, 5, 6]]), "rows")
    >>> dn.devectorize(x).names
    ('rows', None)
    """
    ...


@forwards(_core.revectorize)
def revectorize(
    value: Any,
    target_axes: Sequence[tuple[str, int | str]] | Mapping[str, int | str],
    *,
    target_shape: Shape | int | None = None,
    target_names: Names | None = None,
) -> Any:
    """The same elements in row-major order with other vectorized axes and another shape.

    Shapes: any, or a container of tensors; the shape is kept unless ``target_shape`` is given. At
        most one size of the axes and the shape together may be ``-1`` or ``"auto"``.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``ShapeError`` if the number of elements differs, ``AxisError`` if two axes would have
        the same name.

    >>> x = dn.iota((4,), vectorized_axes={"a": 2, "b": 3})
    >>> dn.revectorize(x, {"c": -1}).vectorized_axes
    (('c', 6),)
    """
    ...


@forwards(_core.reshape_vectors)
def reshape_vectors(values: Any, *, align_ranks: bool = False) -> Any:
    """Give each tensor the vectorized axes of all tensors; an axis that it lacks gets size 1.

    Shapes: any, in a container; unchanged. ``align_ranks`` adds leading axes of size 1 up to the
        greatest rank. The axes are in the order of their first appearance.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``ShapeError`` if axes of the same name have different sizes other than 1, ``AxisError``
        if two axes would have the same name.

    >>> x, y = dn.iota((2,)).vectorize("x"), dn.iota((3,)).vectorize("y")
    >>> [t.vectorized_axes for t in dn.reshape_vectors([x, y])]
    [(('x', 2), ('y', 1)), (('x', 1), ('y', 3))]
    """
    ...


@forwards(_core.broadcast_vectors)
def broadcast_vectors(values: Any, *, align_ranks: bool = False) -> Any:
    """Give each tensor the vectorized axes of all tensors, in full size.

    Shapes: any, in a container; unchanged. ``align_ranks`` adds leading axes of size 1 up to the
        greatest rank. The axes are in the order of their first appearance.
    Dtypes: any; unchanged.
    Grad: differentiable.
    Raises: ``ShapeError`` if axes of the same name have different sizes other than 1, ``AxisError``
        if two axes would have the same name.

    >>> x, y = dn.iota((2,)).vectorize("x"), dn.iota((3,)).vectorize("y")
    >>> dn.broadcast_vectors([x, y])[0].to_list()
    [[0, 0, 0], [1, 1, 1]]
    """
    ...
