"""Ways to be wrong about positions, order and scans: rows of ``errors``."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    # Positions.
    ("a position out of range", "dn.gather(x, dn.tensor([[0, 1], [2, 0]]))"),
    ("an index out of range to take", "dn.take(x, dn.tensor([0, -1]), axis=1)"),
    ("an index out of range along an axis", "dn.take_along_axis(v, dn.tensor([0, 3, 1]))"),
    ("a position out of range to add at", "dn.indexed_add(v, dn.tensor([[3]]), v[:1])"),
    ("a single position out of range", "dn.indexed_put(x, dn.tensor([1, 3]), 1.0)"),
    ("an index of the greatest width", 'dn.take(v, dn.tensor([2**64 - 1], dtype="u64"))'),
    (
        "an index out of range where it is looked for",
        'with dn.checks("index"):\n    dn.jit(lambda i: dn.take(v, i))(dn.tensor([3]))',
    ),
    (
        "a NaN where it is looked for",
        'with dn.checks("nan"):\n    dn.jit(lambda y: dn.log(y) + 1.0)(-v)',
    ),
    ("a check that there is none of", 'with dn.checks("overflow"):\n    pass'),
    ("indices that are no integers", "dn.gather(x, v)"),
    ("indices to take that are no integers", "dn.take(x, v)"),
    ("indices along an axis that are no integers", "dn.take_along_axis(v, v)"),
    ("indices to put at that are no integers", "dn.indexed_put(v, v, 1.0)"),
    ("a scalar of indices", "dn.gather(x, dn.tensor(1))"),
    ("positions of too many entries", "dn.gather(x, dn.tensor([[0, 1, 2]]))"),
    ("positions along axes in another order", "dn.gather(x, dn.tensor([[0, 1]]), axes=[1, 0])"),
    ("positions along too few axes", "dn.gather(x, dn.tensor([[0, 1]]), axes=[1])"),
    ("elements of an empty axis", "dn.take(v[:0], dn.tensor([0]))"),
    ("elements at positions in nothing", "dn.gather(x[:, :0], dn.tensor([[0, 0]]))"),
    ("elements along an empty axis", "dn.take_along_axis(v[:0], dn.tensor([0]))"),
    ("names that differ in take", 'dn.take(x, dn.tensor([0], names=["column"]))'),
    ("indices of another rank", "dn.take_along_axis(x, dn.tensor([0, 1]), axis=1)"),
    ("indices of another size", "dn.take_along_axis(x, dn.iota((1, 3)), axis=1)"),
    ("an axis to take along that is not there", "dn.take(v, i, axis=1)"),
    ("indices of three axes", "dn.indexed_add(x, dn.iota((1, 1, 2)), v)"),
    ("more positions than updates", "dn.indexed_add(v, dn.tensor([[0], [1]]), v)"),
    ("updates with an axis too many", "dn.indexed_put(v, dn.tensor([[0], [1]]), x[:, :2])"),
    ("updates larger than the axis", "dn.indexed_put(x, dn.tensor([[0]]), dn.iota((1, 4)))"),
    ("a scalar of updates for rows", "dn.indexed_add(v, dn.tensor([[0], [1]]), 1.0)"),
    ("a single position of too few entries", "dn.indexed_add(x, dn.tensor([0]), 1.0)"),
    ("a single position and a vector", "dn.indexed_add(v, dn.tensor([0]), v)"),
    ("positions to add at along too many axes", "dn.indexed_add(x, i[None], v, axes=[0, 1])"),
    ("indices among other entries", "x[dn.tensor([0, 1]), 0]"),
    ("NumPy's cumsum", "dn.cumsum(v)"),
    # Order.
    ("an order that is none", "dn.sort(c)"),
    ("places in an order that is none", "dn.argsort(c)"),
    ("an unknown direction", 'dn.sort(v, direction="down")'),
    ("an axis to sort that is not there", "dn.sort(v, axis=1)"),
    ("a scalar to sort", "dn.sort(dn.tensor(1))"),
    ("places that are no integers", 'dn.argsort(v, dtype="f32")'),
    ("NumPy's kind of a sort", 'dn.sort(v, kind="stable")'),
    # Scans.
    ("the greatest complex numbers so far", "dn.cumulative_max(c)"),
    ("a scan of a scalar", "dn.cumulative_sum(dn.tensor(1))"),
    ("a scan along no axis", 'dn.cumulative_product(x, axis="column")'),
]
