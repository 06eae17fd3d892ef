"""Compilers written in Python: their arguments, their results, and the ways to name them."""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any

import numpy as np
import pytest

import defn as dn
from defn.compilers import Compiler
from support import Log

EVALUATOR = dn.compilers.get("evaluator")


class Noting(Compiler):
    """Compiles like the evaluator, and records its arguments."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def compile(self, key, vars, fun, options):
        before = len(vars)
        program = dn.compilers.trace(fun, vars)
        self.seen.append((key, before, len(vars), program, options))
        run = EVALUATOR.compile(key, vars, fun, {})

        def call(lists):
            self.seen.append([len(args) for args in lists])
            return run(lists)

        return call


def test_what_compile_is_given() -> None:
    compiler = Noting()
    weight = dn.tensor([1.0, 2.0])
    f = dn.jit(lambda x, y: {"out": x["a"] * weight + y, "x": y}, compiler=compiler, speed=11)
    y = dn.tensor(3.0)
    out = f({"a": 2.0}, y)
    assert out["out"].to_list() == [5.0, 7.0]
    assert out["x"] is y, "an argument that is returned keeps its buffer"
    (_key, before, after, program, options), lengths = compiler.seen
    assert (before, after) == (2, 3), "a captured tensor follows the arguments"
    assert lengths == [3]
    assert options == {"speed": 11}
    assert [node.op for node in program.outputs] == ["add", "parameter"]
    f({"a": 5.0}, dn.tensor(1.0))
    assert len(compiler.seen) == 3, "it is compiled once"
    weight = dn.tensor([1.0, 0.0])
    assert f({"a": 2.0}, y)["out"].to_list() == [5.0, 3.0]
    assert len(compiler.seen) == 4


def test_the_key_stands_for_the_function() -> None:
    compiler = Noting()
    keys = lambda: [entry[0] for entry in compiler.seen if isinstance(entry, tuple)]  # noqa: E731

    def make(n):
        return dn.jit(lambda x, *, by=1: x * n * by, compiler=compiler)

    f, g = make(2), make(3)
    f(1.0)
    f(1)
    f(dn.tensor([1.0]))
    first, second, third = keys()
    assert first == second == third
    f(1.0, by=2)
    g(1.0)
    assert len({id(key) for key in keys()}) == 3
    assert hash(first) == hash(second)
    assert "lambda" in repr(first)


def test_jit_of_its_own_is_called_each_time() -> None:
    calls = Log()

    class Caching(Compiler):
        def __init__(self):
            self.known = {}

        def jit(self, key, vars, fun, args_list, options):
            if not self.known:
                self.known[key] = EVALUATOR.compile(key, vars, fun, {})
            calls.append((len(vars), [len(args) for args in args_list]))
            return self.known[key]([[thunk() for thunk in args] for args in args_list])

    traces = Log()
    weight = dn.tensor(10.0)
    f = dn.jit(lambda x: traces.append(1) or x * weight, compiler=Caching())
    assert [float(f(x)) for x in (1.0, 2.0, 3.0)] == [10.0, 20.0, 30.0]
    assert calls.items == [(2, [2])] * 3
    assert len(traces) == 1
    assert f.cache_info()["misses"] == 1
    weight = dn.tensor(100.0)
    assert float(f(1.0)) == 100.0


def test_what_nothing_uses_does_not_travel() -> None:
    seen = Log()

    class Looking(Compiler):
        def compile(self, key, vars, fun, options):
            run = EVALUATOR.compile(key, vars, fun, {})

            def call(lists):
                seen.append([arg.is_template for arg in lists[0]])
                return run(lists)

            return call

    def f(parts):
        return parts["used"] + 1, parts["kept"]

    parts = {"used": 1.0, "unused": np.zeros(3), "kept": 2.0}
    total, kept = dn.jit(f, compiler=Looking())(parts)
    assert (float(total), float(kept)) == (2.0, 2.0)
    assert seen.items == [[False, True, False]]


def test_several_argument_lists() -> None:
    class Twice(Compiler):
        def compile(self, key, vars, fun, options):
            run = EVALUATOR.compile(key, vars, fun, {})

            def call(lists):
                doubled = run([args for args in lists for _ in range(2)])
                assert len(doubled) == 2 * len(lists)
                return doubled[::2]

            return call

    assert float(dn.jit(lambda x: x + 1, compiler=Twice())(1.0)) == 2.0
    direct = EVALUATOR.jit(
        "key", [dn.template((), "f32")], dn.debug_expr(lambda x: x * 2),
        [[lambda: dn.tensor(1.0)], [lambda: dn.tensor(4.0)]], {},
    )  # fmt: skip
    assert [float(value) for value in direct] == [2.0, 8.0]


def test_where_it_is_named() -> None:
    compiler = Noting()
    count = lambda: len([1 for entry in compiler.seen if isinstance(entry, tuple)])  # noqa: E731
    assert float(dn.compile(lambda x: x + 1, [dn.template((), "f32")], compiler=compiler)(1.0)) == 2
    assert count() == 1
    with dn.options(compiler=compiler):
        assert dn.default_options()["compiler"] is compiler
        assert float(dn.jit(lambda x: x + 2, slow=True)(1.0)) == 3.0
        assert compiler.seen[-2][-1] == {"slow": True}
        assert float(dn.grad(lambda x: x**2)(3.0)) == 6.0
        assert count() == 3
    with pytest.raises(dn.OptionError, match="slow"):
        dn.jit(lambda x: x + 2, slow=True)(1.0)
    before = dn.default_options(compiler=compiler)
    assert float(dn.jit_apply(lambda x: x - 1, (3.0,))) == 2.0
    dn.default_options(before)
    assert count() == 4
    # A class is instantiated once for each definition. Definitions of one function share versions.
    made = Log()

    class Made(Noting):
        def __init__(self):
            super().__init__()
            made.append(1)

    fun = lambda x: x + 5  # noqa: E731
    first, second = dn.jit(fun, compiler=Made), dn.jit(fun, compiler=Made)
    assert float(first(1.0)) == float(second(1.0)) == 6.0
    assert second.cache_info()["size"] == 1
    # A module or any object with the callbacks is a compiler.
    module = types.ModuleType("my_compiler")
    module.compile = compiler.compile
    assert float(dn.jit(lambda x: x + 6, compiler=module)(1.0)) == 7.0
    assert float(dn.jit(lambda x: x + 7, compiler=EVALUATOR)(1.0)) == 8.0


def test_while_another_definition_is_traced() -> None:
    compiler = Noting()
    forced = dn.jit(lambda: dn.tensor(1.0) + 1.0, on_conflict="force", compiler=compiler)
    raising = dn.jit(lambda x: x, compiler=compiler)
    assert float(dn.jit(lambda x: x + forced())(1.0)) == 3.0
    with pytest.raises(dn.TraceError, match="on_conflict"):
        dn.jit(lambda x: raising(x))(1.0)
    with pytest.warns(UserWarning, match="reuse"):
        reused = dn.jit(lambda x: x * 2, on_conflict="reuse", compiler=compiler)
    assert float(dn.jit(lambda x: reused(x))(1.0)) == 2.0


@pytest.mark.usefixtures("no_options")
def test_the_current_compiler() -> None:
    compiler = Noting()
    seen = Log()

    def note(x):
        seen.append((dn.compilers.current(), dn.compilers.tracing()))
        return x + 1

    dn.jit(note, compiler=compiler)(1.0)
    dn.jit(note)(dn.tensor([1.0]))
    inner = dn.jit(lambda: dn.tensor(1.0) * note(1.0), compiler=compiler, on_conflict="force")
    dn.jit(lambda x: note(x) + inner() + note(x))(1.0)
    dn.debug_expr(note, compiler=compiler)(1.0)
    default = dn.compilers.get("cpu")
    expected = [compiler, default, default, compiler, default, compiler]
    assert seen.items == [(one, True) for one in expected]
    assert (dn.compilers.current(), dn.compilers.tracing()) == (None, False)
    assert isinstance(EVALUATOR, dn.Compiler)


def test_hooks() -> None:
    seen: list[Any] = []

    class Showing(Compiler):
        """Calls every hook of a program without control flow, with zeros as its values."""

        def compile(self, key, vars, fun, options):
            program = dn.compilers.trace(fun, vars)
            nodes = [node for node in program.walk() if node.op == "hook"]
            assert all(node.has_effect for node in nodes)

            def call(lists):
                hooks = dn.compilers.hooks()
                for node in nodes:
                    (values,) = node.args
                    zeros = [np.zeros(v.shape, v.dtype.to_numpy()) for v in values]
                    hooks(node.attrs["slot"], zeros)
                outs = [np.ones(v.shape, v.dtype.to_numpy()) for v in program.outputs]
                return [program.rebuild(outs) for _ in lists]

            return call

    def f(x):
        dn.hook({"x": x, "n": dn.iota((2,))}, "named")
        return dn.hook(x + 1, seen.append)

    x = dn.tensor([1.0, 2.0, 3.0], names=["x"])
    out = dn.jit(f, compiler=Showing(), hooks={"named": seen.append})(x)
    assert out.to_list() == [1.0] * 3
    assert out.names == ("x",)
    assert seen[0]["x"].names == ("x",)
    assert seen[0]["n"].dtype == "s32"
    assert seen[1].to_list() == [0.0] * 3
    with pytest.raises(dn.TraceError, match="running"):
        dn.compilers.hooks()
    for run in (dn.jit(f, compiler=EVALUATOR), dn.jit(f, compiler=Noting())):
        del seen[:]
        run(x)
        assert [value.to_list() for value in seen] == [[2.0, 3.0, 4.0]]

    def failing(value):
        raise ZeroDivisionError("mine")

    bad = dn.jit(lambda x: dn.hook(x, failing), compiler=Noting())
    with pytest.raises(ZeroDivisionError, match="mine"):
        bad(1.0)


def test_vectorized_axes() -> None:
    compiler = Noting()
    x = dn.vectorize(dn.iota((2, 3), dtype="f32"), "row")
    f = dn.jit(lambda x: dn.sum(x), compiler=compiler)
    out = f(x)
    assert dict(out.vectorized_axes) == {"row": 2}
    assert dn.devectorize(out, keep_names=False).to_list() == [3.0, 12.0]


class Loop:
    """A stream that runs a step as soon as a chunk is sent."""

    def __init__(self, run, rebuild, state, constants):
        self.run, self.rebuild, self.state, self.constants = run, rebuild, state, constants
        self.outputs: list[Any] = []

    def send(self, chunk, timeout=None):
        leaves = [dn.tensor(leaf) for leaf in dn.compilers.flatten(chunk)[0]]
        state = dn.compilers.flatten(self.state)[0]
        out, self.state = self.run([[*leaves, *state, *self.constants]])[0]
        self.outputs.append(out)

    def recv(self, timeout=None):
        return self.outputs.pop(0)

    def done(self):
        return self.state

    def close(self):
        self.outputs.clear()


class Streaming(Noting):
    def stream(self, key, input, acc, vars, fun, args_list, options):
        self.templates = (input, acc, len(vars))
        run = EVALUATOR.compile(key, vars, fun, {})
        leaves, rebuild = dn.compilers.flatten(acc)
        (args,) = args_list
        tensors = [thunk() for thunk in args]
        count = len(leaves)
        return [Loop(run, rebuild, rebuild(tensors[:count]), tensors[count:])]


def test_streams() -> None:
    shift = dn.tensor(1.0)

    def step(chunk, state, scale):
        out = chunk["x"] * scale + shift
        return out, {"sum": state["sum"] + out}

    chunk = {"x": dn.template((), "f32", names=[])}
    for compiler in (Noting(), Streaming(), Default()):
        stream = dn.stream(step, [chunk, {"sum": 0.0}, 2.0], compiler=compiler)
        assert isinstance(stream, dn.Stream)
        stream.send({"x": 1.0})
        assert float(stream.recv()) == 3.0
        stream.send({"x": dn.tensor(2.0)})
        assert float(stream.recv()) == 5.0
        assert float(stream.done()["sum"]) == 8.0
        stream.close()
        if isinstance(compiler, Streaming):
            input, acc, count = compiler.templates
            assert input["x"].is_template
            assert acc["sum"].is_template
            assert count == 3


def test_hooks_in_streams() -> None:
    seen: list[float] = []

    def step(x, total):
        return dn.hook(x, lambda value: seen.append(float(value))), total + x

    with dn.stream(step, [dn.template((), "f32"), 0.0], compiler=Default()) as stream:
        assert [float(out) for out in stream.map([1.0, 2.0])] == [1.0, 2.0]
    assert seen == [1.0, 2.0]


def test_a_compiled_version_does_not_keep_its_function() -> None:
    class Model:
        def __init__(self) -> None:
            self.seen: list[float] = []
            self.step = dn.jit(lambda x: dn.hook(x, self.note), compiler=Noting())

        def note(self, value: Any) -> None:
            self.seen.append(float(value))

    def run() -> weakref.ref[Model]:
        model = Model()
        model.step(1.0)
        assert model.seen == [1.0]
        return weakref.ref(model)

    known = run()
    gc.collect()
    assert known() is None


class Default(Noting):
    """Streams by the base class's callback, which it calls by name."""

    def stream(self, *args):
        return super().stream(*args)


@pytest.mark.usefixtures("no_options")
def test_where_results_are() -> None:
    oracle = dn.backends.NumPyBackend()

    class Elsewhere(Compiler):
        def compile(self, key, vars, fun, options):
            program = dn.compilers.trace(fun, vars)
            values = [np.zeros(node.shape, node.dtype.to_numpy()) for node in program.outputs]
            return lambda lists: [program.rebuild(values) for _ in lists]

        def to_backend(self, options):
            return options.get("place", oracle)

    assert dn.to_backend() == "cpu"
    assert dn.to_backend(compiler=Elsewhere()) == oracle
    assert dn.to_backend(compiler=Elsewhere(), place="cpu") == "cpu"
    assert dn.to_backend(compiler=Noting()) == "cpu"
    with dn.options(compiler=Elsewhere()):
        assert dn.to_backend() == oracle
        assert dn.jit(lambda x: x + 1)(1.0).backend == oracle
    with pytest.raises(dn.OptionError, match="speed"):
        dn.to_backend(speed=1)
    with pytest.raises(dn.CompileError, match="to_backend: the compiler Bare has no such callback"):
        dn.to_backend(compiler=Bare())


class Bare:
    """An object with a single callback."""

    def jit(self, key, vars, fun, args_list, options):
        fun(*vars)
        return [0.0]


def test_what_is_missing() -> None:
    assert float(dn.jit(lambda x: x + 1, compiler=Bare())(1.0)) == 0.0
    template = [dn.template((), "f32")]
    with pytest.raises(dn.CompileError, match="compile: the compiler Bare has no such callback"):
        dn.compile(lambda x: x + 1, template, compiler=Bare())
    with pytest.raises(dn.CompileError, match="compile: the compiler Compiler has no such"):
        dn.jit(lambda x: x + 1, compiler=Compiler())(1.0)
    for wrong in (3, object(), None.__class__):
        with pytest.raises(dn.OptionError, match="compiler"):
            dn.jit(lambda x: x, compiler=wrong)
    with pytest.raises(dn.OptionError, match="compiler"):
        dn.default_options(compiler=3)


def compiler_of(compile: Any) -> Compiler:
    made = Compiler()
    made.compile = compile
    return made


@pytest.mark.parametrize(
    ("compile", "text"),
    [
        (lambda key, given, fun, options: len, "did not call fun"),
        (lambda key, given, fun, options: fun(*given) and 3, "gave of type int|gave 3"),
        (lambda key, given, fun, options: fun(*given) and (lambda lists: 3), "one result for each"),
        (lambda key, given, fun, options: fun(*given) and (lambda lists: []), "0 results"),
        (lambda key, given, fun, options: fun(*given) and (lambda lists: [(1, 2)]), "structure"),
        (lambda key, given, fun, options: fun(*given) and (lambda lists: [object()]), "structure"),
        (
            lambda key, given, fun, options: (
                fun(*given) and (lambda lists: [{"y": np.zeros(3, np.float32)}])
            ),
            r"gave f32\[3\], it must give f32\[2\]",
        ),
        (
            lambda key, given, fun, options: fun(*given) and (lambda lists: [{"y": np.zeros(2)}]),
            r"gave f64\[2\]",
        ),
        (lambda key, given, fun, options: fun(), "0 vars of 1"),
        (lambda key, given, fun, options: fun(dn.template((3,), "f32")), r"f32\[3\]"),
        (lambda key, given, fun, options: fun(1), "called with"),
    ],
)
def test_what_it_gives_is_checked(compile: Any, text: str) -> None:
    compiler = compiler_of(compile)
    f = dn.jit(lambda x: {"y": x + 1}, compiler=compiler)
    with pytest.raises(dn.CompileError, match=text):
        f(dn.tensor([1.0, 2.0]))


def test_errors_pass_through() -> None:
    def compile(key, vars, fun, options):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dn.jit(lambda x: x, compiler=compiler_of(compile))(1.0)

    def failing(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dn.jit(failing, compiler=Noting())(1.0)
    with pytest.raises(dn.ShapeError):
        dn.jit(lambda x: x + dn.iota((4,)), compiler=Noting())(dn.iota((3,)))
    assert dn.tensor(1.0) + 1.0 == 2.0, "no trace is left open"


def test_checks_that_a_compiler_does_not_make_are_refused() -> None:
    f = dn.jit(lambda x: x + 1, compiler=Noting())
    with dn.checks("nan"), pytest.raises(dn.CompileError, match="does not look for nan"):
        f(1.0)
    compiler = Noting()
    compiler.checks = ("nan",)
    with dn.checks("nan"):
        assert float(dn.jit(lambda x: x + 1, compiler=compiler)(1.0)) == 2.0


def test_runtime_calls() -> None:
    class Calling(Compiler):
        def compile(self, key, vars, fun, options):
            (node,) = dn.compilers.trace(fun, vars).outputs
            assert node.op == "runtime_call"

            def call(lists):
                templates = [out.template for out in node.outputs]
                hooks = dn.compilers.hooks()
                return [hooks.compute(node.attrs["slot"], args, templates)[0] for args in lists]

            return call

    x = dn.tensor([3.0, 1.0, 2.0])
    for compiler in (Calling(), Noting()):
        f = dn.jit(lambda x: dn.runtime_call(x, x, lambda v: np.sort(v)), compiler=compiler)
        assert f(x).to_list() == [1.0, 2.0, 3.0]


def test_nothing_is_returned() -> None:
    seen: list[float] = []

    @dn.jit(compiler=Noting())
    def f(x):
        dn.hook(x, lambda value: seen.append(float(value)))

    assert f(2.0) is None
    assert seen == [2.0]


def test_compile_honours_static_parameters() -> None:
    def power(x: dn.Tensor, n: dn.Static[int]) -> dn.Tensor:
        return x**n if n > 1 else x

    x = dn.tensor([2.0, 3.0])
    for fun in (power, dn.defn(power)):
        compiled = dn.compile(fun, [x, 3])
        assert compiled(x).to_list() == [8.0, 27.0], "a static value is built in"
    named = dn.compile(lambda x, n: x if n == 1 else x * n, [x, 4], static="n")
    assert named(x).to_list() == [8.0, 12.0]
    both = dn.compile(lambda n, pair: pair[0] * n, [2, (x, 5.0)], static=["n"])
    assert both((x, 7.0)).to_list() == [4.0, 6.0]
    with pytest.raises(dn.OptionError, match='static names the parameter "m", the function has'):
        dn.compile(lambda n: n, [2], static="m")


def test_defaults_take_a_compilers_own_options() -> None:
    compiler = Noting()
    with dn.options(compiler=compiler, speed=11):
        assert dn.jit(lambda x: x + 1)(1.0).item() == 2.0
        dn.jit(lambda x: x + 2, speed=12)(1.0)
        dn.jit(lambda x: x + 3, compiler="cpu")(1.0)
        with dn.options(compiler="evaluator"):
            dn.jit(lambda x: x + 4)(1.0)
    assert [entry[-1] for entry in compiler.seen if isinstance(entry, tuple)] == [
        {"speed": 11},
        {"speed": 12},
    ]


def test_defaults_refuse_options_that_their_compiler_does_not_take() -> None:
    for options in ({"compiler": "cpu", "client": "host"}, {"spede": 1}):
        with pytest.raises(dn.OptionError, match=r"client|spede"):
            dn.default_options(options)
        with pytest.raises(dn.OptionError, match=r"client|spede"):
            dn.global_default_options(options)
        with pytest.raises(dn.OptionError, match=r"client|spede"), dn.options(**options):
            pass
    assert "client" not in dn.default_options()
