"""scikit-learn's own estimator checks, plain and lifted to samples of several rows."""

import hashlib

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows

LEAST_CHECKS = 55


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


PLAIN = [DiagAttRegressor(), DiagAttClassifier()]
LIFTED = [LiftedRegressor(), LiftedClassifier()]


@pytest.mark.parametrize("estimator", [*PLAIN, *LIFTED], ids=lambda e: type(e).__name__)
def test_estimator_checks(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] != "passed"]
    assert not failed
    assert len(results) >= LEAST_CHECKS
