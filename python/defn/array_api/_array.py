"""The array of the standard: a tensor that operators may rebind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Never

import defn as dn
from defn.array_api import _promotion
from defn.array_api._promotion import (
    as_dtype,
    default_dtype,
    integer_range,
    promote,
    standard_name,
    with_number,
)
from defn.array_api._sharing import Part, change, share

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import EllipsisType, ModuleType
    from weakref import WeakValueDictionary

    from defn import DType, Tensor

__all__ = [
    "Array",
    "convert",
    "floor_quotient",
    "number_or_array",
    "operands",
    "require",
    "to_device",
    "wrap",
]

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

Number = bool | int | float | complex


def wrap(tensor: Tensor) -> Array:
    """The array of a tensor."""
    array = object.__new__(Array)
    array._tensor = tensor
    array._part = array._parts = None
    return array


def require(function: str, array: Array, kinds: frozenset[DType]) -> Tensor:
    """The tensor of an array, whose data type must be of a kind."""
    if not isinstance(array, Array):
        raise TypeError(
            f"{function}: {type(array).__name__} is not an array of this namespace; use asarray"
        )
    if array.dtype not in kinds:
        raise TypeError(
            f"{function}: the array has data type {standard_name(array.dtype)}, it must be "
            f"{_kind_names(kinds)}"
        )
    return array._tensor


def convert(tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor in a data type; the tensor itself if it has it."""
    return tensor if tensor.dtype == dtype else dn.as_type(tensor, dtype)


def plain(value: Any) -> Any:
    """A number of NumPy as Python's, which has no data type of its own; other values as they are.

    ``np.float64`` is a ``float`` in any case, so that the other numbers are treated alike.
    """
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def number_or_array(value: object) -> bool:
    """Whether an operator takes a value."""
    return isinstance(value, (Array, Number)) or isinstance(plain(value), Number)


def operands(
    function: str, left: Array | Number, right: Array | Number, kinds: frozenset[DType]
) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of their common data type, which must be of a kind.

    One may be a Python number, which takes the data type of the other.
    """
    if isinstance(left, Array):
        first = require(function, left, kinds)
        if isinstance(right, Array):
            second = require(function, right, kinds)
            if first.dtype == second.dtype:
                return first, second
            dtype = promote(first.dtype, second.dtype, function)
            return convert(first, dtype), convert(second, dtype)
        return _with_number(function, first, right)
    if isinstance(right, Array):
        second, first = _with_number(function, require(function, right, kinds), left)
        return first, second
    raise TypeError(f"{function}: one operand must be an array of this namespace; use asarray")


def _with_number(function: str, tensor: Tensor, number: Any) -> tuple[Tensor, Tensor]:
    number = plain(number)
    if not isinstance(number, Number):
        raise TypeError(
            f"{function}: {type(number).__name__} is neither an array of this namespace nor a "
            "Python number; use asarray"
        )
    dtype = with_number(tensor.dtype, number, function)
    return convert(tensor, dtype), dn.tensor(number, dtype=_checked(function, number, dtype))


def _checked(function: str, number: Number, dtype: DType) -> DType:
    """The data type, which must have room for an integer."""
    if dtype in _promotion.INTEGER and not isinstance(number, bool):
        low, high = integer_range(dtype)
        if not low <= number <= high:  # pyright: ignore[reportOperatorIssue]
            raise OverflowError(
                f"{function}: {number} does not fit {standard_name(dtype)}, it must be in "
                f"{low}..{high}"
            )
    return dtype


def _kind_names(kinds: frozenset[DType]) -> str:
    names = {
        _promotion.BOOL: "bool",
        _promotion.INTEGER: "an integer data type",
        _promotion.INTEGER_OR_BOOL: "an integer data type or bool",
        _promotion.REAL_FLOATING: "a real-valued floating-point data type",
        _promotion.COMPLEX: "a complex floating-point data type",
        _promotion.FLOATING: "a floating-point data type",
        _promotion.REAL: "a real-valued data type",
        _promotion.NUMERIC: "a numeric data type",
    }
    return names[kinds]


def to_device(tensor: Tensor, device: Any) -> Tensor:
    """The tensor on a device: ``"cpu"``, or a device or a backend of the package."""
    if device is None or tensor.is_traced or tensor.backend == device:
        return tensor
    try:
        return dn.backend_copy(tensor, device)
    except dn.BackendError as error:
        raise ValueError(f"device: {error}") from error


def floor_quotient(a: Tensor, b: Tensor) -> Tensor:
    """The quotient rounded down. Where an operand is infinite, Python's would be NaN or -1."""
    quotient = a // b
    if a.dtype in _promotion.INTEGER:
        return quotient
    is_infinite = dn.is_infinity(a) | dn.is_infinity(b)
    return dn.select(is_infinite, dn.floor(a / b), quotient)


def _binary(name: str, operator: str, fun: Callable[..., Tensor], kinds: frozenset[DType]) -> Any:
    def forward(self: Array, other: Any, /) -> Array:
        if not number_or_array(other):
            return NotImplemented
        return wrap(fun(*operands(operator, self, other, kinds)))

    def reflected(self: Array, other: Any, /) -> Array:
        if not number_or_array(other):
            return NotImplemented
        return wrap(fun(*operands(operator, other, self, kinds)))

    def in_place(self: Array, other: Any, /) -> Array:
        if not number_or_array(other):
            return NotImplemented
        self._must_not_be_traced(f"{operator}=", f"x = x {operator} y")
        result = fun(*operands(f"{operator}=", self, other, kinds))
        if result.dtype != self.dtype or result.shape != self.shape:
            raise TypeError(
                f"{operator}=: the result has shape {result.shape} and data type "
                f"{standard_name(result.dtype)}, the array has {self.shape} and "
                f"{standard_name(self.dtype)}; write x = x {operator} y"
            )
        change(self, result)
        return self

    for prefix, method in (("", forward), ("r", reflected), ("i", in_place)):
        method.__name__ = f"__{prefix}{name}__"
        method.__qualname__ = f"Array.{method.__name__}"
    return forward, reflected, in_place


class Array:
    """An array of the standard, over a tensor.

    ``dn.array_api.asarray`` makes it of a tensor without a copy, and ``dn.tensor`` takes it.
    Operators and functions take arrays and at most one Python number, and promote by the standard's
    tables. Assignments ``x[index] = value`` and ``x += y`` put a new tensor in place of the old
    one. As in NumPy they show in the arrays of which ``x`` is a part, such as ``z`` for
    ``x = z[1:]``, and in the parts of ``x``; other arrays of the old tensor keep it. A traced array
    refuses them.

    >>> import defn.array_api as xp
    >>> x = xp.asarray([1.0, 2.0, 3.0])
    >>> x[0] = 5.0
    >>> x += 1.0
    >>> x
    Array([6., 3., 4.], dtype=float64)
    """

    __slots__ = ("__weakref__", "_part", "_parts", "_tensor")
    _tensor: Tensor
    # Which part of another array this is, and the parts of this one that are in use.
    _part: Part | None
    _parts: WeakValueDictionary[int, Array] | None

    # An array may change, so that it has no hash. NumPy's operators give way to ours.
    __hash__: None = None  # type: ignore[assignment]
    __array_priority__ = 2000

    def __init__(self, *_: object) -> None:
        raise TypeError("Array: arrays are made by functions such as asarray")

    # Attributes.

    @property
    def dtype(self) -> DType:
        """The data type of the elements."""
        return self._tensor.dtype

    @property
    def device(self) -> Any:
        """The device that has the elements, as ``to_device`` takes it."""
        return dn.default_backend() if self._tensor.is_traced else self._tensor.backend

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._tensor.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._tensor.shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._tensor.size

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self._tensor.nbytes

    @property
    def T(self) -> Array:  # noqa: N802
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"T: the array has {self.ndim} axes, it must have 2; use permute_dims")
        return self.mT

    @property
    def mT(self) -> Array:  # noqa: N802
        """The array with its last two axes exchanged."""
        part = Part(self, lambda whole: whole.mT, lambda _, part: part.mT)
        return share(wrap(self._tensor.mT), part)

    # Numbers.

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype not in _promotion.INTEGER:
            raise TypeError(
                f"index: the array has data type {standard_name(self.dtype)}, it must be an "
                "integer data type"
            )
        return self._scalar("index").__index__()

    def _scalar(self, function: str) -> Tensor:
        if self.ndim:
            raise TypeError(f"{function}: the array has shape {self.shape}, it must be ()")
        if function in ("int", "float") and self.dtype in _promotion.COMPLEX:
            raise TypeError(f"{function}: the array is complex; use real")
        return self._tensor

    def __len__(self) -> int:
        return len(self._tensor)

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iter: the array has no axis to iterate over")
        return (self[i] for i in range(self.shape[0]))

    # Indexing.

    def __getitem__(
        self, key: int | slice | EllipsisType | tuple[Any, ...] | Array | None, /
    ) -> Array:
        tensor, inside = self._key(key)
        found = wrap(tensor[inside])
        # NumPy's views: of positions, slices and new axes; without axes it gives numbers instead.
        if _is_basic(key) and (found.ndim or ... in (key if isinstance(key, tuple) else (key,))):
            part = Part(
                self,
                lambda whole: whole[inside],
                lambda whole, part: whole.at[inside].set(part).reshape(whole.shape),
                key,
            )
            share(found, part)
        return found

    def __setitem__(self, key: Any, value: Any, /) -> None:
        self._must_not_be_traced("x[index] =", "dn.put_slice, or x.at[index].set of its tensor")
        part = value._part if isinstance(value, Array) else None
        if part is not None and part.whole is self and _is_basic(key) and part.key == key:
            # The end of `x[index] += y`, which has changed the part and with it the whole.
            return
        if isinstance(value, Array):
            common = promote(self.dtype, value.dtype, "x[index] =")
            if common != self.dtype:
                raise TypeError(
                    f"x[index] =: the value has data type {standard_name(value.dtype)}, the array "
                    f"{standard_name(self.dtype)}; convert the value with astype"
                )
            new = convert(value._tensor, self.dtype)
        elif isinstance(value := plain(value), Number):
            if with_number(self.dtype, value, "x[index] =") != self.dtype:
                raise TypeError(
                    f"x[index] =: the value is complex, the array {standard_name(self.dtype)}"
                )
            new = dn.tensor(value, dtype=_checked("x[index] =", value, self.dtype))
        else:
            new = dn.tensor(value, dtype=self.dtype)
        tensor, key = self._key(key)
        changed = tensor.at[key].set(new)
        change(self, changed.reshape(self.shape))

    def _key(self, key: Any) -> tuple[Tensor, Any]:
        """The tensor and the key that index it as the standard says."""
        parts = key if isinstance(key, tuple) else (key,)
        keys = [part._tensor if isinstance(part, Array) else part for part in parts]
        tensor = self._tensor
        if len(keys) == 1 and isinstance(keys[0], dn.Tensor) and keys[0].dtype == dn.bool:
            mask = keys[0]
            if mask.ndim > tensor.ndim:
                raise IndexError(
                    f"x[mask]: the mask has {mask.ndim} axes, the array has {tensor.ndim}"
                )
            if mask.ndim == 0:
                # A mask without axes selects all or nothing, along a new first axis.
                return dn.new_axis(tensor, 0), dn.reshape(mask, (1,))
            sizes = tensor.shape[: mask.ndim]
            if 0 in mask.shape and all(m in (n, 0) for m, n in zip(mask.shape, sizes, strict=True)):
                # NumPy's masks without elements select nothing, whatever the size of the array.
                return tensor, dn.broadcast(dn.tensor(False), sizes)
        return tensor, tuple(keys) if isinstance(key, tuple) else keys[0]

    def _must_not_be_traced(self, operation: str, instead: str) -> None:
        if self._tensor.is_traced:
            raise dn.TraceError(f"{operation}: a traced array never changes; use {instead}")

    # Operators.

    def __abs__(self) -> Array:
        return wrap(dn.abs(require("abs", self, _promotion.NUMERIC)))

    def __neg__(self) -> Array:
        return wrap(dn.negate(require("negative", self, _promotion.NUMERIC)))

    def __pos__(self) -> Array:
        return wrap(require("positive", self, _promotion.NUMERIC))

    def __invert__(self) -> Array:
        return wrap(~require("bitwise_invert", self, _promotion.INTEGER_OR_BOOL))

    __add__, __radd__, __iadd__ = _binary("add", "+", dn.add, _promotion.NUMERIC)
    __sub__, __rsub__, __isub__ = _binary("sub", "-", dn.subtract, _promotion.NUMERIC)
    __mul__, __rmul__, __imul__ = _binary("mul", "*", dn.multiply, _promotion.NUMERIC)
    __truediv__, __rtruediv__, __itruediv__ = _binary(
        "truediv", "/", dn.divide, _promotion.FLOATING
    )
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary(
        "floordiv", "//", floor_quotient, _promotion.REAL
    )
    __mod__, __rmod__, __imod__ = _binary("mod", "%", lambda a, b: a % b, _promotion.REAL)
    __pow__, __rpow__, __ipow__ = _binary("pow", "**", dn.pow, _promotion.NUMERIC)
    __matmul__, __rmatmul__, __imatmul__ = _binary(
        "matmul", "@", lambda a, b: a @ b, _promotion.NUMERIC
    )
    __and__, __rand__, __iand__ = _binary("and", "&", dn.bitwise_and, _promotion.INTEGER_OR_BOOL)
    __or__, __ror__, __ior__ = _binary("or", "|", dn.bitwise_or, _promotion.INTEGER_OR_BOOL)
    __xor__, __rxor__, __ixor__ = _binary("xor", "^", dn.bitwise_xor, _promotion.INTEGER_OR_BOOL)
    __lshift__, __rlshift__, __ilshift__ = _binary(
        "lshift", "<<", dn.left_shift, _promotion.INTEGER
    )
    __rshift__, __rrshift__, __irshift__ = _binary(
        "rshift", ">>", dn.right_shift, _promotion.INTEGER
    )
    __eq__, *_ = _binary("eq", "==", dn.equal, _promotion.ALL)
    __ne__, *_ = _binary("ne", "!=", dn.not_equal, _promotion.ALL)
    __lt__, *_ = _binary("lt", "<", dn.less, _promotion.REAL)
    __le__, *_ = _binary("le", "<=", dn.less_equal, _promotion.REAL)
    __gt__, *_ = _binary("gt", ">", dn.greater, _promotion.REAL)
    __ge__, *_ = _binary("ge", ">=", dn.greater_equal, _promotion.REAL)

    # Exchange with the package and with other libraries.

    @property
    def __defn_tensor__(self) -> Tensor:
        return self._tensor

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        import defn.array_api

        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(
                f"__array_namespace__: the version {api_version!r} is none of {', '.join(VERSIONS)}"
            )
        return defn.array_api

    def to_device(self, device: Any, /, *, stream: None = None) -> Array:
        """The array on a device: one of ``__array_namespace_info__().devices()``."""
        if stream is not None:
            raise ValueError("to_device: no device here has streams; stream must be None")
        return wrap(to_device(self._tensor, device))

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy is None and (max_version is None or max_version[0] < 1):
            # Before version 1 a consumer cannot be told that elements must not be written.
            copy = True
        return self._tensor.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._tensor.__array__(dtype, copy=copy)  # pyright: ignore[reportAttributeAccessIssue]

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self._tensor,)

    def __repr__(self) -> str:
        if self._tensor.is_traced or self._tensor.is_template:
            return f"Array(shape={self.shape}, dtype={standard_name(self.dtype)})"
        elements = _elements(self._tensor)
        return f"Array({elements}, dtype={standard_name(self.dtype)})"

    def __format__(self, spec: str, /) -> str:
        if not spec or self.ndim or self._tensor.is_traced:
            return super().__format__(spec)
        return format(self._tensor.to_number(), spec)

    def __getattr__(self, name: str) -> Never:
        import defn.array_api

        text = f"{name}: arrays of the standard have no attribute of this name"
        if name in defn.array_api.__all__:
            text += f"; use xp.{name}(x)"
        raise AttributeError(text)


def _is_basic(key: Any) -> bool:
    """Whether a key has positions, slices, ``...`` and new axes alone."""
    parts = map(plain, key if isinstance(key, tuple) else (key,))
    return all(
        part is None or part is ... or isinstance(part, slice) or type(part) is int
        for part in parts
    )


def _elements(tensor: Tensor) -> str:
    import numpy as np

    return np.array2string(tensor.to_numpy(), separator=", ", prefix="Array(")


def _flatten(array: Array) -> tuple[tuple[Tensor], None]:
    return (array._tensor,), None


def _unflatten(_: None, children: Any) -> Array:
    return wrap(children[0])


dn.register_container(Array, _flatten, _unflatten)


def new_array(value: Any, dtype: Any, device: Any, copy: bool | None) -> Array:
    """See ``asarray``."""
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Array):
        moved = to_device(value._tensor, device)
        if copy is not True and moved is value._tensor and wanted in (None, value.dtype):
            return value
        value = value._tensor
    if isinstance(value, dn.Tensor):
        tensor = value
    elif isinstance(value, Number):
        kind = next(kind for kind in (bool, int, float, complex) if isinstance(value, kind))
        found = default_dtype(kind) if wanted is None else wanted
        _number_fits(value, found)
        return wrap(to_device(dn.tensor(value, dtype=_checked("asarray", value, found)), device))
    else:
        tensor = _of_nested(value, copy)
    if wanted is not None and tensor.dtype != wanted:
        if copy is False:
            raise ValueError(
                f"asarray: a conversion to {standard_name(wanted)} needs a copy; copy is False"
            )
        tensor = dn.as_type(tensor, wanted)
    moved = to_device(tensor, device)
    if copy is False and moved is not tensor:
        raise ValueError("asarray: another device needs a copy; copy is False")
    return wrap(moved)


def _number_fits(number: Number, dtype: DType) -> None:
    whole = dtype in _promotion.INTEGER
    if whole and isinstance(number, (float, complex)):
        raise TypeError(f"asarray: {number!r} is not an integer; the data type is {dtype}")
    if isinstance(number, complex) and dtype not in _promotion.COMPLEX:
        raise TypeError(f"asarray: {number!r} is complex; the data type is {dtype}")


def _of_nested(value: Any, copy: bool | None) -> Tensor:
    import numpy as np

    exported = any(hasattr(value, name) for name in ("__array__", "__dlpack__", "__buffer__"))
    if exported or isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return dn.tensor(value, copy=copy)
        except dn.OptionError as error:
            raise ValueError(f"asarray: {error}") from error
    if copy is False:
        raise ValueError("asarray: Python numbers are always copied; copy must not be False")
    if any(isinstance(leaf, Array) and leaf._tensor.is_traced for leaf in _leaves(value)):
        return dn.stack([_of_nested(part, None) for part in value])
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"asarray: {type(value).__name__} does not consist of numbers")
    kind = {"f": float, "c": complex}.get(array.dtype.kind)
    if kind is None or default_dtype(kind) == array.dtype or not _are_numbers(value):
        return dn.tensor(array)
    return dn.tensor(array, dtype=default_dtype(kind))


def _are_numbers(value: Any) -> bool:
    """Whether there are numbers of Python alone, which have no data type."""
    return all(type(leaf) in (bool, int, float, complex) for leaf in _leaves(value))


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value
