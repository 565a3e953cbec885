"""Small matrices: one BLAS thread is faster than several that wait for each other."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def one_blas_thread():
    with threadpool_limits(1):
        yield
