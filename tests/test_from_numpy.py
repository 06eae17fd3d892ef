"""The page "From NumPy": both sides of each row are run and compared, and the error about a name
that is missing here gives the replacement that the page gives.
"""

from __future__ import annotations

import math
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import defn as dn

PAGE = (pathlib.Path(__file__).parents[1] / "docs" / "from-numpy.md").read_text()
# For these the page shows an import or an attribute, so there is no error about a missing name.
SAME = {"save", "fill", "sort", "pi", "e", "inf"}


class Row(NamedTuple):
    theirs: str
    here: str
    remark: str


def rows(page: str) -> list[Row]:
    """The rows of all tables whose first two columns are code."""
    found = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("| `") and len(cells) == 3:
            found.append(Row(cells[0].strip("`"), cells[1].strip("`"), cells[2]))
    return found


ROWS = rows(PAGE)
ARRAYS: dict[str, Any] = {"np": np}
exec(re.search(r"```python\n(a, b = .*?)```", PAGE, re.S)[1], ARRAYS)
OURS = {
    name: dn.tensor(value) if isinstance(value, np.ndarray) else value
    for name, value in ARRAYS.items()
} | {"dn": dn, "math": math}


def plain(value: Any) -> Any:
    """Tensors and arrays as NumPy arrays; other values unchanged."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return np.asarray(value) if isinstance(value, dn.Tensor | np.ndarray) else value


def is_same(theirs: Any, ours: Any) -> bool:
    theirs, ours = plain(theirs), plain(ours)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(is_same, theirs, ours))
    if isinstance(theirs, np.dtype) or isinstance(ours, dn.DType | str | bytes):
        return ours == theirs
    return np.shape(theirs) == np.shape(ours) and np.allclose(
        theirs, ours, rtol=1e-5, atol=1e-6, equal_nan=True
    )


@pytest.mark.parametrize("row", ROWS, ids=[row.theirs for row in ROWS])
def test_both_sides(row: Row) -> None:
    theirs, ours = eval(row.theirs, dict(ARRAYS)), eval(row.here, dict(OURS))
    if callable(theirs) and callable(ours) and not isinstance(theirs, np.generic | np.dtype):
        return
    assert is_same(theirs, ours) != row.remark.startswith("differs:"), (theirs, ours)


def names() -> dict[str, list[Row]]:
    """The rows by the first NumPy name that they contain, without ``np.``."""
    found: dict[str, list[Row]] = {}
    for row in ROWS:
        for name in re.findall(r"\bnp\.([a-z_A-Z0-9.]*[a-zA-Z0-9_])", row.theirs)[:1]:
            found.setdefault(name, []).append(row)
    return found


def words(code: str) -> set[str]:
    """The functions of defn, NumPy and math that a piece of code names."""
    return set(re.findall(r"\b(?:dn|np|math)\.[a-zA-Z_0-9.]*[a-zA-Z0-9_]", code))


def test_the_page_has_the_most_used_names() -> None:
    count = len(names())
    assert count >= 222
    here = [name for name in names() if is_here(name)]
    # The page's sentence that gives the counts.
    text = f"{count} names: `dn` has {len(here)}, the other {count - len(here)} have replacements"
    assert text in re.sub(r"\s+", " ", PAGE)


def is_here(name: str) -> bool:
    module, _, last = name.rpartition(".")
    owner = {"": dn, "linalg": dn.linalg, "random": dn.random, "fft": dn}[module]
    return last in owner.__all__


@pytest.mark.parametrize("name", sorted(names()))
def test_a_missing_name_says_what_to_write(name: str) -> None:
    module, _, last = name.rpartition(".")
    if is_here(name) or last in SAME:
        return
    owner = {"": dn, "linalg": dn.linalg, "random": dn.random, "fft": dn}[module]
    with pytest.raises(AttributeError, match="; use ") as caught:
        getattr(owner, last)
    hint = str(caught.value).partition("; use ")[2].partition("\n")[0]
    for word in words(hint):
        eval(word, {"dn": dn, "np": np, "math": math})
    # In at least one row, the page names a function that the hint names.
    assert any(words(row.here) & words(hint) or not words(hint) for row in names()[name]), hint


ATTRIBUTES = sorted(
    {
        found[1]
        for row in ROWS[ROWS.index(Row("m.T", "m.T", "")) :]
        if (found := re.search(r"\b[a-z](?:\[[^]]*\])*\.([a-zA-Z]\w*)", row.theirs))
    }
)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_missing_attribute_says_what_to_write(name: str) -> None:
    x = dn.tensor([[1.0]])
    if name in dir(x):
        return
    with pytest.raises(AttributeError, match=rf"{name}: tensors have no method .*; use"):
        getattr(x, name)
