"""Data on which inference is judged: rows of several shapes, of which one decides or none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ROWS, FEATURES = 10, 5
COEFFICIENTS = np.array([1.0, -1.0, 0.5, 1.0, 0.0])
SHIFT = np.array([1.6, -0.8, 0.0, 0.0, 0.0])
# Size of effects on each family's predictor.
SIZES = {"gaussian": 1.0, "bernoulli": 1.0, "poisson": 0.3, "gamma": 0.3, "negative_binomial": 0.3}
# Of rows that decide: they are stretched by it before they are shifted.
STRETCH = 1.3
# Of two rows that decide: what shifts them, and their coefficients.
SHIFTS = np.array([[2.5, 0.0, 0.0, 0.0, 0.0], [0.0, -2.5, 0.0, 0.0, 0.0]])
OF_HEADS = np.array([COEFFICIENTS, [0.5, 1.0, -1.0, 0.0, 1.0]])
# Samples from which coefficients under a wrong link are computed.
MANY = 200_000


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
    if family == "negative_binomial":  # variance μ + μ²/2
        return rng.poisson(rng.gamma(2.0, np.exp(np.clip(z, -20, 8)) / 2.0)).astype(float)
    return rng.gamma(2.0, np.exp(z) / 2.0) + 1e-9


def active(shape: str, family: str, n: int, seed: int, effect: float = 1.0) -> Draw:
    """Draw samples of which one row in ten is shifted and stretched, and decides."""
    rng = np.random.default_rng(seed)
    X = rows_of(shape, n, FEATURES, rng)
    line, place = np.arange(n), rng.integers(ROWS, size=n)
    X[line, place] = STRETCH * X[line, place] + SHIFT
    z = effect * SIZES[family] * (X[line, place] @ COEFFICIENTS)
    return Draw(X, responses(family, z, rng), place)


def clustered(family: str, n: int, seed: int) -> tuple[Draw, np.ndarray]:
    """Draw samples as `active` does in groups of five, which share a part of rows and responses."""
    rng = np.random.default_rng((seed, 17))
    group = np.arange(n) // 5
    shared = rng.normal(size=(group[-1] + 1, 1, FEATURES))[group]  # (n, 1, d)
    X = np.sqrt(0.5) * shared + np.sqrt(0.5) * rows_of("well", n, FEATURES, rng)
    line, place = np.arange(n), rng.integers(ROWS, size=n)
    X[line, place] = STRETCH * X[line, place] + SHIFT
    z = X[line, place] @ COEFFICIENTS + rng.normal(size=group[-1] + 1)[group]
    return Draw(X, responses(family, SIZES[family] * z, rng), place), group


def two_active(family: str, n: int, seed: int) -> Draw:
    """Draw samples of which two rows decide, each in its own way; `place` is that of both."""
    rng = np.random.default_rng((seed, 19))
    X = rows_of("well", n, FEATURES, rng)
    line = np.arange(n)
    place = np.array([rng.permutation(ROWS)[:2] for _ in line])  # (n, 2)
    z = np.zeros(n)
    for head, (shift, coefficients) in enumerate(zip(SHIFTS, OF_HEADS, strict=True)):
        own = place[:, head]
        X[line, own] = STRETCH * X[line, own] + shift
        z += SIZES[family] * (X[line, own] @ coefficients)
    return Draw(X, responses(family, z, rng), place)


def some_without(shape: str, family: str, n: int, share: float, seed: int) -> Draw:
    """Draw samples of which only a share has a row that decides; `place` is −1 in the others."""
    rng = np.random.default_rng((seed, 11))
    X = rows_of(shape, n, FEATURES, rng)
    line, place = np.arange(n), rng.integers(ROWS, size=n)
    has = rng.random(n) < share
    X[line[has], place[has]] = STRETCH * X[line[has], place[has]] + SHIFT
    z = np.where(has, SIZES[family] * (X[line, place] @ COEFFICIENTS), 0.0)
    return Draw(X, responses(family, z, rng), np.where(has, place, -1))


def wrong_link(family: str, n: int, seed: int) -> Draw:
    """Draw samples as `active` does whose responses have another link than the family says.

    Means are z + z²/8 (gaussian), the complementary log-log of z (bernoulli), and log(1 + e^(z+1))
    (counts and amounts).
    """
    rng = np.random.default_rng((seed, 13))
    X = rows_of("well", n, FEATURES, rng)
    line, place = np.arange(n), rng.integers(ROWS, size=n)
    X[line, place] = STRETCH * X[line, place] + SHIFT
    z = SIZES[family] * (X[line, place] @ COEFFICIENTS)
    if family == "gaussian":
        return Draw(X, responses(family, z + z**2 / 8, rng), place)
    if family == "bernoulli":
        return Draw(X, (rng.random(n) < 1 - np.exp(-np.exp(z))).astype(int), place)
    return Draw(X, responses(family, np.log(np.logaddexp(0, z + 1)), rng), place)


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
