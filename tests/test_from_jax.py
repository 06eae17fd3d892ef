"""The page "From JAX": runs the right side of each row, and compares it with JAX if installed."""

from __future__ import annotations

import importlib
import math
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import defn as dn
from test_from_numpy import Row, is_same, rows, words

PAGE = (pathlib.Path(__file__).parents[1] / "docs" / "from-jax.md").read_text()
ROWS = rows(PAGE)
INPUTS: dict[str, Any] = {"np": np}
exec(re.search(r"```python\n(x, y, w = .*?)```", PAGE, re.S)[1], INPUTS)


def compare(theirs: Any, ours: Any) -> bool:
    """Compares arrays, also inside dicts and lists."""
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(compare(theirs[k], ours[k]) for k in theirs)
    if isinstance(theirs, list | tuple) and not hasattr(theirs, "dtype"):
        return len(theirs) == len(ours) and all(map(compare, theirs, ours))
    return is_same(np.asarray(theirs), np.asarray(ours))


def one(row: Row) -> Any:
    return eval(row.here, {**INPUTS, "dn": dn, "math": math})


@pytest.mark.parametrize("row", ROWS, ids=[row.theirs for row in ROWS])
def test_the_right_side(row: Row) -> None:
    assert one(row) is not None


@pytest.mark.parametrize("row", ROWS, ids=[row.theirs for row in ROWS])
def test_both_sides(row: Row) -> None:
    import jax

    for module in (
        "ad_checkpoint",
        "experimental",
        "lax",
        "nn",
        "numpy",
        "ops",
        "random",
        "scipy.sparse.linalg",
        "scipy.special",
        "tree",
        "tree_util",
    ):
        importlib.import_module(f"jax.{module}")
    if "(" not in row.theirs or "jaxpr" in row.theirs or "disable_jit" in row.theirs:
        eval(row.theirs, {**INPUTS, "jax": jax})
        return
    if ".key(0)" in row.theirs and ".shape" not in row.theirs:
        return
    with jax.enable_x64(True):
        inputs = jax.tree.map(lambda value: value, INPUTS)
        theirs = eval(row.theirs, {**inputs, "jax": jax})
        assert compare(theirs, one(row)), (theirs, one(row))


def names() -> dict[str, list[Row]]:
    """The rows by the JAX name at their start, without ``jax.``."""
    found: dict[str, list[Row]] = {}
    for row in ROWS:
        name = re.match(r"jax\.([a-z_A-Z0-9.]*[a-zA-Z0-9_])", row.theirs)[1]
        found.setdefault(name, []).append(row)
    return found


def where(name: str) -> tuple[Any, str]:
    """The module here in which a user would look for a JAX name, and the name there."""
    module, _, last = name.rpartition(".")
    modules = {"nn": dn.nn, "nn.initializers": dn.nn, "random": dn.random, "tree": dn.tree}
    return modules.get(module, dn), last


def test_the_page_has_the_most_used_names() -> None:
    here = [name for name in names() if where(name)[1] in where(name)[0].__all__]
    count = len(names())
    assert count > 130
    text = f"{count} names: `dn` has {len(here)}, the other {count - len(here)} have replacements"
    assert text in re.sub(r"\s+", " ", PAGE)


@pytest.mark.parametrize("name", sorted(names()))
def test_a_missing_name_says_what_to_write(name: str) -> None:
    owner, last = where(name)
    if last in owner.__all__ or name.startswith(("debug.", "numpy.", "tree_util.", "ops.")):
        return
    with pytest.raises(AttributeError, match="; use ") as caught:
        getattr(owner, last)
    hint = str(caught.value).partition("; use ")[2].partition("\n")[0]
    for word in words(hint):
        eval(word, {"dn": dn, "np": np, "math": math})
    assert any(words(row.here) & words(hint) or not words(hint) for row in names()[name]), hint
