"""Docstrings have their headings, examples run, and generated documents are up to date."""

from __future__ import annotations

import doctest
import importlib
import inspect
import operator
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import defn as dn
from defn.tensors import METHOD_MODULES
from support import needs_plugin

ROOT = pathlib.Path(__file__).parents[1]
FUNCTIONS = sorted(name for module in METHOD_MODULES for name in module.__all__)
FUNCTIONS += ["associative_scan"]
FUNCTIONS += [
    "checkpoint",
    "cond",
    "custom_grad",
    "for_",
    "grad",
    "if_",
    "implicit",
    "mark",
    "print_expr",
    "scan",
]
FUNCTIONS += ["all_gather", "all_reduce", "collective_permute", "mesh_index", "mesh_size"]
FUNCTIONS += ["reduce_scatter"]
FUNCTIONS += [
    *("tree.add", "tree.add_scaled", "tree.cast", "tree.dot", "tree.multiply", "tree.norm"),
    *("tree.ones_like", "tree.random_split", "tree.scale", "tree.stack", "tree.subtract"),
    *("tree.unstack", "tree.where", "tree.zeros_like"),
]
FUNCTIONS += ["hessian", "jacobian", "map", "stop_grad", "value_and_grad", "vjp", "vmap", "while_"]
PUBLIC = [name for name in dn.__all__ if inspect.isfunction(inspect.unwrap(getattr(dn, name)))]
MODULES = ["constants", "linalg", "nn", "random"]
INNER = [
    f"{module}.{name}"
    for module in MODULES
    for name in getattr(dn, module).__all__
    if not inspect.isclass(getattr(getattr(dn, module), name))
]


@pytest.mark.parametrize("name", FUNCTIONS + INNER)
def test_headings(name: str) -> None:
    text = inspect.getdoc(operator.attrgetter(name)(dn))
    assert text is not None
    positions = [text.find(f"\n{heading}: ") for heading in ("Shapes", "Dtypes", "Grad", "Raises")]
    assert -1 not in positions
    assert positions == sorted(positions)
    assert "\n>>> " in text


@pytest.mark.parametrize("name", PUBLIC)
def test_every_function_has_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(dn, name)) or ""
    assert ">>> " in text
    assert "Raises: " in text or name == "dtype"


# Their examples print the default backends and compilers.
OF_DEFAULTS = ("defn.jit", "defn.places", "defn.threads", "backends.md", "compilers.md", "cpu.md")


@pytest.fixture
def as_asked(request: pytest.FixtureRequest, name: str) -> None:
    if name in OF_DEFAULTS:
        request.getfixturevalue("no_options")


@pytest.mark.usefixtures("as_asked")
@pytest.mark.parametrize(
    "name",
    [
        "defn",
        "defn.control",
        "defn.grad",
        "defn.rules",
        "defn.vmap",
        "defn.jit",
        "defn.containers",
        "defn.errors",
    ]
    + [
        "defn.checkpoints",
        "defn.places",
        "defn.threads",
        "defn.formats",
        "defn.reading",
        "defn.backends.inspect",
    ]
    + [f"defn.{module}" for module in MODULES]
    + [module.__name__ for module in METHOD_MODULES],
)
def test_examples(name: str) -> None:
    found = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"dn": dn, "np": np},
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert found.failed == 0
    assert found.attempted > 0 or name == "defn.errors"


def test_readme() -> None:
    readme = ROOT / "README.md"
    found = doctest.testfile(
        str(readme),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert found.failed == 0
    assert found.attempted > 3


PAGES = [
    "array-api.md",
    "backends.md",
    "checkpoints.md",
    "compilers.md",
    "control-flow.md",
    "cpu.md",
    "data.md",
    "definitions.md",
    "fit-ode.md",
    "formats.md",
    "gradients.md",
    "nn.md",
    "ode.md",
    "optim.md",
    "optimize.md",
    "science.md",
    "streams-and-hooks.md",
    "train.md",
    "vectorization.md",
]


@pytest.mark.usefixtures("as_asked")
@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str) -> None:
    found = doctest.testfile(
        str(ROOT / "docs" / name),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert found.failed == 0
    assert found.attempted > 3


@pytest.mark.usefixtures("no_options")
@needs_plugin
def test_the_page_on_devices() -> None:
    test_pages("devices.md")


@pytest.mark.usefixtures("no_options")
@needs_plugin
def test_the_page_on_graphs() -> None:
    test_pages("graphs.md")


@needs_plugin
def test_the_examples_on_several_devices() -> None:
    test_examples("defn.mesh")


def test_links_lead_somewhere() -> None:
    """Every page is in the index, and every link between pages has a target."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    index = (ROOT / "docs" / "README.md").read_text()
    for page in [ROOT / "README.md", *pages]:
        assert page.name == "README.md" or f"({page.name})" in index, page.name
        prose = re.sub(r"(?ms)^```.*?^```|`[^`\n]*`\s*\|", "", page.read_text())
        for target in re.findall(r"\]\(([^)]+)\)", prose):
            if target.startswith("https://"):
                continue
            file, _, heading = target.partition("#")
            there = page.parent / file if file else page
            assert there.exists(), (page.name, target)
            if heading:
                headings = re.findall(r"(?m)^#+ (.*)$", there.read_text())
                anchors = [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings]
                assert heading in anchors, (page.name, target)


@pytest.mark.parametrize("tool", ["docs_ops.py", "stubs.py"])
def test_generated_files_are_current(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_operations_has_no_gaps() -> None:
    """Every cell has a text, and none says that something is missing."""
    lines = (ROOT / "docs" / "ops.md").read_text().splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| `")]
    assert len(rows) > 200
    for row in rows:
        assert all(cell.strip() not in ("", "missing") for cell in row), row


def test_the_table_of_callbacks_is_complete() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    from docs_ops import CALLBACKS, RENAMED

    from defn import _core

    assert len(set(CALLBACKS)) == len(CALLBACKS) == 115
    own = {
        name
        for cls in dn.Backend.__mro__
        if cls not in (object, _core.Backend)
        for name, value in vars(cls).items()
        if callable(value) and not name.startswith("_")
    }
    # A complex number from two parts is a composite in Nx, and an operation here.
    assert own - {"complex"} == set(CALLBACKS) - set(RENAMED)


def test_foreign_names_lead_to_names_that_exist() -> None:
    from defn import _foreign

    tables = {dn: _foreign.FUNCTIONS, dn.linalg: _foreign.LINALG, dn.random: _foreign.RANDOM}
    tables |= {dn.nn: _foreign.NN, dn.optim: _foreign.OPTIM, dn.tree: _foreign.TREE}
    tables |= {dn.optimize: _foreign.OPTIMIZE}
    for module, table in tables.items():
        for foreign, ours in table.items():
            assert foreign not in module.__all__, foreign
            for name in re.findall(r"\bdn\.([a-zA-Z_0-9.]*[a-zA-Z0-9_])", ours):
                operator.attrgetter(name)(dn)
    for foreign, ours in _foreign.METHODS.items():
        assert foreign not in dir(dn.Tensor) or not hasattr(dn.tensor(1), foreign), foreign
        for name in re.findall(r"\bx\.(\w+)", ours):
            assert hasattr(dn.Tensor, name), (foreign, ours)
    # If the replacement is a method, the error of an attribute names it as a method.
    with pytest.raises(AttributeError, match=r"use x\.cumulative_sum\(axis\)"):
        _ = dn.tensor([1]).cumsum
