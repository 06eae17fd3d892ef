"""How notebooks show tensors and stages: as tables and text in HTML, without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from defn import _core

if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

    from defn._core import Stage, Tensor

__all__ = ["attach"]


def _tensor_html(tensor: Tensor) -> str:
    """A tensor in HTML: a small one with at most two axes as a table, a traced one as its graph
    with a fold-out Mermaid diagram, any other one as text.
    """
    cells = _core.table_cells(tensor)
    if cells is not None:
        return _table(tensor, cells)
    return _graph_html(tensor) if _is_graph(tensor) else _printed(tensor)


def _stage_html(stage: Stage) -> str:
    """The graph of a stage as text, with a fold-out Mermaid diagram."""
    return _graph_html(stage)


def _escape(text: str) -> str:
    # Imported on use, because most programs are not notebooks.
    import html

    return html.escape(text)


def _is_graph(tensor: Tensor) -> bool:
    return _core.has_graph(tensor)


def _printed(value: object) -> str:
    return f"<pre>{_escape(repr(value))}</pre>"


def _graph_html(value: Tensor | Stage) -> str:
    picture = _escape(_core.graph_mermaid(value))
    return f"{_printed(value)}<details><summary>Mermaid</summary><pre>{picture}</pre></details>"


def _table(tensor: Tensor, cells: list[list[str]]) -> str:
    rank = tensor.rank
    name = tensor.names[-1] if rank else None
    row_name = tensor.names[0] if rank == 2 else None
    lines = []
    if rank:
        columns = "".join(f"<th>{index}</th>" for index in range(len(cells[0])))
        corner = _escape(" / ".join(n for n in (row_name, name) if n is not None))
        lines.append(f"<tr><th>{corner}</th>{columns}</tr>")
    for index, row in enumerate(cells):
        head = "" if rank == 0 else f"<th>{index if rank == 2 else ''}</th>"
        values = "".join(f"<td>{_escape(cell)}</td>" for cell in row)
        lines.append(f"<tr>{head}{values}</tr>")
    kind = _escape(_core.type_text(tensor))
    return f"<table><caption>{kind}</caption>{''.join(lines)}</table>"


def _bundle(
    value: Any, include: Container[str] | None = None, exclude: Container[str] | None = None
) -> dict[str, str]:
    """The value in all forms that a notebook can show: text, HTML, and Mermaid for graphs."""
    forms = {"text/plain": repr(value), "text/html": value._repr_html_()}
    if isinstance(value, _core.Stage) or _is_graph(value):
        forms["text/vnd.mermaid"] = _core.graph_mermaid(value)
    return {
        kind: text
        for kind, text in forms.items()
        if (include is None or kind in include) and (exclude is None or kind not in exclude)
    }


def attach() -> None:
    """Add the methods that notebooks look for to the classes."""
    for cls, shown in ((_core.Tensor, _tensor_html), (_core.Stage, _stage_html)):
        given: Any = cls
        given._repr_html_ = shown
        given._repr_mimebundle_ = _bundle
