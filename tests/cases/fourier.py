"""Rows of the Fourier transforms."""

from __future__ import annotations

import numpy as np
from scipy import fft

from cases import Case, between, positive, small
from cases.dtypes import REAL

# The error of every element is in proportion to the greatest element of the result.
NEAR = {
    "draw": small,
    "ulps": {"f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 2, "bf16": 2, "other": 16},
    "scale": 16.0,
}
NORMS = ("ortho", "forward")
KEPT = ((("x", "y"),), ("x", "y"))


def row(name, oracle, call=None, label="", **options):
    return Case(name, oracle, call=call, label=label, names=KEPT, **{**NEAR, **options})


def along(name, label, ours, theirs, module=fft, **options):
    function = getattr(module, name)
    return row(
        name,
        lambda x: function(x, **theirs),
        lambda f, x: f(x, **ours),
        label,
        **options,
    )


def pair(name):
    wide = {"shapes": ((3, 5),), "out": "complex"}
    return [
        row(name, getattr(fft, name), **wide),
        along(name, "axis", {"axis": 0, "length": 4}, {"axis": 0, "n": 4}, **wide),
        along(name, "cut", {"length": 3}, {"n": 3}, **wide),
        along(name, "power", {"length": "power_of_two"}, {"n": 8}, **wide),
        *norms(name, **wide),
    ]


def norms(name, **wide):
    """The two norms that are no default."""
    return [along(name, norm, {"norm": norm}, {"norm": norm}, **wide) for norm in NORMS]


def square(name):
    lengths = {"axes": [-1, 0], "lengths": [4, "power_of_two"]}
    wide = {"shapes": ((3, 5),), "out": "complex"}
    return [
        row(name, getattr(fft, name), **wide),
        along(name, "lengths", lengths, {"axes": [-1, 0], "s": [4, 4]}, **wide),
        *norms(name, **wide),
    ]


def several(name, **wide):
    """The forms of a transform along several axes."""
    wide = {"shapes": ((3, 5),), **wide}
    return [
        row(name, getattr(fft, name), **wide),
        along(name, "axes", {"axes": [0]}, {"axes": [0]}, **wide),
        along(name, "lengths", {"axes": [-1, 0], "lengths": [4, 3]}, LENGTHS, **wide),
        along(name, "last", {"lengths": [4], "norm": "ortho"}, {"s": [4], "norm": "ortho"}, **wide),
        *norms(name, **wide),
    ]


LENGTHS = {"axes": [-1, 0], "s": [4, 3]}
REALS = {"shapes": ((3, 5),), "out": "real"}
HALF = {"shapes": ((3, 5),), "out": "complex", "dtypes": REAL}

CASES = [
    *pair("fft"),
    *pair("ifft"),
    *square("fft2"),
    *square("ifft2"),
    row("rfft", fft.rfft, **HALF),
    along("rfft", "axis", {"axis": 0, "length": 7}, {"axis": 0, "n": 7}, **HALF),
    along("rfft", "power", {"length": "power_of_two"}, {"n": 8}, **HALF),
    row("irfft", lambda x: np.fft.irfft(x), shapes=((3, 5),), out="real"),
    along("irfft", "odd", {"length": 7}, {"n": 7}, shapes=((3, 5),), out="real"),
    along(
        "irfft", "axis", {"axis": 0, "length": 3}, {"axis": 0, "n": 3}, shapes=((3, 5),), out="real"
    ),
    *norms("rfft", **HALF),
    *norms("irfft", **REALS),
    row("hfft", lambda x: np.fft.hfft(x), **REALS),
    along("hfft", "odd", {"length": 7, "axis": 0}, {"n": 7, "axis": 0}, np.fft, **REALS),
    *norms("hfft", **REALS),
    row("ihfft", fft.ihfft, **HALF),
    along("ihfft", "axis", {"axis": 0, "length": 7}, {"axis": 0, "n": 7}, **HALF),
    *norms("ihfft", **HALF),
    *several("fftn", out="complex"),
    *several("ifftn", out="complex"),
    *several("rfftn", out="complex", dtypes=REAL),
    *several("irfftn", out="real"),
    row("rfft2", fft.rfft2, **HALF),
    along("rfft2", "lengths", {"axes": [-1, 0], "lengths": [4, 3]}, LENGTHS, **HALF),
    *norms("rfft2", **HALF),
    row("irfft2", fft.irfft2, **REALS),
    along("irfft2", "lengths", {"axes": [-1, 0], "lengths": [4, 3]}, LENGTHS, **REALS),
    *norms("irfft2", **REALS),
    *[
        case
        for name in ("fftshift", "ifftshift")
        for case in (
            Case(name, getattr(fft, name), shapes=((3, 4),), names=KEPT),
            Case(
                name,
                lambda x, name=name: getattr(fft, name)(x, axes=1),
                call=lambda f, x: f(x, 1),
                label="axis",
                shapes=((3, 5),),
                names=KEPT,
            ),
        )
    ],
    *[
        Case(
            name,
            lambda d, name=name, n=n: getattr(fft, name)(n, d),
            call=lambda f, d, n=n: f(n, d),
            label=f"of {n}",
            shapes=((),),
            dtypes=("f16", "bf16", "f32", "f64"),
            out="f32",
            draw=positive,
            # Where the curvature is small beside the step of the finite difference.
            grad_draw=between(2.0, 3.0),
            ulps=2,
        )
        for name in ("fftfreq", "rfftfreq")
        for n in (1, 6, 7)
    ],
]
