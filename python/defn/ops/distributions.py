"""Continuous distributions of random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards

if TYPE_CHECKING:
    from defn._core import Tensor
    from defn.typing import DTypeLike, Names, Shape, TensorLike

__all__ = [
    "beta",
    "beta_split",
    "chisquare",
    "chisquare_split",
    "dirichlet",
    "dirichlet_split",
    "exponential",
    "exponential_split",
    "gamma",
    "gamma_split",
    "laplace",
    "laplace_split",
    "logistic",
    "logistic_split",
    "t",
    "t_split",
    "truncated_normal",
    "truncated_normal_split",
]


@forwards(_core.random_beta)
def beta(
    key: TensorLike,
    a: TensorLike,
    b: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Beta-distributed random numbers; NaN where a parameter is not positive, and the next key.

    ``x / (x + y)`` of two gamma-distributed numbers.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to both parameters, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.beta(dn.random.key(1), 2.0, 3.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_beta_split)
def beta_split(
    key: TensorLike,
    a: TensorLike,
    b: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`beta`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to both parameters, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.beta_split(dn.random.key(1), 2.0, 3.0).shape
    ()
    """
    ...


@forwards(_core.random_chisquare)
def chisquare(
    key: TensorLike,
    df: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Chi-square-distributed random numbers with ``df`` degrees of freedom; NaN where ``df`` is
    not positive, and the next key.

    Twice a gamma-distributed number.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to ``df``, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.chisquare(dn.random.key(1), 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_chisquare_split)
def chisquare_split(
    key: TensorLike,
    df: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`chisquare`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to ``df``, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.chisquare_split(dn.random.key(1), 2.0).shape
    ()
    """
    ...


@forwards(_core.random_dirichlet)
def dirichlet(
    key: TensorLike,
    alpha: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random vectors of the Dirichlet distribution with the concentrations ``alpha``, whose last
    axis has the elements of a vector; NaN where a concentration is not positive, and the next
    key.

    Gamma-distributed numbers divided by their sum.

    Shapes: the given shape, which ``names`` name, and an axis for the vectors.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to the concentrations, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex concentrations, ``OptionError`` for
        a dtype that is not a float, ``ShapeError`` for concentrations without an axis or that do
        not broadcast to the shape.

    >>> value, key = dn.random.dirichlet(dn.random.key(1), dn.tensor([1.0, 2.0, 3.0]), shape=2)
    >>> value.shape
    (2, 3)
    """
    ...


@forwards(_core.random_dirichlet_split)
def dirichlet_split(
    key: TensorLike,
    alpha: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`dirichlet`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, which ``names`` name, and an axis for the vectors.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to the concentrations, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex concentrations, ``OptionError`` for
        a dtype that is not a float, ``ShapeError`` for concentrations without an axis or that do
        not broadcast to the shape.

    >>> dn.random.dirichlet_split(dn.random.key(1), dn.tensor([1.0, 2.0, 3.0]), shape=2).shape
    (2, 3)
    """
    ...


@forwards(_core.random_exponential)
def exponential(
    key: TensorLike,
    scale: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Exponentially distributed random numbers with the mean ``scale``, and the next key.

    ``-log1p(-u)`` of uniform ``u``.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: through the scale.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.exponential(dn.random.key(1), 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_exponential_split)
def exponential_split(
    key: TensorLike,
    scale: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`exponential`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: through the scale.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.exponential_split(dn.random.key(1), 2.0).shape
    ()
    """
    ...


@forwards(_core.random_gamma)
def gamma(
    key: TensorLike,
    a: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Gamma-distributed random numbers with the shape parameter ``a`` and the scale 1; NaN where
    ``a`` is not positive, and the next key.

    Marsaglia & Tsang, "A simple method for generating gamma variables" (2000).

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to ``a``, implicitly (Figurnov, Mohamed & Mnih, 2018); first and second derivatives.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.gamma(dn.random.key(1), 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_gamma_split)
def gamma_split(
    key: TensorLike,
    a: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`gamma`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to ``a``, implicitly (Figurnov, Mohamed & Mnih, 2018); first and second derivatives.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.gamma_split(dn.random.key(1), 2.0).shape
    ()
    """
    ...


@forwards(_core.random_laplace)
def laplace(
    key: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random numbers of the Laplace distribution, and the next key.

    The sign of a uniform number and the logarithm of its distance to the ends.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: through location and scale.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.laplace(dn.random.key(1), 0.0, 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_laplace_split)
def laplace_split(
    key: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`laplace`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: through location and scale.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.laplace_split(dn.random.key(1), 0.0, 2.0).shape
    ()
    """
    ...


@forwards(_core.random_logistic)
def logistic(
    key: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random numbers of the logistic distribution, and the next key.

    ``log(u / (1 - u))`` of uniform ``u``.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: through location and scale.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.logistic(dn.random.key(1), 0.0, 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_logistic_split)
def logistic_split(
    key: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`logistic`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: through location and scale.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.logistic_split(dn.random.key(1), 0.0, 2.0).shape
    ()
    """
    ...


@forwards(_core.random_t)
def t(
    key: TensorLike,
    df: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random numbers of Student's t distribution with ``df`` degrees of freedom; NaN where ``df``
    is not positive, and the next key.

    A normal number divided by the root of a chi-square-distributed one over ``df``.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to ``df``, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.t(dn.random.key(1), 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_t_split)
def t_split(
    key: TensorLike,
    df: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`t`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to ``df``, as for :func:`gamma`.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.t_split(dn.random.key(1), 2.0).shape
    ()
    """
    ...


@forwards(_core.random_truncated_normal)
def truncated_normal(
    key: TensorLike,
    lower: TensorLike,
    upper: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> tuple[Tensor, Tensor]:
    """Random numbers of the standard normal distribution within bounds; NaN where the lower is
    above the upper, and the next key.

    The normal quantile of a probability between those of the bounds.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to the bounds, at a fixed probability.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> value, key = dn.random.truncated_normal(dn.random.key(1), -1.0, 2.0)
    >>> value.shape
    ()
    """
    ...


@forwards(_core.random_truncated_normal_split)
def truncated_normal_split(
    key: TensorLike,
    lower: TensorLike,
    upper: TensorLike,
    *,
    shape: Shape | int = (),
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """Like :func:`truncated_normal`, but draws from ``key`` itself and returns only the value.

    Shapes: the given shape, to which the parameters broadcast; ``names`` has one entry per axis.
    Dtypes: floats; by default the parameters are promoted, integers to f32.
    Grad: to the bounds, at a fixed probability.
    Raises: ``DTypeError`` for an invalid key and for complex parameters, ``OptionError`` for a
        dtype that is not allowed, ``ShapeError`` for parameters that do not broadcast to the
        shape.

    >>> dn.random.truncated_normal_split(dn.random.key(1), -1.0, 2.0).shape
    ()
    """
    ...
