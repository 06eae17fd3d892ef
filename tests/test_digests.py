"""Results of every row of the case table, beside those of the kernels before loop nests."""

from __future__ import annotations

import os

import pytest

from cases import Case
from digests import golden, row, rows
from support import on_xla

ROWS = rows()
BEFORE, CHANGED, HEAD = golden()
PARTS = 8

pytestmark = pytest.mark.skipif(
    on_xla() or os.environ.get("DEFN_SIMD") == "portable",
    reason="products need fused multiply-add: docs/order.md",
)


@pytest.mark.parametrize("part", range(PARTS))
def test_bits_are_those_of_before_or_changed_on_purpose(part: int) -> None:
    differ = []
    for case in ROWS[part::PARTS]:
        for dtype in case.dtypes:
            place = (str(case), dtype)
            want = CHANGED[place][1] if place in CHANGED else BEFORE[place]
            eager, compiled = row(case, dtype)
            if eager != want or compiled != want:
                differ.append(f"{case} {dtype}: {eager} eager, {compiled} compiled, not {want}")
    assert not differ, "\n".join(differ)


def test_the_golden_file_has_what_there_is_and_reasons() -> None:
    assert set(BEFORE) == {(str(case), dtype) for case in ROWS for dtype in case.dtypes}
    assert set(CHANGED) <= set(BEFORE)
    assert all(key != BEFORE[place] for place, (_, key) in CHANGED.items())
    told = {line.split(": ")[0] for line in HEAD.splitlines() if not line.startswith("Digests")}
    assert {reason for reason, _ in CHANGED.values()} == told


def test_a_wrong_bit_has_another_digest() -> None:
    case: Case = next(case for case in ROWS if str(case) == "exp")
    other: Case = next(case for case in ROWS if str(case) == "expm1")
    assert row(case, "f32") != row(other, "f32")
