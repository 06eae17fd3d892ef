"""What is particular to devices: what is compiled, how often, and in which order the host is asked.

Everything else is asked of them by the other tests, with ``--compiler pjrt --backend pjrt``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import defn as dn


class Lent:
    """An array that offers nothing but DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


HOST = dn.backends.PJRT(client="host")


def test_a_thousand_sums_are_compiled_once() -> None:
    x = dn.tensor(np.arange(37, dtype="f4"), backend=HOST)
    y = dn.tensor(np.ones(37, "f4"), backend=HOST)
    before = dn.pjrt.cache_report("host").compiles
    for _ in range(1000):
        x = dn.add(x, y)
    assert dn.pjrt.cache_report("host").compiles - before == 1
    assert x.to_list() == [1000.0 + n for n in range(37)]


OTHER_PROCESS = """
import sys
import defn as dn

def step(w, x):
    slope = dn.grad(lambda w: dn.sum(dn.tanh(x @ w) ** 2))(w)
    return dn.for_(w - slope, range(3), lambda w, i: w * 0.5 + i)

f = dn.pjrt.jit(step, cache_dir=sys.argv[1], client="host")
result = f(dn.tensor([[1.0], [2.0]]), dn.tensor([[0.5, 0.25]]))
report = dn.pjrt.cache_report("host")
print(report.compiles, report.disk_hits, report.corrupt, result.to_binary().hex())
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    def run() -> list[str]:
        command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.split()

    first, second = run(), run()
    assert first[:3] == ["1", "0", "0"]
    assert second[:3] == ["0", "1", "0"]
    assert first[3] == second[3]
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert run() == ["1", "0", "1", first[3]], "what is damaged is made again"


SHARING = """
import numpy as np
import defn as dn

client = dn.pjrt.client("alone", plugin=dn.pjrt.plugins()[0].path, cpu_device_count=1)
place = dn.backends.PJRT(client="alone")
x = dn.tensor(np.arange(3.0, dtype="f4"), backend=place)
assert dn.jit(lambda x: dn.sum(dn.exp(x - x)), compiler="pjrt", client="alone")(x).item() == 3.0
assert dn.sqrt(x * x).to_list() == [0.0, 1.0, 2.0]
report = dn.pjrt.cache_report("alone")
print(report.compiles, report.disk_hits, report.corrupt)
"""


def in_the_users_folder(caches: Path) -> subprocess.Popen[str]:
    """A process that compiles two operations and a definition, with `caches` for the user's."""
    variables = {name: text for name, text in os.environ.items() if name != "DEFN_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-c", SHARING],
        env=variables | {"XDG_CACHE_HOME": str(caches)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> list[int]:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return [int(word) for word in output.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_programs_are_kept_in_the_users_folder(tmp_path: Path) -> None:
    assert finished(in_the_users_folder(tmp_path)) == [3, 0, 0]
    assert finished(in_the_users_folder(tmp_path)) == [0, 3, 0]
    programs = tmp_path / "defn" / "programs"
    assert (len(list(programs.iterdir())), programs.stat().st_mode & 0o777) == (3, 0o700)
    for file in programs.iterdir():
        file.write_bytes(b"defn program 001, but no more")
    assert finished(in_the_users_folder(tmp_path)) == [3, 0, 3]
    # A folder that others may write to is not used, and one that cannot be made costs nothing.
    programs.chmod(0o777)
    assert finished(in_the_users_folder(tmp_path)) == [3, 0, 0]
    (tmp_path / "file").write_text("no folder")
    assert finished(in_the_users_folder(tmp_path / "file")) == [3, 0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_sixteen_processes_share_the_users_folder(tmp_path: Path) -> None:
    processes = [in_the_users_folder(tmp_path) for _ in range(16)]
    for compiles, hits, corrupt in map(finished, processes):
        assert (compiles + hits, corrupt) == (3, 0)
    programs = tmp_path / "defn" / "programs"
    assert [file.suffix for file in programs.iterdir()] == [".defn-program"] * 3


def test_hooks_in_loops_keep_their_order() -> None:
    seen: list[Any] = []

    def body(total: Any, row: Any) -> Any:
        row = dn.hook(row, lambda row: seen.append(("row", row.to_list())))
        total = total + dn.sum(row)
        dn.if_(total > 5, lambda: dn.hook(total, lambda v: seen.append(("more", float(v)))), total)
        return dn.hook(total, lambda v: seen.append(("total", float(v))))

    @dn.pjrt.jit(client="host")
    def f(x: Any) -> Any:
        total = dn.hook(dn.for_(0.0, x, body), lambda v: seen.append(("end", float(v))))
        return dn.hook(total * 2, lambda v: seen.append(("after", float(v))))

    for _ in range(2):
        seen.clear()
        assert float(f(dn.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))) == 42.0
        assert seen == [
            ("row", [1.0, 2.0]), ("total", 3.0),
            ("row", [3.0, 4.0]), ("more", 10.0), ("total", 10.0),
            ("row", [5.0, 6.0]), ("more", 21.0), ("total", 21.0),
            ("end", 21.0), ("after", 42.0),
        ]  # fmt: skip


def test_devices_do_not_share_the_memory_of_arrays() -> None:
    array = np.arange(4.0)
    for given in (array, Lent(array), memoryview(array)):
        assert dn.tensor(given, backend=HOST).to_list() == [0.0, 1.0, 2.0, 3.0]
        with pytest.raises(dn.OptionError, match="copy=False was given, but the elements"):
            dn.tensor(given, backend=HOST, copy=False)


def test_updates_at_positions_without_entries_add_up() -> None:
    """XLA alone would keep one of them."""
    updates = dn.tensor([[10.0, 20.0], [1.0, 2.0]], backend=HOST)
    nowhere = dn.tensor(np.zeros((2, 0), "i4"), backend=HOST)
    x = dn.tensor([0.5, 0.5], backend=HOST)
    for add in (dn.indexed_add, dn.pjrt.jit(dn.indexed_add)):
        assert add(x, nowhere, updates, axes=()).to_list() == [11.5, 22.5]
    for put in (dn.indexed_put, dn.pjrt.jit(dn.indexed_put)):
        assert put(x, nowhere, updates, axes=()).to_list() == [1.0, 2.0]
