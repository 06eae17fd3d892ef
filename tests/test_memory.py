"""Live tensors on the CPU and the lines that made them, and the memory of a run."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import defn as dn
from defn.memory import LiveTensors

HERE = str(Path(__file__))


def found(shape: tuple[int, ...]) -> list[LiveTensors]:
    """The live tensors of a shape that only one test uses."""
    return [entry for entry in dn.memory_report().tensors if entry.shape == shape]


def line_of(entry: LiveTensors) -> str:
    assert entry.line is not None
    file, _, line = entry.line.rpartition(":")
    assert file == HERE
    return Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip()


def test_tensors_of_one_line_are_one_entry() -> None:
    kept = [dn.iota((300, 301), dtype="f64") for _ in range(3)]
    [entry] = found((300, 301))
    assert (entry.dtype, entry.count, entry.bytes) == (dn.f64, 3, 3 * 300 * 301 * 8)
    assert (entry.borrowed, entry.shared, entry.names) == (False, False, (None, None))
    assert line_of(entry).startswith("kept = [dn.iota(")
    report = dn.memory_report()
    assert report.live_bytes >= entry.bytes
    assert report.peak_bytes >= report.live_bytes
    assert report.unlisted_bytes <= report.live_bytes
    assert f"{entry.bytes:>15}       3  f64[300][301]  made at {HERE}:" in repr(report)
    del kept[1:]
    assert found((300, 301))[0].count == 1
    kept.clear()
    assert found((300, 301)) == []


def test_results_of_operations_and_of_definitions_have_their_lines() -> None:
    double = dn.jit(lambda x: x * 2.0)
    x = dn.iota((401, 300), dtype="f32")
    y = double(x)
    z = y + 1.0
    lines = {line_of(entry) for entry in found((401, 300))}
    assert lines == {
        'x = dn.iota((401, 300), dtype="f32")',
        "y = double(x)",
        "z = y + 1.0",
    }
    del x, y, z
    assert found((401, 300)) == []


def test_small_tensors_are_not_listed_and_counted() -> None:
    before = dn.memory_report().live_bytes
    x = dn.iota((4999,), dtype="f64")
    assert dn.memory_report().live_bytes - before == 4999 * 8
    assert found((4999,)) == []
    del x
    assert dn.memory_report().live_bytes == before


def test_slices_hold_the_memory_that_they_are_windows_of() -> None:
    x = dn.iota((70_001,), dtype="f64")
    again = x.reshape(1, 70_001)
    [entry], [other] = found((70_001,)), found((1, 70_001))
    assert entry.bytes == other.bytes == 70_001 * 8
    assert entry.shared
    assert other.shared
    del x
    assert found((70_001,)) == []
    [other] = found((1, 70_001))
    assert not other.shared
    del again


def test_freed_and_donated_tensors_are_not_alive() -> None:
    x = dn.iota((503, 300), dtype="f32")
    assert len(found((503, 300))) == 1
    dn.backend_deallocate(x)
    assert found((503, 300)) == []


def test_arrays_are_borrowed() -> None:
    array = np.zeros((603, 300))
    before = dn.memory_report()
    x = dn.tensor(array, copy=False)
    [entry] = found((603, 300))
    after = dn.memory_report()
    assert entry.borrowed
    assert after.borrowed_bytes - before.borrowed_bytes == array.nbytes
    assert after.live_bytes == before.live_bytes
    assert ", borrowed" in repr(after)
    assert line_of(entry) == "x = dn.tensor(array, copy=False)"
    del x


def test_threads_make_and_free_tensors() -> None:
    def work(at: int) -> None:
        for _ in range(50):
            kept = [dn.iota((9000 + at,), dtype="f64") for _ in range(4)]
            assert found((9000 + at,))[0].count == len(kept)

    failed: list[BaseException] = []

    def run(at: int) -> None:
        try:
            work(at)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert not [entry for entry in dn.memory_report().tensors if 9000 <= entry.shape[0] < 9004]


def test_an_error_for_memory_names_the_largest_tensors() -> None:
    x = dn.iota((2_000_003,), dtype="f64")
    with pytest.raises(dn.OutOfMemoryError) as caught:
        dn.iota((1 << 45,), dtype="f64")
    text = str(caught.value)
    assert "the largest live tensors are" in text
    assert f"f64[2000003] of 16000024 bytes made at {HERE}:" in text
    del x


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="memory_report"):
        dn.memory_report(all=True)  # pyright: ignore[reportArgumentType]


CHAIN = """
import sys
import numpy as np
import defn as dn

@dn.jit(compiler="cpu")
def chain(x):
    return dn.tanh(dn.exp(dn.sin(x) * 0.5) + dn.log1p(x * x)) * dn.cos(x)

size = int(sys.argv[1])
x = dn.tensor(np.full(size, 0.5, dtype=np.float32), copy=False)
y = chain(x)
with open("/proc/self/status") as status:
    [line] = [line for line in status if line.startswith("VmHWM:")]
print(int(line.split()[1]) * 1024, float(y[size - 1]))
"""


def chain(size: int) -> tuple[int, float]:
    """The peak memory of a process that runs a chain, and an element of the result."""
    run = subprocess.run(
        [sys.executable, "-c", CHAIN, str(size)], capture_output=True, text=True, check=True
    )
    peak, last = run.stdout.split()
    return int(peak), float(last)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_chain_takes_its_input_and_its_output() -> None:
    small, large = 1 << 18, 8 << 20
    (before, _), (peak, last) = chain(small), chain(large)
    assert peak - before - 2 * 4 * (large - small) < 2 << 20
    expected = np.tanh(np.exp(np.sin(0.5) * 0.5) + np.log1p(0.25)) * np.cos(0.5)
    np.testing.assert_allclose(last, expected, rtol=1e-5)
