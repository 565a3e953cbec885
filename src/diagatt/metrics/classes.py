"""Measures of predicted classes and their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn  # its metrics, which take 0.2 s, are imported when they are first used

from diagatt.arguments import Count, Numbers, WholeNumbers
from diagatt.arrays import InputError

#: Probabilities are kept from 0 and 1 by this much in log scores, for every method alike.
FLOOR = 1e-3


def accuracy(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Return the share of samples whose class was predicted.

    Parameters
    ----------
    y, predicted : array of shape (n,)
        True and predicted classes.
    sample_weight : array of shape (n,), optional

    Examples
    --------
    >>> accuracy(["ill", "well"], ["ill", "ill"])
    0.5
    """
    return float(sklearn.metrics.accuracy_score(y, predicted, sample_weight=sample_weight))


def class_scores(y: WholeNumbers, probability: Numbers, ordered: bool = False) -> dict[str, float]:
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
    _check(y, probability)
    p = np.clip(probability, FLOOR, 1)
    p = p / p.sum(axis=1, keepdims=True)
    right, present = p.argmax(axis=1) == y, np.unique(y)
    found = {}
    if len(present) == p.shape[1]:
        ranked = p[:, 1] if p.shape[1] == 2 else p
        found["auc"] = float(sklearn.metrics.roc_auc_score(y, ranked, multi_class="ovr"))
    if ordered:
        found["kappa"] = quadratic_kappa(y, p.argmax(axis=1), p.shape[1])
        found["rps"] = ranked_probability_score(y, probability)
    return found | {
        "accuracy": float(right.mean()),
        "balanced_accuracy": float(np.mean([right[y == c].mean() for c in present])),
        "log_score": float(np.log(p[np.arange(len(y)), y]).mean()),
    }


def quadratic_kappa(y: WholeNumbers, predicted: WholeNumbers, n_classes: Count) -> float:
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
    if a.shape != b.shape or a.ndim != 1 or not len(a) or max(a.max(), b.max()) >= n_classes:
        raise InputError(
            f"y and predicted must be columns of classes from 0 to {n_classes - 1}, as many of one "
            f"as of the other, got shapes {a.shape} and {b.shape}."
        )
    observed = float(np.mean((a - b) ** 2.0))
    shares = (np.bincount(k, minlength=n_classes) / len(a) for k in (a, b))
    one, other = shares
    classes = np.arange(n_classes)
    expected = float(one @ ((classes[:, None] - classes) ** 2.0) @ other)
    return 1 - observed / expected if expected > 0 else 0.0


def ranked_probability_score(y: WholeNumbers, probability: Numbers) -> float:
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
    _check(np.asarray(y), p)
    below = np.cumsum(p, axis=1)[:, :-1]
    true = np.asarray(y)[:, None] <= np.arange(p.shape[1] - 1)
    return float(((below - true) ** 2).mean())


def calibration_error(y: WholeNumbers, probability: Numbers, n_bins: Count = 10) -> float:
    r"""Return the expected calibration error :math:`Σ_b |B_b|/n · |\bar c_b − \bar a_b|`.

    Binary: bins of the probability of class 1, compared with how often it occurs. More classes:
    bins of the largest probability, compared with how often that class is right.

    Examples
    --------
    >>> float(calibration_error(np.array([0, 1]), np.array([[0.9, 0.1], [0.9, 0.1]])))
    0.4
    """
    _check(y, probability)
    if probability.shape[1] == 2:
        confidence, right = probability[:, 1], y == 1
    else:
        confidence, right = probability.max(axis=1), probability.argmax(axis=1) == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs((confidence - right)[bins == b].sum()) for b in range(n_bins)]
    return float(np.sum(gaps) / len(y))


def _check(y: np.ndarray, probability: np.ndarray) -> None:
    """Refuse probabilities that are none, and columns of classes that they do not have."""
    n, k = np.shape(probability) if np.ndim(probability) == 2 else (0, 0)
    if np.shape(y) != (n,) or n == 0 or k < 2:
        raise InputError(
            "probability must have a line per sample and a column per class, and y one class per "
            f"sample, got shapes {np.shape(probability)} and {np.shape(y)}."
        )
    if np.max(y) >= k:
        raise InputError(f"y has the class {np.max(y)}, and probability has {k} columns, from 0.")
    wrong = np.flatnonzero(~((probability >= 0) & (probability <= 1 + 1e-6)).all(axis=1))
    if len(wrong):
        raise InputError(f"probability[{wrong[0]}] does not lie between 0 and 1.")
