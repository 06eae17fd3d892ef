"""Rows of the window functions, and of folds by user functions."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cases import Case, apart, small, ties
from cases.dtypes import NUMBERS, REAL

SUMS = {"f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 4, "bf16": 4, "other": 8}
NEAR = {"ulps": SUMS, "scale": 16.0}
KEPT = ((("x", "y"),), ("x", "y"))


def windows(x, window, strides=1, padding=0, dilations=1, fill=0):
    """The elements of each window: as many axes again, which follow the axes of the positions."""
    rank = x.ndim
    spread = np.broadcast_to
    strides, dilations = spread(strides, rank), spread(dilations, rank)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]
    if isinstance(padding, str):
        total = [n - 1 if padding == "same" else 0 for n in reach]
        padding = [(n // 2, n - n // 2) for n in total]
    padding = spread(padding, (rank, 2))
    x = np.pad(x, np.maximum(padding, 0), constant_values=fill)
    crop = [
        slice(max(-low, 0), x.shape[i] - max(-high, 0)) for i, (low, high) in enumerate(padding)
    ]
    views = sliding_window_view(x[tuple(crop)], reach)
    steps = [slice(None, None, stride) for stride in strides]
    return views[tuple(steps + [slice(None, None, dilation) for dilation in dilations])]


def over(fold):
    """A reduction of the last half of the axes."""
    return lambda views: fold(views, axis=tuple(range(views.ndim // 2, views.ndim)))


def lowest(x):
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def highest(x):
    return np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max


OPTIONS = {
    "": {},
    "strides": {"strides": [2, 1], "padding": "same"},
    "padding": {"padding": [(1, 2), (-1, 1)], "window_dilations": [2, 1]},
}


def rows(name, fold, fill, window=(2, 3), **options):
    """Rows with defaults, with strides, and with padding that also crops."""
    out = []
    for label, given in OPTIONS.items():

        def oracle(x, given=given):
            own = {"dilations" if key == "window_dilations" else key: v for key, v in given.items()}
            return over(fold)(windows(x, window, fill=fill(x), **own))

        def call(f, x, given=given):
            return f(x, window, **given)

        out.append(
            Case(name, oracle, call=call, label=label, shapes=((4, 5),), names=KEPT, **options)
        )
    return out


def to_float(fold):
    def compute(views, axis):
        return fold(views.astype(np.float64) if views.dtype.kind in "iu" else views, axis=axis)

    return compute


def scatter(best):
    """The definition of window_scatter, window by window: the last of ties; ``init`` as padding."""

    def oracle(x, source, window=(2, 2), strides=(1, 2), padding=((1, 0), (0, 1)), init=1):
        padded = np.pad(x, padding, constant_values=init)
        sums = np.full(
            padded.shape, init, dtype=source.dtype if source.dtype.kind == "f" else object
        )
        for place in np.ndindex(source.shape):
            start = [i * stride for i, stride in zip(place, strides, strict=True)]
            cells = [
                tuple(s + o for s, o in zip(start, offset, strict=True))
                for offset in itertools.product(*map(range, window))
            ]
            chosen = cells[0]
            for cell in cells[1:]:
                if best(padded[cell], padded[chosen]):
                    chosen = cell
            sums[chosen] += source[place]
        rows, columns = x.shape
        (top, _), (left, _) = padding
        return sums[top : top + rows, left : left + columns]

    return oracle


def scatter_row(name, best):
    return Case(
        name,
        scatter(best),
        call=lambda f, x, source: f(x, source, 1, (2, 2), strides=[1, 2], padding=[(1, 0), (0, 1)]),
        dtypes=REAL,
        out="number",
        shapes=((3, 5), (3, 3)),
        draw=(apart, small),
        names=((("x", "y"), (None, "z")), ("x", "y")),
        grad_args=(1,),
        **NEAR,
    )


def conv(x, kernel, strides, padding, input_dilation, kernel_dilation, groups=1, batch_groups=1):
    """The definition of a convolution: padded, dilated input windows times the dilated kernel."""
    kind = np.result_type(x, kernel, np.float64)
    x, kernel = x.astype(kind), kernel.astype(kind)

    def dilate(a, dilation):
        shape = [(n - 1) * d + 1 for n, d in zip(a.shape[2:], dilation, strict=True)]
        out = np.zeros((*a.shape[:2], *shape), kind)
        out[(..., *(slice(None, None, d) for d in dilation))] = a
        return out

    def pad(a, padding):
        a = np.pad(a, [(0, 0), (0, 0), *np.maximum(padding, 0)])
        crop = [
            slice(max(-low, 0), a.shape[i + 2] - max(-high, 0))
            for i, (low, high) in enumerate(padding)
        ]
        return a[(..., *crop)]

    x, kernel = pad(dilate(x, input_dilation), padding), dilate(kernel, kernel_dilation)
    spatial = kernel.shape[2:]
    views = sliding_window_view(x, spatial, axis=tuple(range(2, x.ndim)))
    views = views[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    features, depth = kernel.shape[:2]
    batch = x.shape[0] // batch_groups
    parts = []
    for feature in range(features):
        group = feature * max(groups, batch_groups) // features
        channels = slice(group * depth, (group + 1) * depth) if groups > 1 else slice(None)
        items = slice(group * batch, (group + 1) * batch) if batch_groups > 1 else slice(None)
        part = views[items, channels]
        axes = (1, *range(part.ndim - len(spatial), part.ndim))
        parts.append(np.tensordot(part, kernel[feature], (axes, tuple(range(kernel.ndim - 1)))))
    return np.stack(parts, 1)


def conv_row(label, shapes, **options):
    ours = {
        key: options[key]
        for key in ("strides", "padding", "input_dilation", "kernel_dilation")
        if key in options
    }
    theirs = {
        "strides": [1, 1],
        "padding": [(0, 0), (0, 0)],
        "input_dilation": [1, 1],
        "kernel_dilation": [1, 1],
        **ours,
    }
    for group, other in (("feature_group_size", "groups"), ("batch_group_size", "batch_groups")):
        if group in options:
            ours[group] = theirs[other] = options[group]
    return Case(
        "conv",
        lambda x, kernel: conv(x, kernel, **theirs),
        call=lambda f, x, kernel: f(x, kernel, **ours),
        label=label,
        shapes=shapes,
        draw=small,
        out="float",
        names=((("n", "c", "h", "w"), ("o", "i", "kh", "kw")), ("n", "c", "h", "w")),
        ulps={**SUMS, "other": 32},
        scale=16.0,
    )


def permuted(x, kernel):
    """Channels last in the input and the kernel, spatial axes first in the result."""
    x, kernel = np.moveaxis(x, -1, 1), kernel.transpose(3, 2, 0, 1)
    out = conv(x, kernel, [1, 1], [(0, 0), (0, 0)], [1, 1], [1, 1])
    return out.transpose(2, 3, 0, 1)


def fold_left(fun, start):
    """A left fold over the last axis, element by element."""

    def oracle(x):
        flat = x.reshape(*x.shape[:-1], -1)
        acc = np.full(flat.shape[:-1], start, x.dtype)
        for i in range(flat.shape[-1]):
            acc = fun(flat[..., i], acc)
        return acc

    return oracle


def alternate(x, acc):
    return x - acc


def reduce_last(x):
    return fold_left(alternate, 1)(x)


def reduce_all(x):
    return fold_left(alternate, 1)(x.reshape(-1))


def window_fold(x):
    views = windows(x, (2, 3), [2, 1], [(1, 0), (0, 1)], fill=1)
    return fold_left(alternate, 1)(views.reshape(*views.shape[:2], -1))


CASES = [
    *rows("window_sum", np.sum, lambda x: 0, out="number", **NEAR),
    *rows("window_product", np.prod, lambda x: 1, out="number", grad="refused", **NEAR),
    *rows("window_max", np.max, lowest, dtypes=REAL, grad_draw=apart),
    *rows("window_min", np.min, highest, dtypes=REAL, grad_draw=apart),
    *rows("window_mean", to_float(np.mean), lambda x: 0, draw=small, out="float", **NEAR),
    scatter_row("window_scatter_max", lambda later, earlier: later >= earlier),
    scatter_row("window_scatter_min", lambda later, earlier: later <= earlier),
    conv_row("", ((2, 3, 4, 5), (4, 3, 2, 3))),
    conv_row("few features", ((2, 3, 4, 5), (2, 3, 2, 3))),
    conv_row(
        "options",
        ((1, 2, 4, 5), (5, 2, 2, 3)),
        strides=[2, 1],
        padding=[(1, 2), (2, -1)],
        input_dilation=[2, 1],
        kernel_dilation=[1, 2],
    ),
    conv_row(
        "feature groups",
        ((2, 6, 4, 4), (6, 2, 2, 2)),
        feature_group_size=3,
        strides=[1, 2],
        padding=[(1, 0), (0, 1)],
    ),
    conv_row(
        "batch groups", ((4, 2, 4, 4), (6, 2, 3, 2)), batch_group_size=2, kernel_dilation=[1, 2]
    ),
    Case(
        "conv",
        permuted,
        call=lambda f, x, kernel: f(
            x,
            kernel,
            input_permutation=[0, 3, 1, 2],
            kernel_permutation=[3, 2, 0, 1],
            output_permutation=["w", "c", "n", "h"] if "h" in x.names else [2, 3, 0, 1],
        ),
        label="permutations",
        shapes=((2, 4, 5, 3), (2, 3, 3, 4)),
        draw=small,
        out="float",
        # Batch, channels, rows and columns become the axes 2, 3, 0, 1.
        names=((("n", "h", "w", "c"), (None,) * 4), ("h", "w", "n", "c")),
        ulps={**SUMS, "other": 32},
        scale=16.0,
    ),
    Case(
        "reduce",
        reduce_all,
        call=lambda f, x: f(x, 1, alternate),
        out="number",
        names=((("x", "y"),), ()),
        draw=small,
        grad="refused",
        **NEAR,
    ),
    Case(
        "reduce",
        reduce_last,
        call=lambda f, x: f(x, 1, alternate, axes=["y"] if "y" in x.names else [-1]),
        label="axis",
        out="number",
        names=((("x", "y"),), ("x",)),
        draw=small,
        grad="refused",
        **NEAR,
    ),
    Case(
        "reduce",
        lambda x: np.maximum(x.max(0, keepdims=True), 0),
        call=lambda f, x: f(x, 0, maximum, axes=0, keep_axes=True),
        label="keep",
        dtypes=REAL,
        out="number",
        names=((("x", "y"),), ("x", "y")),
        draw=ties,
        grad="refused",
    ),
    Case(
        "window_reduce",
        window_fold,
        dtypes=NUMBERS,
        refusal=None,
        call=lambda f, x: f(x, 1, (2, 3), alternate, strides=[2, 1], padding=[(1, 0), (0, 1)]),
        shapes=((3, 4),),
        names=((("x", "y"),), ("x", "y")),
        draw=small,
        grad="refused",
        **NEAR,
    ),
]


def maximum(x, acc):
    """The greater of two scalars, computed when the row runs."""
    import defn as dn

    return dn.max(x, acc)
