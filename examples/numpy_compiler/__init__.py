"""A compiler that writes NumPy source code: each definition becomes a Python function.

It is a complete example of a compiler written in Python: every operation, control flow, hooks and
blocks. ``NumPyCompiler().sources`` holds the generated source code.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import defn as dn
from numpy_compiler import support
from numpy_compiler.emit import Emitter

__all__ = ["NumPyCompiler"]

_numbers = itertools.count()


class NumPyCompiler(dn.Compiler):
    """Generates a function of NumPy arrays for each definition, and runs it.

    It takes no options.
    """

    def __init__(self) -> None:
        self.sources: list[str] = []
        """The generated functions, in order."""

    def compile(self, key: Any, vars: Any, fun: Any, options: dict[str, Any]) -> Any:
        """Trace, generate the source, and create a function from it."""
        if options:
            names = ", ".join(options)
            raise dn.OptionError(f"compile: unknown option {names}, NumPyCompiler takes none")
        program = dn.compilers.trace(fun, vars)
        emitter = Emitter()
        source = emitter.function(program.region)
        self.sources.append(source)
        names = {**vars_of(support), **emitter.constants}
        file = f"<numpy program {next(_numbers)}>"
        exec(compile(source, file, "exec"), names)
        function = names["program"]
        outs = [(node.shape, node.dtype.to_numpy()) for node in program.outputs]

        def run(args_list: list[list[Any]]) -> list[Any]:
            results = []
            for args in args_list:
                # Arguments that the definition does not use have no values.
                given = [None if arg.is_template else arg.to_numpy() for arg in args]
                with np.errstate(all="ignore"):
                    values = function(dn.compilers.hooks(), *given)
                arrays = [
                    np.asarray(value).astype(dtype, copy=False).reshape(shape)
                    for value, (shape, dtype) in zip(values, outs, strict=True)
                ]
                results.append(program.rebuild(arrays))
            return results

        return run


def vars_of(module: Any) -> dict[str, Any]:
    """The globals of the generated functions."""
    return {name: getattr(module, name) for name in module.__all__} | {"np": np}
