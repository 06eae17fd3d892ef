"""Functions of ``defn.tree``: arithmetic of containers, as of vectors."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal

from defn import _core
from defn._names import caller, option_error
from defn._public import public
from defn._tree_paths import each, path_text, paths
from defn.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from defn._core import Tensor
    from defn.typing import DTypeLike, TensorLike

__all__ = [
    "add",
    "add_scaled",
    "bytes",
    "cast",
    "dot",
    "multiply",
    "norm",
    "ones_like",
    "scale",
    "size",
    "subtract",
    "where",
    "zeros_like",
]


@public
def add(a: Any, b: Any, /) -> Any:
    """The sums of corresponding leaves.

    Shapes: corresponding leaves broadcast together; names merge.
    Dtypes: any; those of corresponding leaves are promoted.
    Grad: ``g`` to both containers.
    Raises: ``ContainerError`` if the structures differ, ``ShapeError`` if leaves do not broadcast;
        errors name the first leaf that does not fit.

    >>> params, step = {"w": dn.tensor([1.0, 2.0]), "b": 0.5}, {"w": dn.tensor([0.5, 0.5]), "b": 1}
    >>> dn.tree.add(params, step)["w"].to_list()
    [1.5, 2.5]
    """
    return each("add", ("a", "b"), _core.add, a, b)


@public
def subtract(a: Any, b: Any, /) -> Any:
    """The differences of corresponding leaves.

    Shapes: corresponding leaves broadcast together; names merge.
    Dtypes: any; those of corresponding leaves are promoted.
    Grad: ``g`` to ``a``, ``-g`` to ``b``.
    Raises: as :func:`add`.

    >>> [x.item() for x in dn.tree.subtract((5.0, 2), (1.5, 3))]
    [3.5, -1]
    """
    return each("subtract", ("a", "b"), _core.subtract, a, b)


@public
def multiply(a: Any, b: Any, /) -> Any:
    """The products of corresponding leaves.

    Shapes: corresponding leaves broadcast together; names merge.
    Dtypes: any; those of corresponding leaves are promoted.
    Grad: ``g * b`` to ``a``, ``g * a`` to ``b``.
    Raises: as :func:`add`.

    >>> [x.item() for x in dn.tree.multiply((5.0, 2), (1.5, 3))]
    [7.5, 6]
    """
    return each("multiply", ("a", "b"), _core.multiply, a, b)


@public
def scale(factor: TensorLike, tree: Any, /) -> Any:
    """Every leaf times one factor.

    Shapes: the factor is a scalar, or broadcasts with each leaf.
    Dtypes: any. A factor that is a tensor widens leaves no more than a number does: a leaf of bf16
        times a factor of f32 is bf16. A float makes a float of an integer.
    Grad: ``factor * g`` to the leaves; the sum of the products of ``g`` and the leaves to the
        factor.
    Raises: ``ShapeError`` if the factor does not broadcast with a leaf, whose path it names.

    >>> grads = {"w": dn.tensor([1.0, 2.0]), "b": dn.tensor(4.0)}
    >>> dn.tree.scale(0.5, grads)["w"].to_list()
    [0.5, 1.0]
    """
    return each("scale", ("tree",), _scaling(factor), tree)


@public
def add_scaled(a: Any, factor: TensorLike, b: Any, /) -> Any:
    """``a + factor * b`` for corresponding leaves, such as a step of gradient descent.

    Shapes: corresponding leaves broadcast together; the factor broadcasts with those of ``b``.
    Dtypes: those of :func:`scale` and :func:`add`.
    Grad: ``g`` to ``a``, and those of :func:`scale`.
    Raises: as :func:`add`.

    >>> params, grads = {"w": dn.tensor([1.0, 2.0])}, {"w": dn.tensor([1.0, -1.0])}
    >>> dn.tree.add_scaled(params, -0.5, grads)["w"].to_list()
    [0.5, 2.5]
    """
    scaled = _scaling(factor)
    return each("add_scaled", ("a", "b"), lambda a, b: _core.add(a, scaled(b)), a, b)


@public
def dot(a: Any, b: Any, /) -> Tensor:
    """The inner product: the sum of ``conjugate(a) * b`` over all elements of all leaves.

    Shapes: corresponding leaves have equal shapes; the result is a scalar.
    Dtypes: any; promoted. Floats of 8 and 16 bits are multiplied and summed in f32. Without
        leaves the result is f32.
    Grad: ``g * b`` to ``a``, ``g * a`` to ``b``.
    Raises: ``ContainerError`` if the structures differ, ``ShapeError`` if shapes differ; errors
        name the first leaf that does not fit.

    >>> a = {"w": dn.tensor([1.0, 2.0]), "b": dn.tensor(3.0)}
    >>> dn.tree.dot(a, a).item()
    14.0
    """
    rows, structure = _core.corresponding_leaves("dot", ("a", "b"), a, b)
    products: list[Tensor] = []
    for row in rows:
        x, y = map(_core.to_tensor, row)
        if x.shape != y.shape:
            path = path_text(paths(structure)[len(products)])
            raise ShapeError(
                f"dot: a{path} is {_core.type_text(x)} and b{path} is {_core.type_text(y)}, "
                f"their shapes must be equal{caller()}"
            )
        products.append(_core.vdot(_wide(x), _wide(y)))
    return _total(_core.add, products)


@public
def norm(tree: Any, ord: float | Literal["inf"] = 2) -> Tensor:
    """The norm of the vector of all elements of all leaves: the global norm.

    ``ord`` is 2 for the root of the sum of squared magnitudes, 1 for the sum of magnitudes, "inf"
    or ``math.inf`` for the greatest magnitude.

    Shapes: any leaves; the result is a scalar.
    Dtypes: any. The result is real and at least f32: magnitudes of 8 and 16 bits are summed in
        f32. The sum of squares overflows where a square does.
    Grad: through the definition; singular where the root of zero is taken.
    Raises: ``OptionError`` for another ``ord``.

    >>> grads = {"w": dn.tensor([3.0, 0.0]), "b": dn.tensor(-4.0)}
    >>> dn.tree.norm(grads).item(), dn.tree.norm(grads, "inf").item()
    (5.0, 4.0)
    """
    leaves = [
        _wide(_core.as_type(x, "f32") if x.dtype.kind in _WHOLE else x) for x in _tensors(tree)
    ]
    if ord == 2:
        squares = (_core.real(_core.vdot(x, x)) for x in leaves)
        return _core.sqrt(_total(_core.add, squares))
    if ord == 1:
        return _total(_core.add, (_core.sum(_core.abs(x), None, False) for x in leaves))
    if ord in ("inf", math.inf):
        greatest = (_core.reduce_max(_core.abs(x), None, False) for x in leaves if x.size)
        return _total(_core.max, greatest)
    raise option_error(f'norm: ord is {ord!r}, it must be 1, 2 or "inf"')


@public
def zeros_like(tree: Any, dtype: DTypeLike | None = None) -> Any:
    """A zero for each element of each leaf.

    Shapes: those of the leaves, with their names.
    Dtypes: those of the leaves, or ``dtype``.
    Grad: zero.
    Raises: ``DTypeError`` for a ``dtype`` that is none.

    >>> dn.tree.zeros_like({"w": dn.tensor([1.0, 2.0]), "b": 3})["w"].to_list()
    [0.0, 0.0]
    """
    return each("zeros_like", ("tree",), _filling(0, dtype), tree)


@public
def ones_like(tree: Any, dtype: DTypeLike | None = None) -> Any:
    """A one for each element of each leaf.

    Shapes: those of the leaves, with their names.
    Dtypes: those of the leaves, or ``dtype``.
    Grad: zero.
    Raises: ``DTypeError`` for a ``dtype`` that is none.

    >>> dn.tree.ones_like((dn.tensor([3.0, 2.0]), 3), "bf16")[0].to_list()
    [1.0, 1.0]
    """
    return each("ones_like", ("tree",), _filling(1, dtype), tree)


@public
def cast(tree: Any, dtype: DTypeLike, /) -> Any:
    """The container with its leaves of floats converted to a dtype of floats.

    Leaves of integers, bools and complex numbers stay as they are: counters and keys survive.

    Shapes: unchanged; names are kept.
    Dtypes: any; ``dtype`` is a float.
    Grad: ``g``, converted back.
    Raises: ``DTypeError`` if ``dtype`` is no float.

    >>> half = dn.tree.cast({"w": dn.tensor([1.0, 2.0]), "step": dn.tensor(3)}, "bf16")
    >>> str(half["w"].dtype), str(half["step"].dtype)
    ('bf16', 's32')
    """
    to = _core.dtype(dtype)
    if to.kind != "float":
        raise DTypeError(f"cast: dtype is {to}, it must be a float{caller()}")

    def convert(leaf: Any) -> Any:
        tensor = _core.to_tensor(leaf)
        return _core.as_type(tensor, to) if tensor.dtype.kind == "float" else leaf

    return each("cast", ("tree",), convert, tree)


@public
def where(pred: TensorLike, a: Any, b: Any, /) -> Any:
    """The leaves of ``a`` where the predicate is true, else those of ``b``.

    Shapes: the predicate is a scalar, or broadcasts with each pair of corresponding leaves.
    Dtypes: any; those of corresponding leaves are promoted.
    Grad: ``g`` to the container that is chosen, zero to the other one.
    Raises: as :func:`add`.

    >>> old, new = {"w": dn.tensor([1.0, 2.0])}, {"w": dn.tensor([3.0, float("inf")])}
    >>> dn.tree.where(dn.tree.norm(new) < 1e9, new, old)["w"].to_list()
    [1.0, 2.0]
    """
    return each("where", ("a", "b"), lambda a, b: _core.select(pred, a, b), a, b)


@public
def size(tree: Any, /) -> int:
    """The number of elements of all leaves, such as the number of parameters.

    >>> dn.tree.size({"w": dn.broadcast(0.0, (3, 4)), "b": 0.0})
    13
    """
    return sum(x.size for x in _tensors(tree))


@public
def bytes(tree: Any, /) -> int:
    """The number of bytes of all leaves.

    >>> dn.tree.bytes({"w": dn.broadcast(dn.bf16(0), (3, 4)), "b": dn.tensor(0.0)})
    28
    """
    return sum(x.nbytes for x in _tensors(tree))


_WHOLE = ("bool", "unsigned", "signed")
_KINDS = (*_WHOLE, "float", "complex")


def _tensors(tree: Any) -> list[Tensor]:
    """The leaves as tensors."""
    return [_core.to_tensor(leaf) for leaf in _core.flatten_container(tree)[0]]


def _wide(tensor: Tensor) -> Tensor:
    """Floats of at least 32 bits, so that sums do not lose small terms."""
    small = tensor.dtype.kind == "float" and tensor.dtype.bits < 32
    return _core.as_type(tensor, "f32") if small else tensor


def _total(fun: Callable[[Any, Any], Tensor], parts: Iterable[Tensor]) -> Tensor:
    """The parts combined; zero if there are none."""
    found = list(parts)
    return functools.reduce(fun, found) if found else _core.to_tensor(0.0)


def _filling(value: int, dtype: DTypeLike | None) -> Callable[[Any], Tensor]:
    """The function that fills a leaf with a value, in a dtype or its own."""

    def fill(leaf: Any) -> Tensor:
        tensor = _core.to_tensor(leaf)
        return _core.fill(tensor, value, tensor.dtype if dtype is None else dtype)

    return fill


def _scaling(factor: TensorLike) -> Callable[[Any], Tensor]:
    """The product of a leaf and a factor, of which only the kind of its dtype counts."""
    if isinstance(factor, (int, float, complex)) and type(factor).__module__ == "builtins":
        return lambda leaf: _core.multiply(factor, leaf)
    given = _core.to_tensor(factor)

    def scaled(leaf: Any) -> Tensor:
        dtype = _core.to_tensor(leaf).dtype
        is_float = dtype.kind in ("float", "complex")
        fits = is_float and _KINDS.index(given.dtype.kind) <= _KINDS.index(dtype.kind)
        return _core.multiply(_core.as_type(given, dtype) if fits else given, leaf)

    return scaled
