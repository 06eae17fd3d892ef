"""Tensors and stages as HTML, for notebooks."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import defn as dn


class Cells(HTMLParser):
    """The texts of a table's cells, row by row, and the tags that occur."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.heads: list[list[str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
            self.heads.append([])
        if tag in ("td", "th"):
            (self.rows if tag == "td" else self.heads)[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            (self.rows if self.open[-1] == "td" else self.heads)[-1][-1] += data


def read(value: Any) -> Cells:
    cells = Cells()
    cells.feed(value._repr_html_())
    cells.close()
    assert cells.open == []
    assert not set(cells.tags) & {"script", "svg", "img", "link", "style"}
    return cells


def test_small_tensors_are_tables() -> None:
    x = dn.tensor([[1.5, float("nan")], [float("-inf"), 2.0]], names=["a<b", None])
    cells = read(x)
    assert cells.rows == [[], ["1.5", "NaN"], ["-Inf", "2.0"]]
    assert cells.heads == [["a<b", "0", "1"], ["0"], ["1"]]
    assert cells.texts[0] == "f32[a<b: 2][2]"
    assert read(dn.tensor([1, 2, 3])).rows == [[], ["1", "2", "3"]]
    assert read(dn.tensor(1 + 2j)).rows == [["1.0+2.0i"]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: dn.iota((100,)),
        lambda: dn.iota((2, 2, 2)),
        lambda: dn.tensor([], dtype="f32"),
        lambda: dn.template((2,), "f32"),
        lambda: dn.vectorize(dn.iota((2, 2)), "x"),
    ],
)
def test_others_are_shown_as_they_print(make: Any) -> None:
    value = make()
    cells = read(value)
    assert cells.tags == ["pre"]
    assert "".join(cells.texts) == repr(value)


def test_a_freed_tensor_is_shown() -> None:
    x = dn.tensor([1.0, 2.0])
    dn.backend_deallocate(x)
    assert read(x).tags == ["pre"]


def test_graphs_are_shown_with_a_picture() -> None:
    expr = dn.debug_expr(lambda x: dn.mark(dn.sin(x), "<b>"))(1.0)
    stages = dn.graph.split(expr, dn.graph.marks())
    for value in (expr, stages[0]):
        cells = read(value)
        assert cells.tags == ["pre", "details", "summary", "pre"]
        assert cells.texts == [repr(value), "Mermaid", dn.graph.mermaid(value)]
        bundle: Any = value
        assert set(bundle._repr_mimebundle_()) == {"text/plain", "text/html", "text/vnd.mermaid"}
        assert set(bundle._repr_mimebundle_(exclude=["text/html"])) == {
            "text/plain",
            "text/vnd.mermaid",
        }
    value = dn.tensor(1.0)
    bundle = value
    assert bundle._repr_mimebundle_(include=["text/plain"]) == {"text/plain": repr(value)}
