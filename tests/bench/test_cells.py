"""Scores against scipy, brute force and closed forms."""

import numpy as np
import pytest
from scipy import stats

from diagatt.bench.cells import as_probabilities, located_share, score
from diagatt.datasets import load_bags
from diagatt.metrics import calibration_error, log_density
from diagatt.metrics.classes import FLOOR


def test_binary_scores_are_those_of_brute_force():
    bags = load_bags("wine", n=60)
    test = np.arange(20, 50)
    p = np.random.default_rng(0).random(30)
    found = score(bags, test, np.column_stack([1 - p, p]), None)
    y = bags.y[test]
    pairs = [(a > b) + 0.5 * (a == b) for a in p[y == 1] for b in p[y == 0]]
    assert found["auc"] == pytest.approx(np.mean(pairs))
    assert found["accuracy"] == np.mean((p > 0.5) == y)
    assert found["log_score"] == pytest.approx(np.log(np.where(y == 1, p, 1 - p)).mean(), abs=1e-3)


def test_a_wrong_certainty_costs_what_the_floor_says():
    bags = load_bags("wine", n=60)
    test = np.flatnonzero(bags.y == 1)
    found = score(bags, test, np.tile([1.0, 0.0], (len(test), 1)), None)
    assert found["log_score"] == pytest.approx(np.log(FLOOR / (1 + FLOOR)))
    assert "auc" not in found  # one class only


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_log_densities_are_those_of_scipy(family):
    rng = np.random.default_rng(1)
    mean = rng.uniform(1, 5, 12)
    y = rng.poisson(mean).astype(float) if family == "poisson" else rng.gamma(4, mean / 4)
    found = log_density(y, mean, family)
    for half in (np.arange(12) % 2 == 0, np.arange(12) % 2 == 1):
        if family == "poisson":
            expected = stats.poisson.logpmf(y[half], mean[half])
        elif family == "gaussian":
            phi = ((y - mean)[~half] ** 2).mean()
            expected = stats.norm.logpdf(y[half], mean[half], np.sqrt(phi))
        else:
            phi = ((y / mean - 1)[~half] ** 2).mean()
            expected = stats.gamma.logpdf(y[half], 1 / phi, scale=mean[half] * phi)
        assert found[half] == pytest.approx(expected)


def test_negative_predictions_of_counts_have_a_density():
    assert np.isfinite(log_density(np.array([1.0, 2, 3, 4]), np.array([-1.0, 2, 3, 4]), "poisson"))[
        0
    ]


def test_r2_is_that_of_the_textbook():
    bags = load_bags("simulated", n=60)
    test = np.arange(30)
    prediction = bags.y[test] + 1
    found = score(bags, test, prediction, None)
    assert found["r2"] == pytest.approx(1 - 30 / ((bags.y[test] - bags.y[test].mean()) ** 2).sum())


def test_calibration_of_a_calibrated_and_of_a_certain_forecast():
    y = np.array([0, 0, 0, 1] * 25)
    assert calibration_error(y, np.tile([0.75, 0.25], (100, 1))) == pytest.approx(0)
    assert calibration_error(y, np.tile([0.0, 1.0], (100, 1))) == pytest.approx(0.75)
    three = np.tile([0.6, 0.3, 0.1], (100, 1))
    assert calibration_error(np.repeat([0, 1, 2], [60, 30, 10]), three) == pytest.approx(0)


def test_located_rows_count_where_there_are_key_rows():
    bags = load_bags("digits", n=50)
    truth = bags.key_rows()
    found = np.array([rows[0] if len(rows) else 0 for rows in truth])
    assert located_share(truth, found) == 1
    p = np.full((50, 2), 0.5)
    assert score(bags, np.arange(50), p, found)["located"] == 1
    assert located_share([np.array([])], np.array([0])) is None


def test_probabilities_must_fit_the_classes():
    assert as_probabilities([0.25], 2).tolist() == [[0.75, 0.25]]
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        as_probabilities([[0.5, 0.5]], 3)
