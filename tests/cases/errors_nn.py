"""Errors of the functions of neural networks."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    ("an activation of complex numbers", "dn.nn.relu(c)"),
    ("an activation with a scale of zero", "dn.nn.celu(v, 0.0)"),
    ("an activation with a slope that is no number", "dn.nn.leaky_relu(v, 'steep')"),
    ("halves of an odd size", "dn.nn.glu(x[:, :1])"),
    ("halves along an axis that there is not", "dn.nn.glu(x, 2)"),
    ("a function of neural networks with another library's name", "dn.nn.swish(v)"),
]
