"""Top words and features agree with brute force."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.report.samples import collect
from diagatt.report.top import top_features, top_words
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
    low, _ = top_features(samples, values, [f"f{k}" for k in range(6)])
    inside = np.flatnonzero(samples.prediction <= np.quantile(samples.prediction, 0.25))
    located = np.concatenate([new.X[int(i)][samples.located[i]] for i in inside])
    expected = (located.mean(axis=0) - values.mean(axis=0)) / values.std(axis=0)
    for entry in low["entries"]:
        assert entry["value"] == pytest.approx(expected[int(entry["name"][1:])], rel=1e-3)
