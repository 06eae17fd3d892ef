"""Arrays of ``defn.array_api`` next to tensors, NumPy's arrays and traces, and what they refuse."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import defn as dn
import defn.array_api as xp
from defn.array_api import Array


def test_a_tensor_becomes_an_array_without_a_copy() -> None:
    tensor = dn.tensor(np.arange(6.0).reshape(2, 3))
    array = xp.asarray(tensor)
    assert array.dtype == xp.float64
    back = dn.tensor(array)
    pointers = {np.asarray(x).__array_interface__["data"][0] for x in (tensor, array, back)}
    assert len(pointers) == 1
    assert not hasattr(tensor, "__array_namespace__")
    assert array.__array_namespace__() is xp
    assert array.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match=r"__array_namespace__: the version '1999\.1' is none of"):
        array.__array_namespace__(api_version="1999.1")


def test_copies_are_made_where_they_are_asked_for() -> None:
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    x[0] = 5.0
    assert float(copied[0]) == 1.0
    for value, options in ((x, {"dtype": xp.float32}), ([1.0], {}), (1.0, {})):
        if isinstance(value, float):
            continue
        with pytest.raises(ValueError, match="asarray: "):
            xp.asarray(value, copy=False, **options)


def test_numpys_arrays_are_copied_unless_asked_otherwise() -> None:
    array = np.array([1.0, 2.0])
    copied, shared = xp.asarray(array), xp.asarray(array, copy=False)
    array[0] = 7.0
    assert float(copied[0]) == 1.0
    assert float(shared[0]) == 7.0


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (1, 9.0),
        ((0, slice(1, None)), [8.0, 9.0]),
        (..., 0.5),
        ((slice(None, None, -2), 0), 1.0),
        (np.array([[True, False, True], [False, True, False]]), -1.0),
        ((np.array([1, 0]), np.array([2, 2])), [4.0, 5.0]),
        (True, 3.0),
        (False, 3.0),
    ],
    ids=str,
)
def test_assignments_are_numpys(index: Any, value: Any) -> None:
    want = np.arange(6.0).reshape(2, 3)
    got = xp.asarray(want)
    kept = xp.asarray(got, copy=True)

    def ours(part: Any) -> Any:
        return xp.asarray(part) if isinstance(part, (np.ndarray, bool)) else part

    key = tuple(map(ours, index)) if isinstance(index, tuple) else ours(index)
    got[key] = xp.asarray(value) if isinstance(value, list) else value
    want[index] = value
    np.testing.assert_array_equal(np.asarray(got), want)
    # The tensor itself never changes.
    np.testing.assert_array_equal(np.asarray(kept), np.arange(6.0).reshape(2, 3))


def test_masks_without_elements_select_nothing() -> None:
    array = np.ones((2, 3))
    for shape in ((0, 3), (2, 0), (0,)):
        mask = np.zeros(shape, bool)
        got = xp.asarray(array)[xp.asarray(mask)]
        assert got.shape == array[mask].shape
    with pytest.raises(IndexError, match="the mask has 1 axes, the array has 0"):
        xp.asarray(1.0)[xp.asarray([True])]
    with pytest.raises(IndexError, match="mask"):
        xp.asarray(array)[xp.asarray([True, False, True])]


def test_assignments_refuse_what_would_lose_values() -> None:
    x = xp.asarray([1, 2], dtype=xp.int8)
    with pytest.raises(TypeError, match=r"x\[index\] =: .* int64"):
        x[0] = xp.asarray(300)
    with pytest.raises(OverflowError, match=r"300 does not fit int8, it must be in -128\.\.127"):
        x[0] = 300
    with pytest.raises(TypeError, match="a Python float does not combine with an array of int8"):
        x[0] = 2.5
    with pytest.raises(TypeError, match="convert the value with astype"):
        xp.asarray([1.0], dtype=xp.float32)[0] = xp.asarray(1.0)
    with pytest.raises(TypeError, match=r"\+=: the result has .* float64, .*float32"):
        operator.iadd(xp.asarray([1.0], dtype=xp.float32), xp.asarray([1.0]))
    with pytest.raises(TypeError, match=r"write x = x \+ y"):
        operator.iadd(xp.asarray([1.0]), xp.asarray([[1.0], [2.0]]))


REFUSALS = [
    (
        lambda: xp.asarray([1]) + xp.asarray([1.0]),
        TypeError,
        "no common data type of int64 and float64",
    ),
    (lambda: xp.asarray([1], dtype=xp.uint64) + xp.asarray([1]), TypeError, "uint64 and int64"),
    (
        lambda: xp.asarray([1]) + 0.5,
        TypeError,
        "a Python float does not combine with an array of int64",
    ),
    (
        lambda: xp.sin(xp.asarray([1])),
        TypeError,
        "sin: the array has data type int64, it must be a floating",
    ),
    (
        lambda: xp.sin(dn.tensor([1.0])),
        TypeError,
        "sin: Tensor is not an array of this namespace; use asarray",
    ),
    (lambda: xp.sin([1.0]), TypeError, "sin: list is not an array"),
    (lambda: xp.add(1, 2), TypeError, "add: one operand must be an array"),
    (lambda: xp.asarray([1]) + "x", TypeError, "unsupported operand"),
    (
        lambda: xp.sum(xp.asarray([1]), axis=1),
        IndexError,
        "sum: axis 1 is out of range for an array of 1 axes",
    ),
    (lambda: xp.sum(xp.asarray([1]), axis=(0, 0)), ValueError, "sum: an axis is given twice"),
    (lambda: xp.concat([]), ValueError, "concat: at least one array"),
    (lambda: xp.broadcast_to(xp.asarray([1, 2]), (3,)), ValueError, "broadcast"),
    (
        lambda: xp.squeeze(xp.asarray([1, 2]), 0),
        ValueError,
        "squeeze: axis 0 has size 2, it must be 1",
    ),
    (
        lambda: xp.repeat(xp.asarray([1, 2]), xp.asarray([1, 2, 3])),
        ValueError,
        "repeat: repeats have shape",
    ),
    (lambda: xp.take(xp.asarray([[1]]), xp.asarray([0])), ValueError, "say which by axis"),
    (lambda: xp.astype(xp.asarray(1j), xp.float64), TypeError, "use real"),
    (lambda: xp.asarray(300, dtype=xp.int8), OverflowError, "300 does not fit int8"),
    (lambda: xp.asarray(2**70), OverflowError, "does not fit int64"),
    (lambda: xp.asarray(1.5, dtype=xp.int8), TypeError, "not an integer"),
    (lambda: xp.asarray([[1], [2, 3]]), ValueError, "inhomogeneous"),
    (lambda: xp.asarray("text"), TypeError, "numbers"),
    (lambda: xp.asarray([1.0], device="nowhere"), ValueError, "device: "),
    (
        lambda: bool(xp.asarray([True, False])),
        TypeError,
        r"bool: the array has shape \(2,\), it must be \(\)",
    ),
    (lambda: float(xp.asarray(1j)), TypeError, "float: the array is complex; use real"),
    (lambda: range(3)[xp.asarray(1.0)], TypeError, "index: the array has data type float64"),
    (lambda: iter(xp.asarray(1)), TypeError, "no axis"),
    (lambda: xp.asarray([1.0]).T, ValueError, "T: the array has 1 axes, it must have 2"),
    (lambda: xp.asarray([1.0]).sum(), AttributeError, r"sum: .* use xp.sum\(x\)"),
    (lambda: hash(xp.asarray(1)), TypeError, "unhashable"),
    (lambda: Array([1]), TypeError, "asarray"),
    (lambda: xp.arange(0, 5, 0), ValueError, "arange: step is 0"),
    (lambda: xp.finfo(xp.int8), TypeError, "finfo: int8 is not a floating-point"),
    (lambda: xp.iinfo(xp.float32), TypeError, "iinfo: float32 is not an integer"),
    (lambda: xp.isdtype(xp.int8, "float"), ValueError, "isdtype: 'float' is no kind"),
    (lambda: xp.result_type(1, 2), ValueError, "result_type: at least one operand"),
    (lambda: xp.fft.fft(xp.asarray([1.0]), norm="none"), ValueError, "fft: norm is 'none'"),
    (lambda: xp.fft.fft(xp.asarray([1])), TypeError, "fft: the array has data type int64"),
    (lambda: xp.linalg.inv(xp.asarray([[1.0, 2.0]])), ValueError, "inv: matrices have shape"),
    (lambda: xp.linalg.qr(xp.asarray([[1.0]]), mode="raw"), ValueError, "qr: mode is 'raw'"),
    (
        lambda: xp.linalg.matrix_norm(xp.asarray([[1.0]]), ord=3),
        ValueError,
        "matrix_norm: ord is 3",
    ),
    (lambda: xp.clip(xp.asarray([1]), 0.5), TypeError, "clip: min is a float"),
    (
        lambda: xp.searchsorted(xp.asarray([1]), 1, side="mid"),
        ValueError,
        "searchsorted: side is 'mid'",
    ),
    (lambda: xp.from_dlpack([1]), TypeError, "from_dlpack: list has no method __dlpack__"),
    (lambda: xp.asarray([1.0]).to_device("cpu", stream=1), ValueError, "stream must be None"),
]


@pytest.mark.parametrize("index", range(len(REFUSALS)))
def test_refusals_say_why(index: int) -> None:
    call, kind, text = REFUSALS[index]
    with pytest.raises(kind, match=text):
        call()


def test_functions_on_arrays_are_compiled_and_differentiated() -> None:
    x = xp.asarray([1.0, 2.0, 3.0])

    def loss(x: Array) -> Array:
        return xp.sum(xp.sin(x) * x)

    y = dn.jit(loss)(x)
    assert isinstance(y, Array)
    check = np.sum(np.sin([1, 2, 3]) * np.array([1, 2, 3]))
    np.testing.assert_allclose(float(y), check)
    gradient = dn.grad(loss)(x)
    assert isinstance(gradient, Array)
    points = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.asarray(gradient), np.cos(points) * points + np.sin(points))
    rows = dn.vmap(loss)(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(rows, Array)
    assert rows.shape == (2,)


def test_traced_arrays_refuse_changes_and_sizes_that_depend_on_values() -> None:
    x = xp.asarray([1.0, 2.0])

    def assigned(x: Array) -> Array:
        x[0] = 1.0
        return x

    def added(x: Array) -> Array:
        x += 1.0
        return x

    for function, text in (
        (assigned, "never changes; use dn.put_slice"),
        (added, r"never changes; use x = x \+ y"),
        (xp.unique_values, "decide the size"),
        (lambda x: xp.nonzero(x)[0], "values"),
        (lambda x: x[x > 1.0], "select"),
        (lambda x: xp.asarray(bool(x[0])), "traced"),
    ):
        with pytest.raises(dn.Error, match=text):
            dn.jit(function)(x)


def test_the_namespace_describes_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"]
    assert info.default_device() in info.devices()
    assert isinstance(info.devices(), list)
    assert info.default_dtypes()["real floating"] == xp.float64
    assert len(info.dtypes(kind="integral")) == 8
    assert xp.__array_api_version__ == "2025.12"
    assert xp.asarray([1.0]).device in info.devices()


def test_arrays_print_as_numpys() -> None:
    assert repr(xp.asarray([1, 2], dtype=xp.int16)) == "Array([1, 2], dtype=int16)"
    assert repr(xp.asarray(2.5)) == "Array(2.5, dtype=float64)"


def test_the_default_float_is_an_option() -> None:
    made = {
        "asarray": lambda: xp.asarray([1.0]),
        "zeros": lambda: xp.zeros(2),
        "full": lambda: xp.full(2, 0.5),
        "eye": lambda: xp.eye(2),
        "linspace": lambda: xp.linspace(0.0, 1.0, 3),
        "arange": lambda: xp.arange(0.0, 1.0, 0.25),
        "fftfreq": lambda: xp.fft.fftfreq(4),
        "info": lambda: xp.zeros(1, dtype=_info().default_dtypes()["real floating"]),
    }
    for default, complex_ in (("f32", xp.complex64), (dn.f64, xp.complex128), (np.float32, None)):
        with dn.options(default_float=default):
            for name, make in made.items():
                assert make().dtype == dn.dtype(default), name
            assert xp.asarray([1]).dtype == xp.int64
            assert xp.asarray(np.zeros(1)).dtype == xp.float64
            if complex_ is not None:
                assert xp.asarray(1j).dtype == complex_
            # What a tensor is made of is another question.
            assert dn.tensor([1.0]).dtype == dn.f32
    assert all(make().dtype == xp.float64 for make in made.values())


def _info() -> Any:
    return xp.__array_namespace_info__()


def test_another_default_float_is_another_version() -> None:
    f = dn.jit(lambda x: xp.astype(x, xp.float32) + xp.ones(2))
    x = xp.asarray([1.0, 2.0])
    with dn.options():
        for default in ("f64", "f32", "f64", "f32"):
            with dn.options(default_float=default):
                assert f(x).dtype == dn.dtype(default)
    assert f(x).dtype == xp.float64
    assert f.explain()[1:] == ["the option default_float changed from f64 to f32"]


@pytest.mark.parametrize("default", ["f16", "s32", "float", dn.c64, None, 64, [], "f128"])
def test_other_default_floats_are_refused(default: object) -> None:
    with pytest.raises(dn.Error), dn.options(default_float=default):
        pass


@pytest.mark.parametrize(
    "name", ["nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"]
)
def test_sizes_that_depend_on_values_name_the_form_that_traces(name: str) -> None:
    ours = name.split("_")[0]
    with pytest.raises(dn.TraceError, match=rf"{name}: .* use dn\.{ours} with size=n"):
        dn.jit(getattr(xp, name))(xp.asarray([1, 2, 2]))


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (complex(np.inf, 0.0), complex(np.inf, 0.0)),
        (complex(np.inf, np.inf), complex(np.inf, np.nan)),
        (complex(np.inf, np.nan), complex(np.inf, np.nan)),
        (complex(-np.inf, np.inf), complex(-1.0, 0.0)),
        (complex(-np.inf, np.nan), complex(-1.0, 0.0)),
        (complex(np.nan, 0.0), complex(np.nan, 0.0)),
        (complex(np.nan, -0.0), complex(np.nan, -0.0)),
        (complex(1e-20, 0.0), complex(1e-20, 0.0)),
    ],
    ids=str,
)
def test_expm1_of_complex_numbers_has_the_standards_special_values(
    value: complex, want: complex
) -> None:
    """NumPy has NaN in most of these."""
    for function in (xp.expm1, dn.jit(xp.expm1)):
        got = complex(function(xp.asarray(value)))
        np.testing.assert_array_equal([got.real, got.imag], [want.real, want.imag])
        assert np.signbit(got.imag) == np.signbit(want.imag)
