"""What is written is what is read; whatever happens, a store is whole or not there."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diagatt import RaggedRows
from diagatt.stores import RowStore, RowStoreWriter, StoreError

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
responses = {
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "string": words,
}
quick = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
good = np.ones((3, 2))


def spoiled(row, value):
    X = np.ones((5, 2))
    X[row, 1] = value
    return X


# ---------------------------------------------------------------------- round trips


@st.composite
def collections(draw):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    X = RaggedRows.from_samples([rng.normal(size=(p, d)).astype(dtype) for p in lengths])
    kind = draw(st.sampled_from([None, *responses]))
    y = None if kind is None else draw(st.lists(responses[kind], min_size=n, max_size=n))
    q = draw(st.integers(0, 3))
    return {
        "rows": X,
        "y": y,
        "kind": kind,
        "weights": draw(st.sampled_from([None, rng.uniform(size=n)])),
        "covariates": rng.normal(size=(n, q)) if q else None,
        "note": draw(st.lists(words, min_size=n, max_size=n)),
        "number": draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)),
    }


def assert_equal(found, expected):
    if expected is None:
        assert found is None
    else:
        assert found.tolist() == np.asarray(expected).tolist()


@quick
@given(collections(), st.sampled_from([1e-5, 1e-4, 3e-4, 1.0]), st.booleans())
def test_every_collection_comes_back_whole(data, shard_mib, one_by_one):
    data = dict(data)
    rows, kind = data.pop("rows"), data.pop("kind")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        if one_by_one:
            with RowStoreWriter(path, shard_mib=shard_mib, dtype=rows.dtype) as writer:
                names = {"weights": "weight"}
                for i, X in enumerate(rows):
                    own = {names.get(k, k): v[i] for k, v in data.items() if v is not None}
                    writer.add(X, **own)
            store = RowStore(path)
        else:
            store = RowStore.from_rows(path, rows, **data, shard_mib=shard_mib, dtype=rows.dtype)
        assert store.to_rows() == rows
        assert store.dtype == rows.dtype
        assert store.response_type == kind
        assert_equal(store.responses(), data["y"])
        assert_equal(store.weights(), data["weights"])
        assert_equal(store.covariates(), data["covariates"])
        parts = list(store.parts())
        for name in ("note", "number"):
            assert [item for part in parts for item in part.payload(name)] == data[name]
        assert [part.start for part in parts] == store.starts.tolist()
        assert RaggedRows.concatenate([part.X for part in parts]) == rows
        if kind in ("float64", "int64"):
            assert min(info.y_min for info in store.shards) == float(min(data["y"]))
            assert max(info.y_max for info in store.shards) == float(max(data["y"]))
        shortest = int(np.argmin(rows.lengths))
        assert store.shortest() == (shortest, rows.lengths[shortest])


def test_blocks_and_single_samples_make_the_same_files(tmp_path, samples):
    block = RowStore.from_rows(tmp_path / "a", **samples, shard_mib=0.01)
    columns = {k: v for k, v in samples.items() if k not in ("rows", "weights")}
    lines = (
        {"X": X, "weight": samples["weights"][i], **{k: v[i] for k, v in columns.items()}}
        for i, X in enumerate(samples["rows"])
    )
    single = RowStore.write(tmp_path / "b", lines, shard_mib=0.01)
    assert single.digest == block.digest
    assert RowStore.from_rows(tmp_path / "d", **samples, shard_mib=0.02).digest != block.digest


def test_shards_are_cut_by_bytes(tmp_path):
    X = [np.ones((p, 8)) for p in (10, 10, 10, 500, 10, 10)]
    store = RowStore.from_rows(tmp_path / "s", X, shard_mib=1024 / 2**20)
    # 10 rows of 8 float32 and an offset are 328 bytes: three fit into 1024, the long one is alone
    assert [info.n_samples for info in store.shards] == [3, 1, 2]


# ---------------------------------------------------------------------- refused


def test_a_bad_first_sample_decides_nothing(tmp_path):
    with RowStoreWriter(tmp_path / "s") as writer:
        with pytest.raises(StoreError, match="sample 0, row 3 contains NaN"):
            writer.add(spoiled(3, np.nan)[:, [1] * 7], y="a")
        writer.add(good, y=1.5)
    assert RowStore(tmp_path / "s").n_features == 2


def test_a_bad_block_ends_the_store(tmp_path):
    writer = RowStoreWriter(tmp_path / "s", shard_mib=1e-5).__enter__()
    with pytest.raises(StoreError, match="sample 11, row 2 contains NaN"):
        writer.extend([*[good] * 11, spoiled(2, np.nan)])
    with pytest.raises(StoreError, match="begin a new store"):
        writer.add(good)
    with pytest.raises(StoreError, match="no store is written"):
        writer.__exit__(None, None, None)
    assert not list(tmp_path.iterdir())


def test_later_changes_of_an_array_are_not_written(tmp_path):
    small, large = np.ones((2, 2), "float32"), np.ones((999, 2), "float32")
    with RowStoreWriter(tmp_path / "s", shard_mib=1e-3) as writer:
        for X in (small, large):
            writer.add(X)
            X[:] = 7
    assert (RowStore(tmp_path / "s").to_rows().values == 1).all()


def test_wrong_use(tmp_path):
    with pytest.raises(ValueError, match="shard_mib"):
        RowStoreWriter(tmp_path / "s", shard_mib=0)
    with pytest.raises(ValueError, match="dtype"):
        RowStoreWriter(tmp_path / "s", dtype="int32")
    with pytest.raises(StoreError, match="with block"):
        RowStoreWriter(tmp_path / "s").add(good)
    with pytest.raises(StoreError, match="no sample was added"):
        RowStore.write(tmp_path / "s", [])
    with pytest.raises(StoreError, match="does not exist: make this folder"):
        RowStore.write(tmp_path / "no" / "s", [good])
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- what is there already


def test_an_existing_path_is_refused(tmp_path):
    store = RowStore.write(tmp_path / "s", [good])
    with pytest.raises(StoreError, match="exists: pass overwrite=True"):
        RowStore.write(tmp_path / "s", [good, good])
    assert len(RowStore(store.path)) == 1
    assert len(RowStore.write(tmp_path / "s", [good, good], overwrite=True)) == 2
    assert os.listdir(tmp_path) == ["s"]


def test_a_failed_replacement_leaves_the_old_store(tmp_path):
    RowStore.write(tmp_path / "s", [good])
    with pytest.raises(StoreError, match="NaN"):
        RowStore.write(tmp_path / "s", [good, spoiled(0, np.nan)], overwrite=True)
    assert len(RowStore(tmp_path / "s")) == 1
    assert os.listdir(tmp_path) == ["s"]


def test_only_stores_are_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    store = RowStore.write(tmp_path / "s", [good])
    (store.path / "notes.txt").write_text("mine")
    for name, said in {
        "folder": r"folder is not replaced.*it has no store\.json",
        "file": "file is not replaced.*is not a folder",
        "s": r"s is not replaced: notes\.txt in it does not belong to the store",
    }.items():
        with pytest.raises(StoreError, match=said):
            RowStore.write(tmp_path / name, [good], overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "s"]


def test_only_files_of_the_store_are_replaced(tmp_path):
    """A shard that the manifest does not list belongs to somebody else."""
    store = RowStore.write(tmp_path / "s", [good])
    (store.path / "thesis.arrow").write_text("mine")
    with pytest.raises(StoreError, match=r"thesis\.arrow"):
        RowStore.write(store.path, [good, good], overwrite=True)
    assert (store.path / "thesis.arrow").read_text() == "mine"
    assert os.listdir(tmp_path) == ["s"]


def test_a_file_that_comes_while_the_store_is_replaced_stays(tmp_path):
    store = RowStore.write(tmp_path / "s", [good])
    writer = RowStoreWriter(store.path, overwrite=True).__enter__()
    writer.add(good)
    (store.path / "thesis.arrow").write_text("mine")
    with pytest.raises(StoreError, match=r"thesis\.arrow"):
        writer.__exit__(None, None, None)
    assert (store.path / "thesis.arrow").read_text() == "mine"
    assert os.listdir(tmp_path) == ["s"]


def test_a_store_without_a_sound_manifest_is_not_replaced(tmp_path):
    """It is unknown which files belong to it."""
    store = RowStore.write(tmp_path / "s", [good])
    (store.path / "store.json").write_text("{}")
    with pytest.raises(StoreError, match=r"store\.json is damaged or foreign"):
        RowStore.write(store.path, [good], overwrite=True)
    assert sorted(os.listdir(store.path)) == ["shard-00000.arrow", "store.json"]


def test_the_slower_of_two_writers_is_refused(tmp_path):
    slow = RowStoreWriter(tmp_path / "s").__enter__()
    slow.add(good)
    RowStore.write(tmp_path / "s", [good, good])
    with pytest.raises(StoreError, match="exists"):
        slow.__exit__(None, None, None)
    assert len(RowStore(tmp_path / "s")) == 2
    assert os.listdir(tmp_path) == ["s"]


def test_a_reader_of_a_replaced_store_is_told(tmp_path):
    old = RowStore.write(tmp_path / "s", [good])
    old.part(0)
    RowStore.write(tmp_path / "s", [good + 1], overwrite=True)
    with pytest.raises(StoreError, match=r"shard-00000\.arrow .*checksum"):
        old.part(0)


# ---------------------------------------------------------------------- interrupted


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_iterator_that_fails(tmp_path, error):
    def samples():
        for i in range(300):
            if i == 200:
                raise error("in the middle")
            yield good

    with pytest.raises(error):
        RowStore.write(tmp_path / "s", samples(), shard_mib=1e-3)
    assert not list(tmp_path.iterdir())


def test_file_size_limit(tmp_path):
    """No room for a shard, as the system says it for a limit of the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**19, hard))
    try:
        with pytest.raises(StoreError, match=r"shard-00000\.arrow cannot be written to .*no room"):
            RowStore.write(tmp_path / "s", (np.ones((100, 50)) for _ in range(100)), shard_mib=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 3 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_disk_full(small_disk):
    samples = (np.ones((100, 50)) for _ in count())
    with pytest.raises(StoreError, match=rf"shard-00003\.arrow cannot be written to {small_disk}"):
        RowStore.write(small_disk / "s", samples, shard_mib=1)
    assert not list(small_disk.iterdir())


def test_disk_full_keeps_the_old_store(small_disk):
    old = RowStore.write(small_disk / "s", [np.ones((1000, 50))])
    samples = (np.ones((100, 50)) for _ in count())
    with pytest.raises(StoreError, match="no room"):
        RowStore.write(small_disk / "s", samples, shard_mib=1, overwrite=True)
    RowStore(old.path).verify()
    assert os.listdir(small_disk) == ["s"]


KILLS = """
import os, random, shutil, signal, sys, time
import numpy as np
from diagatt.stores import RowStore, StoreError

path, seed = sys.argv[1], int(sys.argv[2])

def write(value, n=12):
    samples = ((np.full((20, 8), value), value) for _ in range(n))
    RowStore.write(path, samples, shard_mib=0.003, overwrite=True)

def inode():
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None

write(0.0)
start = time.perf_counter()
write(0.0)
each = time.perf_counter() - start
moments, lost, fresh = random.Random(seed), 0, 0
for kill in range(1, 16):
    if kill % 3 == 0:
        shutil.rmtree(path, ignore_errors=True)
    existed, before = os.path.exists(path), inode()
    child = os.fork()
    if child == 0:
        while True:
            write(float(kill))
    while kill % 2 and inode() in (None, before):  # every other child gets to write once
        time.sleep(0.0005)
    time.sleep(moments.uniform(0, 2 * each))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not os.path.exists(path):
        lost += existed
        continue
    store = RowStore(path)
    store.verify()
    assert len(store) == 12, len(store)
    values = np.unique(store.to_rows().values)
    assert len(values) == 1 and values[0] <= kill, values
    assert (store.responses() == values[0]).all()
    fresh += values[0] == kill
write(99.0)
print(lost, fresh, *os.listdir(os.path.dirname(path)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_leave_a_store_whole(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(tmp_path / "s"), "0"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    lost, fresh, *names = done.stdout.split()
    assert names == ["s"]  # the next writer cleaned up
    assert int(lost) <= 1  # between two renames; the next writer takes the old one back
    assert int(fresh) >= 1  # children did get to write


def test_a_writer_killed_between_its_renames_is_made_good(tmp_path):
    RowStore.write(tmp_path / "s", [good])
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    os.rename(tmp_path / "s", tmp_path / f".s.{child.pid}.00000000.old")
    (tmp_path / f".s.{child.pid}.11111111.tmp").mkdir()
    other = tmp_path / f".s.7.{child.pid}.22222222.tmp"  # of a store called s.7
    other.mkdir()
    with pytest.raises(StoreError, match="exists"):
        RowStore.write(tmp_path / "s", [good, good])
    assert len(RowStore(tmp_path / "s")) == 1
    assert sorted(os.listdir(tmp_path)) == [other.name, "s"]


def test_a_store_killed_while_deleted_is_not_restored(tmp_path, monkeypatch):
    """What is being deleted is no longer called a whole old store."""
    RowStore.write(tmp_path / "s", [good])
    deleted = []
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: deleted.append(path.name))
    RowStore.write(tmp_path / "s", [good, good], overwrite=True)
    assert any(name.endswith(".tmp") for name in deleted)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".old")]
