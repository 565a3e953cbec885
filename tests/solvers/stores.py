"""Stores of several shards, and how their fits are compared with fits in memory."""

import numpy as np
import pytest

from diagatt import RowStore

N, P, D = 700, 8, 4


def stored(folder, X, y, shards=7, memory=2.0, **columns):
    """A store of float64 rows in about so many shards."""
    size = X.nbytes / 2**20 / shards
    path = folder / "store"
    RowStore.from_rows(path, X, y, dtype="float64", shard_mib=size, **columns)
    return RowStore(path, memory=memory)


def assert_same(one, other, tolerance=1e-9):
    """All parameters agree, relative to the largest entry of each."""
    for name in ("query_key_", "value_", "intercept_", "covariate_coef_", "value_se_"):
        a, b = (getattr(model, name) for model in (one, other))
        assert (a is None) == (b is None)
        if a is not None:
            scale = np.abs(a).max(initial=0) or 1.0
            np.testing.assert_allclose(b, a, rtol=0, atol=tolerance * scale, err_msg=name)
    assert one.solver_ == other.solver_
    np.testing.assert_allclose(other.unevenness_, one.unevenness_, rtol=1e-6)
    for a, b in zip(one.criteria_, other.criteria_, strict=True):
        assert a == pytest.approx(b, rel=1e-6)
