"""Folds and intervals against closed forms."""

import numpy as np
import pytest
from scipy import stats

from diagatt.metrics import class_scores
from diagatt.resampling import bootstrap_intervals, draw_folds, paired_interval


def test_without_correction_it_is_the_paired_t_interval():
    d = np.array([0.3, -0.1, 0.2, 0.4])
    mean, low, high = paired_interval(d, test_share=0)
    expected = stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert mean == pytest.approx(d.mean())


def test_the_correction_widens_by_what_nadeau_and_bengio_say():
    d = np.array([0.3, -0.1, 0.2, 0.4, 0.0])
    plain, corrected = (paired_interval(d, share) for share in (0, 0.25))
    ratio = (corrected[2] - corrected[0]) / (plain[2] - plain[0])
    assert ratio == pytest.approx(np.sqrt((1 / 5 + 1 / 4) / (1 / 5)))


def test_folds_are_stratified_and_keep_groups_together():
    rng = np.random.default_rng(0)
    y, groups = np.repeat([0, 1], 50), rng.integers(20, size=100)
    fold = draw_folds(y, True, n_folds=5)
    assert np.array_equal(np.bincount(fold[y == 1]), np.full(5, 10))
    for classifies in (True, False):
        fold = draw_folds(y, classifies, groups, n_folds=4)
        assert all(len(set(fold[groups == g])) == 1 for g in np.unique(groups))
        assert set(fold) == {0, 1, 2, 3}
    assert np.array_equal(draw_folds(y, False, seed=3), draw_folds(y, False, seed=3))


def test_the_bootstrap_of_a_mean_is_the_normal_interval():
    y = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_intervals(lambda i: {"mean": y[i].mean()}, 400, n_draws=4000)["mean"]
    half = stats.norm.ppf(0.975) * y.std() / 20
    # The quantile of 4000 draws has a standard error of 0.07 standard errors of the mean.
    assert low == pytest.approx(y.mean() - half, abs=4 * 0.07 * y.std() / 20)
    assert high == pytest.approx(y.mean() + half, abs=4 * 0.07 * y.std() / 20)


def test_draws_without_a_class_leave_the_auc_out():
    y, p = np.array([0, 0, 0, 1]), np.array([0.1, 0.6, 0.3, 0.8])
    both = np.column_stack([1 - p, p])
    found = bootstrap_intervals(lambda i: class_scores(y[i], both[i]), 4, n_draws=100)
    assert found["auc"] == (1.0, 1.0)
    assert found["accuracy"][0] < 0.75 < found["accuracy"][1]


def test_many_samples_are_drawn_less_often():
    count = []
    bootstrap_intervals(lambda i: count.append(len(i)) or {}, 200_000)
    assert len(count) == 250
