"""The checks of ``dn.associative_scan``, whose algorithm is the core's."""

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

    results = _core.scan_leaves(leaves, axes, reverse, combine)
    return _core.unflatten_container(structure, results)
