"""Names that users bring from NumPy, JAX and PyTorch, and the ones that they have here.

Nothing in this module runs unless a name was wrong: functions collect unknown options in
``**unknown`` and call :func:`refuse_options` if there are any; unknown names of the package come
through its ``__getattr__``.
"""

from __future__ import annotations

import inspect
import operator
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from defn.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PACKAGE = os.path.dirname(__file__) + os.sep

# What to write here for a function or method that has another name elsewhere.
FOREIGN_NAMES = {
    "absolute": "abs",
    "allclose": "all_close",
    "amax": "reduce_max",
    "amin": "reduce_min",
    "angle": "phase",
    "arange": "iota",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "tensor",
    "as_tensor": "tensor",
    "asarray": "tensor",
    "astype": "as_type",
    "bitwise_invert": "bitwise_not",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "broadcast_to": "broadcast",
    "cast": "as_type",
    "cat": "concatenate",
    "clamp": "clip",
    "concat": "concatenate",
    "conj": "conjugate",
    "cov": "covariance",
    "cummax": "cumulative_max",
    "cummin": "cumulative_min",
    "cumprod": "cumulative_product",
    "cumsum": "cumulative_sum",
    "cumulative_prod": "cumulative_product",
    "custom_jvp": "custom_grad",
    "custom_vjp": "custom_grad",
    "data_ptr": "to_pointer",
    "detach": "stop_grad",
    "device_get": "backend_transfer",
    "device_put": "backend_transfer, or backend_copy which keeps the source",
    "diag": "make_diagonal or take_diagonal",
    "diagonal": "take_diagonal",
    "div": "divide",
    "dynamic_slice": "slice",
    "dynamic_update_slice": "put_slice",
    "expand": "broadcast",
    "expand_dims": "new_axis",
    "flip": "reverse",
    "floor_divide": "quotient, or // which floors",
    "fori_loop": "for_",
    "from_dlpack": "tensor",
    "from_numpy": "tensor",
    "frombuffer": "from_binary",
    "fromfile": "load",
    "fromstring": "from_binary",
    "full": "broadcast, as in broadcast(value, shape)",
    "full_like": "fill",
    "ge": "greater_equal",
    "gt": "greater",
    "hstack": "concatenate",
    "identity": "eye",
    "index_add": "indexed_add",
    "index_put": "indexed_put",
    "index_select": "take",
    "invert": "bitwise_not",
    "isinf": "is_infinity",
    "isnan": "is_nan",
    "le": "less_equal",
    "load_file": "load",
    "lt": "less",
    "make_jaxpr": "debug_expr",
    "maximum": "max",
    "minimum": "min",
    "mod": "remainder, or % which floors",
    "moveaxis": "transpose",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negate",
    "negative": "negate",
    "numpy": "to_numpy",
    "ones": "broadcast, as in broadcast(1.0, shape)",
    "ones_like": "fill, as in fill(x, 1)",
    "permute": "transpose",
    "permute_dims": "transpose",
    "power": "pow",
    "prod": "product",
    "ravel": "flatten",
    "reciprocal": "divide, as in 1 / x",
    "rem": "remainder",
    "rint": "round",
    "save_file": "save",
    "savez": "save",
    "savez_compressed": "save, with compressed=True",
    "scatter": "indexed_put",
    "scatter_add": "indexed_add",
    "set_printoptions": "options, as in options(print_limit=100)",
    "square": "multiply, as in x * x",
    "std": "standard_deviation",
    "stop_gradient": "stop_grad",
    "sub": "subtract",
    "swapaxes": "transpose",
    "switch": "cond",
    "take_along_dim": "take_along_axis",
    "tensordot": "dot",
    "to_device": "backend_transfer",
    "tobytes": "to_binary",
    "tolist": "to_list",
    "true_divide": "divide",
    "unsqueeze": "new_axis",
    "var": "variance",
    "view": "reshape",
    "vstack": "concatenate",
    "where": "select",
    "while_loop": "while_",
    "zeros": "broadcast, as in broadcast(0.0, shape)",
    "zeros_like": "fill, as in fill(x, 0)",
}


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""The default of a parameter that has none, where its absence is explained."""

# What an option of another library is called here; the first name that the function has is meant.
_FOREIGN_OPTIONS = {
    "axis": ("axes",),
    "axes": ("axis",),
    "dim": ("axes", "axis"),
    "dims": ("axes", "axis"),
    "keepdim": ("keep_axes", "keep_axis"),
    "keepdims": ("keep_axes", "keep_axis"),
    "keep_axis": ("keep_axes",),
    "keep_axes": ("keep_axis",),
    "descending": ("direction",),
    "kind": ("stable",),
    "correction": ("ddof",),
    "unbiased": ("ddof",),
    "type": ("dtype",),
    "name": ("names",),
    "num": ("n",),
    "offset": ("k",),
    "k": ("offset",),
    "static_argnames": ("static",),
    "static_argnums": ("static",),
    "donate_argnums": ("donate",),
    "has_aux": ("transform",),
    "equal_nans": ("equal_nan",),
    "new_sizes": ("shape",),
}


def caller() -> str:
    """The innermost file and line outside this package, as the last line of a message."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    # Where a thread of the package's begins there is no line of the user's.
    if frame is None or frame.f_globals.get("__name__") == "threading":
        return ""
    return f"\n  at {frame.f_code.co_filename}:{frame.f_lineno}"


def option_error(message: str) -> OptionError:
    """An ``OptionError`` that ends with the user's line."""
    return OptionError(message + caller())


def unknown_options(function: str, unknown: Iterable[str], known: Iterable[str]) -> OptionError:
    """The error for options that a function does not have; it names those that it has."""
    given = list(unknown)
    names = [name for name in known if name not in given]
    meant = [
        next(ours for ours in _FOREIGN_OPTIONS[name] if ours in names)
        for name in given
        if any(ours in names for ours in _FOREIGN_OPTIONS.get(name, ()))
    ]
    plural = "s" if len(given) > 1 else ""
    text = f"{function}: unknown option{plural} " + ", ".join(f'"{name}"' for name in given)
    text += f", it takes {', '.join(names)}" if names else ", it takes no options"
    if meant:
        text += f"; use {', '.join(meant)}"
    return option_error(text)


def refuse_options(function: str, unknown: Mapping[str, object]) -> NoReturn:
    """Raise for options that a public function does not have; ``random.key`` is one of a module."""
    import defn

    *_, name = function.split(".")
    public = operator.attrgetter(function)(defn)
    parameters = inspect.signature(public).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    raise unknown_options(name, unknown, known)


def refuse_one_operand(function: str, ours: str) -> NoReturn:
    """Raise for a function of two tensors that is called as the reduction of its name elsewhere."""
    raise option_error(
        f"{function}: one tensor or unknown options are given, two tensors are required; "
        f"use {ours} for the elements of one tensor"
    )


def unknown_name(where: str, name: str) -> UnknownNameError:
    """The error for a name that the package or its tensors do not have."""
    ours = FOREIGN_NAMES.get(name)
    text = f"{name}: {where} of this name"
    if ours is not None:
        text += f"; use {ours}"
    error = UnknownNameError(text + caller())
    error.name = name
    return error
