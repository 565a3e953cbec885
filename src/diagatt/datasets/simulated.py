"""The paper's simulations as bags, small enough for every rival."""

from __future__ import annotations

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.families import get_family
from diagatt.simulate import Simulation, classification, regression

_D = 8
_SHAPE = {"p": 20, "d": _D, "dtype": np.float64}
_CENTER = 0.7  # squared length of the center, 70 · 0.1²
_SIGNAL = 0.7  # standard deviation of the linear predictor of counts and times
_GAMMA_SHAPE = 4.0


def _numbers(n: int, seed: int) -> tuple[Simulation, np.ndarray]:
    data = regression(n, mu=(3.0,), sigma2=(4.0,), seed=seed, **_SHAPE)  # type: ignore[arg-type]
    return data, data.y


def _classes(n: int, seed: int) -> tuple[Simulation, np.ndarray]:
    center = np.full(_D, np.sqrt(_CENTER / _D))
    data = classification(n, center=center, seed=seed, **_SHAPE)  # type: ignore[arg-type]
    return data, data.y


def _counts(n: int, seed: int) -> tuple[Simulation, np.ndarray]:
    data, _ = _numbers(n, seed)
    return data, np.random.default_rng((seed, 2)).poisson(_means(data)).astype(np.float64)


def _times(n: int, seed: int) -> tuple[Simulation, np.ndarray]:
    data, _ = _numbers(n, seed)
    scale = _means(data) / _GAMMA_SHAPE
    return data, np.random.default_rng((seed, 2)).gamma(_GAMMA_SHAPE, scale)


def _means(data: Simulation) -> np.ndarray:
    """Return the means of responses with a log link, given by the active rows."""
    active = np.stack([x[r[0]] for x, r in zip(data.X, data.rows, strict=True)])
    beta = data.parameters.beta[0]  # type: ignore[attr-defined]
    return np.exp(1.0 + active @ beta * _SIGNAL / (2.0 * np.linalg.norm(beta)))  # σ of rows is 2


# The family of every simulation, and how its samples are drawn.
_DRAWN = {
    "simulated": ("gaussian", _numbers),
    "simulated_classes": ("bernoulli", _classes),
    "simulated_counts": ("poisson", _counts),
    "simulated_times": ("gamma", _times),
}


@provides(*_DRAWN)
def simulated_bags(name: str, n: int = 200, seed: int = 0) -> Bags:
    """Simulate samples of 20 rows with 8 features, one of which decides, in one of four families.

    "simulated" is the paper's regression with μ = 3 and σ² = 4, "simulated_classes" its mixture
    classification with a center as long as the paper's in 70 dimensions. For "simulated_counts" and
    "simulated_times" the active row x gives a Poisson or gamma response of mean exp(xᵀβ).
    """
    family, draw = _DRAWN[name]
    data, y = draw(n, seed)
    keys = np.zeros(data.X.n_rows, dtype=bool)
    keys[data.X.offsets[:-1] + data.rows[:, 0]] = True
    return Bags(
        name,
        data.X,
        y,
        "binary" if get_family(family).classifies else "regression",
        row_labels=keys,
        family=family,
        description=f"Gaussian rows, one of 20 decides a {family} response.",
        licence="BSD-3-Clause",
        source="diagatt.simulate",
    )
