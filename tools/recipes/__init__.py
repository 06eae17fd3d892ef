"""The recipe for each kind of op: the places of the repository that a new op adds a few lines to.

A recipe adds an example op, so that the recipe is tested: `tools/add_op.py` applies it, and the
table in CONTRIBUTING.md is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Text that is inserted in front of an anchor, a text that the file has exactly once."""

    path: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Place:
    """A place: what it is called, its edits, and what fails while it is missing."""

    name: str
    edits: tuple[Edit, ...]
    demanded_by: str


@dataclass(frozen=True)
class Recipe:
    """The places of a kind of op, and the greatest number of them that the project allows."""

    kind: str
    example: str
    limit: int
    places: tuple[Place, ...]


YOU = "you begin here"
COMPILER = "compiler"


def place(name: str, demanded_by: str, *edits: tuple[str, str, str]) -> Place:
    """A place with edits as tuples of path, anchor and text."""
    return Place(name, tuple(Edit(*edit) for edit in edits), demanded_by)
