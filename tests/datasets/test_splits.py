"""Splits of texts: every text once, and no sentence on two sides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagatt.datasets.splits import fold_texts, split_texts, text_groups

TEXTS = st.lists(st.sampled_from(["a", "b", "c ", "C", "d e", "d  e", "f"]), min_size=1)


@given(TEXTS, st.integers(0, 99))
def test_no_sentence_stands_on_two_sides(texts, seed):
    parts = split_texts(texts, seed=seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(texts)))
    group = text_groups(texts)
    sides = [set(group[part].tolist()) for part in parts]
    assert all(a.isdisjoint(b) for i, a in enumerate(sides) for b in sides[:i])


@given(st.integers(10, 300), st.integers(0, 99))
def test_parts_have_their_shares(n, seed):
    sizes = [len(part) for part in split_texts([f"text {i}" for i in range(n)], seed=seed)]
    np.testing.assert_allclose(sizes, [0.7 * n, 0.1 * n, 0.2 * n], atol=1)


@given(TEXTS.filter(lambda t: len(set(text_groups(t))) >= 2), st.integers(0, 9))
def test_folds_keep_duplicates_together(texts, seed):
    fold, group = fold_texts(texts, 2, seed), text_groups(texts)
    assert all(len(set(fold[group == g].tolist())) == 1 for g in group)
    assert set(fold.tolist()) == {0, 1}


def test_impossible_splits_are_refused():
    with pytest.raises(ValueError, match="add up to 1"):
        split_texts(["a", "b"], shares=(0.5, 0.6))
    with pytest.raises(ValueError, match="n_folds must lie between 2 and 2"):
        fold_texts(["a", "b"], 3)
