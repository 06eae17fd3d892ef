"""Tests that the compiler of ``examples/numpy_compiler`` does not pass, each with the reason."""

from __future__ import annotations

_NAMES = "the test reads which compiler is named, which is another one here"
_DONATES = "its step gives away an argument, which is refused here"

EXCEPTIONS: dict[str, str] = {
    "test_syntax_table.py::test_refused[a definition that is a generator]": (
        "the innermost line of the user's is that of the compiler, which calls the definition"
    ),
    "test_jit.py::test_compilers": _NAMES,
    "test_jit.py::test_a_hit_runs_no_python": "its programs are Python",
    "test_syntax_limits.py::test_control_flow_is_nested_to_a_limit[looping]": (
        "Python takes no source with more than twenty loops inside one another"
    ),
    "test_explain.py::test_checks_and_default_options": "it makes no checks, and refuses them",
    "test_examples.py::test_gpt_learns_a_text_and_writes_it": _DONATES,
    "test_examples.py::test_gpt_goes_on_from_a_checkpoint": _DONATES,
    "test_examples.py::test_digits_by_convolutions": _DONATES,
    "test_examples.py::test_physics_informed_network": _DONATES,
    "test_examples.py::test_they_draw_pictures[physics_informed-options3]": _DONATES,
    "test_examples.py::test_the_picture_of_all": _DONATES,
    "test_optim.py::test_states_are_containers_that_a_step_may_donate": _DONATES,
}
"""By the test's name, without its parameters where all of them are meant."""
