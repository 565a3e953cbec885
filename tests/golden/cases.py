"""Fits whose results are kept: solver × family × score form × memory or store, two seeds.

``python -m tests.golden.cases`` writes `fits.npz` anew; do that only if results should change.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows, RowStore

FITS = Path(__file__).with_name("fits.npz")
N, P, D = 240, 6, 4
CASES: dict[str, dict[str, Any]] = {
    # name: family, solver and its parameters, parameters of the model, what comes with the rows
    "likelihood gaussian": {"solver": "likelihood"},
    "likelihood quadratic": {"solver": "likelihood", "model": {"score_form": "quadratic"}},
    "likelihood contextual": {"solver": "likelihood", "model": {"score_form": "contextual"}},
    "likelihood two heads": {"solver": "likelihood", "model": {"n_heads": 2}},
    "likelihood independent": {
        "solver": "likelihood",
        "model": {"n_heads": 2, "coupling": "independent"},
    },
    "likelihood low rank": {
        "solver": "likelihood",
        "how": {"covariance": "low_rank", "rank": 1},
    },
    "likelihood bernoulli": {"solver": "likelihood", "family": "bernoulli"},
    "likelihood multinomial": {"solver": "likelihood", "family": "multinomial"},
    "likelihood poisson": {"solver": "likelihood", "family": "poisson", "weighted": True},
    "likelihood gamma": {"solver": "likelihood", "family": "gamma", "covariates": True},
    "likelihood store": {"solver": "likelihood", "store": True},
    "gradient gaussian": {"solver": "gradient", "covariates": True, "weighted": True},
    "gradient bernoulli": {"solver": "gradient", "family": "bernoulli"},
    "gradient multinomial": {
        "solver": "gradient",
        "family": "multinomial",
        "model": {"score_form": "contextual"},
    },
    "gradient poisson": {"solver": "gradient", "family": "poisson"},
    "gradient gamma": {"solver": "gradient", "family": "gamma"},
    "gradient adam": {
        "solver": "gradient",
        "how": {"optimizer": "adam", "max_epochs": 4, "row_dropout": 0.2, "value_dropout": 0.3},
        "model": {"n_heads": 2, "coupling": "independent"},
    },
    "gradient factored": {
        "solver": "gradient",
        "how": {
            "parameterization": "factored",
            "rank": 1,
            "n_restarts": 2,
            "optimizer": "adam",
            "max_epochs": 3,
        },
        "model": {"score_form": "quadratic", "coupling": "independent"},
    },
    "gradient bounded": {
        "solver": "gradient",
        "how": {
            "parameterization": "psd",
            "value_bound": 1.0,
            "score_bound": 2.0,
            "max_epochs": 3,
            "validation_fraction": 0.2,
            "init": "zero",
        },
    },
    "gradient store": {
        "solver": "gradient",
        "how": {"max_epochs": 3},
        "family": "bernoulli",
        "store": True,
    },
    "auto small": {"solver": "auto", "family": "bernoulli"},
    "auto large": {"solver": "auto", "n": 520},
    "auto store": {"solver": "auto", "n": 520, "store": True},
}
SEEDS = (0, 1)


def draw(family: str = "gaussian", n: int = N, seed: int = 0, **_: Any):
    """Samples of which one row is larger and decides the response; covariates and weights."""
    rng = np.random.default_rng([seed, n])
    lengths = rng.integers(3, P + 1, n)
    rows = [rng.normal(size=(p, D)) for p in lengths]
    place = [rng.integers(p) for p in lengths]
    for sample, j in zip(rows, place, strict=True):
        sample[j] = 1.5 * sample[j] + np.array([2.0, 0, 0, 1.0])
    active = np.stack([sample[j] for sample, j in zip(rows, place, strict=True)])
    Z = rng.normal(size=(n, 2))
    z = active @ np.array([0.2, 0.6, -0.5, 0.3]) + Z @ np.array([0.3, -0.2])
    mean = np.exp(0.5 * z)
    y = {
        "gaussian": lambda: z + 0.5 * rng.normal(size=n),
        "bernoulli": lambda: (z + rng.logistic(size=n) > 0.7).astype(int),
        "multinomial": lambda: np.digitize(z + rng.logistic(size=n), [0.0, 1.5]),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(3.0, mean / 3),
    }[family]()
    return RaggedRows.from_samples(rows), y, Z, rng.integers(1, 4, n).astype(float)
