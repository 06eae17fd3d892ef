"""Tensors in files and bytes: NumPy's formats, safetensors, and ``.defn``, which loses nothing.

``docs/formats.md`` says what each format keeps, and specifies ``.defn`` byte by byte.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from defn import _core, _files
from defn._names import caller, option_error
from defn._public import forwards, public
from defn._tree_paths import path_text, paths
from defn.errors import ContainerError, DTypeError, FormatError, OutOfMemoryError

if TYPE_CHECKING:
    from typing import Any, BinaryIO, Literal, TypeAlias

    from defn._core import Tensor
    from defn.typing import BackendLike, DTypeLike

    Format: TypeAlias = Literal["npy", "npz", "safetensors", "defn"]
    Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = ["deserialize", "load", "load_numpy", "save", "serialize"]

_FORMATS = ("npy", "npz", "safetensors", "defn")


def _format(function: str, target: Any, name: Any) -> Any:
    """The named format, else that of the path's suffix; None without either."""
    required = '"npy", "npz", "safetensors" or "defn"'
    if name is not None:
        if name not in _FORMATS:
            raise option_error(f"{function}: the format is {name!r}, it must be {required}")
        return name
    if not isinstance(target, (str, os.PathLike)):
        return None
    suffix = os.path.splitext(os.fspath(target))[1].lstrip(".")
    return suffix if suffix in _FORMATS else None


@public
def load(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: Format | None = None,
    dtype: DTypeLike | None = None,
    backend: BackendLike | None = None,
    like: Any = None,
) -> Any:
    """Read a file: ``.npy``, ``.npz``, ``.safetensors``, or ``.defn``, which ``save`` writes.

    ``source`` is a path or a file that is open for reading bytes. Without ``format``, the first
    bytes of the file determine the format. The result for an ``.npy`` file is a tensor, for
    ``.npz`` and ``.safetensors`` a dict of tensors by name, for ``.defn`` the saved value. NumPy
    does not write which type of ``ml_dtypes`` a file holds: elements of two bytes are read as bf16,
    others need ``dtype``.

    ``like`` is a container, such as the state that a program starts with, or one of templates. The
    content must have its structure and static values, and each tensor the dtype, shape and
    vectorized axes of the tensor in its place. A number in ``like`` stands for a number or a
    scalar. The result has the class and the order of keys of ``like``, and the names of its axes
    where the file has none.

    Raises: ``FormatError`` for a file that is damaged or of an unknown format, ``DTypeError`` for
    elements without a corresponding dtype, ``OutOfMemoryError`` for an archive that expands to more
    than the available memory, ``ContainerError`` for a content that does not fit ``like``, with the
    path of the first difference, and the errors of opening the file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "pair.npz")
    >>> dn.save(path, {"a": dn.tensor([1, 2]), "b": dn.tensor(0.5)})
    >>> dn.load(path)["a"].to_list()
    [1, 2]
    """
    # The content is more reliable than the suffix, which may be anything.
    chosen = None if format is None else _format("load", source, format)
    return read("load", source, chosen, dtype, backend, like)


def read(
    op: str,
    source: str | os.PathLike[str] | BinaryIO,
    chosen: Format | None,
    dtype: DTypeLike | None,
    backend: BackendLike | None,
    like: Any,
) -> Any:
    """The value in a file, checked against ``like``; errors name the path."""
    data = _files.read(source)
    try:
        value = _core.load("load", data, chosen, dtype, backend)
        return value if like is None else _fitted(like, value)
    except (FormatError, ContainerError, DTypeError, OutOfMemoryError) as error:
        text = str(error).partition(": ")[2]
        place = f"in {os.fspath(source)}, " if isinstance(source, (str, os.PathLike)) else ""
        error.args = (f"{op}: {place}{text}", *error.args[1:])
        raise


def _fitted(like: Any, value: Any) -> Any:
    """A value with the structure of ``like``, whose leaves have the types of those of ``like``."""
    names = ["like", "content"]
    rows, structure = _core.corresponding_leaves("load", names, like, value)
    leaves: list[Any] = []
    for wanted, found in rows:
        leaf = _fitted_leaf(wanted, found)
        if leaf is None:
            path = path_text(paths(structure)[len(leaves)])
            raise ContainerError(
                f"load: content{path} is {_kind(found)}, like{path} is {_kind(wanted)}, "
                f"both must be of one type; give a container like the one that was saved{caller()}"
            )
        leaves.append(leaf)
    return _core.unflatten_container(structure, leaves)


def _fitted_leaf(wanted: Any, found: Any) -> Any:
    """The leaf that was found if it has the type of the one that is wanted, else None."""
    if isinstance(wanted, (int, float, complex)) and not isinstance(wanted, np.generic):
        is_scalar = isinstance(found, _core.Tensor) and not found.shape
        return found if is_scalar or type(found) is type(wanted) else None
    wanted = _core.to_tensor(wanted)
    kind = (wanted.dtype, wanted.shape, wanted.vectorized_axes)
    if not isinstance(found, _core.Tensor):
        return None
    if kind != (found.dtype, found.shape, found.vectorized_axes):
        return None
    if found.names == wanted.names or not any(wanted.names):
        return found
    return None if any(found.names) else found.rename(wanted.names)


def _kind(leaf: Any) -> str:
    if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, np.generic):
        return f"the {type(leaf).__name__} {leaf!r}"
    return _core.type_text(_core.to_tensor(leaf))


@public
def save(
    target: str | os.PathLike[str] | BinaryIO,
    value: Any,
    *,
    format: Format | None = None,
    compressed: bool = False,
    keep_numbers: bool = False,
) -> None:
    """Write a file in the format of its suffix: ``.npy``, ``.npz``, ``.safetensors`` or ``.defn``.

    ``target`` is a path, or a file that is open for writing bytes, which needs ``format``. An
    ``.npy`` file holds one tensor, ``.npz`` and ``.safetensors`` a dict of tensors by name,
    ``.defn`` any container. Only ``.defn`` keeps axis names; in the other formats, vectorized axes
    become ordinary axes. ``compressed`` deflates an ``.npz`` file. Numbers become tensors of the
    default dtypes; with ``keep_numbers``, a ``.defn`` file keeps Python's ints, floats and complex
    numbers as they are, with all their digits.

    A file is replaced at once: the bytes are written to a temporary file beside it, which is
    renamed when they are on the disk. A program that is killed meanwhile, and a system that stops,
    leave the old content or the new one, never a part. Nothing is written if the value cannot be
    saved.

    Raises: ``OptionError`` if the format is missing or unknown, or does not take an option,
    ``ContainerError`` for a value and ``DTypeError`` for elements that the format cannot hold, and
    the errors of opening the file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> dn.save(path, dn.tensor([1.0, 2.0]))
    >>> np.load(path)
    array([1., 2.], dtype=float32)
    """
    chosen = _format("save", target, format)
    if chosen is None:
        raise option_error(
            "save: no format is given and the name says none, it must end in .npy, .npz, "
            ".safetensors or .defn; pass format="
        )
    if compressed and chosen != "npz":
        raise option_error(f"save: compressed is True for the format {chosen}, only npz takes it")
    if keep_numbers and chosen != "defn":
        raise option_error(
            f"save: keep_numbers is True for the format {chosen}, only defn takes it"
        )
    _files.write(target, _core.save(value, chosen, compressed, keep_numbers))


@public
def load_numpy(
    data: Buffer,
    *,
    dtype: DTypeLike | None = None,
    backend: BackendLike | None = None,
) -> Tensor | dict[str, Tensor]:
    """Read tensors from the bytes of an ``.npy`` or ``.npz`` file.

    The result for ``.npy`` is a tensor, for ``.npz`` a dict of tensors by name. Both byte orders
    and both axis orders are read. ``dtype`` is as in ``load``, which reads files.

    Raises: ``FormatError`` for other or damaged bytes, ``DTypeError`` for elements without a
    corresponding dtype, such as strings and Python objects.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([[1, 2], [3, 4]], dtype=">i2", order="F"))
    >>> dn.load_numpy(file.getvalue())
    Tensor<
      s16[2][2]
      [
        [1, 2],
        [3, 4]
      ]
    >
    """
    # Archives begin with "PK", like every ZIP file.
    chosen = "npz" if bytes(memoryview(data)[:2]) == b"PK" else "npy"
    return _core.load("load_numpy", data, chosen, dtype, backend)


@forwards(_core.serialize)
def serialize(value: Any, *, keep_numbers: bool = False) -> bytes:
    """Write a tensor or a container of tensors to bytes, which ``deserialize`` reads.

    Dtypes, shapes, names, vectorized axes and the structure of containers are kept, and so are
    static values: ``None``, bools, strings, and fields marked ``Static``. Numbers and arrays become
    tensors; with ``keep_numbers``, Python's numbers stay as they are. Container classes are stored
    by name.

    Raises: ``TraceError`` for a traced tensor or a template, ``ContainerError`` for a value that
    cannot be stored, ``BackendError`` for freed elements.

    >>> data = dn.serialize({"w": dn.tensor([1.0, 2.0], names=["in"]), "steps": 3})
    >>> dn.deserialize(data)["w"].names
    ('in',)
    """
    ...


@forwards(_core.deserialize)
def deserialize(data: Buffer, *, backend: BackendLike | None = None) -> Any:
    """Read the tensor or container that ``serialize`` wrote.

    The data contains no code, and nothing is imported: a class in it must be defined in a module
    that is imported already, and be a container or an enumeration.

    Raises: ``FormatError`` for other data, other versions of the format, and damaged data,
    ``ContainerError`` for a class that does not exist or has other fields now.

    >>> dn.deserialize(dn.serialize((dn.tensor(1), None)))
    (Tensor(1, s32), None)
    """
    ...
