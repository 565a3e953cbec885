"""Selecting, taking, streaming: against plain NumPy, and within bounds."""

import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from diagatt import RaggedRows
from diagatt.stores import RowStore, RowStoreWriter, StoreError
from tests.stores.golden_samples import GOLDEN, RESPONSES, golden_samples

MIB = 2**20
shared = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def assert_samples(part, samples, numbers):
    assert samples["rows"][numbers] == part.X
    for found, name in [
        (part.y, "y"),
        (part.weights, "weights"),
        (part.covariates, "covariates"),
        (np.array(part.payload("text")), "text"),
    ]:
        np.testing.assert_array_equal(found, np.asarray(samples[name])[numbers])


@pytest.mark.parametrize("kind", RESPONSES)
def test_stores_of_format_1_are_read(kind):
    """The kept files were written before this code."""
    expected = golden_samples(kind)
    kept = RowStore(GOLDEN / kind)
    kept.verify()
    whole = kept.take(slice(None))
    assert expected["rows"] == whole.X
    assert whole.X.dtype == expected["rows"].dtype
    assert whole.y.tolist() == expected["y"]
    assert whole.weights.tolist() == expected["weights"]
    np.testing.assert_array_equal(whole.covariates, expected["covariates"])
    assert kept.payload_names == ("text", "number", "score", "flag")
    for name in kept.payload_names:
        np.testing.assert_array_equal(whole.payload(name), expected[name])


def test_facts(store, samples):
    X = samples["rows"]
    assert (len(store), store.n_samples, store.shape) == (200, 200, (200,))
    assert (store.n_rows, store.n_features, store.n_covariates) == (X.n_rows, 5, 3)
    assert store.has_response
    assert store.has_weights
    assert store.response_type == "float64"
    assert store.payload_names == ("text",)
    assert store.starts.tolist() == [part.start for part in store.parts()]
    files = sum(f.stat().st_size for f in store.path.glob("*.arrow"))
    assert store.nbytes == files
    np.testing.assert_array_equal(store.lengths(), X.lengths)
    assert repr(store).startswith(f"RowStore(n_samples=200, n_rows={X.n_rows}, n_features=5")
    with pytest.raises(TypeError, match="not one array"):
        np.asarray(store)


@shared
@given(numbers=st.lists(st.integers(-200, 199), min_size=1, max_size=60))
def test_take_is_indexing(store, samples, numbers):
    part = store.take(numbers)
    assert (part.shard, part.start, len(part)) == (-1, 0, len(numbers))
    assert_samples(part, samples, np.array(numbers))


@pytest.mark.parametrize(
    "key", [slice(None), slice(5, 150, 7), slice(None, None, -1), np.arange(200) % 3 == 0]
)
def test_slices_and_masks(store, samples, key):
    assert store[key] == samples["rows"][np.arange(200)[key]]
    assert_samples(store.take(key), samples, np.arange(200)[key])


@pytest.mark.parametrize("i", [0, 57, 199, -1, np.int64(3)])
def test_one_sample_is_a_matrix(store, samples, i):
    np.testing.assert_array_equal(store[i], samples["rows"][i])


def test_scikit_learn_splits_a_store(store, samples):
    train, _ = next(KFold(4, shuffle=True, random_state=0).split(store))
    assert store[train, ...] == samples["rows"][train]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (200, "sample 200 does not exist"),
        ([3, -201], "sample -201 does not exist"),
        ([], "whole numbers"),
        (slice(3, 3), "no sample"),
        ([0.5], "whole numbers"),
        (np.ones(3, bool), "mask of length 200"),
        ((1, 2), "one axis"),
    ],
)
def test_wrong_indices(store, key, said):
    with pytest.raises(IndexError, match=said):
        store[key]


@shared
@given(shards=st.lists(st.integers(-8, 7), min_size=1, max_size=8))
def test_select_counts_anew(store, samples, shards):
    view = store.select(shards)
    numbers = np.concatenate(
        [
            np.arange(store.starts[k], store.starts[k] + store.shards[k].n_samples)
            for k in np.arange(len(store.shards))[shards]
        ]
    )
    assert_samples(view.take(slice(None)), samples, numbers)
    np.testing.assert_array_equal(view.responses(), samples["y"][numbers])
    for part in view.parts():
        assert_samples(part, samples, numbers[part.start : part.start + len(part)])
    assert view.digest == store.select(shards).digest
    with pytest.raises(IndexError, match="shard 99 does not exist"):
        view.select([99])


def test_iteration_gives_copies(store, samples):
    for found, expected in zip(store, samples["rows"], strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.flags.owndata


def test_pickled_by_path(store, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    relative = RowStore("store", memory=77)
    view = relative.select([3, 1])
    content = pickle.dumps([relative, view])
    assert len(content) < 2000
    monkeypatch.chdir("/")
    whole, part = pickle.loads(content)
    assert whole.digest == store.digest
    assert whole.memory == 77
    assert part.digest == view.digest
    RowStore.write(store.path, [np.ones((2, 2))], overwrite=True)
    with pytest.raises(StoreError, match="written again"):
        pickle.loads(content)


def test_memory_must_hold_two_shards(store):
    needed = 2 * max(info.bytes for info in store.shards) / MIB
    RowStore(store.path, memory=needed)
    with pytest.raises(StoreError, match=r"memory=0\.001 MiB is too little.*shard_mib"):
        RowStore(store.path, memory=0.001)
    with pytest.raises(StoreError, match="ahead=5"):
        RowStore(store.path, memory=needed).parts(ahead=5)
    with pytest.raises(StoreError, match="ahead=-1"):
        store.parts(ahead=-1)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_parts_come_in_the_order_asked_for(store, ahead):
    order = [4, 0, 4, 7]
    assert [part.shard for part in store.parts(order, ahead)] == order


def readers():
    return [t for t in threading.enumerate() if t.name.startswith("diagatt-read-ahead")]


def test_closing_early_ends_the_thread(store):
    parts = store.parts()
    assert not readers()
    next(parts)
    assert readers()
    parts.close()
    assert not readers()


def test_errors_of_the_thread_reach_the_consumer(store):
    victim = store.path / store.shards[3].file
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    parts = store.parts(ahead=2)
    assert [next(parts).shard for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StoreError, match=victim.name):
        next(parts)
    assert not readers()


def test_the_next_shard_is_read_while_one_is_in_use(store, monkeypatch):
    loaded = []
    original = RowStore._loaded
    monkeypatch.setattr(
        RowStore, "_loaded", lambda self, k: (loaded.append(k), original(self, k))[1]
    )
    for part in store.parts(ahead=2):
        wanted = min(part.shard + 3, len(store.shards))
        for _ in range(1000):
            if len(loaded) >= wanted:
                break
            time.sleep(0.001)
        time.sleep(0.002)
        assert loaded == list(range(wanted))  # two ahead, and not more


def test_several_iterators_at_once(store, samples):
    forwards, backwards = store.parts(), store.parts(range(len(store.shards))[::-1])
    a, b = [], []
    for one, other in zip(forwards, backwards, strict=True):
        a.append(one.X)
        b.append(other.X)
    assert RaggedRows.concatenate(a) == RaggedRows.concatenate(b[::-1]) == samples["rows"]


def test_every_shard_is_hashed_once(store, monkeypatch):
    from diagatt.stores import shard

    hashed = []
    original = shard.Shard.sha256
    monkeypatch.setattr(
        shard.Shard,
        "sha256",
        lambda self, without=None: (
            hashed.append((self.path.name, without is None)),
            original(self, without),
        )[1],
    )
    fresh = RowStore(store.path)
    for _ in range(2):
        fresh.responses()
    names = [info.file for info in store.shards]
    assert hashed == [(name, False) for name in names]  # rows were not read
    hashed.clear()
    for _ in range(3):
        for _ in fresh.parts():
            pass
    fresh.select([2]).to_rows()
    fresh.covariates()
    assert hashed == [(name, True) for name in names]


PASS = """
import sys
from diagatt.stores import RowStore

def memory(name):
    line = next(x for x in open("/proc/self/status") if x.startswith(name))
    return int(line.split()[1]) / 1024

store = RowStore(sys.argv[1])
store.part(0).X.values.sum()
before = memory("VmHWM")
for _ in range(2):
    total = sum(float(part.X.values.sum(dtype="float64")) for part in store.parts())
    store.responses()
print(before, memory("VmHWM"), memory("VmRSS"), total)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_pass_stays_at_a_few_shards(tmp_path):
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(127, 128, 64)).astype("float32") for _ in range(2)]  # 3.97 MiB
    with RowStoreWriter(tmp_path / "large", shard_mib=4) as writer:
        for i in range(40):
            writer.extend(blocks[i % 2], np.ones(127))
    store = RowStore(tmp_path / "large")
    assert len(store.shards) == 40
    done = subprocess.run(
        [sys.executable, "-c", PASS, str(store.path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    before, highest, after, total = map(float, done.stdout.split())
    expected = 20 * sum(X.sum(dtype=np.float64) for X in blocks)
    assert total == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert highest - before < 5 * 4, (before, highest, after)  # 160 MiB went through
    assert after - before < 3 * 4
