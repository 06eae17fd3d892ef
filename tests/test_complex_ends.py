"""Functions of complex numbers at zeros, infinities and NaN, which must equal NumPy's.

The sign of a zero is compared where Annex G of C99 specifies it. Annex G leaves it open where a
part is NaN, and where both parts are infinite.
"""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn
from support import on_xla

INF, NAN = np.inf, np.nan
PARTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, INF, -INF, NAN]
# So large that squares overflow, in each type.
FAR = {np.complex64: 1e30, np.complex128: 1e200}
FUNCTIONS = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
BACKENDS = {"cpu": None, "numpy": dn.backends.NumPyBackend()}


def same_part(got: float, want: float, *, signed: bool) -> bool:
    """Whether two parts are both NaN, equal zeros or infinities, or close."""
    if np.isnan(want) or np.isinf(want):
        return bool(np.isnan(got)) if np.isnan(want) else got == want
    if want == 0:
        return got == 0 and (not signed or bool(np.signbit(got) == np.signbit(want)))
    return abs(got - want) <= 1e-6 * abs(want)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_combination(name: str, dtype: type, backend: str) -> None:
    # NumPy's expm1 is NaN where the exponential overflows, and XLA has limits of its own.
    far = [] if name == "expm1" or on_xla() else [30.0, FAR[dtype], -FAR[dtype]]
    parts = [*PARTS, *far]
    z = np.array([complex(re, im) for re in parts for im in parts], dtype)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](z)
    place = BACKENDS[backend]
    x = dn.tensor(z) if place is None else dn.tensor(z, backend=place)
    got = getattr(dn, name)(x).to_numpy()
    wrong = []
    for argument, ours, theirs in zip(z, got, want, strict=True):
        parts = (argument.real, argument.imag)
        signed = not (np.isnan(parts).any() or np.isinf(parts).all() or np.isnan(theirs))
        if not (
            same_part(ours.real, theirs.real, signed=signed)
            and same_part(ours.imag, theirs.imag, signed=signed)
        ):
            wrong.append((argument, ours, theirs))
    assert not wrong


# From the tables of Annex G, 6.1 to 6.3: an argument and the function's value.
ANNEX_G = [
    ("acos", complex(0, NAN), complex(np.pi / 2, NAN)),
    ("acos", complex(-INF, INF), complex(0.75 * np.pi, -INF)),
    ("acosh", complex(-INF, 1), complex(INF, np.pi)),
    ("asinh", complex(NAN, 0), complex(NAN, 0)),
    ("asinh", complex(INF, INF), complex(INF, np.pi / 4)),
    ("atanh", complex(0, NAN), complex(0, NAN)),
    ("atanh", complex(INF, NAN), complex(0, NAN)),
    ("atanh", complex(1, 0), complex(INF, 0)),
    ("cosh", complex(INF, 0), complex(INF, 0)),
    ("cosh", complex(INF, INF), complex(INF, NAN)),
    ("sinh", complex(INF, NAN), complex(INF, NAN)),
    ("tanh", complex(INF, 1), complex(1, 0)),
    ("tanh", complex(NAN, 0), complex(NAN, 0)),
    ("exp", complex(-INF, 2), complex(-0.0, 0.0)),
    ("exp", complex(INF, NAN), complex(INF, NAN)),
    ("exp", complex(NAN, 0), complex(NAN, 0)),
    ("log", complex(-0.0, 0), complex(-INF, np.pi)),
    ("log", complex(NAN, INF), complex(INF, NAN)),
    ("sqrt", complex(NAN, INF), complex(INF, INF)),
    ("sqrt", complex(-INF, 1), complex(0, INF)),
]


@pytest.mark.parametrize(("name", "argument", "want"), ANNEX_G)
def test_annex_g(name: str, argument: complex, want: complex) -> None:
    got = complex(getattr(dn, name)(dn.tensor(np.complex128(argument))).to_numpy())
    assert same_part(got.real, want.real, signed=True), got
    assert same_part(got.imag, want.imag, signed=True), got
