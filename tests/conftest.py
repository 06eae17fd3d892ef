"""Profiles of Hypothesis, options of the test run, and the verification of every graph."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from collections.abc import Iterator

import hypothesis
import pytest

import defn as dn
from defn import _core

# The fast profile draws the same examples each time; the slow one draws new ones.
hypothesis.settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.register_profile("slow", max_examples=500, deadline=None)
hypothesis.settings.load_profile("fast")


# Every graph that a test traces is verified, and its text parses back to an equal graph.
_core.verify_graphs(True)


# Halves XLA's compile time: programs of tests are small, and run once or twice. One thread is
# enough to generate code, because each processor has a worker.
XLA_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
)

# Tests count what is compiled, and the user's folder of programs is not theirs.
os.environ["DEFN_CACHE_DIR"] = ""

# The examples contain a compiler that the tests can run with.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "examples"))


# The files in `typing` are for type checkers, and the plugin is for SciPy's tests. Two files need
# packages of a gigabyte, which `./dev test gpu-compile` installs first.
collect_ignore = ["typing", "scipy_backend.py"]
if "DEFN_CUDA_PACKAGES" not in os.environ:
    collect_ignore += ["test_pjrt_target.py", "test_pjrt_libraries.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write the golden files anew")
    choices = ["numpy", "pjrt"]
    parser.addoption("--compiler", choices=choices, help="compile definitions by another one")
    parser.addoption("--backend", choices=["pjrt"], help="make tensors on another one")


def pytest_configure(config: pytest.Config) -> None:
    # Shells start background jobs with SIGINT ignored, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    options: dict[str, object] = {}
    if "pjrt" in (config.getoption("--compiler"), config.getoption("--backend")):
        # The plugin reads the flags when it is loaded. If they are empty, it compiles as for users.
        os.environ.setdefault("XLA_FLAGS", XLA_FLAGS)
    if config.getoption("--compiler") == "numpy":
        from numpy_compiler import NumPyCompiler

        options["compiler"] = NumPyCompiler()
    if config.getoption("--compiler") == "pjrt":
        options["compiler"] = "pjrt"
    if config.getoption("--backend") == "pjrt":
        # Tests compare printed tensors with those of the host.
        options.update(backend="pjrt", print_place=False)
    if options:
        dn.global_default_options(options)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that the compiler or the backend is known to fail, with the reasons."""
    exceptions: dict[str, str] = {}
    if config.getoption("--compiler") == "numpy":
        from numpy_exceptions import EXCEPTIONS

        exceptions = EXCEPTIONS
    elif config.getoption("--compiler") == "pjrt":
        from pjrt_exceptions import EXCEPTIONS

        exceptions = EXCEPTIONS
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        reason = exceptions.get(name) or exceptions.get(name.split("[")[0])
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="session")
def bless(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--bless")


@pytest.fixture(autouse=True)
def options_as_before() -> Iterator[None]:
    """Restore the default options after each test."""
    here, everywhere = dn.default_options(), dn.global_default_options()
    yield
    dn.default_options(here)
    dn.global_default_options(everywhere)


@pytest.fixture
def no_options(options_as_before: None) -> None:
    """For tests of the defaults and of the host: clears the options of the test run."""
    dn.global_default_options({})
    dn.default_options({})
