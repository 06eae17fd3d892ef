"""Tests that the compiler of ``examples/numpy_compiler`` does not pass, each with the reason."""

from __future__ import annotations

_BACKENDS = "its programs compute on NumPy arrays, and never ask the arguments' backend"
_NAMES = "the test reads which compiler is named, which is another one here"

EXCEPTIONS: dict[str, str] = {
    "test_syntax_table.py::test_refused[a definition that is a generator]": (
        "the innermost line of the user's is that of the compiler, which calls the definition"
    ),
    "test_calls.py::test_a_backend_that_knows_the_tag_runs_its_kernel": _BACKENDS,
    "test_calls.py::test_one_program_runs_everywhere": _BACKENDS,
    "test_calls.py::test_the_default_gets_the_tag_and_captures_tensors": _BACKENDS,
    "test_calls.py::test_blocks_in_loops_branches_and_blocks": _BACKENDS,
    "test_calls.py::test_what_a_kernel_raises_stops_the_run": _BACKENDS,
    "test_calls.py::test_optional_runs_the_callback_of_its_name": _BACKENDS,
    "test_calls.py::test_a_calls_result_is_where_its_value_is": _BACKENDS,
    "test_jit.py::test_compilers": _NAMES,
    "test_jit.py::test_default_options": _NAMES,
    "test_jit.py::test_options_context": _NAMES,
    "test_jit.py::test_a_hit_runs_no_python": "its programs are Python",
    "test_syntax_limits.py::test_control_flow_is_nested_to_a_limit[looping]": (
        "Python takes no source with more than twenty loops inside one another"
    ),
    "test_explain.py::test_checks_and_default_options": "it makes no checks, and refuses them",
}
"""By the test's name, without its parameters where all of them are meant."""
