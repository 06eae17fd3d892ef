"""User-defined blocks, and functions that are called at run time: which code runs, and when."""

from __future__ import annotations

import dataclasses
import enum
import threading
from typing import Any

import numpy as np
import pytest

import defn as dn
from defn.backends import NumPyBackend
from support import Log


@dataclasses.dataclass(frozen=True)
class Softmax:
    axis: int
    scale: float = 1.0


def softmax(tag: Softmax, x: Any) -> Any:
    e = dn.exp(tag.scale * (x - dn.reduce_max(x, axes=tag.axis, keep_axes=True)))
    return e / dn.sum(e, axes=tag.axis, keep_axes=True)


def softmax_block(x: Any, *, axis: int = -1) -> Any:
    return dn.block(Softmax(axis), [x], x, softmax)


class Knows(NumPyBackend):
    """A backend with kernels for `Softmax` and for one name; it records every block."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def block(self, tag: Any, out: Any, args: Any, fun: Any) -> Any:
        self.asked.append(tag)
        if isinstance(tag, Softmax):
            (x,) = args
            e = np.exp(x.data - x.data.max(tag.axis, keepdims=True))
            return (e / e.sum(tag.axis, keepdims=True)).astype(out.dtype.to_numpy())
        return fun(tag, *args)

    def cubed(self, out: Any, x: Any) -> Any:
        self.asked.append("cubed")
        return x.data**3


X = dn.tensor([[1.0, 2.0, 4.0], [0.0, -1.0, 3.0]])


def expected_softmax(axis: int) -> np.ndarray:
    e = np.exp(X.to_numpy().astype(np.float64))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_block_is_its_default_at_once_and_in_definitions(axis: int) -> None:
    at_once = softmax_block(X, axis=axis)
    compiled = dn.jit(softmax_block)(X, axis=axis)
    np.testing.assert_allclose(at_once, expected_softmax(axis), rtol=1e-6)
    np.testing.assert_array_equal(at_once, compiled)


def test_the_graph_has_one_node_with_the_tags_name_and_attributes() -> None:
    assert str(dn.debug_expr(softmax_block)(X)).splitlines()[3:] == [
        "  parameter a:0                             f32[2][3]",
        "  b = block Softmax a, axis=-1, scale=1.0   f32[2][3]",
        ">",
    ]


def test_print_expr_shows_blocks_and_calls(capsys: pytest.CaptureFixture[str]) -> None:
    @dn.jit
    def f(x):
        return dn.print_expr(dn.runtime_call(x, softmax_block(x), np.asarray))

    f(X)
    assert "b = block Softmax a, axis=-1, scale=1.0" in capsys.readouterr().out


@pytest.mark.usefixtures("no_options")
def test_a_backend_that_knows_the_tag_runs_its_kernel() -> None:
    backend = Knows()
    x = dn.backend_copy(X, backend)
    for run in (softmax_block, dn.jit(softmax_block)):
        backend.asked.clear()
        np.testing.assert_allclose(run(x, axis=1).to_numpy(), expected_softmax(1), rtol=1e-6)
        assert backend.asked == [Softmax(1)]


@pytest.mark.usefixtures("no_options")
def test_one_program_runs_everywhere() -> None:
    backend = Knows()
    f = dn.jit(lambda x: softmax_block(x) + 1)
    here, there = f(X), f(dn.backend_copy(X, backend))
    assert f.cache_info()["misses"] == 1
    np.testing.assert_allclose(here, there.to_numpy(), rtol=1e-6)
    assert backend.asked == [Softmax(-1)]


class Mode(enum.Enum):
    FAST = 1


@pytest.mark.parametrize("tag", ["by name", 3, ("pair", 1), Mode.FAST, frozenset({1})])
def test_any_hashable_is_a_tag(tag: Any) -> None:
    backend = Knows()
    x = dn.backend_copy(X, backend)
    doubled = dn.block(tag, [x], x, lambda given, x: (x + x, given)[0])
    np.testing.assert_array_equal(doubled.to_numpy(), 2 * X.to_numpy())
    assert backend.asked == [tag]


@pytest.mark.usefixtures("no_options")
def test_the_default_gets_the_tag_and_captures_tensors() -> None:
    backend = Knows()
    weight, seen = dn.tensor([1.0, 2.0, 3.0]), Log()

    def default(tag, x):
        seen.append(tag)
        return x @ weight

    @dn.jit
    def f(x):
        return dn.block("dense", [x], dn.template((2,), "f32"), default)

    for x in (X, dn.backend_copy(X, backend)):
        np.testing.assert_array_equal(f(x).to_numpy(), [17.0, 7.0])
    assert seen.items == ["dense"]
    assert backend.asked == ["dense"]


def test_arguments_and_results_are_containers() -> None:
    backend = Knows()

    def default(tag, pair, scale):
        return {"sum": (pair["a"] + pair["b"]) * scale, "first": (pair["a"],)}

    def f(a, b):
        output = {"first": (a,), "sum": a}
        return dn.block("both", [{"a": a, "b": b}, 2.0], output, default)

    for move in (lambda x: x, lambda x: dn.backend_copy(x, backend)):
        result = dn.jit(f)(move(X), move(X))
        assert list(result) == ["first", "sum"]
        np.testing.assert_array_equal(result["sum"].to_numpy(), 4 * X.to_numpy())
        np.testing.assert_array_equal(result["first"][0].to_numpy(), X.to_numpy())


def test_a_kernel_gives_several_results_in_the_container_or_one_by_one() -> None:
    class Swaps(NumPyBackend):
        nested = False

        def block(self, tag, out, args, fun):
            assert sorted(out) == ["a", "b"]
            assert [t.shape for t in (out["a"], *out["b"])] == [(2, 3), (2, 3), ()]
            a, b = args
            zero = np.zeros((), np.float32)
            if self.nested:
                return {"a": b.data, "b": [a.data, zero]}
            return b.data, a.data, zero

    def default(tag, a, b):
        return {"a": a, "b": [b, 0.0]}

    for nested in (False, True):
        backend = Swaps()
        backend.nested = nested
        x, y = dn.backend_copy(X, backend), dn.backend_copy(X + 1, backend)
        output = {"a": X, "b": [X, dn.template((), "f32")]}
        result = dn.block("swap", [x, y], output, default)
        np.testing.assert_array_equal(result["a"].to_numpy(), X.to_numpy() + 1)
        np.testing.assert_array_equal(result["b"][0].to_numpy(), X.to_numpy())


def test_names_of_the_output_are_kept() -> None:
    output = dn.template((2, 3), "f32", names=["row", None])
    result = dn.block("copy", [X], output, lambda tag, x: x + 0)
    assert result.names == ("row", None)
    named = dn.rename(X, ["row", "col"])
    assert dn.block("copy", [named], output, lambda tag, x: x + 0).names == ("row", "col")


def test_gradients_go_through_the_default() -> None:
    weights = dn.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])

    def by_block(x):
        return dn.sum(softmax_block(x) * weights)

    def plain(x):
        return dn.sum(softmax(Softmax(-1), x) * weights)

    np.testing.assert_array_equal(dn.grad(by_block)(X), dn.grad(plain)(X))
    twice = dn.grad(lambda x: dn.sum(dn.grad(by_block)(x) ** 2))
    also = dn.grad(lambda x: dn.sum(dn.grad(plain)(x) ** 2))
    np.testing.assert_allclose(twice(X), also(X), rtol=1e-6)
    backend = Knows()
    on_backend = dn.grad(by_block)(dn.backend_copy(X, backend))
    np.testing.assert_allclose(on_backend.to_numpy(), dn.grad(plain)(X), rtol=1e-5, atol=1e-6)


def test_vectorized_axes_go_through_the_default() -> None:
    rows = dn.vectorize(X, "rows")
    result = dn.block(Softmax(0), [rows], dn.template((3,), "f32"), softmax)
    assert result.vectorized_axes == (("rows", 2),)
    np.testing.assert_allclose(dn.devectorize(result), expected_softmax(1), rtol=1e-6)
    captured = dn.block("add", [dn.tensor(1.0)], dn.template((3,), "f32"), lambda tag, x: x + rows)
    assert captured.vectorized_axes == (("rows", 2),)
    mapped = dn.vmap(lambda x: dn.block(Softmax(0), [x], x, softmax))
    np.testing.assert_allclose(mapped(X), expected_softmax(1), rtol=1e-6)


@pytest.mark.usefixtures("no_options")
def test_blocks_in_loops_branches_and_blocks() -> None:
    def outer(tag, x):
        return softmax_block(x) * 2

    def f(x):
        x = dn.for_(x, range(3), lambda x, i: dn.block("outer", [x], x, outer))
        return dn.cond([(x[0, 0] > 0, lambda: softmax_block(x))], lambda: x)

    backend = Knows()
    here, there = dn.jit(f)(X), dn.jit(f)(dn.backend_copy(X, backend))
    np.testing.assert_allclose(here, there.to_numpy(), rtol=1e-5)
    assert backend.asked == ["outer", Softmax(-1)] * 3 + [Softmax(-1)]


def test_a_default_with_effects_runs_in_any_case() -> None:
    seen: list[float] = []
    backend = Knows()

    def default(tag, x):
        return dn.hook(softmax(tag, x), lambda v: seen.append(float(v[0, 0])))

    f = dn.jit(lambda x: dn.block(Softmax(1), [x], x, default))
    for x in (X, dn.backend_copy(X, backend)):
        f(x)
    assert len(seen) == 2
    assert backend.asked == []


def test_tags_are_part_of_the_key() -> None:
    @dn.jit
    def f(x, *, axis):
        return dn.block(Softmax(axis), [x], x, softmax)

    for axis in (0, 1, 0):
        np.testing.assert_allclose(f(X, axis=axis), expected_softmax(axis), rtol=1e-6)
    assert f.cache_info()["misses"] == 2


@pytest.mark.usefixtures("no_options")
def test_what_a_kernel_raises_stops_the_run() -> None:
    class Fails(NumPyBackend):
        count = 0

        def block(self, tag, out, args, fun):
            Fails.count += 1
            if Fails.count == 1:
                raise KeyError("first")
            return fun(tag, *args)

    f = dn.jit(lambda x: dn.block("once", [x], x, lambda tag, x: x + 1))
    x = dn.backend_copy(X, Fails())
    with pytest.raises(KeyError, match="first"):
        f(x)
    np.testing.assert_array_equal(f(x).to_numpy(), X.to_numpy() + 1)


@pytest.mark.usefixtures("no_options")
def test_optional_runs_the_callback_of_its_name() -> None:
    backend = Knows()

    def f(x):
        return dn.optional("cubed", [x], lambda x: x * x * x)

    for run in (f, dn.jit(f)):
        backend.asked.clear()
        np.testing.assert_array_equal(run(X), X.to_numpy() ** 3)
        there = run(dn.backend_copy(X, backend))
        np.testing.assert_array_equal(there.to_numpy(), X.to_numpy() ** 3)
        assert backend.asked == ["cubed"]
    assert float(dn.grad(lambda x: f(x))(2.0)) == 12.0
    other = dn.optional("quartic", [dn.backend_copy(X, backend)], lambda x: x * x * x * x)
    np.testing.assert_array_equal(other.to_numpy(), X.to_numpy() ** 4)
    assert backend.asked == ["cubed", "quartic"]


def test_a_call_gives_what_the_function_makes() -> None:
    def f(x):
        return dn.runtime_call(x, x * 2, lambda v: np.flip(np.asarray(v), 1)) + 1

    for run in (f, dn.jit(f), dn.compile(f, [X])):
        np.testing.assert_array_equal(run(X), np.flip(2 * X.to_numpy(), 1) + 1)


def test_a_call_takes_and_gives_containers() -> None:
    output = {"n": 0, "rest": (dn.template((3,), "f32"),)}

    def host(value):
        assert set(value) == {"x", "y"}
        return {"rest": (np.asarray(value["x"])[0] + np.asarray(value["y"]),), "n": 7}

    f = dn.jit(lambda x: dn.runtime_call(output, {"x": x, "y": 1.0}, host))
    result = f(X)
    assert int(result["n"]) == 7
    assert result["n"].dtype == "s32"
    np.testing.assert_array_equal(result["rest"][0], X.to_numpy()[0] + 1)


def test_a_call_runs_on_each_call_though_nothing_uses_it() -> None:
    seen: list[float] = []

    @dn.jit
    def f(x):
        dn.runtime_call(x, x, lambda v: (seen.append(float(v)), v)[1])
        dn.runtime_call(x, x, lambda v: (seen.append(-float(v)), v)[1])
        return x + 1

    for x in (1.0, 2.0):
        f(x)
    assert seen == [1.0, -1.0, 2.0, -2.0]
    assert f.cache_info()["misses"] == 1


def test_calls_and_hooks_keep_their_order_in_loops_and_branches() -> None:
    seen: list[str] = []

    def add(label, value):
        seen.append(f"{label}{int(value)}")
        return value

    def f(x):
        def body(x, i):
            x = dn.runtime_call(x, x + 1, lambda v: add("c", v))
            x = dn.hook(x, lambda v: add("h", v))
            return dn.if_(x > 2, lambda: dn.runtime_call(x, x, lambda v: add("big", v)), x)

        return dn.for_(x, range(3), body)

    for run in (f, dn.jit(f)):
        seen.clear()
        assert int(run(0)) == 3
        assert seen == ["c1", "h1", "c2", "h2", "c3", "h3", "big3"]


def test_what_a_call_raises_stops_the_run() -> None:
    count = Log()

    def host(v):
        count.append(v)
        if len(count) == 2:
            raise KeyError("second")
        return v

    f = dn.jit(lambda x: dn.for_(x, range(3), lambda x, i: dn.runtime_call(x, x, host)))
    with pytest.raises(KeyError, match="second"):
        f(1.0)
    assert len(count) == 2
    assert float(f(1.0)) == 1.0


def test_a_call_may_compute_and_define() -> None:
    inner = dn.jit(lambda v: dn.sum(v) * 2)
    f = dn.jit(lambda x: dn.runtime_call(dn.template((), "f32"), x, lambda v: inner(v + 1)))
    assert float(f(X)) == 2 * float(np.sum(X.to_numpy() + 1))


@pytest.mark.usefixtures("no_options")
def test_a_calls_result_is_where_its_value_is() -> None:
    backend = Knows()
    x = dn.backend_copy(X, backend)
    result = dn.jit(lambda x: dn.runtime_call(x, x, np.asarray))(x)
    assert result.backend == backend


def test_custom_grad_gives_a_call_a_gradient() -> None:
    def sine(x):
        y = dn.runtime_call(x, x, lambda v: np.sin(np.asarray(v)))
        return dn.custom_grad(y, [x], lambda g: [g * dn.cos(x)])

    np.testing.assert_allclose(dn.grad(sine)(0.5), np.cos(0.5), rtol=1e-6)
    kept = dn.grad(lambda x: x * dn.runtime_call(x, dn.stop_grad(x), lambda v: v))
    assert float(kept(3.0)) == 3.0


def test_calls_from_several_threads() -> None:
    f = dn.jit(lambda x: dn.runtime_call(x, x, lambda v: np.asarray(v) * 2))
    results: dict[int, float] = {}

    def work(n: int) -> None:
        for _ in range(50):
            results[n] = float(f(float(n)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: 2.0 * n for n in range(8)}


def test_options_of_blocks_stay_what_they_are() -> None:
    """Trailing dicts are options: their numbers stay axes and sizes, and do not become tensors."""
    seen: list[Any] = []

    def default(tag, x, options):
        seen.append(options)
        return dn.sum(x, axes=options["axes"]) * options["scale"]

    def f(x):
        return dn.block("total", [x, {"axes": [0], "scale": 2, "name": "t"}], None, default)

    for run in (f, dn.jit(f)):
        assert run(X).to_list() == (2 * X.to_numpy().sum(0)).tolist()
    assert seen == [{"axes": [0], "scale": 2, "name": "t"}] * len(seen)
    assert "axes=[0], scale=2" in str(dn.debug_expr(f)(X))

    def weighted(x, options):
        return dn.sum(x * options["w"], axes=options["axes"])

    def g(x, w):
        return dn.optional("weighted", [x, {"axes": [1], "w": w}], weighted)

    w = dn.tensor([1.0, 2.0, 3.0])
    expected = (X.to_numpy() * [1.0, 2.0, 3.0]).sum(1).tolist()
    assert g(X, w).to_list() == dn.jit(g)(X, w).to_list() == expected
    gradient = dn.grad(lambda w: g(X, w))(w)
    assert gradient.to_list() == X.to_numpy().sum(0).tolist(), "a tensor among them is an input"


def test_options_of_a_block_reach_the_backend() -> None:
    class Sums(NumPyBackend):
        def block(self, tag, out, args, fun):
            if tag == "total":
                x, options = args
                return x.data.sum(tuple(options["axes"]))
            return fun(tag, *args)

    def f(x):
        default = lambda tag, x, options: dn.sum(x, axes=options["axes"])  # noqa: E731
        return dn.block("total", [x, {"axes": [0]}], None, default)

    x = dn.backend_copy(X, Sums())
    assert f(x).to_list() == dn.jit(f)(x).to_list() == X.to_numpy().sum(0).tolist()
