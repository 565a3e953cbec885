r"""Measures of how well responses are predicted and rows of interest are located.

The log score is the mean log-likelihood of responses, and larger is better. Class probabilities are
kept from 0 and 1 by `FLOOR`, for every method alike. Regressions give means only; their density is
that of the family with the dispersion that the *other* half of the samples shows, so that no method
is favoured by fitting its training samples closely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score as accuracy
from sklearn.metrics import (
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from diagatt.families import get_family

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

FLOOR = 1e-3
TIED_RISK = 1e-8  # risks that differ by less are equal, as in scikit-survival
#: What people call the scores, in the order in which they are shown; the first is the main one.
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
#: Scores of which less is better.
COSTS = ("rmse", "mae", "rps", "integrated_brier")


def score_name(score: str) -> str:
    """Return what a score is called; that of one of several outcomes is "r2: bmi".

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


def number_scores(y: np.ndarray, mean: np.ndarray, family: str = "gaussian") -> dict[str, float]:
    """Return R² (of two samples or more), RMSE, mean absolute error and log score.

    Parameters
    ----------
    y, mean : array of shape (n,)
        Responses and predicted means.
    family : str
        Distribution of the log score; "auto" is gaussian.

    Examples
    --------
    >>> found = number_scores(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0]))
    >>> round(found["r2"], 3), round(found["rmse"], 3), round(found["mae"], 3)
    (0.786, 0.577, 0.333)
    """
    found = {} if len(y) < 2 else {"r2": float(r2_score(y, mean))}
    found |= {"rmse": rmse(y, mean), "mae": float(mean_absolute_error(y, mean))}
    # The dispersion comes from the other half, which must be there.
    return (
        found if len(y) < 2 else found | {"log_score": float(log_density(y, mean, family).mean())}
    )


def rmse(y: Any, prediction: Any) -> float:
    """Return the root mean squared error ``‖y − ŷ‖₂ / √n``, in float64 (paper, Section 5.1).

    Parameters
    ----------
    y, prediction : array of shape (n,)

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    return float(root_mean_squared_error(*_pair(y, prediction, "prediction")))


def crlr(true_rows: Any, located_rows: Any) -> float:
    """Return the correct localization rate of the rows of interest (paper, Section 5.1).

    ``CRLR = n⁻¹ Σ_i |S_i ∩ Ŝ_i| / |S_i|``, as a fraction in [0, 1]; the paper prints percentages.
    Both are sets: a row located by several heads counts once, and additional located rows cost
    nothing.

    Parameters
    ----------
    true_rows : array of shape (n, s), or n collections of row indices
        The active rows ``S_i``; a 1-D array of n integers means one row per sample.
    located_rows : array of shape (n, R), or n collections of row indices
        The located rows ``Ŝ_i``, any number per sample.

    Examples
    --------
    >>> crlr([[3, 5], [0, 1]], [[5, 3], [1, 1]])
    0.75
    >>> crlr([7, 2], [{7, 8, 9}, set()])
    0.5
    """
    true, located = _as_sets(true_rows), _as_sets(located_rows)
    if len(true) != len(located):
        raise ValueError(
            f"true_rows describes {len(true)} samples, located_rows {len(located)}: "
            "pass one set of rows per sample in both."
        )
    if not true:
        raise ValueError("true_rows is empty: CRLR needs at least one sample.")
    for i, rows in enumerate(true):
        if not rows:
            raise ValueError(f"sample {i} has no true row, so its CRLR is 0/0: drop the sample.")
    pairs = zip(true, located, strict=True)
    return float(np.mean([len(rows & found) / len(rows) for rows, found in pairs]))


def mean_deviance(family_name: str, y: Any, mean: Any) -> float:
    """Return the mean unit deviance: twice the log-likelihood lost to a perfect prediction.

    It is ``2(ℓ(y, g(m)) − min ℓ(y, ·))`` with the family's link g and loss ℓ, such as
    ``(y − m)²`` for gaussian responses, and ``−2 log P(y)`` for classes.

    Parameters
    ----------
    family_name : str
        "gaussian", "bernoulli", "multinomial", "poisson", "gamma" or another registered family.
    y : array of shape (n,)
        Responses; 0 or 1 for bernoulli, the column of ``mean`` for multinomial.
    mean : array of shape (n,), or (n, n_classes) for multinomial
        Predicted means; probabilities for bernoulli and multinomial.

    Examples
    --------
    >>> mean_deviance("gaussian", [1.0, 2.0], [1.0, 4.0])
    2.0
    >>> round(mean_deviance("multinomial", [0, 2], [[0.5, 0.2, 0.3], [0.1, 0.4, 0.5]]), 3)
    1.386
    """
    family = get_family(family_name)
    response, given = map(torch.from_numpy, _pair(y, mean, "mean", family.predicts_classes))
    _require(family.is_valid(response), "y", family.response_range)
    if not family.classifies:
        z = family.link(given)
        _require(z.isfinite(), "mean", f"inside the range of the family ({family.response_range})")
        return float(family.deviance(response, z[:, None]).mean())
    # The link of a probability of 0 or 1 is infinite, the deviance need not be.
    chances = given if given.ndim == 2 else torch.stack([1 - given, given], dim=1)  # (n, K)
    _require(response < chances.shape[1], "y", f"a column of mean, 0..{chances.shape[1] - 1}")
    _require(((chances >= 0) & (chances <= 1)).all(dim=1), "mean", "between 0 and 1")
    return float(2 * chances.gather(1, response.long()[:, None]).log().mean().abs())


def concordance(event: Any, time: Any, risk: Any, weights: Any = None) -> float:
    """Return Harrell's concordance: how often who has the event earlier has the larger risk.

    Pairs count whose earlier time is an event; of equal times, an event comes before a censored
    one. Equal risks count one half.

    Parameters
    ----------
    event : bool array of shape (n,)
    time : array of shape (n,)
    risk : array of shape (n,)
    weights : array of shape (n,), optional
        By which the pairs of each earlier event count.

    Returns
    -------
    float
        1 if the order is perfect, ½ if risk says nothing, NaN if no pair can be compared.

    Examples
    --------
    >>> concordance([True, True, False], [1.0, 2.0, 3.0], [0.5, 0.9, 0.1])
    0.6666666666666666
    """
    happened = np.asarray(event, dtype=bool)
    times, risks = (np.asarray(a, dtype=np.float64) for a in (time, risk))
    if not times.shape == risks.shape == happened.shape or times.ndim != 1:
        raise ValueError("event, time and risk must be 1-D and of equal length.")
    own = np.ones(len(times)) if weights is None else np.asarray(weights, dtype=np.float64)
    right = pairs = 0.0
    for block in np.array_split(np.flatnonzero(happened), max(1, len(times) // 500)):
        t, r, w = times[block, None], risks[block, None], own[block]
        later = (times > t) | ((times == t) & ~happened)  # (b, n)
        tied = np.abs(risks - r) <= TIED_RISK
        ahead = (later & (r > risks) & ~tied).sum(axis=1) + 0.5 * (later & tied).sum(axis=1)
        right += float(w @ ahead)
        pairs += float(w @ later.sum(axis=1))
    return right / pairs if pairs else float("nan")


def log_density(y: np.ndarray, mean: np.ndarray, family: str) -> np.ndarray:
    """Return the log density of each response, (m,), given predicted means.

    Gaussian or gamma dispersion comes from the samples of the other half: even ones for odd ones
    and the other way round.
    """
    held = get_family("gaussian" if family == "auto" else family)
    if not held.has_identity_link:  # positive means, whatever a method predicts
        mean = np.maximum(mean, 0.01 * y.mean())
    response = torch.as_tensor(np.asarray(y, dtype=np.float64))
    z = held.link(torch.as_tensor(np.asarray(mean, dtype=np.float64))[:, None])
    density = np.empty(len(y))
    even = np.arange(len(y)) % 2 == 0
    for half in (even, ~even):
        other = torch.from_numpy(~half)
        phi = held.unit_dispersion(response[other], z[other]).mean().item()
        here = torch.from_numpy(half)
        floor = 1e-12 + (1e-4 * float(np.var(y)) if held.is_quadratic else 0.0)
        found = held.log_density(response[here], z[here], max(phi, floor))
        density[half] = found.numpy()
    return density


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


def _require(valid: torch.Tensor, name: str, what: str) -> None:
    if not valid.all():
        raise ValueError(f"{name} of sample {int((~valid).nonzero()[0])} must be {what}.")


def _pair(y: Any, other: Any, name: str, columns: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 arrays of equal, positive length."""
    y, other = np.asarray(y, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if y.ndim != 1 or other.ndim != 1 + columns:
        raise ValueError(
            f"y must be 1-D and {name} {1 + columns}-D, got {y.ndim}-D and {other.ndim}-D."
        )
    if len(y) != len(other):
        raise ValueError(f"y has {len(y)} samples, {name} has {len(other)}: pass equally many.")
    if len(y) == 0:
        raise ValueError("y is empty: pass at least one sample.")
    return y, other


def _as_sets(rows: Any) -> list[set]:
    # Integers of Python lists are hashed several times faster than NumPy's.
    listed = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    return [set(sample) if isinstance(sample, Iterable) else {sample} for sample in listed]
