"""What the examples in docstrings and in the README find in their namespace."""

import pytest


@pytest.fixture(autouse=True)
def _names(doctest_namespace):
    import numpy as np

    import defn as dn

    doctest_namespace["dn"] = dn
    doctest_namespace["np"] = np
