"""Tests that do not pass where XLA computes, each with the plugin's own words for why.

Two tables, by what is tested: the rows of the operations, and those of the language.
"""

from __future__ import annotations

OPERATIONS: dict[str, str] = {}
"""Of the tests of operations."""

LANGUAGE: dict[str, str] = {}
"""Of the tests of the language."""

EXCEPTIONS = OPERATIONS | LANGUAGE
"""By the test's name, without its parameters where all of them are meant."""
