"""Plugins for tests: libraries of `fake_plugin.c`, XLA on the CPU, and files that are none."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import defn as dn


@functools.cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="defn-plugins-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def host() -> Path:
    """XLA's installed plugin for the CPU."""
    return next(plugin.path for plugin in dn.pjrt.plugins() if plugin.client == "host")


@functools.cache
def _compiled(name: str, source: str, *options: str) -> Path:
    library = _folder() / name
    command = ["cc", "-shared", "-fPIC", "-o", str(library), *options, "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return library


def fake(
    name: str = "pjrt_fake_cuda.so",
    *,
    major: int = 0,
    platform: str = "fake",
    custom_calls: str = "none",
    computes: bool = False,
    wait: float = 30.0,
) -> Path:
    """A plugin with one device of 1 MiB; the file's `name` determines the kind that is assumed.

    In one of several processes it has two devices, and waits `wait` seconds for the others' data.
    If it `computes`, every program adds to its argument what tells which device has run it.

    Its extension for `custom_calls` is missing ("none"), refuses to register functions ("refused"),
    or is that of a version without registration ("short").
    """
    source = Path(__file__).with_name("fake_plugin.c").read_text()
    options = (f"-I{host().parent / 'include'}", f"-DMAJOR={major}", f'-DPLATFORM="{platform}"')
    options += (f"-DCUSTOM_CALLS={['none', 'refused', 'short'].index(custom_calls)}",)
    options += (f"-DCOMPUTES={int(computes)}", f"-DWAIT={int(wait * 1000)}")
    return _compiled(name, source, *options)


def library() -> Path:
    """A library that is not a plugin."""
    return _compiled("pjrt_library.so", "int nothing;\n")


def text() -> Path:
    """A file that is not a library."""
    file = _folder() / "pjrt_text.so"
    file.write_text("no library")
    return file
