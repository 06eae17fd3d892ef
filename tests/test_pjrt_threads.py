"""Many threads on one client: right results, nothing left on the device, memory that does not grow.

The run takes `DEFN_TEST_THREAD_SECONDS` (5 unless given) and half of that before, to warm up; a
minute is run before a release.
"""

from __future__ import annotations

import gc
import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import defn as dn
from support import Job, needs_plugin, work_at_once

pytestmark = needs_plugin

THREADS = 16
SECONDS = float(os.environ.get("DEFN_TEST_THREAD_SECONDS", "5"))
# A client of the test's own, which has no other tensors.
CLIENT = "threads"
DEVICES = 4


@dataclass(frozen=True)
class Model:
    """Parameters as a container."""

    weight: dn.Tensor
    bias: dn.Tensor


def place(device_id: int = 0) -> dn.backends.PJRT:
    return dn.backends.PJRT(client=CLIENT, device_id=device_id)


def resident() -> int:
    """The bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def there(value: object, device_id: int = 0) -> dn.Tensor:
    return dn.tensor(value, backend=place(device_id))


def jobs() -> list[Job]:
    """What a thread does, one at a time in random order; each checks what it got."""
    compiled = {"compiler": "pjrt", "client": CLIENT}
    affine = dn.jit(lambda m, x: dn.dot(x, m.weight) + m.bias, **compiled)
    slope = dn.jit(dn.grad(lambda x: dn.sum(dn.tanh(x) ** 2)), **compiled)
    loop = dn.jit(lambda n: dn.while_((n, 0), lambda s: s[0] > 0, step)[1], **compiled)
    trained = dn.jit(
        lambda m, x: Model(m.weight - 0.5 * x, m.bias + dn.sum(x)), donate=("m",), **compiled
    )
    several = dn.jit(lambda x: {"twice": x + x, "sum": dn.sum(x)}, **compiled)

    def step(state: tuple[dn.Tensor, dn.Tensor]) -> tuple[dn.Tensor, dn.Tensor]:
        return state[0] - 1, state[1] + state[0]

    def eager(rng: random.Random) -> None:
        n = rng.choice([1, 8, 1000])
        x = dn.iota((n,), dtype="f32", backend=place(rng.randrange(DEVICES)))
        assert float(dn.sum(x * 2 - x)) == n * (n - 1) / 2
        assert dn.reverse(x)[0].item() == n - 1

    def call(rng: random.Random) -> None:
        m = Model(there(np.eye(3, dtype=np.float32) * rng.randint(1, 5)), there(np.float32(1.0)))
        x = np.float32([[1.0, 2.0, rng.randint(0, 9)]])
        want = x @ m.weight.to_numpy() + 1.0
        assert affine(m, x).to_list() == want.tolist()

    def differentiate(rng: random.Random) -> None:
        x = np.full(4, rng.random(), np.float32)
        want = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
        np.testing.assert_allclose(slope(there(x)).to_numpy(), want, rtol=1e-5, atol=1e-6)

    def trips(rng: random.Random) -> None:
        n = rng.randint(0, 50)
        assert int(loop(np.int32(n))) == n * (n + 1) // 2

    def outputs(rng: random.Random) -> None:
        x = np.float32([rng.randint(0, 100), 1.0])
        got = several(there(x, rng.randrange(DEVICES)))
        assert got["twice"].to_list() == (x + x).tolist()
        assert float(got["sum"]) == x.sum()

    def own(rng: random.Random) -> None:
        shift = rng.randint(0, 5)
        got = dn.jit(lambda x: x * 3 + shift, **compiled)(there([1.0, 2.0]))
        assert got.to_list() == [3.0 + shift, 6.0 + shift]

    def transfer(rng: random.Random) -> None:
        values = [float(rng.randint(0, 9)) for _ in range(rng.choice([1, 64]))]
        x = there(values)
        copy = dn.backend_copy(x, place(rng.randrange(DEVICES)))
        moved = dn.backend_transfer(copy, place(rng.randrange(DEVICES)))
        host = dn.backend_transfer(moved, "cpu")
        assert host.backend == "cpu"
        assert host.to_list() == x.to_list() == values

    def deallocate(rng: random.Random) -> None:
        x = there(np.ones(rng.choice([1, 4096]), np.float32))
        y = x + x
        assert dn.backend_deallocate(x) == "ok"
        assert dn.backend_deallocate(x) == "already_deallocated"
        with pytest.raises(dn.BackendError, match="freed"):
            x.to_numpy()
        assert (y.to_numpy() == 2.0).all()

    def donate(rng: random.Random) -> None:
        m = Model(there([2.0, rng.random()]), there(0.0))
        x = there([4.0, 6.0])
        new = trained(m, x)
        assert (float(new.bias), float(new.weight[0])) == (10.0, 0.0)
        with pytest.raises(dn.BackendError, match="donated"):
            trained(m, x)

    def hooked(rng: random.Random) -> None:
        seen: list[int] = []
        start = rng.randint(1, 4)
        run = dn.jit(
            lambda n: dn.while_(
                n, lambda n: n > 0, lambda n: dn.hook(n, lambda t: seen.append(int(t))) - 1
            ),
            **compiled,
        )
        assert int(run(there(np.int32(start)))) == 0
        assert seen == list(range(start, 0, -1))

    def fail(rng: random.Random) -> None:
        x = there([1.0, 2.0])
        # Devices clamp positions to the range.
        assert dn.take(x, there(np.int32([rng.randint(2, 9)]))).to_list() == [2.0]
        with pytest.raises(dn.BackendError, match="threads:"):
            dn.add(x, there([1.0, 2.0], rng.randint(1, 3)))

    def read(rng: random.Random) -> None:
        n = rng.choice([1, 100, 50_000])
        x = there(np.arange(n, dtype=np.int32))
        parts = [memoryview(x).nbytes, len(x.to_binary()), x.to_numpy().nbytes]
        assert parts == [4 * n] * 3
        assert repr(x).startswith("Tensor<")

    def stream(rng: random.Random) -> None:
        n = rng.randint(1, 8)
        with dn.stream(
            lambda x, acc: (acc, acc + x), [dn.template((), "s32"), np.int32(0)], **compiled
        ) as flow:
            got = [int(part) for part in flow.map(np.arange(n, dtype=np.int32))]
        assert got == [i * (i - 1) // 2 for i in range(n)]

    def collect(rng: random.Random) -> None:
        if rng.random() < 0.05:
            gc.collect()

    return [
        eager,
        eager,
        call,
        differentiate,
        trips,
        outputs,
        own,
        transfer,
        deallocate,
        donate,
        hooked,
        fail,
        read,
        stream,
        collect,
    ]


def test_threads_share_a_client() -> None:
    """Nothing is lost, no result is wrong, nothing stays, and memory does not grow.

    The first part, which warms up, is as long as half of the second: a leak of any of the jobs
    would show as twice as much again.
    """
    dn.pjrt.client(CLIENT, cpu_device_count=DEVICES, plugin=host_plugin())
    todo = jobs()
    work_at_once(THREADS, SECONDS / 2, todo, seed=100)
    gc.collect()
    assert dn.pjrt.live_buffers(CLIENT) == 0
    before = resident()
    done = work_at_once(THREADS, SECONDS, todo)
    gc.collect()
    after = resident()
    print(f"{sum(done.values())} jobs, {before / 2**20:.1f} MiB before, {after / 2**20:.1f} after")
    assert set(done) == {job.__name__ for job in todo}, "each kind of work was done"
    assert dn.pjrt.live_buffers(CLIENT) == 0
    assert after < before * 1.05, f"{before} bytes before, {after} after"


def host_plugin() -> Path:
    """The plugin for the CPU."""
    return next(plugin.path for plugin in dn.pjrt.plugins() if plugin.client == "host")
