"""Number arguments of definitions take the dtype of what they meet; keys do not have them."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import defn as dn
from defn.compilers import Compiler
from support import Log, needs_plugin

NUMPY = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "s8": np.dtype("i1"),
    "u8": np.dtype("u1"),
    "s64": np.dtype("i8"),
    "c64": np.dtype("c8"),
    "c128": np.dtype("c16"),
}
FLOATS = ["bf16", "f16", "f32", "f64"]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "x + n": lambda x, n: x + n,
    "n + x": lambda x, n: n + x,
    "x - n": lambda x, n: x - n,
    "n - x": lambda x, n: n - x,
    "x * n": lambda x, n: x * n,
    "x / n": lambda x, n: x / n,
    "n / x": lambda x, n: n / x,
    "x ** n": lambda x, n: x**n,
    "n ** x": lambda x, n: n**x,
    "x // n": lambda x, n: x // n,
    "n // x": lambda x, n: n // x,
    "x % n": lambda x, n: x % n,
    "n % x": lambda x, n: n % x,
    "x < n": lambda x, n: x < n,
    "n <= x": lambda x, n: n <= x,
    "x == n": lambda x, n: x == n,
    "multiply": dn.multiply,
    "atan2": dn.atan2,
}
EVALUATOR = dn.compilers.get("evaluator")
NO_ORDER = {"x // n", "n // x", "x % n", "n % x", "x < n", "n <= x", "atan2"}


def values(dtype: str) -> np.ndarray:
    return np.asarray([1, 2, 3, 5, 7]).astype(NUMPY[dtype])


def bits(tensor: dn.Tensor) -> tuple[str, bytes]:
    return str(tensor.dtype), np.ascontiguousarray(tensor.to_numpy()).tobytes()


def inputs(expr: Any) -> str:
    """The types of a graph's inputs, as in its text."""
    return dn.graph.to_text(expr).splitlines()[1].strip().removesuffix("{").strip()


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("number", [0.1, 3, 0.1 + 0.7j], ids=["float", "int", "complex"])
def test_a_number_is_what_it_is_in_an_eager_call(dtype: str, number: complex) -> None:
    x = dn.tensor(values(dtype))
    is_complex = isinstance(number, complex) or dtype.startswith("c")
    for name, operator in OPERATORS.items():
        if is_complex and name in NO_ORDER:
            continue
        got, want = dn.jit(operator)(x, number), operator(x, number)
        assert bits(got) == bits(want), name


@pytest.mark.parametrize("dtype", [*FLOATS, "c64", "c128"])
def test_a_number_is_rounded_once(dtype: str) -> None:
    x = values(dtype)
    want = x * x.dtype.type(0.1)
    got = dn.jit(lambda x, n: x * n)(dn.tensor(x), 0.1)
    assert bits(got) == (dtype, want.tobytes())


def test_several_dtypes_at_once() -> None:
    tensors = {dtype: dn.tensor(values(dtype)) for dtype in FLOATS}

    def scaled(tensors, rate):
        return {dtype: x * rate for dtype, x in tensors.items()}, rate

    got, alone = dn.jit(scaled)(tensors, 0.1)
    for dtype, x in got.items():
        assert bits(x) == (dtype, (values(dtype) * NUMPY[dtype].type(0.1)).tobytes())
    assert bits(alone) == ("f32", np.float32(0.1).tobytes())


def test_operators_among_numbers_stay_weak() -> None:
    def decayed(x, rate, step):
        return x * (1 - abs(-rate) * 2 / (3 + step % 4) ** 2 // 0.001 - rate * step)

    want = 1 - abs(-0.1) * 2 / (3 + 7 % 4) ** 2 // 0.001 - 0.1 * 7
    x = values("f64")
    assert bits(dn.jit(decayed)(dn.tensor(x), 0.1, 7)) == ("f64", (x * want).tobytes())


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_operators_for_narrow_floats_are_rounded_once(dtype: str) -> None:
    x = values(dtype)
    single = np.float32(0.1) * np.float32(0.3) + np.float32(1)
    got = dn.jit(lambda x, a, b: x * (a * b + 1))(dn.tensor(x), 0.1, 0.3)
    assert bits(got) == (dtype, (x * single.astype(x.dtype)).tobytes())


def test_operators_for_integers_are_integers() -> None:
    x = values("u8")
    got = dn.jit(lambda x, n: x + (n * 2 - 1) // 3)(dn.tensor(x), 50)
    assert bits(got) == ("u8", (x + np.uint8(33)).tobytes())
    wide = dn.jit(lambda x, n: x + (n * 3 - 1))(dn.tensor([1, 2], dtype="s64"), 2**53 // 3)
    assert wide.to_list() == [1 + 2**53 // 3 * 3 - 1, 2 + 2**53 // 3 * 3 - 1]


def test_a_function_of_numbers_alone_is_not_weak() -> None:
    x = dn.tensor(values("f64"))
    got = dn.jit(lambda x, rate: (x * dn.exp(rate), dn.exp(rate), dn.abs(2), rate + 1))(x, 0.1)
    alone = np.exp(np.float32(0.1))
    assert abs(got[0].to_numpy() - values("f64") * np.float64(alone)).max() < 1e-6
    assert [str(part.dtype) for part in got] == ["f64", "f32", "s32", "f32"]


@pytest.mark.parametrize(("number", "dtype"), [(1, "s32"), (1.5, "f32"), (1j, "c64")])
def test_results_have_the_dtype_of_the_number_alone(number: complex, dtype: str) -> None:
    shown = Log()

    def parts(n):
        dn.hook(n, shown.append)
        return n, n + n, -n

    for part in [*dn.jit(parts)(number), *shown.items]:
        assert str(part.dtype) == dtype
    assert [part.to_number() for part in dn.jit(parts)(number)] == [
        number,
        number + number,
        -number,
    ]


def test_a_long_chain_of_operators() -> None:
    def chained(x, n):
        for _ in range(3000):
            n = n + 1
        return x * n

    assert float(dn.jit(chained)(dn.tensor(0.5, dtype="f64"), 0.25)) == 0.5 * 3000.25

    def doubled(x, n):
        for _ in range(60):
            n = n + n
        return x * n

    assert float(dn.jit(doubled)(dn.tensor(0.5, dtype="f64"), 0.1)) == 0.5 * (0.1 * 2.0**60)


def test_comparisons_with_integers_are_exact() -> None:
    x = dn.tensor(values("u8"))
    for number in (-1, 3, 300, 2**40):
        got = dn.jit(lambda x, n: [x < n, n > x, x == n, n + 0 != x])(x, number)
        want = [
            x.to_numpy() < number,
            x.to_numpy() < number,
            x.to_numpy() == number,
            x.to_numpy() != number,
        ]
        assert [part.to_list() for part in got] == [part.astype(int).tolist() for part in want]


def test_wide_integers_beside_bools_and_floats() -> None:
    mask = dn.tensor([True, False])
    for number in (-1, 0, 1, 300, 2**40):
        got = dn.jit(lambda x, n: [x < n, n > x, x == n, x >= n])(mask, number)
        want = [mask < number, number > mask, mask == number, mask >= number]
        assert [bits(part) for part in got] == [bits(part) for part in want]
        for fun in (
            lambda x, n: dn.select(x, -0.5, n),
            lambda x, n: dn.select(x, n, 0.5),
            lambda x, n: x / (n + 2),
            lambda x, n: (n + 0.5) * dn.as_type(x, "f32"),
        ):
            assert bits(dn.jit(fun)(mask, number)) == bits(fun(mask, number))


def test_a_number_beyond_the_dtype() -> None:
    add = dn.jit(lambda x, n: x + n)
    x = dn.tensor(values("u8"))
    assert add(x, 248).to_list() == [249, 250, 251, 253, 255]
    for number in (256, -1):
        with pytest.raises(
            dn.DTypeError, match=rf"^jit: argument n is the integer {number}, it must fit u8, "
        ):
            add(x, number)
    assert add.cache_info()["misses"] == 1
    assert add(dn.tensor(values("f16")), 1e6).to_list() == [np.inf] * 5
    assert add(dn.tensor([2**40], dtype="s64"), 2**41).to_list() == [3 * 2**40]
    with pytest.raises(
        dn.DTypeError, match=r"^jit: argument n is the integer 1099511627776, it must fit s32, "
    ):
        dn.jit(lambda n: n + 1)(2**40)


def test_the_value_is_in_no_key() -> None:
    traces = Log()

    def scaled(x, n):
        traces.append(type(n))
        return x * n

    jitted = dn.jit(scaled)
    x = dn.tensor(values("f64"))
    for number in (0.1, 0.2, 1e300):
        assert bits(jitted(x, number)) == ("f64", (values("f64") * number).tobytes())
    assert len(traces) == 1
    jitted(x, 3)
    assert len(traces) == 2, "an int is of another kind"
    assert jitted(x, 5).to_list() == (values("f64") * 5).tolist()
    jitted(x, 3j)
    assert len(traces) == 3
    assert jitted.cache_info()["misses"] == 3


def test_numbers_and_tensors_are_two_versions() -> None:
    jitted = dn.jit(lambda x, n: x * n)
    x = dn.tensor(values("f64"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            assert str(jitted(x, 0.1).dtype) == "f64"
            assert str(jitted(dn.tensor([1.0]), dn.tensor(0.1)).dtype) == "f32"
            assert bits(jitted(x, dn.tensor(0.1))) == bits(x * dn.tensor(0.1))
            assert bits(jitted(x, np.float64(0.1))) == bits(x * 0.1)
    assert jitted.cache_info()["misses"] == 4


def test_what_changed_from_a_number_to_a_tensor() -> None:
    jitted = dn.jit(lambda x, n: x * n)
    x = dn.tensor([1.0])
    jitted(x, 0.1)
    jitted(x, dn.tensor(0.1))
    assert jitted.explain()[1] == "n changed from a number (f32) to f32"
    jitted(x, 3)
    assert jitted.explain()[2] == "n changed from f32 to a number (s32)"


def test_a_number_or_a_tensor_is_no_storm() -> None:
    jitted = dn.jit(lambda x, n: x * n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for dtype in [*FLOATS, "c64"]:
            for size in (2, 3):
                jitted(dn.iota((size,), dtype=dtype), 0.5)
                jitted(dn.iota((size,), dtype=dtype), dn.tensor(0.5))
    assert sum("n changed from a number" in reason for reason in jitted.explain()) > 8
    assert not caught


def test_the_graph_has_plain_parameters() -> None:
    x64, x16 = dn.template((2,), "f64"), dn.template((2,), "bf16")
    assert inputs(dn.debug_expr(lambda x, n: x * n)(x64, 0.1)) == "(f64[2], f64)"
    assert inputs(dn.debug_expr(lambda x, n: x * n)(x16, 0.1)) == "(bf16[2], bf16)"
    assert inputs(dn.debug_expr(lambda n, x: x)(0.1, x64)) == "(f32, f64[2])"
    assert inputs(dn.debug_expr(lambda x, n: x * (n + 1))(x16, 0.1)) == "(bf16[2], f32)"
    several = dn.debug_expr(lambda n, x, y: (x * n, y * n, n))(0.1, x64, x16)
    assert inputs(several) == "(f32, f64[2], bf16[2], f64, bf16)"
    captured = dn.tensor(values("f64"))
    assert inputs(dn.debug_expr(lambda n: (captured * n, n))(0.1)) == "(f32, f64; f64[5])"


def test_compiled_ahead_of_time() -> None:
    x = values("f64")
    compiled = dn.compile(lambda x, n: (x * n, n), [dn.template((5,), "f64"), 0.1])
    for number in (0.1, 0.7):
        got = compiled(dn.tensor(x), number)
        assert bits(got[0]) == ("f64", (x * number).tobytes())
        assert bits(got[1]) == ("f32", np.float32(number).tobytes())
    with pytest.raises(
        dn.ShapeError, match=r"^compile: argument 1 is the tensor f32, the compiled function"
    ):
        compiled(dn.tensor(x), dn.tensor(0.1))
    with pytest.raises(
        dn.Error, match=r"^compile: argument n is s32, the compiled function takes f32"
    ):
        compiled(dn.tensor(x), 1)


@pytest.mark.parametrize("dtype", [*FLOATS, "c64"])
def test_gradients(dtype: str) -> None:
    x = dn.tensor(values(dtype))

    def loss(n, x):
        return dn.sum(dn.real(x * n * n))

    got = dn.grad(loss)(0.1, x)
    assert str(got.dtype) == "f32"
    assert abs(float(got) - 2 * 0.1 * 18) < 0.05
    by_both = dn.grad(lambda n, x, y: dn.sum(dn.real(x * n)) + dn.sum(y * n) + n * n)
    y = dn.tensor([1.0, 2.0], dtype="f64")
    both = by_both(0.5, x, y)
    assert (str(both.dtype), float(both)) == ("f32", 18 + 3 + 1)


def test_gradients_see_the_exact_number() -> None:
    x = values("f64")
    value, gradient = dn.value_and_grad(lambda n, x: dn.sum(x * n))(0.1, dn.tensor(x))
    assert bits(value) == bits(dn.sum(dn.tensor(x) * 0.1))
    assert (str(gradient.dtype), float(gradient)) == ("f32", 18.0)
    value, gradient = dn.value_and_grad(lambda x, n: dn.sum(x * (n / 3)))(dn.tensor(x), 0.1)
    assert bits(gradient) == ("f64", np.full(5, 0.1 / 3).tobytes())
    by_int = dn.grad(lambda n: n * n * 0.5)(3)
    assert (str(by_int.dtype), float(by_int)) == ("f32", 3.0)
    assert str(dn.grad(lambda z: dn.real(z * dn.conjugate(z)))(1 + 2j).dtype) == "c64"
    jacobian = dn.jacobian(lambda n, x: x * n)(0.1, dn.tensor(x))
    assert (str(jacobian.dtype), jacobian.to_list()) == ("f32", x.tolist())


def test_definitions_inside() -> None:
    @dn.defn
    def inner(x, n):
        return x * (n + 1)

    def outer(x, n):
        return inner(x, n * 2), dn.value_and_grad(lambda x: dn.sum(inner(x, n)))(x)

    x = values("f64")
    got, (value, gradient) = dn.jit(outer)(dn.tensor(x), 0.1)
    assert bits(got) == ("f64", (x * (0.1 * 2 + 1)).tobytes())
    assert bits(value) == bits(dn.sum(dn.tensor(x) * 1.1))
    assert bits(gradient) == ("f64", np.full(5, 0.1 + 1).tobytes())


def test_loops_and_branches_see_the_number() -> None:
    x = values("f64")

    def looped(x, n):
        return dn.for_(x, range(3), lambda x, i: x * n)

    want = x.copy()
    for _ in range(3):
        want = want * 0.1
    assert bits(dn.jit(looped)(dn.tensor(x), 0.1)) == ("f64", want.tobytes())

    def branched(x, n):
        return dn.if_(n > 0, lambda: x * n, lambda: x / n)

    assert bits(dn.jit(branched)(dn.tensor(x), 0.1)) == ("f64", (x * 0.1).tobytes())
    assert bits(dn.jit(branched)(dn.tensor(x), -0.1)) == ("f64", (x / -0.1).tobytes())


def test_vmap_over_numbers() -> None:
    x = dn.tensor(np.arange(6.0).reshape(2, 3))
    mapped = dn.vmap(lambda row, n: row * n, in_axes=(0, None))
    want = (np.arange(6.0).reshape(2, 3) * 0.1).tobytes()
    assert bits(mapped(x, 0.1)) == ("f64", want)
    assert bits(dn.jit(mapped)(x, 0.1)) == ("f64", want)
    vectorized = dn.vectorize(x, "rows")
    got = dn.devectorize(dn.jit(lambda x, n: x * n)(vectorized, 0.1))
    assert bits(got) == ("f64", want)


def test_stages() -> None:
    x = values("f64")

    def fun(n, x):
        return dn.sin(x * n) * n, n, dn.cos(n)

    expr = dn.debug_expr(fun)(0.1, dn.tensor(x))
    whole = dn.jit(fun)(0.3, dn.tensor(x))
    stages = dn.graph.split(expr, dn.graph.every(1))
    for again in (stages, pickle.loads(pickle.dumps(stages))):
        got = dn.graph.run(again, [0.3, dn.tensor(x)])
        assert [bits(part) for part in got] == [bits(part) for part in whole]
        with pytest.raises(dn.ShapeError, match="0 arguments, the graph was traced with 2"):
            dn.graph.run(again, [])


def test_donated_and_unused_numbers() -> None:
    scaled = dn.jit(lambda x, n, unused: x * n, donate=("x",))
    x = values("f64")
    assert bits(scaled(dn.tensor(x), 0.1, 0.5)) == ("f64", (x * 0.1).tobytes())
    assert bits(scaled(dn.tensor(x), 0.2, 2**40 + 0.5)) == ("f64", (x * 0.2).tobytes())


def test_streams() -> None:
    def step(chunk, total, rate):
        return chunk * rate, total + 1

    with dn.stream(step, [dn.template((2,), "f64"), 0, 0.1]) as stream:
        stream.send(dn.tensor([1.0, 3.0], dtype="f64"))
        assert stream.recv().to_list() == [0.1, 3 * 0.1]
        assert int(stream.done()) == 1
    with dn.stream(lambda chunk, total: (chunk * 2, total + chunk), [0.0, 0.0]) as stream:
        stream.send(1.5)
        stream.send(dn.tensor(2.5))
        assert [float(stream.recv()), float(stream.recv()), float(stream.done())] == [3.0, 5.0, 4.0]


def test_numpys_scalars_have_a_dtype_of_their_own() -> None:
    x = dn.tensor(values("f16"))
    scaled = dn.jit(lambda x, n: x * n)
    assert bits(scaled(x, np.float64(0.1))) == bits(x * np.float64(0.1))
    assert bits(scaled(x, np.float32(0.1))) == bits(x * np.float32(0.1))
    assert bits(scaled(x, True)) == bits(x * True)


def test_captured_numbers_are_static() -> None:
    rate, traces = 0.1, Log()

    @dn.jit
    def scaled(x):
        traces.append(rate)
        return x * rate

    x = values("f64")
    for value in (0.1, 0.2):
        rate = value
        assert bits(scaled(dn.tensor(x))) == ("f64", (x * value).tobytes())
    assert traces.items == [0.1, 0.2]


def test_a_handle_that_is_kept_is_refused() -> None:
    kept = Log()
    dn.jit(lambda x, n: kept.append(n) or x * n)(dn.tensor([1.0]), 0.1)
    for use in (lambda n: n * dn.tensor([1.0], dtype="f64"), lambda n: n + 1, dn.exp):
        with pytest.raises(dn.TraceError):
            use(kept.items[0])


def test_conversion_of_a_number() -> None:
    def converted(n):
        return dn.as_type(n, "f64"), dn.as_type(n, "bf16"), dn.as_type(n, "s64")

    got = dn.jit(converted)(2.7)
    assert [part.to_number() for part in got] == [2.7, float(ml_dtypes.bfloat16(2.7)), 2]
    assert [str(part.dtype) for part in got] == ["f64", "bf16", "s64"]


class Noting(Compiler):
    """Compiles like the evaluator, and records its arguments."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def compile(self, key, vars, fun, options):
        program = dn.compilers.trace(fun, vars)
        self.seen.append([str(var.dtype) for var in vars])
        assert [node.op for node in program.outputs] == [
            node.op for node in dn.compilers.trace(fun, vars).outputs
        ]
        run = EVALUATOR.compile(key, vars, fun, {})

        def call(lists):
            self.seen.append([str(arg.dtype) for arg in lists[0]])
            return run(lists)

        return call


class Running(Noting):
    """The same, with a callback that compiles and runs."""

    def jit(self, key, vars, fun, args_list, options):
        run = self.compile(key, vars, fun, options)
        return run([[thunk() for thunk in args] for args in args_list])


@pytest.mark.parametrize("kind", [Noting, Running])
def test_compilers_in_python_are_given_plain_parameters(kind: type[Noting]) -> None:
    compiler, x = kind(), values("f64")
    weight = dn.tensor(values("bf16"))
    fun = dn.jit(lambda n, x: (x * n, weight * n), compiler=compiler)
    for number in (0.1, 0.3):
        got = fun(number, dn.tensor(x))
        assert bits(got[0]) == ("f64", (x * number).tobytes())
        assert bits(got[1]) == bits(weight * number)
    assert all(seen == ["f64", "f64", "bf16", "bf16"] for seen in compiler.seen)
    assert fun.cache_info()["misses"] == 1
    add = dn.jit(lambda x, n: x + n, compiler=compiler)
    with pytest.raises(dn.RangeError, match="argument n is the integer 300, it must fit u8"):
        add(dn.tensor(values("u8")), 300)


@pytest.mark.parametrize("compiler", ["cpu", "evaluator", pytest.param("pjrt", marks=needs_plugin)])
def test_every_compiler(compiler: str) -> None:
    x = values("f64")
    fun = dn.jit(lambda n, x, y: (x * n, y * (n + 1)), compiler=compiler)
    for number in (0.1, 0.3):
        got = fun(number, dn.tensor(x), dn.tensor(values("s8")))
        assert bits(got[0]) == ("f64", (x * number).tobytes())
        assert bits(got[1]) == bits(
            dn.tensor(values("s8")) * dn.tensor(np.float32(number) + np.float32(1))
        )
    assert fun.cache_info()["misses"] == 1


@needs_plugin
def test_saved_and_loaded(tmp_path: Path) -> None:
    x, path = values("f64"), tmp_path / "compiled"
    fun = lambda n, x: (x * n, n + 1, n)  # noqa: E731
    dn.pjrt.compile(fun, [0.1, dn.template((5,), "f64")]).save(path)
    again = dn.pjrt.load(path, trust=True)
    for number in (0.1, 0.3):
        got = again(number, dn.tensor(x))
        assert bits(got[0]) == ("f64", (x * number).tobytes())
        assert [str(part.dtype) for part in got] == ["f64", "f32", "f32"]
    with pytest.raises(dn.ShapeError, match="takes a number"):
        again(dn.tensor(0.1), dn.tensor(x))
