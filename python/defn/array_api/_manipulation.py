"""Functions that arrange elements, and those that pick them by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import defn as dn
from defn.array_api._array import Array, convert, require, wrap
from defn.array_api._promotion import ALL, INTEGER, promote_all
from defn.array_api._sharing import RESHAPED, Part, is_in_order, share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn import Tensor

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "unstack",
]


def axes_of(function: str, axis: int | Sequence[int] | None, rank: int) -> list[int]:
    """Axes as ascending positions from the front; all for None. Raises for those out of range."""
    if axis is None:
        return list(range(rank))
    axes = [axis] if isinstance(axis, int) or hasattr(axis, "__index__") else list(axis)  # pyright: ignore
    resolved = [one_axis(function, int(one), rank) for one in axes]  # pyright: ignore
    if len(set(resolved)) < len(resolved):
        raise ValueError(f"{function}: an axis is given twice in {axis}")
    return resolved


def one_axis(function: str, axis: int, rank: int) -> int:
    """An axis as a position from the front."""
    if not -rank <= axis < rank:
        raise IndexError(f"{function}: axis {axis} is out of range for an array of {rank} axes")
    return axis % rank


def together(function: str, arrays: Sequence[Array]) -> list[Tensor]:
    """Arrays as tensors of their common data type."""
    if not arrays:
        raise ValueError(f"{function}: at least one array is required")
    tensors = [require(function, array, ALL) for array in arrays]
    dtype = promote_all([tensor.dtype for tensor in tensors], function)
    return [convert(tensor, dtype) for tensor in tensors]


def _part(
    x: Array,
    take: Callable[[Tensor], Tensor],
    put: Callable[[Tensor, Tensor], Tensor],
    key: object = None,
) -> Array:
    """The part of an array that ``take`` makes; see ``Part``."""
    return share(wrap(take(x._tensor)), Part(x, take, put, key))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all shapes are broadcast to.

    >>> import defn.array_api as xp
    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    rank = max((len(shape) for shape in shapes), default=0)
    out: list[int] = []
    for i in range(-rank, 0):
        sizes = {shape[i] for shape in shapes if -i <= len(shape)} - {1}
        if len(sizes) > 1:
            raise ValueError(
                f"broadcast_shapes: {shapes} cannot be broadcast to one shape: axis {i} has sizes "
                f"{sorted(sizes)}"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """The arrays, each with their common shape."""
    tensors = [require("broadcast_arrays", array, ALL) for array in arrays]
    broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(wrap(tensor) for tensor in dn.broadcast_arrays(*tensors)) if tensors else ()


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """The array with its elements repeated along new axes in front and axes of size 1."""
    tensor = require("broadcast_to", x, ALL)
    if broadcast_shapes(tensor.shape, tuple(shape)) != tuple(shape):
        raise ValueError(f"broadcast_to: {tensor.shape} does not broadcast to {tuple(shape)}")
    return wrap(dn.broadcast(tensor, tuple(shape)))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an axis, or all their elements in a row for None."""
    tensors = together("concat", arrays)
    if axis is None:
        tensors, axis = [dn.reshape(tensor, (-1,)) for tensor in tensors], 0
    return wrap(dn.concatenate(tensors, axis=one_axis("concat", axis, tensors[0].ndim)))


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Arrays of one shape joined along a new axis."""
    tensors = together("stack", arrays)
    return wrap(dn.stack(tensors, axis=one_axis("stack", axis, tensors[0].ndim + 1)))


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The arrays along an axis, without that axis."""
    tensor = require("unstack", x, ALL)
    at = one_axis("unstack", axis, tensor.ndim)
    return tuple(wrap(part) for part in dn.unstack(tensor, at))


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """The array with a new axis of size 1 at each of the positions in the result."""
    tensor = require("expand_dims", x, ALL)
    count = 1 if isinstance(axis, int) else len(axis)
    added = set(axes_of("expand_dims", axis, tensor.ndim + count))
    sizes = iter(tensor.shape)
    shape = [1 if i in added else next(sizes) for i in range(tensor.ndim + count)]
    return _reshaped(x, shape)


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """The array without axes of size 1."""
    tensor = require("squeeze", x, ALL)
    dropped = axes_of("squeeze", axis, tensor.ndim)
    for i in dropped:
        if tensor.shape[i] != 1:
            raise ValueError(f"squeeze: axis {i} has size {tensor.shape[i]}, it must be 1")
    kept = [size for i, size in enumerate(tensor.shape) if i not in dropped]
    return _reshaped(x, kept)


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements in reverse order along axes, by default along all."""
    tensor = require("flip", x, ALL)
    axes = axes_of("flip", axis, tensor.ndim)

    def reverse(tensor: Tensor) -> Tensor:
        return dn.reverse(tensor, axes=axes) if axes else tensor

    return _part(x, reverse, lambda _, part: reverse(part))


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """The array with axes at other positions; the other axes keep their order."""
    tensor = require("moveaxis", x, ALL)
    origin = axes_of("moveaxis", source, tensor.ndim)
    target = axes_of("moveaxis", destination, tensor.ndim)
    if len(origin) != len(target):
        raise ValueError(f"moveaxis: {len(origin)} axes have {len(target)} new positions")
    return _part(
        x,
        lambda whole: dn.moveaxis(whole, origin, target),
        lambda _, part: dn.moveaxis(part, target, origin),
    )


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """The array with its axes in another order."""
    tensor = require("permute_dims", x, ALL)
    order = axes_of("permute_dims", axes, tensor.ndim)
    if len(order) != tensor.ndim:
        raise ValueError(
            f"permute_dims: axes are {axes}, one for each of {tensor.ndim} is required"
        )
    back = sorted(range(tensor.ndim), key=order.__getitem__)
    return _part(
        x,
        lambda whole: dn.transpose(whole, axes=order),
        lambda _, part: dn.transpose(part, axes=back),
    )


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The elements in row-major order in another shape; one size may be -1. It copies nothing.

    The arrays share changes as in NumPy, if ``x`` has its elements in their order; not if ``copy``.
    """
    tensor = require("reshape", x, ALL)
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if copy is True or (copy is None and not is_in_order(x)):
        return wrap(dn.reshape(tensor, sizes))
    return _reshaped(x, sizes)


def _reshaped(x: Array, sizes: Sequence[int]) -> Array:
    """The elements in another shape, shared."""
    return _part(
        x,
        lambda whole: dn.reshape(whole, sizes),
        lambda whole, part: dn.reshape(part, whole.shape),
        RESHAPED,
    )


def roll(
    x: Array,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    """The elements moved along axes; those beyond the end come back at the beginning."""
    tensor = require("roll", x, ALL)
    if axis is None:
        if not isinstance(shift, int):
            raise ValueError("roll: several shifts need several axes")
        return wrap(dn.roll(tensor, shift))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(axes) != len(shifts):
        raise ValueError(f"roll: {len(shifts)} shifts have {len(axes)} axes")
    # An axis may come twice: its shifts follow each other.
    for one, by in zip(axes, shifts, strict=True):
        tensor = dn.roll(tensor, by, one_axis("roll", one, tensor.ndim))
    return wrap(tensor)


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Each element several times in a row along an axis, or of the flattened array.

    An array of repeats has one number for each element. It cannot be traced, since it decides the
    size of the result.
    """
    tensor = require("repeat", x, ALL)
    if axis is None:
        tensor, axis = dn.reshape(tensor, (-1,)), 0
    at = one_axis("repeat", axis, tensor.ndim)
    if not isinstance(repeats, Array):
        return wrap(dn.repeat(tensor, int(repeats), axis=at))
    size = tensor.shape[at]
    counts = require("repeat", repeats, INTEGER)
    if counts.ndim > 1 or counts.size not in (1, size):
        raise ValueError(f"repeat: repeats have shape {counts.shape}, the axis has {size} elements")
    each = counts.reshape((-1,)).to_list()
    return wrap(dn.repeat(tensor, each * size if len(each) == 1 else each, axis=at))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """The array repeated as a whole along each axis."""
    tensor = require("tile", x, ALL)
    rank = max(tensor.ndim, len(repetitions))
    shape = (1,) * (rank - tensor.ndim) + tensor.shape
    times = (1,) * (rank - len(repetitions)) + tuple(repetitions)
    if 0 in times:
        # Nothing is repeated: an array without elements.
        sizes = [size * count for size, count in zip(shape, times, strict=True)]
        return wrap(dn.broadcast(dn.tensor(0, dtype=tensor.dtype), sizes))
    return wrap(dn.tile(dn.reshape(tensor, shape), times))


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """The elements at positions along an axis, which an array of one axis need not name."""
    tensor = require("take", x, ALL)
    positions = require("take", indices, INTEGER)
    if axis is None:
        if tensor.ndim != 1:
            raise ValueError(f"take: the array has {tensor.ndim} axes; say which by axis")
        axis = 0
    return wrap(dn.take(tensor, positions, axis=one_axis("take", axis, tensor.ndim)))


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """The elements at positions along an axis, with positions of their own for each line."""
    tensor = require("take_along_axis", x, ALL)
    positions = require("take_along_axis", indices, INTEGER)
    at = one_axis("take_along_axis", axis, tensor.ndim)
    lead = list(broadcast_shapes(_without(tensor.shape, at), _without(positions.shape, at)))
    whole = dn.broadcast(tensor, [*lead[:at], tensor.shape[at], *lead[at:]])
    where = dn.broadcast(positions, [*lead[:at], positions.shape[at], *lead[at:]])
    return wrap(dn.take_along_axis(whole, where, axis=at))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]
