"""A store of samples, and the same samples in memory."""

import numpy as np
import pytest

from diagatt import simulate
from diagatt.estimators import containers
from tests.solvers.stores import D, N, P, stored


@pytest.fixture
def nothing_is_read_whole(monkeypatch):
    monkeypatch.setattr(containers, "READ_WHOLE", 0)


@pytest.fixture(scope="module")
def data():
    drawn = simulate.regression(N, p=P, d=D, seed=1)
    return drawn.X.astype(np.float64), drawn.y


@pytest.fixture(scope="module")
def store(data, tmp_path_factory):
    return stored(tmp_path_factory.mktemp("store"), *data)
