"""What holds for every test and every example in a docstring."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _no_open_figures():
    """Close what was left open: matplotlib warns whoever opens the twenty-first figure."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
