"""Tensors in files and bytes: NumPy's formats, safetensors, and ``.defn``, which loses nothing.

``docs/formats.md`` says what each format keeps, and specifies ``.defn`` byte by byte.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from defn import _core, _files
from defn._names import option_error
from defn._public import forwards, public

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
) -> Any:
    """Read a file: ``.npy``, ``.npz``, ``.safetensors``, or ``.defn``, which ``save`` writes.

    ``source`` is a path or a file that is open for reading bytes. Without ``format``, the first
    bytes of the file determine the format. The result for an ``.npy`` file is a tensor, for
    ``.npz`` and ``.safetensors`` a dict of tensors by name, for ``.defn`` the saved value. NumPy
    does not write which type of ``ml_dtypes`` a file holds: elements of two bytes are read as bf16,
    others need ``dtype``.

    Raises: ``FormatError`` for a file that is damaged or of an unknown format, ``DTypeError`` for
    elements without a corresponding dtype, ``OutOfMemoryError`` for an archive that expands to more
    than the available memory, and the errors of opening the file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "pair.npz")
    >>> dn.save(path, {"a": dn.tensor([1, 2]), "b": dn.tensor(0.5)})
    >>> dn.load(path)["a"].to_list()
    [1, 2]
    """
    # The content is more reliable than the suffix, which may be anything.
    chosen = None if format is None else _format("load", source, format)
    return _core.load("load", _files.read(source), chosen, dtype, backend)


@public
def save(
    target: str | os.PathLike[str] | BinaryIO,
    value: Any,
    *,
    format: Format | None = None,
    compressed: bool = False,
) -> None:
    """Write a file in the format of its suffix: ``.npy``, ``.npz``, ``.safetensors`` or ``.defn``.

    ``target`` is a path, or a file that is open for writing bytes, which needs ``format``. An
    ``.npy`` file holds one tensor, ``.npz`` and ``.safetensors`` a dict of tensors by name,
    ``.defn`` any container. Only ``.defn`` keeps axis names; in the other formats, vectorized axes
    become ordinary axes. ``compressed`` deflates an ``.npz`` file. Nothing is written if the value
    cannot be saved.

    Raises: ``OptionError`` if the format is missing or unknown, ``ContainerError`` for a value and
    ``DTypeError`` for elements that the format cannot hold, and the errors of opening the file.

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
    _files.write(target, _core.save(value, chosen, compressed))


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
def serialize(value: Any) -> bytes:
    """Write a tensor or a container of tensors to bytes, which ``deserialize`` reads.

    Dtypes, shapes, names, vectorized axes and the structure of containers are kept, and so are
    static values: ``None``, bools, strings, and fields marked ``Static``. Numbers and arrays become
    tensors. Container classes are stored by name.

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
