"""What is not asked where XLA computes is little, and the plugin refuses it."""

from __future__ import annotations

import pathlib
import re

import pytest

from cases.dtypes import ALL
from pjrt_exceptions import EXCEPTIONS, FILES, PARTS

# The greatest share of the rows that may be exceptions.
SHARE = 0.03
# The least number of rows in a part.
LEAST = {
    "operations": 3_000,
    "language": 3_000,
    "derivatives": 300,
    "training": 400,
    "generated calls": 500,
}
CODES = "CANCELLED UNKNOWN INVALID_ARGUMENT NOT_FOUND UNIMPLEMENTED INTERNAL FAILED_PRECONDITION"


def name(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/")


def file_of(item: pytest.Item) -> str:
    return name(item).split("::")[0]


@pytest.mark.parametrize("row", EXCEPTIONS)
def test_reasons_quote_the_plugin(row: str) -> None:
    reason = EXCEPTIONS[row]
    assert re.search(rf"\b({CODES.replace(' ', '|')}): \S", reason), reason
    assert any(dtype in row or dtype in reason for dtype in ALL), "no type is refused"


@pytest.mark.parametrize("part", PARTS)
def test_exceptions_are_few(part: str, request: pytest.FixtureRequest) -> None:
    """In each part, and so of all."""
    rows = [row for row in request.session.items if file_of(row) in PARTS[part]]
    files = {file_of(row) for row in rows}
    if request.config.getoption("--compiler") != "pjrt" or files != set(PARTS[part]):
        # The share is counted over the rows of all files, with XLA as the compiler.
        return
    exceptions = {key for key in EXCEPTIONS if key.split("::")[0] in PARTS[part]}
    excepted = [row for row in rows if {name(row), name(row).split("[")[0]} & exceptions]
    named = {key for row in excepted for key in (name(row), name(row).split("[")[0])}
    assert named.issuperset(exceptions), "names of no row"
    assert len(excepted) <= SHARE * len(rows), f"{len(excepted)} of {len(rows)} rows"
    # No other rows are missing: a row that skips itself here would not be counted.
    assert len(rows) > LEAST[part]


def test_each_part_has_a_least_number() -> None:
    assert set(LEAST) == set(PARTS)


def test_files_are_there() -> None:
    here = pathlib.Path(__file__).parent
    assert [file for file in FILES if not (here / file).is_file()] == []
