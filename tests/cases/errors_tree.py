"""Wrong programs with functions of ``dn.tree``: rows of ``errors``."""

from __future__ import annotations

PARTS = "p = {'w': x, 'b': [v, v]}\nq = {'w': x, 'b': [v, dn.tensor([1.0, 2.0])]}\n"

ROWS: list[tuple[str, str]] = [
    (
        "containers of other structures in a map",
        "dn.tree.map(dn.add, {'a': v, 'b': (v, v)}, {'a': v, 'b': v})",
    ),
    (
        "containers of other structures in a map with paths",
        "dn.tree.map_with_path(lambda path, *leaves: path, {'a': 1}, {'a': 1}, {'c': 1})",
    ),
    ("leaves of containers that do not broadcast", PARTS + "dn.tree.add(p, q)"),
    (
        "leaves of traced containers that do not broadcast",
        PARTS + "dn.jit(dn.tree.subtract)(p, q)",
    ),
    ("a factor that does not broadcast", PARTS + "dn.tree.scale(dn.tensor([1.0, 2.0]), p)"),
    ("leaves of other shapes in an inner product", PARTS + "dn.tree.dot(p, q)"),
    ("a predicate that does not broadcast with a leaf", PARTS + "dn.tree.where(i > 1, q, q)"),
    ("a norm of containers that is not defined", PARTS + "dn.tree.norm(p, 3)"),
    ("a container of floats cast to integers", PARTS + "dn.tree.cast(p, 's32')"),
    ("a stack of no containers", "dn.tree.stack([])"),
    ("a stack of containers of other structures", "dn.tree.stack([{'a': v}, {'b': v}])"),
    ("a stack of leaves of other shapes", PARTS + "dn.tree.stack([p, q])"),
    ("leaves with more and fewer rows", PARTS + "dn.tree.unstack(p)"),
    ("leaves without the axis to unstack", "dn.tree.unstack({'a': v, 'b': 1.0})"),
    ("no leaves to unstack", "dn.tree.unstack({})"),
    ("an empty container to transpose", "dn.tree.transpose([])"),
    ("inner containers of other structures", "dn.tree.transpose([{'a': v}, {'b': v}])"),
    (
        "a container that does not begin with the outer one",
        "dn.tree.transpose({'a': [v, v]}, outer={'a': {'b': 0}})",
    ),
    ("no key to split for leaves", PARTS + "dn.tree.random_split(v, p)"),
]
