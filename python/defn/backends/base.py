"""The base class of backends that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core
from defn._names import option_error
from defn.backends.callbacks.elementwise import Elementwise
from defn.backends.callbacks.fourier import Fourier
from defn.backends.callbacks.index import Index
from defn.backends.callbacks.linalg import Linalg
from defn.backends.callbacks.order import Order
from defn.backends.callbacks.place import Place
from defn.backends.callbacks.reduce import Reduce
from defn.backends.callbacks.shape import Shape
from defn.backends.callbacks.window import Window

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Self

    from defn._core import Tensor

__all__ = ["Backend"]


class Backend(
    Place, Elementwise, Shape, Index, Order, Reduce, Window, Fourier, Linalg, _core.Backend
):
    r"""A backend written in Python: it holds tensors and runs one operation at a time.

    Derive from it and define the callbacks that the backend supports; they are those of Nx.Backend
    0.12, under their names. A callback receives ``out``, a template with the dtype and shape of its
    result, then the operands as tensors of this backend, then the options as keywords. ``x.data``
    is the value that the callback which created ``x`` returned. The value that a callback returns
    becomes the data of its result: data with ``shape`` and ``dtype`` must have those of ``out``,
    and a tensor stands for its own data.

    A callback that is not defined runs by its default if it has one, else it raises and names the
    callback. With ``fallback="host"``, passed to the constructor or set in the class, the host runs
    the operation instead, with one warning for each callback. ``from_binary`` and ``to_binary`` are
    always needed. Operands may differ from ``out`` in dtype, and in shape if the operation
    broadcasts: the computation is in the dtype of ``out``.

    Two backends are the same place if they are equal: by default, if they have the same class and
    were created with equal arguments. A backend with options names them as keywords of its
    ``__init__`` and passes the others on, which raises for unknown options.

    Raises: ``OptionError`` for an unknown option.

    >>> class Bytes(dn.Backend):
    ...     def from_binary(self, out, data):
    ...         return data
    ...     def to_binary(self, x, limit):
    ...         return x.data[: limit * x.dtype.bits // 8]
    >>> x = dn.tensor([1, 2], dtype="u8", backend=Bytes())
    >>> x.data
    b'\x01\x02'
    """

    fallback: Literal["host"] | None = None
    _made_of: tuple[type, tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Store the class and the arguments, which identify the backend."""
        self = super().__new__(cls, *args, **options)
        self._made_of = (cls, args, options)
        return self

    def __init__(self, *, fallback: Literal["host"] | None = None, **options: Any) -> None:
        if fallback not in (None, "host"):
            raise option_error(f'backend: fallback is {fallback!r}, it must be "host" or None')
        if fallback is not None:
            self.fallback = fallback
        if options:
            names = ", ".join(f'"{name}"' for name in options)
            raise option_error(
                f"backend: unknown option {names} for {type(self).__name__}, it must be one that "
                "its __init__ names"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Backend):
            return NotImplemented
        return self is other or self._made_of == other._made_of

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        _, args, options = self._made_of
        parts = [repr(arg) for arg in args] + [
            f"{name}={value!r}" for name, value in options.items()
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def block(
        self,
        tag: Any,
        out: Any,
        args: list[Tensor],
        fun: Callable[..., Any],
    ) -> Any:
        """A composite that may have a native implementation, identified by its ``tag``.

        The tag is one of ``dn.blocks`` or the one passed to ``dn.block``. ``out`` is a template,
        or for a user's block a container of templates. ``fun(tag, *args)`` computes the block in
        primitive operations, which run on this backend. By default ``fun`` is called.
        """
        return fun(tag, *args)
