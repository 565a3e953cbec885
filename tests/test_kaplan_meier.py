"""Survival of groups without a model, against scikit-survival."""

import numpy as np
import pytest

from diagatt.kaplan_meier import kaplan_meier, log_rank


def cohort(n=80):
    rng = np.random.default_rng(0)
    time = np.ceil(10 * rng.exponential(size=n)) / 10  # with ties
    return rng.random(n) < 0.7, time, rng.integers(0, 3, n)


def test_kaplan_meier_is_that_of_scikit_survival():
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    event, time, _ = cohort()
    x, y = nonparametric.kaplan_meier_estimator(event, time)
    at, survival, error = kaplan_meier(event, time)
    np.testing.assert_allclose(survival, y[np.isin(x, at)], rtol=1e-12)
    assert (error >= 0).all()


def test_greenwood_is_binomial_without_censoring():
    time = np.arange(1, 11.0)
    at, survival, error = kaplan_meier(np.ones(10, bool), time)
    np.testing.assert_allclose(error[:-1], np.sqrt(survival * (1 - survival) / 10)[:-1], rtol=1e-9)
    np.testing.assert_array_equal(at, time)


def test_the_log_rank_test_is_that_of_scikit_survival():
    compare = pytest.importorskip("sksurv.compare")
    from diagatt.lifetimes import make_times

    event, time, group = cohort()
    statistic, p = compare.compare_survival(make_times(event, time), group)
    ours = log_rank(event, time, group)
    assert ours.statistic == pytest.approx(statistic, rel=1e-9)
    assert ours.p == pytest.approx(p, rel=1e-9)
