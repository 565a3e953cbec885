"""Quantiles of held-out scores: they cover within each third of ambiguity."""

import numpy as np
import pytest

from diagatt.certainty.conformal import Conformity, class_thresholds, score_quantiles


def drawn(n, seed):
    """Scores that grow with ambiguity, although they were normalized."""
    rng = np.random.default_rng(seed)
    ambiguity = rng.uniform(size=n)
    return np.abs(rng.normal(size=n)) * (1 + 3 * ambiguity**2), ambiguity


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_new_scores_are_covered_in_every_third(level):
    held_out, ambiguity = drawn(6000, 0)
    new, place = drawn(30_000, 1)
    conformity = Conformity(held_out, None, 1.0, ambiguity=ambiguity)
    covered = new <= score_quantiles(conformity, level, place)
    se = np.sqrt(level * (1 - level) * (1 / 2000 + 1 / 10_000))
    for k in range(3):
        third = (place > k / 3) & (place <= (k + 1) / 3)
        assert abs(covered[third].mean() - level) < 4 * se
    whole = score_quantiles(Conformity(held_out, None, 1.0), level, place)
    assert np.ptp(whole) == 0
    assert (new <= whole)[place > 2 / 3].mean() < level - 0.05  # one quantile for all does not


def test_few_samples_are_taken_together():
    scores, ambiguity = drawn(140, 0)
    conformity = Conformity(scores, None, 1.0, ambiguity=ambiguity)
    together = np.sort(scores)[int(np.ceil(141 * 0.9)) - 1]
    assert set(score_quantiles(conformity, 0.9, ambiguity)) == {together}


def test_a_level_beyond_a_third_is_asked_of_all():
    scores, ambiguity = drawn(210, 0)  # 70 each: too few for a 99 % quantile
    conformity = Conformity(scores, None, 1.0, ambiguity=ambiguity)
    assert set(score_quantiles(conformity, 0.99, ambiguity)) == {np.sort(scores)[208]}
    assert np.isinf(score_quantiles(conformity, 0.999, ambiguity)).all()


def classes_drawn(n, shares, seed):
    """Probabilities of classes, the true class, and an ambiguity with which they get even."""
    rng = np.random.default_rng(seed)
    ambiguity = rng.uniform(size=n)
    z = np.log(shares) + (0.4 + 4 * (1 - ambiguity))[:, None] * rng.normal(size=(n, len(shares)))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    truth = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    return p, truth, ambiguity


def held(conformity, level, p, truth, ambiguity):
    """Return which true classes are at least as probable as their thresholds."""
    line = np.arange(len(p))
    return (p >= class_thresholds(conformity, level, p.shape[1], ambiguity))[line, truth]


@pytest.mark.parametrize("shares", [(0.2, 0.8), (0.1, 0.3, 0.6)])
def test_classes_are_covered_in_every_third(shares):
    p, truth, place = classes_drawn(6000, shares, 0)
    scores = p[np.arange(6000), truth]
    new = classes_drawn(40_000, shares, 1)
    covered = held(Conformity(scores, truth, 1.0, ambiguity=place), 0.9, *new)
    for k in range(len(shares)):
        for t in range(3):
            own = (new[1] == k) & (new[2] > t / 3) & (new[2] <= (t + 1) / 3)
            m = ((truth == k) & (place > t / 3) & (place <= (t + 1) / 3)).sum()
            assert abs(covered[own].mean() - 0.9) < 4 * np.sqrt(0.09 * (1 / m + 1 / own.sum()))
    by_class = held(Conformity(scores, truth, 1.0), 0.9, *new)
    third = np.minimum((3 * new[2]).astype(int), 2)  # thresholds by class alone do not
    assert by_class[third == 2].mean() < by_class[third == 0].mean() - 0.03


def test_files_without_ambiguity_have_the_thresholds_of_classes():
    p, truth, place = classes_drawn(300, (0.3, 0.7), 0)
    scores = p[np.arange(300), truth]
    found = class_thresholds(Conformity(scores, truth, 1.0), 0.9, 2, place)
    for k in (0, 1):
        own = np.sort(scores[truth == k])
        assert set(found[:, k]) == {own[int(np.floor((len(own) + 1) * 0.1)) - 1]}


@pytest.mark.parametrize("n", [0, 3, 8, 15, 19])
def test_classes_of_few_samples_are_taken_together(n):
    """Up to 20 of a class have one threshold; where none is surely low enough, it is 0."""
    rng = np.random.default_rng(0)
    scores, ambiguity = rng.random(n + 90), np.r_[rng.random(n), np.zeros(90)]
    truth = np.r_[np.zeros(n, dtype=int), np.ones(90, dtype=int)]
    found = class_thresholds(Conformity(scores, truth, 1.0, ambiguity=ambiguity), 0.9, 3, ambiguity)
    expected = 0.0 if n < 9 else np.sort(scores[:n])[int(np.floor((n + 1) * 0.1)) - 1]
    assert set(found[:, 0]) == {expected}
    assert set(found[:, 2]) == {0.0}  # no sample of this class was held out


def test_few_samples_of_a_third_are_filled_up_by_the_others():
    """Weights between 0 and 1: brute force over all thresholds."""
    rng = np.random.default_rng(1)
    scores, near = rng.random(50), np.arange(50) < 8
    part = (20 - 8) / 42  # of each of the others
    weights = np.where(near, 1.0, part)
    fits = [s for s in scores if weights[scores <= s].sum() <= 0.1 * (weights.sum() + 1)]
    ambiguity = np.where(near, 2.0, 1.0)
    edges = np.quantile(ambiguity, [1 / 3, 2 / 3])
    assert (np.searchsorted(edges, ambiguity) == np.where(near, 2, 0)).all()
    classes = np.zeros(50, dtype=int)
    found = class_thresholds(
        Conformity(scores, classes, 1.0, ambiguity=ambiguity), 0.9, 1, np.array([2.0])
    )
    assert found[0, 0] == max(fits)
