"""How well responses are predicted and rows of interest are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.special import kl_div, rel_entr

__all__ = ["accuracy", "crlr", "mean_deviance", "rmse"]


def rmse(y: Any, prediction: Any) -> float:
    r"""Root mean squared error, ``‖y − ŷ‖₂ / √n`` (paper, Section 5.1).

    Parameters
    ----------
    y, prediction : array of shape (n,)

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    y, prediction = _pair(y, prediction, "prediction")
    residual = y.astype(np.float64) - prediction
    return float(np.sqrt(np.mean(residual**2)))


def accuracy(y: Any, prediction: Any) -> float:
    """Share of samples whose predicted class is the true one.

    Parameters
    ----------
    y, prediction : array of shape (n,)
        Class labels.

    Examples
    --------
    >>> accuracy(["a", "b"], ["a", "a"])
    0.5
    """
    y, prediction = _pair(y, prediction, "prediction")
    return float(np.mean(y == prediction))


def crlr(true_rows: Any, located_rows: Any) -> float:
    r"""Correct localization rate of the rows of interest (paper, Section 5.1).

    ``CRLR = n⁻¹ Σ_i |S_i ∩ Ŝ_i| / |S_i|``, as a fraction in [0, 1]; the paper prints per cent.
    Both are sets: a row that several heads locate counts once, and rows located beyond ``S_i``
    cost nothing.

    Parameters
    ----------
    true_rows : array of shape (n, s), or n collections of row indices
        The active rows ``S_i``; a 1-D array of n integers means one a sample.
    located_rows : array of shape (n, R), or n collections of row indices
        The located rows ``Ŝ_i``, as many as you like.

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
            f"true_rows speaks of {len(true)} samples, located_rows of {len(located)}: "
            "pass one set of rows a sample in both."
        )
    if not true:
        raise ValueError("true_rows is empty: CRLR needs at least one sample.")
    for i, rows in enumerate(true):
        if not rows:
            raise ValueError(f"sample {i} has no true row, so its CRLR is 0/0: drop the sample.")
    pairs = zip(true, located, strict=True)
    return float(np.mean([len(rows & found) / len(rows) for rows, found in pairs]))


def mean_deviance(family_name: str, y: Any, mean: Any) -> float:
    """Mean unit deviance, twice the log likelihood lost against a perfect prediction.

    ==============  ==================================================
    family          unit deviance of y at mean m
    ==============  ==================================================
    gaussian        (y − m)²
    bernoulli       2 [y log(y/m) + (1 − y) log((1 − y)/(1 − m))]
    multinomial     −2 log m_y
    poisson         2 [y log(y/m) − y + m]
    gamma           2 [y/m − 1 − log(y/m)]
    ==============  ==================================================

    Parameters
    ----------
    family_name : {"gaussian", "bernoulli", "multinomial", "poisson", "gamma"}
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
    if family_name not in _UNIT_DEVIANCE:
        raise ValueError(f"unknown family {family_name!r}: choose one of {list(_UNIT_DEVIANCE)}.")
    y, mean = _pair(y, mean, "mean", columns=family_name == "multinomial")
    return float(np.mean(_UNIT_DEVIANCE[family_name](y, mean.astype(np.float64))))


def _gaussian(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (y - mean) ** 2


def _bernoulli(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    _require((y >= 0) & (y <= 1), "y", "between 0 and 1")
    _require((mean >= 0) & (mean <= 1), "mean", "between 0 and 1")
    return 2 * (rel_entr(y, mean) + rel_entr(1 - y, 1 - mean))


def _multinomial(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    classes = mean.shape[1]
    columns = y.astype(np.int64)
    _require(
        (columns == y) & (y >= 0) & (y < classes),
        "y",
        f"a column of mean, 0..{classes - 1}",
    )
    _require(((mean >= 0) & (mean <= 1)).all(axis=1), "mean", "probabilities between 0 and 1")
    return 2 * rel_entr(1.0, mean[np.arange(len(y)), columns])


def _poisson(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    _require(y >= 0, "y", "0 or more")
    _require(mean > 0, "mean", "positive")
    return 2 * kl_div(y, mean)


def _gamma(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    _require(y > 0, "y", "positive")
    _require(mean > 0, "mean", "positive")
    return 2 * (y / mean - 1 - np.log(y / mean))


_UNIT_DEVIANCE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "gaussian": _gaussian,
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "poisson": _poisson,
    "gamma": _gamma,
}


def _require(valid: Any, name: str, what: str) -> None:
    wrong = np.flatnonzero(~valid)
    if len(wrong):
        raise ValueError(f"{name} of sample {wrong[0]} must be {what}.")


def _pair(y: Any, other: Any, name: str, columns: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of the same, positive number of samples."""
    y, other = np.asarray(y), np.asarray(other)
    if y.ndim != 1 or other.ndim != 1 + columns:
        raise ValueError(
            f"y must be 1-D and {name} {1 + columns}-D, got {y.ndim}-D and {other.ndim}-D."
        )
    if len(y) != len(other):
        raise ValueError(f"y has {len(y)} samples, {name} has {len(other)}: pass the same number.")
    if len(y) == 0:
        raise ValueError("y is empty: pass at least one sample.")
    return y, other


def _as_sets(rows: Any) -> list[set]:
    return [set(sample) if isinstance(sample, Iterable) else {sample} for sample in _listed(rows)]


def _listed(rows: Any) -> list:
    """Python lists: their integers are hashed several times faster than NumPy's."""
    return rows.tolist() if hasattr(rows, "tolist") else list(rows)
