"""Unit tests of assumptions: the rule holds in both halves, the shortcut turns round."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from diagatt.datasets import load_bags


def maxima(bags):
    """Largest first and second feature, and smallest third one, of every bag."""
    X = bags.X
    starts = X.offsets[:-1]
    top = np.maximum.reduceat(X.values, starts)
    return top[:, 0], top[:, 1], np.minimum.reduceat(X.values, starts)[:, 2]


def aucs(bags, score):
    half = len(bags) // 2
    return [roc_auc_score(bags.y[part], score[part]) for part in (slice(half), slice(half, None))]


@pytest.mark.parametrize("name", ["unit_presence", "unit_threshold"])
def test_the_marker_says_the_opposite_in_the_test_half(name):
    bags = load_bags(name)
    *_, marker = maxima(bags)
    train, test = aucs(bags, marker)  # no marker: a larger minimum
    assert train > 0.99
    assert test < 0.01


def test_the_concept_decides_in_both_halves():
    concept, _, _ = maxima(bags := load_bags("unit_presence"))
    assert min(aucs(bags, concept)) > 0.95
    one, two, _ = maxima(bags := load_bags("unit_frequency"))
    assert min(aucs(bags, np.minimum(one, two))) > 0.95


def test_the_count_of_concepts_says_the_opposite_in_the_test_half():
    bags = load_bags("unit_frequency")
    hits = (bags.X.values[:, :2] > 2.5).any(axis=1)
    train, test = aucs(bags, np.add.reduceat(hits.astype(float), bags.X.offsets[:-1]))
    assert train > 0.95
    assert test < 0.05


def test_key_rows_are_concepts_of_positive_bags():
    bags = load_bags("unit_threshold")
    counts = [len(rows) for rows in bags.key_rows()]
    assert [count > 0 for count in counts] == (bags.y == 1).tolist()
    assert min(count for count in counts if count) >= 4
