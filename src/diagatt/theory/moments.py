"""First two moments of a row, and everything a quadratic score does to them.

The theory never asks for a distribution: an expected score depends on a mean and a covariance
only, through the quadratic-score identity ``E xᵀWx = tr(WΣ) + μᵀWμ``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Moments", "envelope", "expected_score", "score_gap", "score_variance"]


@dataclass(frozen=True)
class Moments:
    """Mean μ and covariance Σ of the rows of one class.

    Parameters
    ----------
    mean : array of shape (d,)
    covariance : array of shape (d, d)
        Symmetric, positive semidefinite.

    Examples
    --------
    >>> Moments([1.0, 0.0], [[2.0, 0.0], [0.0, 1.0]]).second_moment
    array([[3., 0.],
           [0., 1.]])
    """

    mean: np.ndarray
    covariance: np.ndarray

    def __post_init__(self) -> None:
        mean = np.asarray(self.mean, dtype=np.float64)
        if mean.ndim != 1 or not np.all(np.isfinite(mean)):
            raise ValueError(f"mean must be a finite vector, got shape {mean.shape}.")
        covariance = symmetric(self.covariance, "covariance")
        if covariance.shape != (len(mean), len(mean)):
            raise ValueError(
                f"covariance has shape {covariance.shape}, but the mean has {len(mean)} features."
            )
        lowest = float(np.linalg.eigvalsh(covariance)[0])
        if lowest < -1e-8 * max(float(np.abs(covariance).max()), 1e-300):
            raise ValueError(
                f"covariance has the negative eigenvalue {lowest:.4g}: no row has this covariance."
            )
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    @classmethod
    def from_rows(cls, rows: Any) -> Moments:
        """Estimate both moments from an (n, d) array of rows, n ≥ 2.

        Examples
        --------
        >>> Moments.from_rows([[0.0, 1.0], [2.0, 1.0]]).mean
        array([1., 1.])
        """
        x = np.asarray(rows, dtype=np.float64)  # (n, d)
        if x.ndim != 2 or len(x) < 2:
            raise ValueError(f"need at least 2 rows of d features, got shape {x.shape}.")
        centred = x - x.mean(axis=0)  # (n, d)
        return cls(x.mean(axis=0), centred.T @ centred / (len(x) - 1))

    @property
    def n_features(self) -> int:
        """Features of a row, the paper's d."""
        return len(self.mean)

    @property
    def second_moment(self) -> np.ndarray:
        """M = E xxᵀ = Σ + μμᵀ, (d, d)."""
        return self.covariance + np.outer(self.mean, self.mean)


def expected_score(W: Any, row: Moments) -> float:
    """Quadratic-score identity (S2.1): ``E xᵀWx = tr(WΣ) + μᵀWμ``, for any distribution.

    Parameters
    ----------
    W : array of shape (d, d)
        Query-key matrix, the temperature already inside.
    row : Moments

    Examples
    --------
    >>> expected_score(np.eye(2), Moments([1.0, 0.0], np.eye(2)))
    3.0
    """
    weight = np.asarray(W, dtype=np.float64)
    return float(np.sum(weight * row.covariance) + row.mean @ weight @ row.mean)


def score_gap(W: Any, active: Moments, competitors: Sequence[Moments]) -> float:
    """Score gap of Assumption "score separability", verified directly.

    ``δ = E_active xᵀWx − max_f E_f xᵀWx`` over every kind of competing row: inactive rows of
    differing distributions, or rows of the other signal classes. W separates when δ > 0.

    Examples
    --------
    >>> rest = [Moments([0.0], [[1.0]]), Moments([1.0], [[1.0]])]
    >>> score_gap([[1.0]], Moments([0.0], [[5.0]]), rest)
    3.0
    """
    if len(competitors) == 0:
        raise ValueError("competitors is empty: a gap needs at least one competing row.")
    return expected_score(W, active) - max(expected_score(W, other) for other in competitors)


def score_variance(W: Any, row: Moments, excess_kurtosis: float = 0.0) -> float:
    """Variance of a score of ``x = μ + Σ^{1/2} ξ`` with independent symmetric entries ξ.

    ``Var = 2 tr(AA) + 4 μᵀWΣWμ + κ Σ_i A_ii²`` with ``A = Σ^{1/2} W Σ^{1/2}``, W symmetrized, and
    κ the excess kurtosis of the entries of ξ: 0 for Gaussian rows, 6/(ν − 4) for Student t.

    Examples
    --------
    >>> score_variance(np.eye(3), Moments(np.zeros(3), np.eye(3)))
    6.0
    """
    weight = np.asarray(W, dtype=np.float64)
    weight = (weight + weight.T) / 2
    values, vectors = np.linalg.eigh(row.covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None)) @ vectors.T  # (d, d) Σ^{1/2}
    A = root @ weight @ root  # (d, d)
    pulled = root @ (weight @ row.mean)  # (d,)
    diagonal = excess_kurtosis * np.sum(np.diag(A) ** 2)
    return float(2 * np.sum(A**2) + 4 * pulled @ pulled + diagonal)


def envelope(matrices: Sequence[Any]) -> np.ndarray:
    """Find a symmetric upper envelope: ``E ⪰ M_f`` for every matrix of a family.

    Built one matrix at a time, ``E ← E + (M_f − E)₊``, where ₊ keeps the positive eigenvalues. For
    one matrix it is that matrix. Feed it covariances or full second moments of background rows.

    Examples
    --------
    >>> envelope([np.diag([1.0, 2.0]), np.diag([3.0, 1.0])])
    array([[3., 0.],
           [0., 2.]])
    """
    if len(matrices) == 0:
        raise ValueError("matrices is empty: an envelope needs at least one matrix.")
    upper = symmetric(matrices[0], "matrices[0]")
    for f, other in enumerate(matrices[1:], start=1):
        upper = upper + positive_part(symmetric(other, f"matrices[{f}]") - upper)
    return upper


def covariance_contrast(row: Moments, covariance: np.ndarray, what: str = "rows") -> np.ndarray:
    """Δ = Σ − covariance, (d, d), after checking that both have the same features."""
    if row.covariance.shape != covariance.shape:
        raise ValueError(
            f"{what} have {row.n_features} features, the background has {len(covariance)}."
        )
    return row.covariance - covariance


def positive_part(matrix: np.ndarray) -> np.ndarray:
    """Keep the positive eigenvalues of a symmetric matrix, (d, d)."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.clip(values, 0.0, None)) @ vectors.T


def symmetric(matrix: Any, what: str) -> np.ndarray:
    """Check that a matrix is square, finite and symmetric; return it exactly symmetric."""
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{what} must be a square matrix, got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{what} contains NaN or infinity: impute or drop the feature.")
    if np.abs(array - array.T).max(initial=0.0) > 1e-8 * np.abs(array).max(initial=1e-300):
        raise ValueError(f"{what} is not symmetric: pass (A + A.T) / 2 if it should be.")
    return (array + array.T) / 2
