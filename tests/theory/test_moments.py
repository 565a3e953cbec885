"""Moments of labelled rows, the variance of a score, and what is no moment."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.theory import Moments, class_moments, score_variance
from tests.theory.draws import sample_rows
from tests.theory.samples import ragged


def test_class_moments_match_a_loop():
    rng = np.random.default_rng(0)
    X, rows = ragged(rng, 40, 4, s=2)
    classes, background = class_moments(X, rows)
    for k in range(2):
        chosen = np.array([x[j] for x, j in zip(X, rows[:, k], strict=True)])
        np.testing.assert_allclose(classes[k].mean, chosen.mean(axis=0))
        np.testing.assert_allclose(classes[k].covariance, np.cov(chosen.T))
    rest = np.concatenate([np.delete(x, js, axis=0) for x, js in zip(X, rows, strict=True)])
    np.testing.assert_allclose(background.covariance, np.cov(rest.T))


@pytest.mark.parametrize(("df", "kurtosis"), [(None, 0.0), (12.0, 6 / 8)])
def test_score_variance(df, kurtosis):
    rng = np.random.default_rng(13)
    # Diagonal covariance: sample_rows then uses the symmetric root of the formula.
    row = Moments(rng.standard_normal(6), np.diag(rng.uniform(0.5, 2, 6)))
    W = rng.standard_normal((6, 6))
    x = sample_rows(rng, row, 200_000, df)
    scores = np.einsum("ij,ij->i", x @ W, x)
    centred = (scores - scores.mean()) ** 2
    error = centred.std() / np.sqrt(len(scores))
    assert abs(centred.mean() - score_variance(W, row, kurtosis)) <= 4 * error


def test_bad_moments_are_refused_by_name():
    with pytest.raises(ValueError, match="not symmetric"):
        Moments(np.zeros(2), [[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="negative eigenvalue"):
        Moments(np.zeros(2), np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match="NaN"):
        Moments(np.zeros(2), np.diag([1.0, np.nan]))
