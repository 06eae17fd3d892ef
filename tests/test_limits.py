"""The cost of gradients of long loops, and the modules that an import loads."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import defn as dn
from defn import _core


@pytest.fixture(autouse=True)
def _without_verification():
    """Without the verification of graphs, as users run it."""
    _core.verify_graphs(False)
    yield
    _core.verify_graphs(True)


def best_of(runs: int, action, clock=time.perf_counter) -> float:
    times = []
    for _ in range(runs):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)


def stepped(x: dn.Tensor, n: dn.Tensor) -> dn.Tensor:
    """A loop whose gradient needs every state, and neither vanishes nor explodes."""

    def body(state: tuple[dn.Tensor, dn.Tensor]) -> tuple[dn.Tensor, dn.Tensor]:
        return state[0] + 1, state[1] + state[1] * state[1] * 1e-5

    return dn.sum(dn.while_((0, x), lambda s: s[0] < n, body)[1])


def growth(trips: int, size: int) -> int:
    """The bytes by which the gradient of `trips` trips raises a new process's peak memory."""
    program = f"""
        import pathlib, sys
        sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
        import defn as dn
        from test_limits import stepped

        def peak():
            lines = pathlib.Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

        gradient, x = dn.grad(stepped), dn.iota(({size},), dtype="f32") / {size}
        before = peak()
        gradient(x, {trips})
        print((peak() - before) * 1024)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_gradient_of_a_long_loop_takes_linear_time() -> None:
    gradient = dn.grad(stepped)
    gradient(0.5, 10)
    # Processor time: a long run is interrupted more often.
    short = best_of(5, lambda: gradient(0.5, 1_000), time.process_time)
    long = best_of(3, lambda: gradient(0.5, 10_000), time.process_time)
    assert long <= 12 * short, f"{short:.4f} s for 1,000 trips, {long:.4f} s for 10,000"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's figures")
def test_gradient_of_a_long_loop_takes_bounded_memory() -> None:
    size = 16 * 1024
    short = min(growth(1_000, size) for _ in range(2))
    long = min(growth(10_000, size) for _ in range(2))
    state = 4 * size
    assert short > 100 * state, "what is measured is there"
    assert long <= 12 * short, f"{short} bytes for 1,000 trips, {long} for 10,000"
    assert long < 5_000 * state, "the states of all trips are not kept at once"


def test_import_is_light() -> None:
    """Importing does not load rarely used modules; `./dev bench sizes` measures the time."""
    program = """
        import sys
        import defn
        rare = {"ml_dtypes", "scipy", "asyncio", "attrs", "attr", "jax"}
        rare |= {f"defn.{name}" for name in (*defn._MODULES, *defn._NAMES)}
        print(sorted(rare & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_late_imports_are_what_type_checkers_read() -> None:
    """The two lists of what is imported at its first use are the same, and every name is found."""
    tree = ast.parse(pathlib.Path(dn.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {
        (node.module, name.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    late = {("defn", name) for name in dn._MODULES}
    late |= {(f"defn.{module}", name) for module, names in dn._NAMES.items() for name in names}
    assert late == declared
    for module, name in late:
        assert getattr(dn, name) is getattr(sys.modules[module], name)


def test_numpy_is_not_computing() -> None:
    """NumPy does no arithmetic in a training step."""

    class Refusing(np.ndarray):
        def __array_ufunc__(self, *args: object, **kwargs: object) -> object:
            raise AssertionError("NumPy computes")

    x = np.ones((4, 3), dtype=np.float32).view(Refusing)
    w = dn.tensor(np.zeros((3,), dtype=np.float32))
    step = dn.jit(lambda w, x: w - 0.1 * dn.grad(lambda v: dn.mean((x @ v - 1.0) ** 2))(w))
    for _ in range(3):
        w = step(w, x)
    assert (w.to_numpy() > 0).all()
