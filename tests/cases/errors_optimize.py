"""Errors of ``dn.optimize``."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("a root of what is no function", "dn.optimize.root(3, v)"),
    ("a root without unknowns", "dn.optimize.root(lambda x: x, {})"),
    ("a method that does not exist", 'dn.optimize.root(lambda x: x, v, method="broyden")'),
    ("a residual of a root of another shape", "dn.optimize.root(lambda x: x[:2], v)"),
    (
        "a residual of a root of another dtype",
        'dn.optimize.root(lambda x: dn.as_type(x, "f64"), v)',
    ),
    ("residuals of a root of another structure", "dn.optimize.root(lambda x: (x, x), v)"),
    ("a negative tolerance of a root", "dn.optimize.root(lambda x: x, v, rtol=-1e-3)"),
    ("no iterations for a root", "dn.optimize.root(lambda x: x, v, maxiter=0)"),
    ("half an iteration for a root", "dn.optimize.root(lambda x: x, v, maxiter=0.5)"),
    ("cycles without products", 'dn.optimize.root(lambda x: x, v, method="krylov", restart=0)'),
    ("a root that does not exist", "dn.optimize.root(lambda x: x * x + 1.0, 1.0).check()"),
    (
        "a root that does not exist at a position",
        "f = lambda x, a: x * x - a\n"
        "found = dn.vmap(lambda a: dn.optimize.root(f, 1.0, a))(dn.tensor([1.0, -1.0]))\n"
        "found.check()",
    ),
    ("too few iterations for a root", "dn.optimize.root(dn.log, 5.0, maxiter=1).check()"),
    ("a start where the function is NaN", "dn.optimize.root(dn.log, -5.0).check()"),
    (
        "a result that is checked in a definition",
        "dn.jit(lambda a: dn.optimize.root(lambda x: x - a, a).check())(1.0)",
    ),
]
