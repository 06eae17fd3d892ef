"""``x.at[index]``: copies of a tensor in which the elements that an index selects are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from defn import _core
from defn._names import option_error
from defn._public import public

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Never

    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = ["At"]


class Indexed:
    """What ``x.at`` is: an index of it gives an :class:`At`."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> At:
        return At(self._tensor, index)

    def __setitem__(self, index: object, value: object) -> Never:
        raise option_error("at: tensors never change; write x = x.at[index].set(value)")

    def __repr__(self) -> str:
        return "<at of a tensor: write x.at[index].set(value)>"


class At:
    """The elements of a tensor that an index selects: ``x.at[index]``.

    Its methods return a copy of ``x`` with these elements changed. ``x`` stays as it is; a compiled
    definition changes it in place where it is not needed any more.

    - ``set(value)`` replaces the elements, ``apply(fun)`` replaces them by ``fun`` of them.
    - ``add(value)``, ``multiply(value)`` (or ``mul``), ``max(value)`` and ``min(value)`` combine
      them with the value.
    - ``get()`` is ``x[index]``.

    The index is anything that ``x[index]`` takes: ints, slices, ``...``, ``None``, tensors, arrays
    and lists of integers, masks, and dicts by axis name. Where ``x[mask]`` is refused because the
    mask is traced, ``x.at[mask]`` is possible if the value is the same for all elements.

    If an index selects an element several times, ``set`` keeps the last value; the others combine
    it with all of them. ``apply`` computes it once.

    Positions below 0 count from the end. An int out of range raises an error at once, and so do
    lists and arrays. A scalar tensor out of range is moved to the nearest position, as in
    ``put_slice``, and an element of a tensor of positions is left out, as in ``indexed_put``; both
    raise when they run eagerly on the host, and everywhere under ``dn.checks("index")``.

    Shapes: that of the tensor, with its names. The value broadcasts to the shape of ``x[index]``.
    Dtypes: those of the tensor and the value, promoted as in ``put_slice``: an f64 in an f32 gives
        f64. Python numbers are weakly typed, so that 1.5 in an f64 keeps it.
    Grad: ``set``: ``g`` with zeros where elements were replaced to the tensor, ``g`` there to the
        value, summed over what was broadcast. ``add``: ``g`` to both. ``max`` and ``min``: ``g`` to
        whichever was chosen.
    Raises: ``BoundsError`` for an index that is none or out of range, ``ShapeError`` if the value
        does not fit the elements, ``DTypeError`` for dtypes that the operation does not take,
        ``AxisError`` if names differ.

    >>> x = dn.tensor([1.0, 2.0, 3.0, 4.0])
    >>> x.at[1].set(9.0).to_list(), x.at[::2].add(10.0).to_list()
    ([1.0, 9.0, 3.0, 4.0], [11.0, 2.0, 13.0, 4.0])
    >>> x.at[[0, 0, 3]].add(dn.tensor([1.0, 2.0, 3.0])).to_list()
    [4.0, 2.0, 3.0, 7.0]
    >>> dn.jit(lambda x: x.at[x > 2].set(0.0))(x).to_list()
    [1.0, 2.0, 0.0, 0.0]
    """

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor: Tensor, index: Any) -> None:
        self._tensor, self._index = tensor, index

    def get(self) -> Tensor:
        """The elements: ``x[index]``."""
        return self._tensor[self._index]

    @public
    def set(self, value: TensorLike, /) -> Tensor:
        """The tensor with the elements replaced by a value."""
        return _core.at_update(self._tensor, self._index, value, "set")

    @public
    def add(self, value: TensorLike, /) -> Tensor:
        """The tensor with a value added to the elements."""
        return _core.at_update(self._tensor, self._index, value, "add")

    @public
    def multiply(self, value: TensorLike, /) -> Tensor:
        """The tensor with the elements multiplied by a value."""
        return _core.at_update(self._tensor, self._index, value, "multiply")

    @public
    def max(self, value: TensorLike, /) -> Tensor:
        """The tensor with the greater of each element and a value."""
        return _core.at_update(self._tensor, self._index, value, "max")

    @public
    def min(self, value: TensorLike, /) -> Tensor:
        """The tensor with the less of each element and a value."""
        return _core.at_update(self._tensor, self._index, value, "min")

    mul = multiply

    def apply(self, fun: Callable[[Tensor], TensorLike], /) -> Tensor:
        """The tensor with the elements replaced by ``fun`` of them, called once with all."""
        return self.set(fun(self.get()))

    def __repr__(self) -> str:
        return "<elements of a tensor: call set(value), add(value) or another method of dn.At>"
