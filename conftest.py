"""What holds for every test and every example in a docstring."""

import sys

import pytest
from hypothesis import HealthCheck, settings

# No example has a deadline: a busy machine is not a wrong answer. Examples are those of every run.
settings.register_profile(
    "everywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everywhere")


@pytest.fixture(autouse=True)
def _no_open_figures():
    """Close what was left open: matplotlib warns when the twenty-first figure is opened."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
