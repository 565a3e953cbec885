import shutil

import numpy as np
import pytest

from diagatt import RaggedRows
from diagatt.stores import RowStore


@pytest.fixture(scope="session")
def samples():
    """Rows, responses, weights, covariates and texts of 200 samples, all different."""
    rng = np.random.default_rng(0)
    X = RaggedRows.from_samples(
        [rng.normal(size=(p, 5)).astype(np.float32) for p in rng.integers(2, 12, 200)]
    )
    return {
        "rows": X,
        "y": rng.normal(size=200),
        "weights": rng.uniform(size=200),
        "covariates": rng.normal(size=(200, 3)),
        "text": [f"text № {i}" for i in range(200)],
    }


@pytest.fixture(scope="session")
def written(tmp_path_factory, samples):
    """These samples in about ten shards."""
    path = tmp_path_factory.mktemp("stores") / "store"
    found = RowStore.from_rows(path, **samples, shard_mib=0.005)
    assert 8 <= len(found.shards) <= 14
    return path


@pytest.fixture
def store(tmp_path, written):
    """A copy that a test may damage."""
    return RowStore(shutil.copytree(written, tmp_path / "store"))
