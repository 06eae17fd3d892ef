"""Calls of any public function with generated arguments, from its signature.

The name or the annotation of a parameter determines how its values are drawn. So a new function
needs no entry here. A parameter of an unknown kind fails the test until this file describes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import defn as dn
from cases.drawing import LETTERS, ROWS, SIZES, Call, Drawing, Leaf
from cases.dtypes import is_float


def matrices(drawing: Drawing) -> tuple[int, ...]:
    size = drawing.integer(0, 3)
    return (*drawing.choice([(), (2,), (0,), (1, 2)]), size, size)


def solid(drawing: Drawing) -> tuple[int, ...]:
    return drawing.draw(st.lists(SIZES.filter(bool), min_size=1, max_size=3).map(tuple))


def rank_two(drawing: Drawing) -> tuple[int, ...]:
    return drawing.draw(st.lists(SIZES, min_size=2, max_size=4).map(tuple))


# The first tensor's shape, for functions that refuse most shapes.
FIRST: dict[str, Callable[[Drawing], tuple[int, ...]]] = {
    "cross": lambda d: (*d.choice([(), (2,), (1, 2)]), 3),
    "multi_dot": lambda d: d.choice([(2,), (2, 3), (1, 2), (0, 3)]),
    **dict.fromkeys(
        ["tril", "triu", "take_diagonal", "trace", "covariance", "fft2", "ifft2"], rank_two
    ),
    **dict.fromkeys(["rfft2", "irfft2"], rank_two),
    **dict.fromkeys(["fftfreq", "rfftfreq"], lambda drawing: ()),
    **dict.fromkeys(
        [
            "argmax",
            "argmin",
            "reduce_max",
            "reduce_min",
            "ptp",
            "nanmax",
            "nanmin",
            "nanmean",
            "nanmedian",
            "nanargmax",
            "nanargmin",
            "nanvar",
            "nanstd",
            "quantile",
            "percentile",
            "nanquantile",
            "nanpercentile",
            "average",
            "mean",
            "median",
            "mode",
            "top_k",
            "diff",
        ],
        solid,
    ),
    **dict.fromkeys(["variance", "standard_deviation", "split", "gather"], solid),
    **dict.fromkeys(["cholesky", "determinant", "invert", "lu", "eigh", "matrix_power"], matrices),
    **dict.fromkeys(["solve", "triangular_solve", "cho_solve", "eig", "eigvals"], matrices),
    **dict.fromkeys(["expm", "hessenberg", "logm", "schur", "sqrtm"], matrices),
    "toeplitz": lambda drawing: (drawing.integer(0, 4),),
    **dict.fromkeys(["qr", "svd", "pinv", "adjoint", "norm", "matrix_rank"], rank_two),
    "gradient": lambda d: [(4,), (2, 3), (3, 3), (3, 4, 3)][d.integer(0, 3)],
    "corrcoef": lambda d: d.choice([(3,), (2, 3), (3, 1)]),
    **dict.fromkeys(
        ["searchsorted", "convolve", "correlate", "polyval"], lambda d: (d.integer(0, 4),)
    ),
    "polyfit": lambda d: (d.integer(1, 4),),
    **dict.fromkeys(["make_diagonal", "meshgrid"], lambda drawing: (drawing.integer(0, 4),)),
    "put_diagonal": lambda drawing: (drawing.integer(0, 3), drawing.integer(0, 3)),
    "least_squares": lambda drawing: (drawing.integer(1, 3), drawing.integer(1, 3)),
    "conv": lambda drawing: (drawing.integer(1, 2), 2, *solid(drawing)),
}

SMALL = {
    "k": (-3, 3),
    "offset": (-2, 2),
    "deg": (0, 2),
    "edge_order": (1, 2),
    "minlength": (0, 3),
    "ddof": (0, 1),
    "order": (0, 3),
    "n": (0, 4),
    "m": (0, 4),
    "length": (0, 4),
    "axis": (-3, 3),
    "max_iter": (30, 30),
    "power": (-2, 3),
    "strides": (1, 2),
    "feature_group_size": (1, 1),
    "batch_group_size": (1, 1),
    "num_segments": (0, 4),
}


def factors(drawing: Drawing) -> list[Leaf]:
    """Three square matrices of one shape, which is that of the first tensor."""
    drawing.shape = matrices(drawing)
    return [drawing.leaf(drawing.shape) for _ in range(3)]


def distances(drawing: Drawing) -> list[Any]:
    """None, a number, a tensor, or sometimes more of them than there are axes."""
    if not drawing.often():
        return drawing.tensors()
    return drawing.choice([[], [0.5], [2]]) if drawing.coin() else [drawing.leaf((), names=None)]


# How to draw a parameter, by its name; other parameters are drawn by their annotations.
NAMED: dict[str, Callable[[Drawing], Any]] = {
    "indices": Drawing.positions,
    "factors": factors,
    "p": lambda d: d.choice([None, 1, 2, -2, "frobenius", "nuclear"]),
    "segment_ids": Drawing.positions,
    "updates": Drawing.updates,
    "tensors": Drawing.tensors,
    "window": Drawing.windows,
    "window_dilations": lambda d: d.per_axis(1, 2),
    "input_dilation": lambda d: d.integer(1, 2),
    "kernel_dilation": lambda d: d.integer(1, 2),
    "config": lambda d: [
        tuple(d.integer(-1, 2) if i < 2 else d.integer(0, 2) for i in range(d.pairs))
        for _ in range(d.rank)
    ],
    "starts": Drawing.starts,
    "start": lambda d: d.operand() if d.call.name == "linspace" else d.integer(-1, 3),
    "stop": lambda d: d.leaf(d.shape or ()),
    "lengths": lambda d: None if d.call.name.endswith(("fft2", "fftn")) else d.lengths(),
    "repetitions": lambda d: [d.integer(1, 2) for _ in range(d.integer(0, d.rank + 1))],
    "split": lambda d: d.choice([1, -1, 0.5, 0.25]),
    "diagonal": lambda d: d.leaf((min(d.shape or (0,)),)),
    "slice": lambda d: d.leaf(tuple(d.lengths())),
    "weights": lambda d: d.leaf(d.shape or ()),
    "mean": lambda d: None if d.coin() else d.leaf((d.shape or ())[:-2] + (d.shape or ())[-1:]),
    "mode": lambda d: d.choice(
        ["cyclic", "mirror", "replicate", "reflect"]
        if d.call.name == "pad_outer"
        else ["full", "same", "valid"]
    ),
    "acc": lambda d: d.choice([0, 1]),
    "init": lambda d: d.choice([0, 1]),
    "source": lambda d: d.integer(-2, 1) if d.call.name == "moveaxis" else d.pooled(),
    "destination": lambda d: d.integer(-2, 1),
    "shift": lambda d: d.integer(-4, 4),
    "repeats": lambda d: d.choice([0, 1, 2, [1, 2], [2, 0, 1]]),
    "sections_or_indices": lambda d: d.choice([1, 2, 5, [1], [2, 1, -1]]),
    "size": lambda d: d.choice([0, 1, 3, 12]),
    "fill_value": lambda d: d.choice([0, 1, 2]),
    "value": lambda d: d.choice([0, 1, -2]) if d.coin() else d.leaf((), names=None),
    "lo": lambda d: d.choice([0, -1, -0.5]) if d.coin() else d.leaf((), names=None),
    "hi": lambda d: d.choice([1, 2, 0.5]) if d.coin() else d.leaf((), names=None),
    "kernel": lambda d: d.leaf((2, 2, *[d.integer(1, 2) for _ in (d.shape or ())[2:]]), names=None),
    "base": lambda d: d.choice([None, 2, 10, 0.5]),
    "ord": lambda d: d.choice([None, 1, 2, "inf"]),
    "fun": lambda d: d.choice([dn.add, dn.max, dn.multiply]),
    "names": lambda d: None if d.often() else list(LETTERS[: d.rank]),
    "bins": lambda d: (
        d.choice([1, 3]) if d.call.name == "histogram" and d.coin() else d.leaf((3,), names=None)
    ),
    "q": lambda d: d.choice([0, 0.3, 1]) if d.coin() else d.leaf((2,), names=None),
    "x": lambda d: (
        d.choice([None, d.leaf((d.shape or (0,))[-1:])])
        if d.call.name == "trapezoid"
        else d.operand()
    ),
    "y": lambda d: d.leaf(d.shape or ()) if d.call.name == "polyfit" else d.operand(),
    "other": lambda d: (
        d.leaf((d.integer(0, 3),)) if d.call.name in ("convolve", "correlate") else d.operand()
    ),
    "kth": lambda d: d.choice([0, -1, [0, 1]]),
    "keys": Drawing.tensors,
    "values": lambda d: (
        d.leaf(d.choice([(), d.shape or ()]), names=None)
        if d.call.name == "put_along_axis"
        else d.operand()
    ),
    "xp": lambda d: d.leaf((3,), names=None),
    "fp": lambda d: d.leaf((3,), names=None),
    "range": lambda d: d.choice([None, (-1, 1), (0.0, 0.0)]),
    "dtype": lambda d: d.dtype(),
    "b": Drawing.right,
}
ANNOTATED: dict[str, Callable[[Drawing], Any]] = {
    "TensorLike": Drawing.operand,
    "TensorLike | None": lambda d: None if d.coin() else d.tensor(),
    "Axis": Drawing.axis,
    "Axis | None": lambda d: None if d.coin() else d.axis(),
    "int | str | None": lambda d: None if d.coin() else d.axis(),
    "Axes | None": lambda d: None if d.coin() else d.axes(),
    "Axes": Drawing.axes,
    "Sequence[Axis]": Drawing.axes,
    "bool": Drawing.coin,
    "float": lambda d: d.choice([0.0, 1e-5, 1e-10]),
    "float | None": lambda d: d.choice([None, 1.5, -2.0]),
    "PerAxis": lambda d: d.per_axis(1, 2),
    "Padding": lambda d: d.choice(["valid", "same"]),
    "FftLength": lambda d: d.choice([None, "power_of_two", 1, 3]),
    "int | None": lambda d: d.choice([None, 1, 3, 4]),
    "str | None": lambda d: d.choice([None, "new"]),
    "int | Sequence[int]": lambda d: d.per_axis(1, 2),
    "Shape | int": Drawing.new_shape,
    "Shape | Tensor | int": Drawing.new_shape,
}

# Parameters that keep their defaults, because they do not concern shapes and values.
LEFT = {"unknown", "backend", "copy", "vectorized_axes", "names", "dtype"}
LEFT |= {"input_permutation", "kernel_permutation", "output_permutation", "stable"}


def drawn(draw: Callable[..., Any], name: str) -> Call:
    """A generated call of a public function."""
    drawing = Drawing(draw, name, FIRST.get(name, Drawing.any_shape))
    if name == "dot":
        drawing.call.args = drawing.factors()
        return drawing.call
    if name == "einsum":
        drawing.call.args = drawing.equation()
        return drawing.call
    if name == "tensordot":
        drawing.call.args = drawing.contraction()
        return drawing.call
    function = getattr(dn.linalg if name in dn.linalg.__all__ else dn, name)
    for parameter in inspect.signature(function).parameters.values():
        optional = parameter.default is not parameter.empty
        skipped = parameter.name in LEFT and (optional or parameter.kind is parameter.VAR_KEYWORD)
        if skipped or (optional and name.startswith("window_scatter")):
            continue
        # Without a size, the values decide it, which a trace does not have.
        if optional and parameter.name != "size" and drawing.coin():
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            drawing.call.args += distances(drawing) if name == "gradient" else drawing.tensors()
            continue
        value = argument(drawing, parameter)
        if parameter.kind is parameter.KEYWORD_ONLY:
            drawing.call.options[parameter.name] = value
        elif optional and value is None:
            break
        else:
            drawing.call.args.append(value)
    return drawing.call


def argument(drawing: Drawing, parameter: inspect.Parameter) -> Any:
    annotation = str(parameter.annotation).strip('"')
    first = drawing.shape is None and annotation.startswith("TensorLike")
    if first and parameter.name != "mode":
        return drawing.tensor()
    if parameter.name in NAMED:
        return NAMED[parameter.name](drawing)
    if annotation.startswith("Literal["):
        return drawing.choice(eval(annotation.removeprefix("Literal")))
    if annotation in ANNOTATED:
        return ANNOTATED[annotation](drawing)
    if annotation == "int":
        return drawing.integer(*SMALL[parameter.name])
    if annotation.startswith("Shape"):
        return drawing.new_shape()
    raise AssertionError(f"what is {parameter.name}: {annotation} of {drawing.call.name}?")


def is_exact(name: str) -> bool:
    """Whether all rows of a function require exactly the bits of their oracles."""
    return all(case.ulps == 0 for case in ROWS[name]) if name in ROWS else False


def tolerance(name: str, dtype: str, out: str) -> float:
    return max(case.tolerance(dtype, out) for case in ROWS[name])


__all__ = ["Call", "drawn", "is_exact", "is_float", "tolerance"]
