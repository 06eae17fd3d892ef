"""The exported catalogue, the public functions and the table of cases have the same entries."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect

import pytest

import defn as dn
from cases import all_cases
from defn import _core
from defn.tensors import ALIASES, METHOD_MODULES, NOT_METHODS, OWN_METHODS

# Ops without a public function of the same name.
STRUCTURAL = {
    "parameter",
    "constant",
    # Control flow, which has its own tests.
    "cond",
    "while",
    "custom_grad",
    "implicit",
    "stop_grad",
    "mark",
    # Between a checkpointed function and its gradient.
    "transfer",
    "barrier",
    "hook",
    "runtime_call",
    "block",
    # Collectives, which run in sharded functions only. They have their own tests.
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "collective_permute",
    "mesh_index",
    # The generator of `dn.random`.
    "threefry",
    "random_bits",
    "random_uniform",
    "random_below",
}  # fmt: skip

# Functions that need no row: `template` has no elements, and solvers take functions and return
# pairs; they have a file of their own. The forms of `dropout` differ in what they do with the key.
WITHOUT_ROWS = {"template", "cg", "bicgstab", "gmres", "dropout_split"}
# Random weights, which tests/test_nn_initial.py compares with distributions.
WITHOUT_ROWS |= {
    f"{name}{form}"
    for name in ("glorot", "he", "lecun", "orthogonal", "variance_scaling")
    for form in ("", "_split")
}
# tests/test_nn_convolutions.py compares them, with all layouts.
WITHOUT_ROWS |= {"conv_transpose", "max_pool", "avg_pool"}
# Cells have many operands, and a file of their own.
WITHOUT_ROWS |= {f"{name}_cell" for name in ("gru", "lstm")}
WITHOUT_ROWS |= {f"{name}_parameters{form}" for name in ("gru", "lstm") for form in ("", "_split")}


def public_functions() -> set[str]:
    return {name for module in METHOD_MODULES for name in module.__all__}


def test_every_function_has_a_row_and_every_row_a_function() -> None:
    functions = public_functions() | set(dn.linalg.__all__) | set(dn.nn.__all__)
    assert {case.name for case in all_cases()} == functions - WITHOUT_ROWS


def test_every_op_has_a_function() -> None:
    # The op `cond` merges branches; the function of that name in `linalg` is another.
    functions = public_functions() | set(dn.linalg.__all__) - {"cond"}
    assert set(_core.op_names()) - functions == STRUCTURAL


def test_every_block_has_a_tag_with_its_attributes() -> None:
    tags = {
        dn.blocks.class_name(name): set(attributes) for name, attributes in _core.block_attributes()
    }
    listed = {name: getattr(dn.blocks, name) for name in dn.blocks.__all__}
    assert tags == {
        name: {field.name for field in dataclasses.fields(tag)} for name, tag in listed.items()
    }


def test_everything_public_is_listed() -> None:
    assert len(set(dn.__all__)) == len(dn.__all__)
    missing = public_functions() - set(dn.__all__)
    assert not missing
    for name in dn.__all__:
        assert hasattr(dn, name)


def test_rows_are_told_apart() -> None:
    names = [str(case) for case in all_cases()]
    assert len(names) == len(set(names))


def test_methods_have_the_functions_signatures() -> None:
    own = {*OWN_METHODS, "real", "imag"}
    for name in sorted(public_functions() - NOT_METHODS - own):
        function, method = getattr(dn, name), inspect.getattr_static(dn.Tensor, name)
        assert inspect.unwrap(function) is method, name
    for name, ours in ALIASES.items():
        assert getattr(dn, name) is getattr(dn, ours)
        assert getattr(dn.Tensor, name) is inspect.unwrap(getattr(dn, ours))
    reshape = inspect.signature(dn.Tensor.reshape)
    assert list(reshape.parameters) == ["tensor", "sizes", "names", "unknown"]


def test_the_version_is_the_packages() -> None:
    assert importlib.metadata.version("defn") == dn.__version__


PUBLIC = {
    f"{prefix}{name}": getattr(module, name)
    for prefix, module in (
        ("", dn),
        ("linalg.", dn.linalg),
        ("nn.", dn.nn),
        ("random.", dn.random),
        ("constants.", dn.constants),
    )
    for name in module.__all__
    if inspect.isfunction(inspect.unwrap(getattr(module, name))) and name not in ALIASES
}

# Functions that pass unknown options on.
HANDING_ON = {
    "checks", "compile", "debug_expr", "debug_expr_apply", "default_options", "defn",
    "deftransform", "dtype", "global_default_options", "grad", "hessian", "jacfwd", "jacobian",
    "jacrev", "jit", "jit_apply", "keyword", "options", "shard", "stream", "to_backend",
    "value_and_grad",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - HANDING_ON))
def test_unknown_options_are_refused_by_every_function(name: str) -> None:
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    needed = {
        parameter.name: 1
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    }
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(parameter.kind in positional for parameter in parameters)
    with pytest.raises(dn.OptionError, match=f'^{name.split(".")[-1]}: unknown option "no_such"'):
        PUBLIC[name](*[dn.tensor(1.0)] * count, **needed, no_such=1)


def test_no_function_has_a_closure() -> None:
    """A call of ``jit(dn.sum)`` compares what the function closes over: 200 ns for each cell."""
    functions = {name: inspect.unwrap(function) for name, function in PUBLIC.items()}
    assert [name for name, function in functions.items() if function.__closure__] == []
