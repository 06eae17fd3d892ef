"""When a definition is traced, compiled and reused, and the parts of its key."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import defn as dn
from support import Log

SCALE = dn.tensor(3.0)


def counted(function):
    """The function, and a list that grows with each trace."""
    traces = Log()

    def traced(*args, **kwargs):
        traces.append(1)
        return function(*args, **kwargs)

    return traced, traces


def test_values_do_not_trace_again() -> None:
    function, traces = counted(lambda x: x + 1)
    jitted = dn.jit(function)
    assert [float(jitted(v)) for v in (1.0, 2.0, 3.0)] == [2.0, 3.0, 4.0]
    assert len(traces) == 1
    info = jitted.cache_info()
    assert (info["hits"], info["misses"], info["size"], info["limit"]) == (2, 1, 1, 256)
    assert 0.0 < info["seconds"] < 60.0


def test_keyword_only_parameters_are_options() -> None:
    seen = Log()

    @dn.defn
    def scaled(x: dn.Tensor, *, by: int = 2, offset: object = 0.0) -> dn.Tensor:
        seen.append((type(by), isinstance(offset, dn.Tensor)))
        return x * by + offset

    assert float(scaled(3.0)) == 6.0
    assert float(scaled(3.0, by=4)) == 12.0
    assert float(scaled(4.0, by=4)) == 16.0
    assert float(scaled(3.0, offset=dn.tensor(1.0))) == 7.0
    assert float(scaled(3.0, offset=dn.tensor(2.0))) == 8.0
    assert seen.items == [(int, False), (int, False), (int, True)]


def test_inputs_may_be_passed_by_name() -> None:
    @dn.defn
    def subtract(x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return x - y

    assert float(subtract(y=1.0, x=3.0)) == 2.0
    assert float(subtract(3.0, y=1.0)) == 2.0


def test_defaults_of_inputs() -> None:
    @dn.defn
    def add(x: dn.Tensor, y: float = 5.0) -> dn.Tensor:
        assert isinstance(y, dn.Tensor | float)
        return x + y

    assert float(add(1.0)) == 6.0
    assert float(add(1.0, 2.0)) == 3.0


def test_static_parameters() -> None:
    @dn.jit(static=("n",))
    def tiled(x: dn.Tensor, n: int) -> dn.Tensor:
        return dn.broadcast(x, (n,))

    @dn.jit
    def annotated(x: dn.Tensor, n: dn.Static[int]) -> dn.Tensor:
        return dn.broadcast(x, (n,))

    for function in (tiled, annotated):
        assert function(1.0, 2).shape == (2,)
        assert function(1.0, 3).shape == (3,)
        assert function.cache_info()["misses"] == 2
    with pytest.raises(dn.OptionError, match='"missing"'):
        dn.jit(lambda x: x, static="missing")(1.0)


def test_static_keys_compare_type_and_value() -> None:
    function, traces = counted(lambda x, *, by: x * by)
    jitted = dn.jit(function)
    for by in (1, 1.0, True, 1):
        jitted(1.0, by=by)
    assert len(traces) == 3


def test_unhashable_static_values_are_refused() -> None:
    class Unhashable:
        __hash__ = None

    @dn.defn
    def choose(x: dn.Tensor, *, options: object) -> dn.Tensor:
        return x

    with pytest.raises(dn.OptionError, match="cannot be hashed"):
        choose(1.0, options=Unhashable())


def test_captured_tensors_are_inputs() -> None:
    """Closure cells and globals are read again at each call; the key contains only their types."""
    weight = dn.tensor(2.0)
    function, traces = counted(lambda x: x)

    @dn.jit
    def scaled(x: dn.Tensor) -> dn.Tensor:
        function(x)
        return x * weight * SCALE

    global SCALE
    assert float(scaled(1.0)) == 6.0
    weight = dn.tensor(5.0)
    assert float(scaled(1.0)) == 15.0
    SCALE = dn.tensor(4.0)
    assert float(scaled(1.0)) == 20.0
    SCALE = dn.tensor(3.0)
    assert len(traces) == 1


RATE: object = 2.0


def scale_by_rate(x: dn.Tensor) -> dn.Tensor:
    return x * RATE


def test_a_plain_global_that_changes_is_seen() -> None:
    """A version is valid while the plain globals that it was traced with are unchanged."""
    global RATE, scale_by_rate
    before = scale_by_rate
    scaled = dn.jit(lambda x: scale_by_rate(x))
    try:
        assert float(scaled(1.0)) == 2.0
        RATE = dn.tensor([1.0, 2.0, 3.0])
        assert scaled(1.0).to_list() == [1.0, 2.0, 3.0]
        RATE = 5.0
        assert float(scaled(1.0)) == 5.0
        RATE = 6.0
        assert float(scaled(1.0)) == 6.0
        assert scaled.explain()[-1] == "the value of the global RATE changed from 5.0 to 6.0"
        RATE = dn.tensor([4.0, 5.0])
        assert scaled(1.0).to_list() == [4.0, 5.0]
        RATE = 2.0
        assert float(scaled(1.0)) == 2.0
        assert len(scaled.explain()) == 5
        RATE = -0.0
        assert str(scaled(1.0).item()) == "-0.0"
        RATE = 0.0
        assert str(scaled(1.0).item()) == "0.0"
        scale_by_rate = lambda x: x + 1.0  # noqa: E731
        assert float(scaled(1.0)) == 2.0
    finally:
        RATE, scale_by_rate = 2.0, before


COUNT = 0


def test_a_global_that_tracing_changes_is_no_reason_to_compile() -> None:
    @dn.jit
    def counting(x: dn.Tensor) -> dn.Tensor:
        global COUNT
        COUNT += 1
        return x + 1.0

    assert [float(counting(x)) for x in (1.0, 2.0, 3.0)] == [2.0, 3.0, 4.0]
    assert COUNT == 1


def test_captured_containers() -> None:
    parameters = {"w": dn.tensor([1.0, 2.0]), "b": [dn.tensor(1.0)]}

    @dn.jit
    def apply(x: dn.Tensor) -> dn.Tensor:
        return dn.sum(x * parameters["w"]) + parameters["b"][0]

    assert float(apply(1.0)) == 4.0
    parameters["b"] = [dn.tensor(10.0)]
    assert float(apply(1.0)) == 13.0
    assert apply.cache_info()["misses"] == 1


def test_a_lambda_made_anew_does_not_compile_again() -> None:
    traces = Log()

    def run(x: float, weight: dn.Tensor) -> float:
        return float(dn.jit(lambda v: traces.append(1) or v * weight)(x))

    assert [run(2.0, dn.tensor(w)) for w in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert len(traces) == 1


def test_other_cell_values_are_static() -> None:
    def make(n: int):
        return dn.jit(lambda x: x * n)

    assert [float(make(n)(2.0)) for n in (1, 2, 3, 1)] == [2.0, 4.0, 6.0, 2.0]


def test_definitions_are_inlined() -> None:
    inner = dn.defn(lambda x: x * 2.0)
    outer = dn.defn(lambda x: inner(x) + 1.0)
    assert float(outer(3.0)) == 7.0
    assert "multiply" in repr(dn.debug_expr(outer)(3.0))


def test_on_conflict() -> None:
    raising = dn.jit(lambda x: x + 1.0)
    reusing = dn.jit(lambda x: x + 1.0, on_conflict="reuse")
    forcing = dn.jit(lambda: dn.tensor(1.0) + 1.0, on_conflict="force")
    with pytest.raises(dn.TraceError, match="on_conflict"):
        dn.jit(lambda x: raising(x))(1.0)
    assert float(dn.jit(lambda x: reusing(x))(1.0)) == 2.0
    assert float(dn.jit(lambda x: x + forcing())(1.0)) == 3.0
    with pytest.raises(dn.OptionError, match="on_conflict"):
        dn.jit(lambda x: x, on_conflict="ignore")(1.0)


def test_compile() -> None:
    scaled = dn.compile(
        lambda x, *, by: x * by, [dn.template((2,), "f32", names=["x"])], {"by": 3.0}
    )
    out = scaled(dn.tensor([1.0, 2.0], names=["x"]))
    assert (out.to_list(), out.names) == ([3.0, 6.0], ("x",))
    for wrong in (
        dn.tensor([1.0]),
        dn.tensor([1, 2], names=["x"]),
        dn.tensor([1.0, 2.0], names=["y"]),
    ):
        with pytest.raises(dn.ShapeError):
            scaled(wrong)
    with pytest.raises(dn.Error):
        scaled(dn.tensor([1.0, 2.0], names=["x"]), 1.0)
    with pytest.raises(dn.TraceError):
        dn.jit(lambda x: scaled(x))(dn.tensor([1.0, 2.0], names=["x"]))


def test_compile_with_containers_and_statics() -> None:
    mixed = dn.compile(
        lambda p, mode: p["a"] + p["b"] if mode == "add" else p["a"],
        [{"a": dn.template((), "f32"), "b": dn.template((), "f32")}, "add"],
    )
    assert float(mixed({"a": 1.0, "b": 2.0})) == 3.0


def test_compilers() -> None:
    for name in ("cpu", "evaluator"):
        assert float(dn.jit(lambda x: x + 1.0, compiler=name)(1.0)) == 2.0
    with pytest.raises(dn.CompileError, match='"cpu", "evaluator", "pjrt"'):
        dn.jit(lambda x: x + 1.0, compiler="nonsense")(1.0)
    with pytest.raises(dn.OptionError, match='"speed"'):
        dn.jit(lambda x: x + 1.0, speed=11)(1.0)


@pytest.mark.usefixtures("no_options")
def test_default_options() -> None:
    assert dn.default_options() == {}
    before = dn.default_options(compiler="evaluator")
    try:
        assert before == {}
        assert dn.default_options() == {"compiler": "evaluator"}
        seen = []
        thread = threading.Thread(target=lambda: seen.append(dn.default_options()))
        thread.start()
        thread.join()
        assert seen == [{}], "a thread starts from the global options"
    finally:
        assert dn.default_options({}) == {"compiler": "evaluator"}
    assert dn.default_options() == {}
    with pytest.raises(dn.CompileError):
        dn.default_options(compiler="nonsense")
    with pytest.raises(dn.OptionError):
        dn.default_options(nonsense=1)


def test_default_options_of_calls() -> None:
    """Options that a definition does not set are those in force at the call."""
    inner = dn.jit(lambda x: x + 1.0)
    outer = dn.jit(lambda x: inner(x) * 2.0)
    with pytest.raises(dn.TraceError, match="on_conflict"):
        outer(1.0)
    with dn.options(on_conflict="reuse"):
        assert float(outer(1.0)) == 4.0
        with pytest.raises(dn.TraceError, match="on_conflict"):
            dn.jit(lambda x: dn.jit(lambda y: y, on_conflict="raise")(x))(1.0)
    once = dn.jit(lambda x: x)
    with dn.options(max_compiles=1):
        once(1.0)
        with pytest.raises(dn.CompileError, match="max_compiles allows 1"):
            once(1)
        assert dn.jit(lambda x: -x, max_compiles=2)(1) == -1
    assert once(1) == 1
    for wrong in ({"on_conflict": "ignore"}, {"on_conflict": 1}, {"max_compiles": -1}):
        with pytest.raises(dn.OptionError, match=r"^default_options: "):
            dn.default_options(wrong)


def test_global_default_options() -> None:
    before = dn.global_default_options(compiler="evaluator")
    try:
        assert dn.global_default_options() == {"compiler": "evaluator"}
        seen = []
        thread = threading.Thread(target=lambda: seen.append(float(dn.jit(dn.sin)(0.0))))
        thread.start()
        thread.join()
        assert seen == [0.0]
    finally:
        dn.global_default_options(before)


@pytest.mark.usefixtures("no_options")
def test_options_context() -> None:
    with dn.options(compiler="evaluator"):
        assert dn.default_options() == {"compiler": "evaluator"}
        with dn.options():
            assert dn.default_options() == {"compiler": "evaluator"}
    assert dn.default_options() == {}
    with pytest.raises(ZeroDivisionError), dn.options(compiler="evaluator"):
        1 / 0  # noqa: B018
    assert dn.default_options() == {}
    with pytest.raises(dn.CompileError), dn.options(compiler="nonsense"):
        pass
    assert dn.default_options() == {}


def test_a_hit_runs_no_python() -> None:
    @dn.jit
    def step(state: dict[str, dn.Tensor], x: dn.Tensor) -> dict[str, dn.Tensor]:
        return {"w": state["w"] * x + SCALE, "n": state["n"] + 1}

    state = {"w": dn.tensor([1.0, 2.0]), "n": dn.tensor(0)}
    x = dn.tensor([0.5, 0.5])
    step(state, x)
    frames = []
    sys.setprofile(lambda frame, event, arg: frames.append((event, frame.f_code.co_name)))
    try:
        out = step(state, x)
    finally:
        sys.setprofile(None)
    calls = [name for event, name in frames if event == "call"]
    assert calls == []
    assert out["w"].to_list() == [3.5, 4.0]


def test_recursion_ends() -> None:
    @dn.defn
    def forever(x: dn.Tensor) -> dn.Tensor:
        return forever(x + 1.0)

    with pytest.raises(dn.TraceError, match="calls itself"):
        forever(1.0)
    assert float(dn.jit(lambda x: x + 1.0)(1.0)) == 2.0, "a new trace starts afresh"


def test_recursion_that_stops() -> None:
    @dn.defn
    def power(x: dn.Tensor, *, n: int) -> dn.Tensor:
        return x if n == 1 else x * power(x, n=n - 1)

    assert float(power(2.0, n=5)) == 32.0


def test_max_compiles() -> None:
    jitted = dn.jit(lambda x: x + 1, max_compiles=2)
    jitted(1)
    jitted(1.0)
    jitted(2.0)
    with pytest.raises(dn.CompileError, match="max_compiles"):
        jitted(dn.tensor([1.0]))
    assert float(jitted(2.0)) == 3.0


def test_an_exception_inside_passes_through() -> None:
    class MineError(Exception):
        pass

    @dn.defn
    def failing(x: dn.Tensor) -> dn.Tensor:
        raise MineError("mine")

    with pytest.raises(MineError, match="mine"):
        failing(1.0)
    assert float(dn.jit(lambda x: x + 1.0)(1.0)) == 2.0
    assert dn.tensor(1.0) + 1.0 == 2.0, "no trace is left open"


def test_methods_and_partial() -> None:
    class Model:
        weight = 3

        @dn.defn
        def apply(self, x: dn.Tensor) -> dn.Tensor:
            return x * self.weight

    assert callable(Model.apply)
    bound = dn.jit(partial(lambda x, y: x - y, y=1.0))
    assert float(bound(3.0)) == 2.0


def test_definitions_keep_their_name() -> None:
    @dn.defn
    def documented(x: dn.Tensor) -> dn.Tensor:
        """What it does."""
        return x

    assert (documented.__name__, documented.__doc__) == ("documented", "What it does.")


def test_numpy_arguments() -> None:
    out = dn.jit(lambda x: x * 2)(np.array([1, 2], dtype=np.int16))
    assert (out.dtype, out.to_list()) == ("s16", [2, 4])
    assert dn.jit(lambda x: x * 2)(np.float64(1.5)).dtype == "f64"


def test_deftransform() -> None:
    seen = Log()

    @dn.deftransform
    def note(x: dn.Tensor) -> dn.Tensor:
        seen.append(x.shape)
        return x

    assert float(dn.jit(lambda x: note(x) + 1.0)(1.0)) == 2.0
    assert seen.items == [()]


def test_debug_expr() -> None:
    expr = dn.debug_expr(lambda a, b: {"sum": a + b})(1, 2.0)
    text = repr(expr["sum"])
    assert "parameter a:0" in text
    assert "add a, b" in text
    assert repr(dn.debug_expr_apply(lambda x: dn.sin(-x), (1.0,))).count("\n") >= 2


def test_print_expr(capsys: pytest.CaptureFixture[str]) -> None:
    assert float(dn.jit(lambda x: dn.print_expr(x + x))(2.0)) == 4.0
    assert "add" in capsys.readouterr().out


def test_a_compiled_version_does_not_keep_captured_tensors() -> None:
    def run() -> weakref.ref[dn.Tensor]:
        weight = dn.tensor([1.0, 2.0])
        assert dn.jit(lambda x: x + weight)(1.0).to_list() == [2.0, 3.0]
        return weakref.ref(weight)

    known = run()
    gc.collect()
    assert known() is None


def test_a_plain_tensor_after_a_vectorized_one_of_the_same_elements() -> None:
    total = dn.jit(lambda x: dn.sum(x))
    plain = dn.iota((2, 3), dtype="f32")
    rows = dn.vectorize(plain, "row")
    for _ in range(2):
        assert total(rows).vectorized_axes == (("row", 2),)
        assert (total(plain).vectorized_axes, float(total(plain))) == ((), 15.0)
    assert total.cache_info()["misses"] == 2


@pytest.mark.parametrize("make", [lambda: float("nan"), lambda: complex(0.0, float("nan"))])
def test_nan_is_the_same_static_value_again(make) -> None:
    jitted = dn.jit(lambda x, *, shift: x + shift)
    jitted(1.0, shift=make())
    jitted(2.0, shift=make())
    assert jitted.cache_info()["misses"] == 1


@pytest.mark.parametrize("wrap", [lambda v: frozenset({v}), lambda v: frozenset({(v,)})])
def test_equal_sets_of_other_types_are_other_static_values(wrap) -> None:
    def function(x, *, among):
        (value,) = among
        return x + (value[0] if isinstance(value, tuple) else value)

    jitted = dn.jit(function)
    assert jitted(1, among=wrap(2)).dtype == "s32"
    assert jitted(1, among=wrap(2.0)).dtype == "f32"


def test_keyword() -> None:
    assert dn.keyword({"rate": 0.5}, rate=1.0, steps=3) == {"rate": 0.5, "steps": 3}
    with pytest.raises(dn.OptionError, match=r'"rat", it takes rate, steps'):
        dn.keyword({"rat": 0.5}, rate=1.0, steps=3)


def test_threads_trace_apart() -> None:
    results = [0.0] * 8

    def work(i: int) -> None:
        def function(x: dn.Tensor) -> dn.Tensor:
            for _ in range(50):
                x = x + float(i)
            return x

        results[i] = float(dn.jit(function)(0.0))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [50.0 * i for i in range(8)]


@pytest.mark.parametrize("limit", [-1, "a", 1.5, 2**80])
def test_max_compiles_is_a_count(limit: Any) -> None:
    with pytest.raises(dn.OptionError, match="max_compiles"):
        dn.jit(lambda x: x, max_compiles=limit)


@pytest.mark.parametrize("apply", [dn.jit_apply, dn.compile, dn.debug_expr_apply])
@pytest.mark.parametrize("args", [1, dn.tensor([1, 2]), dn.template((3,), "f32"), "ab", None])
def test_arguments_are_given_as_a_list(apply: Any, args: Any) -> None:
    with pytest.raises(dn.OptionError, match="list or tuple of arguments"):
        apply(lambda x: x, args)


@dn.defn
def pickled(x):
    return x * 2


def test_definitions_are_pickled_and_copied_as_functions_are():
    import copy
    import pickle

    assert pickle.loads(pickle.dumps(pickled)) is pickled
    assert copy.copy(pickled) is pickled
    assert copy.deepcopy({"f": pickled})["f"] is pickled
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(dn.jit(lambda x: x))
