"""NumPy's functions on tensors: they accept tensors with values, and refuse traced ones."""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING

from defn import _core
from defn._names import caller, caller_frame, numpy_name
from defn.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FrameType
    from typing import Any, NoReturn

# These only convert a tensor to an array, so no function of ours replaces them in a definition.
_CONVERSIONS = frozenset({"array", "asanyarray", "asarray", "ascontiguousarray", "copy"})
_LOADS = frozenset(
    {"LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF"}
)


def array_function(
    tensor: _core.Tensor,
    function: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """``Tensor.__array_function__``: call NumPy's function on the arrays of tensors.

    Raises: ``TraceError`` for traced tensors, which have no elements yet.
    """
    name = function.__name__
    if name in ("ndim", "shape", "size") and len(args) == 1 and not kwargs:
        return getattr(args[0], name)
    traced: list[_core.Tensor] = []
    arrays, options = _converted(args, traced), _converted(dict(kwargs), traced)
    if traced:
        _refuse(traced[0], name, function.__module__)
    return function(*arrays, **options)


def _converted(value: Any, traced: list[_core.Tensor]) -> Any:
    """The arguments with arrays in place of tensors; appends traced tensors to the list."""
    if isinstance(value, _core.Tensor):
        if value.is_traced:
            traced.append(value)
            return value
        return value.to_numpy()
    if type(value) in (list, tuple):
        return type(value)(_converted(item, traced) for item in value)
    if type(value) is dict:
        return {key: _converted(item, traced) for key, item in value.items()}
    return value


def refuse_traced(tensor: _core.Tensor) -> None:
    """Raise if a function of NumPy, SciPy or ``math`` asks a traced tensor for its elements. The
    message names it, and our equivalent, if the caller's code shows which function it is.
    """
    name = _called(caller_frame())
    if name is not None and name not in _CONVERSIONS and numpy_name(name) is not None:
        _refuse(tensor, name, "numpy")


def _refuse(tensor: _core.Tensor, name: str, module: str) -> NoReturn:
    # NumPy's main functions have the module "numpy", others have "numpy.linalg".
    ours = numpy_name(f"linalg.{name}" if module.endswith("linalg") else name)
    way = f"use {ours}" if ours else "return it from the definition, and call NumPy there"
    raise TraceError(
        f"{name}: another library's function is called with the tensor {_core.type_text(tensor)}, "
        f"which is being traced and has no values yet; {way}{caller()}"
    )


def _called(frame: FrameType | None) -> str | None:
    """The name of the function that a frame is calling: ``sin`` of ``np.sin(x)``."""
    if frame is None:
        return None
    here = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = here
    if line is None or end_line is None or column is None or end_column is None:
        return None
    # The function is the longest load that starts where the call starts and ends before it.
    name, longest = None, (0, 0)
    for made in dis.get_instructions(frame.f_code):
        at = made.positions
        if made.opname not in _LOADS or at is None or (at.lineno, at.col_offset) != (line, column):
            continue
        end = (at.end_lineno or 0, at.end_col_offset or 0)
        if longest < end < (end_line, end_column):
            name, longest = str(made.argval), end
    return name
