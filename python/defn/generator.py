"""A generator of random numbers that keeps its key between calls."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from defn import _core
from defn._names import caller
from defn.errors import TraceError
from defn.ops import create, elementwise_unary
from defn.ops import shape as shape_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from defn._core import Tensor
    from defn.typing import DTypeLike, TensorLike

    Size = int | Sequence[int] | None

__all__ = ["Generator"]


class Generator:
    """Random numbers with the methods of ``numpy.random.Generator``, from a key that it keeps.

    Distributions that NumPy lacks, such as ``categorical``, are methods too.

    Each call splits the key: one part draws, the other is kept. The same seed therefore gives the
    same numbers in the same order of calls. Threads may share a generator, but then the order of
    their calls decides; :meth:`spawn` gives each its own. A generator can be pickled and copied
    with its state.

    The results are tensors. Without ``size`` the parameters' shapes broadcast. ``shuffle`` returns
    the tensor, because tensors do not change.

    Inside a function that is compiled or differentiated a generator raises ``TraceError``: the
    function would draw once, and its key would not advance. Pass a key there, and use the functions
    of :mod:`defn.random`.

    >>> rng = dn.random.Generator(42)
    >>> rng.integers(0, 10, size=4).shape
    (4,)
    >>> rng.normal(size=(2, 3)).shape
    (2, 3)
    """

    __slots__ = ("__weakref__", "_key", "_lock")

    def __init__(self, seed_or_key: TensorLike) -> None:
        from defn import random

        _refuse_traces()
        self._lock = threading.Lock()
        if getattr(seed_or_key, "shape", ()) == (2,):
            # The check of a key is that of the functions.
            random.split(seed_or_key)
            self._key = create.tensor(seed_or_key)
        else:
            self._key = random.key(seed_or_key)

    @property
    def key(self) -> Tensor:
        """The key from which the next call draws; reading it draws nothing."""
        return self._key

    def spawn(self, n_children: int) -> list[Generator]:
        """Independent generators, for instance one for each thread."""
        return [Generator(key) for key in self._next(n_children)]

    def random(self, size: Size = None, dtype: DTypeLike = "f32") -> Tensor:
        """Uniform floats in the half-open interval from 0 to 1."""
        return self._draw("uniform", (0.0, 1.0), size, dtype)

    def uniform(
        self,
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Uniform floats in the half-open interval from ``low`` to ``high``."""
        return self._draw("uniform", (low, high), size, dtype)

    def integers(
        self,
        low: TensorLike,
        high: TensorLike | None = None,
        size: Size = None,
        dtype: DTypeLike = "s32",
        endpoint: bool = False,
    ) -> Tensor:
        """Integers in the half-open interval from ``low`` to ``high``, or from 0 to ``low`` alone.

        ``endpoint`` includes ``high``.
        """
        if high is None:
            low, high = 0, low
        return self._draw("randint", (low, high + 1 if endpoint else high), size, dtype)  # type: ignore[operator]

    def normal(
        self,
        loc: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Normally distributed floats."""
        return self._draw("normal", (loc, scale), size, dtype)

    def standard_normal(self, size: Size = None, dtype: DTypeLike = "f32") -> Tensor:
        """Normally distributed floats with mean 0 and standard deviation 1."""
        return self._draw("normal", (0.0, 1.0), size, dtype)

    def exponential(
        self, scale: TensorLike = 1.0, size: Size = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Exponentially distributed floats with the mean ``scale``."""
        return self._draw("exponential", (scale,), size, dtype)

    def standard_exponential(self, size: Size = None, dtype: DTypeLike = "f32") -> Tensor:
        """Exponentially distributed floats with the mean 1."""
        return self._draw("exponential", (1.0,), size, dtype)

    def laplace(
        self,
        loc: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Floats of the Laplace distribution."""
        return self._draw("laplace", (loc, scale), size, dtype)

    def logistic(
        self,
        loc: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Floats of the logistic distribution."""
        return self._draw("logistic", (loc, scale), size, dtype)

    def gumbel(
        self,
        loc: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike = "f32",
    ) -> Tensor:
        """Floats of the Gumbel distribution."""
        shape = _size(size, (loc, scale))
        return self._draw("gumbel", (), shape, dtype) * scale + loc

    def gamma(
        self,
        shape: TensorLike,
        scale: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Gamma-distributed floats with the shape parameter ``shape``."""
        sizes = _size(size, (shape, scale))
        return self._draw("gamma", (shape,), sizes, dtype) * scale

    def standard_gamma(
        self, shape: TensorLike, size: Size = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Gamma-distributed floats with the scale 1."""
        return self._draw("gamma", (shape,), size, dtype)

    def beta(
        self, a: TensorLike, b: TensorLike, size: Size = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Beta-distributed floats."""
        return self._draw("beta", (a, b), size, dtype)

    def chisquare(
        self, df: TensorLike, size: Size = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Chi-square-distributed floats."""
        return self._draw("chisquare", (df,), size, dtype)

    def standard_t(
        self, df: TensorLike, size: Size = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Floats of Student's t distribution."""
        return self._draw("t", (df,), size, dtype)

    def poisson(self, lam: TensorLike = 1.0, size: Size = None, dtype: DTypeLike = "s32") -> Tensor:
        """Poisson-distributed counts with the mean ``lam``."""
        return self._draw("poisson", (lam,), size, dtype)

    def binomial(
        self, n: TensorLike, p: TensorLike, size: Size = None, dtype: DTypeLike = "s32"
    ) -> Tensor:
        """Binomially distributed counts of ``n`` trials with the probability ``p``."""
        return self._draw("binomial", (n, p), size, dtype)

    def dirichlet(
        self, alpha: TensorLike, size: Size = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Vectors of the Dirichlet distribution."""
        return self._draw("dirichlet", (alpha,), () if size is None else size, dtype)

    def lognormal(
        self,
        mean: TensorLike = 0.0,
        sigma: TensorLike = 1.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Exponentials of normally distributed floats with that mean and standard deviation."""
        return elementwise_unary.exp(self._draw("normal", (mean, sigma), size, dtype))

    def multivariate_normal(
        self,
        mean: TensorLike,
        cov: TensorLike,
        size: Size = None,
        dtype: DTypeLike | None = None,
        method: Literal["cholesky", "svd", "eigh"] = "cholesky",
    ) -> Tensor:
        """Vectors of the normal distribution with a mean and a covariance."""
        sizes = () if size is None else size
        return self._draw("multivariate_normal", (mean, cov), sizes, dtype, method=method)

    def truncated_normal(
        self,
        lower: TensorLike,
        upper: TensorLike,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Floats of the standard normal distribution between two bounds."""
        return self._draw("truncated_normal", (lower, upper), size, dtype)

    def bernoulli(
        self, p: TensorLike = 0.5, size: Size = None, dtype: DTypeLike = "bool"
    ) -> Tensor:
        """True with the probability ``p``."""
        return self._draw("bernoulli", (p,), size, dtype)

    def rademacher(self, size: Size = None, dtype: DTypeLike = "s32") -> Tensor:
        """-1 or 1 with equal probability."""
        return self._draw("rademacher", (), size, dtype)

    def categorical(
        self, logits: TensorLike, size: Size = None, axis: int = -1, dtype: DTypeLike = "s32"
    ) -> Tensor:
        """Positions along an axis, with probabilities in proportion to the logits' exponentials.

        The other axes of the logits follow those of ``size``.
        """
        sizes = () if size is None else size
        return self._draw("categorical", (logits,), sizes, dtype, axis=axis)

    def orthogonal(self, n: int, size: Size = None, dtype: DTypeLike = "f32") -> Tensor:
        """Orthogonal matrices with ``n`` rows, for complex dtypes unitary ones."""
        return self._draw("orthogonal", (n,), size, dtype)

    def ball(
        self,
        d: int,
        p: TensorLike = 2.0,
        size: Size = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Points of the unit ball of the ``p``-norm in ``d`` dimensions."""
        return self._draw("ball", (d, p), size, dtype)

    def choice(
        self,
        a: TensorLike,
        size: Size = None,
        replace: bool = True,
        p: TensorLike | None = None,
        axis: int = 0,
    ) -> Tensor:
        """Random elements along an axis of ``a``, or of the integers below the int ``a``.

        ``size`` takes the place of the axis; without it one element is chosen, without the axis.
        """
        from defn import random

        sizes = [] if size is None else [size] if isinstance(size, int) else list(size)
        tensor = create.iota((a,)) if isinstance(a, int) else create.tensor(a)
        axis = range(tensor.ndim)[axis] if tensor.ndim else axis
        chosen = random.choice_split(
            self._next(1)[0], tensor, p, samples=math.prod(sizes), axis=axis, replace=replace
        )
        shape = list(tensor.shape)
        return shape_ops.reshape(chosen, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def permutation(self, x: TensorLike, axis: int = 0) -> Tensor:
        """The elements along an axis in random order, or the integers below the int ``x``."""
        from defn import random

        return random.permutation_split(self._next(1)[0], x, axis=axis)

    def shuffle(self, x: TensorLike, axis: int = 0) -> Tensor:
        """As :meth:`permutation` of a tensor. The result is returned, ``x`` does not change."""
        from defn import random

        return random.shuffle_split(self._next(1)[0], x, axis=axis)

    def _next(self, count: int) -> list[Tensor]:
        """``count`` keys to use, while the generator goes on with another."""
        from defn import random

        _refuse_traces()
        with self._lock:
            first, *keys = random.split(self._key, count + 1)
            self._key = first
        return keys

    def _draw(
        self,
        name: str,
        parameters: Sequence[Any],
        size: Size,
        dtype: DTypeLike | None,
        **options: Any,
    ) -> Tensor:
        from defn import random

        function: Callable[..., Tensor] = getattr(random, f"{name}_split")
        parameters = [create.tensor(x) if isinstance(x, list | tuple) else x for x in parameters]
        shape = _size(size, parameters)
        (key,) = self._next(1)
        return function(key, *parameters, shape=shape, dtype=dtype, **options)

    def __repr__(self) -> str:
        return f"Generator(key={self._key.to_list()})"

    def __getstate__(self) -> list[int]:
        return self._key.to_list()

    def __setstate__(self, state: list[int]) -> None:
        self._lock = threading.Lock()
        self._key = create.tensor(state, dtype="u32")


def _refuse_traces() -> None:
    """A trace runs once: what it drew would be a constant, and the kept key a traced tensor."""
    if _core.is_tracing():
        raise TraceError(
            "Generator: it is used while a definition is traced, where its key cannot advance; "
            "pass a key, and draw with dn.random.normal(key) or dn.random.normal_split(key)"
            f"{caller()}"
        )


def _size(size: Size, parameters: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a sample: the given one, or that to which the parameters broadcast."""
    if size is None:
        shapes = [x.shape if hasattr(x, "shape") else np.shape(x) for x in parameters]
        return np.broadcast_shapes(*shapes)
    return (size,) if isinstance(size, int) else tuple(size)
