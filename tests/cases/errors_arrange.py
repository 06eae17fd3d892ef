"""Wrong programs that rearrange elements, and their traces and ranges: rows of ``errors``."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("fewer positions than axes to move", "dn.moveaxis(x, [0, 1], 0)"),
    ("an axis that is moved twice", "dn.moveaxis(x, [0, 0], [0, 1])"),
    ("a position beyond the axes", 'dn.moveaxis(x, "row", 2)'),
    ("a roll by a tensor", "dn.roll(v, i)"),
    ("more shifts than axes to roll", "dn.roll(x, (1, 2), axis=0)"),
    ("repeats that are a traced tensor", "dn.jit(lambda x, n: dn.repeat(x, n))(v, i)"),
    ("repeats that are a tensor", "dn.repeat(v, i)"),
    ("repeats that are floats", "dn.repeat(v, [1.0, 2.0, 3.0])"),
    ("fewer repeats than elements", "dn.repeat(v, [1, 2])"),
    ("a negative repeat", "dn.repeat(v, [1, -1, 2])"),
    ("a turn in one axis", "dn.rot90(x, axes=0)"),
    ("a turn of a vector", "dn.rot90(v)"),
    ("the parts of a scalar", "dn.unstack(1.0)"),
    ("shapes without a common one", "dn.broadcast_arrays(v, dn.iota((2,)))"),
    ("a list of tensors to broadcast", "dn.broadcast_arrays([v, x])"),
    ("no columns", "dn.column_stack([])"),
    ("columns of other lengths", "dn.column_stack([v, dn.iota((2,))])"),
    ("nothing to join in depth", "dn.dstack([])"),
    ("a tensor in no parts", "dn.array_split(v, 0)"),
    ("cuts that are floats", "dn.array_split(v, [0.5])"),
    ("a grid of matrices", "dn.meshgrid(v, x)"),
    ("a grid of one name twice", 'dn.meshgrid(v.rename(["a"]), v.rename(["a"]))'),
    ("a grid in an unknown order", 'dn.meshgrid(v, v, indexing="yx")'),
    ("the trace of a vector", "dn.trace(v)"),
    ("a range of complex numbers", "dn.ptp(c)"),
    ("a range of bools", "dn.ptp(v > 1)"),
    ("a range of nothing", "dn.ptp(dn.broadcast(0.0, (2, 0)), axes=1)"),
    ("a count over an axis that does not exist", "dn.count_nonzero(v, axes=1)"),
]
