import pytest

from diagatt.bench import METHODS
from diagatt.bench.confined import warm_up


@pytest.fixture(autouse=True)
def methods():
    """Take back what a test registers."""
    before = dict(METHODS)
    yield METHODS
    METHODS.clear()
    METHODS.update(before)
    warm_up.cache_clear()
