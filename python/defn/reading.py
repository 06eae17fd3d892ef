"""Reading tensors: their elements as Python numbers and bytes, as batches, and as text."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from defn import _core
from defn._public import forwards, public

if TYPE_CHECKING:
    from typing import Any, Literal

    from defn._core import Tensor
    from defn.typing import TensorLike

__all__ = [
    "inspect",
    "to_batched",
    "to_binary",
    "to_flat_list",
    "to_heatmap",
    "to_list",
    "to_number",
]


@public
def to_number(tensor: TensorLike) -> complex:
    """The element of a scalar as a Python number.

    ``item`` takes a tensor of any rank with one element.

    Raises: ``ShapeError`` for a tensor with axes, vectorized ones too, ``TraceError`` for a traced
    tensor or a template.

    >>> dn.to_number(dn.tensor(2.5))
    2.5
    """
    return _core.to_tensor(tensor).to_number()


@public
def to_list(tensor: TensorLike) -> Any:
    """The elements as nested lists of Python numbers; vectorized axes are the outermost.

    Raises: ``ShapeError`` for a scalar, ``TraceError`` for a traced tensor or a template.

    >>> dn.to_list(dn.iota((2, 2)))
    [[0, 1], [2, 3]]
    """
    return _core.to_tensor(tensor).to_list()


@public
def to_flat_list(
    tensor: TensorLike, *, limit: int | None = None
) -> list[int] | list[float] | list[complex]:
    """The elements in row-major order as one list; with ``limit``, only the first ``limit``.

    Raises: ``OptionError`` for a negative limit, ``TraceError`` for a traced tensor or a template.

    >>> dn.to_flat_list(dn.iota((2, 2)), limit=3)
    [0, 1, 2]
    """
    return _core.to_tensor(tensor).to_flat_list(limit=limit)


@forwards(_core.to_binary)
def to_binary(tensor: TensorLike, *, limit: int | None = None) -> bytes:
    """The bytes of the elements in row-major order; with ``limit``, of the first ``limit`` only.

    The byte order is the machine's. Elements of 2 and 4 bits are packed, the first in the highest
    bits of a byte. ``from_binary`` reads them.

    Raises: ``OptionError`` for a negative limit, ``TraceError`` for a traced tensor or a template.

    >>> dn.to_binary(dn.tensor([1, 2, 3], dtype="u4")).hex()
    '1230'
    """
    ...


class Batches(Sequence["Tensor"]):
    """The batches of a tensor, each created on access."""

    __slots__ = ("_count", "_size", "_tensor")

    def __init__(self, tensor: Tensor, size: int, count: int) -> None:
        self._tensor, self._size, self._count = tensor, size, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tensor]: ...
    def __getitem__(self, index: int | slice) -> Tensor | Sequence[Tensor]:
        positions = range(self._count)[index]
        if isinstance(positions, range):
            return [self[position] for position in positions]
        return _core.batch(self._tensor, self._size, positions)

    def __repr__(self) -> str:
        return f"<{self._count} batches of {self._size}>"


@public
def to_batched(
    tensor: TensorLike,
    batch_size: int,
    *,
    leftover: Literal["repeat", "discard"] = "repeat",
) -> Sequence[Tensor]:
    """Split a tensor into batches of ``batch_size`` along its first axis; a sequence that creates
    them on access.

    If the size is not a multiple of ``batch_size``, the last batch is filled from the beginning of
    the tensor (``"repeat"``) or dropped (``"discard"``). If there are vectorized axes, the first of
    them is the first axis. Names are kept.

    Raises: ``ShapeError`` for a scalar or a batch longer than the axis, ``OptionError`` for a batch
    size below 1 or another ``leftover``, ``TraceError`` for a traced tensor or a template.

    >>> [batch.to_list() for batch in dn.to_batched(dn.iota((5,)), 2)]
    [[0, 1], [2, 3], [4, 0]]
    >>> len(dn.to_batched(dn.iota((5,)), 2, leftover="discard"))
    2
    """
    whole = _core.to_tensor(tensor)
    count = _core.batch_count(whole, batch_size, leftover)
    own = _core.own_batches(whole, batch_size, leftover)
    return Batches(whole, batch_size, count) if own is None else own


@public
def inspect(tensor: TensorLike, *, limit: int | None = 50) -> str:
    """The text of a tensor, with at most ``limit`` elements; None shows all of them.

    ``dn.options(print_limit=...)`` sets the limit for ``repr``. A traced tensor prints its graph.

    Raises: ``OptionError`` for a negative limit.

    >>> print(dn.inspect(dn.iota((3, 3)), limit=4))
    Tensor<
      s32[3][3]
      [
        [0, 1, 2],
        [3, ...],
        ...
      ]
    >
    """
    return _core.inspect(_core.to_tensor(tensor), limit)


@public
def to_heatmap(
    tensor: TensorLike,
    *,
    ansi_enabled: bool | None = None,
    ansi_whitespace: str = "\u3000",
) -> Heatmap:
    """Return an object that prints the matrices of a tensor as heatmaps.

    On a terminal, each element is a block in a shade of grey, from black for the least element of
    its matrix to white for the greatest; NaN is red, infinities are marked. Elsewhere it is a digit
    from 0 to 9, and ``+``, ``-`` and ``x`` for the infinities and NaN. ``ansi_enabled`` selects the
    form, ``ansi_whitespace`` is the text of a block. Indexing returns heatmaps of parts.

    Raises: ``ShapeError`` for a scalar, ``DTypeError`` for complex elements, ``TraceError`` for a
    traced tensor or a template.

    >>> dn.to_heatmap(dn.iota((2, 5)), ansi_enabled=False)
    Heatmap<
      s32[2][5]
      01234
      56789
    >
    """
    whole = _core.to_tensor(tensor)
    _core.check_heatmap(whole)
    return Heatmap(whole, ansi_enabled, ansi_whitespace)


def _is_terminal() -> bool:
    """Whether standard output is a terminal that shows colours (https://no-color.org)."""
    if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout is not None and sys.stdout.isatty()


class Heatmap:
    """A tensor that prints as a heatmap: see ``to_heatmap``."""

    # The greys of the 256-colour palette, starting with the darkest.
    _DARKEST, _SHADES = 232, 24
    _MATRICES = 50

    def __init__(self, tensor: Tensor, ansi_enabled: bool | None, ansi_whitespace: str) -> None:
        self.tensor = tensor
        self._ansi_enabled = ansi_enabled
        self._ansi_whitespace = ansi_whitespace

    def __getitem__(self, index: Any) -> Heatmap | Tensor:
        part = self.tensor[index]
        if part.rank == 0:
            return part
        return Heatmap(part, self._ansi_enabled, self._ansi_whitespace)

    def __repr__(self) -> str:
        header = _core.inspect(_core.to_template(self.tensor), None).split("\n")[1:-1]
        vectorized = tuple(size for _, size in self.tensor.vectorized_axes)
        sizes = [*vectorized, *self.tensor.shape]
        if len(sizes) == 1:
            sizes.insert(0, 1)
        *outer, rows, columns = sizes
        values = self.tensor.to_flat_list(limit=rows * columns * self._MATRICES)
        lines = self._block(outer, [values, self._MATRICES], rows, columns)
        return "\n".join(["Heatmap<", *header, *(f"  {line}" for line in lines), ">"])

    def _block(self, outer: list[int], state: list[Any], rows: int, columns: int) -> list[str]:
        """The lines of some matrices; ``state`` is the values and the number of matrices left."""
        if not outer:
            count = rows * columns
            values, state[0] = state[0][:count], state[0][count:]
            state[1] -= 1
            return self._matrix(values, rows, columns)
        lines = ["["]
        for position in range(outer[0]):
            if position > 0:
                lines[-1] += ","
            if state[1] == 0:
                lines.append("  ...")
                break
            lines += [f"  {line}" for line in self._block(outer[1:], state, rows, columns)]
        return [*lines, "]"]

    def _matrix(self, values: list[Any], rows: int, columns: int) -> list[str]:
        finite = [value for value in values if value - value == 0]
        least = min(finite, default=0)
        span = (max(finite, default=0) - least) or 1
        is_ansi = _is_terminal() if self._ansi_enabled is None else self._ansi_enabled
        draw, end = (self._shade, "\x1b[0m") if is_ansi else (self._digit, "")
        lines = (values[row * columns : (row + 1) * columns] for row in range(rows))
        return ["".join(draw(value, least, span) for value in line) + end for line in lines]

    def _digit(self, value: Any, least: Any, span: Any) -> str:
        if value != value:
            return "x"
        if value - value != 0:
            return "+" if value > 0 else "-"
        # Rounds halves away from zero; `round` would round to the even digit.
        return str(int((value - least) / span * 9 + 0.5))

    def _shade(self, value: Any, least: Any, span: Any) -> str:
        if value != value:
            return f"\x1b[41m{self._ansi_whitespace}"
        shade, text = self._SHADES - 1, "\u221e"
        if value - value != 0:
            shade = shade if value > 0 else 0
        else:
            shade, text = int((value - least) / span * shade + 0.5), self._ansi_whitespace
        return f"\x1b[48;5;{self._DARKEST + shade}m{text}"
