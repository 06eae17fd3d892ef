"""Finds the installed PJRT plugins.

A plugin is a shared library from a wheel. Nothing is loaded to find it; only the locations of the
packages that announce a plugin are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from defn import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

__all__ = ["Plugin", "custom_calls", "plugins"]

# The entry points by which packages announce a plugin, and packages that announce none.
_GROUPS = ("xla_plugins", "jax_plugins")
_SILENT = ("libtpu",)


@dataclass(frozen=True)
class Plugin:
    """An installed plugin.

    ``client`` is the client name of its devices, ``path`` the library, and ``found`` the entry
    point or package that announced it.
    """

    client: str
    path: Path
    found: str


def plugins() -> tuple[Plugin, ...]:
    """The installed plugins, the default one first.

    Each of the names ``"cuda"``, ``"rocm"``, ``"tpu"`` and ``"host"`` (XLA on the CPU) stands for
    one plugin; any other has the name under which it was announced. The environment variable
    ``DEFN_PJRT_PLUGIN`` is the path of an additional one, which is then the default.

    Raises: nothing: a broken package has no plugin.

    >>> [plugin.client for plugin in dn.pjrt.plugins()]  # doctest: +SKIP
    ['host']
    """
    return _installed(_core.pjrt_named_plugin())


@cache
def _installed(named: tuple[str, Path] | None) -> tuple[Plugin, ...]:
    first = [Plugin(*named, "DEFN_PJRT_PLUGIN")] if named else []
    known = {plugin.client: plugin for plugin in reversed([*first, *_announced()])}
    order = [*(plugin.client for plugin in first), *_core.pjrt_preferred_clients(), *known]
    return tuple(known[client] for client in dict.fromkeys(order) if client in known)


def _announced() -> Iterator[Plugin]:
    from importlib import metadata

    for group in _GROUPS:
        for point in sorted(metadata.entry_points(group=group)):
            yield from _of_module(point.module, point.name, f"{group}: {point.name}")
    for module in _SILENT:
        yield from _of_module(module, module, module)


def _of_module(module: str, name: str, found: str) -> Iterator[Plugin]:
    """The plugin in the directory of a package, which is not imported."""
    from importlib import util
    from pathlib import Path

    try:
        spec = util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return
    for folder in (spec and spec.submodule_search_locations) or ():
        libraries = sorted(
            path
            for ending in ("so", "dylib", "dll")
            for path in Path(folder).glob(f"*.{ending}")
            if any(word in path.name for word in ("pjrt", "plugin", "tpu"))
        )
        if libraries:
            yield Plugin(_core.pjrt_client_name(name), libraries[0], found)
            return


def custom_calls(plugin: Path) -> dict[str, object]:
    """The functions by which programs for CUDA call its libraries, by name.

    They are in JAX's package for the plugin: ``jax_cuda13_plugin`` for ``jax_plugins.xla_cuda13``.
    It is the installed one, which JAX imports too, or else one beside the plugin. There are none
    without that package, or if it is for another version of Python.
    """
    name = f"jax_{plugin.parent.name.removeprefix('xla_')}_plugin"
    if len(plugin.parents) < 3 or not name.startswith("jax_cuda"):
        return {}
    try:
        modules = [_module_of(plugin.parents[2], name, part) for part in ("_solver", "_linalg")]
    except ImportError:
        return {}
    return {call: capsule for module in modules for call, capsule in module.registrations().items()}


def _module_of(folder: Path, package: str, name: str) -> ModuleType:
    """A module of a package that is installed, or else in a folder."""
    import importlib
    import sys
    from importlib import machinery, util

    if package not in sys.modules and util.find_spec(package) is None:
        spec = machinery.PathFinder.find_spec(package, [str(folder)])
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(package)
        module = sys.modules[package] = util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return importlib.import_module(f"{package}.{name}")
