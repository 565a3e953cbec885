"""Sets of rows that hold the active one with a stated probability.

Rows whose weight reaches a threshold are in the set: of all sets with the same coverage over
samples, these are the smallest on average. The threshold comes from labelled samples, where the
coverage is exact in finite samples; or from weights of held-out samples, where it is as true as
the weights are posteriors.
"""

from __future__ import annotations

import math

import numpy as np

# Levels whose thresholds are kept.
LEVELS = np.arange(1, 100) / 100


def thresholds(weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return, for every level, the weight above which rows have this share of all weight, (99,).

    Parameters
    ----------
    weights : array of shape (N,)
        κ of held-out rows.
    offsets : array of shape (n + 1,)

    Examples
    --------
    >>> thresholds(np.array([0.9, 0.1, 0.6, 0.4]), np.array([0, 2, 4]))[[49, 74, 94]].tolist()
    [0.6, 0.6, 0.4]
    """
    best = -np.sort(-weights)
    mass = np.cumsum(best) / (len(offsets) - 1)
    return best[np.minimum(np.searchsorted(mass, LEVELS - 1e-12), len(best) - 1)]


def threshold_at(kept: np.ndarray, level: float) -> float:
    """Return the threshold of a level between those that are kept; the lower of two neighbours."""
    place = int(np.ceil(level * 100 - 1e-9)) - 1
    return float(kept[min(max(place, 0), len(kept) - 1)])


def labelled_threshold(true_weights: np.ndarray, level: float) -> float:
    """Return the weight that true rows reach in new samples with probability `level` at least.

    Examples
    --------
    >>> labelled_threshold(np.array([0.1, 0.5, 0.7, 0.9]), level=0.8)
    0.1
    """
    m = len(true_weights)
    place = math.floor((m + 1) * (1 - level) + 1e-9)
    return float(np.sort(true_weights)[place - 1]) if place > 0 else 0.0


def sets_above(weights: list[np.ndarray], threshold: float) -> list[np.ndarray]:
    """Return the rows of each sample that reach the threshold, its best row at least."""
    return [np.flatnonzero((w >= threshold) | (w == w.max())) for w in weights]


def sets_of_mass(weights: list[np.ndarray], level: float) -> list[np.ndarray]:
    """Return the fewest rows of each sample whose weights sum to the level.

    Examples
    --------
    >>> sets_of_mass([np.array([0.2, 0.5, 0.3])], 0.75)
    [array([1, 2])]
    """
    found = []
    for w in weights:
        order = np.argsort(-w, kind="stable")
        count = int(np.searchsorted(np.cumsum(w[order]), level - 1e-12)) + 1
        found.append(np.sort(order[:count]))
    return found
