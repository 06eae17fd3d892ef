"""Constants in every element type."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL, COMPLEX, FLOATS, INTEGERS, NUMPY, is_integer, limits


@pytest.mark.parametrize("name", dn.constants.__all__)
def test_constants(name: str) -> None:
    function = operator.attrgetter(name)(dn.constants)
    wide = {
        "pi": np.pi,
        "e": np.e,
        "euler_gamma": np.euler_gamma,
        "nan": np.nan,
        "infinity": np.inf,
        "neg_infinity": -np.inf,
        "i": 1j,
    }
    accepted = {"max": INTEGERS + FLOATS, "i": COMPLEX}
    accepted |= dict.fromkeys(["min", "max_finite", "min_finite"], INTEGERS + FLOATS)
    assert function().dtype == ("c64" if name == "i" else "f32")
    for dtype in ALL:
        if dtype not in accepted.get(name, FLOATS):
            with pytest.raises(dn.DTypeError, match=f"^{name}: {dtype} has no such number"):
                function(dtype)
            continue
        got = function(dtype)
        assert (got.dtype, got.shape) == (dtype, ())
        assert (
            dn.jit(lambda d=dtype: function(d))().to_numpy().tobytes() == got.to_numpy().tobytes()
        )
        array = got.to_numpy()
        if name in wide:
            want = wide[name]
            if dtype == "f8_e4m3fn" and name in ("infinity", "neg_infinity"):
                want = math.copysign(448, want)
        elif is_integer(dtype):
            want = limits(dtype)[name.startswith("max")]
        else:
            want = float_limit(name, dtype)
        want = np.asarray(want).astype(NUMPY[dtype])
        assert array == want or (np.isnan(array) and np.isnan(want))


def float_limit(name: str, dtype: str) -> float:
    import ml_dtypes

    info = ml_dtypes.finfo(NUMPY[dtype])
    return {
        "max": math.inf if dtype != "f8_e4m3fn" else 448.0,
        "min": -math.inf if dtype != "f8_e4m3fn" else -448.0,
        "max_finite": float(info.max),
        "min_finite": float(info.min),
        "epsilon": float(info.eps),
        "smallest_positive_normal": float(info.smallest_normal),
    }[name]


@pytest.mark.parametrize("name", dn.constants.__all__)
def test_constants_are_made_on_a_backend(name: str) -> None:
    backend = dn.backends.NumPyBackend()
    made = operator.attrgetter(name)(dn.constants)(backend=backend)
    assert made.backend == backend
    assert np.array_equal(
        made.to_numpy(), operator.attrgetter(name)(dn.constants)().to_numpy(), equal_nan=True
    )
