"""Functions that the devices of a mesh run together."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn
from cases.dtypes import ALL
from support import needs_plugin

pytestmark = needs_plugin

LINE = dn.Mesh({"data": 4}, client="host")
GRID = dn.Mesh({"data": 2, "model": 2}, client="host")


def rows(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_a_mesh_says_what_it_is() -> None:
    assert (GRID.axes, GRID.size) == ({"data": 2, "model": 2}, 4)
    assert GRID.devices == tuple(device.backend for device in dn.devices("host"))
    assert repr(GRID) == "Mesh({'data': 2, 'model': 2}, devices=[0, 1, 2, 3], client='host')"
    mirrored = dn.Mesh({"data": 2}, [3, dn.devices("host")[1]], client="host")
    assert [device.device_id for device in mirrored.devices] == [3, 1]
    assert dn.Mesh({"data": 2}, mirrored.devices) == mirrored != dn.Mesh({"data": 2})
    assert len({mirrored, dn.Mesh({"data": 2}, [3, 1], client="host"), GRID}) == 2


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        ((), (4, 8)),
        (None, (4, 8)),
        (("data",), (2, 8)),
        ((None, "model"), (4, 4)),
        (("model", "data"), (2, 4)),
        ((("data", "model"),), (1, 8)),
        ((None, ("model", "data")), (4, 2)),
    ],
)
def test_blocks_are_parts_of_the_whole(spec: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(32).reshape(4, 8)
    seen: list[tuple[int, ...]] = []

    def look(block: dn.Tensor) -> dn.Tensor:
        seen.append(block.shape)
        return block + 0

    out = dn.shard(look, GRID, [spec], spec)(x)
    assert seen == [shape]
    np.testing.assert_array_equal(out.to_numpy(), x)
    np.testing.assert_array_equal(np.asarray(out), x)
    assert (out.shape, str(out.dtype), out.rank, out.mesh) == ((4, 8), "s64", 2, GRID)
    parts = {
        (): [x] * 4,
        None: [x] * 4,
        ("data",): [x[:2], x[:2], x[2:], x[2:]],
        (None, "model"): [x[:, :4], x[:, 4:]] * 2,
        ("model", "data"): [x[:2, :4], x[2:, :4], x[:2, 4:], x[2:, 4:]],
        (("data", "model"),): [x[:1], x[1:2], x[2:3], x[3:]],
        (None, ("model", "data")): [x[:, :2], x[:, 4:6], x[:, 2:4], x[:, 6:]],
    }[spec]
    for block, part, device in zip(out.blocks, parts, GRID.devices, strict=True):
        np.testing.assert_array_equal(block.to_numpy(), part)
        assert block.backend == device


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_is_cut_up_and_put_together(dtype: str) -> None:
    x = dn.as_type(dn.tensor([[0, 1], [2, 3], [1, 0], [3, 2]]), dtype)
    turn = [(i, (i + 1) % 4) for i in range(4)]

    def fun(x: dn.Tensor) -> tuple[dn.Tensor, dn.Tensor, dn.Tensor]:
        return x, dn.all_gather(x, "data"), dn.collective_permute(x, "data", pairs=turn)

    same, whole, turned = dn.shard(fun, LINE, [("data",)], [("data",), (), ("data",)])(x)
    for got, want in ((same, x), (whole, x), (turned, dn.concatenate([x[3:], x[:3]], axis=0))):
        assert str(got.dtype) == dtype
        assert got.to_tensor().to_binary() == want.to_binary()


def test_exchanges_are_those_of_numpy() -> None:
    x = rows(0, 8, 6).astype("f4")
    blocks = x.reshape(4, 2, 6)

    def fun(x: dn.Tensor) -> dict[str, dn.Tensor]:
        return {
            "sum": dn.all_reduce(x, "data"),
            "max": dn.all_reduce(x, op="max"),
            "min": dn.all_reduce(x, "data", op="min"),
            "gather": dn.all_gather(x, "data", axis=1),
            "scatter": dn.reduce_scatter(dn.tile(x, (2, 1)), "data"),
            "permute": dn.collective_permute(x, "data", pairs=[(0, 3), (2, 1)]),
            "index": dn.mesh_index("data") * dn.broadcast(1, (dn.mesh_size("data"),)),
        }

    specs: dict[str, Any] = dict.fromkeys(["sum", "max", "min", "gather"])
    specs |= dict.fromkeys(["scatter", "permute", "index"], ("data",))
    out = {
        name: value.to_numpy() for name, value in dn.shard(fun, LINE, [("data",)], specs)(x).items()
    }
    np.testing.assert_allclose(out["sum"], blocks.sum(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(out["max"], blocks.max(axis=0))
    np.testing.assert_array_equal(out["min"], blocks.min(axis=0))
    np.testing.assert_array_equal(out["gather"], np.concatenate(list(blocks), axis=1))
    np.testing.assert_allclose(
        out["scatter"], np.tile(blocks.sum(axis=0), (2, 1)), rtol=1e-5, atol=1e-6
    )
    zero = np.zeros_like(blocks[0])
    np.testing.assert_array_equal(
        out["permute"], np.concatenate([zero, blocks[2], zero, blocks[0]])
    )
    np.testing.assert_array_equal(out["index"], np.repeat(np.arange(4), 4))


def test_groups_follow_the_axes_of_the_mesh() -> None:
    x = rows(1, 4, 4)
    grid = x.reshape(2, 2, 2, 2).swapaxes(1, 2)  # indexed by the coordinates of the devices

    def fun(x: dn.Tensor) -> list[dn.Tensor]:
        at = [dn.mesh_index(over) for over in ("data", "model", ("model", "data"), None)]
        return [
            dn.all_reduce(x, "data"),
            dn.all_reduce(x, "model"),
            dn.all_reduce(x, ("data", "model")),
            dn.all_gather(x, ("model", "data")),
            dn.collective_permute(x, "model", pairs=[(0, 1), (1, 0)]),
            dn.reshape(dn.stack(at), (1, 4)),
        ]

    block, everywhere = ("data", "model"), (("data", "model"),)
    specs = [(None, "model"), ("data",), (), (), block, everywhere]
    out = [value.to_numpy() for value in dn.shard(fun, GRID, [block], specs)(x)]
    np.testing.assert_allclose(out[0], np.concatenate(list(grid.sum(axis=0)), axis=1))
    np.testing.assert_allclose(out[1], np.concatenate(list(grid.sum(axis=1)), axis=0))
    np.testing.assert_allclose(out[2], grid.sum(axis=(0, 1)))
    np.testing.assert_array_equal(
        out[3], np.concatenate(list(grid.swapaxes(0, 1).reshape(4, 2, 2)))
    )
    np.testing.assert_array_equal(out[4], np.concatenate([x[:, 2:], x[:, :2]], axis=1))
    np.testing.assert_array_equal(out[5], [[0, 0, 0, 0], [0, 1, 2, 1], [1, 0, 1, 2], [1, 1, 3, 3]])


LOSSES = {
    "all_reduce": lambda x: dn.sum(dn.sin(dn.all_reduce(x, "data")) * x),
    "all_reduce of columns": lambda x: dn.sum(dn.exp(dn.all_reduce(x * x, "model"))) * x[0, 1],
    "max": lambda x: dn.sum(dn.all_reduce(x, op="max") * dn.cos(x)),
    "min": lambda x: dn.sum(dn.all_reduce(dn.sin(x), "model", op="min") * x),
    "all_gather": lambda x: dn.sum(dn.all_gather(x, "data", axis=1) ** 3) * x[0, 0],
    "reduce_scatter": lambda x: dn.sum(dn.reduce_scatter(x * x, "model", axis=0) ** 2) + x[1, 1],
    "collective_permute": lambda x: dn.sum(
        dn.collective_permute(x, None, pairs=[(0, 1), (1, 3), (2, 0)]) * dn.sin(x)
    ),
    "mesh_index": lambda x: dn.sum(x * x) * (1 + dn.mesh_index()),
    "a loop": lambda x: dn.sum(
        dn.for_(x, range(3), lambda y, i: dn.tanh(dn.all_reduce(y, "data") + i * x)) * x
    ),
    "vmap": lambda x: dn.sum(dn.vmap(lambda row: dn.all_gather(row, "model") ** 2)(x)) * x[0, 0],
}


@pytest.mark.parametrize("name", list(LOSSES))
def test_gradients_are_those_of_the_sum_over_devices(name: str) -> None:
    loss, block = LOSSES[name], ("data", "model")
    x = rows(2, 4, 4)
    total = dn.shard(lambda x: dn.all_reduce(loss(x)), GRID, in_specs=[block], out_specs=())
    slope = dn.shard(dn.grad(loss), GRID, [block], block)(x).to_numpy()
    step = 1e-6
    for place in np.ndindex(4, 4):
        moved = np.zeros((4, 4))
        moved[place] = step
        up, down = (float(total(x + way * moved).to_tensor()) for way in (1, -1))
        assert slope[place] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6), place


def test_ties_share_the_gradient_of_an_extreme() -> None:
    slope = dn.grad(lambda x: dn.sum(dn.all_reduce(x, "data", op="max")))
    out = dn.shard(slope, LINE, [("data",)], ("data",))(np.float32([1, 3, 3, 2]))
    assert out.to_numpy().tolist() == [0, 2, 2, 0]


def test_the_gradient_of_a_model_is_that_of_one_device() -> None:
    x, y, w = rows(3, 16, 5), rows(4, 16, 3), rows(5, 5, 3)

    def loss(w: dn.Tensor, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return dn.sum((dn.tanh(x @ w) - y) ** 2)

    def step(w: dn.Tensor, x: dn.Tensor, y: dn.Tensor) -> dn.Tensor:
        return dn.all_reduce(dn.grad(loss)(w, x, y), "data")

    out = dn.shard(step, LINE, [(), ("data",), ("data",)], ())(w, x, y)
    alone = dn.grad(loss)(w, x, y).to_numpy()
    for block in out.blocks:
        np.testing.assert_allclose(block.to_numpy(), alone, rtol=1e-12)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: dn.Tensor
    bias: dn.Tensor


def test_containers_keep_their_form() -> None:
    def fun(layer: Layer, data: dict[str, Any], pair: Pair) -> Any:
        y = data["x"] @ layer.weight + layer.bias
        return Pair(left=[y, None], right={"sum": dn.all_reduce(y, "data"), "pair": pair})

    x, w, b = rows(6, 8, 3), rows(7, 3, 2), rows(8, 2)
    in_specs = [None, {"x": ("data",), "scale": ()}, [("data",), None]]
    out_specs = [[("data",), None], {"sum": (), "pair": [("data",), ()]}]
    sharded = dn.shard(fun, LINE, in_specs, out_specs)
    out = sharded(Layer(w, b), {"scale": 2.0, "x": x}, Pair(np.arange(4), 5))
    assert isinstance(out, Pair)
    assert out.left[1] is None
    assert isinstance(out.right["pair"], Pair)
    np.testing.assert_allclose(out.left[0].to_numpy(), x @ w + b)
    np.testing.assert_allclose(
        out.right["sum"].to_numpy(), (x @ w + b).reshape(4, 2, 2).sum(axis=0)
    )
    assert out.right["pair"].left.to_numpy().tolist() == [0, 1, 2, 3]
    assert int(out.right["pair"].right.to_tensor()) == 5
    assert out.right["pair"].right.spec == ()


def memory(value: dn.Sharded) -> list[str]:
    """For each block its device, and a number that identifies its memory."""
    return [repr(block).split("\n")[2] for block in value.blocks]


def test_what_lies_right_stays_where_it_is() -> None:
    block = ("data", None)
    keep = dn.shard(lambda x, y: (x, x + y), LINE, [block, ()], [block, block])
    first, moved = keep(rows(9, 4, 4), 1.0)
    again, _ = keep(first, 2.0)
    assert memory(first) == memory(again)
    np.testing.assert_array_equal(moved.to_numpy(), first.to_numpy() + 1)
    # A function that needs another layout redistributes the blocks, on these devices or others.
    turned = dn.shard(lambda x: x * 2, LINE, [(None, "data")], (None, "data"))(moved)
    np.testing.assert_array_equal(turned.to_numpy(), moved.to_numpy() * 2)
    other = dn.Mesh({"data": 2}, [3, 1], client="host")
    there = dn.shard(lambda x: x + 0, other, [("data",)], ("data",))(turned)
    np.testing.assert_array_equal(there.to_numpy(), turned.to_numpy())
    assert [block.backend.device_id for block in there.blocks] == [3, 1]


def test_versions_are_found_again() -> None:
    traced = []

    def fun(x: dn.Tensor, *, power: int = 1) -> dn.Tensor:
        traced.append((x.shape, power))
        return dn.all_reduce(x, "data") ** power

    sharded = dn.shard(fun, LINE, [("data",)], ())
    x = np.arange(4.0)
    for _ in range(3):
        assert sharded(x).to_numpy().tolist() == [6.0]
    assert sharded(sharded_like(x)).to_numpy().tolist() == [6.0]
    assert sharded(x, power=2).to_numpy().tolist() == [36.0]
    assert sharded(np.arange(8.0)).to_numpy().tolist() == [12.0, 16.0]
    assert traced == [((1,), 1), ((1,), 2), ((2,), 1)]
    info = sharded.cache_info()
    assert (info["hits"], info["misses"]) == (3, 3)
    assert len(sharded.explain()) == 3
    # Another mesh gives another version of the same code.
    assert dn.shard(fun, GRID, [("data",)], ())(x).to_numpy().tolist() == [2.0, 4.0]
    assert traced[3:] == [((2,), 1)]
    sharded.cache_clear()
    assert sharded.cache_info()["misses"] == 0


def sharded_like(x: np.ndarray) -> dn.Sharded:
    return dn.shard(lambda x: x + 0, LINE, [("data",)], ("data",))(x)


def test_what_is_closed_over_or_named_is_everywhere() -> None:
    factor = {"value": dn.tensor([2.0, 3.0])}
    fun = dn.shard(
        lambda x, *, shift=None: x * factor["value"] + shift, LINE, [("data",)], ("data",)
    )
    x = np.ones((4, 2))
    assert fun(x, shift=dn.tensor([0.0, 1.0])).to_numpy().tolist() == [[2.0, 4.0]] * 4
    factor["value"] = dn.tensor([5.0, 7.0])
    assert fun(x, shift=dn.tensor([1.0, 1.0])).to_numpy().tolist() == [[6.0, 8.0]] * 4
    assert dn.shard(lambda: dn.tensor([1, 2]), LINE, [], ())().to_numpy().tolist() == [1, 2]


def test_a_number_takes_on_the_dtype_of_what_it_meets() -> None:
    fun = dn.shard(lambda x, n: (x * n, n), LINE, [("data",), ()], [("data",), ()])
    x = rows(12, 8, 2)
    for number in (0.1, 0.3):
        scaled, alone = fun(x, number)
        assert scaled.to_numpy().tobytes() == (x * number).tobytes()
        assert alone.to_numpy() == np.float32(number)
    assert fun.cache_info()["misses"] == 1
    assert "(f64[2][2], f32, f64)" in fun.text(x, 0.1)
    with pytest.raises(dn.ShapeError, match="argument n"):
        dn.shard(lambda n: n + 1, LINE, [("data",)], ())(0.5)


def test_definitions_inside_are_traced_into_it() -> None:
    @dn.defn
    def halves(x: dn.Tensor) -> dn.Tensor:
        total = dn.all_reduce(x, "data")
        while dn.sum(x) > 1000:
            x = x / 2
        return x / total

    out = dn.shard(halves, LINE, [("data",)], ("data",))(np.float32([1, 2, 3, 4]))
    assert out.to_numpy() == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_donated_arguments_are_gone() -> None:
    step = dn.shard(
        lambda w, x: w + dn.all_reduce(x, "data"), LINE, [("data",), ("data",)], ("data",),
        donate="w",
    )  # fmt: skip
    w, x = sharded_like(np.arange(4.0)), sharded_like(np.ones(4))
    after = step(w, x)
    assert after.to_numpy().tolist() == [4, 5, 6, 7]
    for use in (w.to_numpy, lambda: step(w, x)):
        with pytest.raises(dn.BackendError, match="donated"):
            use()
    assert x.to_numpy().tolist() == [1, 1, 1, 1]
    # A tensor that is passed twice is not donated before the error.
    with pytest.raises(dn.BackendError, match=r"argument x is .* donated"):
        step(x, x)
    # A block with another owner is copied; an array of the host is not changed.
    held = after.blocks
    assert step(after, x).to_numpy().tolist() == [8, 9, 10, 11]
    assert [block.to_list() for block in held] == [[4], [5], [6], [7]]
    ones = np.ones(4)
    assert step(ones, x).to_numpy().tolist() == [5] * 4
    assert ones.tolist() == [1] * 4


def test_memory_goes_with_the_tensors() -> None:
    dn.pjrt.client("mesh", plugin=dn.pjrt.plugins()[-1].path, cpu_device_count=3)
    mesh = dn.Mesh({"data": 3}, client="mesh")
    step = dn.shard(lambda x: x + dn.all_reduce(x, "data"), mesh, [("data",)], ("data",))
    x = step(np.ones((6, 2)))
    for _ in range(5):
        x = step(x)
    x.block_until_ready()
    assert dn.pjrt.live_buffers("mesh") == 3
    del x
    assert dn.pjrt.live_buffers("mesh") == 0


def test_programs_are_kept_on_disk(tmp_path: Any) -> None:
    counts = []
    for name in ("mesh-first", "mesh-second"):
        dn.pjrt.client(name, plugin=dn.pjrt.plugins()[-1].path, cpu_device_count=4)
        mesh = dn.Mesh({"data": 2, "model": 2}, [0, 2, 1, 3], client=name)
        fun = dn.shard(
            lambda x: dn.all_reduce(x * 17.5, "data"), mesh, [("data", "model")], (None, "model"),
            cache_dir=tmp_path,
        )  # fmt: skip
        out = fun(np.arange(8.0).reshape(2, 4))
        assert out.to_numpy().tolist() == [[70.0, 105.0, 140.0, 175.0]]
        assert [block.backend.device_id for block in out.blocks] == [0, 2, 1, 3]
        report = dn.pjrt.cache_report(name)
        counts.append((report.disk_hits, report.compiles))
    assert counts == [(0, 1), (1, 0)]


def test_threads_call_at_once() -> None:
    mean = dn.shard(
        lambda x: dn.all_reduce(dn.sum(x), "data") / dn.mesh_size("data"), LINE, [("data",)], ()
    )
    most = dn.shard(lambda x: dn.all_reduce(x, "model", op="max"), GRID, [("model",)], ())
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for turn in range(25):
                x = rows(100 * seed + turn, 8)
                assert float(mean(x).to_tensor()) == pytest.approx(x.sum() / 4)
                np.testing.assert_array_equal(most(x).to_numpy(), x.reshape(2, 4).max(axis=0))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_empty_blocks() -> None:
    out = dn.shard(lambda x: (dn.all_reduce(x, "data"), x), LINE, [("data",)], [(), ("data",)])(
        np.zeros((0, 3), "f4")
    )
    assert [value.shape for value in out] == [(0, 3), (0, 3)]


def test_the_text_shows_what_is_exchanged() -> None:
    fun = dn.shard(
        lambda w, x: dn.all_reduce(dn.grad(lambda w: dn.sum(x @ w))(w), "data"),
        GRID, [("model",), ("data", "model")], ("model",),
    )  # fmt: skip
    w, x = dn.template((4,), "f32"), dn.template((6, 4), "f32")
    text, program = fun.text(w, x), fun.stablehlo(w, x)
    assert "all_reduce %" in text
    assert '{op: "sum", over: "data", groups: [0, 2, 1, 3], size: 2}' in text
    assert "replica_groups = dense<[[0, 2], [1, 3]]>" in program
    assert "mhlo.num_replicas = 4" in program
    assert fun.cache_info()["misses"] == 0


def test_only_sharded_functions_compute_with_it() -> None:
    x = sharded_like(np.arange(4.0))
    ones = dn.tensor([1.0])
    for use in (
        lambda: dn.sin(x),
        lambda: x + 1,
        lambda: 1 - x,
        lambda: ones * x,
        lambda: x[0],
        lambda: dn.jit(dn.sin)(x),
        lambda: dn.jit(lambda y: y + x)(ones),
        lambda: dn.backend_copy(x, "cpu"),
        lambda: dn.stack([x, x]),
    ):
        with pytest.raises(dn.BackendError, match=r"f64\[4\] is stored in blocks .* to_tensor\(\)"):
            use()


def test_devices_that_would_wait_for_ever_are_not_started() -> None:
    def branch(x: dn.Tensor) -> dn.Tensor:
        return dn.if_(dn.mesh_index("data") == 0, lambda: dn.all_reduce(x), x)

    def loop(x: dn.Tensor) -> dn.Tensor:
        return dn.while_(x, lambda x: dn.sum(x) < 5, lambda x: x + dn.all_reduce(x))

    def fold(x: dn.Tensor) -> dn.Tensor:
        return dn.reduce(x, 0.0, lambda x, y: dn.all_reduce(x) + y)

    for fun, inside in (
        (branch, "a branch"),
        (loop, "a loop that ends by what a device has"),
        (fold, "the function of a reduction"),
    ):
        with pytest.raises(dn.CompileError, match=f"inside {inside}"):
            dn.shard(fun, LINE, [("data",)], ("data",))(np.ones(4))
    # Without a collective inside, devices may run different numbers of trips.
    own = dn.shard(
        lambda x: dn.while_(x, lambda x: dn.sum(x) < 5, lambda x: x * 2),
        LINE,
        [("data",)],
        ("data",),
    )
    assert own(np.float32([1, 2, 3, 7])).to_numpy().tolist() == [8, 8, 6, 7]


def test_a_process_ends_while_devices_work() -> None:
    program = """
        import defn as dn
        import numpy as np
        mesh = dn.Mesh({"data": 4}, client="host")
        step = lambda x, i: dn.all_reduce(x, "data") / 4
        f = dn.shard(lambda x: dn.for_(x, range(2000), step), mesh, [("data",)], ("data",))
        for _ in range(20):
            f(np.ones(4, "f4"))
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_digits_train_to_the_losses_of_one_device() -> None:
    """Equal, except for the order of f32 additions in two epochs."""
    import digits
    import digits_shard

    losses = []
    for train in (digits.train, digits_shard.train):
        random = digits.Random(0)
        steps = list(train(digits.Digits.load(random), random, 2))
        losses.append([step.loss for step in steps])
    assert len(losses[0]) == 88
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-5)
    assert losses[1][-1] < 0.3 * losses[1][0]
    data = digits.Digits.load(digits.Random(0))
    params, state = digits.initial(digits.Random(0))
    images, labels = data.images[: digits.BATCH], data.labels[: digits.BATCH]
    text = digits_shard.sharded().text(params, state, images, labels, 0.1)
    # For the gradients of four parameters, the loss and the accuracy.
    assert text.count("all_reduce ") == 6


def test_many_runs_one_after_the_other() -> None:
    """No result is read in between: a client on the host has only one thread for each device."""
    mesh = dn.Mesh({"data": 4}, client="host")

    def step(w: dn.Tensor, x: dn.Tensor) -> dn.Tensor:
        mean = dn.all_reduce(dn.mean(w), "data") / 4
        return w * 0.5 + mean * 0.5 + dn.all_reduce(dn.sum(x @ w), "data") * 0

    run = dn.shard(step, mesh, in_specs=[(), ("data",)], out_specs=())
    w: object = np.ones((64, 64), "f4")
    x = np.ones((256, 64), "f4")
    for _ in range(500):
        w = run(w, x)
    assert isinstance(w, dn.Sharded)
    assert (w.to_numpy() == 1).all()


def test_states_of_optimizers_are_split_like_their_parameters() -> None:
    params = {"w": rows(1, 8, 6), "b": rows(2, 6)}
    x, y = rows(3, 16, 8), rows(4, 16, 6)
    optimizer = dn.optim.chain(dn.optim.clip(0.5), dn.optim.adamw(0.1))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return dn.sum((dn.tanh(x @ params["w"] + params["b"]) - y) ** 2)

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        gradients = dn.grad(loss)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return dn.optim.apply_updates(params, updates), state

    # Columns are split: each device has its own part of the weights and of what is known of them.
    own = {"w": (None, "data"), "b": ("data",)}
    of_state = [(), [[None, own, own], (), ()]]
    mesh = dn.Mesh({"data": 2}, client="host")
    split = dn.shard(step, mesh, [own, of_state, None, (None, "data")], [own, of_state])
    alone, together = params, params
    state = states = optimizer.init(params)
    for _ in range(5):
        alone, state = step(alone, state, x, y)
        together, states = split(together, states, x, y)
    assert states[1][0].mu["w"].blocks[0].shape == (8, 3)
    split_leaves, leaves = dn.tree.leaves((together, states)), dn.tree.leaves((alone, state))
    for got, want in zip(split_leaves, leaves, strict=True):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=1e-12)
