"""Samples with a marked row, samples of one row, and estimators that fit them quickly."""

import numpy as np

from diagatt import RaggedRows
from tests import models

D = 3


def marked_rows(n=80, seed=0, dtype=np.float64, shortest=2, longest=6):
    """One row of each sample is larger and decides the response; rows, y, and where it is."""
    rng = np.random.default_rng(seed)
    X, y, where = [], [], []
    for _ in range(n):
        sample = rng.normal(size=(rng.integers(shortest, longest + 1), D))
        place = rng.integers(len(sample))
        sample[place, 0] += 4
        X.append(sample.astype(dtype))
        y.append(sample[place] @ [1.0, -2.0, 0.5] + 0.1 * rng.normal())
        where.append(place)
    return RaggedRows.from_samples(X), np.array(y), np.array(where)


def regressor(**options):
    return models.regressor(**{"solver": "gradient", "random_state": 0, **options})


def classifier(**options):
    return models.classifier(**{"solver": "gradient", "random_state": 0, **options})


def one_row_data(family, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    z = X @ [0.5, -0.3, 0.2] + 0.4
    y = {
        "gaussian": lambda: z + rng.normal(size=n),
        "poisson": lambda: rng.poisson(np.exp(z)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(z) / 2),
        "bernoulli": lambda: (z + rng.logistic(size=n) > 0).astype(int),
        "multinomial": lambda: np.digitize(z + rng.normal(size=n), [0, 0.8]),
    }[family]()
    return X, y, rng.uniform(0.5, 2, size=n)
