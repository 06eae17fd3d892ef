"""Checks and times a device, and writes a report: `docs/gpu.md` for a GPU.

It compares the table of operations with NumPy, trains the digits, and checks transfers, donation,
memory, saved executables, and workloads beside JAX on the same device. It needs the packages
`defn`, `jax` and `numpy`, and a PJRT plugin: `pip install 'defn[cuda13]'`. It uses neither Rust
nor a network.

    python benches/gpu_check.py                             # on the GPU
    python benches/gpu_check.py --client host --out PATH    # the same checks, on XLA's CPU

Each section runs in its own process, so that one cannot affect the others; the operations run in
several processes at once. ``--results`` keeps the results in a file. Runs with other sections add
to this file, and the report contains all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "gpu.md"
SECTIONS = {
    "machine": "The machine",
    "operations": "Operations",
    "digits": "Training on digits",
    "transfers": "Transfers",
    "donation": "Donation",
    "memory": "Memory",
    "saved": "Saved executables",
    "beside JAX": "Beside JAX",
    "GPT-2": "Training GPT-2",
}
# The share of the rows of operations that a plugin may refuse.
REFUSED = 0.03
# The number of items of a long list that are shown.
SHOWN = 60


def plugin_of(client: str) -> Path | None:
    """The library of the plugin of a client, if it is installed."""
    from defn.pjrt import plugins

    return next((plugin.path for plugin in plugins() if plugin.client == client), None)


def environment(client: str, plugin: Path) -> dict[str, str]:
    """The environment in which the client is the default one, and JAX uses the same device."""
    env = dict(os.environ, DEFN_PJRT_PLUGIN=str(plugin), JAX_ENABLE_X64="0")
    env["JAX_PLATFORMS"] = {"host": "cpu"}.get(client, client)
    # Both libraries share the memory: JAX must not preallocate it.
    env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    env.pop("DEFN_BACKEND", None)
    env.pop("DEFN_COMPILER", None)
    paths = [str(ROOT / "python"), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return env


def run(section: str, client: str, plugin: Path, share: tuple[int, int]) -> dict[str, Any]:
    """Runs a section, or a share of it."""
    script = Path(__file__).with_name("gpu_sections.py")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, str(script), section, "--client", client]
        command += ["--share", *map(str, share), "--found", str(path)]
        done = subprocess.run(command, env=environment(client, plugin), cwd=folder)
        if path.exists():
            return json.loads(path.read_text())
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return {"lines": [], "failed": [f"the process ended by {how}"], "counts": {}, "refused": []}


def run_section(section: str, client: str, plugin: Path, jobs: int) -> dict[str, Any]:
    """Runs a section; the operations run in several processes."""
    print(f"== {section}", flush=True)
    start = time.perf_counter()
    shares = jobs if section == "operations" else 1
    with ThreadPoolExecutor(shares) as pool:
        parts = list(pool.map(lambda at: run(section, client, plugin, (at, shares)), range(shares)))
    found: dict[str, Any] = {"lines": [], "failed": [], "counts": {}, "refused": []}
    for part in parts:
        for name in ("failed", "refused"):
            found[name] += part[name]
        for name, count in part["counts"].items():
            found["counts"][name] = found["counts"].get(name, 0) + count
    found["lines"] = parts[0]["lines"] if shares == 1 and section != "operations" else []
    found["seconds"] = time.perf_counter() - start
    if section == "operations":
        rows = sum(found["counts"].values())
        if len(found["refused"]) > REFUSED * rows:
            found["failed"].append(f"{len(found['refused'])} of {rows} rows are refused")
    return found


def shortened(items: list[str]) -> list[str]:
    """The first items of a long list."""
    rest = [f"- and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return [f"- {item}" for item in sorted(items)[:SHOWN]] + rest


def operations_lines(found: dict[str, Any]) -> list[str]:
    """The report's lines about the table of operations."""
    counts = found["counts"]
    rows = sum(counts.values())
    said = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    lines = [
        "Each row is an operation in a dtype, with drawn arguments, beside NumPy's and SciPy's "
        "result in 64 bits. The tolerances are those of the tests: those that each row states, "
        "eightfold, since XLA's functions and order of additions are its own; integers are exact. "
        "On a GPU quotients of f32 may be off by two units in the last place. "
        "Compiled rows are all dtypes, those at once one dtype of each operation.",
        "",
        f"- {rows} rows: {said}",
        f"- {len(found['failed'])} beyond tolerance, {len(found['refused'])} refused",
    ]
    if found["refused"]:
        lines += ["", "Refused:", "", *shortened(found["refused"])]
    return lines


def report(results: dict[str, Any], client: str) -> str:
    """The whole report, as Markdown."""
    title = "XLA's CPU" if client == "host" else "GPU"
    lines = [
        f"# {title}: what was checked and measured",
        "",
        f"Written by `python benches/gpu_check.py --client {client}` on "
        f"{datetime.now(UTC):%Y-%m-%d}; each figure was measured then.",
        "",
    ]
    failed = [name for name, found in results.items() if found["failed"]]
    missing = [name for name in SECTIONS if name not in results]
    verdict = f"Failed: {', '.join(failed)}." if failed else "Everything that was run passed."
    lines += [verdict + (f" Not run: {', '.join(missing)}." if missing else ""), ""]
    for name, heading in SECTIONS.items():
        found = results.get(name)
        if found is None:
            continue
        lines += [f"## {heading}", ""]
        lines += operations_lines(found) if name == "operations" else found["lines"]
        if found["failed"]:
            lines += ["", "Failed:", "", *shortened(found["failed"])]
        lines += ["", f"Took {found['seconds']:.0f} s.", ""]
    text = "\n".join(lines)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip("\n") + "\n"


def main() -> int:
    """Runs the sections and writes the report; the exit status says whether everything passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--client", default="cuda", help="cuda unless told otherwise, or host")
    parser.add_argument("--out", type=Path, help="the report; docs/gpu.md for a GPU")
    parser.add_argument("--results", type=Path, help="where to keep what parts found, as JSON")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    given = parser.parse_args()
    out = given.out
    if out is None:
        if given.client == "host":
            parser.error("--out is required for a client that is no GPU")
        out = REPORT
    sys.path.insert(0, str(ROOT / "python"))
    plugin = plugin_of(given.client)
    if plugin is None:
        package = "'defn[xla]'" if given.client == "host" else "'defn[cuda13]'"
        print(f'no plugin for "{given.client}" is installed; pip install {package}')
        return 2
    if given.jobs < 1:
        parser.error("--jobs must be at least 1")
    results: dict[str, Any] = {}
    if given.results is not None and given.results.exists():
        results = json.loads(given.results.read_text())
    for section in given.only:
        results[section] = run_section(section, given.client, plugin, given.jobs)
        if given.results is not None:
            given.results.write_text(json.dumps(results, indent=1))
        out.write_text(report(results, given.client))
    print(f"wrote {out}")
    return 1 if any(found["failed"] for found in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
