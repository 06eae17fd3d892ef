"""The NumPy expression for each operation.

Elements of NumPy's own dtypes are computed in these. Elements of dtypes that NumPy lacks, and f16,
are computed in the next wider dtype, and rounded or wrapped after each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["LINES", "SMALL", "converted", "letters", "literal"]

# The types used to compute dtypes for which NumPy has no arithmetic, or only slow arithmetic.
SMALL = {
    "u2": "u8",
    "u4": "u8",
    "s2": "s8",
    "s4": "s8",
    "f8_e5m2": "f32",
    "f8_e4m3fn": "f32",
    "f16": "f32",
    "bf16": "f32",
}

Line = Callable[[Any, dict[Any, str], Any], str]


def literal(value: complex, dtype: Any) -> str:
    """A constant."""
    if isinstance(value, complex):
        return f"{dtype}(complex({number(value.real)}, {number(value.imag)}))"
    return f"{dtype}({number(value)})"


def number(value: float) -> str:
    """A number as source code."""
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else ("np.inf" if value > 0 else "-np.inf")
    return repr(value)


def converted(text: str, source: Any, target: Any) -> str:
    """A value converted from one dtype to another."""
    return text if str(source) == str(target) else f"as_{target}({text})"


def compute(dtype: Any) -> str:
    """The type in which elements of a dtype are computed."""
    return SMALL.get(str(dtype), str(dtype))


def operand(node: Any, known: dict[Any, str], dtype: Any) -> str:
    """An operand converted to a dtype, in the type in which that is computed."""
    text = converted(known[node], node.dtype, dtype)
    return converted(text, dtype, compute(dtype))


def is_integer(node: Any) -> bool:
    """Whether elements are integers, or bools as 0 and 1."""
    return node.dtype.kind in ("bool", "signed", "unsigned")


def raw(node: Any, known: dict[Any, str]) -> str:
    """An operand in its own dtype, in the type in which that is computed."""
    return operand(node, known, node.dtype)


def stored(text: str, node: Any, dtype: Any = None) -> str:
    """A result converted to a node's dtype, from the type in which it was computed."""
    return converted(text, compute(node.dtype) if dtype is None else dtype, node.dtype)


def same(template: str) -> Line:
    """Operands converted to the dtype of the result."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        parts = [operand(one, known, node.dtype) for one in node.inputs]
        return stored(template.format(*parts, out=compute(node.dtype)), node)

    return write


def exact(template: str) -> Line:
    """As `same`, but in double precision, because NumPy's single precision is inaccurate."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        kind, wide = compute(node.dtype), "c128" if node.dtype.kind == "complex" else "f64"
        parts = [converted(operand(one, known, node.dtype), kind, wide) for one in node.inputs]
        return converted(converted(template.format(*parts), wide, kind), kind, node.dtype)

    return write


def whole(template: str) -> Line:
    """As `same`, but the identity on integers."""

    def write(node: Any, known: dict[Any, str], emitter: Any) -> str:
        return same("{0}" if is_integer(node) else template)(node, known, emitter)

    return write


def question(template: str) -> Line:
    """A predicate on elements in their own dtype."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        return f"as_bool({template.format(*(raw(one, known) for one in node.inputs))})"

    return write


def part(template: str) -> Line:
    """A function of elements in their own dtype."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        (x,) = node.inputs
        text = template.format(raw(x, known), bits=x.dtype.bits)
        return f"as_{node.dtype}({text})"

    return write


def comparison(template: str) -> Line:
    """Compares integers exactly, and an integer and a float as floats."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        a, b = node.inputs
        left = operand(a, known, b.dtype if is_integer(a) and not is_integer(b) else a.dtype)
        right = operand(b, known, a.dtype if is_integer(b) and not is_integer(a) else b.dtype)
        return f"as_bool({template.format(left, right)})"

    return write


def integer(template: str) -> Line:
    """As `same`, with the number of bits, and the second operand in its own dtype."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        a, b = node.inputs
        text = template.format(operand(a, known, node.dtype), raw(b, known), bits=node.dtype.bits)
        return stored(text, node)

    return write


def power(node: Any, known: dict[Any, str], emitter: Any) -> str:
    if is_integer(node):
        return integer("power({0}, {1})")(node, known, emitter)
    return same("{0} ** {1}")(node, known, emitter)


def remainder(node: Any, known: dict[Any, str], emitter: Any) -> str:
    is_float = node.dtype.kind == "float"
    return same("np.fmod({0}, {1})" if is_float else "remainder({0}, {1})")(node, known, emitter)


def cube_root(node: Any, known: dict[Any, str], emitter: Any) -> str:
    is_complex = node.dtype.kind == "complex"
    return exact("cube_root({0})" if is_complex else "np.cbrt({0})")(node, known, emitter)


def joined(node: Any, known: dict[Any, str], _: Any) -> str:
    """A complex number from two parts."""
    real = "f32" if str(node.dtype) == "c64" else "f64"
    a, b = (converted(raw(one, known), compute(one.dtype), real) for one in node.inputs)
    return f"joined({a}, {b}, {node.dtype})"


def select(node: Any, known: dict[Any, str], _: Any) -> str:
    pred, on_true, on_false = node.inputs
    values = [converted(known[one], one.dtype, node.dtype) for one in (on_true, on_false)]
    return f"np.where({raw(pred, known)} != 0, {values[0]}, {values[1]})"


def bitcast(node: Any, known: dict[Any, str], _: Any) -> str:
    (x,) = node.inputs
    if node.dtype.bits < 8:
        return converted(known[x], x.dtype, node.dtype)
    return f"np.asarray({known[x]}).view({node.dtype})"


# shapes


def moved(template: str) -> Line:
    """Rearranges elements: the first operand, plain arguments, and the shape of the result."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        x, *arguments = node.args
        return template.format(known[x], *arguments, shape=tuple(node.shape), dtype=node.dtype)

    return write


def broadcast(node: Any, known: dict[Any, str], _: Any) -> str:
    x, shape, axes = node.args
    sizes = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        sizes[axis] = size
    text = known[x] if tuple(sizes[-len(x.shape) :]) == x.shape else f"{known[x]}.reshape({sizes})"
    return f"np.broadcast_to({text}, {tuple(shape)})"


def pad(node: Any, known: dict[Any, str], _: Any) -> str:
    x, value, config = node.args
    text, fill = (converted(known[one], one.dtype, node.dtype) for one in (x, value))
    return f"pad({text}, {fill}, {config})"


def several(template: str) -> Line:
    """A list of operands and an axis."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        tensors, axis = node.args
        texts = [converted(known[one], one.dtype, node.dtype) for one in tensors]
        return template.format(", ".join(texts), axis)

    return write


def places(node: Any, starts: Any, x: str, known: dict[Any, str]) -> str:
    """The start indices of a window of an array."""
    texts = [str(start) if isinstance(start, int) else known[start] for start in starts]
    text = f"[{', '.join(texts)}]"
    return f"from_front({text}, {x})" if node.attrs.get("from_end") else text


def sliced(node: Any, known: dict[Any, str], _: Any) -> str:
    x, starts, lengths, strides = node.args
    if all(isinstance(start, int) for start in starts):
        spans = zip(starts, lengths, strides, strict=True)
        parts = [f"{at}:{at + n}" + (f":{step}" if step > 1 else "") for at, n, step in spans]
        return f"{known[x]}[{', '.join([*parts, '...'])}]"
    return f"window_at({known[x]}, {places(node, starts, known[x], known)}, {lengths}, {strides})"


def put_slice(node: Any, known: dict[Any, str], _: Any) -> str:
    x, update, starts = node.args
    text, new = (converted(known[one], one.dtype, node.dtype) for one in (x, update))
    return f"put({text}, {new}, {places(node, starts, known[x], known)})"


def iota(node: Any, known: dict[Any, str], _: Any) -> str:
    return f"iota({tuple(node.shape)}, {node.args[0]}, as_{node.dtype})"


def eye(node: Any, known: dict[Any, str], _: Any) -> str:
    rows, columns = node.shape[-2:]
    text = f"as_{node.dtype}(np.eye({rows}, {columns}))"
    return text if len(node.shape) == 2 else f"np.broadcast_to({text}, {tuple(node.shape)})"


def tensor(node: Any, known: dict[Any, str], emitter: Any) -> str:
    (data,) = node.args
    name = emitter.constant(data)
    return f"from_memory({name}, {node.dtype}, {tuple(node.shape)})"


# reductions


def fold(template: str) -> Line:
    """A reduction over axes, computed in the dtype of the result."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        options = f"axis={node.attrs['axes']}, keepdims={node.attrs['keep_axes']}"
        kind = compute(node.dtype)
        return stored(
            template.format(operand(node.inputs[0], known, node.dtype), options, kind), node
        )

    return write


def truth(template: str) -> Line:
    """A reduction of bools."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        options = f"axis={node.attrs['axes']}, keepdims={node.attrs['keep_axes']}"
        return f"as_bool({template.format(raw(node.inputs[0], known), options)})"

    return write


def extreme(function: str) -> Line:
    """The index of an extreme."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        attrs = node.attrs
        x = raw(node.inputs[0], known)
        options = f"{attrs['axis']}, {attrs['keep_axis']}, {attrs['tie_break']!r}"
        return f"as_{node.dtype}(extreme({function}, {x}, {options}))"

    return write


def gather(node: Any, known: dict[Any, str], _: Any) -> str:
    x, indices = node.args
    axes, shape = node.attrs["axes"], tuple(node.shape)
    return f"gather({known[x]}, {raw(indices, known)}, {axes}).reshape({shape})"


def scatter(function: str) -> Line:
    """Updates at indices."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        x, indices, updates = node.args
        values = [operand(one, known, node.dtype) for one in (x, updates)]
        parts = [function, *values, raw(indices, known), str(node.attrs["axes"])]
        return stored(f"scatter({', '.join(parts)})", node)

    return write


def sort(node: Any, known: dict[Any, str], _: Any) -> str:
    (x,) = node.inputs
    axis, direction = node.attrs["axis"], node.attrs["direction"]
    order = f"in_order({raw(x, known)}, {axis}, {direction!r})"
    return f"np.take_along_axis({known[x]}, {order}, {axis})"


def argsort(node: Any, known: dict[Any, str], _: Any) -> str:
    axis, direction = node.attrs["axis"], node.attrs["direction"]
    return f"as_{node.dtype}(in_order({raw(node.inputs[0], known)}, {axis}, {direction!r}))"


# windows


def window_options(node: Any) -> str:
    names = ("strides", "padding", "window_dilations")
    window = next(one for one in node.args if isinstance(one, tuple))
    return ", ".join(map(str, [window, *(node.attrs[name] for name in names)]))


def window(template: str, limit: str) -> Line:
    """A reduction of each window, padded with the neutral element."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        x = operand(node.inputs[0], known, node.dtype)
        fill = limit.format(dtype=node.dtype, kind=compute(node.dtype))
        axes = tuple(range(-len(node.shape), 0))
        text = f"windows({x}, {fill}, {window_options(node)})"
        return stored(template.format(text, axes, compute(node.dtype)) if axes else text, node)

    return write


def window_scatter(function: str) -> Line:
    """Adds each source value at the extreme element of its window."""

    def write(node: Any, known: dict[Any, str], _: Any) -> str:
        x, source, init = node.inputs
        values = [operand(one, known, node.dtype) for one in (source, init)]
        parts = [function, raw(x, known), *values, operand(init, known, x.dtype)]
        return stored(f"window_scatter({', '.join(parts)}, {window_options(node)})", node)

    return write


def conv(node: Any, known: dict[Any, str], _: Any) -> str:
    x, kernel = (operand(one, known, node.dtype) for one in node.inputs)
    options = ", ".join(f"{name}={value}" for name, value in node.attrs.items())
    return stored(f"conv({x}, {kernel}, {options})", node)


# products


def letters(rank: int, start: int = 0) -> str:
    """Names of axes for einsum."""
    return "".join(chr(ord("a" if n < 26 else "A") + n % 26) for n in range(start, start + rank))


def dot(node: Any, known: dict[Any, str], _: Any) -> str:
    a, contract_a, batch_a, b, contract_b, batch_b = node.args
    left = list(letters(len(a.shape)))
    right = list(letters(len(b.shape), len(left)))
    for mine, its in zip((*contract_a, *batch_a), (*contract_b, *batch_b), strict=True):
        right[its] = left[mine]
    batch = [left[axis] for axis in batch_a]
    free = [one for axis, one in enumerate(left) if axis not in (*contract_a, *batch_a)]
    free += [one for axis, one in enumerate(right) if axis not in (*contract_b, *batch_b)]
    formula = f"{''.join(left)},{''.join(right)}->{''.join([*batch, *free])}"
    x, y = (operand(one, known, node.dtype) for one in (a, b))
    return stored(f"np.einsum({formula!r}, {x}, {y})", node)


def triangular_solve(node: Any, known: dict[Any, str], emitter: Any) -> str:
    options = ", ".join(f"{name}={value!r}" for name, value in node.attrs.items())
    text = exact(f"solved({{0}}, {{1}}, {options})")(node, known, emitter)
    return f"{text}.reshape({tuple(node.shape)})"


def transform(function: str) -> Line:
    """A Fourier transform along an axis."""

    def write(node: Any, known: dict[Any, str], emitter: Any) -> str:
        length, axis = node.attrs["length"], node.attrs["axis"]
        return exact(f"transformed({function}, {{0}}, {length}, {axis})")(node, known, emitter)

    return write


LINES: dict[str, Line] = {
    "iota": iota,
    "eye": eye,
    "tensor": tensor,
    "negate": same("-{0}"),
    "sign": same("sign({0})"),
    "floor": whole("np.floor({0})"),
    "ceil": whole("np.ceil({0})"),
    "round": whole("away({0})"),
    "exp": exact("np.exp({0})"),
    "expm1": exact("np.expm1({0})"),
    "log": exact("np.log({0})"),
    "log1p": exact("np.log1p({0})"),
    "sigmoid": exact("1 / (1 + np.exp(-{0}))"),
    "sin": exact("np.sin({0})"),
    "cos": exact("np.cos({0})"),
    "tan": exact("np.tan({0})"),
    "sinh": exact("np.sinh({0})"),
    "cosh": exact("np.cosh({0})"),
    "tanh": exact("np.tanh({0})"),
    "asin": exact("np.arcsin({0})"),
    "acos": exact("np.arccos({0})"),
    "atan": exact("np.arctan({0})"),
    "asinh": exact("np.arcsinh({0})"),
    "acosh": exact("np.arccosh({0})"),
    "atanh": exact("np.arctanh({0})"),
    "sqrt": same("np.sqrt({0})"),
    "rsqrt": exact("1 / np.sqrt({0})"),
    "cbrt": cube_root,
    "erf": exact("erf({0})"),
    "erfc": exact("erfc({0})"),
    "erf_inv": exact("erf_inv({0})"),
    "conjugate": same("np.conj({0})"),
    "bitwise_not": same("~{0}"),
    "as_type": same("{0}"),
    "abs": part("np.abs({0})"),
    "real": part("np.real({0})"),
    "imag": part("np.imag({0})"),
    "population_count": part("population_count({0}, {bits})"),
    "count_leading_zeros": part("count_leading_zeros({0}, {bits})"),
    "is_nan": question("np.isnan({0})"),
    "is_infinity": question("np.isinf({0})"),
    "add": same("{0} + {1}"),
    "subtract": same("{0} - {1}"),
    "multiply": same("{0} * {1}"),
    "divide": same("{0} / {1}"),
    "pow": power,
    "atan2": exact("np.arctan2({0}, {1})"),
    "quotient": same("quotient({0}, {1})"),
    "remainder": remainder,
    "max": same("np.maximum({0}, {1})"),
    "min": same("np.minimum({0}, {1})"),
    "bitwise_and": same("{0} & {1}"),
    "bitwise_or": same("{0} | {1}"),
    "bitwise_xor": same("{0} ^ {1}"),
    "left_shift": integer("left_shift({0}, {1}, {bits})"),
    "right_shift": integer("right_shift({0}, {1}, {bits})"),
    "equal": comparison("{0} == {1}"),
    "not_equal": comparison("{0} != {1}"),
    "greater": comparison("{0} > {1}"),
    "greater_equal": comparison("{0} >= {1}"),
    "less": comparison("{0} < {1}"),
    "less_equal": comparison("{0} <= {1}"),
    "logical_and": question("np.logical_and({0}, {1})"),
    "logical_or": question("np.logical_or({0}, {1})"),
    "logical_xor": question("np.logical_xor({0}, {1})"),
    "complex": joined,
    "bitcast": bitcast,
    "select": select,
    "clip": same("np.minimum(np.maximum({0}, {1}), {2})"),
    "reshape": moved("{0}.reshape({shape})"),
    "squeeze": moved("{0}.reshape({shape})"),
    "broadcast": broadcast,
    "transpose": moved("{0}.transpose({1})"),
    "reverse": moved("np.flip({0}, {1})"),
    "pad": pad,
    "concatenate": several("np.concatenate([{0}], {1})"),
    "stack": several("np.stack([{0}], {1})"),
    "slice": sliced,
    "put_slice": put_slice,
    "sum": fold("np.sum({0}, {1}, dtype={2})"),
    "product": fold("np.prod({0}, {1}, dtype={2})"),
    "reduce_max": fold("np.max({0}, {1})"),
    "reduce_min": fold("np.min({0}, {1})"),
    "all": truth("np.all({0} != 0, {1})"),
    "any": truth("np.any({0} != 0, {1})"),
    "argmax": extreme("np.argmax"),
    "argmin": extreme("np.argmin"),
    "gather": gather,
    "indexed_add": scatter("np.add"),
    "indexed_put": scatter("last"),
    "sort": sort,
    "argsort": argsort,
    "window_sum": window("np.sum({0}, {1}, dtype={2})", "{kind}(0)"),
    "window_product": window("np.prod({0}, {1}, dtype={2})", "{kind}(1)"),
    "window_max": window("np.max({0}, {1})", "least({dtype})"),
    "window_min": window("np.min({0}, {1})", "greatest({dtype})"),
    "window_scatter_max": window_scatter("np.argmax"),
    "window_scatter_min": window_scatter("np.argmin"),
    "conv": conv,
    "dot": dot,
    "triangular_solve": triangular_solve,
    "fft": transform("np.fft.fft"),
    "ifft": transform("np.fft.ifft"),
}
"""The expression for each operation that is a single expression."""
