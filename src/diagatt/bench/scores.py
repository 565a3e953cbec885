r"""Scores of predictions for new samples; larger is better but for the calibration error.

The log score is the mean log-likelihood of test responses. Class probabilities are kept from 0 and
1 by `FLOOR`, for every method alike. Regressions give means only; their density is that of the
family with the dispersion that the *other* half of the test samples shows, so that no method is
favoured by fitting its training samples closely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from diagatt.datasets.bags import Bags
from diagatt.families import get_family

__all__ = ["FLOOR", "SCORES", "calibration_error", "located_share", "log_density", "score"]

FLOOR = 1e-3
#: Scores with the number of digits to print; the first that a task has is its main one.
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
        found = _of_classes(index[test], prediction)
    else:
        found = _of_numbers(bags.y[test], prediction, bags.family)
    if located is not None and bags.row_labels is not None:
        share = located_share([bags.key_rows()[i] for i in test], located)
        found |= {"located": share} if share is not None else {}
    return found


def _of_classes(y: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    p = np.clip(probability, FLOOR, 1)
    p = p / p.sum(axis=1, keepdims=True)
    found = {
        "log_score": float(np.log(p[np.arange(len(y)), y]).mean()),
        "accuracy": float((p.argmax(axis=1) == y).mean()),
    }
    if len(np.unique(y)) == p.shape[1]:  # a part without a class has no AUC
        ranked = p[:, 1] if p.shape[1] == 2 else p
        found["auc"] = float(roc_auc_score(y, ranked, multi_class="ovr"))
    return found


def _of_numbers(y: np.ndarray, mean: np.ndarray, family: str) -> dict[str, float]:
    spread = ((y - y.mean()) ** 2).sum()
    return {
        "r2": float(1 - ((y - mean) ** 2).sum() / spread),
        "log_score": float(log_density(y, mean, family).mean()),
    }


def log_density(y: np.ndarray, mean: np.ndarray, family: str) -> np.ndarray:
    """Return the log density of each response, (m,), given predicted means.

    Gaussian or gamma dispersion comes from the samples of the other half: even ones for odd ones
    and the other way round.
    """
    held = get_family("gaussian" if family == "auto" else family)
    if held.name != "gaussian":  # positive means, whatever a method predicts
        mean = np.maximum(mean, 0.01 * y.mean())
    response = torch.as_tensor(np.asarray(y, dtype=np.float64))
    z = held.link(torch.as_tensor(np.asarray(mean, dtype=np.float64))[:, None])
    density = np.empty(len(y))
    even = np.arange(len(y)) % 2 == 0
    for half in (even, ~even):
        other = torch.from_numpy(~half)
        phi = held.unit_dispersion(response[other], z[other]).mean().item()
        here = torch.from_numpy(half)
        floor = 1e-12 + 1e-4 * float(np.var(y)) if held.name == "gaussian" else 1e-12
        found = held.log_density(response[here], z[here], max(phi, floor))
        density[half] = found.numpy()
    return density


def located_share(true_rows: list[np.ndarray], located: np.ndarray) -> float | None:
    """Return the share of samples with key rows whose located row is one; None without any.

    Examples
    --------
    >>> located_share([np.array([2]), np.array([]), np.array([0, 1])], np.array([2, 5, 3]))
    0.5
    """
    hits = [row in rows for rows, row in zip(true_rows, located, strict=True) if len(rows)]
    return float(np.mean(hits)) if hits else None


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


def as_probabilities(prediction: Any, n_classes: int) -> np.ndarray:
    """Return (m, n_classes) probabilities; a vector is that of class 1."""
    p = np.asarray(prediction, dtype=np.float64)
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    if p.shape[1] != n_classes or not np.isfinite(p).all():
        raise ValueError(f"probabilities have shape {p.shape} or are not finite.")
    return p
