"""Containers of tensors in arguments, states and results."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest

import defn as dn
from defn.backends import NumPyBackend
from support import Log

Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - the untyped form too.


class Typed(NamedTuple):
    left: dn.Tensor
    right: dn.Tensor


@dataclass
class Plain:
    left: dn.Tensor
    right: dn.Tensor


@dataclass(frozen=True)
class Frozen:
    left: dn.Tensor
    right: dn.Tensor
    scale: dn.Static[int] = 2
    title: str = "frozen"


@attrs.define
class Attrs:
    left: dn.Tensor
    right: dn.Tensor


@dataclass
class Nested:
    parts: dict[str, Plain] = field(default_factory=dict)
    rest: list[dn.Tensor] = field(default_factory=list)


def swap(value):
    if isinstance(value, dict):
        return type(value)(
            (key, value[other]) for key, other in zip(value, reversed(value), strict=True)
        )
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return (value[1], value[0])
    if isinstance(value, list):
        return [value[1], value[0]]
    if isinstance(value, Frozen):
        return Frozen(value.right, value.left, value.scale, value.title)
    return type(value)(value.right, value.left)


@pytest.mark.parametrize(
    "value",
    [
        (1.0, 2.0),
        [1.0, 2.0],
        {"a": 1.0, "b": 2.0},
        OrderedDict([("z", 1.0), ("a", 2.0)]),
        Pair(1.0, 2.0),
        Typed(1.0, 2.0),
        Plain(1.0, 2.0),
        Frozen(1.0, 2.0),
        Attrs(1.0, 2.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_round_trip(value) -> None:
    out = dn.jit(swap)(value)
    assert type(out) is type(value)
    if isinstance(value, dict):
        first, second = out.values()
        assert list(out) == list(value)
    elif isinstance(value, tuple | list):
        first, second = out
    else:
        first, second = out.left, out.right
    assert isinstance(first, dn.Tensor)
    assert (float(first), float(second)) == (2.0, 1.0)


def test_nested() -> None:
    value = Nested({"a": Plain(1.0, 2.0)}, [3.0, 4.0])
    out = dn.jit(lambda v: Nested({"b": Plain(v.rest[0], v.parts["a"].left)}, [v.rest[1]]))(value)
    assert (float(out.parts["b"].left), float(out.parts["b"].right)) == (3.0, 1.0)
    assert [float(t) for t in out.rest] == [4.0]


def test_static_fields_stay_as_they_are() -> None:
    seen = Log()

    @dn.jit
    def scaled(value: Frozen) -> dn.Tensor:
        seen.append((value.scale, value.title))
        return value.left * value.scale

    assert float(scaled(Frozen(1.5, 0.0))) == 3.0
    assert float(scaled(Frozen(2.5, 0.0))) == 5.0
    assert float(scaled(Frozen(1.5, 0.0, scale=4))) == 6.0
    assert float(scaled(Frozen(1.5, 0.0, title="other"))) == 3.0
    assert seen.items == [(2, "frozen"), (4, "frozen"), (2, "other")]


def test_none_and_strings_are_static() -> None:
    traced = Log()

    @dn.jit
    def join(value: dict[str, object]) -> object:
        traced.append(value["mode"])
        return {"x": value["x"], "none": value["none"], "mode": value["mode"]}

    out = join({"x": 1.0, "none": None, "mode": "a"})
    assert (out["none"], out["mode"]) == (None, "a")
    join({"x": 2.0, "none": None, "mode": "a"})
    join({"x": 2.0, "none": None, "mode": "b"})
    assert traced.items == ["a", "b"]


class Registered:
    def __init__(self, value: object, label: str) -> None:
        self.value, self.label = value, label


class Unregistered:
    def __init__(self) -> None:
        self.value = 1.0


def test_register() -> None:
    dn.register_container(
        Registered,
        lambda r: ([r.value], r.label),
        lambda label, children: Registered(children[0], label),
    )
    out = dn.jit(lambda r: Registered(r.value * 2.0, r.label + "!"))(Registered(3.0, "x"))
    assert (float(out.value), out.label) == (6.0, "x!")
    with pytest.raises(dn.ContainerError, match="already"):
        dn.register_container(dict, lambda r: ([], None), lambda _, c: None)


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(dn.ContainerError, match="register_container"):
        dn.jit(lambda v: v.value)(Unregistered())


def test_an_input_returned_as_it_is_is_the_same_memory() -> None:
    x = dn.tensor([1.0, 2.0, 3.0])
    out = dn.jit(lambda v: (v, v + 1.0))(x)[0]
    left, right = x.to_numpy(), out.to_numpy()
    assert left.__array_interface__["data"][0] == right.__array_interface__["data"][0]


def test_empty_containers() -> None:
    assert dn.jit(lambda v: v)(()) == ()
    assert dn.jit(lambda v: {"a": [], "b": v})({}) == {"a": [], "b": {}}


def test_a_container_in_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(dn.ContainerError, match="contain itself"):
        dn.jit(lambda v: v)(loop)


class Watching(NumPyBackend):
    """A backend that records the elements sent to it."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[list[float]] = []

    def from_binary(self, out, data):
        array = super().from_binary(out, data)
        self.arrived.append(array.tolist())
        return array


def test_unused_leaves_do_not_travel() -> None:
    """They are not sent to the backend, and unused arrays do not become tensors."""
    backend = Watching()
    here = dn.tensor([1.0, 2.0], backend=backend)
    backend.arrived.clear()

    @dn.jit
    def f(parts, number):
        return parts["used"] + 1 if number.shape == () else parts["unused"]

    parts = {"used": here, "unused": dn.tensor([3.0]), "array": np.array([4.0])}
    assert f(parts, 5.0).to_list() == [2.0, 3.0]
    assert backend.arrived == []

    with dn.options(backend=backend):
        backend.arrived.clear()
        assert f({**parts, "used": np.array([7.0, 8.0], np.float32)}, 5.0).to_list() == [8.0, 9.0]
        assert [7.0, 8.0] in backend.arrived
        assert [4.0] not in backend.arrived
        assert 5.0 not in backend.arrived


def test_unused_leaves_on_two_backends_are_no_conflict() -> None:
    other = dn.tensor([3.0], backend=Watching())
    here = dn.tensor([1.0], backend=NumPyBackend())
    assert dn.jit(lambda x, y: x + y.rank)(here, other).to_list() == [2.0]
    with pytest.raises(dn.BackendError):
        dn.jit(lambda x, y: x + y)(here, other)


def test_a_leaf_that_is_returned_unchanged_and_one_that_is_not_used() -> None:
    array = np.array([1.0, 2.0])
    out = dn.jit(lambda parts: {"same": parts["a"], "new": parts["b"] * 2})(
        {"a": array, "b": 3.0, "c": array}
    )
    array[:] = 0.0
    assert (out["same"].to_list(), float(out["new"])) == ([1.0, 2.0], 6.0)


def test_an_unused_tensor_must_still_be_one() -> None:
    with pytest.raises(dn.TraceError, match="template"):
        dn.jit(lambda x, y: x)(1.0, dn.template((2,), "f32"))


@pytest.mark.parametrize("join", [dn.concatenate, dn.stack])
def test_leaves_of_containers_are_joined(join) -> None:
    a, b, c = (np.array([at, at + 1.0], "f4") for at in range(3))
    oracle = {dn.concatenate: np.concatenate, dn.stack: np.stack}[join]
    for nested in (
        {"a": a, "b": b, "c": c},
        [a, (b, [c])],
        {"a": {"b": a}, "c": [b, c]},
        Pair(a, {"b": b, "c": c}),
        Plain([a, b], c),
        {1: a, 2: Frozen(b, c)},
    ):
        assert join(nested).to_list() == oracle([a, b, c]).tolist()
        assert dn.jit(join)(nested).to_list() == oracle([a, b, c]).tolist()
        assert dn.jit(lambda nested: join(nested, axis=-1))(nested).to_list() == (
            oracle([a, b, c], axis=-1).tolist()
        )
    with pytest.raises(dn.ShapeError, match="no tensors were given"):
        join({})


class Table:
    """A container whose columns are read on demand."""

    def __init__(self, **columns: Any) -> None:
        self.columns = columns


dn.register_container(
    Table,
    lambda table: (list(table.columns.values()), tuple(table.columns)),
    lambda names, columns: Table(**dict(zip(names, columns, strict=True))),
)


def test_a_leaf_that_is_a_function_is_read_when_it_is_needed() -> None:
    read: list[str] = []

    def column(name: str, values: list[float]) -> Any:
        def load():
            read.append(name)
            return np.array(values, dtype=np.float32)

        return load

    table = Table(a=column("a", [1.0, 2.0]), b=column("b", [3.0, 4.0]))
    structure = dn.tree.structure(table)
    assert read == [], "the structure says nothing of the tensors"
    f = dn.jit(lambda table: table.columns["a"] * 2)
    assert f(table).to_list() == [2.0, 4.0]
    assert sorted(read) == ["a", "b"], "the types of both are part of the version: once each"
    assert [leaf.to_list() for leaf in dn.tree.leaves(table)] == [[1.0, 2.0], [3.0, 4.0]]
    assert dn.tree.structure(dn.tree.map(lambda x: x * 2, table)) == structure
    read.clear()
    gradient = dn.grad(lambda table: dn.sum(table.columns["a"] ** 2))(table)
    assert gradient.columns["a"].to_list() == [2.0, 4.0]
    assert sorted(read) == ["a", "b"]


def test_a_lazy_leaf_is_read_where_the_program_uses_it() -> None:
    read: list[str] = []

    def lazily(name: str, value: Any) -> Any:
        def load():
            read.append(name)
            return value

        return dn.lazy(dn.template((2,), "f32"), load)

    table = Table(a=lazily("a", dn.tensor([1.0, 2.0])), b=lazily("b", np.ones(2, np.float32)))
    f = dn.jit(lambda table: table.columns["a"] * 2)
    assert f(table).to_list() == [2.0, 4.0]
    assert read == ["a"]
    assert f(table).to_list() == [2.0, 4.0]
    assert read == ["a", "a"], "each call reads it anew"
    both = dn.jit(lambda table: table.columns["a"] + table.columns["b"], compiler="evaluator")
    assert both(table).to_list() == [2.0, 3.0]
    assert read == ["a", "a", "a", "b"]
    assert f.cache_info()["misses"] == 1
    assert repr(table.columns["a"]) == "<lazy f32[2]>"
    assert dn.sum(table.columns["a"]).item() == 3.0
    assert dn.lazy(1.5, lambda: 2.5)().item() == 2.5


def test_what_a_lazy_leaf_gives_is_of_its_type() -> None:
    f = dn.jit(lambda x: x + 1)
    wrong = dn.lazy(dn.template((2,), "f32"), lambda: dn.tensor([1, 2, 3]))
    with pytest.raises(dn.ContainerError, match=r"lazy: the function gave s32\[3\], its template"):
        f(wrong)
    with pytest.raises(dn.OptionError, match="lazy: fun"):
        dn.lazy(dn.template((2,), "f32"), 3)  # type: ignore[arg-type]

    def broken():
        raise FileNotFoundError("table.bin")

    with pytest.raises(FileNotFoundError, match=r"table\.bin"):
        f(dn.lazy(dn.template((2,), "f32"), broken))
