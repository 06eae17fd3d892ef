"""What runs where XLA computes, and what does not pass there, with the plugin's own words for why.

Both in two parts, by what is tested: the operations, and the language.
"""

from __future__ import annotations

OPERATIONS: dict[str, str] = {}
"""Tests of operations that do not pass."""

LANGUAGE: dict[str, str] = {}
"""Tests of the language that do not pass."""

EXCEPTIONS = OPERATIONS | LANGUAGE
"""By the test's name, without its parameters where all of them are meant.

Only where the plugin refuses a type of elements: the reason quotes its error, from the code on,
such as ``UNIMPLEMENTED: ...``.
"""

FILES_OF_OPERATIONS = (
    "test_pjrt_exceptions.py",
    "test_ops.py",
    "test_linalg.py",
    "test_windows.py",
    "test_comparisons.py",
    "test_complex_ends.py",
    "test_random.py",
    "test_random_vectors.py",
    "test_constants.py",
    "test_checks.py",
    "test_positions.py",
    "test_properties.py",
    "test_tensor.py",
    "test_vectorize.py",
    "test_vectorized_axes.py",
    "test_vmap.py",
)

FILES_OF_THE_LANGUAGE: tuple[str, ...] = ()

FILES = FILES_OF_OPERATIONS + FILES_OF_THE_LANGUAGE
"""The files that ``./dev test`` runs with "pjrt" as the compiler and as the backend."""
