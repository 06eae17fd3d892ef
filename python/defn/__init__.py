"""Numerical definitions for Python.

A function is traced once into a typed graph, checked, differentiated, compiled and run.

>>> @dn.defn
... def loss(w, x, y):
...     return dn.mean((x @ w - y) ** 2)
>>> x = dn.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> dn.grad(loss)(dn.tensor([1.0, 1.0]), x, dn.tensor([3.0, 6.0])).to_list()
[3.0, 4.0]
"""

from typing import TYPE_CHECKING

from defn import _core, tree
from defn._core import DType, Tensor
from defn._notebook import attach as _attach_notebook
from defn.about import axes, axis_index, axis_size, bit_size, compatible
from defn.calls import block, optional, runtime_call
from defn.containers import lazy, register_container
from defn.control import (
    associative_scan,
    cond,
    for_,
    hook,
    if_,
    io_call,
    mark,
    print_expr,
    print_value,
    range,
    scan,
    while_,
)
from defn.errors import (
    AxisError,
    BackendError,
    BoundsError,
    CompileError,
    ContainerError,
    ConvergenceError,
    DivisionError,
    DTypeError,
    Error,
    FormatError,
    NonFiniteError,
    OptionError,
    OutOfMemoryError,
    RangeError,
    RecompileWarning,
    ShapeError,
    StreamError,
    TraceError,
    UnknownNameError,
)
from defn.grad import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from defn.jit import (
    Static,
    checks,
    compile,
    debug_expr,
    debug_expr_apply,
    default_options,
    defn,
    deftransform,
    global_default_options,
    jit,
    jit_apply,
    keyword,
    options,
    to_backend,
)
from defn.ops import (
    arrange as _arrange,
)
from defn.ops import (
    create as _create,
)
from defn.ops import (
    elementwise_binary as _elementwise_binary,
)
from defn.ops import (
    elementwise_complex as _elementwise_complex,
)
from defn.ops import (
    elementwise_derived as _elementwise_derived,
)
from defn.ops import (
    elementwise_predicate as _elementwise_predicate,
)
from defn.ops import (
    elementwise_unary as _elementwise_unary,
)
from defn.ops import (
    fold as _fold,
)
from defn.ops import (
    fourier as _fourier,
)
from defn.ops import (
    index as _index,
)
from defn.ops import (
    linalg as _linalg,
)
from defn.ops import (
    missing as _missing,
)
from defn.ops import (
    order as _order,
)
from defn.ops import (
    reduce as _reduce,
)
from defn.ops import (
    search as _search,
)
from defn.ops import (
    sequence as _sequence,
)
from defn.ops import (
    sets as _sets,
)
from defn.ops import (
    shape as _shape,
)
from defn.ops import (
    special as _special,
)
from defn.ops import (
    vectorize as _vectorize,
)
from defn.ops import (
    window as _window,
)
from defn.ops.arrange import *
from defn.ops.create import *
from defn.ops.elementwise_binary import *
from defn.ops.elementwise_complex import *
from defn.ops.elementwise_derived import *
from defn.ops.elementwise_predicate import *
from defn.ops.elementwise_unary import *
from defn.ops.fold import *
from defn.ops.fourier import *
from defn.ops.index import *
from defn.ops.linalg import *
from defn.ops.missing import *
from defn.ops.order import *
from defn.ops.reduce import *
from defn.ops.search import *
from defn.ops.sequence import *
from defn.ops.sets import *
from defn.ops.shape import *
from defn.ops.special import *
from defn.ops.vectorize import *
from defn.ops.window import *
from defn.reading import (
    inspect,
    to_batched,
    to_binary,
    to_flat_list,
    to_heatmap,
    to_list,
    to_number,
)
from defn.rules import checkpoint, custom_grad, custom_jvp, implicit, stop_grad
from defn.tensors import attach as _attach
from defn.threads import config, get_threads, set_threads
from defn.updates import At
from defn.vmap import (
    map,
    vmap,
)

if TYPE_CHECKING:
    from defn import (
        array_api,
        backends,
        blocks,
        checkpoints,
        compilers,
        constants,
        data,
        distributed,
        engines,
        graph,
        linalg,
        nn,
        optim,
        optimize,
        pjrt,
        random,
    )
    from defn.backends import Backend
    from defn.compilers import Compiler
    from defn.formats import deserialize, load, load_numpy, save, serialize
    from defn.memory import LiveTensors, MemoryReport, memory_report
    from defn.mesh import (
        Mesh,
        Sharded,
        all_gather,
        all_reduce,
        collective_permute,
        mesh_index,
        mesh_size,
        reduce_scatter,
        shard,
    )
    from defn.ode import OdeSolution, odeint
    from defn.pjrt import devices
    from defn.places import (
        Pointer,
        backend_copy,
        backend_deallocate,
        backend_transfer,
        default_backend,
        from_pointer,
        scope,
        to_pointer,
        to_template,
        with_default_backend,
    )
    from defn.sparse import sparsity
    from defn.streams import Stream, stream

__all__ = [
    "At",
    "AxisError",
    "Backend",
    "BackendError",
    "BoundsError",
    "CompileError",
    "Compiler",
    "ContainerError",
    "ConvergenceError",
    "DType",
    "DTypeError",
    "DivisionError",
    "Error",
    "FormatError",
    "LiveTensors",
    "MemoryReport",
    "Mesh",
    "NonFiniteError",
    "OdeSolution",
    "OptionError",
    "OutOfMemoryError",
    "Pointer",
    "RangeError",
    "RecompileWarning",
    "ShapeError",
    "Sharded",
    "Static",
    "Stream",
    "StreamError",
    "Tensor",
    "TraceError",
    "UnknownNameError",
    "__version__",
    "all_gather",
    "all_reduce",
    "array_api",
    "associative_scan",
    "axes",
    "axis_index",
    "axis_size",
    "backend_copy",
    "backend_deallocate",
    "backend_transfer",
    "backends",
    "bf16",
    "bit_size",
    "block",
    "blocks",
    "c64",
    "c128",
    "checkpoint",
    "checkpoints",
    "checks",
    "collective_permute",
    "compatible",
    "compile",
    "compilers",
    "cond",
    "config",
    "constants",
    "custom_grad",
    "custom_jvp",
    "data",
    "debug_expr",
    "debug_expr_apply",
    "default_backend",
    "default_options",
    "defn",
    "deftransform",
    "deserialize",
    "devices",
    "distributed",
    "dtype",
    "engines",
    "f8",
    "f8_e4m3fn",
    "f8_e5m2",
    "f16",
    "f32",
    "f64",
    "flip",
    "fmod",
    "for_",
    "from_pointer",
    "get_threads",
    "global_default_options",
    "grad",
    "graph",
    "hessian",
    "hook",
    "hvp",
    "if_",
    "implicit",
    "inspect",
    "io_call",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jit_apply",
    "jvp",
    "keyword",
    "lazy",
    "linalg",
    "linearize",
    "load",
    "load_numpy",
    "map",
    "mark",
    "maximum",
    "memory_report",
    "mesh_index",
    "mesh_size",
    "minimum",
    "nn",
    "odeint",
    "optim",
    "optimize",
    "optional",
    "options",
    "pjrt",
    "print_expr",
    "print_value",
    "random",
    "range",
    "reduce_scatter",
    "register_container",
    "runtime_call",
    "s2",
    "s4",
    "s8",
    "s16",
    "s32",
    "s64",
    "save",
    "scan",
    "scope",
    "serialize",
    "set_threads",
    "shard",
    "sparsity",
    "stop_grad",
    "stream",
    "to_backend",
    "to_batched",
    "to_binary",
    "to_flat_list",
    "to_heatmap",
    "to_list",
    "to_number",
    "to_pointer",
    "to_template",
    "tree",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_",
    "with_default_backend",
]
__all__ += _arrange.__all__
__all__ += _create.__all__
__all__ += _elementwise_binary.__all__
__all__ += _elementwise_complex.__all__
__all__ += _elementwise_derived.__all__
__all__ += _elementwise_predicate.__all__
__all__ += _elementwise_unary.__all__
__all__ += _fold.__all__
__all__ += _fourier.__all__
__all__ += _index.__all__
__all__ += _linalg.__all__
__all__ += _missing.__all__
__all__ += _order.__all__
__all__ += _reduce.__all__
__all__ += _sets.__all__
__all__ += _search.__all__
__all__ += _sequence.__all__
__all__ += _shape.__all__
__all__ += _special.__all__
__all__ += _vectorize.__all__
__all__ += _window.__all__

__version__ = "0.1.0"

dtype = _core.dtype

(
    bool,
    u2,
    u4,
    u8,
    u16,
    u32,
    u64,
    s2,
    s4,
    s8,
    s16,
    s32,
    s64,
    f8_e5m2,
    f8_e4m3fn,
    f16,
    bf16,
    f32,
    f64,
    c64,
    c128,
) = _core.dtypes
f8 = f8_e5m2

# NumPy names of these functions.
flip, fmod, maximum, minimum = reverse, remainder, max, min

_attach()
_attach_notebook()


# Modules, and functions and classes of modules, that are imported where they are first used: with
# them, the import of the package would take twice as long.
_MODULES = (
    *("array_api", "backends", "blocks", "checkpoints", "compilers", "constants", "data"),
    *("distributed", "engines", "graph", "linalg", "nn", "optim", "optimize", "pjrt"),
    "random",
)
_NAMES = {
    "backends": ("Backend",),
    "compilers": ("Compiler",),
    "formats": ("deserialize", "load", "load_numpy", "save", "serialize"),
    "memory": ("LiveTensors", "MemoryReport", "memory_report"),
    "ode": ("OdeSolution", "odeint"),
    "mesh": (
        *("Mesh", "Sharded", "all_gather", "all_reduce", "collective_permute", "mesh_index"),
        *("mesh_size", "reduce_scatter", "shard"),
    ),
    "pjrt": ("devices",),
    "places": (
        *("Pointer", "backend_copy", "backend_deallocate", "backend_transfer", "default_backend"),
        *("from_pointer", "scope", "to_pointer", "to_template", "with_default_backend"),
    ),
    "sparse": ("sparsity",),
    "streams": ("Stream", "stream"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import what is used for the first time, or raise an error that suggests another name."""
        if name not in _MODULES and name not in _MODULE_OF:
            from defn._names import unknown_name

            raise unknown_name("defn has nothing", name)
        import importlib

        module = importlib.import_module(f"defn.{_MODULE_OF.get(name, name)}")
        value = module if name in _MODULES else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
