"""First two moments of a row, given or estimated, and what a quadratic score does to them.

The theory needs no distribution: by the quadratic-score identity ``E xᵀWx = tr(WΣ) + μᵀWμ``, an
expected score depends on a mean and a covariance only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagatt.arguments import Numbers
from diagatt.ragged import RaggedRows


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
        """Count of features of a row, the paper's d."""
        return len(self.mean)

    @property
    def second_moment(self) -> np.ndarray:
        """Second moment M = E xxᵀ = Σ + μμᵀ, (d, d)."""
        return self.covariance + np.outer(self.mean, self.mean)


def expected_score(W: Numbers, row: Moments) -> float:
    """Return ``E xᵀWx = tr(WΣ) + μᵀWμ`` by the quadratic-score identity (S2.1).

    It holds for any distribution of the row. The temperature is already inside W (d, d).

    Examples
    --------
    >>> expected_score(np.eye(2), Moments([1.0, 0.0], np.eye(2)))
    3.0
    """
    weight = np.asarray(W, dtype=np.float64)
    return float(np.sum(weight * row.covariance) + row.mean @ weight @ row.mean)


def score_gap(W: Numbers, active: Moments, competitors: Sequence[Moments]) -> float:
    """Return the score gap of Assumption "score separability", computed directly.

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


def score_variance(W: Numbers, row: Moments, excess_kurtosis: float = 0.0) -> float:
    """Return the variance of a score of ``x = μ + Σ^{1/2} ξ`` with independent symmetric entries ξ.

    ``Var = 2 tr(AA) + 4 μᵀWΣWμ + κ Σ_i A_ii²`` with ``A = Σ^{1/2} W Σ^{1/2}``, W symmetrized, and
    κ the excess kurtosis of the entries of ξ: 0 for Gaussian rows, 6/(ν − 4) for Student t.

    Examples
    --------
    >>> score_variance(np.eye(3), Moments(np.zeros(3), np.eye(3)))
    6.0
    """
    A, pulled = standardized_score(W, row)
    diagonal = excess_kurtosis * np.sum(np.diag(A) ** 2)
    return float(2 * np.sum(A**2) + 4 * pulled @ pulled + diagonal)


def standardized_score(W: Numbers, row: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Return ``A = Σ^{1/2}WΣ^{1/2}`` (d, d) and ``Σ^{1/2}Wμ`` (d,), with W symmetrized."""
    weight = np.asarray(W, dtype=np.float64)
    weight = (weight + weight.T) / 2
    values, vectors = np.linalg.eigh(row.covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None)) @ vectors.T  # (d, d) Σ^{1/2}
    return root @ weight @ root, root @ (weight @ row.mean)


def envelope(matrices: Sequence[Any]) -> np.ndarray:
    """Find a symmetric upper envelope: ``E ⪰ M_f`` for every matrix of a family.

    Built one matrix at a time, ``E ← E + (M_f − E)₊``, where ₊ keeps the positive eigenvalues. For
    one matrix it is that matrix. Pass covariances or full second moments of background rows.

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


def covariance_contrast(row: Moments, covariance: np.ndarray, what: str) -> np.ndarray:
    """Return Δ = Σ − covariance, (d, d), after checking that both have the same features."""
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


# ------------------------------------------------------------------ moments of labelled rows


def class_moments(X: Any, rows: Any) -> tuple[list[Moments], Moments]:
    """Estimate the moments of every signal class and of the background.

    Parameters
    ----------
    X : RaggedRows or anything it can be made from
    rows : int array of shape (n, s) or (n,)
        Position, within sample i, of the row of signal class k.

    Returns
    -------
    classes : list of Moments
        One per column of ``rows``.
    background : Moments
        Moments of all rows that belong to no class.

    Examples
    --------
    >>> X = RaggedRows.from_samples([[[5.0], [0.0], [2.0]], [[2.0], [7.0]]])
    >>> classes, background = class_moments(X, [0, 1])
    >>> classes[0].mean, background.covariance
    (array([6.]), array([[1.33333333]]))
    """
    samples = RaggedRows.coerce(X)
    return group_moments(samples, *row_groups(samples, rows))


def group_moments(
    samples: RaggedRows, packed: np.ndarray, group: np.ndarray
) -> tuple[list[Moments], Moments]:
    """Estimate moments from packed positions (n, s) of active rows and every row's group (N,)."""
    if np.sum(group == 0) < 2:
        raise ValueError("fewer than 2 background rows: every row is labelled as active.")
    if len(packed) < 2:
        raise ValueError("moments of the active rows need at least 2 samples.")
    classes = [Moments.from_rows(samples.values[packed[:, k]]) for k in range(packed.shape[1])]
    return classes, Moments.from_rows(samples.values[group == 0])


def row_groups(
    samples: RaggedRows, rows: Any, distinct: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return packed positions (n, s) of the labelled rows, and the group (N,) of every row.

    Group 0 is background, group k + 1 is signal class k. ``distinct`` refuses two classes on one
    row, which true labels never have but the heads of a model may.
    """
    labels = np.asarray(rows)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if labels.ndim != 2 or len(labels) != len(samples) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be integers of shape ({len(samples)}, s), one line per sample; "
            f"got shape {np.shape(rows)} and type {labels.dtype}."
        )
    wrong = np.argwhere((labels < 0) | (labels >= samples.lengths[:, None]))
    if len(wrong):
        i, k = wrong[0]
        raise ValueError(
            f"sample {i} has {samples.lengths[i]} rows, but rows[{i}, {k}] = {labels[i, k]}."
        )
    ordered = np.sort(labels, axis=1)
    twice = np.flatnonzero(np.any(ordered[:, 1:] == ordered[:, :-1], axis=1))
    if distinct and len(twice):
        raise ValueError(
            f"sample {twice[0]} labels one row with two classes: rows must differ within a sample."
        )
    packed = labels + samples.offsets[:-1, None]  # (n, s)
    group = np.zeros(samples.n_rows, dtype=np.int64)  # (N,)
    group[packed] = np.arange(1, labels.shape[1] + 1)
    return packed, group
