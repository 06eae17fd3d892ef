"""Captured values of a definition: it is compiled again if one of them has changed."""

from __future__ import annotations

import importlib
import pathlib
import sys
import types
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import defn as dn

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = "nothing was compiled before"


@dataclass
class Rates:
    rate: float = 2.0


class Scaler:
    scale: Any = 2.0

    def __init__(self) -> None:
        self.rate = 2.0
        self.steps = [2.0]

    def scaled(self, x: Any) -> Any:
        return x * self.rate

    def __call__(self, x: Any) -> Any:
        return x * self.rate

    @property
    def twice(self) -> float:
        return self.rate * 2

    @dn.defn
    def by_rate(self, x: Any) -> Any:
        return x * self.rate

    @dn.defn
    def by_step(self, x: Any) -> Any:
        return x * self.steps[0]

    @dn.defn
    def by_class(self, x: Any) -> Any:
        return x * self.scale

    @dn.defn
    def by_property(self, x: Any) -> Any:
        return x * self.twice

    @dn.defn
    def by_helper(self, x: Any) -> Any:
        return self.scaled(x)


class Held:
    def __init__(self) -> None:
        self.rate = 2.0
        self.inner = Rates()


def closing(n: float) -> Any:
    return lambda x: x * n


def double(x: Any) -> Any:
    return x * 2.0


def triple(x: Any) -> Any:
    return x * 3.0


MODULE = types.ModuleType("settings")
CONFIG: Any = {}
ENTRIES: Any = []
RATES: Any = Rates()
OBJECT: Any = Held()
TABLE: Any = {}
HELPER: Any = double
PARTIAL: Any = None
SET: Any = set()
COUNTED: Any = defaultdict(float)
ORDERED: Any = OrderedDict()
LARGE: Any = {}
CYCLE: Any = []


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle: Any = [2.0]
    cycle.append(cycle)
    module = sys.modules[__name__]
    given = {
        "CONFIG": {"rate": 2.0, "step": 0, "layers": [{"width": 2.0}]},
        "ENTRIES": [2.0],
        "RATES": Rates(),
        "OBJECT": Held(),
        "TABLE": {"act": closing(2.0)},
        "HELPER": closing(2.0),
        "PARTIAL": partial(lambda x, n: x * n, n=2.0),
        "SET": {1.0, 2.0},
        "COUNTED": defaultdict(float, rate=2.0),
        "ORDERED": OrderedDict(rate=2.0),
        "LARGE": dict.fromkeys(range(2000), 2.0),
        "CYCLE": cycle,
    }
    for name, value in given.items():
        monkeypatch.setattr(module, name, value)
    MODULE.__dict__.update(RATE=2.0, CONFIG={"rate": 2.0}, apply=double)
    monkeypatch.setattr(Scaler, "scale", 2.0)


def change(place: Any, key: Any, value: Any) -> Callable[[], None]:
    return lambda: place().__setitem__(key, value)


def setting(place: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(place(), name, value)


def rebind(name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(sys.modules[__name__], name, value)


def through_helper(x: Any) -> Any:
    return x * CONFIG["rate"]


def found(x: Any) -> Any:
    try:
        return x * LATER  # type: ignore[name-defined]
    except NameError:
        return x * 2.0


CAUSES: dict[str, tuple[Any, Callable[[], None], str]] = {
    "an item of a dict": (
        lambda x: x * CONFIG["rate"],
        change(lambda: CONFIG, "rate", 5.0),
        'the value of the global CONFIG["rate"] changed from 2.0 to 5.0',
    ),
    "an item deep inside": (
        lambda x: x * CONFIG["layers"][0]["width"],
        change(lambda: CONFIG["layers"][0], "width", 5.0),
        'the value of the global CONFIG["layers"][0]["width"] changed from 2.0 to 5.0',
    ),
    "an item by a name that is not written": (
        lambda x: sum(x * CONFIG[name] for name in ("rate",)),
        change(lambda: CONFIG, "rate", 5.0),
        'the value of the global CONFIG["rate"] changed from 2.0 to 5.0',
    ),
    "an item by a method": (
        lambda x: x * CONFIG.get("rate", 1.0),
        change(lambda: CONFIG, "rate", 5.0),
        'the value of the global CONFIG["rate"] changed from 2.0 to 5.0',
    ),
    "an item in a helper": (
        lambda x: through_helper(x),
        change(lambda: CONFIG, "rate", 5.0),
        'the value of the global CONFIG["rate"] changed from 2.0 to 5.0',
    ),
    "the length of a list": (
        lambda x: x * (len(ENTRIES) + 1.0),
        lambda: ENTRIES.extend([1.0, 1.0, 1.0]),
        "the length of the global ENTRIES changed from 1 to 4",
    ),
    "a field of a dataclass": (
        lambda x: x * RATES.rate,
        setting(lambda: RATES, "rate", 5.0),
        "the value of the global RATES.rate changed from 2.0 to 5.0",
    ),
    "an attribute of an object": (
        lambda x: x * OBJECT.rate,
        setting(lambda: OBJECT, "rate", 5.0),
        "the value of the global OBJECT.rate changed from 2.0 to 5.0",
    ),
    "an attribute inside an object": (
        lambda x: x * OBJECT.inner.rate,
        setting(lambda: OBJECT.inner, "rate", 5.0),
        "the value of the global OBJECT.inner.rate changed from 2.0 to 5.0",
    ),
    "an attribute by its name": (
        lambda x: x * getattr(OBJECT, "rate"),  # noqa: B009
        setting(lambda: OBJECT, "rate", 5.0),
        "the value of the global OBJECT.rate changed from 2.0 to 5.0",
    ),
    "an attribute of a class": (
        lambda x: x * Scaler.scale,
        setting(lambda: Scaler, "scale", 5.0),
        "the value of the global Scaler.scale changed from 2.0 to 5.0",
    ),
    "an attribute of a module": (
        lambda x: x * MODULE.RATE,
        setting(lambda: MODULE, "RATE", 5.0),
        "the value of the global MODULE.RATE changed from 2.0 to 5.0",
    ),
    "an item of a module's dict": (
        lambda x: x * MODULE.CONFIG["rate"],
        change(lambda: MODULE.CONFIG, "rate", 5.0),
        'the value of the global MODULE.CONFIG["rate"] changed from 2.0 to 5.0',
    ),
    "a function of a module": (
        lambda x: MODULE.apply(x),
        setting(lambda: MODULE, "apply", lambda x: x * 5.0),
        "the global MODULE.apply changed from the function double to the function <lambda>",
    ),
    "what a global function closes over": (
        lambda x: HELPER(x),
        rebind("HELPER", closing(5.0)),
        "the value of the closure's n of HELPER changed from 2.0 to 5.0",
    ),
    "what a function in a dict closes over": (
        lambda x: TABLE["act"](x),
        change(lambda: TABLE, "act", closing(5.0)),
        'the value of the closure\'s n of TABLE["act"] changed from 2.0 to 5.0',
    ),
    "what a partial holds": (
        lambda x: PARTIAL(x),
        change(lambda: PARTIAL.keywords, "n", 5.0),
        'the value of the global PARTIAL.keywords["n"] changed from 2.0 to 5.0',
    ),
    "a set": (
        lambda x: x * sum(SET) / 1.5,
        lambda: SET.add(4.5),
        "the value of the global SET changed from frozenset({1.0, 2.0}) to frozenset({1.0, 2.0, "
        "4.5})",
    ),
    "a dict of another class": (
        lambda x: x * sum(COUNTED.values()),
        change(lambda: COUNTED, "rate", 5.0),
        'the value of the global COUNTED["rate"] changed from 2.0 to 5.0',
    ),
    "an ordered dict": (
        lambda x: x * sum(ORDERED.values()),
        change(lambda: ORDERED, "rate", 5.0),
        'the value of the global ORDERED["rate"] changed from 2.0 to 5.0',
    ),
    "an item of a large dict": (
        lambda x: x * LARGE[7],
        change(lambda: LARGE, 7, 5.0),
        "the value of the global LARGE[7] changed from 2.0 to 5.0",
    ),
    "the length of a large dict": (
        lambda x: x * (len(LARGE) / 1000.0),
        lambda: LARGE.update({-i: 0.0 for i in range(1, 3001)}),
        "the length of the global LARGE changed from 2000 to 5000",
    ),
    "an item of a list that holds itself": (
        lambda x: x * CYCLE[0],
        change(lambda: CYCLE, 0, 5.0),
        "the value of the global CYCLE[0] changed from 2.0 to 5.0",
    ),
    "a name that was not there": (
        found,
        rebind("LATER", 5.0),
        "the global LATER changed from not defined to 5.0",
    ),
    "another structure": (
        lambda x: x * (5.0 if isinstance(CONFIG["layers"], tuple) else 2.0),
        change(lambda: CONFIG, "layers", ()),
        'the type of the global CONFIG["layers"] changed from list to tuple',
    ),
    "another class": (
        lambda x: x * (5.0 if isinstance(OBJECT, Scaler) else 2.0),
        rebind("OBJECT", Scaler()),
        "the global OBJECT changed from a Held to a Scaler",
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_globals(cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LATER", None, raising=False)
    monkeypatch.delattr(sys.modules[__name__], "LATER")
    fun, mutate, sentence = CAUSES[cause]
    f = dn.jit(fun)
    f.cache_clear()
    assert [float(f(1.0)), float(f(1.0))] == [2.0, 2.0]
    mutate()
    assert [float(f(1.0)), float(f(1.0))] == [5.0, 5.0]
    assert f.explain() == [FIRST, sentence]


def held_in_a_cell() -> tuple[Any, Any]:
    held = Held()
    return dn.jit(lambda x: x * held.rate), setting(lambda: held, "rate", 5.0)


def module_in_a_cell() -> tuple[Any, Any]:
    settings = MODULE
    return dn.jit(lambda x: x * settings.RATE), setting(lambda: MODULE, "RATE", 5.0)


def set_in_a_cell() -> tuple[Any, Any]:
    numbers = {0.5, 1.5}
    return dn.jit(lambda x: x * sum(numbers)), lambda: numbers.add(3.0)


def plain_method() -> tuple[Any, Any]:
    scaler = Scaler()
    return dn.jit(scaler.scaled), setting(lambda: scaler, "rate", 5.0)


def callable_object() -> tuple[Any, Any]:
    scaler = Scaler()
    return dn.jit(scaler), setting(lambda: scaler, "rate", 5.0)


def method(name: str, attribute: str, value: Any) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        scaler = Scaler()
        if name == "by_property":
            scaler.rate = 1.0
        mutate = (
            change(lambda: scaler.steps, 0, value)
            if attribute == "steps"
            else setting(lambda: scaler, attribute, value)
        )
        return getattr(scaler, name), mutate

    return make


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (held_in_a_cell, "the value of the closure's held.rate changed from 2.0 to 5.0"),
        (module_in_a_cell, "the value of the closure's settings.RATE changed from 2.0 to 5.0"),
        (
            set_in_a_cell,
            "the value of the closure's numbers changed from frozenset({0.5, 1.5}) to "
            "frozenset({0.5, 1.5, 3.0})",
        ),
        (plain_method, "the value of self.rate changed from 2.0 to 5.0"),
        (callable_object, "the value of self.rate changed from 2.0 to 5.0"),
        (method("by_rate", "rate", 5.0), "the value of self.rate changed from 2.0 to 5.0"),
        (method("by_step", "steps", 5.0), "the value of self.steps[0] changed from 2.0 to 5.0"),
        (method("by_class", "scale", 5.0), "the value of self.scale changed from 2.0 to 5.0"),
        (method("by_property", "rate", 2.5), "the value of self.rate changed from 1.0 to 2.5"),
        (method("by_helper", "rate", 5.0), "the value of self.rate changed from 2.0 to 5.0"),
    ],
)
def test_objects_and_cells(make: Any, sentence: str) -> None:
    f, mutate = make()
    (f.cache_clear if hasattr(f, "cache_clear") else f.__func__.cache_clear)()
    assert [float(f(1.0)), float(f(1.0))] == [2.0, 2.0]
    mutate()
    assert [float(f(1.0)), float(f(1.0))] == [5.0, 5.0]
    assert f.explain()[-1] == sentence


def test_what_is_not_read_may_change() -> None:
    f = dn.jit(lambda x: x * CONFIG["rate"])
    f.cache_clear()
    for step in range(20):
        CONFIG["step"] = step
        CONFIG[f"more {step}"] = step
        f(1.0)
    assert f.explain() == [FIRST]


def test_what_tracing_changes_is_no_cause() -> None:
    def f(x: Any) -> Any:
        CONFIG["traced"] = CONFIG.get("traced", 0) + 1
        ENTRIES.append(1)
        return x * CONFIG["rate"]

    jitted = dn.jit(f)
    for _ in range(5):
        jitted(1.0)
    assert jitted.explain() == [FIRST]
    CONFIG["rate"] = 5.0
    assert float(jitted(1.0)) == 5.0
    assert jitted.explain()[1:] == [
        'the value of the global CONFIG["rate"] changed from 2.0 to 5.0'
    ]


def note(value: Any) -> None:
    CONFIG["step"] += 1


@pytest.mark.parametrize(
    "hook",
    [lambda v: ENTRIES.append(float(v)), note, lambda v: CONFIG.update(step=float(v))],
    ids=["appends", "counts", "writes"],
)
def test_what_hooks_change_is_no_cause(hook: Any) -> None:
    f = dn.jit(lambda x: dn.hook(x * CONFIG["rate"], hook))
    f.cache_clear()
    for i in range(5):
        f(float(i))
    assert f.explain() == [FIRST]
    CONFIG["rate"] = 5.0
    assert float(f(1.0)) == 5.0
    assert f.explain()[1:] == ['the value of the global CONFIG["rate"] changed from 2.0 to 5.0']


def test_a_method_of_a_list_as_a_hook() -> None:
    f = dn.jit(lambda x: dn.hook(x, ENTRIES.append))
    f.cache_clear()
    for i in range(5):
        f(float(i))
    assert f.explain() == [FIRST]
    assert len(ENTRIES) == 6


def test_a_replaced_object_whose_tensors_are_read_compiles_nothing() -> None:
    module: Any = sys.modules[__name__]
    f = dn.jit(lambda x: x * OBJECT.rate)
    f.cache_clear()
    results = []
    for i in range(4):
        module.OBJECT = Held()
        module.OBJECT.rate = dn.tensor(float(i))
        results.append(float(f(1.0)))
    assert results == [0.0, 1.0, 2.0, 3.0]
    assert f.explain() == [FIRST]


def test_objects_that_refer_to_each_other() -> None:
    class Node:
        def __init__(self) -> None:
            self.other: Any = self
            self.rate = 2.0

    first, second = Node(), Node()
    first.other, second.other = second, first
    f = dn.jit(lambda x: x * first.other.rate)
    assert float(f(1.0)) == 2.0
    second.rate = 5.0
    assert float(f(1.0)) == 5.0


def test_parts_that_are_held_again_and_again() -> None:
    value: Any = [1.0]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(dn.ContainerError, match="holds more than 10000000 values"):
        dn.jit(lambda x: 0)(value)


def test_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    f = dn.jit(lambda x: x * CONFIG["rate"])
    f.cache_clear()
    f(1.0)
    CONFIG["rate"] = 5.0
    with caplog.at_level("INFO", "defn"), dn.options(log_compiles=True):
        f(1.0)
    assert 'the value of the global CONFIG["rate"] changed from 2.0 to 5.0' in caplog.text


@pytest.fixture
def installed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in a folder of installed packages."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "installed.py").write_text("""
import defn
RATE = 2.0
TABLE = defn.tensor([1.0, 2.0])
ASKED = []
def scaled(x):
    return TABLE * x
def __getattr__(name):
    ASKED.append(name)
    raise AttributeError(name)
""")
    monkeypatch.syspath_prepend(folder)
    module = importlib.import_module("installed")
    yield module
    del sys.modules["installed"]


def test_installed_modules_are_asked_for_what_code_reads_alone(
    installed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module may import others when it is asked for a name, and has many names."""
    module, scaler, names = installed, Scaler(), ["rate"]

    @dn.jit
    def scaled(x: Any) -> Any:
        made = dn.tensor([1.0])[0]
        return x * made * module.RATE * scaler.steps[0] * getattr(scaler, names[0])

    assert scaled(dn.tensor(1.0)).item() == 8.0
    assert [name for name in module.ASKED if not name.startswith("__")] == []
    monkeypatch.setattr(module, "RATE", 3.0)
    assert scaled(dn.tensor(1.0)).item() == 12.0


def test_tensors_of_installed_modules_are_found(
    installed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = dn.jit(lambda x: installed.scaled(x))
    assert scaled(2.0).to_list() == [2.0, 4.0]
    monkeypatch.setattr(installed, "TABLE", dn.tensor([3.0, 4.0]))
    assert scaled(2.0).to_list() == [6.0, 8.0]
