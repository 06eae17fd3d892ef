"""Graphs in stages: how ``split`` cuts them, the properties of stages, and runs of stages."""

from __future__ import annotations

import pathlib
import pickle
import re
import subprocess
import sys
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import defn as dn
from support import needs_plugin


def at(op: str, decision: Any = "before") -> Any:
    """A decider for the operations with one name."""
    return lambda node: decision if node.op == op else "none"


def texts(stage: dn.graph.Stage) -> list[str]:
    """The outputs of a stage as text."""
    leaves, _ = dn.compilers.flatten(stage.expr)
    return [str(leaf) for leaf in leaves]


def chain(x: Any) -> Any:
    return dn.exp(dn.cos(dn.sin(dn.negate(x))))


# The example in the documentation of Nx.Defn.Graph.


def example() -> Any:
    def fun(x: Any, y: Any) -> Any:
        return dn.add(dn.cos(dn.sin(dn.negate(x))), y)

    return dn.debug_expr(fun)(1, 2)


def test_the_example_of_the_documentation() -> None:
    stages = dn.graph.split(example(), at("cos"))
    assert len(stages) == 2
    first, last = stages
    assert first.arguments == [{"source": (None, 0)}]
    assert last.arguments == [{"source": (None, 1)}, {"source": (first.id, 0)}]
    assert isinstance(first.expr, tuple)
    assert texts(first) == [
        """Tensor<
  f32

  parameter a:0   s32
  b = negate a    s32
  c = sin b       f32
>"""
    ]
    assert isinstance(last.expr, dn.Tensor)
    assert texts(last) == [
        """Tensor<
  f32

  parameter a:1   f32
  parameter c:0   f32
  b = cos a       f32
  d = add b, c    f32
>"""
    ]
    assert dn.graph.run(stages, [1, 2]).item() == pytest.approx(2.6663667, abs=3e-7)


def test_the_accumulator_example_cuts_every_third_operation() -> None:
    def third(node: dn.graph.Node, count: int) -> tuple[Any, int]:
        new = count + 1
        return ("before" if count > 0 and new % 3 == 0 else "none"), new

    def fun(x: Any) -> Any:
        for op in (dn.sin, dn.cos, dn.exp, dn.tanh, dn.sigmoid, dn.negate, dn.atan, dn.erf):
            x = op(x)
        return x

    expr = dn.debug_expr(fun)(1.0)
    stages = dn.graph.split(expr, 0, third)
    names = [[node.op for node in dn.compilers.program(s.expr).walk()][1:] for s in stages]
    assert names == [["sin", "cos"], ["exp", "tanh", "sigmoid"], ["negate", "atan", "erf"]]
    whole = dn.jit(fun)(1.0)
    assert dn.graph.run(stages, [1.0]).item() == whole.item()


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ("before", [["negate", "sin"], ["cos", "exp"]]),
        ("after", [["negate", "sin", "cos"], ["exp"]]),
        ("both", [["negate", "sin"], ["cos"], ["exp"]]),
        ("none", [["negate", "sin", "cos", "exp"]]),
    ],
)
def test_decisions(decision: str, expected: list[list[str]]) -> None:
    stages = dn.graph.split(dn.debug_expr(chain)(1.0), at("cos", decision))
    nodes = [list(dn.compilers.program(stage.expr).walk()) for stage in stages]
    assert [[n.op for n in some if n.op != "parameter"] for some in nodes] == expected


def test_a_decider_sees_operands_first_and_never_parameters() -> None:
    seen: list[dn.graph.Node] = []

    def decide(node: dn.graph.Node) -> Any:
        seen.append(node)
        return "none"

    def fun(x: Any, y: Any) -> Any:
        return (dn.sin(x) + 2.0) * dn.cos(y)

    expr = dn.debug_expr(fun)(dn.template((2,), "f32", names=["row"]), 1.0)
    dn.graph.split(expr, decide)
    assert [node.op for node in seen] == ["sin", "constant", "add", "cos", "multiply"]
    add = seen[2]
    assert (add.dtype, add.shape, add.names) == ("f32", (2,), ("row",))
    assert [node.op for node in add.inputs] == ["sin", "constant"]
    assert add.args == add.inputs
    assert add.attrs == {}
    assert add.regions == ()
    assert add.source is not None
    assert add.source[0].endswith("test_graph.py")
    # The nodes are those of the tensors, so that a decider can recognize them.
    assert seen[4] == expr.expr
    assert seen[4].id == expr.expr.id


def test_what_a_decider_raises_passes_through() -> None:
    def decide(node: dn.graph.Node) -> Any:
        raise KeyError(node.op)

    with pytest.raises(KeyError, match="negate"):
        dn.graph.split(dn.debug_expr(chain)(1.0), decide)


def test_a_graph_without_operations_is_one_stage() -> None:
    stages = dn.graph.split(dn.debug_expr(lambda x, y: [y, y])(1.0, 2), dn.graph.every(1))
    assert [stage.sources for stage in stages] == [[(None, 1)]]
    assert [value.item() for value in dn.graph.run(stages, [1.0, 2])] == [2, 2]


def test_an_error_leaves_everything_usable() -> None:
    x = dn.tensor([1.0, 2.0])
    stages = dn.graph.split(dn.debug_expr(lambda x: dn.log(dn.negate(x)))(x), dn.graph.every(1))
    first = dn.graph.compile(stages[0])(x)
    with dn.checks("nan"), pytest.raises(dn.Error, match="in stage 1 of 2"):
        dn.graph.run(stages, [x])
    assert (x.to_list(), first[0].to_list()) == ([1.0, 2.0], [-1.0, -2.0])
    assert dn.is_nan(dn.graph.run(stages, [x])).to_list() == [1, 1]


def test_containers_are_the_last_stages() -> None:
    @dataclass
    class Pair:
        a: Any
        b: Any

    def fun(x: Any) -> Any:
        return {"pair": Pair(dn.sin(x), dn.cos(dn.sin(x))), "same": x, "number": 2.0, "none": None}

    expr = dn.debug_expr(fun)(dn.tensor([0.0, 1.0]))
    stages = dn.graph.split(expr, at("cos"))
    result = dn.graph.run(stages, [dn.tensor([0.0, 1.0])])
    assert list(result) == ["pair", "same", "number", "none"]
    assert result["none"] is None
    assert isinstance(result["pair"], Pair)
    np.testing.assert_array_equal(result["pair"].a, dn.sin(dn.tensor([0.0, 1.0])))
    np.testing.assert_array_equal(result["same"], [0.0, 1.0])
    assert result["number"].item() == 2.0


def test_vectorized_axes_are_kept() -> None:
    x = dn.vectorize(dn.iota((2, 3), dtype="f32"), "rows")
    stages = dn.graph.split(dn.debug_expr(lambda x: dn.sum(dn.sin(x)))(x), at("sum"))
    result = dn.graph.run(stages, [x])
    assert result.vectorized_axes == (("rows", 2),)
    np.testing.assert_array_equal(
        dn.devectorize(result), dn.devectorize(dn.jit(lambda x: dn.sum(dn.sin(x)))(x))
    )


def test_arguments_have_the_vectorized_axes_that_were_traced() -> None:
    x = dn.vectorize(dn.iota((2, 3), dtype="f32"), "rows")
    stages = dn.graph.split(dn.debug_expr(lambda x: dn.sum(dn.sin(x)))(x), dn.graph.every(1))
    for given in (stages, pickle.loads(pickle.dumps(stages))):
        for wrong in (dn.devectorize(x), dn.vectorize(dn.devectorize(x), "lines")):
            with pytest.raises(dn.ShapeError, match=r"traced with f32\[rows: 2\]\[3\]"):
                dn.graph.run(given, [wrong])
        assert dn.graph.run(given, [x]).vectorized_axes == (("rows", 2),)


# Compilers.


def test_a_compiler_may_run_what_it_traced_in_stages() -> None:
    seen: list[float] = []
    weights = dn.tensor([1.0, 2.0])

    class Staging(dn.Compiler):
        def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
            stages = dn.graph.split(fun(*vars), dn.graph.every(1))
            # For a compiler, the tensors that a definition captured are among its arguments.
            assert [len(stage.captures) for stage in stages] == [0] * len(stages)
            return lambda args_list: [
                dn.graph.run(stages, args, compiler="evaluator") for args in args_list
            ]

    def fun(x: Any) -> Any:
        y = dn.hook(dn.sum(dn.sin(x) * weights), lambda value: seen.append(value.item()))
        return {"y": dn.cos(y)}

    for x in (1.0, 2.0):
        result = dn.jit(fun, compiler=Staging())(x)
        assert result["y"].item() == dn.jit(fun)(x)["y"].item()
    assert len(seen) == 4


# Captured tensors.


def test_captured_tensors_go_with_the_stages_that_use_them() -> None:
    weights, unused = dn.tensor([1.0, 2.0]), dn.tensor([5.0])

    def fun(x: Any) -> Any:
        return dn.cos(dn.sin(x) * weights), dn.exp(unused)

    stages = dn.graph.split(dn.debug_expr(fun)(1.0), at("cos"))
    assert [len(stage.captures) for stage in stages] == [1, 1]
    assert stages[0].captures[0].to_list() == [1.0, 2.0]
    assert [len(stage.arguments) for stage in stages] == [1, 1]
    assert "tensor" in texts(stages[0])[0]
    first, second = dn.graph.run(stages, [1.0])
    np.testing.assert_array_equal(first, dn.cos(dn.sin(dn.tensor(1.0)) * weights))
    np.testing.assert_array_equal(second, dn.exp(unused))
    # A stage can be cut again, and keeps its captured tensors.
    inner = dn.graph.split(stages[0].expr, at("multiply"))
    assert [len(stage.captures) for stage in inner] == [0, 1]
    again = dn.graph.run(inner, [1.0])
    np.testing.assert_array_equal(again[0], dn.sin(dn.tensor(1.0)) * weights)


# Stages as text, and in other processes.


def test_stages_are_pickled() -> None:
    weights = dn.tensor([1.0, 2.0])
    stages = dn.graph.split(
        dn.debug_expr(lambda x: {"out": dn.cos(dn.sin(x) * weights)})(1.0), at("cos")
    )
    again = pickle.loads(pickle.dumps(stages))
    assert [stage.id for stage in again] == [stage.id for stage in stages]
    assert [repr(stage) for stage in again] == [repr(stage) for stage in stages]
    assert [stage.arguments for stage in again] == [stage.arguments for stage in stages]
    # Nodes keep the lines of the user's program.
    sources = [node.source for node in dn.compilers.program(again[1].expr).walk()]
    assert sources == [node.source for node in dn.compilers.program(stages[1].expr).walk()]
    assert sources[-1] is not None
    expected = dn.graph.run(stages, [3.0])
    # Pickled and original stages belong to one split, and can be mixed.
    for mixed in (again, [stages[0], again[1]]):
        result = dn.graph.run(mixed, [3.0])
        assert list(result) == ["out"]
        np.testing.assert_array_equal(result["out"], expected["out"])


def test_another_process_compiles_and_runs_a_stage(tmp_path: Any) -> None:
    weights = dn.tensor([1.0, 2.0])
    stages = dn.graph.split(dn.debug_expr(lambda x: dn.cos(dn.sin(x) * weights))(1.0), at("cos"))
    (tmp_path / "stage").write_bytes(pickle.dumps(stages[0]))
    program = (
        "import pickle, sys; import defn as dn; import numpy as np\n"
        "stage = pickle.load(open(sys.argv[1], 'rb'))\n"
        "program = dn.graph.compile(stage, compiler='evaluator')\n"
        "print(stage.id, program(dn.tensor(1.0))[0].to_numpy().tobytes().hex())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "stage")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = dn.graph.compile(stages[0], compiler="evaluator")(dn.tensor(1.0))[0].to_numpy()
    assert done.stdout.split() == [stages[0].id, expected.tobytes().hex()]


def test_texts_round_trip() -> None:
    weights = dn.tensor([1.0, 2.0])
    for stage in dn.graph.split(
        dn.debug_expr(lambda x: dn.cos(dn.sin(x) * weights))(1.0), at("cos")
    ):
        again = dn.graph.Stage.from_text(stage.to_text(), stage.captures)
        assert (again.id, again.to_text()) == (stage.id, stage.to_text())
        text = dn.graph.to_text(stage.expr)
        assert dn.graph.to_text(dn.graph.from_text(text, stage.captures)) == text


# Runs.


def test_values_are_freed_after_their_last_use() -> None:
    living: list[int] = []
    known: list[weakref.ref[Any]] = []

    class Counting:
        """An engine that records the number of live values when a stage begins."""

        def run_each(self, plan: Any, sets: Any) -> Any:
            class Plan:
                stages, sources, last_uses = plan.stages, plan.sources, plan.last_uses

                def compile(self, position: int) -> Any:
                    program = plan.compile(position)

                    def run(*tensors: Any) -> Any:
                        living.append(sum(ref() is not None for ref in known))
                        outputs = program(*tensors)
                        known.extend(map(weakref.ref, outputs))
                        return outputs

                    return run

            return dn.engines.Sequential().run_each(Plan(), sets)

    stages = dn.graph.split(dn.debug_expr(chain)(1.0), dn.graph.every(1))
    dn.graph.run(stages, [1.0], engine=Counting())
    assert living == [0, 1, 1, 1]


def test_many_argument_sets() -> None:
    stages = dn.graph.split(dn.debug_expr(chain)(1.0), dn.graph.every(2))
    results = dn.graph.run_each(stages, ([float(x)] for x in range(5)))
    expected = [dn.jit(chain)(float(x)).item() for x in range(5)]
    assert [result.item() for result in results] == expected


def test_programs_are_kept() -> None:
    calls = []

    class Counting(dn.Compiler):
        def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
            calls.append(options)
            return dn.compilers.get("evaluator").compile(key, vars, fun, options)

    compiler = Counting()
    stages = dn.graph.split(dn.debug_expr(chain)(1.0), dn.graph.every(2))
    expected = dn.jit(chain)(1.0).item()
    for _ in range(3):
        result = dn.graph.run(stages, [1.0], stage_options={1: {"compiler": compiler}})
        assert result.item() == expected
    assert calls == [{}]


def test_hooks_are_called_in_order() -> None:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        y = dn.hook(dn.sin(x), "first")
        z = dn.hook(dn.cos(x), lambda value: seen.append(("second", value.item())))
        return y + dn.exp(z)

    stages = dn.graph.split(dn.debug_expr(fun)(0.0), at("exp"))
    hooks = {"first": lambda value: seen.append(("first", value.item()))}
    assert dn.graph.run(stages, [0.0], hooks=hooks).item() == np.float32(np.e)
    assert seen == [("first", 0.0), ("second", 1.0)]


def test_host_functions_of_stages_of_pythons_compilers() -> None:
    def fun(x: Any) -> Any:
        return dn.runtime_call(dn.template((), "f32"), dn.sin(x), lambda v: v.to_numpy() + 1)

    class Passing(dn.Compiler):
        def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
            return dn.compilers.get("evaluator").compile(key, vars, fun, options)

    stages = dn.graph.split(dn.debug_expr(fun)(0.0), at("runtime_call"))
    assert len(stages) == 2
    for compiler in ("evaluator", Passing()):
        assert dn.graph.run(stages, [0.0], compiler=compiler).item() == 1.0


def test_a_stage_without_inputs_runs_where_its_options_say() -> None:
    stages = dn.graph.split(dn.debug_expr(lambda x: dn.sum(dn.iota((3,))) + x)(1), at("add"))
    assert [len(stage.inputs) for stage in stages] == [0, 2]
    backend = dn.backends.NumPyBackend()
    program = dn.graph.compile(stages[0], backend=backend)
    (made,) = program()
    assert made.backend is backend
    result = dn.graph.run(stages, [1], stage_options={0: {"backend": backend}})
    assert result.item() == 4


@needs_plugin
def test_each_stage_has_its_own_compiler_and_place() -> None:
    stages = dn.graph.split(dn.debug_expr(chain)(dn.template((4,), "f32")), dn.graph.every(1))
    x = dn.tensor([0.1, 0.2, 0.3, 0.4], backend="cpu")
    expected = dn.graph.run(stages, [x], compiler="evaluator", backend="cpu")
    options: dict[int, dict[str, Any]] = {
        0: {"compiler": "pjrt", "device_id": 1},
        1: {"compiler": "evaluator", "backend": "cpu"},
        2: {"compiler": "pjrt"},
        3: {"compiler": "evaluator", "backend": dn.backends.PJRT(device_id=1)},
    }
    result = dn.graph.run(stages, [x], stage_options=options)
    assert result.backend == dn.backends.PJRT(device_id=1)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_the_pictures_of_the_page_are_what_is_drawn() -> None:
    page = pathlib.Path(__file__).parents[1] / "docs" / "graphs.md"
    drawn = re.findall(r"(?ms)^```mermaid\n(.*?)^```", page.read_text())

    def network(p: Any, x: Any) -> Any:
        hidden = dn.mark(dn.tanh(x @ p["w"] + p["b"]), "hidden")
        return {"out": hidden @ p["v"], "norm": dn.sum(hidden * hidden)}

    shapes = {"w": (4, 8), "b": (8,), "v": (8, 2)}
    params = {name: dn.template(shape, "f32") for name, shape in shapes.items()}
    expr = dn.debug_expr(network)(params, dn.template((3, 4), "f32"))
    loop = dn.debug_expr(lambda x: dn.while_(x, lambda s: s < 10, lambda s: s * 2) + 1)(1)
    stages = dn.graph.split(expr, dn.graph.marks())
    assert drawn[:2] == [dn.graph.mermaid(stages), dn.graph.mermaid(loop)]
