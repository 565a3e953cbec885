"""Top words and features agree with brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from diagatt import RaggedRows
from diagatt.report.samples import collect
from diagatt.report.top import located_distances, top_features, top_words
from diagatt.stores import RowStore
from tests.report.reviews import BAD, GOOD


def test_top_words_by_brute_force(reviews):
    model, new = reviews.model, reviews.data
    samples = collect(model, new.X, new.y, texts=new.texts, spans=new.spans)
    for group, label, lexicon in zip(top_words(samples), model.classes_, (BAD, GOOD), strict=True):
        inside = np.flatnonzero(model.predict(new.X) == label)
        weights = model.attention(new.X)
        for entry in group["entries"]:
            total = sum(
                float(weights[i][j].mean())
                for i in inside
                for j, (a, b) in enumerate(new.spans[i])
                if new.texts[i][a:b].lower() == entry["name"]
            )
            assert entry["value"] == pytest.approx(total / len(inside), rel=1e-4)
        assert {entry["name"] for entry in group["entries"][:5]} <= set(lexicon)


def test_top_features_are_in_standard_deviations(two_heads):
    model, new = two_heads.model, two_heads.data
    samples = collect(model, new.X)
    values = new.X.values
    distances = located_distances(new.X, samples.packed_located.ravel())
    low, _ = top_features(samples, distances, [f"f{k}" for k in range(6)])
    inside = np.flatnonzero(samples.prediction <= np.quantile(samples.prediction, 0.25))
    located = np.concatenate([new.X[int(i)][samples.located[i]] for i in inside])
    expected = (located.mean(axis=0) - values.mean(axis=0)) / values.std(axis=0)
    for entry in low["entries"]:
        assert entry["value"] == pytest.approx(expected[int(entry["name"][1:])], rel=1e-3)


def test_rows_in_memory_on_disk_and_without_their_zeros_are_as_far_from_the_mean(tmp_path):
    rng = np.random.default_rng(0)
    values = (1e3 + rng.normal(size=(60, 5)) * [1, 10, 100, 0, 1]).astype(np.float32)
    rows = RaggedRows(values, np.arange(0, 61, 6))
    located = np.array([3, 8, 59, 3])
    values = values.astype(np.float64)
    expected = np.delete((values - values.mean(axis=0)) / np.r_[values[:, :3].std(0), 1, 1], 3, 1)
    expected[:, 3] /= values[:, 4].std()
    store = RowStore.from_rows(tmp_path / "s", rows, shard_mib=0.001)
    assert len(store.shards) > 1
    for X in (rows, store, RaggedRows(csr_array(values), rows.offsets)):
        found = located_distances(X, located)
        np.testing.assert_allclose(np.delete(found, 3, 1), expected[located], rtol=1e-6)
        np.testing.assert_allclose(found[:, 3], 0, atol=1e-9)
