"""Fits whose results are kept: solver × family × score form × memory or store, two seeds.

``python -m tests.golden.cases auto`` writes the fits of cases anew whose name begins with "auto",
and without a word those of all cases; do that only if results should change.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows, RowStore
from diagatt.estimators import containers
from diagatt.families import get_family
from diagatt.solvers import SOLVERS

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


def estimator(case: dict[str, Any], seed: int) -> Any:
    """Make the estimator of a case."""
    family = case.get("family", "gaussian")
    kind = DiagAttClassifier if get_family(family).classifies else DiagAttRegressor
    solver = SOLVERS[case["solver"]](**case.get("how", {}))
    return kind(solver=solver, family=family, random_state=seed, **case.get("model", {}))


def fit(case: dict[str, Any], seed: int) -> dict[str, np.ndarray]:
    """Fit one case; return W, V, predictions and located rows."""
    X, y, Z, w = draw(**case, seed=seed)
    model = estimator(case, seed)
    if case.get("store"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store"
            shard = X.nbytes / 2**20 / 5
            RowStore.from_rows(path, X, y, dtype="float64", shard_mib=shard)
            model.fit(RowStore(path, memory=2.0))
    else:
        covariates = Z if case.get("covariates") else None
        model.fit(X, y, sample_weight=w if case.get("weighted") else None, covariates=covariates)
    given = {"covariates": Z} if case.get("covariates") else {}
    predict = getattr(model, "predict_proba", model.predict)
    return {
        "query_key": model.query_key_,
        "value": model.value_,
        "predict": predict(X, **given),
        "locate": model.locate(X),
    }


def fit_all(beginning: str = "") -> dict[str, np.ndarray]:
    """Fit cases whose name begins so with every seed; keys are ``case/seed/what``."""
    results = {}
    for name, case in CASES.items():
        for seed in SEEDS if name.startswith(beginning) else ():
            found = fit(case, seed)
            results |= {f"{name}/{seed}/{what}": array for what, array in found.items()}
    return results


if __name__ == "__main__":
    containers.READ_WHOLE = 0  # as in the tests
    with np.load(FITS) as stored:
        kept = dict(stored)
    np.savez_compressed(FITS, **kept | fit_all(*sys.argv[1:]))
