"""Rows in bfloat16, which neither NumPy nor Arrow has, against torch."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from diagatt import DiagAttRegressor, RaggedRows, simulate
from diagatt.stores import RowStore, StoreError
from diagatt.stores.row_types import rounded, row_type, widened

OFFSETS = np.arange(0, 201, 10)


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(size=(200, 64)).astype(np.float32)


def test_bfloat16_takes_half_the_disk_and_is_what_torch_makes_of_it(tmp_path, values):
    store = RowStore.from_rows(tmp_path / "s", RaggedRows(values, OFFSETS), dtype="bfloat16")
    expected = torch.from_numpy(values).bfloat16().float().numpy()
    assert store.dtype == np.float32
    assert store.nbytes < 200 * 64 * 2 + 5000
    assert json.loads((store.path / "store.json").read_text())["format"] == 5
    np.testing.assert_array_equal(store.to_rows().values, expected)
    np.testing.assert_array_equal(store.part(0).X.values, expected)
    np.testing.assert_array_equal(store.take([7]).X.values, expected[70:80])
    digest = store.digest
    (store.path / "store.json").unlink()
    assert RowStore.index(store.path).digest == digest


@pytest.mark.parametrize(
    ("wrong", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (1e39, "too large")]
)
def test_what_bfloat16_cannot_hold_is_refused(tmp_path, values, wrong, what):
    rows = values.astype(np.float64)
    rows[13, 5] = wrong
    samples = (rows[a : a + 10] for a in OFFSETS[:-1])
    with pytest.raises(StoreError, match=rf"sample 1.* {what}|sample 1, row 3.*{what}"):
        RowStore.write(tmp_path / "s", samples, dtype="bfloat16")


def test_all_bfloat16_numbers_survive():
    bits = np.arange(2**16, dtype=np.uint16)
    numbers = widened(bits)
    expected = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(numbers, expected)
    finite = np.isfinite(numbers)
    np.testing.assert_array_equal(rounded(numbers[finite], "bfloat16")[0], bits[finite])


def test_memory_is_used_again_only_when_nothing_stands_on_it():
    first = widened(np.full((40, 5), 3, np.float16))
    view, tensor = first[10:12], torch.from_numpy(first)[0]
    del first
    second = widened(np.full((40, 5), 4, np.float16))
    assert view.max() == 3
    assert tensor.max() == 3
    place = second.ctypes.data
    del second
    assert widened(np.full((40, 5), 5, np.float16)).ctypes.data == place


def test_sixteen_bits_that_nobody_calls_bfloat16_are_foreign(tmp_path, values):
    store = RowStore.from_rows(tmp_path / "s", RaggedRows(values, OFFSETS), dtype="bfloat16")
    (shard,) = store.path.glob("*.arrow")
    with pa.ipc.open_file(shard) as file:
        batch = file.get_batch(0).replace_schema_metadata(None)
    (store.path / "store.json").unlink()
    with pa.ipc.new_file(shard, batch.schema) as file:
        file.write_batch(batch)
    with pytest.raises(StoreError, match="not said to be bfloat16"):
        RowStore.index(store.path)


def test_types_are_given_by_name_or_as_dtypes():
    given = [np.float16, "float64", torch.bfloat16, torch.float32, "bfloat16"]
    assert [row_type(d) for d in given] == ["float16", "float64", "bfloat16", "float32", "bfloat16"]
    for wrong in ("int8", "no type"):
        with pytest.raises(ValueError, match="dtype must be one of float32"):
            row_type(wrong)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_model_reads_a_half_store_in_passes_as_it_reads_memory(tmp_path, dtype):
    data = simulate.regression(150, p=8, d=4, seed=0)
    store = RowStore.from_rows(tmp_path / "s", data.X, data.y, dtype=dtype, shard_mib=0.004)
    assert len(store.shards) > 1
    rows = store.to_rows()
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(rows, data.y)
    np.testing.assert_allclose(model.predict(store), model.predict(rows), rtol=1e-6)
    np.testing.assert_array_equal(model.locate(store), model.locate(rows))
    pairs = zip(model.attention(store), model.attention(rows), strict=True)
    for own, expected in pairs:
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-7)
