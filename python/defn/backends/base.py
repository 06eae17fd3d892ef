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
    r"""A place for tensors that can run one operation at a time, written in Python.

    Derive from it and define the callbacks that you have; they are those of Nx.Backend 0.12, under
    their names. A callback gets ``out``, a template with the dtype and shape of its result, then
    the operands as tensors of this backend, then the options as keywords. ``x.data`` is what the
    callback that made ``x`` returned. What a callback returns becomes the data of its result; data
    with ``shape`` and ``dtype`` must have those of ``out``, and a tensor stands for its own data.

    A callback that is not defined runs by its default where there is one, else it raises and names
    the callback. With ``fallback="host"``, given when a backend is made or set in its class, the
    host does instead what has neither; a warning says so once for each callback. ``from_binary``
    and ``to_binary`` are always needed. Operands may differ from ``out`` in dtype, and in shape
    where the operation broadcasts: ``out`` says what to compute in.

    Two backends are one place if they are equal: by default, if they are of one class and were made
    of equal arguments. A backend that takes options names them as keywords of its ``__init__`` and
    passes the others on, which raises for those that are unknown.

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
        """Remember what the backend is made of, which tells it from others."""
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
        """A composite that may have a native form, by its ``tag``.

        The tag is one of ``dn.blocks`` or what ``dn.block`` was given; ``out`` is a template, for a
        block of the user's in the container of its output. ``fun(tag, *args)`` is the block in
        primitive operations, which run on this backend. By default it is called.
        """
        return fun(tag, *args)
