"""Labelled ragged samples and a stand-in for a fitted model."""

from __future__ import annotations

import numpy as np

from diagatt import RaggedRows


class QuadraticModel:
    """Stands in for a fitted estimator: scores rows by given matrices."""

    def __init__(self, W):
        self.W = np.asarray(W)  # (R, d, d)

    def scores(self, X):
        scores = np.einsum("id,rde,ie->ir", X.values, self.W, X.values)
        return np.split(scores, X.offsets[1:-1])

    def locate(self, X):
        return np.array([scores.argmax(axis=0) for scores in self.scores(X)])


def ragged(rng, n, d, s=1, strength=6.0, low=3, high=9):
    """Samples of differing length; class k is strong on its own block of features."""
    lengths = rng.integers(max(low, s + 1), high, n)
    samples, rows = [], np.empty((n, s), dtype=int)
    for i, p in enumerate(lengths):
        x = rng.standard_normal((p, d))
        rows[i] = rng.permutation(p)[:s]
        for k, j in enumerate(rows[i]):
            x[j, np.arange(d) * s // d == k] *= strength
        samples.append(x)
    return RaggedRows.from_samples(samples), rows
