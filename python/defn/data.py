"""Batches for training: of arrays, memory maps and tables, in an order that a key determines.

An iterator of batches has a position, a pair of numbers. Saved with the state of a run, it lets
another iterator go on with the same batches, bit for bit.

>>> arrays = {"x": np.arange(10.0), "y": np.arange(10)}
>>> batches = dn.data.batches(arrays, 4, key=dn.random.key(0), epochs=2)
>>> [batch["y"].to_list() for batch in batches]
[[7, 4, 6, 3], [9, 5, 8, 2], [1, 0], [0, 2, 1, 6], [8, 4, 3, 5], [9, 7]]
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from defn import _core
from defn._names import caller, option_error
from defn._prefetch import Prefetch, prefetch
from defn._public import public
from defn._tree_paths import path_text, paths
from defn.errors import ContainerError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Self

    from defn.typing import TensorLike

__all__ = ["Batches", "Position", "Prefetch", "batches", "prefetch", "progress"]


class Position(NamedTuple):
    """A position in the data: the epoch, and the number of its rows that have been taken.

    >>> dn.data.Position(epoch=0, rows=64)
    Position(epoch=0, rows=64)
    """

    epoch: int
    rows: int


_BEGIN = Position(0, 0)


class Batches:
    """An iterator of batches. :func:`batches` returns it.

    ``len`` of it is the number of batches that remain, unless there is no last epoch.

    >>> batches = dn.data.batches([np.arange(6)], 2)
    >>> len(batches), next(batches)[0].to_list(), batches.position, len(batches)
    (3, [0, 1], Position(epoch=0, rows=2), 2)
    """

    def __init__(
        self,
        take: Callable[[Any], Any],
        rows: int,
        size: int,
        key: TensorLike | None,
        epochs: int | None,
        drop_last: bool,
        start: Position,
    ) -> None:
        self._take, self._rows, self._size, self._key = take, rows, size, key
        self._epochs, self._drop_last = epochs, drop_last
        self._position = self._advanced(start)
        self._order: tuple[int, Any] | None = None

    @property
    def position(self) -> Position:
        """The position after the last batch that was handed out."""
        return self._position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        epoch, index = self._position
        if self._epochs is not None and epoch >= self._epochs:
            raise StopIteration
        end = min(index + self._size, self._rows)
        if self._key is None:
            batch = self._take(slice(index, end))
        else:
            batch = self._take(self._order_of(epoch, self._key)[index:end])
        self._position = self._advanced(Position(epoch, end))
        return batch

    def __len__(self) -> int:
        if self._epochs is None:
            raise TypeError(f"len: the epochs have no end, epochs= must be an int{caller()}")
        epoch, index = self._position
        if epoch >= self._epochs:
            return 0
        whole = self._count(self._rows)
        return self._count(self._rows - index) + (self._epochs - epoch - 1) * whole

    def _count(self, rows: int) -> int:
        return rows // self._size if self._drop_last else -(-rows // self._size)

    def _advanced(self, position: Position) -> Position:
        """The position, or the beginning of the next epoch where this one has no batch left."""
        if self._count(self._rows - position.rows) > 0:
            return position
        return Position(position.epoch + 1, 0)

    def _order_of(self, epoch: int, key: TensorLike) -> Any:
        """The order of the rows in an epoch. It depends on the key and the epoch alone."""
        if self._order is None or self._order[0] != epoch:
            key = _core.random_fold_in(key, np.int64(epoch))
            order, _ = _core.random_shuffle(key, _core.iota((self._rows,)), 0, False)
            self._order = epoch, order.to_numpy()
        return self._order[1]


@public
def batches(
    arrays: Any,
    size: int,
    *,
    key: TensorLike | None = None,
    epochs: int | None = 1,
    drop_last: bool = False,
    start: Position | tuple[int, int] = _BEGIN,
) -> Batches:
    """Iterate over batches of rows: containers of tensors like the container of arrays.

    ``arrays`` is a container of tensors, NumPy arrays, memory maps and what DLPack or a buffer
    provides, whose first axes have one size; a table, which stands for the dict of its columns; or
    an object with ``len`` and ``[]``, whose items are containers of equal structure, and which is
    asked for the rows of each batch. Only the rows of a batch are read from a memory map. A table
    is what has columns and Arrow's interface, such as a data frame; it is read by ``pyarrow``.
    Lists and tuples are containers: make a list of numbers an array first.

    Without ``key``, rows come in order. With a key, each epoch has an order of its own that depends
    on the key and the number of the epoch alone. There are ``epochs`` of them, or no end with
    ``None``. The last batch of an epoch may be smaller, unless it is left out by ``drop_last``;
    a definition is compiled for each size. ``start`` is the ``position`` of an iterator with the
    same arguments, after which this one goes on.

    Raises: ``ShapeError`` for arrays without rows and for different numbers of rows, with their
        paths, ``OptionError`` for a ``size`` that no batch can have and for another ``epochs`` or
        ``start``, ``DTypeError`` for what is not a key, ``ContainerError`` for columns that tensors
        cannot hold, and ``ImportError`` for a table without ``pyarrow``.

    >>> x, y = np.arange(10).reshape(5, 2), np.arange(5)
    >>> for x_batch, y_batch in dn.data.batches((x, y), 2):
    ...     print(x_batch.shape, y_batch.to_list())
    (2, 2) [0, 1]
    (2, 2) [2, 3]
    (1, 2) [4]

    The position is a part of a state that is saved:

    >>> shuffled = dn.data.batches(y, 2, key=dn.random.key(7))
    >>> first = next(shuffled)
    >>> position = shuffled.position
    >>> resumed = dn.data.batches(y, 2, key=dn.random.key(7), start=position)
    >>> [batch.to_list() for batch in shuffled] == [batch.to_list() for batch in resumed]
    True
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise option_error(f"batches: size is {size!r}, it must be an int of at least 1")
    if epochs is not None and (
        isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1
    ):
        raise option_error(
            f"batches: epochs is {epochs!r}, it must be an int of at least 1, or None"
        )
    rows, take = _source(arrays)
    if drop_last and size > rows:
        raise option_error(
            f"batches: size is {size} and drop_last is True for {rows} rows, which fill no batch; "
            "give a smaller size"
        )
    if key is not None:
        try:
            _core.random_fold_in(key, 0)
        except DTypeError as error:
            raise DTypeError(f"batches: {str(error).partition(': ')[2]}") from None
    return Batches(take, rows, size, key, epochs, drop_last, _position(start, rows))


def _position(start: Any, rows: int) -> Position:
    """The position that is given: a pair of ints or of scalars of integers."""
    try:
        position = Position(*map(operator.index, start))
    except (TypeError, ValueError):
        position = Position(-1, -1)
    if position.epoch < 0 or not 0 <= position.rows <= rows:
        raise option_error(
            f"batches: start is {start!r}, it must be a pair of an epoch of at least 0 and a "
            f"number of rows of at most {rows}; give the position of an iterator over the same data"
        )
    return position


def _source(arrays: Any) -> tuple[int, Callable[[Any], Any]]:
    """The number of rows, and what returns the batch of some of them."""
    arrays = _columns(arrays) if _is_table(arrays) else arrays
    try:
        leaves, structure = _core.flatten_container(arrays)
    except ContainerError:
        if not (hasattr(arrays, "__len__") and hasattr(arrays, "__getitem__")):
            raise
        return _source_of_items(arrays)
    columns = _checked([_column(leaf) for leaf in leaves], structure)

    def take(rows: Any) -> Any:
        return _core.unflatten_container(structure, [_rows_of(x, rows) for x in columns])

    return len(columns[0]), take


def _source_of_items(items: Any) -> tuple[int, Callable[[Any], Any]]:
    from defn import tree

    count = len(items)
    if count == 0:
        raise ShapeError(f"batches: arrays has no rows, at least one is required{caller()}")

    def take(rows: Any) -> Any:
        places = range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist()
        return tree.stack([items[place] for place in places])

    return count, take


def _column(leaf: Any) -> Any:
    """A tensor or a NumPy array as it is, so that a memory map is read by rows; else a tensor."""
    return leaf if isinstance(leaf, np.ndarray) else _core.to_tensor(leaf)


def _checked(columns: list[Any], structure: Any) -> list[Any]:
    """The columns, which all have as many rows as the first one."""
    if not columns:
        raise ShapeError(f"batches: arrays has no leaves, at least one array is required{caller()}")
    found = zip(columns, paths(structure), strict=True)
    first = f"arrays{path_text(paths(structure)[0])}"
    for column, path in found:
        name = f"arrays{path_text(path)}"
        if not column.shape:
            raise ShapeError(
                f"batches: {name} is {_type_text(column)}, an axis of rows is required; make a "
                f"list of numbers an array by np.asarray{caller()}"
            )
        if len(column) == 0:
            raise ShapeError(
                f"batches: {name} is {_type_text(column)}, at least one row is required{caller()}"
            )
        if len(column) != len(columns[0]):
            raise ShapeError(
                f"batches: {name} is {_type_text(column)}, its first axis must have "
                f"{len(columns[0])} elements as that of {first}, which is "
                f"{_type_text(columns[0])}{caller()}"
            )
    return columns


def _type_text(column: Any) -> str:
    # A tensor of an array would read a memory map as a whole.
    if isinstance(column, np.ndarray):
        return f"{column.dtype}{list(column.shape)}"
    return _core.type_text(column)


def _rows_of(column: Any, rows: Any) -> Any:
    if isinstance(column, _core.Tensor):
        return column[rows] if isinstance(rows, slice) else _core.take(column, rows, 0)
    # Rows at positions are a new array already, those of a slice are the caller's memory.
    return _core.tensor(column[rows], None, None, None, True if isinstance(rows, slice) else None)


def _is_table(value: Any) -> bool:
    """Whether this is a table by Arrow's PyCapsule interface; arrays and series have no columns."""
    has_capsule = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return has_capsule and hasattr(value, "columns")


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table as arrays that use its memory where they can."""
    try:
        import pyarrow
    except ImportError:
        kind = type(table).__name__
        raise ImportError(
            f"batches: arrays is a table of type {kind}, which needs the package pyarrow; install "
            f"it, or give a dict of arrays{caller()}"
        ) from None
    table = pyarrow.table(table)
    names = table.column_names
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise ContainerError(
            f"batches: the table has {names.count(name)} columns {name!r}, each needs its own "
            f"name; rename them{caller()}"
        )
    return {name: _array(name, table[name]) for name in names}


def _array(name: str, column: Any) -> Any:
    import pyarrow

    column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    _check_nulls(name, column)
    sizes = []
    while pyarrow.types.is_fixed_size_list(column.type):
        sizes.append(column.type.list_size)
        column = column.flatten()
        # The elements of lists have nulls of their own, which NumPy makes NaN.
        _check_nulls(name, column)
    kind = column.type
    is_number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
    if not (is_number or pyarrow.types.is_boolean(kind)):
        raise ContainerError(
            f"batches: the column {name!r} is of type {kind}, numbers, bools and lists of one size "
            f"are required; select other columns{caller()}"
        )
    return column.to_numpy(zero_copy_only=False).reshape(-1, *sizes)


def _check_nulls(name: str, column: Any) -> None:
    if column.null_count:
        raise ContainerError(
            f"batches: the column {name!r} has {column.null_count} nulls, tensors have none; drop "
            f"or fill them{caller()}"
        )


@public
def progress(
    iterable: Iterable[Any], *, total: int | None = None, label: str | None = None
) -> Generator[Any, None, None]:
    """Yield the items, with a progress bar on standard error where ``tqdm`` is installed.

    ``total`` is the number of items, by default ``len(iterable)`` if it has one. ``label`` stands
    before the bar. Without ``tqdm``, the items come without a bar.

    Raises: the errors of the iterable.

    >>> sum(dn.data.progress([1, 2, 3], label="adding"))
    6
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return (item for item in iterable)
    if total is None:
        total = operator.length_hint(iterable) or None
    return _with_bar(tqdm, iterable, total, label)


def _with_bar(
    bar_class: Any, iterable: Iterable[Any], total: int | None, label: str | None
) -> Generator[Any, None, None]:
    with bar_class(total=total, desc=label) as bar:
        for item in iterable:
            yield item
            bar.update()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that suggests the name to use instead."""
        from defn._names import unknown_name

        raise unknown_name("defn.data has nothing", name, sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
