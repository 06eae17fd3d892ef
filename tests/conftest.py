"""Profiles of generated examples, the golden files' option, and the check of every graph."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest

import defn as dn
from defn import _core

hypothesis.settings.register_profile("fast", max_examples=25, deadline=None)
hypothesis.settings.register_profile("slow", max_examples=500, deadline=None)
hypothesis.settings.load_profile("fast")


# Every graph that a test traces is verified, and its text parses back to an equal graph.
_core.verify_graphs(True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write the golden files anew")


@pytest.fixture(scope="session")
def bless(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--bless")


@pytest.fixture(autouse=True)
def options_as_before() -> Iterator[None]:
    """What a test sets of the default options does not reach the next one."""
    here, everywhere = dn.default_options(), dn.global_default_options()
    yield
    dn.default_options(here)
    dn.global_default_options(everywhere)
