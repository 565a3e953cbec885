"""Measures of predicted classes and their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

#: Probabilities are kept from 0 and 1 by this much in log scores, for every method alike.
FLOOR = 1e-3


def class_scores(y: np.ndarray, probability: np.ndarray, ordered: bool = False) -> dict[str, float]:
    """Return AUC, accuracy, balanced accuracy and log score of class probabilities.

    With more than two classes, the AUC is the mean of one class against the rest. Samples that do
    not have every class have no AUC.

    Parameters
    ----------
    y : int array of shape (n,)
        Columns of the true classes.
    probability : array of shape (n, n_classes)
    ordered : bool
        Whether classes stand in an order: quadratic kappa and ranked probability score as well.

    Examples
    --------
    >>> found = class_scores(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]))
    >>> found["auc"], round(found["balanced_accuracy"], 2), round(found["log_score"], 2)
    (1.0, 0.75, -0.41)
    """
    p = np.clip(probability, FLOOR, 1)
    p = p / p.sum(axis=1, keepdims=True)
    right, present = p.argmax(axis=1) == y, np.unique(y)
    found = {}
    if len(present) == p.shape[1]:
        ranked = p[:, 1] if p.shape[1] == 2 else p
        found["auc"] = float(roc_auc_score(y, ranked, multi_class="ovr"))
    if ordered:
        found["kappa"] = quadratic_kappa(y, p.argmax(axis=1), p.shape[1])
        found["rps"] = ranked_probability_score(y, probability)
    return found | {
        "accuracy": float(right.mean()),
        "balanced_accuracy": float(np.mean([right[y == c].mean() for c in present])),
        "log_score": float(np.log(p[np.arange(len(y)), y]).mean()),
    }


def quadratic_kappa(y: Any, predicted: Any, n_classes: int) -> float:
    r"""Return Cohen's kappa of ordered classes, whose errors cost the square of their size.

    .. math:: κ = 1 - \frac{\sum_{ab} (a - b)^2 O_{ab}}{\sum_{ab} (a - b)^2 E_{ab}}

    with counts O of true and predicted classes and their expectation E if both were independent.
    It is 1 if all are right, 0 if predictions are as good as chance, and 0 if all are of one class.

    Parameters
    ----------
    y, predicted : int arrays of shape (n,)
        From 0 to n_classes − 1.
    n_classes : int

    Examples
    --------
    >>> round(quadratic_kappa([0, 1, 2], [0, 1, 1], 3), 4)
    0.6667
    """
    a, b = np.asarray(y), np.asarray(predicted)
    observed = float(np.mean((a - b) ** 2.0))
    shares = (np.bincount(k, minlength=n_classes) / len(a) for k in (a, b))
    one, other = shares
    classes = np.arange(n_classes)
    expected = float(one @ ((classes[:, None] - classes) ** 2.0) @ other)
    return 1 - observed / expected if expected > 0 else 0.0


def ranked_probability_score(y: Any, probability: Any) -> float:
    r"""Return the mean squared error of cumulative class probabilities; smaller is better.

    .. math:: \mathrm{RPS} = \frac{1}{n (K - 1)} \sum_i \sum_{k < K - 1}
              \Bigl(P_i(y ≤ k) - 1\{y_i ≤ k\}\Bigr)^2

    Parameters
    ----------
    y : int array of shape (n,)
        From 0 to K − 1.
    probability : array of shape (n, K)

    Examples
    --------
    >>> ranked_probability_score([0, 2], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    0.5
    """
    p = np.asarray(probability, dtype=np.float64)
    below = np.cumsum(p, axis=1)[:, :-1]
    true = np.asarray(y)[:, None] <= np.arange(p.shape[1] - 1)
    return float(((below - true) ** 2).mean())


def calibration_error(y: np.ndarray, probability: np.ndarray, n_bins: int = 10) -> float:
    r"""Return the expected calibration error :math:`Σ_b |B_b|/n · |\bar c_b − \bar a_b|`.

    Binary: bins of the probability of class 1, compared with how often it occurs. More classes:
    bins of the largest probability, compared with how often that class is right.

    Examples
    --------
    >>> float(calibration_error(np.array([0, 1]), np.array([[0.9, 0.1], [0.9, 0.1]])))
    0.4
    """
    if probability.shape[1] == 2:
        confidence, right = probability[:, 1], y == 1
    else:
        confidence, right = probability.max(axis=1), probability.argmax(axis=1) == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs((confidence - right)[bins == b].sum()) for b in range(n_bins)]
    return float(np.sum(gaps) / len(y))
