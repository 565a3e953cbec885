"""Data on which inference is judged: rows of several shapes, of which one decides or none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ROWS, FEATURES = 10, 5
COEFFICIENTS = np.array([1.0, -1.0, 0.5, 1.0, 0.0])
SHIFT = np.array([1.6, -0.8, 0.0, 0.0, 0.0])
# Size of effects on each family's predictor.
SIZES = {"gaussian": 1.0, "bernoulli": 1.0, "poisson": 0.3, "gamma": 0.3}


class Draw(NamedTuple):
    """Samples (n, p, d), responses, and the row that decides each."""

    X: np.ndarray
    y: np.ndarray
    place: np.ndarray


def rows_of(shape: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of variance 1, (n, 10, d); "correlated" ones share a part of their sample."""
    size = (n, ROWS, d)
    if shape == "t5":
        return rng.standard_t(5, size) * np.sqrt(3 / 5)
    if shape == "skew":
        return rng.exponential(size=size) - 1
    if shape == "correlated":
        return np.sqrt(0.3) * rng.normal(size=(n, 1, d)) + np.sqrt(0.7) * rng.normal(size=size)
    return rng.normal(size=size)


def responses(family: str, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw responses with linear predictors z."""
    if family == "gaussian":
        return z + 0.5 * rng.normal(size=len(z))
    if family == "bernoulli":
        return (z + rng.logistic(size=len(z)) > 0).astype(int)
    if family == "poisson":
        return rng.poisson(np.exp(np.clip(z, -20, 8))).astype(float)
    return rng.gamma(2.0, np.exp(z) / 2.0) + 1e-9


def active(shape: str, family: str, n: int, seed: int, effect: float = 1.0) -> Draw:
    """Draw samples of which one row in ten is shifted and stretched, and decides."""
    rng = np.random.default_rng(seed)
    X = rows_of(shape, n, FEATURES, rng)
    line, place = np.arange(n), rng.integers(ROWS, size=n)
    X[line, place] = 1.3 * X[line, place] + SHIFT
    z = effect * SIZES[family] * (X[line, place] @ COEFFICIENTS)
    return Draw(X, responses(family, z, rng), place)


def nothing(kind: str, family: str, n: int, d: int, seed: int) -> Draw:
    """Draw samples without a row of interest.

    "scales": rows and features have scales of their own; "outliers": one entry in a hundred is
    Cauchy; "pooled": the mean row decides.
    """
    rng = np.random.default_rng((seed, 7))
    X = rng.normal(size=(n, ROWS, d))
    z = np.zeros(n)
    if kind == "scales":
        X *= rng.lognormal(0, 0.7, size=(n, ROWS, 1)) * rng.lognormal(0, 1, size=d)
    elif kind == "outliers":
        X = np.where(rng.random(X.shape) < 0.01, 10 * rng.standard_cauchy(size=X.shape), X)
    elif kind == "pooled":
        beta = np.r_[1.0, -1.0, 0.5, 0.5, np.zeros(d - 4)]
        z = SIZES[family] * np.sqrt(ROWS) * (X.mean(axis=1) @ beta)
    return Draw(X, responses(family, z, rng), np.full(n, -1))
