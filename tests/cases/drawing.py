"""Values that a call is made of: tensors, shapes, axes and options, drawn by hypothesis.

Arguments usually fit each other. Sometimes they do not, because errors are results, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import defn as dn
from cases import all_cases
from cases.dtypes import ALL, INTEGERS, NUMPY, is_complex, is_integer, limits, narrow
from support import on_xla

ROWS: dict[str, list[Any]] = {}
for _case in all_cases():
    ROWS.setdefault(_case.name, []).append(_case)

LETTERS = "abcdefghij"
MOST = 96
"""Elements of a tensor, at most: shapes of rank 10 are mostly ones."""


EQUATIONS = (
    *("ij,jk->ik", "ij,kj", "ii->i", "bij,bjk->bik", "i,j->ji", "...i,i->...", "ij->", "ij,ij->j"),
    *("i,i,i->i", "ij,jk,kl->il", "...ij->...ji"),
)


@dataclass(frozen=True)
class Leaf:
    """The index of a tensor in the list of a call's tensors."""

    index: int


@dataclass
class Call:
    """A call: tensors as arrays with names, and the arguments and options that refer to them."""

    name: str
    dtype: str
    wild: bool
    arrays: list[np.ndarray] = field(default_factory=list)
    names: list[tuple[str | None, ...] | None] = field(default_factory=list)
    args: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def tensors(self, **options: Any) -> list[dn.Tensor]:
        pairs = zip(self.arrays, self.names, strict=True)
        return [
            dn.tensor(a, names=None if names is None else list(names), **options)
            for a, names in pairs
        ]

    def run(self, *tensors: dn.Tensor) -> Any:
        module = dn.linalg if self.name in dn.linalg.__all__ else dn
        args = [filled(value, tensors) for value in self.args]
        options = {name: filled(value, tensors) for name, value in self.options.items()}
        return getattr(module, self.name)(*args, **options)

    def __str__(self) -> str:
        leaves = [
            f"{a.dtype}{a.shape}{n or ''}" for a, n in zip(self.arrays, self.names, strict=True)
        ]
        return f"{self.name}(*{self.args}, **{self.options}) of {leaves}\n{self.arrays}"


def filled(value: Any, tensors: tuple[dn.Tensor, ...]) -> Any:
    if isinstance(value, Leaf):
        return tensors[value.index]
    if isinstance(value, list):
        return [filled(entry, tensors) for entry in value]
    return value


SIZES = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4])
DEEP = st.sampled_from([0, 1, 1, 1, 1, 1, 2, 2])
# Scalars, sizes of 0, one to four axes, and ten axes.
SHAPES = st.one_of(
    st.just(()),
    st.lists(SIZES, min_size=1, max_size=4).map(tuple),
    st.lists(SIZES.filter(bool), min_size=1, max_size=3).map(tuple),
    st.lists(DEEP, min_size=10, max_size=10).map(tuple),
).filter(lambda shape: math.prod(shape) <= MOST)


class Drawing:
    """Draws the arguments of one call; later tensors are related to the first one's shape."""

    def __init__(
        self, draw: Callable[..., Any], name: str, first_shape: Callable[[Drawing], tuple[int, ...]]
    ) -> None:
        self.draw, self.first_shape = draw, first_shape
        rows = ROWS.get(name, [])
        accepted = sorted({dtype for case in rows for dtype in case.dtypes}) or list(ALL)
        self.dtypes = accepted
        dtype = self.choice(accepted) if self.often() else self.choice(ALL)
        self.call = Call(name, dtype, wild=self.draw(st.booleans()))
        self.shape: tuple[int, ...] | None = None
        self.window: list[int] | None = None
        self.pairs = 3 if name == "pad" else 2

    def choice(self, values: Any) -> Any:
        return self.draw(st.sampled_from(list(values)))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, max(low, high)))

    def often(self) -> bool:
        return self.integer(0, 9) > 0

    def coin(self) -> bool:
        return self.draw(st.booleans())

    # Tensors.

    def array(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        count = math.prod(shape)
        seed = self.integer(0, 2**32 - 1)
        rng = np.random.default_rng(seed)
        if is_integer(dtype):
            low, high = limits(dtype)
            values = rng.integers(max(low, -3), min(high, 3), size=count, endpoint=True)
            values = values.astype(object)
            if self.call.wild:
                edges = np.array([low, high, low + 1, high - 1, 0, 1], dtype=object)
                values = np.where(rng.random(count) < 0.5, rng.choice(edges, count), values)
            return values.reshape(shape).astype(NUMPY[dtype])
        values = rng.integers(-8, 8, size=count, endpoint=True) / 4.0
        if is_complex(dtype):
            values = values + 0.25j * rng.integers(-8, 8, size=count, endpoint=True)
        elif self.call.wild:
            part = {"f64": 1e300, "f32": 3e38, "bf16": 3e38, "f16": 6e4}.get(dtype, 400.0)
            # XLA's programs for the CPU flush f32 subnormals to zero.
            tiny = 1e-30 if on_xla() else 1e-40
            edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, part, -part, tiny, 1.0])
            values = np.where(rng.random(count) < 0.5, rng.choice(edges, count), values)
        return narrow(values.reshape(shape), dtype)

    def leaf(self, shape: tuple[int, ...], dtype: str | None = None, names: Any = ...) -> Leaf:
        dtype = dtype or (self.call.dtype if self.often() else self.choice(self.dtypes))
        array = self.array(shape, dtype)
        if names is ...:
            names = self.names(shape)
        self.call.arrays.append(array)
        self.call.names.append(names)
        return Leaf(len(self.call.arrays) - 1)

    def names(self, shape: tuple[int, ...]) -> tuple[str | None, ...] | None:
        """Letters, from the last axis on, so that names of shapes that broadcast usually agree."""
        if self.coin():
            return None
        keep = [self.coin() for _ in shape]
        letters = list(reversed(LETTERS[: len(shape)]))
        if shape and not self.often():
            letters[0] = "z"
        return tuple(letter if kept else None for letter, kept in zip(letters, keep, strict=True))

    def tensor(self) -> Leaf:
        """The first tensor, or a later one related to it."""
        if self.shape is None:
            self.shape = self.first_shape(self)
            return self.leaf(self.shape)
        return self.leaf(self.related())

    def any_shape(self) -> tuple[int, ...]:
        return self.draw(SHAPES)

    def related(self) -> tuple[int, ...]:
        """The first tensor's shape, a shape that broadcasts with it, a scalar's, or any other."""
        shape = self.shape or ()
        way = self.integer(0, 9)
        if way < 5:
            return shape
        if way < 8:
            sizes = [1 if self.coin() else size for size in shape]
            return tuple(sizes[self.integer(0, len(sizes)) :])
        return () if way == 8 else self.draw(SHAPES)

    def operand(self) -> Any:
        """A tensor or a plain number."""
        if self.shape is None or self.often():
            return self.tensor()
        return self.choice([0, 1, -1, 2, 0.5, True, 300])

    # Axes.

    @property
    def rank(self) -> int:
        return len(self.shape or ())

    def axis(self) -> Any:
        rank = self.rank
        if rank == 0 or not self.often():
            return self.integer(-rank - 1, rank)
        axis = self.integer(-rank, rank - 1)
        names = self.call.names[0]
        if names is not None and names[axis] is not None and self.coin():
            return names[axis]
        return axis

    def some_axes(self) -> list[int]:
        axes = [axis for axis in range(self.rank) if self.coin()]
        return [axis - self.rank if self.coin() else axis for axis in axes]

    def axes(self) -> Any:
        if self.call.name == "transpose":
            return self.draw(st.permutations(range(self.rank)))
        if self.call.name == "squeeze":
            return [axis for axis, size in enumerate(self.shape or ()) if size == 1 and self.coin()]
        if self.call.name == "flatten":
            first = self.integer(0, self.rank)
            return list(range(first, self.integer(first, self.rank)))
        if self.call.name.endswith("fft2"):
            return self.choice([[-2, -1], [-1, -2], [0, 1], [0, -1]])
        return self.some_axes() if self.often() else self.axis()

    def per_axis(self, low: int, high: int) -> Any:
        if self.coin():
            return self.integer(low, high)
        return [self.integer(low, high) for _ in range(self.rank)]

    def dtype(self) -> str:
        return self.choice(ALL)

    def new_shape(self) -> Any:
        size = math.prod(self.shape or ())
        if self.call.name == "broadcast":
            grown = [self.integer(2, 3) if n == 1 and self.coin() else n for n in self.shape or ()]
            return [self.integer(0, 2) for _ in range(self.integer(0, 2))] + grown
        if self.call.name == "reshape":
            order = self.draw(st.permutations(list(self.shape or ())))
            return self.choice([list(order), [-1], [1, size], [size, 1], [2, -1], [*order, 1]])
        return list(self.draw(SHAPES))

    def new_names(self) -> Any:
        return None

    def positions(self) -> Leaf:
        """Integers, mostly positions inside the first tensor."""
        shape, name = self.shape or (), self.call.name
        if name in ("take_along_axis", "put_along_axis"):
            sizes = shape
        elif name == "take":
            sizes = self.choice([(), (2,), (3,), (2, 2), (0,)])
        elif name.startswith("segment_"):
            sizes = shape[:1]
        elif name == "gather":
            sizes = (*self.choice([(), (2,), (0,)]), self.integer(0, len(shape)))
        else:
            sizes = (self.integer(0, 3), self.integer(0, len(shape)))
        dtype = self.choice(INTEGERS) if self.often() else self.call.dtype
        high = max(min((size for size in shape), default=1) - 1, 0) if self.often() else 4
        high = min(high, limits(dtype)[1] if is_integer(dtype) else high)
        rng = np.random.default_rng(self.integer(0, 2**32 - 1))
        array = rng.integers(0, high, size=sizes, endpoint=True).astype(NUMPY[dtype])
        self.call.arrays.append(array)
        self.call.names.append(None)
        return Leaf(len(self.call.arrays) - 1)

    def updates(self) -> Leaf:
        rows, entries = self.call.arrays[1].shape
        return self.leaf((rows, *(self.shape or ())[entries:]), names=None)

    def tensors(self) -> list[Leaf]:
        first = self.tensor()
        shape = self.shape or ()
        more = []
        for _ in range(self.integer(0, 2)):
            sizes = list(shape)
            if self.call.name == "concatenate" and sizes:
                sizes[0] = self.integer(0, 3)
            if self.call.name == "multi_dot" and sizes:
                sizes = [shape[-1], self.integer(0, 3)]
                shape = tuple(sizes)
            more.append(self.leaf(tuple(sizes)))
        return [first, *more]

    def starts(self) -> list[Any]:
        starts: list[Any] = [self.integer(-1, 3) for _ in range(self.rank)]
        if starts and self.coin():
            starts[0] = self.leaf((), "s32", None)
        return starts

    def lengths(self) -> list[int]:
        return [self.integer(0, size) for size in self.shape or ()]

    def equation(self) -> Any:
        """The arguments of einsum, where an operand's size may be 1 or not fit."""
        equation = self.choice(EQUATIONS)
        operands = equation.partition("->")[0].replace("...", "").split(",")
        sizes = {letter: self.integer(0, 3) for letter in "bijkl"}
        leaves = []
        for letters in operands:
            shape = [sizes[letter] if self.often() else 1 for letter in letters]
            lead = [2] if "..." in equation and self.coin() else []
            leaves.append(self.leaf((*lead, *shape), names=None))
        return [equation, *leaves]

    def contraction(self) -> Any:
        """The arguments of tensordot: the last axes with the first, or lists of axes."""
        left = self.draw(SHAPES)
        axes = [axis for axis in range(len(left)) if self.coin()]
        if self.coin():
            axes = list(range(len(left) - len(axes), len(left)))
            right = self.leaf((*[left[axis] for axis in axes], 2), names=None)
            return [self.leaf(left, names=None), right, len(axes)]
        right = self.leaf((2, *[left[axis] for axis in axes]), names=None)
        others = list(range(1, len(axes) + 1))
        return [self.leaf(left, names=None), right, [axes, others]]

    def factors(self) -> Any:
        """The arguments of dot, in one of its three forms."""
        left = self.draw(SHAPES)
        self.shape = left
        if self.coin() or not left:
            right = (*left[-1:], *self.choice([(), (2,), (0,)]))
            return [self.leaf(left, names=None), self.leaf(right, names=None)]
        contracted = [axis for axis in range(len(left)) if self.coin()]
        if self.coin():
            right = (*[left[axis] for axis in contracted], 2)
            leaves = self.leaf(left, names=None), self.leaf(right, names=None)
            return [leaves[0], contracted, leaves[1], list(range(len(contracted)))]
        contracted = [axis for axis in contracted if axis > 0]
        right = (left[0], *[left[axis] for axis in contracted])
        leaves = self.leaf(left, names=None), self.leaf(right, names=None)
        return [leaves[0], contracted, [0], leaves[1], list(range(1, len(right))), [0]]

    def pooled(self) -> Leaf:
        """A tensor with one element for each window, for default strides and padding."""
        shape = self.shape or ()
        self.window = [self.integer(1, max(size, 1)) for size in shape]
        sizes = zip(shape, self.window, strict=True)
        return self.leaf(tuple(max(n - k + 1, 0) for n, k in sizes), names=None)

    def right(self) -> Any:
        """The second operand; in linear algebra it has as many rows as the matrix."""
        if self.call.name == "least_squares":
            return self.leaf((self.shape or (0,))[:1], names=None)
        return (
            self.leaf(self.shape or ()) if self.call.name in dn.linalg.__all__ else self.operand()
        )

    def windows(self) -> Any:
        return self.per_axis(1, 3) if self.window is None else self.window
