"""scikit-learn's own estimator checks for every competitor, plain and lifted to several rows.

MDSP is not here: it predicts nothing without the response; its contract is tested on its own.
Nor are Cox regressions, whose responses are times with events, which scikit-learn has not.
"""

import pytest

from diagatt.competitors import (
    MDSPClassifier,
    MDSPRegressor,
    StdAttClassifier,
    StdAttRegressor,
    TwoStepClassifier,
    TwoStepRegressor,
)
from diagatt.estimators import GatedAttentionClassifier, GatedAttentionRegressor, PooledRegressor
from diagatt.estimators.competitor import Competitor
from diagatt.estimators.times import CoxCompetitor
from diagatt.persistence import registered
from tests.test_sklearn_checks import Lifted, assert_leak_is_seen, run_checks

ALL = [kind for kind in registered().values() if issubclass(kind, Competitor)]
APART = (MDSPRegressor, MDSPClassifier, CoxCompetitor)
COMPETITORS = [kind for kind in ALL if not issubclass(kind, APART)]
SMALL: dict[type, dict] = {
    GatedAttentionRegressor: {"n_hidden": 8, "max_epochs": 10},
    GatedAttentionClassifier: {"n_hidden": 8, "max_epochs": 10},
    StdAttRegressor: {"max_epochs": 1},
    StdAttClassifier: {"max_epochs": 1},
}
# Two-Step takes no sample weights and is spared the checks of weights.
LEAST_CHECKS = {TwoStepRegressor: 52, TwoStepClassifier: 55}


def test_all_competitors_are_registered():
    assert len(COMPETITORS) >= 10


def lifted(competitor):
    """The competitor on samples of 1 to 4 rows, findable by name so that it can be pickled."""
    name = f"Lifted{competitor.__name__}"
    globals()[name] = type(name, (Lifted, competitor), {"__module__": __name__})
    return globals()[name]


LIFTED = {competitor: lifted(competitor) for competitor in COMPETITORS}


def assert_all_pass(estimator, least):
    results = run_checks(estimator)
    assert [(k, r["exception"]) for k, r in results.items() if r["status"] != "passed"] == []
    assert len(results) >= least


@pytest.mark.parametrize("competitor", COMPETITORS)
def test_plain_suite(competitor):
    estimator = competitor(**SMALL.get(competitor, {}))
    assert_all_pass(estimator, LEAST_CHECKS.get(competitor, 58))


@pytest.mark.parametrize("competitor", COMPETITORS)
def test_lifted_suite(competitor):
    estimator = LIFTED[competitor](**SMALL.get(competitor, {}))
    assert_all_pass(estimator, LEAST_CHECKS.get(competitor, 58))


def test_the_lifted_suite_would_see_a_leak_between_samples(monkeypatch):
    """A planted leak (mean over all rows of the batch) passes one-row samples, not these."""
    from diagatt.estimators import pooled

    def leaking(values, offsets):
        return values.mean(dim=0).expand(len(offsets) - 1, -1) + values[offsets[:-1]]

    monkeypatch.setattr(pooled, "segment_mean", leaking)
    assert_leak_is_seen(LIFTED[PooledRegressor]())
