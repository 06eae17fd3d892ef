"""Tensors together with NumPy's arrays and functions, pandas' columns, mappings and buffers."""

from __future__ import annotations

import array
import collections
import collections.abc
import math
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest

import defn as dn

X = dn.tensor([[1.0, 2.0], [3.0, 4.0]])
ARRAY = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize(
    "function",
    [
        np.exp, np.sum, np.mean, np.linalg.inv, np.linalg.det, np.transpose, np.ravel, np.median,
        lambda x: np.concatenate([x, x]), lambda x: np.add(np.ones((2, 2)), x),
        lambda x: np.where(x > 2, x, 0), lambda x: np.einsum("ij,jk->ik", x, x),
        lambda x: np.stack((x, [[5, 6], [7, 8]])), lambda x: np.interp(1.5, x[0], x[1]),
        lambda x: np.isclose(x, x), lambda x: np.clip(x, a_min=x, a_max=3), np.max, np.argsort,
    ],
)  # fmt: skip
def test_numpys_functions_take_tensors_that_have_values(function: Any) -> None:
    got, want = function(X), function(ARRAY)
    assert isinstance(got, np.ndarray | np.generic)
    assert np.array_equal(got, want)


def test_shapes_are_known_while_tracing() -> None:
    seen: list[Any] = []
    dn.jit(lambda x: (seen.append((np.ndim(x), np.shape(x), np.size(x))), x)[1])(X)
    assert seen == [(2, (2, 2), 4)]


@pytest.mark.parametrize(
    ("function", "ours"),
    [
        (lambda x: np.sin(x), "dn.sin"),
        (lambda x: np.sum(x, axis=0), "dn.sum"),
        (lambda x: np.add(np.ones(2), x), "dn.add"),
        (lambda x: np.arctan2(1.0, x), r"dn.atan2\(y, x\)"),
        (lambda x: np.linalg.inv(x), r"dn.linalg.invert\(x\)"),
        (lambda x: np.linalg.norm(x), "dn.linalg.norm"),
        (lambda x: np.concatenate([x, x]), "dn.concatenate"),
        (lambda x: np.where(x > 1, x, 0), r"dn.select\(mask, x, y\)"),
        (lambda x: math.sqrt(x[0, 0]), "dn.sqrt"),
        (lambda x: np.linspace(0, 1, 2) + np.hypot(np.exp(1.0), x), "dn.hypot"),
    ],
)
def test_traced_tensors_name_our_function(function: Any, ours: str) -> None:
    with pytest.raises(dn.TraceError, match=rf"being traced and has no values yet; use {ours}"):
        dn.jit(function)(X)


def test_an_array_of_a_traced_tensor_says_what_to_do() -> None:
    for function in (np.asarray, np.array, float):
        with pytest.raises(dn.TraceError, match="return it from the definition"):
            dn.jit(lambda x, function=function: function(x[0, 0]))(X)


def test_functions_are_named_without_their_source() -> None:
    space: dict[str, Any] = {"np": np}
    exec("def f(x):\n    return np.tanh(\n        x)", space)
    with pytest.raises(dn.TraceError, match=r"tanh: another library's function .*use dn\.tanh"):
        dn.jit(space["f"])(X)


def test_operators_with_arrays_give_tensors() -> None:
    for out in (ARRAY + X, ARRAY * X, ARRAY @ X, ARRAY > X, np.float32(2) * X, np.float64(2) - X):
        assert isinstance(out, dn.Tensor)
    values = np.zeros((2, 2))
    before = values
    values -= X
    assert isinstance(values, dn.Tensor)
    assert not before.any()
    before[:] = X
    assert np.array_equal(before, ARRAY)


def offering(protocol: str, value: np.ndarray) -> Any:
    """An object that offers its elements by one protocol only."""
    ways: dict[str, Any] = {
        "__array__": lambda self, dtype=None, copy=None: value,
        "__array_interface__": property(lambda self: value.__array_interface__),
        "__dlpack__": lambda self, **options: value.__dlpack__(**options),
        "__dlpack_device__": lambda self: value.__dlpack_device__(),
    }
    names = [protocol] if protocol != "__dlpack__" else ["__dlpack__", "__dlpack_device__"]
    return type("Offering", (), {name: ways[name] for name in names})()


ARRAYS = [
    offering("__array__", np.array([1.0, 2.0])),
    offering("__array_interface__", np.array([1.0, 2.0])),
    offering("__dlpack__", np.array([1.0, 2.0])),
    array.array("d", [1.0, 2.0]),
    memoryview(np.array([1.0, 2.0])),
    pd.Series([1.0, 2.0], name="height"),
    pd.Index([1.0, 2.0]),
]


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: type(value).__name__)
def test_what_operations_take_definitions_take(value: Any) -> None:
    want = dn.sum(value * 1 if isinstance(value, pd.Series) else value)
    assert (want.dtype, float(want)) == ("f64", 3.0)
    f = dn.jit(lambda x, *, more: dn.sum(x) + dn.sum(more))
    assert float(f(value, more=value)) == 6.0
    assert float(f(np.array([3.0, 4.0]), more=value)) == 10.0
    assert f.cache_info()["misses"] <= 1, "an array of the type is another value"
    assert dn.grad(lambda x: dn.sum(x * x))(value).to_list() == [2.0, 4.0]
    assert float(dn.while_(value, lambda s: s[0] < 9, lambda s: s * 2)[1]) == 32.0
    assert dn.tree.leaves({"a": value, "b": 1})[1] == 1


def test_a_table_is_a_matrix() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert dn.jit(lambda x: x.sum(0))(table).to_list() == [3.0, 7.0]
    assert table[dn.tensor([True, False]).to_numpy()]["b"].tolist() == [3]
    assert (table["a"] + dn.tensor([1.0, 1.0]).to_numpy()).tolist() == [2.0, 3.0]
    with pytest.raises(dn.DTypeError, match="object"):
        dn.jit(lambda x: x)(pd.Series(["a", "b"]))


class Frozen(collections.abc.Mapping):
    """A mapping that is not a dict."""

    def __init__(self, entries: Any) -> None:
        self.entries = dict(entries)

    def __getitem__(self, key: str) -> Any:
        return self.entries[key]

    def __iter__(self) -> Any:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class Settings(dict):
    """A subclass of dict."""


@pytest.mark.parametrize(
    "make",
    [
        collections.OrderedDict,
        lambda entries: collections.defaultdict(float, entries),
        collections.Counter,
        collections.ChainMap,
        collections.UserDict,
        types.MappingProxyType,
        Settings,
        Frozen,
    ],
)
def test_mappings_are_containers(make: Any) -> None:
    value = make({"a": dn.tensor([1.0, 2.0]), "b": dn.tensor(3.0)})
    f = dn.jit(lambda p: p)
    out = f(value)
    assert type(out) is type(value)
    assert out["a"].to_list() == [1.0, 2.0]
    assert f(make({"a": dn.tensor([5.0, 2.0]), "b": 4.0}))["a"].to_list() == [5.0, 2.0]
    gradient = dn.grad(lambda p: dn.sum(p["a"] * p["b"]))(value)
    assert type(gradient) is type(value)
    assert (gradient["a"].to_list(), float(gradient["b"])) == ([3.0, 3.0], 3.0)
    doubled = dn.tree.map(lambda x: x * 2, value)
    assert type(doubled) is type(value)
    assert doubled["a"].to_list() == [2.0, 4.0]
    if isinstance(value, collections.defaultdict):
        assert out.default_factory is float
    elif not isinstance(value, types.MappingProxyType):
        assert dn.deserialize(dn.serialize(value))["a"].to_list() == [1.0, 2.0]


def test_a_mapping_of_another_constructor_is_named() -> None:
    class Named(Frozen):
        def __init__(self, *, entries: Any) -> None:
            super().__init__(entries)

    with pytest.raises(dn.ContainerError, match="a Named is not made of a dict alone; pass dict"):
        dn.jit(lambda p: p["a"])(Named(entries={"a": 1.0}))


def test_dtypes_of_numpys_names() -> None:
    for dtype in dn._core.dtypes:
        known = np.dtype(dtype)
        assert known == dtype.to_numpy()
        assert dn.dtype(known.name) is dtype
        assert dtype == known.name
        assert dn.tensor([1], dtype=known.name).dtype == known
    assert np.zeros(2, dn.f32).dtype == "float32"
    assert ARRAY.astype(X.dtype).dtype == "float32"
    assert X.dtype == np.float32
    assert np.issubdtype(X.dtype, np.floating)
    assert np.finfo(X.dtype).bits == 32
    for name, hint in (("half", "use f16"), ("int", "use s32 or s64"), ("float128", "widest")):
        with pytest.raises(dn.DTypeError, match=hint):
            dn.dtype(name)


def test_parts_of_complex_numbers_are_methods() -> None:
    z = dn.tensor([1 + 2j])
    assert (z.real().to_list(), z.imag().to_list()) == ([1.0], [2.0])
    assert "call it, x.real()" in repr(z.real)
    uses: list[Any] = [
        lambda: z.real + 1, lambda: 2 * z.imag, lambda: z.real[0], lambda: z.real.sum(),
        lambda: dn.sum(z.real), lambda: np.abs(z.imag), lambda: len(z.real), lambda: -z.real,
        lambda: z.real > 0, lambda: list(z.real), lambda: dn.jit(lambda x: x.real * 2)(z),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(dn.OptionError, match=r"call it, x\.(real|imag)\(\)"):
            use()


def test_items_are_not_assigned() -> None:
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set"):
        X[0] = 1.0
    with pytest.raises(dn.OptionError, match=r"use dn\.max\(a, b\) for two tensors"):
        X.max(X)


def test_scalars_are_not_iterated_over() -> None:
    for function in (iter, list, len, lambda x: [*x]):
        with pytest.raises(TypeError):
            function(dn.tensor(1.0))


def test_public_names_only() -> None:
    for module in (dn, dn.linalg, dn.nn, dn.random, dn.tree):
        shown = [name for name in dir(module) if not name.startswith("__")]
        assert set(shown) <= set(module.__all__)
    assert "TYPE_CHECKING" not in dir(dn)
    assert "astype" not in dir(X)
