"""Plugins are found among the installed packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from defn.pjrt import discovery as module


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
