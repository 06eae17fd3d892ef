"""Random numbers from keys: ``value, key = dn.random.uniform(key)``.

A key is a tensor ``u32[2]``, made from a seed by :func:`key`. Nothing here has a state: the same
key gives the same numbers, on every backend, eager and compiled. So each function that draws gives
the next key beside its value. Its other form, with ``_split`` in its name, uses the key itself and
gives the value only; use each key once, and make more with :func:`split` and :func:`fold_in`.

The generator is Threefry-2x32 with 20 rounds; keys, bits, integers and :func:`uniform` are those of
Nx.Random to the bit.

>>> key = dn.random.key(12)
>>> value, key = dn.random.uniform(key)
>>> float(value)
0.7691127061843872
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from typing import Literal

    from defn._core import Tensor
    from defn.typing import Axis, DTypeLike, Names, Shape, TensorLike

__all__ = [
    "bits",
    "bits_split",
    "choice",
    "choice_split",
    "fold_in",
    "gumbel",
    "gumbel_split",
    "key",
    "multivariate_normal",
    "multivariate_normal_split",
    "normal",
    "normal_split",
    "randint",
    "randint_split",
    "shuffle",
    "shuffle_split",
    "split",
    "uniform",
    "uniform_split",
]


def key(seed: TensorLike, **unknown: Never) -> Tensor:
    """The key of a seed: its upper and its lower 32 bits.

    Inside a definition, an int that is an argument is a tensor s32: pass a seed as
    ``np.int64(seed)``, or the key.

    Shapes: ``(2,)``.
    Dtypes: u32; the seed is an int of at most 64 bits, a negative one counting as its two's
        complement, or a scalar of u64 or s64.
    Grad: none flows.
    Raises: ``DTypeError`` for another seed.

    >>> dn.random.key(999999999999).to_list()
    [232, 3567587327]
    """
    if unknown:
        refuse_options("random.key", unknown)
    return _core.random_key(seed)


def split(key: TensorLike, parts: int = 2, **unknown: Never) -> Tensor:
    """New keys in place of one.

    Shapes: ``(parts, 2)``.
    Dtypes: u32.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for negative ``parts``.

    >>> dn.random.split(dn.random.key(1701)).to_list()
    [[56197195, 1801093307], [961309823, 1704866707]]
    """
    if unknown:
        refuse_options("random.split", unknown)
    return _core.random_split(key, parts)


def fold_in(key: TensorLike, data: TensorLike, **unknown: Never) -> Tensor:
    """New keys of a key and integers, one for each: of the number of a step, say.

    Shapes: that of the data and a new last axis of size 2; names are dropped.
    Dtypes: u32; the data are integers.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, and for data that are no integers.

    >>> dn.random.fold_in(dn.random.key(42), 99).to_list()
    [2015327502, 1351855566]
    """
    if unknown:
        refuse_options("random.fold_in", unknown)
    return _core.random_fold_in(key, data)


def bits(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "u32",
    names: Names | None = None,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Random bits, and the next key.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: unsigned.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for a dtype that is not
        unsigned.

    >>> value, key = dn.random.bits(dn.random.key(42), shape=2, dtype="u8")
    >>> value.to_list()
    [10, 21]
    """
    if unknown:
        refuse_options("random.bits", unknown)
    return _core.random_bits(key, shape, dtype, names)


def bits_split(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "u32",
    names: Names | None = None,
    **unknown: Never,
) -> Tensor:
    """As :func:`bits`, of the key itself and without the next one.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: unsigned.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for a dtype that is not
        unsigned.

    >>> dn.random.bits_split(dn.random.key(1701), shape=4).to_list()
    [56197195, 1801093307, 961309823, 1704866707]
    """
    if unknown:
        refuse_options("random.bits_split", unknown)
    return _core.random_bits_split(key, shape, dtype, names)


def uniform(
    key: TensorLike,
    min: TensorLike = 0.0,
    max: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Numbers of the half-open interval from ``min`` to ``max``, and the next key.

    A complex number has such a real and such an imaginary part.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: floats and complex; without one, what the bounds merge to, f32 for integers and
        numbers alone; a plain number is weak.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key or bounds that are complex, ``OptionError`` for a
        dtype of integers, ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> value, key = dn.random.uniform(dn.random.key(1701), shape=(3, 2), dtype="f16")
    >>> value.to_list()
    [[0.75390625, 0.6484375], [0.7294921875, 0.21484375], [0.09765625, 0.0693359375]]
    """
    if unknown:
        refuse_options("random.uniform", unknown)
    return _core.random_uniform(key, min, max, shape, dtype, names)


def uniform_split(
    key: TensorLike,
    min: TensorLike = 0.0,
    max: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    **unknown: Never,
) -> Tensor:
    """As :func:`uniform`, of the key itself and without the next one.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: floats and complex; without one, what the bounds merge to, f32 for integers and
        numbers alone; a plain number is weak.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key or bounds that are complex, ``OptionError`` for a
        dtype of integers, ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> dn.random.uniform_split(dn.random.key(44), 0, 100, dtype="f64").item()
    49.70372348385783
    """
    if unknown:
        refuse_options("random.uniform_split", unknown)
    return _core.random_uniform_split(key, min, max, shape, dtype, names)


def normal(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Normally distributed numbers, and the next key.

    A complex number has such a real and such an imaginary part.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: floats and complex; without one, what the parameters merge to, f32 for integers and
        numbers alone; a plain number is weak.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key or parameters that are complex, ``OptionError`` for
        a dtype of integers, ``ShapeError`` for parameters that do not broadcast to the shape.

    >>> value, key = dn.random.normal(dn.random.key(42))
    >>> f"{value:.5f}"
    '1.36947'
    """
    if unknown:
        refuse_options("random.normal", unknown)
    return _core.random_normal(key, mean, standard_deviation, shape, dtype, names)


def normal_split(
    key: TensorLike,
    mean: TensorLike = 0.0,
    standard_deviation: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    **unknown: Never,
) -> Tensor:
    """As :func:`normal`, of the key itself and without the next one.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: floats and complex; without one, what the parameters merge to, f32 for integers and
        numbers alone; a plain number is weak.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key or parameters that are complex, ``OptionError`` for
        a dtype of integers, ``ShapeError`` for parameters that do not broadcast to the shape.

    >>> f"{dn.random.normal_split(dn.random.key(44), 0, 100):.3f}"
    '-234.924'
    """
    if unknown:
        refuse_options("random.normal_split", unknown)
    return _core.random_normal_split(key, mean, standard_deviation, shape, dtype, names)


def randint(
    key: TensorLike,
    min: TensorLike,
    max: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Integers of the half-open interval from ``min`` to ``max``, and the next key.

    Where bounds that are tensors hold no integer between them, the value is ``min``.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: integers; without one, what the bounds merge to, s32 for numbers alone; a plain number
        is weak.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key or bounds that are no integers, ``OptionError`` for
        another dtype and for numbers that do not fit it or hold no integer between them,
        ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> value, key = dn.random.randint(dn.random.key(1701), 1, 100, shape=(3, 2), dtype="u32")
    >>> value.to_list()
    [[9, 20], [19, 6], [71, 15]]
    """
    if unknown:
        refuse_options("random.randint", unknown)
    return _core.random_randint(key, min, max, shape, dtype, names)


def randint_split(
    key: TensorLike,
    min: TensorLike,
    max: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    **unknown: Never,
) -> Tensor:
    """As :func:`randint`, of the key itself and without the next one.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: integers; without one, what the bounds merge to, s32 for numbers alone; a plain number
        is weak.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key or bounds that are no integers, ``OptionError`` for
        another dtype and for numbers that do not fit it or hold no integer between them,
        ``ShapeError`` for bounds that do not broadcast to the shape.

    >>> dn.random.randint_split(dn.random.key(44), 0, 100, dtype="u8").item()
    12
    """
    if unknown:
        refuse_options("random.randint_split", unknown)
    return _core.random_randint_split(key, min, max, shape, dtype, names)


def gumbel(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Numbers of the standard Gumbel distribution, and the next key.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: floats.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for a dtype that is no float.

    >>> value, key = dn.random.gumbel(dn.random.key(1))
    >>> f"{value:.5f}"
    '-0.72946'
    """
    if unknown:
        refuse_options("random.gumbel", unknown)
    return _core.random_gumbel(key, shape, dtype, names)


def gumbel_split(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "f32",
    names: Names | None = None,
    **unknown: Never,
) -> Tensor:
    """As :func:`gumbel`, of the key itself and without the next one.

    Shapes: the given one; ``names`` has one entry per axis.
    Dtypes: floats.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for a dtype that is no float.

    >>> f"{dn.random.gumbel_split(dn.random.split(dn.random.key(1))[1]):.5f}"
    '-0.72946'
    """
    if unknown:
        refuse_options("random.gumbel_split", unknown)
    return _core.random_gumbel_split(key, shape, dtype, names)


def shuffle(
    key: TensorLike,
    tensor: TensorLike,
    *,
    axis: Axis = 0,
    independent: bool = False,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """The elements along an axis in random order, and the next key.

    The order is one for all places along the other axes, or ``independent`` for each.

    Shapes: kept, with axis names.
    Dtypes: any; kept.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``AxisError`` if the axis is out of range.

    >>> value, key = dn.random.shuffle(dn.random.key(42), dn.iota((3, 4), axis=0))
    >>> value.to_list()
    [[2, 2, 2, 2], [0, 0, 0, 0], [1, 1, 1, 1]]
    """
    if unknown:
        refuse_options("random.shuffle", unknown)
    return _core.random_shuffle(key, tensor, axis, independent)


def shuffle_split(
    key: TensorLike,
    tensor: TensorLike,
    *,
    axis: Axis = 0,
    independent: bool = False,
    **unknown: Never,
) -> Tensor:
    """The same order as that of :func:`shuffle`, without the next key.

    Shapes: kept, with axis names.
    Dtypes: any; kept.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``AxisError`` if the axis is out of range.

    >>> dn.random.shuffle_split(dn.random.key(42), dn.iota(3)).to_list()
    [2, 0, 1]
    """
    if unknown:
        refuse_options("random.shuffle_split", unknown)
    return _core.random_shuffle(key, tensor, axis, independent)[0]


def choice(
    key: TensorLike,
    tensor: TensorLike,
    p: TensorLike | None = None,
    *,
    samples: int = 1,
    axis: Axis | None = None,
    replace: bool = True,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Elements chosen along an axis, or from the flat tensor, and the next key.

    ``p`` holds the probabilities, which need not add up to 1; without it, elements are equally
    likely. Unless ``replace``, no element is chosen twice.

    Shapes: the axis has size ``samples`` and keeps its name; without an axis, ``(samples,)``.
    Dtypes: any; kept. The probabilities are floats.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for ``samples`` below 1 or, unless
        ``replace``, above the number of elements, ``ShapeError`` if there is nothing to choose
        from or ``p`` is not a vector of floats with one for each element, ``AxisError`` if the
        axis is out of range.

    >>> value, key = dn.random.choice(dn.random.key(1), dn.iota((4, 3)), samples=2, axis=0)
    >>> value.to_list()
    [[9, 10, 11], [3, 4, 5]]
    """
    if unknown:
        refuse_options("random.choice", unknown)
    return _core.random_choice(key, tensor, p, samples, axis, replace)


def choice_split(
    key: TensorLike,
    tensor: TensorLike,
    p: TensorLike | None = None,
    *,
    samples: int = 1,
    axis: Axis | None = None,
    replace: bool = True,
    **unknown: Never,
) -> Tensor:
    """As :func:`choice`, of the key itself and without the next one.

    Shapes: the axis has size ``samples`` and keeps its name; without an axis, ``(samples,)``.
    Dtypes: any; kept. The probabilities are floats.
    Grad: none flows.
    Raises: as :func:`choice`.

    >>> used = dn.random.split(dn.random.key(1))[1]
    >>> dn.random.choice_split(used, dn.iota((4, 3)), samples=2, axis=0).to_list()
    [[9, 10, 11], [3, 4, 5]]
    """
    if unknown:
        refuse_options("random.choice_split", unknown)
    return _core.random_choice_split(key, tensor, p, samples, axis, replace)


def multivariate_normal(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    method: Literal["cholesky", "svd", "eigh"] = "cholesky",
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Normally distributed vectors with a mean and a covariance, and the next key.

    ``method`` names the factorization that gives a root of the covariance.

    Shapes: the given one, and the vectors' axis; ``names`` has one entry per axis, that one
        included. The mean is a vector ``(d,)``, the covariance ``(d, d)``.
    Dtypes: floats; without one, what the parameters merge to, f32 for integers.
    Grad: none flows.
    Raises: ``DTypeError`` for what is no key, ``OptionError`` for a dtype that is no float or for
        another method, ``ShapeError`` if mean and covariance do not fit each other.

    >>> mean, covariance = dn.tensor([0.0, 1.0]), dn.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> value, key = dn.random.multivariate_normal(dn.random.key(12), mean, covariance)
    >>> value.shape
    (2,)
    """
    if unknown:
        refuse_options("random.multivariate_normal", unknown)
    return _core.random_multivariate_normal(key, mean, covariance, shape, dtype, names, method)


def multivariate_normal_split(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
    method: Literal["cholesky", "svd", "eigh"] = "cholesky",
    **unknown: Never,
) -> Tensor:
    """As :func:`multivariate_normal`, of the key itself and without the next one.

    Shapes: the given one, and the vectors' axis; ``names`` has one entry per axis, that one
        included. The mean is a vector ``(d,)``, the covariance ``(d, d)``.
    Dtypes: floats; without one, what the parameters merge to, f32 for integers.
    Grad: none flows.
    Raises: as :func:`multivariate_normal`.

    >>> mean, covariance = dn.tensor([0.0, 1.0]), dn.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> dn.random.multivariate_normal_split(dn.random.key(12), mean, covariance, shape=3).shape
    (3, 2)
    """
    if unknown:
        refuse_options("random.multivariate_normal_split", unknown)
    return _core.random_multivariate_normal_split(
        key, mean, covariance, shape, dtype, names, method
    )


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to write here for a name of NumPy's."""
        from defn._names import unknown_name

        raise unknown_name("defn.random has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
