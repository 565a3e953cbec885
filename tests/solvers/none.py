"""Samples of which some have no row that decides."""

import numpy as np

from diagatt import RaggedRows

COEFFICIENTS = np.array([1.0, -1.0, 0.5])


def some_without(n, share, seed=0, level=0.0):
    """Samples (RaggedRows), responses, and the deciding row, −1 in samples that have none."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(3, 7), 3)) for _ in range(n)]
    has = rng.random(n) < share
    y, place = rng.normal(0, 0.3, n), np.full(n, -1)
    for i, sample in enumerate(X):
        if has[i]:
            place[i] = rng.integers(len(sample))
            sample[place[i]] = 1.3 * sample[place[i]] + [2.0, -1.0, 0.0]
            y[i] += sample[place[i]] @ COEFFICIENTS
        else:
            y[i] += level
    return RaggedRows.from_samples(X), y, place
