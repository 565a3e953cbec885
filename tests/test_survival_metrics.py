"""Measures of times to an event against scikit-survival and brute force."""

import numpy as np
import pytest

from diagatt.lifetimes import make_times
from diagatt.survival_metrics import (
    brier_scores,
    cumulative_auc,
    evaluation_times,
    integrated_brier_score,
    kaplan_meier,
    log_rank,
    survival_scores,
    uno_concordance,
)


def draw(seed, n=80, grid=None):
    """Censored times; on a grid there are ties of every kind."""
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n).round(1)
    event_time, censored = rng.exponential(np.exp(-risk)), rng.exponential(1.5, n)
    time = np.minimum(event_time, censored)
    if grid is not None:
        time = np.ceil(time / grid) * grid
    return event_time <= censored, time, risk


CASES = [(0, None), (1, None), (2, 0.1), (3, 0.3)]


@pytest.mark.parametrize(("seed", "grid"), CASES)
def test_concordance_and_auc_are_those_of_scikit_survival(seed, grid):
    sksurv = pytest.importorskip("sksurv.metrics")
    event, time, risk = draw(seed, grid=grid)
    y = make_times(event, time)
    tau = np.quantile(time, 0.9)
    expected = sksurv.concordance_index_ipcw(y, y, risk, tau=tau)[0]
    assert uno_concordance(event, time, risk, tau=tau) == pytest.approx(expected, rel=1e-12)
    train = draw(seed + 10, 300, grid)[:2]
    long = train[1].max()
    kept = time < long
    expected = sksurv.concordance_index_ipcw(make_times(*train), y[kept], risk[kept], tau=tau)[0]
    found = uno_concordance(event[kept], time[kept], risk[kept], tau=tau, train=train)
    assert found == pytest.approx(expected, rel=1e-12)
    at = np.quantile(time, [0.2, 0.5, 0.8])
    areas, mean = sksurv.cumulative_dynamic_auc(y, y, risk, at)
    found = cumulative_auc(event, time, risk, at)
    np.testing.assert_allclose(found.at, areas, rtol=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(("seed", "grid"), CASES)
def test_brier_scores_are_those_of_scikit_survival(seed, grid):
    sksurv = pytest.importorskip("sksurv.metrics")
    event, time, risk = draw(seed, grid=grid)
    y, at = make_times(event, time), np.unique(np.quantile(time, np.linspace(0.1, 0.8, 9)))
    curves = np.exp(-at * np.exp(risk[:, None]))
    expected = sksurv.brier_score(y, y, curves, at)[1]
    np.testing.assert_allclose(brier_scores(event, time, curves, at), expected, rtol=1e-12)
    whole = sksurv.integrated_brier_score(y, y, curves, at)
    found = integrated_brier_score(event, time, curves, at)
    assert found == pytest.approx(whole, rel=1e-12)


def test_without_censoring_they_are_plain_shares():
    event, time, risk = draw(0)
    event = np.ones(len(time), dtype=bool)
    pairs = [(i, j) for i in range(len(time)) for j in range(len(time)) if time[i] < time[j]]
    right = np.mean([np.sign(risk[i] - risk[j]) / 2 + 0.5 for i, j in pairs])
    assert uno_concordance(event, time, risk) == pytest.approx(right)
    t = np.median(time)
    curves = np.full((len(time), 1), 0.3)
    plain = np.mean((0.3 - (time > t)) ** 2)
    assert brier_scores(event, time, curves, [t])[0] == pytest.approx(plain)
    found = survival_scores(event, time, risk, np.exp(-np.outer(np.exp(risk), [0.5, 1])), [0.5, 1])
    assert list(found) == ["concordance", "uno_concordance", "cumulative_auc", "integrated_brier"]
    assert found["concordance"] == pytest.approx(found["uno_concordance"])


def test_evaluation_times_lie_among_events():
    event, time, _ = draw(0, n=1000)
    at = evaluation_times(event, time)
    assert 20 < len(at) <= 50
    assert np.isin(at, time[event]).all()
    assert len(evaluation_times([False, False], [1.0, 2.0])) == 0


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: uno_concordance([True], [1.0, 2.0], [0.0, 1.0]), "event and time must be 1-D"),
        (lambda: brier_scores([True], [1.0], [0.5], [1.0]), r"must have the shape \(1, 1\)"),
        (lambda: integrated_brier_score([True], [1.0], [[0.5]], [1.0]), "two or more, in ascend"),
        (
            lambda: uno_concordance([True], [9.0], [0.0], train=([False, True], [5.0, 1.0])),
            "beyond the last time at which censoring is known",
        ),
    ],
)
def test_what_cannot_be_scored_is_said(ask, said):
    with pytest.raises(ValueError, match=said):
        ask()


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
