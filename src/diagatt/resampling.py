"""How sure scores are: folds, and intervals over folds or over samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

__all__ = ["bootstrap_intervals", "draw_folds", "paired_interval"]

N_DRAWS = 1000
MAX_WORK = 50_000_000  # samples that are scored in all draws together
LEAST_DRAWS = 200


def draw_folds(
    y: np.ndarray, classifies: bool, groups: Any = None, n_folds: int = 5, seed: int = 0
) -> np.ndarray:
    """Draw the test fold of every sample, (n,): classes are stratified, groups stay together.

    Examples
    --------
    >>> folds = draw_folds(np.array([0, 0, 1, 1]), True, n_folds=2)
    >>> bool(folds[0] != folds[1]), bool(folds[2] != folds[3])  # one of each class in either
    (True, True)
    """
    how: dict[tuple[bool, bool], Any] = {
        (True, True): StratifiedGroupKFold,
        (True, False): StratifiedKFold,
        (False, True): GroupKFold,
        (False, False): KFold,
    }
    folds = how[classifies, groups is not None](n_folds, shuffle=True, random_state=seed)
    fold = np.empty(len(y), dtype=np.int64)
    for k, (_, tested) in enumerate(folds.split(np.zeros(len(y)), y, groups)):
        fold[tested] = k
    return fold


def paired_interval(
    differences: Sequence[float], test_share: float, level: float = 0.95
) -> tuple[float, float, float]:
    r"""Return the mean difference with its corrected resampled t interval.

    Splits share samples, so their differences are correlated; Nadeau and Bengio (2003) replace the
    variance of the mean by :math:`(1/K + n_{test}/n_{train})\,s²`. Scores of one method are their
    differences from 0.

    Parameters
    ----------
    differences : sequence of K floats
        One per split.
    test_share : float
        n_test / n_train.
    level : float

    Examples
    --------
    >>> mean, low, high = paired_interval([0.1, 0.2, 0.3], test_share=0.25)
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.2, -0.129, 0.529)
    """
    d = np.asarray(differences, dtype=float)
    if len(d) < 2:
        return float(d.mean()), -np.inf, np.inf
    width = student.ppf((1 + level) / 2, len(d) - 1)
    width *= np.sqrt((1 / len(d) + test_share) * d.var(ddof=1))
    return float(d.mean()), float(d.mean() - width), float(d.mean() + width)


def bootstrap_intervals(
    scores: Callable[[np.ndarray], Mapping[str, float]],
    n_samples: int,
    *,
    n_draws: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Return percentile intervals of scores over samples that are drawn with replacement.

    Parameters
    ----------
    scores : callable
        Scores of the samples with these indices. A score that a draw does not have, such as the
        AUC of one class, is left out there.
    n_samples : int
    n_draws : int, optional
        1000, and fewer for very many samples.
    level : float
    seed : int

    Examples
    --------
    >>> y = np.arange(100.0)
    >>> intervals = bootstrap_intervals(lambda i: {"mean": y[i].mean()}, 100)
    >>> low, high = intervals["mean"]
    >>> bool(43 < low < 45 < 54 < high < 56)
    True
    """
    if n_draws is None:
        n_draws = int(np.clip(MAX_WORK // n_samples, LEAST_DRAWS, N_DRAWS))
    rng = np.random.default_rng(seed)
    found: dict[str, list[float]] = {}
    for _ in range(n_draws):
        for name, value in scores(rng.integers(n_samples, size=n_samples)).items():
            found.setdefault(name, []).append(value)
    ends = [(1 - level) / 2, (1 + level) / 2]
    return {name: tuple(np.quantile(drawn, ends).tolist()) for name, drawn in found.items()}
