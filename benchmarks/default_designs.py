"""Data on which the default is judged: drawn anew for every seed, with the truth about them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diagatt import RaggedRows, simulate

# Digits that training bags are drawn from; test bags are drawn from the rest.
TRAINING_DIGITS, NINE = 900, 9
COEFFICIENTS, SHIFT = np.array([1.0, -1.0, 0.5, 1.0, 0.0]), np.array([1.6, -0.8, 0, 0, 0])


class Draw(NamedTuple):
    """Samples, responses, and the row that decides each (-1 if none does)."""

    X: RaggedRows
    y: np.ndarray
    place: np.ndarray


def digit_bags(n: int, seed: int, test: bool = False) -> Draw:
    """Draw bags of 8 to 12 digits of 8×8 pixels; half of them hold one nine."""
    from sklearn.datasets import load_digits

    source = load_digits()
    pixels, kinds = source.data / 16 - 0.5, source.target
    order = np.random.default_rng(seed).permutation(len(kinds))
    used = order[TRAINING_DIGITS:] if test else order[:TRAINING_DIGITS]
    nines, others = used[kinds[used] == NINE], used[kinds[used] != NINE]
    rng = np.random.default_rng((seed, 1 + test))
    y = rng.permutation(np.arange(n) % 2)
    chosen, place = [], np.full(n, -1)
    for i in range(n):
        rows = rng.choice(others, rng.integers(8, 12, endpoint=True), replace=False)
        if y[i]:
            place[i] = rng.integers(len(rows))
            rows[place[i]] = rng.choice(nines)
        chosen.append(pixels[rows])
    return Draw(RaggedRows.from_samples(chosen), y, place)


def shaped_rows(shape: str, family: str, n: int, seed: int) -> Draw:
    """Draw rows of a shape, variance 1; one of ten is shifted and stretched, and decides."""
    rng = np.random.default_rng(seed)
    size = (n, 10, 5)
    rows = {
        "gaussian": lambda: rng.normal(size=size),
        "t5": lambda: rng.standard_t(5, size) * np.sqrt(3 / 5),
        "skewed": lambda: rng.exponential(size=size) - 1,
    }[shape]()
    line, place = np.arange(n), rng.integers(10, size=n)
    rows[line, place] = 1.3 * rows[line, place] + SHIFT
    z = rows[line, place] @ COEFFICIENTS
    if family == "gaussian":
        y = z + 0.5 * rng.normal(size=n)
    else:
        y = (z + rng.logistic(size=n) > 0).astype(int)
    return Draw(RaggedRows.from_dense(rows), y, place)


def noise(kind: str, family: str, n: int, d: int, seed: int) -> Draw:
    """Draw ten rows per sample that have nothing to do with the response.

    "scales": rows and features have scales of their own, over about two orders of magnitude;
    "outliers": one entry in a hundred is Cauchy.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 10, d))
    if kind == "scales":
        rows *= rng.lognormal(0, 0.7, size=(n, 10, 1)) * rng.lognormal(0, 1, size=d)
    elif kind == "outliers":
        cauchy = 10 * rng.standard_cauchy(size=rows.shape)
        rows = np.where(rng.random(rows.shape) < 0.01, cauchy, rows)
    y = rng.normal(size=n) if family == "gaussian" else rng.permutation(np.arange(n) % 2)
    return Draw(RaggedRows.from_dense(rows), y, np.full(n, -1))


def simulated(n: int, p: int, d: int, seed: int, family: str = "gaussian") -> Draw:
    """Draw the paper's regression with μ = 3 and σ² = 4; bernoulli thresholds the response."""
    data = simulate.regression(n, p=p, d=d, mu=3.0, sigma2=4.0, dtype=np.float64, seed=seed)
    y = data.y if family == "gaussian" else (data.y > np.median(data.y)).astype(int)
    return Draw(data.X, y, data.rows[:, 0])


def changed_units(X: RaggedRows, change: str, seed: int) -> RaggedRows:
    """Return the rows in other units: factors 10^-6 … 10^6, shifts of 10³ SD, or both."""
    rng = np.random.default_rng((seed, 9))
    d, values = X.n_features, X.values
    if change in ("shifts", "both"):
        spread = values.std(axis=0)
        values = values + 1e3 * np.where(spread > 0, spread, 1.0) * rng.choice([-1, 1], d)
    if change in ("units", "both"):
        values = values * 10 ** rng.uniform(-6, 6, d)
    return RaggedRows(values, X.offsets)
