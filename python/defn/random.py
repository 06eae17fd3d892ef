"""Random numbers from keys: ``value, key = dn.random.uniform(key)``.

A key is a tensor ``u32[2]``; :func:`key` creates one from a seed. The functions are stateless: the
same key produces the same numbers on every backend, eager and compiled. Each function that draws
numbers therefore returns a pair: the value and the next key. Its form with ``_split`` in the name
draws from the key itself and returns only the value. Use each key once; create more keys with
:func:`split` and :func:`fold_in`.

The generator is Threefry-2x32 with 20 rounds. Keys, bits, integers and :func:`uniform` are
bit-identical to those of Nx.Random.

>>> key = dn.random.key(12)
>>> value, key = dn.random.uniform(key)
>>> float(value)
0.7691127061843872
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards, public
from defn.generator import Generator
from defn.ops.counts import (
    bernoulli,
    bernoulli_split,
    binomial,
    binomial_split,
    categorical,
    categorical_split,
    permutation,
    permutation_split,
    poisson,
    poisson_split,
    rademacher,
    rademacher_split,
)
from defn.ops.distributions import (
    beta,
    beta_split,
    chisquare,
    chisquare_split,
    dirichlet,
    dirichlet_split,
    exponential,
    exponential_split,
    gamma,
    gamma_split,
    laplace,
    laplace_split,
    logistic,
    logistic_split,
    t,
    t_split,
    truncated_normal,
    truncated_normal_split,
)
from defn.ops.geometry import ball, ball_split, orthogonal, orthogonal_split

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axis, DTypeLike, Names, Shape, TensorLike

__all__ = [
    "Generator",
    "ball",
    "ball_split",
    "bernoulli",
    "bernoulli_split",
    "beta",
    "beta_split",
    "binomial",
    "binomial_split",
    "bits",
    "bits_split",
    "categorical",
    "categorical_split",
    "chisquare",
    "chisquare_split",
    "choice",
    "choice_split",
    "dirichlet",
    "dirichlet_split",
    "exponential",
    "exponential_split",
    "fold_in",
    "gamma",
    "gamma_split",
    "gumbel",
    "gumbel_split",
    "key",
    "laplace",
    "laplace_split",
    "logistic",
    "logistic_split",
    "multivariate_normal",
    "multivariate_normal_split",
    "normal",
    "normal_split",
    "orthogonal",
    "orthogonal_split",
    "permutation",
    "permutation_split",
    "poisson",
    "poisson_split",
    "rademacher",
    "rademacher_split",
    "randint",
    "randint_split",
    "shuffle",
    "shuffle_split",
    "split",
    "t",
    "t_split",
    "truncated_normal",
    "truncated_normal_split",
    "uniform",
    "uniform_split",
]


@forwards(_core.random_key)
def key(seed: TensorLike) -> Tensor:
    """Create a key from a seed: its upper and its lower 32 bits.

    Inside a definition an int argument is an s32 tensor: pass the seed as ``np.int64(seed)``, or
    pass the key.

    Shapes: ``(2,)``.
    Dtypes: u32; the seed is an int of at most 64 bits or a scalar of u64 or s64. A negative int is
        read as two's complement.
    Grad: none.
    Raises: ``DTypeError`` for any other seed.

    >>> dn.random.key(999999999999).to_list()
    [232, 3567587327]
    """
    ...


@forwards(_core.random_split)
def split(key: TensorLike, parts: int = 2) -> Tensor:
    """Split a key into ``parts`` new keys.

    Shapes: ``(parts, 2)``.
    Dtypes: u32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for negative ``parts``.

    >>> dn.random.split(dn.random.key(1701)).to_list()
    [[56197195, 1801093307], [961309823, 1704866707]]
    """
    ...


@forwards(_core.random_fold_in)
def fold_in(key: TensorLike, data: TensorLike) -> Tensor:
    """Derive one key from ``key`` for each integer in ``data``, such as a step number.

    Shapes: that of the data with a new last axis of size 2; names are dropped.
    Dtypes: u32; the data are integers.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for data that are not integers.

    >>> dn.random.fold_in(dn.random.key(42), 99).to_list()
    [2015327502, 1351855566]
    """
    ...


@forwards(_core.random_bits)
def bits(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "u32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random bits, and the next key.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: unsigned.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not unsigned.

    >>> value, key = dn.random.bits(dn.random.key(42), shape=2, dtype="u8")
    >>> value.to_list()
    [10, 21]
    """
    ...


@forwards(_core.random_bits_split)
def bits_split(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "u32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`bits`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: unsigned.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not unsigned.

    >>> dn.random.bits_split(dn.random.key(1701), shape=4).to_list()
    [56197195, 1801093307, 961309823, 1704866707]
    """
    ...


@forwards(_core.random_uniform)
def uniform(
    key: TensorLike,
    min: TensorLike = 0.0,
    max: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Uniform random numbers from the half-open interval ``[min, max)``, and the next key.

    For a complex dtype the real and the imaginary part are both drawn from this interval.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: floats and complex; by default the bounds are promoted, and integers and Python numbers
        alone become f32; Python numbers are weakly typed.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key or bounds that are complex, ``OptionError`` for a
        dtype of integers, ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> value, key = dn.random.uniform(dn.random.key(1701), shape=(3, 2), dtype="f16")
    >>> value.to_list()
    [[0.75390625, 0.6484375], [0.7294921875, 0.21484375], [0.09765625, 0.0693359375]]
    """
    ...


@forwards(_core.random_uniform_split)
def uniform_split(
    key: TensorLike,
    min: TensorLike = 0.0,
    max: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`uniform`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: floats and complex; by default the bounds are promoted, and integers and Python numbers
        alone become f32; Python numbers are weakly typed.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key or bounds that are complex, ``OptionError`` for a
        dtype of integers, ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> dn.random.uniform_split(dn.random.key(44), 0, 100, dtype="f64").item()
    49.70372348385783
    """
    ...


@forwards(_core.random_normal)
def normal(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Normally distributed random numbers, and the next key.

    For a complex dtype the real and the imaginary part are both drawn from this distribution.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: floats and complex; by default the parameters are promoted, and integers and Python
        numbers alone become f32; Python numbers are weakly typed.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key or parameters that are complex, ``OptionError`` for a
        dtype of integers, ``ShapeError`` for parameters that do not broadcast to the shape.

    >>> value, key = dn.random.normal(dn.random.key(42))
    >>> f"{value:.5f}"
    '1.36947'
    """
    ...


@forwards(_core.random_normal_split)
def normal_split(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`normal`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: floats and complex; by default the parameters are promoted, and integers and Python
        numbers alone become f32; Python numbers are weakly typed.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key or parameters that are complex, ``OptionError`` for a
        dtype of integers, ``ShapeError`` for parameters that do not broadcast to the shape.

    >>> f"{dn.random.normal_split(dn.random.key(44), 0, 100):.3f}"
    '-234.924'
    """
    ...


@forwards(_core.random_randint)
def randint(
    key: TensorLike,
    min: TensorLike,
    max: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random integers from the half-open interval ``[min, max)``, and the next key.

    If the bounds are tensors with no integer between them, the value is ``min``.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: integers; by default the bounds are promoted, and Python numbers alone become s32;
        Python numbers are weakly typed.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key or bounds that are not integers, ``OptionError`` for
        another dtype and for Python bounds that do not fit it or have no integer between them,
        ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> value, key = dn.random.randint(dn.random.key(1701), 1, 100, shape=(3, 2), dtype="u32")
    >>> value.to_list()
    [[9, 20], [19, 6], [71, 15]]
    """
    ...


@forwards(_core.random_randint_split)
def randint_split(
    key: TensorLike,
    min: TensorLike,
    max: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`randint`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: integers; by default the bounds are promoted, and Python numbers alone become s32;
        Python numbers are weakly typed.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key or bounds that are not integers, ``OptionError`` for
        another dtype and for Python bounds that do not fit it or have no integer between them,
        ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> dn.random.randint_split(dn.random.key(44), 0, 100, dtype="u8").item()
    12
    """
    ...


@forwards(_core.random_gumbel)
def gumbel(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random numbers from the standard Gumbel distribution, and the next key.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not a float.

    >>> value, key = dn.random.gumbel(dn.random.key(1))
    >>> f"{value:.5f}"
    '-0.72946'
    """
    ...


@forwards(_core.random_gumbel_split)
def gumbel_split(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`gumbel`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not a float.

    >>> f"{dn.random.gumbel_split(dn.random.split(dn.random.key(1))[1]):.5f}"
    '-0.72946'
    """
    ...


@forwards(_core.random_shuffle)
def shuffle(
    key: TensorLike,
    tensor: TensorLike,
    *,
    axis: Axis = 0,
    independent: bool = False,
) -> tuple[Tensor, Tensor]:
    """The elements along an axis in random order, and the next key.

    All positions along the other axes share one order; with ``independent`` each has its own.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``AxisError`` if the axis is out of range.

    >>> value, key = dn.random.shuffle(dn.random.key(42), dn.iota((3, 4), axis=0))
    >>> value.to_list()
    [[2, 2, 2, 2], [0, 0, 0, 0], [1, 1, 1, 1]]
    """
    ...


@public
def shuffle_split(
    key: TensorLike,
    tensor: TensorLike,
    *,
    axis: Axis = 0,
    independent: bool = False,
) -> Tensor:
    """Like :func:`shuffle`, in the same order, but returns only the value.

    Shapes: unchanged; names are kept.
    Dtypes: any; unchanged.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``AxisError`` if the axis is out of range.

    >>> dn.random.shuffle_split(dn.random.key(42), dn.iota(3)).to_list()
    [2, 0, 1]
    """
    return _core.random_shuffle(key, tensor, axis, independent)[0]


@forwards(_core.random_choice)
def choice(
    key: TensorLike,
    tensor: TensorLike,
    p: TensorLike | None = None,
    *,
    samples: int = 1,
    axis: Axis | None = None,
    replace: bool = True,
) -> tuple[Tensor, Tensor]:
    """Random elements along an axis, or of the flattened tensor, and the next key.

    ``p`` holds the probabilities, which need not add up to 1; without it all elements are equally
    likely. Without ``replace`` no element is chosen twice.

    Shapes: the axis has size ``samples`` and keeps its name; without an axis, ``(samples,)``.
    Dtypes: any; unchanged. The probabilities are floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for ``samples`` below 1 or, without
        ``replace``, above the number of elements, ``ShapeError`` if there is nothing to choose from
        or ``p`` is not a vector of floats with one for each element, ``AxisError`` if the axis is
        out of range.

    >>> value, key = dn.random.choice(dn.random.key(1), dn.iota((4, 3)), samples=2, axis=0)
    >>> value.to_list()
    [[9, 10, 11], [3, 4, 5]]
    """
    ...


@forwards(_core.random_choice_split)
def choice_split(
    key: TensorLike,
    tensor: TensorLike,
    p: TensorLike | None = None,
    *,
    samples: int = 1,
    axis: Axis | None = None,
    replace: bool = True,
) -> Tensor:
    """Like :func:`choice`, but draws from ``key`` itself and returns only the value.

    Shapes: the axis has size ``samples`` and keeps its name; without an axis, ``(samples,)``.
    Dtypes: any; unchanged. The probabilities are floats.
    Grad: none.
    Raises: as :func:`choice`.

    >>> used = dn.random.split(dn.random.key(1))[1]
    >>> dn.random.choice_split(used, dn.iota((4, 3)), samples=2, axis=0).to_list()
    [[9, 10, 11], [3, 4, 5]]
    """
    ...


@forwards(_core.random_multivariate_normal)
def multivariate_normal(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    method: Literal["cholesky", "svd", "eigh"] = "cholesky",
) -> tuple[Tensor, Tensor]:
    """Random vectors from a multivariate normal distribution, and the next key.

    ``method`` is the factorization that computes a root of the covariance.

    Shapes: the given shape with a last axis for the vectors; ``names`` has one entry per axis,
        including the last. The mean is a vector ``(d,)``, the covariance ``(d, d)``.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not a float or
        for another method, ``ShapeError`` if mean and covariance do not fit each other.

    >>> mean, covariance = dn.tensor([0.0, 1.0]), dn.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> value, key = dn.random.multivariate_normal(dn.random.key(12), mean, covariance)
    >>> value.shape
    (2,)
    """
    ...


@forwards(_core.random_multivariate_normal_split)
def multivariate_normal_split(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    method: Literal["cholesky", "svd", "eigh"] = "cholesky",
) -> Tensor:
    """Like :func:`multivariate_normal`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape with a last axis for the vectors; ``names`` has one entry per axis,
        including the last. The mean is a vector ``(d,)``, the covariance ``(d, d)``.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: none.
    Raises: as :func:`multivariate_normal`.

    >>> mean, covariance = dn.tensor([0.0, 1.0]), dn.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> dn.random.multivariate_normal_split(dn.random.key(12), mean, covariance, shape=3).shape
    (3, 2)
    """
    ...


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.random has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
