"""scikit-learn's own estimator checks, plain and lifted to samples of several rows."""

import hashlib

import numpy as np
import pytest
import torch
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from diagatt import (
    BlendedClassifier,
    BlendedRegressor,
    DiagAttClassifier,
    DiagAttRegressor,
    RaggedRows,
)
from diagatt.solvers import Auto, Gradient, Mixture
from tests.short_contest import shorten_contests

LEAST_CHECKS = 55
# In some of the suite's random data no row decides, and a planted leak hides every row.
pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")


def lift(rows: RaggedRows) -> RaggedRows:
    """Turn every one-row sample into a sample of 1 to 4 rows that depend on its content alone.

    One-row samples never exercise the softmax; these do, and a leak between samples shows.
    """
    samples = []
    for (row,) in rows:
        digest = hashlib.sha256(np.round(row, 3).astype(np.float32).tobytes()).digest()
        count, place = 1 + digest[0] % 4, digest[1] % 4
        company = [np.roll(row, k) * (0.5 - 0.25 * k) for k in range(1, count)]
        company.insert(place % count, row)
        samples.append(np.stack(company))
    return RaggedRows.from_samples(samples)


class Lifted:
    def _validate_rows(self, X, *, reset):
        rows = super()._validate_rows(X, reset=reset)
        return lift(rows) if self.one_row_samples_ else rows


class LiftedRegressor(Lifted, DiagAttRegressor):
    pass


class LiftedClassifier(Lifted, DiagAttClassifier):
    pass


class LiftedBlendedRegressor(Lifted, BlendedRegressor):
    pass


class LiftedBlendedClassifier(Lifted, BlendedClassifier):
    pass


def members(kind):
    """Two solvers by themselves: the contest of all is what the estimators' own suites run."""
    return [("a", kind(solver="likelihood"), None), ("b", kind(solver=SHORT_GRADIENT), None)]


# The contract does not depend on how far a fit goes.
SHORT_GRADIENT, SHORT_MIXTURE = Gradient(max_epochs=15), Mixture(n_starts=1, max_epochs=15)


PLAIN = [
    DiagAttRegressor(),
    DiagAttClassifier(),
    DiagAttRegressor(solver=SHORT_MIXTURE),
    DiagAttClassifier(solver=SHORT_MIXTURE),
    BlendedRegressor(members(DiagAttRegressor)),
    BlendedClassifier(members(DiagAttClassifier)),
]
LIFTED = [
    LiftedRegressor(solver=Auto(folds=2)),
    LiftedClassifier(solver=Auto(folds=2)),
    LiftedRegressor(solver=SHORT_MIXTURE),
    LiftedClassifier(solver=SHORT_MIXTURE),
    LiftedBlendedRegressor(members(DiagAttRegressor)),
    LiftedBlendedClassifier(members(DiagAttClassifier)),
]


def run_checks(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    return {(r["check_name"], i): r for i, r in enumerate(results)}


@pytest.mark.parametrize("estimator", PLAIN, ids=lambda e: type(e).__name__)
def test_plain_suite(estimator):
    results = run_checks(estimator)
    assert [(k, r["exception"]) for k, r in results.items() if r["status"] != "passed"] == []
    assert len(results) >= LEAST_CHECKS


@pytest.mark.parametrize("estimator", LIFTED, ids=lambda e: type(e).__name__)
def test_lifted_suite(estimator, monkeypatch):
    shorten_contests(monkeypatch)
    # Attention is not convex: weights against repetition are compared at 1e-4, and only they.
    compare = estimator_checks.assert_allclose_dense_sparse

    def at_1e4(x, y, rtol=1e-7, atol=1e-9, err_msg=""):
        weights_are_compared = "sample_weight" in err_msg
        rtol, atol = (1e-4, 1e-4) if weights_are_compared else (rtol, atol)
        compare(x, y, rtol=rtol, atol=atol, err_msg=err_msg)

    monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", at_1e4)
    results = run_checks(estimator)
    assert [(k, r["exception"]) for k, r in results.items() if r["status"] != "passed"] == []
    assert len(results) >= LEAST_CHECKS


def assert_leak_is_seen(estimator):
    """scikit-learn's check that a sample is predicted alike alone and in company fails."""
    with pytest.raises(AssertionError):
        estimator_checks.check_methods_subset_invariance(type(estimator).__name__, estimator)


def test_the_lifted_suite_would_see_a_leak_between_samples(monkeypatch):
    """A planted leak (softmax over all rows of the batch) passes one-row samples, not these."""
    from diagatt.attention import coupling

    def leaking(scores, offsets):
        return torch.softmax(scores, dim=0) * (len(offsets) - 1)

    monkeypatch.setattr(coupling, "segment_softmax", leaking)
    assert_leak_is_seen(LiftedRegressor(solver=SHORT_GRADIENT))
