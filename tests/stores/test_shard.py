"""One shard: on the mapped file; missing, truncated, foreign or damaged, it is named."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from diagatt.stores import RowStore, StoreError
from tests.stores.arrow_files import batch_of, write_batches

MAPS = Path("/proc/self/maps")
linux = pytest.mark.skipif(not MAPS.exists(), reason="the system does not list its maps")


def read_all(path):
    store = RowStore(path)
    store.responses()
    return list(store.parts())


@pytest.fixture
def victim(store):
    return store.path / store.shards[3].file


@linux
def test_rows_stand_on_the_mapped_file(store):
    part = store.part(2)
    mapped = [
        tuple(int(end, 16) for end in line.split()[0].split("-"))
        for line in MAPS.read_text().splitlines()
        if line.endswith(store.shards[2].file)
    ]
    for array in (part.X.values, part.X.offsets, part.y, part.weights, part.covariates):
        start = array.__array_interface__["data"][0]
        assert any(low <= start and start + array.nbytes <= high for low, high in mapped)
        assert not array.flags.writeable


@linux
def test_a_dropped_part_is_unmapped(store):
    part = store.part(2)
    values = part.X.values
    del part
    assert store.shards[2].file in MAPS.read_text()
    assert np.isfinite(values).all()
    del values
    assert store.shards[2].file not in MAPS.read_text()


# ---------------------------------------------------------------------- damage


def test_missing(store, victim):
    victim.unlink()
    with pytest.raises(StoreError, match=f"shard {victim.name} is missing in .*restore it"):
        RowStore(store.path)


@pytest.mark.parametrize("kept", [0, 1, 6, 500, -1])
def test_truncated(store, victim, kept):
    victim.write_bytes(victim.read_bytes()[:kept])
    said = "is an empty file" if kept == 0 else "truncated"
    with pytest.raises(StoreError, match=f"shard {victim.name} in .*{said}"):
        RowStore(store.path)


def test_truncated_after_opening(store, victim):
    opened = RowStore(store.path)
    victim.write_bytes(victim.read_bytes()[:-100])
    with pytest.raises(StoreError, match=f"{victim.name} .*truncated: it has"):
        list(opened.parts())


def test_removed_after_opening(store, victim):
    list(store.parts())
    victim.unlink()
    with pytest.raises(StoreError, match=f"{victim.name} is missing"):
        list(store.parts())


def test_exchanged_after_it_was_verified(store, victim):
    """Another file of the same size under the same name is verified again."""
    list(store.parts())
    content = bytearray(victim.read_bytes())
    victim.unlink()
    content[len(content) // 2] ^= 4
    victim.write_bytes(content)
    with pytest.raises(StoreError, match=f"{victim.name} .*checksum"):
        store.part(3)


@pytest.mark.parametrize("padded", [False, True], ids=["other size", "same size"])
@pytest.mark.parametrize("kind", ["text", "parquet", "arrow"])
def test_foreign(store, victim, kind, padded):
    size = victim.stat().st_size
    table = pa.table({"a": [1, 2, 3]})
    if kind == "text":
        victim.write_bytes(b"not a shard")
    elif kind == "parquet":
        parquet.write_table(table, victim)
    else:
        write_batches(victim, table.to_batches())
    if padded:
        victim.write_bytes(victim.read_bytes()[:size].ljust(size, b"\0"))
    with pytest.raises(StoreError, match=f"shard {victim.name} in .*foreign"):
        read_all(store.path)


def test_every_flipped_bit_is_found(store, victim):
    rng = np.random.default_rng(0)
    content = victim.read_bytes()
    start, stop = store.shards[3].values
    for position in [*rng.integers(0, len(content), 60), 0, start, stop, len(content) - 1]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.integers(8)
        victim.write_bytes(damaged)
        opened = RowStore(store.path)
        with pytest.raises(StoreError, match=victim.name):
            opened.part(3)
        if start <= position < stop:
            opened.responses()  # stand elsewhere and are sound
        else:
            with pytest.raises(StoreError, match=victim.name):
                opened.responses()
        with pytest.raises(StoreError, match=victim.name):
            opened.verify()


def test_swapped_for_a_shard_of_other_features(store, victim, tmp_path):
    other = RowStore.from_rows(tmp_path / "other", np.ones((4, 3, 6)), np.ones(4))
    shutil.copy(other.path / other.shards[0].file, victim)
    with pytest.raises(StoreError, match=f"{victim.name} in .* has 6 features, the store has 5"):
        RowStore(store.path)


def test_swapped_for_a_shard_of_the_same_store(store, victim):
    shutil.copy(store.path / store.shards[4].file, victim)
    with pytest.raises(StoreError, match=f"{victim.name} .*(exchanged|checksum)"):
        read_all(store.path)


def test_empty_shard(store, victim):
    batch = batch_of(victim)
    write_batches(victim, [batch.slice(0, 0)])
    with pytest.raises(StoreError, match=f"{victim.name} in .* holds no sample"):
        RowStore(store.path)
