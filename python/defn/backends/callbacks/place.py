"""Callbacks that read tensors in other ways, and move them between backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn.backends.callbacks.common import lacks
from defn.backends.callbacks.create import Create

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from defn._core import DType, Tensor
    from defn.typing import BackendLike

__all__ = ["Place"]


class Place(Create):
    """Where tensors are, and how they are shown."""

    def backend_copy(self, x: Tensor, backend: BackendLike) -> Tensor:
        """The elements of ``x`` on another backend. By default the bytes of ``to_binary``."""
        from defn.ops.create import tensor

        return tensor(x.to_numpy(), names=x.names, backend=backend)

    def backend_transfer(self, x: Tensor, backend: BackendLike) -> Tensor:
        """As ``backend_copy``; ``x`` is let go after. By default ``backend_copy``.

        ``backend_deallocate`` is called for ``x`` then, whatever became of the copy.
        """
        return self.backend_copy(x, backend)

    def backend_deallocate(self, x: Tensor) -> None:
        """Called once, before the data of ``x`` is let go. By default nothing is done."""

    def to_batched(self, out: Tensor, x: Tensor, *, leftover: str) -> list[Any]:
        """Batches of the rows of ``x``, each of the type of ``out``.

        Rows that are left over are dropped with ``"discard"``; with ``"repeat"`` the last batch is
        filled up from the first row on. By default ``slice`` and ``concatenate``.
        """
        from defn.ops.shape import concatenate

        rows, size = x.shape[0], out.shape[0]
        whole = rows - rows % size
        batches = [x[at : at + size] for at in range(0, whole, size)]
        if whole < rows and leftover == "repeat":
            batches.append(concatenate([x[whole:], x[: whole + size - rows]]))
        return batches

    def to_pointer(self, x: Tensor, *, mode: str) -> int:
        """The address of the elements, which stay where they are while ``x`` lives.

        ``mode`` is ``"local"``: for this process.
        """
        raise lacks(self, "to_pointer", by_host=False)

    def from_pointer(self, pointer: int, dtype: DType, shape: Sequence[int]) -> Any:
        """Data over memory that somebody else owns."""
        raise lacks(self, "from_pointer", by_host=False)

    def inspect(self, x: Tensor, limit: int | None) -> str:
        """The elements as they print, at most ``limit``. By default those of ``to_binary``."""
        from defn.backends import inspect

        count = x.size if limit is None else min(limit, x.size)
        return inspect(x, self.to_binary(x, count), limit)
