"""Composites that NumPy has a function for. All others are generated from their defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy_compiler.lines import compute, converted

__all__ = ["BLOCKS"]


def wide(node: Any) -> str:
    """The double-precision type for a node's elements."""
    return "c128" if node.dtype.kind == "complex" else "f64"


def made(template: str) -> Callable[..., str]:
    """A function of the operands in double precision, with one or several results."""

    def write(tag: Any, node: Any, texts: list[str], operands: list[Any]) -> str:
        kind = wide(operands[0])
        parts = [
            converted(text, one.dtype, kind) for text, one in zip(texts, operands, strict=True)
        ]
        text = template.format(*parts, tag=tag)
        if len(node.outputs) == 1:
            return f"as_{node.dtype}({text})"
        kinds = ", ".join(f"as_{one.dtype}" for one in node.outputs)
        return f"each_as([{kinds}], {text})"

    return write


def truth(template: str) -> Callable[..., str]:
    """A predicate on operands in their own dtype."""

    def write(tag: Any, node: Any, texts: list[str], operands: list[Any]) -> str:
        parts = [
            converted(text, one.dtype, compute(one.dtype))
            for text, one in zip(texts, operands, strict=True)
        ]
        return f"as_bool({template.format(*parts, tag=tag)})"

    return write


def scan(function: str) -> Callable[..., str]:
    """A cumulative operation."""

    def write(tag: Any, node: Any, texts: list[str], operands: list[Any]) -> str:
        kind = compute(node.dtype)
        x = converted(converted(texts[0], operands[0].dtype, node.dtype), node.dtype, kind)
        if tag.reverse:
            back = f"np.flip({x}, {tag.axis})"
            text = f"np.flip({function}.accumulate({back}, {tag.axis}), {tag.axis})"
        else:
            text = f"{function}.accumulate({x}, {tag.axis})"
        return converted(text, kind, node.dtype)

    return write


def taken(function: str) -> Callable[..., str]:
    """Elements at indices along an axis, which are clamped into range."""

    def write(tag: Any, node: Any, texts: list[str], operands: list[Any]) -> str:
        x, indices = operands
        size = x.shape[tag.axis]
        positions = converted(texts[1], indices.dtype, compute(indices.dtype))
        return f"{function}({texts[0]}, into_range({positions}, {size}), {tag.axis})"

    return write


def top(tag: Any, node: Any, texts: list[str], operands: list[Any]) -> str:
    """The greatest elements and their indices."""
    (x,) = operands
    elements = converted(texts[0], x.dtype, compute(x.dtype))
    return f"top({texts[0]}, {elements}, {tag.k}, as_{node.outputs[1].dtype})"


BLOCKS: dict[str, Callable[..., str]] = {
    "LogicalNot": truth("{0} == 0"),
    "AllClose": truth("all_close({0}, {1}, {tag.rtol}, {tag.atol}, {tag.equal_nan})"),
    "CumulativeSum": scan("np.add"),
    "CumulativeProduct": scan("np.multiply"),
    "CumulativeMax": scan("np.maximum"),
    "CumulativeMin": scan("np.minimum"),
    "Take": taken("np.take"),
    "TakeAlongAxis": taken("np.take_along_axis"),
    "TopK": top,
    "RFFT": made("transformed(np.fft.rfft, {0}, {tag.length}, {tag.axis})"),
    "IRFFT": made("irfft({0}, {tag.length}, {tag.axis})"),
    "QR": made("np.linalg.qr({0}, {tag.mode!r})"),
    "SVD": made("svd({0}, {tag.full_matrices})"),
    "Eigh": made("eigh({0}, {tag.eps})"),
    "Determinant": made("np.linalg.det({0})"),
}
"""The expression for each block that is a single expression."""
