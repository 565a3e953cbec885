"""Figures of times to an event."""

import numpy as np
import pytest

from diagatt import DiagAttSurvival, plots
from diagatt.lifetimes import make_times
from diagatt.survival_metrics import kaplan_meier, log_rank


def cohort(n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, make_times(rng.random(n) < 0.7, rng.exponential(np.exp(-X[:, 0])))


def test_curves_of_risk_groups_are_those_of_kaplan_and_meier():
    X, y = cohort()
    ax = plots.survival_by_risk(y, X[:, 0])
    assert len(ax.lines) == 3
    low = X[:, 0] <= np.sort(X[:, 0])[29]
    at, curve, _ = kaplan_meier(y["event"][low], y["time"][low])
    drawn_x, drawn_y = ax.lines[0].get_data()
    np.testing.assert_allclose(drawn_x[1 : len(at) + 1], at)
    np.testing.assert_allclose(drawn_y[1 : len(at) + 1], curve)
    groups = np.digitize(X[:, 0], np.sort(X[:, 0])[[30, 60]])
    assert log_rank(y["event"], y["time"], groups).p < 1e-3
    assert ax.get_title() == "log-rank p < 0.001"
    with pytest.raises(ValueError, match="n_groups must lie between 2 and 90"):
        plots.survival_by_risk(y, X[:, 0], n_groups=1)


@pytest.mark.parametrize("family", ["cox", "weibull"])
def test_the_baseline_is_the_hazard_of_a_predictor_of_zero(family):
    X, y = cohort()
    model = DiagAttSurvival(family=family).fit(X, y)
    _, hazard = plots.baseline_hazard(model).lines[0].get_data()
    expected = model.predict_cumulative_hazard_function(
        np.zeros((1, 2)), return_array=True, offset=[-model.intercept_]
    )[0]
    np.testing.assert_allclose(hazard[1:], expected, rtol=1e-9)


@pytest.mark.parametrize("family", ["cox", "weibull"])
def test_hazard_ratios_are_those_of_survival_functions(family):
    """Brute force: cumulative hazards of a row alone, over those of the pooled row."""
    X, y = cohort()
    model = DiagAttSurvival(family=family, solver="gradient", random_state=0)
    bags = [X[[i, (i + 1) % 90, (i + 7) % 90]] for i in range(90)]
    ax = plots.hazard_ratios(model.fit(bags, y), bags[0])
    kappa = model.attention(bags[:1])[0][:, 0]
    risk = model.predict([row[None] for row in bags[0]])  # ⟨v, x_j⟩ + b, or its negative
    scale = 1.0 if family == "cox" else model.shape_[0]
    expected = np.sort(np.exp((risk - kappa @ risk) / scale))
    found = ax.collections[0].get_offsets().data
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)
    hazard = model.predict_cumulative_hazard_function
    alone = hazard([bags[0][:1]], return_array=True)[0] / hazard(bags[:1], return_array=True)[0]
    assert np.abs(expected - alone[-1]).min() < 1e-6 * alone[-1]
    lognormal = DiagAttSurvival(family="lognormal", solver="uniform").fit(bags, y)
    with pytest.raises(ValueError, match="has no proportional hazards"):
        plots.hazard_ratios(lognormal, bags[0])
