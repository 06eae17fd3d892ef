"""One program on several devices: the same results, and where they are."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn

DEVICES = dn.devices("host")


def batch(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((8, 5)).astype("f4"), rng.standard_normal((5, 3)).astype("f4")


def model(x: dn.Tensor, w: dn.Tensor) -> dict[str, dn.Tensor]:
    y = dn.tanh(x @ w)
    return {"y": y, "norm": dn.sqrt(dn.sum(y * y)), "w": w}


def templates() -> list[dn.Tensor]:
    return [dn.template((8, 5), "f32"), dn.template((5, 3), "f32")]


def places(results: list[dict[str, dn.Tensor]]) -> list[int]:
    return [result["y"].backend.device_id for result in results]


def test_partitions_give_the_results_of_one_device():
    assert len(DEVICES) == 4
    compiled = dn.pjrt.compile(model, templates(), client="host")
    lists = [batch(seed) for seed in range(4)]
    together = compiled.run_each(lists)
    assert places(together) == [0, 1, 2, 3]
    for args, result in zip(lists, together, strict=True):
        alone = compiled(*args)
        assert alone["y"].backend.device_id == 0
        for name, value in alone.items():
            assert value.to_numpy().tobytes() == result[name].to_numpy().tobytes()


def test_one_compilation_serves_every_device():
    compiled = dn.pjrt.compile(lambda x: dn.cos(x) * 41.5, [dn.template((7,), "f32")])
    before = dn.pjrt.cache_report().compiles
    results = compiled.run_each([[np.full(7, n, "f4")] for n in range(9)])
    assert dn.pjrt.cache_report().compiles == before
    assert [result.backend.device_id for result in results] == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    assert compiled.run_each([]) == []


def test_lists_on_devices_run_there():
    compiled = dn.pjrt.compile(model, templates(), client="host")
    lists = [
        [dn.tensor(array, backend=DEVICES[at].backend) for array in batch(at)] for at in (3, 1, 1)
    ]
    results = compiled.run_each(lists)
    assert places(results) == [3, 1, 1]
    assert results[0]["w"] is lists[0][1]
    lists[1][0] = dn.tensor(batch(1)[0], backend=DEVICES[2].backend)
    with pytest.raises(dn.BackendError, match="the operands are on"):
        compiled.run_each(lists)


def test_lists_are_checked():
    compiled = dn.pjrt.compile(model, templates())
    x, w = batch(0)
    with pytest.raises(dn.ShapeError, match="argument w is"):
        compiled.run_each([(x, w), (x, x)])
    with pytest.raises(dn.OptionError, match="an entry of args_list is"):
        compiled.run_each([x, w])


def test_other_compilers_run_one_after_the_other():
    compiled = dn.compile(model, templates(), compiler="evaluator")
    lists = [batch(seed) for seed in range(3)]
    for args, result in zip(lists, compiled.run_each(lists), strict=True):
        assert result["y"].to_numpy().tobytes() == compiled(*args)["y"].to_numpy().tobytes()


def test_hooks_of_every_list_are_called():
    seen = []
    fun = lambda x: dn.hook(x * 2, seen.append)  # noqa: E731
    compiled = dn.pjrt.compile(fun, [dn.template((), "f32")])
    compiled.run_each([[float(n)] for n in range(5)])
    assert [float(value) for value in seen] == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_donated_lists_are_gone():
    compiled = dn.pjrt.compile(lambda x: x + 1, [dn.template((3,), "f32")], donate=0)
    lists = [[dn.tensor([1.0, 2.0, 3.0], backend=device.backend)] for device in DEVICES]
    results = compiled.run_each(lists)
    assert [result.to_list() for result in results] == [[2.0, 3.0, 4.0]] * 4
    for (x,) in lists:
        with pytest.raises(dn.BackendError, match="donated"):
            x.to_list()


def test_partitions_options():
    pjrt = dn.compilers.get("pjrt")
    options = {"client": "host", "xla_cpu_enable_fast_math": False}
    parts = pjrt.partitions_options(options)
    assert parts == [{**options, "device_id": n} for n in range(4)]
    assert options == {"client": "host", "xla_cpu_enable_fast_math": False}
    x, w = batch(5)
    results = [dn.jit(model, compiler="pjrt", **part)(x, w) for part in parts]
    assert places(results) == [0, 1, 2, 3]
    assert len({result["y"].to_numpy().tobytes() for result in results}) == 1
    assert dn.compilers.get("evaluator").partitions_options({}) == [{}]
    with pytest.raises(dn.OptionError, match="speed"):
        pjrt.partitions_options({"speed": 11})


def test_a_client_s_own_devices_are_counted():
    dn.pjrt.client("pair", plugin=dn.pjrt.plugins()[-1].path, cpu_device_count=2)
    parts = dn.compilers.get("pjrt").partitions_options({"client": "pair"})
    assert [part["device_id"] for part in parts] == [0, 1]
    compiled = dn.pjrt.compile(model, templates(), client="pair")
    results = compiled.run_each([batch(seed) for seed in range(3)])
    assert [result["y"].backend for result in results] == [
        dn.backends.PJRT(client="pair", device_id=n) for n in (0, 1, 0)
    ]


def test_a_compiler_in_python_hands_lists_on():
    class Counting(dn.Compiler):
        def compile(self, key, vars, fun, options):
            run = dn.compilers.get("pjrt").compile(key, vars, fun, options)
            return lambda lists: run([list(lists[0])] * 4)[-1:]

    x, w = batch(2)
    out = dn.jit(model, compiler=Counting(), client="host")(x, w)
    assert out["y"].backend == dn.backends.PJRT(client="host", device_id=3)


def test_defaults_say_which_device():
    x, w = batch(6)
    f = dn.jit(model)
    with dn.options(compiler="pjrt", client="host", device_id=2):
        assert places([f(x, w)]) == [2]
        with dn.options(device_id=1):
            assert places([f(x, w)]) == [1]
            assert places([dn.jit(model, device_id=3)(x, w)]) == [3]
        here = dn.jit(model, compiler="evaluator")(x, w)
        assert here["y"].backend != DEVICES[2].backend, "a compiler that is named has its own"
    before = dn.default_options({"compiler": "pjrt", "client": "host", "device_id": 3})
    try:
        assert places([f(x, w)]) == [3]
    finally:
        dn.default_options(before)


def test_defaults_are_checked_when_their_compiler_is_known():
    for options in (
        {"compiler": "pjrt", "spede": 11},
        {"compiler": "pjrt", "device_id": "first"},
        {"compiler": "evaluator", "device_id": 1},
    ):
        with pytest.raises(dn.OptionError, match=r"spede|device_id"):
            dn.default_options(options)
    with dn.options(compiler="pjrt"), pytest.raises(dn.OptionError, match="spede"):
        dn.default_options({**dn.default_options(), "spede": 1})
    with dn.options(device_id=1):
        f = dn.jit(lambda x: x + 1)
        with pytest.raises(dn.OptionError, match="device_id"):
            dn.jit(lambda x: x + 1, compiler=dn.compilers.get("cpu"), device_id=1)(1.0)
        with dn.options(compiler="pjrt", device_id=1):
            assert f(np.ones(3, "f4")).backend.device_id == 1
