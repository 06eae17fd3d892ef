"""Writes ``docs/ops.md``: every operation and every callback. ``--check`` compares instead."""

from __future__ import annotations

import inspect
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
TARGET = ROOT / "docs" / "ops.md"

# The callbacks of Nx.Backend 0.12, by their names.
CALLBACKS = """
    abs acos acosh add all any argmax argmin argsort as_type asin asinh atan atan2 atanh
    backend_copy backend_deallocate backend_transfer bitcast bitwise_and bitwise_not bitwise_or
    bitwise_xor block broadcast cbrt ceil clip concatenate conjugate constant conv cos cosh
    count_leading_zeros divide dot equal erf erf_inv erfc exp expm1 eye fft floor from_binary
    from_pointer gather greater greater_equal ifft imag indexed_add indexed_put init inspect
    iota is_infinity is_nan left_shift less less_equal log log1p logical_and logical_or
    logical_xor max min multiply negate not_equal pad population_count pow product put_slice
    quotient real reduce reduce_max reduce_min remainder reshape reverse right_shift round rsqrt
    select sigmoid sign sin sinh slice sort sqrt squeeze stack subtract sum tan tanh to_batched
    to_binary to_pointer transpose triangular_solve window_max window_min window_product
    window_reduce window_scatter_max window_scatter_min window_sum
""".split()

# Callbacks with another name in Python.
RENAMED = {"init": "__init__"}

# Catalogue entries that have no public function of their name. Each value has the columns infer,
# gradient, vectorize and CPU.
STRUCTURE = {
    "parameter": ("as declared", "flows to the caller", "yes", "no code"),
    "constant": ("as written", "none", "no operands", "native"),
    "all_reduce": ("same", "rule", "yes", "refused"),
    "all_gather": ("same", "rule", "yes", "refused"),
    "reduce_scatter": ("same", "rule", "yes", "refused"),
    "collective_permute": ("same", "rule", "yes", "refused"),
    "mesh_index": ("`s32`", "none", "no operands", "refused"),
    "cond": ("merge of the branches", "rule", "yes", "the evaluator"),
    "while": ("as the state", "rule", "yes, position by position", "the evaluator"),
    "custom_grad": ("as the values", "the user's rule", "yes", "no code"),
    "implicit": ("as the values", "rule", "yes", "no code"),
    "stop_grad": ("same", "none", "yes", "no code"),
    "mark": ("same", "rule", "yes", "no code"),
    "transfer": ("same", "rule", "yes", "no code"),
    "barrier": ("as the operands", "rule", "yes", "no code"),
    "hook": ("same", "rule", "yes", "the evaluator"),
    "runtime_call": ("as requested", "refused", "refused", "the evaluator"),
    "block": ("as the default", "as the default", "the default", "the default"),
    "threefry": ("`u32`", "none", "yes", "native"),
    "random_bits": ("as requested, unsigned", "none", "yes", "native"),
    "random_uniform": ("as requested, a float", "none", "yes", "native"),
    "random_below": ("as requested, an integer", "none", "yes", "native"),
}

GRADS = {"flows": "rule", "zero": "none", "refused": "refused", None: "none"}


def dtypes_text(names: set[str]) -> str:
    from cases.dtypes import ALL, COMPLEX, FLOATS, INTEGERS, REAL, SIGNED, UNSIGNED

    for label, group in (
        ("all", ALL),
        ("real", REAL),
        ("integers", INTEGERS),
        ("floats", FLOATS),
        ("floats, complex", FLOATS + COMPLEX),
        ("unsigned", UNSIGNED),
        ("signed", SIGNED),
    ):
        if names == set(group):
            return label
    left_out = [name for name in ALL if name not in names]
    if len(left_out) < 4:
        return f"all but {', '.join(left_out)}"
    return ", ".join(name for name in ALL if name in names)


def infer_text(cases: list[Any]) -> str:
    """The rule of the result's dtype."""
    from cases.dtypes import RULES

    rules = [case.out if case.out in RULES else f"`{case.out}`" for case in cases]
    return ", ".join(dict.fromkeys(rules))


def gradient_text(cases: list[Any]) -> str:
    """The gradient column. A case with a gradient rule counts more than one without."""
    grads = {case.grad for case in cases}
    for grad in ("flows", "refused", "zero"):
        if grad in grads:
            return GRADS[grad]
    return GRADS[None]


def traced_nodes(case: Any) -> list[tuple[str, bool]]:
    """The nodes that a case is traced into, and whether the CPU has a native kernel for each."""
    import defn as dn
    from defn import _core

    dtype = "f32" if "f32" in case.dtypes else case.dtypes[0]
    arrays = [] if case.creates else [dn.tensor(array) for array in case.arrays(dtype)]
    given = (lambda: case.run(dtype)) if case.creates else lambda *args: case.run(*args)
    result = dn.debug_expr(given)(*arrays)
    first = result
    while isinstance(first, (tuple, list)):
        first = first[0]
    return _core.nodes_of(first)


def cpu_text(name: str, cases: list[Any]) -> str:
    found = [native for case in cases for node, native in traced_nodes(case) if node == name]
    if not found:
        return "composite"
    return "native" if any(found) else "default"


def numpy_text(name: str, cpu: str) -> str:
    """The part of the NumPy backend that runs an operation."""
    from defn.backends import Backend, NumPyBackend
    from defn.backends.numpy.blocks import NATIVE
    from defn.blocks import class_name

    if getattr(NumPyBackend, name, None) is not getattr(Backend, name, None):
        return "callback"
    if cpu == "composite":
        return "composite"
    return "block" if class_name(name) in NATIVE else "default"


def vectorize_text(cases: list[Any]) -> str:
    """Whether each single operand may be vectorized."""
    import numpy as np

    import defn as dn

    if all(case.creates for case in cases):
        return "no operands"
    refused: dict[str, None] = {}
    accepted = False
    for case in cases:
        dtype = "f32" if "f32" in case.dtypes else case.dtypes[0]
        arrays = [] if case.creates else case.arrays(dtype)
        for position, array in enumerate(arrays):
            args = [dn.tensor(one) for one in arrays]
            args[position] = dn.vectorize(dn.tensor(np.stack([array, array])), "lane")
            try:
                case.run(*args)
                accepted = True
            except dn.Error as error:
                refused[f"{position + 1}: {str(error).splitlines()[0]}"] = None
    if not refused:
        return "yes"
    places = sorted({text.split(":")[0] for text in refused})
    return f"yes, but not operand {', '.join(places)}" if accepted else "refused"


def operations() -> tuple[list[str], dict[str, int]]:
    import defn as dn
    from cases import all_cases
    from defn.tensors import METHOD_MODULES

    cases = all_cases()
    counts = {"names": 0, "cases": 0, "checks": 0}
    tables = []
    for module in (*METHOD_MODULES, dn.linalg):
        family = module.__name__.rsplit(".", 1)[-1].replace("_", ", ")
        rows = [
            f"## {family.capitalize()}",
            "",
            "| operation | what it does | dtypes | infer | gradient | vectorize | CPU "
            "| NumPy backend | cases | checks |",
            "|---|---|---|---|---|---|---|---|---:|---:|",
        ]
        for name in module.__all__:
            own = [case for case in cases if case.name == name]
            if not own:
                continue
            dtypes = {dtype for case in own for dtype in case.dtypes}
            checks = sum(len(case.dtypes) for case in own)
            summary = (getattr(module, name).__doc__ or "").split("\n\n")[0]
            summary = " ".join(summary.split()).replace("|", "\\|")
            cpu = cpu_text(name, own)
            cells = [
                f"`{name}`",
                summary,
                dtypes_text(dtypes),
                infer_text(own),
                gradient_text(own),
                vectorize_text(own),
                cpu,
                numpy_text(name, cpu),
                str(len(own)),
                str(checks),
            ]
            rows.append(f"| {' | '.join(cells)} |")
            counts["names"] += 1
            counts["cases"] += len(own)
            counts["checks"] += checks
        tables.append("\n".join(rows))
    return tables, counts


def owner(cls: type, name: str) -> type:
    """The class that defines an attribute."""
    return next(one for one in cls.__mro__ if name in vars(one))


def module_text(cls: type) -> str:
    return cls.__module__.removeprefix("defn.backends.")


def callbacks() -> str:
    """Where each callback is declared, its default, and where the NumPy backend defines it."""
    from defn.backends import Backend, NumPyBackend

    rows = ["| callback | declared in | by default | NumPy backend |", "|---|---|---|---|"]
    for name in CALLBACKS:
        attribute = RENAMED.get(name, name)
        text = inspect.getdoc(getattr(Backend, attribute)) or ""
        found = re.search(r"By default (.*?)\.(?:\s|$)", text, re.DOTALL)
        default = " ".join(found[1].split()) if found else ""
        if not found:
            default = "refuses unknown options" if name == "init" else "raises, naming the callback"
        own = owner(NumPyBackend, attribute)
        is_own = own.__module__.startswith("defn.backends.numpy")
        place = f"`{module_text(own)}`" if is_own else "the default"
        shown = f"`{name}`" if attribute == name else f"`{name}`, here `{attribute}`"
        rows.append(
            f"| {shown} | `{module_text(owner(Backend, attribute))}` | {default} | {place} |"
        )
    return "\n".join(rows)


def structure() -> str:
    """The table of catalogue entries that have no public function of their name."""
    from defn import _core

    # The op `cond` merges branches; the function of that name in `linalg` is another.
    functions = documented() - {"cond"}
    names = [name for name in _core.op_names() if name not in functions]
    rows = ["| node | infer | gradient | vectorize | CPU |", "|---|---|---|---|---|"]
    missing = ("missing",) * 4
    rows += [f"| `{name}` | {' | '.join(STRUCTURE.get(name, missing))} |" for name in names]
    return "\n".join(rows)


def documented() -> set[str]:
    """The operations that have rows."""
    from cases import all_cases

    return {case.name for case in all_cases()}


HEAD = """# Operations

`python tools/docs_ops.py` writes this page from the catalogue, the backends and the test cases.
Tests compare every operation with an oracle in each of its dtypes, eager and compiled, on the CPU
and on NumPy's backend. In any other dtype the operation raises an error.

- **infer**: the dtype of the result, as the name of a rule in `tests/cases/dtypes.py`.
- **gradient**: *rule*, which is checked against finite differences; *none*, where the gradient is
  zero or there is nothing to differentiate; or *refused*, where differentiating raises an error.
- **vectorize**: whether operands may have vectorized axes.
- **CPU**: *native* kernels; the *default* of a block or of a fold, computed by other operations; or
  a *composite*, which always consists of other operations.
- **NumPy backend**: a *callback* or native *block* of its own, or the same word as for the CPU.

{names} operations, {ops} names in the catalogue, {dtypes} dtypes, {cases} test cases, and {checks}
checks of one case in one dtype."""

STRUCTURES = """## Structure and generators

The other nodes that a graph can have. `dn.random` is built on the generators.

{rows}"""

CALLBACK_TABLE = """## Callbacks

The {count} callbacks of Nx.Backend 0.12, and the modules of `python/defn/backends` where
`dn.Backend` and NumPy's backend define them. [Backends](backends.md) describes how they are called.

{rows}"""


def document() -> str:
    from defn import _core

    tables, counts = operations()
    head = HEAD.format(ops=len(_core.op_names()), dtypes=len(_core.dtypes), **counts)
    parts = [
        head,
        *tables,
        STRUCTURES.format(rows=structure()),
        CALLBACK_TABLE.format(count=len(CALLBACKS), rows=callbacks()),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = document()
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text() == text:
            return 0
        print(f"{TARGET} is out of date; run python tools/docs_ops.py")
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
