"""Plugins are found among the installed packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from defn.pjrt import discovery as module

if TYPE_CHECKING:
    from collections.abc import Iterator


def package(root: Path, name: str, library: str | None, group: str, point: str) -> None:
    """Installs a package that contains a library and must not be imported."""
    folder = root.joinpath(*name.split("."))
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    if library is not None:
        (folder / library).touch()
    info = root / f"{point}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {point}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{point} = {name}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delenv("DEFN_PJRT_PLUGIN", raising=False)
    importlib.invalidate_caches()
    module._installed.cache_clear()
    yield tmp_path
    module._installed.cache_clear()


def names() -> list[tuple[str, str]]:
    return [(plugin.client, plugin.path.name) for plugin in module.plugins()]


def test_none(site: Path):
    assert module.plugins() == ()


def test_accelerators_come_first(site: Path):
    package(site, "alone_cpu", "xla_cpu_pjrt.so", "xla_plugins", "alone_cpu")
    package(site, "alone_cuda", "xla_cuda_plugin.so", "jax_plugins", "xla_cuda13")
    package(site, "other", "pjrt_other.so", "jax_plugins", "other")
    assert names() == [
        ("cuda", "xla_cuda_plugin.so"),
        ("host", "xla_cpu_pjrt.so"),
        ("other", "pjrt_other.so"),
    ]
    assert module.plugins()[0].found == "jax_plugins: xla_cuda13"


def test_what_has_no_library_is_none(site: Path):
    package(site, "empty_cpu", None, "xla_plugins", "empty_cpu")
    package(site, "unrelated_cpu", "helper.so", "xla_plugins", "unrelated_cpu")
    assert module.plugins() == ()
    (site / "gone-1.0.dist-info").mkdir()
    (site / "gone-1.0.dist-info" / "entry_points.txt").write_text("[xla_plugins]\ngone = no.such\n")
    module._installed.cache_clear()
    assert module.plugins() == ()


def test_a_path_comes_first(site: Path, monkeypatch: pytest.MonkeyPatch):
    package(site, "alone_cuda", "xla_cuda_plugin.so", "jax_plugins", "xla_cuda13")
    monkeypatch.setenv("DEFN_PJRT_PLUGIN", str(site / "mine.so"))
    assert names() == [("mine", "mine.so"), ("cuda", "xla_cuda_plugin.so")]
    monkeypatch.setenv("DEFN_PJRT_PLUGIN", str(site / "my_cuda.so"))
    assert names() == [("cuda", "my_cuda.so")]


def test_the_tpus_package_announces_nothing(site: Path):
    (site / "libtpu").mkdir()
    (site / "libtpu" / "__init__.py").touch()
    (site / "libtpu" / "libtpu.so").touch()
    importlib.invalidate_caches()
    assert names() == [("tpu", "libtpu.so")]


def package_for_cuda(folder: Path, solver: str | None) -> Path:
    """A plugin's file, with JAX's package for CUDA beside it, whose module is this text."""
    plugin = folder / "jax_plugins/xla_cuda99/xla_cuda_plugin.so"
    package = folder / "jax_cuda99_plugin"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_linalg.py").write_text("registrations = lambda: {'cu_permute': 1}")
    if solver is not None:
        (package / "_solver.py").write_text(solver)
    return plugin


@pytest.fixture
def without_package() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("jax_cuda99_plugin")]:
        del sys.modules[name]


@pytest.mark.usefixtures("without_package")
def test_functions_of_libraries_are_found_beside_the_plugin(tmp_path: Path):
    plugin = package_for_cuda(tmp_path, "registrations = lambda: {'cusolver_factorize': 2}")
    assert module.custom_calls(plugin) == {"cusolver_factorize": 2, "cu_permute": 1}


@pytest.mark.usefixtures("without_package")
def test_functions_of_the_installed_package_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = "registrations = lambda: {'cusolver_factorize': 3}"
    package_for_cuda(tmp_path, text)
    (tmp_path / "other").mkdir()
    plugin = package_for_cuda(tmp_path / "other", "registrations = lambda: {}")
    monkeypatch.syspath_prepend(tmp_path)
    assert module.custom_calls(plugin) == {"cusolver_factorize": 3, "cu_permute": 1}


@pytest.mark.usefixtures("without_package")
@pytest.mark.parametrize("solver", [None, "raise ImportError('for another Python')"])
def test_without_its_modules_a_package_has_no_functions(tmp_path: Path, solver: str | None):
    assert module.custom_calls(package_for_cuda(tmp_path, solver)) == {}


def test_without_a_package_there_are_no_functions(tmp_path: Path):
    assert module.custom_calls(tmp_path / "jax_plugins/xla_cuda99/xla_cuda_plugin.so") == {}
    assert module.custom_calls(tmp_path / "xla_cpu_pjrt/plugin.so") == {}
    assert module.custom_calls(Path("plugin.so")) == {}
