"""Unit tests of assumptions: the rule holds in both halves, the shortcut turns round."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

from diagatt.datasets import load_bags


def per_bag(bags, values, join=np.add):
    """Join a value of every row over the rows of a bag."""
    return join.reduceat(np.asarray(values, dtype=float), bags.X.offsets[:-1])


def aucs(bags, score):
    half = len(bags) // 2
    return [roc_auc_score(bags.y[part], score[part]) for part in (slice(half), slice(half, None))]


def near(bags, level):
    """Whether every feature of a row is near a level: which concept it is."""
    return (np.abs(bags.X.values - level) < 0.5).all(axis=1)


@pytest.mark.parametrize("name", ["unit_presence", "unit_threshold"])
def test_the_marker_says_the_opposite_in_the_test_half(name):
    bags = load_bags(name)
    absent = per_bag(bags, ~near(bags, -10), np.minimum)
    assert aucs(bags, absent) == [1.0, 0.0]


def test_a_row_that_differs_from_the_background_decides_in_both_halves():
    bags = load_bags("unit_presence")
    x, d = bags.X.values, bags.X.n_features
    square = (x**2).sum(axis=1)
    wide = -square / 18 - d * np.log(3)  # log densities, up to the same constant
    shifted = -((x - 1) ** 2).sum(axis=1) / 2
    ratio = logsumexp([wide, shifted], axis=0) + square / 2
    ratio[near(bags, -10)] = -np.inf  # what the assumption says of a marker: nothing
    assert min(aucs(bags, per_bag(bags, ratio, np.maximum))) > 0.98


@pytest.mark.parametrize("name", ["unit_threshold", "unit_frequency"])
def test_both_concepts_decide_in_both_halves_and_neither_alone(name):
    bags = load_bags(name)
    one, two = (per_bag(bags, near(bags, level), np.maximum) for level in (2, 3))
    assert aucs(bags, one * two) == [1.0, 1.0]
    for alone in (one, two):
        assert max(aucs(bags, alone)) < 0.8  # half of the negative bags hold it


def test_the_count_of_concepts_says_the_opposite_in_the_test_half():
    bags = load_bags("unit_frequency")
    count = per_bag(bags, near(bags, 2) | near(bags, 3))
    assert aucs(bags, count) == [1.0, 0.0]
    held = count[len(bags) // 2 :][bags.y[len(bags) // 2 :] == 0]
    assert (held.min(), held.max()) == (35, 44)


def test_key_rows_are_concepts_of_positive_bags():
    bags = load_bags("unit_threshold")
    counts = [len(rows) for rows in bags.key_rows()]
    assert [count > 0 for count in counts] == (bags.y == 1).tolist()
    assert set(counts) == {0, 2, 4, 6}
