"""Errors of initial value problems."""

from __future__ import annotations

DECAY = "f = lambda t, y: -y\n"

ROWS: list[tuple[str, str]] = [
    ("times that are one time", DECAY + "dn.odeint(f, v, 1.0)"),
    ("times that are complex", DECAY + "dn.odeint(f, v, c)"),
    ("no unknowns", DECAY + "dn.odeint(f, (), v)"),
    ("slopes of another shape", "dn.odeint(lambda t, y: y[0], v, v)"),
    ("complex slopes of real unknowns", "dn.odeint(lambda t, y: 1j * y, v, v)"),
    ("slopes of another structure", "dn.odeint(lambda t, y: (y, y), v, v)"),
    ("a right-hand side that is no function", "dn.odeint(v, v, v)"),
    ("a method that there is not", DECAY + "dn.odeint(f, v, v, method='euler')"),
    ("a negative tolerance of a problem", DECAY + "dn.odeint(f, v, v, rtol=-1e-3)"),
    ("no steps at all", DECAY + "dn.odeint(f, v, v, max_steps=0)"),
    ("a number of steps that is no integer", DECAY + "dn.odeint(f, v, v, max_steps=1.5)"),
    ("a first step of zero", DECAY + "dn.odeint(f, v, v, first_step=0.0)"),
    ("a gradient that there is not", DECAY + "dn.odeint(f, v, v, gradient='backwards')"),
    (
        "an adjoint equation of complex unknowns",
        "dn.odeint(lambda t, y: 1j * y, c, v, gradient='adjoint')",
    ),
    (
        "an adjoint equation of vectorized values",
        "solve = lambda k: dn.odeint(lambda t, y: -k * y, 1.0, v, gradient='adjoint').ys\n"
        "dn.vmap(solve)(v)",
    ),
    ("an event that is no function", DECAY + "dn.odeint(f, v, v, event=0.5)"),
    ("an event to complex numbers", DECAY + "dn.odeint(f, v, v, event=lambda t, y: 1j * y)"),
    ("an event without numbers", DECAY + "dn.odeint(f, v, v, event=lambda t, y: ())"),
    (
        "an event beside the adjoint equation",
        DECAY + "dn.odeint(f, v, v, event=f, gradient='adjoint')",
    ),
    (
        "a solution that grows without bound",
        "ts = dn.tensor(np.array([0.0, 2.0]))\n"
        "dn.odeint(lambda t, y: y * y, dn.f64(1.0), ts).check()",
    ),
    ("more steps than there may be", DECAY + "dn.odeint(f, v, 100 * v, max_steps=3).check()"),
    ("times that are not in order", DECAY + "dn.odeint(f, v, dn.tensor([0.0, 1.0, 0.5])).check()"),
]
