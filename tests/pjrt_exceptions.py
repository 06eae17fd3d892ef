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
    "test_indexing.py",
    "test_at.py",
    "test_tensor.py",
    "test_vectorize.py",
    "test_vectorized_axes.py",
    "test_vmap.py",
)

FILES_OF_THE_LANGUAGE = (
    "test_pjrt_exceptions.py",
    "test_jit.py",
    "test_calls.py",
    "test_definitions.py",
    "test_containers.py",
    "test_control.py",
    "test_syntax.py",
    "test_syntax_functions.py",
    "test_syntax_limits.py",
    "test_syntax_refused.py",
    "test_syntax_table.py",
    "test_hooks.py",
    "test_hook_order.py",
    "test_streams.py",
    "test_grad.py",
    "test_grad_control.py",
    "test_explain.py",
    "test_surroundings.py",
    "test_storms.py",
    "test_nodes.py",
    "test_compilers.py",
    "test_docs.py",
    "test_examples.py",
    "test_errors.py",
    "test_places.py",
    "test_formats.py",
    "test_dlpack.py",
    "test_backends.py",
    "test_threads.py",
    "test_versions.py",
    "test_about.py",
    "test_from_nx.py",
    "test_pjrt.py",
)

FILES_OF_DERIVATIVES = (
    "test_pjrt_exceptions.py",
    "test_grad_products.py",
    "test_checkpoint.py",
    "test_snapshots.py",
    "test_implicit.py",
    "test_solvers.py",
    "test_vmap_axes.py",
)

FILES_OF_TRAINING = (
    "test_pjrt_exceptions.py",
    "test_nn.py",
    "test_attention.py",
    "test_optim.py",
    "test_data.py",
)

FILES_OF_GENERATED_CALLS = (
    "test_pjrt_exceptions.py",
    "test_catalogue.py",
    "test_backends_agree.py",
    "test_properties.py",
)

PARTS = {
    "operations": FILES_OF_OPERATIONS,
    "language": FILES_OF_THE_LANGUAGE,
    "derivatives": FILES_OF_DERIVATIVES,
    "training": FILES_OF_TRAINING,
    "generated calls": FILES_OF_GENERATED_CALLS,
}
"""What ``./dev test`` runs in processes of its own."""

FILES = (
    FILES_OF_OPERATIONS
    + FILES_OF_THE_LANGUAGE
    + FILES_OF_DERIVATIVES
    + FILES_OF_TRAINING
    + FILES_OF_GENERATED_CALLS
)
"""The files that ``./dev test`` runs with "pjrt" as the compiler and as the backend."""
