"""Structured covariances against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.covariance import oas

from diagatt.solvers.likelihood.covariance import oas_intensity, structured


def test_oas_agrees_with_scikit_learn():
    X = np.random.default_rng(0).standard_normal((40, 6)) @ np.diag(np.arange(1, 7))
    X -= X.mean(axis=0)
    shrunk, alpha = oas(X, assume_centered=True)
    S = torch.from_numpy(X.T @ X / 40)
    assert oas_intensity(S, 40) == pytest.approx(alpha, rel=0.1)  # theirs drops the 2/d terms
    np.testing.assert_allclose(structured(S, 40, "full", alpha, 0), shrunk, rtol=1e-10)
