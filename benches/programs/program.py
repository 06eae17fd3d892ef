"""A program that is a loop, written for four libraries, and the gradient of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from timing import leaves

import defn as dn

from .libraries import jax, jnp

# Arrays, and numbers that are fixed when a program is compiled, such as trip counts.
Arguments = tuple[tuple[Any, ...], dict[str, int]]
Function = Callable[..., Any]

# The allowed relative errors by dtype. Integers and bools must be equal.
TOLERANCES = {"float32": 2e-4, "float64": 1e-9}


@dataclass(frozen=True)
class Program:
    """A row: the functions, the arguments for given sizes, and how close results must be."""

    family: str
    name: str
    ours: Function
    numpy: Function
    numba: Function | None
    jax: Function
    arguments: Callable[..., Arguments]
    full: dict[str, int]
    quick: dict[str, int]
    # How the page writes the sizes, with their names in braces.
    size: str
    tolerance: float | None = None
    # The share of elements that may differ by more than the tolerance.
    outliers: float = 0.0
    # The arguments to differentiate, of a gradient.
    wrt: tuple[int, ...] = field(default=())

    def sizes(self, quick: bool) -> dict[str, int]:
        """The sizes for a test, or those to measure."""
        return self.quick if quick else self.full

    def described(self, quick: bool = False) -> str:
        """The sizes as the page writes them."""
        return self.size.format(**{k: f"{v:,}" for k, v in self.sizes(quick).items()})

    def made(self, quick: bool) -> Arguments:
        """The arguments, as NumPy's arrays, and the fixed numbers."""
        return self.arguments(**self.sizes(quick))

    def check(self, library: str, found: Any, wanted: Any) -> None:
        """Raises unless a library's results equal NumPy's within the tolerance."""
        pairs = list(zip(leaves(found), leaves(wanted), strict=True))
        for number, (one, other) in enumerate(pairs):
            what = f"{self.name}, {library}, result {number}"
            one, other = np.asarray(one), np.asarray(other)
            assert one.shape == other.shape, f"{what}: {one.shape}, and NumPy has {other.shape}"
            # NumPy's results may be wider than those of the others, which says how exact they are.
            name = str(min(one.dtype, other.dtype, key=lambda dtype: dtype.itemsize))
            allowed = TOLERANCES.get(name, 0.0) if self.tolerance is None else self.tolerance
            one, other = one.astype(np.float64), other.astype(np.float64)
            assert np.isfinite(other).all(), f"{what}: NumPy's is not finite"
            scale = np.abs(other).max(initial=0.0)
            wrong = ~(np.abs(one - other) <= allowed * (np.abs(other) + 0.1 * scale))
            assert wrong.mean() <= self.outliers, (
                f"{what}: {wrong.sum()} of {wrong.size} elements differ from NumPy's, "
                f"the first by {np.abs(one - other)[wrong][0]:g} of {other[wrong][0]:g}"
            )


def loss(library: Any, function: Function) -> Function:
    """The sum of the squares of a function's first result; a scalar is its own loss."""

    def value(*arrays: Any, **options: int) -> Any:
        result = function(*arrays, **options)
        first = result[0] if isinstance(result, tuple) else result
        return first if first.ndim == 0 else library.sum(first * first)

    return value


def gradient(of: Program, *wrt: int, full: dict[str, int], forward: bool = False) -> Program:
    """The row of a program's gradient: NumPy has the loss alone, and numba nothing.

    JAX's gradient is of the forward mode where its reverse mode refuses the loop.
    """

    def theirs(*arrays: Any, **options: int) -> Any:
        transform = jax.jacfwd if forward else jax.grad
        return transform(loss(jnp, of.jax), wrt)(*arrays, **options)

    return Program(
        family="gradients",
        name=f"gradient of {of.name}",
        ours=dn.jit(dn.grad(loss(dn, of.ours), argnums=wrt)),
        numpy=loss(np, of.numpy),
        numba=None,
        jax=theirs,
        arguments=of.arguments,
        full=full,
        quick=of.quick,
        size=of.size,
        tolerance=of.tolerance,
        wrt=wrt,
    )
