"""Meshes whose devices belong to workers of Ray: what they compute, and what goes wrong.

One worker computes on XLA's CPU. Several workers have a plugin of the tests, which joins processes
like XLA's for CUDA; each of its programs adds 10 times the number of the device to the argument.
"""

from __future__ import annotations

import _thread
import doctest
import functools
import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import ray

import defn as dn
import fake_plugin
from defn.engines import ray_mesh
from defn.engines._ray_cluster import Cluster
from support import needs_plugin

INIT = {"object_store_memory": 128 << 20, "num_cpus": 4}

pytestmark = [needs_plugin, pytest.mark.usefixtures("no_options")]


@pytest.fixture(scope="module")
def mesh() -> Iterator[dn.engines.RayMesh]:
    """One worker with four devices. Its cluster is that of all tests here."""
    with dn.engines.RayMesh({"data": 2, "model": 2}, client="host", init=INIT) as mesh:
        yield mesh


def several(workers: int = 2, axes: Any = None, **options: Any) -> dn.engines.RayMesh:
    """Workers with two devices each."""
    plugin = str(fake_plugin.fake("pjrt_joining_cuda.so", computes=True))
    return dn.engines.RayMesh(
        axes or {"data": 2 * workers},
        workers=workers,
        client="cuda",
        environment={"DEFN_PJRT_PLUGIN": plugin},
        **options,
    )


@pytest.fixture(scope="module")
def joined(mesh: dn.engines.RayMesh) -> Iterator[dn.engines.RayMesh]:
    with several(4, {"data": 4, "model": 2}) as joined:
        yield joined


def inside(mesh: dn.engines.RayMesh, fun: Any) -> list[Any]:
    """What a function of the process returns in each worker, by rank."""
    return ray.get([worker.__ray_call__.remote(fun) for worker in mesh._workers])


def stored(mesh: dn.engines.RayMesh) -> list[int]:
    """The number of sharded functions and tensors in each worker, without dropped ones."""
    gc.collect()
    mesh._everywhere("drop", ())
    return inside(mesh, lambda member: len(member.part.values))


def pids(mesh: dn.engines.RayMesh) -> list[int]:
    return inside(mesh, lambda _: os.getpid())


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.02)
    return not os.path.exists(f"/proc/{pid}")


def test_the_steps_of_a_training(mesh: dn.engines.RayMesh) -> None:
    """The parameters stay in the worker; NumPy computes the same."""

    def loss(w: Any, x: Any, y: Any) -> Any:
        return dn.mean((x @ w["w"] + w["b"] - y) ** 2)

    def step(w: Any, x: Any, y: Any, *, rate: Any) -> Any:
        value, slope = dn.value_and_grad(loss)(w, x, y)
        value, slope = dn.tree.map(lambda x: dn.all_reduce(x) / dn.mesh_size(), (value, slope))
        return dn.tree.map(lambda w, s: w - rate * s, w, slope), value

    both = (("data", "model"),)
    train = mesh.shard(step, in_specs=[(), both, both], out_specs=(), donate="w")
    random = np.random.default_rng(0)
    x = random.standard_normal((16, 3))
    y = x @ [1.0, 2.0, 3.0] + 0.5
    w: Any = {"w": np.zeros(3), "b": np.float64(0)}
    ours = w
    for _ in range(5):
        ours, value = train(ours, x, y, rate=0.25)
        off = x @ w["w"] + w["b"] - y
        w = {"w": w["w"] - 0.5 * x.T @ off / 16, "b": w["b"] - 0.5 * off.mean()}
        np.testing.assert_allclose(value.to_numpy(), (off**2).mean(), rtol=1e-12)
    np.testing.assert_allclose(ours["w"].to_numpy(), w["w"], rtol=1e-12)
    np.testing.assert_allclose(ours["b"].to_tensor().item(), w["b"], rtol=1e-12)
    assert (value.shape, value.rank, value.dtype, value.spec) == ((), 0, dn.dtype("f64"), ())
    # What a step returns has the types of what it was given.
    assert train.cache_info()["misses"] == 1
    assert train.explain() == ["nothing was compiled before"]


@pytest.mark.parametrize(
    ("shape", "spec"),
    [
        ((4, 4), ("data", "model")),
        ((4, 4), ("model", "data")),
        ((8, 2), (("data", "model"),)),
        ((8, 2), (("model", "data"),)),
        ((3, 4), (None, "model")),
        ((2, 3), ("data",)),
        ((2, 3), ()),
        ((2, 3), None),
        ((0, 4), ("data", "model")),
        ((), ()),
    ],
)
def test_blocks_are_assembled(mesh: dn.engines.RayMesh, shape: Any, spec: Any) -> None:
    """As by a mesh of this process; the function tells the devices apart."""

    def fun(x: Any) -> Any:
        return (x * 2 + dn.mesh_index() if spec else x * 2), [x]

    array = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    here = dn.shard(fun, dn.Mesh(mesh.axes, client="host"), [spec], spec)(array)
    there = mesh.shard(fun, [spec], spec)(array)
    for a, b in ((here[0], there[0]), (here[1][0], there[1][0])):
        assert repr(b) == repr(a).replace("Sharded", "RaySharded").replace(repr(a.mesh), repr(mesh))
        assert (b.shape, b.rank, b.dtype, b.spec) == (a.shape, a.rank, a.dtype, a.spec)
        np.testing.assert_array_equal(b.to_numpy(), a.to_numpy())
    np.testing.assert_array_equal(there[1][0].to_numpy(), array)
    np.testing.assert_array_equal(np.asarray(there[1][0]), array)


@pytest.mark.parametrize("dtype", ["bool", "u4", "s8", "bf16", "c64"])
def test_dtypes_and_names(mesh: dn.engines.RayMesh, dtype: str) -> None:
    tensor = dn.tensor([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=dtype, names=["row", None])
    out = mesh.shard(lambda x: x, [("data", "model")], ("data", "model"))(tensor)
    assert (out.dtype, out.names) == (tensor.dtype, ("row", None))
    whole = out.to_tensor()
    assert (whole.dtype, whole.names, whole.backend) == (tensor.dtype, ("row", None), "cpu")
    assert whole.to_numpy().tobytes() == tensor.to_numpy().tobytes()


def test_what_arguments_can_be(mesh: dn.engines.RayMesh) -> None:
    """Tensors on a device, sharded ones of this process, strided arrays, static values, numbers."""
    local = dn.Mesh({"d": 2}, client="host")
    halves = dn.shard(lambda x: x + 1, local, [("d",)], ("d",))(np.arange(4.0))
    device = dn.tensor([1.0, 2.0], backend=dn.backends.PJRT(client="host", device_id=1))
    strided = np.arange(16.0).reshape(4, 4)[::2, ::2].T
    large = np.ones(1 << 18)

    def fun(parts: Any, how: str, scale: Any, *, text: Any = None) -> Any:
        total = sum(dn.sum(x) for x in dn.tree.leaves(parts))
        return {"how": how, "total": total * scale, "text": text}

    run = mesh.shard(fun, [(), (), ()], (), static=["how", "text"])
    out = run({"a": halves, "b": (device, strided), "c": large}, "so", 2.0, text=("x", "y"))
    assert (out["how"], out["text"]) == ("so", ("x", "y"))
    assert out["total"].to_numpy() == 2 * (10 + 3 + strided.sum() + large.size)
    # A result is an array for functions of this process.
    assert dn.add(out["total"], 1.0).item() == out["total"].to_numpy() + 1
    assert out["total"].block_until_ready() is out["total"]
    # A function may have tensors.
    weight = dn.tensor([1.0, 2.0])
    assert mesh.shard(lambda x: x @ weight, [()], ())(np.array([3.0, 4.0])).to_numpy() == 11


def test_what_arguments_cannot_be(mesh: dn.engines.RayMesh, joined: dn.engines.RayMesh) -> None:
    run = mesh.shard(lambda x: x, [()], ())
    foreign = joined.shard(lambda x: x, [()], ())(np.array([1, 2], "f4"))
    with pytest.raises(dn.BackendError) as raised:
        run([foreign])
    assert str(raised.value).startswith(
        f"shard: <lambda> is given {foreign}, of another mesh, one of {mesh} is required; pass "
        f"its to_tensor()\n  at {__file__}:"
    )
    np.testing.assert_array_equal(run([foreign.to_tensor()])[0].to_numpy(), [1, 2])
    with pytest.raises(dn.OptionError, match=r"shard: <lambda> cannot be sent .*lock.*; a plain"):
        run(threading.Lock())
    gone = dn.tensor([1.0])
    dn.pjrt.jit(lambda x: x + 1, donate=0)(moved := dn.backend_copy(gone, dn.backends.PJRT()))
    with pytest.raises(
        dn.BackendError, match=rf"was donated at {__file__}:\d+; .*\n  at {__file__}"
    ):
        run(moved)
    with pytest.raises(dn.TraceError, match="is a template, it has a type but no values"):
        run(dn.template((2,), "f32"))
    with pytest.raises(dn.Error, match="vectorized"):
        run(dn.vectorize(dn.iota((2, 3)), "row"))
    with pytest.raises(dn.BackendError, match=r"pickle: RaySharded.* pickle its to_tensor"):
        pickle.dumps(foreign)
    with pytest.raises(dn.TraceError, match="<lambda> is called while another definition"):
        dn.jit(lambda x: run(x))(1.0)
    with dn.checks("index"), pytest.raises(dn.OptionError, match="checks are asked for"):
        run(1.0)


def test_functions_that_cannot_be_sent(
    mesh: dn.engines.RayMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = dn.jit(lambda x: x + 1)
    with pytest.raises(dn.OptionError, match=r"cannot be sent to the workers .*a plain function"):
        mesh.shard(lambda x: inner(x), [()], ())

    # Of a script, workers cannot import the definition: they have another main module.
    def script(x: Any) -> Any:
        return x + 1

    script.__module__, script.__qualname__ = "__main__", "script"
    with pytest.raises(dn.OptionError, match=r"shard: script cannot be sent.*part of the script"):
        mesh.shard(dn.jit(script), [()], ())
    # One of a module they import.
    assert mesh.shard(definition, [()], ())(1.0).to_numpy() == 3


@dn.jit
def definition(x: Any) -> Any:
    return x * 3


def test_errors_come_as_they_are(mesh: dn.engines.RayMesh) -> None:
    """With class, text and line, as from a mesh of this process, which then still works."""
    local = dn.Mesh(mesh.axes, client="host")

    def wrong_shape(x: Any) -> Any:
        return x + dn.iota((5,))

    for spec, fun, argument in [
        (("data",), lambda x: x, np.ones(3)),
        ((), wrong_shape, np.ones(3)),
        ((), lambda x: dn.all_reduce(x, "rows"), np.ones(3)),
        (("data", "model"), lambda x: x, np.ones(4)),
    ]:
        told = []
        for where in (local, mesh):
            shard = mesh.shard if where is mesh else lambda *a: dn.shard(a[0], local, *a[1:])
            with pytest.raises(dn.Error) as raised:
                shard(fun, [spec], spec)(argument)
            told.append((type(raised.value), str(raised.value)))
        assert told[0] == told[1]
        assert f"\n  at {__file__}:" in told[1][1]
    with pytest.raises(dn.AxisError, match=r"rows") as unknown:
        mesh.shard(lambda x: x, [("rows",)], ())
    assert f"\n  at {__file__}:" in str(unknown.value)

    def odd(x: Any) -> Any:
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today") as raised:
        mesh.shard(odd, [()], ())(1.0)
    (note,) = raised.value.__notes__
    assert f'File "{__file__}", line {odd.__code__.co_firstlineno + 1}, in odd' in note
    with pytest.raises(TypeError, match=r"unexpected keyword|no parameter"):
        mesh.shard(lambda x: x, [()], ())(1.0, y=2)
    assert mesh.shard(lambda x: x, [()], ())(1.0).to_numpy() == 1


def test_donated_and_dropped_results_are_freed(mesh: dn.engines.RayMesh) -> None:
    (before,) = stored(mesh)
    add = mesh.shard(lambda x: (x + 1, x + 2), [("data",)], ("data",), donate="x")
    other, out = add(np.zeros(4, "f4"))
    for _ in range(3):
        other, out = add(out)
    # The last two results. Before the next request, those of the call before are there too.
    (held,) = inside(mesh, lambda member: len(member.part.values))
    assert held == before + 1 + 4
    assert stored(mesh) == [before + 1 + 2]
    kept = out
    other, out = add(out)
    line = sys._getframe().f_lineno - 1
    for use in (kept.to_numpy, functools.partial(add, kept), kept.block_until_ready):
        with pytest.raises(dn.BackendError, match=rf"was donated at {__file__}:{line}\b"):
            use()
    # Errors leave nothing.
    with pytest.raises(dn.ShapeError):
        add(np.zeros(3, "f4"))
    with pytest.raises(dn.AxisError):
        mesh.shard(lambda x: x, [("rows",)], ())
    assert stored(mesh) == [before + 1 + 3]
    del out, other, kept, use, add
    assert stored(mesh) == [before]


def test_several_workers(joined: dn.engines.RayMesh) -> None:
    rows = np.arange(16, dtype="f4").reshape(8, 2)
    both, swapped = (("data", "model"),), (("model", "data"),)
    add = joined.shard(lambda x: x + 1, [both], both)
    each = 10 * np.arange(8, dtype="f4")[:, None]
    once = add(rows)
    np.testing.assert_array_equal(once.to_numpy(), rows + each)
    # The blocks are taken as they are.
    twice = add(once).block_until_ready()
    np.testing.assert_array_equal(twice.to_numpy(), rows + 2 * each)
    assert len(set(pids(joined))) == 4
    assert repr(joined) == "RayMesh({'data': 4, 'model': 2}, workers=4, client='cuda')"
    assert joined.size == 8
    # Blocks in another order, and such as several devices have.
    other = joined.shard(lambda x: x + 1, [swapped], swapped)(rows).to_numpy()
    order = np.arange(8).reshape(4, 2).T.reshape(8)
    np.testing.assert_array_equal(other, rows + 10 * order[:, None])
    partly = joined.shard(lambda x: x + 1, [("data",)], ("data",))(rows).to_numpy()
    np.testing.assert_array_equal(partly, rows + np.repeat([0, 20, 40, 60], 2)[:, None])
    partly = joined.shard(lambda x: x + 1, [("model",)], ("model",))(rows).to_numpy()
    np.testing.assert_array_equal(partly, rows + np.repeat([0, 10], 4)[:, None])
    whole = joined.shard(lambda x: x + 1, [()], ())(rows)
    np.testing.assert_array_equal(whole.to_numpy(), rows)


def test_arguments_are_sent_once(
    joined: dn.engines.RayMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large ones to the store for all workers, small ones with the call."""
    put: list[int] = []
    real = ray.put

    def counted(value: Any) -> Any:
        put.append(sum(array.nbytes for array in value[1]))
        return real(value)

    monkeypatch.setattr(ray, "put", counted)
    run = joined.shard(lambda x: x + 1, [()], ())
    run(np.zeros(16, "f4"))
    assert put == []
    large = np.zeros(1 << 16, "f4")
    out = run(large)
    assert put == [large.nbytes]
    run(out)
    assert put == [large.nbytes]


def test_an_error_of_all_workers_is_raised_once(joined: dn.engines.RayMesh) -> None:
    with pytest.raises(dn.ShapeError, match=r"axis 0 of argument x, which is f32\[3\]") as raised:
        joined.shard(lambda x: x + 1, [("data",)], ("data",))(np.zeros(3, "f4"))
    assert not hasattr(raised.value, "__notes__")

    # Only one of them.
    def late(x: Any) -> Any:
        if dn.devices("cuda")[4].addressable:
            raise LookupError("not here")
        return x + 1

    with pytest.raises(LookupError, match="not here"):
        joined.shard(late, [()], ())(np.zeros(3, "f4"))
    run = joined.shard(lambda x: x + 1, [()], ())
    assert run(np.array([1], "f4")).to_numpy().tolist() == [1]


def test_threads_call_in_one_order(joined: dn.engines.RayMesh) -> None:
    def traced(x: Any, name: str, number: int) -> Any:
        vars(sys).setdefault("calls", []).append((name, number))
        return x + 1

    run = joined.shard(traced, [(), (), ()], (), static=["name", "number"])
    x = np.array([1], "f4")
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(8):
                run(x, name, number)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    first, *others = inside(joined, lambda _: vars(sys)["calls"])
    assert others == [first] * 3
    assert sorted(first) == sorted((name, number) for name in "abc" for number in range(8))


def test_an_interrupt(joined: dn.engines.RayMesh) -> None:
    def slow(x: Any, seconds: float) -> Any:
        time.sleep(seconds)
        return x + 1

    run = joined.shard(slow, [(), ()], (), static="seconds")
    x = np.array([1], "f4")
    run(x, 0.0)
    before = stored(joined)
    start = time.monotonic()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(x, 3.0)
    assert time.monotonic() - start < 2.5
    # The next call waits for that one, and drops its results.
    assert run(x, 0.0).to_numpy().tolist() == [1]
    assert stored(joined) == before
    assert time.monotonic() - start >= 3.0


def test_a_fork(mesh: dn.engines.RayMesh) -> None:
    run = mesh.shard(lambda x: x, [()], ())
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(1.0)
        except BaseException as error:
            os.write(write, f"{type(error).__name__} {error}".encode())
        mesh.close()
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    assert told.startswith(
        f"BackendError RayMesh: this process was forked from {os.getpid()}, only"
    )
    assert run(1.0).to_numpy() == 1


def test_a_worker_is_lost(mesh: dn.engines.RayMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also ranks on one machine are neighbours: the workers are said to be on two, in turns."""
    started: list[Any] = []
    everywhere = dn.engines.RayMesh._everywhere

    def two_machines(self: Any, name: str, *args: Any) -> dict[int, Any]:
        answers = everywhere(self, name, *args)
        if name != "address":
            return answers
        started.extend(self._workers)
        return {rank: ("ba"[rank % 2], address) for rank, (_, address) in answers.items()}

    monkeypatch.setattr(dn.engines.RayMesh, "_everywhere", two_machines)
    lame = several(3)
    monkeypatch.undo()
    assert lame._workers == [started[1], started[0], started[2]]
    assert inside(lame, lambda member: member.part.rank) == [0, 1, 2]

    def slow(x: Any) -> Any:
        # Like in a collective that one device does not reach.
        time.sleep(0 if dn.devices("cuda")[2].addressable else 600)
        return x + 1

    out = lame.shard(lambda x: x + 1, [()], ())(np.array([1], "f4"))
    run = lame.shard(slow, [()], ())
    processes = pids(lame)
    timer = threading.Timer(0.5, os.kill, (processes[1], signal.SIGKILL))
    timer.start()
    with pytest.raises(dn.BackendError) as raised:
        run(np.array([1], "f4"))
    assert str(raised.value).startswith(
        "RayMesh: the worker of rank 1 was lost, the processes of all ranks are required; the mesh "
        "is closed and the other workers were ended, because they may wait for it; "
    )
    assert f"\n  at {__file__}:" in str(raised.value)
    assert all(has_ended(process) for process in processes)
    closed = r"RayMesh: the mesh is closed \(the worker of rank 1 was lost\), one that is open is"
    for use in (lambda: run(1.0), out.to_numpy, lambda: lame.shard(slow, [()], ())):
        with pytest.raises(dn.BackendError, match=closed):
            use()
    lame.close()
    # The cluster stays, as other meshes use it.
    assert mesh.shard(lambda x: x, [()], ())(1.0).to_numpy() == 1


def test_an_error_of_one_worker_that_others_wait_for(
    mesh: dn.engines.RayMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_mesh, "_GRACE", 0.5)

    def fun(x: Any) -> Any:
        if dn.devices("cuda")[0].addressable:
            time.sleep(600)
        raise LookupError("not today")

    with several() as uneven:
        processes = pids(uneven)
        with pytest.raises(LookupError, match="not today") as raised:
            uneven.shard(fun, [()], ())(np.array([1], "f4"))
        problem = "rank 1 raised an error, and rank 0 did not answer"
        assert raised.value.__notes__[-1] == f"{problem} within 0.5 s: the mesh is closed"
        assert all(has_ended(process) for process in processes)
        with pytest.raises(dn.BackendError, match=rf"the mesh is closed \({problem}\)"):
            uneven.shard(fun, [()], ())


def test_closed_while_a_thread_waits(mesh: dn.engines.RayMesh) -> None:
    def slow(x: Any) -> Any:
        time.sleep(600)
        return x

    short = dn.engines.RayMesh({"data": 1}, client="host")
    (process,) = pids(short)
    timer = threading.Timer(0.5, short.close)
    run = short.shard(slow, [()], ())
    timer.start()
    with pytest.raises(dn.BackendError, match=r"the mesh is closed \(it was closed\), one that is"):
        run(1.0)
    timer.join()
    assert has_ended(process)
    with pytest.raises(dn.BackendError, match="the mesh is closed"):
        run(1.0)
    short.close()


def test_a_worker_that_is_lost_between_calls(mesh: dn.engines.RayMesh) -> None:
    with dn.engines.RayMesh({"data": 1}, client="host") as short:
        out = short.shard(lambda x: x, [()], ())(1.0)
        (process,) = pids(short)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(dn.BackendError, match="the worker of rank 0 was lost"):
            out.to_tensor()


def test_a_connection_that_has_ended(
    mesh: dn.engines.RayMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = dn.engines.RayMesh({"data": 1}, client="host")
    monkeypatch.setattr(Cluster, "is_there", lambda *_: False)
    with pytest.raises(dn.BackendError, match=r"is closed \(the connection to Ray has ended\)"):
        short.shard(lambda x: x, [()], ())


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"workers": 0}, dn.OptionError, "RayMesh: workers is 0, a whole number from 1 on is"),
        ({"start_timeout": -1}, dn.OptionError, "RayMesh: start_timeout is -1, a positive number"),
        ({"resources": 1}, dn.OptionError, "RayMesh: resources is 1, a dict is required"),
        ({"resources": {"GPU": 1}}, dn.OptionError, "Ray: a worker asks for the resource 'GPU', "),
        ({"environment": ["A"]}, dn.OptionError, r"RayMesh: environment is ['A'], a dict is"),
        ({"environment": {"A": 1}}, dn.OptionError, "RayMesh: environment has 'A': 1, strings"),
        ({"init": 1}, dn.OptionError, "RayMesh: init is 1, a dict is required"),
        ({"worker": 2}, dn.OptionError, 'RayMesh: unknown option "worker", it takes workers, '),
        ({"axes": 4}, dn.OptionError, "mesh: axes is 4, it must be a dict from the names of axes"),
        ({"axes": {"data": 9}}, dn.OptionError, "mesh: {data: 9} needs 9 devices and there are 4"),
        ({"client": "none"}, dn.BackendError, 'backend: the client "none" is unknown'),
        ({"num_gpus": 1}, dn.BackendError, "RayMesh: worker 0 asks for 1 GPU, this machine has 0;"),
        (
            {"num_cpus": 3, "workers": 2},
            dn.BackendError,
            "RayMesh: worker 1 asks for 3 CPU (6 with those before), this machine has 4; ask for",
        ),
        # XLA's plugin for the CPU does not join processes.
        ({"workers": 2}, dn.BackendError, f'client "host": {fake_plugin.host()} does not join the'),
    ],
)
def test_meshes_that_do_not_start(
    mesh: dn.engines.RayMesh, options: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as raised:
        dn.engines.RayMesh(**{"axes": {"data": 1}, "client": "host", **options})
    assert str(raised.value).startswith(message)
    assert f"\n  at {__file__}:" in str(raised.value)


def test_more_processes_than_the_mesh_has_devices(mesh: dn.engines.RayMesh) -> None:
    with pytest.raises(dn.OptionError, match=r"none of the devices of .* belongs to this process"):
        several(2, {"data": 2})


def test_a_place_that_is_taken(mesh: dn.engines.RayMesh) -> None:
    with (
        dn.engines.RayMesh({"data": 1}, client="host", num_cpus=3),
        pytest.raises(dn.BackendError) as raised,
    ):
        dn.engines.RayMesh({"data": 1}, client="host", num_cpus=2, start_timeout=0.5)
    message = str(raised.value)
    assert message.startswith("RayMesh: worker 0 asks for 2 CPU and has no place after 0.5 s, the ")
    assert "the cluster has 4 CPU, of which 1 CPU is free" in message


def test_ray_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(dn.BackendError, match=r"pip install 'defn\[ray\]'"):
        dn.engines.RayMesh({"data": 1})


def test_the_example(mesh: dn.engines.RayMesh) -> None:
    found = doctest.testmod(
        ray_mesh,
        extraglobs={"dn": dn, "np": np},
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert (found.failed, found.attempted) == (0, 2)
