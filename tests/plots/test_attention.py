"""Attention and scores: bars, lists and histograms show the numbers they were given."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt import plots
from tests.plots.test_plots import WEIGHTS


def test_attention_columns_have_the_weights_as_heights():
    ax = plots.attention(WEIGHTS, true_rows=[2])
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(2, 3).T
    np.testing.assert_array_equal(heights, WEIGHTS)
    assert ax.lines[0].get_xdata().tolist() == [2]


def test_top_rows_are_sorted_by_their_largest_weight():
    ax = plots.top_rows(WEIGHTS, names=["a", "$b", "c"], most=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a", "$b"]
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, 3).T
    np.testing.assert_array_equal(widths, WEIGHTS[[2, 0, 1]])
    with pytest.raises(ValueError, match="names has 2 entries, the sample has 3 rows"):
        plots.top_rows(WEIGHTS, names=["a", "b"])


def test_scores_count_pairs_as_brute_force_does():
    rng = np.random.default_rng(0)
    sample = [rng.integers(0, 5, size=(p, 2)).astype(float) for p in (3, 5, 4)]
    rows = [[0], [1, 2], [3]]
    wins = [
        (s[a, 1] > s[b, 1]) + 0.5 * (s[a, 1] == s[b, 1])
        for s, on in zip(sample, rows, strict=True)
        for a in on
        for b in range(len(s))
        if b not in on
    ]
    title = plots.scores(sample, rows, head=1).get_title()
    assert title == f"active rows score higher in {100 * np.mean(wins):.1f} % of pairs"
    with pytest.raises(ValueError, match="rows of sample 0"):
        plots.scores(sample, [[3], [0], [0]])


def test_heads_share_all_of_their_attention_with_themselves():
    rng = np.random.default_rng(0)
    weights = [rng.dirichlet(np.ones(p), size=3).T for p in (2, 5, 9)]
    shared = plots.heads(weights).images[0].get_array()
    np.testing.assert_allclose(np.diag(shared), 1)
    np.testing.assert_allclose(shared, shared.T)
    by_hand = np.mean([sum(min(a, b) for a, b in k[:, [0, 2]]) for k in weights])
    assert shared[0, 2] == pytest.approx(by_hand)


def test_weights_of_many_samples_are_refused():
    with pytest.raises(ValueError, match="of one sample"):
        plots.attention(np.zeros((2, 3, 1)))
