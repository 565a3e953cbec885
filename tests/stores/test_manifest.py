"""The manifest: statistics, damage, and shards that several writers put into one folder."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

from diagatt.stores import RowStore, StoreError
from diagatt.stores.manifest import FORMAT
from tests.stores.arrow_files import batch_of, write_batches


def test_statistics_are_those_of_the_samples(store, samples):
    for k, info in enumerate(store.shards):
        mine = slice(store.starts[k], store.starts[k] + info.n_samples)
        lengths, y = samples["rows"].lengths[mine], samples["y"][mine]
        assert (info.n_rows, info.shortest, info.longest) == (
            lengths.sum(),
            lengths.min(),
            lengths.max(),
        )
        assert info.shortest_sample == lengths.argmin()
        found = [info.weight_sum, info.y_min, info.y_max, info.y_sum, info.y_squares]
        weights = samples["weights"][mine].sum()
        expected = [weights, y.min(), y.max(), y.sum(), (y**2).sum()]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert info.bytes == (store.path / info.file).stat().st_size


# ---------------------------------------------------------------------- damage


def test_every_flipped_bit_of_the_manifest_is_found_or_means_the_same(tmp_path, samples):
    store = RowStore.from_rows(tmp_path / "s", samples["rows"], samples["y"])
    path = store.path / "store.json"
    content, harmless = path.read_bytes(), 0
    rng = np.random.default_rng(1)
    for position in range(0, len(content), 2):
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            found = RowStore(store.path)
        except StoreError:
            continue
        harmless += 1  # such as 1e-5 and 1E-5
        assert found.shards == store.shards
        assert found.digest == store.digest
    assert harmless < 5


def test_newer_version(store):
    manifest = store.path / "store.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "format": FORMAT + 1}))
    with pytest.raises(StoreError, match=r"written by a newer version .*upgrade"):
        RowStore(store.path)


def test_a_manifest_that_points_elsewhere(store):
    manifest = store.path / "store.json"
    text = manifest.read_text().replace(store.shards[0].file, "../elsewhere.arrow")
    manifest.write_text(text)
    with pytest.raises(StoreError, match="elsewhere"):
        RowStore(store.path)


def test_not_a_store(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        RowStore(tmp_path / "nothing")
    with pytest.raises(StoreError, match=r"no store\.json.*RowStore\.index"):
        RowStore(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is not a folder"):
        RowStore(tmp_path / "file")
    (tmp_path / "store.json").write_text("[1]")
    with pytest.raises(StoreError, match="damaged or foreign"):
        RowStore(tmp_path)


# ---------------------------------------------------------------------- a folder of shards


@pytest.fixture
def shards(tmp_path, samples):
    """Shards of two stores in one folder, as two machines write them."""
    folder = tmp_path / "together"
    folder.mkdir()
    for name, numbers in (("a", slice(0, 120)), ("b", slice(120, 200))):
        own = {key: values[numbers] for key, values in samples.items()}
        part = RowStore.from_rows(tmp_path / name, **own, shard_mib=0.01)
        for info in part.shards:
            shutil.copy(part.path / info.file, folder / f"{name}-{info.file}")
    return folder


def test_index_of_several_writers(shards, samples):
    store = RowStore.index(shards)
    assert store.to_rows() == samples["rows"]
    np.testing.assert_array_equal(store.responses(), samples["y"])
    store.verify()
    with pytest.raises(StoreError, match=r"has a store\.json"):
        RowStore.index(shards)


def changed(batch, **columns):
    """The batch with other columns."""
    arrays = {name: batch.column(name) for name in batch.schema.names}
    return pa.record_batch({**arrays, **columns})


def with_rows(batch, **edits):
    """The batch with a number of its rows changed."""
    rows = batch.column("rows")
    flat = rows.values.values.to_numpy().copy()
    flat[17] = edits["value"]
    inner = pa.FixedSizeListArray.from_arrays(pa.array(flat), 5)
    return changed(batch, rows=pa.LargeListArray.from_arrays(rows.offsets, inner))


def without_sample(batch):
    offsets = batch.column("rows").offsets.to_numpy().copy()
    offsets[3] = offsets[2]
    rows = pa.LargeListArray.from_arrays(pa.array(offsets), batch.column("rows").values)
    return changed(batch, rows=rows)


def nulls(batch):
    y = batch.column("y").to_pylist()
    return changed(batch, y=pa.array([None, *y[1:]], pa.float64()))


BAD = {
    "NaN": (lambda b: with_rows(b, value=np.nan), r"sample \d+, row \d+ contains NaN"),
    "infinity": (lambda b: with_rows(b, value=np.inf), "contains infinity"),
    "no rows": (without_sample, "sample 2 has no rows"),
    "null": (nulls, "'y' has missing values"),
    "negative weight": (
        lambda b: changed(b, weight=pa.array(-np.ones(len(b)))),
        "sample 0: weight is -1.0",
    ),
    "other type": (lambda b: changed(b, y=pa.array([1] * len(b))), "foreign: it holds"),
    "date": (
        lambda b: changed(b, y=pa.array([0] * len(b), pa.date32())),
        "'y' has type date32",
    ),
    "fewer columns": (lambda b: b.drop_columns(["text"]), "foreign: it holds"),
    "no sample": (lambda b: b.slice(0, 0), "holds no sample"),
    "foreign": (lambda b: pa.record_batch({"a": [1]}), "foreign: its columns are"),
    "list": (
        lambda b: changed(b, rows=pa.array([[[1.0]]] * len(b))),
        r"not large_list<fixed_size_list",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_index_refuses_by_name(shards, what):
    spoil, said = BAD[what]
    victim = sorted(shards.glob("*.arrow"))[2]
    batch = spoil(batch_of(victim))
    victim.unlink()
    write_batches(victim, [batch])
    with pytest.raises(StoreError, match=f"shard {victim.name} in .*({said})"):
        RowStore.index(shards)
    assert not (shards / "store.json").exists()


def test_index_refuses_other_features(shards, tmp_path):
    other = RowStore.from_rows(tmp_path / "other", np.ones((4, 3, 6)))
    shutil.copy(other.path / other.shards[0].file, shards / "c.arrow")
    with pytest.raises(StoreError, match=r"shard c\.arrow in .* has 6 features, the store has 5"):
        RowStore.index(shards)


def test_index_refuses_several_batches_and_compression(shards):
    victim = sorted(shards.glob("*.arrow"))[2]
    batch = batch_of(victim)
    victim.unlink()
    write_batches(victim, [batch, batch])
    with pytest.raises(StoreError, match=f"{victim.name} .* has 2 record batches"):
        RowStore.index(shards)
    write_batches(victim, [batch], options=ipc.IpcWriteOptions(compression="zstd"))
    with pytest.raises(StoreError, match=f"{victim.name} .* is compressed"):
        RowStore.index(shards)


def test_index_of_nothing(tmp_path):
    with pytest.raises(StoreError, match="no shard"):
        RowStore.index(tmp_path)
    with pytest.raises(StoreError, match="not a folder"):
        RowStore.index(tmp_path / "nothing")
