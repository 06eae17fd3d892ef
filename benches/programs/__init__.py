"""Programs that are loops, by family, each written for defn, NumPy, numba and JAX."""

from __future__ import annotations

from . import dynamic, equations, linear, micro, physics, statistics, stencils
from .program import Program

FAMILIES = (stencils, linear, dynamic, physics, equations, statistics, micro)
# The gradients come last.
PROGRAMS: list[Program] = sorted(
    (program for family in FAMILIES for program in family.PROGRAMS),
    key=lambda program: bool(program.wrt),
)

__all__ = ["PROGRAMS", "Program"]
