"""The code generator: control flow as Python statements, any other operation as one line."""

from __future__ import annotations

import itertools
import math
from typing import Any

from numpy_compiler.blocks import BLOCKS
from numpy_compiler.lines import LINES, SMALL, converted, literal

# Operations that only give their operand another name.
ALIASES = {"stop_grad", "mark"}
# Operations whose values are operands.
SAME = {"barrier", "custom_grad", "implicit"}


class Emitter:
    """Generates the source of one program."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.constants: dict[str, Any] = {}
        self.names = itertools.count()

    # lines

    def line(self, text: str, comment: str = "") -> None:
        """Add a line at the depth of the current block."""
        tail = f"  # {comment}" if comment else ""
        self.lines.append(f"{'    ' * self.depth}{text}{tail}")

    def fresh(self) -> str:
        """A new variable name."""
        return f"v{next(self.names)}"

    def constant(self, value: Any) -> str:
        """The name of an object in the globals of the function."""
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name

    # regions

    def function(self, region: Any) -> str:
        """A program as a function of the hooks and its arguments."""
        inputs = [*region.parameters, *region.captures]
        arguments = [f"a{position}" for position in range(len(inputs))]
        results = self.region(region, arguments)
        self.line(f"return [{', '.join(results)}]")
        head = f"def program({', '.join(['hooks', *arguments])}):"
        return "\n".join([head, *self.lines]) + "\n"

    def region(self, region: Any, inputs: list[str]) -> list[str]:
        """Generate the code of a region; returns the names of its outputs."""
        known: dict[Any, str] = {}
        for node in region.walk():
            self.node(node, known, inputs)
        return [known[node] for node in region.outputs]

    def inline(self, region: Any, parameters: list[str], known: dict[Any, str]) -> list[str]:
        """Generate the code of an operation's region inline."""
        captures = [known[node] for node in region.captures]
        return self.region(region, [*parameters, *captures])

    def node(self, node: Any, known: dict[Any, str], inputs: list[str]) -> None:
        """Generate the code of one operation, and record the names of its outputs."""
        op, args = node.op, node.args
        if op == "parameter":
            known[node] = inputs[args[0]]
        elif op == "constant":
            known[node] = literal(args[0], node.dtype)
        elif op in ALIASES:
            known[node] = known[args[0]]
        elif op in SAME:
            self.alias(node, [known[one] for one in args[0]], known)
        elif op == "hook":
            values = [known[one] for one in args[0]]
            self.line(f"hooks({node.attrs['slot']}, [{', '.join(values)}])", where(node))
            self.alias(node, values, known)
        elif control := getattr(self, f"{op}_", None):
            control(node, known)
        else:
            name = self.fresh()
            self.line(f"{name} = {LINES[op](node, known, self)}", about(node))
            known[node] = name

    def alias(self, node: Any, values: list[str], known: dict[Any, str]) -> None:
        """Record that the outputs of an operation are existing values."""
        known.update(zip(node.outputs, values, strict=True))

    def assign(self, names: list[str], values: list[str]) -> None:
        """Assign all values to variables at once."""
        pairs = [(name, value) for name, value in zip(names, values, strict=True) if name != value]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self.line(f"{', '.join(left)} = {', '.join(right)}")

    # control flow

    def while_(self, node: Any, known: dict[Any, str]) -> None:
        """A loop."""
        initial, cond, body = node.args
        state = [self.fresh() for _ in initial]
        self.assign(state, [known[one] for one in initial])
        self.line("while True:", where(node))
        self.depth += 1
        (verdict,) = self.inline(cond, state, known)
        self.line(f"if not {verdict}:")
        self.line("    break")
        self.assign(state, self.inline(body, state, known))
        self.depth -= 1
        self.alias(node, state, known)

    def cond_(self, node: Any, known: dict[Any, str]) -> None:
        """Branches; one of them runs."""
        predicates, *branches = node.args
        results = [self.fresh() for _ in node.outputs]
        for position, branch in enumerate(branches):
            if position == len(predicates):
                head = "else:"
            else:
                head = f"{'elif' if position else 'if'} {known[predicates[position]]}:"
            self.line(head, where(node) if position == 0 else "")
            self.depth += 1
            before = len(self.lines)
            self.assign(results, self.inline(branch, [], known))
            if len(self.lines) == before:
                self.line("pass")
            self.depth -= 1
        self.alias(node, results, known)

    def fold(self, node: Any, known: dict[Any, str], elements: str) -> None:
        """A fold with a user's function over the last axis of some elements."""
        result, at, acc, element = (self.fresh() for _ in range(4))
        start, fun = known[node.args[1]], node.regions[0]
        sizes = tuple(node.shape)
        self.line(f"{result} = np.empty({sizes}, {node.dtype})", about(node))
        self.line(f"for {at} in np.ndindex({sizes}):")
        self.depth += 1
        self.line(f"{acc} = {start}")
        self.line(f"for {element} in {elements}[{at}]:")
        self.depth += 1
        before = len(self.lines)
        self.assign([acc], self.inline(fun, [element, acc], known))
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.line(f"{result}[{at}] = {acc}")
        self.depth -= 1
        known[node] = result

    def reduce_(self, node: Any, known: dict[Any, str]) -> None:
        """A fold over axes."""
        x = node.args[0]
        axes = node.attrs["axes"]
        kept = [axis for axis in range(len(x.shape)) if axis not in axes]
        count = math.prod(x.shape[axis] for axis in axes)
        elements = self.fresh()
        moved = f"{known[x]}.transpose({(*kept, *axes)})"
        self.line(f"{elements} = {moved}.reshape({(*node.shape, count)})")
        self.fold(node, known, elements)

    def window_reduce_(self, node: Any, known: dict[Any, str]) -> None:
        """A fold of windows, which are padded with the initial value."""
        x, acc, window, _ = node.args
        options = [node.attrs[name] for name in ("strides", "padding", "window_dilations")]
        elements = self.fresh()
        pad = converted(known[acc], acc.dtype, x.dtype)
        parts = ", ".join(map(str, [window, *options]))
        places = (*node.shape, math.prod(window))
        self.line(f"{elements} = windows({known[x]}, {pad}, {parts}).reshape({places})")
        self.fold(node, known, elements)

    # host calls and composites

    def runtime_call_(self, node: Any, known: dict[Any, str]) -> None:
        """A host function that computes values."""
        values = [named(known[one], one) for one in node.args[0]]
        outs = self.constant([one.template for one in node.outputs])
        results = self.fresh()
        slot = node.attrs["slot"]
        text = f"{results} = hooks.compute({slot}, [{', '.join(values)}], {outs})"
        self.line(text, where(node))
        for position, one in enumerate(node.outputs):
            known[one] = f"{results}[{position}].to_numpy()"

    def block_(self, node: Any, known: dict[Any, str]) -> None:
        """A composite: in NumPy if `BLOCKS` has it, else its default."""
        tag, operands = node.args
        native = BLOCKS.get(type(tag).__name__)
        if native is None or type(tag).__module__ != "defn.blocks":
            (default,) = node.regions
            self.line(f"# {tag}".replace("\n", " "))
            self.alias(node, self.inline_block(default, operands, known), known)
            return
        text = native(tag, node, [known[one] for one in operands], operands)
        names = [self.fresh() for _ in node.outputs]
        self.line(f"{', '.join(names)} = {text}", about(node))
        self.alias(node, names, known)

    def inline_block(self, default: Any, operands: Any, known: dict[Any, str]) -> list[str]:
        """The default of a block."""
        parameters = [known[one] for one in operands]
        return self.inline(default, parameters, known)


def named(value: str, node: Any) -> str:
    """A value with its axis names."""
    return f"named({value}, {list(node.names)})" if any(node.names) else value


def where(node: Any) -> str:
    """The source line of an operation."""
    return f"line {node.source[1]}" if node.source else ""


def about(node: Any) -> str:
    """The types of an operation's outputs, and its source line."""
    types = ", ".join(f"{one.dtype}{list(one.shape) or ''}" for one in node.outputs)
    line = where(node)
    return f"{types}, {line}" if line else types


__all__ = ["SMALL", "Emitter"]
