"""Callbacks that read and print tensors, and move them between backends."""

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
    """Places of tensors, and their text."""

    def backend_copy(self, x: Tensor, backend: BackendLike) -> Tensor:
        """The elements of ``x`` on another backend. By default a copy through ``to_binary``."""
        from defn.ops.create import tensor

        return tensor(x.to_numpy(), names=x.names, backend=backend)

    def backend_transfer(self, x: Tensor, backend: BackendLike) -> Tensor:
        """As ``backend_copy``; ``x`` is freed afterwards. By default ``backend_copy``.

        ``backend_deallocate`` is then called for ``x``, even if the copy failed.
        """
        return self.backend_copy(x, backend)

    def backend_deallocate(self, x: Tensor) -> None:
        """Called once, before the data of ``x`` is dropped. By default nothing is done."""

    def to_batched(self, out: Tensor, x: Tensor, *, leftover: str) -> list[Any]:
        """Batches of the rows of ``x``, each of the type of ``out``.

        ``"discard"`` drops the remaining rows; ``"repeat"`` fills the last batch with rows from the
        beginning. By default ``slice`` and ``concatenate``.
        """
        from defn.ops.shape import concatenate

        rows, size = x.shape[0], out.shape[0]
        whole = rows - rows % size
        batches = [x[at : at + size] for at in range(0, whole, size)]
        if whole < rows and leftover == "repeat":
            batches.append(concatenate([x[whole:], x[: whole + size - rows]]))
        return batches

    def to_pointer(self, x: Tensor, *, mode: str) -> int:
        """The address of the elements, which must not move while ``x`` lives.

        ``mode`` is ``"local"``: the address is for this process.
        """
        raise lacks(self, "to_pointer", by_host=False)

    def from_pointer(self, pointer: int, dtype: DType, shape: Sequence[int]) -> Any:
        """Data in memory that another object owns."""
        raise lacks(self, "from_pointer", by_host=False)

    def inspect(self, x: Tensor, limit: int | None) -> str:
        """The text of the elements, at most ``limit``. By default read by ``to_binary``."""
        from defn.backends import inspect

        count = x.size if limit is None else min(limit, x.size)
        return inspect(x, self.to_binary(x, count), limit)
