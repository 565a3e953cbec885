"""What is written is what is read."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diagatt import RaggedRows
from diagatt.stores import RowStore, RowStoreWriter
from tests.stores.golden_samples import GOLDEN, RESPONSES, golden_samples

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
responses = {
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "string": words,
}
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

MAPS = Path("/proc/self/maps")
linux = pytest.mark.skipif(not MAPS.exists(), reason="the system does not list its maps")


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


def test_shards_are_cut_by_bytes(tmp_path):
    X = [np.ones((p, 8)) for p in (10, 10, 10, 500, 10, 10)]
    store = RowStore.from_rows(tmp_path / "s", X, shard_mib=1024 / 2**20)
    # 10 rows of 8 float32 and an offset are 328 bytes: three fit into 1024, the long one is alone
    assert [info.n_samples for info in store.shards] == [3, 1, 2]


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
    assert_equal(whole.covariates, expected["covariates"])
    assert kept.payload_names == ("text", "number", "score", "flag")
    for name in kept.payload_names:
        np.testing.assert_array_equal(whole.payload(name), expected[name])
