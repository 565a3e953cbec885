"""The paper's simulations as bags, small enough for every rival."""

from __future__ import annotations

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.simulate import classification, regression

_FAMILIES = {
    "simulated": "gaussian",
    "simulated_classes": "bernoulli",
    "simulated_counts": "poisson",
    "simulated_times": "gamma",
}
_D = 8
_SHAPE = {"p": 20, "d": _D, "dtype": np.float64}
_CENTER = 0.7  # squared length of the center, 70 · 0.1²
_SIGNAL = 0.7  # standard deviation of the linear predictor of counts and times
_GAMMA_SHAPE = 4.0


@provides(*_FAMILIES)
def simulated_bags(name: str, n: int = 200, seed: int = 0) -> Bags:
    """Simulate samples of 20 rows with 8 features, one of which decides, in one of four families.

    "simulated" is the paper's regression with μ = 3 and σ² = 4, "simulated_classes" its mixture
    classification with a center as long as the paper's in 70 dimensions. For "simulated_counts"
    and "simulated_times" the active row x gives a Poisson or gamma response of mean exp(xᵀβ).
    """
    family = _FAMILIES[name]
    if family == "bernoulli":
        center = np.full(_D, np.sqrt(_CENTER / _D))
        data = classification(n, center=center, seed=seed, **_SHAPE)  # type: ignore[arg-type]
        y: np.ndarray = data.y
    else:
        data = regression(n, mu=(3.0,), sigma2=(4.0,), seed=seed, **_SHAPE)  # type: ignore[arg-type]
        y = data.y if family == "gaussian" else _with_log_link(data, family, seed)
    keys = np.zeros(data.X.n_rows, dtype=bool)
    keys[data.X.offsets[:-1] + data.rows[:, 0]] = True
    return Bags(
        name,
        data.X,
        y,
        "binary" if family == "bernoulli" else "regression",
        row_labels=keys,
        family=family,
        description=f"Gaussian rows, one of 20 decides a {family} response.",
        licence="BSD-3-Clause",
        source="diagatt.simulate",
    )


def _with_log_link(data: object, family: str, seed: int) -> np.ndarray:
    """Return Poisson or gamma responses of the active rows."""
    active = np.stack([x[r[0]] for x, r in zip(data.X, data.rows, strict=True)])  # type: ignore[attr-defined]
    beta = data.parameters.beta[0]  # type: ignore[attr-defined]
    mean = np.exp(1.0 + active @ beta * _SIGNAL / (2.0 * np.linalg.norm(beta)))  # σ of rows is 2
    rng = np.random.default_rng((seed, 2))
    if family == "poisson":
        return rng.poisson(mean).astype(np.float64)
    return rng.gamma(_GAMMA_SHAPE, mean / _GAMMA_SHAPE)
