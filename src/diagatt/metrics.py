"""Measures of how well responses are predicted and rows of interest are located."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score as accuracy
from sklearn.metrics import root_mean_squared_error

from diagatt.families import get_family

__all__ = ["accuracy", "concordance", "crlr", "mean_deviance", "rmse"]

TIED_RISK = 1e-8  # risks that differ by less are equal, as in scikit-survival


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


def concordance(event: Any, time: Any, risk: Any) -> float:
    """Return Harrell's concordance: how often who has the event earlier has the larger risk.

    Pairs count whose earlier time is an event; of equal times, an event comes before a censored
    one. Equal risks count one half.

    Parameters
    ----------
    event : bool array of shape (n,)
    time : array of shape (n,)
    risk : array of shape (n,)

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
    right = pairs = 0.0
    for block in np.array_split(np.flatnonzero(happened), max(1, len(times) // 500)):
        t, r = times[block, None], risks[block, None]
        later = (times > t) | ((times == t) & ~happened)  # (b, n)
        tied = np.abs(risks - r) <= TIED_RISK
        right += float((later & (r > risks) & ~tied).sum() + 0.5 * (later & tied).sum())
        pairs += float(later.sum())
    return right / pairs if pairs else float("nan")


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
