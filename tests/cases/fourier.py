"""Rows of the Fourier transforms."""

from __future__ import annotations

import numpy as np
from scipy import fft

from cases import Case, small
from cases.dtypes import REAL

# The error of every element is in proportion to the greatest element of the result.
NEAR = {
    "draw": small,
    "ulps": {"f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 2, "bf16": 2, "other": 16},
    "scale": 16.0,
}
KEPT = ((("x", "y"),), ("x", "y"))


def row(name, oracle, call=None, label="", **options):
    return Case(name, oracle, call=call, label=label, names=KEPT, **{**NEAR, **options})


def along(name, label, ours, theirs, **options):
    function = getattr(fft, name)
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
    ]


def square(name):
    lengths = {"axes": [-1, 0], "lengths": [4, "power_of_two"]}
    wide = {"shapes": ((3, 5),), "out": "complex"}
    return [
        row(name, getattr(fft, name), **wide),
        along(name, "lengths", lengths, {"axes": [-1, 0], "s": [4, 4]}, **wide),
    ]


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
]
