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
    ("a minimum of what is no function", "dn.optimize.minimize(3, v)"),
    ("a method for minima that does not exist", 'dn.optimize.minimize(dn.sum, v, method="nelder")'),
    ("a minimum of several numbers", "dn.optimize.minimize(lambda x: x, v)"),
    ("a minimum of a container", "dn.optimize.minimize(lambda x: (dn.sum(x), dn.sum(x)), v)"),
    ("a minimum of a complex number", "dn.optimize.minimize(lambda x: dn.sum(x) * 1j, v)"),
    ("a minimum of an integer", 'dn.optimize.minimize(lambda x: dn.as_type(dn.sum(x), "s32"), v)'),
    ("a history of no steps", 'dn.optimize.minimize(dn.sum, v, method="lbfgs", history=0)'),
    ("a negative tolerance of a minimum", "dn.optimize.minimize(dn.sum, v, gtol=-1.0)"),
    ("a function without a minimum", "dn.optimize.minimize(dn.log, -1.0).check()"),
    (
        "a method for squares that does not exist",
        'dn.optimize.least_squares(dn.exp, v, method="dogbox")',
    ),
    (
        "fewer residuals than unknowns",
        'dn.optimize.least_squares(lambda x: x[:2], v, method="gauss_newton")',
    ),
    ("residuals that are integers", "dn.optimize.least_squares(lambda x: dn.argmax(x), v)"),
    ("a tolerance of squares that is negative", "dn.optimize.least_squares(dn.exp, v, gtol=-1.0)"),
    ("a fit with another library's name", "dn.optimize.curve_fit(dn.exp, v, v)"),
    (
        "a result that is checked in a definition",
        "dn.jit(lambda a: dn.optimize.root(lambda x: x - a, a).check())(1.0)",
    ),
]
