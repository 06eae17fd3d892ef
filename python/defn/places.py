"""Where tensors are: copying and moving them, freeing them, and the backend that new ones get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

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


def backend_copy(value: Any, backend: BackendLike = "cpu", **unknown: Never) -> Any:
    """Tensors of the same elements on a backend: the host unless told otherwise.

    The tensors that are given stay as they are. Names and vectorized axes are kept. A container
    gives a container; numbers and arrays in it become tensors. The default backend makes no
    difference here.

    Raises: ``BackendError`` for an unknown backend or freed elements, ``TraceError`` for a traced
    tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_copy({"x": x})["x"].to_list()
    [1, 2, 3]
    """
    if unknown:
        refuse_options("backend_copy", unknown)
    return _core.backend_copy(value, backend)


def backend_transfer(value: Any, backend: BackendLike = "cpu", **unknown: Never) -> Any:
    """Move elements to a backend: the host unless told otherwise.

    Nothing happens to a tensor that is there already. Any other is freed, also when the copy
    fails, and using it afterwards raises. Names and vectorized axes are kept. A container gives a
    container; numbers and arrays in it become tensors.

    Raises: ``BackendError`` for an unknown backend or freed elements, ``TraceError`` for a traced
    tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_transfer(x).to_list()
    [1, 2, 3]
    """
    if unknown:
        refuse_options("backend_transfer", unknown)
    return _core.backend_transfer(value, backend)


def backend_deallocate(value: Any, **unknown: Never) -> Any:
    """Free the elements of a tensor now, rather than when nobody holds it any more.

    Returns ``"ok"``, or ``"already_deallocated"``; for a container, a container of these. Using
    the tensor afterwards raises an error that names the line which freed it. Tensors that share its
    memory, such as its reshaped self, keep it, and so do NumPy arrays made of it.

    Raises: ``TraceError`` for a traced tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_deallocate(x), dn.backend_deallocate(x)
    ('ok', 'already_deallocated')
    >>> x + 1
    Traceback (most recent call last):
    defn.BackendError: add: the tensor's memory was freed at ...; keep a copy, or do not...
    """
    if unknown:
        refuse_options("backend_deallocate", unknown)
    return _core.backend_deallocate(value)


def scope(**unknown: Never) -> _core.Scope:
    """A block at whose end the tensors that were made in it are freed.

    Names that go on after the block hold no memory then, nor does what a loop bound last: on a
    device, where memory is scarce, a step's temporaries are gone when it ends. ``scope.keep(x)``
    gives back a tensor or a container that is to stay, and hands it to the scope around this one.
    What older tensors, compiled programs and other threads hold too stays, as do NumPy arrays made
    of it. Tensors of this thread count. Using a freed one raises and names the line of the block.

    Raises: ``OptionError`` for a scope that is entered twice or left on another thread.

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
    if unknown:
        refuse_options("scope", unknown)
    return _core.scope()


def default_backend(backend: BackendLike | None = None, **unknown: Never) -> BackendLike:
    """Read or set the backend on which tensors are made that come from no other tensor.

    Without an argument, the one that holds. Otherwise it is set for this context, which is the
    current thread and what is run in copies of its context, and the one before is returned.
    ``global_default_options(backend=...)`` sets it for the whole process, and ``DEFN_BACKEND``
    from outside; the context's comes first. Operands that are on other backends are not moved.

    Raises: ``BackendError`` for an unknown backend.

    >>> before = dn.default_backend("cpu")
    >>> dn.default_backend()
    'cpu'
    >>> dn.default_backend(before)
    'cpu'
    """
    if unknown:
        refuse_options("default_backend", unknown)
    return _core.default_backend(backend)


def with_default_backend(backend: BackendLike, fun: Callable[[], T], /, **unknown: Never) -> T:
    """Call a function while another backend is the default one, and return what it returns.

    The default backend is put back also when the function raises. ``dn.options(backend=...)`` is
    the same for a ``with`` block.

    Raises: ``BackendError`` for an unknown backend.

    >>> dn.with_default_backend("cpu", lambda: dn.iota((3,)).backend)
    'cpu'
    """
    if unknown:
        refuse_options("with_default_backend", unknown)
    before = _core.context_options()
    try:
        _core.default_backend(backend)
        return fun()
    finally:
        _core.restore_context_options(before)


def to_template(value: Any, **unknown: Never) -> Any:
    """The types of tensors, without their elements: templates of the same dtype, shape, names and
    vectorized axes.

    A container gives a container. Of a traced tensor it is a template, too.

    Raises: ``ContainerError`` for what is neither a tensor nor a container.

    >>> dn.to_template({"x": dn.tensor([1.0, 2.0], names=["row"])})
    {'x': Tensor<
      f32[row: 2]
    >}
    """
    if unknown:
        refuse_options("to_template", unknown)
    return _core.to_template(value)


@dataclass(frozen=True)
class Pointer:
    """Where elements lie in this process's memory.

    A pointer that ``to_pointer`` gave keeps the elements there. One that is made of an address does
    not.
    """

    address: int
    data_size: int | None = None
    kind: Literal["local"] = "local"
    _memory: object = field(default=None, repr=False, compare=False)


def to_pointer(tensor: TensorLike, *, mode: str = "local", **unknown: Never) -> Pointer:
    """The address of a tensor's elements, for other languages in this process.

    They lie in row-major order and native byte order, a byte for each 2- or 4-bit element, and
    ``data_size`` bytes long. They must not be written: other tensors may share them. They stay as
    long as the pointer lives.

    Raises: ``BackendError`` for elements that are not on the host or freed, ``TraceError`` for a
    traced tensor or a template, ``OptionError`` for another mode than ``"local"``.

    >>> pointer = dn.to_pointer(dn.tensor([1.0, 2.0]))
    >>> pointer.data_size
    8
    >>> dn.from_pointer(pointer, "f32", (2,)).to_list()
    [1.0, 2.0]
    """
    if unknown:
        refuse_options("to_pointer", unknown)
    address, size, memory = _core.to_pointer(tensor, mode)
    return Pointer(address, size, "local", memory)


def from_pointer(
    pointer: Pointer | int,
    dtype: DTypeLike,
    shape: Shape | int,
    *,
    names: Names | None = None,
    backend: BackendLike | None = None,
    **unknown: Never,
) -> Tensor:
    """A tensor of the elements at an address of this process's memory, which is not copied.

    A device that does not read the host's memory gets a copy, and so does XLA on the CPU of memory
    that is not aligned to 64 bytes.

    **This cannot be made safe.** The memory must hold that many elements, in row-major order and
    native byte order, and must stay there unwritten as long as the tensor or anything that shares
    its memory lives. What is known is checked: the address is not 0 and aligned, and a pointer's
    ``data_size`` is that of the type. Nothing keeps the memory alive, nor does a pointer that is
    given; keep a reference, or make a copy with ``backend_copy`` at once.

    Raises: ``OptionError`` for an address or a data size that cannot be right.

    >>> array = np.array([1, 2, 3], dtype=np.int16)
    >>> dn.from_pointer(array.ctypes.data, "s16", (3,)).to_list()
    [1, 2, 3]
    """
    if unknown:
        refuse_options("from_pointer", unknown)
    if isinstance(pointer, Pointer):
        address, size = pointer.address, pointer.data_size
    else:
        address, size = pointer, None
    return _core.from_pointer(address, size, dtype, shape, names, backend)
