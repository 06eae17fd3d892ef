"""Where tensors are: copying, moving and freeing them, and the backend of new ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from defn import _core
from defn._public import forwards, public

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeVar

    from defn._core import Tensor
    from defn.typing import BackendLike, DTypeLike, Names, Shape, TensorLike

    T = TypeVar("T")

__all__ = [
    "Pointer",
    "backend_copy",
    "backend_deallocate",
    "backend_transfer",
    "default_backend",
    "from_pointer",
    "scope",
    "to_pointer",
    "to_template",
    "with_default_backend",
]


@forwards(_core.backend_copy)
def backend_copy(value: Any, backend: BackendLike = "cpu") -> Any:
    """Copy tensors to a backend, by default to the host.

    The original tensors do not change. Names and vectorized axes are kept. For a container, the
    result is a container; numbers and arrays in it become tensors. The default backend has no
    effect here.

    Raises: ``BackendError`` for an unknown backend or freed elements, ``TraceError`` for a traced
    tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_copy({"x": x})["x"].to_list()
    [1, 2, 3]
    """
    ...


@forwards(_core.backend_transfer)
def backend_transfer(value: Any, backend: BackendLike = "cpu") -> Any:
    """Move tensors to a backend, by default to the host.

    Nothing happens to a tensor that is already there. Any other is freed, even if the copy fails,
    and using it afterwards raises. Names and vectorized axes are kept. For a container, the
    result is a container; numbers and arrays in it become tensors.

    Raises: ``BackendError`` for an unknown backend or freed elements, ``TraceError`` for a traced
    tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_transfer(x).to_list()
    [1, 2, 3]
    """
    ...


@forwards(_core.backend_deallocate)
def backend_deallocate(value: Any) -> Any:
    """Free the elements of a tensor now, not only when its last reference goes away.

    Returns ``"ok"`` or ``"already_deallocated"``; for a container, a container of these. Using
    the tensor afterwards raises an error that names the line which freed it. Tensors that share its
    memory, such as its ``reshape``, keep the memory, and so do NumPy arrays made from it.

    Raises: ``TraceError`` for a traced tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_deallocate(x), dn.backend_deallocate(x)
    ('ok', 'already_deallocated')
    >>> x + 1
    Traceback (most recent call last):
    defn.BackendError: add: the tensor's memory was freed at ...; keep a copy, or do not...
    """
    ...


@forwards(_core.scope)
def scope() -> _core.Scope:
    """A ``with`` block that frees the tensors created in it when it ends.

    Variables that outlive the block, also those of its loops, then hold no memory: a step's
    temporaries are freed when the step ends, which matters on devices, where memory is scarce.
    ``scope.keep(x)`` returns a tensor or container that is not freed, and passes it to the
    enclosing scope. Memory that older tensors, compiled programs, other threads or NumPy arrays
    share is not freed, nor are tensors of other threads. Using a freed tensor raises an error that
    names the line of the block.

    Raises: ``OptionError`` for a scope that is entered twice or exited on another thread.

    >>> x = dn.tensor([1.0, 2.0, 3.0])
    >>> with dn.scope() as scope:
    ...     squares = x * x
    ...     norm = scope.keep(dn.sqrt(dn.sum(squares)))
    >>> round(float(norm), 3)
    3.742
    >>> squares + 1
    Traceback (most recent call last):
    defn.BackendError: add: the tensor's memory was freed at ...; keep a copy, or do not...
    """
    ...


@forwards(_core.default_backend)
def default_backend(backend: BackendLike | None = None) -> BackendLike:
    """Read or set the backend of new tensors that are not computed from other tensors.

    Without an argument, returns the current default. Otherwise sets it for this context (the
    current thread and code that runs in copies of its context) and returns the previous one.
    ``global_default_options(backend=...)`` sets it for the whole process, and so does the
    environment variable ``DEFN_BACKEND``; the context takes precedence. Operands on other backends
    are not moved.

    Raises: ``BackendError`` for an unknown backend.

    >>> before = dn.default_backend("cpu")
    >>> dn.default_backend()
    'cpu'
    >>> dn.default_backend(before)
    'cpu'
    """
    ...


@public
def with_default_backend(backend: BackendLike, fun: Callable[[], T], /) -> T:
    """Call a function with another default backend, and return its result.

    The previous default is restored even if the function raises. ``dn.options(backend=...)`` is
    the same for a ``with`` block.

    Raises: ``BackendError`` for an unknown backend.

    >>> dn.with_default_backend("cpu", lambda: dn.iota((3,)).backend)
    'cpu'
    """
    before = _core.context_options()
    try:
        _core.default_backend(backend)
        return fun()
    finally:
        _core.restore_context_options(before)


@forwards(_core.to_template)
def to_template(value: Any) -> Any:
    """The types of tensors without their elements: templates of the same dtype, shape, names and
    vectorized axes.

    For a container, the result is a container. A traced tensor has a template, too.

    Raises: ``ContainerError`` for a value that is neither a tensor nor a container.

    >>> dn.to_template({"x": dn.tensor([1.0, 2.0], names=["row"])})
    {'x': Tensor<
      f32[row: 2]
    >}
    """
    ...


@dataclass(frozen=True)
class Pointer:
    """The address of a tensor's elements in the memory of this process.

    A pointer from ``to_pointer`` keeps the elements alive. One made from an address does not.
    """

    address: int
    data_size: int | None = None
    kind: Literal["local"] = "local"
    _memory: object = field(default=None, repr=False, compare=False)


@public
def to_pointer(tensor: TensorLike, *, mode: str = "local") -> Pointer:
    """The address of a tensor's elements, for code in other languages in this process.

    The elements are stored in row-major order and native byte order, in ``data_size`` bytes; a 2-
    or 4-bit element takes a byte. They must not be written, because other tensors may share them.
    They stay valid as long as the pointer lives.

    Raises: ``BackendError`` for elements that are not on the host or freed, ``TraceError`` for a
    traced tensor or a template, ``OptionError`` for a mode other than ``"local"``.

    >>> pointer = dn.to_pointer(dn.tensor([1.0, 2.0]))
    >>> pointer.data_size
    8
    >>> dn.from_pointer(pointer, "f32", (2,)).to_list()
    [1.0, 2.0]
    """
    address, size, memory = _core.to_pointer(tensor, mode)
    return Pointer(address, size, "local", memory)


@public
def from_pointer(
    pointer: Pointer | int,
    dtype: DTypeLike,
    shape: Shape | int,
    *,
    names: Names | None = None,
    backend: BackendLike | None = None,
) -> Tensor:
    """A tensor of the elements at an address in this process's memory, without a copy.

    A device that cannot read the host's memory gets a copy. XLA on the CPU copies memory that is
    not aligned to 64 bytes.

    **This cannot be made safe.** The memory must hold all elements, in row-major order and native
    byte order. It must stay valid and unwritten as long as the tensor, or anything that shares its
    memory, lives. These checks are made: the address is not 0 and is aligned, and a pointer's
    ``data_size`` is that of the type. Neither the tensor nor a pointer passed here keeps the memory
    alive; keep a reference to it, or copy the tensor at once with ``backend_copy``.

    Raises: ``OptionError`` for an invalid address or data size.

    >>> array = np.array([1, 2, 3], dtype=np.int16)
    >>> dn.from_pointer(array.ctypes.data, "s16", (3,)).to_list()
    [1, 2, 3]
    """
    if isinstance(pointer, Pointer):
        address, size = pointer.address, pointer.data_size
    else:
        address, size = pointer, None
    return _core.from_pointer(address, size, dtype, shape, names, backend)
