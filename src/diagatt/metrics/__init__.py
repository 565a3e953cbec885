r"""Measures of how well responses are predicted and rows of interest are located.

The log score is the mean log-likelihood of responses, and larger is better; `class_scores` and
`number_scores` say how it is found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagatt.arguments import check_arguments
from diagatt.metrics.classes import (
    accuracy,
    calibration_error,
    class_scores,
    quadratic_kappa,
    ranked_probability_score,
)
from diagatt.metrics.numbers import log_density, mean_deviance, number_scores, rmse
from diagatt.metrics.rows import crlr
from diagatt.metrics.times import concordance

__all__ = [
    "accuracy",
    "calibration_error",
    "class_scores",
    "concordance",
    "crlr",
    "log_density",
    "mean_deviance",
    "number_scores",
    "quadratic_kappa",
    "ranked_probability_score",
    "rmse",
]

check_arguments(globals())

#: Names of the scores for readers, in the order in which they are shown; the first is the main one.
NAMES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "quadratic kappa",
    "rps": "ranked probability",
    "concordance": "concordance",
    "uno_concordance": "Uno's concordance",
    "cumulative_auc": "AUC over time",
    "integrated_brier": "integrated Brier",
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "mean abs. error",
    "log_score": "log score",
}
#: Scores that are better if they are smaller.
COSTS = ("rmse", "mae", "rps", "integrated_brier")


def score_name(score: str) -> str:
    """Return the name of a score for readers; the score of one of several outcomes is "r2: bmi".

    Examples
    --------
    >>> score_name("r2: bmi")
    'R² of bmi'
    """
    name, _, outcome = score.partition(": ")
    return f"{NAMES[name]} of {outcome}" if outcome else NAMES[name]


def outcome_scores(
    y: np.ndarray,
    predicted: np.ndarray,
    names: Sequence[str],
    family: str = "gaussian",
    classifies: bool = False,
) -> dict[str, float]:
    """Return scores of several outcomes: their means, and R² or AUC of each as "r2: name".

    Parameters
    ----------
    y, predicted : arrays of shape (n, q)
        Predictions are means, or probabilities of labels.
    names : q names of the outcomes
    family : str
    classifies : bool
        Whether outcomes are labels of 0 and 1.

    Examples
    --------
    >>> y = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    >>> found = outcome_scores(y, y, ["a", "b"])
    >>> found["r2"], found["r2: b"]
    (1.0, 1.0)
    """

    def of_one(k: int) -> dict[str, float]:
        own, p = y[:, k], predicted[:, k]
        if not classifies:
            return number_scores(own, p, family)
        return class_scores(own.astype(int), np.column_stack([1 - p, p]))

    each = [of_one(k) for k in range(y.shape[1])]
    main = "auc" if classifies else "r2"
    same = [name for name in NAMES if all(name in one for one in each)]
    means = {name: float(np.mean([one[name] for one in each])) for name in same}
    own = {f"{main}: {n}": one[main] for n, one in zip(names, each, strict=True) if main in one}
    return means | own
