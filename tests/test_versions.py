"""The lifetime of versions, what they keep alive, and that threads create each of them once."""

from __future__ import annotations

import dataclasses
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import defn as dn
from support import Log

LIMIT = 256


class Model:
    """An object with definitions of its own methods; each definition makes a reference cycle."""

    def __init__(self) -> None:
        self.scale = dn.tensor(2.0)
        self.step = dn.jit(self._step)
        self.slope = dn.grad(self._step)
        self.both = dn.value_and_grad(self._step, self._half)
        self.ready = dn.compile(self._step, [1.0])

    def _step(self, x: Any) -> Any:
        return x * self.scale

    def _half(self, y: Any) -> Any:
        return y * 0.5

    @dn.defn
    def apply(self, x: Any) -> Any:
        return x + self.scale


def collected(reference: weakref.ref[Any]) -> bool:
    gc.collect()
    return reference() is None


def test_a_model_that_holds_its_definitions_is_collected() -> None:
    def run() -> weakref.ref[Model]:
        model = Model()
        assert float(model.step(2.0)) == float(model.ready(2.0)) == 4.0
        assert float(model.slope(2.0)) == 2.0
        assert [float(part) for part in model.both(3.0)] == [6.0, 1.0]
        assert float(model.apply(2.0)) == 4.0
        return weakref.ref(model)

    assert collected(run())


def test_a_function_that_names_its_definition_is_collected() -> None:
    def run() -> weakref.ref[Any]:
        @dn.defn
        def power(x: Any, *, n: int) -> Any:
            return x if n == 1 else x * power(x, n=n - 1)

        assert float(power(2.0, n=3)) == 8.0
        return weakref.ref(power)

    assert collected(run())


def test_hooks_of_a_model_do_not_keep_it() -> None:
    class Watched:
        def __init__(self) -> None:
            self.seen: list[float] = []
            self.step = dn.jit(self._step)
            self.named = dn.jit(self._named, hooks={"x": self.note})

        def note(self, value: Any) -> None:
            self.seen.append(float(value))

        def _step(self, x: Any) -> Any:
            return dn.hook(x, self.note)

        def _named(self, x: Any) -> Any:
            return dn.hook(x, "x")

    def run() -> weakref.ref[Watched]:
        watched = Watched()
        watched.step(1.0)
        watched.step(2.0)
        watched.named(3.0)
        assert watched.seen == [1.0, 2.0, 3.0]
        assert watched.step.cache_info()["misses"] == 1
        return weakref.ref(watched)

    assert collected(run())


def test_callables_are_not_kept() -> None:
    class Callable:
        def __call__(self, x: Any) -> Any:
            return x + 1

    def run(wrap: Any) -> weakref.ref[Callable]:
        inner = Callable()
        assert float(dn.jit(wrap(inner))(1.0)) == 2.0
        return weakref.ref(inner)

    for wrap in (lambda f: f, partial, lambda f: lambda x: f(x)):
        assert collected(run(wrap))


def test_arguments_and_closures_are_not_kept() -> None:
    @dataclasses.dataclass(frozen=True, eq=False)
    class Config:
        rate: dn.Static[float]

    class Plain:
        pass

    def scale(x: Any, *, config: Any) -> Any:
        return x * 2

    jitted = dn.jit(scale)

    def run() -> list[weakref.ref[Any]]:
        config, plain, array = Config(2.0), Plain(), np.ones(3, np.float32)
        jitted(array, config=plain)
        inner = dn.jit(lambda x: (x, config, plain, array)[0])
        inner(dn.tensor(1.0))
        return [weakref.ref(config), weakref.ref(plain), weakref.ref(array)]

    references = run()
    assert [collected(reference) for reference in references] == [True] * 3
    jitted(1.0, config=Plain())
    assert jitted.cache_info()["size"] == 1, "the version of an object that is gone is dropped"


def test_a_new_object_at_an_old_address_is_another() -> None:
    class Plain:
        def __init__(self, n: float) -> None:
            self.n = n

    jitted = dn.jit(lambda x, *, by: x * by.n)
    for n in range(50):
        assert float(jitted(1.0, by=Plain(float(n)))) == n


def test_methods_that_are_called_of_many_objects() -> None:
    results = []
    for n in range(50):
        model = Model()
        model.scale = dn.tensor(float(n))
        results.append(float(model.apply(1.0)))
    assert results == [1.0 + n for n in range(50)]
    assert Model.apply.cache_info()["size"] <= 50


def test_the_cache_is_bounded() -> None:
    jitted = dn.jit(lambda x, *, n: x * n)
    jitted(1.0, n=-1)
    for n in range(LIMIT + 20):
        assert float(jitted(2.0, n=n)) == 2 * n
        jitted(1.0, n=-1)
    info = jitted.cache_info()
    assert (info["size"], info["limit"]) == (LIMIT, LIMIT)
    assert info["misses"] == LIMIT + 21, "what is used again and again stays"
    jitted(1.0, n=LIMIT + 19)
    assert jitted.cache_info()["misses"] == LIMIT + 21
    jitted(1.0, n=0)
    assert jitted.cache_info()["misses"] == LIMIT + 22, "what was used long ago is compiled again"
    assert len(jitted.explain()) == LIMIT


def test_definitions_of_one_code_have_a_limit_each() -> None:
    def make(n: int) -> Any:
        return dn.jit(lambda x: x * n)

    layers = [make(n) for n in range(LIMIT + 44)]
    for _ in range(2):
        assert [float(layer(1.0)) for layer in layers] == list(range(len(layers)))
    assert all(layer.cache_info()["misses"] == 1 for layer in layers)
    assert layers[0].cache_info()["limit"] == LIMIT * len(layers)
    del layers[1:]
    layers[0](1)
    info = layers[0].cache_info()
    assert (info["size"], info["limit"]) == (LIMIT, LIMIT)


def test_definitions_answer_for_their_functions() -> None:
    def documented(x: dn.Tensor) -> dn.Tensor:
        """What it does."""
        return x

    documented.note = "kept"
    jitted = dn.jit(documented)
    assert jitted.__wrapped__ is documented
    assert jitted.__annotations__ == documented.__annotations__
    assert (jitted.__name__, jitted.__doc__) == ("documented", "What it does.")
    assert (jitted.__module__, jitted.note) == (__name__, "kept")
    jitted.own = 1
    assert jitted.own == 1
    with pytest.raises(AttributeError, match="missing"):
        _ = jitted.missing
    assert not hasattr(jitted, "__self__")


def slow(traces: Log, seconds: float = 0.2) -> Any:
    def body(x: Any) -> Any:
        traces.append(1)
        time.sleep(seconds)
        return x * 2

    return body


def test_threads_make_one_version() -> None:
    traces = Log()
    body = slow(traces)
    # A function of its own: an explanation compares with what other tests compiled of the same one.
    jitted = dn.jit(lambda x: body(x))
    ready = threading.Barrier(8)

    def work(n: int) -> int:
        ready.wait(10)
        return int(jitted(np.int32(n)))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [2 * n for n in range(8)]
    assert len(traces) == 1
    info = jitted.cache_info()
    assert (info["misses"], info["hits"], info["size"]) == (1, 7, 1)
    assert jitted.explain() == ["nothing was compiled before"]


def test_threads_make_a_version_for_each_signature() -> None:
    traces = Log()
    jitted = dn.jit(slow(traces, 0.05))
    ready = threading.Barrier(9)

    def work(n: int) -> tuple[int, ...]:
        ready.wait(10)
        return jitted(dn.broadcast(1.0, (n % 3 + 1,))).shape

    with ThreadPoolExecutor(9) as pool:
        assert list(pool.map(work, range(9))) == [(n % 3 + 1,) for n in range(9)]
    assert len(traces) == 3
    assert jitted.cache_info()["misses"] == 3


def test_a_failure_reaches_each_thread() -> None:
    ready = threading.Barrier(4)

    def failing(x: Any) -> Any:
        time.sleep(0.05)
        raise ValueError("mine")

    jitted = dn.jit(failing)

    def work(_: int) -> str:
        ready.wait(10)
        with pytest.raises(ValueError, match="mine") as info:
            jitted(1.0)
        return str(info.value)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == ["mine"] * 4
    assert jitted.cache_info()["size"] == 0


def test_another_takes_over_where_one_fails() -> None:
    ready, traces = threading.Barrier(4), Log()

    def once(x: Any) -> Any:
        traces.append(1)
        time.sleep(0.05)
        if len(traces) == 1:
            raise ValueError("the first")
        return x + 1

    jitted = dn.jit(once)

    def work(_: int) -> object:
        ready.wait(10)
        try:
            return float(jitted(1.0))
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        results = sorted(pool.map(work, range(4)), key=str)
    assert results == [2.0, 2.0, 2.0, "the first"]
    assert len(traces) == 2


def test_definitions_that_wait_for_each_other() -> None:
    """In two threads at once, f's trace calls g as a program of its own, and g's trace calls f."""
    both = threading.Barrier(2)

    def first(x: Any) -> Any:
        wait()
        return x + (g(np.float32(1.0)) if depth.value < 2 else 0.0)

    def second(x: Any) -> Any:
        wait()
        return x + (f(np.float32(1.0)) if depth.value < 2 else 0.0)

    class Depth(threading.local):
        value = 0

    depth = Depth()

    def wait() -> None:
        depth.value += 1
        if depth.value == 1:
            both.wait(10)

    f = dn.jit(first, on_conflict="force")
    g = dn.jit(second, on_conflict="force")
    done: list[float] = []
    threads = [
        threading.Thread(target=lambda h=h: done.append(float(h(np.float32(1.0)))), daemon=True)
        for h in (f, g)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(done) == 2, "neither waits for the other"
    assert time.monotonic() - began < 15.0


def test_a_definition_that_calls_itself_apart() -> None:
    """A thread does not wait for itself; of the versions that it creates meanwhile, one is kept."""
    depth = Log()

    def body(x: Any) -> Any:
        depth.append(1)
        return x + (again(1.0) if len(depth) < 3 else 1.0)

    again = dn.jit(body, on_conflict="force")
    assert float(again(1.0)) == 2.0
    assert again.cache_info()["size"] == 1


def test_an_array_that_comes_back_from_a_definition_that_runs_apart() -> None:
    same = dn.jit(lambda x: x, on_conflict="force")
    assert float(dn.jit(lambda x: x + same(np.float32(2.0)))(1.0)) == 3.0


def test_other_functions_go_on_while_one_is_traced() -> None:
    started, release = threading.Event(), threading.Event()

    def blocked(x: Any) -> Any:
        started.set()
        release.wait(10)
        return x

    thread = threading.Thread(target=lambda: dn.jit(blocked)(1.0))
    thread.start()
    try:
        assert started.wait(10)
        assert float(dn.jit(lambda x: x + 1)(1.0)) == 2.0
        assert float(dn.jit(lambda x: x + 1)(dn.tensor(3.0))) == 4.0
    finally:
        release.set()
        thread.join()


def test_a_traced_tensor_inside_a_callback() -> None:
    """A backend computes with its own tensors, also while a definition around it is traced."""
    kept = []

    class Peeking(dn.backends.NumPyBackend):
        def from_binary(self, out: Any, data: bytes) -> Any:
            kept[0] + 1
            return super().from_binary(out, data)

    def f(x: Any) -> Any:
        kept.append(x)
        return x + dn.tensor([1.0], backend=Peeking())

    with pytest.raises(dn.TraceError, match="definition that is being traced around this call"):
        dn.jit(f)(1.0)


def test_a_name_that_the_template_lacks_is_refused() -> None:
    ready = dn.compile(lambda x: x, [dn.template((2, 2), "f32", names=["a", None])])
    x = np.ones((2, 2), np.float32)
    assert ready(x).shape == (2, 2)
    assert ready(dn.tensor(x, names=["a", None])).names == ("a", None)
    for names in (["b", None], ["a", "b"], [None, "b"]):
        with pytest.raises(dn.ShapeError, match=r"compiled function takes f32\[a: 2\]\[2\]"):
            ready(dn.tensor(x, names=names))


def test_annotations_are_resolved_one_by_one() -> None:
    def f(x: Missing, n: dn.Static[int]) -> AlsoMissing:  # noqa: F821
        return dn.broadcast(x, (n,))

    assert dn.jit(f)(1.0, 3).shape == (3,)

    def g(x: Any, n: dn.Static[Missing]) -> Any:  # noqa: F821
        return x

    with pytest.raises(dn.OptionError) as info:
        dn.jit(g)
    assert str(info.value).splitlines()[0] == (
        "jit: the annotation \"dn.Static[Missing]\" of n cannot be resolved: name 'Missing' is not "
        'defined, a static one must name what its module has, or else pass static="n" to jit'
    )
    assert float(dn.jit(g, static="n")(1.0, 3)) == 1.0


@dataclasses.dataclass(frozen=True)
class Partly:
    """A container in which one annotation names nothing."""

    x: Missing  # noqa: F821
    n: dn.Static[int]


def test_annotations_of_fields_are_resolved_one_by_one() -> None:
    assert dn.jit(lambda p: dn.broadcast(p.x, (p.n,)))(Partly(1.0, 2)).shape == (2,)


def test_definitions_that_a_function_closes_over_are_told_apart() -> None:
    square, cube = (lambda x: x * x), (lambda x: x * x * x)
    for fun, want in ((square, 4.0), (cube, 12.0)):
        slope = dn.grad(fun)

        def call(x: Any, slope: Any = slope) -> Any:
            return slope(x)

        def close_over(slope: Any = slope) -> Any:
            return lambda x: slope(x)

        assert float(dn.jit(call)(2.0)) == want
        assert float(dn.jit(close_over())(2.0)) == want
        assert dn.jit(dn.vmap(slope))(dn.tensor([2.0])).to_list() == [want]
    product = lambda x, y: x * y * y  # noqa: E731
    for argnums, want in ((0, 9.0), (1, 12.0)):
        derivative = dn.grad(product, argnums=argnums)
        assert float(dn.jit(lambda x, y, d=derivative: d(x, y))(2.0, 3.0)) == want


def test_derivatives_with_and_without_a_second_part_are_told_apart() -> None:
    pair = lambda x: (x * x, x)  # noqa: E731
    assert [float(x) for x in dn.jacobian(pair)(3.0)] == [6.0, 1.0]
    assert [float(x) for x in dn.jacobian(pair, has_aux=True)(3.0)] == [6.0, 3.0]
    assert [float(x) for x in dn.grad(pair, has_aux=True)(3.0)] == [6.0, 3.0]
    with pytest.raises(dn.ContainerError):
        dn.grad(pair)(3.0)
