"""Where tensors are: copying and moving them, freeing them, and the backend that new ones get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from defn import _core
from defn._names import refuse_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from defn.typing import BackendLike

    T = TypeVar("T")

__all__ = [
    "backend_copy",
    "backend_deallocate",
    "backend_transfer",
    "default_backend",
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


def backend_deallocate(value: Any) -> Any:
    """Free the elements of a tensor now, rather than when nobody holds it any more.

    Returns ``"ok"``, or ``"already_deallocated"``; for a container, a container of these. Using
    the tensor afterwards raises. Tensors that share its memory, such as its reshaped self, keep
    it, and so do NumPy arrays made of it.

    Raises: ``TraceError`` for a traced tensor or a template.

    >>> x = dn.tensor([1, 2, 3])
    >>> dn.backend_deallocate(x), dn.backend_deallocate(x)
    ('ok', 'already_deallocated')
    >>> x + 1
    Traceback (most recent call last):
    defn.BackendError: add: the tensor's memory was freed; keep a copy, or do not use it after...
    """
    return _core.backend_deallocate(value)


def default_backend(backend: BackendLike | None = None) -> BackendLike:
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
    return _core.default_backend(backend)


def with_default_backend(backend: BackendLike, fun: Callable[[], T], /) -> T:
    """Call a function while another backend is the default one, and return what it returns.

    The default backend is put back also when the function raises. ``dn.options(backend=...)`` is
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


def to_template(value: Any) -> Any:
    """The types of tensors, without their elements: templates of the same dtype, shape, names and
    vectorized axes.

    A container gives a container. Of a traced tensor it is a template, too.

    Raises: ``ContainerError`` for what is neither a tensor nor a container.

    >>> dn.to_template({"x": dn.tensor([1.0, 2.0], names=["row"])})
    {'x': Tensor<
      f32[row: 2]
    >}
    """
    return _core.to_template(value)
