"""A plugin of pytest that runs SciPy's own tests on the arrays of ``defn.array_api``.

SciPy's tests take the fixture ``xp``, which gives them the namespace of each library that SciPy
knows. Here it gives ours instead:

    PYTHONPATH=tests python -m pytest -c /dev/null -p scipy_backend --pyargs \
        scipy.special.tests.test_logsumexp

Without ``-c`` the settings of this repository apply, which make errors of warnings.

Nothing of SciPy is replaced but that fixture. Its tests compare the namespaces, the data types and
the shapes of arrays too, as for any library that it does not know.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

# SciPy reads it once, when it is imported. NumPy alone is asked for, so that no other is loaded.
os.environ["SCIPY_ARRAY_API"] = '["numpy"]'

from scipy import conftest
from scipy._lib._array_api import array_namespace, default_xp

import defn.array_api

if TYPE_CHECKING:
    from collections.abc import Iterator

# Tests that run for NumPy only, or that name the libraries they are skipped for, look it up here.
conftest.xp_known_backends.add(defn.array_api.__name__)


@pytest.fixture(
    params=[pytest.param(defn.array_api, id="defn", marks=pytest.mark.array_api_backends)]
)
def xp(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The namespace, unless the test is for other libraries."""
    conftest.skip_or_xfail_xp_backends(request, "skip")
    conftest.skip_or_xfail_xp_backends(request, "xfail")
    namespace = array_namespace(request.param.empty(0))
    with default_xp(namespace):
        yield namespace


# SciPy's `conftest.py` is read as a module of this name, and its fixture goes before a plugin's.
conftest.xp = xp
