"""What long tables often hold that makes a fit look better than it is."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST_SAMPLES = 20  # below which a rank correlation is left to chance
FOLLOW_UP = 0.5  # rank correlation of times and counts of rows from which a hint is given


def same_within_samples(X: Any) -> list[str]:
    """Return the features that differ between samples, and never between rows of one."""
    if X.is_sparse or X.n_rows == len(X):
        return []
    values, first = X.values, X.values[np.repeat(X.offsets[:-1], X.lengths)]
    same = ((values == first) | (np.isnan(values) & np.isnan(first))).all(axis=0)
    varies = np.nanmin(values, axis=0, initial=np.inf) < np.nanmax(values, axis=0, initial=-np.inf)
    return [name for name, is_same in zip(X.feature_names, same & varies, strict=True) if is_same]


def rows_of_follow_up(lengths: np.ndarray, y: np.ndarray) -> float | None:
    """Return how counts of rows go with times to an event, if they do; None if they do not.

    Who survives for longer is visited more often. Rows that were added after time 0 therefore
    contain what is to be predicted. Times with a late entry are not judged: rows before the entry
    are no such rows.
    """
    names = y.dtype.names or ()
    if names != ("event", "time") or len(y) < LEAST_SAMPLES or np.ptp(lengths) == 0:
        return None
    from scipy.stats import spearmanr

    correlation = float(spearmanr(lengths, y["time"]).statistic)
    return correlation if correlation > FOLLOW_UP else None
