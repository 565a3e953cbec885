"""scikit-learn's own estimator checks for every competitor, plain and lifted to several rows."""

import pytest
from sklearn.utils import estimator_checks

from diagatt.estimators.gated import GatedAttentionClassifier, GatedAttentionRegressor
from diagatt.estimators.pooled import PooledClassifier, PooledRegressor
from diagatt.estimators.standard import StdAttClassifier, StdAttRegressor
from tests.test_sklearn_checks import LEAST_CHECKS, Lifted, run_checks

CONVEX = [PooledRegressor, PooledClassifier]
ATTENTION = [
    StdAttRegressor,
    StdAttClassifier,
    GatedAttentionRegressor,
    GatedAttentionClassifier,
]


def lifted(competitor):
    """The competitor on samples of 1 to 4 rows, findable by name so that it can be pickled."""
    name = f"Lifted{competitor.__name__}"
    globals()[name] = type(name, (Lifted, competitor), {"__module__": __name__})
    return globals()[name]


LIFTED = {competitor: lifted(competitor) for competitor in CONVEX + ATTENTION}


def assert_all_pass(estimator):
    results = run_checks(estimator)
    assert [(k, r["exception"]) for k, r in results.items() if r["status"] != "passed"] == []
    assert len(results) >= LEAST_CHECKS


@pytest.mark.parametrize("competitor", CONVEX + ATTENTION)
def test_plain_suite(competitor):
    assert_all_pass(competitor())


@pytest.mark.parametrize("competitor", CONVEX)
def test_lifted_suite(competitor):
    assert_all_pass(LIFTED[competitor]())


@pytest.mark.parametrize("competitor", ATTENTION)
def test_lifted_suite_of_attention(competitor, monkeypatch):
    # Attention is not convex: weights against repetition are compared at 1e-4, and only they.
    compare = estimator_checks.assert_allclose_dense_sparse

    def at_1e4(x, y, rtol=1e-7, atol=1e-9, err_msg=""):
        rtol, atol = (1e-4, 1e-4) if "sample_weight" in err_msg else (rtol, atol)
        compare(x, y, rtol=rtol, atol=atol, err_msg=err_msg)

    monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", at_1e4)
    assert_all_pass(LIFTED[competitor]())
