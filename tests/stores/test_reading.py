"""Samples in memory and in a store give the same answers."""

import numpy as np
import pytest

from diagatt import RaggedRows
from diagatt.stores import RowStore
from diagatt.stores.reading import opened, row_ids, row_lengths, row_parts

LENGTHS = [2, 5, 1, 3, 4]


@pytest.mark.parametrize("named", [True, False])
def test_a_store_of_several_parts_reads_like_memory(tmp_path, named):
    draw = np.random.default_rng(0)
    values, offsets = draw.normal(size=(sum(LENGTHS), 3)), np.cumsum([0, *LENGTHS])
    names = [f"row {j}" for j in range(len(values))] if named else None
    rows = RaggedRows(values, offsets, row_ids=names)
    kept = {"dtype": "float64", "shard_mib": 1e-4}
    store = RowStore.from_rows(tmp_path / "store", rows, np.zeros(len(rows)), **kept)
    assert len(list(row_parts(store))) > 1
    np.testing.assert_array_equal(row_lengths(store), LENGTHS)
    np.testing.assert_array_equal(row_lengths(opened(rows)), LENGTHS)
    read = np.concatenate([part.values for part in row_parts(store)])
    np.testing.assert_array_equal(read, values)
    if named:
        np.testing.assert_array_equal(row_ids(store), row_ids(rows))
    else:
        assert row_ids(store) is row_ids(rows) is None
