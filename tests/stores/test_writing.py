"""Bad samples are refused by name; whatever happens, a store is whole or not there."""

import os
import resource
import shutil
import subprocess
import sys
from itertools import count

import numpy as np
import pytest

from diagatt.stores import RowStore, RowStoreWriter, StoreError

good = np.ones((3, 2))


def spoiled(row, value):
    X = np.ones((5, 2))
    X[row, 1] = value
    return X


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"X": spoiled(3, np.nan)}, "sample 2, row 3 contains NaN: drop the row or impute it"),
        ({"X": spoiled(4, -np.inf)}, "sample 2, row 4 contains infinity"),
        ({"X": spoiled(1, 1e300)}, "sample 2, row 1 contains a number too large for float32"),
        ({"X": np.ones(3)}, "sample 2 must be a 2-D array"),
        ({"X": np.ones((3, 3))}, "sample 2 has 3 features, those before have 2"),
        ({"X": np.ones((0, 2))}, "sample 2 has no rows"),
        ({"X": np.ones((3, 0))}, "sample 2 has 0 features"),
        ({"X": [["a", "b"]]}, "sample 2 is not"),
        ({"X": 3.0}, "sample 2 is not a matrix of numbers"),
        ({"X": []}, "sample 2 must be a 2-D array"),
        ({"y": None}, "sample 2 has no y, those before have one"),
        ({"y": np.nan}, "sample 2: y is nan, it must be finite"),
        ({"y": "word"}, "sample 2: y is 'word', but those before are float64"),
        ({"y": [1.0]}, "sample 2: y is"),
        ({"weight": -1.0}, "sample 2: weight is -1.0, it must be finite and not negative"),
        ({"weight": np.inf}, "sample 2: weight is inf"),
        ({"weight": "1"}, "sample 2: weight is '1'"),
        ({"covariates": [1.0]}, "sample 2 has 1 covariates, those before have 2"),
        ({"covariates": [1.0, np.nan]}, "sample 2: covariates contain NaN"),
        ({"covariates": ["a", "b"]}, "sample 2: covariates are not numbers"),
        ({"covariates": 1.0}, "sample 2: covariates have shape"),
        ({"note": None}, "sample 2 has no note"),
        ({"note": b"bytes"}, "sample 2: note is b'bytes'"),
        ({"note": "half \ud800"}, "sample 2: note is .*surrogate"),
        ({"note": "NUL \0"}, "sample 2: note is .*NUL"),
        ({"other": 1}, "sample 2 has other, those before have none"),
        ({"weights": 1.0}, "sample 2 has weights, those before have none"),
    ],
)
def test_a_bad_sample_is_named_and_may_be_left_out(tmp_path, sample, said):
    sound = {"X": good, "y": 1.0, "weight": 1, "covariates": [0.0, 1.0], "note": "a"}
    with RowStoreWriter(tmp_path / "s") as writer:
        writer.add(**sound)
        writer.add(**{**sound, "y": 2})  # a whole number among floats
        with pytest.raises(StoreError, match=said):
            writer.add(**{**sound, **sample})
        writer.add(**sound)
    assert RowStore(tmp_path / "s").responses().tolist() == [1.0, 2.0, 1.0]
    with pytest.raises(StoreError, match=said):
        RowStore.write(tmp_path / "t", [sound, sound, {**sound, **sample}])
    assert os.listdir(tmp_path) == ["s"]


@pytest.mark.parametrize(
    ("y", "said"),
    [([1, 2.5], "sample 1: y is 2.5, but those before are int64"), ([2**70], "beyond 64 bits")],
)
def test_whole_numbers(tmp_path, y, said):
    with pytest.raises(StoreError, match=said):
        RowStore.from_rows(tmp_path / "s", [good] * len(y), y)


@pytest.mark.parametrize("name", ["rows", "X", "weights"])
def test_reserved_names(tmp_path, name):
    with (
        pytest.raises((StoreError, TypeError), match=name),
        RowStoreWriter(tmp_path / "s") as writer,
    ):
        writer.add(good, **{name: 1.0})
    assert not list(tmp_path.iterdir())


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
    for name in ("folder", "file", "s"):
        with pytest.raises(StoreError, match="not a row store, or holds other files"):
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
    """Nobody knows which files belong to it."""
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
        timeout=100,
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
