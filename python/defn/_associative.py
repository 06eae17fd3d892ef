"""The algorithm behind ``dn.associative_scan``.

Neighbours are combined in pairs, the pairs are scanned in the same way, and the elements between
are combined with what came before them (Blelloch, Prefix Sums and Their Applications, 1990). Both
halves of the work are one call of the function for each power of 2, on vectors of elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._names import caller, option_error
from defn.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from defn._core import Tensor
    from defn.typing import Axis

# So few elements are combined one after the other: with no more calls, and fewer combinations.
_FEW = 8


def associative_scan(
    function: Callable[[Any, Any], Any], elements: Any, axis: Axis, reverse: bool
) -> Any:
    leaves, structure, axes, paths = _core.scan_elements(elements, axis)
    if not leaves:
        raise option_error(
            f"associative_scan: elements is {elements!r}, it must have at least one tensor"
        )
    sizes = [leaf.shape[at] for leaf, at in zip(leaves, axes, strict=True)]
    for leaf, size, path in zip(leaves, sizes, paths, strict=True):
        if size != sizes[0]:
            raise ShapeError(
                f"associative_scan: elements{path} is {_core.type_text(leaf)}, its axis {axis!r} "
                f"must have {sizes[0]} elements as that of elements{paths[0]}, "
                f"which is {_core.type_text(leaves[0])}{caller()}"
            )
    if sizes[0] < 2:
        return _core.unflatten_container(structure, leaves)

    def combine(before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
        """Call the function on slices of all leaves."""
        result = function(
            _core.unflatten_container(structure, before),
            _core.unflatten_container(structure, after),
        )
        results = _core.scan_results(result, structure)
        for got, expected, path in zip(results, after, paths, strict=True):
            if got.dtype != expected.dtype or got.shape != expected.shape:
                error = DTypeError if got.dtype != expected.dtype else ShapeError
                raise error(
                    f"associative_scan: the function gives {_core.type_text(got)} for "
                    f"{_core.type_text(expected)} of elements{path}, "
                    f"dtype and shape must stay the same; convert or broadcast elements{path} "
                    f"before the scan, or what the function gives{caller()}"
                )
        return results

    if reverse:
        leaves = [_core.reverse(leaf, at) for leaf, at in zip(leaves, axes, strict=True)]
    results = _scan(combine, leaves, axes)
    if reverse:
        results = [_core.reverse(result, at) for result, at in zip(results, axes, strict=True)]
    return _core.unflatten_container(structure, results)


def _scan(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]],
    leaves: list[Tensor],
    axes: list[int],
) -> list[Tensor]:
    """Scan at least one element."""
    size = leaves[0].shape[axes[0]]
    if size <= _FEW:
        single = [
            [_slice(x, at, 1, axis) for x, axis in zip(leaves, axes, strict=True)]
            for at in range(size)
        ]
        scanned = single[:1]
        for element in single[1:]:
            scanned.append(combine(scanned[-1], element))
        return [
            _core.concatenate([step[leaf] for step in scanned], axis)
            for leaf, axis in enumerate(axes)
        ]
    halves = [_halves(x, axis) for x, axis in zip(leaves, axes, strict=True)]
    pairs, rest = size // 2, (size - 1) // 2
    even = [_slice(half[0], 0, pairs, axis) for half, axis in zip(halves, axes, strict=True)]
    odd = _scan(combine, combine(even, [half[1] for half in halves]), axes)
    even = combine(
        [_slice(x, 0, rest, axis) for x, axis in zip(odd, axes, strict=True)],
        [_slice(half[0], 1, rest, axis) for half, axis in zip(halves, axes, strict=True)],
    )
    return [
        _joined(half[0], between, last, axis)
        for half, between, last, axis in zip(halves, even, odd, axes, strict=True)
    ]


def _slice(x: Tensor, start: int, length: int, axis: int) -> Tensor:
    return x if length == x.shape[axis] else _core.slice_along_axis(x, start, length, axis, 1)


def _halves(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The elements at even and at odd positions."""
    size = x.shape[axis]
    if size % 2:
        even = _core.slice_along_axis(x, 0, size, axis, 2)
        return even, _core.slice_along_axis(x, 1, size - 1, axis, 2)
    # Slices of pairs are read faster than strided ones.
    pairs = _core.reshape(
        x,
        (*x.shape[:axis], size // 2, 2, *x.shape[axis + 1 :]),
        (*x.names[: axis + 1], None, *x.names[axis + 1 :]),
    )
    even, odd = (_slice(pairs, at, 1, axis + 1) for at in (0, 1))
    return _core.squeeze(even, axis + 1), _core.squeeze(odd, axis + 1)


def _joined(before: Tensor, even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """The first element of ``before``, then those of ``odd`` and ``even`` in turn."""
    pairs = odd.shape[axis]
    first = _slice(before, 0, 1, axis)
    left = _core.concatenate([first, _slice(even, 0, pairs - 1, axis)], axis)
    both = _core.stack([left, odd], axis + 1, None)
    shape = (*both.shape[:axis], 2 * pairs, *both.shape[axis + 2 :])
    both = _core.reshape(both, shape, (*both.names[: axis + 1], *both.names[axis + 2 :]))
    if even.shape[axis] < pairs:
        return both
    return _core.concatenate([both, _slice(even, pairs - 1, 1, axis)], axis)
