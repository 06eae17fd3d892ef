"""Discrete distributions of random numbers, and permutations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards, public
from defn.ops import create

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import Axis, DTypeLike, Names, Shape, TensorLike

__all__ = [
    "bernoulli",
    "bernoulli_split",
    "binomial",
    "binomial_split",
    "categorical",
    "categorical_split",
    "permutation",
    "permutation_split",
    "poisson",
    "poisson_split",
    "rademacher",
    "rademacher_split",
]


@forwards(_core.random_bernoulli)
def bernoulli(
    key: TensorLike,
    p: TensorLike = 0.5,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "bool",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """True with probability ``p``, and the next key.

    Whether a uniform number is below ``p``.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: any.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.bernoulli(dn.random.key(1), 1.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_bernoulli_split)
def bernoulli_split(
    key: TensorLike,
    p: TensorLike = 0.5,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "bool",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`bernoulli`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: any.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.bernoulli_split(dn.random.key(1), 1.0).shape
    ()
    """
    ...


@forwards(_core.random_binomial)
def binomial(
    key: TensorLike,
    n: TensorLike,
    p: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Binomially distributed counts of ``n`` trials with the probability ``p``; for invalid
    parameters they are NaN, or 0 as integers, and the next key.

    Waiting times where fewer than 10 successes or failures are expected (Devroye, Non-Uniform
    Random Variate Generation, 1986, X.4.3), elsewhere rejection: Hoermann, "The generation of
    binomial random variates" (1993).

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.binomial(dn.random.key(1), 10, 0.5)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_binomial_split)
def binomial_split(
    key: TensorLike,
    n: TensorLike,
    p: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`binomial`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.binomial_split(dn.random.key(1), 10, 0.5).shape
    ()
    """
    ...


@forwards(_core.random_categorical)
def categorical(
    key: TensorLike,
    logits: TensorLike,
    *,
    axis: Axis = -1,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random positions along an axis of ``logits``, with probabilities in proportion to their
    exponentials, and the next key.

    The position of the greatest logit after Gumbel numbers were added.

    Shapes: the given shape, which ``names`` name, then the other axes of the logits.
    Dtypes: integers.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex logits, ``OptionError`` for a dtype
        that is not an integer, ``AxisError`` if the axis is out of range.

    >>> value, key = dn.random.categorical(dn.random.key(1), dn.tensor([0.0, 1.0, 2.0]), shape=4)
    >>> value.shape
    (4,)
    """
    ...


@forwards(_core.random_categorical_split)
def categorical_split(
    key: TensorLike,
    logits: TensorLike,
    *,
    axis: Axis = -1,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`categorical`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, which ``names`` name, then the other axes of the logits.
    Dtypes: integers.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex logits, ``OptionError`` for a dtype
        that is not an integer, ``AxisError`` if the axis is out of range.

    >>> dn.random.categorical_split(dn.random.key(1), dn.tensor([0.0, 1.0, 2.0]), shape=4).shape
    (4,)
    """
    ...


@forwards(_core.random_poisson)
def poisson(
    key: TensorLike,
    lam: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Poisson-distributed counts with the mean ``lam``; for a mean that is negative or NaN they
    are NaN, or 0 as integers, and the next key.

    Sums of exponential numbers below 10 (Knuth, The Art of Computer Programming 2, 3.4.1), from 10
    on rejection: Hoermann, "The transformed rejection method for generating Poisson random
    variables" (1993).

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.poisson(dn.random.key(1), 3.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_poisson_split)
def poisson_split(
    key: TensorLike,
    lam: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`poisson`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: integers and floats.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.poisson_split(dn.random.key(1), 3.0).shape
    ()
    """
    ...


@forwards(_core.random_rademacher)
def rademacher(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """-1 or 1 with equal probability, and the next key.

    A random bit.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: signed integers, floats and complex.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not allowed.

    >>> value, key = dn.random.rademacher(dn.random.key(1))
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_rademacher_split)
def rademacher_split(
    key: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike = "s32",
    names: Names | None = None,
) -> Tensor:
    """Like :func:`rademacher`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape; ``names`` has one entry per axis.
    Dtypes: signed integers, floats and complex.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``OptionError`` for a dtype that is not allowed.

    >>> dn.random.rademacher_split(dn.random.key(1)).shape
    ()
    """
    ...


@public
def permutation(
    key: TensorLike,
    tensor: TensorLike,
    *,
    axis: Axis = 0,
    independent: bool = False,
) -> tuple[Tensor, Tensor]:
    """The elements along an axis in random order, and the next key: :func:`shuffle`, or of an int
    the integers below it.

    Shapes: unchanged; names are kept. Of an int ``n``: ``(n,)``.
    Dtypes: any; unchanged. Of an int: s32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``AxisError`` if the axis is out of range.

    >>> value, key = dn.random.permutation(dn.random.key(42), 3)
    >>> value.to_list()
    [2, 0, 1]
    """
    tensor = create.iota((tensor,)) if isinstance(tensor, int) else tensor
    return _core.random_shuffle(key, tensor, axis, independent)


@public
def permutation_split(
    key: TensorLike,
    tensor: TensorLike,
    *,
    axis: Axis = 0,
    independent: bool = False,
) -> Tensor:
    """Like :func:`permutation`, in the same order, but returns only the value.

    Shapes: unchanged; names are kept. Of an int ``n``: ``(n,)``.
    Dtypes: any; unchanged. Of an int: s32.
    Grad: none.
    Raises: ``DTypeError`` for an invalid key, ``AxisError`` if the axis is out of range.

    >>> dn.random.permutation_split(dn.random.key(42), 3).to_list()
    [2, 0, 1]
    """
    tensor = create.iota((tensor,)) if isinstance(tensor, int) else tensor
    return _core.random_shuffle(key, tensor, axis, independent)[0]
