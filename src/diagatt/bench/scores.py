"""Scores of predictions for the test samples of a set of bags; `diagatt.metrics` computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags
from diagatt.metrics import class_scores, number_scores

#: Scores with the count of digits to print; the first that a task has is its main one.
SCORES = {"auc": 3, "accuracy": 3, "r2": 3, "log_score": 3, "located": 2, "ece": 3}


def score(
    bags: Bags, test: np.ndarray, prediction: np.ndarray, located: np.ndarray | None
) -> dict[str, float]:
    """Return every score that the task has.

    Parameters
    ----------
    bags : Bags
    test : int array of shape (m,)
        Test samples.
    prediction : array of shape (m, n_classes) or (m,)
        Probabilities in the order of sorted classes, or expected responses.
    located : array of shape (m,), optional
        The located row of each test sample.
    """
    if bags.classifies:
        index = np.unique(bags.y, return_inverse=True)[1]
        found = class_scores(index[test], prediction)
    else:
        found = number_scores(bags.y[test], prediction, bags.family)
    if located is not None and bags.row_labels is not None:
        share = located_share([bags.key_rows()[i] for i in test], located)
        found |= {"located": share} if share is not None else {}
    return found


def located_share(true_rows: list[np.ndarray], located: np.ndarray) -> float | None:
    """Return the share of samples with key rows in which a key row is located; None without any.

    Examples
    --------
    >>> located_share([np.array([2]), np.array([]), np.array([0, 1])], np.array([2, 5, 3]))
    0.5
    """
    hits = [row in rows for rows, row in zip(true_rows, located, strict=True) if len(rows)]
    return float(np.mean(hits)) if hits else None


def as_probabilities(prediction: Any, n_classes: int) -> np.ndarray:
    """Return (m, n_classes) probabilities; a vector is that of class 1."""
    p = np.asarray(prediction, dtype=np.float64)
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    if p.shape[1] != n_classes or not np.isfinite(p).all():
        raise ValueError(f"probabilities have shape {p.shape} or are not finite.")
    return p
