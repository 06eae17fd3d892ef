"""The sections that `gpu_check.py` runs on a device, each in its own process.

A section prints its progress, and writes its part of the report: lines of Markdown and a list of
failures. It runs with `DEFN_PJRT_PLUGIN` set, which makes the client the default one.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gpu_found import MIB, ROOT, Found, Place, same_bits
from gpu_gpt import gpt
from report import text
from timing import finish, leaves, turns

import defn as dn

# For the table of operations, and for the digits example.
sys.path += [str(ROOT / "tests"), str(ROOT / "examples")]

# The machine.


def machine(place: Place) -> Found:
    """Which device this is, and the versions of its plugin and of the libraries."""
    found = Found()
    plugin = next(p for p in dn.pjrt.plugins() if p.client == place.client)
    rows = [
        [
            str(device.device_id),
            device.kind,
            "-" if device.memory_limit is None else f"{device.memory_limit / MIB:.0f} MiB",
        ]
        for device in dn.devices(place.client)
    ]
    found.table(["device", "kind", "memory"], rows)
    device = dn.devices(place.client)[0]
    found.say(f"- client `{place.client}` on platform `{device.platform}`")
    found.say(f"- plugin `{plugin.path.name}`, PJRT {device.interface}: {device.platform_version}")
    versions = f"defn {dn.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    found.say(f"- {versions}, {os.cpu_count()} processors")
    return found


# The table of operations.

# Units in the last place: on a GPU XLA divides f32 by PTX's `div.full`, which is not exact.
DIVISION = 2


@dataclass
class Row:
    """One operation in one dtype, with its arguments and the expected result."""

    case: Any
    dtype: str

    def __str__(self) -> str:
        return f"{self.case}-{self.dtype}"

    def arrays(self) -> list[np.ndarray]:
        return [] if self.case.creates else self.case.arrays(self.dtype)

    def call(self, tensors: list[dn.Tensor]) -> dn.Tensor:
        return self.case.run(self.dtype) if self.case.creates else self.case.run(*tensors)

    def problem(self, got: dn.Tensor, ulps: float, is_gpu: bool) -> str | None:
        """How a result differs from the oracle's, or None if it is within the tolerance."""
        from cases.dtypes import close, narrow, result_dtype, widen

        expected = result_dtype(self.case.out, self.dtype)
        if str(got.dtype) != expected:
            return f"is {got.dtype}, not {expected}"
        arrays = self.arrays()
        wide = arrays if self.case.stored else [widen(array, self.dtype) for array in arrays]
        with np.errstate(all="ignore"):
            want = narrow(self.case.oracle(*wide), expected)
        tolerance = self.case.tolerance(self.dtype, expected) * ulps
        if is_gpu and self.case.name == "divide":
            tolerance = max(tolerance, DIVISION)
        ok = close(got.to_numpy(), want, expected, tolerance, self.case.scale)
        if ok.all():
            return None
        wrong = np.flatnonzero(~ok.reshape(-1))
        at = int(wrong[0])
        pair = got.to_numpy().reshape(-1)[at], want.reshape(-1)[at]
        return f"{len(wrong)} of {ok.size} elements are off, the first is {pair[0]}, not {pair[1]}"


def together(rows: list[Row], place: Place) -> Iterator[tuple[Row, dn.Tensor | Exception]]:
    """The results of rows that are compiled as one program, or if that fails, as two halves."""
    # An argument needs at least one tensor: the last one is not used by any row.
    arguments = [[place.tensor(array) for array in row.arrays()] for row in rows]
    arguments.append([place.tensor(np.zeros((), np.float32))])

    def program(arguments: list[list[dn.Tensor]]) -> list[dn.Tensor]:
        return [row.call(tensors) for row, tensors in zip(rows, arguments[:-1], strict=True)]

    try:
        results = dn.pjrt.compile(program, [arguments], client=place.client)(arguments)
        for result in results:
            result.block_until_ready()
    except Exception as error:
        if len(rows) == 1:
            yield rows[0], error
            return
        middle = len(rows) // 2
        yield from together(rows[:middle], place)
        yield from together(rows[middle:], place)
        return
    yield from zip(rows, results, strict=True)


def at_once(rows: list[Row], place: Place) -> Iterator[tuple[Row, dn.Tensor | Exception]]:
    """The results of rows that run eagerly, one operation at a time."""
    for row in rows:
        try:
            with dn.options(backend=place.backend):
                result: Any = row.call([place.tensor(array) for array in row.arrays()])
        except Exception as error:
            result = error
        yield row, result


def operations(place: Place) -> Found:
    """Every row of the tests' table: compiled in all dtypes, and eagerly in one dtype."""
    from cases import all_cases
    from support import XLA_ULPS

    found = Found()
    cases = all_cases()
    rows = [Row(case, dtype) for case in cases for dtype in case.dtypes]
    eager = [Row(case, "f32" if "f32" in case.dtypes else case.dtypes[0]) for case in cases]
    rows, eager = rows[place.share :: place.shares], eager[place.share :: place.shares]
    batches = [rows[at : at + 24] for at in range(0, len(rows), 24)]
    for kind, results in (
        ("compiled", (pair for batch in batches for pair in together(batch, place))),
        ("at once", at_once(eager, place)),
    ):
        for row, result in results:
            done = found.counts[kind] = found.counts.get(kind, 0) + 1
            if done % 240 == 0:
                print(f"{done} rows {kind}", flush=True)
            if isinstance(result, Exception):
                first = str(result).splitlines()[0]
                found.refused.append(f"{row}, {kind}: {type(result).__name__}: {first}")
                continue
            problem = row.problem(result, XLA_ULPS, place.is_gpu)
            if problem is not None:
                found.failed.append(f"{row}, {kind}: {problem}")
    found.say(f"{found.counts}, {len(found.failed)} off, {len(found.refused)} refused")
    return found


# Training.


def digits(place: Place) -> Found:
    """`examples/digits.py` reaches the usual accuracy and loss."""
    import digits as example

    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "losses.json"
        options = ["--compiler", "pjrt", "--log", str(log), "--picture", f"{folder}/digits.png"]
        start = time.perf_counter()
        accuracy = example.main(options)
        seconds = time.perf_counter() - start
        losses = json.loads(log.read_text())
    found.say(f"- {len(losses)} steps in {seconds:.1f} s, the last loss is {losses[-1]:.4f}")
    found.require(
        "at least 97% of the held-out digits are read", accuracy >= 0.97, f"{accuracy:.1%}"
    )
    later = float(np.mean(losses[-44:]) / np.mean(losses[:10]))
    found.require("the loss falls to a twentieth", later < 0.05, f"to {later:.4f} of it")
    return found


# Transfers.


def transfers(place: Place) -> Found:
    """Bytes survive the way to the device and back; the transfer's speed; moving and freeing."""
    found, rows = Found(), []
    for size in (4096, MIB, 64 * MIB, *([1024 * MIB] if place.is_gpu else [])):
        array = np.random.default_rng(size).integers(0, 255, size, dtype=np.uint8)
        there, back = math.inf, math.inf
        for _ in range(5):
            start = time.perf_counter()
            tensor = place.tensor(array).block_until_ready()
            middle = time.perf_counter()
            copy = tensor.to_numpy()
            end = time.perf_counter()
            there, back = min(there, middle - start), min(back, end - middle)
        if not same_bits(copy, array):
            found.failed.append(f"{size} bytes came back as others")
        rate = [f"{text(seconds)} ({size / seconds / 1e9:.2f} GB/s)" for seconds in (there, back)]
        label = f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"
        rows.append([label, *rate])
    found.table(["bytes", "to the device", "back"], rows)
    for dtype in ("bf16", "f8_e4m3fn", "s4", "c64", "f64"):
        x = dn.as_type(dn.iota((7, 3)), dtype)
        y = dn.backend_copy(x, place.backend)
        found.require(f"{dtype} comes back as it was", same_bits(x.to_numpy(), y.to_numpy()))
    x = place.tensor(np.arange(5.0, dtype=np.float32))
    y = dn.backend_transfer(x)
    found.require("a transfer keeps the elements", y.to_list() == [0.0, 1.0, 2.0, 3.0, 4.0])
    found.expect("and frees the source", dn.BackendError, x.to_list)
    before = dn.pjrt.live_buffers(place.client)
    z = place.tensor(np.zeros(3, np.float32))
    dn.backend_deallocate(z)
    after = dn.pjrt.live_buffers(place.client)
    found.require("what is deallocated is gone", before == after)
    devices = dn.devices(place.client)
    if len(devices) > 1:
        other = dn.backend_copy(place.tensor(np.ones(4, np.float32)), devices[1].backend)
        found.require("copies go from one device to the next", other.to_list() == [1.0] * 4)
        lists = [[np.full(4, n, np.float32)] for n in range(len(devices))]
        double = dn.pjrt.compile(lambda x: x + x, [lists[0][0]], client=place.client)
        got = [result.to_list()[0] for result in double.run_each(lists)]
        found.require("each device runs its list", got == [2.0 * n for n in range(len(devices))])
    return found


# Donation.


def donation(place: Place) -> Found:
    """The memory of donated arguments is reused."""
    found = Found()
    count = (64 if place.is_gpu else 4) * MIB
    start = np.ones(count, np.float32)
    step = dn.pjrt.jit(lambda x: x * 1.0001, donate=0, client=place.client)
    x = step(place.tensor(start)).block_until_ready()
    gc.collect()
    before, kept = place.memory_used(), []
    # The address is checked on the host only: a GPU's is not available.
    first = None if place.is_gpu else dn.to_pointer(x).address
    for _ in range(20):
        kept.append(x)
        x = step(x)
    x.block_until_ready()
    after = place.memory_used()
    if before is not None and after is not None:
        grown = f"{(after - before) / MIB:.1f} MiB more"
        found.require("20 steps take no more memory", after - before <= 4 * count / 8, grown)
    if first is not None:
        again = dn.to_pointer(x).address
        found.require("20 steps later the memory is the same", again == first)
    if first is None and (before is None or after is None):
        found.failed.append("the plugin does not count memory, so that donation is not seen")
    want = np.float32(1.0001) ** 21
    found.require("they compute what they should", abs(float(x[0]) - want) < 1e-4)
    found.expect("what was donated is gone", dn.BackendError, kept[-1].to_numpy)
    mean = dn.pjrt.jit(dn.mean, donate=0, client=place.client)
    found.expect("what no result can take is refused", dn.CompileError, lambda: mean(x))
    found.require("and stays", math.isfinite(float(x[0])))
    return found


# Memory.


def memory(place: Place) -> Found:
    """A memory limit holds, and running out of memory raises an error."""
    found = Found()
    plugin = next(p for p in dn.pjrt.plugins() if p.client == place.client)
    limit = 1024 * MIB
    dn.pjrt.client("limited", plugin=plugin.path, memory_limit=limit)
    if not place.is_gpu:
        found.expect(
            "a platform without limits says so",
            dn.OptionError,
            lambda: dn.backends.PJRT(client="limited"),
        )
        huge = 1 << 46
        found.expect(
            "more than there is raises",
            dn.OutOfMemoryError,
            lambda: dn.broadcast(place.tensor(np.ones((), np.float32)), (huge,)),
        )
        return found
    limited = dn.backends.PJRT(client="limited")
    held = [dn.tensor(np.ones(64 * MIB, np.float32), backend=limited).block_until_ready()]

    def fill() -> None:
        for _ in range(8):
            held.append(dn.tensor(np.ones(64 * MIB, np.float32), backend=limited))
            held[-1].block_until_ready()

    found.expect("more than the limit raises", dn.OutOfMemoryError, fill)
    found.require("something fits in it", len(held) >= 2, f"{256 * len(held)} MiB did")
    held.clear()
    gc.collect()
    again = dn.tensor(np.ones(64 * MIB, np.float32), backend=limited)
    found.require("what was freed is there again", float(dn.sum(again)) == 64 * MIB)
    device = dn.devices("limited")[0]
    found.say(f"- the plugin says that the limit is {(device.memory_limit or 0) / MIB:.0f} MiB")
    return found


# Executables in files.


def saved(place: Place) -> Found:
    """A compiled function is saved, loaded, and gives equal results; one for an H200 runs on it."""
    found = Found()
    x = place.tensor(np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32))
    fun = lambda x: dn.tanh(x @ x) + dn.sum(x)  # noqa: E731
    compiled = dn.pjrt.compile(fun, [x], client=place.client)
    again = dn.pjrt.deserialize(compiled.serialize(), trust=True, client=place.client)
    want = compiled(x).to_numpy()
    found.require("what is loaded gives the same bits", same_bits(again(x).to_numpy(), want))
    data = bytearray(compiled.serialize())
    data[len(data) // 2] ^= 1
    found.expect("damage is found", dn.FormatError, lambda: dn.pjrt.deserialize(data, trust=True))
    if place.is_gpu and "H200" in dn.devices(place.client)[0].kind:
        ahead = dn.compile(fun, [x], compiler="pjrt", target="h200", client=place.client)
        there = dn.pjrt.deserialize(ahead.serialize(), trust=True, client=place.client)
        got = there(x).to_numpy()
        close = np.allclose(got, want, rtol=1e-4, atol=1e-4)
        found.require("what was compiled for an H200 without it runs on it", close)
    return found


# Beside JAX.


def jax_rows(place: Place) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any], float]]:
    """For each workload: its name, the runs of both libraries, and the relative tolerance."""
    import jax
    import jax.numpy as jnp
    from models import transformer

    size, side = (4096, 8192) if place.is_gpu else (512, 1024)

    def pair(ours: Any, theirs: Any, arrays: Any, tolerance: float) -> Any:
        mine = jax.tree_util.tree_map(place.tensor, arrays)
        other = jax.tree_util.tree_map(jnp.asarray, arrays)
        one, two = dn.pjrt.jit(ours, client=place.client), jax.jit(theirs)
        return lambda: one(*mine), lambda: two(*other), tolerance

    rng = np.random.default_rng(11)
    a, b = (rng.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    half = [dn.as_type(x, "bf16").to_numpy() for x in (a, b)]
    matmul = (lambda a, b: a @ b, lambda a, b: a @ b)
    yield (f"matmul bf16, {size}", *pair(*matmul, half, 2e-2))
    yield (f"matmul f32, {size}", *pair(*matmul, [a, b], 1e-4))
    x = rng.standard_normal((side, side)).astype(np.float32)

    def softmax(x: dn.Tensor) -> dn.Tensor:
        e = dn.exp(x - dn.reduce_max(x, axes=1, keep_axes=True))
        return e / dn.sum(e, axes=1, keep_axes=True)

    theirs = lambda x: jax.nn.softmax(x, axis=1)  # noqa: E731
    yield (f"softmax f32, {side} x {side}", *pair(softmax, theirs, [x], 1e-4))
    model = transformer(16, 512, 1024) if place.is_gpu else transformer()
    arguments = model.arguments(lambda array: array)
    yield ("transformer step, f32", *pair(model.ours, model.theirs, arguments, 2e-3))
    small = [np.arange(8, dtype=np.float32), np.ones(8, np.float32)]
    yield (
        "call of two 8-element arrays",
        *pair(lambda a, b: a * 2.0 + b, lambda a, b: a * 2.0 + b, small, 1e-6),
    )


def beside_jax(place: Place) -> Found:
    """Workloads in both libraries on one device; results are compared before they are timed."""
    import jax

    # defn multiplies f32 in full precision unless told otherwise. JAX is set to the same.
    jax.config.update("jax_default_matmul_precision", "highest")
    found, rows = Found(), []
    found.say(f"JAX {jax.__version__} on {jax.devices()[0]}.")
    for name, mine, other, tolerance in jax_rows(place):
        ours, theirs = leaves(finish(mine())), leaves(jax.block_until_ready(other()))
        found.compare(name, ours, theirs, tolerance)
        del ours, theirs
        calls: list[Callable[[], object]] = [
            lambda mine=mine: finish(mine()),
            lambda other=other: jax.block_until_ready(other()),
        ]
        many = 200 if name.startswith("call") else 1

        def repeated(call: Callable[[], object], many: int = many) -> Callable[[], object]:
            def run() -> None:
                for _ in range(many):
                    call()

            return call if many == 1 else run

        taken = turns([repeated(call) for call in calls])
        least = [min(times) / many for times in taken]
        middle = [float(np.median(times)) / many for times in taken]
        cells = [text(seconds) for seconds in (*least, *middle)]
        rows.append([name, *cells, f"{least[1] / least[0]:.2f}"])
        print(rows[-1], flush=True)
    found.table(["workload", "defn", "JAX", "median", "JAX's", "JAX / defn"], rows)
    return found


SECTIONS: dict[str, Callable[[Place], Found]] = {
    "machine": machine,
    "operations": operations,
    "digits": digits,
    "transfers": transfers,
    "donation": donation,
    "memory": memory,
    "saved": saved,
    "beside JAX": beside_jax,
    "GPT-2": gpt,
}


def main() -> int:
    """Runs one section, and writes its results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--client", required=True)
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), metavar=("K", "N"))
    parser.add_argument("--found", type=Path, required=True, help="where to write it, as JSON")
    given = parser.parse_args()
    place = Place(given.client, given.client != "host", *given.share)
    try:
        found = SECTIONS[given.section](place)
    except Exception as error:
        traceback.print_exc()
        first = str(error).splitlines()[0] if str(error) else ""
        found = Found(failed=[f"stopped by {type(error).__name__}: {first}"])
    given.found.write_text(json.dumps(vars(found)))
    return 1 if found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
