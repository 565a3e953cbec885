"""The best separating matrices, scaled."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.theory import (
    Moments,
    SeparationError,
    best_separators,
    class_moments,
    score_gap,
    separating_start,
)
from tests.theory.samples import QuadraticModel, ragged


def test_start_separates_and_is_scaled():
    X, rows = ragged(np.random.default_rng(8), 500, 24, s=2)
    classes, background = class_moments(X, rows)
    W = separating_start(classes, background, p_max=9, epsilon=0.1)
    assert W.shape == (2, 24, 24)
    for k in range(2):
        gap = score_gap(W[k] / np.sqrt(24), classes[k], [background, classes[1 - k]])
        assert gap == pytest.approx(2 * np.log(8 / 0.1))
    located = QuadraticModel(W).locate(X)
    assert np.mean(located == rows) > 0.95


def test_start_refuses_what_cannot_be_separated():
    row = Moments(np.zeros(3), np.eye(3))
    with pytest.raises(SeparationError, match="no construction separates class 0"):
        best_separators([row], row)


def test_start_with_fewer_rows_than_features():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((12, 3, 40))
    rows = rng.integers(3, size=12)
    X[np.arange(12), rows] *= 5
    W = separating_start(*class_moments(X, rows))
    assert np.all(np.isfinite(W))
